"""Figures of a replication have findings as titles: other rows, another title, or none."""

from __future__ import annotations

import pytest

from microtome.experiments.kao.duplication.strategies import BASELINE
from microtome.papers.exhibits import PAPERS
from microtome.replication.drawings import DRAWINGS
from microtome.replication.drawings.titles import joint
from microtome.replication.measured import Measured
from microtome.report.bars import draw_bars
from microtome.report.drawing import SCREEN
from microtome.views import Bars, Curve, HeatMap, Panels

FACTS = {"layers": 12, "shared": False}
SCORE = {"metric": "accuracy", "primary": "accuracy", "n": 400, "unit": "rows", "one_answer": False,
         "constant_value": 0.5, "value": 0.9, "value_low": 0.87, "value_high": 0.92,
         "fraction": 1.0, "n_train": 500, "layers": 4, "edit": "", "seed": 0, "task": "t",
         "model": "m"}  # fmt: skip
SURE, SAME = (0.70, 0.71, 0.69), (0.90, 0.91, 0.89)  # over seeds


def title(drawing, rows, *, models=("m",), tasks=("t",)):
    """What the first figure of a drawing says; ``rows`` by experiment, model and task."""
    exhibits = (each for paper in PAPERS.values() for each in paper.exhibits)
    exhibit = next(each for each in exhibits if (each.drawing, each.metric) == (drawing, ""))
    measured = Measured(rows, {}, dict.fromkeys(models, FACTS), {name: {} for name in tasks})
    views = DRAWINGS[drawing](measured, exhibit)
    return next(view for view in views if isinstance(view, (Curve, HeatMap, Bars, Panels))).says


def test_a_finding_that_is_not_that_of_all_says_whose_it_is():
    assert joint({"a": "It is so", "b": "It is so"}) == "It is so"
    assert joint({"a": "It is so", "b": ""}) == "It is so (a)"
    assert joint({"a": "It is so", "b": "It isn't", "c": "It is so"}) == (
        "It is so (a and c). It isn't (b)"
    )
    assert joint({"a": "x", "b": "y", "c": "z"}) == ""
    assert joint({"a": "", "b": ""}) == joint({}) == ""


def tuned(value):
    """A fine-tuning of the pair, where one constant answer scores 0.5."""
    run = {"edit": "", "seed": 0, "fraction": 1.0, "metric": "f1", "value": value,
           "low": value - 0.05, "high": value + 0.05}  # fmt: skip
    return (run | {"constant_value": 0.5, "one_answer": False},)


def decoded(*accuracies, low=0.02):
    return tuple(
        {"checkpoint": "pretrained", "layers": len(accuracies) - 1, "edit": "", "depth": i,
         "accuracy": value, "low": value - low, "high": value + low, "control": 0.2, "n": 90}
        for i, value in enumerate(accuracies)
    )  # fmt: skip


def test_decoded_depths():
    def said(one, other):
        rows = {("decoding", "m", "t"): one, ("decoding", "n", "t"): other}
        return title("token accuracy by depth", rows, models=("m", "n"))

    every = "Every inner depth can be read beyond the random blocks"
    high, low, unsure = decoded(1, 0.9, 0.9, 1), decoded(1, 0.2, 0.2, 1), decoded(1, 0.31, 0.31, 1)
    assert said(high, high) == every
    assert said(high, unsure) == f"{every} (m)"
    assert said(high, low) == f"{every} (m). Random blocks can be read as well as the model's (n)"
    assert said(unsure, unsure) == ""


def test_last_states_of_deeper_models():
    def said(accuracy):
        deeper = {**decoded(accuracy)[0], "edit": "extend(6)", "layers": 6}
        rows = {("decoding", "m", "t"): (*decoded(1, 1, 1, 1), deeper)}
        return title("token accuracy of deeper models", rows)

    assert said(0.9) == "The last state can be read up to 6 layers"
    assert said(0.3) == "With 6 layers the last state can no longer be read"
    assert said(0.8) == ""


def arms(column, scores, **more):
    """A row for every place and seed."""
    return tuple(
        SCORE | {"seed": seed, "value": value, "low": value - 0.02, "high": value + 0.02}
        | {"layer": None, "side": "top", column: place} | more
        for place, values in scores.items()
        for seed, value in enumerate(values)
    )  # fmt: skip


@pytest.mark.parametrize(
    "drawing",
    ["score by re-initialised layers", "score by re-initialised layers, sizes matched"],
)
def test_reinitialised_layers(drawing):
    def said(last, other=SURE):
        rows = {("reinitialization", "m", t): arms("reinitialized", {0: SAME, 2: arm})
                for t, arm in (("t", last), ("u", other))}  # fmt: skip
        return title(drawing, rows, tasks=("t", "u"))

    falls = "Pre-training matters: without it in the last 2 layers the score falls"
    whose = "t" if "matched" in drawing else "m on t"
    assert said(SURE) == falls
    assert said(SURE, SAME) == f"{falls} ({whose})"
    assert said(SAME, SAME) == ""


def test_frozen_layers_against_reinitialised_ones():
    probes = {"encoder": "pretrained", "recipe": "paper", "delta": 0.0, "delta_low": -0.1,
              "delta_high": 0.1, "feature": "cls", "depth": 4}  # fmt: skip

    def said(frozen, tuned):
        rows = {
            ("frozen-probing", "m", "t"): arms("removed", {0: frozen, 2: frozen}, **probes),
            ("reinitialization", "m", "t"): arms("reinitialized", {0: tuned, 2: tuned}),
        }
        return title("probing over re-initialisation", rows)

    assert said(SURE, SAME).startswith("Frozen layers reach less than")
    assert said(SAME, SURE).startswith("Frozen layers reach more than")
    assert said(SAME, SAME) == ""


def test_distances_of_weights():
    def said(*by_seed, score=0.9):
        rows = tuple(
            SCORE | {"layer": i, "part": "output", "distance": d, "relative": d, "seed": seed,
                     "match_steps": False}
            for seed, distances in enumerate(by_seed)
            for i, d in enumerate(distances)
        )  # fmt: skip
        return title(
            "distance by layer",
            {("weight-drift", "m", "t"): rows, ("finetuning", "m", "t"): tuned(score)},
        )

    assert said((1, 2, 3, 4), (1, 2, 3, 4)) == "The deeper the layer, the further its weights moved"
    assert said((4, 3, 2, 1), (4, 3, 2, 1)) == "The deeper the layer, the less its weights moved"
    assert said((1, 2, 3, 4), (4, 3, 2, 1)) == said((1, 2)) == ""
    assert said((1, 2, 3, 4), (1, 2, 3, 4), score=0.5) == ""


def test_numbers_of_layers():
    def said(deeper, drawing="score by layers"):
        rows = tuple(
            row | {"stage": "finetuned", "strategy": "first" if row["layers"] > 4 else BASELINE}
            for row in arms("layers", {4: SAME, 5: deeper})
        )
        return title(drawing, {("duplication", "m", "t"): rows})

    for drawing in ("score by layers", "score by strategy"):
        assert said(SURE, drawing) == "5 layers are worse than 4"
        assert said(SAME, drawing) == ""


def test_layers_removed():
    def said(low, high):
        cut = SCORE | {"speed": 1.2, "latency_ms": 3.0, "parameters": 9, "p_holm": 0.5}
        base = cut | {"strategy": "none", "target": "baseline", "delta": 0.0}
        best = cut | {"strategy": "best", "target": "3", "edit": "remove(3)", "layers": 3,
                      "delta": -0.02, "low": low, "high": high, "share": 1.0}  # fmt: skip
        return title("removal", {("layer-removal", "m", "t"): (base, best)})

    assert said(-0.005, 0.005) == "3 of 4 layers keep the score within a point"
    assert said(-0.05, -0.02) == "Every cut costs more than a point"
    assert said(-0.05, 0.01) == ""


def test_heads_that_are_missed():
    def rows(*losses, layers=False):
        head = {"layer": None, "head": None, "target": "baseline", "delta": 0.0, "p_maxt": 1.0,
                "low": 0.0, "high": 0.0, "honest_gain": 0.0, "picked_on": None}  # fmt: skip
        places = ((i, None if layers else 0, loss) for i, loss in enumerate(losses))
        missed = [
            head | {"layer": i, "head": j, "target": f"{i}.0" if j == 0 else str(i),
                    "delta": -loss, "p_maxt": 0.01 if loss > 0.02 else 0.9}
            for i, j, loss in places
        ]  # fmt: skip
        return tuple(SCORE | {"n_heads_disabled": 1} | row for row in (head, *missed))

    def said(one, other, drawing="disabled heads", learnt=True):
        one = tuple(row | ({} if learnt else {"constant_value": 0.9}) for row in one)
        found = {("head-disabling", "m", "t"): one, ("head-disabling", "m", "u"): other}
        return title(drawing, found, tasks=("t", "u"))

    assert said(rows(0.1, 0.0), rows(0.1, 0.0)) == "Head 0.0 carries the task"
    assert said(rows(0.1, 0.0), rows(0.0, 0.3)) == (
        "Head 0.0 carries the task (t). Head 1.0 carries the task (u)"
    )
    assert said(rows(0.1, 0.0), rows(0.0, 0.0)) == "Head 0.0 carries the task (t)"
    assert said(rows(0.0), rows(0.0)) == said(rows(0.1), rows(0.0), learnt=False) == ""
    whole = [rows(0.1, 0.0, layers=True), rows(0.1, 0.2, layers=True)]
    assert said(*whole, "disabled layers") == (
        "Layer 0 carries the task (t). Layers 0 and 1 carry the task (u)"
    )
    of_one = said(*whole, "disabled layers", learnt=False)
    assert of_one == "Layers 0 and 1 carry the task (u)"


def test_heads_that_follow_links():
    def frames(*p_values):
        rows = tuple(
            {"direction": "predicate→element", "layer": i, "head": 0, "score": 0.5, "excess": 0.2,
             "p_max": p}
            for i, p in enumerate(p_values)
        )  # fmt: skip
        return title("frame heads", {("frame-relations", "m", ""): rows})

    assert frames(0.01, 0.9) == "Head 0.0 follows frame relations"
    assert frames(0.01, 0.01) == "Heads 0.0 and 1.0 follow frame relations"
    assert frames(*[0.01] * 4, 0.9) == "4 of 5 heads follow frame relations"
    assert frames(0.9, 0.9) == ""

    def overlap(*p_values, score=0.9):
        rows = tuple(
            {"link": "overlap", "direction": "first→second", "layer": i, "head": 0, "excess": 0.5,
             "p_maxt": p}
            for i, p in enumerate(p_values)
        )  # fmt: skip
        found = {("token-links", "m", "t"): rows, ("finetuning", "m", "t"): tuned(score)}
        return title("overlap and frame heads", found)

    assert overlap(0.9, 0.01) == "Head 1.0 follows words of both sentences"
    assert overlap(0.9, 0.9) == overlap(0.9, 0.01, score=0.5) == ""


def test_features_that_are_attended_to():
    def said(*p_values, score=0.9, n_special=0):
        features = [*("[CLS]", "[SEP]")[:n_special], *(f"f{k}" for k in range(len(p_values)))]
        rows = tuple(
            {"checkpoint": "finetuned", "feature": feature, "layer": layer, "head": 0, "p_maxt": p,
             "attention": 0.1, "excess": 0.1, "change": None}
            for feature, p in zip(features, (*[0.9] * n_special, *p_values), strict=True)
            for layer in range(4 if n_special else 1)
        )  # fmt: skip
        found = {("linguistic-features", "m", "t"): rows, ("finetuning", "m", "t"): tuned(score)}
        return title("features by head", found)

    assert said(0.01, 0.9) == "Heads attend to f0 beyond chance"
    assert said(0.01, 0.01) == "Heads attend to f0 and f1 beyond chance"
    assert said(*[0.01] * 4) == "Heads attend to 4 of 4 features beyond chance"
    assert said(0.01) == "Head 0.0 attends to f0 beyond chance"
    assert said(0.01, n_special=2) == "4 of 4 heads attend to f0 beyond chance"
    assert said(0.9, 0.9) == said(0.01, score=0.5) == ""


def test_layers_whose_attention_changes():
    def said(*cosines, other=None, score=0.9):
        rows = tuple(
            {"seed": seed, "layer": i, "head": head, "cosine": c, "low": c - 0.01, "high": c + 0.01}
            for seed, own in enumerate((cosines, other or cosines))
            for i, c in enumerate(own)
            for head in (None, 0)
        )
        found = {("attention-drift", "m", "t"): rows, ("finetuning", "m", "t"): tuned(score)}
        return title("cosine by head", found)

    assert said(0.9, 0.9, 0.9, 0.5) == "Attention of layer 3 changes most"
    assert said(0.9, 0.9, 0.5, 0.5) == "Attention of layers 2 and 3 changes most"
    assert said(0.9, 0.9, 0.9, 0.9) == ""
    assert said(0.9, 0.9, 0.9, 0.5, other=(0.5, 0.9, 0.9, 0.9)) == ""
    assert said(0.9, 0.9, 0.9, 0.5, score=0.5) == ""


def test_patterns_of_most_maps():
    def said(*lows, score=0.9):
        by_task = {
            f"t{k}": tuple(
                {"pattern": name, "layer": layer, "head": None, "share": share, "low": own}
                for layer in (None, 0)
                for name, share, own in (("vertical", 0.7, low), ("heterogeneous", 0.3, 0.2))
            )
            for k, low in enumerate(lows)
        }
        rows = {("attention-patterns", "m", task): own for task, own in by_task.items()}
        rows["finetuning", "m", "t0"] = tuned(score)
        return title("shares of patterns", rows, tasks=tuple(by_task))

    def stacks(blocks):
        """Heights of a task's bars of pairs, next to one of single texts without blocks."""
        single = [("vertical", 0.7), ("heterogeneous", 0.3)]
        pairs = [("vertical", 0.7 - blocks), ("block", blocks), ("heterogeneous", 0.3)]
        rows = {
            ("attention-patterns", "m", task): tuple(
                {"pattern": name, "layer": None, "head": None, "share": share, "low": share}
                for name, share in shares
            )
            for task, shares in (("t0", single), ("t1", pairs))
        }
        measured = Measured(rows, {}, {"m": FACTS}, {"t0": {}, "t1": {}})
        exhibit = next(e for e in PAPERS["kovaleva2019"].exhibits if "dataset" in e.name)
        (bars,) = DRAWINGS["shares of patterns"](measured, exhibit)
        draw_bars(bars, SCREEN)
        return [sum(series.values[k] or 0.0 for series in bars.series) for k in range(2)]

    assert stacks(0.2) == pytest.approx([1, 1])
    assert said(0.6, 0.6) == "Most maps are vertical in every layer"
    assert said(0.6, 0.4) == "Most maps are vertical in every layer (t0)"
    assert said(0.6, 0.6, score=0.5) == "Most maps are vertical in every layer (t1)"
    assert said(0.4, 0.4) == ""
