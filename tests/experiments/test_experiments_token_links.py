"""Token links: rows against eager maps, links that a text lacks, refusals."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from eager_maps import eager_maps
from experiment_rows import rows_of
from microtome import load, load_tokenizer
from microtome.cli import run
from microtome.errors import RequestError
from microtome.experiments import Rows, find_experiment
from microtome.experiments.token_links import measured
from microtome.experiments.word_links import head_noun
from microtome.tasks.treebanks import parse_conllu, read_conllu
from tiny import tiny_model
from training_rows import tokenizer_for

pytestmark = pytest.mark.usefixtures("own_folder")

NAME = "token-links"
EXPERIMENT = find_experiment(NAME)
# Words, and by hand: (verb, subject) and (noun, pronoun), from 0.
SENTENCES = [
    (["the", "dogs", "sees", "birds", "and", "it", "sings", "."], [(2, 1), (6, 5)], [(3, 5)]),
    (["she", "sleeps", "very", "good", ",", "yes"], [(1, 0)], []),
    (["a", "cat", "likes", "cars"], [(2, 1)], []),
    (["the", "tree", "is", "big", "."], [], []),
]
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


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "small.conllu"
    path.write_text(TREEBANK)
    return path


def moved(maps, links, ordinary):
    """(layers, heads) of the links' weight and of its control, by plain loops over placements."""
    taken = {pair for link in links for pair in link}
    weights, controls = [], []
    for link in links:
        elsewhere = []
        for step in range(-60, 61):
            placed = [(q + step, k + step) for q, k in link]
            inside = all(
                q + step in ordinary and k + step in ordinary
                and ordinary.get(q + step) == ordinary[q]
                and ordinary.get(k + step) == ordinary[k]
                for q, k in link
            )  # fmt: skip
            if step and inside and not taken & set(placed):
                elsewhere.append(np.max([maps[:, :, q, k] for q, k in placed], axis=0))
        if elsewhere:
            weights.append(np.max([maps[:, :, q, k] for q, k in link], axis=0))
            controls.append(np.mean(elsewhere, axis=0))
    return (np.mean(weights, axis=0), np.mean(controls, axis=0)) if weights else None


@pytest.mark.parametrize("turned", [False, True])
def test_every_map_equals_one_computed_from_eager_attention(model, treebank, turned):
    rows = rows_of(NAME, model, treebank=str(treebank))
    tokenizer, plain = load_tokenizer(model), load(model)
    for which, link, names in (
        (1, "verb-subject", ("verb", "subject")),
        (2, "noun-pronoun", ("noun", "pronoun")),
    ):
        gathered = []
        for sentence in SENTENCES:
            words = sentence[0]
            owners = tokenizer(words, is_split_into_words=True).word_ids()
            ordinary = {p: 0 for p, owner in enumerate(owners) if owner is not None}
            pieces = [[p for p, o in enumerate(owners) if o == w] for w in range(len(words))]
            ends = [pair[::-1] if turned else pair for pair in sentence[which]]
            links = [[(q, k) for q in pieces[a] for k in pieces[b]] for a, b in ends]
            maps = eager_maps(plain, tokenizer, " ".join(words))
            if links and (one := moved(maps, links, ordinary)):
                gathered.append(one)
        weight, control = np.mean(gathered, axis=0)
        direction = "→".join(reversed(names) if turned else names)
        own = [r for r in rows if (r["link"], r["direction"]) == (link, direction)]
        assert len(own) == 12
        for row in own:
            place = row["layer"], row["head"]
            assert row["attention"] == pytest.approx(weight[place], abs=1e-5)
            assert row["control"] == pytest.approx(control[place], abs=1e-5)
            assert row["excess"] == pytest.approx((weight - control)[place], abs=1e-5)
            assert row["n"] == len(gathered)


def test_the_last_layers_cls_equals_eager_attention(model, treebank):
    rows = [row for row in rows_of(NAME, model, treebank=str(treebank)) if row["link"] == "[CLS]"]
    assert {row["layer"] for row in rows} == {2}
    tokenizer, plain = load_tokenizer(model), load(model)
    from_cls = [eager_maps(plain, tokenizer, " ".join(words))[2, :, 0] for words, *_ in SENTENCES]
    sep = np.mean([own[:, -1] for own in from_cls], axis=0)
    owners = [tokenizer(words, is_split_into_words=True).word_ids() for words, *_ in SENTENCES]
    marks = np.mean(
        [own[:, ids.index(at)] for own, ids, at in
         zip(from_cls, owners, (7, 4, None, 4), strict=True) if at is not None], axis=0,
    )  # fmt: skip
    for row in rows:
        if row["feature"] == "[SEP]":
            assert row["attention"] == pytest.approx(sep[row["head"]], abs=1e-5)
        if row["feature"] == "punctuation":
            assert row["attention"] == pytest.approx(marks[row["head"]], abs=1e-5)
    assert {"[CLS]", "[SEP]", "punctuation", "nouns", "verbs"} <= {row["feature"] for row in rows}


def pairs_file(tmp_path):
    path = tmp_path / "pairs.csv"
    lines = [
        ("the dog sees a bird", "a big bird sees", "no"), ("cat and car", "the car is red", "yes"),
        ("he runs", "she sings", "no"), ("good , good river", "river , yes", "yes"),
    ]  # fmt: skip
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "pair", "label"), *lines])
    return path, lines


def test_shared_words_of_pairs_need_no_annotation(tmp_path):
    folder = tmp_path / "pairs-model"
    tiny_model(
        "bert", "classification", id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1}
    ).save_pretrained(folder)
    tokenizer_for().save_pretrained(folder)
    path, lines = pairs_file(tmp_path)
    rows = rows_of(NAME, folder, Rows(path=path, pair_column="pair", labels=("no", "yes")))
    assert {row["link"] for row in rows} == {"overlap", "[CLS]"}
    tokenizer, plain = load_tokenizer(folder), load(folder)
    gathered = []
    for text, pair, _ in lines:
        tokens = ["[CLS]", *text.split(), "[SEP]", *pair.split(), "[SEP]"]
        border = tokens.index("[SEP]")
        ordinary = {
            p: int(p > border) for p, token in enumerate(tokens) if not token.startswith("[")
        }
        links = [
            [(p, q)] for p in ordinary for q in ordinary
            if p < border < q and tokens[p] == tokens[q] and tokens[p].isalpha()
        ]  # fmt: skip
        maps = eager_maps(plain, tokenizer, text, pair)
        assert maps.shape[-1] == len(tokens)
        if links and (one := moved(maps, links, ordinary)):
            gathered.append(one)
    weight, control = np.mean(gathered, axis=0)
    for row in rows:
        if row["direction"] == "first text→second text":
            place = row["layer"], row["head"]
            assert row["attention"] == pytest.approx(weight[place], abs=1e-5)
            assert row["control"] == pytest.approx(control[place], abs=1e-5)
    assert "overlap" in measured(rows)
    assert "Not in this text: verb-subject, noun-pronoun" in EXPERIMENT.finding(rows)


def looked_at(task, **means):
    """Rows of [CLS] in the last layer, two heads around each mean."""
    kinds = {"sep": "[SEP]"} | {name: name for name in means if name != "sep"}
    common = {"link": "[CLS]", "direction": "from", "layer": 2, "control": None, "n": 9}
    return [
        {**common, "task": task, "head": h, "feature": kinds[name], "attention": mean + step}
        for name, mean in means.items()
        for h, step in enumerate((-0.01, 0.01))
    ]


@pytest.mark.parametrize(
    ("task", "means", "words"),
    [
        ("sst2", {"sep": 0.5, "noun": 0.2, "verb": 0.1}, "holds: [SEP] 0.500, noun 0.200"),
        ("sst2", {"sep": 0.1, "noun": 0.2, "verb": 0.3}, "doesn't hold: verb 0.300"),
        ("rte", {"sep": 0.5, "punctuation": 0.1, "noun": 0.2}, "doesn't hold: [SEP] 0.500"),
        ("rte", {"sep": 0.1, "punctuation": 0.5, "noun": 0.2}, "holds: punctuation 0.500"),
        ("sst2", {"sep": 0.5, "punctuation": 0.1}, "can't tell: [SEP] 0.500"),
        ("sst2", {"sep": 0.1, "punctuation": 0.5}, "doesn't hold: punctuation 0.500"),
        ("", {"sep": 0.5, "noun": 0.2}, "on text of no task: [SEP] 0.500"),
    ],
)
def test_where_cls_looks_is_judged_on_a_tasks_text(task, means, words):
    assert measured(looked_at(task, **means))["cls"].startswith(words)


def test_the_head_noun_of_a_mention():
    (sentence,) = parse_conllu(
        "1\tthe\tthe\tDET\t_\t_\t3\tdet\t_\t_\n2\tcity\tcity\tNOUN\t_\t_\t3\tcompound\t_\t_\n"
        "3\thall\thall\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    )
    assert head_noun(sentence, 0, 3) == 2
    assert head_noun(sentence, 0, 1) is None


def test_links_that_the_text_lacks_are_refused(model, treebank, tmp_path, capsys):
    bare = tmp_path / "bare.conllu"
    bare.write_text(TREEBANK.replace("Entity=(e1)", "_").replace("Entity=(e2)", "_"))
    with pytest.raises(RequestError, match="coreference"):
        rows_of(NAME, model, treebank=str(bare), links=["noun-pronoun"])
    with pytest.raises(RequestError, match="aren't pairs"):
        rows_of(NAME, model, treebank=str(treebank), links=["overlap"])
    with pytest.raises(RequestError, match="verb-subject, noun-pronoun, overlap"):
        rows_of(NAME, model, treebank=str(treebank), links=["verb-object"])
    arguments = ["run", NAME, "--model", model, "--treebank", bare]
    assert run([str(a) for a in arguments] + ["--links", "noun-pronoun"]) == 2
    assert "coreference" in capsys.readouterr().err.splitlines()[-1]
    rows = rows_of(NAME, model, treebank=str(bare))
    assert {row["link"] for row in rows} == {"verb-subject", "[CLS]"}


def test_the_command_runs_and_reports(model, treebank, tmp_path, capsys):
    arguments = ["run", NAME, "--model", model, "--treebank", treebank]
    arguments += ["--out", tmp_path / "run", "--workers", "0"]
    assert run([str(a) for a in arguments]) == 0
    assert "verb-subject (verb→subject)" in capsys.readouterr().out
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.real
def test_minilm_on_a_real_treebank_equals_eager_attention(shared_data):
    from microtome.experiments.annotated_text import treebank_passages

    path = shared_data("data/ud_ewt/en_ewt-ud-dev.conllu")
    rows = rows_of(NAME, "minilm", Rows(limit=12), treebank=str(path))
    tokenizer, plain = load_tokenizer("minilm"), load("minilm")
    known = {sentence.text: sentence for sentence in read_conllu(path)}
    gathered = []
    for passage in treebank_passages(path, limit=12):
        words = known[passage.text].words
        offsets = tokenizer(passage.text, return_offsets_mapping=True)["offset_mapping"]
        ordinary = {p: 0 for p, (a, b) in enumerate(offsets) if a < b}
        pieces = [
            [p for p, (a, b) in enumerate(offsets) if a < w.stop and b > w.start] for w in words
        ]
        links = [
            [(q, k) for q in pieces[w.head - 1] for k in pieces[i] if q != k]
            for i, w in enumerate(words)
            if w.relation.split(":")[0] == "nsubj" and words[w.head - 1].upos in ("VERB", "AUX")
        ]  # fmt: skip
        maps = eager_maps(plain, tokenizer, passage.text)
        if links and (one := moved(maps, links, ordinary)):
            gathered.append(one)
    weight, control = np.mean(gathered, axis=0)
    own = [row for row in rows if row["direction"] == "verb→subject"]
    assert len(own) == 72
    for row in own:
        assert row["attention"] == pytest.approx(weight[row["layer"], row["head"]], abs=1e-5)
        assert row["control"] == pytest.approx(control[row["layer"], row["head"]], abs=1e-5)
