"""The page in a real Chromium: nothing is fetched, nothing runs, nothing overflows."""

from __future__ import annotations

import pytest

from microtome.report import Page, write
from microtome.report.text import plain, sentences
from microtome.views import SHOWN_ROWS, Table

PATIENCE = 120_000  # milliseconds: a busy machine must not fail a test


class Watched:
    """A page that is open, and everything it did."""

    def __init__(self, browser, path, *, width=1600, scheme="light", script=True):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            offline=True,
            java_script_enabled=script,
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("console", lambda m: self.problems.append(f"console: {m.text}"))
        self.page.on("pageerror", lambda e: self.problems.append(f"error: {e}"))
        self.page.on("dialog", lambda d: (self.problems.append("dialog"), d.dismiss()))
        self.page.goto(path.as_uri())
        self.address = path.as_uri()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


def overflowing(page) -> list[str]:
    """What is wider than the window; a box that scrolls may hold what is wider than itself."""
    return page.evaluate(
        """() => {
          const wide = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
          for (const one of document.querySelectorAll("body *")) {
            if (one.closest(".scroll") && !one.matches(".scroll")) continue;
            if (one.matches(".skip, .tip")) continue;
            const right = one.getBoundingClientRect().right;
            if (right > innerWidth + 1) wide.push(one.outerHTML.slice(0, 80));
          }
          return wide;
        }"""
    )


@pytest.mark.parametrize("kind", ["page", "hostile_page"])
@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_layout_holds_and_nothing_is_asked_for(chromium, written, kind, width, scheme):
    with Watched(chromium, written[kind], width=width, scheme=scheme) as seen:
        assert overflowing(seen.page) == []
        assert seen.requests == [seen.address]
        assert seen.problems == []
        light = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert light == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 24, 28)")
        shown = seen.page.locator(".plot svg:visible")
        assert shown.count() == 9, "each figure is drawn once, at the width that fits"


def test_hostile_text_stands_there_as_text(chromium, written, hostile_page):
    with Watched(chromium, written["hostile_page"]) as seen:
        heading = seen.page.locator("h1").inner_text()
        assert heading == plain(hostile_page.title)
        assert seen.page.title() == plain(hostile_page.title)
        assert seen.page.locator("img, iframe, object, embed, form, input").count() == 0
        assert seen.page.locator("script").count() == 1
        model = seen.page.locator(".subject dd").first.inner_text()
        assert model == plain(hostile_page.model)
        assert seen.problems == []


def test_a_script_that_got_in_would_not_run(chromium, written, tmp_path):
    """The policy is a second wall: an injected script and handler do nothing."""
    html = written["page"].read_text(encoding="utf-8")
    bad = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    broken = tmp_path / "report.html"
    broken.write_text(html.replace("</main>", f"{bad}</main>"), encoding="utf-8")
    with Watched(chromium, broken) as seen:
        seen.page.wait_for_timeout(100)
        assert seen.page.title() != "owned"
        assert any("Content Security Policy" in problem for problem in seen.problems)


def test_everything_can_be_read_without_script(chromium, written, page):
    with Watched(chromium, written["page"], script=False) as seen:
        text = seen.page.locator("body").inner_text()
        for section in page.sections[:3]:
            assert section.question in text
            assert all(sentence in text for sentence in sentences(section.finding)[:3])
        assert seen.page.locator(".plot svg title").count() > 100, "hints are in the markup"


def test_folded_rows_open_without_script(chromium, tmp_path):
    table = Table("Long", ("name",), tuple((f"row {i}",) for i in range(30)))
    page = Page("t", "m", "", ("It is so.",), sections=(), front=(table,))
    path = write(page, tmp_path)
    with Watched(chromium, path, script=False) as seen:
        rows = seen.page.locator("#findings tbody tr:visible")
        assert rows.count() == SHOWN_ROWS
        seen.page.get_by_text("20 more rows").click()
        assert rows.count() == 30
        assert seen.problems == []
    with Watched(chromium, path) as seen:
        seen.page.emulate_media(media="print")
        assert seen.page.locator("#findings tbody tr:visible").count() == 30


def test_sorting_a_folded_table_brings_the_largest_to_the_top(chromium, tmp_path):
    table = Table("Long", ("value",), tuple((i / 100,) for i in range(30)))
    page = Page("t", "m", "", ("It is so.",), sections=(), front=(table,))
    with Watched(chromium, write(page, tmp_path)) as seen:
        seen.page.get_by_role("button", name="value").click()
        shown = seen.page.locator("#findings tbody tr:visible td").evaluate_all(
            "cells => cells.map(cell => Number(cell.dataset.v))"
        )
        assert shown == [i / 100 for i in range(29, 29 - SHOWN_ROWS, -1)]


def test_arrows_go_from_mark_to_mark(chromium, written):
    with Watched(chromium, written["page"]) as seen:
        plot = seen.page.locator("#answers .plot")
        plot.focus()
        tip = seen.page.locator(".tip")
        assert tip.is_hidden()
        plot.press("ArrowRight")
        assert tip.inner_text().startswith("layer 0, head 0: not measured")
        plot.press("ArrowRight")
        assert tip.inner_text().startswith("layer 0, head 1: ")
        plot.press("Escape")
        assert tip.is_hidden()


def test_the_contents_stay_in_sight_and_say_where_the_reader_is(chromium, written):
    for width in (360, 800, 1400):
        with Watched(chromium, written["page"], width=width) as seen:
            seen.page.locator("#part-2").evaluate("part => part.scrollIntoView()")
            here = seen.page.locator('nav [aria-current][href="#part-2"]')
            here.wait_for(state="attached")
            top = seen.page.locator("nav").evaluate("nav => nav.getBoundingClientRect().top")
            assert 0 <= top <= 40
        with Watched(chromium, written["page"], width=width, script=False) as seen:
            place = seen.page.locator("nav").evaluate("nav => getComputedStyle(nav).position")
            assert place == "sticky"


def test_hovering_says_the_value_of_a_cell(chromium, written):
    with Watched(chromium, written["page"]) as seen:
        cell = seen.page.locator('.wide [data-hint^="layer 3, head 7"]').first
        cell.hover()
        assert seen.page.locator(".tip").inner_text() == (
            "layer 3, head 7: −8.3 points (−10.1 to −6.5), significant"
        )


def test_a_click_on_a_heading_sorts_by_value(chromium, written, page):
    table = page.sections[0].views[1]
    deltas = [row[table.columns.index("delta")] for row in table.rows]
    with Watched(chromium, written["page"]) as seen:
        box = seen.page.locator("#part-1 table.sortable")
        box.get_by_role("button", name="delta").click()
        read = "rows => rows.map(r => Number(r.querySelectorAll('[data-v]')[1].dataset.v))"
        assert box.locator("tbody tr").evaluate_all(read) == sorted(deltas, reverse=True)
        box.get_by_role("button", name="delta").click()
        assert box.locator("tbody tr").evaluate_all(read) == sorted(deltas)


def test_columns_below_groups_sort_too(chromium, written):
    with Watched(chromium, written["page"]) as seen:
        box = seen.page.locator("#part-4 table.sortable")
        assert box.get_by_role("button", name="SQuAD").count() == 0
        box.get_by_role("button", name="F1").click()
        read = "rows => rows.map(row => Number(row.cells[3].dataset.v))"
        assert box.locator("tbody tr").evaluate_all(read) == [0.85, 0.84]
        box.get_by_role("button", name="F1").click()
        assert box.locator("tbody tr").evaluate_all(read) == [0.84, 0.85]


def test_paper_gets_light_colours_and_whole_figures(chromium, written):
    with Watched(chromium, written["page"], width=700, scheme="dark") as seen:
        seen.page.emulate_media(media="print", color_scheme="dark")
        assert seen.page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
        assert seen.page.locator("nav:visible").count() == 0
        assert seen.page.locator(".plot svg.wide:visible").count() == 9
