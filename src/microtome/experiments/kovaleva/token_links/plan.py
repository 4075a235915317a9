"""Token-to-token attention (Kovaleva et al. 2019, "Token-to-token attention", and Discussion).

Per head, the attention between a verb and its subject, a noun and its pronoun, and a word that both
texts of a pair have, in both directions: the largest weight among their pieces, averaged over the
links of a text, then over texts. The paper finds candidates that coincide with diagonal heads; so
the control is the same link moved elsewhere in the text, with the same signed offsets, where no
such link is: a head that goes by position has the control's weight. Whether a head follows links is
tested by moving them at random, corrected for looking at all heads. Also given: the same keys from
other queries (a stripe), how diagonal the head is, and what [CLS] attends to in the last layer
([SEP] most on most tasks, the paper reports, punctuation on STS-B, RTE and QNLI).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.experiments.kit import annotated_text, arms
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject
from microtome.runs import Trial
from microtome.tasks.annotation.links import SIDES, chosen_links

SECTION = "Kovaleva et al. 2019, Token-to-token attention"
QUESTION = "Do heads follow links between words, or only their distance?"
COLUMNS = (
    "link", "direction", "layer", "head", "attention", "low", "high", "n", "control",
    "stripe_control", "excess", "p_maxt", "diagonal", "feature",
)  # fmt: skip
NEEDS_ROWS = False
OPTIONS = (
    *annotated_text.OPTIONS,
    Option("links", [], f"of {', '.join(SIDES)}; all that the text allows", "words"),
    arms.FINETUNE,
    *arms.OPTIONS,
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass over the annotated text; a fine-tuning before it on request."""
    text, inputs = annotated_text.chosen_text(subject, settings, words_suffice=True)
    if settings["links"]:  # links that the text can't have are refused before anything runs
        treebank = inputs.get(annotated_text.TREEBANK)
        path = None if treebank is None else treebank.path
        chosen_links(annotated_text.sample_passages(subject, text, path), settings["links"])
    needs = arms.fine_tuned_first(subject, settings)
    trial = subject.trial(
        "token-links.score_links", {**text, "links": settings["links"]}, needs=needs,
        inputs=inputs, label="attention on links", reads=annotated_text.read_parts(text),
    )  # fmt: skip
    return [*needs, trial]
