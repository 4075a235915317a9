"""``vocabulary(FILE)``: the file's texts give what they gave, and every text can still be written.

Held against plain transformers: both folders are loaded with its Auto classes.
"""

from __future__ import annotations

import json

import pyarrow
import pyarrow.parquet
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast

from microtome import Vocabulary, load, parse, save, tokenizer_of
from microtome.errors import CertificateFailed, DataError, EditError
from microtome.families import adapt, vocabulary
from microtome.surgery import apply, certify, certify_weights, operate, smaller_tokenizer
from microtome.surgery.vocabulary import texts_of
from microtome.surgery.vocabulary_proof import random_texts
from support.subwords import TEXTS, TOKENIZERS, save_with_subwords
from support.surgery_cases import fingerprint
from support.tiny import FAMILY_TYPES, WORDS, save_tiny, tiny_model

WORD_TEXTS = ["the big cat sees a bird.", "sings", "zebras, walked?", "ünknown €"]


def written(folder, texts):
    folder.mkdir(exist_ok=True)
    file = folder / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return file


def base_of(kind, folder):
    """A checkpoint and its texts: WordPiece for every family, BPE and Unigram where they are."""
    family, _, subwords = kind.partition(" ")
    if subwords:
        return save_with_subwords(folder, family), TEXTS
    return save_tiny(folder, family, with_tokenizer=True), WORD_TEXTS


KINDS = (*FAMILY_TYPES, *(f"{family} subwords" for family in TOKENIZERS))


@torch.no_grad()
def logits(folder, texts):
    """Plain transformers: tokens by name, and the logits of each by the token that they are for."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    batch = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    named = [tokenizer.convert_ids_to_tokens(row) for row in batch["input_ids"]]
    return named, model(**batch).logits, tokenizer.get_vocab()


@pytest.mark.parametrize("kind", KINDS)
def test_the_texts_of_the_file_give_the_same_outputs_in_plain_transformers(kind, tmp_path):
    base, texts = base_of(kind, tmp_path / "base")
    file = written(tmp_path, texts)
    done = operate(base, Vocabulary(file), tmp_path / "out")
    assert all(check.passed is not False for check in done.certificate.checks)
    assert done.cost_after.parameters < done.cost_before.parameters
    (before, was, old), (after, now, new) = (logits(f, texts) for f in (base, tmp_path / "out"))
    assert before == after
    assert len(new) == now.shape[-1] < len(old)
    left = [old[token] for token in sorted(new, key=new.get)]
    torch.testing.assert_close(now, was[..., left], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_random_texts_have_no_unknown_that_they_had_not_before(kind, tmp_path):
    base, texts = base_of(kind, tmp_path / "base")
    model = load(base)
    before, after = tokenizer_of(model), tokenizer_of(Vocabulary(written(tmp_path, texts))(model))
    n_random = 10_000 if kind.endswith("subwords") else 1000
    texts = [*random_texts(n_random, seed=1), *WORDS, *TEXTS, *WORD_TEXTS]
    for was, now in zip(before(texts).input_ids, after(texts).input_ids, strict=True):
        assert now.count(after.unk_token_id) <= was.count(before.unk_token_id)


@pytest.mark.parametrize("kind", KINDS)
def test_the_input_is_untouched_and_special_tokens_keep_their_names(kind, tmp_path):
    base, texts = base_of(kind, tmp_path / "base")
    model = load(base)
    before = fingerprint(model)
    edited = Vocabulary(written(tmp_path, texts))(model)
    assert fingerprint(model) == before
    old, new = tokenizer_of(model), tokenizer_of(edited)
    assert new.special_tokens_map == old.special_tokens_map
    pad = edited.config.pad_token_id
    assert new.convert_ids_to_tokens(pad) == old.convert_ids_to_tokens(model.config.pad_token_id)
    assert edited.get_input_embeddings().padding_idx in (pad, None)


@pytest.mark.parametrize("kind", ["bert", "albert", "roberta subwords", "xlm-roberta subwords"])
@pytest.mark.parametrize(
    "text",
    [
        "keep(0-1) | vocabulary({file})",
        "vocabulary({file}) | remove(2)",
        "vocabulary({file}) | vocabulary({fewer})",
        "randomize(seed=0) | vocabulary({file})",
        "vocabulary({file}) | randomize(seed=0)",
        "vocabulary({file}) | disable(*.1) | keep(0-1)",
    ],
)
def test_it_joins_with_other_edits(kind, text, tmp_path):
    base, texts = base_of(kind, tmp_path / "base")
    files = {"file": written(tmp_path, texts), "fewer": written(tmp_path / "fewer", texts[1:2])}
    done = operate(base, parse(text.format(**files)), tmp_path / "out")
    assert done.certificate.passed
    assert load(tmp_path / "out").config.vocab_size == len(AutoTokenizer.from_pretrained(done.out))


@pytest.mark.parametrize("head", ["none", "classification", "token-classification"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert", "electra"])
def test_models_without_a_decoder_have_smaller_embeddings(kind, head, tmp_path):
    base = save_tiny(tmp_path / "base", kind, head, with_tokenizer=True)
    file = written(tmp_path, WORD_TEXTS)
    done = operate(base, Vocabulary(file), tmp_path / "out")
    model = load(tmp_path / "out")
    assert len(adapt(model).word_embeddings) == model.config.vocab_size < 96
    assert done.certificate.passed


def test_saved_again_it_keeps_its_tokenizer_and_its_history_names_the_content(tmp_path):
    base = save_tiny(tmp_path / "base", with_tokenizer=True)
    edit = Vocabulary(written(tmp_path, WORD_TEXTS))
    edited = edit(load(base))
    save(edited, tmp_path / "one")
    save(load(tmp_path / "one"), tmp_path / "two")
    history = json.loads((tmp_path / "two" / "microtome.json").read_text())
    assert history["edits"] == [edit.identity]
    vocabularies = [
        AutoTokenizer.from_pretrained(tmp_path / name).get_vocab() for name in ("one", "two")
    ]
    assert vocabularies[0] == vocabularies[1] == tokenizer_of(edited).get_vocab()


def test_vocab_txt_is_written_anew_and_other_vocabulary_files_are_left_out(tmp_path):
    base = save_tiny(tmp_path / "base", with_tokenizer=True)
    ids = AutoTokenizer.from_pretrained(base).get_vocab()
    (base / "vocab.txt").write_text("".join(f"{t}\n" for t in sorted(ids, key=ids.get)))
    (base / "added_tokens.json").write_text("{}")
    operate(base, Vocabulary(written(tmp_path, WORD_TEXTS)), tmp_path / "out")
    smaller = AutoTokenizer.from_pretrained(tmp_path / "out").get_vocab()
    lines = (tmp_path / "out" / "vocab.txt").read_text().splitlines()
    assert lines == sorted(smaller, key=smaller.get)
    assert not (tmp_path / "out" / "added_tokens.json").exists()


def word_piece(folder, pieces, **files):
    """A tiny BERT with a WordPiece tokenizer of exactly these pieces."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {piece: index for index, piece in enumerate([*specials, *pieces])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), specials, strict=True))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, **{f"{name}_token": token for name, token in names.items()}
    )
    save_tiny(folder, "bert", vocab_size=len(vocabulary))
    tokenizer.save_pretrained(folder)
    return folder


def test_a_word_that_was_unknown_stays_unknown(tmp_path):
    """``abc`` got stuck after ``ab``; without that piece ``a ##bc`` would come through."""
    pieces = ["a", "b", "x", "##b", "ab", "##bc", "bb"]
    base = word_piece(tmp_path / "base", pieces)
    edited = Vocabulary(written(tmp_path, ["abc", "xbc"]))(load(base))
    tokenizer = tokenizer_of(edited)
    assert tokenizer.tokenize("abc xbc") == ["[UNK]", "x", "##bc"]
    assert "bb" not in tokenizer.get_vocab()


def test_a_piece_with_a_character_that_is_no_piece_stays(tmp_path):
    base = word_piece(tmp_path / "base", ["a", "b", "##a", "##b", "az", "##bz", "ab", "##ba"])
    tokenizer = tokenizer_of(Vocabulary(written(tmp_path, ["a"]))(load(base)))
    assert {"az", "##bz"} <= tokenizer.get_vocab().keys()
    assert not {"ab", "##ba"} & tokenizer.get_vocab().keys()


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "camembert", "mpnet"])
def test_the_padding_token_does_not_move_where_positions_are_counted_from_it(kind, tmp_path):
    model = load(save_tiny(tmp_path / "base", kind, with_tokenizer=True))
    edited = Vocabulary(written(tmp_path, ["cat"]))(model)
    assert edited.config.pad_token_id == model.config.pad_token_id == 1


def test_every_format_holds_the_same_texts(tmp_path):
    rows = [{"text": "a cat, big", "label": "good"}, {"text": "a dog", "label": "bad"}]
    (tmp_path / "a.csv").write_text('text,label\n"a cat, big",good\na dog,bad\n')
    (tmp_path / "a.tsv").write_text("text\tlabel\na cat, big\tgood\na dog\tbad\n")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    expected = {"text", "label", "a cat, big", "good", "a dog", "bad"}
    for suffix in ("csv", "tsv", "jsonl", "parquet"):
        assert set(texts_of(tmp_path / f"a.{suffix}")) == expected
    (tmp_path / "a.txt").write_text("a cat, big\n\na dog\n")
    assert set(texts_of(tmp_path / "a.txt")) == {"a cat, big", "", "a dog"}


def test_what_can_not_be_done_is_said_in_one_line(tmp_path):
    file = written(tmp_path, ["the cat"])
    plain = save_tiny(tmp_path / "plain")
    with pytest.raises(EditError, match="the model has no tokenizer"):
        Vocabulary(file)(load(plain))
    with pytest.raises(EditError, match="the model has no tokenizer"):
        Vocabulary(file)(tiny_model("bert"))
    base = save_tiny(tmp_path / "base", with_tokenizer=True)
    with pytest.raises(EditError, match=r"none\.txt doesn't exist"):
        Vocabulary(tmp_path / "none.txt")(load(base))
    with pytest.raises(DataError, match=r"texts\.txt has no text in it"):
        Vocabulary(written(tmp_path / "blank", ["", " "]))(load(base))
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(DataError, match="expected texts in one of"):
        Vocabulary(tmp_path / "a.json")(load(base))
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "cat": 1}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(plain)
    with pytest.raises(EditError, match="BPE or Unigram tokenizer, got WordLevel"):
        Vocabulary(file)(load(plain))


# --- mutants: what the certificate must catch ------------------------------------------------


def failed(certificate):
    return {check.name for check in certificate.checks if check.passed is False}


@pytest.mark.parametrize("kind", KINDS)
def test_two_swapped_rows_are_caught(kind, tmp_path):
    base, texts = base_of(kind, tmp_path / "base")
    model, edit = load(base), Vocabulary(written(tmp_path, texts))
    edited = edit(model)
    assert not failed(certify_weights(edit, model, edited))
    with torch.no_grad():
        rows = adapt(edited).word_embeddings
        rows[[10, 11]] = rows[[11, 10]]
    assert failed(certify_weights(edit, model, edited)) == {"other tensors"}


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_a_decoder_that_kept_its_rows_is_caught(kind, tmp_path, monkeypatch):
    base, texts = base_of(kind, tmp_path / "base")
    model, edit = load(base), Vocabulary(written(tmp_path, texts))
    decoder = adapt(model).mlm_decoder()
    left = decoder.weight if decoder.bias is None else decoder.bias
    found = vocabulary.vocabulary_tensors

    def without_decoder(family):
        return {n: v for n, v in found(family).items() if v.shape != left.shape or v.dim() == 2}

    if decoder.bias is None:  # EuroBERT's decoder is a matrix, not tied
        without_decoder = lambda family: dict(list(found(family).items())[:1])  # noqa: E731
    monkeypatch.setattr(vocabulary, "vocabulary_tensors", without_decoder)
    edited = apply(edit, model)
    monkeypatch.undo()
    assert "other tensors" in failed(certify_weights(edit, model, edited))


def mutant_of(monkeypatch, tokenizer_kind, change):
    """Surgery with another idea of which tokens are needed."""
    right = smaller_tokenizer._NEEDED[tokenizer_kind]
    wrong = lambda model, kept: change(model, right(model, kept))  # noqa: E731
    monkeypatch.setitem(smaller_tokenizer._NEEDED, tokenizer_kind, wrong)


def test_a_character_that_is_dropped_is_caught(tmp_path, monkeypatch):
    base = save_tiny(tmp_path / "base", with_tokenizer=True)
    mutant_of(monkeypatch, "WordPiece", lambda model, needed: needed - {model["vocab"]["q"]})
    with pytest.raises(CertificateFailed, match="no new unknowns"):
        operate(base, Vocabulary(written(tmp_path, WORD_TEXTS)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_merge_that_is_dropped_is_caught(tmp_path, monkeypatch):
    """Only tokens that occur and bytes: what leads to the tokens is missing."""
    base = save_with_subwords(tmp_path / "base", "roberta")

    def bytes_alone(model, needed):
        made = {"".join(pair) for pair in model["merges"]}
        return {index for token, index in model["vocab"].items() if token not in made}

    mutant_of(monkeypatch, "BPE", bytes_alone)
    with pytest.raises(CertificateFailed, match="same tokens"):
        operate(base, Vocabulary(written(tmp_path, TEXTS)), tmp_path / "out")


def test_a_dropped_piece_of_unigram_is_caught(tmp_path, monkeypatch):
    base = save_with_subwords(tmp_path / "base", "xlm-roberta")

    def without_a_letter(model, needed):
        pieces = [piece for piece, _ in model["vocab"]]
        return needed - {pieces.index("B") if "B" in pieces else pieces.index("z")}

    mutant_of(monkeypatch, "Unigram", without_a_letter)
    with pytest.raises(CertificateFailed, match="no new unknowns"):
        operate(base, Vocabulary(written(tmp_path, ["cat"])), tmp_path / "out")


def test_a_tokenizer_of_another_order_is_caught(tmp_path):
    base = save_tiny(tmp_path / "base", with_tokenizer=True)
    model, edit = load(base), Vocabulary(written(tmp_path, WORD_TEXTS))
    edited = edit(model)
    save(edited, tmp_path / "out")
    file = tmp_path / "out" / "tokenizer.json"
    definition = json.loads(file.read_text())
    ids = definition["model"]["vocab"]
    ids["cat"], ids["bird"] = ids["bird"], ids["cat"]
    file.write_text(json.dumps(definition))
    assert "same outputs" in failed(certify(edit, model, edited, tmp_path / "out"))
