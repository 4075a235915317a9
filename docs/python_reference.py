"""The public names with their signatures and docstrings, for docs/reference.md."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

# Names by module; None: all that it says are public.
MODULES: dict[str, tuple[str, ...] | None] = {
    "microtome": None,
    "microtome.notebook": ("CallableExperiment", "ExperimentResult", "Plots"),
    "microtome.study": ("Study", "Wanted", "Workers", "study"),
    "microtome.runs": None,
}
WIDEST = 100


def page() -> str:
    """Every public name of every module, in the order of ``__all__``: classes, then functions."""
    parts = []
    for name, chosen in MODULES.items():
        module = import_module(name)
        named = [(each, getattr(module, each)) for each in chosen or module.__all__]
        parts.append(f"## {name}\n")
        parts += [entry(*each) for each in sorted(named, key=_rank)]
    return "\n".join(parts)


def _rank(named: tuple[str, object]) -> bool:
    return not inspect.isclass(named[1])


def entry(name: str, value: object) -> str:
    """A heading, how it is called, what its docstring says, and a class's own members."""
    kind = "class " if inspect.isclass(value) else ""
    text = f"### {name}\n\n```text\n{kind}{called(name, value)}\n```\n\n{prose(value)}\n"
    members = list(_members(value)) if inspect.isclass(value) else []
    return text + ("\n" + "\n".join(members) + "\n" if members else "")


def called(name: str, value: object) -> str:
    """``name(arguments) -> result``; one argument a line where there isn't room."""
    assert callable(value)
    is_class = inspect.isclass(value)
    if is_class and issubclass(value, BaseException | tuple):
        return name
    signature = inspect.signature(value)
    arguments, is_open = [], False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not is_open:
            arguments.append("*")
        is_open = is_open or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        arguments.append(_argument(one))
    has_result = not is_class and signature.return_annotation is not signature.empty
    end = f" -> {signature.return_annotation}" if has_result else ""
    text = f"{name}({', '.join(arguments)}){end}"
    if len(text) <= WIDEST:
        return text
    return f"{name}(\n" + "".join(f"    {one},\n" for one in arguments) + f"){end}"


def _argument(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    text = stars + one.name
    if one.annotation is not one.empty:
        text += f": {one.annotation}"
    if one.default is not one.empty:  # an object's place in memory is nobody's business
        shown = "…" if repr(one.default).startswith("<") else repr(one.default)
        text += f" = {shown}" if one.annotation is not one.empty else f"={shown}"
    return text


def prose(value: object) -> str:
    """A docstring as Markdown: code between backticks, and indented examples as blocks."""
    lines, inside = [], False
    for line in (inspect.getdoc(value) or "").splitlines():
        if line.startswith("    ") and not inside:
            lines.append("```python")
        elif inside and line and not line.startswith("    "):
            while lines[-1] == "":
                lines.pop()
            lines += ["```", ""]
        if line:
            inside = line.startswith("    ")
        lines.append(line[4:] if inside else _marked(line))
    return "\n".join([*lines, "```"] if inside else lines)


def _marked(line: str) -> str:
    line = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", line)
    return re.sub(r"``(.+?)``", r"`\1`", line)


def _members(value: type) -> list[str]:
    """A class's own public methods and properties, a line each."""
    lines = []
    if "__call__" in vars(value):
        call = (
            called("", vars(value)["__call__"]).replace("(self, ", "(").replace("    self,\n", "")
        )
        lines += [f"Called:\n\n```text\n{call}\n```\n\n{prose(vars(value)['__call__'])}\n"]
    for name, member in vars(value).items():
        inner = getattr(member, "fget", None) or getattr(member, "func", None) or member
        inner = getattr(inner, "__func__", inner)
        if name.startswith("_") or not inspect.isfunction(inner) or not inner.__doc__:
            continue
        what = name if inner is not member and not isinstance(member, classmethod) else f"{name}()"
        first = (inspect.getdoc(inner) or "").partition("\n")[0]
        lines.append(f"- `{what}`: {_marked(first)}" if first else f"- `{what}`")
    return lines
