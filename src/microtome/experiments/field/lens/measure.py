"""The trials of the lens: maps fitted to the model's states or to its control's, depths read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.errors import DataError
from microtome.experiments.field.lens.maps import FittedMaps, fit_maps
from microtome.experiments.field.lens.plan import RANDOM
from microtome.experiments.field.lens.positions import (
    ReadTexts,
    cached_states,
    check_ids,
    drawn_texts,
    drawn_tokens,
    read_texts,
)
from microtome.experiments.field.lens.reading import (
    READINGS,
    Maps,
    Readings,
    decoded_text,
    read_depths,
)
from microtome.experiments.kao.decoding.measure import trial_readout
from microtome.experiments.kao.decoding.plan import FIT_TEXT
from microtome.experiments.kit.controlled_decoding import random_blocks
from microtome.experiments.kit.stored_predictions import stored_arrays
from microtome.experiments.kit.trial_inputs import data_of, opened_model, opened_rows
from microtome.observe import Readout, vocabulary_of
from microtome.runs import Context, Result
from microtome.statistics import Interval, SumMetric, bootstrap
from microtome.statistics.weighted import ratio, share
from microtome.tasks import Dataset
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.reading.opening import open_data, open_training

TO_STOP_BY = 0.1  # of the texts to fit on
DIGESTS = "digests"  # of the texts that were fitted to
Clusters = NDArray[np.int64] | None


def fit(request: Mapping[str, Any], context: Context) -> Result:
    """A map for every depth, as arrays; for the control all depths but 0, where it is the model."""
    model, tokenizer = opened_model(context)
    seed = request["seed"]
    read = _read(request, model, tokenizer, _rows_to_fit_on(request, context))
    read = drawn_texts(read, request["rows_at_most"], seed)
    tokens = drawn_tokens(read, model, seed)
    readout = trial_readout(request, context, model)
    check_ids(read, readout.n_tokens)
    cache = cached_states(model, read, tokens)
    last, depths = cache[-1], range(len(cache) - 1)
    if request["blocks"] == RANDOM:
        last, depths = last.clone(), range(1, len(cache))
        del cache  # one of the two is held at a time
        cache = cached_states(random_blocks(model), read, tokens)
    n_to_stop_by = max(1, round(TO_STOP_BY * len(read)))
    order = np.random.default_rng([seed, 4]).permutation(len(read))
    found = fit_maps(
        readout, {depth: cache[depth] for depth in depths}, last,
        np.isin(read.text_of_tokens[tokens], order[:n_to_stop_by]),
        steps=request["steps"], seed=seed,
        progress=lambda step, n_steps: context.report(f"step {step} of {n_steps}"),
    )  # fmt: skip
    sizes = {"n_fit_texts": np.array(len(read)), "n_fit_tokens": np.array(len(tokens))}
    least = float(np.nanmin(found.losses, axis=0).mean())
    return Result(
        arrays={**found.arrays(), **sizes, DIGESTS: read.digests}, summary={"mean KL": least}
    )


def _rows_to_fit_on(request: Mapping[str, Any], context: Context) -> Dataset:
    """The text that was named, else the training side of what is measured; not more than asked."""
    measured, place = data_of(request, context), context.where.get(FIT_TEXT)
    rows = (
        open_training(measured)[0]
        if place is None
        else open_data(DataSpec(path=Path(place), max_length=measured.max_length))
    )
    return rows.limit(request["rows_at_most"], seed=request["seed"])


def _read(
    request: Mapping[str, Any],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Dataset,
) -> ReadTexts:
    return read_texts(model, tokenizer, rows, special=request["special"], hidden=request["masked"])


def read(request: Mapping[str, Any], context: Context) -> Result:
    """KL, token accuracy and agreement with the last depth: a row per reading and depth."""
    model, tokenizer = opened_model(context)
    stored = [stored_arrays(need.arrays) for need in context.needs.values() if need.arrays]
    # Depth 0 of the control is the model's own: its embeddings are.
    own = next(arrays for arrays in stored if 0 in arrays["depths"])
    control = next(arrays for arrays in stored if 0 not in arrays["depths"])
    lens, control_lens = (FittedMaps.of_arrays(each, context.device) for each in (own, control))
    texts = _read(request, model, tokenizer, opened_rows(request, context))
    new = np.flatnonzero(~np.isin(texts.digests, own[DIGESTS]))
    n_left_out = len(texts) - len(new)
    texts = texts.select(new)
    if not len(texts.tokens):
        raise DataError(
            "no text is left to measure: the lens was fitted to all of them", "measure other texts"
        )
    readout = trial_readout(request, context, model)
    check_ids(texts, readout.n_tokens)
    found = read_depths(
        model, random_blocks(model), texts, readout, lens.maps,
        {0: lens.maps[0], **control_lens.maps},
        progress=lambda done, n_texts: context.report(f"{done} of {n_texts} texts"),
    )  # fmt: skip
    rows = depth_rows(found, texts.clusters)
    of_fit = {"lens": lens, "control": control_lens}
    decoded = _decoded_first(model, tokenizer, texts, {"direct": {}, "lens": lens.maps}, readout)
    for row in rows:
        row |= {
            "readout": readout.name,
            "masked": request["masked"],
            "n_left_out": n_left_out,
            "n_fit_texts": int(own["n_fit_texts"]),
            "n_fit_tokens": int(own["n_fit_tokens"]),
            **_of_the_fit(of_fit.get(row["reading"]), row["depth"]),
            **decoded.get((row["reading"], row["depth"]), {}),
        }
    half = next(r for r in rows if r["reading"] == "lens" and r["depth"] == r["layers"] // 2)
    return Result(rows=rows, summary={f"KL at depth {half['depth']}": half["kl"]})


def _of_the_fit(found: FittedMaps | None, depth: int) -> dict[str, Any]:
    """How many updates the kept map had, and its KL on the texts to stop by; before them, too."""
    if found is None or depth not in found.maps:
        return {"steps": None, "fit_kl": None, "fit_kl_before": None}
    losses = found.losses[:, list(found.maps).index(depth)]
    best = int(np.nanargmin(losses))
    return {
        "steps": int(found.steps[best]),
        "fit_kl": float(losses[best]),
        "fit_kl_before": float(losses[0]),
    }


def _decoded_first(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: ReadTexts,
    readings: Mapping[str, Maps],
    readout: Readout,
) -> dict[tuple[str, int], dict[str, str]]:
    """What every depth makes of the first text, by reading and depth."""
    vocabulary = vocabulary_of(tokenizer)
    first = texts.select(np.array([0]))
    shown = " ".join(map(vocabulary.token, first.truth.tolist()))
    return {
        (name, depth): {"input": shown, "decoded": " ".join(map(vocabulary.token, best))}
        for name, maps in readings.items()
        for depth, best in enumerate(decoded_text(model, first.texts, readout, maps))
    }


def depth_rows(found: Readings, clusters: Clusters) -> list[dict[str, Any]]:
    """A row per reading and depth, with intervals by text, or by cluster of texts."""
    n_depths = found.divergence.shape[1]
    rows = []
    for reading, name in enumerate(READINGS):
        for depth in range(n_depths):
            place = reading, depth
            kl = _mean(found.divergence[place], found.n_tokens, clusters)
            accuracy = _share(found.right[place], found.n_tokens, clusters)
            agreement = _share(found.agrees[place], found.n_tokens, clusters)
            rows.append(
                {
                    "reading": name, "layers": n_depths - 1, "depth": depth,
                    "kl": kl.value, "low": kl.low, "high": kl.high,
                    "n": int(found.n_tokens.sum()), "n_texts": int((found.n_tokens > 0).sum()),
                    **_columns("accuracy", accuracy), **_columns("agreement", agreement),
                    **_below_control(found, place, clusters),
                }
            )  # fmt: skip
    return rows


def _below_control(found: Readings, place: tuple[int, int], clusters: Clusters) -> dict[str, Any]:
    """By how much a reading's KL is smaller than the control's at its depth, text by text."""
    if READINGS[place[0]] == "control":
        return dict.fromkeys(("below_control", "below_control_low", "below_control_high"))
    control = found.divergence[READINGS.index("control"), place[1]]
    gap = _mean(control - found.divergence[place], found.n_tokens, clusters)
    return _columns("below_control", gap)


def _columns(name: str, share: Interval) -> dict[str, float]:
    return {name: share.value, f"{name}_low": share.low, f"{name}_high": share.high}


def _mean(sums: NDArray[Any], n_tokens: NDArray[Any], clusters: Clusters) -> Interval:
    """A mean over tokens with an interval over texts."""
    columns = np.stack([sums, n_tokens], axis=1).astype(np.float64)
    # A divergence has no largest value that an unseen text could be given.
    nothing = np.empty((0, 2))
    metric = SumMetric(columns, lambda drawn: ratio(drawn[:, 0], drawn[:, 1]), nothing, nothing)
    return bootstrap(metric, clusters=clusters)


def _share(right: NDArray[Any], n_tokens: NDArray[Any], clusters: Clusters) -> Interval:
    return bootstrap(share(right, n_tokens), clusters=clusters)
