"""Masks of plain text: chosen by each text's content alone, ordinary tokens only."""

from __future__ import annotations

import numpy as np
import pytest

from microtome.errors import RequestError
from microtome.tasks import DataSpec, encode, open_data
from microtome.tasks.encoding.masking import SHOWN, masked
from support.labelled_texts import sentences
from support.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()


def dataset_of(folder, texts):
    file = folder / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in texts))
    return open_data(DataSpec(path=file))


def hidden_by_text(dataset):
    """For every text, the places that are masked and what they hide."""
    encoded = masked(encode(dataset, TOKENIZER, cache=False), dataset, TOKENIZER)
    found = {}
    for row, text in enumerate(dataset.rows()):
        part = slice(*encoded.offsets[row : row + 2])
        places = np.flatnonzero(encoded.targets[part] != SHOWN)
        found[text.text] = list(zip(places, encoded.targets[part][places], strict=True))
    return found


def test_a_seventh_of_the_ordinary_tokens_is_hidden_and_nothing_else_changes(tmp_path):
    dataset = dataset_of(tmp_path, sentences(40))
    plain = encode(dataset, TOKENIZER, cache=False)
    encoded = masked(plain, dataset, TOKENIZER)
    is_hidden = encoded.targets != SHOWN
    assert (encoded.ids[is_hidden] == TOKENIZER.mask_token_id).all()
    assert (encoded.targets[is_hidden] == plain.ids[is_hidden]).all()
    assert (encoded.ids[~is_hidden] == plain.ids[~is_hidden]).all()
    assert not (is_hidden & plain.special).any()
    assert not np.isin(encoded.targets[is_hidden], TOKENIZER.all_special_ids).any()
    for row in range(len(plain)):
        part = slice(*plain.offsets[row : row + 2])
        n_ordinary = int((~plain.special[part]).sum())
        assert is_hidden[part].sum() == max(1, round(0.15 * n_ordinary))


def test_masks_depend_on_the_text_alone(tmp_path):
    texts = sentences(30)
    whole = hidden_by_text(dataset_of(tmp_path, texts))
    turned = hidden_by_text(dataset_of(tmp_path, texts[::-1]))
    few = hidden_by_text(dataset_of(tmp_path, texts).limit(7))
    assert turned == whole
    assert few == {text: whole[text] for text in few}
    assert len({tuple(places) for places in whole.values()}) > 10


def test_a_tokenizer_without_a_mask_token_is_refused(tmp_path):
    tokenizer = tiny_tokenizer()
    tokenizer.mask_token = None
    dataset = dataset_of(tmp_path, sentences(3))
    with pytest.raises(RequestError, match="mask token"):
        masked(encode(dataset, tokenizer, cache=False), dataset, tokenizer)
