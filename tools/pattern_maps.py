"""Draw attention maps to be labelled: several encoders and tasks, many lengths, every head.

    python tools/pattern_maps.py OUT minilm=minilm@90 minilm=./tuned:micro-sentiment@90 …

Each source is BASE=MODEL[*FACTOR][~][:TASK][@MAPS]; a fine-tuned model is drawn on its own task's
texts. FACTOR drives the two segment embeddings apart: all-MiniLM learnt from single texts and has
no head of its own that keeps two texts apart; with them further apart some heads do. ``~``
exchanges the embeddings of [CLS] and [SEP] and gives the first position the second one's: heads
that look for the start of a text then look for its end. all-MiniLM and bge-small as they are have
next to no stripe on [SEP] that isn't on [CLS] as well.

Half of the maps are drawn at random over heads and texts; the others are candidates for each class
by the rule's scores, so that rare classes come up. That biases the shares of classes, not the
labels.

``--lengths 20-200`` joins sentences to texts whose lengths are spread evenly over that range, in
tokens, as many single texts as pairs. ``--sep 0.5`` draws half of the maps among those whose most
attended token is a [SEP] that receives 1.5 times as much as [CLS]. ``--faint 0.35`` lowers the
rule's thresholds for stripes and lines to 0.35 of what they are: in a long map a line of 0.09 is
plain, and few heads give one 0.25.
"""

from __future__ import annotations

import argparse
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from microtome.families import adapt
from microtome.models import load, load_tokenizer, resolve
from microtome.observe import SampledMaps, Texts, stream, vocabulary_of
from microtome.observe.patterns.counting import FIRST, PUNCTUATION, SEPARATOR, WORD
from microtome.tasks import DataSpec, open_data
from patterns.maps import Map, save_maps
from patterns.rules import block_score, by_rule, line_score, stripe_score

SINGLE = ("micro-sentiment", "micro-acceptability")
PAIRS = ("micro-entailment", "micro-paraphrase", "micro-similarity", "micro-squad")
MAX_LENGTH = 60
SEP_OVER_CLS = 1.5  # bge-small's heads give [CLS] and [SEP] the same to three digits
RULE_ORDER = (3, 2, 1, 0, 4)  # rare classes first


def texts_of(task: str, n: int, rng: np.random.Generator) -> list[tuple[str, str | None]]:
    """Texts of one to five sentences: the embedded tasks' own are short."""
    rows = [(row.text, row.pair) for row in open_data(DataSpec(task, None, "dev")).rows()]
    found = []
    for _ in range(n):
        joined = [rows[i] for i in rng.choice(len(rows), rng.integers(1, 6), replace=False)]
        if task in PAIRS:
            joined = joined[:3]
            found.append((" ".join(t for t, _ in joined), " ".join(p for _, p in joined)))
        else:
            found.append((" ".join(t for t, _ in joined), None))
    return found


def long_texts(
    task: str, n: int, lengths: range, tokenizer, rng: np.random.Generator
) -> list[tuple[str, str | None]]:
    """As many sentences joined as fit into each of ``n`` lengths spread over the range."""
    rows = [(row.text, row.pair) for row in open_data(DataSpec(task, None, "dev")).rows()]
    spread = lengths.start + len(lengths) * (np.arange(n) + rng.random(n)) / n
    texts = []
    for longest in spread:
        text, pair = "", ""
        for i in rng.permutation(len(rows)):
            longer = f"{text} {rows[i][0]}".strip(), f"{pair} {rows[i][1] or ''}".strip()
            if len(tokenizer(longer[0], longer[1] or None)["input_ids"]) > longest:
                break
            text, pair = longer
        if len(tokenizer(text, pair or None)["input_ids"]) >= lengths.start:
            texts.append((text, pair or None))
    return texts


def encoded(tokenizer, texts, max_length):
    rows = [tokenizer(*[t for t in pair if t is not None]) for pair in texts]
    kept = [i for i, row in enumerate(rows) if len(row["input_ids"]) <= max_length]
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


def rule_of(weights: np.ndarray, kinds: np.ndarray, border: int, faint: float) -> np.ndarray:
    """The rule's classes; stripes and lines count from ``faint`` of its thresholds."""
    maps = torch.from_numpy(weights)
    second = torch.arange(len(kinds)) >= (border or len(kinds))
    same = second[:, None] == second[None, :]
    ordinary = torch.from_numpy((kinds != FIRST) & (kinds != SEPARATOR))
    blocks = block_score(maps, same, ordinary) if border else torch.zeros(maps.shape[:-2])
    return by_rule(stripe_score(maps) / faint, line_score(maps) / faint, blocks).numpy()


def is_on_sep(one: Map) -> bool:
    """Whether the most attended token is a [SEP], by far more than [CLS] is attended."""
    received = one.weights.mean(0)
    most = received.argmax()
    return bool(one.kinds[most] == SEPARATOR and received[most] >= SEP_OVER_CLS * received[0])


@dataclass(frozen=True)
class Drawn:
    """One source of maps: BASE=MODEL[*FACTOR][~][:TASK][@MAPS]."""

    base: str
    model: str
    factor: float
    exchanged: bool
    task: str
    n_maps: int

    @classmethod
    def of(cls, text: str) -> Drawn:
        form = r"([^=]+)=([^*~:@]+)(?:\*([\d.]+))?(~?)(?::([\w-]+))?(?:@(\d+))?"
        match = re.fullmatch(form, text)
        if match is None:
            raise SystemExit(f"{text!r} given, BASE=MODEL[*FACTOR][~][:TASK][@MAPS] wanted")
        base, model, factor, exchanged, task, n_maps = match.groups()
        return cls(base, model, float(factor or 1), bool(exchanged), task or "", int(n_maps or 100))

    @property
    def tasks(self) -> tuple[str, ...]:
        if self.task:
            return (self.task,)
        return PAIRS if self.factor != 1 else (*SINGLE, *PAIRS)

    @property
    def name(self) -> str:
        segments = f"*{self.factor:g}" if self.factor != 1 else ""
        special = "~" if self.exchanged else ""
        return self.base + segments + special + (f"-{self.task}" if self.task else "")


def opened(source: Drawn):
    place = resolve(source.model).path
    model, tokenizer = load(place), load_tokenizer(place)
    if source.factor != 1:
        with embedding(model, "token_type") as rows:
            middle = rows.mean(0)
            rows.copy_(middle + source.factor * (rows - middle))
    if source.exchanged:
        special = [tokenizer.cls_token_id, tokenizer.sep_token_id]
        with embedding(model, "word") as rows:
            rows[special] = rows[special[::-1]].clone()
        with embedding(model, "position") as rows:
            rows[0] = rows[1]
    return model, tokenizer


@contextmanager
def embedding(model, name: str):
    """One of the model's tables of embeddings, to be written to."""
    key = f"{name}_embeddings.weight"
    with torch.no_grad():
        yield next(rows for place, rows in model.named_parameters() if place.endswith(key))


def candidates(
    source: Drawn, n_texts: int, rng, lengths: range | None = None, faint: float = 1.0
) -> list[tuple[Map, int]]:
    """Every head's map of every text of one model, with what the rule says of it."""
    model, tokenizer = opened(source)
    vocabulary = vocabulary_of(tokenizer)
    weights_of = adapt(model).sharing  # of a shared layer, the first that has them
    found = []
    for own in source.tasks:
        if lengths is None:
            joined = texts_of(own, -(-n_texts // len(source.tasks)), rng)
        else:
            n_kinds = len({task in PAIRS for task in source.tasks})
            n_alike = sum((task in PAIRS) == (own in PAIRS) for task in source.tasks)
            joined = long_texts(own, -(-n_texts // (n_kinds * n_alike)), lengths, tokenizer, rng)
        texts, said = encoded(tokenizer, joined, lengths[-1] if lengths else MAX_LENGTH)
        sampled = SampledMaps(range(len(texts)))
        stream(model, texts, [sampled])
        for i, maps in sampled.maps.items():
            span = slice(texts.offsets[i], texts.offsets[i + 1])
            kinds = kinds_of(texts.ids[span], texts.special[span], vocabulary)
            border = int(np.argmax(texts.segments[span])) if texts.segments[span].any() else 0
            rules = rule_of(maps, kinds, border, faint)
            for layer, head in np.ndindex(maps.shape[:2]):
                about = {
                    "map": "", "base": source.base, "model": source.name, "task": own,
                    "text": " ‖ ".join(t for t in said[i] if t),
                    "layer": str(layer), "head": str(head),
                    "weights": str(weights_of[layer]),
                }  # fmt: skip
                found.append((Map(maps[layer, head], kinds, border, about), rules[layer, head]))
    return found


def drawn(
    pool: list[tuple[Map, int]], n: int, per_head: int, rng, *, sep: float | None = None
) -> list[Map]:
    """Half at random, half by turns from the rule's classes; ``per_head`` at most.

    With ``sep``, this share of the maps has a [SEP] as most attended token, as far as there are.
    """
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

    def take_both_ways(places, n_wanted) -> None:
        before = len(taken)
        take(places, n_wanted // 2)
        for rule in RULE_ORDER:
            take([p for p in places if pool[p][1] == rule], n_wanted // 10)
        take(places, n_wanted - (len(taken) - before))

    if sep is not None:
        on_sep = np.array([is_on_sep(one) for one, _ in pool])[order]
        take_both_ways(order[on_sep], round(n * sep))
        order = order[~on_sep]
    take_both_ways(order, n - len(taken))
    return [pool[place][0] for place in taken]


def length_range(text: str) -> range:
    low, high = map(int, text.split("-"))
    return range(low, high + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+", help="BASE=MODEL[*FACTOR][~][:TASK][@MAPS]")
    parser.add_argument("--per-head", type=int, default=3, help="of each model's head, at most")
    parser.add_argument("--texts", type=int, default=40, help="of each model, about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first map's number")
    parser.add_argument("--lengths", type=length_range, help="LOW-HIGH, tokens of a text")
    parser.add_argument("--sep", type=float, help="share of maps with their stripe on a [SEP]")
    parser.add_argument("--faint", type=float, default=1.0, help="times the rule's thresholds")
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    kept: list[Map] = []
    for source in map(Drawn.of, given.models):
        pool = candidates(source, given.texts, rng, given.lengths, given.faint)
        print(source.name, len(pool), np.bincount([rule for _, rule in pool], minlength=5))
        kept += drawn(pool, source.n_maps, given.per_head, rng, sep=given.sep)
    numbered = [
        Map(one.weights, one.kinds, one.border, {**one.about, "map": f"{given.first + i:04d}"})
        for i, one in enumerate(kept)
    ]
    save_maps(given.out, numbered)
    print(len(numbered), "maps", len({one.head for one in numbered}), "heads")


if __name__ == "__main__":
    main()
