"""Everything that Microtome raises on purpose.

    MicrotomeError
    ├── RequestError            the request is wrong; nothing was done (exit 2)
    │   ├── EditError           an edit that can't be read, or that doesn't fit the model
    │   ├── ModelError          a model that can't be found, read or trusted
    │   │   └── UnsupportedFamily
    │   ├── DataError           a data set that can't be found or read
    │   ├── MissingExtra        an optional package isn't installed
    │   └── PluginError         a package that adds an experiment, family or task doesn't work
    └── RunError                the work failed while running; what is done is kept (exit 1)
        ├── CertificateFailed   an edit did not do what it says
        ├── Diverged            a training whose numbers ran away
        └── StorageError        the disk is full, or a run's folder can't be used

An error says in one line what was expected and what it got; ``hint`` says what to do.
"""

from __future__ import annotations

DISTRIBUTION = "microtome-lab"
"""What pip installs. On the package index ``microtome`` is another project."""


LONGEST = 1_000
"""Characters of a message, and of a hint: names and values out of files may be of any length."""


def printable(text: str) -> str:
    r"""``text`` with nothing in it that moves a terminal's cursor or changes its colours.

    White space becomes a space, anything else that isn't printable its escape: ``\\x1b``.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else repr(c)[1:-1] for c in text)


def _one_line(text: str) -> str:
    text = printable(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def install_command(extra: str) -> str:
    """The line that installs an optional part: ``pip install 'microtome-lab[ray]'``."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


_NO_MEMORY = (
    "can't allocate memory",  # torch
    "Cannot allocate memory",  # the system
    "can't start new thread",
    "failed to map segment from shared object",  # a module that is imported late
    "out of memory",  # a GPU
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, torch, the system or its loader had no memory to give."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)


class MicrotomeError(Exception):
    """Root of the tree: ``message`` states the problem, ``hint`` the remedy."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = _one_line(message)
        self.hint = _one_line(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[type[MicrotomeError], tuple[str, str]]:
        # Errors cross process borders in runs; the default would lose the hint.
        return type(self), (self.message, self.hint)

    @property
    def kind(self) -> str:
        """The name that scripts see in JSON, e.g. ``EditError``."""
        return type(self).__name__


class RequestError(MicrotomeError):
    """The request is wrong; nothing was done."""

    exit_code = 2


class EditError(RequestError):
    """An edit that can't be read, or that doesn't fit the model."""


class ModelError(RequestError):
    """A model that can't be found, read or trusted."""


class UnsupportedFamily(ModelError):
    """A model of a family (or with a head) that Microtome has no adapter for."""


class DataError(RequestError):
    """A data set that can't be found or read."""


class MissingExtra(RequestError):
    """An optional package isn't installed."""

    @classmethod
    def named(cls, package: str, extra: str, *, otherwise: str = "") -> MissingExtra:
        """The error for ``package``, with the exact line that installs it.

        ``otherwise`` is a way to do without: ``give its files with --data DIR``.
        """
        hint = install_command(extra)
        return cls(f"{package} is not installed", f"{hint}, or {otherwise}" if otherwise else hint)


class PluginError(RequestError):
    """A package that adds an experiment, a family or a task, and doesn't work."""


class RunError(MicrotomeError):
    """The work failed while running; what is done is kept."""


class CertificateFailed(RunError):
    """An edit did not do what it says. The edited model isn't handed out."""


class Diverged(RunError):
    """A training whose numbers ran away (NaN loss): recorded, never an error of a whole run."""


class StorageError(RunError):
    """The disk is full, or a run's folder can't be used."""
