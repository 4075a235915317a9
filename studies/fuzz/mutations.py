"""Valid content made wrong: bytes, lines, and values of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

Json: TypeAlias = Any  # what a document holds
LARGEST = 100_000  # bytes: "small" files

# What has torn rows, numbers or parsers somewhere.
PIECES = [
    b'"', b'""', b"'", b",", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b"\xff\xfe", "\u2028".encode(), "\x85".encode(), b"\x0b", b"\x0c", b"\x1c",
    b"\\", b"\\ud800", b"\\u0000", b"#", b"_", b"-", b"-1", b"0", b"1e999", b"NaN", b"-Infinity",
    b"9" * 20, b"9" * 5000, b"null", b"true", b"{}", b"[]", b"{", b"}", b"[", b"]", b"[" * 3000,
    b'{"a":' * 3000, b"(", b")", b"<", b"&", b"&lt;", b"<!--", b" ", b"  ", "²".encode(),
    "٣".encode(), b"\x1b[31m",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, 10**400, -(10**30), 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "", " ", "a", "\ud800", "\0", "\n", "\x1b[31m", "a" * 5000, "²",
    "-1", "nan", "..", "/etc/passwd", "x/../..", [], {}, [None], [[]], {"": None}, ["a", 1, None],
    [1] * 2000, {"a": {"a": {"a": []}}},
]  # fmt: skip


def mutated(content: bytes, rng: Random, *, as_json: bool) -> bytes:
    """The content with one to three changes; JSON is mostly changed as JSON."""
    if rng.random() < 0.02:
        return _many(content, rng)
    for _ in range(rng.choice([1, 1, 2, 3])):
        if as_json and rng.random() < 0.7:
            content = _json_lines(content, rng)
        else:
            content = rng.choice(_WAYS)(content, rng)
    return content[: 2 * LARGEST]


def _span(content: bytes, rng: Random, longest: int = 64) -> tuple[int, int]:
    begin = rng.randint(0, len(content))
    return begin, min(len(content), begin + rng.randint(0, longest))


def _put(content: bytes, rng: Random) -> bytes:
    begin, end = _span(content, rng, rng.choice([0, 1, 8]))
    return content[:begin] + rng.choice(PIECES) + content[end:]


def _bit(content: bytes, rng: Random) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(content: bytes, rng: Random) -> bytes:
    begin, end = _span(content, rng)
    return content[:begin] + content[end:]


def _end_early(content: bytes, rng: Random) -> bytes:
    return content[: rng.randint(0, len(content))]


def _copied(content: bytes, rng: Random) -> bytes:
    begin, end = _span(content, rng)
    at = rng.randint(0, len(content))
    return content[:at] + content[begin:end] + content[at:]


def _many(content: bytes, rng: Random) -> bytes:
    """One short piece thousands of times: what is quadratic shows."""
    begin, end = _span(content, rng, 12)
    piece = rng.choice([content[begin:end], rng.choice(PIECES)]) or b"a"
    at = rng.choice([begin, end])
    return content[:at] + piece * (rng.choice([LARGEST, 20_000]) // len(piece)) + content[at:]


def _lines(content: bytes, rng: Random) -> bytes:
    lines = content.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    way = rng.choice(["drop", "double", "swap", "empty", "field"])
    if way == "drop":
        del lines[one]
    elif way == "double":
        lines.insert(other, lines[one])
    elif way == "swap":
        lines[one], lines[other] = lines[other], lines[one]
    elif way == "empty":
        lines.insert(one, rng.choice([b"", b" ", b"\t", b"\r"]))
    else:
        mark = rng.choice([b"\t", b",", b" "])
        fields = lines[one].split(mark)
        fields[rng.randrange(len(fields))] = rng.choice([b"", rng.choice(PIECES)])
        lines[one] = mark.join(fields)
    return b"\n".join(lines)


_WAYS: list[Callable[[bytes, Random], bytes]] = [
    _put, _put, _put, _bit, _bit, _cut, _end_early, _copied, _lines, _lines,
]  # fmt: skip


def _json_lines(content: bytes, rng: Random) -> bytes:
    """One value of a JSON document, or of one of its lines, replaced, removed or repeated."""
    lines = [content]
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    try:
        document = json.loads(lines[at])
    except (ValueError, RecursionError):
        return _put(content, rng)
    document = _changed(document, rng)
    lines[at] = json.dumps(document, ensure_ascii=rng.random() < 0.8).encode("utf-8", "replace")
    return b"\n".join(lines)


def _changed(document: Json, rng: Random) -> Json:
    places = list(_places(document)) if isinstance(document, (dict, list)) else []
    if not places or rng.random() < 0.02:
        return rng.choice(VALUES)
    inside, key = rng.choice(places)
    way = rng.choice(["value", "value", "value", "drop", "double", "type"])
    if way == "value":
        inside[key] = rng.choice(VALUES)
    elif way == "drop":
        del inside[key]
    elif way == "type":
        inside[key] = _other_type(inside[key])
    elif isinstance(inside, list):
        inside.append(inside[key])
    else:
        inside[f"{key}2"] = inside[key]
    return document


def _places(value: Json) -> Json:
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])


def _other_type(value: Json) -> Json:
    if isinstance(value, str):
        return [value]
    if isinstance(value, (int, float)):
        return str(value)
    return str(value) if isinstance(value, dict) else {"0": value}
