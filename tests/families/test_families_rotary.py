"""What is particular to NomicBERT, gte, jina v3 and EuroBERT."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file

from microtome.edits import parse
from microtome.errors import ModelError, UnsupportedFamily
from microtome.families import adapt
from microtome.models import load
from microtome.observe import predict
from support.naive import padded, random_texts
from support.tiny import save_tiny, tiny_batch, tiny_model


def test_query_heads_of_a_group_have_its_key_and_value():
    """EuroBERT's heads 0 and 1 share a key and a value, 2 and 3 the other ones."""
    family = adapt(tiny_model("eurobert", "mlm"))
    states, positions = torch.randn(5, family.shape.width), torch.arange(5)
    for part in family.project(1, states, positions)[1:]:
        assert torch.equal(part[:, 0], part[:, 1])
        assert torch.equal(part[:, 2], part[:, 3])
        assert not torch.allclose(part[:, 0], part[:, 2], atol=1e-2)


def test_a_gte_without_a_segment_table_computes_as_transformers_does():
    model = tiny_model("gte", "classification", type_vocab_size=0, num_labels=3)
    texts = random_texts((4, 9, 7))
    with torch.no_grad():
        theirs = model(**padded(texts, "gte")).logits
    ours = torch.from_numpy(predict(model, texts))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_rotary_frequencies_that_depend_on_the_batch_are_refused():
    scaling = {
        "rope_type": "longrope", "rope_theta": 1000.0, "factor": 2.0,
        "original_max_position_embeddings": 32, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4,
    }  # fmt: skip
    with pytest.raises(UnsupportedFamily, match="'longrope', whose frequencies depend"):
        adapt(tiny_model("nomic_bert", "mlm", rope_parameters=scaling))


def test_a_jina_v3_with_task_adapters_is_refused_by_their_names(tmp_path):
    """transformers' class has no place for them, and would only log that it leaves them out."""
    folder = save_tiny(tmp_path / "m", "jina_embeddings_v3", "none")
    tensors = load_file(folder / "model.safetensors")
    tensors["encoder.layers.0.mixer.Wqkv.parametrizations.weight.0.lora_A"] = torch.zeros(5, 4, 32)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"no place for: .*lora_A"):
        load(folder)


@pytest.mark.parametrize("how", ["uniform", "zero"])
def test_disabling_a_head_leaves_the_keys_and_values_of_its_group(how):
    """Head 3 shares them with head 2, and attends as before."""
    model = tiny_model("eurobert", "mlm", attention="eager")
    edited = parse(f"disable(1.2, how={how})")(model)
    before, after = (dict(m.named_parameters()) for m in (model, edited))
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {f"model.layers.1.self_attn.{'q' if how == 'uniform' else 'o'}_proj.weight"}
    with torch.no_grad():
        batch = tiny_batch("eurobert")
        old, new = (m(**batch, output_attentions=True).attentions[1] for m in (model, edited))
    assert torch.equal(old[:, 3], new[:, 3])
    assert torch.equal(old[:, 2], new[:, 2]) == (how == "zero")


def test_published_names_are_those_that_transformers_writes(tmp_path):
    """Each part, found in the file under the published name and cut out of what is fused there."""
    for kind in ("nomic_bert", "gte", "jina_embeddings_v3"):
        folder = save_tiny(tmp_path / kind, kind, "none")
        family, tensors = adapt(load(folder)), load_file(folder / "model.safetensors")
        assert set(family.published) == {part.name for part in family.parts}
        for part in family.parts:
            name, place, count = family.published[part.name]
            stored = tensors[f"{name.format(1)}.weight"].chunk(count)[place]
            assert torch.equal(stored, part.weight(family.layers[1])), (kind, part.name)
