"""The claims of docs/results*.md, judged anew from the rows that are committed in docs/results.

    python docs/results.py store RUN NAME --command "microtome run …"    keep the rows of a run
    python docs/results.py show NAME                                     its claims and verdicts
    python docs/generate.py                                              write docs/results*.md

A file holds the tidy rows of one run without text of data sets, and in its metadata the command and
the hashes of model and data. Models are named by their folder's name: no path is stored.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import stored_rows
from stored_rows import StoredResults

from microtome.experiments import FOLDERS
from microtome.experiments.kovaleva.attention_patterns.report import (
    SHORT,
    of_all_maps,
    with_interval,
)
from microtome.papers.answer import Answer, Verdict
from microtome.papers.claims import CLAIMS, Claim
from microtome.papers.exhibits import PAPERS
from microtome.replication.answers import answers_of, judgements, of_all_exhibits
from microtome.replication.measured import Measured
from microtome.replication.planning import REPLICATION
from microtome.runs import open_run


@dataclass(frozen=True)
class Judged:
    """A claim with what one run's rows say of it."""

    claim: Claim
    answer: Answer
    model: str
    task: str
    n: int | None
    seeds: tuple[int, ...]
    results: str  # the name of the stored rows
    pairs: tuple[tuple[str, str], ...]  # models and tasks that the answer is about


def store(folder: Path, name: str, command: str) -> StoredResults:
    """Keep the rows of a finished run in ``docs/results``; its claims must survive it."""
    result = open_run(folder)
    if not result.ok:
        raise SystemExit(f"{folder} isn't finished: {result.n_ok} of {result.n_trials} trials")
    rows = stored_rows.named_rows(result)
    path = stored_rows.STORED / f"{name}.parquet"
    stored_rows.write(path, *stored_rows.kept(result, rows, command))
    found = stored_rows.read(path)
    _check(path, _answers(rows, found.request), found)
    return found


def _check(path: Path, before: Mapping[Any, Answer], after: StoredResults) -> None:
    """Refuse a file whose claims aren't those of the run, or that is too large."""
    size = path.stat().st_size
    try:
        found = _answers(after.rows, after.request)
        changed = [key for key in before.keys() | found.keys() if before.get(key) != found.get(key)]
    except KeyError as error:
        changed = [error]
    if changed:
        path.unlink()
        raise SystemExit(
            f"claims need a column that isn't kept: {changed}; see WORDS in docs/stored_rows.py"
        )
    if size > stored_rows.LARGEST:
        path.unlink()
        raise SystemExit(f"{size:,} bytes of rows, at most {stored_rows.LARGEST:,} are committed")


def judged(results: StoredResults) -> Iterator[Judged]:
    """Every claim that a run's rows answer: over all models and tasks, where that has a rule, then
    on each model and task.
    """
    answers = _answers(results.rows, results.request)
    for (experiment, model, task, key), answer in answers.items():
        pairs = [(model, task)]
        if not model:  # over all that the claim is about
            pairs = [
                place[1:3]
                for place, single in answers.items()
                if (place[0], place[3]) == (experiment, key) and single.verdict is not None
                if place[1]
            ]
        rows = [
            row
            for row in results.rows
            if row["experiment"] == experiment and (row["model"], row["task"]) in pairs
        ]
        counts = [int(row["n"]) for row in rows if row.get("n") is not None]
        seeds = {int(row["seed"]) for row in rows if row.get("seed") is not None}
        claim, n = _KNOWN[experiment, key], max(counts, default=None)
        yield Judged(
            claim, answer, model, task, n, tuple(sorted(seeds)), results.name, tuple(pairs)
        )


_KNOWN = {(claim.experiment, claim.key): claim for claim in CLAIMS}
Answers = dict[tuple[str, str, str, str], Answer]  # by experiment, model, task and claim


def _answers(rows: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> Answers:
    """What rows say of the papers' claims; without model and task, over all of them."""
    groups = dict(stored_rows.grouped(rows, "experiment", "model", "task"))
    is_replication = request.get("kind") == REPLICATION
    measured = Measured(
        {key: tuple(group) for key, group in groups.items()},
        {},
        {facts["model"]: facts for facts in request["stacks"]} if is_replication else {},
        {facts["task"]: facts for facts in request["sizes"]} if is_replication else {},
        frozenset(request["whole"]) if is_replication else frozenset(),
    )
    single = {
        (*place, key): answer
        for place in groups
        if place[0] in FOLDERS
        for key, answer in answers_of(measured, *place).items()
        if (place[0], key) in _KNOWN
    }
    if not is_replication:
        return single
    exhibits = [e for e in PAPERS[request["paper"]].exhibits if e.name in request["exhibits"]]
    tasks = dict(request["paper_tasks"])
    shown = [(exhibit, measured.shown(exhibit, tasks)) for exhibit in exhibits]
    everyone = {e.name: measured.shown(replace(e, stack="any"), tasks) for e in exhibits}
    lines = of_all_exhibits(
        [(own, judgements(own, exhibit, everyone[exhibit.name])) for exhibit, own in shown],
        measured,
    )
    together = {
        (line.claim.experiment, line.model, line.task, line.claim.key): line.answer
        for line in lines
    }
    return together | {key: single[key] for key in single if key not in together}


RUNS = "results.md#runs"


def page(authors: str = "") -> str:
    """The tables of the papers by ``authors``, of all unless named, then the runs."""
    parts = []
    for paper, of_paper in _by_paper().items():
        if not paper.startswith(authors):
            continue
        parts.append(f"## {paper}\n\n{_counted(of_paper)}\n")
        for claim in (claim for claim in CLAIMS if claim.paper == paper):
            of_claim = [line for line in of_paper if line.claim == claim]
            parts += [_claim_part(claim, of_claim)] if of_claim else []
    return "\n".join(parts if authors else [*parts, _runs_part()])


def overview() -> str:
    """The generated part of docs/results.md: what each paper's page counts, then the runs."""
    counts = []
    for paper, lines in _by_paper().items():
        place = f"results-{paper.partition(' ')[0].lower()}.md"
        counts.append(f"- [{paper}]({place}): {_counted(lines)}")
    return "\n".join([*counts, "", _runs_part()])


def _by_paper() -> dict[str, list[Judged]]:
    """What is known of each paper that any run is about, in the papers' order."""
    # Papers share experiments: what two runs answer alike is listed once.
    lines = list(
        {
            (line.claim, line.answer, line.model, line.task): line
            for results in reversed(stored_rows.stored())
            for line in judged(results)
        }.values()
    )
    papers = {
        claim.paper: [ln for ln in lines if ln.claim.paper == claim.paper] for claim in CLAIMS
    }
    return {paper: of_paper for paper, of_paper in papers.items() if of_paper}


def _runs_part() -> str:
    return f"## Runs\n\n{_runs_table(stored_rows.stored())}"


HEADLINES = (
    ("nano-kao2021", "decoding", "inner depths", "", ""),
    ("nano-kao2021", "decoding", "control", "", ""),
    ("minilm-singh2020", "reinitialization", "last layers", "minilm", "sst2"),
    ("minilm-kovaleva2019", "initialization", "gain", "", ""),
    ("minilm-kovaleva2019", "head-disabling", "best head", "", ""),
)
"""Claims that the README shows: of a run, as all of its models and tasks answer them, or one."""


def headlines() -> str:
    """The README's table: what a paper says, and what was measured here."""
    known = {
        (line.results, line.claim.experiment, line.claim.key, line.model, line.task): line
        for results in stored_rows.stored()
        for line in judged(results)
    }
    rows = [["claim", "the paper", "here", "verdict"]]
    for line in (known[headline] for headline in HEADLINES):
        claim, answer = line.claim, line.answer
        what = f"{claim.what[:1].upper()}{claim.what[1:]}: {claim.words}"
        models, tasks = (", ".join(dict.fromkeys(each)) for each in zip(*line.pairs, strict=True))
        here = f"{answer.words} ({models} on {tasks})"
        rows.append([what, claim.paper, here, answer.verdict or "–"])
    return _table(rows)


PATTERNS = "minilm-kovaleva2019"


def pattern_shares() -> str:
    """Shares of attention patterns by task, as they are and corrected for the classifier."""
    results = stored_rows.read(stored_rows.STORED / f"{PATTERNS}.parquet")
    rows = [row for row in results.rows if row["experiment"] == "attention-patterns"]
    lines = [["task", "examples", "", *SHORT]]
    for task, own in stored_rows.grouped(rows, "task"):
        whole = of_all_maps(own)
        n = next(iter(whole.values()))["n"]
        ends = (("share", "low", "high"), ("corrected", "corrected_low", "corrected_high"))
        for kind, columns in zip(("classified", "corrected"), ends, strict=True):
            shares = [
                with_interval(whole[name], *columns) if name in whole else "–" for name in SHORT
            ]
            lines.append([task, f"{n:,}", kind, *shares] if kind == "classified" else
                         ["", "", kind, *shares])  # fmt: skip
    return _table(lines)


def _counted(lines: Sequence[Judged]) -> str:
    verdicts = [line.answer.verdict for line in lines]
    counts = {word: verdicts.count(word) for word in get_args(Verdict)}
    told = ", ".join(f"{word}: {n}" for word, n in counts.items())
    return f"{len(lines)} answers ({told}, no verdict: {verdicts.count(None)})."


def _claim_part(claim: Claim, lines: Sequence[Judged]) -> str:
    """A claim: what the paper says, and a line for each model and task."""
    rows = [["model", "task", "measured", "interval", "verdict", "n", "seeds", "run"]]
    for line in lines:
        answer = line.answer
        rows.append(
            [
                line.model or "together", line.task or "–", answer.words, answer.interval or "–",
                answer.verdict or "–", "–" if line.n is None else f"{line.n:,}",
                str(len(line.seeds) or "–"), f"[{line.results}]({RUNS})",
            ]
        )  # fmt: skip
    noted = f" ({claim.note})" if claim.note else ""
    says = f"{claim.paper}, {claim.place}: {claim.words}{noted}."
    return f"### {claim.what[:1].upper()}{claim.what[1:]}\n\n{says}\n\n{_table(rows)}"


def _runs_table(every: Sequence[StoredResults]) -> str:
    rows = [["run", "command", "recomputed by", "rows", "hash of the rows", "model, data"]]
    for one in every:
        content = one.facts["content"]
        hashes = [
            value[:12]
            for key in ("model", "data", "dev_data")
            for value in content.get(key, "").split(", ")
            if value
        ]
        rows.append(
            [
                one.name, f"`{one.command}`", f"`python docs/results.py show {one.name}`",
                f"{len(one.rows):,}", f"`{one.hash}`", " ".join(f"`{h}`" for h in hashes),
            ]
        )  # fmt: skip
    return _table(rows)


def _table(rows: list[list[str]]) -> str:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def show(name: str) -> Iterator[str]:
    """The claims of one run, recomputed from its committed rows."""
    path = stored_rows.STORED / f"{name}.parquet"
    if not path.exists():
        known = ", ".join(file.stem for file in sorted(stored_rows.STORED.glob("*.parquet")))
        raise SystemExit(f"no rows are called {name!r}; there are {known or 'none'}")
    results = stored_rows.read(path)
    yield f"{results.command}\n{len(results.rows):,} rows, hash {results.hash}"
    for line in judged(results):
        about = " on ".join(filter(None, (line.model, line.task))) or "together"
        yield f"{line.claim.what} ({about}): {line.answer}"


def main(arguments: Sequence[str]) -> None:
    """Store a run's rows, or show what stored ones say."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    storing = commands.add_parser("store", help="keep the rows of a run")
    storing.add_argument("run", type=Path)
    storing.add_argument("name")
    storing.add_argument("--command", required=True, help="what was typed to get them")
    commands.add_parser("show", help="its claims and verdicts").add_argument("name")
    given = parser.parse_args(arguments)
    if given.what == "store":
        kept = store(given.run, given.name, given.command)
        print(f"{len(kept.rows):,} rows of {given.run} are in docs/results/{kept.name}.parquet")
    print("\n".join(show(given.name)))


if __name__ == "__main__":
    main(sys.argv[1:])
