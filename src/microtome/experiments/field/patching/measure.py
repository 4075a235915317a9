"""The trial of patching: pairs from a file or made by swaps, every position at every depth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from microtome.experiments.field.patching.pair_file import read_pairs
from microtome.experiments.field.patching.pairs import NONE, Encoder
from microtome.experiments.field.patching.plan import PAIRS
from microtome.experiments.field.patching.prepared import Prepared, chosen_swaps, prepared_pairs
from microtome.experiments.field.patching.questions import answers_with
from microtome.experiments.field.patching.restored import (
    Names,
    Restored,
    left_out_rows,
    patches_to_measure,
)
from microtome.experiments.field.patching.states import patched_values
from microtome.experiments.kit.trial_inputs import data_of, opened_model, opened_rows
from microtome.families.seam import Family
from microtome.observe.forward import bound
from microtome.runs import Context, Result
from microtome.tasks.task import Hyperparameters


def patch(request: Mapping[str, Any], context: Context) -> Result:
    """The restored share by depth and group of positions, and by token for the first pairs."""
    model, tokenizer = opened_model(context)
    family = bound(model)
    encoder = _encoder(family, tokenizer, request, context)
    prepared = _prepared(family, encoder, request, context)
    pairs = prepared.pairs
    patches = patches_to_measure(pairs, request["examples"])
    found = patched_values(
        family, *prepared.texts(encoder), prepared.questions, patches,
        progress=lambda done, n_pairs: context.report(f"{done} of {n_pairs} pairs"),
    )  # fmt: skip
    restored = Restored(pairs, patches, found)
    rows = [
        *restored.by_group(),
        *restored.by_token(request["examples"]),
        *restored.by_pair(_names(family, tokenizer, prepared)),
        *left_out_rows(prepared.left_out),
    ]
    return Result(rows=rows, summary={"pairs": len(pairs)})


def _encoder(
    family: Family,
    tokenizer: PreTrainedTokenizerBase,
    request: Mapping[str, Any],
    context: Context,
) -> Encoder:
    """The tokenizer, with the length that was asked for, or the task's, or the usual one."""
    length = data_of(request, context).max_length
    if length is None and PAIRS not in context.where:
        length = opened_rows(request, context).task.hyperparameters.max_length
    most = min(family.n_positions, tokenizer.model_max_length)
    asked = length or Hyperparameters().max_length
    return Encoder(tokenizer, max_length=int(min(asked, most)), segments=family.uses_segments)


def _prepared(
    family: Family, encoder: Encoder, request: Mapping[str, Any], context: Context
) -> Prepared:
    """The pairs of the file that is named, else pairs made of the measured rows."""
    if PAIRS in context.where:
        given = read_pairs(Path(context.where[PAIRS]))
        return prepared_pairs(family, encoder, given, least=request["least"])
    seed = data_of(request, context).seed
    dataset = opened_rows(request, context).limit(request["n_pairs"], seed=seed)
    return chosen_swaps(
        family, encoder, dataset, tries=request["tries"], seed=seed, least=request["least"]
    )


def _names(family: Family, tokenizer: PreTrainedTokenizerBase, prepared: Prepared) -> Names:
    """What the answers of a pair are called: labels, or words."""

    def name(output: int) -> str | None:
        if output == NONE:
            return None
        if answers_with(family) == "token":
            return str(tokenizer.decode([output])).strip()
        if answers_with(family) == "number":
            return "the number"
        return str(family.config.id2label[output])

    def names(number: int) -> tuple[str, str | None]:
        asked = prepared.questions
        answer = name(int(asked.plus[number]))
        assert answer is not None
        return answer, name(int(asked.minus[number]))

    return names
