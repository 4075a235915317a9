"""A run on the page: its figures as data, its frontier, and its model on the table."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import pytest

from microtome.cli import run
from microtome.errors import RequestError
from microtome.explorer.session import Session, SessionRequest
from microtome.explorer.stored_run import StoredRun, is_run
from support.explorer.client import nothing_told, running
from support.explorer.page import OpenPage
from support.training_rows import checkpoint
from support.trimming.cases import case


def document_of(*arguments: object) -> dict:
    heard = io.StringIO()
    with redirect_stdout(heard):
        assert run([str(one) for one in arguments] + ["--json"]) == 0
    return json.loads(heard.getvalue())


@pytest.fixture(scope="module")
def trimmed(tmp_path_factory):
    root = tmp_path_factory.mktemp("trim")
    model, data = case("classification", root)
    command = ["trim", model, *data, "--steps", 2, "--workers", 0, "--run", root / "run"]
    return root / "run", document_of(*command, "--lose", 99, "--out", root / "out")


def test_the_frontier_is_the_trims_own(trimmed):
    folder, document = trimmed
    assert is_run(folder)
    stored = StoredRun.of(folder)
    session = Session(SessionRequest(stored.model, stored.rows, run=stored))
    with running(session) as client:
        assert client.get("/api/frontier").json["cuts"] == [
            document["baseline"], *document["cuts"],
        ]  # fmt: skip
        shown = client.get("/api/run").json
        about = client.get("/api/model").json
    assert about["run"]["has_frontier"]
    assert about["data"]["primary"] == document["primary"]
    assert [(part["name"], part["status"]) for part in shown["experiments"]] == [("trim", "done")]
    kinds = {view["view"] for part in shown["experiments"] for view in part["views"]}
    assert kinds >= {"Curve", "Table"}
    # A cut of the frontier is a click away from being on the table.
    cut = next(cut for cut in document["cuts"] if not cut["healed"])
    edits, stack = session.stacked(cut["edit"])
    assert len(stack.order) == cut["layers"]
    assert session.score(edits, nothing_told)["n"] > 0


def test_a_point_of_the_frontier_is_a_click_away_from_the_table(chromium, trimmed):
    folder, document = trimmed
    stored = StoredRun.of(folder)
    with (
        running(Session(SessionRequest(stored.model, stored.rows, run=stored))) as client,
        OpenPage(chromium, client.door.address) as seen,
    ):
        seen.settled("")
        n_cuts = 1 + len(document["cuts"])
        assert seen.page.locator(".frontier .point.trim").count() == n_cuts
        cut = document["cuts"][0]["edit"]
        seen.page.locator(f'.point.trim[aria-label^="Put on the table: {cut}"]').first.press(" ")
        seen.settled(cut)
        seen.named("tab", "trim").wait_for()
        assert seen.page.locator(".finding").inner_text() == stored.parts[0].finding
        titles = seen.page.locator("#run-panel figcaption").all_inner_texts()
        assert titles == [view.title for view in stored.parts[0].views]
        seen.page.locator("#subject").get_by_role("link").click()
        assert seen.page.get_by_label("Edit", exact=True).input_value() == cut, "jumps keep it"
        assert seen.problems == []


def test_a_run_whose_model_can_not_answer_its_rows_is_shown_without_a_score(tmp_path):
    """Its head came from a fine-tuning; what is on the table is the model before."""
    model, folder = checkpoint(tmp_path / "model", "bert", "mlm"), tmp_path / "run"
    arguments = ["--task", "micro-sentiment", "--limit", 8, "--workers", 0, "--out", folder]
    document_of("run", "decoding", "--model", model, *arguments)
    stored = StoredRun.of(folder)
    session = Session(SessionRequest(stored.model, stored.rows, run=stored))
    about = session.about()
    assert about["data"] is None
    assert "classification head" in about["can"]["why"]["score"]
    assert stored.frontier() == {"cuts": []}
    (part,) = stored.as_json()["experiments"]
    assert part["name"] == "decoding"
    assert part["views"]


def test_of_several_models_and_tasks_the_first_is_on_the_table(tmp_path):
    models = [checkpoint(tmp_path / f"{n}", "bert", "mlm", num_hidden_layers=n) for n in (3, 2)]
    named = ",".join(map(str, models))
    tasks = "micro-acceptability,micro-sentiment"
    asked = ["--model", named, "--tasks", tasks, "--limit", 4, "--workers", 0]
    document_of("run", "decoding", *asked, "--out", tmp_path / "run")
    stored = StoredRun.of(tmp_path / "run")
    assert stored.model == str(models[0])
    assert (stored.rows.task, stored.rows.limit) == ("micro-acceptability", 4)
    assert len(stored.as_json()["experiments"]) == 4
    assert Session(SessionRequest(stored.model, stored.rows, run=stored)).about()["layers"] == 3


def test_a_folder_that_is_no_run_is_refused(tmp_path, trimmed):
    folder, _ = trimmed
    assert not is_run(tmp_path)
    stored = json.loads((folder / "run.json").read_text())
    del stored["request"]["experiments"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.json").write_text(json.dumps(stored))
    (other / "records").symlink_to(folder / "records")
    with pytest.raises(RequestError, match="no run of experiments"):
        StoredRun.of(other)
