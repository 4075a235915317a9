"""docs/results.md is what the committed rows say: claims are computed again from them."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from microtome.experiments import find_experiment, subject_of
from microtome.replication import planning, replicate, replication_of
from microtome.runs import open_run
from microtome.study import Wanted, Workers, study
from microtome.tasks import DataSpec
from support.training_rows import checkpoint

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "microtome run decoding --model one,two --task micro-sentiment"


@pytest.fixture(scope="module")
def results():
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("results")
    sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two tiny models decoded."""
    folder = tmp_path_factory.mktemp("results")
    models = [checkpoint(folder / "one"), checkpoint(folder / "two", "albert")]
    subjects = [subject_of(str(m), DataSpec("micro-sentiment", limit=6)) for m in models]
    workers = Workers(n_workers=0, progress=False)
    study(subjects, [Wanted("decoding", {"readout": "tied"})], folder / "run", workers=workers)
    return folder / "run"


@pytest.fixture
def stored(results, run, tmp_path, monkeypatch):
    monkeypatch.setattr(results.stored_rows, "STORED", tmp_path / "stored")
    results.store(run, "tiny", COMMAND)
    return tmp_path / "stored" / "tiny.parquet"


def test_stored_rows_give_the_answers_of_the_run(results, run, stored):
    rows = open_run(run).rows
    lines = list(results.judged(results.stored_rows.read(stored)))
    assert {line.model for line in lines} == {"one", "two"}
    for model in ("one", "two"):
        of_model = [row for row in rows if Path(row["model"]).name == model]
        found = find_experiment("decoding").claims(of_model)
        answers = {line.claim.key: line.answer for line in lines if line.model == model}
        assert found
        assert answers == {key: found[key] for key in answers}
        assert answers.keys() == found.keys()
    page = results.page()
    for line in lines:
        found = (line.answer.words, line.answer.interval or "–", line.answer.verdict or "–")
        assert f"| {line.model} | {line.task} | {' | '.join(found)} |" in page
        assert line.claim.words in page
    assert f"`{hashlib.sha256(stored.read_bytes()).hexdigest()[:12]}`" in page
    assert f"`{COMMAND}`" in page
    shown = "\n".join(results.show("tiny"))
    assert all(str(line.answer) in shown for line in lines)


def test_a_replication_is_judged_as_its_own_report_does(results, stored, tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(planning.ROWS_AT_MOST, "demo", 12)
    models = [
        str(checkpoint(tmp_path / name, num_hidden_layers=n)) for name, n in (("a", 2), ("b", 3))
    ]
    asked = replication_of("kao2021", models=models, only=["Figure 2"])
    workers = Workers(n_workers=0, progress=False)
    done = replicate(asked, tmp_path / "run", workers=workers)
    lines = list(results.judged(results.store(tmp_path / "run", "paper", "microtome replicate")))
    reported = {
        (claim["experiment"], claim["key"], Path(claim["model"]).name, claim["task"]): claim
        for exhibit in done.as_json()["exhibits"]
        for claim in exhibit["claims"]
    }
    found = {(ln.claim.experiment, ln.claim.key, ln.model, ln.task): ln for ln in lines}
    assert reported.keys() <= found.keys()
    assert any(not model for _, _, model, _ in reported), "one is over both models"
    for key, claim in reported.items():
        assert found[key].answer.words == claim["measured"]
        assert found[key].answer.verdict == claim["verdict"]
    assert "| together | – |" in results.page()


def test_doctored_rows_change_the_page(results, stored):
    before = results.page()
    table = pq.read_table(stored)
    place = table.schema.get_field_index("accuracy")
    doctored = table.column(place).to_pylist()
    doctored = [1.0 - value for value in doctored]
    facts = json.loads(table.schema.metadata[b"microtome"])
    rows = [{**row, "accuracy": v} for row, v in zip(table.to_pylist(), doctored, strict=True)]
    results.stored_rows.write(stored, rows, facts)
    assert results.page() != before


def test_neither_texts_of_data_nor_paths_are_stored(results, run, stored):
    texts = {row["decoded"] for row in open_run(run).rows if row.get("decoded")}
    assert texts
    kept = results.stored_rows.read(stored).rows
    assert not texts & {value for row in kept for value in row.values() if isinstance(value, str)}
    assert {row["model"] for row in kept} == {"one", "two"}
    everything = json.dumps([kept, results.stored_rows.read(stored).facts])
    assert str(run.parent) not in everything


def test_a_command_with_a_path_of_this_machine_is_refused(results, run, stored, tmp_path):
    with pytest.raises(SystemExit, match="path of this machine"):
        results.store(run, "other", f"{COMMAND} --data {tmp_path}/glue")


def test_an_unfinished_run_is_refused(results, run, stored, tmp_path):
    folder = tmp_path / "cut"
    (folder / "records").mkdir(parents=True)
    (folder / "run.json").write_bytes((run / "run.json").read_bytes())
    with pytest.raises(SystemExit, match="isn't finished: 0 of 2 trials"):
        results.store(folder, "cut", COMMAND)


@pytest.mark.parametrize("lost", [lambda row: {**row, "accuracy": 0.0}, lambda row: {}])
def test_claims_that_need_what_is_left_out_are_told(results, run, stored, monkeypatch, lost):
    ours = {"experiment", "model", "task"}
    kept = results.stored_rows._kept
    monkeypatch.setattr(
        results.stored_rows,
        "_kept",
        lambda row: {k: v for k, v in row.items() if k in ours} | lost(kept(row)),
    )
    with pytest.raises(SystemExit, match="claims need a column that isn't kept"):
        results.store(run, "less", COMMAND)
    assert not (stored.parent / "less.parquet").exists()


def test_what_is_committed_is_small_and_names_no_place(results):
    for path in sorted((ROOT / "docs" / "results").glob("*.parquet")):
        assert path.stat().st_size <= results.stored_rows.LARGEST
        found = results.stored_rows.read(path)
        of_scores = any(row["experiment"] == "predictors" for row in found.rows)
        assert of_scores or list(results.judged(found)), f"{path.name} is on no page"
        everything = json.dumps([found.rows, found.facts])
        assert not re.search(r"""(^|[\s"'=(])/\w+/""", everything), "an absolute path"


def predicted(score, spearman, regret):
    """A score of layers in one run: its agreement, and what the layers that it cuts cost."""
    about = {"experiment": "predictors", "model": "m", "task": "t", "unit": "layer", "score": score}
    ends = {"low": spearman - 0.1, "high": spearman + 0.1, "seconds": 3.2, "sweep_seconds": 90.0}
    cost = {"regret": regret, "regret_low": regret - 0.01, "regret_high": regret + 0.01}
    return [
        {**about, "stage": "agreement", "spearman": spearman, **ends, "n": 12},
        {**about, "stage": "cut", "n_cut": 2, **cost},
    ]


def test_scores_of_cuts_are_told_by_their_rows(results, monkeypatch):
    predictors = importlib.import_module("stored_predictors")
    base = {"experiment": "predictors", "model": "m", "task": "t", "stage": "baseline",
            "unit": None, "n": 80, "metric": "accuracy", "value": 0.9}  # fmt: skip

    def told(*scores):
        rows = (base, *(row for score in scores for row in predicted(*score)))
        stored = results.stored_rows.StoredResults("run", rows, {}, "hash")
        monkeypatch.setattr(predictors.stored_rows, "stored", lambda: [stored])
        return predictors.tables()

    page = told(("angle", 0.5, 0.015), ("weight norm", 0.05, 0.08))
    assert "| score | m, t (80 rows, accuracy 90.0) |" in page
    assert "| angle | 0.50 (0.40 to 0.60); 2: +1.5 (+0.5 to +2.5) |" in page
    assert (
        "Misleads: weight norm in 1 of 1. Agrees: angle in 1 of 1. Never misleads: angle." in page
    )
    assert "| seconds: the dearest score, the sweep | 3, 90 |" in page
    assert "Heads disabled" not in page
    page = told(("angle", 0.05, 0.08), ("weight norm", 0.05, 0.01))
    assert "Misleads: angle in 1 of 1. Agrees: none. Never misleads: weight norm." in page
