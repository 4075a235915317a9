"""Ensembles over depths (Kao et al. 2020, Table 2; 2021, Tables 5 and 6), from stored predictions.

The output probabilities of fine-tuned models of several depths are summed: of the best three that
are better than the baseline, or of all that are. No model is run again: a duplication run kept the
logits. The papers compare with three unpicked seeds of the unmodified model, and pick and score on
the same rows; here ensembles of as many baseline runs, picked from as many candidates, stand
beside them, and every pick is also made on one half of the rows and scored on the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError
from microtome.experiments.ensemble_words import finding, measured, summary, views
from microtome.experiments.experiment import Experiment
from microtome.experiments.options import Option
from microtome.experiments.strategies import BASELINE
from microtome.experiments.subject import (
    DATA,
    DEV_DATA,
    MODEL,
    Other,
    Rows,
    Subject,
    opened_rows,
    subject_of,
)
from microtome.runs import Context, Record, Result, Trial, open_run

if TYPE_CHECKING:
    from microtome.experiments.predictions import Logits

NAME, SOURCE, RUN = "ensembling", "duplication", "run"
FUNCTION = "microtome.experiments.finetuning:measure"


def find_subject(model: str | None, rows: Rows, settings: Mapping[str, Any]) -> Subject:
    """The model and the rows of the run, wherever they lie now."""
    folder = _folder(settings)
    records = stored_runs(folder, rows.task)
    first = next(iter(records.values()))
    said = dict(first.request["rows"])
    if said.get("labels"):
        said["labels"] = tuple(said["labels"])
    path = rows.path or _place(folder, DATA, first)
    dev_path = _place(folder, DEV_DATA, first) if DEV_DATA in first.content else None
    wanted = Rows(**said, path=path, dev_path=dev_path)
    place = model or _place(folder, MODEL, first)
    alone = subject_of(str(place or first.columns["model"]), Rows(), needs_rows=False)
    if alone.model_hash != first.content[MODEL]:
        raise RequestError(f"{place} isn't the model of {folder}", "leave --model out")
    found = wanted.open()
    if found.content_hash != first.content.get(DEV_DATA, first.content[DATA]):
        raise RequestError(
            f"the rows of {path or found.task.name} aren't those that {folder} was measured on",
            "give the same data: --data",
        )
    return replace(alone, model=str(first.columns["model"]), rows=wanted, found=found)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One trial: everything is stored already."""
    folder = _folder(settings)
    if settings["top"] < 1 or settings["halves"] < 1:
        raise RequestError("--top and --halves are numbers from 1 on")
    records = stored_runs(folder, subject.rows.task)
    members = [
        [hash, record.request["about"]["layers"], record.request["seed"],
         record.request["about"]["strategy"]]
        for hash, record in sorted(records.items())
    ]  # fmt: skip
    if not any(strategy == BASELINE for *_, strategy in members):
        raise RequestError(f"{folder} has no baseline runs yet", "let its duplication finish")
    content = hashlib.sha256(" ".join(sorted(records)).encode()).hexdigest()
    request = {"members": members, "top": settings["top"], "halves": settings["halves"]}
    others = {RUN: Other(folder, content)}
    label = f"ensembles of {len(members)} stored runs"
    return [subject.trial("ensembling:measure", NAME, request, others=others, label=label)]


def _folder(settings: Mapping[str, Any]) -> Path:
    if settings["from"] is None:
        raise RequestError("no run given", "name the folder of a duplication run: --from RUN")
    return Path(settings["from"])


def stored_runs(folder: Path, task: str | None = None) -> dict[str, Record]:
    """The fine-tuned runs of a duplication, by hash; a folder without any is refused.

    Where it holds several tasks, ``task`` says which one.
    """
    result = open_run(folder)
    found = {
        one: record
        for one, record in result.records.items()
        if record.ok and record.function == FUNCTION and record.columns["experiment"] == SOURCE
    }
    kept = {one: record for one, record in found.items() if record.arrays}
    if not kept:
        asked = ", ".join(result.request.get("experiments", {})) or "something else"
        raise RequestError(
            f"{folder} has no stored predictions of fine-tuned depths (it is a run of {asked})",
            "give the folder of a duplication run that has trained: --from RUN",
        )
    tasks = sorted({str(record.columns["task"]) for record in kept.values()})
    if task is None and len(tasks) > 1:
        raise RequestError(f"{folder} holds {', '.join(tasks)}", "name one: --task TASK")
    if task is not None and task not in tasks:
        raise RequestError(f"{folder} has no runs of {task}", f"it holds {', '.join(tasks)}")
    kept = {one: record for one, record in kept.items() if task in (None, record.columns["task"])}
    for one in kept:
        if not (folder / "arrays" / f"{one}.npz").is_file():
            raise RequestError(
                f"{folder} has lost the predictions of {kept[one].name}",
                "run its duplication again in a new folder",
            )
    return kept


def _place(folder: Path, key: str, record: Record) -> Path | None:
    """Where the run found the content that a record speaks of; None for what has no place."""
    from microtome.runs.store import Store

    places = Store(folder).read_run()["sources"].get(key, {})
    known = [Path(place) for place, content in places.items() if content == record.content[key]]
    here = next((place for place in known if place.exists()), None)
    if known and here is None:
        option = "--model" if key == MODEL else "--data"
        raise RequestError(
            f"the {key} of {folder} was in {known[0]}, which isn't there", f"say where: {option}"
        )
    return here


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Sum the stored probabilities, rule by rule, and score."""
    from microtome.experiments.ensemble_rules import Ensembles, Member, ensemble_rows
    from microtome.experiments.predictions import Judge, stored_logits

    judge = Judge.of(opened_rows(request, context), Path(context.where[MODEL]))
    folder = Path(context.where[RUN]) / "arrays"
    logits: dict[Member, Logits] = {
        Member(layers, seed, strategy): stored_logits(folder / f"{one}.npz")
        for one, layers, seed, strategy in request["members"]
    }
    stored = Ensembles(judge, logits)
    rows = ensemble_rows(stored, top=request["top"], n_splits=request["halves"])
    return Result(rows=rows, summary={judge.metric: rows[0]["value"]})


EXPERIMENT = Experiment(
    name=NAME,
    section="Kao et al. 2020, Table 2; 2021, Tables 5 and 6",
    question="Are ensembles over depths better than ensembles over seeds?",
    method=__doc__ or "",
    columns=(
        "rule", "members", "metric", "value", "low", "high", "n", "selection", "candidates",
        "gain", "gain_low", "gain_high",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    measured=measured,
    needs_rows=False,
    find_subject=find_subject,
    options=(
        Option("from", None, "the folder of a duplication run", "path"),
        Option("top", 3, "how many of the best are taken", "whole"),
        Option("halves", 100, "random halves of the rows to pick and score on", "whole"),
    ),
)  # fmt: skip
