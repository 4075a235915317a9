"""The catalogue: consistent, complete, and light."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from microtome.errors import RequestError
from microtome.tasks import all_tasks, describe, find_split, find_task
from microtome.tasks.published import TASKS
from microtome.tasks.scoring.metrics import METRICS

NAMES = [
    "sst2",
    "sst2-sentence",
    "mrpc",
    "stsb",
    "qqp",
    "rte",
    "qnli",
    "mnli",
    "cola",
    "snli",
    "squad2",
    "conll2003",
    "wnut17",
    "wikiann-en",
]


def test_the_designs_tasks_are_there():
    assert [task.name for task in TASKS] == NAMES


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.name)
def test_a_task_is_consistent(task):
    assert set(task.metrics) <= set(METRICS)
    assert task.primary == task.metrics[0]
    assert (len(task.labels) >= 2) == (task.kind in ("classification", "tokens", "multilabel"))
    names = [split.name for split in task.splits]
    assert len(names) == len(set(names))
    assert {"train", "dev"} <= set(names)
    assert all(split.n_rows > 0 for split in task.splits)
    assert task.embedded or (task.hub and all(s.files and s.hub_split for s in task.splits))
    for split in task.splits:
        # A split without labels has files without a label column, and the other way round.
        assert split.labelled == any(file.columns.label for file in split.files) or task.embedded
    json.dumps(describe(task))


def test_the_papers_hyper_parameters():
    assert {
        (h.learning_rate, h.batch_size, h.epochs)
        for h in (task.hyperparameters for task in TASKS if task.name != "squad2")
    } == {(2e-5, 32, 3)}
    squad = find_task("squad2").hyperparameters
    assert (squad.learning_rate, squad.batch_size, squad.epochs) == (3e-5, 32, 2)
    assert (squad.max_length, squad.stride) == (384, 128)


def test_unknown_names_say_what_there_is():
    with pytest.raises(RequestError, match="did you mean squad2"):
        find_task("squad")
    with pytest.raises(RequestError, match="its splits are train, dev, dev_mismatched, test"):
        find_split(find_task("mnli"), "dev_matched")


def test_listing_tasks_imports_nothing_heavy():
    code = (
        "import sys, microtome.tasks as t; [t.describe(x) for x in t.all_tasks()];"
        "print([m for m in ('torch', 'transformers', 'numpy', 'scipy', 'sklearn', 'pyarrow',"
        " 'datasets', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_had():
    import microtome.tasks

    for name in microtome.tasks.__all__:
        assert getattr(microtome.tasks, name) is not None
    with pytest.raises(AttributeError):
        microtome.tasks.no_such_name  # noqa: B018


def row_of(task):
    """The task's line of the table in the documentation."""
    sizes = {s.name: f"{s.n_rows:,}" + ("" if s.labelled else " °") for s in task.splits}
    cells = [f"`{task.name}`", task.kind, *(sizes.get(s, "–") for s in ("train", "dev", "test"))]
    cells += [task.primary, ", ".join(task.metrics[1:]), ", ".join(task.labels)]
    return re.sub(" +", " ", f"| {' | '.join(cells)} |")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_documentation_lists_the_task_as_it_is(task):
    page = Path(__file__).parents[2] / "docs" / "tasks.md"
    assert row_of(task) in page.read_text(encoding="utf-8")
