"""A run opened on the page: its findings, its figures as data, and the cuts of a trim."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.field.trim.choice import base_of, cuts_of
from microtome.experiments.field.trim.plan import TRIM
from microtome.experiments.kit.subject import CANDIDATES, DATA, DEV_DATA, MODEL, TRAINING
from microtome.models.source import embedded_names
from microtome.runs import RunResult
from microtome.study import StudyPart, opened, stored_parts, subjects_of
from microtome.tasks import DataSpec
from microtome.trimming.trim import as_cut


def is_run(place: Path) -> bool:
    """Whether a folder is a run's."""
    return (place / "run.json").is_file()


@dataclass(frozen=True)
class StoredRun:
    """A run of experiments, read once."""

    result: RunResult
    parts: tuple[StudyPart, ...]

    @classmethod
    def of(cls, folder: Path) -> StoredRun:
        """The run in a folder; one that isn't of our experiments is refused."""
        result = opened(folder)
        if "experiments" not in result.request:
            raise RequestError(
                f"{folder} is no run of experiments", "microtome report shows any run"
            )
        parts = stored_parts(result)
        if not parts:
            raise RequestError(f"{folder} has no experiment that this version knows")
        return cls(result, parts)

    @property
    def model(self) -> str:
        """An embedded model's name, else the folder that its trials found the model in.

        Of several models it is the first that is put on the table.
        """
        name, _ = self._first
        return name if name in embedded_names() else next(iter(self.result.places(MODEL)), name)

    @property
    def rows(self) -> DataSpec:
        """The rows that it measured; of several tasks, those of the first."""
        _, task = self._first
        stored = self.result.request["rows"]
        return DataSpec.of_json(
            {**stored, "task": task} if len(self.result.request.get("tasks", ())) > 1 else stored,
            path=self._place(DATA) or self._place(TRAINING),
            dev_path=self._place(DEV_DATA),
            candidates=self._place(CANDIDATES),
        )

    @property
    def _first(self) -> tuple[str, str]:
        """The first model and task."""
        return subjects_of(self.result.request, self.parts[0].experiment.name)[0]

    def _place(self, key: str) -> Path | None:
        found = self.result.places(key)
        return Path(found[0]) if found else None

    def about(self) -> dict[str, Any]:
        """In short: where it is, and what it has."""
        return {
            "folder": str(self.result.folder),
            "experiments": [part.name for part in self.parts],
            "has_frontier": self._trim is not None,
        }

    def as_json(self) -> dict[str, Any]:
        """Every experiment with its finding and its views as data."""
        return {
            **self.about(),
            "experiments": [
                {
                    "name": part.name, "question": part.question, "status": part.status,
                    "finding": part.finding,
                    "views": [{"view": type(v).__name__, **asdict(v)} for v in part.views],
                }
                for part in self.parts
            ],
        }  # fmt: skip

    def frontier(self) -> dict[str, Any]:
        """The cuts of a trim, the base first; empty where it isn't in the run."""
        if self._trim is None:
            return {"cuts": []}
        rows = self._trim.rows
        return {"cuts": [as_cut(base_of(rows)), *map(as_cut, cuts_of(rows))]}

    @property
    def _trim(self) -> StudyPart | None:
        done = (part for part in self.parts if part.status == "done")
        return next((part for part in done if part.experiment.name == TRIM), None)
