"""``microtome explore``: an address, a quiet end, and refusals in a line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from microtome.cli import exploring, run
from microtome.examination import default_model
from microtome.explorer import serving
from microtome.explorer.session import Session
from support.trimming.cases import case


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def command(tmp_path):
    model, options = case("classification", tmp_path)
    return ["explore", str(model), "--data", options[options.index("--dev-data") + 1]]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_an_address_answers_and_ends_quietly(command, stop):
    code = "import sys; from microtome.cli import main; main()"
    started = subprocess.Popen(
        [sys.executable, "-c", code, *command, "--no-browser", "--json"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip
    lines = []
    while not lines or lines[-1] != "}\n":
        lines.append(started.stdout.readline())
        assert lines[-1], started.stderr.read()
    document = json.loads("".join(lines))
    assert (document["model"], document["task"]) == (command[1], "dev.csv")
    with urllib.request.urlopen(document["address"]) as page:
        assert page.status == 200
    started.send_signal(stop)
    out, said = started.communicate(timeout=120)
    assert started.returncode in ((0,) if stop == signal.SIGINT else (0, -signal.SIGTERM))
    assert out == ""
    assert said.splitlines() == [
        f"opening {command[1]}", f"exploring {command[1]} on 40 rows of dev.csv; Ctrl-C ends it",
    ]  # fmt: skip


def refused(capsys, arguments) -> str:
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err.splitlines()[-1]


def test_what_can_not_work_is_refused_in_a_line(command, capsys, tmp_path):
    assert "no such folder" in refused(capsys, ["explore", str(tmp_path / "missing")])
    assert "expects a folder" in refused(capsys, [*command, "--out", str(tmp_path / "missing")])
    assert "no task" in refused(capsys, [*command[:2], "--task", "nothing"]).lower()
    line = refused(capsys, [*command, "--host", "0.0.0.0"])
    assert "--i-know" in line
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(capsys, [*command, "--port", str(port)])
    assert f"port {port} can't be opened: address already in use" in line
    assert "give another --port" in line


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_a_missing_package_names_the_line_that_installs_it(package, capsys, monkeypatch):
    there = exploring.find_spec
    monkeypatch.setattr(
        exploring, "find_spec", lambda name: None if name == package else there(name)
    )
    line = refused(capsys, ["explore"])
    assert line == (f"microtome: {package} is not installed; pip install 'microtome-lab[explorer]'")


def opened(monkeypatch, arguments) -> tuple[Session, str]:
    """What would be served, and where."""
    served = []

    def serve(session, door, *, browser):
        served.append((session, door.address))

    monkeypatch.setattr(serving, "serve", serve)
    assert run([*arguments, "--no-browser"]) == 0
    return served[0]


def test_without_arguments_the_embedded_model_and_task_are_opened(monkeypatch, capsys):
    session, address = opened(monkeypatch, ["explore"])
    assert session.name == default_model()
    assert len(session.dataset) == 200
    assert address in capsys.readouterr().out


def test_other_machines_are_let_in_with_a_warning(monkeypatch, capsys, command):
    _, address = opened(monkeypatch, [*command, "--host", "0.0.0.0", "--i-know"])
    assert "warning" in capsys.readouterr().err
    assert "0.0.0.0" not in address  # nobody can open that


def test_a_run_names_its_model_and_rows(monkeypatch, capsys, command, tmp_path):
    folder = str(tmp_path / "run")
    options = ["--model", command[1], "--data", command[3], "--workers", "0", "--out", folder]
    assert run(["run", "layer-removal", *options]) == 0
    session, _ = opened(monkeypatch, ["explore", folder])
    assert session.run is not None
    assert len(session.dataset) == 40
    capsys.readouterr()
    assert "is a run" in refused(capsys, ["explore", folder, "--task", "micro-sentiment"])
