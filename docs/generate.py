"""Write the generated parts of the docs; `--check` tells whether they are up to date.

A generated part is between `<!-- generated: NAME -->` and `<!-- end -->` in a page.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache, partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DOCS = Path(__file__).parent
# The code of this checkout, whichever is installed.
sys.path[:0] = [str(DOCS.parent / "src"), str(DOCS.parent / "tests")]

PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
COMMANDS = (
    "examine",
    "trim",
    "replicate",
    "decode",
    "operate",
    "finetune",
    "evaluate",
    "compare",
    "explore",
    "run",
    "report",
    "verify",
    "pretrain",
    "list",
    "cache",
)

# One probe per promise of the edits page: three layers, four heads.
PROBES = (
    "extend(3)",
    "extend(4)",
    "extend(6)",
    "duplicate(1)",
    "duplicate(0)",
    "repeat(1-2)",
    "remove(2)",
    "keep(0-1)",
    "order(0, 2, 1)",
    "reinit(top=1, seed=0)",
    "reinit(top=3, seed=0)",
    "randomize(seed=0)",
    "disable(1.2)",
    "disable(*.2)",
    "disable(1.2, how=zero)",
    "unshare()",
)


def families() -> str:
    """What each family can do, tried: every probe is applied and certified, or refused."""
    from support.tiny import FAMILY_TYPES

    rows = [["edit (3 layers, 4 heads)", *(f"`{kind}`" for kind in FAMILY_TYPES)]]
    refusals: dict[str, str] = {}
    for text in PROBES:
        cells = []
        for kind in FAMILY_TYPES:
            answer = _tried(kind, text)
            if answer:
                refusals.setdefault(answer, f"`{text}` on `{kind}`")
            cells.append("–" if answer else "proven")
        rows.append([f"`{text}`", *cells])
    notes = "\n".join(f"- {where}: {reason}" for reason, where in refusals.items())
    return f"{_table(rows)}\nHeads: {_heads()}.\n\nRefused (–):\n\n{notes}\n"


def _heads() -> str:
    """The heads, and the families that lack one."""
    from support.tiny import FAMILY_TYPES, HEADS, KINDS_AND_HEADS

    names = {"mlm": "masked LM", "question-answering": "question answering", "none": "no head"}
    told = []
    for head in HEADS:
        lacking = [f"`{kind}`" for kind in FAMILY_TYPES if (kind, head) not in KINDS_AND_HEADS]
        told.append(names.get(head, head) + (f" (not {', '.join(lacking)})" if lacking else ""))
    return ", ".join(told)


def _tried(kind: str, text: str) -> str:
    """The refusal in words, or nothing where the edit went through and was certified."""
    from microtome.edits import parse
    from microtome.errors import EditError
    from microtome.surgery import certify_weights

    model = _tiny_model(kind)
    try:
        edited = parse(text)(model)
    except EditError as error:
        return str(error)
    certify_weights(parse(text), model, edited).require()
    return ""


@cache
def _tiny_model(kind: str) -> PreTrainedModel:
    """One for all probes: an edit gives a new model."""
    from support.tiny import tiny_model

    return tiny_model(kind)


def commands() -> str:
    """The help of every command, as it is printed; that of ``run`` with every experiment's."""
    return "\n".join(
        f"## {name}\n\n```\n{_help(name)}\n```\n{experiments() if name == 'run' else ''}"
        for name in _known_commands()
    )


def experiments() -> str:
    """What ``run EXPERIMENT --help`` adds, for each experiment."""
    from microtome.cli.experiment_options import experiment_help
    from microtome.experiments import all_experiments

    texts = "\n\n".join(experiment_help(one.name) for one in all_experiments())
    return (
        "\n### Options of one experiment\n\n`microtome run EXPERIMENT --help` also prints these."
        f"\n\n```\n{texts}\n```\n"
    )


def _known_commands() -> list[str]:
    listed = _help("")
    return [name for name in COMMANDS if re.search(rf"^  {name}\b", listed, re.MULTILINE)]


def _help(command: str) -> str:
    """The help, as it is printed 100 columns wide where there is no terminal."""
    from microtome.cli import run

    os.environ |= {"COLUMNS": "100", "TERM": "dumb"}
    with redirect_stdout(StringIO()) as printed:
        code = run([*command.split(), "--help"])
    assert code == 0, f"{command} --help: expected the exit code 0, got {code}"
    return printed.getvalue().strip()


def tasks() -> str:
    """The tasks, their sizes and metrics."""
    from microtome.tasks import all_tasks, describe

    rows = [["task", "kind", "metrics (first: primary)", "splits"]]
    for item in map(describe, all_tasks()):
        metrics = [item["primary"], *(m for m in item["metrics"] if m != item["primary"])]
        splits = ", ".join(f"{name} {size:,}" for name, size in item["splits"].items() if size)
        rows.append([f"`{item['name']}`", item["kind"], ", ".join(metrics), splits])
    return _table(rows)


def checkpoints() -> str:
    """Published checkpoints, with the family and job that each is taken for."""
    from microtome.models import known_checkpoints

    rows = [["checkpoint", "class", "family", "job"]]
    for item in known_checkpoints():
        job = f"{item['job']}, {item['pooling']} pooling" if "pooling" in item else item["job"]
        rows.append([f"`{item['name']}`", f"`{item['architecture']}`", item["family"], job])
    return _table(rows)


# A head, its config, and an embedded task that such a model is scored on.
JOBS: dict[str, tuple[str, dict[str, object], str]] = {
    "classification": ("classification", {"num_labels": 2}, "micro-sentiment"),
    "regression": (
        "classification", {"num_labels": 1, "problem_type": "regression"}, "micro-similarity",
    ),
    "multilabel": (
        "classification",
        {"num_labels": 4, "problem_type": "multi_label_classification"}, "micro-topics",
    ),
    "reranking": (
        "classification", {"num_labels": 1, "sentence_transformers": {}}, "micro-reranking",
    ),
    "tokens": ("token-classification", {"num_labels": 10}, "micro-tagging"),
    "spans": ("question-answering", {}, "micro-squad"),
    "embedding": ("none", {}, "micro-retrieval"),
    "mlm": ("mlm", {}, "plain text"),
}  # fmt: skip


def jobs() -> str:
    """Which family does which job, tried: a tiny model is recognised and scored on its task."""
    from support.tiny import FAMILY_TYPES, NO_ANSWERS

    rows = [["job", "scored on", *(f"`{kind}`" for kind in FAMILY_TYPES)]]
    with TemporaryDirectory() as folder:
        text = Path(folder) / "plain.txt"
        text.write_text("the cat sees a big red dog\nshe never sleeps in the old house\n")
        for job, (_, _, task) in JOBS.items():
            lacking = NO_ANSWERS if job == "spans" else ()
            cells = [
                "–" if kind in lacking else _scored(kind, job, Path(folder) / f"{kind}-{job}", text)
                for kind in FAMILY_TYPES
            ]
            rows.append([f"`{job}`", task if job == "mlm" else f"`{task}`", *cells])
    return f"{_table(rows)}\n–: transformers has no such class.\n"


def _scored(kind: str, job: str, folder: Path, text: Path) -> str:
    """Save a tiny model, load it by its folder, and score it on a few rows."""
    from microtome.models import job_of, load, load_tokenizer
    from microtome.observe.evaluation import evaluate
    from microtome.tasks import DataSpec, open_data
    from microtome.tasks.embedded import ROLE_TAGS
    from support.tiny import save_tiny

    head, config, task = JOBS[job]
    if job == "tokens":
        config = {"id2label": dict(enumerate(ROLE_TAGS))}
    save_tiny(folder, kind, head, with_tokenizer=True, **config)
    model = load(folder, pooling="mean" if job == "embedding" else None)
    found = job_of(model)
    assert found == job, f"{kind}: expected the job {job}, got {found}"
    data = open_data(DataSpec(path=text) if job == "mlm" else DataSpec(task)).limit(4)
    evaluate(model, load_tokenizer(folder), data)
    return "yes"


def experiment_table() -> str:
    """The experiments, in the order of the papers."""
    from microtome.experiments import all_experiments

    rows = [["experiment", "question", "source"]]
    rows += [[f"`{one.name}`", one.question, one.section] for one in all_experiments()]
    return _table(rows)


def results(authors: str = "") -> str:
    """The papers' claims, judged from the rows in docs/results; without authors, their counts."""
    import results as stored_results

    return stored_results.page(authors) if authors else stored_results.overview()


def predictors() -> str:
    """What cheap scores tell of cuts, from the runs of predictors in docs/results."""
    import stored_predictors

    return stored_predictors.tables()


def headlines() -> str:
    """Five of these claims, for the README."""
    import results as stored_results

    return stored_results.headlines()


def pattern_shares() -> str:
    """Shares of attention patterns on four tasks, from stored rows."""
    import results as stored_results

    return stored_results.pattern_shares()


def python_reference() -> str:
    """The public names, from their docstrings."""
    import python_reference as reference

    return reference.page()


PARTS: dict[str, Callable[[], str]] = {
    "families": families,
    "commands": commands,
    "tasks": tasks,
    "checkpoints": checkpoints,
    "jobs": jobs,
    "experiments": experiment_table,
    "results": results,
    "results-kao": partial(results, "Kao"),
    "results-singh": partial(results, "Singh"),
    "results-kovaleva": partial(results, "Kovaleva"),
    "results-field": predictors,
    "headlines": headlines,
    "pattern-shares": pattern_shares,
    "python": python_reference,
}


def _table(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def generated(page: str) -> str:
    """The page with its generated parts written anew."""
    return PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n{found[3]}", page)


def main() -> int:
    """Write all pages, or check them."""
    stale = []
    for path in [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]:
        page = path.read_text(encoding="utf-8")
        new = generated(page)
        if new != page:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    print("out of date: " + ", ".join(stale) if stale else "the generated parts are up to date")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
