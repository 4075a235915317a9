"""Experiments on models and tasks: one resumable run, its findings, and its page."""

from microtome.study.page import joint_page, page_of
from microtome.study.parts import StudyPart, parts_of, stored_parts, subjects_of, tidy
from microtome.study.running import (
    Study,
    Wanted,
    Workers,
    default_folder,
    opened,
    study,
    write_report,
)

__all__ = [
    "Study",
    "StudyPart",
    "Wanted",
    "Workers",
    "default_folder",
    "joint_page",
    "opened",
    "page_of",
    "parts_of",
    "stored_parts",
    "study",
    "subjects_of",
    "tidy",
    "write_report",
]
