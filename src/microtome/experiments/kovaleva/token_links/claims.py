"""The paper's claims about links: diagonal candidates, where [CLS] looks, heads of shared words."""

from __future__ import annotations

from microtome.experiments.kit.answer import is_about, judged, verdict
from microtome.experiments.kit.head_tables import name_of
from microtome.experiments.kit.wording import counted
from microtome.experiments.kovaleva.token_links.report import (
    cls_means,
    follows_link,
    links_in,
    of_link,
)
from microtome.papers.answer import CANT_TELL, HOLDS, Answer
from microtome.tasks.annotation.features import CLS, PUNCTUATION, SEP
from microtome.views import TidyRows

PUNCTUATED = ("stsb", "rte", "qnli")  # the tasks whose [CLS] attends to punctuation in the paper
# Stands for RTE and QNLI, but for SNLI and MNLI, too, of which the paper says [SEP].
MOSTLY_SEP = ("micro-entailment",)
OVERLAP_HEADS, OVERLAPPING = ("3.0", "1.11"), ("stsb", "rte")
PAPERS_MODEL = "bert-base"  # whose heads those two are
CANDIDATES = 3  # heads with the most attention on a link
DIAGONAL_SHARE = 0.1  # the share of all heads that is called diagonal


def claims(rows: TidyRows) -> dict[str, Answer]:
    """Diagonal candidates, [CLS] in the last layer, and the heads for shared words."""
    answers = {"cls": _cls(rows)}
    syntactic = [which for which in links_in(rows) if which[0] != "overlap"]
    if syntactic:
        answers["diagonal"] = _diagonal(rows, syntactic)
    shared = [which for which in links_in(rows) if which[0] == "overlap"]
    if shared:
        answers["overlap"] = judged(_overlap(of_link(rows, *shared[0])), rows, OVERLAPPING)
    return answers


def _diagonal(rows: TidyRows, links: list[tuple[str, str]]) -> Answer:
    """The heads with most attention on a link against the tenth of heads that is most diagonal.

    Or against as many as there are candidates, if these are more. Holds where all candidates are
    among them, doesn't hold where fewer than half are.
    """
    ranked = sorted(of_link(rows, *links[0]), key=lambda row: -row["diagonal"])
    candidates = {
        name_of(row)
        for which in links
        for row in sorted(of_link(rows, *which), key=lambda row: -row["attention"])[:CANDIDATES]
    }
    n_diagonal = max(len(candidates), round(DIAGONAL_SHARE * len(ranked)))
    diagonal = {name_of(row) for row in ranked[:n_diagonal]}
    both = sorted(candidates & diagonal)
    share = len(both) / len(candidates)
    names = f" ({', '.join(both)})" if both else ""
    words = (
        f"{len(both) or 'none'} of the {len(candidates)} heads with most attention on"
        f" these links {'is' if len(both) < 2 else 'are'} among the"
        f" {counted(n_diagonal, 'most diagonal head')}{names}"
    )
    return Answer(words, verdict(None if 0.5 <= share < 1 else share == 1), share, unit="%")


def _cls(rows: TidyRows) -> Answer:
    """What [CLS] gives most to in the last layer; the paper's is about fine-tuned models.

    Holds where that is the kind of token that the paper names for the task, doesn't hold where it
    is another; its interval over texts must be above that of every other kind. Without annotation
    of nouns, verbs and the others, the kind that it names can't be known to be the first of all.
    """
    kinds = {kind: mean for kind, mean in cls_means(rows).items() if kind != CLS}
    first, task = next(iter(kinds)), rows[0].get("task", "")
    expected = PUNCTUATION if is_about(rows, PUNCTUATED) and task not in MOSTLY_SEP else SEP
    means = ", ".join(f"{kind} {mean:.3f}" for kind, mean in list(kinds.items())[:3])
    means += " (mean over the last layer's heads)"
    value = kinds.get(expected)
    if not task:
        return Answer(f"on text of no task: {means}", None, value, unit="%")
    if kinds.keys() <= {SEP, PUNCTUATION} and first == expected:
        words = f"{means}; nouns, verbs and the others need annotated text"
        return Answer(words, CANT_TELL, value, unit="%")
    holds = first == expected if _is_surely_first(rows, first) else None
    return Answer(means, verdict(holds), value, unit="%")


def _is_surely_first(rows: TidyRows, first: str) -> bool:
    """Whether the interval of a kind's mean is above those of all others; [CLS] isn't one."""
    if any(row["low"] is None for row in rows if row["link"] == CLS):
        return False
    lows, highs = cls_means(rows, "low"), cls_means(rows, "high")
    return all(lows[first] > high for kind, high in highs.items() if kind not in (first, CLS))


def _overlap(rows: TidyRows) -> Answer:
    """Heads that follow words of both texts beyond their offset, corrected for all heads.

    In the paper's model, holds where its two heads do, and doesn't hold where one doesn't; in
    another, holds where any does. That none does in so few texts can't tell.
    """
    following = sorted(filter(follows_link, rows), key=lambda row: -row["excess"])
    names = [name_of(row) for row in following]
    listed, share = ", ".join(names[:5]) or "none", len(names) / len(rows)
    if PAPERS_MODEL in str(rows[0].get("model", "")).lower():
        n_named = sum(name in names for name in OVERLAP_HEADS)
        words = f"{n_named or 'none'} of those two heads; beyond the offset: {listed}"
        return Answer(words, verdict(n_named == len(OVERLAP_HEADS)), share, unit="%")
    if not names:
        words = f"none of this model's {len(rows)} heads is beyond the offset"
        return Answer(words, CANT_TELL, share, unit="%")
    words = f"for some heads of this model: {len(names)} of {len(rows)} beyond the offset"
    return Answer(f"{words} ({listed})", HOLDS, share, unit="%")
