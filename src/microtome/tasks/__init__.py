"""What models are measured on: tasks, their rows, encodings, metrics and scores.

The catalogue is imported at once and needs nothing heavy; everything else when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from microtome.tasks.catalogue import all_tasks, describe, find_split, find_task
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.task import Answer, Columns, Hyperparameters, Row, Split, Task

if TYPE_CHECKING:
    from microtome.tasks.dataset import Dataset
    from microtome.tasks.encoding.cache import cache_folder, cache_size, clear_cache
    from microtome.tasks.encoding.texts import Encoded, encode
    from microtome.tasks.encoding.windows import Windows, encode_windows
    from microtome.tasks.reading.opening import open_data, open_training
    from microtome.tasks.scoring.answers import normalise, score_answer
    from microtome.tasks.scoring.evaluation import (
        Evaluation,
        evaluate_answers,
        evaluate_choices,
        evaluate_logits,
        evaluate_spans,
    )
    from microtome.tasks.scoring.labels import label_map
    from microtome.tasks.scoring.metrics import METRICS, metric_of, value
    from microtome.tasks.scoring.scores import Scores, score
    from microtome.tasks.scoring.spans import Span, SpanChoice, best_spans

_LATER = {
    "normalise": "scoring.answers",
    "score_answer": "scoring.answers",
    "cache_folder": "encoding.cache",
    "cache_size": "encoding.cache",
    "clear_cache": "encoding.cache",
    "Dataset": "dataset",
    "Encoded": "encoding.texts",
    "encode": "encoding.texts",
    "Evaluation": "scoring.evaluation",
    "evaluate_answers": "scoring.evaluation",
    "evaluate_choices": "scoring.evaluation",
    "evaluate_logits": "scoring.evaluation",
    "evaluate_spans": "scoring.evaluation",
    "label_map": "scoring.labels",
    "METRICS": "scoring.metrics",
    "metric_of": "scoring.metrics",
    "value": "scoring.metrics",
    "open_data": "reading.opening",
    "open_training": "reading.opening",
    "Scores": "scoring.scores",
    "score": "scoring.scores",
    "Span": "scoring.spans",
    "SpanChoice": "scoring.spans",
    "best_spans": "scoring.spans",
    "Windows": "encoding.windows",
    "encode_windows": "encoding.windows",
}

__all__ = [
    "METRICS",
    "Answer",
    "Columns",
    "DataSpec",
    "Dataset",
    "Encoded",
    "Evaluation",
    "Hyperparameters",
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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
