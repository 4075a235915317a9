"""`microtome trim` against what people do today: same data, same layers, same minutes.

python studies/trimming.py stsb --text FILE [--minutes 30] [--seeds 0,1,2] [--layers 2,3,4]
python studies/trimming.py sst2|mrpc [--minutes 15] …

stsb: all-MiniLM on STS-B, healed on unlabelled sentences (one per line in FILE). The rival is
sentence-transformers' own way to distil into fewer layers: the student keeps the same layers, and
its trainer learns the base's embeddings by mean squared error on the same sentences, in the same
batches, for as many seconds as ours took for that size, base's embeddings included.
sst2, mrpc: all-MiniLM fine-tuned on the task, healed on its training rows. The rival is the usual
way: the top layers removed, and training on the labels for as many seconds.
Scores are of the half of the dev rows that nothing was picked on.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from scipy.stats import spearmanr
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MSELoss
from transformers import TrainerCallback

from commands import DATA, microtome
from microtome.experiments.field.trim.judging import Halves
from microtome.experiments.kit.stored_predictions import score_on
from microtome.models.source import minilm_folder
from microtome.tasks import DataSpec, open_data, open_training
from microtome.training.finetune import finetune
from microtome.training.recipe import recipe_for

BATCH, RATE = 64, 3e-4


class StopAfter(TrainerCallback):
    """Ends a training after so many seconds; the rate falls linearly to 0 at the steps expected."""

    def __init__(self, seconds: float) -> None:
        self.end = time.perf_counter() + seconds

    def on_step_end(self, args, state, control, **kwargs) -> None:
        control.should_training_stop = time.perf_counter() >= self.end


def mse_student(
    base: Path, layers: list[int], texts: list[str], seconds: float, seed: int, steps: int
) -> tuple[SentenceTransformer, int]:
    """sentence-transformers' student with these layers, and how many steps it had time for."""
    started = time.perf_counter()
    teacher = SentenceTransformer(str(base), device="cpu")
    student = SentenceTransformer(str(base), device="cpu")
    encoder = student[0].auto_model
    encoder.encoder.layer = torch.nn.ModuleList([encoder.encoder.layer[i] for i in layers])
    encoder.config.num_hidden_layers = len(layers)
    labels = teacher.encode(texts, batch_size=BATCH, show_progress_bar=False)
    rows = Dataset.from_dict({"sentence": texts, "label": labels.tolist()})
    arguments = SentenceTransformerTrainingArguments(
        output_dir="build/trimming-rival", per_device_train_batch_size=BATCH, learning_rate=RATE,
        warmup_steps=max(1, steps // 10), max_steps=steps, seed=seed, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    left = seconds - (time.perf_counter() - started)
    trainer = SentenceTransformerTrainer(
        model=student, args=arguments, train_dataset=rows, loss=MSELoss(student),
        callbacks=[StopAfter(left)],
    )  # fmt: skip
    trainer.train()
    return student.eval(), trainer.state.global_step


def cosine_spearman(model: SentenceTransformer, pairs: list[tuple[str, str]], gold) -> float:
    first, second = (
        model.encode(
            list(side), batch_size=BATCH, show_progress_bar=False, normalize_embeddings=True
        )
        for side in zip(*pairs, strict=True)
    )
    return float(spearmanr((first * second).sum(1), gold).statistic)


def healing(run: Path, layers: int) -> tuple[float, int]:
    """The seconds that ours took for a size, with the base's answers, and how many texts it had."""
    records = [json.loads(path.read_text()) for path in (run / "records").glob("*.json")]
    (own,) = [r for r in records if r["name"] == "trim.heal" and r["request"]["layers"] == layers]
    answers = sum(r["seconds"] for r in records if r["name"] == "trim.answer")
    return own["seconds"] + answers, own["rows"][0]["texts"]


def budget(options: argparse.Namespace) -> tuple[str, object]:
    return ("--minutes", options.minutes) if options.steps is None else ("--steps", options.steps)


def stsb(options: argparse.Namespace) -> None:
    spec = DataSpec("stsb", DATA / "glue" / "STS-B", kind="similarity")
    dev = open_data(spec)
    halves = Halves.of(len(dev), dev.clusters)
    scoring = [row for i, row in enumerate(dev.rows()) if i in set(halves.scoring.tolist())]
    pairs = [(row.text, row.pair) for row in scoring]
    gold = dev.targets[halves.scoring]
    every = open_data(DataSpec(path=options.text, kind="text"))
    base = minilm_folder()
    whole = cosine_spearman(SentenceTransformer(str(base), device="cpu"), pairs, gold)
    print(f"base {whole:.4f} on {len(pairs)} pairs that nothing was picked on")
    for seed in options.seeds:
        run = options.out / f"stsb-{seed}.trim"
        found = microtome(
            "trim", "minilm", "--task", "stsb", "--data", spec.path, "--text", options.text,
            *budget(options), "--seed", seed, "--layers", options.layers,
            *(("--also", options.also) if options.also else ()), "--run", run,
            "--out", options.out / f"stsb-{seed}-{time.time_ns()}", "--speed", "1.01",
        )  # fmt: skip
        for cut in found["cuts"]:
            if not cut["healed"]:
                continue
            seconds, n_texts = healing(run, cut["layers"])
            print(f"seed {seed} {cut['edit']}: ours {cut['score']:.4f} in {seconds:.0f} s", end="")
            if options.rival:
                layers = [i for part in cut["edit"][5:-1].split(",") for i in _range(part)]
                steps = int(options.rival_steps or 10**6)
                texts = [row.text for row in every.limit(n_texts, seed=0).rows()]
                student, taken = mse_student(base, layers, texts, seconds, seed, steps)
                score = cosine_spearman(student, pairs, gold)
                print(f"; sentence-transformers {score:.4f} ({taken} steps)", end="")
            print(flush=True)


def _range(text: str) -> range:
    first, _, last = text.strip().partition("-")
    return range(int(first), int(last or first) + 1)


TASKS = {
    "sst2": ("sst2-sentence", DATA / "sst2_sentence"),
    "mrpc": ("mrpc", DATA / "glue" / "MRPC"),
}


def classifier(options: argparse.Namespace) -> None:
    task, data = TASKS[options.study]
    base = options.out / f"{options.study}-base"
    if not base.exists():
        microtome(
            "finetune", "minilm", "--task", task, "--data", data, "--learning-rate", "1e-4",
            "--epochs", "3", "--out", base,
        )  # fmt: skip
    changes: dict[str, list[float]] = {}
    for seed in options.seeds:
        run = options.out / f"{options.study}-{seed}.trim"
        found = microtome(
            "trim", base, "--task", task, "--data", data, *budget(options), "--seed", seed,
            "--layers", options.layers, "--run", run,
            "--out", options.out / f"{options.study}-{seed}-{time.time_ns()}", "--speed", "1.01",
        )  # fmt: skip
        score = found["baseline"]["score"]
        print(f"seed {seed} base {score:.4f}")
        for cut in found["cuts"]:
            how = "healed" if cut["healed"] else "as cut"
            changes.setdefault(f"{cut['layers']} layers {how}", []).append(cut["change"])
            print(
                f"seed {seed} {cut['edit']} {how}: {cut['score']:.4f}"
                f" ({100 * cut['change']:+.1f} points), {cut['speed']:.2f}x",
                flush=True,
            )
            if cut["healed"]:
                seconds, _ = healing(run, cut["layers"])
                top = f"keep(0-{cut['layers'] - 1})"
                rival = tuned_cut(base, task, data, top, seconds, seed)
                changes.setdefault(f"{cut['layers']} layers, top cut, labels", []).append(
                    rival - score
                )
                print(f"seed {seed} {top} fine-tuned on labels: {rival:.4f}", flush=True)
    for name, found in changes.items():
        print(f"{name}: mean change {100 * np.mean(found):+.2f} points over {len(found)} seeds")


def tuned_cut(base: Path, task: str, data: Path, edit: str, seconds: float, seed: int) -> float:
    """The usual way: the top removed, then training on the labels for as many seconds."""
    train, dev = open_training(DataSpec(task, data))
    recipe = recipe_for(train.task, base).but(learning_rate=1e-4)
    started = time.perf_counter()
    finetune(base, train, dev, edits=edit, recipe=recipe.but(steps=20, epochs=1), watch=False)
    per_step = (time.perf_counter() - started) / 20  # loading included: the rival gets fewer steps
    steps = max(20, int(seconds / per_step))
    done = finetune(base, train, dev, edits=edit, recipe=recipe.but(steps=steps), seed=seed,
                    watch=False)  # fmt: skip
    halves = Halves.of(dev.n_scored, dev.scored_clusters)
    return score_on(done.evaluation.outcomes[done.primary], halves.scoring)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=("stsb", "sst2", "mrpc"))
    parser.add_argument("--text", type=Path)
    parser.add_argument("--also", type=Path, help="a csv of pairs with a number: text, pair, label")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--steps", type=int, help="of every size, instead of minutes")
    parser.add_argument("--seeds", type=lambda t: [int(s) for s in t.split(",")], default=[0, 1, 2])
    parser.add_argument("--layers", default="2,3,4")
    parser.add_argument("--out", type=Path, default=Path("build/trimming"))
    parser.add_argument("--rival", action="store_true")
    parser.add_argument("--rival-steps", type=int, help="where its learning rate is to reach 0")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (stsb if options.study == "stsb" else classifier)(options)


if __name__ == "__main__":
    main()
