"""The lens as an experiment: held-out texts stay unseen, rows, masks, resuming, refusals, words."""

from __future__ import annotations

import pytest

from microtome.errors import RequestError
from microtome.experiments import find_experiment
from microtome.experiments.field.lens.report import NAMES, agrees_from, finding, nats
from microtome.tasks import DataSpec
from support.experiment_rows import study_here
from support.labelled_texts import write_rows
from support.tiny import WORDS
from support.training_rows import checkpoint

EXPERIMENT = find_experiment("lens")
SHORT = {"lens_steps": 10}
LETTERS = [word for word in WORDS if len(word) > 1]


def sentences(n, first=0):
    """``n`` texts, no two alike, of 3 to 7 words that are a token each."""
    return [
        " ".join(LETTERS[(i // 30**j + 7 * j) % 30] for j in range(3 + i % 5))
        for i in range(first, first + n)
    ]


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "model", std=0.15)


def files(folder, train=30, dev=12, dev_first=1000):
    """Training and measured rows, as two files."""
    paths = []
    for name, texts in (("train", sentences(train)), ("dev", sentences(dev, dev_first))):
        paths.append(write_rows(folder / f"{name}.csv", texts, [i % 2 for i in range(len(texts))]))
    return DataSpec(path=paths[0], dev_path=paths[1])


def subject(model, data, **settings):
    return EXPERIMENT.subject(str(model), data, EXPERIMENT.settings(settings))


def planned(model, data, **settings):
    return EXPERIMENT.plan(subject(model, data, **settings), EXPERIMENT.settings(settings))


def studied(model, data, out, **settings):
    return study_here("lens", subject(model, data, **settings), out, **SHORT, **settings).parts[0]


def by_place(rows):
    return {(row["reading"], row["depth"]): row for row in rows}


def test_the_maps_know_nothing_of_the_rows_that_are_measured(model, tmp_path):
    before = planned(model, files(tmp_path))
    after = planned(model, files(tmp_path, dev=9, dev_first=2000))
    assert [trial.name for trial in before] == ["lens.fit", "lens.fit", "lens.read"]
    for old, new in zip(before[:2], after[:2], strict=True):
        assert old.hash == new.hash
        assert "dev_data" not in old.where
    assert before[2].hash != after[2].hash
    fewer = planned(model, DataSpec(**{**vars(files(tmp_path)), "limit": 3}))
    more = planned(model, files(tmp_path))
    assert [trial.hash for trial in fewer[:2]] == [trial.hash for trial in more[:2]]
    other = planned(model, files(tmp_path, train=31))
    assert not {trial.hash for trial in other} & {trial.hash for trial in more}


def test_rows_agree_with_decoding_at_their_ends_and_with_themselves(model, tmp_path):
    data = files(tmp_path)
    part = studied(model, data, tmp_path / "run")
    rows = by_place(part.rows)
    assert len(rows) == len(part.rows) == 3 * 4
    asked = find_experiment("decoding")
    measured = asked.subject(str(model), data, asked.settings({"finetuned": True}))
    decoded = study_here("decoding", measured, tmp_path / "decoding").parts[0].rows
    for row in decoded:
        direct = rows["direct", row["depth"]]
        assert (direct["accuracy"], direct["n"]) == (row["accuracy"], row["n"])
        assert (direct["input"], direct["decoded"]) == (row["input"], row["decoded"])
    for name in ("direct", "lens"):
        assert (rows[name, 3]["kl"], rows[name, 3]["agreement"]) == (0, 1)
    for column in ("kl", "low", "high", "accuracy", "agreement"):
        assert rows["control", 0][column] == rows["lens", 0][column]
    assert rows["control", 3]["kl"] > 0
    for row in part.rows:
        assert row["low"] <= row["kl"] <= row["high"]
        if row["reading"] == "control":
            assert row["below_control"] is None
        else:
            gap = rows["control", row["depth"]]["kl"] - row["kl"]
            assert row["below_control"] == pytest.approx(gap)
    assert rows["lens", 1]["fit_kl"] <= rows["lens", 1]["fit_kl_before"]
    curve, agreement, text, table, back = EXPERIMENT.views(part.rows)
    assert [series.is_control for series in curve.series] == [False, False, True]
    assert len(table.rows) == len(back.rows) == len(agreement.series[0].x) == 4
    assert EXPERIMENT.headline(part.rows).sentence in part.finding
    assert len(text.decoded) == 2 * 4


def test_a_run_that_lost_trials_gives_the_same_rows(model, tmp_path):
    data, out = files(tmp_path), tmp_path / "run"
    first = studied(model, data, out).rows
    _, control, read = planned(model, data, **SHORT)
    for trial in (control, read):
        for place in out.rglob(f"{trial.hash}*"):
            place.unlink()
    assert not list(out.rglob(f"{read.hash}*"))
    assert studied(model, data, out).rows == first


def test_texts_that_were_fitted_to_are_not_measured(model, tmp_path):
    data = files(tmp_path, dev=12)
    text = tmp_path / "text.txt"
    text.write_text("\n".join([*sentences(20), *sentences(5, 1000)]))
    part = studied(model, data, tmp_path / "run", fit_text=str(text), fit_rows=25)
    assert {row["n_left_out"] for row in part.rows} == {5}
    assert {row["n_texts"] for row in part.rows} == {12 - 5}
    assert {row["n_fit_texts"] for row in part.rows} == {25}


@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_a_file_alone_is_divided(model, tmp_path, suffix):
    texts = sentences(40)
    file = tmp_path / f"rows.{suffix}"
    if suffix == "csv":
        write_rows(file, texts, [i % 2 for i in range(40)])
    else:
        file.write_text("\n".join(texts))
    (row, *_) = studied(model, DataSpec(path=file), tmp_path / "run").rows
    assert row["n_left_out"] == 0
    assert row["n_texts"] > 0
    assert row["n_fit_texts"] + row["n_texts"] == 40
    whole = subject(model, DataSpec(path=file), fit_text=str(file))
    assert len(whole.dataset) == 40


def test_with_masks_the_hidden_tokens_alone_are_read(model, tmp_path):
    part = studied(model, files(tmp_path), tmp_path / "run", masked=True)
    lengths = [len(text.split()) for text in sentences(12, 1000)]
    n_hidden = sum(max(1, round(0.15 * length)) for length in lengths)
    assert {row["n"] for row in part.rows} == {n_hidden}
    assert f"({n_hidden} masked tokens, 12 texts)" in part.finding
    assert "[MASK]" not in by_place(part.rows)["direct", 0]["input"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"masked": True, "special": True}, "--masked doesn't go with --special"),
        ({"fit_rows": 1}, "--fit-rows must be 2 or more, got 1"),
        ({"lens_steps": 0}, "--lens-steps must be 1 or more, got 0"),
        ({"readout": "fit"}, "--readout fit needs text that isn't measured"),
        ({"readout": "other"}, "--readout must be one of"),
        ({"readout": "shipped"}, "no head ships for this model"),
    ],
)
def test_wrong_requests_are_refused_before_anything_runs(model, tmp_path, settings, message):
    with pytest.raises(RequestError, match=message):
        planned(model, files(tmp_path), **settings)


def test_searches_are_not_masked(model):
    with pytest.raises(RequestError, match="micro-retrieval is retrieval"):
        planned(model, DataSpec("micro-retrieval"), masked=True)


def row(reading, depth, agreement, kl, *, below=0.0, layers=4):
    return {
        "reading": reading, "depth": depth, "layers": layers, "agreement": agreement, "kl": kl,
        "low": kl - 0.1, "high": kl + 0.1, "n": 1234, "n_texts": 50, "masked": False,
        "below_control": below, "below_control_low": below - 0.1,
    }  # fmt: skip


def curves(lens, control, below):
    direct = [row("direct", d, a, 2 - d / 2) for d, a in enumerate((0.1, 0.2, 0.95, 0.5, 1))]
    through = [row("lens", d, a, 1 - d / 4, below=below) for d, a in enumerate(lens)]
    return direct + through + [row("control", d, a, 1.0) for d, a in enumerate(control)]


def test_a_depth_agrees_where_all_after_it_do():
    assert agrees_from([{"agreement": a, "depth": d} for d, a in enumerate((1, 0.2, 0.9, 1))]) == 2
    assert agrees_from([{"agreement": a, "depth": d} for d, a in enumerate((0.9, 1))]) == 0
    assert agrees_from([{"agreement": a, "depth": d} for d, a in enumerate((0.9, 0.8))]) is None


def test_the_finding_leads_with_what_the_control_can_not_do():
    never, soon = (0.2, 0.3, 0.3, 0.2, 0.1), (0.2, 0.95, 0.95, 1, 1)
    clear = finding(curves(soon, never, 0.5))
    assert clear.startswith(
        "All 3 inner depths hold more of what the last one says than a map fitted to random blocks"
        " finds. Half-way, at depth 2, its KL from the last depth is 0.50 (0.40 to 0.60) nats"
    )
    assert "1,234 tokens, 50 texts" in clear
    assert clear.endswith(
        "top token from depth 1 of 4 on through the lens, only at the last depth directly, and"
        " at no depth with random blocks."
    )
    alike = finding(curves(soon, soon, 0.0))
    assert alike.startswith("No inner depth holds more")
    assert "nothing is claimed about the layers" in alike
    assert alike.endswith("the top token shows what a map does, not the layers.")


def test_only_depths_that_are_surely_closer_are_claimed():
    rows = curves((0.2, 0.3, 0.3, 0.3, 1), (0.2, 0.3, 0.3, 0.2, 0.1), 0.05)
    for one in rows:
        if one["reading"] == "lens" and one["depth"] == 3:
            one |= {"below_control": 0.2, "below_control_low": 0.1}
    assert finding(rows).startswith("Of 3 inner depths, 3 holds more of what the last one says")
    assert "of the others nothing is claimed" in finding(rows)


def test_a_model_of_one_layer_has_words_too():
    rows = [row(name, depth, depth, 1.0 - depth, layers=1) for name in NAMES for depth in (0, 1)]
    assert finding(rows).startswith("The model has no inner depth")


def test_small_divergences_keep_two_digits():
    assert [nats(value) for value in (3.257, 0.131, 0.0174, 0.0)] == [
        "3.26",
        "0.13",
        "0.017",
        "0.00",
    ]
