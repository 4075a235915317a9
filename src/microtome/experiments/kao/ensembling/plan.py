"""Ensembles over depths (Kao et al. 2020, Table 2; 2021, Tables 5 and 6), from stored predictions.

The output probabilities of fine-tuned models of several depths are summed: of the best three that
are better than the baseline, or of all that are. No model is run again: a duplication run kept the
logits. The papers compare with three unpicked seeds of the unmodified model, and pick and score on
the same rows; here they are also compared with ensembles of as many baseline runs, picked from as
many candidates, and every pick is also made on one half of the rows and scored on the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kao.duplication.strategies import BASELINE
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import (
    DATA,
    DEV_DATA,
    MODEL,
    TRAINING,
    Subject,
    TrialInput,
    subject_of,
)
from microtome.runs import Record, Trial, open_run
from microtome.runs.store import Store
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.reading.opening import open_data

SECTION = "Kao et al. 2020, Table 2; 2021, Tables 5 and 6"
QUESTION = "Are ensembles over depths better than ensembles over seeds?"
COLUMNS = (
    "rule", "members", "metric", "value", "low", "high", "n", "selection", "candidates",
    "gain", "gain_low", "gain_high",
)  # fmt: skip
NEEDS_ROWS = False
RUN = "run"
STORED_EXPERIMENT = "duplication"
OPTIONS = (
    Option("from", None, "the folder of a duplication run", "path"),
    Option("top", 3, "how many of the best are taken", "whole"),
    Option("halves", 100, "random halves of the rows to pick and score on", "whole"),
)


def find_subject(model: str | None, data: DataSpec, settings: Mapping[str, Any]) -> Subject:
    """The model and the rows of the run, wherever they are now."""
    folder = _folder(settings)
    first = next(iter(stored_runs(folder, _task_name(data), model).values()))
    path = data.path or _place(folder, TRAINING, first)
    dev_path = _place(folder, DEV_DATA, first) if DEV_DATA in first.content else None
    measured = DataSpec.of_json(first.request["rows"], path=path, dev_path=dev_path)
    place = model or _place(folder, MODEL, first)
    alone = subject_of(str(place or first.columns["model"]), DataSpec(), needs_rows=False)
    if alone.model_hash != first.content[MODEL]:
        raise RequestError(f"{place} isn't the model of {folder}", "leave --model out")
    opened = open_data(measured)
    measured_key = DEV_DATA if DEV_DATA in first.content else DATA
    if opened.content_hash != first.content[measured_key]:
        raise RequestError(
            f"the rows of {path or opened.task.name} aren't those that {folder} was measured on",
            "give the same data: --data",
        )
    return replace(alone, model=str(first.columns["model"]), data=measured, opened=opened)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One trial: everything is stored already."""
    folder = _folder(settings)
    for name in ("top", "halves"):
        if settings[name] < 1:
            raise RequestError(f"--{name} must be 1 or more, got {settings[name]}")
    records = stored_runs(folder, _task_name(subject.data), subject.model)
    members = [
        [hash, *(record.rows[0][column] for column in ("layers", "seed", "strategy"))]
        for hash, record in sorted(records.items())
    ]
    if not any(strategy == BASELINE for *_, strategy in members):
        raise RequestError(f"{folder} has no baseline runs yet", "let its duplication finish")
    request = {"members": members, "top": settings["top"], "halves": settings["halves"]}
    inputs = {RUN: TrialInput(folder, _content(folder, records))}
    label = f"ensembles of {len(members)} stored runs"
    return [subject.trial("ensembling.ensemble", request, inputs=inputs, label=label)]


def _content(folder: Path, hashes: Iterable[str]) -> str:
    """Of the logits: the same training on another machine may give others."""
    digest = hashlib.sha256()
    for hash in sorted(hashes):
        digest.update(hash.encode())
        digest.update(_arrays(folder, hash).read_bytes())
    return digest.hexdigest()


def _arrays(folder: Path, hash: str) -> Path:
    """Where a run has stored the logits of a training."""
    return Store(folder).path_of("arrays", hash)


def _folder(settings: Mapping[str, Any]) -> Path:
    if settings["from"] is None:
        raise RequestError("no run is named", "name the folder of a duplication run: --from RUN")
    return Path(settings["from"])


def _task_name(data: DataSpec) -> str | None:
    return data.task if isinstance(data.task, str) or data.task is None else data.task.name


def stored_runs(
    folder: Path, task: str | None = None, model: str | None = None
) -> dict[str, Record]:
    """The fine-tuned runs of a duplication; a folder without any is refused.

    The records are those that say of which depth and seed a run is, by the hash of the training
    that stored its logits. Where the folder holds several tasks, ``task`` says which one; of
    several models, ``model`` names one as the run does.
    """
    result = open_run(folder)
    kept = {
        # A training that an older version stored holds its rows itself.
        hash if record.arrays else record.needs[0]: record
        for hash, record in result.records.items()
        if record.ok
        and record.columns["experiment"] == STORED_EXPERIMENT
        and "about" in record.request
    }
    if not kept:
        experiments = ", ".join(result.request.get("experiments", {})) or "something else"
        raise RequestError(
            f"{folder} has no stored predictions of fine-tuned depths (it is a run of"
            f" {experiments})",
            "give the folder of a duplication run that has trained: --from RUN",
        )
    tasks = sorted({str(record.columns["task"]) for record in kept.values()})
    if task is None and len(tasks) > 1:
        raise RequestError(f"{folder} holds {', '.join(tasks)}", "name one: --task TASK")
    if task is not None and task not in tasks:
        raise RequestError(f"{folder} has no runs of {task}", f"it holds {', '.join(tasks)}")
    asked = {hash: kept[hash] for hash in kept if task in (None, kept[hash].columns["task"])}
    models = sorted({str(record.columns["model"]) for record in asked.values()})
    if len(models) > 1:
        if model not in models:
            raise RequestError(f"{folder} holds {', '.join(models)}", "name one: --model MODEL")
        asked = {hash: record for hash, record in asked.items() if record.columns["model"] == model}
    for hash, record in asked.items():
        if not _arrays(folder, hash).is_file():
            raise RequestError(
                f"{folder} has lost the predictions of {record.title}",
                "run its duplication again in a new folder",
            )
    return asked


def _place(folder: Path, key: str, record: Record) -> Path | None:
    """Where the run found the content that a record speaks of; None for what has no place."""
    places = Store(folder).read_run()["sources"].get(key, {})
    known = [Path(place) for place, content in places.items() if content == record.content[key]]
    here = next((place for place in known if place.exists()), None)
    if known and here is None:
        option = "--model" if key == MODEL else "--data"
        raise RequestError(
            f"the {key} of {folder} was in {known[0]}, which isn't there", f"say where: {option}"
        )
    return here
