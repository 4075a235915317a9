"""Ensembles: sums of probabilities by hand, rules by arithmetic, runs that can't be used."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from microtome.cli import run
from microtome.errors import RequestError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kao.ensembling.measure import Ensembles, Member, ensemble_rows
from microtome.experiments.kao.ensembling.report import finding
from microtome.experiments.kit.stored_predictions import Judge
from microtome.papers import Answer
from microtome.tasks import DataSpec, Windows, best_spans, find_task, open_data
from microtome.tasks.scoring.ensembles import ensemble_logits, ensemble_spans
from support.experiment_rows import study_here
from support.labelled_texts import sentences, write_rows
from support.tiny import save_tiny

EXPERIMENT = find_experiment("ensembling")
N_ROWS = 40


def softmax(values):
    return np.exp(values) / np.exp(values).sum(-1, keepdims=True)


def two_windows():
    """One question whose passage "abcdef" goes over two windows: [CLS] q [SEP] a b c … d e f."""
    places = [-1, -1, -1, 0, 1, 2, 3, -1, -1, -1, 3, 4, 5]
    ends = [place + 1 if place >= 0 else -1 for place in places]
    n = len(places)
    return Windows(
        ids=np.arange(n, dtype=np.int32), offsets=np.array([0, 7, n]), special=np.zeros(n, bool),
        segments=None, n_truncated=0, n_rows=1, of_row=np.array([0, 0], dtype=np.int32),
        char_starts=np.array(places, dtype=np.int32), char_ends=np.array(ends, dtype=np.int32),
        starts=np.zeros(2, np.int32), ends=np.zeros(2, np.int32),
    )  # fmt: skip


def test_an_ensemble_of_equal_members_is_the_member():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20, 3)).astype(np.float32) * 5
    for n_members in (1, 2, 5):
        together = ensemble_logits(find_task("mnli"), [logits] * n_members)
        np.testing.assert_allclose(np.exp(together), softmax(logits), atol=1e-6)
    windows, spans = two_windows(), rng.normal(size=(13, 2)) * 5
    (alone,) = best_spans(windows, spans[:, 0], spans[:, 1])
    together = ensemble_spans(windows, [spans] * 4)
    (again,) = best_spans(windows, together[:, 0], together[:, 1])
    assert [(s.start, s.end) for s in again.spans] == [(s.start, s.end) for s in alone.spans]
    assert again.margin == pytest.approx(alone.margin)


def test_two_classifiers_are_the_sum_of_their_probabilities_not_of_their_logits():
    sure, unsure = np.array([[0.0, 8.0]]), np.array([[3.0, 0.0]])
    together = np.exp(ensemble_logits(find_task("sst2"), [sure, unsure, unsure]))
    by_hand = (softmax(sure) + 2 * softmax(unsure)) / 3
    np.testing.assert_allclose(together, by_hand, rtol=1e-12)
    assert together.argmax() == 0  # the sum of the logits, 6 against 8, would say 1


def test_regression_is_averaged():
    found = ensemble_logits(find_task("stsb"), [np.array([[1.0]]), np.array([[4.0]])])
    assert found == pytest.approx(2.5)


def test_questions_are_normalised_over_all_windows_together_as_by_hand():
    windows = two_windows()
    rng = np.random.default_rng(1)
    members = [rng.normal(size=(13, 2)) * 3 for _ in range(3)]
    by_hand = sum(
        np.stack([softmax(member[:, 0]), softmax(member[:, 1])], axis=1) for member in members
    )
    together = ensemble_spans(windows, members)
    np.testing.assert_allclose(3 * np.exp(together), by_hand, rtol=1e-10)
    (choice,) = best_spans(windows, together[:, 0], together[:, 1])
    # The best pair of one window's passage tokens, start before end, by the product of the sums.
    pairs = [
        (by_hand[i, 0] * by_hand[j, 1], windows.char_starts[i], windows.char_ends[j])
        for window in (range(3, 7), range(10, 13))
        for i in window
        for j in window
        if i <= j
    ]
    score, start, end = max(pairs)
    assert (choice.spans[0].start, choice.spans[0].end) == (start, end)
    no_answer = min(by_hand[cls, 0] * by_hand[cls, 1] for cls in (0, 7))
    assert choice.margin == pytest.approx(np.log(no_answer / score))


def test_every_question_is_normalised_by_itself():
    one, rng = two_windows(), np.random.default_rng(2)
    both = Windows(
        ids=np.arange(20, dtype=np.int32), offsets=np.array([0, 7, 13, 20]),
        special=np.zeros(20, bool), segments=None, n_truncated=0, n_rows=2,
        of_row=np.array([0, 0, 1], dtype=np.int32),
        char_starts=np.append(one.char_starts, one.char_starts[:7]),
        char_ends=np.append(one.char_ends, one.char_ends[:7]),
        starts=np.zeros(3, np.int32), ends=np.zeros(3, np.int32),
    )  # fmt: skip
    members = [rng.normal(size=(20, 2)) * 3 for _ in range(2)]
    together = np.exp(ensemble_spans(both, members))
    for tokens in (slice(0, 13), slice(13, 20)):
        for side in (0, 1):
            by_hand = sum(softmax(member[tokens, side]) for member in members) / 2
            np.testing.assert_allclose(together[tokens, side], by_hand, rtol=1e-10)


def test_a_probability_too_small_for_a_float_is_still_compared():
    far = np.array([[0.0, -2000.0, -1000.0]])
    together = ensemble_logits(find_task("mnli"), [far, far])
    assert np.isfinite(together).all()
    assert together[0, 2] > together[0, 1]


@pytest.fixture
def data(tmp_path):
    return write_rows(tmp_path / "rows.csv", sentences(N_ROWS), (i % 2 for i in range(N_ROWS)))


def with_wrong(wrong):
    """Logits that are right, and sure of it, but for some rows."""
    gold = np.arange(N_ROWS) % 2
    answer = np.where(np.isin(np.arange(N_ROWS), list(wrong)), 1 - gold, gold)
    return np.where(np.arange(2) == answer[:, None], 4.0, -4.0)


def crafted(data, **wrong_rows):
    logits = {}
    for name, wrong in wrong_rows.items():
        layers, seed = map(int, name[1:].split("_"))
        strategy = "baseline" if layers == 3 else "first"
        logits[Member(layers, seed, strategy)] = with_wrong(wrong)
    return Ensembles(Judge(open_data(DataSpec(None, data)), None), logits)


def test_rules_pick_the_runs_that_arithmetic_picks(data):
    stored = crafted(
        data, r3_0=range(10), r3_1=range(8, 20), r3_2=range(2),  # mean 24/3 = 8 wrong
        r4_0=range(5), r5_0=range(9), r6_0=range(7), r4_1=range(3, 9), r5_1=range(20),
    )  # fmt: skip
    made = ensemble_rows(stored, top=2, n_splits=5)
    rows = {(r["rule"], r["selection"]): r for r in made if r["metric"] == "accuracy"}
    same = rows["top-2", "same rows"]
    assert same["members"] == "4:0, 4:1"
    assert rows["all better", "same rows"]["members"] == "4:0, 4:1, 6:0"
    # Rows 8 and 9 are wrong twice among the baseline's three runs, rows 0 and 1 too.
    assert rows["baseline", "none"]["value"] == pytest.approx(1 - 4 / N_ROWS)
    # Rows 0 to 6 are wrong in at least two of 4:0, 4:1 and 6:0.
    better = rows["all better", "same rows"]
    assert better["value"] == pytest.approx(1 - 7 / N_ROWS)
    assert better["gain"] == pytest.approx(-3 / N_ROWS)
    assert rows["deeper 2 of 3", "other rows"]["candidates"] == 3
    assert rows["baseline 2 of 3", "other rows"]["candidates"] == 3


def test_deeper_ensembles_are_compared_with_baseline_ones_of_their_size(data):
    """Three baseline runs alike and one far better: the best one of three isn't all three."""
    alike = {f"r3_{seed}": range(10) for seed in range(3)}
    deeper = {f"r4_{seed}": range(4) for seed in range(4)}
    stored = crafted(data, **(alike | {"r3_3": range(1)} | deeper))
    made = ensemble_rows(stored, top=1, n_splits=20)
    rows = {r["rule"]: r for r in made if r["selection"] == "other rows"}
    one, best = rows["deeper 1 of 4"], rows["baseline 1 of 4"]
    # The best baseline run is wrong once, the deeper ones four times, all of them together ten.
    assert one["gain"] == pytest.approx(one["value"] - best["value"])
    assert one["gain"] < 0 < rows["top-1"]["gain"]
    # Four deeper runs are better than the mean; as many baseline runs are all of them.
    many, as_many = rows["deeper better of 4"], rows["baseline as many of 4"]
    assert many["gain"] == pytest.approx(many["value"] - as_many["value"])
    assert many["gain"] > 0
    assert as_many["members"].startswith("3:0, 3:1, 3:2, 3:3 ")
    assert "(1 of 4)" in finding(made)


def test_where_no_deeper_run_is_better_there_is_no_such_ensemble_and_the_words_say_so(data):
    rng = np.random.default_rng(0)
    runs = {
        f"r{layers}_{s}": rng.choice(N_ROWS, 8, replace=False)
        for layers in (3, 4, 5, 6)
        for s in range(3)
    }
    runs |= {f"r3_{s}": range(8 * s, 8 * s + 8) for s in range(3)}
    stored = crafted(data, **runs)
    rows = ensemble_rows(stored, top=1, n_splits=5)
    assert not [r for r in rows if r["rule"] == "top-1" and r["selection"] == "same rows"]
    assert "No deeper run beats the baseline's mean" in finding(rows)


def test_the_mean_gain_lies_within_its_ends_where_the_baseline_mostly_stands_in(tmp_path):
    """A deeper run that is hardly worse: on some halves it looks better, and isn't."""
    n_rows, gold = 4000, np.arange(4000) % 2
    data = write_rows(tmp_path / "many.csv", (f"it {i}" for i in range(n_rows)), gold.tolist())
    wrong = {Member(3, 0, "baseline"): range(580), Member(4, 0, "first"): range(1000, 1600)}
    logits = {}
    for member, places in wrong.items():
        answer = np.where(np.isin(np.arange(n_rows), list(places)), 1 - gold, gold)
        logits[member] = np.where(np.arange(2) == answer[:, None], 4.0, -4.0)
    stored = Ensembles(Judge(open_data(DataSpec(None, data)), None), logits)
    made = ensemble_rows(stored, top=1, n_splits=30)
    (row,) = [
        r for r in made
        if (r["rule"], r["selection"], r["metric"]) == ("top-1", "other rows", "accuracy")
    ]  # fmt: skip
    assert row["members"].startswith("3:0 (")  # on most halves nothing was picked
    assert row["gain"] < -0.002
    assert row["gain_low"] <= row["gain"] <= row["gain_high"]
    assert row["low"] <= row["value"] <= row["high"]


def test_ensembles_are_not_compared_with_baseline_runs_that_have_learnt_nothing(data):
    """All baseline runs say the first label, which half of the rows have; deeper ones are right."""
    ones = [place for place in range(N_ROWS) if place % 2]
    alike = {f"r3_{seed}": ones for seed in range(2)}
    stored = crafted(data, **alike, r4_0=range(4), r4_1=range(6))
    rows = ensemble_rows(stored, top=1, n_splits=5)
    base = next(row for row in rows if row["rule"] == "baseline" and row["selection"] == "none")
    assert (base["one_answer"], base["constant_value"], base["value"]) == (True, 0.5, 0.5)
    why = (
        "The ensemble of baseline runs hasn't learnt the task: its accuracy is 50.0 %, no better"
        " than one constant answer (50.0 %), the only answer it gives, so nothing is compared with"
        " it."
    )
    assert finding(rows) == why
    assert EXPERIMENT.claims(rows) == {"ensembles": Answer(why, learnt=False)}  # not squad2
    assert EXPERIMENT.summary(rows) == {"baseline": 0.5}
    # One more row right, and the baseline has learnt something: the deeper runs are compared.
    better = ensemble_rows(
        crafted(data, r3_0=ones[1:], r3_1=ones[1:], r4_0=range(4), r4_1=range(6)), top=1, n_splits=5
    )
    assert "picked on other rows" in finding(better)
    assert "gain_top" in EXPERIMENT.summary(better)


@pytest.fixture
def finished(tmp_path, data):
    """A small duplication run, and its folder."""
    folder = save_tiny(tmp_path / "m", "bert", "none", with_tokenizer=True)
    subject = subject_of(str(folder), DataSpec(path=data))
    settings = {"layers": [3, 4], "seeds": [0, 1], "epochs": 1, "learning_rate": 1e-3}
    return study_here("duplication", subject, tmp_path / "runs", **settings)


def command(*arguments):
    return run(["run", "ensembling", "--workers", "0", "--json", *map(str, arguments)])


def test_a_run_is_ensembled_from_its_folder_alone(finished, tmp_path, data, capsys):
    shutil.rmtree(finished.folder / "checkpoints")  # no weights are needed
    assert command("--from", finished.folder, "--out", tmp_path / "out", "--halves", 5) == 0
    document = json.loads(capsys.readouterr().out)
    row = next(r for r in document["rows"] if r["rule"] == "baseline" and r["selection"] == "none")
    members = [
        finished.result.arrays(record.hash)["logits"]
        for record in finished.result.records.values()
        if record.name == "finetuning.train" and not record.request["edits"]
    ]
    gold = subject_of(str(tmp_path / "m"), DataSpec(path=data)).dataset.targets
    by_hand = (sum(map(softmax, members)).argmax(1) == gold).mean()
    assert row["value"] == pytest.approx(by_hand)
    assert row["members"] == "3:0, 3:1"
    assert document["task"] == "rows.csv"
    assert {r["selection"] for r in document["rows"]} >= {"none", "other rows"}


def test_other_logits_under_the_same_names_are_another_trial(finished):
    """The same training on another machine has the same hash, and may give other logits."""
    given = {"from": str(finished.folder)}

    def planned():
        subject = EXPERIMENT.subject(None, DataSpec(), given)
        (trial,) = EXPERIMENT.plan(subject, EXPERIMENT.settings(given))
        return trial.hash

    before = planned()
    assert before == planned()
    file = next((finished.folder / "arrays").glob("*.npz"))
    np.savez(file, logits=np.load(file)["logits"] + 1e-3)
    assert planned() != before


def test_a_run_with_a_second_file_to_measure_on_is_ensembled(tmp_path, data, capsys):
    folder = save_tiny(tmp_path / "m", "bert", "none", with_tokenizer=True)
    dev = tmp_path / "dev.csv"
    dev.write_text(data.read_text())
    subject = subject_of(str(folder), DataSpec(path=data, dev_path=dev))
    settings = {"layers": [3, 4], "seeds": [0], "epochs": 1}
    study_here("duplication", subject, tmp_path / "runs", **settings)
    assert command("--from", tmp_path / "runs", "--out", tmp_path / "out", "--halves", 3) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"][0]["n"] == len(subject.dataset)


def test_rows_that_moved_are_named_again_and_others_are_refused(finished, tmp_path, data, capsys):
    moved = tmp_path / "moved.csv"
    data.rename(moved)
    where = ("--from", finished.folder, "--out", tmp_path / "out", "--halves", 3)
    assert command(*where) == 2
    assert "say where: --data" in capsys.readouterr().out
    assert command(*where, "--data", moved) == 0
    capsys.readouterr()
    moved.write_text(moved.read_text().replace("the", "a"))
    assert command(*where, "--data", moved) == 2
    assert "aren't those that" in capsys.readouterr().out


def test_runs_without_stored_predictions_are_one_clear_line(finished, tmp_path, data):
    for folder, message in (
        (tmp_path, "is not a run"),
        (None, "no run is named; name the folder of a duplication run"),
    ):
        with pytest.raises(RequestError, match=message):
            EXPERIMENT.subject(None, DataSpec(), {"from": folder and str(folder)})
    subject = subject_of(str(tmp_path / "m"), DataSpec(path=data))
    study_here("decoding", subject, tmp_path / "other")
    with pytest.raises(RequestError, match=r"no stored predictions .* a run of decoding"):
        EXPERIMENT.subject(None, DataSpec(), {"from": str(tmp_path / "other")})
    shutil.rmtree(finished.folder / "arrays")
    with pytest.raises(RequestError, match="has lost the predictions"):
        EXPERIMENT.subject(None, DataSpec(), {"from": str(finished.folder)})
