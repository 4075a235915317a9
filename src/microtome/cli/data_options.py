"""The options that name rows, spelled out once: every command that reads data takes a DataSpec."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, get_type_hints

from microtome.cli import parameters as given
from microtome.errors import RequestError
from microtome.tasks.data_spec import DataSpec

OPTIONS: dict[str, tuple[Any, Any]] = {
    "task": (given.Task, None),
    "data": (given.Data, None),
    "dev_data": (given.DevData, None),
    "split": (given.Split, None),
    "limit": (given.Limit, None),
    "seed": (given.Seed, 0),
    "text_column": (given.TextColumn, None),
    "pair_column": (given.PairColumn, None),
    "label_column": (given.LabelColumn, None),
    "labels": (given.Labels, None),
    "skip_unknown_labels": (given.SkipUnknownLabels, False),
    "revision": (given.Revision, None),
}


def takes_data(*, without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Any]:
    """A command's parameter ``rows: DataSpec`` becomes the options that name rows.

    Those ``without`` which the command makes no sense are left out. A command that has a parameter
    ``seed`` or ``revision`` as well gets that value too: a revision is also the model's.
    """
    shared = {name: option for name, option in OPTIONS.items() if name not in without}

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        return option_group(command, "rows", shared, spec_of)

    return decorated


def option_group(
    command: Callable[..., None],
    group: str,
    options: Mapping[str, tuple[Any, Any]],
    make: Callable[..., Any],
) -> Callable[..., None]:
    """``command`` with ``options`` in the place of its parameter ``group``.

    ``options`` are annotations and defaults by name. The parameter gets what ``make`` makes of
    their values; one that the command also has as a parameter of its own is passed on there too.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    both: list[str] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name == group:
            parameters += [_option(key, *option) for key, option in options.items()]
        elif name in options:
            both.append(name)
        else:
            parameters.append(_option(name, hints[name], parameter.default))

    @wraps(command)
    def call(**values: Any) -> None:  # noqa: ANN401  # as many types as options
        chosen = {name: values.pop(name) for name in options}
        passed_on = {name: chosen[name] for name in both}
        command(**values, **passed_on, **{group: make(**chosen)})

    signature = inspect.Signature(parameters)
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    return call


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:  # noqa: ANN401
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
