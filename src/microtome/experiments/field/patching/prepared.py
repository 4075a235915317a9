"""The pairs that are patched, and what is asked of each: read from a file, or made and chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from microtome.errors import DataError, RequestError
from microtome.experiments.field.patching.pair_file import TextPair
from microtome.experiments.field.patching.pairs import Encoder, Pair, encoded_pairs
from microtome.experiments.field.patching.questions import (
    FloatArray,
    Questions,
    answers_to,
    answers_with,
    questions_of,
)
from microtome.experiments.field.patching.swaps import made_pairs
from microtome.families.seam import Family
from microtome.observe.texts import IntArray, Texts
from microtome.tasks.dataset import Dataset

NO_SWAP, ALIKE = "no word that can be swapped", "answers that hardly differ"


@dataclass(frozen=True, eq=False)
class Prepared:
    """Pairs with a question each, and how many were left out, by reason."""

    pairs: list[Pair]
    questions: Questions
    left_out: Counter[str]

    def texts(self, encoder: Encoder) -> tuple[Texts, Texts]:
        """The clean and the corrupted texts."""
        return _texts(self.pairs, encoder)


def prepared_pairs(
    family: Family, encoder: Encoder, given: Sequence[TextPair], *, least: float
) -> Prepared:
    """Pairs of a file that can be patched, and whose answers differ."""
    pairs, left_out = encoded_pairs(given, encoder, masked=_is_masked(family, encoder))
    return _with_a_difference(family, encoder, pairs, left_out, least)


def chosen_swaps(
    family: Family, encoder: Encoder, dataset: Dataset, *, tries: int, seed: int, least: float
) -> Prepared:
    """A pair of every row: of ``tries`` random swaps the one that changes the answer most."""
    clusters = range(len(dataset)) if dataset.clusters is None else dataset.clusters.tolist()
    tried = made_pairs(
        list(dataset.rows()), clusters, encoder, tries=tries, seed=seed,
        masked=_is_masked(family, encoder),
    )  # fmt: skip
    left_out = Counter({NO_SWAP: sum(not some for some in tried)})
    pairs = [pair for some in tried for pair in some]
    row_of = np.repeat(np.arange(len(tried)), [len(some) for some in tried])
    change = _questions(family, encoder, pairs).change if pairs else np.empty(0)
    most = [_most(change, np.flatnonzero(row_of == row)) for row in np.unique(row_of)]
    return _with_a_difference(family, encoder, [pairs[place] for place in most], left_out, least)


def _is_masked(family: Family, encoder: Encoder) -> bool:
    """Whether the model answers at a mask; one whose tokenizer has none is refused."""
    masked = answers_with(family) == "token"
    if masked and encoder.mask_id is None:
        raise RequestError("expected a tokenizer with a mask token: the model is a masked LM")
    return masked


def _most(change: FloatArray, places: IntArray) -> int:
    """Of some pairs, the first that changes the answer most."""
    return int(places[change[places].argmax()])


def _with_a_difference(
    family: Family, encoder: Encoder, pairs: list[Pair], left_out: Counter[str], least: float
) -> Prepared:
    """The pairs whose answers differ by ``least`` of the mean difference, and by more than none."""
    if pairs:
        questions = _questions(family, encoder, pairs)
        before, after = (answers_to(family, texts, questions) for texts in _texts(pairs, encoder))
        gaps = np.abs(before - after)
        kept = np.flatnonzero((gaps >= least * gaps.mean()) & (gaps > 0))
        left_out[ALIKE] += len(pairs) - len(kept)
        pairs, questions = [pairs[place] for place in kept], questions.take(kept)
    if not pairs:
        why = "; ".join(f"{n} × {reason}" for reason, n in left_out.items() if n)
        raise DataError(f"no pair is left to patch: {why}")
    return Prepared(pairs, questions, Counter({why: n for why, n in left_out.items() if n}))


def _questions(family: Family, encoder: Encoder, pairs: Sequence[Pair]) -> Questions:
    """What is asked of each pair; a text that many are made of is run once."""
    distinct = list({id(pair.clean): pair for pair in pairs}.values())
    place = {id(pair.clean): number for number, pair in enumerate(distinct)}
    return questions_of(
        family,
        encoder.texts([pair.clean for pair in distinct]),
        encoder.texts([pair.corrupted for pair in pairs]),
        np.array([place[id(pair.clean)] for pair in pairs]),
        masked=np.array([pair.masked for pair in distinct]),
        answers=np.array([pair.answer for pair in distinct]),
        others=np.array([pair.other for pair in pairs]),
    )


def _texts(pairs: Sequence[Pair], encoder: Encoder) -> tuple[Texts, Texts]:
    return (
        encoder.texts([pair.clean for pair in pairs]),
        encoder.texts([pair.corrupted for pair in pairs]),
    )
