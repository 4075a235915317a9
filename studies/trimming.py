"""`microtome trim` against what people do today: same data, same layers, same minutes.

python studies/trimming.py stsb --text FILE [--steps 200] [--seeds 0,1,2] [--layers 2,3,4]
    [--rival 2,3,4]
python studies/trimming.py sst2|mrpc [--text FILE] [--steps 600] … [--rival 3]

stsb: all-MiniLM on STS-B, healed on unlabelled sentences (one per line in FILE). The rival is
sentence-transformers' own way to distil into fewer layers: the student keeps the same layers, and
its trainer learns the base's embeddings by mean squared error on the same sentences, in batches of
the same size.
sst2, mrpc: all-MiniLM fine-tuned on the task, healed on its training rows, or on the texts of FILE
without their labels.
The other rival is the usual way: the top layers removed, and training on the labels.
A rival gets as many CPU seconds as our healing took with its contenders and the base's answers
(`--equal steps`: as many steps). Its steps are timed first, so that its learning rate decays to the
end. CPU seconds, so that other work on the machine favours nobody: run it with OMP_NUM_THREADS=1.
Scores are of the half of the dev rows that nothing was picked on.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
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

from commands import DATA, microtome
from microtome.experiments.field.trim.judging import Halves
from microtome.experiments.kit.stored_predictions import score_on
from microtome.models.source import minilm_folder
from microtome.tasks import DataSpec, open_data, open_training
from microtome.training.finetune import Finetuned, finetune
from microtome.training.recipe import recipe_for

BATCH, RATE = 64, 3e-4
TIMED_STEPS = 10


@dataclass(frozen=True)
class Budget:
    """What a rival may use: CPU seconds, or as many steps as we took where these are None."""

    seconds: float | None
    steps: int
    texts: int

    def steps_after(self, spent: float, step_seconds: float) -> int:
        """How many steps are left to a rival that has spent CPU seconds before the first."""
        if self.seconds is None:
            return self.steps
        return max(1, int((self.seconds - spent) / step_seconds))


def mse_student(
    base: Path, layers: list[int], texts: list[str], seed: int, budget: Budget
) -> tuple[SentenceTransformer, int, float]:
    """sentence-transformers' student with these layers, its steps and its CPU seconds."""
    started = time.process_time()
    teacher = SentenceTransformer(str(base), device="cpu")
    labels = teacher.encode(texts, batch_size=BATCH, show_progress_bar=False)
    rows = Dataset.from_dict({"sentence": texts, "label": labels.tolist()})
    spent = time.process_time() - started
    timed, begun = cut_of(base, layers), time.process_time()
    train_mse(timed, rows, seed, TIMED_STEPS)
    step_seconds = (time.process_time() - begun) / TIMED_STEPS
    steps = budget.steps_after(spent, step_seconds)
    student, begun = cut_of(base, layers), time.process_time()
    train_mse(student, rows, seed, steps)
    return student.eval(), steps, spent + time.process_time() - begun


def cut_of(base: Path, layers: list[int]) -> SentenceTransformer:
    student = SentenceTransformer(str(base), device="cpu")
    encoder = student[0].auto_model
    encoder.encoder.layer = torch.nn.ModuleList([encoder.encoder.layer[i] for i in layers])
    encoder.config.num_hidden_layers = len(layers)
    return student


def train_mse(student: SentenceTransformer, rows: Dataset, seed: int, steps: int) -> None:
    arguments = SentenceTransformerTrainingArguments(
        output_dir="build/trimming-rival", per_device_train_batch_size=BATCH, learning_rate=RATE,
        warmup_steps=max(1, steps // 10), max_steps=steps, seed=seed, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model=student, args=arguments, train_dataset=rows, loss=MSELoss(student)
    )
    trainer.train()


def cosine_spearman(model: SentenceTransformer, pairs: list[tuple[str, str]], gold) -> float:
    first, second = (
        model.encode(
            list(side), batch_size=BATCH, show_progress_bar=False, normalize_embeddings=True
        )
        for side in zip(*pairs, strict=True)
    )
    return float(spearmanr((first * second).sum(1), gold).statistic)


def healing(run: Path, layers: int, *, equal: str) -> tuple[float, Budget]:
    """CPU seconds of a size's healing with the base's answers, and what that gives a rival."""
    records = [json.loads(path.read_text()) for path in (run / "records").glob("*.json")]
    (own,) = [r for r in records if r["name"] == "trim.heal" and r["request"]["layers"] == layers]
    answers = sum(r["cpu_seconds"] for r in records if r["name"] == "trim.answer")
    (row,) = own["rows"]
    # the best of three contenders had a tenth of the time before it was chosen
    steps = round(row["steps"] / (1 - 0.1 * (row["contenders"] - 1)))
    seconds = own["cpu_seconds"] + answers
    return seconds, Budget(seconds if equal == "minutes" else None, steps, row["texts"])


def budget_options(options: argparse.Namespace) -> tuple[str, object]:
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
            *budget_options(options), "--seed", seed, "--layers", options.layers,
            *(("--also", options.also) if options.also else ()), "--run", run,
            "--out", options.out / f"stsb-{seed}-{time.time_ns()}", "--speed", "1.01",
        )  # fmt: skip
        for cut in found["cuts"]:
            if not cut["healed"]:
                continue
            seconds, budget = healing(run, cut["layers"], equal=options.equal)
            ours = f"seed {seed} {cut['edit']}: ours {cut['score']:.4f}"
            print(f"{ours} in {budget.steps} steps, {seconds:.0f} s", end="", flush=True)
            if cut["layers"] in options.rival:
                layers = [i for part in cut["edit"][5:-1].split(",") for i in _range(part)]
                texts = [row.text for row in every.limit(budget.texts, seed=0).rows()]
                student, steps, taken = mse_student(base, layers, texts, seed, budget)
                score = cosine_spearman(student, pairs, gold)
                rival = f"; sentence-transformers {score:.4f} in {steps} steps, {taken:.0f} s"
                print(rival, end="", flush=True)
                labels, steps, taken = tuned_cut(base, spec, cut["layers"], budget, seed)
                print(f"; top cut, on labels {labels:.4f} in {steps} steps, {taken:.0f} s", end="")
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
            "trim", base, "--task", task, "--data", data, *budget_options(options), "--seed", seed,
            "--layers", options.layers, *(("--text", options.text) if options.text else ()),
            "--run", run, "--speed", "1.01",
            "--out", options.out / f"{options.study}-{seed}-{time.time_ns()}",
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
            if cut["healed"] and cut["layers"] in options.rival:
                seconds, budget = healing(run, cut["layers"], equal=options.equal)
                spec = DataSpec(task, data)
                rival, steps, taken = tuned_cut(base, spec, cut["layers"], budget, seed)
                name = f"{cut['layers']} layers, top cut, labels"
                changes.setdefault(name, []).append(rival - score)
                print(
                    f"seed {seed} {name}: {rival:.4f} in {steps} steps, {taken:.0f} s;"
                    f" ours {budget.steps} steps, {seconds:.0f} s",
                    flush=True,
                )
    for name, found in changes.items():
        print(f"{name}: mean change {100 * np.mean(found):+.2f} points over {len(found)} seeds")


def tuned_cut(
    base: Path, spec: DataSpec, n_layers: int, budget: Budget, seed: int
) -> tuple[float, int, float]:
    """The usual way: the top removed, then training on the labels. Score, steps, CPU seconds."""
    train, dev = open_training(spec)
    recipe = recipe_for(train.task, base).but(learning_rate=1e-4, batch_size=BATCH)

    def trained(steps: int) -> tuple[Finetuned, float]:
        begun = time.process_time()
        done = finetune(
            base, train, dev, edits=f"keep(0-{n_layers - 1})", recipe=recipe.but(steps=steps),
            seed=seed, watch=False,
        )  # fmt: skip
        return done, time.process_time() - begun

    (_, one), (_, more) = trained(1), trained(1 + TIMED_STEPS)  # both load, encode and evaluate
    step_seconds = (more - one) / TIMED_STEPS
    steps = budget.steps_after(one, step_seconds)
    done, seconds = trained(steps)
    halves = Halves.of(dev.n_scored, dev.scored_clusters)
    return score_on(done.evaluation.outcomes[done.primary], halves.scoring), steps, seconds


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=("stsb", "sst2", "mrpc"))
    parser.add_argument("--text", type=Path)
    parser.add_argument("--also", type=Path, help="a csv of pairs with a number: text, pair, label")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--steps", type=int, help="of every size, instead of minutes")
    parser.add_argument("--seeds", type=_numbers, default=[0, 1, 2])
    parser.add_argument("--layers", default="2,3,4")
    parser.add_argument("--out", type=Path, default=Path("build/trimming"))
    parser.add_argument(
        "--rival", type=_numbers, default=[], help="the sizes that rivals are trained for, as 2,3"
    )
    parser.add_argument("--equal", choices=("minutes", "steps"), default="minutes")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (stsb if options.study == "stsb" else classifier)(options)


if __name__ == "__main__":
    main()
