"""Layer similarity: which depths have alike states, and which layers change them little.

Linear CKA (Kornblith et al. 2019), debiased and by batches (Nguyen et al. 2021), between all depths
of a model, and with the depths of another model or of an edited copy. Block influence is 1 − the
cosine of a layer's input and output (Men et al. 2024), the angular distance arccos(cosine) / π
between any two depths (Gromov et al. 2024). Both are means over tokens, with an interval over
texts; they were made to choose layers to cut: ``predictors`` tells whether they choose well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microtome.edits import Vocabulary, parse
from microtome.edits.depth import DepthEdit, new_order
from microtome.errors import RequestError
from microtome.experiments.kit import arms
from microtome.experiments.kit.layers import Layers, layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject, TrialInput, model_input
from microtome.models.contents import tokenizer_hash
from microtome.models.source import short_name
from microtome.runs import Trial

SECTION = "Not of the papers: CKA, block influence, angular distance"
QUESTION = "Which depths have alike states, and which layers change them little?"
COLUMNS = ("measure", "other", "layer", "depth", "other_depth", "value", "low", "high", "n")
OTHER, OTHER_TOKENIZER = "other", "other_tokenizer"
UNITS = ("text", "token")
OPTIONS = (
    Option(OTHER, None, "a second model, whose depths are compared with the model's", "model"),
    Option("edit", None, "an edit: the depths of the edited model are compared with the model's"),
    Option("unit", "text", "text: the mean of its tokens' states; token: one token of each text"),
    arms.FINETUNE,
    *arms.OPTIONS,
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass over the rows; a fine-tuning before it on request."""
    if settings["unit"] not in UNITS:
        raise RequestError(f"--unit must be {' or '.join(UNITS)}, got {settings['unit']!r}")
    if settings[OTHER] and settings["edit"]:
        raise RequestError(
            "expected --other or --edit, got both", "save the edited model first: microtome operate"
        )
    needs = arms.fine_tuned_first(subject, settings)
    trial = similarity_trial(
        subject, needs, unit=settings["unit"], other=settings[OTHER], edit=settings["edit"]
    )
    return [*needs, trial]


def similarity_trial(
    subject: Subject,
    needs: tuple[Trial, ...],
    *,
    unit: str = "text",
    other: str | None = None,
    edit: str | None = None,
) -> Trial:
    """The trial that compares the depths; ``needs`` may hold the fine-tuning of the model."""
    layers = layers_of(subject.model_path)
    request = {"unit": unit, "edit": _checked(edit, layers) if edit else ""}
    n_models = 2 if other or edit else 1
    trial = subject.trial(
        "layer-similarity.compare_depths", request, needs=needs,
        inputs=_other_model(subject, other, unit) if other else {},
        label="compare the states of all depths", work=n_models * layers.count,
    )  # fmt: skip
    # A name is no content: it is in the rows, not in the hash.
    compared_with = short_name(other) if other else request["edit"] or None
    return replace(trial, columns={**trial.columns, OTHER: compared_with})


def _other_model(subject: Subject, name: str, unit: str) -> dict[str, TrialInput]:
    """The second model and its tokenizer, which may be another: texts are compared, not tokens."""
    model = model_input(name)
    tokenizer = TrialInput(model.path, tokenizer_hash(model.path))
    if unit == "token" and tokenizer.hash != subject.tokenizer_hash:
        raise RequestError(
            f"--unit token needs models with the same tokens, and {name} has another tokenizer",
            "take --unit text",
        )
    return {OTHER: model, OTHER_TOKENIZER: tokenizer}


def _checked(edit: str, layers: Layers) -> str:
    """The edit in its canonical text; one that the layers can't take is refused."""
    steps, n_layers = parse(edit), layers.count
    for step in steps:
        if isinstance(step, Vocabulary):
            raise RequestError("--edit takes edits of layers and heads, got vocabulary(…)")
        if not isinstance(step, DepthEdit):
            break  # what is possible after it is known once the model is loaded
        n_layers = len(new_order(step, n_layers, layers.rules))
    return steps.text
