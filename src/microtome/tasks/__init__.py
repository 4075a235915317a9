"""What models are measured on: tasks, their rows, encodings, metrics and scores.

The catalogue is imported at once and needs nothing heavy; everything else when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from microtome.tasks.catalogue import all_tasks, describe, find_split, find_task
from microtome.tasks.task import Answer, Columns, Recipe, Row, Split, Task

if TYPE_CHECKING:
    from microtome.tasks.answers import normalise, score_answer
    from microtome.tasks.cache import cache_folder, cache_size, clear_cache
    from microtome.tasks.dataset import Dataset
    from microtome.tasks.encoding import Encoded, encode
    from microtome.tasks.evaluation import (
        Evaluation,
        evaluate_answers,
        evaluate_choices,
        evaluate_logits,
        evaluate_spans,
    )
    from microtome.tasks.labels import label_map
    from microtome.tasks.metrics import METRICS, metric_of, value
    from microtome.tasks.opening import Request, open_data, open_training
    from microtome.tasks.scores import Scores, score
    from microtome.tasks.spans import Span, SpanChoice, best_spans
    from microtome.tasks.windows import Windows, encode_windows

_LATER = {
    "normalise": "answers",
    "score_answer": "answers",
    "cache_folder": "cache",
    "cache_size": "cache",
    "clear_cache": "cache",
    "Dataset": "dataset",
    "Encoded": "encoding",
    "encode": "encoding",
    "Evaluation": "evaluation",
    "evaluate_answers": "evaluation",
    "evaluate_choices": "evaluation",
    "evaluate_logits": "evaluation",
    "evaluate_spans": "evaluation",
    "label_map": "labels",
    "METRICS": "metrics",
    "metric_of": "metrics",
    "value": "metrics",
    "Request": "opening",
    "open_data": "opening",
    "open_training": "opening",
    "Scores": "scores",
    "score": "scores",
    "Span": "spans",
    "SpanChoice": "spans",
    "best_spans": "spans",
    "Windows": "windows",
    "encode_windows": "windows",
}

__all__ = [
    "METRICS",
    "Answer",
    "Columns",
    "Dataset",
    "Encoded",
    "Evaluation",
    "Recipe",
    "Request",
    "Row",
    "Scores",
    "Span",
    "SpanChoice",
    "Split",
    "Task",
    "Windows",
    "all_tasks",
    "best_spans",
    "cache_folder",
    "cache_size",
    "clear_cache",
    "describe",
    "encode",
    "encode_windows",
    "evaluate_answers",
    "evaluate_choices",
    "evaluate_logits",
    "evaluate_spans",
    "find_split",
    "find_task",
    "label_map",
    "metric_of",
    "normalise",
    "open_data",
    "open_training",
    "score",
    "score_answer",
    "value",
]


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(importlib.import_module(f"microtome.tasks.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
