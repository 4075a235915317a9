"""The edit that makes a model's vocabulary smaller: only the tokens that some texts need stay."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import ClassVar

from microtome.edits.edit import Edit, Option
from microtome.errors import EditError
from microtome.values import quoted

N_DIGITS = 16  # of the content's sha256: enough to tell files apart, short enough to read
# What the grammar reads as one word; any other name is printed in double quotes.
PLAIN_NAME = re.compile(r"[A-Za-z0-9_.+/~:@%\\-]+")
_DIGEST = re.compile(rf"[0-9a-f]{{{N_DIGITS}}}")


@dataclass(frozen=True, init=False, repr=False)
class Vocabulary(Edit):
    """Only the tokens that the texts of ``file`` use, and those that any text can be written with.

    Word embeddings, a masked LM's decoder and the tokenizer become smaller together; the texts of
    ``file`` give the same outputs as before. ``file`` is a .txt with one text per line, or a .csv,
    .tsv, .jsonl or .parquet file, of which every string counts.

    Two files with equal content are the same edit: ``identity`` and ``hash`` are those of the
    content. A saved checkpoint names the content alone (``sha256``), and such an edit can be
    printed and compared, not applied.
    """

    name: ClassVar[str] = "vocabulary"

    file: str | None
    sha256: str | None

    def __init__(self, file: str | PathLike[str] | None = None, *, sha256: str | None = None):
        if (file is None) == (sha256 is None):
            raise EditError("expected a file of texts", "write vocabulary(FILE)")
        name = None if file is None else file_name(file)
        if sha256 is not None and not _DIGEST.fullmatch(sha256):
            raise EditError(f"sha256 must be {N_DIGITS} hexadecimal digits, got {quoted(sha256)}")
        self._set(file=name, sha256=sha256)

    @property
    def path(self) -> Path:
        """The file of texts, which must be there."""
        if self.file is None:
            raise EditError(
                f"{self.text} names the content of a file, not the file",
                "write vocabulary(FILE) with that file",
            )
        path = Path(self.file).expanduser()
        if not path.is_file():
            reason = "is a folder" if path.is_dir() else "doesn't exist"
            raise EditError(f"expected a file of texts, but {path} {reason}")
        return path

    @property
    def identity(self) -> str:
        """The edit with the content of its file in the place of the name."""
        if self.sha256 is not None:
            return self.text
        with self.path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return f"{self.name}(sha256={digest[:N_DIGITS]})"

    def listed(self) -> tuple[int | str, ...]:
        """The file, in double quotes where its name needs them."""
        if self.file is None:
            return ()
        return (self.file if PLAIN_NAME.fullmatch(self.file) else f'"{self.file}"',)

    def options(self) -> dict[str, Option]:
        """The content, where no file is named."""
        return {} if self.sha256 is None else {"sha256": self.sha256}

    def __repr__(self) -> str:
        return f"Vocabulary({f'sha256={self.sha256!r}' if self.file is None else repr(self.file)})"


def file_name(given: str | PathLike[str]) -> str:
    """A file's name as it is printed; one that couldn't be printed and read back is refused."""
    name = str(Path(given)) if isinstance(given, (str, PathLike)) and str(given).strip() else ""
    if not name or '"' in name or not name.isprintable():
        shown = quoted(given) if isinstance(given, str) else repr(given)
        raise EditError(
            f"expected the name of a file, got {shown}",
            "rename it: no double quotes, no line ends",
        )
    return name
