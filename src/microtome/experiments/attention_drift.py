"""Attention drift (Kovaleva et al. 2019, "Change in self-attention patterns after fine-tuning").

Per head the cosine between the flattened attention maps of the pre-trained and of the fine-tuned
model, averaged over the measured rows. The paper finds the last two layers changed most on all
tasks but QQP. It flattened padded maps; here only real tokens count. Two floors tell what a cosine
means: maps of different heads (the same layer's) are alike too, and so are two fine-tunings that
differ by their seed. Jensen–Shannon divergence stands beside it as a second measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import ModelError, RequestError
from microtome.experiments.attention_drift_words import finding, measured, summary, views
from microtome.experiments.experiment import Experiment
from microtome.experiments.finetuning import OPTIONS, Arm, arm_trial
from microtome.experiments.layer_rules import outline
from microtome.experiments.options import Option
from microtome.experiments.subject import CHECKPOINT, MODEL, Subject, opened_rows, other_model
from microtome.runs import Context, Result, Trial

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from microtome.experiments.head_tables import HeadScores
    from microtome.tasks import Dataset, Encoded

NAME = "attention-drift"
BASE, AGAIN = "base", "again"
MEASURES = ("cosine", "other_heads", "jensen_shannon")


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """A model without a task head is fine-tuned, once per seed, and compared with itself."""
    named = {name: settings[name] for name in (BASE, AGAIN) if settings[name]}
    others = {name: other_model(model) for name, model in named.items()}
    for other in others.values():
        check_same_heads(subject.model_path, other.path)
    if subject.has_task_head and not settings["base"]:
        raise RequestError(
            f"{subject.model} is fine-tuned, and drift is a distance from the pre-trained model",
            "name that one: --base MODEL",
        )
    tuned = {} if subject.has_task_head else _finetunings(subject, settings)
    request = {"seeds": {trial.hash: seed for seed, trial in tuned.items()}}
    comparison = subject.trial(
        "attention_drift:measure", NAME, request, needs=tuple(tuned.values()), others=others,
        label="compare attention maps",
    )  # fmt: skip
    return [*tuned.values(), comparison]


def check_same_heads(folder: Path, other: Path) -> None:
    """Refuse checkpoints of two shapes, from their configs."""
    from microtome.families import adapt
    from microtome.observe.attention import check_alike

    check_alike(adapt(outline(folder)), adapt(outline(other)))


def _finetunings(subject: Subject, settings: Mapping[str, Any]) -> dict[int, Trial]:
    """Seed 0 is the very fine-tuning that other experiments ask for."""
    return {
        seed: arm_trial(
            subject, "finetuning", settings,
            Arm(seed=seed, keep=True, label=f"fine-tune {subject.model}, seed {seed}"),
        )
        for seed in settings["seeds"]
    }  # fmt: skip


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Every fine-tuned model beside the pre-trained one, map by map."""
    from microtome.evaluation import encode_for
    from microtome.models import load, load_tokenizer

    own = Path(context.where[MODEL])
    tuned: dict[int | None, Path] = {
        seed: _checkpoint(context, name) for name, seed in request["seeds"].items()
    } or {None: own}
    base = load(Path(context.where.get(BASE, own)), head="none", device=context.device)
    tokenizer = load_tokenizer(own)
    if tokenizer is None:
        raise ModelError(f"{own} has no tokenizer", "put tokenizer.json beside the weights")
    dataset = opened_rows(request, context)
    models = {
        seed: load(place, head="none", device=context.device) for seed, place in tuned.items()
    }
    encoded = encode_for(base, tokenizer, dataset)
    again = [Path(context.where[AGAIN])] if AGAIN in context.where else []
    rivals = [*models.values(), *(load(one, head="none", device=context.device) for one in again)]
    rows = []
    for seed, model in models.items():
        context.report(f"compare the maps of {'the model' if seed is None else f'seed {seed}'}")
        found = compared(model, base, encoded, dataset)
        floor = seed_floor(model, [one for one in rivals if one is not model], encoded)
        rows += [{"seed": seed, **row} for row in drift_rows(found, floor)]
    return Result(rows=rows, summary={"lowest cosine": min(row["cosine"] for row in rows)})


def _checkpoint(context: Context, need: str) -> Path:
    folder = context.needs[need].checkpoint
    assert folder is not None
    return folder / CHECKPOINT


def compared(
    model: PreTrainedModel, base: PreTrainedModel, texts: Encoded, dataset: Dataset
) -> dict[str, tuple[HeadScores, HeadScores]]:
    """Each measure of two models' maps: per head, and per layer (the mean of its heads)."""
    from microtome.evaluation import text_clusters
    from microtome.experiments.head_tables import head_scores
    from microtome.observe import HeadMeans, reductions, stream

    means = {
        name: HeadMeans(one, keep=True)
        for name, one in zip(
            MEASURES,
            (reductions.cosine, reductions.cosine_to_other_heads, reductions.jensen_shannon),
            strict=True,
        )
    }
    stream(model, texts, list(means.values()), other=base)
    clusters = text_clusters(dataset, texts)
    found = {}
    for name, one in means.items():
        assert one.values is not None
        found[name] = (
            head_scores(one.values, clusters=clusters),
            head_scores(one.values.mean(axis=-1), clusters=clusters),
        )
    return found


def seed_floor(
    model: PreTrainedModel, others: list[PreTrainedModel], texts: Encoded
) -> NDArray[np.float64] | None:
    """The mean cosine (layers, heads) with other fine-tunings; None where there is no other."""
    import numpy as np

    from microtome.observe import HeadMeans, reductions, stream

    tables = []
    for other in others:
        means = HeadMeans(reductions.cosine)
        stream(model, texts, [means], other=other)
        tables.append(means.mean)
    return np.asarray(np.mean(tables, axis=0)) if tables else None


def drift_rows(
    found: Mapping[str, tuple[HeadScores, HeadScores]],
    floor: NDArray[np.float64] | None,  # (layers, heads)
) -> list[dict[str, Any]]:
    """A row per head, and one per whole layer (head null)."""
    n_layers, n_heads = found["cosine"][0].mean.shape
    whole = [(i,) for i in range(n_layers)]
    places = [(i, j) for (i,) in whole for j in range(n_heads)]
    return [
        *(_row(place, 0, found, None if floor is None else floor[place]) for place in places),
        *(_row(place, 1, found, None if floor is None else floor[place].mean()) for place in whole),
    ]


def _row(
    place: tuple[int, ...],
    level: int,
    found: Mapping[str, tuple[HeadScores, HeadScores]],
    floor: float | None,
) -> dict[str, Any]:
    cosine, others, divergence = (found[name][level].at(*place) for name in MEASURES)
    return {
        "layer": place[0],
        "head": place[1] if len(place) > 1 else None,
        "cosine": cosine["mean"], "low": cosine["low"], "high": cosine["high"], "n": cosine["n"],
        "other_heads_cosine": others["mean"],
        "seed_cosine": None if floor is None else float(floor),
        "jensen_shannon": divergence["mean"],
        "jensen_shannon_low": divergence["low"], "jensen_shannon_high": divergence["high"],
    }  # fmt: skip


EXPERIMENT = Experiment(
    name=NAME,
    section="Kovaleva et al. 2019, Change in self-attention patterns after fine-tuning",
    question="Whose attention does fine-tuning change?",
    method=__doc__ or "",
    columns=(
        "layer", "head", "cosine", "low", "high", "n", "other_heads_cosine", "seed_cosine",
        "jensen_shannon", "seed",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    options=(
        Option("base", None, "the pre-trained model; unless given, the model itself", "model"),
        Option("again", None, "a second fine-tuning: its cosine is a floor", "model"),
        Option("seeds", [0, 1], "fine-tunings of a model without a task head", "numbers"),
        *OPTIONS,
    ),
    measured=measured,
)  # fmt: skip
