"""A trial's hash covers what the trial reads: a changed input is another trial for its readers."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file, save_file

from microtome.experiments import find_experiment, subject_of
from microtome.experiments.catalogue import FOLDERS
from microtome.experiments.kit import annotated_text
from microtome.tasks import DataSpec
from microtome.tasks.annotation.treebanks import Sentence, Word
from microtome.tasks.reading import embedded
from support.tiny import WORDS
from support.training_rows import checkpoint

N_TRAIN, N_DEV = 40, 12


class Tagger:
    """Knows nothing but spaces; another version may annotate otherwise."""

    version = "1"

    def __call__(self, text):
        words, start = [], 0
        for form in text.split():
            start = text.index(form, start)
            words.append(Word(form, upos="X", head=0, relation="root", start=start))
        return Sentence(text, tuple(words))


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder with all that a trial may read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Tagger, "version", "1")
    monkeypatch.setattr(annotated_text, "load_tagger", lambda name: Tagger())
    for folder, head in (("model", "mlm"), ("other", "mlm"), ("tuned", "classification")):
        checkpoint(tmp_path / folder, head=head)
    Path("sst2").mkdir()
    for split, n in (("train", N_TRAIN), ("dev", N_DEV)):
        lines = [f"{WORDS[i % 30]} {WORDS[(7 * i) % 30]} {split}\t{i % 2}" for i in range(n)]
        Path(f"sst2/{split}.tsv").write_text("\n".join(["sentence\tlabel", *lines]) + "\n")
    for split in ("train", "dev"):
        text = Path(f"sst2/{split}.tsv").read_text()
        Path(f"{split}.csv").write_text(text.replace("\t", ",").replace("sentence", "text"))
    Path("notes.txt").write_text("the cat sees a house\n" * 20)
    Path("trees.conllu").write_text("1\tcats\tcat\tNOUN\t_\t_\t2\tnsubj\t_\t_\n"
                                    "2\tsleep\tsleep\tVERB\t_\t_\t0\troot\t_\t_\n\n")  # fmt: skip
    Path("frames.txt").write_text("the cat in a house sees  sees ['the cat']\n")
    Path("pairs.csv").write_text("clean,corrupted\nthe cat sees,the dog sees\n")
    Path("classifier.safetensors").write_bytes(b"weights of a classifier")
    return tmp_path


def change_weights(folder):
    file = Path(folder) / "model.safetensors"
    tensors = load_file(file)
    name = min(tensors)
    save_file(tensors | {name: tensors[name] + 1}, file, metadata={"format": "pt"})


def append(file, text):
    with Path(file).open("a") as stream:
        stream.write(text)


CHANGES = {
    "weights": lambda: [change_weights(folder) for folder in ("model", "tuned")],
    "tokenizer": lambda: [
        append(f"{folder}/tokenizer.json", "\n") for folder in ("model", "tuned")
    ],
    "card": lambda: Path("model/README.md").write_text("---\nlearning_rate: 0.007\n---\n"),
    "measured rows": lambda: [append("sst2/dev.tsv", "one more\t1\n"), append("dev.csv", "b,1\n")],
    "training rows": lambda: [
        append("sst2/train.tsv", "or not\t0\n"),
        append("train.csv", "c,0\n"),
    ],
    "other model": lambda: change_weights("other"),
    "other tokenizer": lambda: append("other/tokenizer.json", "\n"),
    "text": lambda: append("notes.txt", "the dog sees it\n"),
    "treebank": lambda: append("trees.conllu", "1\tgo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n"),
    "frames": lambda: append("frames.txt", "a house with the cat falls  falls ['a house']\n"),
    "classifier": lambda: append("classifier.safetensors", "!"),
    "pairs": lambda: append("pairs.csv", "a cat,a dog\n"),
    "tagger": lambda: setattr(Tagger, "version", "2"),
}

MODEL = {"weights", "tokenizer"}
MEASURES = MODEL | {"measured rows"}
LEARNS = MEASURES | {"training rows"}
TRAINS = LEARNS | {"card"}  # the model's card names a learning rate
OWN_FILES = {"path": "train.csv", "dev_path": "dev.csv"}

# An experiment, its model and options, and what its trials open. A trial that isn't named here
# opens the model and the measured rows; every one also depends on what the trials that it needs do.
CASES = {
    "decoding": ("model", {"finetuned": True, "layers": "4"}, {}),
    "decoding, grafted": ("tuned", {"graft": "other"}, {
        "decoding.decode": [MEASURES | {"other model"},
                            {"other model", "other tokenizer", "measured rows"}]}),
    "decoding, fitted": ("model", {"readout": "fit", "fit_steps": 2}, {
        "decoding.fit_head": MODEL | {"training rows"}}),
    "decoding, fitted on text": ("model", {"readout": "fit", "fit_text": "notes.txt"}, {
        "decoding.fit_head": MODEL | {"text"}}),
    "duplication": ("model", {"layers": [3, 4], "seeds": [0], "scan": True}, {}),
    "reinitialization": ("model", {"seeds": [0, 1]}, {}),
    "frozen-probing": ("model", {}, {"frozen-probing.probe": LEARNS}),
    "weight-drift": ("model", {"seeds": [0]}, {"weight-drift.compare_weights": MODEL}),
    "weight-drift, from a base": ("tuned", {"base": "other"}, {
        "weight-drift.compare_weights": MODEL | {"other model"}}),
    "attention-patterns": ("model", {"classifier": "classifier.safetensors"}, {
        "attention-patterns.classify": MEASURES | {"classifier"}}),
    "attention-patterns, pre-trained": ("model", {"pretrained": True}, {}),
    "frame-relations": ("model", {"frames": "frames.txt"}, {
        "frame-relations.score_links": MODEL | {"frames"}}),
    "frame-relations, of a classifier": ("tuned", {"frames": "frames.txt"}, {
        "frame-relations.score_links": MEASURES | {"frames"}}),
    "attention-drift": ("model", {}, {}),
    "attention-drift, from a base": ("tuned", {"base": "model", "again": "other"}, {
        "attention-drift.compare": MEASURES | {"other model"}}),
    "trim": ("tuned", {"steps": 2, "layers": [1]}, {"trim.answer": LEARNS, "trim.heal": LEARNS}),
    "initialization": ("model", {"heads": 2}, {"initialization.probe_frozen": LEARNS}),
    "linguistic-features": ("model", {"treebank": "trees.conllu", "base": "other"}, {
        "linguistic-features.score_features": MODEL | {"treebank", "other model"}}),
    "linguistic-features, tagged": ("model", {"tagger": "any", "finetune": True}, {
        "linguistic-features.score_features": MEASURES | {"tagger"}}),
    "token-links": ("model", {"treebank": "trees.conllu"}, {
        "token-links.score_links": MODEL | {"treebank"}}),
    "token-links, of plain words": ("model", {}, {}),
    "head-disabling": ("model", {}, {}),
    "head-disabling, of a classifier": ("tuned", {}, {}),
    "layer-removal": ("model", {}, {}),
    "head-importance": ("model", {}, {}),
    "predictors": ("model", {}, {}),
    "patching": ("model", {}, {}),
    "patching, of a file": ("tuned", {"pairs": "pairs.csv"}, {
        "patching.patch": MODEL | {"pairs"}}),
    "mdl-probing": ("model", {}, {"mdl-probing.code": LEARNS, "mdl-probing.compare": LEARNS}),
    "layer-similarity": ("model", {"finetune": True, "edit": "remove(1)"}, {}),
    "lens": ("model", {}, {"lens.fit": MODEL | {"training rows"}}),
    "lens, fitted on text, grafted": ("tuned", {"fit_text": "notes.txt", "graft": "other"}, {
        "lens.fit": MODEL | {"text", "other model"}, "lens.read": MEASURES | {"other model"}}),
    "layer-similarity, with another": ("model", {"other": "other"}, {
        "layer-similarity.compare_depths": MEASURES | {"other model", "other tokenizer"}}),
}  # fmt: skip


def planned(case, *, files):
    model, settings, _ = CASES[case]
    experiment = find_experiment(case.partition(",")[0])
    data = DataSpec(**OWN_FILES) if files else DataSpec("sst2", "sst2")
    subject = subject_of(model, data, **({"trains": False} if "pretrained" in settings else {}))
    return experiment.plan(subject, experiment.settings(settings))


def readers(trials, opens, name):
    """The places of the trials that open the input ``name``, or need one that does."""
    turns = {key: iter(value) for key, value in opens.items() if isinstance(value, list)}
    place, found = {trial.hash: i for i, trial in enumerate(trials)}, set()
    for i, trial in enumerate(trials):
        default = {"finetuning.train": TRAINS, "finetuning.repeat_rows": set()}
        known = opens.get(trial.name, default.get(trial.name, MEASURES))
        opened = next(turns[trial.name]) if isinstance(known, list) else known
        if name in opened or any(place[need] in found for need in trial.needs):
            found.add(i)
    return found


@pytest.mark.parametrize("files", [False, True], ids=["a task's folder", "two files"])
@pytest.mark.parametrize("case", CASES)
def test_a_changed_input_is_another_trial_for_those_that_read_it(case, files, world):
    if files and "fitted" in case:
        pytest.skip("a head is fitted on a task's training rows")
    last = planned(case, files=files)
    for name, change in CHANGES.items():
        change()
        trials = planned(case, files=files)
        pairs = enumerate(zip(last, trials, strict=True))
        moved = {place for place, (old, new) in pairs if old.hash != new.hash}
        assert moved == readers(trials, CASES[case][2], name), name
        last = trials


def test_every_experiment_is_among_the_cases():
    """Ensembling and ``--beside`` read stored runs: see their own tests."""
    assert {case.partition(",")[0] for case in CASES} == FOLDERS.keys() - {"ensembling"}


def test_the_embedded_annotation_counts(world, monkeypatch):
    copies = world / "tasks"
    for file in embedded.FOLDER.rglob("dev.parquet"):
        (copies / file.parent.name).mkdir(parents=True, exist_ok=True)
        pq.write_table(pq.read_table(file), copies / file.parent.name / file.name)
    data = DataSpec("micro-paraphrase", limit=4)
    subjects = {name: subject_of("model", data) for name in ("linguistic-features", "token-links")}
    subjects["frame-relations"] = subject_of("model", DataSpec(), needs_rows=False)

    def hashes():
        experiments = {name: find_experiment(name) for name in subjects}
        return {
            name: [trial.hash for trial in one.plan(subjects[name], one.settings({}))]
            for name, one in experiments.items()
        }

    monkeypatch.setattr(embedded, "FOLDER", copies)
    before = hashes()
    file = copies / "micro-paraphrase" / "dev.parquet"
    pq.write_table(pq.read_table(file), file, compression="none")  # other bytes
    after = hashes()
    assert all(before[name] != after[name] for name in subjects)


def test_a_shipped_head_counts(world, monkeypatch):
    """The head that ships for a model is read from a file of the package."""
    from microtome.experiments.kao.decoding import plan

    Path("head").mkdir()
    Path("head/readout.json").write_text("{}")
    monkeypatch.setattr(plan, "shipped_folder", lambda content_hash: Path("head"))
    experiment = find_experiment("decoding")

    def hashes():
        subject = subject_of("model", DataSpec("sst2", "sst2"))
        settings = experiment.settings({"readout": "shipped", "finetuned": True})
        return {t.name: t.hash for t in experiment.plan(subject, settings)}

    before = hashes()
    append("head/readout.json", "\n")
    after = hashes()
    assert before["decoding.decode"] != after["decoding.decode"]
    assert before["finetuning.train"] == after["finetuning.train"]
