"""Layer removal as an experiment: rows against edits made by hand, refused cuts, words and rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiment_rows import study_here
from labelled_texts import sentences, write_rows
from microtome import load, parse
from microtome.examination import cost_table
from microtome.experiments import Rows, find_experiment, subject_of
from microtome.models import cost
from tiny import save_tiny, tiny_tokenizer

TEXTS = sentences(40)


def predictions(model, family):
    tokenizer = tiny_tokenizer(family)
    with torch.no_grad():
        inputs = (tokenizer(text, return_tensors="pt") for text in TEXTS)
        return np.array([int(model(**given).logits.argmax()) for given in inputs])


def studied(tmp_path, family, **config):
    """The part, the model and its labels: its own answers, every fifth one turned."""
    folder = save_tiny(
        tmp_path / "model", family, "classification", with_tokenizer=True,
        id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1}, **config,
    )  # fmt: skip
    model = load(folder)
    labels = predictions(model, family)
    labels[::5] = 1 - labels[::5]
    data = write_rows(tmp_path / "rows.csv", TEXTS, labels)
    subject = subject_of(str(folder), Rows(path=data))
    (part,) = study_here("layer-removal", subject, tmp_path / "run").parts
    return part, model, labels


def by_cut(part):
    return {(row["strategy"], row["target"]): row for row in part.rows}


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_every_cut_equals_the_edit_made_by_hand(tmp_path, family):
    part, model, labels = studied(tmp_path, family)
    first = "unshare() | " if family == "albert" else ""
    rows = by_cut(part)
    base = np.mean(predictions(model, family) == labels)
    for strategy, target, edit in (
        ("each", "0", "remove(0)"),
        ("each", "2", "remove(2)"),
        ("top", "top 2", "keep(0)"),
        ("bottom", "bottom 1", "keep(1-2)"),
    ):
        row = rows[strategy, target]
        assert parse(row["edit"]) == parse(first + edit)
        edited = parse(row["edit"])(model)
        score = np.mean(predictions(edited, family) == labels)
        assert row["value"] == pytest.approx(score)
        assert row["delta"] == pytest.approx(score - base)
        assert row["parameters"] == cost(edited).parameters
        assert row["speed"] > 0
    assert len(rows) == 3 + 3 + 2 + 2  # baselines, single layers, top 1–2, bottom 1–2


def test_shared_layers_are_unshared_in_the_baseline_too_and_the_words_say_so(tmp_path):
    part, model, labels = studied(tmp_path, "albert")
    base = by_cut(part)["each", "baseline"]
    assert base["edit"] == "unshare()"
    assert base["value"] == pytest.approx(np.mean(predictions(model, "albert") == labels))
    assert base["parameters"] == cost(parse("unshare()")(model)).parameters
    assert base["parameters"] > cost(model).parameters
    assert "share weights" in part.finding
    assert cost_table([part])[0].rows[0][0] == "as it is, layers unshared"


def test_a_refused_cut_is_a_row_that_says_why(tmp_path):
    part, _, _ = studied(tmp_path, "modernbert")  # its layer 0 has to stay
    rows = by_cut(part)
    refused = [cut for cut, row in rows.items() if row.get("refused")]
    assert set(refused) == {("each", "0"), ("bottom", "bottom 1"), ("bottom", "bottom 2")}
    for cut in refused:
        assert "layer 0" in rows[cut]["refused"]
        assert rows[cut]["value"] is None
    assert rows["each", "1"]["value"] is not None
    assert set(part.experiment.columns) <= set(rows["each", "0"])
    assert "3 cuts can't be made in this model" in part.finding
    assert rows["each", "0"]["refused"] in part.finding
    assert part.experiment.summary(part.rows)["n_refused"] == 3
    curve, prices, table = part.experiment.views(part.rows)
    assert [series.name for series in curve.series] == ["removed from the top"]
    assert len(prices.rows) == 4  # remove(1), remove(2), keep(0-1), keep(0)
    assert set(table.rows) == {(rows[cut]["edit"], rows[cut]["refused"]) for cut in refused}
    variants = [row[0] for row in cost_table([part])[0].rows]
    assert variants == ["as it is", "top 1 removed", "top 2 removed"]


def test_a_model_of_one_layer_has_nothing_to_cut_and_says_so(tmp_path):
    part, _, _ = studied(tmp_path, "bert", num_hidden_layers=1)
    assert [row["target"] for row in part.rows] == ["baseline", "0", "baseline", "baseline"]
    assert "1 cut can't be made" in part.finding
    assert len(part.experiment.views(part.rows)) == 3


def test_the_words_follow_the_rows(tmp_path):
    part, _, _ = studied(tmp_path, "bert")
    doctored = [dict(row) for row in part.rows]
    for row in doctored:
        if row["target"] != "baseline":
            row |= {"delta": -0.4, "low": -0.5, "high": -0.3}
    words = find_experiment("layer-removal").finding(doctored)
    assert "No cut is sure to cost less than 1 point" in words
    target = next(row for row in doctored if row["target"] == "top 2")
    target |= {"delta": 0.01, "low": 0.0, "high": 0.02, "speed": 2.5}
    words = find_experiment("layer-removal").finding(doctored)
    assert "the deepest is keep(0): 1 layer left, +1.0 points, 2.50 times the speed" in words
