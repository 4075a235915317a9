"""Fine-tuning from a name to a folder: edits, resuming, refusals, what the folder holds."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch
from transformers import AutoModelForQuestionAnswering, AutoModelForSequenceClassification

from microtome import load, parse
from microtome.errors import DataError, ModelError, RequestError, StorageError
from microtome.models.front_matter import learning_rate_of
from microtome.tasks import find_task, open_data
from microtome.training.finetuned import RECORD
from microtome.training.finetuning import finetune
from microtome.training.heads import load_for_task
from microtome.training.loop import Step
from microtome.training.recipe import Recipe, recipe_for
from microtome.training.seeds import Seeds
from tiny import FAMILY_TYPES, save_tiny, tiny_tokenizer
from training_rows import checkpoint, rows

RECIPE = Recipe(learning_rate=1e-3, batch_size=8, epochs=3, max_length=32, stride=4)


class KilledError(Exception):
    """Stands for a kill: nothing in the code under test knows it."""


def killed_after(epoch: int):
    def progress(step: Step) -> None:
        if step.epoch == epoch and step.scores:
            raise KilledError

    return progress


def tensors(model) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def bit_equal(ours, theirs) -> bool:
    return ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "base")


@pytest.mark.parametrize("kind", ["single", "pair", "regression", "span"])
def test_every_kind_of_task_trains_scores_and_saves(kind, model, tmp_path):
    train, dev = rows(tmp_path, kind, n=30), rows(tmp_path, kind, n=12, seed=1)
    done = finetune(model, train, dev, recipe=RECIPE, seed=3, out=tmp_path / "out")
    document = done.as_json()
    assert list(document) == ["model", "task", "edits", "seed", "out", "scores", "primary"]
    assert document["primary"] in document["scores"]
    assert json.loads(json.dumps(document))["seed"] == 3
    for score in document["scores"].values():
        assert score["low"] <= score["value"] <= score["high"]
    assert len(done.history) == 3
    assert done.threads == torch.get_num_threads()
    assert not (tmp_path / "out.finetuning").exists()
    auto = AutoModelForQuestionAnswering if kind == "span" else AutoModelForSequenceClassification
    plain = auto.from_pretrained(tmp_path / "out")
    assert bit_equal(tensors(plain), tensors(done.model))
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


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_a_killed_finetuning_goes_on_and_ends_bit_equal(family, tmp_path):
    base = checkpoint(tmp_path / "base", family)
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    whole = finetune(base, train, dev, recipe=RECIPE, out=tmp_path / "whole")
    for epoch in (0, 1):
        with pytest.raises(KilledError):
            finetune(
                base, train, dev, recipe=RECIPE, out=tmp_path / "cut", progress=killed_after(epoch)
            )
    assert not (tmp_path / "cut").exists()
    seen = []
    resumed = finetune(base, train, dev, recipe=RECIPE, out=tmp_path / "cut", progress=seen.append)
    assert {step.epoch for step in seen} == {2}
    assert resumed.history == whole.history
    assert bit_equal(tensors(resumed.model), tensors(whole.model))
    assert bit_equal(tensors(load(str(tmp_path / "cut"))), tensors(load(str(tmp_path / "whole"))))


def test_a_killed_finetuning_that_keeps_the_best_ends_bit_equal(model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    recipe = RECIPE.but(keep="best", epochs=4, layerdrop=0.3)
    whole = finetune(model, train, dev, recipe=recipe, out=tmp_path / "whole")
    with pytest.raises(KilledError):
        finetune(model, train, dev, recipe=recipe, out=tmp_path / "cut", progress=killed_after(2))
    resumed = finetune(model, train, dev, recipe=recipe, out=tmp_path / "cut")
    assert resumed.kept_epoch == whole.kept_epoch
    assert bit_equal(tensors(resumed.model), tensors(whole.model))
    values = [epoch.scores[whole.primary] for epoch in whole.history]
    assert whole.kept_epoch == values.index(max(values))
    assert whole.scores[whole.primary].value == max(values)


def test_a_kill_in_the_middle_of_a_step_loses_the_epoch_only(model, tmp_path):
    """A real SIGKILL, in another process."""
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    whole = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "whole")
    code = (
        "import os, signal, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from pathlib import Path\n"
        "import torch\n"
        f"torch.set_num_threads({torch.get_num_threads()})\n"
        "from microtome.training.finetuning import finetune\n"
        "from microtome.training.recipe import Recipe\n"
        "from training_rows import rows\n"
        f"place = Path({str(tmp_path)!r})\n"
        "train, dev = rows(place, n=30), rows(place, n=12, seed=1)\n"
        f"recipe = Recipe(**{RECIPE.as_json()!r})\n"
        "def progress(step):\n"
        "    if step.step == 7: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"finetune(Path({str(model)!r}), train, dev, recipe=recipe, out=place / 'cut',"
        " progress=progress)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    assert (tmp_path / "cut.finetuning" / "epoch-0001").is_dir()
    resumed = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "cut")
    assert bit_equal(tensors(resumed.model), tensors(whole.model))


def test_a_full_disk_stops_clearly_and_the_epochs_before_are_kept(model, tmp_path, monkeypatch):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    whole = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "whole")
    real, n_written = safetensors.torch.save_file, []

    def nearly_full(tensors, file):
        n_written.append(file)
        if len(n_written) == 4:  # the optimiser of the second epoch
            raise OSError(errno.ENOSPC, "No space left on device")
        real(tensors, file)

    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", nearly_full)
        with pytest.raises(StorageError, match=r"No space left.*run the same command again"):
            finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "cut")
    assert (tmp_path / "cut.finetuning" / "epoch-0001").is_dir()
    resumed = finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "cut")
    assert bit_equal(tensors(resumed.model), tensors(whole.model))


def test_the_same_request_again_loads_what_is_there(model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    options = {"recipe": RECIPE, "edits": "extend(4)", "out": tmp_path / "out"}
    first = finetune(model, train, dev, **options)

    def never(_):
        raise AssertionError("trained again")

    again = finetune(model, train, dev, **options, progress=never)
    assert again.as_json() == first.as_json()
    assert again.history == first.history
    assert again.certificate == first.certificate
    assert bit_equal(tensors(again.model), tensors(first.model))


@pytest.mark.parametrize("finished", [True, False])
def test_the_folder_of_another_request_is_refused_with_the_difference(finished, model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    if finished:
        finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "out")
    else:
        with pytest.raises(KilledError):
            finetune(
                model, train, dev, recipe=RECIPE, out=tmp_path / "out", progress=killed_after(0)
            )
    with pytest.raises(
        RequestError, match=r"another fine-tuning: learning_rate is 0.001 there, 0.002 asked for"
    ):
        finetune(model, train, dev, recipe=RECIPE.but(learning_rate=2e-3), out=tmp_path / "out")
    with pytest.raises(RequestError, match="seeds is"):
        finetune(model, train, dev, recipe=RECIPE, seed=1, out=tmp_path / "out")
    with pytest.raises(RequestError, match="rows is"):
        finetune(model, dev, dev, recipe=RECIPE, out=tmp_path / "out")
    with pytest.raises(RequestError, match="edits is"):
        finetune(model, train, dev, recipe=RECIPE, edits="remove(1)", out=tmp_path / "out")


def test_a_folder_with_something_else_in_it_is_refused(model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(RequestError, match="not empty"):
        finetune(model, train, dev, recipe=RECIPE, out=tmp_path / "out")


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
    edited = tensors(edits(base))
    saved = tensors(load(str(tmp_path / "out")))
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
    assert bit_equal(tensors(one.model), tensors(same.model))
    other = finetune(model, train, dev, recipe=RECIPE, seeds=Seeds(base.init, 1, base.dropout))
    assert not bit_equal(tensors(one.model), tensors(other.model))
    part = finetune(model, train, dev, recipe=RECIPE, fraction=0.5)
    assert part.history[-1].steps == 3 * 3  # 20 rows in batches of 8


# --- what doesn't fit ----------------------------------------------------------------------------


def test_a_task_that_does_not_fit_the_models_head_is_refused(tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    spans = rows(tmp_path, "span", n=6)
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


def test_unnamed_outputs_of_a_head_that_fits_get_the_tasks_names(tmp_path):
    train, dev = rows(tmp_path, n=16), rows(tmp_path, n=12, seed=1)
    unnamed = checkpoint(tmp_path / "unnamed", head="classification", num_labels=2)
    before = load(str(unnamed)).classifier.weight
    nothing = RECIPE.but(learning_rate=1e-12, epochs=1)
    done = finetune(unnamed, train, dev, recipe=nothing, out=tmp_path / "out")
    torch.testing.assert_close(done.model.classifier.weight, before)
    assert load(str(tmp_path / "out")).config.id2label == {0: "no", 1: "yes"}


def test_a_half_precision_base_is_trained_and_saved_in_single(tmp_path):
    base = save_tiny(tmp_path / "half", dtype=torch.float16, with_tokenizer=True)
    train, dev = rows(tmp_path, n=16), rows(tmp_path, n=12, seed=1)
    done = finetune(base, train, dev, recipe=RECIPE.but(epochs=1), out=tmp_path / "out")
    assert bit_equal(tensors(load(str(tmp_path / "out"))), tensors(done.model))


def test_rows_without_labels_are_refused(model, tmp_path):
    train = rows(tmp_path, n=30)
    (tmp_path / "plain.txt").write_text("the cat sees\nthe dog\n")
    plain = open_data(data=tmp_path / "plain.txt")
    with pytest.raises(DataError, match="without labels"):
        finetune(model, plain, train, recipe=RECIPE)
    with pytest.raises(RequestError, match="one task"):
        finetune(model, train, rows(tmp_path, "regression", n=6), recipe=RECIPE)


def test_a_model_without_a_tokenizer_is_refused(tmp_path):
    bare = save_tiny(tmp_path / "bare")
    with pytest.raises(ModelError, match="no tokenizer"):
        finetune(bare, rows(tmp_path, n=6), rows(tmp_path, n=6), recipe=RECIPE)


# --- recipes -------------------------------------------------------------------------------------


def test_the_papers_defaults_by_task_and_the_cards_learning_rate(tmp_path):
    sst2, squad2 = recipe_for(find_task("sst2")), recipe_for(find_task("squad2"))
    assert (sst2.learning_rate, sst2.batch_size, sst2.epochs, sst2.max_length) == (2e-5, 32, 3, 128)
    assert (sst2.warmup, sst2.weight_decay, sst2.clip) == (0.1, 0.01, 1.0)
    assert (squad2.learning_rate, squad2.batch_size, squad2.epochs) == (3e-5, 32, 2)
    assert (squad2.max_length, squad2.stride) == (384, 128)
    card = tmp_path / "README.md"
    for text, rate in [
        ("---\nlicense: mit\nlearning_rate: 0.0003\n---\n# A model", 3e-4),
        ("---\nlearning_rate: 3e-4\n---\n", 3e-4),
        ("# A model\nlearning_rate: 0.0003\n", None),
        ("---\nlearning_rate: fast\n---\n", None),
        ("---\nlearning_rate: 0\n---\n", None),
    ]:
        card.write_text(text)
        assert learning_rate_of(tmp_path) == rate
    card.write_text("---\nlearning_rate: 0.0003\n---\n")
    assert recipe_for(find_task("sst2"), tmp_path).learning_rate == 3e-4
    assert learning_rate_of(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("batch_size", 0),
        ("epochs", 1.5),
        ("steps", 0),
        ("warmup", 1.5),
        ("layerdrop", 1.0),
        ("freeze", "everything"),
        ("freeze", -1),
        ("freeze", True),
        ("keep", "first"),
        ("precision", "float16"),
        ("clip", 0),
    ],
)
def test_a_wrong_setting_is_refused_by_name(name, value):
    with pytest.raises(RequestError, match=name):
        Recipe(**{name: value})


def test_the_models_card_decides_the_rate_where_no_recipe_is_given(model, tmp_path):
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    (model / "README.md").write_text("---\nlearning_rate: 0.004\n---\n")
    done = finetune(model, train, dev, fraction=8)
    assert done.recipe.learning_rate == 0.004
    assert done.recipe.max_length == 128


def test_texts_longer_than_the_position_table_are_cut(tmp_path):
    base = checkpoint(tmp_path / "short", max_position_embeddings=12)
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(base)
    train, dev = rows(tmp_path, "pair", n=16), rows(tmp_path, "pair", n=12, seed=1)
    finetune(base, train, dev, recipe=RECIPE.but(epochs=1))
