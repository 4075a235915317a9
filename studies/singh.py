"""The studies of docs/figures-singh.md: `python studies/singh.py [NAME…]`.

Every study is one `microtome run` into a folder of its own: killed, it goes on with the same
command. Real data is read from MICROTOME_TEST_DATA, or ../shared; a study whose data isn't there is
left out, and says so. Prints each finding, and what the paper claims beside what was measured.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from commands import DATA, chosen, run_study

SEEDS = ["--seeds", "0,1,2"]
RATE = ["--learning-rate", "1e-4"]  # all-MiniLM is half as wide as the papers' models
MATCHED = "670"  # about 1 % of SST-2, 0.6 % of QNLI: the paper's direct comparison


def grid(out: Path) -> dict[str, list[str]]:
    """Study → arguments of `microtome run`."""
    sst2 = ["--model", "minilm", "--task", "sst2", "--data", str(DATA / "glue/SST-2")]
    cola = ["--model", "minilm", "--task", "cola", "--data", str(DATA / "glue/CoLA")]
    own = ["--data", str(out / "qnli-like/train.jsonl"), "--labels", "no,yes"]
    own += ["--dev-data", str(out / "qnli-like/dev.jsonl"), "--pair-column", "pair"]
    own += ["--limit", "600"]
    qnli = ["--model", "minilm", *own]
    small = ["--fractions", MATCHED, *SEEDS, *RATE]
    return {
        # The grid of k = 0..12 × three sizes, at least 60 updates each, one seed.
        "nano-reinit": ["reinitialization", "--model", "nano-bert", "--task", "micro-sentiment",
            "--fractions", "1,640,64", "--seeds", "0", "--least-steps", "60", "--epochs", "3",
            "--workers", "2"],
        "nano-probing": ["frozen-probing", "--model", "nano-bert", "--task", "micro-sentiment",
            "--fractions", "1,640,64", "--beside", str(out / "nano-reinit")],
        "nano-drift": ["weight-drift", "--model", "nano-bert", "--task", "micro-sentiment",
            "--fractions", "1,640,64", *SEEDS, "--parts", "all"],
        "nano-drift-matched": ["weight-drift", "--model", "nano-bert", "--task", "micro-sentiment",
            "--fractions", "1,640,64", *SEEDS, "--match-steps"],
        # Real text, with all-MiniLM: six layers. 6,735 rows are a tenth of SST-2.
        "sst2-reinit": ["reinitialization", *sst2, *small],
        "sst2-little": ["reinitialization", *sst2, "--fractions", f"{MATCHED},67", *SEEDS, *RATE,
            "--counts", "0,6", "--least-steps", "60"],
        "sst2-probing": ["frozen-probing", *sst2, "--fractions", f"6735,{MATCHED}",
            "--beside", str(out / "sst2-reinit")],
        "sst2-drift": ["weight-drift", *sst2, "--fractions", f"2000,{MATCHED}", *SEEDS,
            *RATE],
        "cola-reinit": ["reinitialization", *cola, "--fractions", "2000", *SEEDS, *RATE,
            "--counts", "0,2,4,6"],
        "cola-probing": ["frozen-probing", *cola, "--fractions", "2000",
            "--beside", str(out / "cola-reinit")],
        "cola-drift": ["weight-drift", *cola, "--fractions", "2000", *SEEDS, *RATE],
        "qnli-like-reinit": ["reinitialization", *qnli, *small, "--counts", "0,2,4,6"],
        "qnli-like-probing": ["frozen-probing", *qnli, "--fractions", MATCHED,
            "--beside", str(out / "qnli-like-reinit")],
    }  # fmt: skip


def build_qnli_like(folder: Path) -> None:
    """Question and sentence: does it hold the answer? From SQuAD's answerable dev questions.

    As QNLI was made: the sentence with the answer against another one of the same paragraph, the
    one that shares most words with the question. Whole articles are held out, one in five.
    """
    articles = json.loads((DATA / "squad2/dev-v2.0.json").read_text(encoding="utf-8"))["data"]
    folder.mkdir(parents=True, exist_ok=True)
    for name, kept in (("train", lambda i: i % 5 != 0), ("dev", lambda i: i % 5 == 0)):
        own = [article for i, article in enumerate(articles) if kept(i)]
        lines = [line for article in own for line in pairs_of(article)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def pairs_of(article: dict) -> list[dict[str, str]]:
    """A right and a wrong sentence for every answerable question of an article."""
    lines = []
    for paragraph in article["paragraphs"]:
        sentences = re.split(r"(?<=[.!?])\s+", paragraph["context"])
        for question in paragraph["qas"]:
            if question.get("is_impossible") or len(sentences) < 2:
                continue
            answer = question["answers"][0]["text"]
            holds = [sentence for sentence in sentences if answer in sentence]
            others = [sentence for sentence in sentences if answer not in sentence]
            if len(holds) == 1 and others:
                asked = set(question["question"].lower().split())
                near = max(others, key=lambda s: len(asked & set(s.lower().split())))
                for sentence, label in ((holds[0], "yes"), (near, "no")):
                    line = {"text": question["question"], "pair": sentence, "label": label}
                    lines.append(line)
    return lines


def missing(name: str) -> str:
    """Which data a study lacks; empty where it has all."""
    needed = {"sst2": "glue/SST-2", "cola": "glue/CoLA", "qnli": "squad2/dev-v2.0.json"}
    path = needed.get(name.split("-")[0])
    return "" if path is None or (DATA / path).exists() else path


def claims_of(document: dict) -> list[str]:
    """Paper beside measured, from the run's rows."""
    from microtome.experiments import find_experiment
    from microtome.papers import claims

    if not document.get("rows"):
        return []
    answers = find_experiment(document["experiment"]).claims(document["rows"])
    known = {claim.key: claim for claim in claims(document["experiment"])}
    return [
        f"  paper: {known[key].what}: {known[key].words}\n  here:  {text}"
        for key, text in answers.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="studies; all of them unless named")
    parser.add_argument("--out", type=Path, default=Path("microtome-runs/singh"))
    given = parser.parse_args()
    studies = grid(given.out)
    for name in chosen(given.names, studies):
        if lacking := missing(name):
            print(f"{name}: left out, {lacking} isn't in {DATA}")
            continue
        if name.startswith("qnli") and not (given.out / "qnli-like/dev.jsonl").exists():
            build_qnli_like(given.out / "qnli-like")
        print("\n".join(claims_of(run_study(name, studies[name], given.out))), flush=True)


if __name__ == "__main__":
    main()
