"""The page of a trim, and the wish that its recommendation was chosen by; no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from microtome import files
from microtome.experiments.field.trim.choice import Wish
from microtome.experiments.field.trim.headline import headline
from microtome.experiments.field.trim.plan import TRIM
from microtome.experiments.field.trim.report import finding, frontier, sentence
from microtome.report.page import Page
from microtome.runs import RunResult
from microtome.study import page_of, stored_parts
from microtome.views import Step

CHOICE = "choice.json"
"""In the run's folder: the wish isn't part of the run's request, since it changes no trial."""
TOLD = "told"


def store_choice(
    folder: Path, wish: Wish, out: Path | None, vocabulary: Path | None, told: str = ""
) -> None:
    """Remember what was wished for, where the chosen model is, and what is ``told`` of it."""
    files.write_json(folder / CHOICE, {**_choice(wish, out, vocabulary), TOLD: told})


def is_stored_choice(folder: Path, wish: Wish, out: Path | None, vocabulary: Path | None) -> bool:
    """Whether ``out`` is where this very wish was stored: then what is there is its model."""
    stored = dict(files.read_json(folder / CHOICE) or {})
    stored.pop(TOLD, None)  # what came of the wish, not the wish
    return stored == _choice(wish, out, vocabulary)


def _choice(wish: Wish, out: Path | None, vocabulary: Path | None) -> dict[str, Any]:
    places = {"out": out, "vocabulary": vocabulary}
    return {**asdict(wish), **{k: None if p is None else str(p) for k, p in places.items()}}


def trim_page(result: RunResult) -> Page:
    """The page of a stored trim, by the wish that was stored with it."""
    choice: Mapping[str, Any] = files.read_json(result.folder / CHOICE) or {}
    wish = Wish(choice["lose"], choice["speed"]) if choice else Wish()
    parts = stored_parts(result)
    page = page_of(result, parts, what="Trim")
    if not all(part.status == "done" for part in parts):
        return page
    rows = next(part.rows for part in parts if part.experiment.name == TRIM)
    saved = choice.get("out")
    sections = tuple(
        replace(each, finding=finding(rows, wish)) if each.name == TRIM else each
        for each in page.sections
    )
    page = replace(
        page, headline=headline(rows, wish), picture=frontier(rows, wish), sections=sections
    )
    if saved is None:
        return replace(page, answers=(sentence(rows, wish),))
    step = Step("Load it as you load the base; its certificate and card are in the folder:", saved)
    first = f"{sentence(rows, wish)} Saved in {saved}. {choice.get(TOLD, '')}".strip()
    return replace(page, answers=(first,), steps=(*page.steps, step))
