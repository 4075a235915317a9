"""Attention patterns as an experiment: rows against counts by hand, words against rows."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from microtome.cli import run
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kovaleva.attention_patterns.examples import (
    LONGEST,
    READABLE,
    example_places,
)
from microtome.experiments.kovaleva.attention_patterns.measure import (
    ClassifiedMaps,
    share_rows,
)
from microtome.observe.patterns import PATTERNS, PatternNetwork
from microtome.runs import open_run
from microtome.tasks import DataSpec
from microtome.views import Panels
from patterns.training import save_classifier
from support.eager_maps import eager_maps
from support.experiment_rows import study_here
from support.tiny import WORDS, save_tiny

N_ROWS = 24


def case(tmp_path, *, pairs):
    folder = save_tiny(
        tmp_path / "model", "bert", "classification", with_tokenizer=True,
        id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1},
    )  # fmt: skip
    texts = [" ".join(WORDS[(5 * i + j) % 40] for j in range(2 + i % 4)) for i in range(N_ROWS)]
    header = ("text", "pair", "label") if pairs else ("text", "label")
    rows = [
        (text, texts[-i], ("no", "yes")[i % 2]) if pairs else (text, ("no", "yes")[i % 2])
        for i, text in enumerate(texts)
    ]
    data = tmp_path / "rows.csv"
    with data.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return folder, data


def studied(tmp_path, *, pairs, **settings):
    folder, data = case(tmp_path, pairs=pairs)
    subject = subject_of(str(folder), DataSpec(path=data, pair_column="pair" if pairs else None))
    return study_here("attention-patterns", subject, tmp_path / "run", **settings).parts[0]


@pytest.mark.parametrize("pairs", [False, True])
def test_shares_of_every_head_add_up_and_single_texts_have_no_blocks(tmp_path, pairs):
    rows = studied(tmp_path, pairs=pairs).rows
    wanted = set(PATTERNS) if pairs else set(PATTERNS) - {"block"}
    groups = {}
    for row in rows:
        groups.setdefault((row["layer"], row["head"]), []).append(row)
    assert len(groups) == 1 + 3 + 12
    for own in groups.values():
        assert {row["pattern"] for row in own} == wanted
        assert sum(row["share"] for row in own) == pytest.approx(1)
        assert sum(row["corrected"] for row in own) == pytest.approx(1)
        assert all(row["low"] <= row["share"] <= row["high"] for row in own)
        assert all(row["n"] == N_ROWS for row in own)


def test_rows_are_the_means_of_their_parts():
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 5, size=(50, 2, 3)).astype(np.uint8)
    stripes = np.where(np.isin(patterns, (0, 2)), rng.integers(0, 4, size=patterns.shape), 255)
    confusion = np.eye(5, dtype=np.int64) * 1000
    classified = ClassifiedMaps(patterns, stripes.astype(np.uint8), confusion, pairs=True)
    rows = {(r["layer"], r["head"], r["pattern"]): r for r in share_rows(classified)}
    for k, name in enumerate(PATTERNS):
        assert rows[None, None, name]["share"] == pytest.approx((patterns == k).mean())
        assert rows[1, None, name]["share"] == pytest.approx((patterns[:, 1] == k).mean())
        assert rows[1, 2, name]["share"] == pytest.approx((patterns[:, 1, 2] == k).mean())
        # A classifier that makes no mistakes needs no correction.
        same = pytest.approx(rows[None, None, name]["share"], abs=0.01)
        assert rows[None, None, name]["corrected"] == same
    on_cls = (stripes[patterns == 0] == 1).mean()
    assert rows[None, None, "vertical"]["on_cls"] == pytest.approx(on_cls)
    assert rows[None, None, "diagonal"]["on_cls"] is None


def test_one_s_own_classifier_is_used(tmp_path):
    """A network that says diagonal of everything."""
    torch.manual_seed(0)
    network = PatternNetwork().eval()
    with torch.no_grad():
        network.classes.weight.zero_()
        network.classes.bias.copy_(torch.tensor([0.0, 9.0, 0.0, 0.0, 0.0]))
    own = tmp_path / "own.safetensors"
    save_classifier(own, network, confusion=np.eye(5, dtype=np.int64) * 10)
    rows = studied(tmp_path, pairs=False, classifier=str(own)).rows
    assert all(row["share"] == (row["pattern"] == "diagonal") for row in rows)


def test_words_and_views_follow_the_rows(tmp_path):
    part = studied(tmp_path, pairs=True)
    doctored = [dict(row) for row in part.rows]
    for row in doctored:
        if row["layer"] is None and row["pattern"] == "heterogeneous":
            row |= {"share": 0.123, "low": 0.1, "high": 0.15}
    assert "at most 12.3 % (10.0 % to 15.0 %)" in part.experiment.finding(doctored)
    assert "at most 12.3 %" in str(part.experiment.claims(doctored)["heterogeneous"])
    curve, _, heat_map, dominant, overall, _ = part.experiment.views(part.rows)
    numbers = {v for row in part.rows for v in row.values() if isinstance(v, float)}
    assert {v for row in heat_map.values for v in row} <= numbers
    most = {}  # the most frequent pattern of each head, which is what a diamond marks
    for row in part.rows:
        if (
            row["head"] is not None
            and row["share"] > most.get((row["layer"], row["head"]), (0,))[0]
        ):
            most[row["layer"], row["head"]] = (row["share"], row["pattern"])
    assert set(heat_map.marked) == {p for p, (_, name) in most.items() if name == "heterogeneous"}
    assert heat_map.marked
    assert "most frequent pattern" in heat_map.mark_label
    assert {v for one in curve.series for v in one.y} <= numbers
    assert len(dominant.rows) == 3
    assert len(overall.rows) == 5


def ran(capsys, tmp_path, *options, code=0):
    arguments = ["run", "attention-patterns", "--out", tmp_path / "run", "--workers", "0", "--json"]
    assert run([str(a) for a in (*arguments, *options)]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("file", ["notes.txt", "notes.csv"])
def test_a_pretrained_model_is_looked_at_as_it_is_on_text_without_labels(tmp_path, capsys, file):
    folder = save_tiny(tmp_path / "model", "bert", "mlm", with_tokenizer=True)
    texts = [" ".join(WORDS[(5 * i + j) % 40] for j in range(2 + i % 4)) for i in range(10)]
    (tmp_path / file).write_text(
        "\n".join((["text"] if file.endswith("csv") else []) + texts) + "\n"
    )
    given = ("--model", folder, "--data", tmp_path / file)
    refused = ran(capsys, tmp_path, *given, code=2)["error"]
    assert "without labels" in refused["message"]
    assert "--pretrained" in refused["hint"]
    document = ran(capsys, tmp_path, *given, "--pretrained")
    assert {row["checkpoint"] for row in document["rows"]} == {"pretrained"}
    assert {row["n"] for row in document["rows"]} == {10}  # the whole file: nothing learns from it
    assert "12 heads, not fine-tuned" in document["finding"]
    names = [record.name for record in open_run(tmp_path / "run").records.values()]
    assert names == ["attention-patterns.classify"]


def test_pretrained_goes_neither_with_a_fine_tuned_model_nor_with_a_recipe(tmp_path, capsys):
    folder, data = case(tmp_path, pairs=False)
    refused = ran(capsys, tmp_path, "--model", folder, "--data", data, "--pretrained", code=2)
    assert "fine-tuned already" in refused["error"]["message"]
    base = save_tiny(tmp_path / "base", "bert", "mlm", with_tokenizer=True)
    given = ("--model", base, "--data", data, "--pretrained")
    refused = ran(capsys, tmp_path, *given, "--epochs", 2, code=2)
    assert refused["error"]["message"].startswith("--epochs is of a fine-tuning")
    document = ran(capsys, tmp_path, *given, "--max-length", 8)
    assert {row["n"] for row in document["rows"]} == {N_ROWS}


def test_a_model_without_a_task_head_is_fine_tuned_unless_asked_not_to_be(tmp_path):
    _, data = case(tmp_path, pairs=False)
    base = save_tiny(tmp_path / "base", "bert", "mlm", with_tokenizer=True)
    experiment = find_experiment("attention-patterns")
    trials = experiment.plan(subject_of(str(base), DataSpec(path=data)), experiment.settings({}))
    assert [trial.name for trial in trials] == ["finetuning.train", "attention-patterns.classify"]
    assert trials[1].request["checkpoint"] == "finetuned"


@pytest.mark.parametrize("pairs", [False, True])
def test_example_maps_are_those_of_the_texts_and_heads_that_they_name(tmp_path, pairs):
    """Against plain transformers: the text that has the shown tokens, the head of the title."""
    folder, data = case(tmp_path, pairs=pairs)
    subject = subject_of(str(folder), DataSpec(path=data, pair_column="pair" if pairs else None))
    part = study_here("attention-patterns", subject, tmp_path / "run").parts[0]
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with data.open(newline="") as stream:
        texts = [row[:-1] for row in list(csv.reader(stream))[1:]]
    by_tokens = {tuple(tokenizer(*text).tokens()): text for text in texts}
    shown = panels_of(part.experiment.views(part.rows))
    found = {r["pattern"] for r in part.rows if r["layer"] is None and r["share"] > 0}
    assert {panel.title.partition(":")[0] for panel in shown} == found
    assert len(found) > 1
    for panel in shown:
        pattern, place = panel.title.split(": head ")
        layer, head = map(int, place.split("."))
        tokens = [label.partition(" ")[2] for label in panel.rows]
        maps = eager_maps(model, tokenizer, *by_tokens[tuple(tokens)])
        assert np.abs(np.array(panel.values) - maps[layer, head]).max() < 1e-4
        others = np.abs(maps - np.array(panel.values)).max(axis=(-1, -2)) > 1e-3
        assert others.sum() == others.size - 1, "another head has the same map"
        of_heads = [r for r in part.rows if r["pattern"] == pattern and r["head"] is not None]
        of_head = next(r for r in of_heads if (r["layer"], r["head"]) == (layer, head))
        assert of_head["share"] == max(r["share"] for r in of_heads) > 0


def panels_of(views):
    return next(view.panels for view in views if isinstance(view, Panels))


def test_an_example_is_of_a_text_that_can_be_shown():
    """Of the head with most maps of the pattern, the text nearest to the readable length."""
    patterns = np.full((5, 1, 3), PATTERNS.index("vertical"), dtype=np.uint8)
    patterns[:, 0, 1] = PATTERNS.index("diagonal")
    patterns[0, 0, 2] = PATTERNS.index("diagonal")
    lengths = np.array([READABLE, LONGEST + 1, READABLE + 3, READABLE + 2, 3])
    places = dict(example_places(patterns, lengths))
    assert places == {"vertical": (0, 0, 0), "diagonal": (0, 0, 1)}
    lengths[0] = LONGEST + 1
    assert dict(example_places(patterns, lengths))["diagonal"] == (3, 0, 1)
    assert dict(example_places(patterns, lengths + LONGEST)) == {}


def test_rows_from_before_maps_were_kept_have_no_example(tmp_path):
    part = studied(tmp_path, pairs=False)
    older = [
        {name: value for name, value in row.items() if not name.startswith("example_")}
        for row in part.rows
    ]
    views = part.experiment.views(part.rows)
    assert part.experiment.views(older) == tuple(v for v in views if not isinstance(v, Panels))


def test_the_title_and_the_headline_follow_the_rows(tmp_path):
    part = studied(tmp_path, pairs=False)

    def with_shares(low_of_layer, low=0.9):
        """Vertical maps are nine of ten; their shares' lower ends are those."""
        rows = []
        for row in map(dict, part.rows):
            row["share"] = 0.9 if row["pattern"] == "vertical" else 0.1 / 3
            row["low"] = 0.0
            if row["pattern"] == "vertical":
                row["low"] = low if row["layer"] is None else low_of_layer[row["layer"]]
            rows.append(row)
        return rows

    for ends, low, said in (
        ((0.6, 0.6, 0.6), 0.6, "Most maps are vertical in every layer"),
        ((0.6, 0.4, 0.6), 0.6, "Most maps are vertical"),
        ((0.4, 0.6, 0.6), 0.4, "Layers 1 and 2: most maps are vertical"),
        ((0.4, 0.4, 0.4), 0.4, ""),
    ):
        rows = with_shares(ends, low)
        assert part.experiment.views(rows)[0].says == said
    first = part.experiment.headline(rows)
    assert first.sentence == "3.3 % of the attention maps have no simple pattern."
    assert first.cards[2].label == "most frequent pattern: vertical"
    assert first.cards[2].value == "90.0 %"


def test_the_command_prints_the_fixed_shape(tmp_path, capsys):
    folder, data = case(tmp_path, pairs=False)
    arguments = ["run", "attention-patterns", "--model", folder, "--data", data, "--examples", 7]
    arguments += ["--out", tmp_path / "run", "--workers", "0", "--json"]
    assert run([str(a) for a in arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    columns = set(find_experiment("attention-patterns").columns)
    assert all(columns <= set(row) for row in document["rows"])
    assert {row["n"] for row in document["rows"]} == {7}
    assert document["summary"]["heterogeneous_at_most"] <= 1
