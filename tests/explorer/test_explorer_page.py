"""The explorer's page, played through in a real Chromium against the real server."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from support.explorer.page import OpenPage, explored, run_quietly
from support.tiny import N_HEADS, N_LAYERS

TEXT = "the cat never sleeps and the old bird sings"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def address(classifier, saved):
    model, rows = classifier
    with explored(model, "--data", rows, folder=saved) as found:
        yield found


@torch.no_grad()
def shares(folder, text):
    """What plain transformers answers, by label."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    logits = model(**AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")).logits[0]
    return {model.config.id2label[i]: p for i, p in enumerate(logits.softmax(-1).tolist())}


def shown_shares(seen, column):
    """The shares on the page, by label."""
    cells = seen.page.locator(f".shares tbody td:nth-child({column}) .n").all_inner_texts()
    labels = seen.page.locator(".shares tbody th").all_inner_texts()
    return {a: float(b.rstrip(" %")) / 100 for a, b in zip(labels, cells, strict=True)}


def number(text):
    return float(text.replace("−", "-")) / 100


def test_an_operation_from_the_first_text_to_the_saved_folder(
    chromium, address, classifier, saved, capsys
):
    model, rows = classifier
    with OpenPage(chromium, address) as seen:
        page = seen.page
        seen.settled("")
        whole = number(page.locator("#score-now").inner_text())
        base = run_quietly(["evaluate", model, "--data", rows], capsys)
        assert whole == pytest.approx(base["scores"]["accuracy"]["value"], abs=5.1e-4)

        page.get_by_label("Text on the table").fill(TEXT)
        page.wait_for_function("text => location.hash.includes(text)", arg="never")
        seen.settled()
        assert shown_shares(seen, 2) == pytest.approx(shares(model, TEXT), abs=5.1e-4)
        assert shown_shares(seen, 3) == shown_shares(seen, 2), "nothing is edited yet"

        seen.named("button", "Remove layer 1").click()
        seen.settled("remove(1)")
        assert seen.order() == ["0", "(1)", "2"]
        seen.named("button", "Disable head 0.2").click()
        seen.settled("remove(1) | disable(0.2)")
        assert seen.disabled() == ["0.2"]
        edited, score = shown_shares(seen, 3), page.locator("#score-now").inner_text()
        change = number(page.locator("#score-change").inner_text())
        assert number(score) - whole == pytest.approx(change, abs=1.1e-3)
        shown = page.locator("#brief").inner_text().split()
        assert shown == [score, "%", page.locator("#score-change").inner_text()]

        seen.named("button", "Undo").click()
        seen.settled("remove(1)")
        assert seen.disabled() == []
        page.keyboard.press("Control+Shift+Z")
        seen.settled("remove(1) | disable(0.2)")
        assert page.locator("#score-now").inner_text() == score

        page.get_by_role("button", name="Save").click()
        page.get_by_label("Name of a new folder").fill("cut")
        command = shlex.split(page.locator("dialog pre").inner_text())
        seen.named("button", "Save").click()
        page.locator(".checks li").first.wait_for()
        assert page.locator(".checks li.failed").count() == 0
        assert page.locator("#saved-path").inner_text() == str((saved / "cut").resolve())
        assert seen.problems == []

    out, again = Path(command[-1]), run_quietly([*command[1:-1], saved / "again"], capsys)
    assert out == saved / "cut", "the command that is shown does the same"
    assert again["edits"] == ["remove(1)", "disable(0.2)"]
    weights = "model.safetensors"
    assert (out / weights).read_bytes() == (saved / "again" / weights).read_bytes()
    plain = shares(saved / "cut", TEXT)
    assert edited == pytest.approx(plain, abs=5.1e-4)
    assert max(abs(plain[label] - share) for label, share in shares(model, TEXT).items()) > 0.01
    cut = run_quietly(["evaluate", saved / "cut", "--data", rows], capsys)
    assert number(score) == pytest.approx(cut["scores"]["accuracy"]["value"], abs=5.1e-4)
    config = AutoModelForSequenceClassification.from_pretrained(saved / "cut").config
    assert config.num_hidden_layers == N_LAYERS - 1


def test_a_folder_that_exists_is_refused_in_the_dialog(chromium, address, saved):
    (saved / "there").mkdir()
    (saved / "there" / "notes.txt").write_text("mine")
    with OpenPage(chromium, address, edit="remove(1)") as seen:
        seen.page.get_by_role("button", name="Save").click()
        for name in ("there", "../there", "a/b"):
            seen.page.get_by_label("Name of a new folder").fill(name)
            seen.named("button", "Save").click()
            seen.page.locator("dialog .problem").wait_for()
            assert seen.page.locator(".checks").count() == 0
    assert [file.name for file in (saved / "there").iterdir()] == ["notes.txt"]


def test_text_and_stack_are_one_edit(chromium, address):
    with OpenPage(chromium, address) as seen:
        edit = seen.page.get_by_label("Edit", exact=True)
        edit.fill("order(2,0,0,1)")
        edit.press("Enter")
        seen.settled("order(2, 0, 0, 1)")
        assert seen.order() == ["2", "0", "0", "1"]
        edit.fill("disable(1.*)")
        edit.press("Enter")
        seen.settled("disable(1.*)")
        assert seen.disabled() == [f"1.{j}" for j in range(N_HEADS)]
        edit.fill("remove(9)")
        edit.press("Enter")
        problem = seen.page.locator("#edit-problem")
        problem.wait_for()
        assert "9" in problem.inner_text()
        assert len(seen.disabled()) == N_HEADS, "the edit before stays on the table"
        edit.press("Escape")
        problem.wait_for(state="hidden")
        assert edit.input_value() == "disable(1.*)"


def test_the_mouse_moves_duplicates_and_puts_back(chromium, address):
    with OpenPage(chromium, address) as seen:
        page = seen.page
        page.locator(".slice .number").nth(1).dblclick()
        seen.settled("duplicate(1)")
        assert seen.order() == ["0", "1", "1", "2"]
        seen.named("button", "Reset").click()
        seen.settled("")
        handle = page.locator(".handle").first.bounding_box()
        last = page.locator(".slice").last.bounding_box()
        page.mouse.move(handle["x"] + 8, handle["y"] + 8)
        page.mouse.down()
        page.mouse.move(handle["x"] + 8, last["y"] + last["height"] - 4, steps=6)
        page.mouse.up()
        seen.settled("order(1-2, 0)")
        assert seen.order() == ["1", "2", "0"]
        seen.named("button", "Reset").click()
        seen.named("button", "Remove layer 2").click()
        seen.settled("remove(2)")
        seen.named("button", "Put layer 2 back").click()
        seen.settled("")
        assert seen.order() == ["0", "1", "2"]


def test_everything_works_by_keyboard(chromium, address):
    with OpenPage(chromium, address) as seen:
        page = seen.page
        page.locator(".handle").nth(2).focus()
        page.keyboard.press("ArrowUp")
        seen.settled("order(0, 2, 1)")
        page.keyboard.press("ArrowUp")  # the focus went with the layer
        seen.settled("order(2, 0-1)")
        page.keyboard.press("Control+z")
        page.keyboard.press("Control+z")
        seen.settled("")
        page.locator(".handle").nth(1).focus()
        page.keyboard.press("d")
        seen.settled("duplicate(1)")
        page.locator(".handle").nth(1).focus()
        page.keyboard.press("Delete")
        seen.settled("")
        page.locator(".head").first.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Space"):
            page.keyboard.press(key)
        seen.settled("disable(1.2)")
        page.keyboard.press("Space")
        seen.settled("")
        heads = page.locator('.head[tabindex="0"]')
        assert heads.count() == 1, "the heads are one stop of the Tab key"


def test_a_row_that_comes_late_replaces_nothing_typed(chromium, address):
    with OpenPage(chromium, address) as seen:
        seen.settled("")
        held = []
        seen.page.route("**/api/rows*", lambda route: held.append(route))
        seen.named("button", "Next row").click()
        text = seen.page.get_by_label("Text on the table")
        text.fill(TEXT)
        seen.page.wait_for_function("text => location.hash.includes(text)", arg="never")
        with seen.page.expect_response("**/api/rows*"):
            held[0].continue_()
        seen.page.unroute("**/api/rows*")
        seen.settled()
        assert text.input_value() == TEXT


def test_an_address_shows_the_same_again(chromium, address):
    with OpenPage(chromium, address) as first:
        first.page.get_by_label("Text on the table").fill(TEXT)
        first.named("button", "Remove layer 0").click()
        first.settled("remove(0)")
        first.page.wait_for_function("text => location.hash.includes(text)", arg="never")
        link = first.page.url
        first.settled()
        shown = first.page.locator("#text").inner_text()
        score = first.page.locator("#score-now").inner_text()
    with OpenPage(chromium, link) as second:
        second.settled("remove(0)")
        assert second.page.locator("#text").inner_text() == shown
        assert second.page.locator("#score-now").inner_text() == score


def test_cuts_tried_come_back_by_a_click(chromium, address):
    with OpenPage(chromium, address) as seen:
        seen.settled("")
        for layer in (0, 1):
            seen.named("button", f"Remove layer {layer}").click()
            seen.settled(f"remove({layer})")
            seen.named("button", "Undo").click()
            seen.settled("")
        tried = seen.page.locator(".tried tbody tr td:first-child").all_inner_texts()
        assert sorted(tried) == ["as it is", "remove(0)", "remove(1)"]
        assert seen.page.locator(".frontier .point").count() == 3
        seen.page.locator(".tried").get_by_role("button", name="remove(1)").click()
        seen.settled("remove(1)")
        seen.page.locator('.point[aria-label^="Put on the table: remove(0)"]').press("Enter")
        seen.settled("remove(0)")


def test_maps_have_the_values_of_eager_attention(chromium, address, classifier):
    model, _ = classifier
    eager = AutoModelForSequenceClassification.from_pretrained(
        model, attn_implementation="eager"
    ).eval()
    tokens = AutoTokenizer.from_pretrained(model)(TEXT, return_tensors="pt")
    with torch.no_grad():
        maps = eager(**tokens, output_attentions=True).attentions
    n = tokens["input_ids"].shape[1]
    with OpenPage(chromium, address, text=TEXT, edit="disable(1.3)") as seen:
        seen.settled("disable(1.3)")
        assert seen.page.locator(".map").count() == N_LAYERS * N_HEADS
        seen.named("button", "Enlarge head 0.1").click()
        figure = seen.page.locator(".figures figure").first
        assert figure.locator("figcaption").inner_text() == "before"
        seen.page.locator("#attention h3", has_text="Head 0.1").wait_for()
        box = figure.locator("canvas").bounding_box()
        for row, column in ((0, 3), (4, 1), (n - 1, n - 1)):
            x, y = ((place + 0.5) * box["width"] / n for place in (column, row))
            figure.locator("canvas").hover(position={"x": x, "y": y})
            read = figure.locator(".readout").inner_text()
            share = float(re.search(r"([\d.]+) %$", read)[1]) / 100
            assert share == pytest.approx(float(maps[0][0, 1, row, column]), abs=0.5 / 255 + 6e-4)
        colours = """canvas => new Set(new Uint32Array(canvas.getContext("2d")
          .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""
        small = seen.page.locator(".map canvas")
        assert small.nth(N_HEADS + 3).evaluate(colours) == 1, "a disabled head attends 1/L"
        assert small.nth(N_HEADS + 2).evaluate(colours) > 1


def test_two_pages_do_not_mix(chromium, address):
    with OpenPage(chromium, address) as one, OpenPage(chromium, address) as other:
        one.named("button", "Remove layer 0").click()
        other.named("button", "Remove layer 2").click()
        one.settled("remove(0)")
        other.settled("remove(2)")
        for page, edit in ((one, "remove(0)"), (other, "remove(2)")):
            tried = page.page.locator(".tried tbody td:first-child").all_inner_texts()
            assert tried == [edit, "as it is"]
