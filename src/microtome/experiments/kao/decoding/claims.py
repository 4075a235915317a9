"""The papers' claims about decoding, as these rows answer them."""

from __future__ import annotations

from microtome.experiments.kao.decoding.report import (
    CLEAR,
    HIGH,
    curve_rows,
    inner_rows,
    tuning_finding,
)
from microtome.experiments.kit.wording import percent
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, str]:
    """A claim's key → what was measured, from the curve that the claim is about."""
    curve = curve_rows(rows)
    first, last = curve[-1]["first_token_accuracy"], curve[-1]["accuracy"]
    answers = {"fine-tuned": tuning_finding(rows)}
    if first is not None:
        answers["first token"] = f"{percent(first)}; all tokens {percent(last)}"
    if inner := inner_rows(curve):
        high = [row for row in inner if row["accuracy"] >= HIGH]
        as_good = [row for row in inner if row["control"] >= row["accuracy"] - CLEAR]
        answers["inner depths"] = f"{len(high) or 'none'} of {len(inner)}"
        answers["control"] = (
            f"random blocks do about as well at {len(as_good)} of {len(inner)} inner depths"
            if as_good
            else f"random blocks do clearly worse at all {len(inner)} inner depths"
        )
    return {key: text for key, text in answers.items() if text}
