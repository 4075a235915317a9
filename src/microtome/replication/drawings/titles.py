"""Titles of figures: what the experiments say for sure, over the models and tasks drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtome.experiments.kit.wording import listed
from microtome.views import Curve, Panels, View

MOST_FINDINGS = 2  # of different models or tasks, in one title


def joint(said: Mapping[str, str]) -> str:
    """One title of what is said of each model or task; those of which nothing is sure are left out.

    ``{"a": "Head 1 matters", "b": ""}`` gives "Head 1 matters (a)": a finding that isn't that of
    all is followed by whose it is. Empty where nothing is sure, or too much differs for a title.
    """
    by_finding: dict[str, list[str]] = {}
    for name, finding in said.items():
        if finding:
            by_finding.setdefault(finding, []).append(name)
    if len(by_finding) > MOST_FINDINGS:
        return ""
    return ". ".join(
        finding if len(names) == len(said) else f"{finding} ({listed(names)})"
        for finding, names in by_finding.items()
    )


def panels(
    title: str, curves: Sequence[Curve], said: Mapping[str, str] | None = None
) -> tuple[View, ...]:
    """Several curves as one picture, a single one as it is.

    ``said`` is by model or task, where the curves aren't one each.
    """
    if len(curves) < 2:
        return tuple(curves)
    own = {curve.title: curve.says for curve in curves}
    return (Panels(title, tuple(curves), says=joint(own if said is None else said)),)
