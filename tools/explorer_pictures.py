"""Makes the README's picture of the explorer from the running page.

    python tools/explorer_pictures.py docs/explorer.png

A sentiment classifier is fine-tuned for it first (about a minute); MODEL as a second argument takes
one that is there. The page is played through: a layer removed, a head disabled, some cuts tried.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Page, sync_playwright

COMMAND = (sys.executable, "-c", "from microtome.cli import main; main()")
TASK = ("--task", "micro-sentiment")
TEXT = "The film was not boring, and the actors were wonderful."
TRIED = ("remove(5)", "remove(1)", "remove(2)", "remove(4-5)", "remove(3)")
SHOWN = "remove(3) | disable(2.5)"
WIDTH, HEIGHT = 1500, 1080
MOST_BYTES = 150_000
QUIET = 1.0  # load of the machine above which the speeds in the picture would be noise


def fine_tuned(folder: Path) -> Path:
    """A classifier to operate on."""
    out = folder / "sentiment"
    subprocess.run(
        [*COMMAND, "finetune", "minilm", *TASK, "--epochs", "1", "--out", out], check=True
    )
    return out


def put(page: Page, edit: str) -> None:
    """Types an edit and waits for its score."""
    page.get_by_label("Edit", exact=True).fill(edit)
    page.get_by_label("Edit", exact=True).press("Enter")
    page.locator(".tried .here", has_text=edit).wait_for()


def picture(address: str, out: Path) -> None:
    """Plays the page through, then takes its picture."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.set_default_timeout(120_000)
        page.goto(f"{address}#{urlencode({'text': TEXT})}")
        page.locator(".tried .here").wait_for()
        for edit in (*TRIED, SHOWN):
            put(page, edit)
        page.wait_for_load_state("networkidle")
        page.locator(":focus").blur()
        page.screenshot(path=out)
        browser.close()
    _reduce(out)
    size = out.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{out} has {size:,} bytes, more than {MOST_BYTES:,}")
    print(f"{out}: {size:,} bytes")


def _reduce(out: Path) -> None:
    """Fewer colours, the rare ones kept: what is removed or disabled must stay orange."""
    picture = Image.open(out).convert("RGB")
    picture.quantize(200, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        out, optimize=True
    )


def main(out: Path, model: Path | None) -> None:
    if (load := os.getloadavg()[0]) > QUIET:
        print(f"load {load:.1f}: the speeds will be noise; say so where the picture is shown")
    with tempfile.TemporaryDirectory() as folder:
        model = model or fine_tuned(Path(folder))
        explore = [*COMMAND, "explore", model, *TASK, "--no-browser", "--json"]
        with subprocess.Popen(explore, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            document = ""
            while not document.endswith("}\n"):
                line = server.stdout.readline()
                if not line:
                    raise SystemExit("microtome explore did not start")
                document += line
            try:
                picture(json.loads(document)["address"], out)
            finally:
                server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    main(given[0], given[1] if len(given) > 1 else None)
