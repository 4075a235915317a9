"""Frame exemplars as links between word pieces, and the attention on them as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from microtome.errors import DataError
from microtome.experiments.annotated_text import AnnotatedTexts, Passage, Placed, encode_passages
from microtome.experiments.head_tables import head_scores, number
from microtome.experiments.link_attention import (
    Link,
    LinkAttention,
    placement_test,
    placements_of,
)
from microtome.experiments.received_attention import chance_weights
from microtome.observe import MapBlock, stream
from microtome.tasks.frames import (
    Exemplar,
    embedded_exemplars,
    read_framenet,
    read_published,
    select,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The embedded tasks some of whose frames pass the paper's filters.
EMBEDDED = ("micro-entailment", "micro-paraphrase", "micro-similarity")
FORWARD, BACK = "predicate→element", "element→predicate"
Named = tuple[Exemplar, str]  # with the cluster that it belongs to


def read_exemplars(path: Path | None) -> Iterator[Named]:
    """From a FrameNet folder, the published list, or (no path) the embedded text; unfiltered."""
    if path is None:
        yield from _embedded()
        return
    found = read_framenet(path) if path.is_dir() else read_published(path)
    for exemplar in found:
        yield exemplar, exemplar.sentence.text


def _embedded() -> Iterator[Named]:
    """Every sentence once; those of a minimal set belong together."""
    from microtome.tasks.micro import micro_rows

    seen = set()
    for task in EMBEDDED:
        for row in micro_rows(task, "dev"):
            for annotated in (*row.example.first, *row.example.second):
                if annotated.text not in seen:
                    seen.add(annotated.text)
                    for exemplar in embedded_exemplars([annotated]):
                        yield exemplar, row.cluster


def selected(named: Sequence[Named]) -> tuple[list[Named], dict[str, int]]:
    """Those that the paper's filters keep, and how many fell at which filter."""
    clusters = {id(exemplar): cluster for exemplar, cluster in named}
    found = select(exemplar for exemplar, _ in named)
    if not found.kept:
        reasons = ", ".join(f"{n} {reason}" for reason, n in found.dropped.items()) or "none given"
        raise DataError(f"no exemplar passes the paper's filters ({reasons})")
    return [(exemplar, clusters[id(exemplar)]) for exemplar in found.kept], found.dropped


def encode_exemplars(
    named: Sequence[Named],
    tokenizer: Any,  # noqa: ANN401  # transformers' tokenizers have no common type
    *,
    max_length: int,
    segments: bool,
) -> AnnotatedTexts:
    """An input per exemplar."""
    passages = [
        Passage(one.sentence.text, None, (Placed(one.sentence),), cluster) for one, cluster in named
    ]
    return encode_passages(passages, tokenizer, max_length=max_length, segments=segments)


def link_of(exemplar: Exemplar, texts: AnnotatedTexts, text: int) -> Link:
    """All pairs of a piece of the predicate and a piece of a core element."""
    pieces = {found.index: found.pieces for found in texts.words[text]}
    target = [p for i in range(*exemplar.targets[0]) for p in pieces.get(i, ())]
    elements = [
        p for e in exemplar.core_elements for i in range(e.start, e.stop) for p in pieces.get(i, ())
    ]
    return tuple((query, key) for query in target for key in elements if query != key)


class RandomPairs:
    """The expected largest weight among as many random pairs of ordinary tokens as a link has."""

    def __init__(self, n_pairs: Mapping[int, int], ordinary: NDArray[np.bool_]) -> None:
        self.n_pairs, self.ordinary = n_pairs, ordinary

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        """Room for every text and head."""
        self.values = np.full((n_texts, n_layers, n_heads), np.nan, dtype=np.float32)

    def add(self, block: MapBlock) -> None:
        """Every pair of different ordinary tokens of a text, from large to small."""
        ordinary = block.marked(self.ordinary)
        for row, text in enumerate(block.texts.tolist()):
            if text in self.n_pairs:
                both = ordinary[row][:, None] & ordinary[row][None]
                both.fill_diagonal_(False)
                ranked = block.maps[row][:, both].sort(-1, descending=True).values  # (H, m)
                m = ranked.shape[-1]
                wanted = torch.tensor([self.n_pairs[text]])
                weights = chance_weights(wanted, torch.tensor([m]), m)[0]
                self.values[text, block.layer] = (ranked @ weights.to(ranked)).cpu()


def frame_rows(
    model: PreTrainedModel, named: Sequence[Named], texts: AnnotatedTexts
) -> list[dict[str, Any]]:
    """A row per direction and head."""
    links = {text: link_of(one, texts, text) for text, (one, _) in enumerate(named)}
    links = {text: link for text, link in links.items() if link}
    if not links:
        raise DataError("no predicate or element has a word piece in any sentence")
    turned = {text: tuple((k, q) for q, k in link) for text, link in links.items()}
    looked = {
        direction: LinkAttention(
            {text: [placements_of(link, _sides(texts, text))] for text, link in own.items()},
            keep=True,
        )
        for direction, own in ((FORWARD, links), (BACK, turned))
    }
    pairs = RandomPairs({text: len(link) for text, link in links.items()}, ~texts.special)
    stream(model, texts, [*looked.values(), pairs])
    return [
        {"direction": direction, **row}
        for direction, reduction in looked.items()
        for row in _rows(reduction, pairs.values, texts)
    ]


def _sides(texts: AnnotatedTexts, text: int) -> NDArray[np.int64]:
    return texts.sides[texts.offsets[text] : texts.offsets[text + 1]]


def _rows(
    reduction: LinkAttention, by_count: NDArray[np.float32], texts: AnnotatedTexts
) -> list[dict[str, Any]]:
    clusters = texts.clusters
    by_count = np.where(
        np.isnan(reduction.values), np.nan, by_count
    )  # of the same exemplars as the score
    score, control, stripe, count = (
        head_scores(one, clusters=clusters)
        for one in (reduction.values, reduction.control, reduction.stripe, by_count)
    )
    excess = head_scores(reduction.values - reduction.control, clusters=clusters)
    shape = score.mean.shape
    placed = {text: own.reshape(-1, own.shape[-1]) for text, own in reduction.placed.items()}
    test = placement_test(
        list(placed.values()), clusters=[texts.passages[text].cluster or text for text in placed]
    )
    p, p_max = test.p.reshape(shape), test.p_max.reshape(shape)
    rows = []
    for place in np.ndindex(*shape):
        one, over = score.at(*place), excess.at(*place)
        rows.append(
            {
                "layer": place[0], "head": place[1], "score": one["mean"], "low": one["low"],
                "high": one["high"], "n": one["n"], "control": control.at(*place)["mean"],
                "stripe_control": stripe.at(*place)["mean"],
                "count_control": count.at(*place)["mean"], "excess": over["mean"],
                "excess_low": over["low"], "excess_high": over["high"], "p": number(p[place]),
                "p_max": number(p_max[place]), "n_alone": reduction.n_alone,
            }
        )  # fmt: skip
    return rows
