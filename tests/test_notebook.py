"""An experiment in one call gives what the command gives, and shows itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import microtome
from microtome import MicrotomeError, Remove, experiment
from microtome.cli import run
from microtome.errors import MissingExtra, RequestError
from microtome.models import load, save
from microtome.runs import open_run
from microtome.views import Table
from support.tiny import tiny_model
from support.training_rows import checkpoint, rows

ROOT = Path(__file__).resolve().parent.parent
SVG = "{http://www.w3.org/2000/svg}svg"


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    return checkpoint(folder / "mine", head="classification", num_labels=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    rows(folder, n=24)
    return next(folder.glob("*.jsonl"))


@pytest.fixture(scope="module")
def kept(classifier, data, tmp_path_factory):
    """A result whose run is kept."""
    out = tmp_path_factory.mktemp("kept") / "RUN"
    return experiment("layer-removal")(classifier, data, out=out)


def without_times(rows: list[dict]) -> list[dict]:
    """Speeds are measured anew every time."""
    return [{k: v for k, v in row.items() if "speed" not in k and "ms" not in k} for row in rows]


def test_it_gives_what_the_command_gives(kept, classifier, data, tmp_path, capsys):
    command = ["run", "layer-removal", "--model", str(classifier), "--data", str(data)]
    assert run([*command, "--out", str(tmp_path / "run"), "--workers", "0", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert without_times(kept.rows) == without_times(document["rows"])
    assert kept.summary.keys() == document["summary"].keys()
    assert list(kept.notes) == document["notes"]


def test_out_keeps_a_run_with_its_report(kept):
    assert (kept.folder / "report.html").is_file()
    assert open_run(kept.folder).ok
    assert kept.finding in kept._repr_html_().replace("&#39;", "'")


def test_the_frame_has_the_rows(kept):
    frame = kept.frame()
    assert list(frame.columns) == list(kept.table().column_names)
    assert frame["value"].tolist() == [row["value"] for row in kept.rows]
    assert kept.table().select(["value", "metric"]).to_pylist() == [
        {"value": row["value"], "metric": row["metric"]} for row in kept.rows
    ]


def test_without_pandas_the_extra_is_named(kept, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'microtome-lab\[notebook\]'"):
        kept.frame()
    assert kept.table().num_rows == len(kept.rows)


def test_every_figure_is_an_svg_of_its_own(kept):
    plots = kept.plot()
    drawn = [v for v in kept.study.parts[0].views if not isinstance(v, Table)]
    assert len(plots) == len(drawn) > 0
    assert {ElementTree.fromstring(plot).tag for plot in plots} == {SVG}
    assert plots[0]._repr_svg_() == plots[0]
    assert ElementTree.fromstring(f"<p>{plots._repr_html_()}</p>").findall(f"div/{SVG}")


def test_a_model_in_memory_is_measured_as_its_folder_would_be(classifier, data, tmp_path):
    edited = Remove(1)(load(classifier))
    found = experiment("head-disabling")(edited, data, splits=0, random_sets=0)
    folder = save(edited, tmp_path / "edited")
    wanted = experiment("head-disabling")(str(folder), str(data), splits=0, random_sets=0)
    assert found.rows[0]["model"] == f"{classifier} | remove(1)"
    assert [row | {"model": ""} for row in found.rows] == [
        row | {"model": ""} for row in wanted.rows
    ]
    assert "head-disabling" in repr(found)


@pytest.mark.parametrize(
    ("arguments", "settings", "told"),
    [
        (("no-such-folder", "micro-sentiment"), {"no_such": 1}, "no option 'no_such'"),
        ((None, "micro-sentiment"), {}, "no model is named"),
        (("nano-bert", "micro-sentimen"), {}, "did you mean micro-sentiment"),
        (("nano-bert",), {}, "expected a task or data, got neither"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_line(arguments, settings, told):
    with pytest.raises(MicrotomeError, match=told):
        experiment("decoding")(*arguments, **settings)


def test_a_model_without_an_origin_is_refused():
    with pytest.raises(RequestError, match=r"one that microtome\.load gave, got a BertForMaskedLM"):
        experiment("decoding")(tiny_model("bert"), "micro-sentiment")


def test_a_run_without_a_folder_is_gone_when_the_process_ends(classifier, data):
    code = (
        "import microtome\n"
        f"result = microtome.experiment('head-disabling')({str(classifier)!r}, {str(data)!r},"
        " splits=0, random_sets=0)\n"
        "assert (result.folder / 'results.parquet').is_file()\n"
        "print(result.folder)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    folder = Path(done.stdout.strip().splitlines()[-1])
    assert not folder.parent.exists()
    assert "ResourceWarning" not in done.stderr


def test_an_experiment_shows_its_options():
    asked = experiment("head-disabling")
    assert asked.options == {one.name: one.default for one in asked.experiment.options}
    assert "<code>random_sets</code>" in asked._repr_html_()


def test_a_certificate_shows_its_checks():
    found = microtome.Certificate(
        (microtome.Check("layers", True, "1 < 2"), microtome.Check("other", None, "not here"))
    )
    cells = [
        cell.text for cell in ElementTree.fromstring(f"<p>{found._repr_html_()}</p>").iter("td")
    ]
    assert cells == ["ok", "layers", "1 < 2", "not run", "other", "not here"]


def test_runs_are_read_as_the_docs_say(kept, monkeypatch):
    page = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    section = page.partition("## Reading a run")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert [re.match(r"import (\w+)", block)[1] for block in blocks] == [
        "pandas",
        "polars",
        "duckdb",
    ]
    monkeypatch.chdir(kept.folder.parent)
    best = sorted((row["value"] for row in kept.rows if row["value"] is not None), reverse=True)
    given = []
    for block in blocks:
        *lines, last = block.strip().splitlines()
        names: dict = {}
        exec("\n".join(lines), names)
        given.append(eval(last, names))
    assert given[0]["value"].tolist() == given[1]["value"].to_list() == best[:3]
    ((file, most),) = given[2]
    assert (Path(file).name, most) == ("results.parquet", best[0])
