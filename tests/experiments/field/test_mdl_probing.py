"""MDL probing: every family against plain transformers and scikit-learn, controls, rows, words."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from microtome.errors import MicrotomeError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.field.mdl_probing.random_labels import random_labels, types_of
from microtome.models import load, load_tokenizer
from microtome.runs import run_here
from microtome.tasks import DataSpec, open_training
from microtome.training.probe.online_code import Blocks
from support.by_definition import sent_by_scikit_learn
from support.experiment_rows import study_here
from support.tiny import FAMILY_TYPES
from support.training_rows import checkpoint, multilabel_rows, rows, tagged_rows

EXPERIMENT = find_experiment("mdl-probing")
PENALTY = 10.0


def data_of(tmp_path, kind="single", n=50):
    if kind == "tokens":
        return DataSpec(path=tagged_rows(tmp_path / "data", n=n)._source.path)
    if kind == "multilabel":
        path = multilabel_rows(tmp_path / "data", n=n)._source.path
        return DataSpec(path=path, text_column="text", label_column="good,bad,red")
    path = rows(tmp_path / "data", kind, n=n)._source.path
    return DataSpec(path=path, labels=("no", "yes"))


def coded(folder, data, *, random_blocks=False, **settings):
    """What the trial on the model as it is stored, or that on random blocks."""
    settings = EXPERIMENT.settings({"penalty": PENALTY, **settings})
    trials = EXPERIMENT.plan(subject_of(str(folder), data), settings)
    return run_here(trials[random_blocks]).arrays


def plain_depths(encoder, batch):
    """States (N + 1, L, D) by transformers alone, through the norm that a truncated model has."""
    with torch.no_grad():
        *inner, last = encoder(**batch, output_hidden_states=True).hidden_states
    norm = getattr(encoder, "final_norm", None) or getattr(encoder, "norm", None) or (lambda h: h)
    with torch.no_grad():
        return torch.stack([*map(norm, inner), last])[:, 0].numpy()


def mean_states(folder, train):
    """(N + 1, n, D), text by text."""
    encoder, tokenizer = load(str(folder)), load_tokenizer(str(folder))
    texts = [tokenizer(row.text, return_tensors="pt") for row in train.rows()]
    return np.stack([plain_depths(encoder, text).mean(1) for text in texts], axis=1)


def naive_bits(states, columns, row_of, n_classes):
    """(N + 1, n), summed over the columns of labels."""
    blocks = Blocks.of(row_of, n_classes, seed=0)
    scaled = [StandardScaler().fit_transform(depth.astype(np.float64)) for depth in states]
    return np.stack([
        sum(sent_by_scikit_learn(depth, own, n_classes, blocks, (PENALTY,)) for own in columns)
        for depth in scaled
    ])  # fmt: skip


def assert_equal_bits(found, wanted):
    np.testing.assert_allclose(found, wanted, atol=0.02)
    np.testing.assert_allclose(found.sum(1), wanted.sum(1), rtol=1e-3)


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_every_family_costs_what_plain_transformers_and_scikit_learn_say(family, tmp_path):
    folder, data = checkpoint(tmp_path / "model", family, "none"), data_of(tmp_path)
    train, _ = open_training(data)
    wanted = naive_bits(mean_states(folder, train), [train.targets], np.arange(len(train)), 2)
    found = coded(folder, data, feature="mean")["real"]
    assert_equal_bits(found, wanted)
    control = coded(folder, data, feature="mean", random_blocks=True)["real"]
    np.testing.assert_allclose(control[0], found[0], atol=0.02)  # the same embeddings
    assert all(abs(control[depth] - found[depth]).max() > 0.1 for depth in (1, 2, 3))


def test_several_labels_are_codes_of_their_own(tmp_path):
    folder, data = checkpoint(tmp_path / "model"), data_of(tmp_path, "multilabel")
    train, _ = open_training(data)
    columns = train.targets.astype(int).T
    wanted = naive_bits(mean_states(folder, train), columns, np.arange(len(train)), 2)
    assert_equal_bits(coded(folder, data, feature="mean")["real"], wanted)


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_words_are_read_at_their_first_piece(family, tmp_path):
    folder, data = checkpoint(tmp_path / "model", family, "none"), data_of(tmp_path, "tokens", 25)
    train, _ = open_training(data)
    encoder, tokenizer = load(str(folder)), load_tokenizer(str(folder))
    states, row_of = [], []
    for number, row in enumerate(train.rows()):
        batch = tokenizer(list(row.words), is_split_into_words=True, return_tensors="pt")
        firsts = [batch.word_ids().index(word) for word in range(len(row.words))]
        states.append(plain_depths(encoder, batch)[:, firsts])
        row_of += [number] * len(row.words)
    found = coded(folder, data)
    states, labels = np.concatenate(states, axis=1), [train.tags.values]
    assert_equal_bits(found["real"], naive_bits(states, labels, np.array(row_of), 5))
    assert (found["clusters"] == row_of).all()


def test_rows_are_the_stored_bits_and_their_differences(tmp_path):
    folder, data = checkpoint(tmp_path / "model"), data_of(tmp_path, "tokens", 40)
    subject = subject_of(str(folder), data)
    (part,) = study_here("mdl-probing", subject, tmp_path / "run", penalty=PENALTY).parts
    n_words = len(subject.training.tags.values)
    found = {(r["encoder"], r["target"], r["depth"]): r for r in part.rows}
    assert len(found) == len(part.rows) == 2 * 2 * 4 + 2 * 2
    for (encoder, target, depth), row in found.items():
        assert set(EXPERIMENT.columns) <= set(row)
        assert row["low"] <= row["bits_per_label"] <= row["high"]
        assert row["n"] == n_words
        assert row["bits"] == pytest.approx(n_words * row["bits_per_label"])
        assert row["compression"] == pytest.approx(math.log2(5) / row["bits_per_label"])
        if encoder == "uniform":
            assert row["bits_per_label"] == pytest.approx(math.log2(5))
        if encoder == "pretrained":
            other = found["random", target, depth]
            saved = other["bits_per_label"] - row["bits_per_label"]
            assert row["saved"] == pytest.approx(saved, abs=1e-12)
            assert row["saved_low"] <= saved <= row["saved_high"]
        else:
            assert row["saved"] is None
        if depth is not None and target == "real":
            control = found[encoder, "control", depth]
            more = control["bits_per_label"] - row["bits_per_label"]
            assert row["selectivity"] == pytest.approx(more, abs=1e-12)
            assert row["selectivity_low"] <= more <= row["selectivity_high"]
        else:
            assert row["selectivity"] is None
    for target in ("real", "control"):  # the same embeddings
        assert found["pretrained", target, 0]["saved"] == 0
    best = min(range(4), key=lambda d: found["pretrained", "real", d]["bits_per_label"])
    assert f"Depth {best} of 3 describes the labels shortest" in part.finding
    assert EXPERIMENT.summary(part.rows)["best_depth"] == best
    curve, table = EXPERIMENT.views(part.rows)
    assert curve.series[0].y[best] == found["pretrained", "real", best]["bits_per_label"]
    assert len(table.rows) == 4 + 2


def test_more_orders_are_more_trials_and_have_an_interval_over_them(tmp_path):
    folder, data = checkpoint(tmp_path / "model"), data_of(tmp_path)
    subject = subject_of(str(folder), data)
    study_here("mdl-probing", subject, tmp_path / "run", seeds=[0], penalty=100.0)
    done = study_here("mdl-probing", subject, tmp_path / "run", seeds=[0, 1, 2], penalty=100.0)
    assert done.result.n_run == 6
    (part,) = done.parts
    line = EXPERIMENT.views(part.rows)[0].series[0]
    values = [
        row["bits_per_label"]
        for row in part.rows
        if (row["encoder"], row["target"], row["depth"]) == ("pretrained", "real", 2)
    ]
    assert len({*values}) == 3
    reach = 4.302653 * np.std(values, ddof=1) / math.sqrt(3)  # Student's t, two degrees of freedom
    assert line.y[2] == pytest.approx(np.mean(values))
    assert line.high[2] - line.y[2] == pytest.approx(reach, rel=1e-5)


def test_only_limit_rows_of_the_training_side_are_described(tmp_path):
    folder, data = checkpoint(tmp_path / "model"), data_of(tmp_path)
    few = DataSpec(**{**vars(data), "limit": 30})
    assert coded(folder, few)["real"].shape == (4, 30)


def test_control_labels_belong_to_types_and_keep_their_frequencies(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.choice(4, p=[0.6, 0.2, 0.15, 0.05], size=3000)
    types = np.minimum(rng.geometric(0.01, size=3000), 400)
    for seed in range(3):
        dealt = random_labels(types, labels, seed=seed)
        assert all(len({*dealt[types == kind].tolist()}) == 1 for kind in np.unique(types))
        extra = np.bincount(dealt, minlength=4) - np.bincount(labels)
        assert extra.max() < np.bincount(types).max()
        alone = random_labels(np.arange(3000), labels, seed=seed)
        assert (np.bincount(alone) == np.bincount(labels)).all()
        assert 0.3 < (alone == labels).mean() < 0.6  # by chance .425
    assert (random_labels(types, labels, seed=1) != dealt).any()
    tagged = tagged_rows(tmp_path / "words", n=12)
    words = [word for row in tagged.rows() for word in row.words]
    kinds = types_of(tagged)
    assert len({*zip(words, kinds.tolist(), strict=True)}) == len({*words}) == len({*kinds})
    texts = rows(tmp_path / "texts", n=12)
    assert len({*types_of(texts).tolist()}) == len({row.text for row in texts.rows()})


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("micro-similarity", {}, "is one of labels, and micro-similarity is"),
        ("micro-squad", {}, "is one of labels, and micro-squad is spans"),
        ("micro-sentiment", {"feature": "last"}, "--feature must be cls or mean, got last"),
        ("micro-sentiment", {"penalty": 0.0}, "--penalty must be above 0, got 0"),
        ("micro-tagging", {"feature": "mean"}, "--feature is of whole texts"),
        ("micro-topics", {"limit": 3}, "expected 4 rows or words with labels"),
    ],
)
def test_what_has_no_code_of_labels_is_refused_in_a_line(model, task, settings, message):
    limit = settings.pop("limit", 8) if "limit" in settings else 8
    subject = subject_of(str(model), DataSpec(task, limit=limit))
    with pytest.raises(MicrotomeError, match=message):
        EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))


def made(lengths, *, rival=0.2):
    """Rows of one order: ``lengths`` by depth, random blocks ``rival`` bits above."""
    common = {"n": 100, "unit": "rows", "n_classes": 2, "seed": 0, "feature": "cls"}
    empty = {f"{name}{end}": None for name in ("saved", "selectivity")
             for end in ("", "_low", "_high")}  # fmt: skip

    def row(encoder, target, depth, bits, **more):
        return {**common, **empty, "encoder": encoder, "target": target, "depth": depth,
                "bits": 100 * bits, "bits_per_label": bits, "low": bits - 0.1, "high": bits + 0.1,
                "compression": 1 / bits, **more}  # fmt: skip

    found = []
    for depth, bits in enumerate(lengths):
        saved = {"saved": rival, "saved_low": rival - 0.1, "saved_high": rival + 0.1}
        chosen = {"selectivity": 0.3, "selectivity_low": 0.25, "selectivity_high": 0.35}
        found.append(row("pretrained", "real", depth, bits, **saved, **chosen))
        found.append(row("pretrained", "control", depth, bits + 0.3))
        found.append(row("random", "real", depth, bits + rival))
    return [*found, row("frequencies", "real", None, 0.9), row("uniform", "real", None, 1.0)]


def test_the_finding_leads_with_the_depth_and_says_what_it_is_held_against():
    words = EXPERIMENT.finding(made([0.8, 0.5, 0.6]))
    assert words.startswith("Depth 1 of 2 describes the labels shortest: 0.500 bits (0.400 to 0.6")
    assert "per label, saving +0.200 bits (+0.100 to +0.300) against random blocks. " in words
    assert "The uniform code is 2.00 times as long" in words
    assert "frequencies alone take 0.900 bits (0.800 to 1.000)" in words
    assert "random blocks at their shortest, depth 1, 0.700. " in words
    assert "the selectivity is +0.300 bits (+0.250 to +0.350)" in words
    assert words.endswith("the same 100 rows, and its interval holds those of depths 1-2.")
    assert words.count(". ") == 2
    close = EXPERIMENT.finding(made([0.8, 0.5], rival=0.05))
    assert "per label, indistinguishable from random blocks at that depth. " in close
    assert EXPERIMENT.finding(made([0.95, 0.92])).startswith("No depth describes the labels in few")


def test_the_headline_has_the_numbers_of_the_finding():
    told = EXPERIMENT.headline(made([0.8, 0.5, 0.6]))
    assert EXPERIMENT.finding(made([0.8, 0.5, 0.6])).startswith(told.sentence)
    assert [card.value for card in told.cards] == ["0.500", "+0.200", "2.00×", "0.900", "+0.300"]
    assert told.sure.startswith("Measured in 1 order of the rows; the depth was picked")
