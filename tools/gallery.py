"""Makes docs/gallery.md: reports of embedded and shared models, as pictures with a line each.

    python tools/gallery.py                  runs, pictures, page; a run that is there is kept
    python tools/gallery.py --only NAME      the picture of one of them anew

The runs are in build/gallery. Models that aren't at hand (MICROTOME_TEST_DATA, or ../shared) are
left out, and the script says so. The pages of COMMITTED are kept whole.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
RUNS = ROOT / "build" / "gallery"
BGE = Path(os.environ.get("MICROTOME_TEST_DATA", ROOT.parent / "shared")) / "models/bge-small-en"
COMMAND = (sys.executable, "-c", "from microtome.cli import main; main()")
COMMITTED = ("examination", "trim")
WIDTH, HEIGHT, SHOWN_WIDTH = 1200, 900, 800
MOST_BYTES = 120_000


@dataclass(frozen=True)
class Entry:
    """One report: its name, a line on it, the command that makes it, a model that it needs."""

    name: str
    line: str
    arguments: tuple[str, ...]
    needs: Path | None = None

    @property
    def command(self) -> str:
        """As a user types it."""
        words = [BGE.name if word == str(BGE) else word for word in self.arguments]
        return " ".join(f'"{word}"' if " " in word else word for word in ["microtome", *words])


def _run(experiment: str, *options: str) -> tuple[str, ...]:
    return ("run", experiment, *options)


SENTIMENT = ("--task", "micro-sentiment")
ENTRIES = (
    Entry("examination", "the standard examination: how small, which layers, which heads",
        ("examine", "minilm", *SENTIMENT, "--limit", "200")),
    Entry("trim", "an embedder cut and healed without labels: score against speed",
        ("trim", "minilm", "--task", "micro-similarity", "--steps", "60", "--lose", "3")),
    Entry("comparison", "two embedders on the same pairs, compared with an interval",
        ("compare", "minilm", str(BGE), "--task", "micro-similarity", "--limit", "200"), BGE),
    Entry("decoding", "every depth through the output layer, and random blocks as a control",
        _run("decoding", "--model", "nano-bert,nano-albert", *SENTIMENT, "--limit", "200")),
    Entry("heads", "every head disabled in turn: what it changes, beyond chance or not",
        _run("head-disabling", "--model", "minilm", "--task", "micro-entailment",
             "--fraction", "1500", "--learning-rate", "2e-4", "--limit", "200", "--splits", "0")),
    Entry("patterns", "what attention maps look like, by layer and head",
        _run("attention-patterns", "--model", "minilm", "--task", "micro-paraphrase",
             "--pretrained", "--limit", "100")),
    Entry("similarity", "how alike the states of all depths are, and what each layer changes",
        _run("layer-similarity", "--model", str(BGE), "--task", "micro-similarity",
             "--limit", "200"), BGE),
    Entry("patching", "where the answer is kept: states of one text put into another",
        _run("patching", "--model", "nano-bert", *SENTIMENT, "--limit", "60")),
    Entry("paper", "a paper's figure with the paper's claims and a verdict on each",
        ("replicate", "singh2020", "--only", "Figure 1 b")),
)  # fmt: skip


def report_of(entry: Entry) -> Path:
    """The report of an entry's run; the same command resumes."""
    out = RUNS / entry.name
    place = ("--run", out, "--out", RUNS / f"{entry.name}-saved") if entry.name == "trim" else (
        "--out", out)  # fmt: skip
    command = [*COMMAND, *entry.arguments, *map(str, place), "--quiet", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{entry.command}: {json.loads(done.stdout)['error']['message']}")
    return out / "report.html"


def picture(page: Page, report: Path, out: Path) -> None:
    """The top of a report, small enough for a page of documents."""
    page.goto(report.as_uri())
    page.screenshot(path=out)
    shown = Image.open(out).convert("RGB")
    shown = shown.resize((SHOWN_WIDTH, HEIGHT * SHOWN_WIDTH // WIDTH), Image.Resampling.LANCZOS)
    shown.quantize(128, dither=Image.Dither.NONE).save(out, optimize=True)
    if (size := out.stat().st_size) > MOST_BYTES:
        raise SystemExit(f"{out} has {size:,} bytes, more than {MOST_BYTES:,}")


def page_of(entries: Sequence[Entry]) -> str:
    """The gallery as Markdown."""
    lines = [
        "# Gallery",
        "",
        "Reports of real runs, made by one command: `python tools/gallery.py`.",
        "Each is one HTML file that opens from disk; the pictures are their tops.",
        "",
        "Whole pages, to download and open: "
        + ", ".join(f"[{name}.html](gallery/{name}.html)" for name in COMMITTED)
        + ".",
    ]
    for entry in entries:
        lines += [
            "",
            f"## {entry.line[0].upper()}{entry.line[1:]}",
            "",
            "```",
            entry.command,
            "```",
        ]
        lines += ["", f"![{entry.line}](gallery/{entry.name}.png)"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[entry.name for entry in ENTRIES])
    only = parser.parse_args().only
    (DOCS / "gallery").mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        for entry in ENTRIES:
            if entry.needs is not None and not entry.needs.exists():
                print(f"{entry.name} is left out: {entry.needs.name} isn't there")
            elif only in (None, entry.name):
                report = report_of(entry)
                picture(page, report, DOCS / "gallery" / f"{entry.name}.png")
                if entry.name in COMMITTED:
                    shutil.copy(report, DOCS / "gallery" / f"{entry.name}.html")
                print(f"{entry.name}: {entry.command}", flush=True)
        browser.close()
    there = [entry for entry in ENTRIES if (DOCS / "gallery" / f"{entry.name}.png").exists()]
    (DOCS / "gallery.md").write_text(page_of(there), encoding="utf-8")


if __name__ == "__main__":
    main()
