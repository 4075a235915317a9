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
