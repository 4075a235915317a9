"""``vocabulary(FILE)`` on real models: all-MiniLM with the texts of SST-2, and nano-bert."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from microtome import Vocabulary, load, load_tokenizer, tokenizer_of
from microtome.models import resolve
from microtome.surgery import operate
from microtome.surgery.vocabulary_proof import random_texts

pytestmark = pytest.mark.real

SST2 = Path(__file__).resolve().parents[3] / "shared" / "data" / "glue" / "SST-2"
N_UNICODE = 10_000


@pytest.fixture(scope="module")
def sentences():
    if not (SST2 / "train.tsv").is_file():
        pytest.skip("the real data isn't there: ../shared/data/glue/SST-2")
    lines = (SST2 / "train.tsv").read_text(encoding="utf-8").split("\n")[1:]
    return [line.split("\t")[0] for line in lines if line]


def rows_differing(before, after, texts):
    """How many texts are cut into other tokens."""
    pairs = zip(before(texts).input_ids, after(texts).input_ids, strict=True)
    names = before.convert_ids_to_tokens, after.convert_ids_to_tokens
    return sum(names[0](was) != names[1](now) for was, now in pairs)


def new_unknowns(before, after, texts):
    pairs = zip(before(texts).input_ids, after(texts).input_ids, strict=True)
    return sum(now.count(after.unk_token_id) > was.count(before.unk_token_id) for was, now in pairs)


def test_all_minilm_with_the_texts_of_sst2(sentences, tmp_path):
    done = operate("minilm", Vocabulary(SST2 / "train.tsv"), tmp_path / "out")
    assert done.certificate.passed
    before, after = load_tokenizer("minilm"), AutoTokenizer.from_pretrained(tmp_path / "out")
    assert len(after) < len(before) / 2
    assert rows_differing(before, after, sentences) == 0
    assert new_unknowns(before, after, random_texts(N_UNICODE, seed=7)) == 0
    whole = AutoModel.from_pretrained(resolve("minilm").path, dtype=torch.float32).eval()
    smaller = AutoModel.from_pretrained(tmp_path / "out", dtype=torch.float32).eval()
    texts = sentences[::4000]
    with torch.no_grad():
        was, now = (
            model(**tokenizer(texts, padding=True, return_tensors="pt")).last_hidden_state
            for model, tokenizer in ((whole, before), (smaller, after))
        )
    torch.testing.assert_close(now, was, rtol=0, atol=1e-6)


def test_nano_bert_with_its_masked_lm_head(sentences, tmp_path):
    texts = sentences[:500]
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(texts), encoding="utf-8")
    operate("nano-bert", Vocabulary(file), tmp_path / "out")
    before, after = load_tokenizer("nano-bert"), AutoTokenizer.from_pretrained(tmp_path / "out")
    assert len(after) < len(before)
    assert rows_differing(before, after, texts) == 0
    assert new_unknowns(before, after, random_texts(N_UNICODE, seed=8)) == 0
    smaller = AutoModelForMaskedLM.from_pretrained(tmp_path / "out", dtype=torch.float32).eval()
    ids = after.get_vocab()
    left = before.convert_tokens_to_ids(sorted(ids, key=ids.get))
    with torch.no_grad():
        was, now = (
            model(**tokenizer(texts[::60], padding=True, return_tensors="pt")).logits
            for model, tokenizer in ((load("nano-bert"), before), (smaller, after))
        )
    tolerance = 1e-6 * float(was.abs().max())
    torch.testing.assert_close(now, was[..., left], rtol=0, atol=tolerance)


def test_tokenizer_of_is_what_is_saved(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("a very good film\n", encoding="utf-8")
    edited = Vocabulary(file)(load("nano-bert"))
    operate("nano-bert", Vocabulary(file), tmp_path / "out")
    saved = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert saved.backend_tokenizer.to_str() == tokenizer_of(edited).backend_tokenizer.to_str()
