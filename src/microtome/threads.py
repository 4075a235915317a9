"""How many threads compute, how they wait, what they keep; decided before torch loads. No torch.

OpenMP reads its variables once, when torch loads it. Left alone, its threads spin while they wait
for each other: next to another busy process they spin on the core that they are waiting for. Asleep
at once, they cost more than they save where we are alone: every small product wakes them again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

COUNTS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
)
# Long enough to bridge the gap between two small products, too short to hold a core that another
# process could use. Alone 0.97 to 1.02 of spinning's time, where none at all takes up to 1.66; next
# to a busy process 0.72 to 1.03 (bench/threads.py, docs/performance.md). 10000 helps nobody there.
SHORT_SPIN = {"GOMP_SPINCOUNT": "2000"}
# oneDNN compiles code for every number of rows that it multiplies, which takes a millisecond and
# 0.7 MB, and keeps 1,024 of them unless told otherwise. A chunk of texts needs about ten.
FEW_COMPILED = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32", "LRU_CACHE_CAPACITY": "32"}
POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_SYSTEM = Path("/")
_set_here: dict[str, str] = {}  # defaults of ours, which aren't a user's wish


def prepare() -> None:
    """Set what OpenMP and oneDNN read in this process: a short spin, as many threads as cores.

    Few compiled products are kept. To be called before torch is imported; afterwards it changes
    nothing. What the user has set stays as it is.
    """
    chosen = waiting(os.environ)
    if n_cores() < _n_visible():  # a quota that OpenMP doesn't know of
        chosen |= {name: str(n_cores()) for name in COUNTS if name not in os.environ}
    _set_here.update(chosen)
    os.environ.update(chosen)
    for name, value in FEW_COMPILED.items():
        os.environ.setdefault(name, value)


def waiting(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables for a short spin; none where ``environment`` says how threads wait."""
    return {} if any(name in environment for name in POLICIES) else dict(SHORT_SPIN)


def counts(environment: Mapping[str, str], n_threads: int) -> dict[str, str]:
    """The variables for ``n_threads`` threads; a user's settings in ``environment`` stay."""
    return {name: str(n_threads) for name in COUNTS if _users(environment, name) is None}


def threads_each(n_workers: int) -> int:
    """The threads of each of ``n_workers``: OMP_NUM_THREADS, else their share of the cores."""
    asked = _users(os.environ, "OMP_NUM_THREADS")
    first = (asked or "").split(",")[0].strip()  # "4,2": at the top level, and nested
    return int(first) if first.isdigit() and int(first) > 0 else max(1, n_cores() // n_workers)


def n_cores(system: Path = _SYSTEM) -> int:
    """The cores that this process may use: its affinity, or less where a container has a quota."""
    # Whole ones: a thread that the quota has no core for makes all others wait for it.
    return max(1, min([_n_visible(), *(int(quota) for quota in _quotas(system))]))


def _n_visible() -> int:
    if hasattr(os, "process_cpu_count"):  # Python 3.13: also -X cpu_count
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _users(environment: Mapping[str, str], name: str) -> str | None:
    """What the user has set, None where nothing, or a default of ours."""
    value = environment.get(name)
    return None if value == _set_here.get(name) else value


def _quotas(system: Path) -> Iterator[float]:
    """CPU quotas of this process's control group and of those above it, in cores."""
    for names, group in _groups(system / "proc/self/cgroup"):
        root = system / "sys/fs/cgroup"
        if "cpu" in names:  # version 1
            roots = [root / name for name in ("cpu", "cpu,cpuacct", ",".join(names))]
        elif names == [""]:  # version 2
            roots = [root]
        else:
            continue
        for folder in {place / level for place in roots for level in _levels(group)}:
            quota = _quota_v2(folder) if names == [""] else _quota_v1(folder)
            if quota is not None:
                yield quota


def _groups(file: Path) -> Iterator[tuple[list[str], str]]:
    """Controllers and path of every line ``4:cpu,cpuacct:/path``; version 2 names no controller."""
    for line in _text(file).splitlines():
        _, _, named = line.partition(":")
        controllers, _, group = named.partition(":")
        yield controllers.split(","), group


def _levels(group: str) -> Iterator[str]:
    """A group and those above it, below the root: a container may see its own as the root."""
    path = PurePosixPath(group.lstrip("/"))
    yield from (str(level) for level in (path, *path.parents) if ".." not in level.parts)


def _quota_v2(folder: Path) -> float | None:
    limit, _, period = _text(folder / "cpu.max").partition(" ")
    return _share(limit, period)


def _quota_v1(folder: Path) -> float | None:
    return _share(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))


def _share(limit: str, period: str) -> float | None:
    """``max`` and -1 mean that there is none."""
    try:
        share = int(limit) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return share if share > 0 else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
