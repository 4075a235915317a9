"""Disabling self-attention heads (Kovaleva et al. 2019, "Disabling self-attention heads").

A disabled head attends to every real token alike (1/L). Every head, every whole layer and random
sets of heads are disabled in turn; the metric is taken before and after on the same rows. The paper
reports single heads that help by 0.1 (STS-B) to 1.2 points (MRPC), and that on MRPC and RTE a
random head helps on average; it picks the best of 144 on the rows it reports. Here every difference
is paired and corrected for the number of heads, and the best is scored on rows it wasn't picked on.
ALBERT's layers share their weights: each gets a copy of its own first, in the baseline too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from microtome.experiments.experiment import Experiment, Rows, counted, percent, points
from microtome.experiments.finetuning import OPTIONS, head_first
from microtome.experiments.options import Option
from microtome.experiments.subject import Subject, opened_rows, opened_unshared
from microtome.runs import Context, Result, Trial
from microtome.views import Cell, HeatMap, Table, View

if TYPE_CHECKING:
    import numpy as np

NAME = "head-disabling"
LAYERS_PER_TRIAL = 3  # a killed sweep loses at most these
SET_SIZES = (2, 4, 8, 16)
SETS_PER_SIZE = 5


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """Chunks of the sweep, then one comparison of all of them."""
    from microtome.models.checkpoint import look_at
    from microtome.models.configuration import size

    head = head_first(subject, settings)
    checkpoint = look_at(subject.model_path)
    n_layers = size(checkpoint.config, checkpoint.facts.config, "layers") or 0
    chunks = [
        subject.trial(
            "head_disabling:sweep",
            NAME,
            {"layers": [first, min(first + LAYERS_PER_TRIAL, n_layers)], "how": settings["how"]},
            needs=head,
            label=f"disable heads of layers {first}–{min(first + LAYERS_PER_TRIAL, n_layers) - 1}",
        )
        for first in range(0, n_layers, LAYERS_PER_TRIAL)
    ]
    sets = subject.trial(
        "head_disabling:random_sets", NAME, {"how": settings["how"], "seed": 0}, needs=head,
        label="disable random sets of heads",
    )  # fmt: skip
    greedy = subject.trial(
        "head_disabling:greedy", NAME, {"how": settings["how"], "splits": settings["splits"]},
        needs=(*head, *chunks), label="choose sets of heads greedily",
    )  # fmt: skip
    comparison = subject.trial(
        "head_disabling:compare", NAME, {"how": settings["how"]},
        needs=(*head, *chunks, sets), label="compare",
    )  # fmt: skip
    return [*head, *chunks, sets, greedy, comparison]


def sweep(request: Mapping[str, Any], context: Context) -> Result:
    """Logits of every row with each head, and each whole layer, of some layers disabled."""
    first, last = request["layers"]
    from microtome.families import adapt

    n_heads = adapt(opened_unshared(context)[0]).shape.n_heads
    targets = [f"{i}.{j}" for i in range(first, last) for j in range(n_heads)]
    return _swept(request, context, [*targets, *(f"{i}.*" for i in range(first, last))])


def random_sets(request: Mapping[str, Any], context: Context) -> Result:
    """The same for random sets of 2, 4, 8, 16 heads: the paper's "random head", further on."""
    import numpy as np

    from microtome.families import adapt

    shape = adapt(opened_unshared(context)[0]).shape
    rng = np.random.default_rng(request["seed"])
    every = [f"{i}.{j}" for i in range(shape.n_layers) for j in range(shape.n_heads)]
    sets = [
        sorted(rng.choice(every, size, replace=False).tolist())
        for size in SET_SIZES
        if size < len(every)
        for _ in range(SETS_PER_SIZE)
    ]
    return _swept(request, context, sets)


def greedy(request: Mapping[str, Any], context: Context) -> Result:
    """Sets of heads chosen greedily on one half of the rows and scored on the other.

    On the choosing half the heads are ranked by their own gain, and the best of the leading sets is
    kept; the other half, which nothing was chosen on, says what it is worth.
    """
    from microtome.experiments.choosing import HeadSets
    from microtome.statistics import honest_choice

    sets = HeadSets.opened(request, context)
    found = honest_choice(
        sets.choose, sets.gain, len(sets.dataset),
        clusters=sets.dataset.clusters, n_splits=request["splits"],
    )  # fmt: skip
    chosen = found.picks[0][0]
    row = {
        "target": " ".join(chosen) or "none", "metric": sets.metric, "layer": None, "head": None,
        "value": sets.base_value + found.gain.value, "delta": found.gain.value,
        "low": found.gain.low, "high": found.gain.high, "n": found.gain.n, "chosen": "greedy",
        "n_heads_disabled": len(chosen), "edit": edit_of(chosen, sets.how, sets.first),
    }  # fmt: skip
    return Result(rows=[row], summary={"honest gain of a set": found.gain.value})


def _swept(request: Mapping[str, Any], context: Context, targets: list[Any]) -> Result:
    import numpy as np

    from microtome.evaluation import check_fit, encode_for
    from microtome.observe import sweep as disable

    model, tokenizer, _ = opened_unshared(context)
    dataset = opened_rows(request, context)
    check_fit(model, dataset)
    encoded = encode_for(model, tokenizer, dataset)
    done = disable(
        model, encoded, targets, how=request["how"],
        progress=lambda n_done, n_rows: context.report(f"{n_done} of {n_rows} rows"),
    )  # fmt: skip
    names = np.array([" ".join(t) if isinstance(t, list) else t for t in targets])
    return Result(arrays={"targets": names, "baseline": done.baseline, "logits": done.logits})


def compare(request: Mapping[str, Any], context: Context) -> Result:
    """Every head, layer and set against the baseline, paired, corrected, and picked honestly."""
    from microtome.evaluation import encode_for, outcome, scored
    from microtome.experiments.choosing import stored_sweep
    from microtome.experiments.comparing import baseline_row, compared, picked

    model, tokenizer, first = opened_unshared(context)
    dataset = opened_rows(request, context)
    encoded = encode_for(model, tokenizer, dataset)
    stored = stored_sweep(context)
    names = [str(name) for part in stored for name in part["targets"]]
    metric = dataset.task.primary
    assert metric is not None

    def answers(logits: np.ndarray) -> Any:  # noqa: ANN401  # scores by row, or a metric
        return outcome(dataset, scored(model, dataset, encoded, logits), metric)

    baseline = answers(stored[0]["baseline"])
    variants = [answers(logits) for part in stored for logits in part["logits"]]
    groups = [[n for n in names if kind_of(n) == kind] for kind in ("head", "layer", "set")]
    found = dict(zip(names, variants, strict=True))
    heads = [found[name] for name in groups[0]]
    base = baseline_row(baseline, dataset, metric=metric)
    base |= picked(groups[0], heads, baseline, clusters=dataset.clusters)
    base["honest_value"] = base["value"] + base["honest_gain"]
    rows = [base | place("baseline") | {"edit": first}]
    for group in groups:  # heads compete with heads, layers with layers
        few = {name: found[name] for name in group}
        for row in compared(few, baseline, metric=metric, clusters=dataset.clusters):
            edit = edit_of(row["target"].split(), request["how"], first)
            rows.append(row | place(row["target"]) | {"edit": edit})
    return Result(rows=rows, summary={metric: base["value"]})


def kind_of(target: str) -> str:
    """A head (3.7), a whole layer (3.*), or a set of heads (3.7 5.0)."""
    if " " in target:
        return "set"
    return "layer" if target.endswith("*") else "head"


def place(target: str) -> dict[str, Any]:
    """The columns that say what was disabled; a whole layer has no head, a set has neither."""
    if target == "baseline" or kind_of(target) == "set":
        n_heads = 0 if target == "baseline" else len(target.split())
        return {"layer": None, "head": None, "n_heads_disabled": n_heads}
    layer, head = target.split(".")
    is_layer = head == "*"
    return {
        "layer": int(layer),
        "head": None if is_layer else int(head),
        "n_heads_disabled": None if is_layer else 1,
    }


def edit_of(targets: Sequence[str], how: str, first: str) -> str:
    """The edit that gives a row's model, ``first`` being what was done to the baseline already."""
    from microtome.edits import Disable

    disabled = Disable(*targets, how=how).text if targets else ""
    return " | ".join(text for text in (first, disabled) if text)


def views(rows: Rows) -> tuple[View, ...]:
    """Layer by head, whole layers, and the sets."""
    heads = [row for row in rows if row["head"] is not None]
    layers = sorted({row["layer"] for row in heads})
    numbers = sorted({row["head"] for row in heads})
    by_place = {(row["layer"], row["head"]): row for row in heads}
    values = tuple(tuple(by_place[i, j]["delta"] for j in numbers) for i in layers)
    marked = tuple((i, j) for i in layers for j in numbers if by_place[i, j]["p_maxt"] <= 0.05)
    whole = [row for row in rows if row["layer"] is not None and row["head"] is None]
    sets = [r for r in rows if r["n_heads_disabled"] and r["layer"] is None and "chosen" not in r]
    columns = ("target", "value", "delta", "low", "high", "p", "p_holm", "p_bh", "p_maxt")
    shown = ("value", "delta", "low", "high")
    return (
        HeatMap(
            title="Change when one head is disabled",
            row_label="layer", column_label="head",
            rows=tuple(map(str, layers)), columns=tuple(map(str, numbers)),
            values=values, value_label="points", marked=marked, diverging=True,
        ),
        _table("Whole layers disabled", whole, columns, shown),
        _table("Random sets of heads disabled", sets, ("n_heads_disabled", *columns[1:5]), shown),
    )  # fmt: skip


def _table(title: str, rows: Rows, columns: tuple[str, ...], shown: tuple[str, ...]) -> Table:
    cells: tuple[tuple[Cell, ...], ...] = tuple(tuple(row[c] for c in columns) for row in rows)
    return Table(title, columns, cells, percent=shown)


def finding(rows: Rows) -> str:
    """Which heads matter, in words computed from the rows alone."""
    heads = [row for row in rows if row["head"] is not None]
    baseline = next(row for row in rows if row["target"] == "baseline")
    chosen = next((row for row in rows if row.get("chosen") == "greedy"), None)
    hurt = [row for row in heads if row["delta"] < 0 and row["p_maxt"] <= 0.05]
    helped = [row for row in heads if row["delta"] > 0 and row["p_maxt"] <= 0.05]
    free = [row for row in heads if row["low"] > -0.01]
    worst = min(heads, key=lambda row: row["delta"])
    return (
        f"{counted(len(heads), 'head')} disabled one at a time; the {baseline['metric']} without"
        f" any edit is {percent(baseline['value'])}. Beyond chance (max-T, 5 %, over all heads),"
        f" disabling {counted(len(hurt), 'head')} hurts and disabling"
        f" {counted(len(helped), 'head')} helps."
        f" The largest loss is head {worst['target']}'s: {points(worst['delta'])} points"
        f" ({points(worst['low'])} to {points(worst['high'])})."
        f" {counted(len(free), 'head')} cost less than 1 point with 95 % confidence each."
        f" {believed(baseline)}"
        f"{'' if chosen is None else a_set(chosen)}"
    )


def a_set(chosen: Mapping[str, Any]) -> str:
    """What a set of heads chosen greedily is worth on rows that it wasn't chosen on."""
    return (
        f" Sets chosen greedily ({counted(chosen['n_heads_disabled'], 'head')}, the most frequent"
        f" choice) change the score by"
        f" {points(chosen['delta'])} ({points(chosen['low'])} to {points(chosen['high'])}) there."
    )


def believed(baseline: Mapping[str, Any]) -> str:
    """What the best head is worth: the papers' way, and the honest way."""
    low, high = baseline["honest_low"], baseline["honest_high"]
    verdict = "is real" if low > 0 else "can't be told from none"
    return (
        f"Picking the best head and scoring it on the same rows would claim"
        f" {points(baseline['naive_gain'])} points; scored on other rows the gain is"
        f" {points(baseline['honest_gain'])} ({points(low)} to {points(high)}): it {verdict}."
    )


def summary(rows: Rows) -> dict[str, Any]:
    """The figures to believe."""
    baseline = next(row for row in rows if row["target"] == "baseline")
    return {
        key: baseline.get(key)
        for key in (
            "metric", "value", "naive_gain", "naive_target", "honest_gain", "honest_low",
            "honest_high", "honest_target", "mean_delta", "mean_low", "mean_high",
            "smallest_significant",
        )
    }  # fmt: skip


EXPERIMENT = Experiment(
    name=NAME,
    section="Kovaleva et al. 2019, Disabling self-attention heads",
    question="Which heads and layers does the model need for this task?",
    method=__doc__ or "",
    columns=(
        "layer", "head", "metric", "value", "delta", "low", "high", "p", "p_holm", "p_bh", "p_maxt",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    options=(
        Option("how", "uniform", "uniform: 1/L; zero: no output at all"),
        Option("splits", 5, "halves on which sets of heads are chosen", "whole"),
        *OPTIONS,
    ),
)  # fmt: skip
