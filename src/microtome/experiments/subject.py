"""What an experiment looks at: a model and rows, by name for people and by content for hashes.

A :class:`Subject` is made once, without torch, when trials are planned. A trial's function opens it
again where it runs: :func:`opened_rows`, :func:`opened_model`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import DataError, ModelError, RequestError
from microtome.models import content_hash, fetched, resolve
from microtome.models.checkpoint import look_at
from microtome.models.heads import own_head
from microtome.runs import Context, Trial

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from microtome.tasks import Dataset, Request

MODEL, DATA, DEV_DATA, TRAINING = "model", "data", "dev_data", "training_data"
CHECKPOINT = "model"  # the folder within a trial's checkpoint


@dataclass(frozen=True)
class Rows:
    """Which rows are measured, as a user says it; ``path`` is where they lie, if in files.

    ``held_out`` takes the dev side of a file's 80/20 split: the other side is for training. With
    ``dev_path``, a second file, that one is measured, and all of ``path`` is for training.
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
    dev_path: Path | None = None

    @property
    def is_file(self) -> bool:
        """Whether the rows are one file: it is measured whole, or split for training."""
        return self.path is not None and self.path.is_file()

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
        from microtome.tasks import open_data

        if self.held_out or self.dev_path is not None:
            rows = self.open_for_training()[1]
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

    def open_for_training(self) -> tuple[Dataset, Dataset]:
        """The training rows, whole, and the rows to measure, whole."""
        from microtome.tasks import open_training

        if self.split is not None and self.is_file:
            raise RequestError(f"--split {self.split} given with a file", "a file has no splits")
        train, dev = open_training(self.request, dev_data=self.dev_path)
        if self.split not in (None, dev.split):
            dev = replace(self, limit=None).open()
        return train, dev

    def as_json(self) -> dict[str, Any]:
        """Everything but the places, which aren't part of a trial's name."""
        places = ("path", "dev_path")
        return {k: v for k, v in vars(self).items() if k not in places and v not in (None, False)}

    @classmethod
    def of(cls, request: Mapping[str, Any], context: Context) -> Rows:
        """The rows of a trial: what its request says, and where its context finds them."""
        said = dict(request["rows"])
        if said.get("labels"):
            said["labels"] = tuple(said["labels"])
        places = (context.where.get(name) for name in (DATA, DEV_DATA))
        path, dev_path = (None if place is None else Path(place) for place in places)
        return cls(**said, path=path, dev_path=dev_path)


@dataclass(frozen=True)
class Subject:
    """A model and the rows it is measured on, looked at but not loaded."""

    model: str
    model_path: Path
    model_hash: str
    head: str  # mlm, classification, question-answering, none
    rows: Rows
    found: Dataset | None  # None where an experiment needs no rows and none were named

    @property
    def dataset(self) -> Dataset:
        """The measured rows; their absence is the user's to mend."""
        if self.found is None:
            raise RequestError("this experiment needs rows", "name them: --task, or --data FILE")
        return self.found

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
        others: Mapping[str, Other] | None = None,
        label: str = "",
        trains: bool = False,
    ) -> Trial:
        """A trial on this subject: content in its hash, places beside it.

        ``others`` are more models and files that it reads, found under their names in
        ``context.where``. One that ``trains`` also depends on the rows to learn from.
        """
        places = {MODEL: str(self.model_path)}
        content = {MODEL: self.model_hash}
        if self.found is not None:
            content[DATA] = self.found.content_hash
        if trains:
            content[TRAINING] = self.training_hash
        if self.rows.path is not None:
            places |= {name: str(self.rows.path) for name in (DATA, TRAINING) if name in content}
        if self.rows.dev_path is not None:
            places[DEV_DATA], content[DEV_DATA] = str(self.rows.dev_path), content.pop(DATA)
        for name, other in (others or {}).items():
            places[name], content[name] = str(other.path), other.hash
        return Trial(
            function=f"microtome.experiments.{function}",
            request={"rows": self.rows.as_json(), **request},
            content=content,
            needs=[need.hash for need in needs],
            where=places,
            columns={"experiment": experiment, "model": self.model, "task": self.task},
            label=label or experiment,
        )

    @cached_property
    def training_hash(self) -> str:
        """The content of the rows that a fine-tuning would learn from."""
        return self.rows.open_for_training()[0].content_hash

    @property
    def task(self) -> str:
        """The task's name; empty without rows."""
        return "" if self.found is None else self.found.task.name


@dataclass(frozen=True)
class Other:
    """One more model or file that a trial reads: where it lies, and its content's hash."""

    path: Path
    hash: str


def other_model(model: str) -> Other:
    """A second model by name, folder or hub id."""
    source = fetched(resolve(model))
    assert source.path is not None
    return Other(source.path, content_hash(source.path))


def other_file(path: str | Path) -> Other:
    """A file, or a folder of files, by content."""
    place = Path(path).expanduser()
    if not place.exists():
        raise RequestError(f"{path} isn't there")
    files = sorted(file for file in place.rglob("*") if file.is_file()) if place.is_dir() else []
    digest = hashlib.sha256()
    for file in files or [place]:
        digest.update(str(file.relative_to(place)).encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return Other(place, digest.hexdigest())


def subject_of(
    model: str, rows: Rows, *, revision: str | None = None, needs_rows: bool = True
) -> Subject:
    """Find the model and the rows, and take their content's hashes.

    Without ``needs_rows``, rows are optional: no task and no file means none.
    """
    source = fetched(resolve(model, revision=revision))
    assert source.path is not None
    checkpoint = look_at(source.path, links_into=source.links_into)
    head = own_head(checkpoint)
    if not needs_rows and rows.task is None and rows.path is None:
        return Subject(model, source.path, content_hash(source.path), head, rows, None)
    if rows.is_file and head in ("mlm", "none"):
        # The model learns from one side of the file, so only the other side may be measured.
        rows = replace(rows, held_out=True)
    dataset = rows.open()
    if not len(dataset):
        raise DataError(f"{dataset.task.name} {dataset.split} has no rows")
    return Subject(model, source.path, content_hash(source.path), head, rows, dataset)


def opened_rows(request: Mapping[str, Any], context: Context) -> Dataset:
    """The measured rows, where a trial runs."""
    return Rows.of(request, context).open()


def opened_model(context: Context) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model of a trial: the one that a needed trial fine-tuned, else the subject's own."""
    from microtome.models import load, load_tokenizer

    place = model_place(context)
    tokenizer = load_tokenizer(place)
    if tokenizer is None:
        raise ModelError(f"{place} has no tokenizer", "put tokenizer.json beside the weights")
    return load(place, device=context.device), tokenizer


def opened_unshared(context: Context) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, str]:
    """As ``opened_model``, every layer with weights of its own, and the edit that made it so.

    ALBERT applies one layer at every depth: what is done to one layer would be done to all. The
    edit is empty where nothing was shared.
    """
    from microtome.edits import Unshare
    from microtome.families import adapt
    from microtome.surgery import apply, certify_weights

    model, tokenizer = opened_model(context)
    if len(set(adapt(model).sharing)) == adapt(model).shape.n_layers:
        return model, tokenizer, ""
    edit = Unshare()
    unshared = apply(edit, model)
    certify_weights(edit, model, unshared).require()
    return unshared, tokenizer, edit.text


def model_place(context: Context) -> Path:
    """The folder of the model that a trial looks at."""
    checkpoints = [need.checkpoint for need in context.needs.values() if need.checkpoint]
    return checkpoints[0] / CHECKPOINT if checkpoints else Path(context.where[MODEL])
