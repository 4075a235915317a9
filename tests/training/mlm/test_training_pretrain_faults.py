"""A full disk, a torn log, text that changed: nothing is lost, and one line says what to do."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from microtome.errors import RequestError, StorageError
from microtome.models import load
from microtome.training.mlm.preparation import prepare
from microtome.training.mlm.pretrain import check_settings, pretrain, stored_schedule
from microtome.training.mlm.request import LogLine, PretrainRequest, Stage
from support.prose import write_prose


class KilledError(Exception):
    """As if the process had ended."""


@pytest.fixture
def request_(tmp_path) -> PretrainRequest:
    return PretrainRequest(
        text=(write_prose(tmp_path / "text.txt"),),
        out=tmp_path / "model",
        layers=2,
        width=16,
        vocabulary=60,
        positions=32,
        length=16,
        stages=(Stage(16, 4, 0.3, 8),),
        n_heldout_rows=8,
        log_steps=2,
        checkpoint_seconds=0.0,
        threads=1,
    )


def killed_at(request: PretrainRequest, step: int) -> None:
    def die(progress: LogLine) -> None:
        if progress.step == step:
            raise KilledError

    with pytest.raises(KilledError):
        pretrain(request, progress=die)


@contextmanager
def files_of_at_most(n_bytes: int) -> Iterator[None]:
    """As on a full disk: larger files can't be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_at_a_checkpoint_loses_nothing_before_it(request_):
    whole = replace(request_, out=request_.out.with_name("whole"))
    prepare(request_)
    shutil.copytree(request_.work, whole.work)
    pretrain(whole)
    killed_at(request_, 4)
    with (
        files_of_at_most(8000),
        pytest.raises(StorageError, match=r"checkpoint.*what is stored is intact"),
    ):
        pretrain(request_)
    pretrain(request_)
    wanted, found = load(whole.out).state_dict(), load(request_.out).state_dict()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)


def test_a_disk_that_is_full_before_training_says_so(request_):
    with files_of_at_most(2000), pytest.raises(StorageError, match="what is stored is intact"):
        pretrain(request_)
    assert not (request_.work / "checkpoint").exists()
    pretrain(request_)


def test_a_log_whose_last_line_is_torn_is_resumed(request_):
    killed_at(request_, 4)
    log = request_.work / "log.jsonl"
    log.write_text(log.read_text() + '{"step": 6, "n_st')
    pretrain(request_)
    assert [json.loads(line)["step"] for line in log.read_text().splitlines()] == [2, 4, 6, 8]


def test_text_that_changed_under_the_same_name_is_refused(request_):
    killed_at(request_, 4)
    (path,) = request_.text
    path.write_text(path.read_text().replace("cat", "cow"))
    with pytest.raises(RequestError, match=r"other text than text\.txt"):
        pretrain(request_)


def test_another_number_of_files_is_refused(request_, tmp_path):
    more = write_prose(tmp_path / "more.txt", n_paragraphs=20)
    killed_at(request_, 4)
    with pytest.raises(RequestError, match=r"other text than more\.txt"):
        pretrain(replace(request_, text=(*request_.text, more)))
    with pytest.raises(RequestError, match="other text than more"):
        pretrain(replace(request_, text=(more,)))


def test_a_disk_that_is_full_at_the_plan_says_so(request_):
    prepare(request_)
    check_settings(request_.work, request_.settings)
    with files_of_at_most(50), pytest.raises(StorageError, match="what is stored is intact"):
        stored_schedule(request_, prepare(request_))


def test_the_commonest_token_is_one_that_is_masked(request_):
    (path,) = request_.text
    path.write_text("\n\n".join(["the cat sees", "a big dog"] * 200))
    prepared = prepare(request_)
    counts = [int((prepared.training == token).sum()) for token in range(5, 60)]
    assert (prepared.training == prepared.tokens.sep).sum() > max(counts)
    assert (prepared.training == prepared.common).sum() == max(counts)


def test_the_card_names_the_vocabulary_that_there_is(request_):
    pretrain(replace(request_, vocabulary=8192))
    card = (request_.out / "README.md").read_text()
    assert f", {load(request_.out).config.vocab_size} word pieces" in card.replace("\n", " ")


def test_out_that_is_a_file_is_refused(request_):
    request_.out.write_text("mine")
    with pytest.raises(RequestError, match="is not a folder"):
        pretrain(request_)
    assert request_.out.read_text() == "mine"
