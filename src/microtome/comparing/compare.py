"""From checkpoints and rows to scores, paired differences and times: one resumable run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microtome.comparing.page import COMPARISON, comparison_page
from microtome.errors import RunError
from microtome.experiments import Subject, subject_of
from microtome.experiments.field.comparison.measure import check_answers
from microtome.experiments.field.comparison.plan import check_distinct, plan
from microtome.experiments.field.comparison.report import differences_of, scores_of
from microtome.experiments.kit.learning import has_learnt
from microtome.models.source import short_names
from microtome.report import html_of, write
from microtome.report.page import Page
from microtome.runs import RunResult
from microtome.study import Workers, default_folder
from microtome.tasks.data_spec import DataSpec


@dataclass(frozen=True)
class ComparisonRequest:
    """A comparison that is about to run: the models, each with the rows as it is scored on them."""

    subjects: tuple[Subject, ...]
    folder: Path


@dataclass(frozen=True)
class Comparison:
    """A finished comparison: its run, its page, and where the page is."""

    result: RunResult
    page: Page
    report: Path

    @property
    def finding(self) -> str:
        """The answer in a few sentences."""
        return self.page.answers[0]

    def as_json(self) -> dict[str, Any]:
        """What ``compare --json`` prints; ``change`` is the score of ``b`` minus that of ``a``."""
        scores = scores_of(self.result.rows)
        return {
            "task": self.page.task,
            "primary": scores[0]["metric"],
            "models": [
                {
                    "model": row["model"], "score": row["value"], "low": row["value_low"],
                    "high": row["value_high"], "n": row["n"], "parameters": row["parameters"],
                    "layers": row["layers"], "latency_ms": row["latency_ms"],
                    "speed": row["speed"], "constant": row["constant_value"],
                    "has_learnt": has_learnt([row]), "scores": self._scores(row["model"]),
                }
                for row in scores
            ],
            "differences": [
                {
                    "a": row["compared_with"], "b": row["model"], "change": row["delta"],
                    "low": row["low"], "high": row["high"], "p": row["p"],
                    "p_holm": row["p_holm"], "n": row["n"],
                }
                for row in differences_of(self.result.rows)
            ],
            "unit": scores[0]["unit"],
            "run": str(self.result.folder),
            "report": str(self.report),
            "finding": self.finding,
            "notes": list(self.page.notes),
        }  # fmt: skip

    def _scores(self, model: str) -> dict[str, dict[str, float]]:
        return {
            row["metric"]: {
                "value": row["value"], "low": row["value_low"], "high": row["value_high"],
            }
            for row in self.result.rows
            if row["stage"] == "score" and row["model"] == model
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """In a notebook: the sentences, the figure and the tables."""
        return html_of(*self.page.front, title=self.page.title, texts=self.page.answers)


def request(models: Sequence[str], data: DataSpec, *, out: Path | None = None) -> ComparisonRequest:
    """What is to be compared; a model that can't answer the rows is refused by name.

        compare(request(["./a", "./b"], DataSpec(path="mine.csv"))).finding

    The run is stored in ``out``; without it, in a folder that the same models and task find again.
    """
    subjects = tuple(subject_of(model, data, trains=False) for model in models)
    check_distinct(subjects)
    for each in subjects:
        check_answers(each)
    named = "-vs-".join(Path(each.model).name for each in subjects)
    return ComparisonRequest(subjects, out or default_folder(named, subjects[0].task))


def compare(wanted: ComparisonRequest, *, workers: Workers | None = None) -> Comparison:
    """Run what isn't done yet, and write the report."""
    workers, first = workers or Workers(), wanted.subjects[0]
    asked = {
        "kind": COMPARISON,
        "models": [each.model for each in wanted.subjects],
        "task": first.task,
        "rows": first.data.as_json(),
    }
    notes = list(_notes(wanted.subjects))
    result = workers.run(plan(wanted.subjects), wanted.folder, asked, notes=notes)
    page = comparison_page(result)
    report = write(page, wanted.folder)
    if not result.ok:
        raise RunError(
            f"the comparison failed: {page.sections[0].problem or 'trials are missing'}",
            f"the run keeps what is done; see {wanted.folder}/records, then --retry-failed",
        )
    return Comparison(result, page, report)


def _notes(subjects: Sequence[Subject]) -> Iterator[str]:
    """What to know of the rows; a note that isn't every model's says whose it is."""
    names = short_names([each.model for each in subjects])
    for note in dict.fromkeys(note for each in subjects for note in each.notes):
        whose = [names[each.model] for each in subjects if note in each.notes]
        yield note if len(whose) == len(subjects) else f"{', '.join(whose)}: {note}"
