"""What a person meets first: the bare command, the names of the package, the words of finetune."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import microtome
from microtome import models, tasks
from microtome.cli import run
from microtome.cli.application import app
from support.labelled_texts import write_cats
from support.sentence_folders import sentence_folder
from support.tiny import save_tiny


def test_the_bare_command_prints_its_help_as_with_the_option(capsys):
    assert run([]) == 0
    bare = capsys.readouterr()
    assert run(["--help"]) == 0
    assert capsys.readouterr().out == bare.out
    assert len(bare.out.splitlines()) > 10
    assert bare.err == ""
    assert "examine" in bare.out


@pytest.mark.parametrize("package", [microtome, models, tasks])
def test_a_package_lists_the_names_that_it_imports_late(package):
    assert set(package.__all__) <= set(dir(package))
    assert "__name__" in dir(package)


def test_listing_the_names_loads_no_torch():
    code = "import sys, microtome; dir(microtome); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_finetune_counts_rows_and_epochs_as_people_do(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))
    model = save_tiny(tmp_path / "base", with_tokenizer=True)
    data = write_cats(tmp_path / "rows.csv", 60)
    asked = ["finetune", str(model), "--data", str(data), "--fraction", "12"]
    assert run([*asked, "--epochs", "2", "--out", str(tmp_path / "two")]) == 0
    heard = capsys.readouterr()
    assert "12 rows of rows.csv to train on (of 48), 12 to score" in heard.err
    assert "after epoch 2 of 2" in heard.out
    assert re.search(r"one constant answer: accuracy [5-9]\d\.\d\d, f1 \d+", heard.out)
    assert run([*asked[:4], "--epochs", "1", "--out", str(tmp_path / "one")]) == 0
    heard = capsys.readouterr()
    assert "48 rows of rows.csv to train on, 12 to score" in heard.err
    assert "after 1 epoch " in heard.out


def test_finetune_takes_pairs_with_a_number_as_similarity_where_the_model_is_an_embedder(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))
    asked = ["finetune", str(sentence_folder(tmp_path / "base")), "--task", "micro-similarity"]
    asked += ["--fraction", "8", "--limit", "8", "--epochs", "1", "--json"]
    primary = {}
    for name, more in (("as it is", []), ("head", ["--kind", "regression"])):
        assert run([*asked, *more, "--out", str(tmp_path / name)]) == 0
        heard = capsys.readouterr()
        primary[name] = json.loads(heard.out)["primary"]
        assert ("as an embedder (--kind regression: a head)" in heard.err) == (not more)
    assert primary == {"as it is": "cosine_spearman", "head": "pearson"}
    assert (tmp_path / "as it is" / "modules.json").is_file()


def test_quiet_commands_say_their_result_and_their_errors_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))
    model = save_tiny(tmp_path / "base", with_tokenizer=True)
    asked = ["run", "decoding", "--model", str(model), "--task", "micro-topics", "--limit", "8"]
    asked += ["--workers", "0", "--out"]
    assert run([*asked, str(tmp_path / "quiet"), "--quiet"]) == 0
    heard = capsys.readouterr()
    assert heard.err == ""
    assert "report.html" in heard.out
    assert run([*asked, str(tmp_path / "loud")]) == 0
    assert "decoding of" in capsys.readouterr().err
    assert run(["run", "nothing", "--quiet"]) == 2
    assert "no experiment is called 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [command.name for command in app.registered_commands])
def test_every_command_takes_json_and_quiet(capsys, command):
    assert run([command, "--help"]) == 0
    heard = capsys.readouterr().out
    assert "--json" in heard
    assert "--quiet" in heard
