"""The paper's claim about attention drift: the last two layers change most."""

from __future__ import annotations

from microtome.experiments.kit.wording import CANT_TELL, DOESNT_HOLD, HOLDS
from microtome.experiments.kovaleva.attention_drift.report import whole_layers, with_interval
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, str]:
    """Whether the last two layers changed most, in every fine-tuning."""
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    tunings = [whole_layers([row for row in rows if row["seed"] == seed]) for seed in seeds]
    verdicts = {_last_two_change_most(layers) for layers in tunings}
    verdict = verdicts.pop() if len(verdicts) == 1 else f"{CANT_TELL}: fine-tunings disagree"
    lowest = sorted(tunings[0], key=lambda row: row["cosine"])[:2]
    shown = " and ".join(f"{row['layer']} ({with_interval(row)})" for row in lowest)
    shown += f" of {len(tunings[0])} change most{'' if len(seeds) > 1 else ', one fine-tuning'}"
    return {"layers": f"{verdict}: layers {shown}"}


def _last_two_change_most(layers: TidyRows) -> str:
    """By intervals over texts: the last two both below the others, or one of the others below."""
    ordered = sorted(layers, key=lambda row: row["layer"])
    if len(ordered) < 3 or any(row["low"] is None for row in ordered):
        return CANT_TELL
    last, before = ordered[-2:], ordered[:-2]
    if max(row["high"] for row in last) < min(row["low"] for row in before):
        return HOLDS
    other = min(row["high"] for row in before) < max(row["low"] for row in last)
    return DOESNT_HOLD if other else CANT_TELL
