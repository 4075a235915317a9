"""A model on the table: opened once, edited as often as a page asks, never changed itself."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.edits import Edits
from microtome.errors import EditError, ModelError, RequestError
from microtome.experiments.kit.controlled_decoding import random_blocks
from microtome.experiments.kit.measured import Measured
from microtome.explorer.rows import label_text, labels_of, rows_for
from microtome.explorer.scores import Scorer
from microtome.explorer.stack import Stack, StackRules
from microtome.explorer.stored_run import StoredRun
from microtome.explorer.texts import KINDS, Answers, TextOnTable, TextReader, attention_maps
from microtome.families import adapt
from microtome.models import Source, fetched, job_of, load, load_tokenizer, resolve
from microtome.models.heads import Job
from microtome.surgery import apply, certify_weights, operate
from microtome.tasks import Dataset, DataSpec
from microtome.trimming.saving import save_cut

MOST_EDITED = 2  # edited models that are kept: the one on the table, and the one before
LONGEST_SHOWN = 2000  # characters of a row's text
Step = Callable[[int, int], None]


@dataclass(frozen=True)
class SessionRequest:
    """What to put on the table: a model, rows, a second model to look at, a run, a place."""

    model: str
    rows: DataSpec = field(default_factory=DataSpec)
    second: str | None = None
    run: StoredRun | None = None
    out: Path = Path()
    revision: str | None = None
    device: str = "cpu"
    allow_pickle: bool = False


class Session:
    """One base model, its tokenizer and rows; every request names the edit that it is about.

    session = Session(SessionRequest("nano-bert"))
    session.text("The cat [MASK] on the mat.", None, session.stacked("remove(4)")[0])
    """

    def __init__(self, request: SessionRequest) -> None:
        self.request, self.run = request, request.run
        self.source, self.model, self.tokenizer = _opened(request)
        self.name = request.model
        self.job: Job = _job(self.model)
        self.dataset, self.no_rows = rows_for(
            self.model, request.rows, self.job, is_asked=request.run is None
        )
        if self.dataset is not None and self.dataset.task.kind == "reranking":
            self.job = "reranking"  # a number or two labels: a relevance, as the rows say
        self.reader = TextReader(
            self.model, self.tokenizer, self.job, labels_of(self.model, self.dataset),
            max_length=self._max_length(),
        )  # fmt: skip
        self.scorer = self._scorer(self.dataset)
        self.second = None if request.second is None else self._second(request.second)
        family = adapt(self.model)
        shape = family.shape
        self.rules = StackRules(shape.n_layers, shape.n_heads, family.depth_rules)
        self._edited: OrderedDict[str, PreTrainedModel] = OrderedDict()
        self._lock = threading.Lock()
        # What the base says of the last text: it stays on the table from edit to edit.
        self._before: tuple[tuple[str, str | None], Answers] | None = None

    def _max_length(self) -> int | None:
        """Tokens of a text: as many as are read of the rows that were named."""
        if self.dataset is None or self.request.rows.is_empty:
            return self.request.rows.max_length
        if self.job == "embedding":
            return self.dataset.max_length
        return self.dataset.task.hyperparameters.max_length

    def _scorer(self, dataset: Dataset | None) -> Scorer | None:
        if dataset is None:
            return None
        return Scorer(Measured(self.model, self.tokenizer, dataset))

    def _second(self, name: str) -> tuple[PreTrainedModel, TextReader]:
        _, model, tokenizer = _opened(replace(self.request, model=name, revision=None))
        if tokenizer.get_vocab() != self.tokenizer.get_vocab():
            raise RequestError(
                f"{name} reads texts in other tokens than {self.name}",
                "give two checkpoints of one model, as before and after fine-tuning",
            )
        # What it is for doesn't matter: its attention is looked at.
        return model, TextReader(model, tokenizer, "none", (), max_length=self.reader.max_length)

    # --- what there is -----------------------------------------------------------------------

    def about(self) -> dict[str, Any]:
        """The model, its rows, and what can be done with it."""
        family, shape = adapt(self.model), adapt(self.model).shape
        data = None
        if self.dataset is not None and self.scorer is not None:
            task = self.dataset.task
            data = {
                "task": task.name, "n": len(self.dataset), "primary": self.scorer.metric,
                "kind": task.kind, "notes": list(self.dataset.notes),
            }  # fmt: skip
        return {
            "model": self.name, "family": family.name, "job": self.job, "layers": shape.n_layers,
            "heads": shape.n_heads, "labels": self.reader.labels,
            "max_length": self.reader.max_length, "most_layers": self.rules.most_layers,
            "shared": self.rules.rules.shared, "first_copied": self.rules.rules.first_copied,
            "readout": self.reader.readout, "mask": self.tokenizer.mask_token,
            "can": self._abilities(), "data": data, "second": self.request.second,
            "out": str(self.request.out.resolve()), "operate": self._operate_options,
            "run": None if self.run is None else self.run.about(),
        }  # fmt: skip

    @property
    def _operate_options(self) -> list[str] | None:
        """The options with which ``operate`` saves what Save does; None where it has none."""
        request = self.request
        if request.rows.pooling is not None:
            return None
        revision = [] if request.revision is None else ["--revision", request.revision]
        return [*revision, *(["--allow-pickle"] if request.allow_pickle else [])]

    def _abilities(self) -> dict[str, Any]:
        """What works on this model, and why the rest doesn't."""
        family, why = adapt(self.model), {}
        if not family.facts.has_uniform_heads:
            why["disable"] = f"{family.name} adds a position bias to the scores: write how=zero"
        if self.rules.rules.shared:
            why["single_heads"] = "all layers share their weights: a head is off in all of them"
        if self.rules.rules.refusal:
            why["depth"] = self.rules.rules.refusal
        if KINDS[self.job] == "none":
            why["predict"] = "the model has no head that answers"
        if self.scorer is None:
            why["score"] = self.no_rows
        names = ("disable", "single_heads", "depth", "predict", "score", "decode", "save")
        return {**{name: name not in why for name in names}, "why": why}

    def rows(self, start: int, count: int) -> dict[str, Any]:
        """Some of the measured rows, as text."""
        if self.dataset is None:
            return {"rows": [], "n": 0}
        stop = min(start + count, len(self.dataset))
        shown = [
            {
                "text": row.text[:LONGEST_SHOWN],
                "pair": None if row.pair is None else row.pair[:LONGEST_SHOWN],
                "label": label_text(self.dataset.task, row.label),
            }
            for row in islice(self.dataset.rows(), start, stop)
        ]
        return {"rows": shown, "n": len(self.dataset)}

    # --- edits -------------------------------------------------------------------------------

    def stacked(self, text: str) -> tuple[Edits, Stack]:
        """An edit, read and tried: one that doesn't fit the model is refused."""
        edits, stack = self.rules.read(text)
        self.edited(edits)
        return edits, stack

    def restacked(
        self, order: list[int], disabled: list[tuple[int, int]], other: list[str]
    ) -> tuple[Edits, Stack]:
        """The edit that makes a stack, tried."""
        edits, stack = self.rules.write(order, disabled, other)
        self.edited(edits)
        return edits, stack

    def edited(self, edits: Edits) -> PreTrainedModel:
        """The edited model; the last two are kept: a page asks about each several times."""
        if not len(edits):
            return self.model
        with self._lock:
            model = self._edited.get(edits.text)
            if model is None:
                while len(self._edited) >= MOST_EDITED:
                    self._edited.popitem(last=False)
                model = self._edited[edits.text] = apply(edits, self.model)
            self._edited.move_to_end(edits.text)
            return model

    # --- what it does ------------------------------------------------------------------------

    def text(
        self, text: str, pair: str | None, edits: Edits, *, control: bool = False
    ) -> dict[str, Any]:
        """A text's tokens, its answers before and after the edit, and what every depth reads."""
        given, model = self.reader.read(text, pair), self.edited(edits)
        if self._before is None or self._before[0] != (text, pair):
            self._before = (text, pair), self.reader.answers(self.model, given)
        before = self._before[1]
        after = before if model is self.model else self.reader.answers(model, given)
        by_depth = self.reader.depths(model, given)
        controls = None
        if control:
            random = apply(edits, self._random) if len(edits) else self._random
            controls = self.reader.depths(random, given)
        depths: list[dict[str, Any]] = []
        for depth, best in enumerate(by_depth):
            row = {"depth": depth, "tokens": self.reader.tokens(best), "right": _right(best, given)}
            if controls is not None:
                row["control"] = _right(controls[depth], given)
            depths.append(row)
        return {
            "kind": KINDS[self.job], "tokens": self.reader.tokens(given.ids), "before": before,
            "after": after, "depths": depths, "readout": self.reader.readout,
        }  # fmt: skip

    @cached_property
    def _random(self) -> PreTrainedModel:
        """The control: the model's embeddings and head around random blocks."""
        return random_blocks(self.model)

    def attention(
        self, text: str, pair: str | None, edits: Edits, which: str, place: tuple[int, int] | None
    ) -> tuple[Any, int]:
        """The maps of the base, the edited or the second model, and how many tokens there are."""
        if which == "second":
            if self.second is None:
                raise RequestError("there is no second model", "start with --second MODEL")
            model, reader = self.second
        else:
            model, reader = (self.model if which == "before" else self.edited(edits)), self.reader
        given = reader.read(text, pair)
        return attention_maps(model, given, place), len(given.ids)

    def score(self, edits: Edits, step: Step) -> dict[str, Any]:
        """Base and edited model on the rows; the edit is proven by its weights first."""
        if self.scorer is None:
            raise RequestError(f"there is no score: {self.no_rows}", "start with --task or --data")
        model = self.edited(edits)
        if len(edits):
            certify_weights(edits, self.model, model).require()
        step(0, 1)
        return {"edit": edits.text, **self.scorer.score(model, step)}

    def save(self, edits: Edits, folder: str) -> dict[str, Any]:
        """Write the edited model as ``operate`` does, proven, into a folder of this name."""
        if not len(edits):
            raise EditError("there is nothing to save: the model is as it was", "make an edit")
        out, request = self.request.out / folder, self.request
        if request.rows.pooling is not None:
            assert self.source.path is not None
            certificate = save_cut(
                self.source.path, edits.text, None, out, pooling=request.rows.pooling
            )
        else:
            certificate = operate(
                self.source, edits, out, allow_pickle=request.allow_pickle
            ).certificate
        return {"out": str(out.resolve()), "certificate": certificate.as_json()}


def _right(best: list[int], given: TextOnTable) -> list[bool]:
    return [ours == true for ours, true in zip(best, given.ids, strict=True)]


def _opened(
    request: SessionRequest,
) -> tuple[Source, PreTrainedModel, PreTrainedTokenizerBase]:
    source = fetched(
        resolve(request.model, revision=request.revision), allow_pickle=request.allow_pickle
    )
    tokenizer = load_tokenizer(source)
    if tokenizer is None:
        raise ModelError(
            f"{request.model} has no tokenizer", "put tokenizer.json next to the weights"
        )
    model = load(
        source, device=request.device, allow_pickle=request.allow_pickle,
        pooling=request.rows.pooling,
    )  # fmt: skip
    return source, model, tokenizer


def _job(model: PreTrainedModel) -> Job:
    """Its job; a head that no job has can be operated on all the same."""
    try:
        return job_of(model)
    except RequestError:
        return "none"
