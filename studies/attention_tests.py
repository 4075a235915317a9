"""Do the tests of attention to words hold their level, and do they find a planted head?

Words and links that are drawn at random say nothing about a head, so some head may be found in 5 %
of the samples, however many heads there are. all-MiniLM on rows of SST-2, samples of 15 and 60
texts; the old way (sign flips of "observed minus expected") next to ours. Writes its table between
the markers of docs/statistics.md and exits 1 where a bar is missed.

    python studies/attention_tests.py                 400 samples, half an hour of one core
    python studies/attention_tests.py --samples 40    a look; the docs stay as they are

Needs the extra ``english`` and SST-2 (MICROTOME_TEST_DATA, or ../shared).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from commands import DATA, ROOT
from microtome import load, load_tokenizer
from microtome import statistics as st
from microtome.experiments.kit.head_tables import p_of_mean
from microtome.observe import stream
from microtome.observe.attention import MapBlock
from microtome.observe.linguistic.link_attention import Link, LinkAttention, placements_of
from microtome.observe.linguistic.random_draws import Draws
from microtome.observe.linguistic.received_attention import (
    MarkedAttention,
    RandomMarks,
    units_of,
)
from microtome.tasks import DataSpec, open_data, open_training
from microtome.tasks.annotation.passages import (
    AnnotatedTexts,
    cut_into_words,
    encode_passages,
    tagged_passages,
)
from microtome.tasks.dataset import Dataset
from microtome.training.finetune import finetune
from microtome.training.recipe import recipe_for

DOCS = ROOT / "docs" / "statistics.md"
SST2 = DATA / "glue" / "SST-2"
BEGIN, END = "<!-- attention tests -->", "<!-- end of attention tests -->"
SAMPLES = 400  # without an effect; a quarter as many with one
N_TEXTS = (15, 60)
LEVEL, BAR = 0.05, 0.08
LEAST_TOKENS = 8  # a shorter text has hardly anything to draw from
DRAWS = 500  # inside the study; the default is 2000

P = np.ndarray  # p-values (layers, heads)
Sampled = Callable[[np.random.Generator, int, float], tuple[P, P]]  # old way, ours


@dataclass(frozen=True)
class Maps:
    """Texts with all their attention maps: (layers, heads, L, L) each."""

    texts: AnnotatedTexts
    maps: list[np.ndarray]

    @property
    def shape(self) -> tuple[int, int]:
        return self.maps[0].shape[:2]

    def long_enough(self) -> np.ndarray:
        return np.flatnonzero(self.texts.lengths >= LEAST_TOKENS)

    def ordinary(self, text: int) -> np.ndarray:
        return np.flatnonzero(self.texts.sides_of(text) >= 0)


class Kept:
    """A reduction that keeps the maps: fine for short texts and a small model."""

    def open(self, n_layers: int, n_heads: int, n_texts: int) -> None:
        self.by_layer: list[list[np.ndarray]] = [[] for _ in range(n_texts)]

    def add(self, block: MapBlock) -> None:
        for text, maps in zip(block.texts.tolist(), block.maps, strict=True):
            self.by_layer[text].append(maps.numpy().copy())


def kept_maps(model, tokenizer, dataset: Dataset) -> Maps:
    """The texts of a data set through a model."""
    passages = list(tagged_passages(dataset, cut_into_words))
    texts = encode_passages(passages, tokenizer, max_length=128, segments=True)
    kept = Kept()
    stream(model, texts, [kept])
    return Maps(texts, [np.stack(layers) for layers in kept.by_layer])


def replay(maps: Maps, chosen: Sequence[int], reductions: Sequence, planted: dict) -> None:
    """Hand the maps of the chosen texts to reductions; ``planted`` has a head's map by text."""
    for reduction in reductions:
        reduction.open(*maps.shape, len(maps.maps))
    for text in chosen:
        tokens = np.arange(*maps.texts.offsets[text : text + 2])[None]
        for layer, of_layer in enumerate(maps.maps[text]):
            if (layer, text) in planted:
                head, its_map = planted[layer, text]
                of_layer = of_layer.copy()
                of_layer[head] = its_map
            block = MapBlock(layer, np.array([text]), tokens, torch.from_numpy(of_layer)[None])
            for reduction in reductions:
                reduction.add(block)


def mixed(a_map: np.ndarray, pairs: Sequence[tuple[int, int]], share: float) -> np.ndarray:
    """Every query of ``pairs`` gives ``share`` of its attention to its keys."""
    changed = a_map.copy()
    for query in {query for query, _ in pairs}:
        keys = [key for other, key in pairs if other == query]
        changed[query] *= 1 - share
        changed[query, keys] += share / len(keys)
    return changed


def planted_head(maps: Maps) -> tuple[int, int]:
    """In the middle of the model, an arbitrary head."""
    n_layers, n_heads = maps.shape
    return n_layers // 2, n_heads // 3


def by_sign_flips(differences: np.ndarray, shape: tuple[int, int]) -> P:
    """The old way: max-T over heads (texts, …), texts without a number left out."""
    flat = differences.reshape(len(differences), -1).astype(float)
    flat = flat[~np.isnan(flat).any(axis=1)]
    return st.max_t(flat.T, np.zeros(len(flat)), repeats=DRAWS).p.reshape(shape)


def random_marks(maps: Maps, share_marked: float) -> Sampled:
    """Marks drawn at random: one unit of each text, or a share of them."""
    texts = maps.texts
    units = units_of(texts, mode="paper")

    def sampled(rng: np.random.Generator, n_texts: int, share: float) -> tuple[P, P]:
        chosen = rng.choice(maps.long_enough(), n_texts, replace=False).tolist()
        marks = np.zeros(len(texts.ids), dtype=np.bool_)
        planted = {}
        layer, head = planted_head(maps)
        for text in chosen:
            ordinary = maps.ordinary(text)
            n_marked = max(1, round(share_marked * len(ordinary)))
            marked = rng.choice(ordinary, n_marked, replace=False)
            marks[texts.offsets[text] + marked] = True
            if share:
                pairs = [(q, k) for q in range(texts.lengths[text]) for k in marked[:1]]
                planted[layer, text] = head, mixed(maps.maps[text][layer, head], pairs, share)
        pool = ~texts.special
        observed = MarkedAttention({"marked": marks}, pool, units.received)
        draws = Draws(repeats=DRAWS, seed=int(rng.integers(2**31)))
        random = RandomMarks({"marked": marks}, pool, units.received, draws)
        replay(maps, chosen, [observed, random], planted)
        excess = observed.values["marked"] - observed.control["marked"]
        return by_sign_flips(excess, maps.shape), random.tests["marked"].p_max

    return sampled


def random_links(maps: Maps, most_links: int, *, of_words: bool = False) -> Sampled:
    """One to ``most_links`` links in each text, of the shape of two of its words, put anywhere.

    ``of_words``: left at those words. Places of words aren't any places: see the docs.
    """
    texts = maps.texts

    def drawn_link(rng: np.random.Generator, text: int) -> Link:
        words = texts.words[text]
        one, other = (words[i].pieces for i in rng.choice(len(words), 2, replace=False))
        link = tuple((query, key) for query in one for key in other if query != key)
        if of_words or not link:
            return link
        placed = placements_of(link, texts.sides_of(text))
        row = rng.integers(len(placed.queries))
        return tuple(zip(placed.queries[row].tolist(), placed.keys[row].tolist(), strict=True))

    def sampled(rng: np.random.Generator, n_texts: int, share: float) -> tuple[P, P]:
        chosen = rng.choice(maps.long_enough(), n_texts, replace=False).tolist()
        links, planted = {}, {}
        layer, head = planted_head(maps)
        for text in chosen:
            n_links = rng.integers(1, most_links + 1)
            drawn = [link for _ in range(n_links) if (link := drawn_link(rng, text))]
            taken = [pair for link in drawn for pair in link]
            links[text] = [placements_of(p, texts.sides_of(text), avoid=taken) for p in drawn]
            if share:
                planted[layer, text] = head, mixed(maps.maps[text][layer, head], taken, share)
        draws = Draws(repeats=DRAWS, seed=int(rng.integers(2**31)))
        reduction = LinkAttention(links, draws)
        replay(maps, chosen, [reduction], planted)
        excess = reduction.values - reduction.control
        return by_sign_flips(excess, maps.shape), reduction.test.p_max

    return sampled


def random_changes(base: Maps, tuned: Maps, share_marked: float) -> Sampled:
    """What fine-tuning changes in what random marks receive, its mean over all texts taken off.

    ``share`` shifts the planted head by that many of its standard deviations.
    """
    rng = np.random.default_rng(0)
    units = units_of(base.texts, mode="paper")
    marks = np.zeros(len(base.texts.ids), dtype=np.bool_)
    for text in base.long_enough():
        ordinary = base.ordinary(text)
        n_marked = max(1, round(share_marked * len(ordinary)))
        marks[base.texts.offsets[text] + rng.choice(ordinary, n_marked, replace=False)] = True
    values = []
    for maps in (base, tuned):
        marked = MarkedAttention({"marked": marks}, ~maps.texts.special, units.received)
        replay(maps, base.long_enough().tolist(), [marked], {})
        values.append(marked.values["marked"][base.long_enough()])
    changes = values[1] - values[0]
    changes -= changes.mean(axis=0)  # no head changes by more than chance, skewed as they are

    def sampled(rng: np.random.Generator, n_texts: int, share: float) -> tuple[P, P]:
        drawn = changes[rng.integers(len(changes), size=n_texts)].copy()
        if share:
            planted = (slice(None), *planted_head(base))
            drawn[planted] += share * changes[planted].std()
        seed = int(rng.integers(2**31))
        return by_sign_flips(drawn, base.shape), p_of_mean(drawn, seed=seed)

    return sampled


@dataclass(frozen=True)
class Line:
    """How often some head is found where there is none, and the planted one where it is."""

    what: str
    n_texts: int
    planted: str
    old_size: float
    size: float
    old_power: float
    power: float
    has_bar: bool

    @property
    def passed(self) -> bool:
        return not self.has_bar or self.size <= BAR


@dataclass(frozen=True)
class Setting:
    """What is drawn, how strong the planted head is, and whether the level must hold."""

    what: str
    sampled: Sampled
    share: float
    planted: str
    has_bar: bool = True

    def measured(self, n_texts: int, head: tuple[int, int], samples: int) -> Line:
        """``samples`` samples without an effect, and a quarter as many with one."""
        nothing = [self.sampled(_rng(1, i), n_texts, 0.0) for i in range(samples)]
        effect = [self.sampled(_rng(2, i), n_texts, self.share) for i in range(samples // 4)]
        sizes = [float(np.mean([p[way].min() <= LEVEL for p in nothing])) for way in (0, 1)]
        powers = [float(np.mean([p[way][head] <= LEVEL for p in effect])) for way in (0, 1)]
        return Line(self.what, n_texts, self.planted, *sizes, *powers, has_bar=self.has_bar)


def _rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def tuned_on_sst2(train: Dataset, dev: Dataset):
    """all-MiniLM after 50 updates: enough to change its attention."""
    recipe = recipe_for(train.task).but(epochs=2, learning_rate=1e-4)
    return finetune("minilm", train, dev.limit(100), recipe=recipe, fraction=800).model


def settings() -> Iterator[tuple[Setting, tuple[int, int]]]:
    """What is simulated, with the planted head's place."""
    dataset = open_data(DataSpec("sst2", path=SST2, split="dev"))
    tokenizer = load_tokenizer("minilm")
    base = kept_maps(load("minilm"), tokenizer, dataset)
    head = planted_head(base)
    one, fifth = random_marks(base, 0.0), random_marks(base, 0.2)
    yield Setting("one random token marked", one, 0.01, "1 % of attention"), head
    yield Setting("a fifth of the tokens marked", fifth, 0.02, "2 % of attention"), head
    for what, most in (("one random link", 1), ("one to three random links", 3)):
        yield Setting(what, random_links(base, most), 0.02, "2 % of attention"), head
    of_words = random_links(base, 1, of_words=True)
    yield Setting("two random words linked", of_words, 0.02, "2 % of attention", False), head
    train, dev = open_training(DataSpec("sst2", path=SST2))
    tuned = kept_maps(tuned_on_sst2(train, dev), tokenizer, dataset)
    for what, share in (("change, one token marked", 0.0), ("change, a fifth marked", 0.2)):
        changes = random_changes(base, tuned, share)
        yield Setting(what, changes, 1.0, "1 standard deviation"), head


def lines(samples: int) -> Iterator[Line]:
    """The whole table."""
    for setting, head in settings():
        for n_texts in N_TEXTS:
            yield setting.measured(n_texts, head, samples)


def table(measured_lines: Sequence[Line], samples: int) -> str:
    """The table as Markdown."""
    head = [
        f"{samples:,} samples without an effect, {samples // 4} with one; all-MiniLM, 72 heads.",
        "",
        "| drawn | texts | any head: sign flips | ours | planted | found: sign flips | ours |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = [
        f"| {line.what} | {line.n_texts} | {line.old_size:.3f} | {line.size:.3f} | {line.planted} |"
        f" {line.old_power:.3f} | {line.power:.3f} |"
        for line in measured_lines
    ]
    return "\n".join([*head, *rows])


def write(text: str, docs: Path = DOCS) -> None:
    """Put the table between its markers."""
    before, _, rest = docs.read_text().partition(BEGIN)
    docs.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=SAMPLES)
    samples = parser.parse_args().samples
    measured_lines = []
    for line in lines(samples):
        measured_lines.append(line)
        print(line, file=sys.stderr, flush=True)
    text = table(measured_lines, samples)
    if samples == SAMPLES:
        write(text)
    print(text)
    failed = [line for line in measured_lines if not line.passed]
    for line in failed:
        print(f"bar missed, {line.size:.3f} found where nothing is: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
