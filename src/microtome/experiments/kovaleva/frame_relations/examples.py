"""An exemplar with its annotation, and two heads' maps of it, kept whole: the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from microtome.experiments.kit.head_tables import DECIMALS, READABLE
from microtome.experiments.kovaleva.frame_relations.exemplars import Clustered
from microtome.experiments.kovaleva.frame_relations.report import forward
from microtome.observe.reductions import SampledMaps
from microtome.observe.vocabulary import Vocabulary
from microtome.tasks.annotation.frames import Exemplar
from microtome.tasks.annotation.passages import AnnotatedTexts

N_HEADS = 2  # as many as the paper shows
EXAMPLE = ("example_words", "example_roles", "example_tokens", "example_weights", "example_link")
Links = Mapping[int, Sequence[tuple[int, int]]]


def shown_text(links: Links, texts: AnnotatedTexts) -> int:
    """The exemplar that is shown: the one whose length is nearest to ``READABLE`` tokens."""
    return min(links, key=lambda text: abs(int(texts.lengths[text]) - READABLE))


def with_examples(
    rows: Sequence[Mapping[str, Any]],
    sampled: SampledMaps,
    links: Links,
    exemplars: Sequence[Clustered],
    texts: AnnotatedTexts,
    vocabulary: Vocabulary,
) -> list[dict[str, Any]]:
    """The rows; the heads that go furthest beyond the offset also have their map of one exemplar.

    ``sampled`` has the maps of the exemplar that is shown. Which one that is depends on no head.
    """
    ((text, maps),) = sampled.maps.items()
    exemplar, _ = exemplars[text]
    tokens = texts.ids[texts.offsets[text] : texts.offsets[text + 1]]
    about = {
        "example_words": [word.form for word in exemplar.sentence.words],
        "example_roles": roles_of(exemplar),
        "example_tokens": [vocabulary.token(int(index)) for index in tokens],
        "example_link": [list(pair) for pair in links[text]],
    }
    known = [row for row in forward(rows) if row["excess"] is not None]
    shown = sorted(known, key=lambda row: -row["excess"])[:N_HEADS]
    found = []
    for row in rows:
        more: dict[str, Any] = dict.fromkeys(EXAMPLE)
        if any(row is one for one in shown):
            weights = maps[row["layer"], row["head"]].astype(np.float64).round(DECIMALS)
            more = {**about, "example_weights": weights.tolist()}
        found.append({**row, **more})
    return found


def roles_of(exemplar: Exemplar) -> list[str]:
    """What every word is: the predicate, a core element by its name, or nothing ("")."""
    roles = [""] * len(exemplar.sentence.words)
    for element in exemplar.core_elements:
        for i in range(element.start, element.stop):
            roles[i] = element.name or "element"  # the published list names none
    for start, stop in exemplar.targets:
        roles[start:stop] = ["predicate"] * (stop - start)
    return roles
