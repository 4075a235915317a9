"""The report of a run: one page that opens from disk, its figures as files, its data as CSV.

Pages and views come in as data; no model, no torch, no network.
"""

from microtome.report.drawing import SCREEN, Style, paper
from microtome.report.page import Page, Section
from microtome.report.writing import html_of, write, write_figures

__all__ = ["SCREEN", "Page", "Section", "Style", "html_of", "paper", "write", "write_figures"]
