"""Folders of sentence-transformers: its library is the reference for every number."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import fullname

from microtome.edits import parse
from microtome.errors import ModelError, RequestError
from microtome.families.embedder import embedder_of
from microtome.models import load, load_tokenizer, save
from microtome.models.checkpoint import look_at
from microtome.models.contents import tokenizer_hash
from microtome.models.heads import job_of
from microtome.models.sentence_transformers.folder import modules_hash
from microtome.observe.embedding import embed
from microtome.surgery import apply
from support.sentence_folders import MARKS, TEXTS, sentence_folder, write_json
from support.tiny import FAMILY_TYPES, save_tiny


def reference(folder, texts=TEXTS, **options):
    """What the library gives for a padded batch, in float32."""
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
    return model.encode(texts, show_progress_bar=False, **options)


def ours(folder, texts=TEXTS, **options):
    return embed(load(folder), load_tokenizer(folder), texts, **options)


@pytest.mark.parametrize("family", FAMILY_TYPES)
@pytest.mark.parametrize("modes", [("cls",), ("mean",)])
def test_packed_embeddings_are_the_librarys(tmp_path, family, modes):
    folder = sentence_folder(tmp_path / "m", family, modes=modes)
    assert job_of(look_at(folder)) == job_of(load(folder)) == "embedding"
    assert np.allclose(ours(folder), reference(folder), atol=1e-5)


@pytest.mark.parametrize(
    "modes", [*((mode,) for mode in MARKS), ("cls", "max", "mean"), ("mean", "lasttoken")]
)
@pytest.mark.parametrize("new_names", [False, True])
def test_every_way_of_pooling(tmp_path, modes, new_names):
    folder = sentence_folder(tmp_path / "m", modes=modes, then=(), new_names=new_names)
    assert np.allclose(ours(folder), reference(folder), atol=1e-5)


@pytest.mark.parametrize("activation", ["Tanh", "ReLU", "GELU", "SiLU", "Sigmoid", "Identity"])
def test_dense_layers_with_every_activation(tmp_path, activation):
    options = {"activation_function": fullname(getattr(torch.nn, activation)())}
    folder = sentence_folder(tmp_path / "m", then=("Dense", "Normalize"), dense=options)
    assert np.allclose(ours(folder), reference(folder), atol=1e-5)


@pytest.mark.parametrize("options", [{"bias": False}, {"use_residual": True}])
def test_dense_layers_with_other_parts(tmp_path, options):
    folder = sentence_folder(tmp_path / "m", then=("Dense", "LayerNorm"), dense=options)
    assert np.allclose(ours(folder), reference(folder), atol=1e-5)


@pytest.mark.parametrize("modes", [(mode,) for mode in MARKS])
def test_prompts_are_read_and_may_be_left_out_of_the_pooling(tmp_path, modes):
    folder = sentence_folder(
        tmp_path / "m",
        modes=modes,
        then=(),
        include_prompt=False,
        prompts={"query": "the dog likes it , ", "document": ""},
    )
    plain, prompted = ours(folder), ours(folder, prompt="query")
    assert np.abs(plain - prompted).max() > 1e-2
    assert np.allclose(prompted, reference(folder, prompt_name="query"), atol=1e-5)
    assert np.allclose(plain, reference(folder), atol=1e-5)


def test_the_default_prompt_is_taken_unless_another_is_named(tmp_path):
    prompts = {"query": "she sees ", "passage": "it is "}
    folder = sentence_folder(tmp_path / "m", prompts=prompts, default_prompt="query")
    assert np.allclose(ours(folder), reference(folder), atol=1e-5)
    assert np.allclose(ours(folder), ours(folder, prompt="query"))
    assert not np.allclose(ours(folder), ours(folder, prompt="passage"), atol=1e-2)
    roles = [embedder_of(load(folder)).prompt_of_role(role) for role in ("query", "document")]
    assert roles == list(prompts.values())
    with pytest.raises(RequestError, match="no prompt 'other'; its prompts: query, passage"):
        ours(folder, prompt="other")


def test_texts_are_cut_at_the_folders_length(tmp_path):
    folder = sentence_folder(tmp_path / "m", max_seq_length=6)
    assert np.allclose(ours(folder), reference(folder), atol=1e-5)


def test_texts_are_lowered_where_the_folder_says_so(tmp_path):
    folder = sentence_folder(tmp_path / "m")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    write_json(folder / "tokenizer.json", tokenizer)
    cased = ours(folder)
    write_json(folder / "sentence_bert_config.json", {"do_lower_case": True})
    assert not np.allclose(cased, ours(folder), atol=1e-2)
    assert np.allclose(ours(folder), reference(folder), atol=1e-5)


@pytest.mark.parametrize("encoder", ["", "0_Transformer"])
def test_a_saved_edit_has_every_other_file_byte_for_byte(tmp_path, encoder):
    base = sentence_folder(
        tmp_path / "base", modes=("cls",), then=("Dense", "Normalize"), encoder=encoder,
        prompts={"query": "q "}, dtype=torch.float16,
    )  # fmt: skip
    (base / "README.md").write_text("---\npipeline_tag: sentence-similarity\n---\n# base\n")
    model = load(base)
    edited = apply(parse("remove(1)"), model)
    out = save(edited, tmp_path / "out")
    changed = {f"{encoder}/model.safetensors".lstrip("/"), f"{encoder}/config.json".lstrip("/")}
    files = {file.relative_to(base).as_posix() for file in base.rglob("*") if file.is_file()}
    for name in files - changed - {"README.md"}:
        assert (out / name).read_bytes() == (base / name).read_bytes()
    card = (out / "README.md").read_text()
    assert "library_name: sentence-transformers\npipeline_tag: sentence-similarity\n" in card
    assert look_at(out).dtype == "float16"
    assert np.allclose(embed(edited, load_tokenizer(base), TEXTS), reference(out), atol=1e-5)
    assert np.abs(reference(out) - reference(base)).max() > 1e-2
    assert load(out)._microtome_provenance.edits == ("remove(1)",)


def test_hashes_see_the_pooling_and_the_tokenizer_of_a_sub_folder(tmp_path):
    one, other = (
        sentence_folder(tmp_path / mode, modes=(mode,), encoder="0_Transformer")
        for mode in ("cls", "mean")
    )
    assert modules_hash(one) != modules_hash(other)
    assert tokenizer_hash(one) == tokenizer_hash(one / "0_Transformer")


@pytest.mark.parametrize("family", FAMILY_TYPES)
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_bare_encoder_with_a_pooling_is_an_embedder(tmp_path, family, pooling):
    folder = sentence_folder(tmp_path / "m", family, modes=(pooling,), then=())
    bare = save_tiny(tmp_path / "bare", family, "none", with_tokenizer=True)
    model = load(bare, pooling=pooling)
    assert job_of(model) == "embedding"
    assert job_of(load(bare)) == "none"
    assert np.allclose(embed(model, load_tokenizer(bare), TEXTS), reference(folder), atol=1e-5)


def test_poolings_that_make_no_sense_are_refused(tmp_path):
    classifier = save_tiny(tmp_path / "c", head="classification")
    folder = sentence_folder(tmp_path / "m", modes=("cls",))
    with pytest.raises(RequestError, match="has a classification head"):
        load(classifier, pooling="cls")
    with pytest.raises(RequestError, match=r"pooling mean was given, but .* pools by cls"):
        load(folder, pooling="mean")
    with pytest.raises(RequestError, match="pooling must be cls or mean, got 'max'"):
        load(save_tiny(tmp_path / "b", head="none"), pooling="max")
    with pytest.raises(RequestError, match="pooling was given with the head 'mlm'"):
        load(folder, head="mlm", pooling="cls")


def test_a_masked_lm_may_be_pooled(tmp_path):
    folder = save_tiny(tmp_path / "m", head="mlm")
    assert type(load(folder, pooling="mean")).__name__ == "BertModel"


def _entry(kind, path=""):
    return {"idx": 0, "name": "0", "path": path, "type": kind}


ENCODER = _entry("sentence_transformers.models.Transformer")


@pytest.mark.parametrize(
    ("modules", "text"),
    [
        ([_entry("custom_st.Transformer")], "'custom_st.Transformer', which Microtome doesn't"),
        (
            [ENCODER, _entry("sentence_transformers.models.CNN", "1_CNN")],
            "'sentence_transformers.models.CNN', which Microtome doesn't know",
        ),
        ([ENCODER], "expected one Pooling after Transformer"),
        ([_entry("sentence_transformers.models.Pooling", "1_Pooling")], "expected one Transformer"),
        ([ENCODER, _entry("sentence_transformers.models.Pooling", "../p")], "a sub-folder"),
        ([], "not a list of 1 to 20 modules"),
        ({"a": 1}, "not a list"),
        ([7], "a module's type and path"),
    ],
)
def test_modules_that_are_not_known_are_refused_by_name(tmp_path, modules, text):
    folder = sentence_folder(tmp_path / "m")
    write_json(folder / "modules.json", modules)
    with pytest.raises(ModelError, match=text):
        look_at(folder)


@pytest.mark.parametrize(
    ("file", "content", "text"),
    [
        ("1_Pooling/config.json", {"word_embedding_dimension": 7}, "of width 7, the encoder has"),
        (
            "1_Pooling/config.json",
            {"word_embedding_dimension": 32, "pooling_mode": "median"},
            "pools by 'median'",
        ),
        ("1_Pooling/config.json", {"word_embedding_dimension": 32}, "names no way of pooling"),
        (
            "2_Dense/config.json",
            {"in_features": 32, "out_features": 24, "activation_function": "os.system"},
            "the activation 'os.system'",
        ),
        ("2_Dense/config.json", {"in_features": 8, "out_features": 24}, "comes after width 32"),
        ("2_Dense/config.json", {"in_features": 32, "out_features": 25}, "holds the weights"),
    ],
)
def test_module_files_that_do_not_fit_are_refused(tmp_path, file, content, text):
    folder = sentence_folder(tmp_path / "m", then=("Dense",))
    write_json(folder / file, content)
    with pytest.raises(ModelError, match=text):
        load(folder)


def test_a_lost_pooling_file_and_pickled_weights_are_refused(tmp_path):
    folder = sentence_folder(tmp_path / "m", then=("Dense",))
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(ModelError, match="only as a pickle"):
        load(folder)
    (folder / "1_Pooling" / "config.json").unlink()
    with pytest.raises(ModelError, match="how its Pooling works is unknown"):
        load(folder)


def test_with_another_head_a_folder_is_an_encoder(tmp_path):
    folder = sentence_folder(tmp_path / "m")
    for head in ("none", "classification"):
        model = load(folder, head=head)
        assert embedder_of(model) is None
        assert not (save(model, tmp_path / head) / "modules.json").exists()
