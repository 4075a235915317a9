"""The long claims about fine-tuning, on real data: figures for docs/training-figures.md.

python studies/finetuning.py [--only sst2|trainer|mrpc|squad2|probes] [--seeds 0,1,2]

Needs the extra ``english`` and real data (MICROTOME_TEST_DATA, or ../shared). Results lie in
``--out`` as JSON, one file per training; what is there isn't trained again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from commands import DATA, ROOT
from microtome.models import load_tokenizer
from microtome.statistics import over_seeds
from microtome.tasks import Dataset, DataSpec, evaluate_answers, open_data
from microtome.training.finetune import finetune
from microtome.training.probe import collect, majority, probe_depths
from microtome.training.recipe import Recipe

SMALL = Recipe(learning_rate=1e-4, batch_size=32, epochs=5)
N_ROWS, N_PAIRS = 2000, 1000


def splits(task: str, folder: str) -> tuple[Dataset, Dataset]:
    return tuple(open_data(DataSpec(task, DATA / folder, split)) for split in ("train", "dev"))


def stored(out: Path, name: str, measure: Callable[[Path], dict]) -> dict:
    """The figures called ``name``: measured once, then read. A killed training goes on."""
    file, checkpoint = out / f"{name}.json", out / name
    if file.is_file():
        return json.loads(file.read_text())
    started = time.perf_counter()
    found = measure(checkpoint) | {"threads": torch.get_num_threads()}
    found["seconds"] = time.perf_counter() - started
    file.write_text(json.dumps(found))
    shutil.rmtree(checkpoint, ignore_errors=True)
    print(name, json.dumps(found), flush=True)
    return found


def scores(done) -> dict:
    return {name: vars(interval) for name, interval in done.scores.items()} | {
        "history": [epoch.scores for epoch in done.history]
    }


def sst2(out: Path, seed: int) -> dict:
    """all-MiniLM on 2,000 rows of sst2-sentence."""
    train, dev = splits("sst2-sentence", "sst2_sentence")
    return stored(
        out,
        f"sst2-{seed}",
        lambda place: scores(
            finetune("minilm", train, dev, recipe=SMALL, seed=seed, fraction=N_ROWS, out=place)
        ),
    )


def trainer(out: Path, seed: int, n_rows: int = N_ROWS, recipe: Recipe = SMALL) -> dict:
    """The same rows and recipe with plain transformers: AutoModel, Trainer, dynamic padding."""
    train, dev = splits("sst2-sentence", "sst2_sentence")
    part = train.fraction(n_rows, seed=seed)
    return stored(
        out, f"trainer-{seed}", lambda _: {"accuracy": plain_accuracy(part, dev, recipe, seed)}
    )


def plain_accuracy(train: Dataset, dev: Dataset, recipe: Recipe, seed: int) -> float:
    """Nothing of ours but the rows."""
    from transformers import (
        AutoModelForSequenceClassification,
        DataCollatorWithPadding,
        PrinterCallback,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    from microtome.models import resolve

    folder, tokenizer = resolve("minilm").path, load_tokenizer("minilm")
    set_seed(seed)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)

    def items(dataset: Dataset) -> list[dict]:
        texts = tokenizer([row.text for row in dataset.rows()], truncation=True, max_length=128)
        labels = dataset.targets.tolist()
        columns = [*texts.values(), labels]
        names = [*texts, "labels"]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    with tempfile.TemporaryDirectory() as place:
        own = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=place,
                per_device_train_batch_size=recipe.batch_size,
                per_device_eval_batch_size=64,
                num_train_epochs=recipe.epochs,
                learning_rate=recipe.learning_rate,
                warmup_steps=recipe.warmup,
                weight_decay=recipe.weight_decay,
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                use_cpu=True,
                seed=seed,
            ),
            train_dataset=items(train),
            data_collator=DataCollatorWithPadding(tokenizer),
        )
        own.remove_callback(PrinterCallback)
        own.train()
        predicted = own.predict(items(dev)).predictions.argmax(1)
    return float((predicted == dev.targets).mean())


def mrpc(out: Path, seed: int) -> dict:
    """MRPC as it is, deeper, and with its top layers re-initialised."""
    train, dev = splits("mrpc", "glue/MRPC")
    found = {}
    for edit in ("", "extend(8)", "reinit(top=2, seed=0)"):
        found[edit or "unchanged"] = stored(
            out,
            f"mrpc-{edit.split('(')[0] or 'unchanged'}-{seed}",
            lambda place, edit=edit: scores(
                finetune(
                    "minilm",
                    train,
                    dev,
                    edits=edit or None,
                    recipe=SMALL.but(epochs=2),
                    seed=seed,
                    fraction=N_PAIRS,
                    watch=False,
                    out=place,
                )
            ),
        )
    return found


def squad2(out: Path, seed: int, n_train: int = 800, n_empty: int = 200, n_dev: int = 500) -> dict:
    """Some articles of dev for training, others for scoring; an empty answer is the baseline.

    Four of five training questions have an answer: with every second one empty, so few updates
    teach nothing but the empty answer. The scored questions are as they come.
    """
    rows = open_data(DataSpec("squad2", DATA / "squad2" / "dev-v2.0.json"))
    articles = np.unique(rows.clusters)
    held = np.isin(rows.clusters, articles[: len(articles) // 3])
    has_answer = rows.targets.astype(bool)
    train = rows.select(
        np.union1d(
            np.random.default_rng(0).choice(np.flatnonzero(~held & has_answer), n_train, False),
            np.random.default_rng(1).choice(np.flatnonzero(~held & ~has_answer), n_empty, False),
        )
    )
    dev = rows.select(np.flatnonzero(held)).limit(n_dev)
    answerable = dev.select(np.flatnonzero(dev.targets.astype(bool)))
    recipe = Recipe(learning_rate=3e-4, batch_size=8, epochs=2, max_length=256, stride=64)

    def measure(place: Path) -> dict:
        rows = replace(train, split="train")
        done = finetune("minilm", rows, dev, recipe=recipe, seed=seed, watch=False, out=place)
        given = done.evaluation.predictions[dev.targets.astype(bool)]
        of = {
            "all": done.scores,
            "answerable": evaluate_answers(answerable, given).scores,
            "all empty": evaluate_answers(dev, [""] * len(dev)).scores,
            "all empty, answerable": evaluate_answers(answerable, [""] * len(answerable)).scores,
        }
        return {k: {n: vars(one) for n, one in v.items()} for k, v in of.items()}

    return stored(out, f"squad2-{seed}", measure)


def probes(out: Path, seed: int) -> dict:
    """Frozen probing of sst2-sentence, both recipes, with both baselines."""
    train, dev = splits("sst2-sentence", "sst2_sentence")
    part = train.fraction(N_ROWS, seed=seed)

    def measure(_: Path) -> dict:
        found = {"majority": majority(part, dev).scores["accuracy"].value}
        for name, edits in (("minilm", None), ("random encoder", "randomize(seed=0)")):
            with collect("minilm", part, dev, features=("cls", "mean"), edits=edits) as data:
                for feature in ("cls", "mean"):
                    for recipe in ("paper", "converged"):
                        probed = probe_depths(data, feature=feature, recipe=recipe, seed=seed)
                        found[f"{name}, {feature}, {recipe}"] = [
                            one.scores["accuracy"].value for one in probed.depths
                        ]
        return found

    return stored(out, f"probes-{seed}", measure)


STUDIES = {"sst2": sst2, "trainer": trainer, "mrpc": mrpc, "squad2": squad2, "probes": probes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=STUDIES, action="append")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "studies")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[dict]] = {}
    for seed in (int(text) for text in given.seeds.split(",")):
        for name in given.only or STUDIES:
            if seed == 0 or name not in ("squad2", "probes"):
                found.setdefault(name, []).append(STUDIES[name](given.out, seed))
    for name in ("sst2", "trainer"):
        values = [one["accuracy"] for one in found.get(name, [])]
        values = [value["value"] if isinstance(value, dict) else value for value in values]
        if values:
            print(name, over_seeds(values), flush=True)


if __name__ == "__main__":
    main()
