"""The colours and pens of all figures: one place, for the page, the SVG files and the PDF files.

Series are Okabe and Ito's colours, tuned for contrast on white and on dark. Heat maps are cividis
(sequential) or blue to orange with a neutral middle (diverging), cut into 21 steps so that a style
sheet can swap them in the dark.
"""

from __future__ import annotations

from dataclasses import dataclass

Rgb = tuple[float, float, float]
N_STEPS = 21
N_SERIES = 6

_LIGHT = {
    "ink": "#1b1f24", "soft": "#57606a", "grid": "#e3e6ea", "axis": "#8c959f", "paper": "#ffffff",
    "s0": "#0065a8", "s1": "#c24e00", "s2": "#007a58", "s3": "#a3427c", "s4": "#8a6a00",
    "s5": "#4b5563",
}  # fmt: skip
_DARK = {
    "ink": "#e8eaed", "soft": "#a8b0ba", "grid": "#32373e", "axis": "#6b737d", "paper": "#15181c",
    "s0": "#6cb6ff", "s1": "#ff9d5c", "s2": "#4fd1a5", "s3": "#f0a3cf", "s4": "#e3c04f",
    "s5": "#b6bec8",
}  # fmt: skip
_CIVIDIS = (
    "#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369",
    "#e1cc55", "#fee838",
)  # fmt: skip
_DIVERGING_LIGHT = ("#0b4a8f", "#4f8fc9", "#b5d3ec", "#f1f1ef", "#f8cfa2", "#e0863a", "#994400")
_DIVERGING_DARK = ("#8cc8ff", "#4f8fcc", "#2f567c", "#2a2e34", "#7a4e27", "#c97a37", "#ffbd7d")


# Of lines that lie over each other, or are printed without colour: the first is solid below.
DASHES: tuple[tuple[float, ...], ...] = (
    (), (10, 2.5), (8, 2, 2, 2), (15, 2), (6, 2, 2, 2, 2, 2), (3, 1.5),
)  # fmt: skip


def _rgb(color: str) -> Rgb:
    return tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))  # type: ignore[return-value]


def _hex(rgb: Rgb) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)


def _ramp(stops: tuple[str, ...]) -> list[str]:
    """The 21 steps of a colour map, linear between its stops."""
    colors = []
    for step in range(N_STEPS):
        place = step / (N_STEPS - 1) * (len(stops) - 1)
        i = min(int(place), len(stops) - 2)
        a, b, t = _rgb(stops[i]), _rgb(stops[i + 1]), place - i
        colors.append(_hex(tuple(x + t * (y - x) for x, y in zip(a, b, strict=True))))  # type: ignore[arg-type]
    return colors


def luminance(color: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """The contrast of two colours, 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def _readable_on(color: str) -> str:
    return max("#000000", "#ffffff", key=lambda ink: contrast(color, ink))


def _colors(named: dict[str, str], diverging: tuple[str, ...]) -> dict[str, str]:
    colors = dict(named)
    for name, stops in (("q", _CIVIDIS), ("d", diverging)):
        for step, color in enumerate(_ramp(stops)):
            colors[f"{name}{step}"] = color
            colors[f"{name}{step}t"] = _readable_on(color)
    return colors


LIGHT = _colors(_LIGHT, _DIVERGING_LIGHT)
DARK = _colors(_DARK, _DIVERGING_DARK)


@dataclass(frozen=True)
class Pen:
    """How a mark is drawn: names of colours, or "" for none."""

    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    dashed: bool = False
    dotted: bool = False
    dashes: tuple[float, ...] = ()  # lengths of strokes and gaps, in pixels
    opacity: float = 1.0
    size: float = 12.0  # of text
    bold: bool = False


def _pens() -> dict[str, Pen]:
    pens = {
        "label": Pen(fill="soft"),
        "name": Pen(fill="ink"),
        "strong": Pen(fill="ink", bold=True),
        "grid": Pen(stroke="grid"),
        "axis": Pen(stroke="axis"),
        "missing": Pen(stroke="axis", dashed=True, width=0.8),
        "sign": Pen(fill="ink"),
        "level": Pen(stroke="soft", width=1.8, dotted=True),
        "divider": Pen(stroke="soft", width=1.2, dashed=True),
        "hatch": Pen(stroke="paper", width=1.4),
        "halo": Pen(stroke="paper", width=4),
        "whisker": Pen(stroke="ink", width=1.4),
    }
    for i in range(N_SERIES):
        pens[f"line{i}"] = Pen(stroke=f"s{i}", width=2.2)
        pens[f"dash{i}"] = Pen(stroke=f"s{i}", width=2.0, dashes=DASHES[i])
        pens[f"error{i}"] = Pen(stroke=f"s{i}", width=1.2)
        pens[f"control{i}"] = Pen(stroke=f"s{i}", width=1.8, dashed=True)
        pens[f"band{i}"] = Pen(fill=f"s{i}", opacity=0.18)
        pens[f"level{i}"] = Pen(stroke=f"s{i}", width=1.8, dotted=True)
        pens[f"bar{i}"] = Pen(fill=f"s{i}")
        pens[f"dot{i}"] = Pen(fill=f"s{i}", stroke="paper", width=1)
    for kind in "qd":
        for step in range(N_STEPS):
            pens[f"{kind}{step}"] = Pen(fill=f"{kind}{step}")
            pens[f"{kind}{step}t"] = Pen(fill=f"{kind}{step}t", size=10.5)
    return pens


PENS = _pens()


def variables(colors: dict[str, str]) -> str:
    """Colours as custom properties of a style sheet."""
    return "".join(f"--{name}:{color};" for name, color in colors.items())


def pen_rules(scope: str, colors: dict[str, str] | None = None) -> str:
    """A rule for every pen; colours are custom properties unless they are given."""
    return "".join(f"{scope} .{name}{{{_rule(pen, colors)}}}" for name, pen in PENS.items())


def _rule(pen: Pen, colors: dict[str, str] | None) -> str:
    def color(name: str) -> str:
        return "none" if not name else colors[name] if colors else f"var(--{name})"

    parts = [f"fill:{color(pen.fill)}"]
    if pen.stroke:
        parts.append(f"stroke:{color(pen.stroke)};stroke-width:{pen.width:g}")
    if pen.dashed:
        parts.append("stroke-dasharray:5 4")
    if pen.dashes:
        parts.append(f"stroke-dasharray:{' '.join(f'{length:g}' for length in pen.dashes)}")
    if pen.dotted:
        parts.append("stroke-dasharray:1.5 3.5")
    if pen.opacity < 1:
        parts.append(f"fill-opacity:{pen.opacity:g}")
    if pen.size != 12:
        parts.append(f"font-size:{pen.size:g}px")
    if pen.bold:
        parts.append("font-weight:600")
    return ";".join(parts)
