"""Token links: the claims from rows, links that a text lacks, the command."""

from __future__ import annotations

import pytest

from microtome.cli import run
from microtome.errors import RequestError
from microtome.experiments import find_experiment
from microtome.experiments.kovaleva.token_links.claims import claims
from support.experiment_rows import rows_of

pytestmark = pytest.mark.usefixtures("own_folder")

NAME = "token-links"
TREEBANK = """\
1	the	the	DET	_	_	2	det	_	_
2	dogs	dog	NOUN	_	_	3	nsubj	_	Entity=(e1)
3	sees	see	VERB	_	_	0	root	_	_
4	birds	bird	NOUN	_	_	3	obj	_	_
5	and	and	CCONJ	_	_	7	cc	_	_
6	it	it	PRON	_	_	7	nsubj	_	Entity=(e1)
7	sings	sing	VERB	_	_	3	conj	_	_

1	a	a	DET	_	_	2	det	_	_
2	cat	cat	NOUN	_	_	3	nsubj	_	_
3	likes	like	VERB	_	_	0	root	_	_
4	cars	car	NOUN	_	_	3	obj	_	_

"""


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "small.conllu"
    path.write_text(TREEBANK)
    return path


def looked_at(task, *, reach=0.02, **means):
    """Rows of [CLS] in the last layer, two heads around each mean."""
    kinds = {"sep": "[SEP]"} | {name: name for name in means if name != "sep"}
    common = {"link": "[CLS]", "direction": "from", "layer": 2, "control": None, "n": 9}
    return [
        {**common, "task": task, "head": h, "feature": kinds[name], "attention": mean + step,
         "low": mean + step - reach, "high": mean + step + reach}
        for name, mean in means.items()
        for h, step in enumerate((-0.01, 0.01))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("candidates", "verdict", "words"),
    [
        ((0, 1, 2), "holds", "3 of the 3 heads with most attention"),
        ((10, 11, 12), "doesn't hold", "none of the 3 heads with most attention"),
        ((0, 1, 12), "can't tell", "2 of the 3 heads with most attention"),
    ],
)
def test_candidates_are_diagonal_heads_or_not(candidates, verdict, words):
    """The first three of thirty heads, a tenth, attend most to the tokens next to them."""
    rows = looked_at("sst2", sep=0.5, nouns=0.2) + [
        {"link": "verb-subject", "direction": "from", "layer": 0, "head": h, "task": "sst2",
         "feature": None, "diagonal": 1 - h / 100, "attention": 0.9 if h in candidates else 0.1}
        for h in range(30)
    ]  # fmt: skip
    found = claims(rows)["diagonal"]
    assert found.verdict == verdict
    assert found.words.startswith(words)


@pytest.mark.parametrize(
    ("task", "means", "words"),
    [
        ("sst2", {"sep": 0.5, "nouns": 0.2, "verbs": 0.1}, "holds: [SEP] 0.500, nouns 0.200"),
        ("sst2", {"sep": 0.1, "nouns": 0.2, "verbs": 0.3}, "doesn't hold: verbs 0.300"),
        ("rte", {"sep": 0.5, "punctuation": 0.1, "nouns": 0.2}, "doesn't hold: [SEP] 0.500"),
        ("rte", {"sep": 0.1, "punctuation": 0.5, "nouns": 0.2}, "holds: punctuation 0.500"),
        ("sst2", {"sep": 0.5, "punctuation": 0.1}, "can't tell: [SEP] 0.500"),
        ("sst2", {"sep": 0.1, "punctuation": 0.5}, "doesn't hold: punctuation 0.500"),
        ("", {"sep": 0.5, "nouns": 0.2}, "on text of no task: [SEP] 0.500"),
    ],
)
def test_where_cls_looks_is_judged_on_a_tasks_text(task, means, words):
    assert str(claims(looked_at(task, **means))["cls"]).startswith(words)


def test_kinds_whose_intervals_meet_are_not_told_apart():
    found = claims(looked_at("sst2", reach=0.2, sep=0.5, nouns=0.2))["cls"]
    assert found.verdict == "can't tell"


def test_as_many_diagonal_heads_are_compared_as_there_are_candidates():
    """Twelve heads lead on one of four links each; they are the twelve most diagonal of thirty."""
    rows = looked_at("sst2", sep=0.5, nouns=0.2) + [
        {"link": link, "direction": direction, "layer": 0, "head": h, "task": "sst2",
         "feature": None, "diagonal": 1 - h / 100, "attention": 0.9 if h // 3 == turn else 0.1}
        for turn, (link, direction) in enumerate(
            (link, direction) for link in ("verb-subject", "noun-pronoun") for direction in "ab")
        for h in range(30)
    ]  # fmt: skip
    assert claims(rows)["diagonal"].verdict == "holds"


def test_links_that_the_text_lacks_are_refused(model, treebank, tmp_path, capsys):
    bare = tmp_path / "bare.conllu"
    bare.write_text(TREEBANK.replace("Entity=(e1)", "_"))
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


def test_only_links_that_were_asked_for_are_said_to_be_absent(model, treebank, tmp_path):
    finding = find_experiment(NAME).finding
    asked = finding(rows_of(NAME, model, treebank=str(treebank), links=["noun-pronoun"]))
    assert "noun-pronoun (noun→pronoun)" in asked
    assert "Not in this text" not in asked
    unasked = finding(rows_of(NAME, model, treebank=str(treebank)))
    assert "Not in this text: overlap." in unasked
    verbless = tmp_path / "verbless.conllu"
    verbless.write_text(TREEBANK.replace("nsubj", "dep"))
    both = ["verb-subject", "noun-pronoun"]
    absent = finding(rows_of(NAME, model, treebank=str(verbless), links=both))
    assert "Not in this text: verb-subject." in absent


def test_the_command_runs_and_reports(model, treebank, tmp_path, capsys):
    arguments = ["run", NAME, "--model", model, "--treebank", treebank]
    arguments += ["--out", tmp_path / "run", "--workers", "0"]
    assert run([str(a) for a in arguments]) == 0
    assert "verb-subject (verb→subject)" in capsys.readouterr().out
    assert (tmp_path / "run" / "report.html").exists()
