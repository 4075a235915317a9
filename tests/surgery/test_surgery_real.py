"""Surgery on real weights: all-MiniLM from the package index, and a real ALBERT."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from microtome import load, load_tokenizer, parse
from microtome.models import resolve
from microtome.surgery import operate

pytestmark = pytest.mark.real

TEXTS = [
    "A microtome cuts thin slices.",
    "The second layer of this model was copied, and the text is longer than the first one.",
    "Why?",
]
REACTIONS = [
    "CC(=O)O.OCC>>CC(=O)OCC.O",
    "CCOC(=O)c1ccccc1.[OH-].[Na+]>>O=C(O)c1ccccc1",
    "Nc1ccccc1.CC(=O)Cl>>CC(=O)Nc1ccccc1",
    "Brc1ccccc1.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1",
]


@pytest.fixture(scope="module")
def batch():
    return load_tokenizer("minilm")(TEXTS, padding=True, return_tensors="pt")


@torch.no_grad()
def last_states(model, batch):
    return model(**batch).last_hidden_state


def test_extend_9_equals_layers_duplicated_by_hand(batch, tmp_path):
    """The first three layers doubled: 0,0,1,1,2,2,3,4,5."""
    operate("minilm", parse("extend(9)"), tmp_path / "out")
    by_hand = AutoModel.from_pretrained(resolve("minilm").path, dtype=torch.float32).eval()
    old = by_hand.encoder.layer
    order = [0, 0, 1, 1, 2, 2, 3, 4, 5]
    by_hand.encoder.layer = torch.nn.ModuleList([copy.deepcopy(old[i]) for i in order])
    by_hand.config.num_hidden_layers = 9
    loaded = AutoModel.from_pretrained(tmp_path / "out").eval()
    torch.testing.assert_close(
        last_states(loaded, batch), last_states(by_hand, batch), rtol=1e-6, atol=1e-6
    )


def test_disable_2_5_is_uniform_on_a_padded_batch_and_leaves_the_others(batch, tmp_path):
    operate("minilm", parse("disable(2.5)"), tmp_path / "out")
    loaded = AutoModel.from_pretrained(tmp_path / "out", attn_implementation="eager").eval()
    plain = load("minilm", attention="eager")
    with torch.no_grad():
        maps = loaded(**batch, output_attentions=True).attentions[2]
        before = plain(**batch, output_attentions=True).attentions[2]
    for text, length in enumerate(batch["attention_mask"].sum(1).tolist()):
        seen = maps[text, 5]
        wanted = torch.full((length, length), 1 / length)
        torch.testing.assert_close(seen[:length, :length], wanted, rtol=1e-6, atol=0)
        assert bool((seen[:length, length:] == 0).all())
    others = [head for head in range(12) if head != 5]
    assert torch.equal(maps[:, others], before[:, others])
    assert not torch.allclose(last_states(loaded, batch), last_states(plain, batch), atol=1e-3)


def test_an_embedder_without_a_pooler_is_cut_as_by_hand(shared_data, tmp_path):
    """bge-small-en's file has none; plain AutoModel draws one, which no output here depends on."""
    folder = shared_data("models/bge-small-en")
    done = operate(folder, parse("keep(0-7)"), tmp_path / "out")
    assert done.certificate.passed
    assert "no pooler" in done.certificate.warnings[0]
    by_hand = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    by_hand.encoder.layer = by_hand.encoder.layer[:8]
    loaded = AutoModel.from_pretrained(tmp_path / "out", dtype=torch.float32).eval()
    texts = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    torch.testing.assert_close(
        last_states(loaded, texts), last_states(by_hand, texts), rtol=1e-5, atol=1e-5
    )


def decoded(model, tokenizer):
    """Share of tokens, special ones left out, that the model's own head gives back unmasked."""
    right = total = 0
    tokens = []
    for reaction in REACTIONS:
        ids = tokenizer(reaction, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            guess = model(ids).logits.argmax(-1)
        ordinary = ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
        right += int((guess == ids)[ordinary].sum())
        total += int(ordinary.sum())
        tokens.append(guess[ordinary].tolist())
    return right / total, tokens


@pytest.mark.parametrize(
    ("text", "layers", "accuracy"),
    [
        ("extend(12)", 12, 0.96),
        ("extend(24)", 24, 0.92),
        ("extend(36)", 36, 0.83),
        ("extend(50)", 50, 0.72),
    ],
)
def test_a_real_albert_decodes_as_measured_and_as_plain_transformers(
    shared_data, tmp_path, text, layers, accuracy
):
    """The figures are those of the protocol, section 1: four reactions through the MLM head."""
    folder = shared_data("models/chem-albert-12")
    operate(folder, parse(text), tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    plain = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    plain.config.num_hidden_layers = layers
    edited = AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    share, tokens = decoded(edited, tokenizer)
    assert abs(share - accuracy) <= 0.01
    assert tokens == decoded(plain, tokenizer)[1]


def test_a_real_albert_unshares_exactly(shared_data, tmp_path):
    folder = shared_data("models/chem-albert-12")
    model = load(folder)
    ids = load_tokenizer(folder)(REACTIONS[0], return_tensors="pt")["input_ids"]
    own = parse("unshare()")(model)
    with torch.no_grad():
        assert torch.equal(own(ids).logits, model(ids).logits)
    done = operate(
        folder, parse("unshare() | extend(14) | disable(3.2) | reinit(7, seed=0)"), tmp_path / "out"
    )
    assert done.certificate.passed
    assert done.layers == 14
