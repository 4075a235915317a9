"""No paper of ours claims anything of patched states."""

from __future__ import annotations

from collections.abc import Mapping

from microtome.papers.answer import Answer
from microtome.views import TidyRows


def claims(rows: TidyRows) -> Mapping[str, Answer]:
    """Nothing to answer."""
    return {}
