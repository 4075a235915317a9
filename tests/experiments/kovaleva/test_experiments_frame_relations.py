"""Frame relations: rows against eager maps, heads made by hand, refusals."""

from __future__ import annotations

import ast

import numpy as np
import pytest
import torch

from microtome import load, load_tokenizer, parse
from microtome.cli import run
from microtome.errors import DataError
from microtome.experiments import find_experiment
from microtome.experiments.kit.head_tables import name_of
from microtome.experiments.kovaleva.frame_relations.claims import claims
from microtome.experiments.kovaleva.frame_relations.exemplars import (
    encode_exemplars,
    read_exemplars,
    selected,
)
from microtome.experiments.kovaleva.frame_relations.measure import frame_rows
from microtome.experiments.kovaleva.frame_relations.report import BACK, FORWARD, linked_heads
from microtome.observe import vocabulary_of
from microtome.tasks import DataSpec
from microtome.tasks.annotation.frames import Element, Exemplar
from microtome.tasks.annotation.treebanks import Sentence, Word
from support.by_definition import expected_most
from support.eager_maps import eager_maps
from support.experiment_rows import rows_of
from support.handmade import HEAD, LAYER, attends_to_words
from support.labelled_texts import write_rows
from support.tiny import WORDS, tiny_model
from support.training_rows import tokenizer_for

pytestmark = pytest.mark.usefixtures("own_folder")

NAME = "frame-relations"
EXPERIMENT = find_experiment(NAME)
# The published form: words, target, elements. Targets and elements stand at least 3 words apart.
LINES = [
    ("the cat sees a big red house", "sees", ["house"]),
    ("dogs and the bird likes it", "likes", ["dogs"]),
    ("she runs not very good and sings", "runs", ["sings"]),
    ("he and she was in the quick car", "was", ["car"]),
    ("yes it was red and the big tree is new", "new", ["it", "red"]),
    ("the dogs and cats was never caring now", "caring", ["dogs and cats"]),
]


def published(path, lines=LINES):
    path.write_text("".join(f"{text}  {target} {elements}\n" for text, target, elements in lines))
    return path


def link_of(tokenizer, line):
    """Pairs of a piece of the target and one of an element, and all ordinary pieces."""
    text, target, elements = line
    words = text.split()
    owners = tokenizer(words, is_split_into_words=True).word_ids()
    ordinary = [p for p, owner in enumerate(owners) if owner is not None]
    wanted = {words.index(word) for element in elements for word in element.split()}
    queries = [p for p in ordinary if owners[p] == words.index(target)]
    keys = [p for p in ordinary if owners[p] in wanted]
    return [(q, k) for q in queries for k in keys], ordinary


def placements(link, ordinary, *, key_moves):
    """Where the link could stand, too: moved as a whole, or its queries alone."""
    steps = [step for step in range(-40, 41) if step]
    moved = [[(q + step, k + step * key_moves) for q, k in link] for step in steps]
    return [
        pairs for pairs in moved
        if {p for pair in pairs for p in pair} <= set(ordinary) and all(q != k for q, k in pairs)
    ]  # fmt: skip


def by_hand(model, tokenizer, lines, turn):
    """score, offset control, stripe control, count control: (4, layers, heads), by plain loops."""
    gathered = []
    for line in lines:
        link, ordinary = link_of(tokenizer, line)
        link = [pair[::turn] for pair in link]
        maps = eager_maps(model, tokenizer, line[0])

        def most(pairs, maps=maps):
            return np.max([maps[:, :, q, k] for q, k in pairs], axis=0)

        moved = [most(pairs) for pairs in placements(link, ordinary, key_moves=1)]
        stripes = [most(pairs) for pairs in placements(link, ordinary, key_moves=0)]
        every = np.stack([maps[:, :, q, k] for q in ordinary for k in ordinary if q != k])
        if moved:  # a link that fits nowhere else is left out
            count = expected_most(every, len(link))
            gathered.append([most(link), np.mean(moved, 0), np.mean(stripes, 0), count])
    return np.mean(gathered, axis=0), len(gathered)


def check_equal(rows, model, tokenizer, lines):
    """Every row of both directions against the maps by hand."""
    for turn, direction in ((1, "predicate→element"), (-1, "element→predicate")):
        wanted, n = by_hand(model, tokenizer, lines, turn)
        own = [row for row in rows if row["direction"] == direction]
        assert len(own) == wanted[0].size
        for row in own:
            score, control, stripe, count = wanted[:, row["layer"], row["head"]]
            assert row["score"] == pytest.approx(score, abs=1e-5)
            assert row["control"] == pytest.approx(control, abs=1e-5)
            assert row["excess"] == pytest.approx(score - control, abs=1e-5)
            assert row["stripe_control"] == pytest.approx(stripe, abs=1e-5)
            assert row["count_control"] == pytest.approx(count, abs=1e-5)
            assert row["n"] == n


def test_every_map_equals_one_computed_from_eager_attention(model, tmp_path):
    rows = rows_of(NAME, model, frames=str(published(tmp_path / "frames.txt")))
    tokenizer = load_tokenizer(model)
    assert sorted(len(link_of(tokenizer, line)[0]) for line in LINES) == [1, 1, 1, 2, 2, 10]
    check_equal(rows, load(model), tokenizer, LINES)
    assert all(row["delta"] is None for row in rows)


def test_an_exemplar_that_fits_nowhere_else_is_left_out_of_every_column(model, tmp_path):
    alone = ("it was red and the big tree is new", "new", ["it", "red"])  # first word and last
    lines = [*LINES, alone]
    rows = rows_of(NAME, model, frames=str(published(tmp_path / "frames.txt", lines)))
    assert {(row["n"], row["n_alone"]) for row in rows} == {(len(LINES), 1)}
    check_equal(rows, load(model), load_tokenizer(model), lines)


def lines_with(elements):
    return [
        (f"{before} sees the big red {element} now", "sees", [element])
        for before in ("she", "he", "they")
        for element in elements
    ]


def test_a_head_made_for_the_elements_is_found_and_shown_to_be_a_stripe(tmp_path):
    lines = lines_with(["house", "tree", "river", "car"])
    folder = attends_to_words(
        tmp_path / "made", [text for text, *_ in lines], {"house", "tree", "river", "car"}
    )
    rows = rows_of(NAME, folder, frames=str(published(tmp_path / "frames.txt", lines)))
    best = linked_heads(rows)[0]
    assert (best["layer"], best["head"]) == (LAYER, HEAD)
    assert best["score"] > 0.9
    assert best["control"] < 0.1
    assert (
        best["stripe_control"] > 0.9
    )  # every word attends to the element, not the predicate alone
    assert best["low"] <= best["score"] <= best["high"]
    assert f"{LAYER}.{HEAD}" in EXPERIMENT.finding(rows)


def test_disabling_a_found_head_costs_what_the_edit_costs(tmp_path):
    lines = lines_with(["house", "tree", "river", "car"])
    texts = [text for text, *_ in lines]
    folder = attends_to_words(
        tmp_path / "made", texts, {"house", "tree", "river", "car"}, head="classification"
    )
    model = load(folder)
    with torch.no_grad():  # what the head gathers must reach the answer
        layer = model.bert.encoder.layer[LAYER]
        layer.attention.output.dense.weight.copy_(
            torch.randn(32, 32, generator=torch.Generator().manual_seed(0))
        )
        layer.attention.self.value.weight.mul_(10)
        model.classifier.weight.mul_(30)
    tokenizer = load_tokenizer(folder)
    with torch.no_grad():  # half of the texts get either answer
        logits = torch.cat([model(**tokenizer(text, return_tensors="pt")).logits for text in texts])
        model.classifier.bias[0] += (logits[:, 1] - logits[:, 0]).quantile(0.45)
    model.save_pretrained(folder)

    def answers(one):
        with torch.no_grad():
            return [
                int(one(**tokenizer(text, return_tensors="pt")).logits.argmax()) for text in texts
            ]

    gold = np.array(answers(load(folder)))  # so that it has learnt the task, but for a few rows
    gold[::9] = 1 - gold[::9]
    data = write_rows(tmp_path / "rows.csv", texts, gold.tolist())
    rows = rows_of(
        NAME, folder, DataSpec(path=data, labels=("no", "yes")),
        frames=str(published(tmp_path / "frames.txt", lines)),
    )  # fmt: skip
    priced = [row for row in rows if row["delta"] is not None]
    assert sorted(map(name_of, priced)) == sorted(map(name_of, linked_heads(rows)[:8]))
    (row,) = [r for r in priced if (r["layer"], r["head"]) == (LAYER, HEAD)]

    def accuracy(one):
        return np.mean(answers(one) == gold)

    edited = accuracy(parse(f"disable({LAYER}.{HEAD})")(load(folder)))
    assert row["disabled_value"] == pytest.approx(edited)
    assert row["delta"] == pytest.approx(edited - accuracy(load(folder)))
    assert "importance" in claims(rows)
    assert row["value"] == pytest.approx(accuracy(load(folder)))
    assert row["constant_value"] == pytest.approx(np.bincount(gold).max() / len(gold))
    assert row["one_answer"] is False
    constant = f"one constant answer: {100 * row['constant_value']:.1f} %) by: "
    assert "Disabling them changes the accuracy (" in EXPERIMENT.finding(rows)
    assert constant in EXPERIMENT.finding(rows)


def test_embedded_frames_pass_the_filters_and_form_clusters():
    named, dropped = selected(list(read_exemplars(None)))
    assert len(named) >= 100
    assert dropped
    assert len({cluster for _, cluster in named}) < len(named)
    model, tokenizer = tiny_model("bert", "none"), tokenizer_for()
    few = named[:20]
    texts = encode_exemplars(few, tokenizer, max_length=60, segments=True)
    rows = frame_rows(model, few, texts, vocabulary_of(tokenizer))
    assert len(rows) == 24
    assert rows[0]["n"] <= 20


def test_two_heads_have_the_map_of_an_annotated_exemplar(model, tmp_path):
    rows = rows_of(NAME, model, frames=str(published(tmp_path / "frames.txt")))
    shown = [row for row in rows if row["example_weights"] is not None]
    forwards = sorted((r for r in rows if r["direction"] == FORWARD), key=lambda r: -r["excess"])
    assert {name_of(row) for row in shown} == {name_of(row) for row in forwards[:2]}
    tokenizer = load_tokenizer(model)
    for row in shown:
        (line,) = [line for line in LINES if line[0].split() == row["example_words"]]
        maps = eager_maps(load(model), tokenizer, line[0])
        weights = np.array(row["example_weights"])
        assert weights == pytest.approx(maps[row["layer"], row["head"]], abs=1e-4)
        assert sorted(map(tuple, row["example_link"])) == sorted(link_of(tokenizer, line)[0])
        assert row["example_tokens"] == tokenizer.convert_ids_to_tokens(
            tokenizer(line[0]).input_ids
        )
        roles = dict(zip(row["example_words"], row["example_roles"], strict=True))
        elements = {word for element in line[2] for word in element.split()}
        assert roles.pop(line[1]) == "predicate"
        assert {word for word, role in roles.items() if role} == elements
    titles = [view.title for view in EXPERIMENT.views(rows)]
    assert "An annotated exemplar" in titles
    without = [{k: v for k, v in row.items() if not k.startswith("example_")} for row in rows]
    assert len(EXPERIMENT.views(without)) == len(titles) - 2  # stored before maps were kept


def sentence_of(words):
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    found = [
        Word(form=word, start=int(start), stop=int(start) + len(word))
        for word, start in zip(words, starts, strict=False)
    ]
    return Sentence(" ".join(words), tuple(found))


def test_frames_with_shuffled_links_find_a_head_as_often_as_they_say():
    """The whole way of frame-relations, clusters of two among the texts; 200 shuffles, 5 %."""
    rng = np.random.default_rng(4)
    sentences = [sentence_of(rng.choice(WORDS, rng.integers(7, 12)).tolist()) for _ in range(10)]
    distances = rng.integers(3, 5, 10)
    model, tokenizer = tiny_model("bert", "none"), tokenizer_for()
    found = {FORWARD: [], BACK: []}
    for _ in range(200):
        named = []
        for number, (sentence, distance) in enumerate(zip(sentences, distances, strict=True)):
            place = int(rng.integers(len(sentence.words) - distance))
            element = Element("one", place + distance, place + distance + 1)
            exemplar = Exemplar(sentence, "some", ((place, place + 1),), (element,))
            named += [(exemplar, str(number))] * (1 + number % 2)
        texts = encode_exemplars(named, tokenizer, max_length=40, segments=True)
        rows = frame_rows(model, named, texts, vocabulary_of(tokenizer))
        for direction, own in found.items():
            own.append([row["p_max"] for row in rows if row["direction"] == direction])
    for own in found.values():
        share = np.mean(np.min(own, axis=1) <= 0.05)
        assert 0.004 <= share <= 0.096  # three standard errors around 5 %


def test_what_is_no_frame_file_is_refused_in_one_line(model, tmp_path, capsys):
    nonsense = tmp_path / "nonsense.txt"
    nonsense.write_text("no target here\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    for frames, word in ((nonsense, "line 1"), (folder, "FrameNet"), (tmp_path / "x", "exists")):
        arguments = ["run", NAME, "--model", model, "--frames", frames]
        assert run([str(a) for a in arguments]) == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("microtome:")
        assert word in last
    near = published(tmp_path / "near.txt", [("the cat sees a house", "sees", ["house"])])
    with pytest.raises(DataError, match="an element near the target"):
        rows_of(NAME, model, frames=str(near))


def test_the_command_runs_and_reports(model, tmp_path, capsys):
    frames = published(tmp_path / "frames.txt")
    arguments = ["run", NAME, "--model", model, "--frames", frames]
    arguments += ["--out", tmp_path / "run", "--workers", "0"]
    assert run([str(a) for a in arguments]) == 0
    assert "exemplars" in capsys.readouterr().out
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.real
def test_minilm_on_published_sentences_equals_eager_attention(tmp_path, shared_data):
    every = shared_data("data/frames/framenet_examples_published.txt").read_text().splitlines()
    lines = []
    for line in filter(str.strip, every):
        text, _, rest = line.partition("[")
        *words, target = text.split()
        elements = ast.literal_eval(f"[{rest}")
        wanted = [target, *(word for element in elements for word in element.split())]
        if all(words.count(word) == 1 for word in wanted):  # where they stand is plain
            lines.append((" ".join(words), target, elements))
    tokenizer = load_tokenizer("minilm")
    lines = [line for line in lines if len(line[2]) > 1] + lines[:30]
    n_pairs = [len(link_of(tokenizer, line)[0]) for line in lines]
    assert min(n_pairs) == 1
    assert max(n_pairs) > 4
    rows = rows_of(NAME, "minilm", frames=str(published(tmp_path / "some.txt", lines)))
    check_equal(rows, load("minilm"), tokenizer, lines)
