"""Whole runs, small: killed ones end at the same weights, and what comes out loads anywhere."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from microtome.errors import RequestError
from microtome.models import load
from microtome.training.mlm.masked_training import MaskedTraining
from microtome.training.mlm.preparation import prepare
from microtome.training.mlm.pretrain import pretrain
from microtome.training.mlm.request import LogLine, PretrainRequest, Schedule, Stage
from support.prose import write_prose

KILLED = """
import os, pickle, signal, sys
from microtome.training.mlm.pretrain import pretrain
request = pickle.loads(bytes.fromhex(sys.argv[1]))

def die(progress):
    if progress.step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

pretrain(request, progress=die)
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    return write_prose(tmp_path_factory.mktemp("text") / "text.txt")


def request_for(text: Path, out: Path, **changes: object) -> PretrainRequest:
    stages = (Stage(16, 4, 0.3, 6), Stage(16, 8, 0.3, 4), Stage(32, 2, 0.15, 4))
    settings = {
        "text": (text,), "out": out, "layers": 4, "width": 16, "heads": 2, "vocabulary": 60,
        "positions": 32, "length": 16, "n_rows": 4, "stages": stages, "n_heldout_rows": 8,
        "log_steps": 2, "checkpoint_seconds": 0.0, "threads": 1, "license": "apache-2.0",
    }  # fmt: skip
    return PretrainRequest(**{**settings, **changes})


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return AutoModelForMaskedLM.from_pretrained(folder).state_dict()


class KilledError(Exception):
    """As if the process had ended."""


def elsewhere(request: PretrainRequest, out: Path) -> PretrainRequest:
    """The same run in another folder, with its vocabulary: the trainer breaks ties by chance."""
    other = replace(request, out=out)
    shutil.copytree(request.work / "text", other.work / "text")
    return other


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_run_killed_in_every_stage_ends_at_the_weights_of_an_undisturbed_one(
    text, tmp_path, family
):
    embedding = 8 if family == "albert" else None
    whole = request_for(text, tmp_path / "whole", family=family, embedding=embedding)
    pretrain(whole)
    broken = elsewhere(whole, tmp_path / "broken")
    for place in (4, 8, 12):

        def die(progress: LogLine, place: int = place) -> None:
            if progress.step == place:
                raise KilledError

        with pytest.raises(KilledError):
            pretrain(broken, progress=die)
    pretrain(broken)
    wanted, found = weights_of(whole.out), weights_of(broken.out)
    assert wanted.keys() == found.keys()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)
    logs = [
        [{**json.loads(line), "seconds": 0} for line in log.read_text().splitlines()]
        for log in (whole.work / "log.jsonl", broken.work / "log.jsonl")
    ]
    assert logs[0] == logs[1]


def test_a_process_that_is_killed_resumes_too(text, tmp_path):
    import pickle

    whole = request_for(text, tmp_path / "whole")
    pretrain(whole)
    broken = elsewhere(whole, tmp_path / "broken")
    arguments = [pickle.dumps(broken).hex(), "6"]
    ended = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert not broken.out.exists()
    pretrain(broken)
    wanted, found = weights_of(whole.out), weights_of(broken.out)
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)


def test_what_comes_out_loads_with_plain_transformers_and_with_us(text, tmp_path):
    request = request_for(text, tmp_path / "model")
    result = pretrain(request)
    model = AutoModelForMaskedLM.from_pretrained(request.out)
    assert model.dtype == torch.float16
    assert model.config.num_hidden_layers == 4
    assert load(str(request.out)).dtype == torch.float32
    tokenizer = AutoTokenizer.from_pretrained(request.out)
    assert len(tokenizer) == model.config.vocab_size
    assert len(result.curve) == len(result.control) == 5
    assert result.tokens == 6 * 4 * 16 + 4 * 8 * 16 + 4 * 2 * 32
    assert not list(request.out.glob("*.bin"))
    assert not list(request.work.rglob("*.pt"))


def test_the_card_says_what_was_done(text, tmp_path):
    request = request_for(text, tmp_path / "model")
    result = pretrain(request)
    card = (request.out / "README.md").read_text()
    record = json.loads((request.out / "pretraining.json").read_text())
    assert f"**{result.heldout['accuracy']:.1%}**" in card
    assert "license: apache-2.0" in card
    assert record["weights_sha256"] in card
    assert text.name in card
    assert "learning_rate: 0.007" in card  # 3e-4 × (128 / 16)^1.5
    assert "Made from scratch" in card
    assert "leading singular vectors" in card
    assert [stage["steps"] for stage in record["recipe"]["plan"]["stages"]] == [6, 4, 4]


def test_a_calibrated_plan_is_stored_and_then_fixed(text, tmp_path):
    request = request_for(text, tmp_path / "model", stages=None, hours=1e-5)
    pretrain(request)
    stored = (request.work / "plan.json").read_text()
    assert [stage["length"] for stage in json.loads(stored)["stages"]] == [16, 32]
    again = replace(request, out=tmp_path / "again")
    again.work.mkdir()
    (again.work / "plan.json").write_text(stored)
    with pytest.raises(RequestError, match="doesn't say which settings"):
        pretrain(again)
    shutil.copy(request.work / "settings.json", again.work)
    pretrain(again)
    assert (again.work / "plan.json").read_text() == stored
    shutil.rmtree(again.out)
    with pytest.raises(RequestError, match=r"hours: 1e-05 stored, 3.0 requested"):
        pretrain(replace(again, hours=3.0))


def test_a_berts_dropout_is_for_finetuning_only(text, tmp_path):
    request = request_for(text, tmp_path / "model")
    training = MaskedTraining(request, prepare(request), Schedule(request.stages))
    again = MaskedTraining(request, training.prepared, training.schedule)
    assert training.model.config.hidden_dropout_prob == 0.1
    assert training.step_once(0) == again.step_once(0)
    assert not training.model.training


def test_another_vocabulary_in_the_same_folder_is_refused(text, tmp_path):
    request = request_for(text, tmp_path / "model")
    pretrain(request)
    with pytest.raises(RequestError, match="is not empty"):
        pretrain(request)
    moved = replace(request, out=tmp_path / "other", vocabulary=50)
    request.work.rename(moved.work)
    with pytest.raises(RequestError, match=r"vocabulary: 60 stored, 50 requested"):
        pretrain(moved)


def test_other_settings_in_the_same_folder_are_refused(text, tmp_path):
    request = request_for(text, tmp_path / "model")
    pretrain(request)
    moved = replace(request, out=tmp_path / "other", seed=1, learning_rate=0.1)
    request.work.rename(moved.work)
    with pytest.raises(
        RequestError,
        match=r"learning_rate: nothing stored, 0.1 requested; seed: 0 stored, 1 requested",
    ):
        pretrain(moved)
