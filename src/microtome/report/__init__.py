"""The report of a run: one page that opens from disk, its figures as files, its data as CSV.

Pages and views come in as data; no model, no torch, no network.
"""

from __future__ import annotations

from microtome.report.comparison import reported
from microtome.report.page import Page, Reported, Section
from microtome.report.writing import html_of, write

__all__ = ["Page", "Reported", "Section", "html_of", "reported", "write"]
