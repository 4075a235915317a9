"""The paper's claims about features: special tokens receive nearly all, the rest is negligible."""

from __future__ import annotations

from microtome.experiments.kit.head_tables import name_of
from microtome.experiments.kit.wording import CANT_TELL, DOESNT_HOLD, HOLDS, change, percent
from microtome.experiments.kovaleva.linguistic_features.report import (
    SPECIAL,
    features_in,
    has_changed,
    layer_mean,
    main_rows,
)
from microtome.tasks.annotation.features import CLS, SEP
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, str]:
    """What vertical attention is on, and what fine-tuning increased."""
    main = main_rows(rows)
    answers = {"special": _on_special(main)}
    if any(row["change"] is not None for row in main):
        answers["features"] = _increases(main)
    return answers


def _on_special(rows: TidyRows) -> str:
    names = features_in(rows)
    layers = sorted({row["layer"] for row in rows})
    if not set(SPECIAL) <= set(names) or len(names) == len(SPECIAL):
        return f"{CANT_TELL}: the text lacks special tokens or features"
    by_layer = {i: {name: layer_mean(rows, name, i) for name in names} for i in layers}
    top = {i: max(means, key=lambda name: means[name]) for i, means in by_layer.items()}
    n_special = sum(name in SPECIAL for name in top.values())

    def centre(name: str) -> float:
        total = sum(by_layer[i][name] for i in layers)
        return float(sum(i * by_layer[i][name] for i in layers) / total)

    cls, sep = centre(CLS), centre(SEP)
    holds = n_special == len(layers) and cls < sep
    verdict = HOLDS if holds else DOESNT_HOLD if n_special <= len(layers) / 2 else "in part"
    return (
        f"{verdict}: [CLS] or [SEP] receives most in {n_special or 'none'} of {len(layers)} layers;"
        f" the mean layer of attention on [CLS] is {cls:.1f}, of attention on [SEP] {sep:.1f}"
    )


def _increases(rows: TidyRows) -> str:
    compared = [r for r in rows if r["feature"] not in SPECIAL and r["change"] is not None]
    increased = [row for row in compared if row["change"] > 0 and has_changed(row)]
    if not increased:
        return (
            f"{DOESNT_HOLD}: no head pays more attention to any feature"
            f" (5 % over all heads of a feature, {len(compared)} comparisons)"
        )
    special = max(layer_mean(rows, name) for name in SPECIAL if name in features_in(rows))
    best = max(increased, key=lambda row: row["change"])
    kinds = ", ".join(dict.fromkeys(row["feature"] for row in increased))
    verdict = HOLDS if best["change"] < special / 2 else "in part: not negligible"
    return (
        f"{verdict}: increases for {kinds}; the largest is"
        f" {change(best['change'], best['change_low'], best['change_high'])} ({best['feature']},"
        f" head {name_of(best)}), where a special token receives {percent(special)} on average"
    )
