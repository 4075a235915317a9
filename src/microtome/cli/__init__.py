"""The command line: parse, call, print. Heavy imports wait inside the commands.

Exit 0: done. Exit 2: the request is wrong, in one clear line. Exit 1: it failed while running.
With ``--json`` the only thing on stdout is one JSON document, an error included.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import typer

from microtome.cli.application import app
from microtome.cli.output import print_error
from microtome.errors import MicrotomeError, RequestError, is_out_of_memory
from microtome.threads import prepare

# Typer raises the errors of the command-line parser that it builds on; this is their root.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def main() -> None:
    """The ``microtome`` command."""
    prepare()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code."""
    as_json = "--json" in arguments
    try:
        code = app(list(arguments) or ["--help"], prog_name="microtome", standalone_mode=False)
    except MicrotomeError as error:
        print_error(error.kind, error.message, error.hint, as_json=as_json)
        return error.exit_code
    except UsageError as error:
        words = " ".join(error.format_message().split())  # type: ignore[attr-defined]
        message = words.removesuffix(".")
        hint = f"see {_command_path(error)} --help"
        print_error(RequestError.__name__, message, hint, as_json=as_json)
        return RequestError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        hint = "run the same command to resume"
        print_error("Interrupted", "interrupted", hint, as_json=as_json)
        return 1
    except BrokenPipeError:
        # Whoever read our output has closed it: there is nobody to tell.
        sys.stderr.close()
        return 1
    except Exception as error:  # noqa: BLE001 - no memory; or scripts get JSON, people a traceback
        if is_out_of_memory(error):
            hint = "what is stored is intact; free some memory, then run the same command again"
            message = f"out of memory: {error}".rstrip(": ")
            print_error("OutOfMemory", message, hint, as_json=as_json)
            return 1
        traceback.print_exc()
        print_error(type(error).__name__, str(error), "this is a bug in microtome", as_json=as_json)
        return 1
    return code if isinstance(code, int) else 0


def _command_path(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "microtome"
