"""The page of a comparison, from its records alone; no torch."""

from __future__ import annotations

from microtome.experiments.field.comparison import plan, report
from microtome.experiments.field.comparison.headline import headline
from microtome.models.source import short_names
from microtome.report.page import Page, Section, first_picture
from microtome.runs import RunResult

COMPARISON = "comparison"  # the kind of its runs


def comparison_page(result: RunResult) -> Page:
    """The page of a stored comparison; one that isn't finished says why."""
    names = list(short_names(result.request["models"]).values())
    task, rows = result.request["task"], result.rows if result.ok else []
    section = Section(
        name=COMPARISON,
        question=plan.QUESTION,
        source="",
        status="done" if rows else "failed" if result.failed else "not run yet",
        finding=report.finding(rows) if rows else "not measured",
        views=report.views(rows) if rows else (),
        method=plan.__doc__ or "",
        rows=rows,
        problem="; ".join(f"{record.title}: {record.error}" for record in result.failed),
    )
    return Page(
        title=f"Comparison of {', '.join(names[:-1])} and {names[-1]} on {task}",
        model=", ".join(names),
        task=task,
        answers=(section.finding,),
        sections=(section,),
        front=report.front(rows) if rows else (),
        notes=result.notes,
        facts=result.facts,
        headline=headline(rows) if rows else None,
        picture=first_picture(report.front(rows)) if rows else None,
    )
