"""What a run needs before its first step, made once and read again: vocabulary and tokens."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from microtome import files
from microtome.errors import RequestError
from microtome.training.mlm import text
from microtome.training.mlm.building import start_pieces, token_ids
from microtome.training.mlm.request import PretrainRequest
from microtome.training.mlm.rows import Array, Tokens, commonest, cut

FACTS = "text.json"


@dataclass(frozen=True)
class Prepared:
    """The text as tokens (memory-mapped), the vocabulary, and what the card says about both."""

    tokenizer: Tokenizer
    tokens: Tokens
    training: Array
    heldout: Array
    facts: dict[str, Any]

    @property
    def common(self) -> int:
        """The commonest token of the training text that can be masked."""
        return int(self.facts["commonest_token"])

    def heldout_rows(self, *, length: int, n: int) -> Array:
        """The first `n` held-out rows."""
        return cut(self.heldout, length=length, offset=0, tokens=self.tokens)[:n]


def prepare(request: PretrainRequest) -> Prepared:
    """Read the text and make vocabulary and tokens, or open what an earlier call made.

    Text that changed since the earlier call is refused.
    """
    folder = request.work / "text"
    facts = files.read_json(folder / FACTS)
    if facts is None:
        facts = _make(request, folder)
    else:
        check_files(request.work, facts["files"], request.text)
    tokenizer = Tokenizer.from_file(str(folder / "vocabulary.json"))
    return Prepared(
        tokenizer=tokenizer,
        tokens=token_ids(tokenizer),
        training=np.load(folder / "training.npy", mmap_mode="r"),
        heldout=np.load(folder / "heldout.npy", mmap_mode="r"),
        facts=facts,
    )


def _make(request: PretrainRequest, folder: Path) -> dict[str, Any]:
    corpus = text.read_corpus(request.text, heldout_share=request.heldout_share)
    tokenizer = (
        start_pieces(request.start)
        if request.start
        else text.train_vocabulary(
            corpus.training, size=request.vocabulary, lowercase=request.lowercase
        )
    )
    streams = {
        "training": text.token_stream(tokenizer, corpus.training),
        "heldout": text.token_stream(tokenizer, corpus.heldout),
    }
    text.refuse_unknown(tokenizer, streams["training"])
    for name, stream in streams.items():
        if len(stream) < request.length:
            raise RequestError(
                f"the {name} text must fill a row of {request.length} tokens, got {len(stream)}",
                "give more text, or shorter rows",
            )
    facts = text_facts(request, tokenizer, corpus, streams)
    with files.storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files.write_text(folder / "vocabulary.json", tokenizer.to_str())
        for name, stream in streams.items():
            np.save(folder / f"{name}.npy", stream)
        files.write_json(folder / FACTS, facts)  # last: what is there before it isn't whole
    return facts


def text_facts(
    request: PretrainRequest, tokenizer: Tokenizer, corpus: text.Corpus, streams: dict[str, Array]
) -> dict[str, Any]:
    """What the card says about the text, and what a later call is checked against."""
    tokens = token_ids(tokenizer)
    counts = np.bincount(streams["training"], minlength=tokens.n_vocabulary)
    return {
        "files": corpus.files,
        "heldout_share": request.heldout_share,
        "n_training_documents": len(corpus.training),
        "n_heldout_documents": len(corpus.heldout),
        "n_training_tokens": len(streams["training"]),
        "n_heldout_tokens": len(streams["heldout"]),
        "unknown_share": round(text.unknown_share(tokenizer, streams["training"]), 5),
        "commonest_token": commonest(counts, tokens),
        "vocabulary_sha256": hashlib.sha256(tokenizer.to_str().encode()).hexdigest(),
        **{f"{name}_sha256": _sha256(stream) for name, stream in streams.items()},
    }


def check_files(work: Path, known: list[dict[str, Any]], paths: tuple[Path, ...]) -> None:
    """Refuse other text than ``work`` was begun with."""
    now = [text.described(path, text.read_text(path)) for path in paths]
    if now != known:
        changed = [file["name"] for file in now if file not in known]
        raise RequestError(
            f"{work} was begun with other text than {', '.join(changed) or 'these files'}",
            "choose another --out, or give the same text",
        )


def _sha256(stream: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(stream).tobytes()).hexdigest()
