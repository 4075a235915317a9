"""J3: attention statistics of two models, streamed, against maps that the models hand out."""

from __future__ import annotations

import numpy as np
import torch

from kit import rivals, workloads
from kit.measuring import Bar, Clock, Row, finish, options, reached
from microtome.observe import HeadMeans, Texts, reductions, stream


def measures(texts: Texts) -> dict[str, reductions.Measure]:
    last = np.zeros(len(texts.ids), dtype=bool)
    last[texts.offsets[1:] - 1] = True  # [SEP]
    return {
        "cosine": reductions.cosine,
        "entropy": reductions.entropy,
        "distance": reductions.distance,
        "on_first": reductions.on_first,
        "on_last": reductions.on_marked(last),
        "on_self": reductions.on_self,
        "on_previous": reductions.on_previous,
        "on_next": reductions.on_next,
    }


def body_flops(sizes: dict[str, int], lengths: np.ndarray) -> int:
    """Both models' products; of the last layer only queries and keys."""
    width, inner, n_layers = (
        sizes["hidden_size"],
        sizes["intermediate_size"],
        sizes["num_hidden_layers"],
    )
    layer = 2 * (4 * width**2 + 2 * width * inner)
    own = (n_layers - 1) * layer + 4 * width**2
    maps = int((lengths**2).sum()) * 2 * width * (2 * n_layers - 1)
    return 2 * (int(lengths.sum()) * own + maps)


def streamed(one, two, texts: Texts) -> dict[str, np.ndarray]:
    means = {name: HeadMeans(measure) for name, measure in measures(texts).items()}
    stream(one, texts, list(means.values()), other=two)
    return {name: own.mean for name, own in means.items()}


def job(
    clock: Clock, n_rounds: int, name: str, lengths: np.ndarray, to: int | None, bar: float
) -> Row:
    one, two = workloads.classifier("base", 0), workloads.classifier("base", 1)
    for model in (one, two):
        model.set_attn_implementation("eager")
    texts = workloads.texts(lengths)
    found: dict[str, dict] = {}

    def ours() -> None:
        found["ours"] = streamed(one, two, texts)

    def rival(key: str, width: int | None) -> None:
        found[key] = rivals.attention_statistics(one, two, texts, width)

    label = f"pad-{to}" if to else "dynamic padding"
    works = {"ours": ours, label: lambda: rival(label, to)}
    if to is not None:
        works["dynamic padding"] = lambda: rival("dynamic padding", None)
    timed = clock.rounds(works, n_rounds)
    for key, statistic in found[label].items():
        np.testing.assert_allclose(
            found["ours"][key], statistic.numpy(), rtol=1e-5, atol=1e-5, err_msg=key
        )
    row = Row(
        f"J3 attention statistics of two models, base, {name}",
        timed["ours"],
        {key: timed[key] for key in works if key != "ours"},
        roofline=body_flops(workloads.SHAPES["base"], lengths) / timed["ours"] / timed["mm"],
        notes=f"{len(lengths)} texts; {clock.how_often()}",
    )
    row.bars = [Bar(f"vs {label}", row.ratios[label], bar)]
    return row


def main() -> None:
    given = options(__doc__)
    clock = Clock(given.clock)
    short, _ = workloads.lengths("sst2", 32, neighbours=8)
    with torch.inference_mode():
        rows = [
            job(clock, given.rounds, "sst2 lengths", short, rivals.NAIVE_LENGTH, reached(6.0, 5.0)),
            job(
                clock,
                given.rounds,
                "384 tokens",
                np.full(workloads.LONG_TEXTS, 384),
                None,
                reached(1.3, 1.2),
            ),
        ]
    finish("observe_attention", rows, given)


if __name__ == "__main__":
    main()
