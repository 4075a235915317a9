"""Attention to linguistic features (Kovaleva et al. 2019, "Attention to linguistic features").

Per head, what nouns, verbs, pronouns, subjects, objects, negations, [CLS] and [SEP] receive from
all tokens, divided by the length; of several of a kind the maximum; averaged over the texts that
have one. The paper finds nearly all of it on [CLS] (early layers) and [SEP] (late), and increases
for nouns, objects and negations that are negligible compared with those. Uniform attention is 1/L
and a maximum grows with the number of candidates: so the value times L is given too, and as a
control the expected maximum of as many tokens drawn at random from the same text. Whether a head
is beyond it is tested by drawing such tokens, corrected for looking at all heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit import annotated_text, arms
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject, model_input
from microtome.runs import Trial
from microtome.tasks.annotation.features import parse_features

SECTION = "Kovaleva et al. 2019, Attention to linguistic features"
QUESTION = "Which kinds of words does a head attend to?"
COLUMNS = (
    "checkpoint", "feature", "layer", "head", "attention", "low", "high", "n", "times_length",
    "control", "excess", "p_maxt", "change", "p_change",
)  # fmt: skip
NEEDS_ROWS = False
BASE = "base"
MODES = ("paper", "word")
OPTIONS = (
    *annotated_text.OPTIONS,
    Option("features", [], "more features: name=EXPR, over upos, deprel, lemma", "words"),
    Option("mode", "paper", "paper: a piece is a token; word: pieces are put together"),
    Option(BASE, None, "the pre-trained model, for difference maps", "model"),
    arms.FINETUNE,
    *arms.OPTIONS,
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass per checkpoint over the annotated text; a fine-tuning before it on request."""
    if settings["mode"] not in MODES:
        raise RequestError(f"--mode must be paper or word, got {settings['mode']}")
    parse_features(settings["features"])
    text, inputs = annotated_text.chosen_text(subject, settings)
    needs = arms.fine_tuned_first(subject, settings)
    if settings[BASE]:
        inputs[BASE] = model_input(settings[BASE])
    request = {
        **text, "mode": settings["mode"], "features": settings["features"],
        "checkpoint": "finetuned" if subject.has_task_head or needs else "pretrained",
    }  # fmt: skip
    trial = subject.trial(
        "linguistic-features.score_features", request, needs=needs, inputs=inputs,
        label="attention to features", reads=annotated_text.read_parts(text),
    )  # fmt: skip
    return [*needs, trial]
