"""Text files to a vocabulary and one memory-mapped stream of token ids.

A document is what blank lines separate (a file without any is one document). Documents follow each
other in the stream with one [SEP] between them; rows are cut from it later, at any length.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
UNKNOWN = SPECIAL_TOKENS[1]
# Characters beyond the most frequent ones become [UNK]: a Wikipedia has thousands of them.
ALPHABET = 400


@dataclass(frozen=True)
class TextFile:
    """One text file that was read: its name and the sha256 of its decoded text."""

    name: str
    sha256: str
    n_characters: int


@dataclass(frozen=True)
class Corpus:
    """Documents to train on, documents never trained on, and where they come from."""

    training: tuple[str, ...]
    heldout: tuple[str, ...]
    files: tuple[TextFile, ...]


def read_text(path: Path) -> str:
    """The text of a .txt, .txt.gz or .txt.xz file."""
    openers: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".txt": open}
    opener = openers.get(path.suffix)
    if opener is None:
        raise RequestError(
            f"text file {path.name} given, .txt, .txt.gz or .txt.xz wanted",
            "convert it to plain UTF-8 text with a paragraph per line",
        )
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            return str(file.read())
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise RequestError(f"can't read text file {path}: {error}") from error


def described(path: Path, text: str) -> TextFile:
    """What the card says about a file that was read."""
    return TextFile(path.name, hashlib.sha256(text.encode()).hexdigest(), len(text))


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
    """Read every file; the last documents of the last file are held out.

    As many whole documents as make up `heldout_share` of all characters. A last file that is one
    single document is split at its lines, so that something can be held out.
    """
    if not paths:
        raise RequestError("no text file given, at least one wanted", "add --text FILE")
    texts = [read_text(path) for path in paths]
    files = tuple(map(described, paths, texts))
    *earlier, last = [documents(text) for text in texts]
    if len(last) == 1:
        last = last[0].split("\n")
    wanted = heldout_share * sum(len(text) for text in texts)
    n_heldout, n_characters = 0, 0
    while n_characters < wanted and n_heldout < len(last) - 1:
        n_heldout += 1
        n_characters += len(last[-n_heldout])
    if n_heldout == 0:
        raise RequestError(
            f"nothing can be held out of {paths[-1].name}: it has {len(last)} document(s)",
            "put a file with at least two paragraphs last",
        )
    cut = len(last) - n_heldout
    training = tuple(document for part in [*earlier, last[:cut]] for document in part)
    return Corpus(training, tuple(last[cut:]), files)


def train_vocabulary(
    training: Sequence[str], *, size: int, lowercase: bool, n_characters: int = 50_000_000
) -> Tokenizer:
    """A WordPiece vocabulary from evenly spread documents, at most about `n_characters` of them."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    every = max(1, -(-sum(map(len, training)) // n_characters))
    lines = (line for document in training for line in document.split("\n"))
    sample = (line for number, line in enumerate(lines) if number % every == 0)
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        limit_alphabet=ALPHABET,
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample, trainer)
    tokenizer.model = models.WordPiece(_numbered(tokenizer.get_vocab()), unk_token=UNKNOWN)
    return tokenizer


def _numbered(vocabulary: Iterable[str]) -> dict[str, int]:
    """Special tokens first, then the others by name: the trainer numbers them by chance."""
    others = sorted(token for token in vocabulary if token not in SPECIAL_TOKENS)
    return {token: number for number, token in enumerate((*SPECIAL_TOKENS, *others))}


def token_stream(tokenizer: Tokenizer, texts: Iterable[str]) -> NDArray[Any]:
    """All tokens in order, one [SEP] between two documents; uint16 where the vocabulary allows."""
    import numpy as np

    separator = tokenizer.token_to_id("[SEP]")
    kind = np.uint16 if tokenizer.get_vocab_size() <= 2**16 else np.int32
    parts: list[NDArray[Any]] = []
    for batch in _batches(texts, n=256):
        for encoded in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
            if parts:
                parts.append(np.array([separator], dtype=kind))
            parts.append(np.asarray(encoded.ids, dtype=kind))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def _batches(texts: Iterable[str], *, n: int) -> Iterator[list[str]]:
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == n:
            yield batch
            batch = []
    if batch:
        yield batch
