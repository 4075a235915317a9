"""What a trim says follows from its rows: other rows, another sentence."""

from __future__ import annotations

import pytest

from microtome.experiments.field.trim.choice import Wish, cuts_of, nearest, recommended
from microtome.experiments.field.trim.judging import mark_frontier
from microtome.experiments.field.trim.report import finding, frontier, sentence, summary, views
from support.trimming.judged_rows import row

BASE = row("", 6, speed=1.0)
FIVE = row("keep(0-3, 5)", 5)
FOUR = row("keep(0, 2-3, 5)", 4, delta=-0.004, low=-0.011, high=0.003, pick_low=-0.008)
THREE = row(
    "keep(0, 3, 5)", 3, delta=-0.02, low=-0.03, high=-0.01, pick_low=-0.031, pick_value=0.88
)
ROWS = [BASE, FIVE, FOUR, THREE]
POINT = Wish()


def test_the_smallest_cut_that_is_sure_to_lose_less_is_recommended():
    assert recommended(ROWS, POINT) == FOUR
    assert recommended(ROWS, Wish(0.04)) == THREE
    assert recommended(ROWS, Wish(0.006)) == FIVE
    assert recommended(ROWS, Wish(0.001)) is None


def test_more_layers_are_told_of_and_never_recommended():
    deeper = row("duplicate(0)", 7, pick_low=0.01, pick_value=0.99, speed=0.9)
    assert recommended([BASE, deeper], POINT) is None
    assert recommended([*ROWS, deeper], POINT) == FOUR
    assert "More depth: Make 7 layers of 6 by duplicate(0)" in finding([*ROWS, deeper])


def test_the_sentence_has_the_cut_and_its_price():
    said = sentence(ROWS, POINT)
    assert said.startswith(
        "Keep layers 0, 2 to 3, 5 of 6: −0.4 points (−1.1 to +0.3) of accuracy, 1.5× faster,"
        " 33.3 % smaller."
    )
    assert "don't exclude a loss of more than 1 point" in said
    sure = [{**FOUR, "low": -0.009} if one is FOUR else one for one in ROWS]
    assert sentence(sure, POINT).endswith("33.3 % smaller.")
    assert "Keep layers 0, 3, 5 of 6: −2.0 points (−3.0 to −1.0)" in sentence(ROWS, Wish(0.04))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"delta": 0.002}, "+0.2 points"),
        ({"low": -0.02}, "(−2.0 to +0.3)"),
        ({"speed": 2.04}, "2.0× faster"),
        ({"speed": 0.8}, "1.2× slower"),
        ({"speed": None}, "speed not measurable now"),
        ({"parameters": 300}, "50.0 % smaller"),
        ({"parameters": 660}, "10.0 % larger"),
        ({"metric": "spearman"}, "of spearman"),
        ({"healed": False}, "without training"),
        ({"edit": "extend(9)", "layers": 2}, "Make 2 layers of 6 by extend(9)"),
    ],
)
def test_doctored_rows_change_the_sentence(change, said):
    plain = sentence([BASE, FOUR], POINT)
    doctored = sentence([BASE, {**FOUR, **change}], POINT)
    assert said in doctored
    assert said not in plain


def test_what_is_scored_has_no_say_in_what_is_recommended():
    lucky = {**THREE, "delta": 0.05, "low": 0.04, "high": 0.06, "value": 0.95}
    assert recommended([BASE, FIVE, FOUR, lucky], POINT) == FOUR
    unlucky = {**FOUR, "delta": -0.3, "low": -0.4, "high": -0.2, "value": 0.6}
    assert recommended([BASE, FIVE, unlucky, THREE], POINT) == unlucky


def test_of_a_size_the_better_one_on_the_rows_that_pick():
    untrained = {**FOUR, "edit": "keep(0-3)", "healed": False, "pick_value": 0.91}
    assert recommended([BASE, FOUR, untrained], POINT) == untrained
    assert recommended([BASE, FOUR, {**untrained, "pick_value": 0.89}], POINT) == FOUR


def test_a_speed_asks_for_the_best_that_is_so_fast():
    fast = Wish(lose=None, speed=1.4)
    assert recommended(ROWS, fast) == FOUR  # 1.5× and better than the one with 2×
    assert recommended(ROWS, Wish(None, 2.0)) == THREE
    assert recommended(ROWS, Wish(None, 2.1)) is None
    assert recommended(ROWS, Wish(0.01, 2.0)) is None
    unknown = [BASE, {**FOUR, "speed": None}]
    assert recommended(unknown, Wish(None, 1.1)) is None


def test_a_speed_that_no_cut_has_is_said_with_the_fastest():
    said = sentence(ROWS, Wish(None, 3.0))
    assert said.startswith("No cut is 3× as fast as the base.")
    assert "The nearest: Keep layers 0, 3, 5 of 6" in said


def test_a_speed_that_is_nearly_what_was_asked_for_is_not_rounded_up_to_it():
    for speed, shown in ((1.94, "1.9×"), (1.96, "1.96×"), (1.9996, "1.99×")):
        said = sentence([BASE, {**THREE, "speed": speed}], Wish(None, 2.0))
        assert said.startswith("No cut is 2× as fast as the base.")
        assert f" {shown} faster" in said


def test_no_cut_qualifies_and_the_nearest_is_named():
    said = sentence([BASE, THREE, {**FOUR, "pick_low": -0.0235}], POINT)
    assert said.startswith("No cut is sure to lose less than 1 point")
    assert "The nearest: Keep layers 0, 2 to 3, 5 of 6" in said
    assert said.endswith("; by the rows that pick, --lose 2.4 would save it.")


def test_the_named_loss_takes_the_nearest():
    for lower in (-0.0234, -0.0236, -0.023, -0.0999):
        rows = [BASE, {**FOUR, "pick_low": lower}]
        asked = float(sentence(rows, POINT).split("--lose ")[1].split(" ")[0])
        assert recommended(rows, Wish(asked / 100)) is not None, (lower, asked)


def test_the_nearest_of_those_that_are_fast_enough():
    said = sentence(ROWS, Wish(0.01, 2.0))
    assert said.startswith("No cut is sure to lose less than 1 point")
    assert "The nearest: Keep layers 0, 3, 5 of 6" in said
    asked = float(said.split("--lose ")[1].split(" ")[0])
    assert recommended(ROWS, Wish(asked / 100, 2.0)) == THREE


def test_one_layer_is_said_in_the_singular():
    one = row("keep(4)", 1)
    assert sentence([BASE, one], POINT).startswith("Keep layer 4 of 6:")


def test_the_nearest_cut_is_the_one_that_the_named_loss_would_save():
    """Three layers and four are as good where it is picked: the faster one would be saved."""
    rows = [BASE, {**THREE, "pick_low": -0.0235}, {**FOUR, "pick_low": -0.0235}]
    assert nearest(rows, POINT) == rows[1]
    assert recommended(rows, Wish(0.024)) == rows[1]


def test_a_base_that_has_not_learnt_gets_no_cut():
    poor = {**BASE, "pick_value": 0.5}
    said = sentence([poor, FIVE, FOUR], POINT)
    assert recommended([poor, FIVE, FOUR], POINT) is None
    assert said.startswith("The model hasn't learnt the task: its accuracy is 50.0 %")
    assert "no better than one constant answer (50.0 %)" in said
    assert recommended([{**BASE, "one_answer": True}, FOUR], POINT) is None


def test_a_base_that_was_not_fine_tuned_here_is_not_to_be_trained_longer():
    poor = {**BASE, "pick_value": 0.5}
    said = {
        tuned: sentence([{**poor, "fine_tuned": tuned}, FIVE], POINT) for tuned in (True, False)
    }
    assert said[True].endswith("Train it longer first: --least-steps 300.")
    assert said[False].endswith("Is it made for these rows and labels?")


def test_one_answer_only_is_no_cut():
    alike = [{**cut, "one_answer": True} for cut in (FIVE, FOUR, THREE)]
    assert recommended([BASE, *alike], Wish(1.0)) is None
    assert sentence([BASE, *alike], POINT) == (
        "Every cut gives one answer only: none is recommended."
    )
    assert recommended([BASE, FIVE, *alike[1:]], POINT) == FIVE


def screened(layers: int) -> dict:
    return {"stage": "screened", "edit": f"keep(0-{layers - 1})", "layers": layers}


def healed(layers: int, problem: str | None = None) -> dict:
    return {
        "stage": "healed", "edit": f"keep(0-{layers - 1})", "layers": layers, "healed": True,
        "steps": 3, "texts": 64, "contenders": 1, "diverged": problem,
    }  # fmt: skip


def test_the_finding_counts_what_was_tried_and_what_diverged():
    said = finding([*ROWS, screened(4), screened(4), screened(3), healed(4), healed(3)])
    assert said.startswith(sentence(ROWS, POINT))
    assert "3 cuts tried without training, 2 sizes healed." in said
    assert "diverged" not in said
    lost = [*ROWS, screened(4), healed(4), healed(3, "the training diverged at step 2")]
    assert "The healing of 3 layers diverged: take a smaller --healing-rate." in finding(lost)


def also(edit: str, is_healed: bool, delta: float) -> dict:
    return {**FOUR, "stage": "also", "edit": edit, "healed": is_healed, "delta": delta,
            "low": delta, "high": delta, "task": "other"}  # fmt: skip


def test_other_data_is_told_of_the_recommended_cut_alone():
    rows = [*ROWS, also(FOUR["edit"], True, -0.05), also(THREE["edit"], True, -0.07)]
    assert "On other data: other −5.0 points" in finding(rows)
    assert "−7.0" not in finding(rows)
    # A cut without training isn't the healed one of the same layers.
    untrained = [BASE, {**FOUR, "healed": False}, also(FOUR["edit"], True, -0.05)]
    assert "On other data" not in finding(untrained)


def test_the_summary_is_the_recommendation():
    assert summary(ROWS)["recommended"]["edit"] == FOUR["edit"]
    assert summary([BASE, THREE]) == {"recommended": None}


def test_cuts_are_listed_from_the_most_layers_on():
    untrained = {**FOUR, "healed": False}
    assert cuts_of([untrained, THREE, BASE, FIVE, FOUR]) == [FIVE, FOUR, untrained, THREE]


def test_the_frontier_has_the_base_and_the_cuts_that_nothing_beats():
    made = mark_frontier([{**BASE, "pick_value": 0.9}, {**FIVE, "pick_value": 0.89}, THREE])
    assert [one["on_frontier"] for one in made] == [True, True, True]
    better = {**THREE, "pick_value": 0.895}
    made = mark_frontier([BASE, {**FIVE, "pick_value": 0.89}, better])
    assert [one["on_frontier"] for one in made] == [True, False, True]


def test_the_picture_has_score_against_speed():
    rows = [*ROWS, {**FOUR, "healed": False, "value": 0.7}]
    curve = frontier(rows)
    lines = {line.name: line for line in curve.series}
    assert set(lines) == {"healed", "without training", "one constant answer"}
    assert lines["healed"].x == pytest.approx((1.0, 1.2, 1.5, 2.0))
    assert lines["without training"].y == (0.9, 0.7)
    unmeasured = frontier([{**one, "speed": None} if one["edit"] else one for one in ROWS])
    assert [line.name for line in unmeasured.series] == ["one constant answer"]


def test_every_part_of_a_trim_is_in_its_views():
    rows = [*ROWS, {**screened(4), "pick_value": 0.8}, healed(4), also(FOUR["edit"], True, -0.05)]
    titles = [view.title for view in views(rows)]
    assert len(titles) == 5
    assert len([title for title in titles if "other data" in title]) == 1
    assert len(views(rows[:-1])) == 4


def test_the_recommended_cut_is_marked_on_the_frontier():
    marked = frontier(ROWS, Wish(0.04))
    assert (marked.divider, marked.divider_label) == (THREE["speed"], "keep(0, 3, 5)")
    assert frontier(ROWS, Wish(0.001)).divider is None


def test_all_words_of_a_finding_are_of_one_wish():
    assert finding(ROWS, Wish(0.04)).startswith(sentence(ROWS, Wish(0.04)))
    assert finding(ROWS).startswith(sentence(ROWS, POINT))
