"""Masked-LM training that grows in depth: Muon, a head start, [CLS] that is asked, extra text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome import files
from microtome.families import adapt
from microtome.training.mlm import text
from microtome.training.mlm.building import new_model, start_model, trained_parameters
from microtome.training.mlm.forward import masked_states
from microtome.training.mlm.head_start import head_start_
from microtome.training.mlm.masked_training import PAIRS, MaskedTraining
from microtome.training.mlm.preparation import check_files, prepare
from microtome.training.mlm.pretrain import PLAN, check_settings, finish
from microtome.training.mlm.request import LogLine, PretrainRequest, PretrainResult
from microtome.training.mlm.rows import Array, Batch, RowOrder, make_batch
from pretraining.candidates import draw_candidates, vocabulary_loss
from pretraining.card import card
from pretraining.growth import grown, grown_state
from pretraining.muon import MuonAndAdamW, Rates, layer_matrices
from pretraining.scaling import restore_embeddings_, shrink_embeddings_
from pretraining.schedule import GrownSchedule
from pretraining.summary_words import ask_first, rarity


@dataclass(frozen=True, kw_only=True)
class GrownRequest(PretrainRequest):
    """A pre-training with the settings of the embedded models' records."""

    n_rows: int = 64
    warm_start: bool = True  # word embeddings from neighbour counts, instead of chance
    summary_words: int = 4  # tokens of its row that [CLS] must name; 0: none
    extra_text: tuple[Path, ...] = ()  # joins as each stage's `extra` says
    matrix_rate: float = 0.02
    matrix_decay: float = 0.3
    other_rate: float = 3e-3

    @property
    def peak_rate(self) -> float:
        return self.other_rate

    @property
    def settings(self) -> dict[str, Any]:
        return {
            **super().settings,
            "warm_start": self.warm_start,
            "summary_words": self.summary_words,
            "extra_text": [path.name for path in self.extra_text],
            "matrix_rate": self.matrix_rate,
            "matrix_decay": self.matrix_decay,
            "other_rate": self.other_rate,
        }


class GrownTraining(MaskedTraining):
    """A model that is stacked on itself where a deeper stage begins."""

    request: GrownRequest
    schedule: GrownSchedule

    def fresh_model(self) -> PreTrainedModel:
        request = self.request
        if request.start is not None:
            model = start_model(request.start)
            restore_embeddings_(model)
            return model
        return new_model(
            request.family,
            layers=self.schedule.stage(max(0, self.done - 1)).layers,
            width=request.width,
            heads=request.n_heads,
            embedding=request.embedding_width,
            vocabulary=self.prepared.tokens.n_vocabulary,
            positions=request.positions,
            seed=request.seed,
        )

    def adopt(self, model: PreTrainedModel) -> None:
        request = self.request
        rates = Rates(
            matrices=request.matrix_rate,
            others=request.other_rate,
            matrix_decay=request.matrix_decay,
        )
        self.model, self.family = model, adapt(model)
        self.optimizer = MuonAndAdamW(trained_parameters(model), layer_matrices(model), rates)

    def begin(self) -> None:
        """Write the head start into a fresh model, unless it is declined."""
        if self.request.warm_start:
            stream, tokens = self.prepared.training, self.prepared.tokens
            head_start_(self.model, stream, tokens=tokens, seed=self.request.seed)

    def step_once(self, step: int) -> float:
        layers = self.schedule.stage(step).layers
        if layers != self.family.shape.n_layers:
            before, state = self.model, self.optimizer.state()
            self.adopt(grown(before, layers))
            self.optimizer.load(grown_state(state, before, self.model))
        return super().step_once(step)

    def rate(self, step: int) -> float:
        return self.schedule.factor(step)

    def loss(self, step: int) -> Tensor:
        decoder, batch = self.family.mlm_decoder(), self.batch(step)
        features = self.family.mlm_features(masked_states(self.family, batch))
        n = self.schedule.stage(step).candidates
        candidates = None
        if 0 < n < len(self.by_frequency):
            random = np.random.default_rng([self.request.seed, 3, step])
            candidates = draw_candidates(self.by_frequency, n, random)
        return vocabulary_loss(features, decoder.weight, decoder.bias, batch.targets, candidates)

    def batch(self, step: int) -> Batch:
        seed, tokens = self.request.seed, self.prepared.tokens
        stage, place = self.schedule.stage(step), self.schedule.row_step(step)
        n_extra = round(stage.extra * stage.n_rows) if self.extra is not None else 0
        shares = ((self.prepared.training, stage.n_rows - n_extra), (self.extra, n_extra))
        rows = np.concatenate([
            RowOrder(stream, stage.length, n, seed).rows(place, tokens)
            for stream, n in shares if n
        ])  # fmt: skip
        batch = make_batch(
            rows,
            rate=stage.masked,
            pairs=PAIRS,
            tokens=tokens,
            random=np.random.default_rng([seed, 2, step]),
            n_positions=self.request.positions,
        )
        n_words = self.request.summary_words
        random = np.random.default_rng([seed, 4, step])
        if not n_words:
            return batch
        return ask_first(batch, rows, n=n_words, weights=self._rarity, tokens=tokens, random=random)

    @cached_property
    def by_frequency(self) -> Array:
        """Token ids, the commonest of the training text first."""
        counts = np.bincount(self.prepared.training, minlength=self.prepared.tokens.n_vocabulary)
        return np.argsort(-counts, kind="stable")

    @cached_property
    def _rarity(self) -> Array:
        return rarity(self.by_frequency)

    @cached_property
    def extra(self) -> Array | None:
        """The tokens of the extra text, made once; changed text is refused."""
        paths, folder = self.request.extra_text, self.request.work / "text"
        if not paths:
            return None
        facts = files.read_json(folder / "extra.json")
        if facts is not None:
            check_files(self.request.work, facts, paths)
        else:
            texts = [text.read_text(path) for path in paths]
            documents = [document for one in texts for document in text.documents(one)]
            stream = text.token_stream(self.prepared.tokenizer, documents)
            text.refuse_unknown(self.prepared.tokenizer, stream)
            facts = list(map(text.described, paths, texts))
            with files.storing(folder):
                np.save(folder / "extra.npy", stream)
                files.write_json(folder / "extra.json", facts)
        self.prepared.facts["extra_files"] = facts
        return np.asarray(np.load(folder / "extra.npy"))


def pretrain_grown(
    request: GrownRequest,
    schedule: GrownSchedule,
    *,
    progress: Callable[[LogLine], None] = lambda _: None,
) -> PretrainResult:
    """As ``microtome pretrain``, by the recipe of the embedded models; resumes like it."""
    if request.threads:
        torch.set_num_threads(request.threads)
    plan = {"plan": schedule.as_json()}
    check_settings(request.work, request.settings | plan)
    prepared = prepare(request)
    files.write_json(request.work / PLAN, schedule.as_json())
    training = GrownTraining(request, prepared, schedule)
    training.resume()
    training.train(progress)
    shrink_embeddings_(training.model)
    return finish(training, card=card)
