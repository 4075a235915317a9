"""The standard examination: a list of experiments on one model and one task, in one run.

It answers which layers and heads matter, what may be cut, and what that saves. Parts can be left
out; one that fails is reported, and the others go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from microtome.errors import RequestError, RunError
from microtome.experiments import Rows, Subject, subject_of
from microtome.report.page import Page, Section
from microtome.runs import RunResult, open_run
from microtome.study import Part, Row, Study, Wanted, Workers, parts_of, study
from microtome.views import Cell, Table, View

EXAMINATION = "examination"
PARTS = ("head-disabling", "layer-removal", "decoding")


@dataclass(frozen=True)
class Profile:
    """How thorough an examination is: rows that are measured, halves, epochs at most."""

    n_rows: int | None
    splits: int
    epochs: int | None


PROFILES = {"quick": Profile(400, 3, 3), "full": Profile(None, 10, None)}
DEFAULT_MODELS = ("minilm", "nano-bert")
DEFAULT_TASK = "micro-sentiment"
RUNS = Path("microtome-runs")


@dataclass(frozen=True)
class Request:
    """An examination that is about to run."""

    subject: Subject
    folder: Path
    wanted: tuple[Wanted, ...]


@dataclass(frozen=True)
class Examination:
    """A finished examination: its page, and where it lies."""

    study: Study
    page: Page
    report: Path

    def as_json(self) -> dict[str, Any]:
        """What ``examine --json`` prints."""
        return {
            "model": self.page.model,
            "task": self.page.task,
            "run": str(self.study.folder),
            "report": str(self.report),
            "parts": [
                {"experiment": part.name, "status": part.status, "finding": part.finding}
                for part in self.page.sections
            ],
        }

    def _repr_html_(self) -> str:
        """In a notebook: the front page, as the report has it."""
        from microtome.report import html_of

        return html_of(*self.page.front, title=self.page.title, texts=self.page.answers)


def request(
    model: str | None,
    rows: Rows,
    *,
    profile: str = "quick",
    without: tuple[str, ...] = (),
    recipe: Mapping[str, Any] | None = None,
    out: Path | None = None,
    revision: str | None = None,
) -> Request:
    """Fill in what wasn't said: the model, the task, how many rows, and the folder."""
    if profile not in PROFILES:
        raise RequestError(f"profile {profile!r} given, {' or '.join(PROFILES)} wanted")
    if unknown := sorted(set(without) - set(PARTS)):
        raise RequestError(f"no part is called {unknown[0]!r}", f"the parts are {', '.join(PARTS)}")
    if rows.task is None and rows.path is None:
        rows = replace(rows, task=DEFAULT_TASK)
    chosen = PROFILES[profile]
    rows = replace(rows, limit=rows.limit or chosen.n_rows)
    subject = subject_of(model or _default_model(), rows, revision=revision)
    folder = out or default_folder(subject.model, subject.task)
    own = {name: value for name, value in (recipe or {}).items() if value is not None}
    if chosen.epochs is not None:
        own.setdefault("epochs", min(chosen.epochs, subject.dataset.task.recipe.epochs))
    settings: dict[str, dict[str, Any]] = {
        "head-disabling": {"splits": chosen.splits, **own},
        "layer-removal": own,
        "decoding": {},
    }
    wanted = tuple(Wanted(part, settings[part]) for part in PARTS if part not in without)
    return Request(subject, folder, wanted)


def _default_model() -> str:
    """The real English model where its extra is installed, else the embedded one."""
    from microtome.models.source import embedded_names, minilm_folder

    usable = [
        name
        for name in DEFAULT_MODELS
        if name in embedded_names() and (name != "minilm" or minilm_folder() is not None)
    ]
    if not usable:
        raise RequestError(
            "no model given, and none is embedded", "pip install 'microtome[english]'"
        )
    return usable[0]


def default_folder(model: str, task: str) -> Path:
    """Where a run goes that was given no folder: found again by model and task."""
    name = re.sub(r"[^\w.-]+", "-", f"{Path(model).name}-{task}").strip("-.")
    return RUNS / (name[:80] or "run")


def examine(wanted: Request, *, workers: Workers | None = None) -> Examination:
    """Run all parts and write the report."""
    done = study(wanted.subject, wanted.wanted, wanted.folder, workers=workers, kind=EXAMINATION)
    page = page_of(done.result)
    return Examination(done, page, _write(page, wanted.folder))


def rebuild(folder: Path) -> Path:
    """Write the report of a stored run anew, from its records alone."""
    result = open_run(folder)
    if not result.records:
        raise RequestError(f"{folder} has no records yet", "run its experiment first")
    return _write(page_of(result), folder)


def page_of(result: RunResult) -> Page:
    """The page of a run: every number on it is in the run's rows."""
    asked = result.request
    # The request is stored with its keys sorted; people read the examination in its own order.
    order = [*PARTS, *sorted(set(asked["experiments"]) - set(PARTS))]
    tasks = asked.get("tasks", [asked["task"]])
    named = [name for name in order if name in asked["experiments"]]
    parts = [part for name in named for part in parts_of(name, result, tasks)]
    sections = [part.section(asked["model"], asked["task"]) for part in parts]
    what = ", ".join(named).capitalize()
    if asked.get("kind") == EXAMINATION:
        sections += [_left_out(name) for name in PARTS if name not in asked["experiments"]]
        what = "Examination"
    on = f" on {', '.join(tasks)}" if any(tasks) else ""
    return Page(
        title=f"{what} of {_short(asked['model'])}{on}",
        model=asked["model"],
        task=", ".join(tasks),
        answers=tuple(part.finding for part in parts),
        sections=tuple(sections),
        front=(*(cost_table(parts) if len(tasks) == 1 else ()), *_task_by_task(parts)),
        facts=facts_of(result),
    )


def _task_by_task(parts: Sequence[Part]) -> Iterator[View]:
    """Of an experiment on several tasks, the curves of all in one picture."""
    from microtome.several_tasks import overlaid

    done = [part for part in parts if part.task and part.status == "done"]
    for name in dict.fromkeys(part.experiment.name for part in done):
        own = {one.task: one.views for one in done if one.experiment.name == name}
        if len(own) > 1:
            yield from overlaid(own)


def _short(model: str) -> str:
    """A folder by its own name; embedded names and hub ids as they are."""
    is_path = Path(model).is_absolute() or model.startswith((".", "~"))
    return Path(model).name or model if is_path else model


def cost_table(parts: list[Part]) -> list[Table]:
    """The baseline against what could be cut: score with interval, size, speed."""
    by_name = {part.experiment.name: part.rows for part in parts if part.status == "done"}
    cut = [
        row
        for row in by_name.get("layer-removal", ())
        if row["strategy"] == "top" and not row.get("refused")
    ]
    rows = [_priced(_variant(row), row) for row in sorted(cut, key=lambda row: -row["layers"])]
    # A disabled head computes what it did before: it weighs and takes what the baseline does.
    price = rows[0][-2:] if rows else (None, None)
    heads = _disabled(by_name.get("head-disabling", ()))
    rows += [(*row, *price) for row in (heads[1:] if rows else heads)]
    if not rows:
        return []
    columns: tuple[str, ...] = (
        "variant", "score", "change", "low", "high", "parameters", "speed",
    )  # fmt: skip
    if not cut:
        columns, rows = columns[:-2], [row[:-2] for row in rows]
    shown = ("score", "change", "low", "high")
    title = "What may be cut, and what it saves (a disabled head saves nothing)"
    return [Table(title, columns, tuple(rows), percent=shown)]


def _disabled(rows: Sequence[Row]) -> list[tuple[Cell, ...]]:
    """The baseline, the head and the set to disable: scored on rows they weren't picked on."""
    shown: list[tuple[Cell, ...]] = []
    for row in rows:
        if row["target"] == "baseline":
            shown.append((_variant(row), row["value"], row["delta"], None, None))
            ends = (row["honest_gain"], row["honest_low"], row["honest_high"])
            label = f"head {row['honest_target']} disabled (honest gain)"
            shown.append((label, row["honest_value"], *ends))
    for row in rows:
        if row.get("chosen") and row["n_heads_disabled"] > 1:
            label = f"{row['n_heads_disabled']} heads disabled (chosen greedily)"
            shown.append((label, row["value"], row["delta"], row["low"], row["high"]))
    return shown


def _variant(row: Mapping[str, Any]) -> str:
    if row["target"] != "baseline":
        return f"{row['target']} removed"
    return "as it is, layers unshared" if row["edit"] else "as it is"


def _priced(label: str, row: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        label, row["value"], row["delta"], row["low"], row["high"], row["parameters"], row["speed"],
    )  # fmt: skip


def facts_of(result: RunResult) -> dict[str, Any]:
    """What is needed to get the numbers again."""
    import json

    stored = json.loads((result.folder / "run.json").read_text(encoding="utf-8"))
    found: dict[str, dict[str, None]] = {}
    for record in result.records.values():
        for name, value in record.content.items():
            found.setdefault(name, {})[value] = None
    content = {name: ", ".join(values) for name, values in found.items()}
    kept = ("versions", "commit", "machine", "threads", "request")
    return {key: stored[key] for key in kept if key in stored} | {"content": content}


def save_best_head(part: Part, result: RunResult, subject: Subject, out: Path) -> Path:
    """Save the model with the head disabled that honest selection picks most often."""
    from microtome.edits import parse
    from microtome.experiments.subject import CHECKPOINT
    from microtome.surgery import operate

    base = next(row for row in part.rows if row["target"] == "baseline")
    tuned = [h for h, record in result.records.items() if record.checkpoint]
    folder = result.checkpoint(tuned[0]) if tuned else None
    place = subject.model_path if folder is None else folder / CHECKPOINT
    if "honest_target" not in base:
        raise RunError("the run has no honest pick", "run head-disabling first")
    best = next(row for row in part.rows if row["target"] == base["honest_target"])
    return operate(place, parse(best["edit"]), out).out


def _left_out(name: str) -> Section:
    from microtome.experiments import find_experiment

    found = find_experiment(name)
    return Section(name, found.question, found.section, "left out", "left out of this run")


def _write(page: Page, folder: Path) -> Path:
    from microtome.report import write

    return write(page, folder)
