"""Patching as an experiment: shares by group, a file of pairs, the page, refusals, words."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import torch

from microtome.cli import run
from microtome.errors import MicrotomeError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.field.patching.pair_file import TextPair
from microtome.experiments.field.patching.pairs import Encoder, encoded_pairs
from microtome.experiments.field.patching.plan import COLUMNS, GROUPS
from microtome.experiments.field.patching.positions import group_of, group_patches
from microtome.experiments.field.patching.restored import Restored, patches_to_measure
from microtome.experiments.field.patching.states import Patched
from microtome.runs import run_here
from microtome.tasks import DataSpec
from support.experiment_rows import rows_of, study_here
from support.labelled_texts import sentences
from support.sentence_folders import sentence_folder
from support.tiny import N_LAYERS, tiny_model, tiny_tokenizer
from support.training_rows import checkpoint, rows, tokenizer_for

EXPERIMENT = find_experiment("patching")
NAMES = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}


def pairs_of(*texts, masked=False):
    encoder = Encoder(tiny_tokenizer(), max_length=32, segments=True)
    return encoded_pairs(
        [TextPair(*pair, number) for number, pair in enumerate(texts)], encoder, masked=masked
    )[0]


def test_every_position_is_in_one_group():
    (pair,) = pairs_of((("the cat sees a [MASK]", "a dog"), ("the dog sees a [MASK]", "a cat")),
                       masked=True)  # fmt: skip
    # [CLS] the cat sees a [MASK] [SEP] a dog [SEP]
    expected = ["first", "before", "changed", "between", "between", "masked", "separators",
                "between", "changed", "separators"]  # fmt: skip
    assert [group_of(pair, place) for place in range(10)] == expected
    groups = group_patches(0, pair)
    assert [patch.positions for patch in groups["changed"]] == [(2, 8)]  # together
    assert [patch.positions for patch in groups["between"]] == [(3,), (4,), (7,)]


def test_the_share_of_a_group_is_a_ratio_of_sums_over_pairs():
    pairs = pairs_of(("a cat sees a dog", "a bird sees a dog"), ("the cat", "the dog"))
    patches = patches_to_measure(pairs, 0)
    # Answers 4 → 0 and −1 → 1: gaps of 4 and −2. Of "after", positions restore 1 2 3 in pair 1.
    values = np.array([[0.0 if patch.pair == 0 else 1.0 for patch in patches]])
    for column, patch in enumerate(patches):
        if patch.pair == 0 and group_of(pairs[0], patch.positions[0]) == "after":
            values[0, column] = 1.0 + patch.positions[0] - 3
        if patch.pair == 1 and patch.positions == (0,):
            values[0, column] = 0.0
    found = Patched(np.array([4.0, -1.0]), np.array([0.0, 1.0]), values)
    shares = {row["group"]: row for row in Restored(pairs, patches, found).by_group()}
    assert shares["after"]["share"] == pytest.approx(2 / 4)
    assert (shares["after"]["n"], shares["after"]["low"]) == (1, None)  # pair 2 ends with the cat
    assert shares["first"]["share"] == pytest.approx((0 + 1) / (4 + 2))
    assert shares["first"]["n"] == 2
    assert shares["first"]["high"] is None  # two pairs are too few for an interval
    assert shares["changed"]["share"] == 0


def group_row(group, depth, share, n=10):
    ends = {"low": share - 0.1, "high": share + 0.1}
    return {**dict.fromkeys(COLUMNS), "stage": "group", "group": group, "depth": depth,
            "share": share, "n": n, **ends}  # fmt: skip


def handmade(first, changed, n_left=0):
    found = [group_row("first", depth, share) for depth, share in enumerate(first)]
    found += [group_row("changed", depth, share) for depth, share in enumerate(changed)]
    nothing = dict.fromkeys(COLUMNS)
    found += [{**nothing, "stage": "left out", "reason": "why", "n": n_left}] if n_left else []
    return [*found, {**nothing, "stage": "pair", "pair": 0}]


FROM_2 = (
    "From depth 2 of 4 on, the first token carries the answer: the clean state restores 60.0 %"
    " (50.0 to 70.0) of the difference (10 pairs). The changed tokens carry the answer up to depth"
    " 1 of 4: there they restore 70.0 % (60.0 to 80.0). Left out"
)
AT_4 = (
    "After one layer the changed tokens restore 30.0 % (20.0 to 40.0); above, no position holds"
    " half of it on average. The first token holds it at depth 4 alone, where the head reads it:"
    " one depth before, its clean state restores 45.0 % (35.0 to 55.0). Left out"
)
UP_TO_1 = (
    "The changed tokens carry the answer up to depth 1 of 4: there they restore 60.0 % (50.0 to"
    " 70.0); above, no position holds half of it on average. The first token holds it at depth 4"
)
NOWHERE = "holds half of it on average. At depth 4, the last, no single position holds it. Left out"


@pytest.mark.parametrize(
    ("first", "changed", "words", "summary"),
    [
        ((0, 0.2, 0.6, 0.9, 1), (1, 0.7, 0.3, 0.1, 0), FROM_2, ("first", 2, 1)),
        ((0, 0.4, 0.4, 0.45, 1), (1, 0.3, 0.3, 0.1, 0), AT_4, ("first", 4, 0)),
        ((0, 0.2, 0.3, 0.4, 1), (1, 0.6, 0.3, 0.1, 0), UP_TO_1, ("first", 4, 1)),
        ((0, 0.1, 0.1, 0.1, 0.2), (1, 0.6, 0.6, 0.3, 0.2), NOWHERE, (None, None, 2)),
    ],
)
def test_the_finding_says_where_the_answer_is(first, changed, words, summary):
    made = handmade(first, changed, n_left=3)
    told = EXPERIMENT.finding(made)
    assert words in told
    assert "Left out: 3 (why)." in told
    found = EXPERIMENT.summary(made)
    assert (found["reads"], found["carried_from"], found["changed_until"]) == summary
    assert found["left_out"] == {"why": 3}
    assert len(told.split(". ")) <= 4


def test_a_page_begins_with_the_finding_and_the_two_depths():
    found = EXPERIMENT.headline(handmade((0, 0.2, 0.6, 0.9, 1), (1, 0.7, 0.3, 0.1, 0), n_left=3))
    assert found.sentence.startswith("From depth 2 of 4 on")
    assert [(card.value, card.note) for card in found.cards] == [
        ("from depth 2", "60.0 % (50.0 to 70.0) there"),
        ("to depth 1", "70.0 % (60.0 to 80.0) there"),
        ("1", "3 more left out"),
    ]


@pytest.fixture
def subject(tmp_path):
    data = rows(tmp_path / "data", n=16)._source.path
    folder = checkpoint(tmp_path / "bert", "bert", "classification", **NAMES)
    return subject_of(str(folder), DataSpec(path=data, labels=("no", "yes")))


def test_a_classifier_has_shares_by_depth_and_position_and_a_page(subject, tmp_path):
    settings = {"tries": 3, "n_pairs": 8, "examples": 2}
    (part,) = study_here("patching", subject, tmp_path / "run", **settings).parts
    assert all(set(row) >= set(COLUMNS) for row in part.rows)
    cells = {(row["group"], row["depth"]): row for row in part.rows if row["stage"] == "group"}
    assert {depth for _, depth in cells} == set(range(N_LAYERS + 1))
    assert {group for group, _ in cells} <= set(GROUPS)
    n_pairs = EXPERIMENT.summary(part.rows)["pairs"]
    left_out = [row["n"] for row in part.rows if row["stage"] == "left out"]
    assert n_pairs + sum(left_out) == 8
    assert all(row["low"] <= row["share"] <= row["high"] for row in cells.values() if row["low"])
    for group, depth, share in (("changed", 0, 1), ("first", 0, 0), ("first", N_LAYERS, 1),
                                ("changed", N_LAYERS, 0)):  # fmt: skip
        assert cells[group, depth]["share"] == pytest.approx(share, abs=1e-3)
        assert cells[group, depth]["n"] == n_pairs >= 5
        ends = cells[group, depth]["low"], cells[group, depth]["high"]
        assert ends == pytest.approx((share, share), abs=1e-3)
    assert {row["pair"] for row in part.rows if row["stage"] == "token"} == {0, 1}
    for row in part.rows:
        if row["stage"] == "pair":
            assert {row["answer"], row["other"]} == {"no", "yes"}
            assert row["clean"] != row["corrupted"]
    group_map, *token_maps, table = EXPERIMENT.views(part.rows)
    assert group_map.values[0][group_map.columns.index("changed tokens")] == pytest.approx(1)
    assert len(token_maps) == 2
    assert any("→" in name for name in token_maps[0].columns)
    assert len(table.rows) == len(cells)
    assert part.finding.split()[0] in ("From", "The", "After")


@pytest.mark.parametrize("head", ["classification", "mlm"])
def test_pairs_that_were_made_are_a_file_that_gives_the_same_shares_again(subject, head, tmp_path):
    if head == "mlm":
        subject = subject_of(str(checkpoint(tmp_path / "lm")), subject.data)
    (trial,) = EXPERIMENT.plan(subject, EXPERIMENT.settings({"tries": 2, "n_pairs": 6}))
    made = run_here(trial).rows
    names = ["clean", "corrupted", *(["answer"] if head == "mlm" else [])]
    file = tmp_path / "pairs.csv"
    with file.open("w", newline="") as stream:
        lines = [[row[name] for name in names] for row in made if row["stage"] == "pair"]
        csv.writer(stream).writerows([names, *lines])
    read = rows_of("patching", subject.model_path, pairs=str(file))
    shares = [[row["share"] for row in found if row["stage"] == "group"] for found in (made, read)]
    assert shares[0] == pytest.approx(shares[1], abs=1e-5)


def test_a_masked_lm_is_patched_as_it_is_unless_it_is_fine_tuned_first(tmp_path, capsys):
    folder = checkpoint(tmp_path / "lm")
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{text}\n" for text in sentences(12)))
    given = ["run", "patching", "--model", folder, "--data", texts, "--tries", "2"]
    given += ["--workers", "0", "--json", "--out", tmp_path / "run"]
    assert run(list(map(str, given))) == 0
    document = json.loads(capsys.readouterr().out)
    shares = {
        (row["group"], row["depth"]): row["share"]
        for row in document["rows"]
        if row["stage"] == "group"
    }
    assert document["summary"]["reads"] == "masked"
    assert shares["masked", N_LAYERS] == pytest.approx(1, abs=1e-3)
    assert shares["first", N_LAYERS] == pytest.approx(0, abs=1e-3)
    pairs = [row for row in document["rows"] if row["stage"] == "pair"]
    assert all("[MASK]" in row["clean"] and "[MASK]" in row["corrupted"] for row in pairs)
    labelled = rows(tmp_path / "data", n=20)._source.path
    subject = subject_of(str(folder), DataSpec(path=labelled, labels=("no", "yes")))
    names = [
        [trial.name for trial in EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))]
        for settings in ({}, {"finetune": True})
    ]
    assert names == [["patching.patch"], ["finetuning.train", "patching.patch"]]


@torch.no_grad()
def test_pairs_of_texts_and_numbers_are_what_transformers_gives(tmp_path):
    folder = checkpoint(tmp_path / "bert", "bert", "classification", num_labels=1)
    data = rows(tmp_path / "data", "pair", n=6)._source.path
    spec = DataSpec(path=data, pair_column="pair", labels=("no", "yes"))
    found = [row for row in rows_of("patching", folder, spec, tries=2) if row["stage"] == "pair"]
    assert {(row["answer"], row["other"]) for row in found} == {("the number", None)}
    model, tokenizer = tiny_model("bert", "classification", num_labels=1), tokenizer_for("bert")
    for row in found:
        for side in ("clean", "corrupted"):
            given = tokenizer(row[side], row[f"{side}_pair"], return_tensors="pt")
            assert set(given["token_type_ids"][0].tolist()) == {0, 1}
            expected = float(model(**given).logits[0, 0])
            assert row[f"{side}_value"] == pytest.approx(expected, abs=1e-3)


def model_with(kind, folder):
    if kind == "embedder":
        return sentence_folder(folder)
    return checkpoint(folder, "bert", kind)


@pytest.mark.parametrize(
    ("kind", "task", "settings", "message"),
    [
        ("token-classification", "micro-tagging", {}, "answers every token"),
        ("question-answering", "micro-squad", {}, "answers every token"),
        ("embedder", "micro-similarity", {}, "micro-similarity is similarity"),
        ("embedder", "micro-retrieval", {}, "micro-retrieval is retrieval"),
        ("mlm", "micro-tagging", {}, "micro-tagging is tokens"),
        ("mlm", None, {}, "patching needs pairs of texts, or rows to make them of"),
        ("classification", None, {"pairs": True}, "answer and other are words at"),
        ("none", None, {"pairs": True}, "has no answer before it is fine-tuned"),
        ("classification", "micro-sentiment", {"tries": 0}, "--tries must be 1 or more, got 0"),
        ("classification", "micro-sentiment", {"least": 1}, "--least must be from 0 to below 1"),
    ],
)
def test_what_has_no_answer_is_refused_in_a_line(tmp_path, kind, task, settings, message):
    if "pairs" in settings:
        file = tmp_path / "pairs.csv"
        file.write_text("clean,corrupted,answer\na cat,a dog,yes\n")
        settings = {"pairs": str(file)}
    model = model_with(kind, tmp_path / "model")
    subject = subject_of(str(model), DataSpec(task, limit=8), needs_rows=False)
    with pytest.raises(MicrotomeError, match=message) as caught:
        EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))
    assert "\n" not in f"{caught.value}{caught.value.hint}"
