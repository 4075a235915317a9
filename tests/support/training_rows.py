"""Small labelled data sets over the tiny tokenizer's words (`from training_rows import rows`)."""

from __future__ import annotations

import json
import random
from pathlib import Path

from microtome.tasks import Dataset, DataSpec, open_data
from support.tiny import FAMILY_TYPES, WORDS, save_tiny, tiny_tokenizer

SENTENCES = [word for word in WORDS if word not in ("good", "bad")]


def tokenizer_for(family: str = "bert"):
    """The tiny tokenizer, giving segments to the families that have them."""
    assert family in FAMILY_TYPES
    made = tiny_tokenizer(family)
    if family in ("bert", "electra", "albert", "nomic_bert"):
        made.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return made


def checkpoint(folder: Path, family: str = "bert", head: str = "mlm", **config: object) -> Path:
    """A tiny checkpoint with its tokenizer."""
    save_tiny(folder, family, head, **config)
    tokenizer_for(family).save_pretrained(folder)
    return folder


def sentence(rng: random.Random, n_words: int) -> str:
    return " ".join(rng.choice(SENTENCES) for _ in range(n_words))


def rows(folder: Path, kind: str = "single", *, n: int = 40, seed: int = 0) -> Dataset:
    """``single`` or ``pair`` classification, ``regression``, ``spans``: learnable, many lengths."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "spans":
        return _questions(folder / f"span-{n}-{seed}.json", rng, n)
    lines = []
    for index in range(n):
        label = index % 2
        text = f"{sentence(rng, rng.randint(1, 9))} {'good' if label else 'bad'}"
        pair = sentence(rng, rng.randint(1, 5))
        lines.append({"text": text, "pair": pair, "label": ("no", "yes")[label]})
        if kind == "regression":
            lines[-1]["label"] = 1.5 * label + rng.random() / 10
        if kind != "pair":
            del lines[-1]["pair"]
    file = folder / f"{kind}-{n}-{seed}.jsonl"
    _write(file, "".join(json.dumps(line) + "\n" for line in lines))
    if kind == "regression":
        return open_data(DataSpec(path=file, kind="regression"))
    columns = {"pair_column": "pair"} if kind == "pair" else {}
    return open_data(DataSpec(path=file, labels=("no", "yes"), **columns))


def tagged_sentences(n: int, seed: int = 0) -> list[tuple[list[str], list[str]]]:
    """Words and IOB2 tags: "good" begins a QUALITY of one or two words, "bad" a FAULT of one."""
    rng = random.Random(seed)
    made = []
    for _ in range(n):
        words = sentence(rng, rng.randint(1, 6)).split()
        tags = ["O"] * len(words)
        words += ["good", "houses"][: rng.randint(1, 2)]  # houses: two pieces
        tags += ["B-QUALITY", "I-QUALITY"][: len(words) - len(tags)]
        words += [*sentence(rng, rng.randint(1, 4)).split(), "bad", "cats"]
        tags += ["O"] * (len(words) - len(tags) - 2) + ["B-FAULT", "O"]
        made.append((words, tags))
    return made


def tagged_rows(folder: Path, *, n: int = 40, seed: int = 0) -> Dataset:
    """:func:`tagged_sentences` as a file in CoNLL columns."""
    blocks = [
        "".join(f"{word} {tag}\n" for word, tag in zip(words, tags, strict=True))
        for words, tags in tagged_sentences(n, seed)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"tags-{n}-{seed}.conll"
    _write(file, "\n".join(blocks))
    return open_data(DataSpec(path=file))


def multilabel_rows(folder: Path, *, n: int = 40, seed: int = 0) -> Dataset:
    """Which of "good", "bad", "red" a text has, as three columns."""
    rng = random.Random(seed)
    lines = ["text,good,bad,red"]
    for _ in range(n):
        present = [rng.random() < 0.5 for _ in range(3)]
        added = [word for word, is_in in zip(("good", "bad", "red"), present, strict=True) if is_in]
        text = " ".join([sentence(rng, rng.randint(1, 7)).replace("red", "blue"), *added])
        lines.append(f"{text},{','.join(str(int(value)) for value in present)}")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"labels-{n}-{seed}.csv"
    _write(file, "\n".join(lines) + "\n")
    return open_data(DataSpec(path=file, text_column="text", label_column="good,bad,red"))


def similarity_rows(folder: Path, *, n: int = 40, seed: int = 0) -> Dataset:
    """Pairs with a number: the share of words that were kept, on a scale of 0 to 5."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        words = sentence(rng, rng.randint(2, 8)).split()
        kept = [rng.random() < 0.5 for _ in words]
        other = [w if k else rng.choice(SENTENCES) for w, k in zip(words, kept, strict=True)]
        number = 5 * sum(kept) / len(kept)
        lines.append({"a": " ".join(words), "b": " ".join(other), "score": number})
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"similarity-{n}-{seed}.jsonl"
    _write(file, "".join(json.dumps(line) + "\n" for line in lines))
    columns = {"text_column": "a", "pair_column": "b", "label_column": "score"}
    return open_data(DataSpec(path=file, kind="similarity", **columns))


def reranking_rows(folder: Path, *, n: int = 10, seed: int = 0) -> Dataset:
    """n queries with four passages each, of which those with "good" are relevant."""
    rng = random.Random(seed)
    lines = ["query,passage,relevant"]
    for index in range(n):
        for place in range(4):
            relevant = place in (1, 2 + index % 2)
            passage = f"{sentence(rng, rng.randint(1, 6))} {'good' if relevant else 'bad'}"
            lines.append(f"the {index} cat,{passage},{int(relevant)}")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"reranking-{n}-{seed}.csv"
    _write(file, "\n".join(lines) + "\n")
    columns = {"text_column": "query", "pair_column": "passage", "label_column": "relevant"}
    return open_data(DataSpec(path=file, kind="reranking", **columns))


def retrieval_rows(folder: Path, *, n: int = 12, seed: int = 0) -> Dataset:
    """A BEIR folder of n queries; query i has document i, and every third one document 0 too."""
    rng = random.Random(seed)
    place = folder / f"beir-{n}-{seed}"
    (place / "qrels").mkdir(parents=True, exist_ok=True)
    texts = [sentence(rng, rng.randint(2, 9)) for _ in range(n + 3)]
    documents = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(texts)]
    queries = [{"_id": f"q{i}", "text": " ".join(texts[i].split()[:3])} for i in range(n)]
    pairs = [(i, i) for i in range(n)] + [(i, 0) for i in range(3, n, 3)]
    lines = ["query-id\tcorpus-id\tscore", *(f"q{q}\td{d}\t1" for q, d in sorted(pairs))]
    _write(place / "corpus.jsonl", "".join(json.dumps(d) + "\n" for d in documents))
    _write(place / "queries.jsonl", "".join(json.dumps(q) + "\n" for q in queries))
    _write(place / "qrels" / "dev.tsv", "\n".join(lines) + "\n")
    return open_data(DataSpec(path=place, split="dev"))


def _questions(file: Path, rng: random.Random, n: int) -> Dataset:
    articles = []
    for index in range(n):
        before = sentence(rng, rng.randint(2, 20))
        context = f"{before} good house {sentence(rng, rng.randint(1, 8))}"
        answers = [{"text": "good house", "answer_start": len(before) + 1}] if index % 3 else []
        question = {
            "id": str(index),
            "question": "the good ?",
            "answers": answers,
            "is_impossible": not answers,
        }
        articles.append(
            {"title": f"a{index % 4}", "paragraphs": [{"context": context, "qas": [question]}]}
        )
    _write(file, json.dumps({"version": "v2.0", "data": articles}))
    return open_data(DataSpec("squad2", file))


def _write(file: Path, text: str) -> None:
    """Once: a file that another process has open must not change."""
    if not file.exists():
        file.write_text(text)
