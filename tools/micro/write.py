"""Write the rows of the embedded tasks, with their gold annotation, into the package.

    python tools/micro/write.py [FOLDER]

One parquet file per task and split. Equal rows give equal bytes with the same pyarrow.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from micro import generated_rows
from microtome.tasks.annotation.gold import Annotated, GoldRow
from microtome.tasks.embedded import SIZES, TASKS
from microtome.tasks.reading.embedded import FOLDER
from microtome.tasks.task import Kind, Task

WORD = pa.struct(
    {
        "form": pa.string(),
        "lemma": pa.string(),
        "upos": pa.string(),
        "feats": pa.string(),
        "head": pa.int16(),
        "relation": pa.string(),
        "misc": pa.string(),
        "start": pa.int16(),
        "stop": pa.int16(),
    }
)
ELEMENT = pa.struct({"name": pa.string(), "start": pa.int16(), "stop": pa.int16()})
FRAME = pa.struct({"name": pa.string(), "target": pa.int16(), "elements": pa.list_(ELEMENT)})
LINK = pa.struct({"pronoun": pa.int16(), "noun": pa.int16()})
SENTENCE = pa.struct(
    {
        "text": pa.string(),
        "words": pa.list_(WORD),
        "frames": pa.list_(FRAME),
        "pronouns": pa.list_(LINK),
    }
)
LABELS: dict[Kind, pa.DataType] = {
    "classification": pa.int8(),
    "regression": pa.float64(),
    "spans": pa.list_(pa.struct({"text": pa.string(), "start": pa.int16()})),
    "tokens": pa.list_(pa.int8()),
    "multilabel": pa.list_(pa.int8()),
    "reranking": pa.int8(),
    "retrieval": pa.list_(pa.struct({"document": pa.string(), "grade": pa.int8()})),
}


def main(folder: Path, tasks: Iterable[Task] = TASKS) -> None:
    for task in tasks:
        for split in SIZES:
            path = folder / task.name / f"{split}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            table = table_of(generated_rows(task.name, split), task.kind)
            pq.write_table(table, path, compression="zstd", compression_level=19)
            print(f"{path}: {table.num_rows:,} rows, {path.stat().st_size / 1e3:.0f} kB")


def table_of(rows: Iterable[GoldRow], kind: Kind) -> pa.Table:
    schema = pa.schema(
        {
            "id": pa.string(),
            "cluster": pa.string(),
            "structure": pa.string(),
            "text": pa.string(),
            "pair": pa.string(),
            "label": LABELS[kind],
            "first": pa.list_(SENTENCE),
            "second": pa.list_(SENTENCE),
        }
    )
    return pa.Table.from_pylist([_record(row) for row in rows], schema)


def _record(row: GoldRow) -> dict[str, object]:
    label: object = row.label
    if isinstance(row.label, frozenset):
        label = sorted(row.label)
    elif isinstance(row.label, tuple):
        label = [part if isinstance(part, int) else part._asdict() for part in row.label]
    sides = {"first": _sentences(row.first), "second": _sentences(row.second)}
    about = {name: getattr(row, name) for name in ("id", "cluster", "structure", "text", "pair")}
    return {**about, "label": label, **sides}


def _sentences(sentences: tuple[Annotated, ...]) -> list[dict[str, object]]:
    """As plain values; what the schema doesn't name is the same for every word or element."""
    return [
        {
            "text": annotated.text,
            "words": [asdict(word) for word in annotated.sentence.words],
            "frames": [asdict(frame) for frame in annotated.frames],
            "pronouns": [
                {"pronoun": pronoun, "noun": noun} for pronoun, noun in annotated.pronouns
            ],
        }
        for annotated in sentences
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
