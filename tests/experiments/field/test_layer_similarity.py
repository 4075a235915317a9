"""Layer similarity as an experiment: rows, a second model, an edit, refusals, words."""

from __future__ import annotations

import pytest

from microtome.cli import run
from microtome.errors import RequestError
from microtome.experiments import find_experiment, subject_of
from microtome.runs import run_here
from microtome.tasks import DataSpec
from support.experiment_rows import study_here
from support.tiny import tiny_model
from support.training_rows import rows, tokenizer_for

EXPERIMENT = find_experiment("layer-similarity")


@pytest.fixture
def subject(tmp_path, model):
    data = rows(tmp_path / "data", n=40)._source.path
    return subject_of(str(model), DataSpec(path=data, labels=("no", "yes")))


def planned(subject, **settings):
    return EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))


def rows_for(subject, **settings):
    (trial,) = planned(subject, **settings)
    return run_here(trial).rows


def test_a_removed_last_layer_leaves_the_depths_below_as_they_were(subject):
    found = rows_for(subject, edit="remove(2)")
    across = {
        (row["depth"], row["other_depth"]): row["value"]
        for row in found
        if row["measure"] == "other_cka"
    }
    assert across.keys() == {(i, j) for i in range(4) for j in range(3)}
    within = {(r["depth"], r["other_depth"]): r["value"] for r in found if r["measure"] == "cka"}
    assert within.keys() == {(i, j) for i in range(4) for j in range(i + 1, 4)}
    for depth in range(3):
        assert across[depth, depth] == pytest.approx(1.0)
        assert across[3, depth] == pytest.approx(within[depth, 3])


def test_a_second_model_may_have_another_tokenizer_and_size(subject, tmp_path):
    folder = tmp_path / "other"
    tiny_model("roberta", "none", num_hidden_layers=2, hidden_size=16).save_pretrained(folder)
    tokenizer_for("roberta").save_pretrained(folder)
    found = [row for row in rows_for(subject, other=str(folder)) if row["measure"] == "other_cka"]
    assert {row["other_depth"] for row in found} == {0, 1, 2}
    assert all(-1 <= row["low"] <= row["value"] <= row["high"] <= 1 for row in found if row["low"])
    with pytest.raises(RequestError, match="another tokenizer"):
        planned(subject, other=str(folder), unit="token")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unit": "word"}, "--unit must be text or token, got 'word'"),
        ({"edit": "remove(7)"}, "7"),
        ({"edit": "remove(1)", "other": "nano-bert"}, "got both"),
    ],
)
def test_wrong_requests_are_refused_before_anything_runs(subject, settings, message):
    with pytest.raises(Exception, match=message.replace("(", r"\(")) as caught:
        planned(subject, **settings)
    assert hasattr(caught.value, "hint")


def test_a_name_is_in_the_rows_and_not_in_the_hash(subject, tmp_path, model):
    copy = tmp_path / "copy"
    copy.symlink_to(model)
    (one,), (two,) = (planned(subject, other=str(place)) for place in (model, copy))
    assert one.hash == two.hash
    assert (one.columns["other"], two.columns["other"]) == ("model", "copy")


def test_the_least_is_named_first_and_a_fine_tuning_is_compared_with_its_base(subject, tmp_path):
    model = str(subject.model_path)
    study = study_here(
        "layer-similarity", subject, tmp_path / "run", finetune=True, epochs=1, other=model,
        learning_rate=1e-3,
    )  # fmt: skip
    (part,) = study.parts
    influence = {r["layer"]: r["value"] for r in part.rows if r["measure"] == "influence"}
    least = min(influence, key=influence.get)
    assert part.finding.startswith(f"Layer {least} moves the states least")
    assert "Compared with model, depth" in part.finding
    assert EXPERIMENT.summary(part.rows)["layers_by_influence"][0] == least
    depth_map, other_map, curve, table = EXPERIMENT.views(part.rows)
    assert depth_map.values[0][0] == 1.0
    assert depth_map.values[1][3] == depth_map.values[3][1]
    assert len(other_map.rows) == len(other_map.columns) == 4
    assert len(curve.series[0].x) == 3
    assert [line[0] for line in table.rows] == [1, 2]


def test_rows_of_a_search_and_of_one_layer_have_words_too(tmp_path, capsys):
    folder = tmp_path / "one"
    tiny_model("bert", "none", num_hidden_layers=1).save_pretrained(folder)
    tokenizer_for("bert").save_pretrained(folder)
    given = ["run", "layer-similarity", "--model", folder, "--task", "micro-retrieval"]
    given += ["--limit", "8", "--workers", "0", "--out", tmp_path / "run"]
    assert run(list(map(str, given))) == 0
    assert "Layer 0 moves the states" in capsys.readouterr().out
