"""How the page looks whatever is on it: widths, colours, hostile text, names for everything."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess

import pytest

from microtome.explorer.server import STATIC
from microtome.report.palette import DARK, LIGHT, variables
from microtome.report.svg import FONTS
from support.explorer.page import OpenPage, explored, overflowing
from support.labelled_texts import sentences
from support.tiny import save_tiny

MOST_BYTES = 250_000
HOSTILE = (
    "</script><script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "'><svg/onload=alert(3)>",
    "{{ 7 * 7 }}${7 * 7}",
    "\u202egnp.exe\u202c <b>bold</b> &lt;i&gt;",
    "x" * 300,
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A model and rows with hostile text wherever data has text: labels, rows, a file's name."""
    root = tmp_path_factory.mktemp("hostile")
    labels = (f"no {HOSTILE[0]}", f"yes {HOSTILE[1]}")
    model = save_tiny(
        root / "<img src=x onerror=alert(1)>", "bert", "classification", with_tokenizer=True,
        id2label=dict(enumerate(labels)),
    )  # fmt: skip
    texts = [f"{text} {HOSTILE[i % len(HOSTILE)]}" for i, text in enumerate(sentences(24))]
    file = root / "<b>rows.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        rows = [(text, labels[i % 2]) for i, text in enumerate(texts)]
        csv.writer(stream).writerows([("text", "label"), *rows])
    with explored(model, "--data", file, folder=root) as found:
        yield found


@pytest.mark.parametrize("width", [360, 800, 1400, 2000])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_layout_holds_and_nothing_foreign_is_asked_for(chromium, address, width, scheme):
    with OpenPage(chromium, address, width=width, scheme=scheme, edit="remove(1)") as seen:
        seen.settled("remove(1)")
        assert overflowing(seen.page) == []
        here = re.match(r"http://[^/]+/", address)[0]
        assert [url for url in seen.requests if not url.startswith((here, "data:"))] == []
        assert seen.problems == []
        paper = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 24, 28)")
        seen.page.get_by_role("button", name="Save").click()
        box = seen.page.locator("dialog").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_hostile_text_is_text(chromium, address):
    with OpenPage(chromium, address) as seen:
        seen.settled("")
        assert seen.page.title() == "<img src=x onerror=alert(1)> · Microtome"
        assert seen.page.locator("h1").inner_text() == "<img src=x onerror=alert(1)>"
        for row in range(len(HOSTILE)):
            text = seen.page.get_by_label("Text on the table")
            seen.page.wait_for_function(
                "end => document.getElementById('text-input').value.endsWith(end)",
                arg=HOSTILE[row],
            )
            assert text.input_value().endswith(HOSTILE[row])
            seen.settled()
            seen.named("button", "Next row").click()
        labels = seen.page.locator(".shares tbody th").all_inner_texts()
        assert labels == [f"no {HOSTILE[0]}", f"yes {HOSTILE[1]}"]
        seen.page.get_by_label("Edit", exact=True).fill(HOSTILE[1])
        seen.page.get_by_label("Edit", exact=True).press("Enter")
        seen.page.locator("#edit-problem").wait_for()
        assert seen.page.locator("img, iframe, object, embed, b > img").count() == 0
        assert seen.page.locator("script").count() == 1
        assert seen.problems == []


def test_every_control_has_a_name_and_every_map_a_text(chromium, address):
    with OpenPage(chromium, address, edit="disable(0.1)") as seen:
        seen.settled("disable(0.1)")
        nameless = seen.page.evaluate(
            """() => [...document.querySelectorAll("button, input, textarea, [role=button]")]
              .filter(one => !(one.getAttribute("aria-label") || one.textContent.trim()
                || one.labels?.length)).map(one => one.outerHTML.slice(0, 80))"""
        )
        assert nameless == []
        for section in seen.page.locator("main > section:visible").all():
            assert section.locator(f"#{section.get_attribute('aria-labelledby')}").count() == 1
        maps = seen.page.locator(".figures canvas")
        assert maps.count() == 3, "before, after, difference"
        assert all(one.get_attribute("aria-label") for one in maps.all())
        links = seen.page.locator(".figures figure").first.locator(".links li")
        assert (
            links.count() == seen.page.locator(".figures figure").first.locator(".to span").count()
        )
        said = seen.page.locator("#said").inner_text()
        assert said.startswith("disable(0.1): accuracy "), "a screen reader hears the new score"


def test_a_page_without_its_token_says_what_to_do(chromium, address):
    answer = chromium.new_context().request.get(address.partition("?")[0])
    assert answer.status == 403
    assert "open the address" in answer.json()["error"]["hint"]


def test_the_page_is_small_and_names_no_other_address():
    files = [file for file in STATIC.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= MOST_BYTES
    for file in files:
        text = file.read_text(encoding="utf-8")
        found = set(re.findall(r"\b(?:https?|wss?):/*[\w.]+", text))
        assert found <= {"http://www.w3.org"}, f"{file.name}: {found}"
        for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert unsafe not in text, f"{file.name} uses {unsafe}"


def test_colours_are_the_reports():
    text = (STATIC / "palette.css").read_text(encoding="utf-8")
    assert f"--fonts:{FONTS};{variables(LIGHT)}}}" in text
    assert f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}" in text


def test_types_agree(tmp_path):
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("no tsc on the PATH (npm install --global typescript)")
    options = ["--allowJs", "--checkJs", "--strict", "--noEmit", "--target", "es2022"]
    options += ["--module", "es2022", "--moduleResolution", "bundler"]
    options += ["--lib", "es2022,dom,dom.iterable"]
    done = subprocess.run(
        [compiler, *options, str(STATIC / "page.js")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
