"""What packages add is found like our own, and nothing they do wrong breaks anything else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

from microtome.cli import run
from microtome.edits import parse
from microtome.errors import PluginError, RequestError
from microtome.experiments import FOLDERS, find_experiment, subject_of
from microtome.families import FAMILIES, adapt
from microtome.models import load, load_tokenizer
from microtome.observe.evaluation import evaluate
from microtome.runs import open_run
from microtome.study import Wanted, Workers, study
from microtome.surgery import operate
from microtome.tasks import DataSpec, find_task, open_data
from microtome.tasks.catalogue import TASKS
from support.tiny import scale_up_, tiny_batch, tiny_tokenizer
from support.training_rows import checkpoint

NAMES = {"experiments": FOLDERS, "tasks": TASKS, "families": [facts.name for facts in FAMILIES]}
PACKAGES = ("lengths", "tickets", "ernie_family", "broken", "other")
DOCS = Path(__file__).resolve().parents[1] / "docs"
_BLOCK = re.compile(r"\n\n([^\n].*?)\n\n```\w+\n(.*?)^```", re.S | re.M)
_NAME = re.compile(r"`([\w./-]+\.(?:toml|py|csv))`")


def documented_package(page: str, folder: Path) -> Path:
    """Write the files of a page into ``folder``, as pip would install them; gives it back."""
    text = (DOCS / page).read_text(encoding="utf-8")
    files = {}
    for before, content in _BLOCK.findall(text):
        # A file is named in the paragraph before it.
        if names := _NAME.findall(before.rpartition("\n\n")[2]):
            files[names[-1]] = content
    install(tomllib.loads(files.pop("pyproject.toml"))["project"], files, folder)
    return folder


def install(project: dict, files: dict[str, str], folder: Path) -> None:
    """Modules, and the ``.dist-info`` by which a package's entry points are found."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(content)
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


def forget(*packages: str) -> None:
    """Let the modules of packages be imported anew."""
    for name in [n for n in sys.modules if n.partition(".")[0] in packages]:
        del sys.modules[name]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Put a folder of packages on the path, for this test."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield tmp_path / "site"
    forget(*PACKAGES)
    find_experiment.cache_clear()


@pytest.fixture
def classifier(tmp_path):
    return checkpoint(tmp_path / "classifier", head="classification", num_labels=2)


def entry(kind: str, name: str, value: str, package: str = "broken") -> dict:
    return {
        "name": package,
        "version": "1",
        "entry-points": {f"microtome.{kind}": {name: value}},
    }


def listed(kind: str, capsys) -> tuple[dict[str, dict], str]:
    assert run(["list", kind, "--json"]) == 0
    printed = capsys.readouterr()
    return {item["name"]: item for item in json.loads(printed.out)["items"]}, printed.err


def by_hand(folder, data) -> dict[str, float]:
    """Accuracy on the rows with at most, and more than, the median number of words."""
    model, tokenizer = load(folder), load_tokenizer(folder)
    n_words = np.array([len(row.text.split()) for row in data.rows()])
    scores = {}
    for name, chosen in (("short", n_words <= np.median(n_words)), ("long", None)):
        where = np.flatnonzero(n_words > np.median(n_words) if chosen is None else chosen)
        found = evaluate(model, tokenizer, data.select(where))
        truth = data.select(where).targets
        scores[name] = float((found.predictions == truth).mean())
    return scores


def test_the_documented_experiment_is_listed_and_run_by_a_worker(
    installed, classifier, tmp_path, capsys
):
    documented_package("write-an-experiment.md", installed)
    items, err = listed("experiments", capsys)
    assert err == ""
    assert list(items) == [*FOLDERS, "text-length"]
    spec = DataSpec("micro-sentiment", limit=30)
    done = study(
        subject_of(str(classifier), spec),
        [Wanted("text-length")],
        tmp_path / "run",
        workers=Workers(progress=False),  # a process of its own
    )
    done.check()
    expected = by_hand(classifier, open_data(spec))
    assert {row["half"]: row["value"] for row in done.rows("text-length")} == expected
    record = next(iter(open_run(tmp_path / "run").records.values()))
    assert record.name == "text-length.score"
    assert record.worker.startswith("local-")


def test_a_command_finds_an_experiment_by_the_path_of_its_process(installed, classifier, tmp_path):
    documented_package("write-an-experiment.md", installed)
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = ["run", "text-length", "--model", str(classifier), "--task", "micro-sentiment"]
    code = "from microtome.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *command, "--limit", "20", "--words", "6",
         "--out", str(tmp_path / "run"), "--json"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    texts = [
        len(row.text.split()) for row in open_data(DataSpec("micro-sentiment", limit=20)).rows()
    ]
    n_short = sum(n <= 6 for n in texts)
    assert [row["n"] for row in document["rows"]] == [n_short, 20 - n_short]
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_documented_task_has_its_own_rows(installed, classifier, capsys):
    documented_package("add-a-task.md", installed)
    items, err = listed("tasks", capsys)
    assert items["support-tickets"]["splits"] == {"train": 4, "dev": 2}
    assert items["support-tickets"]["source"] == "package"
    assert err == ""
    rows = open_data(DataSpec("support-tickets"))
    assert [row.text for row in rows.rows()] == [
        "please send the invoice again", "my parcel is damaged",
    ]  # fmt: skip
    assert rows.targets.tolist() == [0, 1]
    assert rows.notes == ()
    found = evaluate(load(classifier), load_tokenizer(classifier), rows)
    right = found.predictions == rows.targets
    assert found.scores["accuracy"].value == right.mean()
    assert set(found.scores) == set(find_task("support-tickets").metrics)


@pytest.fixture
def ernie(installed, tmp_path):
    documented_package("add-a-family.md", installed)
    from transformers import AutoModelForMaskedLM, ErnieConfig

    config = ErnieConfig(
        vocab_size=96, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=64, use_task_id=True,
    )  # fmt: skip
    made = AutoModelForMaskedLM.from_config(config)
    scale_up_(made)
    made.eval().save_pretrained(tmp_path / "ernie")
    tiny_tokenizer().save_pretrained(tmp_path / "ernie")
    return tmp_path / "ernie"


def test_the_documented_family_computes_what_transformers_does(ernie, tmp_path):
    model, batch = load(ernie), tiny_batch()
    family = adapt(model)
    ids = batch["input_ids"]
    with torch.no_grad():
        wanted = model(**batch, output_hidden_states=True)
        found = family.embed(ids, torch.arange(ids.shape[1]).expand_as(ids), torch.zeros_like(ids))
        head = family.mlm_decoder()(family.mlm_features(wanted.hidden_states[-1]))
    torch.testing.assert_close(found, wanted.hidden_states[0])
    torch.testing.assert_close(head, wanted.logits)
    done = operate(str(ernie), parse("duplicate(1) | disable(0.2)"), tmp_path / "out")
    assert done.certificate.passed
    assert {check.name for check in done.certificate.checks} >= {"round trip", "other heads"}


def test_a_worker_knows_the_documented_family(ernie, tmp_path, capsys):
    done = study(
        subject_of(str(ernie), DataSpec("micro-sentiment", limit=2)),
        [Wanted("decoding")],
        tmp_path / "run",
        workers=Workers(progress=False),
    )
    done.check()
    assert {row["depth"] for row in done.rows("decoding")} == {0, 1, 2, 3}
    assert "ernie" in listed("families", capsys)[0]


def test_a_package_that_cannot_be_imported_is_one_line(installed, capsys):
    files = {"broken/plan.py": "raise OSError('no\\ndisk')"}
    install(entry("experiments", "mine", "broken"), files, installed)
    items, err = listed("experiments", capsys)
    assert list(items) == list(FOLDERS)
    assert err.count("\n") == 1
    assert "package broken" in err
    assert "OSError: no disk" in err
    with pytest.raises(PluginError, match="package broken can't be loaded"):
        find_experiment("mine")
    assert run(["run", "mine", "--model", "nano-bert"]) == PluginError.exit_code


@pytest.mark.parametrize(
    ("kind", "name", "file", "told"),
    [
        ("tasks", "mine", "PART = 3", "is a int, expected a Task"),
        ("families", "mine", "import no_such_module", "ModuleNotFoundError"),
        ("families", "mine", "PARTS = 1", "AttributeError"),
        (
            "families", "mine",
            "from microtome.families import FamilyFacts\nPART = FamilyFacts('mine', ('bert',), '')",
            "is for bert, which Microtome has",
        ),
        (
            "tasks", "mine",
            "from microtome.tasks import Task\nPART = Task('yours', 'text', (), '')",
            "calls itself 'yours'",
        ),
    ],
)  # fmt: skip
def test_a_part_that_is_none_is_left_out_of_the_list(installed, capsys, kind, name, file, told):
    install(entry(kind, name, "broken:PART"), {"broken/__init__.py": file}, installed)
    items, err = listed(kind, capsys)
    assert list(items) == list(NAMES[kind])
    assert told in err
    assert "package broken" in err


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("experiments", "decoding"),
        ("experiments", "finetuning"),  # the name of trials that several experiments share
        ("tasks", "micro-sentiment"),
        ("families", "bert"),
    ],
)
def test_names_of_ours_are_refused(installed, capsys, kind, name):
    install(entry(kind, name, "broken:PART"), {"broken/__init__.py": ""}, installed)
    items, err = listed(kind, capsys)
    assert list(items) == list(NAMES[kind])
    assert f"{name!r} of the package broken has the name of one of Microtome's" in err


def test_our_parts_are_found_without_importing_any_package(installed):
    file = {"broken/__init__.py": "raise SystemExit(3)"}
    install(entry("tasks", "mine", "broken:PART"), file, installed)
    install(entry("families", "mine", "broken:PART", "other"), file, installed)
    assert find_task("micro-sentiment").kind == "classification"
    assert find_experiment("decoding").name == "decoding"
    assert adapt(load("nano-bert")).name == "bert"


def test_a_name_of_two_packages_is_neither_s(installed, capsys):
    for package in ("broken", "other"):
        file = {f"{package}/__init__.py": ""}
        install(entry("tasks", "mine", f"{package}:PART", package), file, installed)
    items, err = listed("tasks", capsys)
    assert "mine" not in items
    assert "broken" in err
    assert "other" in err
    with pytest.raises(RequestError, match="no task is called 'mine'"):
        find_task("mine")


def test_help_looks_for_no_packages():
    code = (
        "import sys\nfrom microtome.cli import run\nrun(['--help'])\n"
        "sys.exit('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
