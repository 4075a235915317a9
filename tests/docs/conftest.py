"""A folder with what the pages speak of, tiny: ./my-model, mine.csv, RUN, ../shared/data/glue …"""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from microtome.models import load_tokenizer
from microtome.study import Workers
from microtome.tasks import DataSpec, open_data
from support.tiny import save_tiny

SIZES = {"num_attention_heads": 12, "hidden_size": 48, "intermediate_size": 64}


def rows_of(task: str, n: int) -> list[tuple[str, str]]:
    data = open_data(DataSpec(task, limit=n))
    return [(row.text, ("bad", "good")[int(label)]) for row, label in
            zip(data.rows(), data.targets, strict=True)]  # fmt: skip


def write(file: Path, header: tuple[str, ...], rows, delimiter: str = ",") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, delimiter=delimiter)
        writer.writerows([header, *rows])


def save_model(folder: Path, n_layers: int, head: str) -> None:
    """Random, with the words of nano-bert and the shape that pages speak of: layer 11, head 3.7."""
    labels = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
    tokenizer = load_tokenizer("nano-bert")
    save_tiny(
        folder, "bert", head, num_hidden_layers=n_layers, vocab_size=len(tokenizer),
        max_position_embeddings=128, **SIZES, **(labels if head == "classification" else {}),
    )  # fmt: skip
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="session")
def things(tmp_path_factory):
    """What every page's folder has, made once."""
    from microtome import experiment
    from microtome.tasks.annotation.treebanks import write_conllu
    from microtome.tasks.reading.embedded import gold_sentences

    place = tmp_path_factory.mktemp("things")
    for name, n_layers in (
        ("my-model", 12),
        ("my-classifier", 10),
        ("another", 11),
        ("six", 6),
        ("tiny", 2),
    ):
        save_model(place / name, n_layers, "classification")
    save_model(place / "my-bert", 6, "mlm")
    texts = [text for text, _ in rows_of("micro-sentiment", 60)]
    (place / "texts.txt").write_text("\n".join(texts))
    (place / "corpus.txt").write_text("\n".join(texts * 20))
    sentences = gold_sentences("micro-sentiment", "dev")[:20]
    (place / "en_ewt-ud-dev.conllu").write_text(write_conllu(s.sentence for s in sentences))
    write(place / "rows.csv", ("text", "label"), rows_of("micro-sentiment", 12))
    done = experiment("layer-removal")(place / "tiny", place / "rows.csv")
    shutil.copytree(done.folder, place / "RUN")
    return place


@pytest.fixture(scope="module")
def in_this_process():
    """Trials run here unless told otherwise: workers have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        executor, _, devices, address, retry, _, track = Workers.__init__.__defaults__
        defaults = (executor, 0, devices, address, retry, False, track)
        patch.setattr(Workers.__init__, "__defaults__", defaults)
        yield


@pytest.fixture
def reader(in_this_process, things, tmp_path, monkeypatch):
    """Make a reader's folder the present one; a page's rows have the columns that it names."""

    def sit_down(page: str) -> Path:
        here = tmp_path / "here"
        shutil.copytree(things, here)
        columns = ("review", "stars") if "--text-column review" in page else ("text", "label")
        rows = rows_of("micro-sentiment", 48)
        for name, part in (("mine", rows[:24]), ("dev", rows[:24]), ("train", rows[24:])):
            write(here / f"{name}.csv", columns, part)
        glue = tmp_path / "shared/data/glue"
        numbered = [(text, int(label == "good")) for text, label in rows]
        for split in ("train", "dev"):
            write(glue / f"SST-2/{split}.tsv", ("sentence", "label"), numbered, "\t")
            pairs = [(label, 1, 2, text, text) for text, label in numbered]
            header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
            write(glue / f"MRPC/{split}.tsv", header, pairs, "\t")
        monkeypatch.chdir(here)
        monkeypatch.syspath_prepend(here)
        monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))
        return here

    return sit_down
