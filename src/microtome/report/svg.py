"""A drawing as SVG: inside the page, or as a file."""

from __future__ import annotations

from html import escape

from microtome.report.drawing import PIXELS_PER_INCH, Circle, Drawing, Label, Mark
from microtome.report.palette import LIGHT, pen_rules

FONTS = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Noto Sans",sans-serif'


def inline_svg(drawing: Drawing, *, kind: str) -> str:
    """As part of a page; its style sheet has the pens."""
    size = f'width="{_n(drawing.width)}" height="{_n(drawing.height)}"'
    view = f'viewBox="0 0 {_n(drawing.width)} {_n(drawing.height)}"'
    label = f'role="img" aria-label="{escape(drawing.summary)}"'
    return f'<svg class="{kind}" {size} {view} {label}>{_marks(drawing)}</svg>'


def svg_file(drawing: Drawing, *, in_inches: bool = False) -> str:
    """As a file: the pens come along, on white. Its size may be in inches, as print wants it."""
    width, height = (
        f"{side / PIXELS_PER_INCH:.4g}in" if in_inches else _n(side)
        for side in (drawing.width, drawing.height)
    )
    size = f'width="{width}" height="{height}"'
    view = f'viewBox="0 0 {_n(drawing.width)} {_n(drawing.height)}"'
    used = {mark.pen for mark in drawing.marks}
    rules = "".join(f"{rule}}}" for rule in pen_rules("", LIGHT).split("}") if _is_used(rule, used))
    style = f"text{{font:12px {FONTS}}}text,[class$=t]{{pointer-events:none}}{rules}"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" {size}'
        f" {view}><title>{escape(drawing.summary)}</title><style>{style}</style>"
        f'<rect width="100%" height="100%" fill="#fff"/>{_marks(drawing)}</svg>\n'
    )


def _is_used(rule: str, used: set[str]) -> bool:
    return rule.split("{")[0].strip().removeprefix(".") in used


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _marks(drawing: Drawing) -> str:
    return "".join(_mark(mark) for mark in drawing.marks)


def _mark(mark: Mark) -> str:
    if isinstance(mark, Label):
        anchor = "" if mark.anchor == "start" else f' text-anchor="{mark.anchor}"'
        place = f'x="{_n(mark.x)}" y="{_n(mark.y)}"'
        return f'<text class="{mark.pen}" {place}{anchor}>{escape(mark.text)}</text>'
    if isinstance(mark, Circle):
        place = f'cx="{_n(mark.x)}" cy="{_n(mark.y)}" r="{_n(mark.radius)}"'
        return _with_hint("circle", f'class="{mark.pen}" {place}', mark.hint)
    path = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in mark.points) + "Z" * mark.closed
    return _with_hint("path", f'class="{mark.pen}" d="{path}"', mark.hint)


def _with_hint(tag: str, attributes: str, hint: str) -> str:
    if not hint:
        return f"<{tag} {attributes}/>"
    return f"<{tag} {attributes}><title>{escape(hint)}</title></{tag}>"
