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
from typing import TYPE_CHECKING, Any

from microtome.experiments.experiment import Experiment, Rows, counted, points
from microtome.experiments.head_tables import head_map, name_of
from microtome.experiments.options import Option
from microtome.experiments.subject import Subject, opened_model, opened_rows, other_file
from microtome.experiments.verdicts import CANT_TELL
from microtome.runs import Context, Result, Trial
from microtome.views import Table, View, table_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from microtome.tasks import Dataset

NAME = "frame-relations"
FRAMES = "frames"
MOST_DISABLED = 8  # of the heads that are found, strongest first
FEW = 0.05  # the share of heads up to which they "stand out"
COSTS = ("metric", "disabled_value", "delta", "delta_low", "delta_high", "delta_p_holm")


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass over the exemplars; the heads found are disabled where there is a task."""
    others = {}
    if settings[FRAMES]:
        from microtome.experiments.frame_tables import read_exemplars

        next(read_exemplars(Path(settings[FRAMES])), None)  # what can't be read is refused now
        others[FRAMES] = other_file(settings[FRAMES])
    disables = subject.has_task_head and subject.found is not None
    trial = subject.trial(
        "frame_relations:measure", NAME, {"disable": disables}, others=others,
        label="attention on frame elements",
    )  # fmt: skip
    return [trial]


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Links in every head in both directions, and what the heads found are worth to the task."""
    from microtome.experiments.frame_tables import (
        encode_exemplars,
        frame_rows,
        read_exemplars,
        selected,
    )
    from microtome.families import adapt

    model, tokenizer = opened_model(context)
    path = context.where.get(FRAMES)
    context.report("read the exemplars")
    named, dropped = selected(list(read_exemplars(None if path is None else Path(path))))
    family = adapt(model)
    most = int(min(family.n_positions, tokenizer.model_max_length))
    texts = encode_exemplars(named, tokenizer, max_length=most, segments=family.uses_segments)
    context.report(f"attention over {len(texts)} exemplars")
    rows = [row | dict.fromkeys(COSTS) for row in frame_rows(model, named, texts)]
    if request["disable"]:
        chosen = found_heads(rows)[:MOST_DISABLED]
        prices = disabled(model, tokenizer, opened_rows(request, context), chosen)
        for row in chosen:
            row |= prices[name_of(row)]
    return Result(rows=rows, summary={"exemplars": len(named), "left out": sum(dropped.values())})


def disabled(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, dataset: Dataset, heads: Rows
) -> dict[str, dict[str, Any]]:
    """The task's metric with each head disabled, against the model as it is, on the same rows."""
    from microtome.edits import parse
    from microtome.evaluation import check_fit, encode_for, outcome, scored
    from microtome.experiments.comparing import compared
    from microtome.families import adapt
    from microtome.observe import sweep

    if not heads:
        return {}
    check_fit(model, dataset)
    if adapt(model).depth_rules.shared:  # one depth's head can't be disabled while layers share
        model = parse("unshare()")(model)
    encoded = encode_for(model, tokenizer, dataset)
    metric = dataset.task.primary
    assert metric is not None
    names = [name_of(row) for row in heads]
    done = sweep(model, encoded, names)

    def answers(logits: Any) -> Any:  # noqa: ANN401  # scores by row, or a metric
        return outcome(dataset, scored(model, dataset, encoded, logits), metric)

    variants = {name: answers(own) for name, own in zip(names, done.logits, strict=True)}
    rows = compared(variants, answers(done.baseline), metric=metric, clusters=dataset.clusters)
    return {
        row["target"]: {
            "metric": metric, "disabled_value": row["value"], "delta": row["delta"],
            "delta_low": row["low"], "delta_high": row["high"], "delta_p_holm": row["p_holm"],
        }
        for row in rows
    }  # fmt: skip


def forward(rows: Rows) -> list[Any]:
    """From the predicate to its elements, as in the paper's example."""
    return [row for row in rows if row["direction"].startswith("predicate")]


def is_found(row: Mapping[str, Any]) -> bool:
    """Whether the head follows the link beyond its offset, and beyond chance over all heads."""
    return row["p_max"] is not None and row["p_max"] <= 0.05


def found_heads(rows: Rows) -> list[Any]:
    """The heads that follow the link forwards, strongest first."""
    some = [row for row in forward(rows) if is_found(row)]
    return sorted(some, key=lambda row: -row["excess"])


def views(rows: Rows) -> tuple[View, ...]:
    """The paper's map, what the offset leaves of it, the other direction, and the heads found."""
    own = forward(rows)
    back = [row for row in rows if row["direction"].startswith("element")]
    return (
        head_map("Attention from predicate to elements", own, "score",
                 value_label="mean of the largest weight", marked=is_found, percent=True),
        head_map("Beyond the same offset: predicate to elements", own, "excess",
                 value_label="points", marked=is_found, diverging=True, percent=True),
        head_map("Beyond the same offset: element to predicate", back, "excess",
                 value_label="points", marked=is_found, diverging=True, percent=True),
        _table(own),
    )  # fmt: skip


def _table(rows: Rows) -> Table:
    ranked = sorted(rows, key=lambda row: -row["score"])[:5]
    chosen = [*found_heads(rows)[:MOST_DISABLED], *(r for r in ranked if not is_found(r))]
    columns = (
        "head_name", "score", "control", "stripe_control", "count_control", "excess", "p", "p_max",
        "delta", "delta_low", "delta_high",
    )  # fmt: skip
    shown = [name for name in columns if name not in ("head_name", "p", "p_max")]
    named = [{"head_name": name_of(row), **row} for row in chosen]
    title = "The heads found, and those with most attention on the links"
    return table_of(title, named, columns, percent=shown)


def finding(rows: Rows) -> str:
    """How many heads follow frame links rather than an offset, and what they are worth."""
    own, some = forward(rows), found_heads(rows)
    top = max(own, key=lambda row: row["score"])
    words = (
        f"Over {counted(top['n'], 'exemplar')}, head {name_of(top)} has most attention from"
        f" predicate to element: {top['score']:.2f}; the same offset without a link"
        f" {top['control']:.2f}, other queries {_shown(top['stripe_control'])}, as many random"
        f" pairs {_shown(top['count_control'])}. {counted(len(some), 'head')} of {len(own)}"
        f" follow the link beyond its offset (placement test, 5 %, over all heads)"
    )
    names = ", ".join(f"{name_of(r)} ({points(r['excess'])} points)" for r in some[:5])
    words += f": {names}." if some else "."
    if not any(row["delta"] is not None for row in some):
        return words
    costs = ", ".join(
        f"{name_of(r)} {points(r['delta'])} ({points(r['delta_low'])} to {points(r['delta_high'])})"
        for r in some
        if r["delta"] is not None
    )
    return f"{words} Disabling them changes the {some[0]['metric']} by: {costs} points."


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def summary(rows: Rows) -> dict[str, Any]:
    """The heads found, and the one with most attention."""
    own = forward(rows)
    return {
        "found": [name_of(row) for row in found_heads(rows)],
        "most_attention": name_of(max(own, key=lambda row: row["score"])),
        "n": own[0]["n"],
    }


def measured(rows: Rows) -> dict[str, str]:
    """How many heads, and whether the task needs them."""
    own, some = forward(rows), found_heads(rows)
    share = len(some) / len(own)
    verdict = "holds" if 0 < share <= FEW else "doesn't hold"
    if not some:
        verdict = f"can't tell: {counted(own[0]['n'], 'exemplar')} show none"
    names = ", ".join(name_of(row) for row in some[:5]) or "none"
    answers = {"heads": f"{verdict}: {len(some)} of {len(own)} beyond the offset ({names})"}
    priced = [row for row in some if row["delta"] is not None]
    if priced:
        answers["importance"] = _importance(priced)
    return answers


def _importance(rows: Rows) -> str:
    hurt = [r for r in rows if r["delta"] < 0 and r["delta_p_holm"] <= 0.05]
    worst = min(rows, key=lambda row: row["delta"])
    sure = all(row["delta_low"] > -0.01 for row in rows)
    verdict = "doesn't hold" if hurt else "holds" if sure else CANT_TELL
    return (
        f"{verdict}: of {counted(len(rows), 'head')} disabled one at a time, {len(hurt)} lower the"
        f" {worst['metric']}; the largest loss {points(worst['delta'])} points"
        f" ({points(worst['delta_low'])} to {points(worst['delta_high'])}, head {name_of(worst)})"
    )


EXPERIMENT = Experiment(
    name=NAME,
    section="Kovaleva et al. 2019, Relation-specific heads in BERT",
    question="Do heads link a predicate with what fills its frame?",
    method=__doc__ or "",
    columns=(
        "direction", "layer", "head", "score", "low", "high", "n", "control", "stripe_control",
        "count_control", "p", "p_max", "delta",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    options=(
        Option(FRAMES, None, "FrameNet's folder or the published list; else embedded", "path"),
    ),
    measured=measured,
    needs_rows=False,
)  # fmt: skip
