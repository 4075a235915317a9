"""One text on the table: its tokens, what a model makes of it, every depth's words, attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.models.heads import Job
from microtome.observe import (
    MapBlock,
    Readout,
    Texts,
    Vocabulary,
    decoded_ids,
    fitted_head,
    predict,
    readout_of,
    states,
    stream,
    vocabulary_of,
)
from microtome.observe.embedding import longest, tokens_to_embed
from microtome.tasks.encoding.windows import Windows
from microtome.tasks.scoring.spans import best_spans
from microtome.training.mlm.readout import FittedReadout, shipped_readout
from microtome.values import Head

N_WORDS = 5  # guesses for a [MASK]
N_SPANS = 3
LONGEST_READ = 512  # tokens of a text, whatever the model could read
LARGEST_SMALL_MAP = 96  # tokens; the small maps of longer texts are averaged down
KINDS: dict[Job, str] = {
    "classification": "labels", "multilabel": "labels", "reranking": "labels",
    "regression": "number", "tokens": "tags", "spans": "span", "embedding": "similarity",
    "mlm": "words", "none": "none",
}  # fmt: skip

Answers = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class TextOnTable:
    """A text, or two, as a model reads it. An embedder reads each by itself: ``texts`` has both."""

    texts: Texts
    ids: list[int]  # of the first
    segments: list[int] | None
    windows: Windows | None = None  # a question and its passage
    pair: str = ""


class TextReader:
    """Reads texts for one base model and its edited copies, which share tokenizer and labels."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        job: Job,
        labels: Sequence[str],
        *,
        max_length: int | None = None,
    ) -> None:
        self.model, self.tokenizer, self.job, self.labels = model, tokenizer, job, list(labels)
        family = adapt(model)
        asked = longest(family, tokenizer, max_length)
        self.max_length = int(
            min(asked, tokenizer.model_max_length, family.n_positions, LONGEST_READ)
        )
        self.vocabulary: Vocabulary = vocabulary_of(tokenizer)
        self._fitted = _shipped(model) if family.head != "mlm" else None

    def read(self, text: str, pair: str | None) -> TextOnTable:
        """The text as tokens."""
        family = adapt(self.model)
        if family.embedder is not None:
            both = [text] if pair is None else [text, pair]
            prompt = family.embedder.prompt(None)
            texts = tokens_to_embed(
                family, self.tokenizer, both, prompt, max_length=self.max_length
            )
            return TextOnTable(texts, texts.ids[: texts.offsets[1]].tolist(), None)
        encoding = self.tokenizer(
            text, pair, truncation=True, max_length=self.max_length,
            return_token_type_ids=True, return_special_tokens_mask=True,
        )  # fmt: skip
        ids = encoding["input_ids"]
        segments = encoding["token_type_ids"] if family.uses_segments else None
        texts = Texts.of(
            [ids],
            segments=None if segments is None else [segments],
            special=[encoding["special_tokens_mask"]],
        )
        windows = None
        if self.job == "spans":
            if pair is None:
                raise RequestError(
                    "the model answers questions, and there is no passage",
                    "give the passage as the second text",
                )
            windows = _window(texts, encoding.encodings[0])
        return TextOnTable(texts, ids, segments, windows, pair or "")

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Tokens by their ids."""
        return [self.vocabulary.token(index) for index in ids]

    def answers(self, model: PreTrainedModel, given: TextOnTable) -> Answers:
        """What a model says of the text: labels, a number, tags, spans or words with their share.

        An embedder compares the text with the base's embedding, and with the second text.
        """
        if self.job == "none":
            return []
        if self.job == "mlm":
            return self._words(model, given)
        output = predict(model, given.texts)
        if self.job == "embedding":
            return self._similarities(model, given, output)
        if self.job == "spans":
            return _spans(given, output)
        if self.job == "tokens":
            shares = _softmax(output)
            return [
                {"token": place, **self._best(row)}
                for place, row in enumerate(shares)
                if not given.texts.special[place]
            ]
        if self.job == "regression":
            return [{"label": self.labels[0], "share": float(output[0, 0])}]
        several = self.job == "multilabel" or output.shape[1] == 1
        shares = _sigmoid(output[0]) if several else _softmax(output)[0]
        return [
            {"label": name, "share": float(share)}
            for name, share in zip(self.labels, shares, strict=True)
        ]

    def depths(self, model: PreTrainedModel, given: TextOnTable) -> list[list[int]]:
        """The best token at every position, by depth, through the output layer."""
        readout = self._readout(adapt(model))
        return decoded_ids(model, given.ids, readout=readout, segments=given.segments)

    @property
    def readout(self) -> str:
        """What the depths are read through: the model's head, a fitted one, or its embeddings."""
        return self._readout(adapt(self.model)).name

    def _readout(self, family: Family) -> Readout:
        if self._fitted is not None:
            return fitted_head(family, self._fitted.transform, self._fitted.decoder)
        return readout_of(family)

    def _best(self, shares: NDArray[np.float64]) -> dict[str, Any]:
        place = int(shares.argmax())
        return {"label": self.labels[place], "share": float(shares[place])}

    @torch.inference_mode()
    def _words(self, model: PreTrainedModel, given: TextOnTable) -> Answers:
        masks = [i for i, token in enumerate(given.ids) if token == self.tokenizer.mask_token_id]
        if not masks:
            return []
        ((_, by_depth),) = states(model, given.texts)
        readout = readout_of(adapt(model))
        features = readout.features(by_depth[-1][masks])
        shares = functional.linear(features, readout.weight, readout.bias).softmax(-1)
        best = shares.topk(min(N_WORDS, shares.shape[1]))
        return [
            {"token": place, "label": self.vocabulary.token(index), "share": share}
            for place, row, column in zip(
                masks, best.values.tolist(), best.indices.tolist(), strict=True
            )
            for share, index in zip(row, column, strict=True)
        ]

    def _similarities(
        self, model: PreTrainedModel, given: TextOnTable, output: NDArray[np.float32]
    ) -> Answers:
        found = []
        if len(output) > 1:
            found.append({"label": "cosine of the two texts", "share": _cosine(*output)})
        if model is not self.model:
            base = predict(self.model, given.texts)[0]
            label = "cosine with the text before the edit"
            found.append({"label": label, "share": _cosine(output[0], base)})
        return found


def attention_maps(
    model: PreTrainedModel, given: TextOnTable, place: tuple[int, int] | None = None
) -> NDArray[np.uint8]:
    """All maps (layers, heads, L, L), 0 to 255; of long texts smaller. ``place``: one, in full."""
    kept = _Shades(place)
    stream(model, given.texts, [kept])
    return np.stack(kept.layers)


class _Shades:
    """The first text's maps as bytes, layer by layer: those of 512 tokens fill no memory."""

    def __init__(self, place: tuple[int, int] | None) -> None:
        self.place = place
        self.layers: list[NDArray[np.uint8]] = []

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Refuse a head that isn't there."""
        if self.place is None or (self.place[0] < n_layers and self.place[1] < n_heads):
            return
        raise RequestError(
            f"there is no head {Head(*self.place)}: the model has {n_layers} layers"
            f" of {n_heads} heads"
        )

    def add(self, block: MapBlock) -> None:
        """Take the maps of the first text; of a pair to embed, the other has its own."""
        if 0 not in block.texts or (self.place and self.place[0] != block.layer):
            return
        maps = block.maps[block.texts.tolist().index(0)]  # (H, L, L)
        if self.place is not None:
            maps = maps[self.place[1] : self.place[1] + 1]
        elif block.length > LARGEST_SMALL_MAP:
            maps = functional.adaptive_avg_pool2d(maps, LARGEST_SMALL_MAP)
        self.layers.append((255 * maps).round().clamp(0, 255).byte().cpu().numpy())


def _shipped(model: PreTrainedModel) -> FittedReadout | None:
    """The head that ships for the model; most have none."""
    try:
        return shipped_readout(model)
    except RequestError:
        return None


def _window(texts: Texts, encoding: Any) -> Windows:  # noqa: ANN401 - tokenizers has no types
    places = [
        span if sequence == 1 else (-1, -1)
        for span, sequence in zip(encoding.offsets, encoding.sequence_ids, strict=True)
    ]
    starts, ends = np.array(places, dtype=np.int32).T
    zero = np.zeros(1, dtype=np.int32)
    return Windows(
        ids=texts.ids.astype(np.int32), offsets=texts.offsets, special=texts.special,
        segments=None, n_truncated=0, n_rows=1, of_row=zero, char_starts=starts, char_ends=ends,
        starts=zero, ends=zero,
    )  # fmt: skip


def _spans(given: TextOnTable, output: NDArray[np.float32]) -> Answers:
    """The best answers, and how likely each is among those considered; "" is no answer."""
    assert given.windows is not None
    (choice,) = best_spans(given.windows, output[:, 0], output[:, 1])
    shares = _softmax(np.array([[choice.no_answer, *(span.score for span in choice.spans)]]))[0]
    texts = ["", *(given.pair[span.start : span.end] for span in choice.spans)]
    ordered = sorted(zip(shares.tolist(), texts, strict=True), reverse=True)
    return [{"label": text, "share": share} for share, text in ordered[:N_SPANS]]


def _softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    shares: NDArray[np.float64] = weights / weights.sum(-1, keepdims=True)
    return shares


def _sigmoid(logits: NDArray[Any]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = 0.5 * (1 + np.tanh(logits.astype(np.float64) / 2))
    return shares


def _cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / norms if norms else 0.0
