"""Frame relations (Kovaleva et al. 2019, "Relation-specific heads in BERT", and Discussion).

Exemplars of FrameNet with at most 12 words, elements of at most 3, and at least two words between
predicate and element. Per head, the largest attention weight between the pieces of the predicate
and those of its core elements, averaged over sentences. The paper finds 2 of 144 heads that stand
out, and that disabling either costs nothing on any GLUE task. Controls: the link moved elsewhere in
the sentence at the same signed offset, the same keys from other queries (a stripe), and as many
random pairs under the maximum. Whether a head follows links is tested by moving them at random,
corrected for looking at all heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import DATA, MODEL, Subject, file_input
from microtome.experiments.kovaleva.frame_relations.exemplars import (
    EMBEDDED,
    SPLIT,
    read_exemplars,
)
from microtome.runs import Trial
from microtome.tasks.reading.embedded import embedded_file

SECTION = "Kovaleva et al. 2019, Relation-specific heads in BERT"
QUESTION = "Do heads link a predicate with what fills its frame?"
COLUMNS = (
    "direction", "layer", "head", "score", "low", "high", "n", "control", "stripe_control",
    "count_control", "p", "p_max", "delta",
)  # fmt: skip
NEEDS_ROWS = False
FRAMES = "frames"
OPTIONS = (Option(FRAMES, None, "FrameNet's folder or the published list; else embedded", "path"),)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass over the exemplars; heads that follow links are disabled where there is a task."""
    inputs = {}
    if settings[FRAMES]:
        next(read_exemplars(Path(settings[FRAMES])), None)  # what can't be read is refused now
        inputs[FRAMES] = file_input(settings[FRAMES])
    else:
        inputs |= {task: file_input(embedded_file(task, SPLIT)) for task in EMBEDDED}
    disables = subject.has_task_head and subject.opened is not None
    trial = subject.trial(
        "frame-relations.score_links", {"disable": disables}, inputs=inputs,
        label="attention on frame elements", reads=(MODEL, DATA) if disables else (MODEL,),
    )  # fmt: skip
    return [trial]
