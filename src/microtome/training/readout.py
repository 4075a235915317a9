"""The `fit` readout: an MLM head for an encoder that has none, trained on its last states.

The same rows, masks and loss as in pre-training, with the body frozen. As in BERT the decoder is
the word embedding matrix itself: only a transform and one bias per token are trained and stored.
Heads that ship lie in ``embedded/readouts``, each tied to its model by content.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from microtome.errors import ModelError, RequestError
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.models import provenance_of
from microtome.training.pretraining.forward import asked_states
from microtome.training.pretraining.loss import vocabulary_loss
from microtome.training.pretraining.rows import (
    Array,
    RowOrder,
    Tokens,
    commonest,
    cut,
    make_batch,
)
from microtome.training.storage import write_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WEIGHTS, FACTS = "readout.safetensors", "readout.json"
SHIPPED = Path(__file__).resolve().parent.parent / "embedded" / "readouts"
RATE = 0.15


@dataclass(frozen=True)
class ReadoutFacts:
    """How good a fitted head is on rows it wasn't trained on, beside guessing one token.

    ``model`` is the content hash of the model that it was fitted to; empty where it has none.
    """

    heldout_accuracy: float
    unigram: float
    n: int
    steps: int
    seed: int
    model: str = ""


@dataclass(frozen=True, eq=False)
class FittedReadout:
    """A transform (…, D) → (…, E) and a decoder (V, E) whose weight is the word embeddings."""

    transform: nn.Sequential
    decoder: nn.Linear
    facts: ReadoutFacts

    def save(self, folder: Path) -> None:
        """Write transform and bias; the decoder's weight is the model's own."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"transform.{n}": p.detach() for n, p in self.transform.named_parameters()}
        save_file({**tensors, "bias": self.decoder.bias.detach()}, folder / WEIGHTS)
        write_json(folder / FACTS, asdict(self.facts))


def load_readout(model: PreTrainedModel, folder: Path) -> FittedReadout:
    """A saved head, for the model that it was fitted to."""
    from safetensors.torch import load_file

    transform, decoder = new_head(adapt(model))
    try:
        tensors = load_file(folder / WEIGHTS)
        facts = ReadoutFacts(**json.loads((folder / FACTS).read_text(encoding="utf-8")))
        decoder.bias.data.copy_(tensors.pop("bias"))
        named = {name.removeprefix("transform."): value for name, value in tensors.items()}
        transform.load_state_dict(named)
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(f"{folder} holds no readout for this model: {error}") from error
    return FittedReadout(transform, decoder, facts)


def shipped_readout(model: PreTrainedModel) -> FittedReadout:
    """The head that ships for ``model``, as it was loaded; refused where there is none."""
    return load_readout(model, shipped_folder(_content_hash(model)))


def shipped_folder(content_hash: str) -> Path:
    """Where the head that ships for a model of this content lies; refused where there is none."""
    folders = sorted(SHIPPED.iterdir()) if SHIPPED.is_dir() else []
    for folder in folders:
        if json.loads((folder / FACTS).read_text(encoding="utf-8"))["model"] == content_hash:
            return folder
    raise RequestError(
        f"no head ships for this model, only for {', '.join(folder.name for folder in folders)}",
        "fit one: --readout fit",
    )


def fit_readout(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    steps: int = 500,
    n_rows: int = 32,
    length: int = 64,
    learning_rate: float = 2e-3,
    heldout_share: float = 0.1,
    seed: int = 0,
) -> FittedReadout:
    """Train an MLM head on the last states of `texts`; the model isn't touched."""
    family = adapt(model)
    tokens = special_ids(tokenizer, family)
    rows = encoded_rows(tokenizer, texts, length=min(length, family.n_positions), tokens=tokens)
    n_heldout = max(1, round(heldout_share * len(rows)))
    if len(rows) - n_heldout < 1:
        raise RequestError(f"text for {len(rows)} row(s) given, more wanted", "give more text")
    training, heldout = rows[:-n_heldout], rows[-n_heldout:]
    was_training = model.training
    model.eval()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        transform, decoder = new_head(family)
    _train(family, transform, decoder, training, tokens, (steps, n_rows, learning_rate, seed))
    counts = np.bincount(training[:, 1:-1].ravel(), minlength=tokens.n_vocabulary)
    common = commonest(counts, tokens)
    facts = _score(family, transform, decoder, heldout, tokens, common)
    model.train(was_training)
    told = ReadoutFacts(*facts, steps=steps, seed=seed, model=_content_hash(model))
    return FittedReadout(transform, decoder, told)


def _content_hash(model: PreTrainedModel) -> str:
    origin = provenance_of(model)
    return "" if origin is None else origin.content_hash


def new_head(family: Family) -> tuple[nn.Sequential, nn.Linear]:
    """BERT's head, untrained: dense, GELU, norm; then the word embeddings with a bias of 0."""
    words = family.word_embeddings.detach()
    shape = family.shape
    transform = nn.Sequential(
        nn.Linear(shape.width, words.shape[1]), nn.GELU(), nn.LayerNorm(words.shape[1])
    )
    decoder = nn.Linear(words.shape[1], words.shape[0], device="meta")
    decoder.weight = nn.Parameter(words, requires_grad=False)
    decoder.bias = nn.Parameter(torch.zeros(words.shape[0]))
    return transform, decoder


def encoded_rows(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, length: int, tokens: Tokens
) -> Array:
    """All texts as one stream, cut to rows of `length`."""
    encoded = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    stream = np.concatenate([np.asarray([*ids, tokens.sep], dtype=np.int64) for ids in encoded])
    return cut(stream, length=length, offset=0, tokens=tokens)


def special_ids(tokenizer: PreTrainedTokenizerBase, family: Family) -> Tokens:
    """The ids that masking needs, from a tokenizer."""
    ids = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id)
    if None in ids:
        raise RequestError("the tokenizer has no [CLS], [SEP] or [MASK]; all three are wanted")
    cls, sep, mask = (int(str(number)) for number in ids)
    return Tokens(cls, sep, mask, 0, family.shape.vocabulary, full_stop=None)


def _train(
    family: Family,
    transform: nn.Sequential,
    decoder: nn.Linear,
    rows: Array,
    tokens: Tokens,
    settings: tuple[int, int, float, int],
) -> None:
    steps, n_rows, rate, seed = settings
    parameters = [*transform.parameters(), decoder.bias]
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01, fused=True)
    stream = rows[:, 1:-1].ravel()
    order = RowOrder(stream, rows.shape[1], min(n_rows, len(rows)), seed)
    for step in range(steps):
        random = np.random.default_rng([seed, 2, step])
        batch = make_batch(
            order.rows(step, tokens), rate=RATE, pairs=0, tokens=tokens, random=random
        )
        with torch.no_grad():
            states = asked_states(family, batch)
        features = transform(states).flatten(0, 1)
        labels = torch.from_numpy(batch.labels).flatten()
        loss = vocabulary_loss(features, decoder.weight, decoder.bias, labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (steps - step) / max(1, steps / 2))
        optimizer.step()


@torch.no_grad()
def _score(
    family: Family,
    transform: nn.Sequential,
    decoder: nn.Linear,
    rows: Array,
    tokens: Tokens,
    common: int,
) -> tuple[float, float, int]:
    random = np.random.default_rng(15)
    batch = make_batch(rows, rate=RATE, pairs=0, tokens=tokens, random=random, shares=(1.0, 0.0))
    right = 0
    for begin in range(0, len(rows), 32):
        part = batch.part(slice(begin, begin + 32))
        best: Tensor = decoder(transform(asked_states(family, part))).argmax(-1)
        right += int((best == torch.from_numpy(part.labels)).sum())
    n = batch.labels.size
    return right / n, float((batch.labels == common).mean()), n
