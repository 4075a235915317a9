"""The paper's claim about removal, as these rows answer it."""

from __future__ import annotations

from microtome.experiments.kao.layer_removal.report import FREE, baseline_of, measured_cuts
from microtome.experiments.kit.answer import from_row, unlearnt
from microtome.experiments.kit.learning import not_learnt
from microtome.experiments.kit.wording import counted
from microtome.papers.answer import CANT_TELL, Answer
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, Answer]:
    """``removal`` → how many cuts are sure to cost less than a point, without training.

    Holds where a cut of more than half of the layers is sure to cost less than a point; doesn't
    hold where every such cut is sure to cost more. Sure among all cuts that were looked at: the
    lower ends are corrected for their number.
    """
    base, cuts = baseline_of(rows), measured_cuts(rows)
    if why := not_learnt([base], "The whole model"):
        return {"removal": unlearnt(why)}
    n_free = sum(row["low_corrected"] > FREE for row in cuts)
    free = f"{n_free or 'none'} of {counted(len(cuts), 'cut')} {'is' if n_free < 2 else 'are'}"
    words = f"{free} sure to cost less than 1 point without training"
    large = [row for row in cuts if row["layers"] < base["layers"] / 2]
    if not large:
        return {"removal": Answer(f"{words}; no cut takes more than half", CANT_TELL)}
    best = max(large, key=lambda row: row["delta"])
    holds = None
    if any(row["low_corrected"] > FREE for row in large):
        holds = True
    elif all(row["high"] < FREE for row in large):
        holds = False
    words += f"; of more than half of the layers, the best is {best['edit']}"
    columns = ("delta", "low_corrected", "high")
    return {"removal": from_row(holds, words, best, columns)}
