"""Data sets with a shape of their own: GLUE's files, lists, SQuAD, BEIR folders, pairs."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from loop import Case, Files, Target, Wrong
from tables import TAGS, check_rows, text, word

from microtome.experiments.field.patching.pair_file import read_pairs
from microtome.tasks import DataSpec, open_data
from microtome.tasks.catalogue import find_task
from microtome.tasks.task import Answer, Judgement, NativeFile, Row

GLUE = ("sst2", "mrpc", "stsb", "qqp", "rte", "qnli", "mnli", "cola", "snli")


def glue_files() -> list[tuple[str, str, NativeFile, bool]]:
    """Task, split and native file of every table that GLUE and SNLI publish."""
    return [
        (name, split.name, file, split.labelled)
        for name in GLUE
        for split in find_task(name).splits
        for file in split.files
        if file.format in ("tsv", "jsonl")
    ]


def glue_case(rng: Random) -> Case:
    name, split, file, _ = rng.choice(glue_files())
    task, columns = find_task(name), file.columns
    header = columns.header or tuple(dict.fromkeys(["index", "more", *columns.named]))
    rows, expected = [], []
    for number in range(rng.randint(1, 6)):
        label = rng.choice(task.labels) if task.labels else f"{rng.random() * 5:.3f}"
        values = {name: text(rng, without="\0\n\t\r") for name in header} | {"index": str(number)}
        values |= {columns.label: label} if columns.label else {}
        values |= {columns.id: str(number)} if columns.id in header else {}
        rows.append([values[name] for name in header])
        gold = task.labels.index(label) if task.labels else float(label)
        pair = None if columns.pair is None else values[columns.pair]
        expected.append((values[columns.text], pair, gold if columns.label else None))
    if file.format == "jsonl":
        lines = [json.dumps(dict(zip(header, row, strict=True))) for row in rows]
    else:
        lines = [*([] if columns.header else ["\t".join(header)]), *map("\t".join, rows)]
    return Case({f"{name}/{split}/{file.name}": "\n".join([*lines, ""]).encode()}, expected)


def read_glue(place: Path) -> list[tuple]:
    (path,) = (file for file in place.rglob("*") if file.is_file())
    name, split = path.relative_to(place).parts[:2]
    data = open_data(DataSpec(name, path=path.parent, split=split))
    n_lines = _n_rows(path, name, split)
    return [(row.text, row.pair, row.label) for row in check_rows(data, n_lines)]


def _n_rows(path: Path, name: str, split: str) -> int:
    """The rows of a native file, counted by its bytes."""
    file = next(f for n, s, f, _ in glue_files() if (n, s, f.name) == (name, split, path.name))
    content = path.read_bytes()
    lines = [line.removesuffix(b"\r") for line in content.split(b"\n")]
    lines[-1:] = [] if content.endswith(b"\n") else content.split(b"\n")[-1:]
    skips = file.skip_broken and file.format == "tsv"
    while lines and not lines[-1] and not skips:
        lines.pop()
    has_header = file.format == "tsv" and file.columns.header is None
    return len(lines) - has_header


def lists_case(rng: Random) -> Case:
    """JSON lines with lists: words and tags, several labels, passages of a query."""
    kind = rng.choice(["tokens", "labels", "passages"])
    rows, expected = [], []
    for _ in range(rng.randint(2, 6)):
        if kind == "tokens":
            words = [word(rng) for _ in range(rng.randint(1, 4))]
            rows.append({"tokens": words, "tags": [rng.choice(TAGS) for _ in words]})
            expected.append((" ".join(words), None))
        elif kind == "labels":
            names = sorted({rng.choice(["a", "b", "c d"]) for _ in range(rng.randrange(3))} | {"a"})
            rows.append({"text": text(rng), "label": names})
            expected.append((rows[-1]["text"], None))
        else:
            relevant, others = ([text(rng) for _ in range(rng.randint(1, 2))] for _ in range(2))
            rows.append({"query": text(rng), "positive": relevant, "negative": others})
            expected += [(rows[-1]["query"], passage) for passage in [*relevant, *others]]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    return Case({"rows.jsonl": content}, expected)


def read_lists(place: Path) -> list[tuple]:
    data = open_data(DataSpec(path=place / "rows.jsonl"))
    rows = list(data.rows())
    for row, stored in zip(rows, _objects(place / "rows.jsonl"), strict=False):
        gold = stored.get("label", stored.get("tags"))
        n_given = len(row.label) if isinstance(row.label, (frozenset, tuple)) else None
        if "query" not in stored and isinstance(gold, list) and n_given is not None:
            names = {str(one).strip() for one in gold} if "label" in stored else gold
            if len(names) != n_given and isinstance(row.label, tuple):
                raise Wrong(f"{len(names)} tags are {n_given}")
            if any(one is None or isinstance(one, (dict, list)) for one in gold):
                raise Wrong(f"the labels {gold} are read as {n_given} labels")
    return [(row.text, row.pair) for row in rows]


def _objects(path: Path) -> list[dict]:
    lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode().split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def squad_case(rng: Random) -> Case:
    articles, expected = [], []
    for title in range(rng.randint(1, 3)):
        context = text(rng) + " answer " + text(rng)
        questions = []
        for number in range(rng.randint(1, 3)):
            start = context.index("answer")
            gold = rng.choice([[], [{"text": "answer", "answer_start": start}]])
            question = {"question": text(rng), "id": f"{title}-{number}", "answers": gold}
            questions.append(question | {"is_impossible": not gold})
            expected.append(
                (question["question"], context, tuple((g["text"], start) for g in gold))
            )
        articles.append(
            {"title": text(rng), "paragraphs": [{"context": context, "qas": questions}]}
        )
    document = rng.choice([{"version": "v2.0", "data": articles}, {"data": articles, "more": {}}])
    content = json.dumps(document, indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5)
    return Case({"rows.json": content.encode()}, expected)


def read_squad(place: Path) -> list[tuple]:
    data = open_data(DataSpec("squad2", path=place / "rows.json"))
    return [(row.text, row.pair, tuple(map(tuple, row.label or ()))) for row in data.rows()]


def squad_independent(files: Files) -> list[tuple] | None:
    try:
        document = json.loads(files["rows.json"].decode("utf-8-sig"))
        return [
            (question["question"], paragraph["context"], _answers(question))
            for article in document["data"]
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _answers(question: dict) -> tuple:
    if question.get("is_impossible"):
        return ()
    return tuple((one["text"], one["answer_start"]) for one in question["answers"])


def beir_case(rng: Random) -> Case:
    n_documents, n_queries = rng.randint(1, 5), rng.randint(1, 3)
    documents = [
        {"_id": f"d{i}", "title": rng.choice(["", "T"]), "text": text(rng)}
        for i in range(n_documents)
    ]
    queries = [{"_id": f"q{i}", "text": text(rng)} for i in range(n_queries)]
    judged = [
        (f"q{q}", f"d{d}", rng.choice([1, 1, 2, 0]) if d else 1)
        for q in range(n_queries) for d in range(rng.randint(1, n_documents))
    ]  # fmt: skip
    qrels = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, one)) for one in judged)]
    run = [
        f"q{q} Q0 d{d} {d + 1} {9 - d}.5 bm25" for q in range(n_queries) for d in range(n_documents)
    ]
    files = {
        "corpus.jsonl": "\n".join(map(json.dumps, documents)),
        "queries.jsonl": "\n".join(map(json.dumps, queries)),
        "qrels/test.tsv": "\n".join(qrels),
    }
    if rng.random() < 0.3:
        files["run.txt"] = "\n".join(run)
        expected = [(q["text"], _passage(d), None) for q in queries for d in documents]
    else:
        grades = {
            q["_id"]: [(d, g) for query, d, g in judged if query == q["_id"]] for q in queries
        }
        expected = [(q["text"], None, tuple(grades[q["_id"]])) for q in queries]
        expected += [(_passage(d), None, None) for d in documents]
    return Case({name: content.encode() for name, content in files.items()}, expected)


def _passage(document: dict) -> str:
    return f"{document['title']} {document['text']}".strip()


def read_beir(place: Path) -> list[tuple]:
    run = place / "run.txt"
    spec = DataSpec(path=place, split="test", kind="reranking", candidates=run)
    data = open_data(spec if run.exists() else DataSpec(path=place, split="test"))
    return [(row.text, row.pair, _judged(row)) for row in data.rows()]


def _judged(row: Row) -> tuple | None:
    if not isinstance(row.label, tuple):
        return None
    return tuple(tuple(one) for one in row.label if isinstance(one, (Judgement, Answer)))


def pairs_case(rng: Random) -> Case:
    rows = [
        {name: text(rng) or "w" for name in ("clean", "corrupted", "answer", "other")}
        for _ in range(rng.randint(1, 5))
    ]
    content = "\n".join(map(json.dumps, rows))
    return Case({"pairs.jsonl": content.encode()}, [tuple(row.values()) for row in rows])


def read_pair_file(place: Path) -> list[tuple]:
    found = read_pairs(place / "pairs.jsonl")
    return [(pair.clean, pair.corrupted, pair.answer, pair.other) for pair in found]


TARGETS = [
    Target("glue", glue_case, read_glue),
    Target("lists", lists_case, read_lists),
    Target("squad", squad_case, read_squad, squad_independent),
    Target("beir", beir_case, read_beir),
    Target("pairs", pairs_case, read_pair_file),
]
