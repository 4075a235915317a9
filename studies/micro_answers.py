"""The answers' part of the embedded tasks' table: micro-squad by words, frozen, fine-tuned."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import torch
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from torch import nn
from transformers import AutoModel, AutoTokenizer

import micro_tasks_table as table
from microtome.tasks.task import Row, Task

LONGEST = 3  # words of a candidate answer


def f1(predicted: str, row: Row) -> float:
    """SQuAD's F1 of words without articles; no answer counts as the empty text."""
    golds = [answer.text for answer in row.label] or [""]
    return max(_f1(_words(predicted), _words(gold)) for gold in golds)


def _words(text: str) -> list[str]:
    return [w for w in re.findall(r"\w+", text.lower()) if w not in ("a", "an", "the")]


def _f1(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return float(predicted == gold)
    common = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * common / (len(predicted) + len(gold))


def by_words(task: Task, train: list[Row], test: list[Row]) -> float:
    """Is there an answer? By n-grams of both texts. Which? By the words in and around a span."""
    answered = [row for row in train if row.label]
    features, targets = [], []
    for row in answered:
        spans = candidates(row)
        features += [described(row, span) for span in spans]
        targets += [row.pair[span[0] : span[1]] == row.label[0].text for span in spans]
    vectorizer = DictVectorizer()
    which = LogisticRegression(max_iter=300).fit(vectorizer.fit_transform(features), targets)
    has_answer = table.predicted_by_words(
        train, test, [bool(row.label) for row in train], LogisticRegression(max_iter=2000)
    )
    scores = []
    for row, said in zip(test, has_answer, strict=True):
        spans = candidates(row)
        chances = which.decision_function(vectorizer.transform([described(row, s) for s in spans]))
        best = spans[int(np.argmax(chances))]
        scores.append(f1(row.pair[best[0] : best[1]] if said else "", row))
    return float(np.mean(scores))


def candidates(row: Row) -> list[tuple[int, int]]:
    words = [match.span() for match in re.finditer(r"\w+", row.pair)]
    ends = range(1, LONGEST + 1)
    return [
        (words[i][0], words[i + n - 1][1])
        for i in range(len(words))
        for n in ends
        if i + n <= len(words)
    ]


def described(row: Row, span: tuple[int, int]) -> dict[str, float]:
    asked = re.findall(r"\w+", row.text.lower())
    inside = re.findall(r"\w+", row.pair[span[0] : span[1]].lower())
    left = (re.findall(r"\w+", row.pair[: span[0]].lower()) or ["<"])[-1]
    right = (re.findall(r"\w+", row.pair[span[1] :].lower()) or [">"])[0]
    wh = asked[0]
    names = [f"{wh} inside {w}" for w in inside] + [f"{wh} left {left}", f"{wh} right {right}"]
    names += [f"{wh} length {len(inside)}", f"starts the {inside[0] == 'the'} {len(inside)}"]
    found = dict.fromkeys(names, 1.0)
    found["words of the question"] = sum(w in asked for w in inside)
    found["left in the question"] = float(left in asked)
    found["right in the question"] = float(right in asked)
    return found


def frozen(folder, task: Task, train: list[Row], test: list[Row]) -> dict[str, float]:
    """A linear layer for first and last piece on the cached states of the frozen encoder."""
    return {"cls": _fit(folder, train, test, epochs=30, rate=1e-2, train_encoder=False)}


def tuned(
    folder, task: Task, train: list[Row], test: list[Row], *, epochs: int, rate: float
) -> float:
    return _fit(folder, train, test, epochs=epochs, rate=rate, train_encoder=True)


def _fit(folder, train: list[Row], test: list[Row], *, epochs, rate, train_encoder) -> float:
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    encoder = AutoModel.from_pretrained(str(folder)).float()
    head = nn.Linear(encoder.config.hidden_size, 2)
    places = torch.tensor([_places(tokenizer, row) for row in train])
    encoded = table.encode(tokenizer, train)
    cached = None if train_encoder else [s.numpy() for s in _states(encoder, tokenizer, train)]

    def states_of(chosen, batch) -> torch.Tensor:
        if cached is None:
            return encoder(**batch).last_hidden_state
        length = batch["input_ids"].shape[1]
        padded = np.zeros((len(chosen), length, head.in_features), np.float32)
        for place, row in enumerate(chosen):
            padded[place, : len(cached[row])] = cached[row]
        return torch.from_numpy(padded)

    def loss_of(chosen, batch) -> torch.Tensor:
        logits = _masked(head(states_of(chosen, batch)), batch)
        losses = [nn.functional.cross_entropy(logits[..., k], places[chosen, k]) for k in (0, 1)]
        return sum(losses) / 2

    if not train_encoder:
        encoder.requires_grad_(requires_grad=False)
    table.fit(encoder, head, tokenizer, encoded, loss_of, epochs=epochs, rate=rate)
    encoder.eval()
    states = _states(encoder, tokenizer, test)
    return float(
        np.mean(
            [f1(_answer(tokenizer, row, head(s)), row) for row, s in zip(test, states, strict=True)]
        )
    )


def _masked(logits: torch.Tensor, batch) -> torch.Tensor:
    return logits.masked_fill(batch["attention_mask"].unsqueeze(-1) == 0, -1e4)


def _places(tokenizer, row: Row) -> tuple[int, int]:
    """First and last piece of the answer; [CLS] where there is none."""
    if not row.label:
        return 0, 0
    answer = row.label[0]
    encoded = tokenizer(row.text, row.pair)
    stop = answer.start + len(answer.text) - 1
    first, last = (encoded.char_to_token(at, sequence_index=1) for at in (answer.start, stop))
    return first, last


@torch.no_grad()
def _states(encoder, tokenizer, rows: list[Row]) -> list[torch.Tensor]:
    encoder.eval()
    encoded = table.encode(tokenizer, rows)
    found: list[torch.Tensor] = []
    for _, batch in table.batches(encoded, tokenizer, np.arange(len(rows)), 64):
        states = encoder(**batch).last_hidden_state
        found += [
            s[:n] for s, n in zip(states, batch["attention_mask"].sum(1).tolist(), strict=True)
        ]
    return found


def _answer(tokenizer, row: Row, logits: torch.Tensor) -> str:
    encoded = tokenizer(row.text, row.pair, return_offsets_mapping=True)
    inside = [i for i, side in enumerate(encoded.sequence_ids()) if side == 1]
    start, stop = logits[:, 0].tolist(), logits[:, 1].tolist()
    spans = [(start[i] + stop[j], i, j) for i in inside for j in inside if i <= j < i + 8]
    best, first, last = max(spans)
    if start[0] + stop[0] >= best:
        return ""
    offsets = encoded["offset_mapping"]
    return row.pair[offsets[first][0] : offsets[last][1]]
