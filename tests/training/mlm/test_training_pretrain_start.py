"""A model that exists is trained on: with its own vocabulary, from its own weights."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForMaskedLM, AutoTokenizer

from microtome.errors import RequestError
from microtome.models import content_hash, load
from microtome.training.mlm.building import start_model, start_pieces, start_tokenizer
from microtome.training.mlm.pretrain import pretrain
from microtome.training.mlm.request import LogLine, PretrainRequest, Stage, finetuning_rate_for
from support.prose import write_prose
from support.tiny import N_POSITIONS, VOCABULARY, save_tiny

FAMILIES = ("bert", "albert")


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    return write_prose(tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture
def start(tmp_path) -> Path:
    return save_tiny(tmp_path / "start", with_tokenizer=True)


def request_for(text: Path, out: Path, start: Path | str, **changes: object) -> PretrainRequest:
    settings = {
        "text": (text,), "out": out, "start": str(start), "length": 16, "n_rows": 4,
        "stages": (Stage(16, 4, 0.3, 6),), "n_heldout_rows": 8, "log_steps": 2,
        "checkpoint_seconds": 0.0, "threads": 1,
    }  # fmt: skip
    return PretrainRequest(**{**settings, **changes})


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_step_meets_the_model_as_it_is(tmp_path, family):
    start = save_tiny(tmp_path / "start", family, with_tokenizer=True)
    ids = torch.randint(5, VOCABULARY, (2, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = load(start)(input_ids=ids).logits
        found = start_model(str(start))(input_ids=ids).logits
    assert torch.allclose(found, wanted, atol=1e-4 * float(wanted.abs().max()))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_comes_out_has_the_shape_and_the_vocabulary_of_its_start(text, tmp_path, family):
    start = save_tiny(tmp_path / "start", family, with_tokenizer=True)
    request = request_for(text, tmp_path / "model", start)
    pretrain(request)
    old = load(start).state_dict()
    new = AutoModelForMaskedLM.from_pretrained(request.out).state_dict()
    assert {name: t.shape for name, t in old.items()} == {name: t.shape for name, t in new.items()}
    assert any(not torch.equal(old[name].half(), tensor) for name, tensor in new.items())
    sentence = "The dog sees a big house."
    tokenizer = AutoTokenizer.from_pretrained(request.out)
    assert tokenizer(sentence).input_ids == start_pieces(str(start)).encode(sentence).ids
    files = ("tokenizer.json", "tokenizer_config.json")
    assert all((request.out / f).read_bytes() == (start / f).read_bytes() for f in files)


def test_a_pretrained_start_learns_the_new_text(text, tmp_path):
    losses: list[float] = []

    def note(progress: LogLine) -> None:
        losses.append(progress.heldout["loss"])

    stages = (Stage(16, 16, 0.2, 30),)
    pretrain(request_for(text, tmp_path / "model", "nano-bert", stages=stages), progress=note)
    assert losses[-1] < losses[0] - 0.5


def test_a_killed_run_ends_at_the_weights_of_an_undisturbed_one(text, tmp_path, start):
    class KilledError(Exception):
        pass

    def die(progress: LogLine) -> None:
        if progress.step == 4:
            raise KilledError

    whole = request_for(text, tmp_path / "whole", start)
    pretrain(whole)
    broken = replace(whole, out=tmp_path / "broken")
    with pytest.raises(KilledError):
        pretrain(broken, progress=die)
    pretrain(broken)
    wanted, found = load(whole.out).state_dict(), load(broken.out).state_dict()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)


def test_resuming_from_another_model_in_the_same_folder_is_refused(text, tmp_path, start):
    request = request_for(text, tmp_path / "model", start)
    pretrain(request)
    shutil.rmtree(request.out)
    other = save_tiny(tmp_path / "other", with_tokenizer=True, layer_norm_eps=1e-6)
    with pytest.raises(RequestError, match="start: "):
        pretrain(replace(request, start=str(other)))


def test_the_card_names_what_it_starts_from(text, tmp_path, start):
    request = request_for(text, tmp_path / "model", start)
    pretrain(request)
    card = (request.out / "README.md").read_text()
    record = json.loads((request.out / "pretraining.json").read_text())
    assert record["start"] == {"name": "start", "content_hash": content_hash(start)}
    assert content_hash(start) in card
    assert "from scratch" not in card
    assert "leading singular vectors" not in card


def test_the_licence_and_the_rate_of_the_start_are_kept(text, tmp_path, start):
    (start / "README.md").write_text("---\nlicense: mit\nlearning_rate: 0.0007\n---\n")
    request = request_for(text, tmp_path / "model", start)
    pretrain(request)
    card = (request.out / "README.md").read_text()
    assert "license: mit\n" in card
    assert "learning_rate: 0.0007\n" in card


@pytest.mark.parametrize(("width", "rate"), [(128, 3e-4), (768, 2e-5), (256, 1e-4)])
def test_the_rate_for_finetuning_falls_with_the_width(width, rate):
    assert finetuning_rate_for(width) == pytest.approx(rate)


def test_stages_that_dont_fit_the_start_are_refused(text, tmp_path, start):
    stage = Stage(2 * N_POSITIONS, 4, 0.3, 6)
    with pytest.raises(RequestError, match="give stages that fit the start"):
        pretrain(request_for(text, tmp_path / "model", start, stages=(stage,)))


def test_a_model_without_a_trained_head_is_refused(text, tmp_path):
    headless = save_tiny(tmp_path / "headless", head="none", with_tokenizer=True)
    with pytest.raises(RequestError, match="needs a model with its masked-LM head"):
        pretrain(request_for(text, tmp_path / "model", headless))


def test_a_decoder_of_its_own_is_refused(text, tmp_path):
    untied = save_tiny(tmp_path / "untied", with_tokenizer=True, tie_word_embeddings=False)
    with pytest.raises(RequestError, match="tied to the word embeddings"):
        pretrain(request_for(text, tmp_path / "model", untied))


def test_special_tokens_after_the_words_are_refused(start):
    file = start / "tokenizer.json"
    kept = json.loads(file.read_text())
    vocabulary = kept["model"]["vocab"]
    last = max(vocabulary.values())
    swapped = next(word for word, place in vocabulary.items() if place == last)
    vocabulary["[MASK]"], vocabulary[swapped] = last, vocabulary["[MASK]"]
    for token in kept["added_tokens"]:
        token["id"] = vocabulary[token["content"]]
    file.write_text(json.dumps(kept))
    assert Tokenizer.from_file(str(file)).token_to_id("[MASK]") == last
    with pytest.raises(RequestError, match="must come before its words"):
        start_tokenizer(str(start))
