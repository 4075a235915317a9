"""Embedders, rerankers and taggers in experiments: used as they are, head by head, cut by cut."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from microtome.cli import run
from microtome.edits import parse
from microtome.experiments import find_experiment
from microtome.experiments.kit.subject import subject_of
from microtome.models import load, load_tokenizer
from microtome.observe import outcomes
from microtome.observe.evaluation import encode_to_score, evaluate
from microtome.surgery import apply
from microtome.tasks import DataSpec, open_data
from support.sentence_folders import sentence_folder
from support.tiny import WORDS, save_tiny

pytestmark = pytest.mark.usefixtures("own_folder")


def sentence(number, length=6):
    return " ".join(WORDS[(number * 5 + step * (number % 3 + 1)) % 40] for step in range(length))


def write_csv(file, rows):
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "pair", "label"), *rows])
    return file


def write_searches(folder):
    (folder / "qrels").mkdir(parents=True)
    for name, count, length in (("corpus", 15, 9), ("queries", 8, 4)):
        lines = [
            json.dumps({"_id": f"{name[0]}{i}", "text": sentence(2 * i + count, length)})
            for i in range(count)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    judged = [f"q{i}\tc{(i * step) % 15}\t1" for i in range(8) for step in (1, 2)]
    lines = ["query-id\tcorpus-id\tscore", *dict.fromkeys(judged)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    return folder


def write_tags(file):
    lines = []
    for number in range(24):
        words = sentence(number).split()
        lines += [f"{word}\t{'B-X' if word in WORDS[:12] else 'O'}" for word in words] + [""]
    file.write_text("\n".join(lines) + "\n")
    return file


def job(name, tmp_path):
    """A model and its data, by the kind of the data."""
    if name == "similarity":
        rows = [(sentence(i), sentence(3 * i + 1, 5), (i * 7 % 11) / 2) for i in range(24)]
        return sentence_folder(tmp_path / "model"), DataSpec(
            path=write_csv(tmp_path / "d.csv", rows)
        )
    if name == "retrieval":
        data = DataSpec(path=write_searches(tmp_path / "beir"))
        return sentence_folder(tmp_path / "model", modes=("cls",)), data
    if name == "reranking":
        rows = [
            (f"{WORDS[query]} likes", sentence(5 * query + place), int(place == query % 4))
            for query in range(8)
            for place in range(4)
        ]
        model = save_tiny(
            tmp_path / "model", "bert", "classification", with_tokenizer=True, num_labels=2
        )
        return model, DataSpec(path=write_csv(tmp_path / "d.csv", rows), kind="reranking")
    names = {0: "O", 1: "B-X", 2: "I-X"}
    model = save_tiny(
        tmp_path / "model", "bert", "token-classification", with_tokenizer=True,
        id2label=names, label2id={tag: index for index, tag in names.items()},
    )  # fmt: skip
    return model, DataSpec(path=write_tags(tmp_path / "d.conll"))


UNITS = {
    "similarity": "pairs",
    "retrieval": "queries",
    "reranking": "queries",
    "tokens": "sentences",
}
JOBS = tuple(UNITS)


def options(data):
    return ["--data", data.path, *(["--kind", data.kind] if data.kind else [])]


@pytest.mark.parametrize("kind", JOBS)
def test_an_examination_uses_the_model_as_it_is(tmp_path, capsys, kind):
    """Nothing is trained, and every cut and head scores as the edited model does."""
    model, data = job(kind, tmp_path)
    subject = subject_of(str(model), data)
    assert subject.dataset.task.kind == kind
    assert subject.has_task_head
    out = tmp_path / "run"
    given = ["examine", model, *options(data), "--out", out, "--workers", "0", "--json"]
    assert run(list(map(str, given))) == 0
    document = json.loads(capsys.readouterr().out)
    statuses = {part["experiment"]: part["status"] for part in document["parts"]}
    assert statuses.pop("trim") in ("done", "left out")  # few queries can't be divided
    assert {*statuses.values()} == {"done"}
    records = [json.loads(file.read_text()) for file in (out / "records").glob("*.json")]
    assert "finetuning.train" not in {record["name"] for record in records}
    rows = [row for record in records for row in record["rows"]]
    units = {row["unit"]: row["n"] for row in rows if row.get("target") == "baseline"}
    assert units == {UNITS[kind]: 8 if kind in ("retrieval", "reranking") else 24}
    if kind in ("similarity", "reranking"):  # a file of pairs doesn't show which it is
        page = (out / "report.html").read_text()
        assert re.search(
            rf"finetune my-smaller-model [^<]*--kind {kind} [^<]*--out my-smaller", page
        )
    loaded, tokenizer = load(str(model)), load_tokenizer(str(model))
    dataset = open_data(subject.data)
    primary = dataset.task.primary
    for text in ("remove(1)", "disable(1.2)"):
        (row,) = (
            row
            for row in rows
            if row.get("edit") == text
            and row["metric"] == primary
            and row.get("strategy") in (None, "each")
            and not row.get("chosen")
        )
        edited = evaluate(apply(parse(text), loaded), tokenizer, dataset)
        assert row["value"] == pytest.approx(edited.scores[primary].value, abs=1e-5)


@pytest.mark.parametrize("kind", ["similarity", "retrieval", "tokens"])
def test_a_sweep_in_small_batches_is_the_same(tmp_path, monkeypatch, kind):
    model, data = job(kind, tmp_path)
    dataset = open_data(subject_of(str(model), data).data)
    loaded = load(str(model))
    encoded = encode_to_score(loaded, load_tokenizer(str(model)), dataset)
    targets = ["0.1", "1.*", ["0.0", "2.3"], "2.2"]
    whole = outcomes.swept_answers(loaded, dataset, encoded, targets)
    orders = outcomes.ordered_answers(loaded, dataset, encoded, [(0, 1, 2), (0, 2), (1,)])
    monkeypatch.setattr(outcomes, "BYTES_AT_ONCE", 1)
    batched = outcomes.swept_answers(loaded, dataset, encoded, targets)
    for expected, found in zip(whole, batched, strict=True):
        assert np.allclose(expected, found, atol=1e-6)
    again = outcomes.ordered_answers(loaded, dataset, encoded, [(0, 1, 2), (0, 2), (1,)])
    assert np.allclose(orders, again, atol=1e-6)


def test_an_embedder_on_labels_is_an_encoder_that_learns(tmp_path):
    rows = [(sentence(i), sentence(i + 3), "ab"[i % 2]) for i in range(40)]
    data = DataSpec(path=write_csv(tmp_path / "d.csv", rows))
    subject = subject_of(str(sentence_folder(tmp_path / "model")), data)
    assert not subject.has_task_head
    assert subject.data.held_out
    numbers = DataSpec(
        path=write_csv(tmp_path / "n.csv", [(*row[:2], i / 4) for i, row in enumerate(rows)]),
        kind="regression",
    )
    asked = subject_of(str(tmp_path / "model"), numbers)
    assert asked.dataset.task.kind == "regression"  # a kind that is named stays


def planned(model, data):
    """The hashes of a sweep's trials."""
    experiment = find_experiment("head-disabling")
    settings = experiment.settings({})
    return {trial.hash for trial in experiment.plan(subject_of(str(model), data), settings)}


def test_a_trial_hashes_what_comes_after_an_embedders_encoder(tmp_path):
    """The encoders are the same: the pooling, a prompt or a Dense make it another model."""
    _, data = job("similarity", tmp_path)
    prompts = {"query": "the big "}
    mean, cls, prompted = (
        sentence_folder(tmp_path / name, modes=(mode,), prompts=prompts)
        for name, mode in (("mean", "mean"), ("cls", "cls"), ("same", "mean"))
    )
    assert planned(mean, data) == planned(prompted, data)  # places don't count
    assert planned(mean, data).isdisjoint(planned(cls, data))
    settings = prompted / "config_sentence_transformers.json"
    settings.write_text(settings.read_text().replace("the big ", "the small "))
    assert planned(mean, data).isdisjoint(planned(prompted, data))


@pytest.mark.parametrize("kind", ["similarity", "retrieval"])
def test_a_sweep_uses_the_prompt_that_is_named_and_hashes_it(tmp_path, capsys, kind):
    _, data = job(kind, tmp_path)
    model = sentence_folder(tmp_path / "prompted", prompts={"asked": "the big "})
    named = replace(data, prompt="asked")
    assert planned(model, data).isdisjoint(planned(model, named))
    values = {}
    for spec in (data, named):
        given = ["run", "head-disabling", "--model", model, *options(spec)]
        given += ["--prompt", spec.prompt] if spec.prompt else []
        out = tmp_path / f"run-{spec.prompt}"
        assert run([*map(str, given), "--out", str(out), "--workers", "0", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        (row,) = (r for r in rows if r["target"] == "baseline" and r["metric"] == r["primary"])
        dataset = open_data(subject_of(str(model), spec).data)
        alone = evaluate(load(str(model)), load_tokenizer(str(model)), dataset)
        assert row["value"] == pytest.approx(alone.scores[row["metric"]].value, abs=1e-6)
        values[spec.prompt] = row["value"]
    assert values[None] != pytest.approx(values["asked"], abs=1e-4)
