"""Options that belong together, spelled out once: rows, the recipe of a training, workers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from microtome.cli.output import QUIET
from microtome.errors import RequestError
from microtome.tasks.data_spec import DataSpec

if TYPE_CHECKING:
    from microtome.study import Workers

# By name: the type, the default, the help, and the least value where there is one.
DATA: dict[str, tuple[Any, ...]] = {
    "task": (str | None, None, "A task's name: see 'microtome list tasks'."),
    "data": (
        Path | None, None,
        "A task's native files, a BEIR folder, or your csv/tsv/jsonl/parquet/txt/conll.",
    ),
    "dev_data": (Path | None, None, "Your data: a second file to measure on."),
    "split": (str | None, None, "train, dev or test."),
    "limit": (int | None, None, "Measure at most this many rows.", 1),
    "seed": (int, 0, "Decides everything that is random.", 0),
    "text_column": (str | None, None, "Your data: the text."),
    "pair_column": (str | None, None, "Your data: a second text."),
    "label_column": (str | None, None, "Your data: the label; a,b,c: columns of 0 and 1."),
    "label_separator": (str | None, None, "Your data: what divides several labels of a text."),
    "labels": (str | None, None, "Your data: label names in order, with commas."),
    "kind": (str | None, None, "Your data: tokens, similarity, reranking …, where unclear."),
    "candidates": (Path | None, None, "A BEIR folder to rerank: the first stage's TREC run."),
    "skip_unknown_labels": (bool, False, "Leave rows out whose label the task hasn't."),
    "pooling": (str | None, None, "Embed with an encoder that has no head: cls or mean."),
    "prompt": (str | None, None, "An embedder's prompt, by its name in the folder."),
    "revision": (str | None, None, "Branch, tag or commit of a hub id."),
}  # fmt: skip
RECIPE: dict[str, tuple[Any, ...]] = {
    "epochs": (int | None, None, "Default: the task's.", 1),
    "batch_size": (int | None, None, "Default: 32.", 1),
    "learning_rate": (float | None, None, "Default: the card's, else the papers'."),
    "warmup": (float | None, None, "Share of the updates, learning rate rising. Default: 0.1."),
    "weight_decay": (float | None, None, "Default: 0.01."),
    "least_steps": (
        int,
        0,
        "Updates at least, where rows are few. A head trained first on own data: 100.",
        0,
    ),
    "max_length": (int | None, None, "Tokens per text; default: the task's."),
}

WORKERS: dict[str, tuple[Any, ...]] = {
    "executor": (str, "local", "local or ray."),
    "workers": (int, 1, "Worker processes; 0: run in this process.", 0),
    "ray_address": (str | None, None, "A Ray cluster: 'auto', or its address."),
    "device": (str, "cpu", "Where to compute, as torch names it."),
    "retry_failed": (bool, False, "Run failed trials again."),
}


def takes_data(*, without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Any]:
    """A command's parameter ``rows: DataSpec`` becomes the options that name rows.

    Those ``without`` which the command makes no sense are left out. A command that has a parameter
    ``seed`` or ``revision`` as well gets that value too: a revision is also the model's.
    """
    shared = {name: option for name, option in DATA.items() if name not in without}
    return lambda command: _with_options(command, "rows", shared, spec_of)


def takes_recipe(command: Callable[..., None]) -> Callable[..., None]:
    """A command's parameter ``recipe: dict[str, Any]`` becomes the options of a training.

    A value is None where the task's own, the model card's or the papers' is meant.
    """
    return _with_options(command, "recipe", RECIPE, dict)


def takes_workers(command: Callable[..., None]) -> Callable[..., None]:
    """A command's parameter ``where: Workers`` becomes the options on where its trials run.

    A command that has a parameter ``workers`` as well spells that option out itself.
    """
    own = {"workers"} & set(inspect.signature(command).parameters)
    shared = {name: option for name, option in WORKERS.items() if name not in own}
    return _with_options(command, "where", shared, _workers_of)


def _workers_of(
    *, executor: str, ray_address: str | None, device: str, retry_failed: bool, workers: int = 1
) -> Workers:
    from microtome.study import Workers

    progress = not QUIET.get()
    return Workers(executor, workers, (device,), ray_address, retry_failed, progress)


def _with_options(
    command: Callable[..., None],
    group: str,
    options: Mapping[str, tuple[Any, ...]],
    make: Callable[..., Any],
) -> Callable[..., None]:
    """``command`` with ``options`` in the place of its parameter ``group``.

    The parameter gets what ``make`` makes of their values; one that the command also has as a
    parameter of its own is passed on there too.
    """
    hints = _hints(command, without=group)
    parameters: list[inspect.Parameter] = []
    both: list[str] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name == group:
            parameters += [_option(key, *option) for key, option in options.items()]
        elif name in options:
            both.append(name)
        else:
            parameters.append(_parameter(name, hints[name], parameter.default))

    @wraps(command)
    def call(**values: Any) -> None:  # noqa: ANN401  # as many types as options
        chosen = {name: values.pop(name) for name in options}
        passed_on = {name: chosen[name] for name in both}
        command(**values, **passed_on, **{group: make(**chosen)})

    signature = inspect.Signature(parameters)
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    return call


def _hints(command: Callable[..., None], *, without: str) -> dict[str, Any]:
    """The types of a command's parameters but one, whose type may be known to checkers alone."""
    written = {name: hint for name, hint in command.__annotations__.items() if name != without}
    spaces = inspect.unwrap(command).__globals__
    return get_type_hints(SimpleNamespace(__annotations__=written), spaces, include_extras=True)


def _option(
    name: str,
    kind: Any,  # noqa: ANN401  # a type
    default: object,
    text: str,
    least: int | None = None,
) -> inspect.Parameter:
    option = typer.Option(f"--{name.replace('_', '-')}", help=text, min=least)
    return _parameter(name, Annotated[kind, option], default)


def _parameter(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def spec_of(
    *,
    data: Path | None = None,
    dev_data: Path | None = None,
    labels: str | None = None,
    revision: str | None = None,
    **options: Any,  # noqa: ANN401  # the fields of a DataSpec
) -> DataSpec:
    """What the options say, as one value."""
    if dev_data is not None and (data is None or data.is_dir()):
        raise RequestError("--dev-data goes with a --data FILE", "a task has its own dev split")
    return DataSpec(
        path=data,
        dev_path=dev_data,
        labels=tuple(labels.split(",")) if labels else None,
        revision=None if data else revision,  # a file has none; the model may
        **options,
    )
