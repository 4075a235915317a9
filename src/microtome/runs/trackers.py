"""Optional trackers (``--track tensorboard|wandb|mlflow``): told of every finished trial.

Each is imported only when asked for. They watch; nothing is ever read back from them.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.errors import MissingExtra, RequestError
from microtome.runs.record import Record


def scores_of(record: Record) -> dict[str, float]:
    """The numbers of a record's summary."""
    return {
        name: float(value)
        for name, value in record.summary.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def make_tracker(name: str, folder: Path, request: Mapping[str, Any]) -> Tracker:
    """The tracker of that name, for the run in ``folder``."""
    if name not in TRACKERS:
        raise RequestError(f"track must be one of {', '.join(TRACKERS)}, got {name!r}")
    try:
        return TRACKERS[name](folder, request)
    except ImportError as error:
        raise MissingExtra(f"{name} is not installed", f"pip install {name}") from error


def _named_scores(record: Record) -> dict[str, float]:
    return {f"{record.title}/{name}": value for name, value in scores_of(record).items()}


class _TensorBoard:
    """Event files in RUN/tensorboard."""

    def __init__(self, folder: Path, request: Mapping[str, Any]) -> None:
        # The package's writer: the one in torch would pull torch into the driver.
        named = importlib.import_module
        self._event = named("tensorboard.compat.proto.event_pb2").Event
        self._summary = named("tensorboard.compat.proto.summary_pb2").Summary
        writer = named("tensorboard.summary.writer.event_file_writer").EventFileWriter
        self._writer = writer(str(folder / "tensorboard"))

    def log(self, record: Record, step: int) -> None:
        """One scalar per score."""
        scores = _named_scores(record).items()
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in scores]
        event = self._event(wall_time=time.time(), step=step, summary=self._summary(value=values))
        self._writer.add_event(event)

    def close(self) -> None:
        """Flush and close the file."""
        self._writer.close()


class _Wandb:
    """One wandb run per pass; the project is microtome, its name the folder's."""

    def __init__(self, folder: Path, request: Mapping[str, Any]) -> None:
        import wandb

        self._run = wandb.init(
            project="microtome", name=folder.name, dir=str(folder), config=dict(request)
        )

    def log(self, record: Record, step: int) -> None:
        """The scores under the trial's name."""
        self._run.log(_named_scores(record), step=step)

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


class _MLflow:
    """One MLflow run per pass, in the experiment "microtome"."""

    def __init__(self, folder: Path, request: Mapping[str, Any]) -> None:
        import mlflow

        self._mlflow = mlflow
        mlflow.set_experiment("microtome")
        mlflow.start_run(run_name=folder.name)
        mlflow.log_dict(dict(request), "request.json")

    def log(self, record: Record, step: int) -> None:
        """The scores under the trial's name."""
        self._mlflow.log_metrics(_named_scores(record), step=step)

    def close(self) -> None:
        """End the run."""
        self._mlflow.end_run()


Tracker = _TensorBoard | _Wandb | _MLflow
TRACKERS: dict[str, type[Tracker]] = {
    "tensorboard": _TensorBoard,
    "wandb": _Wandb,
    "mlflow": _MLflow,
}
