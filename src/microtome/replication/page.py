"""The page of a replication: the paper's exhibits in its order, and what became of its claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from microtome.experiments.kit.wording import counted, listed
from microtome.papers.answer import CANT_TELL, DOESNT_HOLD, HOLDS, Verdict
from microtome.papers.claims import Claim
from microtome.papers.comparison import Reported, of_figure
from microtome.papers.exhibit import Exhibit, Paper
from microtome.papers.exhibits import PAPERS
from microtome.papers.printed_numbers import matching
from microtome.replication.answers import Judgement, judgements, of_all_exhibits
from microtome.replication.drawings import DRAWINGS
from microtome.replication.measured import Measured, measured_by, name_of
from microtome.report.page import Page, Picture, Section, Status, first_picture
from microtome.runs import RunResult
from microtome.views import Bars, Card, Cell, Curve, Headline, Table, TidyRow, View

_WORDS: tuple[Verdict, ...] = (HOLDS, DOESNT_HOLD, CANT_TELL)


@dataclass(frozen=True)
class Replicated:
    """An exhibit with what was measured for it."""

    exhibit: Exhibit
    measured: Measured
    views: tuple[View, ...]
    judgements: tuple[Judgement, ...]
    why_not: str = ""

    @property
    def problems(self) -> list[str]:
        """What kept trials of this exhibit from their numbers."""
        shown = self.measured
        return list(
            dict.fromkeys(
                problem
                for (experiment, model, task), found in shown.problems.items()
                if experiment in self.exhibit.experiments
                and model in shown.stacks
                and task in (*shown.sizes, "")
                for problem in found
            )
        )

    @property
    def status(self) -> Status:
        """``done``, ``failed`` where a trial did, ``left out`` where nothing can be shown."""
        if self.why_not:
            return "left out"
        return "failed" if self.problems else "done"

    @property
    def rows(self) -> tuple[TidyRow, ...]:
        """The rows that it shows."""
        return tuple(
            row
            for experiment in self.exhibit.experiments
            for _, _, rows in self.measured.pairs(experiment)
            for row in rows
        )

    def as_json(self) -> dict[str, Any]:
        """As ``replicate --json`` prints it."""
        return {
            "name": self.exhibit.name,
            "title": self.exhibit.title,
            "status": self.status,
            "experiment": ", ".join(self.exhibit.experiments),
            "models": self.measured.models,
            "tasks": self.measured.tasks,
            "why_not": self.why_not,
            "claims": [line.as_json() for line in self.judgements],
        }

    def section(self, paper: Paper) -> Section:
        """As the report shows it, with the paper's printed numbers where they are of the same."""
        note = self.exhibit.note
        notes = [f"{note[0].upper()}{note[1:]}."] if note else []
        if others := [task for task in self.measured.tasks if task not in self.exhibit.shown_tasks]:
            papers = listed(self.exhibit.shown_tasks)
            notes.insert(0, f"Measured on {', '.join(others)}, in the place of {papers}.")
        return Section(
            name=self.exhibit.name,
            question=f"{self.exhibit.name}: {self.exhibit.title}",
            source=paper.source,
            status=self.status,
            finding=" ".join([*_counts(self.judgements), *notes]),
            views=self.views,
            reported=(*(line.reported() for line in self.judgements), *self._printed(paper)),
            rows=self.rows,
            problem=self.why_not or "; ".join(self.problems),
        )

    def _printed(self, paper: Paper) -> Iterator[Reported]:
        """The paper's numbers of this exhibit: of the same model, task and whole split alone."""
        for experiment in self.exhibit.experiments:
            for model, task, rows in self.measured.pairs(experiment):
                if task not in self.measured.whole:
                    continue
                for figure in matching(model, task, experiment):
                    shown_in = (figure.exhibit or figure.place).casefold()
                    if figure.paper == paper.source and shown_in == self.exhibit.name.casefold():
                        yield of_figure(figure, rows)


def exhibits_of(result: RunResult) -> list[Replicated]:
    """Every exhibit that a run was asked for, drawn from its records alone."""
    request, measured = result.request, measured_by(result)
    tasks = dict(request["paper_tasks"])
    return [
        _replicated(exhibit, measured, tasks)
        for exhibit in PAPERS[request["paper"]].exhibits
        if exhibit.name in request["exhibits"]
    ]


def _replicated(exhibit: Exhibit, measured: Measured, tasks: Mapping[str, str]) -> Replicated:
    shown = measured.shown(exhibit, tasks)
    if why_not := _why_not(exhibit, shown):
        return Replicated(exhibit, shown, (), (), why_not)
    views = DRAWINGS[exhibit.drawing](shown, exhibit)
    if not views:
        missing = [name for name in exhibit.experiments if not any(shown.pairs(name))]
        reason = f"it has no rows of {', '.join(missing)}" if missing else "it shows larger models"
        return Replicated(exhibit, shown, (), (), reason)
    everyone = measured.shown(replace(exhibit, stack="any"), tasks)
    named = tuple(_named(view, exhibit) for view in views)
    return Replicated(exhibit, shown, named, tuple(judgements(shown, exhibit, everyone)))


def _named(view: View, exhibit: Exhibit) -> View:
    """A figure with the paper's name for it: its finding is its title, and it may be in front."""
    if not isinstance(view, Picture):
        return view
    return replace(view, title=f"{exhibit.name}: {view.title}")


def _why_not(exhibit: Exhibit, shown: Measured) -> str:
    """Why an exhibit can't be shown; empty where it can."""
    if exhibit.why_not:
        return exhibit.why_not
    if not shown.models:
        return f"it is about models with {exhibit.stack} layers, and none is among these"
    if exhibit.shown_tasks and not shown.tasks:
        return f"it needs {' or '.join(exhibit.shown_tasks)}, which isn't here"
    missing = [name for name in exhibit.experiments if not any(shown.pairs(name))]
    if missing and len(missing) == len(exhibit.experiments):
        return f"it has no rows of {', '.join(missing)} yet, or they can't be measured on these"
    return ""


def _counts(lines: Sequence[Judgement]) -> list[str]:
    """How many verdicts there are of each kind, in a sentence; none without verdicts."""
    counts = _by_verdict(lines)
    if not counts:
        return []
    told = ", ".join(f"{n} × {word}" for word, n in counts.items())
    return [f"{counted(sum(counts.values()), 'verdict')}: {told}."]


def _by_verdict(lines: Sequence[Judgement]) -> dict[Verdict, int]:
    counts = Counter(line.answer.verdict for line in lines if line.answer.verdict)
    return {word: counts[word] for word in _WORDS if counts[word]}


def replication_page(result: RunResult) -> Page:
    """The page of a replication, from its records alone."""
    paper = PAPERS[result.request["paper"]]
    exhibits = exhibits_of(result)
    models = [name_of(model) for model in result.request["models"]]
    shown = [(each.measured, each.judgements) for each in exhibits]
    lines = of_all_exhibits(shown, measured_by(result))
    tasks = result.request["tasks"]
    made = [each for each in exhibits if each.status != "left out"]
    answer = (
        f"{len(made)} of {len(exhibits)} exhibits, at the scale {result.request['scale']}."
        f" {''.join(_counts(lines)) or 'No claim is judged.'}"
    )
    return Page(
        title=f"{paper.source}, replicated",
        model=", ".join(models),
        task=", ".join(tasks),
        answers=(f'{paper.source}: "{paper.title}".', answer),
        sections=tuple(each.section(paper) for each in exhibits),
        front=(_verdicts(lines),) if lines else (),
        notes=result.notes,
        facts=result.facts,
        headline=_headline(made, lines, request_of=result.request),
        picture=_main_figure(made),
    )


def _headline(
    made: Sequence[Replicated], lines: Sequence[Judgement], *, request_of: Mapping[str, Any]
) -> Headline:
    """How many verdicts of each kind there are, of how many exhibits, models and tasks."""
    counts, n_exhibits = _by_verdict(lines), len(request_of["exhibits"])
    judged = sum(counts.values())
    decided = judged - counts.get(CANT_TELL, 0)
    if not judged:
        first = f"{len(made)} of {n_exhibits} exhibits are drawn; no claim is judged on these rows."
    elif not decided and not any(line.answer.learnt for line in lines if line.answer.verdict):
        first = (
            "No model has learnt its task here, so none of the paper's claims is decided. Train on"
            " more: --fraction (or --fractions), --epochs, --learning-rate."
        )
    elif not decided:
        first = "These rows can't decide on any of the paper's claims."
    else:
        n_holds, n_open = counts.get(HOLDS, 0), judged - decided
        said = [f"{n_holds or 'none'} {'hold' if n_holds > 1 else 'holds'}"]
        if decided > n_holds:
            said.append(f"{decided - n_holds} {'do' if decided - n_holds > 1 else 'does'}n't")
        if n_open:
            said.append(f"{n_open} can't be decided")
        first = f"Of {counted(judged, 'check')} of the paper's claims, {listed(said)}."
    cards = [
        *(Card(word, f"{counts.get(word, 0)} of {judged}") for word in _WORDS if judged),
        Card("exhibits", f"{len(made)} of {n_exhibits}"),
        Card("scale", request_of["scale"]),
    ]
    if not judged:
        cards.append(Card("models", str(len(request_of["models"]))))
    sure = 'A verdict is "can\'t tell" where an interval leaves both answers open.'
    if request_of["scale"] != "paper":
        sure += (
            f" The scale {request_of['scale']} has fewer rows, seeds and settings than the paper,"
            " so its numbers aren't the paper's."
        )
    return Headline(first, tuple(cards), sure)


def _main_figure(made: Sequence[Replicated]) -> Picture | None:
    """The first curve or bars of the paper, else its first figure; of one without figures nothing.

    Several maps in one figure are more than a front page has room for.
    """
    drawn = [picture for each in made if (picture := first_picture(each.views)) is not None]
    fit = (picture for picture in drawn if isinstance(picture, Curve | Bars))
    return next(fit, drawn[0] if drawn else None)


def _verdicts(lines: Sequence[Judgement]) -> Table:
    """A line per claim: together, where that has a rule, and how often each verdict is given."""
    columns = ("claim", "paper", "together", *_WORDS)
    by_claim: dict[Claim, list[Judgement]] = {}
    for line in lines:
        by_claim.setdefault(line.claim, []).append(line)
    rows: list[tuple[Cell, ...]] = []
    for claim, own in by_claim.items():
        pooled = next((line.answer.verdict for line in own if not line.model), None)
        counts = _by_verdict([line for line in own if line.model])
        cells = (counts.get(word, 0) for word in _WORDS)
        rows.append((claim.what, claim.words, pooled, *cells))
    return Table("The paper's claims, on how many models and tasks", columns, tuple(rows))
