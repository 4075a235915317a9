"""Makes the gallery: eight reports and a trim, their pictures, and docs/gallery.md.

    python tools/gallery.py [NAME …]

Runs go to build/gallery; one that has its report isn't made again, and one that was stopped
resumes. About ten minutes of one core for all. Two need shared data (MICROTOME_TEST_DATA); where
that is absent they are left out, and their pictures stay as they are.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PICTURES = DOCS / "gallery"
RUNS = ROOT / "build" / "gallery"
SHARED = Path(os.environ.get("MICROTOME_TEST_DATA", ROOT.parent / "shared"))
SHARED_NAME = "../shared"  # as the page shows it
COMMAND = (sys.executable, "-c", "from microtome.cli import main; main()")

WIDTH, MARGIN = 800, 24
COLOURS = 64
MOST_BYTES, MOST_HTML = 60_000, 400_000

CLASSIFIER = "finetune minilm --task micro-sentiment --fraction 1200 --epochs 2"
CLASSIFIER += " --learning-rate 1e-4 --out sentiment"
STSB = f"--task stsb --data {SHARED_NAME}/data/glue/STS-B"


@dataclass(frozen=True)
class Report:
    """A report of the gallery: what to look at in it, and the command that makes it.

    ``first`` is a command whose folder (its ``--out``) this one needs. The page of one that
    ``is_kept`` is committed.
    """

    name: str
    heading: str
    says: str
    command: str
    first: str = ""
    is_kept: bool = False


TRIM = f"trim minilm {STSB} --steps 60 --layers 2-4 --lose 2 --run trim --out minilm-small"
REPORTS = (
    Report(
        "trim", "A smaller embedder", "The frontier of speed and score: cut, healed on text"
        " without labels, and the cut that is recommended.", TRIM,
    ),
    Report(
        "examine", "An examination", "Which layers and heads a classifier needs, what may be cut,"
        " and which tokens come back at every depth, on one page.",
        "examine ./sentiment --task micro-sentiment --limit 300 --out examine",
        CLASSIFIER, is_kept=True,
    ),
    Report(
        "attention-patterns", "Attention patterns", "Five classes of attention maps, layer by"
        " layer, with a map of each further down.",
        "run attention-patterns --model minilm --task micro-entailment --pretrained --examples 200"
        " --out attention-patterns", is_kept=True,
    ),
    Report(
        "head-disabling", "Every head, disabled", "Each head of the model by itself, corrected for"
        " looking at all of them; a diamond is beyond chance.",
        "run head-disabling --model ./sentiment --task micro-sentiment --limit 300"
        " --out head-disabling", CLASSIFIER,
    ),
    Report(
        "decoding", "Every depth, decoded", "How many tokens the output layer reads back from each"
        " depth, with random blocks for comparison.",
        "run decoding --model nano-albert --task micro-sentiment --limit 150 --layers 12-24"
        " --out decoding",
    ),
    Report(
        "layer-removal", "Layers, removed", "Every subset of a small embedder's layers, priced in"
        " score and speed without any training.",
        "run layer-removal --model minilm --task micro-similarity --limit 300 --out layer-removal",
    ),
    Report(
        "patching", "Where the answer is", "States of a text moved into its counterpart: at which"
        " depth, and at which tokens, they bring the answer with them.",
        "run patching --model ./sentiment --task micro-sentiment --out patching", CLASSIFIER,
    ),
    Report(
        "compare", "Checkpoints, compared", "Three embedders on the same rows: score, parameters"
        " and milliseconds, and every pair of them.",
        f"compare minilm ./minilm-small {SHARED_NAME}/models/bge-small-en {STSB} --limit 600"
        " --out compare",
        TRIM,
    ),
    Report(
        "replication", "A paper, replicated", "Three figures of Kovaleva et al. 2019 in the paper's"
        " order, with a verdict on every claim.",
        'replicate kovaleva2019 --models minilm --only "Figure atttypes"'
        ' --only "Figure attentionbydataset" --only "Figure cosine" --fraction 1000 --epochs 3'
        " --learning-rate 1e-4 --out replication",
    ),
)  # fmt: skip


def run(command: str, *, into: str = "--out") -> None:
    """A `microtome` command in the folder of all runs; of a run that is there, its page alone."""
    arguments = shlex.split(command)
    name = arguments[arguments.index(into) + 1]
    if (RUNS / name / "config.json").exists():
        return
    if (RUNS / name / "report.html").exists():
        arguments = ["report", name]
    print(f"microtome {shlex.join(arguments)}", flush=True)
    arguments = [each.replace(SHARED_NAME, str(SHARED)) for each in arguments]
    subprocess.run([*COMMAND, *arguments, "--quiet"], cwd=RUNS, check=True)


def make(report: Report) -> bool:
    """The report's run, and what it needs; False where shared data isn't here."""
    commands = [each for each in (report.first, report.command) if each]
    if any(SHARED_NAME in each for each in commands) and not SHARED.is_dir():
        print(f"{report.name}: left out, {SHARED} isn't there")
        return False
    for command in commands:
        run(command, into="--run" if "--run " in command else "--out")
    return True


def page_of(report: Report) -> Path:
    """Where the run has its report."""
    return RUNS / report.name / "report.html"


def take_pictures(reports: list[Report]) -> None:
    """The top of every report, in few colours."""
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": WIDTH}, color_scheme="light")
        for report in reports:
            out = PICTURES / f"{report.name}.png"
            page.goto(page_of(report).as_uri())
            end = page.locator("#answers .cards").bounding_box()
            assert end is not None
            height = end["y"] + end["height"] + MARGIN
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
            page.screenshot(path=out, clip=clip, full_page=True)
            reduce(out)
        browser.close()


def reduce(picture: Path) -> None:
    """Fewer colours, the rare ones kept; too large a picture is refused."""
    image = Image.open(picture).convert("RGB")
    few = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)
    size = picture.stat().st_size
    print(f"{picture.relative_to(ROOT)}: {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"{picture} has {size:,} bytes, more than {MOST_BYTES:,}")


def keep(report: Report) -> None:
    """A copy of the report's page, by itself: without links to the files next to it."""
    html = page_of(report).read_text(encoding="utf-8")
    html = re.sub(r'<span class="files">.*?</span>', "", html)
    html = re.sub(r'<a href="(?:figures|tables)/[^"]*">(.*?)</a>', r"\1", html)
    if (size := len(html.encode())) > MOST_HTML:
        raise SystemExit(f"{report.name} has {size:,} bytes, more than {MOST_HTML:,}")
    (PICTURES / f"{report.name}.html").write_text(html, encoding="utf-8")


def answer_of(report: Report, text: str) -> str:
    """What the report says first; of one that isn't here, what the page has."""
    if not page_of(report).exists():
        found = re.search(rf"!\[(.*)\]\(gallery/{report.name}\.png\)", text)
        return found[1] if found else report.heading
    return lead_of(page_of(report).read_text(encoding="utf-8"))


def lead_of(html: str) -> str:
    """The largest text of a report's page."""
    lead = re.search(r'<h2 class="lead"><bdi>(.*?)</bdi></h2>', html, re.DOTALL)
    assert lead is not None
    return unescape(lead[1]).strip()


def gallery_page(text: str) -> str:
    """docs/gallery.md; ``text`` is what it was."""
    kept = " and ".join(_link(report) for report in REPORTS if report.is_kept)
    intro = (
        "Eight reports and a trim, small enough to be made again in ten minutes of one core:"
        " `python tools/gallery.py`. The pictures are the first thing that each page shows; below"
        f" it come the sections, tables and methods. Two pages are here as they are: {kept}.\n\n"
        "Milliseconds in them are those of one machine. Commands with `../shared` need data that"
        " isn't in the repository: STS-B's native files, and bge-small-en as a folder."
    )
    lines = ["# Gallery", "", intro]
    for report in REPORTS:
        commands = [each for each in (report.first, report.command) if each]
        lines += [
            "", f"## {report.heading}", "", report.says
            + (f" [The whole page](gallery/{report.name}.html)." if report.is_kept else ""),
            "", f"![{answer_of(report, text)}](gallery/{report.name}.png)", "",
            "```", *(f"microtome {command}" for command in commands), "```",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _link(report: Report) -> str:
    return f"[{report.heading.lower()}](gallery/{report.name}.html)"


def main(names: list[str]) -> None:
    """Make the reports that are named, all unless any is; then the page of all."""
    if unknown := sorted(set(names) - {report.name for report in REPORTS}):
        sys.exit(f"no report is called {unknown[0]}; there are {[r.name for r in REPORTS]}")
    RUNS.mkdir(parents=True, exist_ok=True)
    chosen = [report for report in REPORTS if not names or report.name in names]
    made = [report for report in chosen if make(report)]
    take_pictures(made)
    for report in made:
        if report.is_kept:
            keep(report)
    page = DOCS / "gallery.md"
    page.write_text(gallery_page(page.read_text(encoding="utf-8") if page.exists() else ""))


if __name__ == "__main__":
    main(sys.argv[1:])
