"""A drawing as a PDF file, through matplotlib (extra ``pdf``): the same marks, the same places."""

from __future__ import annotations

import importlib.util
import io
import warnings
from typing import Any

from microtome.errors import MissingExtra
from microtome.report.drawing import PIXELS_PER_INCH, Circle, Drawing, Label, Mark
from microtome.report.palette import LIGHT, PENS, Pen

POINTS_PER_PIXEL = 72 / PIXELS_PER_INCH
# Labels are text, never formulas: a "$" in a model's name is a dollar sign.
SETTINGS: dict[Any, Any] = {
    "text.parse_math": False,
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
}
NO_DATES: dict[str, Any] = {"Creator": "Microtome", "Producer": None, "CreationDate": None}


def can_write_pdf() -> bool:
    """Whether matplotlib is installed; a report without PDF files is still complete."""
    return importlib.util.find_spec("matplotlib") is not None


def pdf_file(drawing: Drawing) -> bytes:
    """The bytes of a PDF; the same drawing gives the same bytes."""
    try:
        import matplotlib
        from matplotlib.backends.backend_pdf import FigureCanvasPdf
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtra.named("matplotlib", "pdf") from error

    inches = drawing.width / PIXELS_PER_INCH, drawing.height / PIXELS_PER_INCH
    out = io.BytesIO()
    with matplotlib.rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # emoji become boxes in the PDF
        figure = Figure(figsize=inches)
        FigureCanvasPdf(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
        axes.set_axis_off()
        for mark in drawing.marks:
            _add(axes, mark)
        figure.savefig(out, format="pdf", metadata=NO_DATES)
    return out.getvalue()


def _dashes(pen: Pen) -> Any:  # noqa: ANN401  # matplotlib's "-", or an offset and lengths
    """Lengths are in widths of the line, as matplotlib wants them."""
    if pen.dashes:
        return 0, tuple(length / pen.width for length in pen.dashes)
    return (0, (3, 2)) if pen.dashed else (0, (1, 2)) if pen.dotted else "-"


def _add(axes: Any, mark: Mark) -> None:  # noqa: ANN401  # matplotlib is untyped at this seam
    from matplotlib.patches import Circle as Round
    from matplotlib.patches import Polygon

    pen = PENS[mark.pen]
    if isinstance(mark, Label):
        axes.text(
            mark.x, mark.y, mark.text, color=LIGHT[pen.fill],
            fontsize=0.92 * pen.size * POINTS_PER_PIXEL,  # DejaVu runs wide
            ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor], va="baseline",
            fontweight="bold" if pen.bold else "normal",
        )  # fmt: skip
        return
    paint = {
        "facecolor": (LIGHT[pen.fill], pen.opacity) if pen.fill else "none",
        "edgecolor": LIGHT[pen.stroke] if pen.stroke else "none",
        "linewidth": pen.width * POINTS_PER_PIXEL if pen.stroke else 0,
        "linestyle": _dashes(pen),
    }
    if isinstance(mark, Circle):
        axes.add_patch(Round((mark.x, mark.y), mark.radius, **paint))
    else:
        axes.add_patch(Polygon(mark.points, closed=mark.closed, joinstyle="round", **paint))
