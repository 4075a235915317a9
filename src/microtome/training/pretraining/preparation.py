"""What a run needs before its first step, made once and found again: tokens, vocabulary, plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from microtome.errors import RequestError
from microtome.training.pretraining import text
from microtome.training.pretraining.building import token_ids
from microtome.training.pretraining.continuing import start_pieces
from microtome.training.pretraining.rows import Array, Tokens, commonest, cut
from microtome.training.storage import storing, write_json, write_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from microtome.training.pretrain import PretrainRequest

FACTS, EXTRA_FACTS = "text.json", "extra.json"
NOTHING_YET = "nothing was trained yet"


@dataclass(frozen=True)
class Prepared:
    """The text as tokens (memory-mapped), the vocabulary, and where both come from."""

    tokenizer: Tokenizer
    tokens: Tokens
    training: Array
    extra: Array | None  # joins at the end, where there is any
    heldout: Array
    by_frequency: Array  # token ids, the commonest of the training text first
    facts: dict[str, Any]

    @property
    def common(self) -> int:
        """The commonest token of the training text that can be asked for."""
        return int(self.facts["commonest_token"])

    def heldout_rows(self, *, length: int, n: int) -> Array:
        """The first `n` held-out rows."""
        return cut(self.heldout, length=length, offset=0, tokens=self.tokens)[:n]


def prepare(request: PretrainRequest) -> Prepared:
    """Read the text and make vocabulary and tokens, or open what an earlier call made."""
    from tokenizers import Tokenizer

    folder = request.work / "text"
    facts_file = folder / FACTS
    made_before = facts_file.exists()
    if not made_before:
        _make(request, folder)
    facts = json.loads(facts_file.read_text(encoding="utf-8"))
    if made_before:
        _check_same(request, facts)
    tokenizer = Tokenizer.from_file(str(folder / "vocabulary.json"))
    tokens = token_ids(tokenizer)
    training = np.load(folder / "training.npy", mmap_mode="r")
    extra = _extra_tokens(request, tokenizer, folder)
    if extra is not None:
        facts["extra_files"] = json.loads((folder / EXTRA_FACTS).read_text(encoding="utf-8"))
    counts = np.bincount(training, minlength=tokens.n_vocabulary)
    facts["commonest_token"] = commonest(counts, tokens)
    return Prepared(
        tokenizer=tokenizer,
        tokens=tokens,
        training=training,
        extra=extra,
        heldout=np.load(folder / "heldout.npy", mmap_mode="r"),
        by_frequency=np.argsort(-counts, kind="stable"),
        facts=facts,
    )


def _make(request: PretrainRequest, folder: Path) -> None:
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
                f"the {name} text has {len(stream)} tokens, a row of {request.length} wanted",
                "give more text, or shorter rows",
            )
    facts = text_facts(request, tokenizer, corpus, streams)
    with storing(folder, kept=NOTHING_YET):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "vocabulary.json", tokenizer.to_str())
        for name, stream in streams.items():
            np.save(folder / f"{name}.npy", stream)
        write_json(folder / FACTS, facts)


def text_facts(
    request: PretrainRequest, tokenizer: Tokenizer, corpus: text.Corpus, streams: dict[str, Array]
) -> dict[str, Any]:
    """What the card says about the text, and what a later call is checked against."""
    return {
        "files": [asdict(file) for file in corpus.files],
        "asked": _asked(request),
        "heldout_share": request.heldout_share,
        "n_training_documents": len(corpus.training),
        "n_heldout_documents": len(corpus.heldout),
        "n_training_tokens": len(streams["training"]),
        "n_heldout_tokens": len(streams["heldout"]),
        "unknown_share": round(text.unknown_share(tokenizer, streams["training"]), 5),
        "vocabulary_sha256": hashlib.sha256(tokenizer.to_str().encode()).hexdigest(),
        **{f"{name}_sha256": _sha256(stream) for name, stream in streams.items()},
    }


def _asked(request: PretrainRequest) -> dict[str, Any]:
    return {
        "names": [path.name for path in request.text],
        "vocabulary": request.vocabulary,
        "lowercase": request.lowercase,
    }


def _check_same(request: PretrainRequest, facts: dict[str, Any]) -> None:
    """Refuse a folder that was begun with other text, or another vocabulary."""
    if facts["asked"] != _asked(request):
        raise RequestError(
            f"{request.work} was begun with {facts['asked']}, now {_asked(request)} is asked for",
            "use another --out, or the same text and vocabulary",
        )
    _check_files(request, facts["files"], request.text)


def _check_files(
    request: PretrainRequest, known: Sequence[dict[str, Any]], paths: Sequence[Path]
) -> None:
    for before, path in zip(known, paths, strict=True):
        if before != asdict(text.described(path, text.read_text(path))):
            raise RequestError(
                f"{path} has another text than when {request.work} was begun with it",
                "use another --out, or the same text",
            )


def _extra_tokens(request: PretrainRequest, tokenizer: Tokenizer, folder: Path) -> Array | None:
    if not request.extra_text:
        return None
    file, facts = folder / "extra.npy", folder / EXTRA_FACTS
    if file.exists() and facts.exists():
        _check_files(request, json.loads(facts.read_text(encoding="utf-8")), request.extra_text)
        return np.asarray(np.load(file))
    texts = [text.read_text(path) for path in request.extra_text]
    documents = [document for one in texts for document in text.documents(one)]
    stream = text.token_stream(tokenizer, documents)
    text.refuse_unknown(tokenizer, stream)
    with storing(folder, kept=NOTHING_YET):
        np.save(file, stream)
        write_json(facts, [asdict(one) for one in map(text.described, request.extra_text, texts)])
    return stream


def _sha256(stream: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(stream).tobytes()).hexdigest()
