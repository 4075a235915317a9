"""Every block of layers i to j once more after itself, without training: one number for each.

A model with a task head is scored on the task; any other is decoded, and the number is the share
of tokens that its last state gives back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from microtome.experiments.layer_rules import LayerRules
from microtome.experiments.subject import Subject, opened_model, opened_rows
from microtome.runs import Context, Result, Trial

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from microtome.families.seam import Family
    from microtome.tasks import Dataset, Encoded

SCAN = "scan"
TOKEN_ACCURACY = "token_accuracy"  # noqa: S105  # a metric's name


def scan_trials(subject: Subject, experiment: str, rules: LayerRules, readout: str) -> list[Trial]:
    """One trial for all blocks that begin at a layer; the unedited model goes with the first."""
    first = rules.rules.first_copied
    return [
        subject.trial(
            "block_scan:measure", experiment, {"first": layer, "readout": readout},
            label=f"repeat blocks from layer {layer}",
        )
        for layer in range(first, rules.n_layers)
    ]  # fmt: skip


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """The blocks from one layer on, each repeated in a copy of the model, and scored."""
    from microtome.edits import parse
    from microtome.evaluation import check_fit, encode_for
    from microtome.families import adapt

    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context)
    has_head = adapt(model).head in ("classification", "question-answering")
    if has_head:
        check_fit(model, dataset)
    encoded = encode_for(model, tokenizer, dataset)
    rows = []
    for last, edit in _blocks(request["first"], adapt(model)):
        edited = parse(edit)(model) if edit else model
        score = (
            task_score(edited, model, dataset, encoded)
            if has_head
            else decoded_score(edited, model, tokenizer, dataset, encoded, request["readout"])
        )
        rows.append(
            {
                "layers": adapt(edited).shape.n_layers, "strategy": SCAN, "edit": edit,
                "seed": None, "first_layer": request["first"] if edit else None,
                "last_layer": last, **score,
            }
        )  # fmt: skip
    return Result(rows=rows, summary={rows[-1]["metric"]: rows[-1]["value"]})


def _blocks(first: int, family: Family) -> Iterator[tuple[int | None, str]]:
    """(last layer, edit) of every block that begins at ``first``."""
    from microtome.edits import parse

    if first == family.depth_rules.first_copied:
        yield None, ""
    for last in range(first, family.shape.n_layers):
        yield last, str(parse(f"repeat({first}-{last})"))


def task_score(
    edited: PreTrainedModel, model: PreTrainedModel, dataset: Dataset, encoded: Encoded
) -> dict[str, Any]:
    """The task's metric as the model stands."""
    from microtome.evaluation import scored
    from microtome.observe import predict

    metric = dataset.task.primary
    assert metric is not None
    found = scored(model, dataset, encoded, predict(edited, encoded)).scores[metric]
    return {
        "stage": "zero-shot", "metric": metric, "value": found.value, "low": found.low,
        "high": found.high, "n": found.n,
    }  # fmt: skip


def decoded_score(
    edited: PreTrainedModel,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    dataset: Dataset,
    encoded: Encoded,
    readout: str,
) -> dict[str, Any]:
    """The share of tokens that the last state gives back through the unedited model's head."""
    from microtome.evaluation import text_clusters
    from microtome.families import adapt
    from microtome.observe import decode, readout_of, vocabulary_of

    head = readout_of(adapt(model), readout)
    depth = adapt(edited).shape.n_layers
    found = decode(edited, encoded, vocabulary_of(tokenizer), readout=head, depths=[depth])
    share = found.interval(depth, clusters=text_clusters(dataset, encoded))
    return {
        "stage": "decoded", "metric": TOKEN_ACCURACY, "value": share.value, "low": share.low,
        "high": share.high, "n": found.n_tokens, "readout": found.readout,
    }  # fmt: skip
