"""A model that exists is trained on: with its own vocabulary, from its own weights."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from microtome.errors import RequestError
from microtome.models import content_hash, load, resolve
from microtome.training.pretrain import PretrainRequest, Progress, pretrain
from microtome.training.pretraining.continuing import rate_for, start_model, start_pieces
from microtome.training.pretraining.schedule import Stage

WORDS = ["river", "stone", "bridge", "boat", "fish", "deep", "cold", "under", "over", "with"]


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    words = random.Random(0)
    path = tmp_path_factory.mktemp("text") / "rivers.txt"
    paragraphs = [
        "\n".join(" ".join(words.choices(WORDS, k=9)) + " ." for _ in range(4)) for _ in range(150)
    ]
    path.write_text("\n\n".join(paragraphs))
    return path


def folder_of(name: str) -> Path:
    path = resolve(name).path
    assert path is not None
    return path


def request_for(text: Path, out: Path, start: str, **changes: object) -> PretrainRequest:
    settings = {
        "text": (text,), "out": out, "start": start, "length": 16, "n_rows": 4,
        "stages": (Stage(12, 16, 4, 0.3, 6),), "n_heldout_rows": 8, "log_steps": 2,
        "checkpoint_seconds": 0.0, "threads": 1, "finetuning_rate": 3e-4,
    }  # fmt: skip
    return PretrainRequest(**{**settings, **changes})


@pytest.mark.parametrize("start", ["nano-bert", "nano-albert"])
def test_the_first_step_meets_the_model_as_it_is(text, tmp_path, start):
    ids = torch.randint(5, 8000, (2, 20), generator=torch.Generator().manual_seed(0))
    base, taken = load(start), start_model(start)
    with torch.no_grad():
        wanted, found = base(input_ids=ids).logits, taken(input_ids=ids).logits
    assert torch.allclose(found, wanted, atol=1e-4 * float(wanted.abs().max()))


@pytest.mark.parametrize("start", ["nano-bert", "nano-albert"])
def test_what_comes_out_has_the_shape_and_the_vocabulary_of_its_start(text, tmp_path, start):
    request = request_for(text, tmp_path / "model", start)
    pretrain(request)
    base, model = load(start), AutoModelForMaskedLM.from_pretrained(request.out)
    old, new = base.state_dict(), model.state_dict()
    assert {name: t.shape for name, t in old.items()} == {name: t.shape for name, t in new.items()}
    sentence = "The boat went under the bridge."
    tokenizer = AutoTokenizer.from_pretrained(request.out)
    assert tokenizer(sentence).input_ids == start_pieces(start).encode(sentence).ids
    assert any(not torch.equal(old[name].half(), tensor) for name, tensor in new.items())


def test_it_learns_the_new_text(text, tmp_path):
    stages = (Stage(12, 16, 16, 0.2, 30, rate=0.25),)
    losses: list[float] = []

    def note(progress: Progress) -> None:
        losses.append(progress.heldout["loss"])

    pretrain(request_for(text, tmp_path / "model", "nano-bert", stages=stages), progress=note)
    assert losses[-1] < losses[0] - 0.5


def test_a_killed_run_ends_at_the_weights_of_an_undisturbed_one(text, tmp_path):
    class KilledError(Exception):
        pass

    def die(progress: Progress) -> None:
        if progress.step == 4:
            raise KilledError

    whole = request_for(text, tmp_path / "whole", "nano-bert")
    pretrain(whole)
    broken = replace(whole, out=tmp_path / "broken")
    with pytest.raises(KilledError):
        pretrain(broken, progress=die)
    pretrain(broken)
    wanted, found = load(whole.out).state_dict(), load(broken.out).state_dict()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)


def test_going_on_from_another_model_in_the_same_folder_is_refused(text, tmp_path):
    request = request_for(text, tmp_path / "model", "nano-bert")
    pretrain(request)
    shutil.rmtree(request.out)
    edited = tmp_path / "edited"
    model = load("nano-bert")
    with torch.no_grad():
        next(model.parameters()).add_(0.1)
    model.save_pretrained(edited)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder_of("nano-bert") / file, edited)
    with pytest.raises(RequestError, match="was begun with start"):
        pretrain(replace(request, start=str(edited)))


def test_the_card_names_what_it_starts_from(text, tmp_path):
    request = request_for(text, tmp_path / "model", "nano-bert")
    pretrain(request)
    card = (request.out / "README.md").read_text()
    record = json.loads((request.out / "pretraining.json").read_text())
    base = content_hash(folder_of("nano-bert"))
    assert record["start"]["content_hash"] == base
    assert base in card
    assert "from scratch" not in card
    assert "stacked on itself" not in card


@pytest.mark.parametrize(("width", "rate"), [(128, 3e-4), (768, 2e-5), (256, 1e-4)])
def test_the_rate_for_finetuning_falls_with_the_width(width, rate):
    assert rate_for(width) == pytest.approx(rate)


def test_a_model_without_a_trained_head_is_refused(text, tmp_path):
    model = load("nano-bert", head="none")
    model.save_pretrained(tmp_path / "headless")
    with pytest.raises(RequestError, match="no masked-LM head to go on with"):
        pretrain(request_for(text, tmp_path / "model", str(tmp_path / "headless")))
