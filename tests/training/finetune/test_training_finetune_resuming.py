"""Fine-tuning that is killed, meets a full disk, or is asked for again, and folders in the way."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from microtome import load
from microtome.errors import RequestError, StorageError
from microtome.training.finetune import state
from microtome.training.finetune.finetuning import finetune
from microtome.training.finetune.loop import Step
from microtome.training.recipe import Recipe
from support.same_weights import same_weights
from support.tiny import FAMILY_TYPES
from support.training_rows import checkpoint, rows

RECIPE = Recipe(learning_rate=1e-3, batch_size=8, epochs=3, max_length=32)


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "base")


class KilledError(Exception):
    """Stands for a kill: nothing in the code under test knows it."""


def killed_after(epoch: int):
    def progress(step: Step) -> None:
        if step.epoch == epoch and step.scores:
            raise KilledError

    return progress


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_a_killed_finetuning_resumes_and_ends_bit_equal(family, tmp_path):
    base = checkpoint(tmp_path / "base", family)
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    whole = finetune(base, train, dev, recipe=RECIPE, out=tmp_path / "whole")
    for epoch in (0, 1):
        with pytest.raises(KilledError):
            finetune(
                base, train, dev, recipe=RECIPE, out=tmp_path / "cut", progress=killed_after(epoch)
            )
    assert not (tmp_path / "cut").exists()
    seen = []
    resumed = finetune(base, train, dev, recipe=RECIPE, out=tmp_path / "cut", progress=seen.append)
    assert {step.epoch for step in seen} == {2}
    assert resumed.history == whole.history
    assert same_weights(resumed.model, whole.model)
    assert same_weights(load(str(tmp_path / "cut")), load(str(tmp_path / "whole")))


def test_a_killed_finetuning_that_keeps_the_best_ends_bit_equal(model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    recipe = RECIPE.but(keep="best", epochs=4, layerdrop=0.3)
    whole = finetune(model, train, dev, recipe=recipe, out=tmp_path / "whole")
    with pytest.raises(KilledError):
        finetune(model, train, dev, recipe=recipe, out=tmp_path / "cut", progress=killed_after(2))
    resumed = finetune(model, train, dev, recipe=recipe, out=tmp_path / "cut")
    assert resumed.kept_epoch == whole.kept_epoch
    assert same_weights(resumed.model, whole.model)
    values = [epoch.scores[whole.primary] for epoch in whole.history]
    assert whole.kept_epoch == values.index(max(values))
    assert whole.scores[whole.primary].value == max(values)


# A process that has loaded everything and computed nothing: each fine-tuning is a fork of it.
NURSERY = """
import json, os, signal, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import torch
from microtome.training.finetune.finetuning import finetune
from microtome.training.recipe import Recipe
from support.training_rows import rows


def finetune_and_die(place, model, n_threads, after_step, recipe, options):
    def progress(step):
        if step.step == after_step:
            os.kill(os.getpid(), signal.SIGKILL)

    torch.set_num_threads(n_threads)
    place, recipe = Path(place), Recipe(**recipe)
    train, dev = rows(place, n=30), rows(place, n=12, seed=1)
    finetune(
        Path(model), train, dev, recipe=recipe, out=place / "cut", progress=progress, **options
    )


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            finetune_and_die(*json.loads(line))
        except Exception:
            sys.excepthook(*sys.exc_info())
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def nursery():
    command = [sys.executable, "-c", NURSERY, str(Path(__file__).parents[2])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


def finetune_and_die(nursery, place, model, *, after_step, recipe=RECIPE, **options):
    """A real SIGKILL after a step, in another process; gives the names of the stored states."""
    n_threads = torch.get_num_threads()
    asked = [str(place), str(model), n_threads, after_step, recipe.as_json(), options]
    print(json.dumps(asked), file=nursery.stdin, flush=True)
    assert nursery.stdout.readline() == "-9\n"
    return sorted(path.parent.name for path in (place / "cut.finetuning").glob("[!.]*/*.json"))


def test_a_kill_in_the_middle_of_a_step_loses_the_epoch_only(nursery, model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    whole = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "whole")
    assert finetune_and_die(nursery, tmp_path, model, after_step=7) == ["epoch-0001"]
    resumed = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "cut")
    assert same_weights(resumed.model, whole.model)


@pytest.mark.parametrize(
    ("after_step", "stored"), [(3, "epoch-0000-step-0000002"), (7, "epoch-0001-step-0000002")]
)
def test_a_kill_within_an_epoch_loses_the_steps_since_the_last_minutes_only(
    after_step, stored, nursery, model, tmp_path
):
    """Four steps an epoch; a state is due after each. Bit for bit as if nothing had happened."""
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    recipe = RECIPE.but(keep="best", layerdrop=0.3)
    whole = finetune(model, train, dev, recipe=recipe, out=tmp_path / "whole")
    states = finetune_and_die(
        nursery, tmp_path, model, after_step=after_step, recipe=recipe, save_minutes=0.0
    )
    assert states == [stored]
    seen: list[Step] = []
    resumed = finetune(model, train, dev, recipe=recipe, out=tmp_path / "cut", progress=seen.append)
    assert seen[0].step == after_step  # the step before the kill was done and not yet stored
    assert resumed.history == whole.history
    assert resumed.kept_epoch == whole.kept_epoch
    assert same_weights(resumed.model, whole.model)
    assert same_weights(load(str(tmp_path / "cut")), load(str(tmp_path / "whole")))


def test_states_within_an_epoch_are_as_far_apart_as_the_minutes_say(model, tmp_path, monkeypatch):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    names = []
    write = state.write_state
    monkeypatch.setattr(
        state, "write_state", lambda *given: (names.append(given[1]), write(*given))
    )
    finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "out")
    assert names == ["epoch-0001", "epoch-0002", "epoch-0003"]  # seconds, not minutes
    names.clear()
    finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "often", save_minutes=0.0)
    assert names[:4] == [*(f"epoch-0000-step-000000{n}" for n in (1, 2, 3)), "epoch-0001"]


def test_a_full_disk_stops_clearly_and_the_epochs_before_are_kept(model, tmp_path, monkeypatch):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    whole = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "whole")
    real, n_written = safetensors.torch.save_file, []

    def nearly_full(tensors, file):
        n_written.append(file)
        if len(n_written) == 4:  # the optimiser of the second epoch
            raise OSError(errno.ENOSPC, "No space left on device")
        real(tensors, file)

    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", nearly_full)
        with pytest.raises(StorageError, match=r"no space left.*run the same command again"):
            finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "cut")
    assert (tmp_path / "cut.finetuning" / "epoch-0001").is_dir()
    resumed = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "cut")
    assert same_weights(resumed.model, whole.model)


def test_the_same_request_again_loads_what_is_there(model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    options = {"recipe": RECIPE, "edits": "extend(4)", "out": tmp_path / "out"}
    first = finetune(model, train, dev, **options)

    def never(_):
        raise AssertionError("trained again")

    again = finetune(model, train, dev, **options, progress=never)
    assert again.as_json() == first.as_json()
    assert again.history == first.history
    assert again.certificate == first.certificate
    assert same_weights(again.model, first.model)


@pytest.mark.parametrize("finished", [True, False])
def test_the_folder_of_another_request_is_refused_with_the_difference(finished, model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    if finished:
        finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "out")
    else:
        with pytest.raises(KilledError):
            finetune(
                model, train, dev, recipe=RECIPE, out=tmp_path / "out", progress=killed_after(0)
            )
    with pytest.raises(
        RequestError,
        match=r"a fine-tuning of a different request: learning_rate: 0.001 stored, 0.002 requested",
    ):
        finetune(model, train, dev, recipe=RECIPE.but(learning_rate=2e-3), out=tmp_path / "out")
    with pytest.raises(RequestError, match=r"seeds\.init: "):
        finetune(model, train, dev, recipe=RECIPE, seed=1, out=tmp_path / "out")
    with pytest.raises(RequestError, match=" rows: "):
        finetune(model, dev, dev, recipe=RECIPE, out=tmp_path / "out")
    with pytest.raises(RequestError, match=" edits: "):
        finetune(model, train, dev, recipe=RECIPE, edits="remove(1)", out=tmp_path / "out")


def test_a_folder_with_something_else_in_it_is_refused(model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(RequestError, match="not empty"):
        finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "out")
