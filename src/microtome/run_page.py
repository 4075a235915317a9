"""The page of a run that isn't of our experiments: statuses, and rows by the names of trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from microtome.report.page import Page, Section
from microtome.runs import Record, RunResult
from microtome.views import Card, Cell, Headline, Table, TidyRow, table_of

MOST_ROWS = 200  # on the page; the CSV file next to it has all
WORDS = {"ok": "done", "blocked": "waiting for one that failed", "timeout": "stopped at its limit"}


def plain_page(result: RunResult) -> Page:
    """The page of any run, from its records alone: a section for every name of a trial."""
    groups: dict[str, list[Record]] = {}
    for record in result.records.values():
        groups.setdefault(record.name or record.function, []).append(record)
    statuses = Counter(
        WORDS.get(record.status, record.status) for record in result.records.values()
    )
    statuses["not run yet"] = result.n_trials - len(result.records)
    counts = ", ".join(f"{n:,} {status}" for status, n in statuses.items() if n)
    n_rows = sum(len(record.rows) for record in result.records.values())
    cards = (
        Card("trials done", f"{statuses['done']:,} of {result.n_trials:,}"),
        Card("rows", f"{n_rows:,}", "lines of results.parquet"),
        Card("kinds of trials", f"{len(groups):,}"),
    )
    model, task = (str(result.request.get(key) or "") for key in ("model", "task"))
    return Page(
        title=f"Run {result.folder.resolve().name}",
        model=model,
        task=task,
        answers=(f"{_counted(result.n_trials, 'trial')}: {counts}.",),
        sections=tuple(_section(name, records) for name, records in groups.items()),
        front=(_statuses(list(result.records.values())),),
        notes=result.notes,
        facts=result.facts,
        headline=Headline(f"{_counted(result.n_trials, 'trial')}: {counts}.", cards, ""),
    )


def _section(name: str, records: Sequence[Record]) -> Section:
    rows = [{**r.columns, **row} for r in records if r.ok for row in r.rows]
    failed = [record for record in records if not record.ok]
    found = f"{_counted(len(records) - len(failed), 'trial')} gave {_counted(len(rows), 'row')}."
    return Section(
        name=name,
        question=name,
        source="",
        status="failed" if failed else "done",
        finding=found,
        views=(_rows(rows),) if rows else (),
        rows=rows,
        problem="; ".join(dict.fromkeys(f"{r.title}: {r.error}" for r in failed)),
    )


def _rows(rows: Sequence[TidyRow]) -> Table:
    """The rows with every column that any of them has a value in."""
    columns = dict.fromkeys(key for row in rows for key, value in row.items() if value is not None)
    shown = [{key: _cell(value) for key, value in row.items()} for row in rows[:MOST_ROWS]]
    more = f" (the first {MOST_ROWS} of {len(rows):,})" if len(rows) > MOST_ROWS else ""
    return table_of(f"Rows{more}", shown, tuple(columns))


def _statuses(records: Sequence[Record]) -> Table:
    lines = tuple(
        (
            record.title,
            WORDS.get(record.status, record.status),
            round(record.seconds, 2),
            record.error,
        )
        for record in records
    )
    return Table("Trials", ("trial", "status", "seconds", "error"), lines)


def _cell(value: object) -> Cell:
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
