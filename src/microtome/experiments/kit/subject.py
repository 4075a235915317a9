"""What an experiment looks at: a model and rows, by name for people and by content for hashes.

A :class:`Subject` is made once, without torch, when trials are planned. A trial's function opens it
again where it runs: see ``trial_inputs``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from microtome.errors import DataError, RequestError
from microtome.experiments.catalogue import function_of
from microtome.models.checkpoint import look_at, look_at_fetched
from microtome.models.contents import content_hash, tokenizer_hash
from microtome.models.heads import LABELLED, job_of, own_head, stored_labels
from microtome.models.sentence_transformers.folder import modules_hash
from microtome.models.source import fetched, resolve
from microtome.runs import Trial
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.dataset import Dataset, kind_for
from microtome.tasks.encoding.masking import SHARE
from microtome.tasks.encoding.texts import EMBEDDED_KINDS
from microtome.tasks.reading.opening import open_data, open_training
from microtome.tasks.scoring.labels import label_map

MODEL, TOKENIZER, MODULES = "model", "tokenizer", "modules"
DATA, DEV_DATA, TRAINING = "data", "dev_data", "training_data"
CANDIDATES = "candidates"
# Not a place, but how the model is opened; the rows of a request are hashed with it.
POOLING = "pooling"
CHECKPOINT = "model"  # the folder within a trial's checkpoint


@dataclass(frozen=True)
class Subject:
    """A model and the rows it is measured on, looked at but not loaded."""

    model: str
    model_path: Path
    model_hash: str
    head: str  # mlm, classification, question-answering, none
    data: DataSpec
    opened: Dataset | None  # None where an experiment needs no rows and none were named
    is_embedder: bool = False

    @property
    def dataset(self) -> Dataset:
        """The measured rows; their absence is the user's to mend."""
        if self.opened is None:
            raise RequestError("this experiment needs rows", "name them: --task, or --data FILE")
        return self.opened

    @property
    def has_task_head(self) -> bool:
        """Whether the model can answer the task as it is: an embedder can on pairs and searches.

        On other tasks an embedder is an encoder like any other, which gets a head by fine-tuning.
        """
        return self.head in LABELLED or self.is_used_as_is

    @property
    def is_used_as_is(self) -> bool:
        """Whether it is an embedder on pairs or searches, which needs no training."""
        compares = self.opened is not None and self.opened.task.kind in EMBEDDED_KINDS
        return self.is_embedder and compares

    def trial(
        self,
        name: str,
        request: Mapping[str, Any],
        *,
        experiment: str = "",
        needs: tuple[Trial, ...] = (),
        inputs: Mapping[str, TrialInput] | None = None,
        label: str = "",
        reads: tuple[str, ...] = (MODEL, DATA),
        work: float = 1.0,
    ) -> Trial:
        """A trial on this subject: content is in its hash, places are not.

        ``name`` is the trial's logical name, ``duplication.decode``; its rows are those of the
        ``experiment`` in it unless another is named. ``reads`` says what of the subject the trial
        opens: the model (with its tokenizer), the measured rows (``DATA``), the rows to learn from
        (``TRAINING``). ``inputs`` are more models and files that it reads, found under their names
        in ``context.where``. ``work`` counts layers applied to all measured rows.
        """
        experiment = experiment or name.partition(".")[0]
        places, content = self._read(reads)
        for key, read in (inputs or {}).items():
            places[key], content[key] = str(read.path), read.hash
        return Trial(
            function=function_of(name),
            name=name,
            request={"rows": self.data.as_json(), **request},
            content=content,
            needs=[need.hash for need in needs],
            where=places,
            columns={"experiment": experiment, "model": self.model, "task": self.task},
            label=label or experiment,
            work=work,
        )

    def _read(self, reads: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
        """Places and content hashes of what a trial opens of this subject."""
        places = {MODEL: str(self.model_path), TOKENIZER: str(self.model_path)}
        content = {MODEL: self.model_hash, TOKENIZER: self.tokenizer_hash}
        if self.is_embedder:  # the model's hash is its encoder's alone
            content[MODULES] = modules_hash(self.model_path)
        if DATA in reads and self.opened is not None:
            content[DATA] = self.opened.content_hash
        if TRAINING in reads:
            content[TRAINING] = self.training.content_hash
        if self.data.pooling is not None:
            places[POOLING] = self.data.pooling
        if self.data.path is not None:
            places |= {key: str(self.data.path) for key in (DATA, TRAINING) if key in content}
        if self.data.dev_path is not None and DATA in content:
            places[DEV_DATA], content[DEV_DATA] = str(self.data.dev_path), content.pop(DATA)
        if self.data.candidates is not None:  # what they hold is in the rows' hash
            places[CANDIDATES] = str(self.data.candidates)
        return places, content

    @property
    def is_scored_on_masks(self) -> bool:
        """Whether it is a masked LM on plain text: it restores hidden tokens, without training."""
        return self.head == "mlm" and self.opened is not None and self.opened.task.kind == "text"

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the measured rows, and how the head's outputs are matched to labels."""
        if self.opened is None:
            return ()
        task = self.opened.task
        if self.is_scored_on_masks:
            hidden = f"scored on {100 * SHARE:g} % of each text's tokens, hidden by [MASK]"
            return (*self.opened.notes, f"{task.name}: {hidden}")
        if self.head == task.kind == "classification":
            outputs = stored_labels(look_at_fetched(self.model_path).config)
            if len(outputs) == len(task.labels):
                _, matched = label_map(task, dict(enumerate(outputs)), len(outputs))
                return (*self.opened.notes, matched)
        return self.opened.notes

    @cached_property
    def tokenizer_hash(self) -> str:
        """The content of the tokenizer's files."""
        return tokenizer_hash(self.model_path)

    @cached_property
    def identity(self) -> str:
        """What makes the model the one it is: weights, tokenizer, what follows the encoder."""
        modules = modules_hash(self.model_path) if self.is_embedder else ""
        parts = f"{self.model_hash} {self.tokenizer_hash} {modules}"
        return hashlib.sha256(parts.encode()).hexdigest()

    @cached_property
    def training(self) -> Dataset:
        """The rows that a fine-tuning would learn from, all of them."""
        return open_training(self.data)[0]

    def of_length(self, max_length: int | None) -> Subject:
        """This subject with texts of at most ``max_length`` tokens; None leaves the task's."""
        if max_length is None:
            return self
        opened = None if self.opened is None else self.opened.of_length(max_length)
        return replace(self, data=replace(self.data, max_length=max_length), opened=opened)

    @property
    def task(self) -> str:
        """The task's name; empty without rows."""
        return "" if self.opened is None else self.opened.task.name


@dataclass(frozen=True)
class TrialInput:
    """One more model or file that a trial reads: where it is, and its content's hash."""

    path: Path
    hash: str


def model_input(model: str) -> TrialInput:
    """A second model by name, folder or hub id."""
    source = fetched(resolve(model))
    assert source.path is not None
    return TrialInput(source.path, content_hash(source.path))


def file_input(path: str | Path) -> TrialInput:
    """A file, or a folder of files, by content."""
    place = Path(path).expanduser()
    if not place.exists():
        raise RequestError(f"{path} doesn't exist")
    files = sorted(file for file in place.rglob("*") if file.is_file()) if place.is_dir() else []
    digest = hashlib.sha256()
    for file in files or [place]:
        digest.update(str(file.relative_to(place)).encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return TrialInput(place, digest.hexdigest())


def subject_of(
    model: str | None,
    data: DataSpec,
    *,
    revision: str | None = None,
    needs_rows: bool = True,
    trains: bool = True,
) -> Subject:
    """Find the model and the rows, and take their content's hashes.

    Without ``needs_rows``, rows are optional: no task and no file means none. A model without a
    task head learns from one side of a labelled file, and the other side is measured; one that
    isn't trained (``trains=False``) is measured on the whole file, labelled or not.
    """
    if model is None:
        raise RequestError("no model is named", "name one: --model MODEL")
    source = fetched(resolve(model, revision=revision))
    assert source.path is not None
    checkpoint = look_at(source.path, links_into=source.links_into)
    head = own_head(checkpoint)
    embeds = job_of(checkpoint) == "embedding" or (
        head in ("none", "mlm") and data.pooling is not None
    )
    found = Subject(model, source.path, content_hash(source.path), head, data, None, embeds)
    if not needs_rows and data.is_empty:
        return found
    found = with_rows(found, data)
    is_labelled = found.dataset.task.kind != "text"
    if is_labelled and trains and data.is_file and not found.has_task_head:
        found = with_rows(found, replace(found.data, held_out=True))
    if not len(found.dataset):
        raise DataError(f"{found.task} {found.dataset.split} has no rows")
    return found


def on_fewer_rows(subject: Subject, most: int | None) -> Subject:
    """The subject measured on ``most`` of its rows, the same whenever asked; None leaves all."""
    if most is None or subject.opened is None or most >= len(subject.opened):
        return subject
    return with_rows(subject, replace(subject.data, limit=most))


def with_rows(subject: Subject, data: DataSpec) -> Subject:
    """The subject with the rows of ``data``, of the kind that its head is for.

    A kind that was asked for stays as it is, and so do single texts with a number.
    """
    dataset = open_data(data)
    kind = kind_for(dataset.task.kind, "embedder" if subject.is_embedder else subject.head)
    if kind != dataset.task.kind and data.kind is None and next(dataset.rows()).pair is not None:
        data = replace(data, kind=kind)
        dataset = open_data(data)
    return replace(subject, data=data, opened=dataset)
