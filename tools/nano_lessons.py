"""The last leg of nano-bert: masked words, and a teacher's lessons for [CLS].

    python tools/nano_lessons.py FROM --text NOVELS WIKI_0 WIKI_1 --sentences TSV --out DIR

Masked words never ask [CLS] what a text says; a sentence encoder knows. Every step trains on masked
rows, as ``microtome pretrain`` does, and on a batch of short pieces of text: from [CLS], a matrix
that is thrown away afterwards must find all-MiniLM's vectors of a piece among those of its batch.
FROM is a folder that ``microtome pretrain`` made of the same text. DIR.pretraining holds the
pieces, their vectors and the last checkpoint; the same command resumes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from microtome import files
from microtome.models import content_hash, load, resolve
from microtome.models.quiet import quiet_transformers
from microtome.models.tokenizers import copy_tokenizer
from microtome.training.mlm.building import FINETUNING_DROPOUT, shaped_as_start
from microtome.training.mlm.forward import masked_states
from microtome.training.mlm.preparation import Prepared, prepare
from microtome.training.mlm.pretrain import RECORD, check_settings, measure, versions
from microtome.training.mlm.request import LogLine
from microtome.training.mlm.rows import Array
from nano_fragments import (
    AT_ONCE,
    DEPTHS,
    TEACHER,
    UNTAUGHT,
    Lessons,
    all_pieces,
    first_column,
    made_lessons,
)
from pretraining.candidates import vocabulary_loss
from pretraining.card import card
from pretraining.scaling import shrink_embeddings_
from pretraining.schedule import GrownSchedule, GrownStage
from pretraining.training import GrownRequest, GrownTraining

TEMPERATURE = 0.1  # of the choice: cosines lie between −1 and 1
COSINE = 2.0  # what 1 − cosine weighs beside finding the vector
# The last tenth on long rows, as in pre-training.
STAGES = (
    GrownStage(layers=12, length=64, n_rows=16, masked=0.2, steps=1530, rate=0.25),
    GrownStage(layers=12, length=512, n_rows=2, masked=0.15, steps=170, rate=0.25),
)

_TOLD = """\
## Lessons
Then {steps:,} steps more, on {rows}
({rate:g} of the rates, {warm_up} steps of warm-up, linear decay over the last {decay}) and on
{at_once} of {n_pieces:,} pieces of text: from [CLS], a matrix that isn't kept had to find the mean
states that all-MiniLM-L6-v2 (Apache 2.0) has of a piece at depths {depths} among those of its
batch, and to be near them. Pieces: clauses of the novels and of the first Wikipedia file, the
{n_sentences:,} training sentences of SST-2, whole and in parts, without their labels, and single
words of all these. Of {untaught:,} pieces that weren't taught, though others of the same sentences
were, it finds {found:.0%} among {at_once}; the mean cosine is {cosine:.2f}. {minutes:.0f} minutes
of one core, with matrix products in bfloat16, by `tools/nano_lessons.py`. The held-out figures
above are of the model as it is after this; recipe and log are of what came before. The config's
dropout of {dropout:g} is for fine-tuning.

"""


class Taught(GrownTraining):
    """Pre-training whose steps have lessons in addition to their masked rows."""

    def __init__(
        self, request: GrownRequest, prepared: Prepared, schedule: GrownSchedule, lessons: Lessons
    ) -> None:
        self.lessons = lessons
        super().__init__(request, prepared, schedule)

    def fresh_model(self) -> PreTrainedModel:
        model = super().fresh_model()
        # A part of the model as long as it is trained: so it is stored and read with it.
        projection = nn.Linear(self.request.width, self.lessons.vectors.shape[1], bias=False)
        draw = torch.Generator().manual_seed(self.request.seed)
        nn.init.normal_(projection.weight, std=0.05, generator=draw)
        model.add_module("projection", projection)
        return model

    def loss(self, step: int) -> Tensor:
        """What is lost on masked rows and on a lesson together."""
        decoder, batch = self.family.mlm_decoder(), self.batch(step)
        with torch.autocast("cpu", torch.bfloat16):
            states = masked_states(self.family, batch)
            features = self.family.mlm_features(states).float()
        words = vocabulary_loss(features, decoder.weight, decoder.bias, batch.targets)
        cosine, choice, _ = self.lesson(self.lessons.places(step, self.request.seed))
        return words + choice + COSINE * (1 - cosine)

    def lesson(self, places: Array) -> tuple[Tensor, Tensor, Tensor]:
        """Mean cosine with the teacher's vectors; the loss of choosing among them; share chosen."""
        with torch.autocast("cpu", torch.bfloat16):
            states, wanted = self.lessons.told(self.family, places)
            guessed = self.model.projection(states)
        guessed = functional.normalize(guessed.float(), dim=1)
        alike = guessed @ wanted.t() / TEMPERATURE
        truth = torch.arange(len(places))
        chosen = (alike.argmax(1) == truth).float().mean()
        return (guessed * wanted).sum(1).mean(), functional.cross_entropy(alike, truth), chosen

    @torch.no_grad()
    def examined(self) -> tuple[float, float]:
        """Mean cosine and share chosen on pieces that weren't taught."""
        _, untaught = self.lessons.parted
        parts = [self.lesson(part) for part in untaught.reshape(-1, AT_ONCE)]
        cosine, found = (np.mean([float(part[place]) for part in parts]) for place in (0, 2))
        return round(float(cosine), 4), round(float(found), 4)


def finish(training: Taught, lessons: dict[str, Any]) -> None:
    """Weights as they ship, measured; the start's record and card with what came on top."""
    request, model = training.request, training.model
    start, out = Path(request.start or ""), request.out
    del model.projection
    shrink_embeddings_(model)
    dropout = FINETUNING_DROPOUT["bert"]
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = dropout
    with tempfile.TemporaryDirectory(dir=request.work) as name, quiet_transformers():
        folder = Path(name) / out.name
        model.half().save_pretrained(folder)
        copy_tokenizer(start, folder)
        record = json.loads((start / RECORD).read_text(encoding="utf-8"))
        record["lessons"] = lessons | {"from_weights_sha256": record["weights_sha256"]}
        figures = measure(training, load(folder)).as_json()
        record["result"] |= {name: figures[name] for name in ("heldout", "depths")}
        weights = (folder / "model.safetensors").read_bytes()
        record["weights_sha256"] = hashlib.sha256(weights).hexdigest()
        record["versions"] = versions()
        files.write_json(folder / RECORD, record)
        (folder / "README.md").write_text(card_with_lessons(out.name, record), encoding="utf-8")
        folder.replace(out)


def card_with_lessons(name: str, record: dict[str, Any]) -> str:
    """The card of ``microtome pretrain``, with a section on this leg."""
    lessons = record["lessons"]
    rows = " and at last on ".join(
        f"{stage['n_rows']} masked rows of {stage['length']} tokens ({stage['masked']:.0%})"
        for stage in lessons["stages"]
    )
    told = _TOLD.format(
        rows=rows,
        rate=lessons["stages"][0]["rate"],
        dropout=FINETUNING_DROPOUT["bert"],
        minutes=lessons["seconds"] / 60,
        **lessons | {"depths": ", ".join(map(str, lessons["depths"]))},
    )
    return card(name, record, then=" Then it had lessons (below).", section=told)


def refuse_other_text(start: Path, prepared: Prepared) -> None:
    """Held-out text of the start must be held out here, too."""
    before = json.loads((start / RECORD).read_text(encoding="utf-8"))["text"]
    for name in ("training_sha256", "heldout_sha256"):
        if before[name] != prepared.facts[name]:
            sys.exit(
                f"{start} was made of other text; give the files that its card names, in order"
            )


def settings(texts: Sequence[str]) -> dict[str, Any]:
    """What decides the lessons, beside the request and the plan."""
    return {
        "teacher": TEACHER,
        "teacher_hash": content_hash(resolve(TEACHER).path),
        "depths": list(DEPTHS),
        "temperature": TEMPERATURE,
        "cosine_weight": COSINE,
        "at_once": AT_ONCE,
        "untaught": UNTAUGHT,
        "n_pieces": len(texts),
        "pieces_sha256": hashlib.sha256("\n".join(texts).encode()).hexdigest(),
    }


def told_of(training: Taught, texts: Sequence[str], sentences: Path) -> dict[str, Any]:
    """What the record says of the lessons."""
    cosine, found = training.examined()
    schedule = training.schedule
    return {
        **settings(texts),
        "stages": [asdict(stage) for stage in schedule.stages],
        "seed": training.request.seed,
        "n_sentences": len(first_column(sentences)),
        "cosine": cosine,
        "found": found,
        "steps": schedule.n_steps,
        "warm_up": schedule.warm_up,
        "decay": schedule.decay,
        "seconds": round(training.seconds, 1),
        "log": training.logged(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("start", type=Path, metavar="FROM")
    parser.add_argument("--text", nargs="+", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.out.exists():
        sys.exit(f"{given.out} is there already; name a new folder with --out")
    torch.set_num_threads(1)
    schedule = GrownSchedule.of(STAGES)
    request = shaped_as_start(
        GrownRequest(
            text=tuple(given.text),
            out=given.out,
            start=str(given.start),
            stages=schedule.stages,
            summary_words=0,  # the lessons ask [CLS]
            log_steps=100,
        )
    )
    prepared = prepare(request)
    refuse_other_text(given.start, prepared)
    texts = all_pieces(given.text[:-1], given.sentences)
    check_settings(request.work, request.settings | settings(texts))
    lessons = made_lessons(texts, prepared, request.work)
    training = Taught(request, prepared, schedule, lessons)

    def show(line: LogLine) -> None:
        cosine, found = training.examined()
        said = f"masked {line.heldout['accuracy']:.3f}, cosine {cosine:.3f}, found {found:.3f}"
        print(f"{line.step} of {line.n_steps}: loss {line.loss:.3f}, {said}", flush=True)

    training.resume()
    training.train(show)
    finish(training, told_of(training, texts, given.sentences))


if __name__ == "__main__":
    main()
