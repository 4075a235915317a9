"""Weight drift as an experiment: distances against numpy on the stored files, shapes, words."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from microtome.cli import run
from microtome.experiments import find_experiment, subject_of
from microtome.tasks import DataSpec
from support.experiment_rows import study_here
from support.tiny import FAMILY_TYPES, tiny_model
from support.training_rows import checkpoint, rows

NAME = "weight-drift"
PARTS = ["query", "key", "value", "attention_output", "intermediate", "output"]


def studied(model, out, given=None, **settings):
    found = find_experiment(NAME)
    subject = subject_of(str(model), given or DataSpec(), needs_rows=found.needs_rows)
    return study_here(NAME, subject, out, **settings)


def command(model, *options):
    return ["run", NAME, "--model", str(model), "--workers", "0", *map(str, options)]


# Where plain transformers keeps each part: written out once more, with the rows of fused ones.
def names_of(family, layer):
    if family == "distilbert":
        block, paths = f"transformer.layer.{layer}", ["attention.q_lin", "attention.k_lin",
            "attention.v_lin", "attention.out_lin", "ffn.lin1", "ffn.lin2"]  # fmt: skip
    elif family == "albert":
        block, paths = "encoder.albert_layer_groups.0.albert_layers.0", ["attention.query",
            "attention.key", "attention.value", "attention.dense", "ffn", "ffn_output"]  # fmt: skip
    elif family == "modernbert":
        block, paths = f"layers.{layer}", ["attn.Wqkv"] * 3 + ["attn.Wo", "mlp.Wi", "mlp.Wo"]
    elif family == "deberta-v2":
        block, paths = f"encoder.layer.{layer}", ["attention.self.query_proj",
            "attention.self.key_proj", "attention.self.value_proj", "attention.output.dense",
            "intermediate.dense", "output.dense"]  # fmt: skip
    elif family == "mpnet":
        block, paths = f"encoder.layer.{layer}", [f"attention.attn.{name}" for name in "qkvo"]
        paths += ["intermediate.dense", "output.dense"]
    elif family in ("nomic_bert", "gte", "jina_embeddings_v3"):  # as the published files name them
        block = f"encoder.layer{'' if family == 'gte' else 's'}.{layer}"
        paths = {
            "nomic_bert": ["attn.Wqkv"] * 3 + ["attn.out_proj", "mlp.fc11", "mlp.fc2"],
            "gte": ["attention.qkv_proj"] * 3
            + ["attention.o_proj", "mlp.up_gate_proj", "mlp.down_proj"],
            "jina_embeddings_v3": ["mixer.Wqkv"] * 3 + ["mixer.out_proj", "mlp.fc1", "mlp.fc2"],
        }[family]
    elif family == "eurobert":
        block, paths = f"layers.{layer}", ["self_attn.q_proj", "self_attn.k_proj",
            "self_attn.v_proj", "self_attn.o_proj", "mlp.up_proj", "mlp.down_proj"]  # fmt: skip
    else:
        block, paths = f"encoder.layer.{layer}", ["attention.self.query", "attention.self.key",
            "attention.self.value", "attention.output.dense", "intermediate.dense",
            "output.dense"]  # fmt: skip
    return {part: f"{block}.{path}.weight" for part, path in zip(PARTS, paths, strict=True)}


def stored(folder, family, layer, part):
    tensors = load_file(folder / "model.safetensors")

    def values_of(ending):
        (name,) = [n for n in tensors if n == ending or n.endswith(f".{ending}")]
        return tensors[name].astype(np.float64)

    ending = names_of(family, layer)[part]
    values = values_of(ending)
    if family in ("modernbert", "nomic_bert", "gte", "jina_embeddings_v3") and part in PARTS[:3]:
        return np.split(values, 3)[PARTS.index(part)]
    if family in ("nomic_bert", "eurobert") and part == "intermediate":  # and the gate
        gate = ending.replace("fc11", "fc12").replace("up_proj", "gate_proj")
        return np.concatenate([values, values_of(gate)])
    return values


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_distances_are_numpys_frobenius_norms(family, tmp_path):
    base = checkpoint(tmp_path / "base", family, "mlm")
    tuned = checkpoint(tmp_path / "tuned", family, "classification", seed=5)
    found = studied(tuned, tmp_path / "run", base=str(base), parts=["all"]).parts[0].rows
    layers = [0] if family == "albert" else [0, 1, 2]  # a shared layer counts once
    assert [(r["layer"], r["part"]) for r in found] == [(i, p) for i in layers for p in PARTS]
    for row in found:
        old, new = (stored(f, family, row["layer"], row["part"]) for f in (base, tuned))
        distance = np.linalg.norm(new - old)
        assert distance > 1
        assert row["distance"] == pytest.approx(distance, rel=1e-12)
        assert row["relative"] == pytest.approx(distance / np.linalg.norm(old), rel=1e-12)
        assert row["per_parameter"] == pytest.approx(np.sqrt(np.mean((new - old) ** 2)), rel=1e-12)
        assert row["n_parameters"] == old.size


def test_a_models_distance_to_itself_is_0_whatever_its_shards_and_head(tmp_path):
    one = checkpoint(tmp_path / "one", max_shard_size="20KB")
    assert len(list(one.glob("*.safetensors"))) > 1
    part = studied(one, tmp_path / "run", base=str(one), parts=["all"]).parts[0]
    assert {row["distance"] for row in part.rows} == {0.0}
    assert {row["relative"] for row in part.rows} == {0.0}
    assert part.finding == "The output projection is the same as the base's in every layer."
    assert part.experiment.views(part.rows)


def test_half_precision_differs_by_its_rounding_alone(tmp_path):
    one = checkpoint(tmp_path / "one")
    tiny_model("bert", "mlm").to(torch.bfloat16).save_pretrained(tmp_path / "half")
    for row in studied(tmp_path / "half", tmp_path / "run", base=str(one)).parts[0].rows:
        weight = torch.from_numpy(stored(one, "bert", row["layer"], "output"))
        rounded = weight.float().to(torch.bfloat16).double()
        assert row["distance"] == pytest.approx(float((rounded - weight).norm()), rel=1e-9)


def test_along_the_fractions_of_a_run(tmp_path):
    rows(tmp_path, n=60)
    base = checkpoint(tmp_path / "base")
    given = DataSpec(path=tmp_path / "single-60-0.jsonl", labels=("no", "yes"))
    settings = {"epochs": 1, "fractions": [1.0, 16.0], "seeds": [0], "batch_size": 8}
    done = studied(base, tmp_path / "run", given, **settings)
    part = done.parts[0]
    assert [(r["layer"], r["fraction"]) for r in part.rows] == [
        (layer, fraction) for fraction in (1.0, 16.0) for layer in range(3)
    ]
    tuned = {
        record.request["fraction"]: done.result.checkpoint(key) / "model"
        for key, record in done.result.records.items()
        if record.checkpoint
    }
    for row in part.rows:
        old, new = (
            stored(folder, "bert", row["layer"], "output")
            for folder in (base, tuned[row["fraction"]])
        )
        assert row["distance"] == pytest.approx(np.linalg.norm(new - old), rel=1e-12)
        assert row["distance"] > 0
    assert "more updates" in part.finding
    assert str(part.experiment.claims(part.rows)["data"]).endswith(
        "(more data also meant more updates)"
    )
    matched = studied(base, tmp_path / "matched", given, **settings, match_steps=True).parts[0]
    assert str(matched.experiment.claims(matched.rows)["data"]).endswith("(as many updates each)")
    by_size = {r["fraction"]: r["distance"] for r in matched.rows if r["layer"] == 2}
    fewer = {r["fraction"]: r["distance"] for r in part.rows if r["layer"] == 2}
    assert by_size[1.0] == fewer[1.0]
    assert by_size[16.0] > fewer[16.0]  # three times the updates go further


def test_shared_layers_get_their_own_weights_first(tmp_path):
    rows(tmp_path, n=60)
    base = checkpoint(tmp_path / "base", "albert")
    given = DataSpec(path=tmp_path / "single-60-0.jsonl", labels=("no", "yes"))
    part = studied(base, tmp_path / "run", given, epochs=1, fractions=[1.0], seeds=[0]).parts[0]
    assert [row["layer"] for row in part.rows] == [0, 1, 2]
    assert len({row["distance"] for row in part.rows}) == 3


def made(curves, task="sst2", match_steps=False, n_seeds=3):
    """Rows of one part: ``curves[fraction][layer]``."""
    common = {"task": task, "model": "m", "part": "output", "norm": 10.0,
              "n_parameters": 100, "match_steps": match_steps}  # fmt: skip
    return [
        {**common, "seed": seed, "fraction": f, "n_train": round(1000 * f), "layer": layer,
         "distance": d, "relative": d / 10, "per_parameter": d / 10}
        for f, curve in curves.items()
        for layer, d in enumerate(curve)
        for seed in range(n_seeds)
    ]  # fmt: skip


def test_claims_are_judged_from_rows():
    measured = find_experiment(NAME).claims
    rising = [1.0, 1.1, 1.3, 1.2, 1.6, 1.8]
    assert str(measured(made({1.0: rising}))["depth"]).startswith(
        "holds: rank correlation of layer and"
    )
    assert str(measured(made({1.0: rising[::-1]}))["depth"]).startswith("doesn't hold")
    assert str(measured(made({1.0: [1, 2, 1, 2, 1, 2]}))["depth"]).startswith("can't tell")
    assert measured(made({1.0: rising}, n_seeds=1))["depth"].verdict == "can't tell"
    assert measured(made({1.0: rising[:4]}))["depth"].verdict == "can't tell"  # four layers
    falling = {1.0: [0.5 - i / 100 for i in range(6)], 0.1: [0.2 - i / 50 for i in range(6)]}
    assert measured(made(falling))["data"].verdict == "can't tell"  # falls less steeply
    low = [d / 4 for d in rising]
    both = {1.0: rising, 0.1: low}
    words = "so in 3 of 3 seeds; all rows: mean 1.33"  # 8.0 / 6
    assert str(measured(made(both))["data"]).startswith(f"holds: {words}")
    assert str(measured(made(both, n_seeds=1))["data"]).startswith("can't tell: so in 1 of 1 seeds")
    shifted = [d - 0.5 for d in rising]  # parallel: no steeper
    assert str(measured(made({1.0: low, 0.1: shifted}))["data"]).startswith("doesn't hold")
    assert "can't tell: from one task alone" in str(
        measured(made({1.0: rising}, task="cola"))["cola"]
    )


def test_the_words_and_views_follow_the_rows():
    experiment = find_experiment(NAME)
    found = made({1.0: [0.1, 0.5, 0.3]}, n_seeds=1)
    words = experiment.finding(found)
    assert "furthest in layer 1: 0.5 (5 % of its norm), least far in layer 0: 0.1" in words
    assert "+0.50" in words  # ranks 1, 3, 2
    curve = experiment.views(found)[0]
    assert curve.series[0].y == (0.1, 0.5, 0.3)


def refused(arguments, capsys):
    assert run(list(map(str, arguments))) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "→" not in line]
    assert len(lines) == 1
    return lines[0]


def test_two_shapes_are_an_error_that_says_which(tmp_path, capsys):
    model = checkpoint(tmp_path / "model")
    wide = checkpoint(tmp_path / "wide", intermediate_size=64)
    line = refused(command(model, "--base", wide, "--out", tmp_path / "run"), capsys)
    assert "layer.0.intermediate.dense.weight 48×32" in line
    assert "64×32" in line
    assert "more" in line
    deep = checkpoint(tmp_path / "deep", num_hidden_layers=4)
    line = refused(command(model, "--base", deep, "--out", tmp_path / "run"), capsys)
    assert "layers 3 in" in line
    assert "4 in" in line
    other = checkpoint(tmp_path / "other", "roberta")
    line = refused(command(model, "--base", other, "--out", tmp_path / "run"), capsys)
    assert "roberta" in line.lower()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["two checkpoints", "--base MODEL", "--task TASK"]),
        (["--base", "nowhere/at/all"], ["nowhere"]),
        (["--base", "MODEL", "--parts", "nose"], ["nose", "attention_output"]),
        (["--base", "MODEL", "--fractions", "0.5"], ["--fractions", "--base"]),
        (["--base", "MODEL", "--epochs", "2"], ["--epochs", "--base"]),
        (["--task", "micro-sentiment", "--fractions", "0"], ["1,0.1,640"]),
    ],
)
def test_wrong_requests_are_one_line(options, words, tmp_path, capsys):
    model = checkpoint(tmp_path / "model")
    given = [str(model) if option == "MODEL" else option for option in options]
    line = refused(command(model, *given, "--out", tmp_path / "run"), capsys)
    assert all(word in line for word in words), line


def test_the_command_gives_rows_and_a_report(tmp_path, capsys):
    model, base = checkpoint(tmp_path / "model", seed=1), checkpoint(tmp_path / "base")
    options = ["--base", base, "--parts", "output,query", "--out", tmp_path / "run", "--json"]
    assert run(command(model, *options)) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"layer", "part", "fraction", "distance"} <= set(document["rows"][0])
    assert {row["part"] for row in document["rows"]} == {"query", "output"}
    assert (tmp_path / "run" / "report.html").exists()
