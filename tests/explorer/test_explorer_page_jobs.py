"""The page of models of every job: what it says of a text is what plain transformers says."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoTokenizer

from microtome.explorer.session import Session, SessionRequest
from support.explorer.client import running
from support.explorer.page import OpenPage
from support.tiny import AUTO_CLASSES, N_HEADS
from support.trimming.lessons import MODELS, model_for

TEXT, PAIR = "the cat never sleeps", "the old bird sings and the dog runs"


@pytest.fixture
def opened(chromium, tmp_path):
    """A function from a job and a family to its folder and its open page."""
    closers = []

    def open_page(job, family="bert", **fragment):
        folder = model_for(job, tmp_path / "model", family)
        server = running(Session(SessionRequest(str(folder))))
        client = server.__enter__()
        seen = OpenPage(chromium, client.door.address, text=TEXT, **fragment)
        closers.extend((server, seen))
        seen.settled(fragment.get("edit", ""))
        return folder, seen

    yield open_page
    for closer in reversed(closers):
        closer.__exit__(None, None, None)


@torch.no_grad()
def logits(folder, job, text=TEXT):
    model = AUTO_CLASSES[MODELS[job][0]].from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    given = tokenizer(text, return_tensors="pt")
    given.pop("token_type_ids", None)
    return model(**given).logits[0], model.config.id2label, tokenizer


def test_a_regressor_says_its_number(opened):
    folder, seen = opened("regression")
    value = float(logits(folder, "regression")[0][0])
    cells = seen.page.locator(".values tbody td").all_inner_texts()
    assert [float(cell.replace("−", "-")) for cell in cells] == pytest.approx([value] * 2, abs=6e-4)


def test_labels_that_may_all_be_true_have_shares_of_their_own(opened):
    folder, seen = opened("multilabel")
    found, names, _ = logits(folder, "multilabel")
    assert seen.page.locator(".shares tbody th").all_inner_texts() == list(names.values())
    shares = seen.page.locator(".shares td:nth-child(2) .n").all_inner_texts()
    percent = [float(share.rstrip(" %")) for share in shares]
    assert percent == pytest.approx((100 * found.sigmoid()).tolist(), abs=0.051)


def test_a_tagger_says_a_tag_per_token(opened):
    folder, seen = opened("tokens")
    found, names, _ = logits(folder, "tokens")
    table = seen.page.locator(".answers table")
    assert table.locator("thead th").all_inner_texts() == TEXT.split()
    tags = [names[tag] for tag in found[1:-1].argmax(-1).tolist()]
    for line in table.locator("tbody tr").all():
        assert line.locator("td").all_inner_texts() == tags, "nothing is edited"


def test_a_masked_word_is_guessed(opened):
    folder, seen = opened("mlm-text")
    assert "[MASK]" in seen.page.locator(".answers").inner_text()
    text = "the cat [MASK] the bird"
    seen.page.get_by_label("Text on the table").fill(text)
    table = seen.page.locator(".answers table")
    table.wait_for()
    found, _, tokenizer = logits(folder, "mlm-text", text)
    place = tokenizer(text)["input_ids"].index(tokenizer.mask_token_id)
    best = found[place].softmax(-1).topk(5)
    said = [
        f"{tokenizer.convert_ids_to_tokens(index) or [index]} {100 * share:.1f} %"
        for share, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    ]
    for side in (1, 2):
        assert table.locator(f"tbody td:nth-child({side})").all_inner_texts() == said
    assert table.locator("thead tr").last.inner_text().split() == ["before", "after"]


@pytest.mark.parametrize("job", ["similarity", "spans"])
def test_two_texts_are_answered_together(opened, job):
    _, seen = opened(job, pair=PAIR)
    assert seen.page.get_by_label("Second text").input_value() == PAIR
    before = seen.page.locator(".answers").inner_text()
    assert before
    seen.named("button", "Remove layer 1").click()
    seen.settled("remove(1)")
    assert seen.page.locator(".answers").inner_text() != before
    assert seen.problems == []


def test_a_head_of_shared_layers_is_disabled_in_all_of_them(opened):
    _, seen = opened("reranking", "albert", pair=PAIR)
    seen.named("button", "Disable head 1.2").click()
    seen.settled("disable(*.2)")
    assert seen.disabled() == ["0.2", "1.2", "2.2"]
    assert seen.page.locator(".handle:enabled").count() == 0, "layers that are alike have no order"
    assert "unshare()" in seen.page.locator("#stack").inner_text()
    seen.named("button", "Put unshare() first").click()
    seen.settled("unshare() | disable(*.2)")
    assert seen.page.locator(".handle:enabled").count() == 3
    seen.named("button", "Disable head 1.2").click()  # is off: enables it
    seen.settled("unshare() | disable(0.2, 2.2)")
    assert seen.disabled() == ["0.2", "2.2"]
    assert seen.page.locator(".head").count() == 3 * N_HEADS
    assert seen.problems == []


def test_what_a_stack_can_not_show_stays_before_it(opened):
    _, seen = opened("multilabel", edit="extend(5) | reinit(top=1, seed=0)")
    assert seen.order() == ["0", "1", "2", "3", "4"], "layers are numbered after those edits"
    seen.named("button", "Remove layer 3").click()
    seen.settled("extend(5) | reinit(top=1, seed=0) | remove(3)")
    assert seen.order() == ["0", "1", "2", "(3)", "4"]
    seen.named("button", "Put layer 3 back").click()
    seen.settled("extend(5) | reinit(top=1, seed=0)")
    assert seen.problems == []


def test_an_edit_that_a_family_refuses_says_why(opened):
    _, seen = opened("multilabel", "modernbert")
    seen.named("button", "Remove layer 0").click()
    seen.page.locator("#edit-problem").wait_for()
    assert seen.order() == ["0", "1", "2"]
    assert seen.page.get_by_label("Edit", exact=True).input_value() == ""


def test_what_is_shown_of_a_long_text_and_how_is_said(opened):
    """Cut texts, and what the depths are read through: neither may go without a word."""
    folder, seen = opened("tokens")
    text = seen.page.locator("#text")
    most = AutoTokenizer.from_pretrained(folder).model_max_length
    assert "nearest word embedding" in text.inner_text(), "a tagger has no head for words"
    assert "tokens of a text are read" not in text.inner_text()
    seen.page.get_by_label("Text on the table").fill("cat " * 300)
    seen.page.get_by_text(f"At most {most} tokens of a text are read.").wait_for()
    seen.settled()
    assert seen.page.locator(".answers thead th").count() == most - 2, "without [CLS] and [SEP]"
    assert seen.problems == []
