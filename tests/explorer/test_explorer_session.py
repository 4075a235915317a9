"""What the page shows of an edit is what the saved folder gives: score, answers, attention."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from microtome.cli import run
from microtome.cli.option_groups import spec_of
from microtome.edits import Edits
from microtome.errors import EditError, ModelError, RequestError
from microtome.explorer.session import Session, SessionRequest
from microtome.explorer.texts import LARGEST_SMALL_MAP
from microtome.tasks import DataSpec
from support.eager_maps import eager_maps
from support.explorer.client import nothing_told
from support.tiny import AUTO_CLASSES
from support.training_rows import checkpoint, tokenizer_for
from support.trimming.cases import FAMILIES, case
from support.trimming.lessons import model_for

JOBS = tuple(FAMILIES)
TEXT, PAIR = "the cat sees a big red dog", "she sings and he never sleeps"


def evaluated(model: Path, options: list[str]) -> dict:
    heard = io.StringIO()
    with redirect_stdout(heard):
        assert run(["evaluate", str(model), *options, "--json"]) == 0
    document = json.loads(heard.getvalue())
    return document["scores"][document["primary"]]


def measured_options(options: list[str]) -> list[str]:
    """The options of a trim, as they name the rows that are measured."""
    given = dict(zip(options[::2], options[1::2], strict=True))
    given.pop("--text", None)
    if dev := given.pop("--dev-data", None):
        given["--data"] = dev
    return [part for pair in given.items() for part in pair]


def spec(options: list[str]) -> DataSpec:
    named = {k[2:].replace("-", "_"): v for k, v in zip(options[::2], options[1::2], strict=True)}
    return spec_of(**named | ({"data": Path(named["data"])} if "data" in named else {}))


@pytest.fixture(scope="module", params=JOBS)
def opened(request, tmp_path_factory):
    """The job, its session, the options that name its rows, an edit that its family takes."""
    root = tmp_path_factory.mktemp(request.param)
    model, options = case(request.param, root)
    rows = measured_options(options)
    session = Session(SessionRequest(str(model), spec(rows), out=root))
    is_shared = FAMILIES[request.param] == "albert"
    return request.param, session, rows, "remove(2)" if is_shared else "remove(1) | disable(0.1)"


def test_the_score_is_that_of_the_saved_folder(opened):
    _, session, rows, edit = opened
    edits, _ = session.stacked(edit)
    found = session.score(edits, nothing_told)
    saved = session.save(edits, "cut")
    assert saved["certificate"]["passed"]
    for side, model in (("base", session.name), ("now", saved["out"])):
        expected = evaluated(model, rows)
        assert found[side] == {name: expected[name] for name in ("value", "low", "high")}
        assert found["n"] == expected["n"]
    assert found["change"] == pytest.approx(found["now"]["value"] - found["base"]["value"])
    assert found["change_low"] <= found["change"] <= found["change_high"]
    whole = session.score(session.stacked("")[0], nothing_told)
    assert whole["now"] == whole["base"] == found["base"]
    assert [whole[name] for name in ("change", "change_low", "change_high")] == [0, 0, 0]
    assert found["now"] != found["base"]  # else nothing of this would show an edit that isn't there


def test_every_row_is_shown(opened):
    _, session, _, _ = opened
    first, n = session.rows(0, 3), session.about()["data"]["n"]
    assert first["n"] == n
    assert [row["text"] for row in first["rows"]] == [
        row.text for row, _ in zip(session.dataset.rows(), range(3), strict=False)
    ]
    assert session.rows(n - 1, 50)["rows"] == session.rows(0, n)["rows"][-1:]
    assert session.rows(n, 5)["rows"] == []


@torch.no_grad()
def test_answers_are_those_of_plain_transformers(opened):
    job, session, _, edit = opened
    edits, _ = session.stacked(edit)
    text = f"{TEXT} {tokenizer_for(FAMILIES[job]).mask_token}" if job == "mlm" else TEXT
    pair = PAIR if job in ("spans", "similarity", "reranking") else None
    shown = session.text(text, pair, edits)
    place = session.save(edits, "answering")["out"]
    if job == "similarity":
        sentences = SentenceTransformer(place), SentenceTransformer(session.name)
        now, before = (each.encode([text, pair]) for each in sentences)
        close = [now[0] @ now[1], now[0] @ before[0]]  # Normalize is the folder's last module
        assert [each["share"] for each in shown["after"]] == pytest.approx(close, abs=1e-4)
        return
    head = {"tokens": "token-classification", "spans": "question-answering", "mlm": "mlm"}
    plain = AUTO_CLASSES[head.get(job, "classification")].from_pretrained(place).eval()
    batch = tokenizer_for(FAMILIES[job])(text, pair, return_tensors="pt")
    if FAMILIES[job] in ("roberta", "modernbert"):
        batch.pop("token_type_ids", None)
    output = plain(**batch)
    _compare(job, shown, output, session, batch)


def _compare(job, shown, output, session, batch):
    shares = [each["share"] for each in shown["after"]]
    if job == "spans":
        start, end = output.start_logits[0], output.end_logits[0]
        best = shown["after"][0]["label"]
        first = batch["token_type_ids"][0].argmax().item()  # of the passage
        pairs = [
            (float(start[i] + end[j]), i, j)
            for i in range(first, len(start) - 1)
            for j in range(i, min(i + 30, len(start) - 1))
        ]
        score, i, j = max(pairs)
        words = tokenizer_for("bert").decode(batch["input_ids"][0][i : j + 1])
        assert best == ("" if float(start[0] + end[0]) > score else words)
        return
    logits = output.logits[0]
    if job == "mlm":
        mask = (batch["input_ids"][0] == tokenizer_for("modernbert").mask_token_id).nonzero().item()
        assert {each["token"] for each in shown["after"]} == {mask}
        expected = logits[mask].softmax(-1).topk(len(shares)).values
    elif job == "tokens":
        best = logits.softmax(-1).max(-1)
        expected = best.values[1:-1]  # without <s> and </s>
        labels = [session.reader.labels[index] for index in best.indices[1:-1].tolist()]
        assert [each["label"] for each in shown["after"]] == labels
    else:
        expected = logits.sigmoid() if len(logits) == 1 else logits.softmax(-1)
    assert shares == pytest.approx(expected.tolist(), abs=1e-4)


def test_attention_is_that_of_plain_transformers(session):
    edits, _ = session.stacked("remove(1) | disable(0.1)")
    place = session.save(edits, "attending")["out"]
    for which, model in (("before", session.name), ("after", place)):
        plain = AUTO_CLASSES["classification"].from_pretrained(model).eval()
        expected = eager_maps(plain, tokenizer_for("bert"), TEXT)
        maps, n_tokens = session.attention(TEXT, None, edits, which, None)
        assert (maps.shape, n_tokens) == (expected.shape, expected.shape[-1])
        assert np.abs(maps / 255 - expected).max() <= 0.5 / 255 + 1e-5
    one, _ = session.attention(TEXT, None, edits, "after", (1, 2))
    assert np.array_equal(one, maps[1:2, 2:3])
    assert np.allclose(maps[0, 1] / 255, 1 / n_tokens, atol=1 / 255)  # the head that is off
    with pytest.raises(RequestError, match=r"no head 2\.0"):
        session.attention(TEXT, None, edits, "after", (2, 0))


def test_maps_of_long_texts_are_averaged_down(tmp_path):
    model = checkpoint(tmp_path / "long", "bert", "mlm", max_position_embeddings=300)
    tokenizer = tokenizer_for("bert")
    tokenizer.model_max_length = 300
    tokenizer.save_pretrained(model)
    session = Session(SessionRequest(str(model)))
    maps, n_tokens = session.attention("cat " * 250, None, session.stacked("")[0], "before", None)
    assert maps.shape[-2:] == (LARGEST_SMALL_MAP, LARGEST_SMALL_MAP)
    assert n_tokens == 252
    whole, _ = session.attention("cat " * 250, None, session.stacked("")[0], "before", (0, 0))
    assert whole.shape == (1, 1, 252, 252)
    assert maps[0, 0].mean() == pytest.approx(whole.mean(), abs=1)


def test_a_model_that_reads_on_is_shown_512_tokens(tmp_path):
    """Its maps at 8,192 tokens would be gigabytes."""
    model = checkpoint(tmp_path / "long", "modernbert", "mlm", max_position_embeddings=8192)
    tokenizer = tokenizer_for("modernbert")
    tokenizer.model_max_length = 8192
    tokenizer.save_pretrained(model)
    session = Session(SessionRequest(str(model)))
    assert session.about()["max_length"] == 512
    assert session.attention("cat " * 5000, None, session.stacked("")[0], "before", None)[1] == 512


def test_depths_are_those_of_the_edited_model(session, capsys):
    """As ``microtome decode`` reads the saved folder."""
    edits, _ = session.stacked("remove(1)")
    place = session.save(edits, "decoded")["out"]
    shown = session.text(TEXT, None, edits, control=True)
    assert run(["decode", place, "--text", TEXT, "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert shown["tokens"] == expected["input"]
    assert [row["tokens"] for row in shown["depths"]] == [
        row["decoded"] for row in expected["depths"]
    ]
    for row in shown["depths"]:
        assert row["right"] == [a == b for a, b in zip(row["tokens"], shown["tokens"], strict=True)]
        assert len(row["control"]) == len(row["right"])
    assert shown["depths"][0]["control"] == shown["depths"][0]["right"]  # the same embeddings


def test_the_base_stays_as_it_was(session):
    before = {name: value.clone() for name, value in session.model.state_dict().items()}
    for text in ("disable(0.*)", "reinit(1, seed=0)", "randomize(seed=2)", "order(2, 1, 0)"):
        edits, _ = session.stacked(text)
        session.text(TEXT, None, edits, control=True)
        session.score(edits, nothing_told)
    after = session.model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


@pytest.mark.parametrize(
    ("family", "head", "lacking"),
    [
        ("bert", "none", {"predict", "score"}),
        ("bert", "classification", {"score"}),
        ("bert", "mlm", set()),
        ("mpnet", "mlm", {"disable"}),
        ("albert", "mlm", {"single_heads"}),
    ],
)
def test_what_a_model_can_not_do_is_said(family, head, lacking, tmp_path):
    session = Session(SessionRequest(str(checkpoint(tmp_path / "model", family, head))))
    about = session.about()
    assert {name for name, able in about["can"].items() if able is False} == lacking
    assert about["can"]["why"].keys() == lacking
    shown = session.text(TEXT, None, session.stacked("remove(2)")[0])
    assert len(shown["depths"]) == 3
    assert shown["before"] == [] or head == "classification"
    if "score" in lacking:
        with pytest.raises(RequestError, match="no score"):
            session.score(session.stacked("")[0], nothing_told)
    if "disable" in lacking:
        with pytest.raises(EditError, match="position bias"):
            session.stacked("disable(0.1)")
    if "single_heads" in lacking:
        with pytest.raises(EditError, match="same weights"):
            session.stacked("disable(0.1)")


def test_without_rows_a_masked_lm_is_scored_on_words_of_an_embedded_task():
    session = Session(SessionRequest("nano-bert"))
    found = session.score(session.stacked("")[0], nothing_told)
    assert (found["metric"], found["n"]) == ("masked_accuracy", 200)
    assert session.rows(0, 1)["rows"][0]["label"] is None  # the task's labels have no part in it
    assert session.score(session.stacked("remove(0-5)")[0], nothing_told)["change"] < 0


def test_a_second_model_is_looked_at_in_the_same_tokens(classifier, tmp_path):
    model, rows = classifier
    other = model_for("classification", tmp_path / "other", num_hidden_layers=2)
    session = Session(SessionRequest(str(model), DataSpec(path=rows), second=str(other)))
    maps, _ = session.attention(TEXT, None, session.stacked("")[0], "second", None)
    plain = AUTO_CLASSES["classification"].from_pretrained(other).eval()
    expected = eager_maps(plain, tokenizer_for("bert"), TEXT)
    assert maps.shape == expected.shape
    assert np.abs(maps / 255 - expected).max() <= 0.5 / 255 + 1e-5
    with pytest.raises(RequestError, match="other tokens"):
        Session(SessionRequest(str(model), second="nano-bert"))


def test_what_can_not_be_opened_is_refused(classifier, tmp_path):
    model, _ = classifier
    with pytest.raises(ModelError):
        Session(SessionRequest(str(tmp_path / "missing")))
    with pytest.raises(RequestError, match="needs a classification head"):
        Session(SessionRequest("nano-bert", DataSpec("micro-sentiment")))
    bare = tmp_path / "bare"
    model_for("classification", bare)
    (bare / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="no tokenizer"):
        Session(SessionRequest(str(bare)))
    with pytest.raises(EditError, match="nothing to save"):
        Session(SessionRequest(str(model))).save(Edits(), "x")


def test_a_pooled_encoder_is_saved_as_a_folder_of_sentence_transformers(tmp_path):
    model = checkpoint(tmp_path / "encoder", "bert", "none")
    session = Session(SessionRequest(str(model), DataSpec(pooling="mean"), out=tmp_path))
    assert session.job == "embedding"
    assert session.about()["operate"] is None, "it has no --pooling"
    edits, _ = session.stacked("remove(1)")
    shown = session.text(TEXT, PAIR, edits)["after"][0]["share"]
    one, two = SentenceTransformer(session.save(edits, "pooled")["out"]).encode([TEXT, PAIR])
    assert shown == pytest.approx(one @ two / np.linalg.norm(one) / np.linalg.norm(two), abs=1e-4)
