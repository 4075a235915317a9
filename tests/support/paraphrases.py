"""A tiny classifier on MRPC's native files (`from support.paraphrases import tiny_mrpc`)."""

from __future__ import annotations

import numpy as np
import torch

from microtome import load
from support.labelled_texts import sentences
from support.tiny import save_tiny, tiny_tokenizer

N_DEV, N_TEST = 48, 36


def pairs_of(n, start=0):
    texts = sentences(start + n + 1)
    return list(zip(texts[start : start + n], texts[start + 1 :], strict=True))


def encoded(pair):
    """A pair with its segments: 0 up to the first [SEP], 1 from there on."""
    tokenizer = tiny_tokenizer("bert")
    batch = tokenizer(*pair, return_tensors="pt")
    is_end = (batch["input_ids"] == tokenizer.sep_token_id).long()
    return {**batch, "token_type_ids": (is_end.cumsum(1) - is_end > 0).long()}


def logits_of(model, pairs):
    with torch.no_grad():
        logits = [model(**encoded(pair)).logits[0].numpy() for pair in pairs]
    return np.array(logits, dtype=float)


def answers_of(model, pairs):
    return logits_of(model, pairs).argmax(1)


def mostly(answers):
    """Labels that are the model's own answers, but for every fourth."""
    return np.array([a if i % 4 else 1 - a for i, a in enumerate(answers)])


def write_mrpc(file, pairs, labels):
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    lines = [
        f"{label}\t1\t2\t{one}\t{other}" for (one, other), label in zip(pairs, labels, strict=True)
    ]
    file.write_text("\n".join([head, *lines]) + "\n")


def tiny_mrpc(root):
    """A tiny classifier of pairs, and MRPC's native files with labels that it mostly gives."""
    names = ("not_equivalent", "equivalent")
    folder = save_tiny(
        root / "model", "bert", "classification", with_tokenizer=True,
        id2label=dict(enumerate(names)), label2id={name: i for i, name in enumerate(names)},
    )  # fmt: skip
    model, data = load(folder), root / "MRPC"
    data.mkdir()
    dev, test = pairs_of(N_DEV), pairs_of(N_TEST, start=N_DEV)
    rows = {"dev": dev, "test": test}
    labels = {split: mostly(answers_of(model, pairs)) for split, pairs in rows.items()}
    write_mrpc(data / "train.tsv", dev, labels["dev"])
    write_mrpc(data / "dev.tsv", dev, labels["dev"])
    write_mrpc(data / "msr_paraphrase_test.txt", test, labels["test"])
    return folder, data, rows, labels
