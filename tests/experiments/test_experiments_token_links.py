"""Token links: rows against eager maps, heads made by hand, refusals, words against rows."""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
import pytest

from eager_maps import eager_maps
from handmade import HEAD, LAYER, attends_to_previous, attends_to_words
from microtome import load, load_tokenizer
from microtome.cli import run
from microtome.errors import RequestError
from microtome.experiments import Rows, find_experiment, subject_of
from microtome.experiments.annotated_text import gold_passages
from microtome.experiments.link_attention import placements_of
from microtome.experiments.token_links import is_found, measured
from microtome.experiments.word_links import head_noun
from microtome.runs import run_here
from microtome.tasks import open_data
from microtome.tasks.treebanks import parse_conllu, read_conllu
from tiny import tiny_model
from training_rows import tokenizer_for

EXPERIMENT = find_experiment("token-links")
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


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "small.conllu"
    path.write_text(TREEBANK)
    return path


def found(folder, rows=None, **settings):
    subject = subject_of(str(folder), rows or Rows(), needs_rows=False)
    return run_here(EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))[-1]).rows


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
    rows = found(model, treebank=str(treebank))
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
    rows = [row for row in found(model, treebank=str(treebank)) if row["link"] == "[CLS]"]
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
    rows = found(folder, Rows(path=path, pair_column="pair", labels=("no", "yes")))
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


def head_of(rows, direction):
    return next(
        row for row in rows
        if (row["direction"], row["layer"], row["head"]) == (direction, LAYER, HEAD)
    )  # fmt: skip


def test_a_head_made_to_attend_to_subjects_is_found_on_the_gold_text(tmp_path):
    dataset = open_data("micro-sentiment", split="dev").limit(60)
    seen: dict = {}
    for passage in gold_passages(dataset):
        for placed in passage.sentences:
            for word in placed.sentence.words:
                is_subject = word.relation.startswith("nsubj")
                seen.setdefault(word.form.lower(), Counter())[is_subject] += 1
    wanted = {form for form, counts in seen.items() if counts[True] > counts[False]}
    texts = [row.text for row in dataset.rows()]
    folder = attends_to_words(tmp_path / "made", texts, wanted)
    rows = found(folder, Rows(task="micro-sentiment", split="dev", limit=60))
    row = head_of(rows, "verb→subject")
    assert is_found(row)
    assert EXPERIMENT.summary(rows)["verb-subject (verb→subject)"]["head"] == f"{LAYER}.{HEAD}"
    assert row["excess_low"] > 0.1
    assert row["stripe_control"] > 0.5 * row["attention"]  # it is a stripe: every word attends


def test_the_offset_control_rejects_a_pure_previous_token_head(tmp_path):
    """Every subject stands right before its verb: the head's weight is 1 there, and elsewhere."""
    lines = []
    for subject in ("dogs", "cats", "birds", "trees"):
        for verb in ("run", "sing", "sleep"):
            for last in ("here", "there"):
                words = [("the", "DET", 2, "det"), (subject, "NOUN", 3, "nsubj"),
                         (verb, "VERB", 0, "root"), (last, "ADV", 3, "advmod")]  # fmt: skip
                for i, (form, upos, head, relation) in enumerate(words, start=1):
                    lines.append(f"{i}\t{form}\t{form}\t{upos}\t_\t_\t{head}\t{relation}\t_\t_")
                lines.append("")
    path = tmp_path / "adjacent.conllu"
    path.write_text("\n".join(lines) + "\n")
    texts = [sentence.text for sentence in read_conllu(path)]
    folder = attends_to_previous(tmp_path / "made", texts)
    rows = found(folder, treebank=str(path))
    row = head_of(rows, "verb→subject")
    assert row["attention"] > 0.95
    assert row["diagonal"] > 0.7  # its first token has none before it
    assert abs(row["excess"]) < 0.01
    assert not is_found(row)
    ranked = sorted(
        (r for r in rows if r["direction"] == "verb→subject"), key=lambda r: -r["attention"]
    )
    assert (ranked[0]["layer"], ranked[0]["head"]) == (LAYER, HEAD)  # the paper's way finds it


def test_placements_keep_the_offsets_and_stay_in_the_text():
    sides = np.array([-1, 0, 0, 0, 0, -1])
    link = ((3, 1), (3, 2))
    placed = placements_of(link, sides)
    assert [tuple(zip(q, k, strict=True)) for q, k in
            zip(placed.queries.tolist(), placed.keys.tolist(), strict=True)] == [
        ((3, 1), (3, 2)), ((4, 2), (4, 3)),
    ]  # fmt: skip
    assert placed.stripes.tolist() == [[3, 3], [4, 4]]  # from 1 and 2 it would be on its own keys
    assert len(placements_of(link, sides, avoid=[(4, 3)]).queries) == 1
    pair = np.array([-1, 0, 0, -1, 1, 1, -1])
    crossing = placements_of(((1, 4),), pair)
    assert crossing.keys.tolist() == [[4], [5]]  # (2, 5); each end stays on its side


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
        found(model, treebank=str(bare), links=["noun-pronoun"])
    with pytest.raises(RequestError, match="aren't pairs"):
        found(model, treebank=str(treebank), links=["overlap"])
    with pytest.raises(RequestError, match="verb-subject, noun-pronoun, overlap"):
        found(model, treebank=str(treebank), links=["verb-object"])
    arguments = ["run", "token-links", "--model", model, "--treebank", bare]
    assert run([str(a) for a in arguments] + ["--links", "noun-pronoun"]) == 2
    assert "coreference" in capsys.readouterr().err.splitlines()[-1]
    rows = found(model, treebank=str(bare))
    assert {row["link"] for row in rows} == {"verb-subject", "[CLS]"}


def test_the_command_runs_and_reports(model, treebank, tmp_path, capsys):
    arguments = ["run", "token-links", "--model", model, "--treebank", treebank]
    arguments += ["--out", tmp_path / "run", "--workers", "0"]
    assert run([str(a) for a in arguments]) == 0
    assert "verb-subject (verb→subject)" in capsys.readouterr().out
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.real
def test_minilm_on_a_real_treebank_equals_eager_attention(shared_data):
    from microtome.experiments.annotated_text import treebank_passages

    path = shared_data("data/ud_ewt/en_ewt-ud-dev.conllu")
    rows = found("minilm", Rows(limit=12), treebank=str(path))
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
