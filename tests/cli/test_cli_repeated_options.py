"""An option that takes one value is refused when it is given twice, in every command."""

from __future__ import annotations

import json

import pytest
import typer.main

from microtome.cli import run
from microtome.cli.application import Command, app

TWICE = [
    (["run", "decoding", "--model", "a", "--model", "b"], "--model was given 2 times"),
    (["run", "decoding", "--model=a", "--model=b"], "--model was given 2 times"),
    (["run", "decoding", "--model=a", "--task", "x", "--model", "b"], "--model was given 2 times"),
    (["run", "head-disabling", "--splits", "2", "--splits=3"], "--splits was given more than once"),
    (["run", "decoding", "--special", "--special"], "--special was given more than once"),
    (["examine", "m", "--seed", "1", "--seed=1", "--seed", "2"], "--seed was given 3 times"),
    (["evaluate", "m", "--task", "sst2", "--task=cola"], "--task was given 2 times"),
    (["operate", "m", "extend(15)", "--out", "a", "--out", "b"], "--out was given 2 times"),
    (["decode", "m", "--text", "a", "--text", "b"], "--text was given 2 times"),
    (["finetune", "m", "--seed=0", "--seed=0", "--out", "x"], "--seed was given 2 times"),
    (["cache", "--clear", "--clear"], "--clear was given 2 times"),
]


@pytest.mark.parametrize(("arguments", "problem"), TWICE)
def test_a_single_option_given_twice_is_refused_in_one_line(capsys, arguments, problem):
    assert run(arguments) == 2
    heard = capsys.readouterr()
    (line,) = heard.err.splitlines()
    assert f"{problem}, expected once" in line
    assert heard.out == ""
    assert run([*arguments, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["error"]["kind"] == "RequestError"
    assert document["error"]["message"] in line


def test_options_that_may_be_repeated_still_may(capsys):
    """Both are read: the second one is what is wrong here."""
    arguments = ["examine", "--without", "decoding", "--without", "no-such-part"]
    assert run(arguments) == 2
    assert "no-such-part" in capsys.readouterr().err
    arguments = ["finetune", "nano-bert", "--edit", "keep(0-5)", "--edit", "keep(", "--out", "x"]
    assert run(arguments) == 2
    assert "keep(" in capsys.readouterr().err


def test_every_command_has_the_check():
    group = typer.main.get_command(app)
    assert len(group.commands) >= 10
    assert all(isinstance(command, Command) for command in group.commands.values())
