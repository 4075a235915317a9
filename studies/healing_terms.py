"""Does a term on the hidden states help healing? Measured on all-MiniLM and STS-B, no labels.

python studies/healing_terms.py --text FILE [--layers 0,4,5] [--steps 160] [--seeds 0,1,2]

The cut learns the base's embeddings, as `microtome trim` has it; with the term, the state after
every layer that was kept also learns to be the base's after the same layer (1 − cosine, the mean
over tokens and layers, times a weight). Same texts, same order, same steps; the term's own cost, a
pass of the base in every step, isn't counted. Scores are of the half of the dev pairs that a trim
scores on.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from commands import DATA
from microtome import load, parse
from microtome.experiments.field.trim.judging import Halves
from microtome.experiments.kit.stored_predictions import score_on
from microtome.families import adapt
from microtome.models import load_tokenizer
from microtome.models.source import minilm_folder
from microtome.observe.evaluation import evaluate
from microtome.observe.forward import read
from microtome.surgery import apply
from microtome.tasks import DataSpec, open_data
from microtome.training.distil.lessons import Lessons
from microtome.training.distil.texts import LessonTexts, without_measured
from microtome.training.finetune.forward import layer
from microtome.training.finetune.loop import train
from microtome.training.recipe import Recipe, Seeds


@dataclass(frozen=True, eq=False)
class WithStates(Lessons):
    """Lessons whose loss also compares the states after the kept layers with the base's."""

    base: object = field(kw_only=True)
    kept: tuple[int, ...] = field(kw_only=True)
    weight: float = field(kw_only=True)
    seen: list = field(kw_only=True, default_factory=list)

    def outputs(self, family, chunk, dropped) -> Tensor:
        found = _states(family, chunk)
        self.seen[:] = [found]
        return read(family, found[-1], chunk)

    def loss(self, outputs, targets, chunk) -> Tensor:
        answers = super().loss(outputs, targets, chunk)
        with torch.no_grad():
            base = _states(adapt(self.base), chunk)
        (ours,) = self.seen
        apart = [
            (1 - functional.cosine_similarity(state, base[i], dim=-1)).mean()
            for state, i in zip(ours, self.kept, strict=True)
        ]
        # the loop divides a loss by the number of its texts
        return answers + self.weight * torch.stack(apart).mean() * len(targets)


def _states(family, chunk) -> list[Tensor]:
    states, found = family.embed(chunk.ids, chunk.positions, chunk.segments), []
    for index in range(family.shape.n_layers):
        states = layer(family, index, states, chunk)
        found.append(states)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--layers", default="0,4,5")
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--seeds", type=lambda t: [int(s) for s in t.split(",")], default=[0, 1, 2])
    parser.add_argument("--weights", default="0,0.3,1")
    options = parser.parse_args()
    kept = tuple(int(i) for i in options.layers.split(","))
    weights = [float(w) for w in options.weights.split(",")]
    folder = minilm_folder()
    base, tokenizer = load(folder), load_tokenizer(folder)
    dev = open_data(DataSpec("stsb", DATA / "glue" / "STS-B", kind="similarity"))
    texts = open_data(DataSpec(path=options.text, kind="text"))
    lesson_texts = LessonTexts(base, tokenizer, without_measured(texts, dev))
    n_texts = 64 * options.steps
    lessons = lesson_texts.lessons(n_texts, lesson_texts.answers(n_texts))
    scoring = Halves.of(len(dev), dev.clusters).scoring
    scores: dict[float, list[float]] = {}
    for seed in options.seeds:
        for weight in weights:
            cut = apply(parse(f"keep({options.layers})"), base)
            taught = WithStates(**vars(lessons), base=base, kept=kept, weight=weight)
            recipe = Recipe(batch_size=64, learning_rate=3e-4, epochs=1, steps=options.steps)
            train(cut, taught, recipe, seeds=Seeds.of(seed), dropout=False)
            found = evaluate(cut, tokenizer, dev).outcomes["cosine_spearman"]
            scores.setdefault(weight, []).append(score_on(found, scoring))
            print(f"seed {seed} weight {weight:g}: {scores[weight][-1]:.4f}", flush=True)
    for weight, found in scores.items():
        print(f"weight {weight:g}: mean {np.mean(found):.4f} over {len(found)} seeds")


if __name__ == "__main__":
    main()
