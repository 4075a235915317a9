"""Requests to data sets: native folders, one file, own data, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from microtome.errors import DataError, RequestError, RunError
from microtome.tasks import Answer, DataSpec, Row, open_data, open_training
from microtome.tasks.reading.embedded import embedded_rows


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


# ── native files ────────────────────────────────────────────────────────────────────────────────


def test_sst2_keeps_sentences_that_look_like_missing_values(tmp_path):
    write(tmp_path / "dev.tsv", lines("sentence\tlabel", "NA\t1", "null\t0", "\t1", '" half\t0'))
    data = open_data(DataSpec("sst2", tmp_path))
    assert [row.text for row in data.rows()] == ["NA", "null", "", '" half']
    assert data.targets.tolist() == [1, 0, 1, 0]
    assert any("1 rows have an empty text" in note for note in data.notes)


def test_cola_has_no_header(tmp_path):
    write(tmp_path / "dev.tsv", lines("gj04\t1\t\tGood one.", "gj04\t0\t*\tOne good a."))
    data = open_data(DataSpec("cola", tmp_path))
    assert [(row.text, row.label) for row in data.rows()] == [("Good one.", 1), ("One good a.", 0)]
    file = open_data(DataSpec("cola", write(tmp_path / "mine.tsv", "gj04\t1\t\tGood one.\n")))
    assert [row.text for row in file.rows()] == ["Good one."]


def test_mrpc_reads_its_test_labels_from_the_original_file_with_a_bom(tmp_path):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    write(tmp_path / "msr_paraphrase_test.txt", "\ufeff" + lines(header, '1\t7\t8\t" a\tb "'))
    write(
        tmp_path / "test.tsv", lines("index\t#1 ID\t#2 ID\t#1 String\t#2 String", "0\t7\t8\tx\ty")
    )
    data = open_data(DataSpec("mrpc", tmp_path, "test"))
    assert data.labelled
    assert list(data.rows()) == [Row('" a', 'b "', 1)]
    (tmp_path / "msr_paraphrase_test.txt").unlink()
    assert not open_data(DataSpec("mrpc", tmp_path, "test")).labelled


def test_qqp_leaves_out_rows_with_missing_fields_and_says_so(tmp_path):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
    broken = ["3\t4\t5\thalf a", "question?\t0", ""]
    write(tmp_path / "dev.tsv", lines(header, "1\t2\t3\ta\tb\t1", *broken, "9\t2\t3\tc\td\t0"))
    data = open_data(DataSpec("qqp", tmp_path))
    assert [(row.id, row.label) for row in data.rows()] == [("1", 1), ("9", 0)]
    assert any(
        "3 rows with a wrong number of fields left out (line 3, 4, 5)" in n for n in data.notes
    )


def test_snli_rows_without_a_label_are_left_out_and_counted(tmp_path):
    rows = [
        {"gold_label": label, "sentence1": "p", "sentence2": f"h{i}", "pairID": f"{i}"}
        for i, label in enumerate(["entailment", "-", "contradiction", "-", "neutral"])
    ]
    write(tmp_path / "snli_1.0_test.jsonl", lines(*map(json.dumps, rows)))
    data = open_data(DataSpec("snli", tmp_path, "test"))
    assert data.targets.tolist() == [0, 2, 1]
    assert [row.pair for row in data.rows()] == ["h0", "h2", "h4"]
    assert data.n_unlabelled == 2


def test_mnli_reads_its_original_tsv_by_column_name(tmp_path):
    header = "index\tpromptID\tpairID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label"
    write(
        tmp_path / "dev_mismatched.tsv",
        lines(header, "0\t1\t2\tfiction\ta\tb\tneutral\tentailment"),
    )
    data = open_data(DataSpec("mnli", tmp_path, "dev_mismatched"))
    assert list(data.rows()) == [Row("a", "b", 0, "0")]


def test_qnli_rows_that_share_a_question_or_a_sentence_are_one_cluster(tmp_path):
    rows = ["0\tq1\ts1\tentailment", "1\tq1\ts2\tnot_entailment", "2\tq2\ts2\tentailment"]
    rows += ["3\tq3\ts3\tentailment"]
    write(tmp_path / "dev.tsv", lines("index\tquestion\tsentence\tlabel", *rows))
    clusters = open_data(DataSpec("qnli", tmp_path)).clusters.tolist()
    assert clusters[0] == clusters[1] == clusters[2] != clusters[3]


def test_stsb_labels_are_numbers(tmp_path):
    header = (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
    )
    write(tmp_path / "dev.tsv", lines(header, "0\tg\tf\ty\t1\tn\tn\ta\tb\t3.750"))
    data = open_data(DataSpec("stsb", tmp_path))
    assert data.targets.tolist() == [3.75]
    assert list(data.rows()) == [Row("a", "b", 3.75, "0")]


def squad(*questions: dict) -> str:
    paragraph = {"context": "Paris is in France.", "qas": list(questions)}
    return json.dumps({"version": "v2.0", "data": [{"title": "Paris", "paragraphs": [paragraph]}]})


def question(id: str, *answers: tuple[str, int], **more) -> dict:
    found = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": id, "question": f"q{id}", "answers": found, **more}


def test_squad_questions_carry_their_answers_and_their_article(tmp_path):
    plausible = {"plausible_answers": [{"text": "Paris", "answer_start": 0}], "is_impossible": True}
    content = squad(question("a", ("France", 12)), question("b", **plausible))
    data = open_data(DataSpec("squad2", write(tmp_path / "dev-v2.0.json", content).parent))
    first, second = data.rows()
    assert first == Row("qa", "Paris is in France.", (Answer("France", 12),), "a", "Paris")
    assert second.label == ()
    assert data.targets.tolist() == [1, 0]


def test_squad_keys_in_another_order_and_a_cut_file(tmp_path):
    document = json.loads(squad(question("a", ("France", 12))))
    turned = json.dumps({"data": document["data"], "version": "v2.0"})
    assert len(open_data(DataSpec("squad2", write(tmp_path / "x.json", turned)))) == 1
    with pytest.raises(DataError, match="broken JSON"):
        open_data(DataSpec("squad2", write(tmp_path / "y.json", turned[:-2])))
    with pytest.raises(DataError, match="question 2: not in SQuAD's shape"):
        open_data(DataSpec("squad2", write(tmp_path / "z.json", squad(question("a"), {"id": "b"}))))


# ── one file ────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_read_with_the_tasks_columns_or_those_named(tmp_path):
    path = write(tmp_path / "mine.csv", lines("sentence,label", "fine,positive", "bad,0"))
    assert open_data(DataSpec("sst2", path)).targets.tolist() == [1, 0]
    path = write(tmp_path / "other.csv", lines("words,sentence,y", "no,fine,positive"))
    assert [row.text for row in open_data(DataSpec("sst2", path, label_column="y")).rows()] == [
        "fine"
    ]
    assert [
        r.text
        for r in open_data(DataSpec("sst2", path, text_column="words", label_column="y")).rows()
    ] == ["no"]


def test_columns_given_as_numbers_read_a_file_without_a_header(tmp_path):
    path = write(tmp_path / "mine.tsv", lines("how?\twhy?\t1", "who?\twhat?\t0"))
    data = open_data(DataSpec("qqp", path, text_column="1", pair_column="2", label_column="3"))
    assert list(data.rows()) == [Row("how?", "why?", 1), Row("who?", "what?", 0)]


def test_a_text_file_is_a_text_per_line(tmp_path):
    data = open_data(DataSpec(path=write(tmp_path / "a.txt", "one\n\ntwo\u2028still two\r\nthree")))
    assert [row.text for row in data.rows()] == ["one", "two\u2028still two", "three"]
    assert data.task.kind == "text"
    assert any("1 empty lines left out (line 2)" in note for note in data.notes)


@pytest.mark.parametrize(
    ("labels", "kind", "names"),
    [
        (["good", "bad", "good"], "classification", ("bad", "good")),
        (["10", "2", "2"], "classification", ("2", "10")),
        (["0.5", "1", "2.25"], "regression", ()),
        ([str(i) for i in range(30)], "regression", ()),
        (["true", "false", "true"], "classification", ("false", "true")),
    ],
)
def test_the_kind_of_own_data_is_inferred_and_said(tmp_path, labels, kind, names):
    rows = [f"text {i},{label}" for i, label in enumerate(labels)]
    data = open_data(DataSpec(path=write(tmp_path / "a.csv", lines("text,label", *rows))))
    assert (data.task.kind, data.labels) == (kind, names)
    assert kind in data.notes[0]
    assert all(name in data.notes[0] for name in names)


def test_label_names_can_be_given_in_another_order(tmp_path):
    path = write(tmp_path / "a.csv", lines("text,label", "x,good", "y,bad"))
    data = open_data(DataSpec(path=path, labels=("good", "bad", "ugly")))
    assert data.targets.tolist() == [0, 1]
    assert data.task.metrics == ("accuracy", "matthews")


def test_booleans_and_numbers_of_json_lines_are_labels(tmp_path):
    rows = [json.dumps({"text": "x", "label": value}) for value in (True, False)]
    assert open_data(DataSpec(path=write(tmp_path / "a.jsonl", lines(*rows)))).labels == (
        "false",
        "true",
    )
    rows = [json.dumps({"text": "x", "label": value}) for value in (3, 1)]
    assert open_data(DataSpec(path=write(tmp_path / "b.jsonl", lines(*rows)))).targets.tolist() == [
        1,
        0,
    ]


# ── labels that aren't quite the task's ────────────────────────────────────────────────────────


def test_labels_that_differ_in_case_only_are_matched_with_a_note(tmp_path):
    file = write(tmp_path / "a.csv", lines("text,label", "a,Positive", "b,NEGATIVE", "c,positive"))
    data = open_data(DataSpec("sst2", file, text_column="text", label_column="label"))
    assert data.targets.tolist() == [1, 0, 1]
    (note,) = [note for note in data.notes if "differ in case only" in note]
    assert note == (
        "a.csv: labels that differ in case only are one:"
        " 'Positive' as 'positive' (1), 'NEGATIVE' as 'negative' (1)"
    )


def test_own_labels_that_differ_in_case_only_are_one_class_as_most_rows_spell_it(tmp_path):
    rows = ["a,Yes", "b,yes", "c,yes", "d,no", "e,NO", "f,NO"]
    data = open_data(DataSpec(path=write(tmp_path / "a.csv", lines("text,label", *rows))))
    assert data.labels == ("NO", "yes")
    assert data.targets.tolist() == [1, 1, 1, 0, 0, 0]
    assert sum("differ in case only" in note for note in data.notes) == 1


def test_labels_that_are_given_in_two_cases_stay_two(tmp_path):
    file = write(tmp_path / "a.csv", lines("text,label", "a,A", "b,a"))
    data = open_data(DataSpec(path=file, labels=("a", "A")))
    assert data.targets.tolist() == [1, 0]
    assert not any("differ in case only" in note for note in data.notes)


def test_labels_as_they_are_need_no_note(tmp_path):
    file = write(tmp_path / "a.csv", lines("text,label", "a,yes", "b,no"))
    assert not any("case" in note for note in open_data(DataSpec(path=file)).notes)


def test_rows_with_unknown_labels_are_left_out_on_request_and_counted(tmp_path):
    rows = ["a,positive", "b,neutral", "c,negative", "d,neutral", "e,", "f,positive"]
    file = write(tmp_path / "a.csv", lines("text,label", *rows))
    columns = {"text_column": "text", "label_column": "label"}
    with pytest.raises(DataError, match=r"line 3.*'neutral'.*--skip-unknown-labels"):
        open_data(DataSpec("sst2", file, **columns))
    data = open_data(DataSpec("sst2", file, **columns, skip_unknown_labels=True))
    assert [(row.text, row.label) for row in data.rows()] == [
        ("a", 1),
        ("c", 0),
        ("f", 1),
    ]
    assert data.n_unlabelled == 0
    assert "a.csv: 3 rows with unknown labels left out: 'neutral' (2), '' (1)" in data.notes
    own = open_data(DataSpec(path=file, labels=("negative", "positive"), skip_unknown_labels=True))
    assert own.targets.tolist() == [1, 0, 1]


def test_a_scale_with_holes_is_read_without_them_on_request(tmp_path):
    rows = ["a,0.5", "b,", "c,high", "d,1.5"]
    file = write(tmp_path / "a.csv", lines("text,label", *rows))
    with pytest.raises(DataError, match=r"line 3: no label.*--skip-unknown-labels"):
        open_data(DataSpec(path=file, kind="regression"))
    data = open_data(DataSpec(path=file, kind="regression", skip_unknown_labels=True))
    assert data.targets.tolist() == [0.5, 1.5]
    assert any("2 rows with unknown labels left out" in note for note in data.notes)


def test_a_dev_file_with_a_label_of_its_own_can_be_read_without_it(tmp_path):
    train = write(tmp_path / "a.csv", lines("text,label", "a,yes", "b,no", "c,yes"))
    dev = write(tmp_path / "b.csv", lines("text,label", "d,Yes", "e,maybe"))
    rows, measured = open_training(DataSpec(path=train, dev_path=dev, skip_unknown_labels=True))
    assert (rows.labels, measured.targets.tolist()) == (("no", "yes"), [1])
    assert any("'maybe' (1)" in note for note in measured.notes)


# ── refusals ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"task": "sst"}, "no task is called 'sst'; did you mean sst2"),
        ({"task": "mrcp"}, "did you mean mrpc"),
        ({}, "expected a task or data, got neither"),
        ({"path": "."}, "is a folder; say what it holds: --task"),
        ({"path": "nowhere.csv"}, "no file or folder nowhere.csv"),
        ({"task": "sst2", "path": ".", "split": "validation"}, "its splits are train, dev, test"),
        ({"task": "sst2", "path": "a.csv", "split": "dev"}, "--split dev doesn't go with the file"),
        ({"task": "sst2", "path": "."}, "has no sst2 dev: expected dev.tsv"),
        ({"task": "sst2", "text_column": "x"}, "columns expect a file"),
        ({"task": "sst2", "path": ".", "label_column": "x"}, "columns expect a file"),
        (
            {"task": "sst2", "path": ".", "labels": ("a", "b")},
            "--labels and --kind don't go with sst2",
        ),
        ({"task": "sst2", "path": ".", "revision": "x"}, "--revision doesn't go with --data"),
        ({"path": "blank.jsonl"}, "blank.jsonl has no rows"),
        (
            {"path": "a.csv"},
            "has no column 'text'; its columns are 'a', 'b'; name the right one: --text-column",
        ),
        ({"path": "a.csv", "text_column": "a", "label_column": "y"}, "has no column 'y'"),
        ({"path": "semicolons.csv"}, "divided by commas: save it with commas, or as .tsv"),
        ({"task": "squad2", "path": "a.csv"}, "expected SQuAD's .json for squad2, got a.csv"),
        ({"path": "a.json"}, "needs a task; add --task squad2"),
        ({"path": "same.csv"}, "expected at least 2 different labels, got 1"),
        ({"path": "hole.csv"}, "line 3: no label in column 'label'"),
        (
            {"path": "free.csv"},
            "expected labels in column 'label', got 24 different values in 24 rows",
        ),
        (
            {"task": "sst2", "path": "same.csv"},
            "line 2: expected one of negative, positive, got label 'x'",
        ),
        ({"task": "stsb", "path": "pairs.csv"}, "line 2: expected a number, got label 'high'"),
        ({"path": "ids.csv"}, "expected different ids, got '7' at line 2 and 4"),
        ({"path": "header.csv"}, "header.csv has no rows"),
        ({"path": "null.jsonl"}, "line 1: expected a text in 'text', got None"),
        ({"path": "half.jsonl"}, "line 1: 'text' holds half a character"),
        (
            {"path": "same.csv", "labels": ("x", "y"), "kind": "regression"},
            "--labels doesn't go with regression",
        ),
    ],
)
def test_a_wrong_request_is_one_clear_line(tmp_path, monkeypatch, request_, said):
    monkeypatch.chdir(tmp_path)
    write(Path("a.csv"), lines("a,b", "x,1"))
    write(Path("a.json"), "{}")
    write(Path("blank.jsonl"), "\n")
    write(Path("same.csv"), lines("text,label", "x,x", "y,x"))
    write(Path("semicolons.csv"), lines("text;label", "x;1"))
    write(Path("hole.csv"), lines("text,label", "x,x", "y,"))
    write(Path("free.csv"), lines("text,label", *(f"x,word {i}" for i in range(24))))
    write(Path("pairs.csv"), lines("sentence1,sentence2,score", "a,b,high"))
    write(Path("ids.csv"), lines("id,text,label", "7,a,x", "8,b,y", "7,c,x"))
    write(Path("header.csv"), "text,pair\n")
    write(Path("null.jsonl"), '{"text": null}\n')
    write(Path("half.jsonl"), '{"text": "\\ud800"}\n')
    with pytest.raises(RequestError, match=said) as caught:
        open_data(DataSpec(**request_))
    assert "\n" not in str(caught.value)


def test_a_file_that_changes_under_our_hands_is_noticed(tmp_path):
    path = write(tmp_path / "a.csv", lines("text,label", "x,0", "y,1"))
    data = open_data(DataSpec(path=path))
    write(path, lines("text,label", "x,0", "y,1", "z,1"))
    with pytest.raises(RunError, match="has changed"):
        list(data.rows())


# ── training and embedded tasks ─────────────────────────────────────────────────────────────────


def test_training_takes_two_splits_two_files_or_one_split_in_two(tmp_path):
    rows = [f"row {i},{i % 2}" for i in range(50)]
    file = write(tmp_path / "a.csv", lines("text,label", *rows))
    train, dev = open_training(DataSpec(path=file))
    assert (train.split, dev.split) == ("train", "dev")
    assert (len(train), len(dev)) == (40, 10)
    other = write(tmp_path / "b.csv", lines("text,label", "only,1"))
    train, dev = open_training(DataSpec(path=file, dev_path=other))
    assert (len(train), dev.labels, dev.targets.tolist()) == (50, ("0", "1"), [1])
    write(tmp_path / "train.tsv", lines("sentence\tlabel", "a\t0"))
    write(tmp_path / "dev.tsv", lines("sentence\tlabel", "b\t1", "c\t1"))
    train, dev = open_training(DataSpec(task="sst2", path=tmp_path))
    assert (len(train), len(dev)) == (1, 2)
    with pytest.raises(RequestError, match="--dev-data goes with"):
        open_training(DataSpec(task="sst2", path=tmp_path, dev_path=other))


def test_an_embedded_task_gives_the_rows_that_ship():
    data = open_data(DataSpec("micro-sentiment"))
    assert tuple(data.rows()) == embedded_rows("micro-sentiment", "dev")
    train, dev = open_training(DataSpec("micro-sentiment"))
    assert (len(train), len(dev)) == (4000, 800)
    assert data.notes == ()
