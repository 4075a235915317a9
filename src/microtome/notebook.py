"""An experiment in one call: what ``microtome run`` does, for notebooks and scripts.

result = microtome.experiment("head-disabling")("./my-model", "mine.csv")
result.finding
result.frame()      # pandas
result.plot()       # figures, which a notebook shows
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import MissingExtra, RequestError
from microtome.experiments import Experiment, find_experiment
from microtome.models.provenance import provenance_of
from microtome.report.rendering import draw
from microtome.report.svg import svg_file
from microtome.runs.table import table_of_rows
from microtome.study import Study, StudyPart, Wanted, Workers, study, tidy, write_report
from microtome.tasks.catalogue import task_names
from microtome.tasks.data_spec import DataSpec
from microtome.views import TidyRow

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from transformers import PreTrainedModel


class Plot(str):
    """A figure as SVG, which a notebook shows."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


class Plots(tuple[Plot, ...]):
    """The figures of a result: ``plots[0]`` is one, and its text is an SVG file."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        # Within a page an SVG has no XML declaration.
        return "".join(f"<div>{plot.partition('?>')[2]}</div>" for plot in self)


@dataclass(frozen=True)
class ExperimentResult:
    """What an experiment found: rows, figures and words. In a notebook it shows itself."""

    study: Study

    @property
    def folder(self) -> Path:
        """The run's folder; a temporary one unless ``out`` was given."""
        return self.study.folder

    @cached_property
    def rows(self) -> list[TidyRow]:
        """The tidy rows, as ``run --json`` prints them: every row has all columns."""
        return tidy([self._part])

    @property
    def finding(self) -> str:
        """What was found, in words."""
        return self._part.finding

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers that matter most, by name."""
        return self._part.experiment.summary(self._part.rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the data: rows left out, labels matched by position."""
        return tuple(self.study.result.notes)

    def table(self) -> pyarrow.Table:
        """The rows as an Arrow table, which polars and DuckDB read without a copy."""
        return table_of_rows(self.rows)

    def frame(self) -> pandas.DataFrame:
        """The rows as a pandas frame (extra ``notebook``)."""
        try:
            import pandas  # noqa: F401  # what pyarrow needs, asked for by name
        except ImportError as error:
            otherwise = "use .table(), or .rows"
            raise MissingExtra.named("pandas", "notebook", otherwise=otherwise) from error
        return self.table().to_pandas()

    def plot(self) -> Plots:
        """The figures, as a report shows them; ``Path("mine.svg").write_text(plots[0])``."""
        drawings = map(draw, self._part.views)
        return Plots(Plot(svg_file(drawing)) for drawing in drawings if drawing is not None)

    @property
    def _part(self) -> StudyPart:
        return self.study.parts[0]

    def __repr__(self) -> str:
        return f"<{self._part.name}: {self.finding}>"

    def _repr_html_(self) -> str:
        return self._part._repr_html_()


@dataclass(frozen=True)
class CallableExperiment:
    """An experiment, ready to be called with a model and a task; see :func:`experiment`."""

    experiment: Experiment

    def __call__(
        self,
        model: str | Path | PreTrainedModel | None = None,
        task: str | Path | DataSpec | None = None,
        *,
        out: str | Path | None = None,
        workers: Workers | None = None,
        **settings: Any,  # noqa: ANN401  # the experiment's own options, checked by it
    ) -> ExperimentResult:
        """Run it, in this process unless ``workers`` says otherwise.

        ``model`` is an embedded name, a folder, a hub id, or a model that ``microtome.load`` or an
        edit gave. ``task`` is a task's name, a file of your own, or a ``DataSpec`` with all there
        is to say of rows. ``out`` keeps the run and its report: the same call resumes it. Without
        it the run is in a temporary folder, until this process ends. ``settings`` are the options
        of ``microtome run NAME --help``.

            experiment("decoding")("nano-bert", DataSpec("micro-sentiment", limit=100))
        """
        self.experiment.settings(settings)  # an unknown one is refused before anything is read
        place, name = _place_of(model)
        subject = self.experiment.subject(place, _spec_of(task), settings)
        if name is not None:
            subject = replace(subject, model=name)
        done = study(
            subject,
            [Wanted(self.experiment.name, settings)],
            out or tempfile.mkdtemp(dir=_scratch()),
            workers=workers or Workers(n_workers=0, progress=False),
        )
        done.check()
        if out is not None:
            write_report(done)
        return ExperimentResult(done)

    @property
    def options(self) -> Mapping[str, Any]:
        """Its settings, with their defaults."""
        return self.experiment.settings({})

    def __repr__(self) -> str:
        return f"<{self.experiment.name}: {self.experiment.question}>"

    def _repr_html_(self) -> str:
        options = "".join(
            f"<tr><td><code>{escape(option.name)}</code></td><td>{escape(str(option.default))}</td>"
            f"<td>{escape(option.help)}</td></tr>"
            for option in self.experiment.options
        )
        name, question = escape(self.experiment.name), escape(self.experiment.question)
        return f"<b>{name}</b>: {question}<table>{options}</table>"


def experiment(name: str) -> CallableExperiment:
    """The experiment called ``name``, to be called with a model and a task.

    ``microtome list experiments`` has the names.

        result = experiment("layer-removal")("nano-bert", DataSpec("micro-sentiment", limit=100))
        result.finding, result.frame(), result.plot()
    """
    return CallableExperiment(find_experiment(name))


def _place_of(model: str | Path | PreTrainedModel | None) -> tuple[str | None, str | None]:
    """Where a model is; one in memory is saved, and has the name of what was done to it."""
    if model is None or isinstance(model, str | Path):
        return (None if model is None else str(model)), None
    provenance = provenance_of(model)
    if provenance is None:
        kind = type(model).__name__
        raise RequestError(
            f"expected a model's name, or one that microtome.load gave, got a {kind}",
            "save it with its tokenizer, and give the folder",
        )
    from microtome.models import save

    folder = save(model, Path(tempfile.mkdtemp(dir=_scratch())) / "model")
    return str(folder), " | ".join([provenance.name, *provenance.edits])


def _spec_of(task: str | Path | DataSpec | None) -> DataSpec:
    """What a task's name, a file, or nothing says of rows."""
    if task is None or isinstance(task, DataSpec):
        return task or DataSpec()
    if isinstance(task, str) and (task in task_names() or not Path(task).expanduser().exists()):
        return DataSpec(task)
    return DataSpec(path=Path(task))


@cache
def _scratch() -> Path:
    """A folder that is removed when this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="microtome-")
    atexit.register(folder.cleanup)
    return Path(folder.name)
