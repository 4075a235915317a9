"""Fine-tune a model, edited or not, on a task: from a name and rows to a checkpoint folder."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome import files, surgery
from microtome.edits import Edit, Edits
from microtome.edits.grammar import as_edits
from microtome.errors import ModelError, StorageError
from microtome.families import adapt
from microtome.models import (
    Source,
    fetched,
    load,
    load_tokenizer,
    provenance_of,
    resolve,
    tokenizer_of,
)
from microtome.models.folders import check_empty
from microtome.models.provenance import HISTORY
from microtome.models.sentence_transformers.folder import modules_hash
from microtome.observe.evaluation import encode_for, scored
from microtome.observe.predicting import predict
from microtome.requests import check_same
from microtome.surgery import Certificate
from microtome.tasks import Dataset, Encoded, Evaluation
from microtome.tasks.dataset import as_kind
from microtome.tasks.scoring.constant import with_constant
from microtome.training.finetune.examples import check_recipe, check_trainable, examples_of
from microtome.training.finetune.finetuned import (
    RECORD,
    Finetuned,
    save_finetuned,
    stored_certificate,
)
from microtome.training.finetune.heads import load_for_task, pooling_notes
from microtome.training.finetune.loop import OnStep, Outcome, train
from microtome.training.finetune.processes import join_processes, own_device
from microtome.training.finetune.state import KIND, Epoch, Workplace
from microtome.training.recipe import Recipe, Seeds, recipe_for

Judged = tuple[Evaluation, NDArray[Any]]


def finetune(
    model: str | PathLike[str] | Source,
    train_rows: Dataset,
    dev_rows: Dataset,
    *,
    edits: Edit | Edits | str | None = None,
    recipe: Recipe | None = None,
    seed: int = 0,
    seeds: Seeds | None = None,
    fraction: float = 1.0,
    out: str | PathLike[str] | None = None,
    new_head: bool = False,
    pooling: str | None = None,
    watch: bool = True,
    save_minutes: float = 5.0,
    device: str | torch.device = "cpu",
    progress: OnStep | None = None,
) -> Finetuned:
    """Load ``model`` with a head for the task, apply ``edits``, train, score on dev, save.

    - ``recipe``: the papers' for the task unless given (:func:`recipe_for`).
    - ``seed``: of head, order of rows and dropout; ``seeds`` names one for each.
    - ``fraction``: of the training rows, 1 all, below 1 a share, from 2 on a number. Picked by
      ``seed`` and nested for one seed, whatever ``seeds`` a trial brings.
    - ``out``: a folder for the checkpoint; None keeps it in memory. A fine-tuning of the same
      request that was killed resumes there from its last state, which is stored after every epoch
      and every ``save_minutes``; one that is complete is loaded, not trained again.
    - ``new_head``: replace a head that was made for something else, which is refused otherwise.
    - ``pooling``: how an encoder without a task head is pooled where texts are embedded (retrieval,
      similarity), ``cls`` or ``mean`` (default). Pairs with a number then train an embedder.
    - ``watch``: score dev after every epoch; without it at the end alone, unless the best epoch is
      to be kept.

    Example::

        train, dev = open_training(DataSpec(task="micro-sentiment"))
        done = finetune("nano-bert", train, dev, edits="extend(15)", out="sentiment-15")
        done.scores["accuracy"]      # on dev, with an interval
    """
    started = time.perf_counter()
    if pooling is not None and train_rows.task.kind == "regression":
        train_rows, dev_rows = (as_kind(rows, "similarity") for rows in (train_rows, dev_rows))
    check_trainable(train_rows, dev_rows)
    source = fetched(model if isinstance(model, Source) else resolve(model))
    seeds, device = seeds or Seeds.of(seed), own_device(device)
    usual = recipe_for(train_rows.task, source.path).but(max_length=train_rows.max_length)
    recipe = recipe or usual
    check_recipe(train_rows.task, recipe)
    job = _Job(
        source=source,
        edits=as_edits(edits),
        recipe=recipe,
        seed=seed,
        seeds=seeds,
        rows=train_rows.fraction(fraction, seed=seed),
        dev_rows=dev_rows,
        tokenizer=_tokenizer(source),
        base=load_for_task(
            source, train_rows.task, seed=seeds.init, new_head=new_head, pooling=pooling,
            device=device,
        ),
        notes=pooling_notes(source, train_rows.task, pooling),
        out=None if out is None else Path(out).expanduser(),
        watch=watch or recipe.keep == "best",
        save_minutes=save_minutes,
        started=started,
    )  # fmt: skip
    if job.out is not None and (job.out / RECORD).is_file():
        return _reopened(job, job.out, device)
    return _trained(job, progress)


@dataclass(frozen=True, eq=False)
class _Job:
    """A request with everything that it names loaded."""

    source: Source
    edits: Edits
    recipe: Recipe
    seed: int
    seeds: Seeds
    rows: Dataset
    dev_rows: Dataset
    tokenizer: PreTrainedTokenizerBase
    base: PreTrainedModel
    notes: tuple[str, ...]
    out: Path | None
    watch: bool
    save_minutes: float
    started: float

    @property
    def request(self) -> dict[str, object]:
        """What decides the weights, by content and not by place."""
        origin = provenance_of(self.base)
        assert origin is not None
        return {
            "model": origin.content_hash,
            "head": "fresh" if origin.head_is_fresh else "own",
            "edits": self.edits.identity,
            "task": self.rows.task.name,
            "rows": self.rows.content_hash,
            "dev_rows": self.dev_rows.content_hash,
            "seeds": asdict(self.seeds),
            **self._embedding,
            **self.recipe.as_json(),
        }

    @property
    def _embedding(self) -> dict[str, object]:
        """What decides an embedder besides the model's content."""
        embedder = adapt(self.base).embedder
        if embedder is None:
            return {}
        assert self.source.path is not None
        return {
            "modules": modules_hash(self.source.path),
            "pooling": list(embedder.modes),
            "prompt": self.rows.prompt,
        }

    def encoded(self, dataset: Dataset, model: PreTrainedModel) -> Encoded:
        """The rows as tokens for ``model``."""
        return encode_for(
            model,
            self.tokenizer,
            dataset,
            max_length=self.recipe.max_length,
            stride=self.recipe.stride,
        )

    def judged(self, model: PreTrainedModel, dev: Encoded | None = None) -> Judged:
        """What ``model`` puts out for the dev rows, and how good that is."""
        if dev is None:
            dev = self.encoded(self.dev_rows, model)
        logits = predict(model, dev)
        return scored(model, self.dev_rows, dev, logits), logits

    def result(
        self,
        model: PreTrainedModel,
        training: Outcome,
        certificate: Certificate | None,
        *,
        judged: Judged,
        threads: int,
    ) -> Finetuned:
        """``model`` with its scores and its story."""
        evaluation, logits = judged
        return Finetuned(
            name=self.source.name,
            task=self.rows.task.name,
            edits=tuple(edit.text for edit in self.edits),
            seed=self.seed,
            out=self.out,
            recipe=self.recipe,
            evaluation=with_constant(self.dev_rows, evaluation),
            logits=logits,
            history=training.history,
            kept_epoch=training.kept_epoch,
            certificate=certificate,
            micro_batch_size=training.micro_batch_size,
            threads=threads,
            seconds=time.perf_counter() - self.started,
            model=model,
            notes=self.notes,
        )


@dataclass(eq=False)
class _Scoring:
    """Scores a model on dev after an epoch, and keeps the last epoch's outcome for the result."""

    job: _Job
    dev: Encoded
    last: Judged | None = None

    def __call__(self, model: PreTrainedModel) -> tuple[dict[str, float], float]:
        self.last = self.job.judged(model, self.dev)
        evaluation, _ = self.last
        values = {name: interval.value for name, interval in evaluation.scores.items()}
        return values, values[evaluation.primary]


def _trained(job: _Job, progress: OnStep | None) -> Finetuned:
    if job.out is not None:
        check_empty(job.out)
    processes = join_processes()
    workplace = None
    if job.out is not None:
        workplace = Workplace(job.out, job.request, minutes=job.save_minutes)
    edited = surgery.apply(job.edits, job.base)
    certificate = None
    if len(job.edits):
        certificate = surgery.certify_weights(job.edits, job.base, edited).require()
    job = replace(job, tokenizer=tokenizer_of(edited) or job.tokenizer)
    rows, dev = (job.encoded(dataset, edited) for dataset in (job.rows, job.dev_rows))
    if workplace and processes.is_first:
        workplace.prepare()

    scoring = _Scoring(job, dev)
    training = train(
        edited,
        examples_of(job.rows, rows, adapt(edited)),
        job.recipe,
        seeds=job.seeds,
        score=scoring if job.watch else None,
        workplace=workplace,
        progress=progress,
        processes=processes,
    )
    kept_the_last = training.kept_epoch == training.history[-1].epoch
    result = job.result(
        edited,
        training,
        certificate,
        judged=scoring.last if scoring.last and kept_the_last else job.judged(edited, dev),
        threads=torch.get_num_threads(),
    )
    if workplace and processes.is_first:
        save_finetuned(result, job.tokenizer, workplace.request)
        workplace.remove()
    processes.wait()
    return result


def _reopened(job: _Job, folder: Path, device: str | torch.device) -> Finetuned:
    """A finished folder of the same request, scored again."""
    record = files.read_json(folder / RECORD)
    if not isinstance(record, dict) or not isinstance(record.get("request"), dict):
        raise StorageError(f"{folder / RECORD} can't be used", "give another output folder")
    check_same(folder, record["request"], job.request, what=KIND)
    model = load(str(folder), device=device)
    job = replace(job, tokenizer=tokenizer_of(model) or job.tokenizer)
    history = tuple(Epoch(**epoch) for epoch in record["history"])
    training = Outcome(history, record["kept_epoch"], record["micro_batch_size"], frozen=())
    certificate = stored_certificate(files.read_json(folder / HISTORY))
    judged = job.judged(model)
    return job.result(model, training, certificate, judged=judged, threads=record["threads"])


def _tokenizer(source: Source) -> PreTrainedTokenizerBase:
    tokenizer = load_tokenizer(source)
    if tokenizer is None:
        raise ModelError(
            f"{source.name} has no tokenizer, and text must become tokens to train on",
            "put the tokenizer's files into the checkpoint folder",
        )
    return tokenizer
