"""Text files to a vocabulary and one memory-mapped stream of token ids.

A document is what blank lines separate (a file without any is one document). Documents follow each
other in the stream with one [SEP] between them; rows are cut from it later, at any length.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from microtome.errors import RequestError

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
UNKNOWN = SPECIAL_TOKENS[1]
# Rare characters become [UNK]: a Wikipedia has thousands of them, Chinese needs thousands.
ALPHABET = 400  # characters that there is room for in any case
COVERED = 0.9995  # of all characters, where that takes more
MOST_UNKNOWN = 0.2  # of the tokens
TEXTS_AT_ONCE = 256


@dataclass(frozen=True)
class Corpus:
    """Documents to train on, documents never trained on, and where they come from."""

    training: tuple[str, ...]
    heldout: tuple[str, ...]
    files: list[dict[str, Any]]  # as `described` gives them


def read_text(path: Path) -> str:
    """The text of a .txt, .txt.gz or .txt.xz file."""
    openers: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".txt": open}
    opener = openers.get(path.suffix)
    if opener is None:
        raise RequestError(
            f"a text file must be .txt, .txt.gz or .txt.xz, got {path.name}",
            "convert it to plain UTF-8 text with a paragraph per line",
        )
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            return str(file.read())
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error) as error:
        raise RequestError(f"can't read text file {path}: {error}") from error


def described(path: Path, text: str) -> dict[str, Any]:
    """What the card says about a file that was read."""
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return {"name": path.name, "sha256": sha256, "n_characters": len(text)}


def documents(text: str) -> list[str]:
    """Split at blank lines; empty documents are dropped."""
    blocks: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return ["\n".join(block) for block in blocks if block]


def read_corpus(paths: Sequence[Path], *, heldout_share: float) -> Corpus:
    """Read every file; the end of the last file is held out.

    As many whole documents as make up `heldout_share` of all characters. A document that is longer
    than that is split at its lines.
    """
    if not paths:
        raise RequestError("expected at least one text file, got none", "add --text FILE")
    texts = [read_text(path) for path in paths]
    n_characters = sum(map(len, texts))
    *earlier, last = [documents(text) for text in texts]
    kept, heldout = _parted(last, heldout_share * n_characters)
    training = tuple(document for part in [*earlier, kept] for document in part)
    if not heldout or 2 * sum(map(len, heldout)) > n_characters:
        raise RequestError(
            f"{heldout_share:.0%} of all text must be held out, and the end of {paths[-1].name}"
            " can't be split off",
            "put a file with a paragraph per line last",
        )
    return Corpus(training, tuple(heldout), list(map(described, paths, texts)))


def _parted(parts: Sequence[str], n_wanted: float) -> tuple[list[str], list[str]]:
    """The documents without their end, and the end: `n_wanted` characters or a few more."""
    kept, n_characters = list(parts), 0
    end: list[str] = []
    while n_characters < n_wanted and kept:
        document = kept.pop()
        lines = document.split("\n")
        if len(document) > n_wanted and len(lines) > 1:
            before, after = _parted(lines, n_wanted - n_characters)
            return [*kept, "\n".join(before)], ["\n".join(after), *end]
        if not kept:  # something must be left to train on
            return [document], end
        end.insert(0, document)
        n_characters += len(document)
    return kept, end


def train_vocabulary(
    training: Sequence[str], *, size: int, lowercase: bool, n_characters: int = 50_000_000
) -> Tokenizer:
    """A WordPiece vocabulary from evenly spread documents, at most about `n_characters` of them."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    # Marks stay where they are: without its vowel signs Hindi isn't Hindi any more.
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    every = max(1, -(-sum(map(len, training)) // n_characters))
    lines = (line for document in training for line in document.split("\n"))
    sample = [line for number, line in enumerate(lines) if number % every == 0]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        limit_alphabet=alphabet_size(sample, most=size // 2),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample, trainer)
    tokenizer.model = models.WordPiece(_numbered(tokenizer.get_vocab()), unk_token=UNKNOWN)
    return tokenizer


def alphabet_size(lines: Iterable[str], *, most: int) -> int:
    """How many characters a vocabulary should know: the commonest, until few are left out."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line)
    allowed = (1 - COVERED) * counts.total()
    ascending = sorted(counts.values())
    n_rare, left_out = 0, 0
    while n_rare < len(ascending) and left_out + ascending[n_rare] <= allowed:
        left_out += ascending[n_rare]
        n_rare += 1
    return min(most, max(ALPHABET, len(ascending) - n_rare))


def unknown_share(tokenizer: Tokenizer, stream: NDArray[Any]) -> float:
    """How many of a stream's tokens are [UNK]."""
    unknown = tokenizer.token_to_id(UNKNOWN)
    return 0.0 if unknown is None or not len(stream) else float((stream == unknown).mean())


def refuse_unknown(tokenizer: Tokenizer, stream: NDArray[Any]) -> None:
    """Refuse text that a vocabulary doesn't know."""
    share = unknown_share(tokenizer, stream)
    if share > MOST_UNKNOWN:
        raise RequestError(
            f"the vocabulary of {tokenizer.get_vocab_size():,} pieces must know all but"
            f" {MOST_UNKNOWN:.0%} of the text's tokens, and {share:.0%} of them are unknown",
            "take a larger --vocabulary, or another start; words need spaces between them",
        )


def _numbered(vocabulary: Iterable[str]) -> dict[str, int]:
    """Special tokens first, then the others by name: the trainer numbers them by chance."""
    others = sorted(token for token in vocabulary if token not in SPECIAL_TOKENS)
    return {token: number for number, token in enumerate((*SPECIAL_TOKENS, *others))}


def token_stream(tokenizer: Tokenizer, texts: Sequence[str]) -> NDArray[Any]:
    """All tokens in order, one [SEP] between two documents; uint16 where the vocabulary allows."""
    separator = tokenizer.token_to_id("[SEP]")
    kind = np.uint16 if tokenizer.get_vocab_size() <= 2**16 else np.int32
    parts: list[NDArray[Any]] = []
    for begin in range(0, len(texts), TEXTS_AT_ONCE):
        batch = list(texts[begin : begin + TEXTS_AT_ONCE])
        for encoded in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
            parts.append(np.array([*encoded.ids, separator], dtype=kind))
    return np.concatenate(parts)[:-1] if parts else np.zeros(0, dtype=kind)
