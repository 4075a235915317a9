"""Token-to-token attention (Kovaleva et al. 2019, "Token-to-token attention", and Discussion).

Per head, the attention between a verb and its subject, a noun and its pronoun, and a word that both
texts of a pair have, in both directions: the largest weight among their pieces, averaged over the
links of a text, then over texts. Control: the same link moved elsewhere in the text, with the same
signed offsets, where no such link is; beside it the same keys from other queries (a stripe), and
how diagonal the head is. The paper finds candidates that coincide with diagonal heads;
a head that goes by position has the control's weight. Beside it, what [CLS] attends to in the last
layer: [SEP] most on most tasks, the paper reports, punctuation on STS-B, RTE and QNLI.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from microtome.experiments import annotated_text
from microtome.experiments.experiment import Experiment, Rows, counted
from microtome.experiments.feature_expressions import CLS, PUNCTUATION, SEP
from microtome.experiments.finetuning import OPTIONS
from microtome.experiments.head_tables import head_map, name_of
from microtome.experiments.linguistic_features import fine_tuned_first
from microtome.experiments.options import Option
from microtome.experiments.subject import Subject, opened_model
from microtome.experiments.word_links import SIDES, chosen_links
from microtome.runs import Context, Result, Trial
from microtome.views import Table, View, table_of

NAME = "token-links"
MEANINGFUL = 0.01  # an excess below a point of attention is no link, however sure
PUNCTUATED = ("stsb", "rte", "qnli")
OVERLAP_HEADS = ("3.0", "1.11")
CANDIDATES = 3  # heads with the most attention on a link
DIAGONAL_SHARE = 0.1  # the share of all heads that is called diagonal


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass over the annotated text; a fine-tuning before it on request."""
    text, others = annotated_text.chosen_text(subject, settings, words_suffice=True)
    if settings["links"]:
        path = others[annotated_text.TREEBANK].path if others else None
        chosen_links(annotated_text.sample_passages(subject, text, path), settings["links"])
    needs = fine_tuned_first(subject, settings)
    trial = subject.trial(
        "token_links:measure", NAME, {**text, "links": settings["links"]}, needs=needs,
        others=others, label="attention on links",
    )  # fmt: skip
    return [*needs, trial]


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Every link in every head in both directions, and [CLS] in the last layer."""
    from microtome.experiments.link_tables import cls_rows, link_rows

    model, tokenizer = opened_model(context)
    texts = annotated_text.opened_texts(request, context, model, tokenizer)
    links = chosen_links(texts.passages, request["links"])
    context.report(f"attention over {len(texts)} texts: {', '.join(links) or 'no link'}, [CLS]")
    rows = link_rows(model, texts, links)
    return Result(rows=[*rows, *cls_rows(model, texts)])


def links_in(rows: Rows) -> list[tuple[str, str]]:
    """(link, direction) in the order of the rows, [CLS] aside."""
    return list(dict.fromkeys((r["link"], r["direction"]) for r in rows if r["link"] != CLS))


def of_link(rows: Rows, link: str, direction: str) -> list[Any]:
    """The rows of one link in one direction."""
    return [row for row in rows if (row["link"], row["direction"]) == (link, direction)]


def is_found(row: Mapping[str, Any]) -> bool:
    """Whether a head follows the link beyond position, and beyond chance over all heads."""
    sure = row["p_maxt"] is not None and row["p_maxt"] <= 0.05
    return sure and row["excess"] >= MEANINGFUL


def leading(rows: Rows) -> Any:  # noqa: ANN401  # a row
    """The head with the largest excess over the offset control."""
    return max(rows, key=lambda row: -2.0 if row["excess"] is None else row["excess"])


def views(rows: Rows) -> tuple[View, ...]:
    """The excess of every link, the leading heads, and what [CLS] attends to."""
    maps = [
        head_map(
            f"{link}, {direction}: attention beyond the same offset",
            of_link(rows, link, direction), "excess",
            value_label="points", marked=is_found, diverging=True, percent=True,
        )
        for link, direction in links_in(rows)
    ]  # fmt: skip
    return (*_leaders(rows), *maps, _cls_table(rows))


def _leaders(rows: Rows) -> tuple[Table, ...]:
    best = [leading(of_link(rows, *which)) for which in links_in(rows)]
    if not best:
        return ()
    columns = (
        "link", "direction", "head_name", "attention", "control", "stripe_control", "excess",
        "excess_low", "excess_high", "p_maxt", "diagonal", "n",
    )  # fmt: skip
    shown = tuple(name for name in columns[3:] if name not in ("p_maxt", "n"))
    named = [{"head_name": name_of(row), **row} for row in best]
    title = "The head that follows each link most, beyond its offset"
    return (table_of(title, named, columns, percent=shown),)


def cls_means(rows: Rows) -> dict[str, float]:
    """What [CLS] gives each kind of token in the last layer, over its heads; most first."""
    own = [row for row in rows if row["link"] == CLS]
    kinds = list(dict.fromkeys(row["feature"] for row in own))
    means = {kind: fmean(r["attention"] for r in own if r["feature"] == kind) for kind in kinds}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def _cls_table(rows: Rows) -> Table:
    own = [row for row in rows if row["link"] == CLS]
    lines = [
        {
            "to": kind, "attention": mean,
            "control": _mean([r["control"] for r in own if r["feature"] == kind]),
            "n": next(r["n"] for r in own if r["feature"] == kind),
        }
        for kind, mean in cls_means(rows).items()
    ]  # fmt: skip
    columns = ("to", "attention", "control", "n")
    title = "What [CLS] attends to in the last layer, mean over heads"
    return table_of(title, lines, columns, percent=("attention", "control"))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def finding(rows: Rows) -> str:
    """Which heads follow a link rather than an offset, and where [CLS] looks."""
    words = []
    for link, direction in links_in(rows):
        own = of_link(rows, link, direction)
        some, best = [row for row in own if is_found(row)], leading(own)
        words.append(
            f"{link} ({direction}): {counted(len(some), 'head')} of {len(own)} beyond the same"
            f" offset without a link, most {name_of(best)} ({best['attention']:.2f} against"
            f" {best['control']:.2f})."
        )
    absent = [name for name in SIDES if name not in {link for link, _ in links_in(rows)}]
    if absent:
        words.append(f"Not in this text: {', '.join(absent)}.")
    kinds = [f"{kind} {mean:.3f}" for kind, mean in cls_means(rows).items() if kind != CLS]
    words.append(f"In the last layer [CLS] gives most to {', then '.join(kinds[:3])}.")
    return " ".join(words)


def summary(rows: Rows) -> dict[str, Any]:
    """The leading head of every link, and the kinds of tokens that [CLS] attends to."""
    heads = {
        f"{link} ({direction})": {
            "head": name_of(leading(own)), "n_heads": sum(is_found(row) for row in own),
        }
        for link, direction in links_in(rows)
        if (own := of_link(rows, link, direction))
    }  # fmt: skip
    return {**heads, "cls_attends_to": cls_means(rows)}


def measured(rows: Rows) -> dict[str, str]:
    """Diagonal candidates, [CLS] in the last layer, and the heads for shared words."""
    task = rows[0].get("task", "")
    answers = {"cls": _cls_claim(rows, task)}
    syntactic = [which for which in links_in(rows) if which[0] != "overlap"]
    if syntactic:
        answers["diagonal"] = _diagonal_claim(rows, syntactic)
    shared = [which for which in links_in(rows) if which[0] == "overlap"]
    if shared:
        answers["overlap"] = _overlap_claim(rows, shared)
    return answers


def _diagonal_claim(rows: Rows, links: list[tuple[str, str]]) -> str:
    every = of_link(rows, *links[0])
    ranked = sorted(every, key=lambda row: -row["diagonal"])
    n_diagonal = max(1, round(DIAGONAL_SHARE * len(ranked)))
    diagonal = {name_of(row) for row in ranked[:n_diagonal]}
    candidates = {
        name_of(row)
        for which in links
        for row in sorted(of_link(rows, *which), key=lambda row: -row["attention"])[:CANDIDATES]
    }
    both = sorted(candidates & diagonal)
    share = len(both) / len(candidates)
    verdict = "holds" if share == 1 else "doesn't hold" if share < 0.5 else "in part"
    return (
        f"{verdict}: {len(both)} of the {len(candidates)} heads with most attention on these links"
        f" are among the {counted(n_diagonal, 'most diagonal head')} ({', '.join(both) or 'none'})"
    )


def _cls_claim(rows: Rows, task: str) -> str:
    """The paper's is about fine-tuned models, on their tasks' text with its words annotated."""
    kinds = {kind: mean for kind, mean in cls_means(rows).items() if kind != CLS}
    first = next(iter(kinds))
    wanted = PUNCTUATION if task in PUNCTUATED else SEP
    shown = ", ".join(f"{kind} {mean:.3f}" for kind, mean in list(kinds.items())[:3])
    shown += " (mean over the last layer's heads)"
    if not task:
        return f"on text of no task: {shown}"
    if kinds.keys() <= {SEP, PUNCTUATION} and first == wanted:
        return f"can't tell: {shown}; nouns, verbs and the others need annotated text"
    verdict = "holds" if first == wanted else "doesn't hold"
    return f"{verdict}: {shown}"


def _overlap_claim(rows: Rows, links: list[tuple[str, str]]) -> str:
    own = of_link(rows, *links[0])
    some = sorted((row for row in own if is_found(row)), key=lambda row: -row["excess"])
    names = [name_of(row) for row in some]
    if {name_of(row) for row in own}.issuperset(OVERLAP_HEADS):
        named = [name for name in OVERLAP_HEADS if name in names]
        verdict = "holds" if len(named) == len(OVERLAP_HEADS) else "doesn't hold"
        shown = f"beyond the offset: {', '.join(names[:5]) or 'none'}"
        return f"{verdict}: {len(named)} of those two heads; {shown}"
    verdict = "holds" if names else "doesn't hold"
    return (
        f"{verdict} for some heads of this model: {len(names)} of {len(own)} beyond the offset"
        f" ({', '.join(names[:5]) or 'none'})"
    )


EXPERIMENT = Experiment(
    name=NAME,
    section="Kovaleva et al. 2019, Token-to-token attention",
    question="Do heads follow links between words, or only their distance?",
    method=__doc__ or "",
    columns=(
        "link", "direction", "layer", "head", "attention", "low", "high", "n", "control",
        "stripe_control", "excess", "p_maxt", "diagonal", "feature",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    options=(
        *annotated_text.OPTIONS,
        Option("links", [], f"of {', '.join(SIDES)}; all that the text allows", "words"),
        Option("finetune", False, "fine-tune a model without a task head first", "flag"),
        *OPTIONS,
    ),
    measured=measured,
    needs_rows=False,
)  # fmt: skip
