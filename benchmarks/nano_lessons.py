"""The last leg of nano-bert: masked words, and a teacher's lessons for [CLS].

    python benchmarks/nano_lessons.py FROM --text NOVELS WIKI_0 WIKI_1 --sentences TSV --out DIR

Masked words never ask [CLS] what a text says; a sentence encoder knows. Every step trains on masked
rows, as ``microtome pretrain`` does, and on a batch of short fragments: from [CLS], a matrix that
is thrown away afterwards must find all-MiniLM's vector of a fragment among those of its batch. FROM
is a folder that ``microtome pretrain`` made of the same text. Fragments come from the first two
files and from a tsv's first column; they and their vectors are made once, in DIR.pretraining.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from microtome.families.seam import Family
from microtome.models import content_hash, load, load_tokenizer, resolve
from microtome.models.quiet import quiet_transformers
from microtome.training.pretrain import PretrainRequest
from microtome.training.pretraining.building import (
    FINETUNING_DROPOUT,
    layer_matrices,
    trained_parameters,
)
from microtome.training.pretraining.card import card
from microtome.training.pretraining.continuing import shaped_as_start
from microtome.training.pretraining.finishing import RECORD, measure
from microtome.training.pretraining.forward import asked_states, masked_loss
from microtome.training.pretraining.optimizer import Optimizer, Rates
from microtome.training.pretraining.preparation import Prepared, prepare
from microtome.training.pretraining.rows import Array, Batch
from microtome.training.pretraining.scaling import shrink_embeddings_
from microtome.training.pretraining.schedule import Stage, plan_of
from microtome.training.pretraining.stepping import Training
from microtome.training.pretraining.text import read_text

TEACHER = "minilm"
SPLIT = re.compile(r"(?<=[.!?;:])\s+|,\s+|\s+--?\s+|\s*[()\"“”]\s*")
N_WORDS = (2, 14)  # of a fragment
N_FRAGMENTS = (45_000, 25_000)  # of the first and the second file
UNREAD = 0.02  # of a file's end: the last documents of the last file are held out
LONGEST = 64  # tokens
READ_AT_ONCE = 64  # fragments, by the teacher
LESSONS_AT_ONCE = 96
TEMPERATURE = 0.1  # of the choice: cosines lie between −1 and 1
COSINE = 2.0  # what 1 − cosine weighs beside finding the vector
STAGE = Stage(layers=12, length=64, n_rows=32, masked=0.2, steps=1000, rate=0.25)
LOGGED = 50  # steps

_TOLD = """\
## Lessons
Then {steps:,} steps more, on {stage[n_rows]} masked rows of {stage[length]} tokens
({stage[masked]:.0%} asked for, {stage[rate]:g} of the rates, {warm_up} steps of warm-up, linear
decay over the last {decay}) and on {n_at_once} of {n_fragments:,} fragments of text: from [CLS], a
matrix that isn't kept had to find the vector that all-MiniLM-L6-v2 (Apache 2.0) has of a fragment
among those of its batch, and to be near it. Fragments: clauses of the novels and of the first
Wikipedia file, and the {n_sentences:,} training sentences of SST-2, whole and in parts, without
their labels. {minutes:.0f} minutes of one core, by `benchmarks/nano_lessons.py`. The held-out
figures above are of the model as it is after this; recipe and log are of what came before. The
config's dropout of {dropout:g} is for fine-tuning.

"""


def fragments(text: str) -> Iterator[str]:
    """Clauses, more or less: what stands between punctuation."""
    fewest, most = N_WORDS
    return (part for part in SPLIT.split(text) if fewest <= len(part.split()) <= most)


def drawn_fragments(path: Path, n: int, random: np.random.Generator) -> list[str]:
    """`n` fragments of a file's lines, which come in a drawn order."""
    lines = [line.strip() for line in read_text(path).split("\n") if line.strip()]
    lines = lines[: int(len(lines) * (1 - UNREAD))]
    found: list[str] = []
    for place in random.permutation(len(lines)):
        found += fragments(lines[place])
        if len(found) >= n:
            break
    return found[:n]


def all_fragments(files: Sequence[Path], sentences: Path) -> list[str]:
    """Of the text, and the sentences of a task's training rows, whole and in parts; each once."""
    random = np.random.default_rng(0)
    found = [
        fragment
        for path, n in zip(files, N_FRAGMENTS, strict=False)
        for fragment in drawn_fragments(path, n, random)
    ]
    rows = sentences.read_text(encoding="utf-8").splitlines()[1:]
    for sentence in (row.split("\t")[0] for row in rows):
        found += [sentence, *fragments(sentence)]
    return list(dict.fromkeys(found))


@torch.no_grad()
def teacher_vectors(texts: Sequence[str]) -> Array:
    """The mean of the teacher's last states over a text's tokens, of length 1: (texts, width)."""
    model, pieces = load(TEACHER), load_tokenizer(TEACHER).backend_tokenizer
    pieces.no_padding()
    pieces.no_truncation()
    ids = [encoded.ids[:LONGEST] for encoded in pieces.encode_batch(list(texts))]
    order = np.argsort([len(one) for one in ids])
    vectors = np.zeros((len(texts), model.config.hidden_size), np.float32)
    for begin in range(0, len(texts), READ_AT_ONCE):
        places = order[begin : begin + READ_AT_ONCE]
        padded = nn.utils.rnn.pad_sequence(
            [torch.tensor(ids[place]) for place in places], batch_first=True
        )
        lengths = torch.tensor([len(ids[place]) for place in places])
        mask = (torch.arange(padded.shape[1]) < lengths[:, None]).long()
        states = model(input_ids=padded, attention_mask=mask).last_hidden_state
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        vectors[places] = functional.normalize(means, dim=1).numpy()
    return vectors


@dataclass(frozen=True)
class Lessons:
    """Fragments as the pupil's tokens, and the teacher's vector of each."""

    ids: list[list[int]]
    vectors: Tensor

    def batches(self, seed: int) -> Iterator[Array]:
        """Places of fragments of about one length, without end."""
        random = np.random.default_rng(seed)
        lengths = self.lengths
        while True:
            order = np.argsort(lengths + random.random(len(lengths)) * 3, kind="stable")
            last = len(order) - LESSONS_AT_ONCE + 1
            blocks = [order[i : i + LESSONS_AT_ONCE] for i in range(0, last, LESSONS_AT_ONCE)]
            for place in random.permutation(len(blocks)):
                yield blocks[place]

    @cached_property
    def lengths(self) -> Array:
        """Tokens of every fragment."""
        return np.array([len(one) for one in self.ids])

    def states(self, family: Family, places: Array) -> tuple[Tensor, Array]:
        """[CLS] of the fragments at `places`, and these in the order of the states."""
        lengths = self.lengths[places]
        states, ordered = [], []
        for length in np.unique(lengths):  # training's forward pass knows no padding
            alike = places[lengths == length]
            ids = np.array([self.ids[place] for place in alike])
            first = np.zeros((len(alike), 1), np.int64)
            states.append(asked_states(family, Batch(ids, np.zeros_like(ids), first, first))[:, 0])
            ordered.append(alike)
        return torch.cat(states), np.concatenate(ordered)


def made_lessons(files: Sequence[Path], sentences: Path, prepared: Prepared, work: Path) -> Lessons:
    """Fragments and their vectors, which an earlier call may have made for the same fragments."""
    texts_file, vectors_file = work / "lessons.json", work / "lessons.npy"
    texts = all_fragments(files, sentences)
    made = vectors_file.exists() and json.loads(texts_file.read_text(encoding="utf-8")) == texts
    if not made:
        vectors_file.unlink(missing_ok=True)
        texts_file.write_text(json.dumps(texts), encoding="utf-8")
        temporary = vectors_file.with_name("unfinished.npy")
        np.save(temporary, teacher_vectors(texts))
        temporary.replace(vectors_file)
    cls, sep = prepared.tokens.cls, prepared.tokens.sep
    encoded = prepared.tokenizer.encode_batch(texts, add_special_tokens=False)
    ids = [[cls, *one.ids[: LONGEST - 2], sep] for one in encoded]
    return Lessons(ids, torch.from_numpy(np.load(vectors_file)))


def train(training: Training, lessons: Lessons) -> list[dict[str, float]]:
    """All steps of the plan; the log."""
    family, request = training.family, training.request
    width = family.shape.width
    draw = torch.Generator().manual_seed(request.seed)
    projection = nn.Parameter(torch.randn(lessons.vectors.shape[1], width, generator=draw) * 0.05)
    optimizer = Optimizer(
        {**trained_parameters(training.model), "projection": projection},
        layer_matrices(training.model),
        Rates(
            matrices=request.matrix_rate,
            others=request.other_rate,
            matrix_decay=request.matrix_decay,
        ),
    )
    batches = lessons.batches(request.seed)
    log, seen = [], []
    for step in range(training.plan.n_steps):
        words = masked_loss(family, training.batch(step))
        states, places = lessons.states(family, next(batches))
        found = functional.normalize(states @ projection.t(), dim=1)
        wanted = lessons.vectors[places]
        cosine = (found * wanted).sum(1).mean()
        choice = functional.cross_entropy(
            found @ wanted.t() / TEMPERATURE, torch.arange(len(places))
        )
        (words + choice + COSINE * (1 - cosine)).backward()  # type: ignore[no-untyped-call]
        optimizer.step(training.plan.factor(step))
        seen.append([float(value.detach()) for value in (words, choice, cosine)])
        if (step + 1) % LOGGED == 0 or step + 1 == training.plan.n_steps:
            masked, chosen, near = np.mean(seen, axis=0).round(4).tolist()
            log.append({"step": step + 1, "loss": masked, "choice": chosen, "cosine": near})
            print(json.dumps(log[-1]), flush=True)
            seen = []
    return log


def write(out: Path, training: Training, lessons: dict[str, Any]) -> None:
    """Weights as they ship, measured; the start's record and card with what came on top."""
    request = training.request
    start = Path(request.start or "")
    model = training.model
    shrink_embeddings_(model)
    dropout = FINETUNING_DROPOUT["bert"]
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = dropout
    with quiet_transformers():
        model.half().save_pretrained(out)
        load_tokenizer(start).save_pretrained(out)
    record = json.loads((start / RECORD).read_text(encoding="utf-8"))
    record["lessons"] = lessons | {"from_weights_sha256": record["weights_sha256"]}
    figures = measure(request, training.prepared, training, load(out)).as_json()
    record["result"] |= {name: figures[name] for name in ("heldout", "depths")}
    weights = (out / "model.safetensors").read_bytes()
    record["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    record["versions"] = {name: version(name) for name in record["versions"]}
    (out / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (out / "README.md").write_text(card_with_lessons(out.name, record), encoding="utf-8")


def card_with_lessons(name: str, record: dict[str, Any]) -> str:
    """The card of ``microtome pretrain``, with a section on this leg."""
    lessons = record["lessons"]
    told = _TOLD.format(
        dropout=FINETUNING_DROPOUT["bert"], minutes=lessons["seconds"] / 60, **lessons,
    )  # fmt: skip
    text = card(name, record).replace("## Hashes", f"{told}## Hashes")
    return text.replace(
        "by `microtome pretrain`.", "by `microtome pretrain`, then lessons (below)."
    )


def refuse_other_text(start: Path, prepared: Prepared) -> None:
    """Held-out text of the start must be held out here, too."""
    before = json.loads((start / RECORD).read_text(encoding="utf-8"))["text"]
    for name in ("training_sha256", "heldout_sha256"):
        if before[name] != prepared.facts[name]:
            sys.exit(
                f"{start} was made of other text; give the files that its card names, in order"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("start", type=Path, metavar="FROM")
    parser.add_argument("--text", nargs="+", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=STAGE.steps)
    given = parser.parse_args()
    if given.out.exists():
        sys.exit(f"{given.out} is there already; name a new folder with --out")
    torch.set_num_threads(1)
    plan = plan_of([replace(STAGE, steps=given.steps)])
    request = shaped_as_start(
        PretrainRequest(text=tuple(given.text), out=given.out, start=str(given.start))
    )
    prepared = prepare(request)
    refuse_other_text(given.start, prepared)
    lessons = made_lessons(given.text, given.sentences, prepared, request.work)
    training = Training(request, prepared, plan)
    began = time.monotonic()
    log = train(training, lessons)
    facts = {
        "teacher": TEACHER,
        "teacher_hash": content_hash(resolve(TEACHER).path),
        "stage": asdict(STAGE),
        "temperature": TEMPERATURE,
        "cosine": COSINE,
        "n_at_once": LESSONS_AT_ONCE,
        "seed": request.seed,
        "n_fragments": len(lessons.ids),
        "n_sentences": len(given.sentences.read_text(encoding="utf-8").splitlines()) - 1,
        "steps": plan.n_steps,
        "warm_up": plan.warm_up,
        "decay": plan.decay,
        "seconds": round(time.monotonic() - began, 1),
        "log": log,
    }
    write(given.out, training, facts)


if __name__ == "__main__":
    main()
