"""Attention to linguistic features (Kovaleva et al. 2019, "Attention to linguistic features").

Per head, what nouns, verbs, pronouns, subjects, objects, negations, [CLS] and [SEP] receive from
all tokens, divided by the length; of several of a kind the maximum; averaged over the texts that
have one. The paper finds nearly all of it on [CLS] (early layers) and [SEP] (late), and increases
for nouns, objects and negations that are negligible beside those. Uniform attention is 1/L and a
maximum grows with the number of candidates: the value times L stands beside it, and as a control
the expected maximum of as many tokens drawn at random from the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from microtome.errors import RequestError
from microtome.experiments import annotated_text
from microtome.experiments.experiment import Experiment, Rows, counted
from microtome.experiments.feature_expressions import CLS, SEP, parse_features
from microtome.experiments.finetuning import OPTIONS, head_first
from microtome.experiments.head_tables import head_map, name_of
from microtome.experiments.options import Option
from microtome.experiments.subject import MODEL, Subject, opened_model, other_model
from microtome.runs import Context, Result, Trial
from microtome.views import Table, View, table_of

NAME = "linguistic-features"
BASE = "base"
MODES = ("paper", "word")
SPECIAL = (CLS, SEP)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass per checkpoint over the annotated text; a fine-tuning before it on request."""
    if settings["mode"] not in MODES:
        raise RequestError(f"--mode {settings['mode']} given, paper or word wanted")
    parse_features(settings["features"])
    text, others = annotated_text.chosen_text(subject, settings)
    needs = fine_tuned_first(subject, settings)
    if settings[BASE]:
        others[BASE] = other_model(settings[BASE])
    request = {
        **text, "mode": settings["mode"], "features": settings["features"],
        "checkpoint": "finetuned" if subject.has_task_head or needs else "pretrained",
    }  # fmt: skip
    trial = subject.trial(
        "linguistic_features:measure", NAME, request, needs=needs, others=others,
        label="attention to features",
    )  # fmt: skip
    return [*needs, trial]


def fine_tuned_first(subject: Subject, settings: Mapping[str, Any]) -> tuple[Trial, ...]:
    """The fine-tuning that ``--finetune`` asks for; it needs a task."""
    if not settings["finetune"]:
        return ()
    if subject.found is None:
        raise RequestError("--finetune given without a task", "name it: --task TASK")
    return head_first(subject, settings)


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Every feature in every head, of the model and of its base where there is one."""
    from microtome.experiments.feature_tables import attended, feature_rows
    from microtome.models import load

    model, tokenizer = opened_model(context)
    models = {request["checkpoint"]: model}
    if BASE in context.where:
        models["pretrained"] = load(Path(context.where[BASE]), head="none", device=context.device)
    elif context.needs:  # fine-tuned here: the subject itself is what it came from
        models["pretrained"] = load(Path(context.where[MODEL]), head="none", device=context.device)
    texts = annotated_text.opened_texts(request, context, model, tokenizer)
    own = parse_features(request["features"])
    found = {}
    for checkpoint, one in models.items():
        context.report(f"attention of the {checkpoint} model over {len(texts)} texts")
        found[checkpoint] = attended(one, texts, own, mode=request["mode"])
    rows = feature_rows(found, texts)
    return Result(rows=[{"mode": request["mode"], **row} for row in rows])


def features_in(rows: Rows) -> list[str]:
    """The features, in the order of the rows."""
    return list(dict.fromkeys(row["feature"] for row in rows))


def main_rows(rows: Rows) -> list[Any]:
    """Those of the model that was asked about: the fine-tuned one, if there are two."""
    names = {row["checkpoint"] for row in rows}
    chosen = "finetuned" if "finetuned" in names else "pretrained"
    return [row for row in rows if row["checkpoint"] == chosen]


def stands_out(row: Mapping[str, Any]) -> bool:
    """Whether a head gives the feature more than its share, beyond chance over all heads."""
    return row["p_maxt"] is not None and row["p_maxt"] <= 0.05 and row["excess"] > 0


def views(rows: Rows) -> tuple[View, ...]:
    """A map for every feature, its change where there is a base, and the leading heads."""
    main = main_rows(rows)
    maps: list[View] = []
    for feature in features_in(main):
        own = [row for row in main if row["feature"] == feature]
        maps.append(_attention_map(feature, own))
        if own[0]["change"] is not None:
            maps.append(_change_map(feature, own))
    return (_leaders(main), *maps)


def _attention_map(feature: str, rows: Rows) -> View:
    return head_map(
        f"Attention to {feature}", rows, "attention", value_label="share of attention",
        marked=stands_out, percent=True,
    )  # fmt: skip


def _change_map(feature: str, rows: Rows) -> View:
    return head_map(
        f"Change through fine-tuning: {feature}", rows, "change", value_label="points",
        marked=_has_changed, diverging=True, percent=True,
    )  # fmt: skip


def _has_changed(row: Mapping[str, Any]) -> bool:
    return row["p_change"] is not None and row["p_change"] <= 0.05


def _leaders(rows: Rows) -> Table:
    best = [
        {"head_name": name_of(row), **row}
        for row in (leading_head(rows, feature) for feature in features_in(rows))
    ]
    columns = (
        "feature", "head_name", "attention", "times_length", "control", "excess", "excess_low",
        "excess_high", "p_maxt", "n",
    )  # fmt: skip
    shown = ("attention", "control", "excess", "excess_low", "excess_high")
    return table_of("The head that gives each feature most beyond chance", best, columns,
                    percent=shown)  # fmt: skip


def leading_head(rows: Rows, feature: str) -> Any:  # noqa: ANN401  # a row
    """The row of the head whose excess over the control is largest."""
    own = [row for row in rows if row["feature"] == feature]
    return max(own, key=lambda row: -2.0 if row["excess"] is None else row["excess"])


def finding(rows: Rows) -> str:
    """Which features any head looks at, beyond what random tokens of the texts receive."""
    main = main_rows(rows)
    words = []
    for feature in features_in(main):
        if feature in SPECIAL:
            continue
        own = [row for row in main if row["feature"] == feature]
        some = [row for row in own if stands_out(row)]
        best = leading_head(main, feature)
        words.append(
            f"{feature} in {counted(len(some), 'head')} (most in {name_of(best)}:"
            f" {best['attention']:.3f} against {best['control']:.3f})"
        )
    n_heads = len({(row["layer"], row["head"]) for row in main})
    special = " and ".join(
        f"{name} {layer_mean(main, name):.3f}" for name in SPECIAL if name in features_in(main)
    )
    return (
        f"Of {counted(n_heads, 'head')}, beyond as many random tokens (max-T, 5 %):"
        f" {'; '.join(words) or 'no feature is in the text'}. On average over heads"
        f" {special} of a token's attention."
    )


def layer_mean(rows: Rows, feature: str, layer: int | None = None) -> float:
    """The mean attention to a feature over the heads of a layer, or of all."""
    own = [r for r in rows if r["feature"] == feature and layer in (None, r["layer"])]
    return fmean(row["attention"] for row in own)


def summary(rows: Rows) -> dict[str, Any]:
    """The leading head of every feature, and how many stand out."""
    main = main_rows(rows)
    return {
        feature: {
            "head": name_of(leading_head(main, feature)),
            "n_heads": sum(stands_out(row) for row in main if row["feature"] == feature),
        }
        for feature in features_in(main)
    }


def measured(rows: Rows) -> dict[str, str]:
    """What vertical attention is on, and what fine-tuning increased."""
    main = main_rows(rows)
    answers = {"special": _on_special(main)}
    if any(row["change"] is not None for row in main):
        answers["features"] = _increases(main)
    return answers


def _on_special(rows: Rows) -> str:
    names = features_in(rows)
    layers = sorted({row["layer"] for row in rows})
    if not set(SPECIAL) <= set(names) or len(names) == len(SPECIAL):
        return "can't tell: the text lacks special tokens or features"
    by_layer = {i: {name: layer_mean(rows, name, i) for name in names} for i in layers}
    top = {i: max(means, key=lambda name: means[name]) for i, means in by_layer.items()}
    n_special = sum(name in SPECIAL for name in top.values())

    def centre(name: str) -> float:
        total = sum(by_layer[i][name] for i in layers)
        return float(sum(i * by_layer[i][name] for i in layers) / total)

    cls, sep = centre(CLS), centre(SEP)
    holds = n_special == len(layers) and cls < sep
    verdict = "holds" if holds else "doesn't hold" if n_special <= len(layers) / 2 else "in part"
    return (
        f"{verdict}: [CLS] or [SEP] receives most in {n_special} of {len(layers)} layers; the"
        f" attention on [CLS] lies at layer {cls:.1f} on average, that on [SEP] at {sep:.1f}"
    )


def _increases(rows: Rows) -> str:
    own = [row for row in rows if row["feature"] not in SPECIAL and row["change"] is not None]
    up = [row for row in own if row["change"] > 0 and _has_changed(row)]
    special = max(layer_mean(rows, name) for name in SPECIAL if name in features_in(rows))
    if not up:
        return f"doesn't hold: no head pays more attention to any feature (max-T, 5 %, {len(own)})"
    best = max(up, key=lambda row: row["change"])
    kinds = ", ".join(dict.fromkeys(row["feature"] for row in up))
    verdict = "holds" if best["change"] < special / 2 else "in part: not negligible"
    return (
        f"{verdict}: increases for {kinds}; the largest {best['change']:+.3f} ({best['feature']},"
        f" head {name_of(best)}), where {special:.3f} goes to a special token on average"
    )


EXPERIMENT = Experiment(
    name=NAME,
    section="Kovaleva et al. 2019, Attention to linguistic features",
    question="Which kinds of words does a head attend to?",
    method=__doc__ or "",
    columns=(
        "checkpoint", "feature", "layer", "head", "attention", "low", "high", "n", "times_length",
        "control", "excess", "p_maxt", "change", "p_change",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    options=(
        *annotated_text.OPTIONS,
        Option("features", [], "more features: name=EXPR, over upos, deprel, lemma", "words"),
        Option("mode", "paper", "paper: a piece is a token; word: pieces are put together"),
        Option(BASE, None, "the pre-trained model, for difference maps", "model"),
        Option("finetune", False, "fine-tune a model without a task head first", "flag"),
        *OPTIONS,
    ),
    measured=measured,
    needs_rows=False,
)  # fmt: skip
