"""A tokenizer with fewer tokens, made by rewriting its definition (``tokenizer.json``).

:func:`needed_ids` says which tokens must stay beside those that some texts use, :func:`with_tokens`
writes the definition anew. Nothing is trained. What holds afterwards, by kind of tokenizer:

- WordPiece takes the longest piece at every place. A text whose pieces all stay is cut as before,
  since no longer one came. Every character that is a piece stays: any other word can be spelled.
- BPE merges pairs in the order of their ranks. With every merge that leads to a kept token, a text
  of kept tokens is cut as before: the merges that are gone were never used in it.
- Unigram takes the pieces with the largest sum of scores. The best sum is still there if its pieces
  are. A character without a piece costs 10 less than the lowest score: that piece stays, too.

A piece with a character that isn't a piece by itself stays in all three.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from microtome.errors import EditError

Definition = dict[str, Any]  # tokenizer.json as Python values
KINDS = ("WordPiece", "BPE", "Unigram")


def tokens_of(definition: Definition) -> dict[str, int]:
    """Every token and its id, those that were added included."""
    vocabulary = definition["model"]["vocab"]
    if isinstance(vocabulary, list):  # Unigram: pairs of a piece and its score
        vocabulary = {piece: index for index, (piece, _) in enumerate(vocabulary)}
    return {**vocabulary, **{added["content"]: added["id"] for added in _added(definition)}}


def check_kind(definition: Definition) -> None:
    """Refuse a tokenizer that isn't one of the three kinds."""
    kind = definition["model"].get("type")
    if kind not in KINDS:
        raise EditError(
            f"expected a {', '.join(KINDS[:-1])} or {KINDS[-1]} tokenizer, got {kind}",
            "this model's vocabulary can't be made smaller",
        )


def needed_ids(definition: Definition, used: Iterable[int]) -> list[int]:
    """The ids that stay where texts use ``used``, ascending: those, and what any text may need."""
    check_kind(definition)
    model = definition["model"]
    kept = {*used, *(added["id"] for added in _added(definition))}
    kept |= _NEEDED[model["type"]](model, kept)
    unknown = model.get("unk_token")
    if unknown in (tokens := tokens_of(definition)):
        kept.add(tokens[unknown])
    return sorted(kept)


def with_tokens(definition: Definition, kept: list[int]) -> Definition:
    """The definition with the tokens ``kept`` alone: the one at place i has the id i."""
    new_ids = {old: new for new, old in enumerate(kept)}
    smaller = copy.deepcopy(definition)
    model = smaller["model"]
    if model["type"] == "Unigram":
        model["vocab"] = [pair for old, pair in enumerate(model["vocab"]) if old in new_ids]
        if model["unk_id"] is not None:
            model["unk_id"] = new_ids[model["unk_id"]]
    else:
        by_id = sorted(model["vocab"].items(), key=lambda item: item[1])
        model["vocab"] = {token: new_ids[old] for token, old in by_id if old in new_ids}
    if model["type"] == "BPE":
        there = model["vocab"].keys()
        model["merges"] = [
            pair
            for pair in model["merges"]
            if there >= {*(parts := _pair(pair)), _merged(model, parts)}
        ]
    for added in _added(smaller):
        added["id"] = new_ids[added["id"]]
    if smaller.get("padding"):
        smaller["padding"]["pad_id"] = new_ids[smaller["padding"]["pad_id"]]
    if smaller.get("post_processor"):
        _renumber_(smaller["post_processor"], new_ids)
    return smaller


def _added(definition: Definition) -> list[dict[str, Any]]:
    return definition.get("added_tokens") or []


def _renumber_(processor: dict[str, Any], new_ids: Mapping[int, int]) -> None:
    """Ids in a post-processor: of a template, of BERT's or RoBERTa's frame, or of a sequence."""
    for inner in processor.get("processors", ()):
        _renumber_(inner, new_ids)
    for frame in ("cls", "sep"):
        if frame in processor:
            token, old = processor[frame]
            processor[frame] = [token, new_ids[old]]
    for special in processor.get("special_tokens", {}).values():
        special["ids"] = [new_ids[old] for old in special["ids"]]


def _word_pieces(model: dict[str, Any], kept: set[int]) -> set[int]:
    """Characters at the start of a word and inside it are different pieces."""
    prefix = model["continuing_subword_prefix"]
    starts = {
        piece: index for piece, index in model["vocab"].items() if not _follows(piece, prefix)
    }
    inside = {
        piece.removeprefix(prefix): index
        for piece, index in model["vocab"].items()
        if _follows(piece, prefix)
    }
    spelled_first, spelled_inside = _characters(starts), _characters(inside)
    needed = {index for piece, index in starts.items() if len(piece) == 1}
    needed |= {index for piece, index in inside.items() if len(piece) == 1}
    needed |= {
        index
        for piece, index in starts.items()
        if piece[:1] not in spelled_first or not spelled_inside.issuperset(piece[1:])
    }
    return needed | {i for piece, i in inside.items() if not spelled_inside.issuperset(piece)}


def _follows(piece: str, prefix: str) -> bool:
    return len(piece) > len(prefix) and piece.startswith(prefix)


def _characters(pieces: Mapping[str, int]) -> set[str]:
    return {piece for piece in pieces if len(piece) == 1}


def _merge_steps(model: dict[str, Any], kept: set[int]) -> set[int]:
    """Tokens that no merge makes (characters, bytes), and all steps on the way to a kept one."""
    ids: dict[str, int] = model["vocab"]
    steps: dict[str, list[tuple[str, str]]] = {}
    for merge in model["merges"]:
        steps.setdefault(_merged(model, pair := _pair(merge)), []).append(pair)
    waiting = [token for token, index in ids.items() if index in kept or token not in steps]
    needed: set[str] = set()
    while waiting:
        token = waiting.pop()
        if token not in needed:
            needed.add(token)
            waiting += [part for pair in steps.get(token, ()) for part in pair]
    return {ids[token] for token in needed}


def _pair(merge: str | list[str]) -> tuple[str, str]:
    """Old files write a merge as one text with a blank in it."""
    first, second = merge.split(" ") if isinstance(merge, str) else merge
    return first, second


def _merged(model: dict[str, Any], pair: tuple[str, str]) -> str:
    first, second = pair
    return first + second.removeprefix(model.get("continuing_subword_prefix") or "")


def _scored_pieces(model: dict[str, Any], kept: set[int]) -> set[int]:
    """Characters, bytes, pieces with a character that is no piece, and the lowest score."""
    pieces = [piece for piece, _ in model["vocab"]]
    spelled = {piece for piece in pieces if len(piece) == 1}
    needed = {
        index
        for index, piece in enumerate(pieces)
        if len(piece) == 1 or not spelled.issuperset(piece) or _is_byte(piece)
    }
    lowest = min(range(len(pieces)), key=lambda index: float(model["vocab"][index][1]))
    return needed | {lowest} | ({model["unk_id"]} - {None})


def _is_byte(piece: str) -> bool:
    return len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">")


_NEEDED: dict[str, Callable[[dict[str, Any], set[int]], set[int]]] = {
    "WordPiece": _word_pieces,
    "BPE": _merge_steps,
    "Unigram": _scored_pieces,
}
