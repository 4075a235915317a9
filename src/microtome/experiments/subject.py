"""What an experiment looks at: a model and rows, by name for people and by content for hashes.

A :class:`Subject` is made once, without torch, when trials are planned. A trial's function opens it
again where it runs: :func:`opened_rows`, :func:`opened_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import DataError, ModelError
from microtome.models import content_hash, fetched, resolve
from microtome.models.checkpoint import look_at
from microtome.models.heads import own_head
from microtome.runs import Context, Trial

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from microtome.tasks import Dataset, Request

MODEL, DATA = "model", "data"
CHECKPOINT = "model"  # the folder within a trial's checkpoint


@dataclass(frozen=True)
class Rows:
    """Which rows are measured, as a user says it; ``path`` is where they lie, if in files.

    ``held_out`` takes the dev side of a file's 80/20 split: the other side is for training.
    """

    task: str | None = None
    path: Path | None = None
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    text_column: str | None = None
    pair_column: str | None = None
    label_column: str | None = None
    labels: tuple[str, ...] | None = None
    revision: str | None = None
    held_out: bool = False

    @property
    def request(self) -> Request:
        """The part that says what the data is."""
        from microtome.tasks import Request

        return Request(
            self.task, self.path, self.text_column, self.pair_column, self.label_column,
            self.labels, None, self.revision,
        )  # fmt: skip

    def open(self) -> Dataset:
        """The measured rows."""
        from microtome.tasks import open_data, open_training

        if self.held_out:
            rows = open_training(self.request)[1]
        else:
            rows = open_data(
                self.task,
                self.path,
                self.split,
                text_column=self.text_column,
                pair_column=self.pair_column,
                label_column=self.label_column,
                labels=self.labels,
                revision=self.revision,
            )
        return rows.limit(self.limit, seed=self.seed)

    def as_json(self) -> dict[str, Any]:
        """Everything but the place, which isn't part of a trial's name."""
        return {k: v for k, v in vars(self).items() if k != "path" and v not in (None, False)}


@dataclass(frozen=True)
class Subject:
    """A model and the rows it is measured on, looked at but not loaded."""

    model: str
    model_path: Path
    model_hash: str
    head: str  # mlm, classification, question-answering, none
    rows: Rows
    dataset: Dataset

    @property
    def has_task_head(self) -> bool:
        """Whether the model can answer the task as it is."""
        return self.head in ("classification", "question-answering")

    def trial(
        self,
        function: str,
        experiment: str,
        request: Mapping[str, Any],
        *,
        needs: tuple[Trial, ...] = (),
        label: str = "",
    ) -> Trial:
        """A trial on this subject: content in its hash, places beside it."""
        places = {MODEL: str(self.model_path)}
        if self.rows.path is not None:
            places[DATA] = str(self.rows.path)
        return Trial(
            function=f"microtome.experiments.{function}",
            request={"rows": self.rows.as_json(), **request},
            content={MODEL: self.model_hash, DATA: self.dataset.content_hash},
            needs=[need.hash for need in needs],
            where=places,
            columns={"experiment": experiment, "model": self.model, "task": self.task},
            label=label or experiment,
        )

    @property
    def task(self) -> str:
        """The task's name."""
        return self.dataset.task.name


def subject_of(model: str, rows: Rows, *, revision: str | None = None) -> Subject:
    """Find the model and the rows, and take their content's hashes."""
    source = fetched(resolve(model, revision=revision))
    assert source.path is not None
    checkpoint = look_at(source.path, links_into=source.links_into)
    head = own_head(checkpoint)
    is_file = rows.path is not None and rows.path.is_file()
    if is_file and head in ("mlm", "none"):
        # The model learns from one side of the file, so only the other side may be measured.
        rows = replace(rows, held_out=True)
    dataset = rows.open()
    if not len(dataset):
        raise DataError(f"{dataset.task.name} {dataset.split} has no rows")
    return Subject(model, source.path, content_hash(source.path), head, rows, dataset)


def opened_rows(request: Mapping[str, Any], context: Context) -> Dataset:
    """The measured rows, where a trial runs."""
    said = dict(request["rows"])
    if said.get("labels"):
        said["labels"] = tuple(said["labels"])
    path = context.where.get(DATA)
    return Rows(**said, path=None if path is None else Path(path)).open()


def opened_model(context: Context) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model of a trial: the one that a needed trial fine-tuned, else the subject's own."""
    from microtome.models import load, load_tokenizer

    place = model_place(context)
    tokenizer = load_tokenizer(place)
    if tokenizer is None:
        raise ModelError(f"{place} has no tokenizer", "put tokenizer.json beside the weights")
    return load(place, device=context.device), tokenizer


def model_place(context: Context) -> Path:
    """The folder of the model that a trial looks at."""
    checkpoints = [need.checkpoint for need in context.needs.values() if need.checkpoint]
    return checkpoints[0] / CHECKPOINT if checkpoints else Path(context.where[MODEL])
