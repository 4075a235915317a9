"""The papers' claims about decoding, as these rows answer them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microtome.experiments.kao.decoding.report import (
    CLEAR,
    HIGH,
    MOVED,
    curve_rows,
    deeper_finding,
    deeper_rows,
    half_as_deep_again,
    inner_rows,
    tuning_finding,
)
from microtome.experiments.kit.answer import judged, sure_above, verdict
from microtome.experiments.kit.wording import percent, points
from microtome.papers.answer import CANT_TELL, Answer
from microtome.statistics.intervals import wilson
from microtome.views import TidyRow, TidyRows

FAR = 0.1  # "far below the average token": ten points
LAST_LAYERS = 1 / 3  # "the last few layers": this share of all
SHARED = "albert"  # the models whose layers share their weights
DROPS_BETWEEN = ("bert-large",)  # what the paper excepts from its claims
DROPS_SOON = ("albert-xlarge", "albert-xxlarge")
FEWEST_TEXTS = 20  # intervals over fewer are too short
SST2 = ("sst2", "sst2-sentence")


def claims(rows: TidyRows) -> dict[str, Answer]:
    """A claim's key → what was measured, from the curve that the claim is about."""
    curve = curve_rows(rows)
    answers = {}
    if curve[-1]["first_token_accuracy"] is not None:
        answers["first token"] = _first_token(rows, curve[-1])
    if tuning_finding(rows):
        answers["fine-tuned"] = _tuned(rows)
    if deeper_rows(rows):
        answers["deeper"] = _excepted(_deeper(rows), rows, DROPS_SOON)
    if inner := inner_rows(curve):
        answers["control"] = _control(inner)
        answers["inner depths"] = _excepted(_inner_depths(inner), rows, DROPS_BETWEEN)
    if _n_texts(curve[-1]) < FEWEST_TEXTS:
        answers = {key: _too_few(found, curve[-1]) for key, found in answers.items()}
    return answers


def _excepted(found: Answer, rows: TidyRows, models: Sequence[str]) -> Answer:
    """The numbers alone for a model that the paper excepts from its claim."""
    model = str(rows[0].get("model", "")).lower()
    is_excepted = any(name in model for name in models)
    return replace(found, verdict=None) if is_excepted else found


def _n_texts(row: TidyRow) -> int:
    """How many texts were decoded; rows of earlier versions don't say, and count as enough."""
    return row.get("n_first") or FEWEST_TEXTS


def _too_few(found: Answer, row: TidyRow) -> Answer:
    if found.verdict is None:
        return found
    words = f"{found.words.rstrip('.')}; {row['n_first']} texts are too few to tell"
    return replace(found, words=words, verdict=CANT_TELL)


def _inner_depths(inner: Sequence[TidyRow]) -> Answer:
    """Holds where more than half of the inner depths are sure to give back 80 % or more.

    Where random blocks do about as well at more than half of them, they aren't the layers' doing,
    and the claim doesn't get its "holds".
    """
    n_sure = sum(row["low"] >= HIGH for row in inner)
    n_possible = sum(row["high"] >= HIGH for row in inner)
    n_high = sum(row["accuracy"] >= HIGH for row in inner)
    half = len(inner) / 2
    holds = True if n_sure > half else False if n_possible <= half else None
    words = f"{n_high or 'none'} of {len(inner)}"
    if holds and sum(row["control"] >= row["accuracy"] - CLEAR for row in inner) > half:
        holds, words = None, f"{words}, but random blocks do about as well"
    shares = (n_high / len(inner), n_sure / len(inner), n_possible / len(inner))
    return Answer(words, verdict(holds), *shares, unit="%")


def _control(inner: Sequence[TidyRow]) -> Answer:
    """Holds where random blocks are sure to be 10 points worse at more than half of the depths."""
    votes = [sure_above(r["low"] - r["control"], r["high"] - r["control"], CLEAR) for r in inner]
    half = len(inner) / 2
    holds = True if votes.count(True) > half else False if votes.count(False) > half else None
    as_good = [row for row in inner if row["control"] >= row["accuracy"] - CLEAR]
    words = (
        f"random blocks do about as well at {len(as_good)} of {len(inner)} inner depths"
        if as_good
        else f"random blocks do clearly worse at all {len(inner)} inner depths"
    )
    gaps = [
        sum(row[column] - row["control"] for row in inner) / len(inner)
        for column in ("accuracy", "low", "high")
    ]
    return Answer(words, verdict(holds), *gaps)


def _first_token(rows: TidyRows, last: TidyRow) -> Answer:
    """Holds where the token after [CLS] is sure to come back 10 points less often than all do.

    Wilson's interval over the texts; a row that doesn't count them decides nothing.
    """
    share, everywhere = last["first_token_accuracy"], last["accuracy"]
    words = f"{percent(share)}; all tokens {percent(everywhere)}"
    n_texts = last.get("n_first")
    if not n_texts:
        return judged(Answer(words, verdict(None), share, unit="%"), rows, SST2)
    ends = wilson(round(share * n_texts), n_texts)
    holds = sure_above(last["low"] - ends.high, last["high"] - ends.low, FAR)
    found = Answer(words, verdict(holds), share, ends.low, ends.high, "%")
    return judged(found, rows, SST2)


def _tuned(rows: TidyRows) -> Answer:
    """Which depths fine-tuning moves by more than 5 points, by the intervals of both curves.

    Holds where some of the last third are sure to move, and those before are sure not to; doesn't
    hold where one of those before is sure to.
    """
    before = {row["depth"]: row for row in curve_rows(rows, "pretrained")}
    after = {row["depth"]: row for row in curve_rows(rows, "finetuned")}
    both = sorted(before.keys() & after.keys())
    moves = {
        depth: (
            after[depth]["accuracy"] - before[depth]["accuracy"],
            after[depth]["low"] - before[depth]["high"],
            after[depth]["high"] - before[depth]["low"],
        )
        for depth in both
    }
    early = [depth for depth in both if depth <= both[-1] * (1 - LAST_LAYERS)]
    moved = [depth for depth in both if _least(moves[depth]) > MOVED]
    holds: bool | None = None
    if any(depth in early for depth in moved):
        holds = False
    elif moved and all(max(map(abs, moves[depth])) <= MOVED for depth in early):
        holds = True
    most = max(early, key=lambda depth: abs(moves[depth][0]))
    words = f"{tuning_finding(rows)} Of the first two thirds, depth {most} moves most"
    return Answer(f"{words} ({points(moves[most][0])} points)", verdict(holds), *moves[most])


def _deeper(rows: TidyRows) -> Answer:
    """A shared layer applied half as often again, as ALBERT-base's six extra layers are.

    Holds where the last state is sure to give back 80 % of the tokens, doesn't hold where it is
    sure not to; random blocks that do about as well take a "holds" away. Other models have no
    verdict.
    """
    words, row = deeper_finding(rows), half_as_deep_again(rows)
    if SHARED not in str(rows[0].get("model", "")).lower():
        return Answer(words)
    if row is None:
        return Answer(f"{words} No model was half as deep again.", CANT_TELL)
    words += f" With {row['layers']} layers: {percent(row['accuracy'])}."
    holds = sure_above(row["low"], row["high"], HIGH)
    if holds and row["control"] >= row["accuracy"] - CLEAR:
        holds, words = None, f"{words} Random blocks do about as well."
    return Answer(words, verdict(holds), row["accuracy"], row["low"], row["high"], "%")


def _least(move: tuple[float, float, float]) -> float:
    """How far a depth is sure to have moved, up or down; 0 where its interval has 0 in it."""
    _, low, high = move
    return max(low, -high, 0.0)
