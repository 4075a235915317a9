"""The paper's claims about links: diagonal candidates, where [CLS] looks, heads of shared words."""

from __future__ import annotations

from microtome.experiments.kit.head_tables import name_of
from microtome.experiments.kit.wording import CANT_TELL, DOESNT_HOLD, HOLDS, counted, verdict
from microtome.experiments.kovaleva.token_links.report import (
    cls_means,
    follows_link,
    links_in,
    of_link,
)
from microtome.tasks.annotation.features import CLS, PUNCTUATION, SEP
from microtome.views import TidyRows

PUNCTUATED = ("stsb", "rte", "qnli")  # the tasks whose [CLS] attends to punctuation in the paper
OVERLAP_HEADS = ("3.0", "1.11")
CANDIDATES = 3  # heads with the most attention on a link
DIAGONAL_SHARE = 0.1  # the share of all heads that is called diagonal


def claims(rows: TidyRows) -> dict[str, str]:
    """Diagonal candidates, [CLS] in the last layer, and the heads for shared words."""
    answers = {"cls": _cls(rows, rows[0].get("task", ""))}
    syntactic = [which for which in links_in(rows) if which[0] != "overlap"]
    if syntactic:
        answers["diagonal"] = _diagonal(rows, syntactic)
    shared = [which for which in links_in(rows) if which[0] == "overlap"]
    if shared:
        answers["overlap"] = _overlap(of_link(rows, *shared[0]))
    return answers


def _diagonal(rows: TidyRows, links: list[tuple[str, str]]) -> str:
    ranked = sorted(of_link(rows, *links[0]), key=lambda row: -row["diagonal"])
    n_diagonal = max(1, round(DIAGONAL_SHARE * len(ranked)))
    diagonal = {name_of(row) for row in ranked[:n_diagonal]}
    candidates = {
        name_of(row)
        for which in links
        for row in sorted(of_link(rows, *which), key=lambda row: -row["attention"])[:CANDIDATES]
    }
    both = sorted(candidates & diagonal)
    share = len(both) / len(candidates)
    answer = "in part" if 0.5 <= share < 1 else verdict(share == 1)
    names = f" ({', '.join(both)})" if both else ""
    return (
        f"{answer}: {len(both) or 'none'} of the {len(candidates)} heads with most attention on"
        f" these links {'is' if len(both) < 2 else 'are'} among the"
        f" {counted(n_diagonal, 'most diagonal head')}{names}"
    )


def _cls(rows: TidyRows, task: str) -> str:
    """The paper's is about fine-tuned models, on their tasks' text with its words annotated."""
    kinds = {kind: mean for kind, mean in cls_means(rows).items() if kind != CLS}
    first = next(iter(kinds))
    expected = PUNCTUATION if task in PUNCTUATED else SEP
    means = ", ".join(f"{kind} {mean:.3f}" for kind, mean in list(kinds.items())[:3])
    means += " (mean over the last layer's heads)"
    if not task:
        return f"on text of no task: {means}"
    if kinds.keys() <= {SEP, PUNCTUATION} and first == expected:
        return f"{CANT_TELL}: {means}; nouns, verbs and the others need annotated text"
    return f"{verdict(first == expected)}: {means}"


def _overlap(rows: TidyRows) -> str:
    following = sorted(filter(follows_link, rows), key=lambda row: -row["excess"])
    names = [name_of(row) for row in following]
    listed = ", ".join(names[:5]) or "none"
    if {name_of(row) for row in rows}.issuperset(OVERLAP_HEADS):
        n_named = sum(name in names for name in OVERLAP_HEADS)
        holds = n_named == len(OVERLAP_HEADS)
        return (
            f"{verdict(holds)}: {n_named or 'none'} of those two heads; beyond the offset: {listed}"
        )
    if not names:
        return f"{DOESNT_HOLD}: none of this model's {len(rows)} heads is beyond the offset"
    n_following = f"{len(names)} of {len(rows)} beyond the offset ({listed})"
    return f"{HOLDS} for some heads of this model: {n_following}"
