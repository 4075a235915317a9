"""The full certificate's checks of a smaller vocabulary: its texts, and texts of any kind."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.edits import Edits, Randomize, Vocabulary
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.models import load_tokenizer, tokenizer_of
from microtome.surgery.application import apply
from microtome.surgery.certificate import Check
from microtome.surgery.vocabulary import texts_of

TOLERANCE = 1e-6
N_CUT = 2000  # texts of the file whose tokens are compared
N_COMPUTED = 8  # of them, whose outputs are compared, in one padded batch
N_RANDOM = 2000
CHARACTERS_PER_TEXT = 16


def vocabulary_checks(
    edits: Edits, base: PreTrainedModel, edited: PreTrainedModel, saved: Path
) -> Iterator[Check]:
    """Compare with the model that all edits but the last ``vocabulary`` give."""
    place, edit = [(i, edit) for i, edit in enumerate(edits) if isinstance(edit, Vocabulary)][-1]
    earlier, later = edits.edits[:place], edits.edits[place + 1 :]
    whole = apply(Edits(*earlier, *later), base)
    before, after = tokenizer_of(whole), load_tokenizer(saved)
    if before is None or after is None:
        yield Check("tokenizer", False, "expected a tokenizer in the saved folder, got none")
        return
    texts = spread(texts_of(edit.path), N_CUT)
    same_tokens = tokens_check(before, after, texts)
    yield same_tokens
    # Other tokens, other outputs; and other embeddings where they are drawn afresh later.
    if same_tokens.passed and not any(isinstance(edit, Randomize) for edit in later):
        yield output_check(whole, edited, before, after, spread(texts, N_COMPUTED))
    yield unknown_check(before, after)


def spread(texts: Sequence[str], count: int) -> list[str]:
    """At most ``count`` of the texts, at even distances."""
    step = max(1, -(-len(texts) // count))
    return list(texts[::step])


def tokens_check(
    before: PreTrainedTokenizerBase, after: PreTrainedTokenizerBase, texts: list[str]
) -> Check:
    """The saved tokenizer cuts the file's texts as the base's does."""
    n_differ = sum(map(list.__ne__, tokens(before, texts), tokens(after, texts)))
    if n_differ:
        return Check("same tokens", False, f"{n_differ} of {len(texts)} texts are cut otherwise")
    return Check("same tokens", True, f"{len(texts):,} of the file's texts are cut as before")


def tokens(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[list[str]]:
    """The texts' tokens as the model gets them, by name."""
    return [tokenizer.convert_ids_to_tokens(ids) for ids in tokenizer(texts)["input_ids"]]


@torch.no_grad()
def output_check(
    whole: PreTrainedModel,
    edited: PreTrainedModel,
    before: PreTrainedTokenizerBase,
    after: PreTrainedTokenizerBase,
    texts: list[str],
) -> Check:
    """The file's texts give the same outputs; of logits over the vocabulary those that are left."""
    family = adapt(edited)
    left = torch.tensor(before.convert_tokens_to_ids(by_id(after)))
    ours = edited.eval()(**class_inputs(edited, inputs(family, after, texts)))
    theirs = whole.eval()(**class_inputs(whole, inputs(family, before, texts)))
    off, scale = 0.0, 1.0
    for key in (key for key in ours if isinstance(ours[key], Tensor)):
        was, now = theirs[key], ours[key]
        was = was if was.shape == now.shape else was[..., left]
        off, scale = max(off, float((was - now).abs().max())), max(scale, float(was.abs().max()))
    detail = f"{len(texts)} of the file's texts in a padded batch: outputs differ by {off:.1g}"
    return Check("same outputs", off <= TOLERANCE * scale, detail)


def by_id(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """The tokens in the order of their ids."""
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def inputs(
    family: Family, tokenizer: PreTrainedTokenizerBase, texts: list[str]
) -> dict[str, Tensor]:
    """The texts in a padded batch, (B, L)."""
    rows = [ids[: family.n_positions] for ids in tokenizer(texts)["input_ids"]]
    ids = torch.full((len(rows), max(map(len, rows))), family.config.pad_token_id or 0)
    mask = torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        mask[place, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def class_inputs(model: PreTrainedModel, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """A batch as the model's class takes it: multiple choice has one more axis, (B, 1, L)."""
    if not type(model).__name__.endswith("ForMultipleChoice"):
        return batch
    return {name: values[:, None] for name, values in batch.items()}


def unknown_check(before: PreTrainedTokenizerBase, after: PreTrainedTokenizerBase) -> Check:
    """No text has an unknown token that it hadn't before."""
    texts = [*random_texts(N_RANDOM), *spelling_texts(before)]
    n_new = sum(map(int.__gt__, n_unknown(after, texts), n_unknown(before, texts)))
    if n_new:
        detail = f"{n_new} of {len(texts):,} texts have unknown tokens that they hadn't before"
        return Check("no new unknowns", False, detail)
    what = f"{N_RANDOM:,} random texts, and words with every character of the base's tokens"
    return Check("no new unknowns", True, f"{what}: none has an unknown token more than before")


def n_unknown(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[int]:
    """How many tokens of each text are unknown."""
    return [ids.count(tokenizer.unk_token_id) for ids in tokenizer(texts)["input_ids"]]


def random_texts(count: int, *, seed: int = 0) -> list[str]:
    """Texts of characters from all of Unicode's first plane, and often from its first blocks."""
    draw = random.Random(seed)
    blocks = ((0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x5FF), (0x3040, 0x9FFF), (0x20, 0xD7FF))
    return [
        "".join(
            " " if draw.random() < 0.15 else chr(draw.randint(*draw.choice(blocks)))
            for _ in range(draw.randint(1, 40))
        )
        for _ in range(count)
    ]


def spelling_texts(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Every character that occurs in a token: as a word, and inside of one."""
    characters = sorted({character for token in tokenizer.get_vocab() for character in token})
    words = [f"{character} e{character}" for character in characters]
    starts = range(0, len(words), CHARACTERS_PER_TEXT)
    return [" ".join(words[start : start + CHARACTERS_PER_TEXT]) for start in starts]
