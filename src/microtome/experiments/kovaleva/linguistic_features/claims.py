"""The paper's claims about features: special tokens receive nearly all, the rest is negligible."""

from __future__ import annotations

from collections.abc import Sequence

from microtome.experiments.kit.answer import (
    IN_PLACE_OF,
    from_row,
    judged,
    opposite,
    sure_above,
    verdict,
)
from microtome.experiments.kit.head_tables import name_of
from microtome.experiments.kit.wording import change, percent
from microtome.experiments.kovaleva.linguistic_features.report import (
    SPECIAL,
    features_in,
    has_changed,
    layer_mean,
    main_rows,
)
from microtome.papers.answer import CANT_TELL, Answer
from microtome.views import TidyRows

# The features whose attention the paper found to increase, by task.
INCREASED = {
    "mrpc": ("nouns", "objects"), "rte": ("nouns", "objects"), "qqp": ("nouns", "objects"),
    "qnli": ("negations",),
}  # fmt: skip


def claims(rows: TidyRows) -> dict[str, Answer]:
    """What vertical attention is on, and what fine-tuning increased."""
    main = main_rows(rows)
    answers = {"special": _on_special(main)}
    if any(row["change"] is not None for row in main):
        answers["features"] = judged(_increases(main), rows, tuple(INCREASED))
    return answers


def _on_special(rows: TidyRows) -> Answer:
    """Whether [CLS] or [SEP] receives most, layer by layer; sure where mean ends don't overlap.

    Holds where that is sure in more than half of the layers, and [CLS] has its attention in earlier
    ones than [SEP]; doesn't hold where another feature is sure to receive most in half of the
    layers or more, or [SEP] comes first.
    """
    names = features_in(rows)
    layers = sorted({row["layer"] for row in rows})
    if not set(SPECIAL) <= set(names) or len(names) == len(SPECIAL):
        return Answer("the text lacks special tokens or features", CANT_TELL)
    if any(row["low"] is None for row in rows):
        return Answer("too few texts for an interval", CANT_TELL)
    gaps = [_lead_of_special(rows, names, layer) for layer in layers]
    n_special = sum(value > 0 for value, _, _ in gaps)
    n_sure, n_not = (sum(low > 0 for _, low, _ in gaps), sum(high < 0 for _, _, high in gaps))
    cls, sep = (_centre(rows, name, layers) for name in SPECIAL)
    holds = None
    if n_sure > len(layers) / 2:
        holds = cls < sep
    elif n_not >= len(layers) / 2:
        holds = False
    words = (
        f"[CLS] or [SEP] receives most in {n_special or 'none'} of {len(layers)} layers;"
        f" the mean layer of attention on [CLS] is {cls:.1f}, of attention on [SEP] {sep:.1f}"
    )
    shares = (n_special / len(layers), n_sure / len(layers), 1 - n_not / len(layers))
    return Answer(words, verdict(holds), *shares, unit="%")


def _lead_of_special(rows: TidyRows, names: list[str], layer: int) -> tuple[float, float, float]:
    """By how much more the better of [CLS] and [SEP] receives than any feature, with its ends."""
    others = [name for name in names if name not in SPECIAL]

    def highest(of: Sequence[str], column: str) -> float:
        return max(layer_mean(rows, name, layer, column) for name in of)

    return (
        highest(SPECIAL, "attention") - highest(others, "attention"),
        highest(SPECIAL, "low") - highest(others, "high"),
        highest(SPECIAL, "high") - highest(others, "low"),
    )


def _centre(rows: TidyRows, name: str, layers: Sequence[int]) -> float:
    """The mean layer of the attention on a feature."""
    by_layer = {layer: layer_mean(rows, name, layer) for layer in layers}
    return sum(i * mean for i, mean in by_layer.items()) / sum(by_layer.values())


def _increases(rows: TidyRows) -> Answer:
    """Which features gain attention through fine-tuning, beyond chance over all heads.

    Holds where one that the paper names for the task does, and the largest gain is sure to be less
    than half of what a special token receives; doesn't hold where one gains more. That none gains
    can't tell.
    """
    compared = [r for r in rows if r["feature"] not in SPECIAL and r["change"] is not None]
    increased = [row for row in compared if row["change"] > 0 and has_changed(row)]
    if not increased:
        return Answer(
            "no head pays more attention to any feature"
            f" (5 % over all heads of a feature, {len(compared)} comparisons)",
            CANT_TELL,
        )
    special = max(layer_mean(rows, name) for name in SPECIAL if name in features_in(rows))
    best = max(increased, key=lambda row: row["change"])
    kinds = ", ".join(dict.fromkeys(row["feature"] for row in increased))
    much = sure_above(best["change_low"], best["change_high"], special / 2)
    columns = ("change", "change_low", "change_high")
    words = (
        f"increases for {kinds}; the largest is {change(*(best[column] for column in columns))}"
        f" ({best['feature']}, head {name_of(best)}), where a special token receives"
        f" {percent(special)} on average"
    )
    holds = opposite(much)
    if holds and not {row["feature"] for row in increased} & _named_for(rows):
        holds = None
    return from_row(holds, words, best, columns)


def _named_for(rows: TidyRows) -> set[str]:
    """The features that the paper names for a task, or for those in whose place it is."""
    task = rows[0].get("task", "")
    return {name for each in (task, *IN_PLACE_OF.get(task, ())) for name in INCREASED.get(each, ())}
