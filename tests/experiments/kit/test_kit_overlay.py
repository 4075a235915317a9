"""Views of several models and tasks as one: nothing is lost, and every legend names its subject."""

from __future__ import annotations

import pytest

from microtome.experiments.kit.overlay import MOST_LINES, MOST_ROWS, overlaid
from microtome.views import Bars, BarSeries, Curve, HeatMap, Level, Panels, Series, Table


def line(name, *, is_control=False, at=0.5):
    return Series(name, (0.0, 1.0), (at, 0.6), is_control=is_control)


def of_tasks(**views):
    return {("bert", task): shown for task, shown in views.items()}


def names(curve):
    return [one.name for one in curve.series]


def test_curves_of_one_title_lie_over_each_other():
    alone = Curve("Only here", "k", "accuracy", (line("a"),))
    views = of_tasks(
        sst2=[Curve("Both", "k", "accuracy", (line("a"), line("c", is_control=True))), alone],
        rte=[Curve("Both", "k", "accuracy", (line("a"),)), Table("Both", (), ())],
    )
    (found,) = overlaid(views)
    assert names(found) == ["sst2: a", "rte: a"]
    assert (found.title, found.x_label, found.y_label) == ("Task by task: both", "k", "accuracy")


def test_an_axis_has_one_metric():
    views = of_tasks(
        sst2=[Curve("All", "k", "accuracy", (line("a"),))],
        cola=[Curve("All", "k", "matthews", (line("a"),))],
        rte=[Curve("All", "k", "accuracy", (line("a"),))],
    )
    found = list(overlaid(views))
    assert [one.y_label for one in found] == ["accuracy", "matthews"]
    assert [one.title for one in found] == [
        "Task by task: all (accuracy)", "Task by task: all (matthews)",
    ]  # fmt: skip
    assert [names(one) for one in found] == [["sst2: a", "rte: a"], ["cola: a"]]


def test_too_many_lines_for_one_picture_are_one_picture_each():
    curve = Curve("Both", "k", "accuracy", tuple(line(name) for name in "abc"))
    found = list(overlaid(of_tasks(sst2=[curve], cola=[curve], rte=[curve])))
    assert [one.title for one in found] == [f"Task by task: both, {name}" for name in "abc"]
    assert names(found[1]) == ["sst2: b", "cola: b", "rte: b"]


def test_more_subjects_than_colours_are_panels():
    tasks = [f"task{i}" for i in range(MOST_LINES + 1)]
    curve = Curve("Depth", "k", "accuracy", (line("a"), line("c", is_control=True)))
    (found,) = overlaid({("bert", task): [curve] for task in tasks})
    assert isinstance(found, Panels)
    assert [panel.title for panel in found.panels] == tasks
    assert all(panel.series == curve.series for panel in found.panels)


@pytest.mark.parametrize("who", ["model", "run"])
def test_models_on_one_task_are_named_by_themselves(who):
    curve = Curve("Depth", "k", "accuracy", (line("a"),))
    (found,) = overlaid({(name, "sst2"): [curve] for name in ("bert", "albert")}, who=who)
    assert found.title == f"{who.capitalize()} by {who}: depth"
    assert names(found) == ["bert: a", "albert: a"]


def test_models_on_tasks_are_a_panel_for_each_task():
    views = {
        (model, task): [Curve("Depth", "k", "accuracy", (line("a", at=0.1 * i),))]
        for i, (model, task) in enumerate(
            (m, t) for m in ("bert", "albert", "roberta") for t in ("sst2", "rte")
        )
    }
    (found,) = overlaid(views)
    assert found.title == "Model by model, task by task: depth"
    assert [panel.title for panel in found.panels] == ["sst2", "rte"]
    for panel in found.panels:
        assert names(panel) == ["bert: a", "albert: a", "roberta: a"]
        for one in panel.series:
            model = one.name.removesuffix(": a")
            assert one.y == views[model, panel.title][0].series[0].y


def test_a_checkpoint_for_each_task_is_named_by_its_task():
    curve = Curve("Depth", "k", "accuracy", (line("a"),))
    (found,) = overlaid({("my-mrpc", "mrpc"): [curve], ("my-rte", "rte"): [curve]})
    assert names(found) == ["mrpc: a", "rte: a"]


@pytest.mark.parametrize(("others", "kept"), [(12.0, 12.0), (6.0, None)])
def test_levels_keep_their_lines_and_a_divider_is_that_of_all(others, kept):
    def curve(divider):
        levels = (Level("a", 0.5), Level("chance", 0.3))
        return Curve("D", "k", "f1", (line("a"), line("b")), divider=divider, levels=levels)

    views = {("bert", "t"): [curve(12.0)], ("albert", "t"): [curve(others)]}
    (found,) = overlaid(views)
    assert found.divider == kept
    assert [level.name for level in found.levels] == [
        "bert: a", "bert: chance", "albert: a", "albert: chance",
    ]  # fmt: skip


def heat_map(values, label="points"):
    cells = tuple((value,) for value in values)
    rows = tuple(map(str, range(len(values))))
    return HeatMap("Heads", "layer", "head", rows, ("0",), cells, label)


def test_heat_maps_and_bars_become_panels_of_one_meaning():
    bars = Bars("Shares", "task", "share", ("x",), (BarSeries("a", (0.5,)),))
    views = {
        ("bert", "t"): [heat_map([1.0, 2.0]), bars],
        ("albert", "t"): [heat_map([3.0]), bars],
        ("roberta", "t"): [heat_map([3.0], label="logits")],
    }
    maps, shares = overlaid(views)
    assert [panel.title for panel in maps.panels] == ["bert", "albert"]
    assert [panel.values for panel in maps.panels] == [((1.0,), (2.0,)), ((3.0,),)]
    assert maps.title == "Model by model: heads"
    assert [panel.series for panel in shares.panels] == [bars.series] * 2


def test_a_joint_table_has_a_block_for_each_model_and_keeps_its_marks():
    def table(*values):
        return Table(
            "Depths", ("layers", "EM"), tuple((i, v) for i, v in enumerate(values)), ("EM",),
            groups=(("", 1), ("SQuAD", 1)), better=((1, 1),), worse=((0, 1),),
        )  # fmt: skip

    (found,) = overlaid({("bert", "t"): [table(0.1, 0.2)], ("albert", "t"): [table(0.3, 0.4)]})
    assert found.columns == ("model", "layers", "EM")
    assert found.rows == (
        ("bert", 0, 0.1), ("bert", 1, 0.2), ("albert", 0, 0.3), ("albert", 1, 0.4),
    )  # fmt: skip
    assert [found.rows[i][j] for i, j in found.better] == [0.2, 0.4]
    assert [found.rows[i][j] for i, j in found.worse] == [0.1, 0.3]
    assert found.groups == (("", 1), ("", 1), ("SQuAD", 1))
    assert found.percent == ("EM",)


def test_a_table_too_long_for_the_front_stays_in_its_sections():
    long = Table("Heads", ("head",), tuple((i,) for i in range(MOST_ROWS // 2 + 1)))
    assert list(overlaid({("bert", "t"): [long], ("albert", "t"): [long]})) == []


def test_a_table_that_one_model_has_says_whose_it_is():
    of_one = Table("Heads", ("head", "0"), (("a", 1),))
    of_other = Table("Heads", ("head", "0", "1"), (("b", 1, 2),))
    views = {
        (model, task): [table]
        for model, table in (("bert", of_one), ("albert", of_other))
        for task in ("sst2", "rte")
    }
    tables = list(overlaid(views))
    assert [table.columns[:2] for table in tables] == [("model", "task")] * 2
    assert [{row[0] for row in table.rows} for table in tables] == [{"bert"}, {"albert"}]
