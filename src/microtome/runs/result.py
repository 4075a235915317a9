"""What a trial's function is handed and what it gives back.

def measure(request: dict, context: Context) -> Result: ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.runs.trial import seed_for

if TYPE_CHECKING:
    import numpy as np

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What a trial gave.

    ``rows`` go into results.parquet, ``summary`` (a few scores) to the progress bar, ``arrays``
    into arrays/HASH.npz. ``checkpoint=True`` keeps the folder ``context.scratch``. ``None`` in a
    row means "doesn't apply"; NaN or infinity makes the trial ``diverged``.
    """

    rows: Sequence[Row] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    checkpoint: bool = False


@dataclass(frozen=True)
class Need:
    """What a needed trial left: its rows and summary, where its files are, how long it took."""

    hash: str
    rows: Sequence[Row] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    arrays: Path | None = None
    checkpoint: Path | None = None
    seconds: float = 0.0


Reporter = Callable[[str, Mapping[str, float]], None]


@dataclass(frozen=True)
class Context:
    """What surrounds a trial: paths, needed results, a scratch folder, a device, seeds."""

    hash: str
    where: Mapping[str, str]
    needs: Mapping[str, Need]
    scratch_path: Path
    device: str = "cpu"
    slot: int = 0
    reporter: Reporter = lambda text, scores: None

    @property
    def scratch(self) -> Path:
        """This trial's folder, made when first used; kept as checkpoint if the result says so."""
        self.scratch_path.mkdir(parents=True, exist_ok=True)
        return self.scratch_path

    def seed(self, name: str) -> int:
        """The trial's seed of that name ("init", "data", "dropout")."""
        return seed_for(self.hash, name)

    def report(self, text: str = "", scores: Mapping[str, float] | None = None) -> None:
        """Show how far the trial is; shown for people, never stored."""
        self.reporter(text, scores or {})


def plain(value: object) -> object:
    """``value`` as JSON knows it: numpy scalars become numbers, tuples lists."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value)  # np.float64 is a float; its repr isn't JSON
    if isinstance(value, Mapping):
        return {_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return plain(value.item())
    raise TypeError(
        f"a result may hold text, numbers, true/false and None, got {type(value).__name__}: "
        f"{str(value)[:80]!r} (arrays go into Result.arrays)"
    )


def _text(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a result's names must be text, got {key!r}")
    return key


def non_finite(value: object, path: str = "") -> Iterator[str]:
    """The places in plain data that hold NaN or infinity, as "rows.0.value"."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from non_finite(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from non_finite(item, f"{path}.{index}")


def finite(value: object) -> object:
    """Plain data with every NaN and infinity replaced by None, so that it is JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return value
