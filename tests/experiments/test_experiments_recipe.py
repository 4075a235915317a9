"""One recipe for everything that trains; its length is also that of what is measured."""

from __future__ import annotations

import csv
import json

import pytest

from microtome import examination
from microtome.cli import run
from microtome.errors import RequestError
from microtome.experiments import all_experiments, find_experiment, subject_of
from microtome.tasks import DataSpec
from support.experiment_rows import rows_of, study_here
from support.tiny import WORDS
from support.training_rows import checkpoint

GIVEN = {
    "epochs": 2, "batch_size": 10, "learning_rate": 3e-4, "warmup": 0.25, "weight_decay": 0.05,
    "max_length": 16,
}  # fmt: skip
LEAST = 50
# What each experiment is asked for, so that it trains and is over soon.
TRAINED = {
    "decoding": {"finetuned": True, "layers": "4"},
    "duplication": {"layers": [3, 4], "seeds": [0]},
    "reinitialization": {"counts": [0, 1], "seeds": [0]},
    "frozen-probing": {},
    "weight-drift": {"fractions": [1.0], "seeds": [0]},
    "attention-patterns": {},
    "attention-drift": {"seeds": [0]},
    "initialization": {"seeds": [0], "heads": 1},
    "linguistic-features": {"finetune": True},
    "token-links": {"finetune": True},
    "head-disabling": {"splits": 2},
    "layer-removal": {},
    "trim": {"steps": 2, "layers": [1]},
    "layer-similarity": {"finetune": True},
    "head-importance": {},
    "predictors": {},
    "patching": {"finetune": True, "tries": 2},
}
TIMED = (
    "speed", "speed_low", "speed_high", "latency_ms", "milliseconds", "batch_ms", "text_ms",
    "seconds", "sweep_seconds",
)  # fmt: skip


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "model")


def flags(names):
    return [f"--{name.replace('_', '-')}" for name in names]


def test_every_experiment_that_trains_has_the_same_options():
    names = {*GIVEN, "least_steps"}
    for experiment in all_experiments():
        has = {option.name for option in experiment.options} & names
        assert has == (names if experiment.name in TRAINED else set()), experiment.name


@pytest.mark.parametrize("name", TRAINED)
def test_the_recipe_reaches_every_training_and_the_length_every_trial(name, model):
    experiment = find_experiment(name)
    subject = subject_of(str(model), DataSpec("micro-paraphrase", limit=8))
    settings = TRAINED[name] | GIVEN | {"least_steps": 100_000}
    trials = experiment.plan(subject, experiment.settings(settings))
    assert {trial.request["rows"]["max_length"] for trial in trials} == {16}
    if name == "frozen-probing":
        asked = {key: value for key, value in GIVEN.items() if key != "max_length"}
        assert all(trial.request["recipe"] == asked for trial in trials)
        assert all(trial.request["least_steps"] == 100_000 for trial in trials)
        return
    recipes = [trial.request["recipe"] for trial in trials if trial.name == "finetuning.train"]
    assert recipes
    assert all({k: r[k] for k in (*GIVEN, "steps")} == GIVEN | {"steps": 100_000} for r in recipes)


@pytest.mark.parametrize(
    ("n_rows", "asked", "steps"),
    [
        (28, {}, 100),  # 28 rows in batches of 32 are an update an epoch
        (28, {"least_steps": 7}, 7),
        (28, {"epochs": 2}, None),
        (40, {"batch_size": 1}, None),  # 120 updates in three epochs
    ],
)
def test_a_head_on_few_rows_of_own_data_is_trained_until_it_can_have_learnt(
    model, tmp_path, n_rows, asked, steps
):
    files = [write_texts(tmp_path / f"{n}.csv", n, 6, first=n) for n in (n_rows, 10)]
    subject = subject_of(str(model), DataSpec(path=files[0], dev_path=files[1]))
    experiment = find_experiment("layer-removal")
    trials = experiment.plan(subject, experiment.settings(asked))
    (recipe,) = (t.request["recipe"] for t in trials if t.name == "finetuning.train")
    assert recipe["steps"] == steps


def write_texts(path, n_rows, n_words, *, first):
    """Labelled texts of 12 words, cut to ``n_words``; a word is a token."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("text", "label"))
        for i in range(first, first + n_rows):
            text = " ".join([WORDS[i % 30], *(WORDS[(7 * i + j * j) % 30] for j in range(11))])
            writer.writerow((" ".join(text.split()[:n_words]), ("no", "yes")[i % 2]))
    return path


def measured(row):
    return {key: value for key, value in row.items() if key not in (*TIMED, "task")}


@pytest.mark.parametrize(
    "name", [name for name in TRAINED if name not in ("linguistic-features", "token-links")]
)
def test_a_length_cuts_what_is_trained_and_what_is_measured(name, model, tmp_path):
    """As if the texts had been cut by hand: 8 words, [CLS] and [SEP] are 10 tokens."""

    def rows(n_words, **settings):
        files = (
            write_texts(tmp_path / f"{side}-{n_words}.csv", n, n_words, first=first)
            for side, n, first in (("train", 28, 0), ("dev", 10, 100))
        )
        subject = subject_of(str(model), DataSpec(path=next(files), dev_path=next(files)))
        settings = TRAINED[name] | {"epochs": 1, "batch_size": 8, "learning_rate": 3e-3} | settings
        out = tmp_path / f"{n_words}-{len(settings)}"
        return study_here(name, subject, out, **settings).parts[0].rows

    cut, by_hand, whole = rows(12, max_length=10), rows(8), rows(12)
    assert [measured(row) for row in cut] == [measured(row) for row in by_hand]
    assert [measured(row) for row in cut] != [measured(row) for row in whole]


@pytest.mark.parametrize("name", ["linguistic-features", "token-links"])
def test_a_length_cuts_annotated_text_too(name, model, tmp_path):
    """Sentences of a treebank; their first word is the verb, and the last is cut off either way."""
    words = [w for w in WORDS if w.isalpha()][:12]
    nouns = [f"{i}\t{word}\t{word}\tNOUN\t_\t_\t1\tnsubj\t_\t_" for i, word in enumerate(words, 1)]
    lines = [nouns[0].replace("NOUN", "VERB").replace("1\tnsubj", "0\troot"), *nouns[1:]]
    for n_words in (8, 12):
        text = "\n".join(lines[:n_words]) + "\n\n"
        (tmp_path / f"{n_words}.conllu").write_text(text + text.replace(words[3], words[4]))

    def rows(n_words, **settings):
        treebank = str(tmp_path / f"{n_words}.conllu")
        found = rows_of(name, model, treebank=treebank, **settings)
        return [{key: value for key, value in row.items() if key != "task"} for row in found]

    assert rows(12, max_length=10) == rows(8)
    assert rows(12) != rows(8)


def test_finetune_takes_the_recipe(model, tmp_path, capsys):
    data = write_texts(tmp_path / "rows.csv", 40, 12, first=0)
    values = [
        str(value) for pair in zip(flags(GIVEN), GIVEN.values(), strict=True) for value in pair
    ]
    given = ["finetune", model, "--data", data, "--out", tmp_path / "out", *values]
    given += ["--least-steps", LEAST, "--fraction", 20, "--json"]
    assert run([str(one) for one in given]) == 0
    record = json.loads((tmp_path / "out" / "finetuning.json").read_text())
    assert {key: record["request"][key] for key in GIVEN} == GIVEN
    assert record["request"]["steps"] == LEAST  # 20 rows are 2 batches: 4 updates
    capsys.readouterr()
    wrong = ["finetune", model, "--data", data, "--out", tmp_path / "no", "--warmup", "3", "--json"]
    assert run([str(one) for one in wrong]) == 2
    assert "warmup must be from 0 to 1" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_an_examination_takes_the_recipe(model, capsys):
    recipe = GIVEN | {"least_steps": LEAST, "fraction": 20.0}
    asked = examination.request(str(model), DataSpec("micro-sentiment", limit=8), recipe=recipe)
    trials = [
        trial
        for wanted in asked.wanted
        for experiment in [find_experiment(wanted.name)]
        for trial in experiment.plan(asked.subject, experiment.settings(wanted.settings))
    ]
    assert {trial.request["rows"]["max_length"] for trial in trials} == {16}
    trainings = {t.hash: t.request for t in trials if t.name == "finetuning.train"}
    (training,) = trainings.values()  # both parts ask for the same one
    assert {key: training["recipe"][key] for key in GIVEN} == GIVEN
    assert (training["recipe"]["steps"], training["fraction"]) == (LEAST, 20.0)
    assert run(["examine", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(flag in said for flag in flags(recipe))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"warmup": 2.0}, "warmup must be from 0 to 1, got 2"),
        ({"weight_decay": -1.0}, "weight_decay must be 0 or more, got -1"),
        ({"max_length": 3}, "max_length must be 8 or more, got 3"),
        ({"least_steps": -1}, "--least-steps must be 0 or more, got -1"),
    ],
)
def test_a_recipe_that_nobody_can_train_by_is_refused_before_anything_runs(settings, words, model):
    experiment = find_experiment("head-disabling")
    subject = subject_of(str(model), DataSpec("micro-sentiment", limit=8))
    with pytest.raises(RequestError, match=words):
        experiment.plan(subject, experiment.settings(settings))
