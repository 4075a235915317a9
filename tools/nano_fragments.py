"""What nano-bert's lessons are made of: short pieces of text, and a teacher's vector of each.

A piece is a clause of a novel or of Wikipedia, a sentence of a task's training rows or a part of
one, or a single word of these. Pieces and vectors are made once, and read in batches of like
length.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from microtome.families.seam import Family
from microtome.models import load, load_tokenizer
from microtome.training.mlm.forward import masked_states
from microtome.training.mlm.preparation import Prepared
from microtome.training.mlm.rows import Array, Batch
from microtome.training.mlm.text import read_text

TEACHER = "minilm"
SPLIT = re.compile(r"(?<=[.!?;:])\s+|,\s+|\s+--?\s+|\s*[()\"“”]\s*")
WORD = re.compile(r"[a-z][a-z']*")
N_WORDS = (2, 14)  # of a part
N_CLAUSES = (70_000, 15_000)  # of the first and the second file
COMMON = (10, 50)  # times that a word of theirs must occur
N_SPANS = 8  # drawn from every sentence of a task
UNREAD = (
    0.02  # of a file's end; the last file of a corpus, whose end is held out, isn't read at all
)
LONGEST = 64  # tokens
READ_AT_ONCE = 128  # pieces, by the teacher
# Linear probes on SST-2's training rows find more in these together than in the last states alone.
DEPTHS = (2, 4, 6)
AT_ONCE = 256  # pieces in a step
UNTAUGHT = 2048  # pieces that are only measured on


def clauses(text: str) -> Iterator[str]:
    """Clauses, more or less: what stands between punctuation."""
    fewest, most = N_WORDS
    return (part for part in SPLIT.split(text) if fewest <= len(part.split()) <= most)


def spans(sentence: str, random: np.random.Generator) -> Iterator[str]:
    """Drawn runs of words, of a clause's length and shorter than the sentence."""
    words = sentence.split()
    fewest, most = N_WORDS
    for _ in range(N_SPANS if len(words) > fewest else 0):
        n = int(random.integers(fewest, min(most, len(words) - 1) + 1))
        begin = int(random.integers(len(words) - n + 1))
        yield " ".join(words[begin : begin + n])


def common_words(lines: Sequence[str], at_least: int) -> list[str]:
    """Words that occur often enough, in the order of the alphabet."""
    counts = Counter(word for line in lines for word in WORD.findall(line.lower()))
    return sorted(word for word, n in counts.items() if n >= at_least)


def pieces_of_file(path: Path, n: int, at_least: int, random: np.random.Generator) -> Iterator[str]:
    """`n` clauses of a file's lines, which come in a drawn order, and its common words."""
    lines = [line.strip() for line in read_text(path).split("\n") if line.strip()]
    lines = lines[: int(len(lines) * (1 - UNREAD))]
    left = n
    for place in random.permutation(len(lines)):
        found = list(clauses(lines[place]))[:left]
        yield from found
        left -= len(found)
        if not left:
            break
    yield from common_words(lines, at_least)


def all_pieces(files: Sequence[Path], sentences: Path) -> list[str]:
    """Of the text, and the sentences of a task's training rows, whole and in parts; each once."""
    random = np.random.default_rng(0)
    found: list[str] = []
    for path, n, at_least in zip(files, N_CLAUSES, COMMON, strict=True):
        found += pieces_of_file(path, n, at_least, random)
    own = first_column(sentences)
    for sentence in own:
        found += [sentence, *clauses(sentence), *spans(sentence, random)]
    return list(dict.fromkeys([*found, *common_words(own, 1)]))


def first_column(file: Path) -> list[str]:
    """Of a tsv with a header."""
    return [row.split("\t")[0] for row in file.read_text(encoding="utf-8").splitlines()[1:]]


@torch.no_grad()
def teacher_vectors(texts: Sequence[str]) -> Array:
    """The teacher's mean states over a text's tokens at some depths: (texts, depths · width).

    At each depth the mean over all texts is taken off, which is most of what states have in common;
    then all depths weigh the same, and the whole is of length 1.
    """
    model, pieces = load(TEACHER), load_tokenizer(TEACHER).backend_tokenizer
    pieces.no_padding()
    pieces.no_truncation()
    ids = [encoded.ids[:LONGEST] for encoded in pieces.encode_batch(list(texts))]
    order = np.argsort([len(one) for one in ids], kind="stable")
    vectors = np.zeros((len(texts), len(DEPTHS), model.config.hidden_size), np.float32)
    for begin in range(0, len(texts), READ_AT_ONCE):
        places = order[begin : begin + READ_AT_ONCE]
        padded = nn.utils.rnn.pad_sequence(
            [torch.tensor(ids[place]) for place in places], batch_first=True
        )
        lengths = torch.tensor([len(ids[place]) for place in places])
        mask = (torch.arange(padded.shape[1]) < lengths[:, None]).long()
        with torch.autocast("cpu", torch.bfloat16):
            states = model(
                input_ids=padded, attention_mask=mask, output_hidden_states=True
            ).hidden_states
        for number, depth in enumerate(DEPTHS):
            summed = (states[depth].float() * mask[..., None]).sum(1)
            vectors[places, number] = (summed / lengths[:, None]).numpy()
    vectors -= vectors.mean(0)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True) * len(DEPTHS) ** 0.5
    return vectors.reshape(len(texts), -1).astype(np.float16)


def stored_vectors(texts: Sequence[str], folder: Path) -> Array:
    """The teacher's vectors of these texts, which an earlier call may have left in the folder."""
    texts_file, vectors_file = folder / "lessons.json", folder / "lessons.npy"
    known = json.loads(texts_file.read_text(encoding="utf-8")) if vectors_file.exists() else None
    if known != list(texts):
        vectors_file.unlink(missing_ok=True)
        texts_file.write_text(json.dumps(list(texts)), encoding="utf-8")
        unfinished = vectors_file.with_name("unfinished.npy")
        np.save(unfinished, teacher_vectors(texts))
        unfinished.replace(vectors_file)
    return np.asarray(np.load(vectors_file))


@dataclass(frozen=True, eq=False)
class Lessons:
    """Pieces of text as the pupil's tokens, and the teacher's vector of each."""

    ids: Sequence[Array]
    vectors: Array  # (n, width of the teacher)

    @cached_property
    def lengths(self) -> Array:
        """Tokens of every piece."""
        return np.array([len(one) for one in self.ids])

    @cached_property
    def parted(self) -> tuple[Array, Array]:
        """Places of the pieces that are taught, and of those that are only measured on."""
        order = np.random.default_rng(0).permutation(len(self.ids))
        return order[UNTAUGHT:], order[:UNTAUGHT]

    def places(self, step: int, seed: int) -> Array:
        """The pieces of a step, of about one length; a function of the step and the seed."""
        taught, _ = self.parted
        epoch, place = divmod(step, len(taught) // AT_ONCE)
        return _epoch(self, seed, epoch)[place]

    def told(self, family: Family, places: Array) -> tuple[Tensor, Tensor]:
        """[CLS] of the pieces at `places`, and the teacher's vectors in the same order."""
        lengths = self.lengths[places]
        states, ordered = [], []
        for length in np.unique(lengths):  # training's forward pass knows no padding
            alike = places[lengths == length]
            ids = np.stack([self.ids[place] for place in alike])
            first = np.zeros((len(alike), 1), np.int64)
            rows = Batch(ids, np.zeros_like(ids), first, first, first[:, 0])
            states.append(masked_states(family, rows))  # of [CLS] alone
            ordered.append(alike)
        wanted = torch.from_numpy(self.vectors[np.concatenate(ordered)].astype(np.float32))
        return torch.cat(states), wanted


@lru_cache(maxsize=2)
def _epoch(lessons: Lessons, seed: int, epoch: int) -> list[Array]:
    """All taught pieces in batches of near lengths, which come in a drawn order."""
    random = np.random.default_rng([seed, 5, epoch])
    taught, _ = lessons.parted
    order = taught[np.argsort(lessons.lengths[taught] + random.random(len(taught)) * 3)]
    n_batches = len(order) // AT_ONCE
    left_over = random.permutation(len(order))[: len(order) - n_batches * AT_ONCE]
    batches = np.delete(order, left_over).reshape(n_batches, AT_ONCE)
    return list(batches[random.permutation(n_batches)])


def made_lessons(texts: Sequence[str], prepared: Prepared, work: Path) -> Lessons:
    """The pieces, encoded for the pupil, with their vectors."""
    cls, sep = prepared.tokens.cls, prepared.tokens.sep
    encoded = prepared.tokenizer.encode_batch(texts, add_special_tokens=False)
    ids = [np.array([cls, *one.ids[: LONGEST - 2], sep]) for one in encoded]
    return Lessons(ids, stored_vectors(texts, work))
