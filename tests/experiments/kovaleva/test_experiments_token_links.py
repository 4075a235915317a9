"""Token links: rows against eager maps, on a small model and on all-MiniLM."""

from __future__ import annotations

import csv
import re
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest

from microtome import load, load_tokenizer
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kovaleva.token_links.claims import claims
from microtome.tasks import DataSpec
from microtome.tasks.annotation.passages import treebank_passages
from support.by_definition import FEATURES_IN_UD, expected_most
from support.eager_maps import eager_maps
from support.experiment_rows import rows_of
from support.tiny import tiny_model
from support.training_rows import tokenizer_for

pytestmark = pytest.mark.usefixtures("own_folder")

NAME = "token-links"
EXPERIMENT = find_experiment(NAME)
TREEBANK = """\
1	the	the	DET	_	_	2	det	_	_
2	dogs	dog	NOUN	_	_	3	nsubj	_	Entity=(e2)
3	sees	see	VERB	_	_	0	root	_	_
4	birds	bird	NOUN	_	_	3	obj	_	Entity=(e1)
5	and	and	CCONJ	_	_	7	cc	_	_
6	it	it	PRON	_	_	7	nsubj	_	Entity=(e1)
7	sings	sing	VERB	_	_	3	conj	_	_
8	.	.	PUNCT	_	_	3	punct	_	_

1	she	she	PRON	_	_	2	nsubj	_	_
2	sleeps	sleep	VERB	_	_	0	root	_	_
3	very	very	ADV	_	_	4	advmod	_	_
4	good	good	ADV	_	_	2	advmod	_	_
5	,	,	PUNCT	_	_	2	punct	_	_
6	yes	yes	INTJ	_	_	2	discourse	_	_

1	a	a	DET	_	_	2	det	_	_
2	cat	cat	NOUN	_	_	3	nsubj	_	_
3	likes	like	VERB	_	_	0	root	_	_
4	cars	car	NOUN	_	_	3	obj	_	_

1	the	the	DET	_	_	2	det	_	_
2	tree	tree	NOUN	_	_	4	nsubj	_	_
3	is	be	AUX	_	_	4	cop	_	_
4	big	big	ADJ	_	_	0	root	_	_
5	.	.	PUNCT	_	_	4	punct	_	_

"""
# Which words of each sentence are linked, and which have a feature: by hand, from 0.
LINKS = {
    "verb-subject": [[(2, 1), (6, 5)], [(1, 0)], [(2, 1)], []],
    "noun-pronoun": [[(3, 5)], [], [], []],
}
FEATURES = {
    "nouns": [[1, 3], [], [1, 3], [1]],
    "verbs": [[2, 6], [1], [2], [2]],
    "pronouns": [[5], [0], [], []],
    "subjects": [[1, 5], [0], [1], [1]],
    "objects": [[3], [], [3], []],
    "punctuation": [[7], [4], [], [4]],
}
ENDS = {
    "verb-subject": ("verb", "subject"),
    "noun-pronoun": ("noun", "pronoun"),
    "overlap": ("first text", "second text"),
}


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "small.conllu"
    path.write_text(TREEBANK)
    return path


class Text(NamedTuple):
    maps: np.ndarray  # (layers, heads, L, L)
    sides: dict  # of ordinary tokens: 0 text, 1 pair
    links: dict  # link → [[(place of one word, place of the other), …], …]
    marked: dict  # feature → places


def text_of(model, tokenizer, texts, words, links, marked):
    """Words are (side, start, stop); theirs are the tokens that share a character with them."""
    encoded = tokenizer(*texts, return_offsets_mapping=True)
    sides = {p: side for p, side in enumerate(encoded.sequence_ids()) if side is not None}
    offsets = encoded["offset_mapping"]
    places = [
        [p for p in sides if sides[p] == side and offsets[p][0] < stop and offsets[p][1] > start]
        for side, start, stop in words
    ]
    linked = {
        name: [[(p, q) for p in places[a] for q in places[b] if p != q] for a, b in own]
        for name, own in links.items()
    }
    found = {name: [p for w in own for p in places[w]] for name, own in marked.items()}
    found |= {"[CLS]": [0], "[SEP]": [p for p in range(1, len(offsets)) if p not in sides]}
    return Text(eager_maps(model, tokenizer, *texts), sides, linked, found)


def on_links(text, links):
    """(layers, heads) of the links' weight, of the same offsets elsewhere, of other queries."""
    taken = {pair for link in links for pair in link}

    def most(pairs):
        return np.max([text.maps[:, :, q, k] for q, k in pairs], axis=0)

    def elsewhere(link, key_moves):
        length, sides = text.maps.shape[-1], text.sides
        for step in range(-length, length):
            placed = [(q + step, k + step * key_moves) for q, k in link]
            fits = all(
                q != k and sides.get(q) == sides[query] and sides.get(k) == sides[key]
                for (q, k), (query, key) in zip(placed, link, strict=True)
            )
            if fits and not taken & set(placed):  # where the link itself stands is taken
                yield most(placed)

    found = [([most(link)], [*elsewhere(link, 1)], [*elsewhere(link, 0)]) for link in links if link]
    found = [one for one in found if one[1]]  # what fits nowhere else has no control
    return [
        np.mean([np.mean(own, axis=0) for own in column], axis=0) if all(column) else None
        for column in zip(*found, strict=True)
    ]


def check_links(rows, texts):
    """Every row of a link, in both directions; a link that no text has gives none."""
    before, behind = (
        np.mean([t.maps.diagonal(step, 2, 3).sum(-1) / t.maps.shape[-1] for t in texts], axis=0)
        for step in (-1, 1)
    )
    for link, ends in ENDS.items():
        for turn in (1, -1):
            turned = [
                [[pair[::turn] for pair in pairs] for pairs in text.links.get(link, ())]
                for text in texts
            ]
            found = [on_links(text, own) for text, own in zip(texts, turned, strict=True)]
            own = [row for row in rows if row["direction"] == "→".join(ends[::turn])]
            assert len(own) == (before.size if any(found) else 0)
            if own:
                check_columns(own, [one for one in found if one], np.maximum(before, behind))


def check_columns(rows, found, diagonal):
    weight, control, stripe = (
        np.mean([one for one in column if one is not None], axis=0)
        for column in zip(*found, strict=True)
    )
    for row in rows:
        place = row["layer"], row["head"]
        assert row["n"] == len(found)
        assert row["attention"] == pytest.approx(weight[place], abs=1e-5)
        assert row["control"] == pytest.approx(control[place], abs=1e-5)
        assert row["excess"] == pytest.approx((weight - control)[place], abs=1e-5)
        assert row["stripe_control"] == pytest.approx(stripe[place], abs=1e-5)
        assert row["diagonal"] == pytest.approx(diagonal[place], abs=1e-5)


def check_cls(rows, texts):
    """What [CLS] gives every feature in the last layer, beside as many random tokens."""
    wanted = {}
    for text in texts:
        given = text.maps[-1, :, 0].T  # (L, heads)
        for feature, places in text.marked.items():
            if places:
                chance = expected_most(given[list(text.sides)], len(set(places)))
                wanted.setdefault(feature, []).append((given[places].max(0), chance))
    own = [row for row in rows if row["link"] == "[CLS]"]
    n_layers, n_heads = texts[0].maps.shape[:2]
    assert {row["feature"] for row in own} == set(wanted)
    assert len(own) == len(wanted) * n_heads
    for row in own:
        most, chance = np.mean(wanted[row["feature"]], axis=0)[:, row["head"]]
        assert (row["layer"], row["n"]) == (n_layers - 1, len(wanted[row["feature"]]))
        assert row["attention"] == pytest.approx(most, abs=1e-5)
        assert row["control"] == pytest.approx(chance, abs=1e-5)
        assert row["excess"] == pytest.approx(most - chance, abs=1e-5)


def check(rows, texts):
    check_links(rows, texts)
    check_cls(rows, texts)


def small_texts(model, tokenizer):
    for number, block in enumerate(TREEBANK.strip().split("\n\n")):
        words = [line.split("\t")[1] for line in block.splitlines()]
        starts = [len(" ".join([*words[:i], ""])) for i in range(len(words))]
        spans = [(0, start, start + len(word)) for start, word in zip(starts, words, strict=True)]
        links, marked = (
            {name: own[number] for name, own in by_hand.items()} for by_hand in (LINKS, FEATURES)
        )
        yield text_of(model, tokenizer, [" ".join(words)], spans, links, marked)


@pytest.mark.parametrize("name", ["small", pytest.param("minilm", marks=pytest.mark.real)])
def test_every_map_equals_one_computed_from_eager_attention(model, treebank, name):
    model = model if name == "small" else name
    rows = rows_of(NAME, model, treebank=str(treebank))
    assert {row["link"] for row in rows} == {"verb-subject", "noun-pronoun", "[CLS]"}
    check(rows, [*small_texts(load(model), load_tokenizer(model))])


def pair_texts(model, tokenizer, pairs):
    """Runs of letters and digits are words, linked where both texts have them; others are marks."""
    for pair in pairs:
        words = [
            (side, one.start(), one.end())
            for side, text in enumerate(pair)
            for one in re.finditer(r"\w+|[^\w\s]", text)
        ]
        forms = [pair[side][start:stop].lower() for side, start, stop in words]
        shared = [
            (a, b)
            for a, b in combinations(range(len(words)), 2)
            if forms[a] == forms[b] and forms[a].isalnum() and (words[a][0], words[b][0]) == (0, 1)
        ]
        marks = [w for w, form in enumerate(forms) if not form.isalnum()]
        yield text_of(model, tokenizer, pair, words, {"overlap": shared}, {"punctuation": marks})


def test_shared_words_of_pairs_need_no_annotation(tmp_path):
    pairs = [
        ("the dog sees a bird", "a big bird sees"), ("cat and car", "the car is red"),
        ("he runs", "she sings"), ("good , good river", "river , yes"),
    ]  # fmt: skip
    path, folder = tmp_path / "pairs.csv", tmp_path / "pairs-model"
    with path.open("w", newline="") as stream:
        lines = [(*pair, ("no", "yes")[i % 2]) for i, pair in enumerate(pairs)]
        csv.writer(stream).writerows([("text", "pair", "label"), *lines])
    names = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}
    tiny_model("bert", "classification", **names).save_pretrained(folder)
    tokenizer_for().save_pretrained(folder)
    rows = rows_of(NAME, folder, DataSpec(path=path, pair_column="pair", labels=("no", "yes")))
    assert {row["link"] for row in rows} == {"overlap", "[CLS]"}
    check(rows, [*pair_texts(load(folder), load_tokenizer(folder), pairs)])
    assert "overlap" in claims(rows)
    assert "Not in this text: verb-subject, noun-pronoun" in EXPERIMENT.finding(rows)


IN_UD = FEATURES_IN_UD | {"punctuation": lambda word: word.upos == "PUNCT"}


@pytest.mark.real
def test_minilm_on_a_real_treebank_equals_eager_attention(shared_data):
    path = shared_data("data/ud_ewt/en_ewt-ud-dev.conllu")
    rows = rows_of(NAME, "minilm", DataSpec(limit=12), treebank=str(path))
    # This treebank has no coreference; noun-pronoun is compared on the sentences above.
    assert {row["link"] for row in rows} == {"verb-subject", "[CLS]"}
    model, tokenizer = load("minilm"), load_tokenizer("minilm")
    texts = []
    for passage in treebank_passages(path, limit=12):
        words = passage.sentences[0].sentence.words
        spans = [(0, word.start, word.stop) for word in words]
        marked = {
            name: [i for i, word in enumerate(words) if holds(word)]
            for name, holds in IN_UD.items()
        }
        verbs = {i: words[i].head - 1 for i in marked["subjects"]}
        links = {"verb-subject": [(v, i) for i, v in verbs.items() if v in marked["verbs"]]}
        texts.append(text_of(model, tokenizer, [passage.text], spans, links, marked))
    check(rows, texts)


@pytest.mark.real
def test_minilm_on_real_pairs_equals_eager_attention(shared_data):
    wanted = DataSpec(task="mrpc", path=shared_data("data/glue/MRPC"), split="dev", limit=8)
    rows = rows_of(NAME, "minilm", wanted)
    assert {row["link"] for row in rows} == {"overlap", "[CLS]"}
    pairs = [(row.text, row.pair) for row in subject_of("minilm", wanted).dataset.rows()]
    check(rows, [*pair_texts(load("minilm"), load_tokenizer("minilm"), pairs)])
