"""The studies of docs/figures-kao.md: `python studies/kao.py [NAME…] [--out DIR]`.

Every study is one `microtome run` into a folder of its own: killed, it resumes with the same
command. Real data is read from MICROTOME_TEST_DATA, or ../shared; a study whose data isn't there is
left out, and says so. Prints each finding, and the seconds it took.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from commands import DATA, SHARED, chosen, run_study

N_TRAIN_ARTICLES = 25  # of the 35 in SQuAD's dev file: its training file isn't here
SMALL = ["--seeds", "0,1,2", "--learning-rate", "1e-4"]
SPANS = ["--seeds", "0,1,2", "--learning-rate", "3e-4", "--epochs", "2", "--batch-size", "8"]
# Questions with an answer for each one without. As they come, one in two has none, and so few
# updates then teach nothing but the empty answer.
ANSWERED = 4
REACTIONS = [
    "CC(=O)O.OCC>>CC(=O)OCC.O",
    "Nc1ccccc1.CC(=O)Cl>>CC(=O)Nc1ccccc1",
    "CCO.CC(=O)Cl>>CCOC(C)=O",
    "c1ccccc1Br.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1",
]


def grid(out: Path) -> dict[str, tuple[Path | None, list[str]]]:
    """Study → (the data that it needs, the arguments of `microtome run`)."""
    sst2_data = DATA / "sst2_sentence"
    sst2 = ["--model", "minilm", "--task", "sst2-sentence", "--data", str(sst2_data)]
    squad_data = DATA / "squad2/dev-v2.0.json"
    squad = ["--model", "minilm", "--task", "squad2", "--data", str(out / "squad2-articles")]
    nano = ["--model", "nano-bert", "--task", "micro-sentiment"]
    albert = SHARED / "models/chem-albert-12"
    return {
        # The whole way in under 15 minutes: K = 12..16, 3 seeds, then the ensembles.
        "nano-decoding": (None, ["decoding", *nano, "--layers", "all", "--finetuned"]),
        "nano-duplication": (None, ["duplication", *nano, "--layers", "12-16", "--seeds", "0,1,2",
            "--baseline-seeds", "3-11", "--fraction", "640", "--scan"]),
        "nano-ensembles": (None, ["ensembling", "--from", str(out / "nano-duplication")]),
        "nano-strategies": (None, ["duplication", *nano, "--layers", "10-14", "--seeds", "0,1,2",
            "--fraction", "640", "--strategy", "first,last,repeat:3,remove-top,remove-bottom"]),
        # A real ALBERT with its own head, as far as the papers went.
        "albert-decoding": (albert, ["decoding", "--model", str(albert), "--data",
            str(out / "reactions.txt"), "--layers", "all"]),
        # Real English: six layers; the tied readout shows the residual path, the fitted one more.
        "sst2-decoding": (sst2_data, ["decoding", *sst2, "--layers", "all", "--finetuned",
            "--fraction", "640", "--learning-rate", "1e-4"]),
        "sst2-fitted": (sst2_data, ["decoding", *sst2, "--readout", "fit", "--layers", "all"]),
        "sst2-duplication": (sst2_data, ["duplication", *sst2, "--layers", "6-8", *SMALL,
            "--fraction", "640", "--baseline-seeds", "3-8", "--scan"]),
        "sst2-ensembles": (sst2_data, ["ensembling", "--from", str(out / "sst2-duplication")]),
        "squad2-duplication": (squad_data, ["duplication", *squad, "--layers", "6-7", *SPANS,
            "--fraction", "1500", "--limit", "300"]),
        "squad2-ensembles": (squad_data, ["ensembling", "--from", str(out / "squad2-duplication")]),
        # Answers in short texts, with and without an answer: few updates teach them.
        "spans-duplication": (None, ["duplication", "--model", "minilm", "--task", "micro-squad",
            "--layers", "6-7", *SPANS, "--fraction", "1000", "--limit", "400"]),
        "spans-ensembles": (None, ["ensembling", "--from", str(out / "spans-duplication")]),
    }  # fmt: skip


def split_articles(out: Path) -> None:
    """SQuAD's dev file as two, by article: no passage is on both sides; few unanswerable ones."""
    folder, source = out / "squad2-articles", DATA / "squad2/dev-v2.0.json"
    if not source.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    whole = json.loads(source.read_text(encoding="utf-8"))
    articles = [with_few_empty(article) for article in whole["data"]]
    sides = {"train": articles[:N_TRAIN_ARTICLES], "dev": articles[N_TRAIN_ARTICLES:]}
    for name, own in sides.items():
        text = json.dumps(whole | {"data": own})
        (folder / f"{name}-v2.0.json").write_text(text, encoding="utf-8")


def with_few_empty(article: dict) -> dict:
    """The article without most of its unanswerable questions; those that stay come first."""
    asked = [question for one in article["paragraphs"] for question in one["qas"]]
    empty = [question["id"] for question in asked if question["is_impossible"]]
    dropped = set(empty[(len(asked) - len(empty)) // ANSWERED :])
    paragraphs = [
        one | {"qas": [question for question in one["qas"] if question["id"] not in dropped]}
        for one in article["paragraphs"]
    ]
    return article | {"paragraphs": [one for one in paragraphs if one["qas"]]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="all of them unless some are named")
    parser.add_argument("--out", type=Path, default=Path("microtome-runs/kao"))
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    split_articles(out)
    (out / "reactions.txt").write_text("\n".join(REACTIONS) + "\n", encoding="utf-8")
    studies = grid(out)
    for name in chosen(given.names, studies):
        data, arguments = studies[name]
        if data is not None and not data.exists():
            print(f"\n{name}: left out, {data} isn't there", flush=True)
            continue
        run_study(name, arguments, out)


if __name__ == "__main__":
    main()
