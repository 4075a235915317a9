"""Patterns of attention maps: the network's laws, the shipped classifier, counts against a loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from microtome.errors import DataError
from microtome.observe import Texts, stream, vocabulary_of
from microtome.observe.patterns import (
    PATTERNS,
    SHIPPED,
    PatternClassifier,
    PatternCounts,
    PatternNetwork,
    load_classifier,
    planes_of,
    second_texts,
    token_kinds,
)
from microtome.observe.patterns.network import along_lines
from microtome.observe.patterns.shares import corrected, drawn_shares, mistakes
from patterns.training import save_classifier
from support.drawn_maps import pure, random_maps, structured
from support.tiny import tiny_model, tiny_tokenizer

V, D, VD, B, _ = range(5)


def network(seed=0):
    torch.manual_seed(seed)
    return PatternNetwork().eval()


def test_there_are_eight_convolutions_and_the_file_is_small():
    made = network()
    assert sum(isinstance(m, torch.nn.Conv2d) for m in made.modules()) == 8
    assert SHIPPED.stat().st_size < 2 * 2**20


@pytest.mark.parametrize("length", [2, 3, 8, 13, 60])
def test_padding_changes_nothing(length):
    made, maps = network(), random_maps(3, length)
    second = torch.arange(length)[None].expand(3, -1) >= torch.tensor(
        [[1], [length // 2], [length]]
    )
    padded = torch.zeros(3, length + 9, length + 9)
    padded[:, :length, :length] = maps
    marks = torch.zeros(3, length + 9, dtype=torch.bool)
    marks[:, :length] = second
    real = torch.arange(length + 9)[None].expand(3, -1) < length
    with torch.no_grad():
        alone = made(planes_of(maps, second))
        together = made(planes_of(padded, marks, real), real)
    torch.testing.assert_close(alone, together, rtol=1e-4, atol=1e-5)


def test_lines_hold_their_own_means():
    maps = random_maps(2, 6)
    found = along_lines(maps, torch.tensor([6.0, 6.0]))
    for i in range(6):
        for j in range(6):
            mean = maps.diagonal(j - i, -2, -1).mean(-1)
            torch.testing.assert_close(found[:, i, j], mean)


def test_a_single_text_is_never_block():
    made = network()
    with torch.no_grad():
        made.classes.bias[B] = 100.0  # would say block of everything
    classifier = PatternClassifier(made, np.eye(5, dtype=np.int64))
    maps = random_maps(4, 9)
    second = torch.zeros(4, 9, dtype=torch.bool)
    assert (classifier.classify(maps, second) != B).all()
    assert (classifier.classify(maps) != B).all()
    second[:, 5:] = True
    assert (classifier.classify(maps, second) == B).all()


def test_a_saved_classifier_comes_back(tmp_path):
    made = network(3)
    confusion = np.arange(25).reshape(5, 5)
    save_classifier(tmp_path / "own.safetensors", made, confusion=confusion, figures={"f1": 0.5})
    back = load_classifier(tmp_path / "own.safetensors")
    maps = random_maps(5, 11)
    original = PatternClassifier(made, confusion)
    assert back.classify(maps).tolist() == original.classify(maps).tolist()
    assert (back.confusion == confusion).all()
    assert back.figures == {"f1": 0.5}


def test_other_files_are_refused(tmp_path):
    from safetensors.torch import save_file

    (tmp_path / "text.safetensors").write_text("no weights")
    save_file({"weight": torch.zeros(2)}, tmp_path / "other.safetensors")
    for name in ("text", "other", "absent"):
        with pytest.raises(DataError):
            load_classifier(tmp_path / f"{name}.safetensors")


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_second_texts_and_kinds(family):
    tokenizer = tiny_tokenizer(family)
    rows = [tokenizer("the cat sees."), tokenizer("the cat.", "a dog sees it.")]
    special = [[s is None for s in row.sequence_ids()] for row in rows]
    texts = Texts.of([row["input_ids"] for row in rows], special=special)
    n = len(rows[0]["input_ids"])
    assert second_texts(texts)[:n].sum() == 0
    assert second_texts(texts)[n:].tolist() == [False] * 5 + [True] * 6  # [SEP] ends its text
    kinds = token_kinds(texts, vocabulary_of(tokenizer))
    assert kinds.tolist() == [1, 0, 0, 0, 3, 2, 1, 0, 0, 3, 2, 0, 0, 0, 0, 3, 2]


def test_counts_equal_a_loop_over_eager_maps():
    model, tokenizer = tiny_model("bert", "classification"), tiny_tokenizer("bert")
    pairs = [("the cat sees", "a dog"), ("a bird", "no it is not"), ("the cat sees", "a dog runs")]
    rows = [tokenizer(*pair, return_token_type_ids=True) for pair in pairs]
    special = [[s is None for s in row.sequence_ids()] for row in rows]
    segments = [row["token_type_ids"] for row in rows]
    texts = Texts.of([row["input_ids"] for row in rows], segments=segments, special=special)
    classifier = PatternClassifier(network(1), np.eye(5, dtype=np.int64))
    second, kinds = second_texts(texts), token_kinds(texts, vocabulary_of(tokenizer))
    counts = PatternCounts(classifier, second=second, kinds=kinds)
    stream(model, texts, [counts])
    model.set_attn_implementation("eager")
    for i, row in enumerate(rows):
        with torch.no_grad():
            batch = {k: torch.tensor([v]) for k, v in row.items()}
            eager = model(**batch, output_attentions=True).attentions
        span = slice(texts.offsets[i], texts.offsets[i + 1])
        for layer, maps in enumerate(eager):
            marks = torch.from_numpy(second[span])[None].expand(maps.shape[1], -1)
            wanted = classifier.classify(maps[0], marks).numpy()
            assert counts.found[i, layer].tolist() == wanted.tolist()
            columns = maps[0].mean(-2).argmax(-1).numpy()
            for head, column in enumerate(columns):
                stripe = kinds[span][column] if wanted[head] in (V, VD) else 255
                assert counts.stripes[i, layer, head] == stripe


def test_correction_gives_back_the_shares_behind_known_mistakes():
    rng = np.random.default_rng(0)
    confusion = np.diag([90, 80, 70, 60, 50]) + rng.integers(1, 12, size=(5, 5))
    rates = mistakes(confusion, pairs=True)
    true = np.array([0.4, 0.1, 0.2, 0.05, 0.25])
    assert corrected(true @ rates, rates) == pytest.approx(true, abs=0.01)
    single = mistakes(confusion, pairs=False)
    without = np.array([0.5, 0.1, 0.2, 0.0, 0.2])
    found = corrected(without @ single, single)
    assert found == pytest.approx(without, abs=0.01)
    assert found[B] == 0


def test_drawn_shares_have_the_standard_error_of_a_mean():
    rng = np.random.default_rng(1)
    by_text = np.eye(5)[rng.integers(0, 5, size=400)]
    drawn = drawn_shares(by_text, 0)
    p = by_text.mean(axis=0)
    assert drawn.mean(axis=0) == pytest.approx(p, abs=0.005)
    assert drawn.std(axis=0) == pytest.approx(np.sqrt(p * (1 - p) / 400), rel=0.15)
    doubled = np.repeat(by_text, 4, axis=0)  # four copies of each text say no more than one
    again = drawn_shares(doubled, 0, np.repeat(np.arange(400), 4))
    assert again.std(axis=0) == pytest.approx(drawn.std(axis=0), rel=0.15)


def test_the_shipped_classifier_knows_pure_structures():
    classifier = load_classifier()
    second = (torch.arange(24) >= 12)[None]
    maps = torch.stack([pure(kind, 24, 12) for kind in ("stripe", "line", "block")])
    maps = 0.9 * maps + 0.1 * random_maps(3, 24)
    assert classifier.classify(maps, second.expand(3, -1)).tolist() == [V, D, B]


@pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
def test_the_shipped_classifier_names_stripes_on_cls_and_sep_at_every_length(pair):
    """A quarter of the attention is background; a stripe has twice the weight of its line."""
    classifier = load_classifier()
    wrong = []
    for length in range(10, 201):
        border = length // 2 if pair else length
        offset = length % 3 - 1
        cases = {("no stripe", D): structured(length, line=0.75, offset=offset)}
        for column in {0, border - 1, length - 1}:  # [CLS] and each [SEP]
            cases[column, V] = structured(length, 0.75, column=column)
            cases[column, VD] = structured(length, 0.5, 0.25, column=column, offset=offset)
        second = (torch.arange(length) >= border).expand(len(cases), -1)
        classes = classifier.classify(torch.stack(list(cases.values())), second).tolist()
        wrong += [
            (length, column, PATTERNS[true], PATTERNS[given])
            for (column, true), given in zip(cases, classes, strict=True)
            if given != true
        ]
    assert not wrong
