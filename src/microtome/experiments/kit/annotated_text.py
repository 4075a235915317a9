"""Which annotated text a trial reads: a treebank, the embedded annotation, or a tagger's.

Planning chooses (:func:`chosen_text`), and a trial opens what was chosen (:func:`opened_passages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import DATA, MODEL, Subject, TrialInput, file_input
from microtome.tasks.annotation.passages import (
    Passage,
    cut_into_words,
    gold_passages,
    tagged_passages,
    treebank_passages,
)
from microtome.tasks.annotation.taggers import load_tagger
from microtome.tasks.annotation.treebanks import read_conllu
from microtome.tasks.dataset import Dataset
from microtome.tasks.reading.embedded import embedded_file

TREEBANK, ANNOTATION = "treebank", "annotation"  # inputs of trials
OPTIONS = (
    Option(TREEBANK, None, "annotated text: a CoNLL-U file", "path"),
    Option("tagger", None, "a spaCy model that annotates the task's own text"),
)


def chosen_text(
    subject: Subject, settings: Mapping[str, Any], *, words_suffice: bool = False
) -> tuple[dict[str, Any], dict[str, TrialInput]]:
    """Where annotated text comes from, as a trial's request and its further files.

    ``words_suffice``: a task's text without any annotation is taken too, cut into words.
    """
    treebank, tagger = settings[TREEBANK], settings["tagger"]
    if treebank and tagger:
        raise RequestError("expected --treebank or --tagger, got both")
    if treebank:
        read_conllu(treebank)  # a broken file is refused before anything runs
        return {"text": TREEBANK}, {TREEBANK: file_input(treebank)}
    if subject.opened is None:
        raise RequestError(
            "no annotated text is named",
            "name it: --treebank FILE.conllu, or an embedded task, or --task with --tagger NAME",
        )
    if tagger:
        version = getattr(load_tagger(tagger), "version", None)
        return {"text": "tagger", "tagger": tagger, "tagger_version": version}, {}
    if subject.opened.task.embedded:
        annotation = embedded_file(subject.task, subject.opened.split)
        return {"text": "gold"}, {ANNOTATION: file_input(annotation)}
    if words_suffice:
        return {"text": "words"}, {}
    raise RequestError(
        f"the text of {subject.task} has no annotation",
        "give --treebank FILE.conllu, or --tagger NAME, or take an embedded task",
    )


def read_parts(text: Mapping[str, Any]) -> tuple[str, ...]:
    """What of the subject a trial with this text opens: a treebank takes the place of rows."""
    return (MODEL,) if text["text"] == TREEBANK else (MODEL, DATA)


def sample_passages(subject: Subject, text: Mapping[str, Any], path: Path | None) -> list[Passage]:
    """Enough passages to tell, when trials are planned, what the annotation holds."""
    if path is not None:
        return treebank_passages(path)
    passages = _passages_of(text, subject.dataset)
    return list(passages if text["text"] == "gold" else islice(passages, 1))


def opened_passages(
    request: Mapping[str, Any], *, treebank: Path | None, dataset: Dataset | None
) -> list[Passage]:
    """The passages that a trial's request speaks of: a treebank's, or those of a data set."""
    if request["text"] == TREEBANK:
        assert treebank is not None
        rows = request["rows"]
        return treebank_passages(treebank, limit=rows.get("limit"), seed=rows.get("seed", 0))
    assert dataset is not None
    return list(_passages_of(request, dataset))


def _passages_of(text: Mapping[str, Any], dataset: Dataset) -> Iterable[Passage]:
    if text["text"] == "gold":
        return gold_passages(dataset)
    tagger = load_tagger(text["tagger"]) if text["text"] == "tagger" else cut_into_words
    return tagged_passages(dataset, tagger)
