"""The hub, with a folder in its place: columns and counts are checked on arrival."""

from __future__ import annotations

import sys
from dataclasses import replace

import datasets
import pytest

from microtome.errors import DataError, MissingExtra
from microtome.tasks import Answer, DataSpec, Row, find_task, open_data


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Puts rows where ``load_dataset`` finds them, and remembers what was asked for."""
    asked = []

    def serve(rows):
        table = datasets.Dataset.from_list(rows)
        table.save_to_disk(tmp_path / "hub")

        def load(id, config, *, split, revision):
            asked.append((id, config, split, revision))
            return datasets.load_from_disk(tmp_path / "hub")

        monkeypatch.setattr(datasets, "load_dataset", load)
        return asked

    datasets.disable_progress_bars()
    yield serve
    datasets.enable_progress_bars()


def sized(name, n_rows, split="dev", n_unlabelled=0):
    """The task with splits as small as the test's."""
    task = find_task(name)
    splits = [
        replace(s, n_rows=n_rows, n_unlabelled=n_unlabelled) if s.name == split else s
        for s in task.splits
    ]
    return replace(task, splits=tuple(splits))


def test_rows_arrive_as_they_would_from_files(hub):
    asked = hub([{"sentence": "NA", "label": 1, "idx": 0}, {"sentence": "b", "label": 0, "idx": 1}])
    data = open_data(DataSpec(sized("sst2", 2), revision="abc"))
    assert list(data.rows()) == [Row("NA", None, 1), Row("b", None, 0)]
    assert asked == [("nyu-mll/glue", "sst2", "validation", "abc")]


def test_the_hubs_mark_for_no_label_is_known(hub):
    rows = [{"premise": "p", "hypothesis": "h", "label": label} for label in (0, -1, 2)]
    hub(rows)
    data = open_data(DataSpec(sized("snli", 2, n_unlabelled=1)))
    assert data.targets.tolist() == [0, 2]
    assert data.n_unlabelled == 1


def test_test_labels_that_are_withheld_are_not_read(hub):
    hub([{"sentence": "a", "label": -1, "idx": 0}])
    assert not open_data(DataSpec(sized("sst2", 1, "test"), split="test")).labelled


def test_squads_answers_and_articles_arrive(hub):
    row = {"id": "x", "title": "Paris", "context": "in France", "question": "where?"}
    hub(
        [
            {**row, "answers": {"text": ["France"], "answer_start": [3]}},
            {**row, "id": "y", "answers": {"text": [], "answer_start": []}},
        ]
    )
    first, second = open_data(DataSpec(sized("squad2", 2))).rows()
    assert first == Row("where?", "in France", (Answer("France", 3),), "x", "Paris")
    assert second.label == ()


def test_a_missing_column_and_a_wrong_count_are_refused(hub):
    hub([{"text": "a", "label": 1}])
    with pytest.raises(DataError, match="no column 'sentence'; its columns are 'text', 'label'"):
        open_data(DataSpec(sized("sst2", 1)))
    hub([{"sentence": "a", "label": 1}])
    with pytest.raises(DataError, match=r"expected 872 rows of sst2 dev, the hub has 1 "):
        open_data(DataSpec("sst2"))


def test_without_a_network_there_is_one_clear_line(monkeypatch):
    def offline(*_, **__):
        raise ConnectionError("Couldn't reach 'nyu-mll/glue' on the Hub\nmore\nlines")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(DataError) as caught:
        open_data(DataSpec("sst2"))
    assert "can't be loaded from the hub (nyu-mll/glue)" in str(caught.value)
    assert "--data DIR" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_its_package_the_error_has_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # what Python does where it isn't installed
    with pytest.raises(MissingExtra) as caught:
        open_data(DataSpec("sst2"))
    assert caught.value.message == "datasets is not installed"
    assert caught.value.hint.startswith("pip install 'microtome-lab[hub]', or give a folder with")
