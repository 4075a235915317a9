"""Shares of attention patterns on SST-2, MRPC and RTE: all-MiniLM, fine-tuned on each.

    python studies/attention_patterns.py GLUE-FOLDER OUT [--fraction ROWS]

Fine-tunes (kept in OUT, not done twice), runs attention-patterns on up to 1,000 dev rows, and
prints one table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from commands import microtome

TASKS = {"sst2": "SST-2", "mrpc": "MRPC", "rte": "RTE"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("glue", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--fraction", default="1", help="of the training rows, or how many")
    parser.add_argument("--learning-rate", default="1e-4")
    parser.add_argument("--model", default="minilm")
    given = parser.parse_args()
    print("| task | score | pattern | share | 95 % | corrected | 95 % |\n" + "|---" * 7 + "|")
    for task, folder in TASKS.items():
        data = given.glue / folder
        tuned = given.out / f"{given.model}-{task}"
        scores = microtome(
            "finetune", given.model, "--task", task, "--data", data, "--out", tuned,
            "--fraction", given.fraction, "--learning-rate", given.learning_rate,
        )  # fmt: skip
        score = scores["scores"][scores["primary"]]["value"]
        found = microtome(
            "run", "attention-patterns", "--model", tuned, "--task", task, "--data", data,
            "--out", given.out / f"run-{task}",
        )  # fmt: skip
        for row in found["rows"]:
            if row["layer"] is None:
                print(
                    f"| {task} | {score:.3f} | {row['pattern']} | {100 * row['share']:.1f} |"
                    f" {100 * row['low']:.1f}–{100 * row['high']:.1f} |"
                    f" {100 * row['corrected']:.1f} |"
                    f" {100 * row['corrected_low']:.1f}–{100 * row['corrected_high']:.1f} |"
                )
        print(f"\n{found['finding']}\n", file=sys.stderr)


if __name__ == "__main__":
    main()
