"""Hostile and broken checkpoints: each is refused with one line that says what is wrong."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest
import torch
from safetensors.torch import load_file, save_file

from microtome.errors import MicrotomeError, UnsupportedFamily
from microtome.models import load
from microtome.models.checkpoint import look_at
from support.broken_checkpoints import WEIGHTS, change_config, refused
from support.tiny import save_tiny


class TestFolder:
    def test_without_a_config(self, tmp_path):
        refused(tmp_path, "has no config.json, so it isn't a model")

    def test_without_weights(self, folder):
        (folder / WEIGHTS).unlink()
        refused(folder, "has no weights: neither model.safetensors nor")

    @pytest.mark.parametrize("name", ["config.json", WEIGHTS, "tokenizer.json"])
    def test_links_out_of_the_folder(self, folder, tmp_path, name):
        outside = tmp_path / "outside"
        outside.write_text("{}")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(outside)
        refused(folder, rf"{name} in .* is a link to .*outside, outside of the folder")

    def test_links_within_the_folder_are_fine(self, folder):
        (folder / WEIGHTS).rename(folder / "real.safetensors")
        (folder / WEIGHTS).symlink_to("real.safetensors")
        load(folder)

    def test_a_pipe_in_place_of_the_config_does_not_hang(self, folder):
        (folder / "config.json").unlink()
        os.mkfifo(folder / "config.json")
        refused(folder, "has no config.json")

    def test_an_adapter(self, folder):
        (folder / "adapter_config.json").write_text("{}")
        refused(folder, "holds an adapter")


class TestConfig:
    @pytest.mark.parametrize("text", ["", "{", "\x00", "[" * 100_000, "{'a': 1}"])
    def test_not_json(self, folder, text):
        (folder / "config.json").write_text(text)
        refused(folder, "config.json in .* is not valid JSON")

    @pytest.mark.parametrize("text", ["[]", "1", "null", '"bert"'])
    def test_not_an_object(self, folder, text):
        (folder / "config.json").write_text(text)
        refused(folder, "expected a JSON object")

    def test_too_large(self, folder):
        change_config(folder, padding="x" * 1_000_001)
        refused(folder, "more than the 1000000 allowed")

    def test_code_of_its_own(self, folder):
        change_config(folder, auto_map={"AutoModel": "evil.Model"})
        assert "no code" in refused(folder, "would run code that comes with it").hint

    @pytest.mark.parametrize("model_type", ["deberta", "gpt2", "x" * 100_000])
    def test_unsupported_family(self, folder, model_type):
        change_config(folder, model_type=model_type)
        error = refused(folder, f"type '{model_type[:20]}")
        assert isinstance(error, UnsupportedFamily)
        assert "bert, roberta, xlm-roberta" in error.hint

    @pytest.mark.parametrize("model_type", [None, 3, ["bert"]])
    def test_no_family(self, folder, model_type):
        change_config(folder, model_type=model_type)
        refused(folder, "names no model_type")

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("num_hidden_layers", 10_000_000),
            ("num_hidden_layers", 0),
            ("num_hidden_layers", -1),
            ("num_attention_heads", 0),
            ("num_attention_heads", 257),
            ("hidden_size", -32),
            ("hidden_size", 10**9),
            ("intermediate_size", 0),
            ("intermediate_size", 10**12),
            ("vocab_size", 0),
            ("vocab_size", 10**10),
            ("max_position_embeddings", 10**9),
            ("max_position_embeddings", -5),
            ("type_vocab_size", 10**9),
            ("num_labels", 10**9),
            ("n_layers", 10**7),
            ("vocab_size", 10**100),
        ],
    )
    def test_sizes_out_of_bounds(self, folder, key, value):
        change_config(folder, **{key: value})
        refused(folder, f"has {key} = .*, expected -?[0-9]+ to [0-9]+")

    @pytest.mark.parametrize("value", [True, 12.0, "12", [12], {"a": 12}])
    def test_sizes_that_are_no_whole_numbers(self, folder, value):
        change_config(folder, num_hidden_layers=value)
        refused(folder, "num_hidden_layers = .* expected a whole number")

    def test_width_not_divisible_by_heads(self, folder):
        change_config(folder, hidden_size=31)
        refused(folder, "width 31, not divisible by 4 heads")

    def test_rotary_tables_wider_than_a_head(self, tmp_path):
        """The tables aren't in the file: a head_dim of 10⁹ would take minutes and gigabytes."""
        folder = save_tiny(tmp_path / "m", "modernbert")
        change_config(folder, head_dim=10**9)
        refused(folder, "head_dim = 1000000000")
        change_config(folder, head_dim=16)
        refused(folder, "heads of width 16, but 32 over 4 heads gives 8")

    def test_heads_not_divisible_by_groups_of_keys(self, tmp_path):
        folder = save_tiny(tmp_path / "m", "eurobert")
        change_config(folder, num_key_value_heads=3)
        refused(folder, "4 heads, not divisible by 3 groups of keys")
        change_config(folder, num_key_value_heads=0)
        refused(folder, "num_key_value_heads = 0, expected 1 to 256")

    @pytest.mark.parametrize(
        ("key", "value"),
        [("num_hidden_groups", 0), ("inner_group_num", 10**6), ("embedding_size", -1)],
    )
    def test_shared_layers_out_of_bounds(self, tmp_path, key, value):
        folder = save_tiny(tmp_path / "albert", "albert")
        change_config(folder, **{key: value})
        refused(folder, f"has {key} = {value}")

    def test_more_groups_than_layers(self, tmp_path):
        folder = save_tiny(tmp_path / "albert", "albert")
        change_config(folder, num_hidden_groups=4)
        refused(folder, "4 layer groups for 3 layers")

    @pytest.mark.parametrize("key", ["is_decoder", "add_cross_attention"])
    def test_a_decoder(self, folder, key):
        change_config(folder, **{key: True})
        refused(folder, "is a decoder")

    def test_quantised(self, folder):
        change_config(folder, quantization_config={"quant_method": "gptq"})
        refused(folder, "quantised")

    @pytest.mark.parametrize("key", ["num_hidden_layers", "vocab_size", "hidden_act", "id2label"])
    @pytest.mark.parametrize("value", [None, "no such thing", [], {"a": {"b": 1}}, -1, 1e400])
    def test_whatever_else_is_wrong_is_one_line_too(self, folder, key, value):
        change_config(folder, **{key: value})
        with suppress(MicrotomeError):  # some of these are harmless, none may escape as itself
            load(folder)

    def test_a_padding_token_outside_of_the_vocabulary(self, folder):
        change_config(folder, pad_token_id=5000)
        refused(folder, "transformers can't load .* AssertionError")


class TestDisagreement:
    @pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "roberta"])
    @pytest.mark.parametrize("n_layers", [1, 2, 4, 12])
    def test_number_of_layers(self, tmp_path, family, n_layers):
        folder = save_tiny(tmp_path / "m", family)
        key = "n_layers" if family == "distilbert" else "num_hidden_layers"
        change_config(folder, **{key: n_layers})
        refused(folder, f"says {n_layers} layers, but the weights have 3")

    def test_number_of_layer_groups(self, tmp_path):
        folder = save_tiny(tmp_path / "m", "albert")
        change_config(folder, num_hidden_groups=3)
        refused(folder, "says 3 layer groups, but the weights have 1")

    def test_a_config_of_more_weights_than_the_file_allocates_nothing(self, folder):
        """2,000,000 × 16,384 numbers would take 131 GB."""
        change_config(folder, vocab_size=2_000_000, hidden_size=16_384)
        refused(folder, r"describes [0-9,]+ weights, but the files hold [0-9,]+")

    def test_a_smaller_vocabulary(self, folder):
        change_config(folder, vocab_size=95)
        refused(folder, r"wrong shape: .*\(96, 32\) instead of \(95, 32\)")

    def test_a_renamed_tensor(self, folder):
        tensors = load_file(folder / WEIGHTS)
        name = "bert.encoder.layer.1.attention.self.query.weight"
        tensors[name.replace("query", "queery")] = tensors.pop(name)
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        refused(folder, f"lacks {name}")

    def test_a_tensor_too_many(self, folder):
        tensors = load_file(folder / WEIGHTS)
        tensors["bert.encoder.surprise.weight"] = torch.zeros(2)
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        refused(folder, "has no place for: bert.encoder.surprise.weight")

    @pytest.mark.parametrize("head", [None, "none"])
    def test_half_a_head(self, folder, head):
        """A head that is partly there is an error, unless the head isn't wanted at all."""
        tensors = load_file(folder / WEIGHTS)
        del tensors["cls.predictions.transform.dense.weight"]
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        if head is None:
            refused(folder, "lacks cls.predictions.transform.dense.weight")
        else:
            load(folder, head=head)


class TestPickles:
    @pytest.fixture
    def pickled(self, folder):
        torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
        (folder / WEIGHTS).unlink()
        return folder

    def test_refused_by_default_and_the_way_out_named(self, pickled):
        error = refused(pickled, r"only as a pickle \(pytorch_model.bin\), which can run code")
        assert "--allow-pickle" in error.hint

    def test_loaded_where_allowed(self, tmp_path, pickled):
        plain = save_tiny(tmp_path / "plain")
        loaded = load(pickled, allow_pickle=True)
        for one, other in zip(load(plain).parameters(), loaded.parameters(), strict=True):
            assert torch.equal(one, other)

    def test_code_in_a_pickle_is_not_run_even_then(self, folder, tmp_path):
        (folder / WEIGHTS).unlink()
        torch.save({"weight": _Bomb(str(tmp_path / "ran"))}, folder / "pytorch_model.bin")
        # Large enough to pass for the model's weights.
        with (folder / "pytorch_model.bin").open("ab") as stream:
            stream.write(bytes(200_000))
        refused(folder, "transformers can't load", allow_pickle=True)
        assert not (tmp_path / "ran").exists()

    def test_a_pickle_beside_safetensors_is_never_opened(self, folder):
        (folder / "pytorch_model.bin").write_bytes(b"not even a pickle")
        load(folder)


class _Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def test_the_dtype_is_the_one_of_most_weights(tmp_path):
    folder = save_tiny(tmp_path / "half", dtype=torch.float16)
    change_config(folder, dtype="float32")  # a config may be wrong about it
    assert look_at(folder).dtype == "float16"
