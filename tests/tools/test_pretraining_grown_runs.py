"""Whole runs that grow in depth, killed and resumed; and the records of the embedded models."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import nano_grown
import nano_lessons
from microtome.errors import RequestError
from microtome.models import load, resolve
from microtome.training.mlm.preparation import prepare
from microtome.training.mlm.request import LogLine
from pretraining.schedule import GrownSchedule, GrownStage
from pretraining.training import GrownRequest, GrownTraining, pretrain_grown
from support.prose import write_prose


class KilledError(Exception):
    """As if the process had ended."""


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    return write_prose(tmp_path_factory.mktemp("text") / "text.txt")


def request_for(text: Path, out: Path, **changes: object) -> GrownRequest:
    settings = {
        "text": (text,), "out": out, "layers": 4, "width": 16, "heads": 2, "vocabulary": 60,
        "positions": 32, "length": 16, "n_heldout_rows": 8, "log_steps": 2,
        "checkpoint_seconds": 0.0, "threads": 1,
    }  # fmt: skip
    return GrownRequest(**{**settings, **changes})


def schedule_of(**more: float) -> GrownSchedule:
    shapes = ((2, 16, 4, 0.3, 6, 16), (4, 16, 4, 0.3, 4, 0), (4, 32, 2, 0.15, 4, 0))
    names = ("layers", "length", "n_rows", "masked", "steps", "candidates")
    return GrownSchedule.of(
        [GrownStage(**dict(zip(names, shape, strict=True)), **more) for shape in shapes]
    )


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_run_killed_in_every_stage_ends_at_the_weights_of_an_undisturbed_one(
    text, tmp_path, family
):
    embedding = 8 if family == "albert" else None
    whole = request_for(text, tmp_path / "whole", family=family, embedding=embedding)
    pretrain_grown(whole, schedule_of())
    broken = replace(whole, out=tmp_path / "broken")
    shutil.copytree(whole.work / "text", broken.work / "text")  # ties in it are broken by chance
    for place in (4, 8, 12):

        def die(line: LogLine, place: int = place) -> None:
            if line.step == place:
                raise KilledError

        with pytest.raises(KilledError):
            pretrain_grown(broken, schedule_of(), progress=die)
    pretrain_grown(broken, schedule_of())
    expected, resumed = load(whole.out).state_dict(), load(broken.out).state_dict()
    assert load(whole.out).config.num_hidden_layers == 4
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)


def test_extra_text_joins_by_its_share_and_the_card_names_it(text, tmp_path):
    extra = tmp_path / "extra.txt"
    extra.write_text("\n\n".join(["near near near near near near ."] * 20))
    request = request_for(text, tmp_path / "model", extra_text=(extra,))
    training = GrownTraining(request, prepare(request), schedule_of(extra=0.5))
    near = training.prepared.tokenizer.token_to_id("near")
    # At least 10 of a row's 14 tokens, 4 of which are masked; elsewhere one in 11.
    assert sum(row.count(near) >= 6 for row in training.batch(0).ids.tolist()) == 2
    pretrain_grown(request, schedule_of(extra=0.5))
    card = (request.out / "README.md").read_text()
    assert "Extra text, of which nothing was held out" in card
    assert f"`extra.txt`: {len(extra.read_text()):,} characters" in card
    assert "[CLS] must name 4 tokens of its row" in card
    extra.write_text(extra.read_text().replace("near", "far"))
    with pytest.raises(RequestError, match=r"other text than extra\.txt"):
        _ = GrownTraining(request, training.prepared, schedule_of(extra=0.5)).extra


def test_another_schedule_in_the_same_folder_is_refused(text, tmp_path):
    request = request_for(text, tmp_path / "model")
    pretrain_grown(request, schedule_of())
    with pytest.raises(RequestError, match=r"plan.stages: "):
        pretrain_grown(request, schedule_of(rate=0.5))


@pytest.mark.parametrize("name", ["nano-bert", "nano-albert"])
def test_the_record_of_an_embedded_model_is_a_request_and_a_schedule(name, tmp_path):
    request, schedule = nano_grown.recorded(name, text=(), out=tmp_path / "out")
    record = json.loads((resolve(name).path / "pretraining.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(schedule.as_json())) == record["recipe"]["plan"]
    shared = request.settings.keys() & record["recipe"].keys() - {"extra_text"}
    assert {"matrix_decay", "summary_words", "layers", "seed"} <= shared
    assert {key: request.settings[key] for key in shared} == {
        key: record["recipe"][key] for key in shared
    }
    assert [stage.layers for stage in schedule.stages] == [3, 6, 12, 12]
    assert schedule.n_steps == record["result"]["steps"]


def test_nano_berts_card_is_what_its_record_gives():
    folder = resolve("nano-bert").path
    record = json.loads((folder / "pretraining.json").read_text(encoding="utf-8"))
    card = nano_lessons.card_with_lessons("nano-bert", record)
    assert card == (folder / "README.md").read_text(encoding="utf-8")
