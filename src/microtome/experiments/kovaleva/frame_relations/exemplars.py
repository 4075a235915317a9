"""Frame exemplars: read, filtered as in the paper, and as links between word pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from microtome.errors import DataError
from microtome.tasks.annotation.frames import (
    Exemplar,
    embedded_exemplars,
    read_framenet,
    read_published,
    select,
)
from microtome.tasks.annotation.passages import AnnotatedTexts, Passage, Placed, encode_passages
from microtome.tasks.reading.embedded import gold_rows

# The embedded tasks some of whose frames pass the paper's filters.
EMBEDDED = ("micro-entailment", "micro-paraphrase", "micro-similarity")
SPLIT = "dev"
Clustered = tuple[Exemplar, str]  # exemplars of one cluster aren't independent


def read_exemplars(path: Path | None) -> Iterator[Clustered]:
    """From a FrameNet folder, the published list, or (no path) the embedded text; unfiltered."""
    if path is None:
        yield from _embedded()
        return
    for exemplar in read_framenet(path) if path.is_dir() else read_published(path):
        yield exemplar, exemplar.sentence.text


def _embedded() -> Iterator[Clustered]:
    """Every sentence once; those of a minimal set belong together."""
    seen = set()
    for task in EMBEDDED:
        for row in gold_rows(task, SPLIT):
            for annotated in row.sentences:
                if annotated.text not in seen:
                    seen.add(annotated.text)
                    for exemplar in embedded_exemplars([annotated]):
                        yield exemplar, row.cluster


def selected(exemplars: Sequence[Clustered]) -> tuple[list[Clustered], dict[str, int]]:
    """Those that the paper's filters keep, and how many each filter drops."""
    clusters = {id(exemplar): cluster for exemplar, cluster in exemplars}
    selection = select(exemplar for exemplar, _ in exemplars)
    if not selection.kept:
        dropped = ", ".join(f"{n} {reason}" for reason, n in selection.dropped.items())
        raise DataError(f"no exemplar passes the paper's filters ({dropped or 'there are none'})")
    kept = [(exemplar, clusters[id(exemplar)]) for exemplar in selection.kept]
    return kept, selection.dropped


def encode_exemplars(
    exemplars: Sequence[Clustered],
    tokenizer: Any,  # noqa: ANN401  # transformers' tokenizers have no common type
    *,
    max_length: int,
    segments: bool,
) -> AnnotatedTexts:
    """An input per exemplar."""
    passages = [
        Passage(exemplar.sentence.text, None, (Placed(exemplar.sentence),), cluster)
        for exemplar, cluster in exemplars
    ]
    return encode_passages(passages, tokenizer, max_length=max_length, segments=segments)


def link_of(exemplar: Exemplar, texts: AnnotatedTexts, text: int) -> tuple[tuple[int, int], ...]:
    """All pairs of a piece of the predicate and a piece of a core element."""
    pieces = {word.index: word.pieces for word in texts.words[text]}
    target = [p for i in range(*exemplar.targets[0]) for p in pieces.get(i, ())]
    elements = [
        p for e in exemplar.core_elements for i in range(e.start, e.stop) for p in pieces.get(i, ())
    ]
    return tuple((query, key) for query in target for key in elements if query != key)
