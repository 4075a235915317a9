"""Fine-tuning from a name to a folder: edits, seeds, refusals, what the folder holds."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForQuestionAnswering, AutoModelForSequenceClassification

from microtome import load, parse
from microtome.errors import DataError, ModelError, RequestError
from microtome.observe.evaluation import encode_for
from microtome.observe.predicting import predict
from microtome.tasks import DataSpec, open_data
from microtome.training.finetune.finetuned import RECORD
from microtome.training.finetune.finetuning import finetune
from microtome.training.finetune.heads import load_for_task
from microtome.training.recipe import Recipe, Seeds
from support.same_weights import same_weights
from support.tiny import save_tiny, tiny_tokenizer
from support.training_rows import checkpoint, rows

RECIPE = Recipe(learning_rate=1e-3, batch_size=8, epochs=3, max_length=32, stride=4)


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "base")


@pytest.mark.parametrize("kind", ["single", "pair", "regression", "spans"])
def test_every_kind_of_task_trains_scores_and_saves(kind, model, tmp_path):
    train, dev = rows(tmp_path, kind, n=30), rows(tmp_path, kind, n=12, seed=1)
    done = finetune(model, train, dev, recipe=RECIPE, seed=3, out=tmp_path / "out")
    document = done.as_json()
    shape = ["model", "task", "edits", "seed", "out", "scores", "primary"]
    assert [key for key in document if key in shape] == shape
    assert document["primary"] in document["scores"]
    assert json.loads(json.dumps(document))["seed"] == 3
    for score in document["scores"].values():
        assert score["low"] <= score["value"] <= score["high"]
    assert len(done.history) == 3
    assert done.threads == torch.get_num_threads()
    assert not (tmp_path / "out.finetuning").exists()
    auto = AutoModelForQuestionAnswering if kind == "spans" else AutoModelForSequenceClassification
    plain = auto.from_pretrained(tmp_path / "out")
    assert same_weights(plain, done.model)
    assert plain.config.microtome_task == train.task.name
    if kind in ("single", "pair"):
        assert plain.config.id2label == {0: "no", 1: "yes"}
    assert {path.suffix for path in (tmp_path / "out").iterdir()} <= {
        ".json",
        ".safetensors",
        ".md",
    }
    assert (tmp_path / "out" / "tokenizer.json").is_file()


def test_a_learnable_task_is_learnt(model, tmp_path):
    """The word good or bad decides; the words around it say nothing."""
    train, dev = rows(tmp_path, n=200), rows(tmp_path, n=60, seed=1)
    recipe = Recipe(learning_rate=3e-3, batch_size=16, epochs=6, max_length=32)
    done = finetune(model, train, dev, recipe=recipe)
    assert done.scores["accuracy"].low > 0.6
    assert done.history[-1].loss < done.history[0].loss


def test_edits_come_before_training_and_their_certificate_is_kept(model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    edits = parse("extend(5) | reinit(top=1, seed=2)")
    frozen = RECIPE.but(freeze="encoder")
    done = finetune(model, train, dev, recipe=frozen, edits=edits, out=tmp_path / "out")
    assert done.certificate is not None
    assert done.certificate.passed
    assert done.edits == ("extend(5)", "reinit(top=1, seed=2)")
    # With the encoder frozen, what is saved is the edited base to the bit.
    base = load_for_task(done_source(model), train.task, seed=Seeds.of(0).init)
    edited = edits(base).state_dict()
    saved = load(str(tmp_path / "out")).state_dict()
    encoder = [name for name in saved if name.startswith("bert.e")]
    assert len(encoder) > 50
    assert all(torch.equal(saved[name], edited[name]) for name in encoder)
    history = json.loads((tmp_path / "out" / "microtome.json").read_text())
    assert history["edits"] == ["extend(5)", "reinit(top=1, seed=2)"]
    assert history["certificate"]["passed"] is True
    record = json.loads((tmp_path / "out" / RECORD).read_text())
    assert record["request"]["edits"] == "extend(5) | reinit(top=1, seed=2)"
    assert record["threads"] == torch.get_num_threads()


def done_source(folder):
    from microtome.models import fetched, resolve

    return fetched(resolve(folder))


def test_seeds_by_name_and_nested_fractions(model, tmp_path):
    train, dev = rows(tmp_path, n=40), rows(tmp_path, n=12, seed=1)
    assert len(set(vars(Seeds.of(0)).values())) == 3
    base = Seeds.of(0)
    one = finetune(model, train, dev, recipe=RECIPE, seeds=base)
    same = finetune(model, train, dev, recipe=RECIPE, seed=0)
    assert same_weights(one.model, same.model)
    other = finetune(model, train, dev, recipe=RECIPE, seeds=Seeds(base.init, 1, base.dropout))
    assert not same_weights(one.model, other.model)
    part = finetune(model, train, dev, recipe=RECIPE, fraction=0.5)
    assert part.history[-1].steps == 3 * 3  # 20 rows in batches of 8


@pytest.mark.parametrize(
    ("keep", "watch", "passes"), [("last", True, 3), ("last", False, 1), ("best", False, 3)]
)
def test_dev_is_read_once_an_epoch_or_once(model, tmp_path, monkeypatch, keep, watch, passes):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    plain = finetune(model, train, dev, recipe=RECIPE.but(keep=keep))
    read = []

    def counted(own, texts):
        read.append(own)
        return predict(own, texts)

    monkeypatch.setattr("microtome.training.finetune.finetuning.predict", counted)
    done = finetune(model, train, dev, recipe=RECIPE.but(keep=keep), watch=watch)
    # Where an epoch before the last was best, its weights are put back and read again.
    assert len(read) == passes + (done.kept_epoch != 2)
    assert same_weights(done.model, plain.model)
    assert done.scores == plain.scores
    assert (done.logits == predict(done.model, encode_for(done.model, tiny_tokenizer(), dev))).all()
    assert [bool(epoch.scores) for epoch in done.history] == [passes == 3] * 3


# --- what doesn't fit ----------------------------------------------------------------------------


def test_a_task_that_does_not_fit_the_models_head_is_refused(tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    spans = rows(tmp_path, "spans", n=6)
    three = {0: "entailment", 1: "neutral", 2: "contradiction"}
    names = {"id2label": three, "label2id": {v: k for k, v in three.items()}}
    entailment = checkpoint(tmp_path / "three", head="classification", **names)
    with pytest.raises(RequestError, match=r"3 outputs \(entailment, .*needs 2"):
        finetune(entailment, train, dev, recipe=RECIPE)
    with pytest.raises(RequestError, match="classification head, and squad2"):
        finetune(entailment, spans, spans, recipe=RECIPE)
    other = {"id2label": {0: "ham", 1: "spam"}, "label2id": {"ham": 0, "spam": 1}}
    spam = checkpoint(tmp_path / "spam", head="classification", **other)
    with pytest.raises(RequestError, match=r"labels ham, spam, and .* no, yes; .*new_head"):
        finetune(spam, train, dev, recipe=RECIPE)
    done = finetune(spam, train, dev, recipe=RECIPE.but(epochs=1), new_head=True)
    assert done.model.config.id2label == {0: "no", 1: "yes"}


def test_a_head_that_fits_is_trained_on(model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "first")
    before = load(str(tmp_path / "first"))
    nothing = RECIPE.but(learning_rate=1e-12, epochs=1)
    again = finetune(tmp_path / "first", train, dev, recipe=nothing)
    torch.testing.assert_close(again.model.classifier.weight, before.classifier.weight)


@pytest.mark.parametrize(
    "names", [{"num_labels": 2}, {"id2label": {0: "No", 1: "YES"}, "label2id": {"No": 0, "YES": 1}}]
)
def test_outputs_without_names_or_in_another_case_get_the_tasks_names(names, tmp_path):
    train, dev = rows(tmp_path, n=16), rows(tmp_path, n=12, seed=1)
    unnamed = checkpoint(tmp_path / "unnamed", head="classification", **names)
    before = load(str(unnamed)).classifier.weight
    nothing = RECIPE.but(learning_rate=1e-12, epochs=1)
    done = finetune(unnamed, train, dev, recipe=nothing, out=tmp_path / "out")
    torch.testing.assert_close(done.model.classifier.weight, before)
    assert load(str(tmp_path / "out")).config.id2label == {0: "no", 1: "yes"}


def test_a_half_precision_base_is_trained_and_saved_in_single(tmp_path):
    base = save_tiny(tmp_path / "half", dtype=torch.float16, with_tokenizer=True)
    train, dev = rows(tmp_path, n=16), rows(tmp_path, n=12, seed=1)
    done = finetune(base, train, dev, recipe=RECIPE.but(epochs=1), out=tmp_path / "out")
    assert same_weights(load(str(tmp_path / "out")), done.model)


def test_rows_without_labels_are_refused(model, tmp_path):
    train = rows(tmp_path, n=30)
    (tmp_path / "plain.txt").write_text("the cat sees\nthe dog\n")
    plain = open_data(DataSpec(path=tmp_path / "plain.txt"))
    with pytest.raises(DataError, match="has no labels to train on"):
        finetune(model, plain, train, recipe=RECIPE)
    with pytest.raises(RequestError, match="one task"):
        finetune(model, train, rows(tmp_path, "regression", n=6), recipe=RECIPE)


def test_a_model_without_a_tokenizer_is_refused(tmp_path):
    bare = save_tiny(tmp_path / "bare")
    with pytest.raises(ModelError, match="no tokenizer"):
        finetune(bare, rows(tmp_path, n=6), rows(tmp_path, n=6), recipe=RECIPE)


def test_texts_longer_than_the_position_table_are_cut(tmp_path):
    base = checkpoint(tmp_path / "short", max_position_embeddings=12)
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(base)
    train, dev = rows(tmp_path, "pair", n=16), rows(tmp_path, "pair", n=12, seed=1)
    finetune(base, train, dev, recipe=RECIPE.but(epochs=1))
