"""``microtome explore`` in a process of its own, and its page in a browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from microtome.cli import run
from microtome.edits import parse
from support.explorer.client import PATIENCE

COMMAND = "from microtome.cli import main; main()"


@contextmanager
def explored(*arguments: object, folder: Path) -> Iterator[str]:
    """The address of the page that the command opens; Save writes into the folder."""
    # ``folder`` is the working directory: that is where Save writes unless something else is said.
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "explore", *map(str, arguments), "--no-browser", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**os.environ, "MICROTOME_CACHE": str(folder / "cache")},
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines: list[str] = []
        while not lines or lines[-1] != "}\n":
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        document = json.loads("".join(lines))
        assert "address" in document, document
        try:
            yield document["address"]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)


class OpenPage:
    """A page that is open, and everything it asked for or complained of."""

    def __init__(
        self, browser, address: str, *, width: int = 1400, scheme: str = "light", **fragment: str
    ) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE)
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda box: (self.problems.append("dialog"), box.dismiss()))
        self.page.goto(address + (f"#{urlencode(fragment)}" if fragment else ""))
        self.page.locator(".slice").first.wait_for()

    def __enter__(self) -> OpenPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def named(self, role: str, name: str):
        """What a screen reader calls so."""
        return self.page.get_by_role(role, name=name, exact=True)

    def settled(self, edit: str | None = None) -> None:
        """Wait until an edit is on the table and everything about it is measured and drawn."""
        self.page.locator(".figures figure").first.wait_for()
        if edit is not None:
            text = parse(edit).text if edit else ""
            # What is typed is in the field at once, what is taken is in the address too.
            self.page.wait_for_function(
                """edit => document.getElementById("edit-text").value === edit
                  && (new URLSearchParams(location.hash.slice(1)).get("edit") ?? "") === edit""",
                arg=text,
            )
        self.page.wait_for_function(
            """() => document.querySelector(".waiting, .busy:not([hidden]), [aria-busy=true]")
              === null"""
        )

    def order(self) -> list[str]:
        """The layers as they are shown, first to last; struck out ones in brackets."""
        return self.page.locator(".slice").evaluate_all(
            """slices => slices.map(slice => {
              const name = slice.querySelector(".number");
              const was = name.querySelector("small")?.textContent.match(/\\d+/)[0];
              const number = was ?? name.querySelector("b").textContent;
              return slice.matches(".missing") ? `(${number})` : number;
            })"""
        )

    def disabled(self) -> list[str]:
        """The heads that are off, by position."""
        off = self.page.locator('.head[aria-pressed="true"]')
        return off.evaluate_all("all => all.map(one => one.dataset.key.slice(5))")


def overflowing(page) -> list[str]:
    """What is wider than the window; a box that scrolls may hold what is wider than itself."""
    return page.evaluate(
        """() => {
          const wide = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
          for (const one of document.querySelectorAll("body *")) {
            if (one.closest(".scroll") && !one.matches(".scroll")) continue;
            if (one.matches(".skip, .unseen")) continue;
            if (one.getBoundingClientRect().right > innerWidth + 1) {
              wide.push(one.outerHTML.slice(0, 80));
            }
          }
          return wide;
        }"""
    )


def run_quietly(arguments: Sequence[object], capsys) -> dict:
    """The document that a command prints."""
    assert run([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)
