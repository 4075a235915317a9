"""Lessons of every job: the base's answers, and a cut model that learns from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from microtome.edits import parse
from microtome.families import adapt
from microtome.surgery import apply
from microtome.tasks import DataSpec, open_data
from microtome.training.distil.lessons import LABEL_SHARE, Lessons, base_answers
from microtome.training.distil.texts import without_measured
from microtome.training.finetune.loop import train
from microtome.training.recipe import Recipe, Seeds
from support.tiny import tiny_model
from support.trimming.lessons import ANSWERS, JOBS, lesson_texts

FAMILIES = {"classification-text": "roberta", "mlm-text": "modernbert", "similarity": "albert"}
"""Where a job isn't tried on BERT: every family once is in the tests of whole trims."""
ONE_OF_EACH = ("classification", "regression", "multilabel", "tokens", "spans", "mlm-text")
"""A job for each way of answering, but embeddings."""


def lessons_of(job: str, folder, n: int = 24) -> tuple[Lessons, object]:
    texts = lesson_texts(job, folder, FAMILIES.get(job, "bert"), n=n)
    return texts.lessons(texts.n_texts, texts.answers(texts.n_texts)), texts


def loss_of(model, lessons: Lessons, rows: np.ndarray) -> torch.Tensor:
    chunk, targets = lessons.batch(rows)
    return lessons.loss(lessons.outputs(adapt(model), chunk, frozenset()), targets, chunk)


@pytest.mark.parametrize("job", JOBS)
def test_a_cut_model_comes_nearer_to_its_base(job, tmp_path):
    lessons, texts = lessons_of(job, tmp_path)
    assert lessons.answer == ANSWERS.get(job, "choice")
    cut = apply(parse("keep(0-1)"), texts.base)
    every = np.arange(len(lessons))
    unlabelled = replace(lessons, has_labels=False)
    with torch.no_grad():
        before = float(loss_of(cut, unlabelled, every))
    recipe = Recipe(batch_size=12, steps=12, epochs=1, learning_rate=2e-3)
    train(cut, lessons, recipe, seeds=Seeds.of(0), dropout=False)
    with torch.no_grad():
        after = float(loss_of(cut, unlabelled, every))
        least = float(loss_of(texts.base, unlabelled, every))  # not 0 for cross-entropies
    assert after - least < 0.9 * (before - least)


@pytest.mark.parametrize("job", [*ONE_OF_EACH, "similarity"])
def test_the_base_has_nothing_to_learn_from_itself(job, tmp_path):
    lessons, texts = lessons_of(job, tmp_path, n=12)
    lessons = replace(lessons, has_labels=False)
    every = np.arange(len(lessons))
    gradients = {}
    for name, model in (("base", texts.base), ("cut", apply(parse("keep(0)"), texts.base))):
        model.zero_grad(set_to_none=True)
        loss_of(model, lessons, every).backward()
        found = (p.grad for p in model.parameters() if p.grad is not None)
        gradients[name] = max(float(gradient.abs().max()) for gradient in found)
    assert gradients["base"] < 1e-3 * gradients["cut"]


@pytest.mark.parametrize("job", ONE_OF_EACH)  # an embedder's texts are compared with each other
def test_a_batch_is_the_sum_of_its_micro_batches(job, tmp_path):
    lessons, texts = lessons_of(job, tmp_path)
    cut = apply(parse("keep(0)"), texts.base)
    rows = np.random.default_rng(0).permutation(len(lessons))[:11]
    with torch.no_grad():
        whole = float(loss_of(cut, lessons, rows))
        parts = sum(float(loss_of(cut, lessons, part)) for part in np.array_split(rows, 4))
    assert whole == pytest.approx(parts, rel=1e-4)
    assert lessons.n_terms(rows) == sum(lessons.n_terms(p) for p in np.array_split(rows, 4))


def test_terms_are_counted_as_they_are_summed(tmp_path):
    rows = np.array([3, 0, 7, 8])
    for job, per_row in (("classification", 1), ("regression", 1), ("multilabel", 3)):
        lessons, _ = lessons_of(job, tmp_path / job)
        assert lessons.n_terms(rows) == 4 * per_row
        assert replace(lessons, has_labels=False).n_terms(rows) == 4 * per_row
    for job in ("spans", "reranking", "similarity", "embedding-text"):
        assert lessons_of(job, tmp_path / job)[0].n_terms(rows) == 4
    tagged, texts = lessons_of("tokens", tmp_path / "tokens")
    lengths = [len(row.words) for row in texts.dataset.rows()]
    assert tagged.n_terms(rows) == sum(lengths[row] for row in rows)
    plain = replace(tagged, has_labels=False)
    assert plain.n_terms(rows) == sum(int(tagged.texts.lengths[row]) for row in rows)
    hidden, texts = lessons_of("mlm-text", tmp_path / "mlm")
    starts = hidden.texts.offsets
    shown = [hidden.texts.ids[starts[row] : starts[row + 1]] for row in rows]
    mask = texts.tokenizer.mask_token_id
    assert hidden.n_terms(rows) == sum(int((ids == mask).sum()) for ids in shown) >= 4


def test_labels_have_their_share_of_the_loss(tmp_path):
    lessons, texts = lessons_of("classification", tmp_path)
    cut = apply(parse("keep(1)"), texts.base)
    rows = np.array([5, 2, 11, 4])
    chunk, targets = lessons.batch(rows)
    with torch.no_grad():
        outputs = lessons.outputs(adapt(cut), chunk, frozenset())
        mixed = lessons.loss(outputs, targets, chunk)
        taught = replace(lessons, has_labels=False).loss(outputs, targets, chunk)
    gold = [int(texts.dataset.targets[row]) for row in rows[chunk.texts]]
    right = [float(torch.softmax(o, 0)[g].log()) for o, g in zip(outputs, gold, strict=True)]
    expected = (1 - LABEL_SHARE) * float(taught) - LABEL_SHARE * sum(right)
    assert float(mixed) == pytest.approx(expected, rel=1e-5)


def test_only_labelled_tokens_count_where_tags_have_labels(tmp_path):
    lessons, texts = lessons_of("tokens", tmp_path)
    rows = np.arange(4)
    chunk, targets = lessons.batch(rows)
    outputs = lessons.outputs(adapt(texts.base), chunk, frozenset()).detach()
    unlabelled = lessons.targets[targets] < 0
    assert 0 < int(unlabelled.sum()) < len(unlabelled)
    moved = outputs.clone()
    moved[unlabelled, 0] += 5
    assert torch.equal(lessons.loss(moved, targets, chunk), lessons.loss(outputs, targets, chunk))


@pytest.mark.parametrize("family_type", ["bert", "roberta", "modernbert", "albert", "distilbert"])
def test_answers_behind_masks_are_plain_transformers_final_states(family_type, tmp_path):
    texts = lesson_texts("mlm-text", tmp_path, family_type, n=14)
    encoded = texts.examples(14).texts
    found = base_answers(texts.base, "hidden token", encoded)
    lessons = texts.lessons(14, found)
    plain = tiny_model(family_type, "mlm")
    plain.load_state_dict(texts.base.state_dict())
    states, logits = [], []
    for start, stop in zip(encoded.offsets, encoded.offsets[1:], strict=False):
        ids = torch.from_numpy(np.asarray(encoded.ids[start:stop], dtype=np.int64))[None]
        with torch.no_grad():
            out = plain(input_ids=ids, output_hidden_states=True)
        hidden = ids[0] == texts.tokenizer.mask_token_id
        states.append(out.hidden_states[-1][0, hidden])
        logits.append(out.logits[0, hidden])
    assert len(torch.cat(states)) >= 14
    assert np.abs(found - torch.cat(states).numpy()).max() < 1e-4
    with torch.no_grad():
        read = lessons.read(torch.from_numpy(found))
    assert float((read - torch.cat(logits)).abs().max()) < 1e-3


def test_fewer_texts_are_among_the_more(tmp_path):
    texts = lesson_texts("similarity", tmp_path, n=24)
    assert texts.n_texts == 48

    def lines(n: int) -> set[bytes]:
        made = texts.examples(n).texts
        ends = zip(made.offsets, made.offsets[1:], strict=False)
        return {made.ids[start:stop].tobytes() for start, stop in ends}

    assert len(texts.examples(10).texts) == 10
    assert lines(10) < lines(48)


def test_of_a_search_documents_are_texts_too(tmp_path):
    texts = lesson_texts("retrieval", tmp_path, n=12)
    assert texts.n_texts == 12 + 15  # queries and documents
    assert len(texts.examples(27).texts) == 27
    assert len(texts.examples(10).texts) == len(texts.answers(10)) == 10


@pytest.mark.parametrize("job", ["classification", "multilabel"])
def test_labels_are_taught_in_the_order_of_the_heads_outputs(job, tmp_path):
    """A checkpoint may name the same labels in another order: its outputs keep their meaning."""
    texts = lesson_texts(job, tmp_path)
    labels = texts.dataset.task.labels
    config = texts.base.config
    config.id2label = dict(enumerate(labels))
    targets = texts.examples(texts.n_texts).targets
    config.id2label = dict(enumerate(reversed(labels)))
    turned = texts.examples(texts.n_texts).targets
    expected = len(labels) - 1 - targets if job == "classification" else targets.flip(1)
    assert torch.equal(turned, expected)
    assert not torch.equal(turned, targets)


def test_texts_that_are_measured_are_not_healed_on(tmp_path):
    for name, lines in (
        ("heal", ("The cat sings.", "a red river", "An old cat", "the  CAT sings")),
        ("dev", ("the cat sings!", "a green river")),
    ):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    heal, dev = (
        open_data(DataSpec(path=tmp_path / f"{name}.txt", kind="text")) for name in ("heal", "dev")
    )
    left = [row.text for row in without_measured(heal, dev).rows()]
    assert left == ["a red river", "An old cat"]
