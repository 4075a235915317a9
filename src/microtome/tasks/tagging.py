"""Tasks of entities in CoNLL columns, as values. Counts are the published ones."""

from __future__ import annotations

from microtome.tasks.task import Columns, Hub, NativeFile, Split, Task

_COLUMNS = Columns("words", label="tags")


def _tagging(
    name: str,
    summary: str,
    types: tuple[str, ...],
    splits: tuple[tuple[str, int, tuple[str, ...]], ...],
    hub: tuple[str, str | None],
) -> Task:
    """A task of entities in CoNLL columns; splits have a size and the names of their file."""
    hub_splits = {"train": "train", "dev": "validation", "test": "test"}
    return Task(
        name=name,
        kind="tokens",
        # In the hub's order: its tags are numbers.
        labels=("O", *(f"{prefix}-{type}" for type in types for prefix in "BI")),
        metrics=("entity_f1",),
        summary=summary,
        splits=tuple(
            Split(
                split,
                n_rows,
                tuple(NativeFile(file, "conll", _COLUMNS) for file in files),
                hub_split=hub_splits[split],
            )
            for split, n_rows, files in splits
        ),
        hub=Hub(*hub, Columns("tokens", label="ner_tags")),
    )


CONLL2003 = _tagging(
    "conll2003",
    "people, organisations, places and others in newswire",
    ("PER", "ORG", "LOC", "MISC"),
    (
        ("train", 14_041, ("eng.train", "train.txt", "train.conll")),
        ("dev", 3_250, ("eng.testa", "valid.txt", "dev.txt", "dev.conll")),
        ("test", 3_453, ("eng.testb", "test.txt", "test.conll")),
    ),
    ("eriktks/conll2003", None),
)

WNUT17 = _tagging(
    "wnut17",
    "rare and emerging entities in social media",
    ("corporation", "creative-work", "group", "location", "person", "product"),
    (
        ("train", 3_394, ("wnut17train.conll", "train.conll")),
        ("dev", 1_009, ("emerging.dev.conll", "dev.conll")),
        ("test", 1_287, ("emerging.test.annotated", "test.conll")),
    ),
    ("leondz/wnut_17", None),
)

WIKIANN_EN = _tagging(
    "wikiann-en",
    "people, organisations and places in English Wikipedia",
    ("PER", "ORG", "LOC"),
    (("train", 20_000, ("train",)), ("dev", 10_000, ("dev",)), ("test", 10_000, ("test",))),
    ("unimelb-nlp/wikiann", "en"),
)

TASKS = (CONLL2003, WNUT17, WIKIANN_EN)
