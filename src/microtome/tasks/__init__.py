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
    from microtome.tasks.dataset import Dataset, as_kind
    from microtome.tasks.encoding.cache import cache_folder, cache_size, clear_cache
    from microtome.tasks.encoding.tagged import TaggedTexts, encode_tagged
    from microtome.tasks.encoding.texts import Encoded, TextPairs, encode
    from microtome.tasks.encoding.windows import Windows, encode_windows
    from microtome.tasks.reading.opening import open_data, open_training
    from microtome.tasks.scoring.answers import normalise, score_answer
    from microtome.tasks.scoring.constant import constant_answer, gives_one_answer
    from microtome.tasks.scoring.evaluation import (
        Evaluation,
        evaluate_answers,
        evaluate_choices,
        evaluate_embeddings,
        evaluate_logits,
        evaluate_spans,
        evaluate_tags,
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
    "as_kind": "dataset",
    "TaggedTexts": "encoding.tagged",
    "encode_tagged": "encoding.tagged",
    "TextPairs": "encoding.texts",
    "constant_answer": "scoring.constant",
    "gives_one_answer": "scoring.constant",
    "Encoded": "encoding.texts",
    "encode": "encoding.texts",
    "Evaluation": "scoring.evaluation",
    "evaluate_answers": "scoring.evaluation",
    "evaluate_choices": "scoring.evaluation",
    "evaluate_embeddings": "scoring.evaluation",
    "evaluate_logits": "scoring.evaluation",
    "evaluate_spans": "scoring.evaluation",
    "evaluate_tags": "scoring.evaluation",
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
    "TaggedTexts",
    "Task",
    "TextPairs",
    "Windows",
    "all_tasks",
    "as_kind",
    "best_spans",
    "cache_folder",
    "cache_size",
    "clear_cache",
    "constant_answer",
    "describe",
    "encode",
    "encode_tagged",
    "encode_windows",
    "evaluate_answers",
    "evaluate_choices",
    "evaluate_embeddings",
    "evaluate_logits",
    "evaluate_spans",
    "evaluate_tags",
    "find_split",
    "find_task",
    "gives_one_answer",
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
