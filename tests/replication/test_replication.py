"""Whole papers on tiny models: every exhibit is drawn, verdicts are given, runs resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from microtome.cli import run
from microtome.errors import RequestError
from microtome.examination import rebuild
from microtome.papers.exhibits import PAPERS
from microtome.replication import exhibits_of, replicate, replication_of
from microtome.replication import planning as planning_module
from microtome.report.page import Picture
from microtome.runs import open_run
from microtome.study import Workers

HERE = Workers(n_workers=0, progress=False)


@pytest.fixture
def few_rows(monkeypatch):
    """Demo with so few rows that a paper takes seconds; trainings are two steps long."""
    monkeypatch.setitem(planning_module.ROWS_AT_MOST, "demo", 12)
    settings = planning_module.settings_for

    def shorter(work, scale, layers):
        found = settings(work, scale, layers)
        found |= {"epochs": 1} if "epochs" in found else {}
        found |= {"seeds": [0]} if "seeds" in found else {}
        found |= {"fraction": 16.0} if "fraction" in found else {}
        found |= {"fractions": [32.0, 16.0]} if "fractions" in found else {}
        found |= {"examples": 12} if work.experiment == "attention-patterns" else {}
        return found

    monkeypatch.setattr(planning_module, "settings_for", shorter)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_exhibit_of_a_paper_is_made(paper, models, tmp_path, few_rows):
    """On two models where the paper has exhibits of both kinds; it takes long enough."""
    chosen = models if paper.startswith("kao") else models[:1]
    done = replicate(replication_of(paper, models=chosen), tmp_path / "run", workers=HERE)
    names = [each.exhibit.name for each in done.exhibits]
    assert names == [exhibit.name for exhibit in PAPERS[paper].exhibits]
    unmade = {each.exhibit.name: each.why_not for each in done.exhibits if each.why_not}
    # No model here has more than 12 layers.
    assert set(unmade) == ({"Figure 5"} if paper == "kao2021" else set())
    assert {each.status for each in done.exhibits} <= {"done", "left out"}
    figures = [(e, v.title) for e in done.exhibits for v in e.views if isinstance(v, Picture)]
    assert figures
    assert all(title.startswith(f"{each.exhibit.name}: ") for each, title in figures)
    page = done.report.read_text(encoding="utf-8")
    assert all(name in page for name in names)
    document = done.as_json()
    assert {"paper", "scale", "run", "report", "exhibits"} == document.keys()
    claimed = {
        (claim["experiment"], claim["key"])
        for each in document["exhibits"]
        for claim in each["claims"]
    }
    asked = {claim for exhibit in PAPERS[paper].exhibits for claim in exhibit.claims}
    of_large_models = {("duplication", "bert-large"), ("decoding", "xlarge")}
    assert claimed >= asked - of_large_models
    verdicts = {claim["verdict"] for each in document["exhibits"] for claim in each["claims"]}
    assert verdicts <= {"holds", "doesn't hold", "can't tell", None}
    before = done.report.read_bytes()
    assert rebuild(tmp_path / "run").read_bytes() == before


def test_one_exhibit_runs_only_what_it_needs(models, tmp_path, few_rows):
    asked = replication_of("kao2021", models=models, only=["table1", "Section 4.1"])
    done = replicate(asked, tmp_path / "run", workers=HERE)
    assert [each.exhibit.name for each in done.exhibits] == ["Table 1", "Section 4.1"]
    records = open_run(tmp_path / "run").records.values()
    assert {record.columns["experiment"] for record in records} == {"decoding", "finetuning"}
    assert {record.columns["task"] for record in records} == {"micro-sentiment"}
    # A wider request resumes: nothing is run again, and more exhibits are there.
    wider = replication_of("kao2021", models=models, only=["Table 1", "Section 4.1", "Figure 2"])
    again = replicate(wider, tmp_path / "run", workers=HERE)
    assert len(again.exhibits) == 3
    with pytest.raises(RequestError, match="different request"):
        replicate(replication_of("kao2020", models=models), tmp_path / "run", workers=HERE)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody2020"], ["nobody2020", "kao2020, kao2021, singh2020, kovaleva2019"]),
        (["kao2021", "--scale", "tiny"], ["demo, small, paper", "'tiny'"]),
        (["kao2021", "--only", "Table 99"], ["Table 99", "Table 1, Figure 2"]),
        (["kao2021", "--data", "."], ["has rows for none of", "has no folder for"]),
    ],
)
def test_wrong_requests_are_one_line(arguments, words, capsys):
    assert run(["replicate", *arguments, "--plan"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in words), line


def test_the_plan_tells_trials_and_hours_and_runs_nothing(models, tmp_path, capsys):
    out = tmp_path / "run"
    command = ["replicate", "singh2020", "--models", ",".join(models), "--out", str(out), "--plan"]
    assert run([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    estimate = document["estimate"]
    # 5 counts (of 3 layers: 0, 1, 2, 3 are left), 2 sizes, 3 seeds, 3 tasks, 2 models.
    assert estimate["trainings"] == 4 * 2 * 3 * 3 * 2
    assert 0 < estimate["gpu_hours"] <= estimate["core_hours"]
    assert not out.exists()
    assert run(command) == 0
    assert "trials" in capsys.readouterr().out


def test_list_papers_names_their_exhibits(capsys):
    assert run(["list", "papers", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [item["name"] for item in items] == list(PAPERS)
    assert "Table 3" in items[1]["exhibits"]


def test_a_killed_replication_resumes_where_it_was(models, tmp_path, capsys):
    """kill -9 once some records are there; the second pass runs the others, and gives a report."""
    out = tmp_path / "run"
    command = [
        "replicate", "kao2021", "--models", ",".join(models), "--only", "Section 4.1",
        "--workers", "0", "--quiet", "--json", "--out", str(out),
    ]  # fmt: skip
    alone = [sys.executable, "-c", "from microtome.cli import main; main()", *command]
    records = out / "records"
    child = subprocess.Popen(alone, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not any(records.glob("[!.]*.json")):
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in records.glob("[!.]*.json")}
    assert kept
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["exhibits"][0]["status"] == "done"
    assert all((records / name).stat().st_mtime_ns == when for name, when in kept.items())
    assert len(exhibits_of(open_run(out))) == 1
    assert (out / "report.html").is_file()
