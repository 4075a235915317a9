"""Two processes that train one model do what one does, at the same effective batch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from microtome.families import adapt
from microtome.observe.evaluation import encode_for
from microtome.training.finetune.examples import examples_of
from microtome.training.finetune.finetuning import finetune
from microtome.training.finetune.loop import Stepping
from microtome.training.finetune.processes import Processes, join_processes, own_device
from microtome.training.recipe import Recipe, Seeds
from support.tiny import tiny_model
from support.training_rows import checkpoint, rows, tokenizer_for

STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
RECIPE = Recipe(learning_rate=1e-3, batch_size=9, epochs=2, layerdrop=0.4)


def gradients(folder: Path, processes: Processes) -> dict[str, torch.Tensor]:
    """Of one step over 15 rows: 8 for the first process, 7 for the second."""
    model = tiny_model("bert", "classification", std=0.1, num_labels=2, **STILL)
    dataset = rows(folder, n=20)
    encoded = encode_for(model, tokenizer_for(), dataset)
    examples = examples_of(dataset, encoded, adapt(model))
    stepping = Stepping(adapt(model), examples, RECIPE, Seeds.of(0), processes, 4)
    loss = stepping.gradients(3, np.arange(15))
    total = processes.sum_gradients(model.parameters(), loss)
    found = {n: p.grad.to_dense() for n, p in model.named_parameters() if p.grad is not None}
    return found | {"loss": torch.tensor(total)}


def work(folder: Path) -> None:
    """What every process of a launch does; the first one keeps the gradients.

    Each writes a file of its own: lines of two processes on one output may run together.
    """
    processes = join_processes()
    found = gradients(folder, processes)
    if processes.is_first:
        save_file(found, folder / "gradients.safetensors")
    out = folder / "out"
    train, dev = rows(folder, n=19), rows(folder, n=8, seed=1)  # the last batch has one row
    done = finetune(folder / "base", train, dev, recipe=RECIPE, out=out)
    history = [epoch.loss for epoch in done.history]
    (folder / f"history-{processes.rank}.json").write_text(json.dumps(history), encoding="utf-8")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_gradients_and_training_over_two_processes_equal_one_process(tmp_path):
    checkpoint(tmp_path / "base", **STILL)
    for n, seed in ((20, 0), (19, 0), (8, 1)):
        rows(tmp_path, n=n, seed=seed)
    # Without a GPU --multi_gpu still means one process each, which is what is tried here.
    command = [
        sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2",
        "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no",
        "--main_process_port", str(free_port()), str(Path(__file__).resolve()), str(tmp_path),
    ]  # fmt: skip
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"history-{r}.json").read_text()) for r in (0, 1))
    assert first == second

    theirs = gradients(tmp_path, Processes())
    ours = load_file(tmp_path / "gradients.safetensors")
    assert ours.keys() == theirs.keys()
    n_layers_used = len({name.split(".")[3] for name in ours if ".layer." in name})
    assert n_layers_used < 3  # a dropped layer has no gradient in either
    assert max(float(value.abs().max()) for value in theirs.values()) > 1e-2
    for name, value in theirs.items():
        assert float((ours[name] - value).abs().max()) < 1e-5, name

    train, dev = rows(tmp_path, n=19), rows(tmp_path, n=8, seed=1)
    alone = finetune(tmp_path / "base", train, dev, recipe=RECIPE)
    for epoch, loss in zip(alone.history, first, strict=True):
        assert abs(epoch.loss - loss) < 1e-3
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_cuda_means_the_processes_own_gpu(monkeypatch):
    assert own_device("cpu") == torch.device("cpu")
    assert own_device("cuda") == torch.device("cuda")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert own_device("cuda") == torch.device("cuda", 1)
    assert own_device("cuda:0") == torch.device("cuda", 0)


if __name__ == "__main__":
    work(Path(sys.argv[1]))
