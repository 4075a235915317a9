"""The options of one experiment on the command line, from the list that the experiment gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from microtome.errors import RequestError

if TYPE_CHECKING:
    from microtome.experiments import Experiment
    from microtome.experiments.kit.options import Option

# What ``run`` itself doesn't know is left to the experiment.
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def read_options(experiment: Experiment, arguments: Sequence[str]) -> dict[str, Any]:
    """``--name value`` and ``--name=value`` for what the experiment lists; others are refused."""
    known = {option.flag: option for option in experiment.options}
    settings: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if flag not in known:
            raise RequestError(
                f"{experiment.name} has no option {flag!r}",
                f"see microtome run {experiment.name} --help",
            )
        option = known[flag]
        if option.name in settings:
            raise RequestError(
                f"{flag} was given more than once, expected once", "keep the one that you mean"
            )
        if option.kind == "flag":
            if equals:
                raise RequestError(f"{flag} takes no value, got {value!r}", f"write {flag} alone")
            settings[option.name] = True
            continue
        if not equals:
            if not rest:
                raise RequestError(f"{flag} needs a value", option.help)
            value = rest.pop(0)
        settings[option.name] = option.read(value)
    return settings


def help_of(context: typer.Context, name: str | None) -> str:
    """The help of ``run``, with the question and the options of the experiment named."""
    text = context.get_help()
    return text if name is None else f"{text}\n\n{experiment_help(name)}"


def experiment_help(name: str) -> str:
    """The question of an experiment, and the options that other experiments don't have."""
    from microtome.experiments import find_experiment

    experiment = find_experiment(name)
    flags = [(_usage(option), option) for option in experiment.options]
    width = max((len(flag) for flag, _ in flags), default=0)
    lines = [f"  {flag:<{width}}  {option.help}{_default(option)}" for flag, option in flags]
    head = f"{experiment.name}: {experiment.question} ({experiment.section})"
    return "\n".join([head, *(lines or ["  no further options"])])


def _usage(option: Option) -> str:
    return option.flag if option.kind == "flag" else f"{option.flag} {option.kind.upper()}"


def _default(option: Option) -> str:
    if option.default in (None, "", []) or option.kind == "flag":
        return ""
    values = option.default if isinstance(option.default, list) else [option.default]
    shown = (f"{value:g}" if isinstance(value, float) else str(value) for value in values)
    return f"  [default: {','.join(shown)}]"
