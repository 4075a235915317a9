"""Draw attention maps to be labelled: several encoders and tasks, many lengths, every head.

    python benchmarks/pattern_maps.py OUT minilm=minilm@90 minilm=./tuned:micro-sentiment@90 …

Each source is BASE=MODEL[*FACTOR][:TASK][@MAPS]; a fine-tuned model is drawn on its own task's
texts. FACTOR drives the two segment embeddings apart: all-MiniLM learnt from single texts and has
no head of its own that keeps two texts apart; with them further apart some heads do. Half of the
maps are drawn at random over heads and texts; the others are candidates for each class by the
rule's scores, so that rare classes come up. That biases the shares of classes, not the labels.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from microtome.families import adapt
from microtome.models import load, load_tokenizer, resolve
from microtome.observe import SampledMaps, Texts, stream, vocabulary_of
from microtome.observe.patterns.maps import FIRST, PUNCTUATION, SEPARATOR, WORD, Map, save_maps
from microtome.observe.patterns.rules import block_score, by_rule, line_score, stripe_score
from microtome.tasks import open_data

SINGLE = ("micro-sentiment", "micro-acceptability")
PAIRS = ("micro-entailment", "micro-paraphrase", "micro-similarity", "micro-squad")
MAX_LENGTH = 60


def texts_of(task: str, n: int, rng: np.random.Generator) -> list[tuple[str, str | None]]:
    """Texts of one to five sentences: the embedded tasks' own are short."""
    rows = [(row.text, row.pair) for row in open_data(task, None, "dev").rows()]
    found = []
    for _ in range(n):
        joined = [rows[i] for i in rng.choice(len(rows), rng.integers(1, 6), replace=False)]
        if task in PAIRS:
            joined = joined[:3]
            found.append((" ".join(t for t, _ in joined), " ".join(p for _, p in joined)))
        else:
            found.append((" ".join(t for t, _ in joined), None))
    return found


def encoded(tokenizer, texts):
    rows = [tokenizer(*[t for t in pair if t is not None]) for pair in texts]
    kept = [i for i, row in enumerate(rows) if len(row["input_ids"]) <= MAX_LENGTH]
    rows, texts = [rows[i] for i in kept], [texts[i] for i in kept]
    segments = [row.sequence_ids() for row in rows]
    ids = [row["input_ids"] for row in rows]
    types = []
    for sequence in segments:
        start = next((i for i, s in enumerate(sequence) if s == 1), len(sequence))
        types.append([int(i >= start) for i in range(len(sequence))])
    special = [[s is None for s in sequence] for sequence in segments]
    return Texts.of(ids, segments=types, special=special), texts


def kinds_of(ids, special, vocabulary) -> np.ndarray:
    kinds = np.full(len(ids), WORD, dtype=np.uint8)
    kinds[vocabulary.punctuation[ids]] = PUNCTUATION
    kinds[special] = SEPARATOR
    kinds[0] = FIRST
    return kinds


def rule_of(weights: np.ndarray, kinds: np.ndarray, border: int) -> np.ndarray:
    maps = torch.from_numpy(weights)
    second = torch.arange(len(kinds)) >= (border or len(kinds))
    same = second[:, None] == second[None, :]
    ordinary = torch.from_numpy((kinds != FIRST) & (kinds != SEPARATOR))
    blocks = block_score(maps, same, ordinary) if border else torch.zeros(maps.shape[:-2])
    return by_rule(stripe_score(maps), line_score(maps), blocks).numpy()


@dataclass(frozen=True)
class Drawn:
    """One source of maps: BASE=MODEL[*FACTOR][:TASK][@MAPS]."""

    base: str
    model: str
    factor: float
    task: str
    n_maps: int

    @classmethod
    def of(cls, text: str) -> Drawn:
        form = r"([^=]+)=([^*:@]+)(?:\*([\d.]+))?(?::([\w-]+))?(?:@(\d+))?"
        match = re.fullmatch(form, text)
        if match is None:
            raise SystemExit(f"{text!r} given, BASE=MODEL[*FACTOR][:TASK][@MAPS] wanted")
        base, model, factor, task, n_maps = match.groups()
        return cls(base, model, float(factor or 1), task or "", int(n_maps or 100))

    @property
    def tasks(self) -> tuple[str, ...]:
        if self.task:
            return (self.task,)
        return PAIRS if self.factor != 1 else (*SINGLE, *PAIRS)

    @property
    def name(self) -> str:
        segments = f"*{self.factor:g}" if self.factor != 1 else ""
        return self.base + segments + (f"-{self.task}" if self.task else "")


def opened(source: Drawn):
    place = resolve(source.model).path
    model = load(place)
    if source.factor != 1:
        name = "token_type_embeddings.weight"
        rows = next(p for key, p in model.named_parameters() if key.endswith(name))
        with torch.no_grad():
            middle = rows.mean(0)
            rows.copy_(middle + source.factor * (rows - middle))
    return model, load_tokenizer(place)


def candidates(source: Drawn, n_texts: int, rng) -> list[tuple[Map, int]]:
    """Every head's map of every text of one model, with what the rule says of it."""
    model, tokenizer = opened(source)
    vocabulary = vocabulary_of(tokenizer)
    weights_of = adapt(model).sharing  # of a shared layer, the first that has them
    found = []
    for own in source.tasks:
        texts, said = encoded(tokenizer, texts_of(own, -(-n_texts // len(source.tasks)), rng))
        sampled = SampledMaps(range(len(texts)))
        stream(model, texts, [sampled])
        for i, maps in sampled.maps.items():
            span = slice(texts.offsets[i], texts.offsets[i + 1])
            kinds = kinds_of(texts.ids[span], texts.special[span], vocabulary)
            border = int(np.argmax(texts.segments[span])) if texts.segments[span].any() else 0
            rules = rule_of(maps, kinds, border)
            for layer, head in np.ndindex(maps.shape[:2]):
                about = {
                    "map": "", "base": source.base, "model": source.name, "task": own,
                    "text": " ‖ ".join(t for t in said[i] if t),
                    "layer": str(layer), "head": str(head),
                    "weights": str(weights_of[layer]),
                }  # fmt: skip
                found.append((Map(maps[layer, head], kinds, border, about), rules[layer, head]))
    return found


def drawn(pool: list[tuple[Map, int]], n: int, per_head: int, rng) -> list[Map]:
    """Half at random, half by turns from the rule's classes; ``per_head`` at most."""
    order = rng.permutation(len(pool))
    taken: dict[int, None] = {}
    of_head: dict[tuple, int] = {}

    def take(places, n_wanted) -> None:
        for place in places:
            head = pool[place][0].head
            if n_wanted <= 0:
                return
            if place not in taken and of_head.get(head, 0) < per_head:
                taken[place] = None
                of_head[head] = of_head.get(head, 0) + 1
                n_wanted -= 1

    take(order, n // 2)
    for rule in (3, 2, 1, 0, 4):  # rare classes first
        take([p for p in order if pool[p][1] == rule], n // 10)
    take(order, n - len(taken))
    return [pool[place][0] for place in taken]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+", help="BASE=MODEL[*FACTOR][:TASK][@MAPS]")
    parser.add_argument("--per-head", type=int, default=3, help="of each model's head, at most")
    parser.add_argument("--texts", type=int, default=40, help="of each model, about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first map's number")
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    kept: list[Map] = []
    for source in map(Drawn.of, given.models):
        pool = candidates(source, given.texts, rng)
        print(source.name, len(pool), np.bincount([rule for _, rule in pool], minlength=5))
        kept += drawn(pool, source.n_maps, given.per_head, rng)
    numbered = [
        Map(one.weights, one.kinds, one.border, {**one.about, "map": f"{given.first + i:04d}"})
        for i, one in enumerate(kept)
    ]
    save_maps(given.out, numbered)
    print(len(numbered), "maps", len({one.head for one in numbered}), "heads")


if __name__ == "__main__":
    main()
