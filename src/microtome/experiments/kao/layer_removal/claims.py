"""The paper's claim about removal, as these rows answer it."""

from __future__ import annotations

from microtome.experiments.kao.layer_removal.report import FREE, measured_cuts
from microtome.experiments.kit.wording import counted
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, str]:
    """``removal`` → how many cuts are sure to cost less than a point, without training.

    Sure among all cuts that were looked at: the ends are corrected for their number.
    """
    cuts = measured_cuts(rows)
    n_free = sum(row["low_corrected"] > FREE for row in cuts)
    free = f"{n_free or 'none'} of {counted(len(cuts), 'cut')} {'is' if n_free < 2 else 'are'}"
    return {"removal": f"{free} sure to cost less than 1 point without training"}
