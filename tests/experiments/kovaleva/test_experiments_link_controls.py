"""What a link is compared with: heads made by hand against the controls."""

from __future__ import annotations

from microtome.experiments import find_experiment
from microtome.experiments.kovaleva.token_links.report import follows_link
from microtome.tasks import DataSpec, open_data
from microtome.tasks.annotation.treebanks import read_conllu
from support.experiment_rows import rows_of
from support.gold_subjects import subject_words
from support.handmade import HEAD, LAYER, attends_to_previous, attends_to_words

NAME = "token-links"


def head_of(rows, direction):
    return next(
        row for row in rows
        if (row["direction"], row["layer"], row["head"]) == (direction, LAYER, HEAD)
    )  # fmt: skip


def test_a_head_made_to_attend_to_subjects_is_found_on_the_gold_text(tmp_path):
    dataset = open_data(DataSpec("micro-sentiment", split="dev")).limit(60)
    texts = [row.text for row in dataset.rows()]
    folder = attends_to_words(tmp_path / "made", texts, subject_words(dataset))
    rows = rows_of(NAME, folder, DataSpec(task="micro-sentiment", split="dev", limit=60))
    row = head_of(rows, "verb→subject")
    assert follows_link(row)
    best = find_experiment(NAME).summary(rows)["verb-subject (verb→subject)"]
    assert best["head"] == f"{LAYER}.{HEAD}"
    assert row["excess_low"] > 0.1
    assert row["stripe_control"] > 0.5 * row["attention"]  # it is a stripe: every word attends


def test_the_offset_control_rejects_a_pure_previous_token_head(tmp_path):
    """Every subject stands right before its verb: the head's weight is 1 there, and elsewhere."""
    lines = []
    for subject in ("dogs", "cats", "birds", "trees"):
        for verb in ("run", "sing", "sleep"):
            for last in ("here", "there"):
                words = [("the", "DET", 2, "det"), (subject, "NOUN", 3, "nsubj"),
                         (verb, "VERB", 0, "root"), (last, "ADV", 3, "advmod")]  # fmt: skip
                for i, (form, upos, head, relation) in enumerate(words, start=1):
                    lines.append(f"{i}\t{form}\t{form}\t{upos}\t_\t_\t{head}\t{relation}\t_\t_")
                lines.append("")
    path = tmp_path / "adjacent.conllu"
    path.write_text("\n".join(lines) + "\n")
    texts = [sentence.text for sentence in read_conllu(path)]
    folder = attends_to_previous(tmp_path / "made", texts)
    rows = rows_of(NAME, folder, treebank=str(path))
    row = head_of(rows, "verb→subject")
    assert row["attention"] > 0.95
    assert row["diagonal"] > 0.7  # its first token has none before it
    assert abs(row["excess"]) < 0.01
    assert not follows_link(row)
    ranked = sorted(
        (r for r in rows if r["direction"] == "verb→subject"), key=lambda r: -r["attention"]
    )
    assert (ranked[0]["layer"], ranked[0]["head"]) == (LAYER, HEAD)  # the paper's way finds it
