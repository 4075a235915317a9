"""Pairs of patching: read from files, made by swapping words, chosen by the model's answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokenizers import AddedToken

from microtome.errors import DataError
from microtome.experiments.field.patching.pair_file import TextPair, read_pairs
from microtome.experiments.field.patching.pairs import (
    NO_MASK,
    NOT_ONE_PIECE,
    OTHER_LENGTH,
    SAME,
    TOO_LONG,
    Encoder,
    encoded_pairs,
)
from microtome.experiments.field.patching.prepared import ALIKE, chosen_swaps, prepared_pairs
from microtome.experiments.field.patching.swaps import made_pairs, words_of
from microtome.families import adapt
from microtome.tasks.task import Row
from support.subwords import byte_level_bpe
from support.tiny import tiny_model, tiny_tokenizer
from support.training_rows import rows

ROWS = [
    Row("the big cat sees a red dog"),
    Row("she never sleeps, he always sings.", "it's an old house"),
    Row("houses and cats"),  # two pieces each: house ##s
    Row("?"),
]


def encoder(*, max_length=32, segments=True):
    return Encoder(tiny_tokenizer(), max_length=max_length, segments=segments)


def tried(given, *, masked=False, seed=0, made=None):
    return made_pairs(
        given, range(len(given)), made or encoder(), tries=6, seed=seed, masked=masked
    )


def both(given):
    return (given,) if isinstance(given, str) else given


@pytest.mark.parametrize("masked", [False, True])
def test_a_swap_changes_one_word_into_another_of_the_data(masked):
    words = {word for row in ROWS for text in row[:2] if text for word in text.split()}
    words = {word.strip(",.?") for word in words}
    found = tried(ROWS, masked=masked)
    assert [len(some) > 0 for some in found] == [True, True, True, False]
    for number, some in enumerate(found):
        for pair in some:
            assert pair.texts.row == number
            texts = both(pair.texts.clean), both(pair.texts.corrupted)
            assert len({str(other.texts.corrupted) for other in some}) == len(some)
            changed = [
                (one, two)
                for clean, corrupted in zip(*texts, strict=True)
                for one, two in zip(clean.split(), corrupted.split(), strict=True)
                if one != two
            ]
            ((old, new),) = changed
            assert {old.strip(",."), new.strip(",.")} <= words
            assert len(pair.clean) == len(pair.corrupted)
            assert len(pair.changed) in (1, 2)
            # Both texts are texts: encoding them again gives what is patched.
            shown = [text.replace("[MASK]", tiny_tokenizer().mask_token) for text in texts[1]]
            assert tiny_tokenizer()(*shown)["input_ids"] == pair.corrupted.ids
            assert (pair.masked >= 0) == masked
            if masked:
                plain = [text.replace("[MASK]", pair.texts.answer) for text in texts[0]]
                assert tiny_tokenizer()(*plain)["input_ids"][pair.masked] == pair.answer
                assert pair.masked not in pair.changed


def test_swaps_depend_on_the_seed_and_on_no_other_row_than_by_their_words():
    first, again, other = (
        [[pair.texts.corrupted for pair in some] for some in tried(ROWS, seed=seed)]
        for seed in (0, 0, 1)
    )
    assert first == again != other
    turned = [[pair.texts.corrupted for pair in some] for some in tried(ROWS[::-1])]
    assert turned[::-1] == first


def test_a_long_text_is_cut_to_what_the_model_reads():
    long = [Row("a big cat sees the red dog and she sings"), Row("the old cat", "he likes a bird")]
    short = [Row("a big cat sees the red dog"), Row("the old cat", "he likes a")]
    made = encoder(max_length=9)
    found = [
        [(pair.texts.clean, pair.texts.corrupted, pair.clean.ids) for pair in some]
        for some in tried(long, made=made)
    ]
    assert found == [
        [(pair.texts.clean, pair.texts.corrupted, pair.clean.ids) for pair in some]
        for some in tried(short, made=made)
    ]
    assert [len(some) > 0 for some in found] == [True, True]
    assert {len(ids) for some in found for _, _, ids in some} == {9}


def test_the_words_of_a_byte_level_tokenizer_are_those_of_the_text():
    tokenizer = byte_level_bpe()
    mask = AddedToken("<mask>", lstrip=True, special=True)  # as published ones have it
    tokenizer.add_special_tokens({"mask_token": mask})
    made = Encoder(tokenizer, max_length=64, segments=False)
    text = "Encoders are made of layers, the dog doesn't mind."
    words = words_of(text, made.encode(text))
    assert [word.text for word in words] == [
        "Encoders", "are", "made", "of", "layers", "the", "dog", "mind",
    ]  # fmt: skip
    for word in words:
        assert text[word.start : word.stop] == word.text
        assert tokenizer.decode(made.encode(text).ids[slice(*_ends(word))]).strip() == word.text
    for masked in (False, True):
        (pair, *_) = tried([Row(text)], made=made, masked=masked)[0]
        assert len(pair.changed) >= 1
        assert (pair.masked >= 0) == masked


def _ends(word):
    return word.tokens.start, word.tokens.stop


def margins(model, texts):
    """Of plain transformers: logits of each text."""
    found = []
    for text in texts:
        ids = torch.tensor([tiny_tokenizer()(text)["input_ids"]])
        found.append(model(input_ids=ids).logits[0])
    return torch.stack(found)


@torch.no_grad()
def test_the_swap_that_is_taken_changes_the_answer_most(tmp_path):
    model, dataset = tiny_model("bert", "classification", num_labels=3), rows(tmp_path, n=6)
    found = chosen_swaps(adapt(model), encoder(), dataset, tries=6, seed=5, least=0.0)
    every = made_pairs(list(dataset.rows()), range(6), encoder(), tries=6, seed=5, masked=False)
    taken = {pair.texts.row: place for place, pair in enumerate(found.pairs)}
    assert len(taken) >= 4
    for row, place in taken.items():
        clean = margins(model, [every[row][0].texts.clean])[0]
        corrupted = margins(model, [pair.texts.corrupted for pair in every[row]])
        label = int(clean.argmax())
        others = [other for other in range(3) if other != label]
        ahead = corrupted[:, label] - corrupted[:, others].max(1).values
        most = int(ahead.argmin())
        assert found.pairs[place].texts.corrupted == every[row][most].texts.corrupted
        assert found.questions.plus[place] == label
        assert found.questions.minus[place] == others[int(corrupted[most, others].argmax())]


@torch.no_grad()
def test_a_masked_lm_is_asked_for_the_hidden_word_against_what_it_guesses_next(tmp_path):
    model, dataset = tiny_model("bert"), rows(tmp_path, n=4)
    found = chosen_swaps(adapt(model), encoder(), dataset, tries=3, seed=0, least=0.0)
    for place, pair in enumerate(found.pairs):
        (logits,) = model(input_ids=torch.tensor([pair.corrupted.ids])).logits[:, pair.masked]
        logits[pair.answer] = -torch.inf
        assert found.questions.minus[place] == int(logits.argmax())
        assert found.questions.plus[place] == pair.answer


def test_of_several_labels_the_one_that_moves_most_is_asked_for(tmp_path):
    config = {"num_labels": 4, "problem_type": "multi_label_classification"}
    model, dataset = tiny_model("bert", "classification", **config), rows(tmp_path, n=4)
    found = chosen_swaps(adapt(model), encoder(), dataset, tries=2, seed=0, least=0.0)
    for place, pair in enumerate(found.pairs):
        with torch.no_grad():
            moved = margins(model, [pair.texts.corrupted]) - margins(model, [pair.texts.clean])
        assert found.questions.plus[place] == int(moved.abs().argmax())
        assert found.questions.minus[place] == -1
        assert found.questions.change[place] == pytest.approx(float(moved.abs().max()), abs=1e-4)


def test_what_cannot_be_patched_is_left_out_and_counted():
    pairs = [
        TextPair("the cat sees", "the dog sees", 0),
        TextPair("the cat sees", "the big cat sees", 1),
        TextPair("the CAT", "the cat", 2),
        TextPair("a " * 20, "the " * 20, 3),
    ]
    found, left_out = encoded_pairs(pairs, encoder(max_length=10), masked=False)
    assert [pair.texts.row for pair in found] == [0]
    assert found[0].changed.tolist() == [2]
    assert left_out == {OTHER_LENGTH: 1, SAME: 1, TOO_LONG: 1}


def test_pairs_at_a_mask_may_name_the_words_that_are_compared():
    pairs = [
        TextPair("the [MASK] sees", "a [MASK] sees", 0, "cat", "dog"),
        TextPair("the [MASK] sees", "a [MASK] sees", 1),
        TextPair("the [MASK] sees", "the cat [MASK]", 2),
        TextPair("the cat sees", "the dog sees", 3),
        TextPair("the [MASK] sees", "a [MASK] sees", 4, "cats"),
    ]
    found, left_out = encoded_pairs(pairs, encoder(), masked=True)
    cat, dog = tiny_tokenizer().convert_tokens_to_ids(["cat", "dog"])
    assert [(p.masked, p.answer, p.other) for p in found] == [(2, cat, dog), (2, -1, -1)]
    assert left_out == {NO_MASK: 2, NOT_ONE_PIECE: 1}


def test_pairs_whose_answers_hardly_differ_are_left_out(tmp_path):
    model = tiny_model("bert", "classification")
    given = [
        TextPair("the cat sees a dog", f"the cat sees a {word}", 0)
        for word in ("bird", "house", "car", "river", "tree")
    ]
    every = prepared_pairs(adapt(model), encoder(), given, least=0.0)
    assert len(every.pairs) == 5
    with torch.no_grad():
        logits = margins(model, [p.texts.corrupted for p in every.pairs]).double().numpy()
        clean = margins(model, [given[0].clean]).double().numpy()[0]
    label = int(clean.argmax())
    gaps = np.abs(clean[label] - clean[1 - label] - logits[:, label] + logits[:, 1 - label])
    least = float(np.sort(gaps)[2] / gaps.mean())  # the middle one is just large enough
    found = prepared_pairs(adapt(model), encoder(), given, least=min(least - 1e-4, 0.999))
    kept = [p.texts.corrupted for p in every.pairs if p.texts.corrupted]
    expected = [text for text, gap in zip(kept, gaps, strict=True) if gap >= np.sort(gaps)[2]]
    assert [pair.texts.corrupted for pair in found.pairs] == expected
    assert found.left_out == {ALIKE: 2}
    with pytest.raises(DataError, match="no pair is left to patch: 1 × no token differs"):
        prepared_pairs(adapt(model), encoder(), [TextPair("a", "a", 0)], least=0.0)


def test_pairs_are_read_from_files_by_their_columns(tmp_path):
    table = tmp_path / "pairs.csv"
    table.write_text('corrupted,clean,answer\n"a, b",c,\nd,c,e\n')
    assert read_pairs(table) == [TextPair("c", "a, b", 0), TextPair("c", "d", 0, "e")]
    lines = tmp_path / "pairs.jsonl"
    lines.write_text('{"clean": "a", "corrupted": "b", "clean_pair": "c"}\n')
    assert read_pairs(lines) == [TextPair(("a", "c"), ("b", "c"), 0)]


def test_the_lines_of_a_file_that_are_left_out_are_named(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("clean,corrupted\na cat,a\na cat,a dog\n" + "a,the cat\n" * 5)
    found, left_out = encoded_pairs(read_pairs(file), encoder(), masked=False)
    assert [pair.texts.line for pair in found] == [3]
    assert left_out == {f"{OTHER_LENGTH}, line 2, 4, 5, 6, 7, …": 6}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pairs.csv", "clean,text\na,b\n", "pairs.csv has no column 'corrupted'"),
        ("pairs.tsv", "clean\tcorrupted\n", "pairs.tsv has no rows"),
        ("pairs.txt", "a\n", "expected pairs in a .csv .tsv .jsonl or .parquet file"),
        ("pairs.jsonl", '{"clean": "a", "corrupted": 3}\n', "line 1: expected a text"),
    ],
)
def test_files_that_hold_no_pairs_are_refused(tmp_path, name, content, message):
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(DataError, match=message):
        read_pairs(file)
