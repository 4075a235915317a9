"""Tiny models that are good at their rows, whatever the job.

A random model knows nothing, and of a model that knows nothing no cut is recommended: so the labels
are the model's answers, as plain transformers gives them.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import torch
from transformers import AutoModelForMaskedLM

from support.labelled_texts import sentences, write_rows
from support.tiny import AUTO_CLASSES
from support.training_rows import reranking_rows, rows, similarity_rows, tokenizer_for
from support.trimming.lessons import TAGS, model_for, write_texts

FAMILIES = {"classification": "bert", "tokens": "roberta", "reranking": "albert", "spans": "bert"}
FAMILIES |= {"similarity": "bert", "mlm": "modernbert"}
N_TRAIN, N_DEV = 72, 40


def case(job: str, root: Path, **config: object) -> tuple[Path, list[str]]:
    """A checkpoint and the options that name its data."""
    root.mkdir(parents=True, exist_ok=True)
    family = FAMILIES[job]
    kind = "mlm-text" if job == "mlm" else job
    model = model_for(kind, root / "model", family, **config)
    make = {"classification": _classified, "tokens": _tagged, "reranking": _ranked}
    make |= {"spans": _asked, "similarity": _paired, "mlm": _hidden}
    return model, [str(option) for option in make[job](model, family, root)]


@torch.no_grad()
def _logits(model: Path, head: str, family: str, texts: list) -> list[torch.Tensor]:
    plain = AUTO_CLASSES[head].from_pretrained(model, dtype=torch.float32).eval()
    tokenizer = tokenizer_for(family)
    return [plain(**tokenizer(*text, return_tensors="pt")).logits[0] for text in texts]


def _texts() -> list[str]:
    """To heal on, then to measure: none is both, for such texts would be left out."""
    texts = sentences(N_TRAIN + N_DEV)
    return [*texts[:N_TRAIN], *(f"{text} old old" for text in texts[N_TRAIN:])]


def _classified(model: Path, family: str, root: Path) -> list[object]:
    texts = _texts()
    inputs = [(text,) for text in texts]
    first = torch.stack(_logits(model, "classification", family, inputs))
    plain = AUTO_CLASSES["classification"].from_pretrained(model, dtype="auto")
    # Answers in equal shares, so that no constant one is good.
    plain.classifier.bias.data[1] -= (first[:, 1] - first[:, 0]).median().to(plain.dtype)
    plain.save_pretrained(model)
    logits = torch.stack(_logits(model, "classification", family, inputs))
    labels = logits.argmax(1).tolist()
    labels = [1 - label if i % 9 == 0 else label for i, label in enumerate(labels)]
    train = write_rows(root / "train.csv", texts[:N_TRAIN], labels[:N_TRAIN])
    dev = write_rows(root / "dev.csv", texts[N_TRAIN:], labels[N_TRAIN:])
    return ["--data", train, "--dev-data", dev]


def _tagged(model: Path, family: str, root: Path) -> list[object]:
    blocks = []
    texts = _texts()  # every word is one piece
    for text, found in zip(
        texts, _logits(model, "token-classification", family, [(t,) for t in texts]), strict=True
    ):
        tags = [TAGS[tag] for tag in found[1:-1].argmax(1).tolist()]
        pairs = zip(text.split(), tags, strict=True)
        blocks.append("".join(f"{word} {tag}\n" for word, tag in pairs))
    (root / "train.conll").write_text("\n".join(blocks[:N_TRAIN]))
    (root / "dev.conll").write_text("\n".join(blocks[N_TRAIN:]))
    return ["--data", root / "train.conll", "--dev-data", root / "dev.conll"]


def _ranked(model: Path, family: str, root: Path) -> list[object]:
    options: list[object] = []
    for option, seed, n in (("--data", 0, N_TRAIN // 4), ("--dev-data", 1, N_DEV // 4)):
        pairs = [(row.text, row.pair) for row in reranking_rows(root, n=n, seed=seed).rows()]
        scores = torch.cat(_logits(model, "classification", family, pairs)).tolist()
        lines = [("query", "passage", "relevant")]
        for start in range(0, len(pairs), 4):
            best = max(range(start, start + 4), key=lambda place: scores[place])
            lines += [(*pairs[i], str(int(i == best))) for i in range(start, start + 4)]
        file = root / f"ranked-{seed}.csv"
        with file.open("w", newline="") as stream:
            csv.writer(stream).writerows(lines)
        options += [option, file]
    columns = ["--text-column", "query", "--pair-column", "passage", "--label-column", "relevant"]
    return [*options, *columns, "--kind", "reranking"]


def _asked(model: Path, family: str, root: Path) -> list[object]:
    """Questions that all have an answer: one constant answer, none, is never right."""
    for split, n, seed in (("train", N_TRAIN, 0), ("dev", N_DEV, 1)):
        rows(root, "spans", n=3 * n // 2, seed=seed)
        document = json.loads((root / f"span-{3 * n // 2}-{seed}.json").read_text())
        document["data"] = [
            article for article in document["data"] if article["paragraphs"][0]["qas"][0]["answers"]
        ]
        (root / "squad").mkdir(exist_ok=True)
        (root / "squad" / f"{split}-v2.0.json").write_text(json.dumps(document))
    return ["--task", "squad2", "--data", root / "squad"]


def _paired(model: Path, family: str, root: Path) -> list[object]:
    similarity_rows(root, n=N_DEV)
    columns = ["--text-column", "a", "--pair-column", "b", "--label-column", "score"]
    texts = write_texts(root / "texts.txt", N_TRAIN)
    return ["--data", root / f"similarity-{N_DEV}-0.jsonl", *columns, "--text", texts]


def _hidden(model: Path, family: str, root: Path) -> list[object]:
    """Texts of one word again and again, which the model learns to go on with."""
    words = ("cat", "river", "red", "sings", "old")
    texts = [" ".join([words[i % 5]] * (4 + i // 5 % 4)) + " ." * (i // 20) for i in range(80)]
    plain = AutoModelForMaskedLM.from_pretrained(model)
    tokenizer = tokenizer_for(family)
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    batch.pop("token_type_ids", None)
    gold = batch["input_ids"].clone()
    batch["input_ids"][:, 2] = tokenizer.mask_token_id
    optimizer = torch.optim.AdamW(plain.parameters(), lr=3e-3)
    for _ in range(30):
        loss = torch.nn.functional.cross_entropy(plain(**batch).logits[:, 2], gold[:, 2])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    plain.save_pretrained(model)
    (root / "dev.txt").write_text("\n".join(texts[:N_DEV]) + "\n")
    longer = [" ".join([text.split()[0]] * (8 + i % 4)) for i, text in enumerate(texts)]
    (root / "more.txt").write_text("\n".join(longer) + "\n")
    return ["--data", root / "dev.txt", "--kind", "text", "--text", root / "more.txt"]
