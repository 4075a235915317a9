"""The standard examination: a list of experiments on one model and one task, in one run.

It answers how small the model can be, which layers and heads matter, and what a cut saves. Parts
can be left out; one that fails is reported, and the others are still run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from microtome.comparing.page import COMPARISON, comparison_page
from microtome.errors import RequestError, install_command
from microtome.experiments import Subject, find_experiment, subject_of
from microtome.experiments.field.trim.plan import TRIM
from microtome.experiments.kit.layers import layers_of, work_of_a_row
from microtome.models.source import embedded_names, minilm_folder
from microtome.replication.page import replication_page
from microtome.replication.planning import REPLICATION
from microtome.report import SCREEN, Style, html_of, write, write_figures
from microtome.report.page import Page, Section
from microtome.run_page import plain_page
from microtome.runs import RunResult
from microtome.study import (
    Study,
    Wanted,
    Workers,
    default_folder,
    joint_page,
    opened,
    page_of,
    stored_parts,
    study,
)
from microtome.tasks.data_spec import DataSpec
from microtome.trimming.page import trim_page

EXAMINATION = "examination"
PARTS = ("trim", "layer-removal", "head-disabling", "decoding")


@dataclass(frozen=True)
class Profile:
    """How thorough an examination is: rows, halves, sets, epochs at most, healing.

    More than ``n_rows`` are measured, up to ``most_rows``, as long as a pass over them is cheap.
    Cuts are ranked on ``screened_rows`` of them, and healed for ``minutes``. Heads are disabled on
    as many as ``head_work`` operations pay for, at least on ``LEAST_HEAD_ROWS``; the tokens of
    ``decoded_rows`` are decoded. None is all of them.
    """

    n_rows: int | None
    most_rows: int | None
    splits: int
    random_sets: int
    epochs: int | None
    screened_rows: int
    minutes: float
    head_work: float | None
    decoded_rows: int | None


# The quick one names what sets of heads do by one set of each size: a set costs what ten heads do.
PROFILES = {
    "quick": Profile(
        400, 2000, 1, 1, 3, screened_rows=100, minutes=1.0, head_work=6e12, decoded_rows=100
    ),
    "full": Profile(
        None, None, 10, 5, None, screened_rows=500, minutes=10.0, head_work=None, decoded_rows=None
    ),
}
CHEAP_PASS = 1e11  # floating-point operations: a second or two on two cores
LEAST_HEAD_ROWS = 100
DEFAULT_MODELS = ("minilm", "nano-bert")
DEFAULT_TASK = "micro-sentiment"


@dataclass(frozen=True)
class ExaminationRequest:
    """An examination that is about to run."""

    subject: Subject
    folder: Path
    wanted: tuple[Wanted, ...]


@dataclass(frozen=True)
class Examination:
    """A finished examination: its page, and where the page is."""

    study: Study
    page: Page
    report: Path

    def as_json(self) -> dict[str, Any]:
        """What ``examine --json`` prints."""
        return {
            "model": self.study.subject.model,
            "task": self.page.task,
            "run": str(self.study.folder),
            "report": str(self.report),
            "parts": [
                {"experiment": part.name, "status": part.status, "finding": part.finding}
                for part in self.page.sections
            ],
            "notes": list(self.page.notes),
        }

    def _repr_html_(self) -> str:
        """In a notebook: the front page, as the report has it."""
        return html_of(*self.page.front, title=self.page.title, texts=self.page.answers)


def request(
    model: str | None,
    data: DataSpec,
    *,
    profile: str = "quick",
    without: tuple[str, ...] = (),
    recipe: Mapping[str, Any] | None = None,
    out: Path | None = None,
    revision: str | None = None,
) -> ExaminationRequest:
    """Fill in what wasn't said: the model, the task, how many rows, and the folder.

    ``without`` names parts to leave out; ``recipe`` holds options of the fine-tuning
    (``epochs``, ``batch_size``, ``fraction`` and so on), None where the task's own is meant. Its
    ``max_length`` is that of every part.

        examine(request("./my-model", DataSpec(path="mine.csv"))).report
    """
    if profile not in PROFILES:
        raise RequestError(f"--profile expects {' or '.join(PROFILES)}, got {profile!r}")
    if unknown := sorted(set(without) - set(PARTS)):
        raise RequestError(f"no part is called {unknown[0]!r}", f"the parts are {', '.join(PARTS)}")
    if data.is_empty:
        data = replace(data, task=DEFAULT_TASK)
    training = {name: value for name, value in (recipe or {}).items() if value is not None}
    data = replace(data, max_length=training.pop("max_length", data.max_length))
    chosen = PROFILES[profile]
    given = data.limit
    data = replace(data, limit=given or chosen.most_rows)
    subject = subject_of(model or default_model(), data, revision=revision)
    if given is None and chosen.n_rows is not None:
        n_rows = max(chosen.n_rows, _cheap_rows(subject))
        subject = subject_of(subject.model, replace(data, limit=n_rows), revision=revision)
    folder = out or default_folder(subject.model, subject.task)
    if chosen.epochs is not None and chosen.epochs < subject.dataset.task.hyperparameters.epochs:
        training.setdefault("epochs", chosen.epochs)
    settings = _settings(chosen, training)
    fewer = {"head-disabling": _head_rows(chosen, subject), "decoding": chosen.decoded_rows}
    # A trim needs more than the others: rows to heal on, several layers.
    wanted = tuple(
        Wanted(part, settings[part], optional=part == TRIM, rows_at_most=fewer.get(part))
        for part in PARTS
        if part not in without
    )
    return ExaminationRequest(subject, folder, wanted)


def _settings(profile: Profile, training: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The options of every part: those of the profile, and of the fine-tuning where it trains."""
    healing = {"screened_rows": profile.screened_rows, "minutes": profile.minutes}
    sweep = {"splits": profile.splits, "random_sets": profile.random_sets}
    return {
        "trim": {**healing, **training},
        "head-disabling": {**sweep, **training},
        "layer-removal": training,
        "decoding": {},
    }


def _cheap_rows(subject: Subject) -> int:
    """How many of a subject's rows one pass of its layers reads for ``CHEAP_PASS`` operations."""
    return int(CHEAP_PASS / work_of_a_row(subject))


def _head_rows(profile: Profile, subject: Subject) -> int | None:
    """How many rows heads are disabled on: a head of layer i takes all layers from i on."""
    if profile.head_work is None:
        return None
    layers = layers_of(subject.model_path)
    passes = layers.n_heads * (layers.count + 1) / 2  # of all layers
    return max(LEAST_HEAD_ROWS, int(profile.head_work / (passes * work_of_a_row(subject))))


def default_model() -> str:
    """The real English model where its extra is installed, else the embedded one."""
    usable = [
        name
        for name in DEFAULT_MODELS
        if name in embedded_names() and (name != "minilm" or minilm_folder() is not None)
    ]
    if not usable:
        raise RequestError("no model is named, and none is embedded", install_command("english"))
    return usable[0]


def examine(wanted: ExaminationRequest, *, workers: Workers | None = None) -> Examination:
    """Run all parts and write the report."""
    done = study(wanted.subject, wanted.wanted, wanted.folder, workers=workers, kind=EXAMINATION)
    page = _page(done.result)
    return Examination(done, page, write(page, wanted.folder))


def rebuild(folder: Path, style: Style = SCREEN) -> Path:
    """Write the report of a stored run, examination or not, anew from its records alone.

    The files of its figures are drawn in a ``style``.
    """
    return write(_page(opened(folder)), folder, style)


def rebuild_joint(folders: Sequence[Path], out: Path, style: Style = SCREEN) -> Path:
    """Write one report of several stored runs into ``out``, with joint figures.

    Runs that aren't of experiments, such as comparisons, have their sections in it.
    """
    if (out / "run.json").exists():
        raise RequestError(f"{out} is a run, whose page is there", "name another folder: --out DIR")
    return write(_joint_page(folders), out, style)


def rebuild_figures(folders: Sequence[Path], out: Path, style: Style = SCREEN) -> list[Path]:
    """Write the figures of a run's page, or of the one of several, into ``out`` and nothing else.

    Each is there as SVG, as PDF and with its data as CSV.
    """
    page = _page(opened(folders[0])) if len(folders) == 1 else _joint_page(folders)
    return write_figures(page, out, style)


def _joint_page(folders: Sequence[Path]) -> Page:
    places = [folder.resolve() for folder in folders]
    if twice := [place for i, place in enumerate(places) if place in places[:i]]:
        raise RequestError(f"expected different runs, got {twice[0].name} twice")
    results = [opened(folder) for folder in folders]
    others = [_page(result) for result in results if "experiments" not in result.request]
    studies = [result for result in results if "experiments" in result.request]
    return joint_page(studies, others)


def _page(result: RunResult) -> Page:
    if result.request.get("kind") == COMPARISON:
        return comparison_page(result)
    if result.request.get("kind") == REPLICATION:
        return replication_page(result)
    if "experiments" not in result.request:
        return plain_page(result)
    if result.request.get("kind") == TRIM:
        return trim_page(result)
    if result.request.get("kind") != EXAMINATION:
        return page_of(result, stored_parts(result))
    left_out = [_left_out(name) for name in PARTS if name not in result.request["experiments"]]
    return page_of(result, stored_parts(result, first=PARTS), what="Examination", more=left_out)


def _left_out(name: str) -> Section:
    experiment = find_experiment(name)
    return Section(
        name, experiment.question, experiment.section, "left out", "left out of this run"
    )
