"""The `fit` readout: a masked-LM head for an encoder that has none, trained on its last states.

The same rows and masks as in pre-training, with the encoder frozen. As in BERT the decoder is the
word embedding matrix itself: only a transform and one bias per token are trained and stored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome import files
from microtome.errors import ModelError, RequestError
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.models import provenance_of
from microtome.models.embedded_readouts import FACTS, shipped_folder
from microtome.training.mlm.forward import MASKED, heldout_scores, masked_states
from microtome.training.mlm.rows import Array, RowOrder, Tokens, commonest, cut, make_batch

WEIGHTS = "readout.safetensors"


@dataclass(frozen=True)
class ReadoutFacts:
    """How good a fitted head is on rows it wasn't trained on, and what guessing one token gives.

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
        tensors = {f"transform.{n}": p.detach() for n, p in self.transform.named_parameters()}
        with files.storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            safetensors.torch.save_file(
                {**tensors, "bias": self.decoder.bias.detach()}, folder / WEIGHTS
            )
            files.write_json(folder / FACTS, asdict(self.facts))


def load_readout(model: PreTrainedModel, folder: Path) -> FittedReadout:
    """A head that :meth:`FittedReadout.save` wrote, for the model that it was fitted to."""
    transform, decoder = new_head(adapt(model))
    try:
        tensors = safetensors.torch.load_file(folder / WEIGHTS)
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
    """Train a masked-LM head on the last states of ``texts``; the model isn't changed.

    All texts become one stream of tokens, cut into rows of ``length``; a step masks ``n_rows`` of
    them. The last ``heldout_share`` of the rows isn't trained on: ``facts`` has the accuracy there.

    Example::

        head = fit_readout(model, tokenizer, texts)
        print(head.facts.heldout_accuracy, head.facts.unigram)
        readout = fitted_head(adapt(model), head.transform, head.decoder)
        decode(model, encoded, vocabulary, readout=readout)
    """
    family = adapt(model)
    tokens = special_ids(tokenizer, family)
    rows = encoded_rows(tokenizer, texts, length=min(length, family.n_positions), tokens=tokens)
    n_heldout = max(1, round(heldout_share * len(rows)))
    if len(rows) - n_heldout < 1:
        raise RequestError(
            f"the text must fill at least 2 rows of {length} tokens, got {len(rows)}",
            "give more text",
        )
    training, heldout = rows[:-n_heldout], rows[-n_heldout:]
    was_training = model.training
    model.eval()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        transform, decoder = new_head(family)
    _train(family, transform, decoder, training, tokens, (steps, n_rows, learning_rate, seed))
    counts = np.bincount(training[:, 1:-1].ravel(), minlength=tokens.n_vocabulary)
    common = commonest(counts, tokens)
    scores = heldout_scores(
        model, heldout, tokens=tokens, common=common, head=nn.Sequential(transform, decoder)
    )
    model.train(was_training)
    facts = ReadoutFacts(
        heldout_accuracy=scores.accuracy,
        unigram=scores.unigram,
        n=scores.n,
        steps=steps,
        seed=seed,
        model=_content_hash(model),
    )
    return FittedReadout(transform, decoder, facts)


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
        raise RequestError("the tokenizer must have [CLS], [SEP] and [MASK], and it lacks one")
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
            order.rows(step, tokens), rate=MASKED, pairs=0, tokens=tokens, random=random
        )
        with torch.no_grad():
            states = masked_states(family, batch)
        loss = nn.functional.cross_entropy(decoder(transform(states)), batch.targets)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (steps - step) / max(1, steps / 2))
        optimizer.step()
