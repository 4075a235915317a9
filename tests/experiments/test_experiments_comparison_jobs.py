"""``microtome compare`` on every job: scored as ``evaluate`` does, rows of a cluster together."""

from __future__ import annotations

import json

import pytest

from microtome.cli import run
from microtome.tasks.embedded import ROLE_TAGS, TOPICS
from support.labelled_texts import sentences
from support.sentence_folders import sentence_folder
from support.tiny import save_tiny

pytestmark = pytest.mark.usefixtures("own_folder")


def named(labels):
    names = dict(enumerate(labels))
    return {"id2label": names, "label2id": {name: index for index, name in names.items()}}


def asked(capsys, *arguments):
    code = run([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def compared(capsys, *arguments):
    code, document = asked(capsys, "compare", *arguments, "--workers", "0", "--quiet")
    assert code == 0, document
    return document


JOBS = {
    "micro-tagging": ("token-classification", named(ROLE_TAGS), 16),
    "micro-topics": (
        "classification", {"problem_type": "multi_label_classification", **named(TOPICS)}, 16,
    ),
    "micro-reranking": ("classification", {"num_labels": 1}, 4),  # queries, of four passages each
    "micro-retrieval": ("embedder", {}, 16),
    "texts.txt": ("mlm", {}, 16),
    "questions.json": ("question-answering", {}, 16),
}  # fmt: skip


def write_questions(folder, *, copies):
    """SQuAD's file: an article for every text, with the same question any number of times."""
    articles = [
        {"title": text, "paragraphs": [{"context": text, "qas": _questions(text, i, copies)}]}
        for i, text in enumerate(sentences(16))
    ]
    document = {"version": "v2.0", "data": articles}
    (folder / "dev-v2.0.json").write_text(json.dumps(document))


def _questions(text, article, copies):
    word = text.split()[article % 2]
    answer = {"text": word, "answer_start": text.index(word)}
    return [
        {
            "id": f"{article}-{copy}", "question": "who sees it?", "is_impossible": False,
            "answers": [answer],
        }
        for copy in range(copies)
    ]  # fmt: skip


def data_of(job, folder):
    if job == "texts.txt":
        (folder / job).write_text("\n".join(sentences(16)))
        return ("--data", folder / job)
    if job == "questions.json":
        write_questions(folder, copies=1)
        return ("--task", "squad2", "--data", folder)
    return ("--task", job, "--limit", "16")


@pytest.mark.parametrize("job", JOBS)
def test_every_job_is_scored_as_evaluate_scores_it(job, capsys, tmp_path):
    head, config, n_units = JOBS[job]
    folders = [
        sentence_folder(tmp_path / family, family)
        if head == "embedder"
        else save_tiny(tmp_path / family, family, head, with_tokenizer=True, seed=seed, **config)
        for seed, family in enumerate(("bert", "roberta"))
    ]
    data = data_of(job, tmp_path)
    document = compared(capsys, *folders, *data, "--out", "run")
    scores = []
    for folder, model in zip(folders, document["models"], strict=True):
        code, alone = asked(capsys, "evaluate", folder, *data, "--quiet")
        assert code == 0, alone
        scores.append(alone["scores"][document["primary"]]["value"])
        assert model["score"] == pytest.approx(scores[-1])
        assert model["constant"] == pytest.approx(alone["constant_scores"][document["primary"]])
        assert model["n"] == n_units
    assert document["differences"][0]["change"] == pytest.approx(scores[1] - scores[0])
    assert document["differences"][0]["n"] == n_units
    assert scores[0] != scores[1], "two models that answer alike prove nothing"


def test_questions_of_one_article_count_as_one_when_a_difference_is_judged(capsys, tmp_path):
    """Asking everything four times instead of twice makes no difference surer."""
    for family in ("bert", "roberta"):
        save_tiny(tmp_path / family, family, "question-answering", with_tokenizer=True)
    found = []
    for copies in (2, 4):
        folder = tmp_path / str(copies)
        folder.mkdir()
        write_questions(folder, copies=copies)
        data = ("--task", "squad2", "--data", folder, "--out", folder / "run")
        found.append(compared(capsys, "bert", "roberta", *data)["differences"][0])
    twice, four_times = found
    assert twice["high"] - twice["low"] > 0.01
    assert four_times["change"] == pytest.approx(twice["change"])
    widths = [pair["high"] - pair["low"] for pair in found]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)  # by rows: narrower by 30 %
    assert four_times["p"] == pytest.approx(twice["p"], abs=0.05)
