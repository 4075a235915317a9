"""all-mpnet-base-v2: 12 layers of 768, a position bias, a sentence-transformers folder.

It is too large for the shared folder: MICROTOME_MPNET names the folder that it is in.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from microtome.edits import parse
from microtome.models import load, load_tokenizer
from microtome.observe import SampledMaps, Texts, stream
from microtome.observe.embedding import embed
from microtome.surgery import operate

FOLDER = os.environ.get("MICROTOME_MPNET", "")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not FOLDER, reason="MICROTOME_MPNET names no all-mpnet-base-v2"),
]


@pytest.fixture(scope="module")
def sentences(shared_data):
    lines = shared_data("data/glue/STS-B/dev.tsv").read_text().splitlines()[1:9]
    long = " ".join(line.split("\t")[7] for line in lines * 3)  # distances beyond all buckets
    return [line.split("\t")[7] for line in lines] + [long]


def plain_embeddings(folder, sentences):
    """As its card says: mean over tokens, then norm 1."""
    model, tokenizer = (
        AutoModel.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    batch = tokenizer(sentences, padding=True, truncation=True, max_length=384, return_tensors="pt")
    mask = batch["attention_mask"][..., None]
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1)).numpy()


def test_embeddings_equal_plain_transformers(sentences):
    model = load(FOLDER)
    assert type(model).__name__ == "MPNetModel"  # its config names a masked LM
    ours = embed(model, load_tokenizer(FOLDER), sentences)
    np.testing.assert_allclose(ours, plain_embeddings(FOLDER, sentences), rtol=0, atol=1e-5)


def test_maps_equal_plain_transformers(sentences):
    model, tokenizer = load(FOLDER), load_tokenizer(FOLDER)
    ids = tokenizer(sentences[-1], return_tensors="pt")["input_ids"]
    kept = SampledMaps([0])
    stream(model, Texts.of(ids.tolist()), [kept])
    with torch.no_grad():
        theirs = model(input_ids=ids, output_attentions=True).attentions
    np.testing.assert_allclose(
        kept.maps[0], np.stack([maps[0].numpy() for maps in theirs]), rtol=0, atol=1e-5
    )


def test_eight_of_its_layers_are_saved_whole(sentences, tmp_path):
    done = operate(Path(FOLDER), parse("keep(0-7)"), tmp_path / "out")
    assert done.certificate.passed
    ours = embed(load(tmp_path / "out"), load_tokenizer(tmp_path / "out"), sentences)
    theirs = plain_embeddings(tmp_path / "out", sentences)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    encoder = pytest.importorskip("sentence_transformers", reason="the extra `embedding`")
    loaded = encoder.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    np.testing.assert_allclose(loaded.encode(sentences), ours, rtol=0, atol=1e-5)
