"""Models of every job with rows to heal them on.

A job is what the model does, by which rows: ``reranking-2`` has two logits, ``…-text`` plain texts.
"""

from __future__ import annotations

from pathlib import Path

from microtome import load
from microtome.models.tokenizers import load_tokenizer
from microtome.tasks import Dataset, DataSpec, open_data
from microtome.training.distil.texts import LessonTexts
from support.labelled_texts import sentences
from support.sentence_folders import sentence_folder
from support.training_rows import (
    checkpoint,
    multilabel_rows,
    reranking_rows,
    retrieval_rows,
    rows,
    similarity_rows,
    tagged_rows,
)

TAGS = ("O", "B-FAULT", "B-QUALITY", "I-QUALITY")
SEVERAL = "multi_label_classification"
MODELS: dict[str, tuple[str, dict[str, object]]] = {
    "classification": ("classification", {"id2label": {0: "no", 1: "yes"}}),
    "pair": ("classification", {"id2label": {0: "no", 1: "yes"}}),
    "classification-text": ("classification", {"id2label": {0: "no", 1: "yes"}}),
    "regression": ("classification", {"id2label": {0: "score"}, "problem_type": "regression"}),
    "multilabel": (
        "classification",
        {"id2label": {0: "good", 1: "bad", 2: "red"}, "problem_type": SEVERAL},
    ),
    "tokens": ("token-classification", {"id2label": dict(enumerate(TAGS))}),
    "tokens-text": ("token-classification", {"id2label": dict(enumerate(TAGS))}),
    "spans": ("question-answering", {}),
    "reranking": ("classification", {"id2label": {0: "relevant"}}),
    "reranking-2": ("classification", {"id2label": {0: "no", 1: "yes"}}),
    "mlm-text": ("mlm", {}),
    "similarity": ("embedder", {}),
    "retrieval": ("embedder", {}),
    "embedding-text": ("embedder", {}),
}
JOBS = tuple(MODELS)
ANSWERS = {
    "regression": "number", "multilabel": "labels", "tokens": "tags", "tokens-text": "tags",
    "spans": "span", "reranking": "labels", "mlm-text": "hidden token", "similarity": "embedding",
    "retrieval": "embedding", "embedding-text": "embedding",
}  # fmt: skip
"""How models of a job answer; a choice where it isn't here."""


def model_for(job: str, folder: Path, family: str = "bert", **config: object) -> Path:
    """A tiny checkpoint that does the job."""
    head, settings = MODELS[job]
    if head == "embedder":
        return sentence_folder(folder, family)
    labels = settings.get("id2label", {})
    own = {"label2id": {name: i for i, name in labels.items()}} if labels else {}
    return checkpoint(folder, family, head, **settings, **own, **config)


def rows_for(job: str, folder: Path, *, n: int = 24, seed: int = 0) -> Dataset:
    """Rows for the job, of many lengths; a reranker's are queries with four passages each."""
    if job.endswith("-text"):
        return open_data(DataSpec(path=write_texts(folder / f"texts-{n}.txt", n), kind="text"))
    if job in ("classification", "pair", "regression", "spans"):
        return rows(folder, "single" if job == "classification" else job, n=n, seed=seed)
    if job.startswith("reranking"):
        return reranking_rows(folder, n=n // 4, seed=seed)
    make = {"multilabel": multilabel_rows, "tokens": tagged_rows}
    make |= {"similarity": similarity_rows, "retrieval": retrieval_rows}
    return make[job](folder, n=n, seed=seed)


def write_texts(file: Path, n: int) -> Path:
    """Different texts, one per line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(dict.fromkeys(sentences(n))) + "\n")
    return file


def lesson_texts(job: str, folder: Path, family: str = "bert", *, n: int = 24) -> LessonTexts:
    """A tiny model with rows to heal it on."""
    place = model_for(job, folder / "model", family)
    tokenizer = load_tokenizer(place)
    assert tokenizer is not None
    return LessonTexts(load(place), tokenizer, rows_for(job, folder, n=n))
