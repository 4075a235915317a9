"""Folders of models and runs: headers, configs, tokenizers, modules, histories, records."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from loop import Case, Files, Target, Wrong
from safetensors import SafetensorError, safe_open

from microtome import parse
from microtome.errors import MicrotomeError
from microtome.models import load, load_tokenizer
from microtome.models.weights import stored_tensors
from microtome.runs import open_run
from microtome.runs.record import Record
from microtome.runs.store import Store, array_bytes
from microtome.runs.table import parquet_bytes
from microtome.surgery import operate, verify

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support.sentence_folders import TEXTS, sentence_folder
from support.tiny import FAMILY_TYPES, save_tiny

HISTORY = "microtome.json"


@cache
def home() -> Path:
    """Where the valid folders are, for as long as this process lives."""
    return Path(tempfile.mkdtemp(dir=os.environ.get("MICROTOME_FUZZ")))


@cache
def checkpoint(family: str) -> Path:
    return save_tiny(home() / family, family, "classification", with_tokenizer=True)


@cache
def embedder() -> Path:
    return sentence_folder(
        home() / "embedder", modes=("cls", "mean"), then=("Dense", "LayerNorm", "Normalize"),
        prompts={"query": "find: "}, default_prompt="query",
    )  # fmt: skip


@cache
def cut() -> Path:
    """An edited folder next to its base."""
    base = save_tiny(home() / "base", "bert", "classification", with_tokenizer=True)
    operate(str(base), parse("remove(1) | disable(0.1)"), home() / "cut")
    return home() / "cut"


def contents(folder: Path, names: tuple[str, ...]) -> Files:
    return {name: (folder / name).read_bytes() for name in names}


def header_case(rng: Random) -> Case:
    return Case(contents(checkpoint("bert"), ("model.safetensors",)))


def read_header(place: Path) -> int:
    """What we accept the library accepts, with the same tensors."""
    found = stored_tensors(place / "model.safetensors")
    try:
        with safe_open(place / "model.safetensors", framework="numpy") as file:
            names = sorted(file.keys())
    except SafetensorError as error:
        raise Wrong(f"accepted, and refused by safetensors: {error}") from error
    if names != [tensor.name for tensor in found]:
        raise Wrong("other tensors than safetensors finds")
    return len(found)


def weights_case(rng: Random) -> Case:
    """The header alone, between its length and the data."""
    content = contents(checkpoint("bert"), ("model.safetensors",))["model.safetensors"]
    n_header = int.from_bytes(content[:8], "little")
    return Case({"header.json": content[8 : 8 + n_header], "data.bin": content[8 + n_header :]})


def read_weights(place: Path) -> int:
    """A file with this header, its length set right; the tensors it promises are in it."""
    header, data = (place / "header.json").read_bytes(), (place / "data.bin").read_bytes()
    (place / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    return read_header(place)


def config_case(rng: Random) -> Case:
    family = rng.choice(FAMILY_TYPES)
    names = ("config.json", "model.safetensors")
    return Case({f"{family}/{n}": c for n, c in contents(checkpoint(family), names).items()})


def read_config(place: Path) -> str:
    (folder,) = (file.parent for file in place.glob("*/config.json"))
    return type(load(folder)).__name__


TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def tokenizer_case(rng: Random) -> Case:
    return Case(contents(checkpoint("bert"), (*TOKENIZER, "config.json", "model.safetensors")))


def read_tokenizer(place: Path) -> int:
    tokenizer = load_tokenizer(place)
    return 0 if tokenizer is None else len(tokenizer.get_vocab())


def sentence_case(rng: Random) -> Case:
    further = tuple(
        str(file.relative_to(embedder())) for file in embedder().rglob("*") if file.is_file()
    )
    return Case(contents(embedder(), further))


def read_sentence(place: Path) -> tuple[int, ...]:
    from microtome.observe.embedding import embed

    model, tokenizer = load(place), load_tokenizer(place)
    try:
        return embed(model, tokenizer, TEXTS).shape
    except MicrotomeError:
        return ()


def history_case(rng: Random) -> Case:
    return Case(contents(cut(), (HISTORY,)))


def read_history(place: Path) -> None:
    """A folder whose record says something else than it said is refused."""
    folder = home() / "verified"
    if not folder.exists():
        shutil.copytree(cut(), folder)
    shutil.copy(place / HISTORY, folder / HISTORY)
    passed = verify(folder).passed
    record = json.loads((place / HISTORY).read_bytes())
    has_hash = "record_sha256" in record  # without it an earlier version may have saved the folder
    if passed and has_hash and record != json.loads((cut() / HISTORY).read_bytes()):
        raise Wrong("another record, and verified")


def run_files() -> Files:
    """A run of two trials, one of them with an array."""
    rows = [{"experiment": "x", "model": "m", "task": "t", "layer": i, "score": i / 7, "low": 0.0,
             "high": 1.0, "n": 10, "name": "é\u2028"} for i in range(3)]  # fmt: skip
    hashes = [letter * 64 for letter in "ab"]
    files = {}
    for trial, needs in zip(hashes, ([], [hashes[0]]), strict=True):
        record = Record(
            trial, "ok", "toy.add", {"seed": 0, "experiment": "x"}, {"model": "c" * 64}, needs,
            rows=rows, summary={"score": 0.5}, arrays=True, columns={"model": "m"},
            versions={"microtome": "0"},
        )  # fmt: skip
        files[f"records/{trial}.json"] = record.to_bytes()
        files[f"arrays/{trial}.npz"] = array_bytes({"scores": np.arange(5.0), "ids": np.arange(3)})
    run = {
        "schema_version": 1, "request": {"seed": 0, "layers": [0, 1]}, "trials": hashes,
        "sources": {"model": {"place": "c" * 64}}, "versions": {"microtome": "0"}, "commit": None,
        "machine": {"cpu": "x"}, "threads": 1, "notes": ["a note"],
    }  # fmt: skip
    return {"run.json": json.dumps(run).encode(), **files}


def run_case(rng: Random) -> Case:
    return Case(run_files())


def read_run(place: Path) -> int:
    """Everything that pages and reports take of a run, and going on with it."""
    result = open_run(place)
    rows = result.rows
    json.dumps(result.facts)
    assert isinstance(result.notes, tuple)
    result.places("model")
    [result.cause_of(record) for record in result.failed]
    for record in result.records.values():
        if record.arrays:
            result.arrays(record.hash)
    io.BytesIO(parquet_bytes(rows))
    store = Store(place)
    store.lock()
    try:
        store.begin({"seed": 0, "layers": [0, 1, 2]}, [], threads=1)
        return len(rows)
    finally:
        store.release()


WEIGHTS = ("model.safetensors",)
TARGETS = [
    Target("safetensors", header_case, read_header),
    Target("header", weights_case, read_weights, whole=("data.bin",)),
    Target("config", config_case, read_config,
           whole=tuple(f"{family}/model.safetensors" for family in FAMILY_TYPES)),
    Target("tokenizer", tokenizer_case, read_tokenizer, whole=("config.json", *WEIGHTS)),
    Target("sentence", sentence_case, read_sentence,
           whole=("model.safetensors", "config.json", *TOKENIZER, "2_Dense/model.safetensors",
                  "3_LayerNorm/model.safetensors")),
    Target("history", history_case, read_history),
    Target("run", run_case, read_run),
]  # fmt: skip
