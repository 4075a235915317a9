"""The drawings beside a table's rows are of the change, whatever other intervals it has."""

from microtome.report.intervals import change_columns, draw_intervals, intervals_of
from microtome.report.tables import signed_columns
from microtome.views import table_of

ROWS = [
    {
        "value": 0.5, "low": 0.4, "high": 0.6,
        "delta": 0.02, "delta_low": -0.01, "delta_high": 0.05,
    }
]  # fmt: skip


def test_a_change_is_drawn_with_its_own_ends_not_with_those_of_the_value():
    table = table_of("t", ROWS, tuple(ROWS[0]))
    assert change_columns(table) == ("delta", "delta_low", "delta_high")
    assert intervals_of(table) == [(0.02, -0.01, 0.05)]
    assert signed_columns(table) == {"delta", "delta_low", "delta_high"}  # low and high: no plus
    assert len(draw_intervals(table)) == 2  # the scale, and the row


def test_plain_ends_belong_to_the_change_where_nothing_else_has_any():
    table = table_of("t", [{"change": -0.1, "low": -0.2, "high": 0.0}], ("change", "low", "high"))
    assert intervals_of(table) == [(-0.1, -0.2, 0.0)]


def test_without_a_change_nothing_is_drawn():
    assert draw_intervals(table_of("t", ROWS, ("value", "low", "high"))) == []
    assert draw_intervals(table_of("t", ROWS, ("value", "delta"))) == []
