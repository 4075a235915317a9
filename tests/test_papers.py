"""The papers' figures: complete, with a source, and as the papers print them."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from microtome.experiments import find_experiment
from microtome.papers import (
    CLAIMS,
    FIGURES,
    KAO_A,
    KAO_B,
    KOVALEVA,
    SINGH,
    Answer,
    claims,
    matching,
)
from microtome.papers.comparison import reported
from microtome.papers.exhibits import PAPERS
from microtome.tasks import find_task
from microtome.tasks.catalogue import find_split

TEXTS = {
    KAO_A: "papers/000_6ff84a5e5fab6c53.txt",
    KAO_B: "papers/001_524a6860354c6877.txt",
    SINGH: "papers/002_3cd4a3a1567cb7f4.txt",
    KOVALEVA: "papers/003_78c3bf4ff4951cc8.txt",
}
# How the papers begin the line of a model's table; deeper ones follow as "- (13)".
LINES = {
    "bert-base-uncased": "base (12)", "bert-large-uncased-whole-word-masking": "large (24)",
    "albert-base-v2": "base (12)", "albert-large-v2": "large (24)",
    "albert-xlarge-v2": "xlarge (24)", "albert-xxlarge-v2": "xxlarge (12)",
}  # fmt: skip


def figure(model, task, experiment, metric, **columns):
    (found,) = [
        one
        for one in matching(model, task, experiment)
        if one.metric == metric and dict(one.columns) == columns and one.paper != KAO_A
    ]
    return found


@pytest.mark.real
def test_every_cell_of_the_single_model_tables_is_as_printed(shared_data):
    text = shared_data(TEXTS[KAO_B]).read_text(encoding="utf-8")
    tables = {"bert": text[: text.index("Table 3:")], "albert": text[text.index("Table 3:") :]}
    for model, start in LINES.items():
        part = tables[model.split("-")[0]]
        part = part[part.index(f"\n{start}") :]
        ours = [one for one in FIGURES if one.model == model and one.experiment == "duplication"]
        for layers in sorted({dict(one.columns)["layers"] for one in ours}):
            line = re.search(rf"\({layers}\)1? (.+)", part)
            assert line is not None
            printed = [None if cell == "-" else float(cell) for cell in line[1].split()]
            cells = [
                ("squad2", "exact_match"), ("squad2", "f1"), ("snli", "accuracy"),
                ("sst2-sentence", "accuracy"),
            ]  # fmt: skip
            for (task, metric), value in zip(cells, printed, strict=True):
                found = [
                    one
                    for one in ours
                    if (one.task, one.metric) == (task, metric)
                    and dict(one.columns)["layers"] == layers
                ]
                assert [round(100 * one.value, 2) for one in found] == ([value] if value else [])


@pytest.mark.real
@pytest.mark.parametrize("paper", [KAO_A, KAO_B])
def test_every_ensemble_is_as_printed(paper, shared_data):
    text = shared_data(TEXTS[paper]).read_text(encoding="utf-8")
    ensembles = [one for one in FIGURES if (one.paper, one.experiment) == (paper, "ensembling")]
    assert len(ensembles) == (20 if paper == KAO_A else 26)
    for exact, f1 in zip(ensembles[::2], ensembles[1::2], strict=True):
        assert (exact.metric, f1.metric) == ("exact_match", "f1")
        members = re.search(r"\(([\d,-]+) layers\)", exact.setting)
        pair = rf"{100 * exact.value:.2f}\s+{100 * f1.value:.2f}"
        name = re.escape(f"({members[1]})") + r"\s*[34]?\s+" if members else ""
        assert re.search(name + pair, text), (exact.model, exact.setting)


@pytest.mark.real
def test_quoted_numbers_stand_in_their_papers(shared_data):
    for one in FIGURES:
        if one.experiment in ("duplication", "ensembling"):
            continue
        text = shared_data(TEXTS[one.paper]).read_text(encoding="utf-8")
        number = f"{100 * one.value:.1f}".removesuffix(".0")
        assert re.search(rf"(?<![\d.]){re.escape(number)}\\?%", text), one


def test_figures_are_shares_with_a_source_and_are_frozen():
    assert len(FIGURES) == len(set(FIGURES))
    for one in FIGURES:
        assert -1 < one.value < 1
        assert one.paper in TEXTS
        assert one.place
    with pytest.raises(FrozenInstanceError):
        FIGURES[0].value = 0.5  # type: ignore[misc]


def test_most_printed_snli_accuracies_fit_the_labelled_rows_too():
    """docs/tasks.md says so: their decimals don't decide which rows were scored."""
    docs = (Path(__file__).parent.parent / "docs" / "tasks.md").read_text(encoding="utf-8")
    printed = {
        (one.model, dict(one.columns)["layers"]): 100 * one.value
        for one in FIGURES
        if one.experiment == "duplication" and one.task == "snli"
    }
    fitting = {
        key for key, percent in printed.items()
        if any(
            round(100 * (round(percent / 100 * 9824) + d) / 9824, 2) == round(percent, 2)
            for d in (-1, 0, 1)
        )
    }  # fmt: skip
    fewest = {model: min(n for other, n in printed if other == model) for model, _ in printed}
    deeper = {key for key in printed if key[1] > fewest[key[0]]}
    assert f"{len(deeper & fitting)} of the {len(deeper)} single-run figures" in docs
    assert f"{len(fitting)} of {len(printed)} with the baselines" in docs


def test_the_suspect_cell_is_marked_and_no_other():
    (suspect,) = [one for one in FIGURES if one.suspect]
    assert (suspect.model, suspect.task, suspect.value) == ("albert-large-v2", "snli", 0.9436)
    assert "suspect" in suspect.note


def test_contradictions_are_noted():
    large = "bert-large-uncased-whole-word-masking"
    deeper = figure(large, "snli", "duplication", "accuracy", layers=25)
    assert deeper.value > figure(large, "snli", "duplication", "accuracy", layers=24).value
    assert deeper.note
    for model in ("albert-base-v2", "albert-xxlarge-v2"):
        top = figure(model, "squad2", "ensembling", "f1", rule="top-3")
        assert top.value < figure(model, "squad2", "ensembling", "f1", rule="baseline").value
        assert top.note


def test_both_kao_papers_agree_on_the_ensembles_they_share():
    by_paper = {
        paper: {
            (one.model, one.metric, one.columns): one.value
            for one in FIGURES
            if one.experiment == "ensembling" and one.paper == paper
        }
        for paper in (KAO_A, KAO_B)
    }
    assert by_paper[KAO_A].items() <= by_paper[KAO_B].items()


@pytest.mark.parametrize(
    "name",
    [
        "bert-base-uncased",
        "google-bert/bert-base-uncased",
        "./models/bert-base-uncased/",
        "BERT-base",
    ],
)
def test_a_model_is_known_by_any_of_its_names(name):
    found = matching(name, "squad2", "duplication")
    assert {dict(one.columns)["layers"] for one in found} == {12, 13}


def test_another_model_or_task_matches_nothing():
    assert matching("bert-base-cased", "squad2", "duplication") == ()
    assert matching("bert-base-uncased", "micro-sentiment", "duplication") == ()


def test_claims_have_distinct_keys_and_a_source():
    keys = [(one.experiment, one.key) for one in CLAIMS]
    assert len(keys) == len(set(keys))
    assert {one.paper for one in CLAIMS} == set(TEXTS)
    assert all(one.place for one in CLAIMS)
    assert claims("no such experiment") == ()


EXPERIMENTS = (
    "decoding duplication ensembling reinitialization frozen-probing weight-drift"
    " attention-patterns frame-relations attention-drift initialization linguistic-features"
    " token-links head-disabling"
)


@pytest.mark.parametrize("experiment", EXPERIMENTS.split())
def test_every_experiment_of_the_papers_has_a_claim(experiment):
    assert claims(experiment)


def decoding_rows(values):
    return [
        {"task": "sst2", "depth": d, "layers": len(values) - 1, "accuracy": v,
         "low": v - 0.01, "high": v + 0.01, "control": 0.1,
         "first_token_accuracy": v / 2, "n_first": 400}
        for d, v in enumerate(values)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.1, 0.9, 0.7, 0.8], ["1 of 2", "40.0 %; all tokens 80.0 %"]),
        ([0.1, 0.9, 0.8, 0.6], ["2 of 2", "30.0 %; all tokens 60.0 %"]),
    ],
)
def test_what_was_measured_comes_from_the_rows(values, words):
    rows = decoding_rows(values)
    measured = find_experiment("decoding").claims(rows)
    found = reported("decoding", "nano-bert", "sst2", rows, measured=measured)
    assert [one.measured for one in found][:2] == words


def test_a_paper_s_number_appears_beside_the_mean_over_seeds():
    rows = [
        {"layers": 13, "seed": s, "stage": "finetuned", "metric": "f1", "value": v}
        for s, v in enumerate((0.75, 0.77))
    ] + [{"layers": 13, "seed": None, "stage": "decoded", "metric": "f1", "value": 0.1}]
    found = reported("duplication", "bert-base-uncased", "squad2", rows, measured={})
    ours = [one for one in found if "f1" in one.what and "13 layers" in one.what]
    assert [(one.paper, one.measured) for one in ours] == [("76.80 %", "76.00 % (mean of 2 runs)")]
    others = [one for one in found if "f1" in one.what and "12 layers" in one.what]
    assert [one.measured for one in others] == ["not part of this run"]
    another = reported("duplication", "x", "squad2", rows, measured={})
    assert not [one for one in another if "76.80" in one.paper]


@pytest.mark.parametrize(
    ("split", "limit", "is_shown"), [("test", None, True), ("dev", None, False), ("test", 5, False)]
)
def test_a_paper_s_number_appears_with_the_rows_of_its_own_split_alone(split, limit, is_shown):
    n = limit or find_split(find_task("sst2-sentence"), split).n_rows
    rows = [{"layers": 13, "stage": "finetuned", "metric": "accuracy", "value": 0.9, "n": n}]
    found = reported("duplication", "bert-base-uncased", "sst2-sentence", rows, measured={})
    assert ("90.66 %" in [one.paper for one in found]) is is_shown


def test_the_rows_that_the_papers_scored_are_those_of_their_splits():
    scored = {name: split for paper in PAPERS.values() for name, split in paper.splits.items()}
    for one in (figure for figure in FIGURES if figure.n is not None):
        split = find_split(find_task(one.task), scored.get(one.task, "dev"))
        assert one.n == split.n_rows, one


def test_an_experiment_may_say_what_it_measured():
    found = reported(
        "weight-drift", "m", "t", [{"layer": 0}], measured={"depth": Answer("it does", "holds")}
    )
    assert (found[0].measured, found[0].verdict) == ("it does", "holds")
    assert reported("weight-drift", "m", "t", [], measured={}) == ()


def test_a_claim_on_an_embedded_task_is_judged_in_the_place_of_its_model():
    measured = find_experiment("decoding").claims
    rows = decoding_rows([0.1, 0.9, 0.9, 0.9])
    assert measured(rows)["first token"].verdict == "holds"
    stand_in = measured([{**row, "task": "micro-sentiment"} for row in rows])["first token"]
    assert stand_in.verdict == "holds"
    assert "micro-sentiment, in the place of sst2" in stand_in.words
    elsewhere = measured([{**row, "task": "mrpc"} for row in rows])["first token"]
    assert elsewhere.verdict is None
    assert elsewhere.words.startswith("on mrpc: ")


@pytest.mark.parametrize(
    ("values", "control", "inner", "explained"),
    [
        ([0.1, 0.9, 0.9, 0.9], 0.1, "holds", "holds"),
        ([0.1, 0.5, 0.5, 0.9], 0.1, "doesn't hold", "holds"),
        ([0.1, 0.8, 0.8, 0.9], 0.1, "can't tell", "holds"),  # the intervals are around 80 %
        ([0.1, 0.9, 0.9, 0.9], 0.95, "can't tell", "doesn't hold"),
        ([0.1, 0.9, 0.9, 0.9], 0.8, "can't tell", "can't tell"),  # 10 points, as CLEAR is
    ],
)
def test_verdicts_on_decoding_follow_the_intervals(values, control, inner, explained):
    rows = [{**row, "control": control} for row in decoding_rows(values)]
    found = find_experiment("decoding").claims(rows)
    assert (found["inner depths"].verdict, found["control"].verdict) == (inner, explained)


def test_an_interval_is_shown_in_its_unit():
    assert Answer("w", "holds", 0.01, -0.011, 0.003).interval == "−1.1 to +0.3"
    assert Answer("w", "holds", 0.5, 0.121, 0.9, "%").interval == "12.1 % to 90.0 %"
    assert Answer("w", None, 0.5, -0.25, 0.9, "").interval == "−0.25 to 0.90"
    assert Answer("w", None, 0.0, -0.001, 0.001, "").interval == "0.00"
    assert Answer("w", None, 0.5, 0.5, 0.5, "%").interval == "50.0 %"
    assert Answer("w", None, 0.0, -0.0003, 0.002).interval == "+0.0 to +0.2"
    assert (str(Answer("w", "holds")), str(Answer("w")), Answer("w").interval) == (
        "holds: w", "w", "",
    )  # fmt: skip
