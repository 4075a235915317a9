"""Attention to features: rows against eager maps, a head made by hand, requests."""

from __future__ import annotations

import numpy as np
import pytest

from microtome import load, load_tokenizer
from microtome.cli import run
from microtome.experiments import find_experiment
from microtome.experiments.kovaleva.linguistic_features.claims import claims
from microtome.observe.evaluation import encode_for
from microtome.tasks import DataSpec, open_data
from microtome.tasks.annotation.passages import encode_passages, gold_passages, treebank_passages
from support.by_definition import FEATURES_IN_UD, drawn_most, expected_most
from support.eager_maps import eager_maps
from support.experiment_rows import rows_of
from support.gold_subjects import subject_words
from support.handmade import HEAD, LAYER, attends_to_words
from support.tiny import tiny_model, tiny_tokenizer

pytestmark = pytest.mark.usefixtures("own_folder")

NAME = "linguistic-features"
EXPERIMENT = find_experiment(NAME)
TREEBANK = """\
# text = the dogs eats birds not .
1	the	the	DET	_	_	2	det	_	_
2	dogs	dog	NOUN	_	_	3	nsubj	_	_
3	eats	eat	VERB	_	_	0	root	_	_
4	birds	bird	NOUN	_	_	3	obj	_	_
5	not	not	PART	_	_	3	advmod	_	_
6	.	.	PUNCT	_	_	3	punct	_	_

# text = she sleeps
1	she	she	PRON	_	_	2	nsubj	_	_
2	sleeps	sleep	VERB	_	_	0	root	_	_

# text = cars was quick , very slow houses
1	cars	car	NOUN	_	_	3	nsubj	_	_
2	was	be	AUX	_	_	3	cop	_	_
3	quick	quick	ADJ	_	_	0	root	_	_
4	,	,	PUNCT	_	_	3	punct	_	_
5	very	very	ADV	_	_	6	advmod	_	_
6	slow	slow	ADJ	_	_	7	amod	_	_
7	houses	house	NOUN	_	_	3	obj	_	_

"""
# Which words of each sentence have the feature, by hand (from 0).
BY_HAND = {
    "nouns": [[1, 3], [], [0, 6]],
    "verbs": [[2], [1], [1]],
    "pronouns": [[], [0], []],
    "subjects": [[1], [0], [0]],
    "objects": [[3], [], [6]],
    "negations": [[4], [], []],
    "modifiers": [[], [], [5]],
}


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "small.conllu"
    path.write_text(TREEBANK)
    return path


def saved(folder, seed=0, head="none"):
    tiny_model("bert", head, seed=seed).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def small_texts():
    """(text, the characters of its words, feature → its words), from the treebank above."""
    for number, block in enumerate(TREEBANK.strip().split("\n\n")):
        words = [line.split("\t")[1] for line in block.splitlines()[1:]]
        starts = [len(" ".join([*words[:i], ""])) for i in range(len(words))]
        spans = [(start, start + len(word)) for start, word in zip(starts, words, strict=True)]
        yield " ".join(words), spans, {name: own[number] for name, own in BY_HAND.items()}


def tokens_of(n_pieces, words, mode):
    """Pieces that count as one token; in ``word`` mode a word, or words that share a piece."""
    tokens = [{piece} for piece in range(n_pieces)]
    for pieces in words if mode == "word" else ():
        touched = [token for token in tokens if token & set(pieces)]
        tokens = [token for token in tokens if token not in touched] + [set.union(*touched)]
    return sorted(sorted(token) for token in tokens)


def by_hand(model, tokenizer, texts, mode, expected):
    """feature → attention, × length, control and the number of texts; by plain loops."""
    gathered: dict = {}
    for text, spans, features in texts:
        maps = eager_maps(model, tokenizer, text)  # (layers, heads, L, L)
        offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
        words = [[p for p, (a, b) in enumerate(offsets) if a < stop and b > start]
                 for start, stop in spans]  # fmt: skip
        tokens = tokens_of(len(offsets), words, mode)
        received = np.stack(
            [
                np.mean([maps[:, :, query][..., key].sum(-1).mean(-1) for query in tokens], axis=0)
                for key in tokens
            ]
        )  # (tokens, layers, heads)
        marked = {name: {p for w in own for p in words[w]} for name, own in features.items()}
        marked |= {"[CLS]": {0}, "[SEP]": {len(offsets) - 1}}
        for name, pieces in marked.items():
            chosen = [t for t, token in enumerate(tokens) if pieces & set(token)]
            if chosen:
                most = received[chosen].max(0)
                chance = expected(received[1:-1], len(chosen))  # [CLS] and [SEP] aside
                gathered.setdefault(name, []).append((most, most * len(tokens), chance))
    return {name: (*np.mean(own, axis=0), len(own)) for name, own in gathered.items()}


def check_equal(rows, wanted):
    assert {row["feature"] for row in rows} == set(wanted)
    for row in rows:
        *maps, n = wanted[row["feature"]]
        most, scaled, chance = (one[row["layer"], row["head"]] for one in maps)
        assert row["attention"] == pytest.approx(most, abs=1e-5)
        assert row["times_length"] == pytest.approx(scaled, abs=1e-4)
        assert row["control"] == pytest.approx(chance, abs=1e-5)
        assert row["excess"] == pytest.approx(most - chance, abs=1e-5)
        assert (row["n"], row["checkpoint"]) == (n, "pretrained")


@pytest.mark.parametrize("mode", ["paper", "word"])
def test_every_map_equals_one_computed_from_eager_attention(tmp_path, treebank, mode):
    folder = saved(tmp_path / "model")
    modifiers = ["modifiers=upos=ADJ & deprel=amod"]
    rows = rows_of(NAME, folder, treebank=str(treebank), mode=mode, features=modifiers)
    wanted = by_hand(load(folder), tiny_tokenizer(), small_texts(), mode, drawn_most)
    assert len(rows) == len(wanted) * 3 * 4
    check_equal(rows, wanted)


def test_difference_maps_are_differences(tmp_path, treebank):
    base, tuned = saved(tmp_path / "base", 1), saved(tmp_path / "tuned", 2, "classification")
    rows = rows_of(NAME, tuned, treebank=str(treebank), base=str(base))
    by_place = {(r["checkpoint"], r["feature"], r["layer"], r["head"]): r for r in rows}
    assert {row["checkpoint"] for row in rows} == {"finetuned", "pretrained"}
    for (checkpoint, *place), row in by_place.items():
        if checkpoint == "finetuned":
            before = by_place["pretrained", *place]
            assert row["change"] == pytest.approx(row["attention"] - before["attention"], abs=1e-6)
            assert before["change"] is None
    same = rows_of(NAME, tuned, treebank=str(treebank), base=str(tuned))
    assert all(row["change"] == 0 for row in same if row["checkpoint"] == "finetuned")
    assert "no head pays more attention" in claims(same)["features"].words


def attended(*by_layer, reach=0.01):
    """One head in each layer: what [CLS], [SEP] and nouns receive."""
    return [
        {"checkpoint": "finetuned", "feature": feature, "layer": layer, "head": 0, "change": None,
         "attention": share, "low": share - reach, "high": share + reach}
        for layer, shares in enumerate(by_layer)
        for feature, share in zip(("[CLS]", "[SEP]", "nouns"), shares, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("by_layer", "reach", "verdict", "words"),
    [
        ([(0.5, 0.1, 0.1), (0.1, 0.5, 0.1)], 0.01, "holds", "in 2 of 2 layers"),
        ([(0.1, 0.5, 0.1), (0.5, 0.1, 0.1)], 0.01, "doesn't hold", "in 2 of 2 layers"),  # turned
        ([(0.1, 0.1, 0.5), (0.1, 0.5, 0.1)], 0.01, "doesn't hold", "in 1 of 2 layers"),
        ([(0.5, 0.1, 0.1), (0.1, 0.5, 0.1)], 0.3, "can't tell", "in 2 of 2 layers"),
    ],
)
def test_special_tokens_are_first_layer_by_layer_or_not(by_layer, reach, verdict, words):
    found = claims(attended(*by_layer, reach=reach))["special"]
    assert found.verdict == verdict
    assert words in found.words


def changed(task, feature, gain):
    """One head whose attention to a feature grew; special tokens receive 0.5."""
    rows = [
        row | {"task": task, "feature": feature if row["feature"] == "nouns" else row["feature"]}
        for row in attended((0.5, 0.4, 0.1), (0.4, 0.5, 0.1))
    ]
    grown = {"change": gain, "change_low": gain - 0.001, "change_high": gain + 0.001,
             "p_change": 0.001}  # fmt: skip
    return [*rows[:2], rows[2] | grown, *rows[3:]]


@pytest.mark.parametrize(
    ("task", "feature", "gain", "verdict"),
    [
        ("mrpc", "nouns", 0.02, "holds"),
        ("qnli", "negations", 0.02, "holds"),
        ("qnli", "nouns", 0.02, "can't tell"),  # the paper names negation there
        ("mrpc", "nouns", 0.4, "doesn't hold"),  # more than half of what [SEP] receives
        ("sst2", "nouns", 0.02, None),  # the paper says nothing of it
        ("micro-paraphrase", "objects", 0.02, "holds"),
    ],
)
def test_increases_are_those_that_the_paper_names(task, feature, gain, verdict):
    assert claims(changed(task, feature, gain))["features"].verdict == verdict


def test_a_head_made_to_attend_to_subjects_is_found_on_the_gold_text(tmp_path):
    dataset = open_data(DataSpec("micro-sentiment", split="dev")).limit(40)
    texts = [row.text for row in dataset.rows()]
    folder = attends_to_words(tmp_path / "model", texts, subject_words(dataset))
    rows = rows_of(NAME, folder, DataSpec(task="micro-sentiment", split="dev", limit=40))
    (best,) = [EXPERIMENT.summary(rows)["subjects"]]
    assert best["head"] == f"{LAYER}.{HEAD}"
    row = next(
        r for r in rows if (r["feature"], r["layer"], r["head"]) == ("subjects", LAYER, HEAD)
    )
    assert row["p_maxt"] <= 0.05
    assert row["excess_low"] > 0.1
    assert f"subjects in {best['n_heads']} head" in EXPERIMENT.finding(rows)


def test_gold_text_is_encoded_as_the_task_is(tmp_path):
    for task in ("micro-entailment", "micro-sentiment"):
        dataset = open_data(DataSpec(task, split="dev")).limit(20)
        model, tokenizer = tiny_model("bert", "none"), tiny_tokenizer()
        ours = encode_passages(
            list(gold_passages(dataset)), tokenizer, max_length=60, segments=True
        )
        theirs = encode_for(model, tokenizer, dataset)
        np.testing.assert_array_equal(ours.ids, theirs.ids)
        np.testing.assert_array_equal(ours.segments, theirs.segments)
        np.testing.assert_array_equal(ours.special, theirs.special)
        for passage, words in zip(ours.passages, ours.words, strict=True):
            for word in words:  # characters were shifted to where the sentence stands
                side = passage.text if word.side == 0 else passage.pair
                start = passage.sentences[word.sentence].start
                written = side[start + word.word.start : start + word.word.stop]
                assert written == word.word.form


def test_wrong_requests_are_one_line(tmp_path, treebank, capsys):
    folder = saved(tmp_path / "model")
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\tonly\n")
    data = tmp_path / "rows.csv"
    data.write_text("text,label\nthe cat,no\nthe dog,yes\na bird,no\nno bird,yes\n" * 5)
    for options, word in (
        ([], "--treebank"),
        (["--treebank", treebank, "--mode", "letters"], "paper or word"),
        (["--treebank", broken], "line 1"),
        (["--treebank", tmp_path], "expected a CoNLL-U file, got the folder"),
        (["--treebank", tmp_path / "gone"], "gone"),
        (["--treebank", treebank, "--tagger", "x"], "got both"),
        (["--treebank", treebank, "--features", "x=pos=A"], "FIELD=VALUE"),
        (["--treebank", treebank, "--finetune"], "--task"),
        (["--data", data], "no annotation"),
    ):
        arguments = ["run", NAME, "--model", folder, *options]
        assert run([str(a) for a in arguments]) == 2
        lines = capsys.readouterr().err.splitlines()
        (message,) = [line for line in lines if line.startswith("microtome:")]
        assert word in message
        assert lines[-1] == message


def test_the_command_runs_and_reports(tmp_path, treebank, capsys):
    folder = saved(tmp_path / "model")
    arguments = ["run", NAME, "--model", folder, "--treebank", treebank]
    arguments += ["--out", tmp_path / "run", "--workers", "0"]
    assert run([str(a) for a in arguments]) == 0
    assert "nouns in" in capsys.readouterr().out
    assert (tmp_path / "run" / "report.html").exists()


def treebank_texts(path, n):
    for passage in treebank_passages(path, limit=n):
        words = passage.sentences[0].sentence.words
        features = {name: [i for i, word in enumerate(words) if holds(word)]
                    for name, holds in FEATURES_IN_UD.items()}  # fmt: skip
        yield passage.text, [(word.start, word.stop) for word in words], features


@pytest.mark.real
@pytest.mark.parametrize("mode", ["paper", "word"])
def test_minilm_on_a_real_treebank_equals_eager_attention(shared_data, mode):
    path = shared_data("data/ud_ewt/en_ewt-ud-dev.conllu")
    rows = rows_of(NAME, "minilm", DataSpec(limit=12), treebank=str(path), mode=mode)
    texts = treebank_texts(path, 12)
    wanted = by_hand(load("minilm"), load_tokenizer("minilm"), texts, mode, expected_most)
    assert set(wanted) == {*FEATURES_IN_UD, "[CLS]", "[SEP]"}
    assert len(rows) == len(wanted) * 6 * 12
    check_equal(rows, wanted)
