"""The front page: one sentence, one picture, a few numbers; what is folded is still all there."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from microtome.papers.comparison import Reported
from microtome.report import Page, Section, html_of, write
from microtome.report.rendering import page_html
from microtome.report.text import between, sentences
from microtome.report.writing import Content
from microtome.views import Card, Curve, Headline, Panels, Series, Table

PARTS = ("answers", "findings", "part-1", "part-2", "part-3", "part-4", "part-5", "part-6", "again")


def section(html: str, name: str) -> str:
    """The markup of one section of a page."""
    return re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL)[0]


def rendered(page) -> str:
    """A page without its files."""
    content = Content.of(page)
    return page_html(page, content.picture, content.front, content.sections, has_pdf=False)


@pytest.fixture(scope="module")
def html(written):
    return written["page"].read_text(encoding="utf-8")


def test_the_front_has_one_sentence_one_picture_the_cards_and_how_sure_it_is(html, page):
    front = section(html, "answers")
    assert front.count("<figure") == 1
    assert front.count('class="wide') == 1
    assert front.count("<dt>") == len(page.headline.cards)
    order = ['class="lead"', "<figure", 'class="cards"', 'class="sure"']
    assert sorted(order, key=front.index) == order
    assert unescape(re.search(r'class="lead"><bdi>(.*?)</bdi>', front)[1]) == page.headline.sentence


def test_sections_come_in_order_and_each_is_in_the_contents(html):
    assert tuple(re.findall(r'<section id="([^"]+)"', html)) == PARTS
    contents = re.findall(r'href="#([^"]+)"', re.search(r"<nav.*?</nav>", html, re.DOTALL)[0])
    assert contents == [part for part in PARTS if part != "findings"]


def test_the_picture_is_drawn_once_and_its_section_says_where(html, page):
    title = f'aria-label="{page.picture.title}"'
    assert html.count(title) == section(html, "answers").count(title) == 1
    assert "at the top of the page" in section(html, "part-1")


def test_only_the_first_sentence_is_large(page):
    said = replace(page.headline, sentence="No layer can go. The nearest is keep(0-4).")
    front = section(rendered(replace(page, headline=said)), "answers")
    assert re.search(r'class="lead"><bdi>(.*?)</bdi>', front)[1] == "No layer can go."
    assert "The nearest is keep(0-4)." in front


def test_a_page_without_a_headline_begins_with_its_first_answer(page):
    bare = replace(page, headline=None, picture=None)
    front = section(rendered(bare), "answers")
    first = sentences(page.answers[0])[0]
    assert unescape(re.search(r'class="lead"><bdi>(.*?)</bdi>', front)[1]) == first
    assert "<figure" not in front


LONG = Table("Long", ("name", "value"), tuple((f"row {i}", i / 100) for i in range(30)))


def test_rows_beyond_the_first_are_folded_and_all_are_in_the_page():
    html = html_of(replace(LONG, first=7))
    shown, rest = html.split('<tbody class="rest">')
    assert [f"row {i}" in shown for i in range(30)] == [i < 7 for i in range(30)]
    assert all(f"row {i}<" in rest for i in range(7, 30))
    assert "23 more rows" in rest


def test_a_fold_is_worth_more_than_two_rows():
    assert "<details" not in html_of(replace(LONG, rows=LONG.rows[:12]))
    assert "<details" in html_of(replace(LONG, rows=LONG.rows[:13]))


def test_a_section_has_three_sentences_and_folds_the_rest(page):
    told = [f"Sentence {i} is 87.{i} % of it." for i in range(5)]
    one = replace(page.sections[0], finding=" ".join(told))
    made = section(rendered(replace(page, sections=(one,))), "part-1")
    shown, folded = made.split('<details class="more">')
    assert [line in shown for line in told] == [True, True, True, False, False]
    assert [line in folded for line in told] == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("Kao et al. 2020 say so. It is 3.5 points, i.e. much, e.g. here.", 2),
        ("No cut is sure. 62 cuts tried. minilm is best!", 3),
        ("disable(2.5) costs 1.2 points (−3.1 to +0.4)", 1),
        ("", 0),
    ],
)
def test_sentences_end_where_a_reader_would_say(text, n):
    assert len(sentences(text)) == n
    assert " ".join(sentences(text)) == text


def test_a_figure_says_its_finding_above_its_method():
    curve = Curve("Layers removed", "layers", "accuracy", (Series("s", (1.0, 2.0), (0.1, 0.9)),))
    assert "<strong><bdi>Layers removed</bdi></strong>" in html_of(curve)
    said = html_of(replace(curve, says="Layer 2 <b>carries</b> the task"))
    assert "<strong><bdi>Layer 2 &lt;b&gt;carries&lt;/b&gt; the task</bdi></strong>" in said
    assert '<span class="how"><bdi>Layers removed</bdi></span>' in said
    panels = Panels("Both", (curve, curve), says="They agree")
    assert "They agree" in html_of(panels)


def test_what_is_behind_a_point_is_said_before_its_value():
    line = Series("healed", (1.5,), (0.9,), (0.9,), (0.9,), notes=("keep(0-3)",))
    html = html_of(Curve("c", "speed", "accuracy", (line,)))
    assert "<title>keep(0-3), healed, speed 1.5: 90.0 % (90.0)</title>" in html


def test_an_interval_of_no_width_is_one_number():
    assert between(-0.0001, 0.0001, percent=True, plus=True) == "0.0"
    assert between(-0.011, 0.003, percent=True, plus=True) == "−1.1 to +0.3"


def test_headers_have_units():
    table = Table(
        "t", ("score", "change", "low", "high", "latency_ms", "speed"),
        ((0.9, -0.01, -0.02, 0.01, 3.1, 1.2),), percent=("score", "change", "low", "high"),
    )  # fmt: skip
    heads = re.search(r"<thead>.*?</thead>", html_of(table), re.DOTALL)[0]
    assert re.findall(r'class="unit">([^<]+)<', heads) == ["%", *["points"] * 3, "ms", "×"]


def test_hostile_cards_are_text(page):
    bad = "<script>alert(1)</script>"
    said = Headline(f"{bad} is said.", (Card(bad, bad, bad),) * 3, bad)
    made = rendered(replace(page, headline=said))
    assert bad not in made
    assert made.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 1 + 9 + 1


def test_a_claim_is_said_once_above_its_models(tmp_path):
    lines = tuple(
        Reported("last layers", "hardly matter", words, "section 4", "holds", "", "last", about)
        for about, words in (("bert on sst2", "so it is"), ("albert on sst2", "and so here"))
    )
    section = Section("a", "Do they?", "A paper", "done", "They don't.", reported=lines)
    html = write(Page("t", "m", "t", (), (section,)), tmp_path).read_text()
    assert html.count("hardly matter") == html.count("section 4") == 1
    places = [html.index(text) for text in ("hardly matter", "so it is", "and so here")]
    assert places == sorted(places)
    assert html.count("✓ holds") == 2
