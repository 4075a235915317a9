"""Attention patterns (Kovaleva et al. 2019, "BERT's self-attention patterns").

Every head's map of every example gets one of five classes: vertical (stripes, to [CLS] and [SEP]),
diagonal (previous, next), vertical+diagonal, block (within each of two texts), heterogeneous. The
classifier is a small convolutional network trained on maps labelled by hand. The paper reports that
heterogeneous maps, which might hold something linguistic, are at most 32 % (MRPC) to 61 % (QQP), an
upper bound; its labels and its classifier weren't published. Here shares have intervals over
examples and are corrected for the classifier's held-out mistakes; one text alone is never block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from microtome.experiments.experiment import Experiment, Rows, percent
from microtome.experiments.finetuning import OPTIONS, head_first
from microtome.experiments.options import Option
from microtome.experiments.subject import Subject, opened_model, opened_rows, other_file
from microtome.runs import Context, Result, Trial
from microtome.views import Cell, Curve, HeatMap, Series, Table, View

if TYPE_CHECKING:
    from microtome.experiments.pattern_rows import Found

NAME = "attention-patterns"
HETEROGENEOUS = "heterogeneous"
SHORT = {
    "vertical": "v", "diagonal": "d", "vertical+diagonal": "v+d", "block": "b", HETEROGENEOUS: "h",
}  # fmt: skip
PLACES = ("on_cls", "on_sep", "on_punctuation", "on_other")


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass over the examples; the classifier's file is part of what is hashed."""
    head = head_first(subject, settings)
    trial = subject.trial(
        "attention_patterns:measure",
        NAME,
        {"examples": settings["examples"]},
        needs=head,
        others={"classifier": other_file(settings["classifier"] or shipped())},
        label="classify attention maps",
    )
    return [*head, trial]


def shipped() -> str:
    """The classifier that comes with the package, found without torch."""
    from pathlib import Path

    import microtome

    folder = Path(microtome.__file__).parent / "embedded" / "patterns"
    return str(folder / "classifier.safetensors")


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Stream all maps through the classifier; one byte of each is kept."""
    from microtome.experiments.pattern_rows import rows_of

    found = classified(request, context)
    rows = rows_of(found)
    whole = next(r for r in rows if r["layer"] is None and r["pattern"] == HETEROGENEOUS)
    return Result(
        rows=rows,
        summary={HETEROGENEOUS: whole["share"]},
        arrays={"patterns": found.patterns, "stripes": found.stripes},
    )


def classified(request: Mapping[str, Any], context: Context) -> Found:
    """The class of every head's map of every example."""
    from microtome.evaluation import encode_for, text_clusters
    from microtome.experiments.pattern_rows import Found
    from microtome.observe import stream, vocabulary_of
    from microtome.observe.patterns import (
        PatternCounts,
        load_classifier,
        second_texts,
        token_kinds,
    )

    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context).limit(request["examples"])
    texts = encode_for(model, tokenizer, dataset)
    classifier = load_classifier(context.where["classifier"])
    second = second_texts(texts)
    counts = PatternCounts(
        classifier, second=second, kinds=token_kinds(texts, vocabulary_of(tokenizer))
    )
    stream(
        model,
        texts,
        [counts],
        progress=lambda done, n: context.report(f"{done} of {n} texts"),
        device=context.device,
    )
    return Found(
        counts.found, counts.stripes, classifier.confusion, pairs=bool(second.any()),
        clusters=text_clusters(dataset, texts),
    )  # fmt: skip


def views(rows: Rows) -> tuple[View, ...]:
    """Shares by layer, the dominant pattern of every head, and where the stripes fall."""
    return (_by_layer(rows), _heat_map(rows), _dominant(rows), _overall(rows), _stripes(rows))


def _by_layer(rows: Rows) -> Curve:
    layers = [r for r in rows if r["layer"] is not None and r["head"] is None]
    series = []
    for pattern in SHORT:
        own = sorted((r for r in layers if r["pattern"] == pattern), key=lambda r: r["layer"])
        series.append(
            Series(
                pattern,
                tuple(float(r["layer"]) for r in own),
                tuple(r["share"] for r in own),
                tuple(r["low"] for r in own),
                tuple(r["high"] for r in own),
            )
        )
    return Curve("Attention patterns by layer", "layer", "share of maps", tuple(series))


def dominant(rows: Rows) -> dict[tuple[int, int], Mapping[str, Any]]:
    """The row of each head's most frequent pattern."""
    found: dict[tuple[int, int], Mapping[str, Any]] = {}
    for row in rows:
        if row["head"] is not None:
            key = (row["layer"], row["head"])
            if key not in found or row["share"] > found[key]["share"]:
                found[key] = row
    return found


def _heat_map(rows: Rows) -> HeatMap:
    own = {
        (r["layer"], r["head"]): r["share"]
        for r in rows
        if r["head"] is not None and r["pattern"] == HETEROGENEOUS
    }
    layers, heads = sorted({i for i, _ in own}), sorted({j for _, j in own})
    most = dominant(rows)
    marked = tuple(
        (a, b)
        for a, i in enumerate(layers)
        for b, j in enumerate(heads)
        if most[i, j]["pattern"] == HETEROGENEOUS
    )
    return HeatMap(
        title="Heterogeneous maps of each head (marked: its most frequent pattern)",
        row_label="layer", column_label="head",
        rows=tuple(map(str, layers)), columns=tuple(map(str, heads)),
        values=tuple(tuple(own[i, j] for j in heads) for i in layers),
        value_label="share of maps", marked=marked,
    )  # fmt: skip


def _dominant(rows: Rows) -> Table:
    most = dominant(rows)
    layers, heads = sorted({i for i, _ in most}), sorted({j for _, j in most})
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (i, *(SHORT[most[i, j]["pattern"]] for j in heads)) for i in layers
    )
    return Table("The most frequent pattern of each head", ("layer", *map(str, heads)), cells)


def _overall(rows: Rows) -> Table:
    whole = [r for r in rows if r["layer"] is None]
    columns = ("pattern", "share", "low", "high", "corrected", "corrected_low", "corrected_high")
    cells: tuple[tuple[Cell, ...], ...] = tuple(tuple(r[c] for c in columns) for r in whole)
    return Table("Shares of all maps", columns, cells, percent=columns[1:])


def _stripes(rows: Rows) -> Table:
    own = [
        r for r in rows
        if r["head"] is None and r["pattern"] == "vertical" and r["on_cls"] is not None
    ]  # fmt: skip
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        ("all" if r["layer"] is None else r["layer"], *(r[place] for place in PLACES)) for r in own
    )
    title = "Where the strongest stripe of vertical maps falls"
    return Table(title, ("layer", *PLACES), cells, percent=PLACES)


def finding(rows: Rows) -> str:
    """What the heads mostly do, in words computed from the rows."""
    whole = {r["pattern"]: r for r in rows if r["layer"] is None}
    most = max(whole.values(), key=lambda r: r["share"])
    mixed = whole[HETEROGENEOUS]
    heads = dominant(rows).values()
    n_mixed = sum(r["pattern"] == HETEROGENEOUS for r in heads)
    words = (
        f"Of {mixed['n_maps']:,} maps ({mixed['n']:,} examples, {len(heads)} heads) most are"
        f" {most['pattern']}: {percent(most['share'])}. Heterogeneous are at most"
        f" {percent(mixed['share'])} ({percent(mixed['low'])} to {percent(mixed['high'])});"
        f" corrected for the classifier's mistakes {percent(mixed['corrected'])}"
        f" ({percent(mixed['corrected_low'])} to {percent(mixed['corrected_high'])})."
        f" {n_mixed} of {len(heads)} heads are heterogeneous more often than anything else."
    )
    striped = whole["vertical"]
    if striped["on_cls"] is None:
        return words
    return (
        f"{words} The strongest stripe of vertical maps is on [CLS] in"
        f" {percent(striped['on_cls'])}, on [SEP] in {percent(striped['on_sep'])}, on punctuation"
        f" in {percent(striped['on_punctuation'])}."
    )


def summary(rows: Rows) -> dict[str, Any]:
    """Shares of all maps, and the bound that the paper speaks of."""
    whole = {r["pattern"]: r for r in rows if r["layer"] is None}
    return {
        "shares": {pattern: row["share"] for pattern, row in whole.items()},
        "corrected": {pattern: row["corrected"] for pattern, row in whole.items()},
        "heterogeneous_at_most": whole[HETEROGENEOUS]["share"],
    }


def measured(rows: Rows) -> dict[str, str]:
    """The paper's claim: how many maps are heterogeneous, at most."""
    row = next(r for r in rows if r["layer"] is None and r["pattern"] == HETEROGENEOUS)
    return {
        HETEROGENEOUS: f"at most {percent(row['share'])} ({percent(row['low'])} to"
        f" {percent(row['high'])}), corrected {percent(row['corrected'])}"
    }


EXPERIMENT = Experiment(
    name=NAME,
    section="Kovaleva et al. 2019, BERT's self-attention patterns",
    question="What do the heads' attention maps look like, and how many may hold something more?",
    method=__doc__ or "",
    columns=("layer", "head", "pattern", "share", "low", "high", "n", "corrected"),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    measured=measured,
    options=(
        Option("examples", 1000, "at most so many, as in the paper", "whole"),
        Option("classifier", None, "one's own classifier of patterns, a file", "path"),
        *OPTIONS,
    ),
)
