"""Threads: a container's quota is seen, a user's settings are kept, they spin briefly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from microtome.threads import COUNTS, POLICIES, SHORT_SPIN, n_cores, waiting

FREE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
QUIET = {name: value for name, value in os.environ.items() if name not in (*COUNTS, *POLICIES)}
LOOK = """
import json, os, sys
from microtome import cli
cli.run = lambda _: "torch" in sys.modules
try:
    cli.main()
except SystemExit as done:
    asked = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    print(json.dumps({"torch": done.code, **{name: os.environ.get(name) for name in asked}}))
"""


def system(folder: Path, groups: str, files: dict[str, str]) -> Path:
    """What a container sees of /proc and /sys."""
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return folder


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/", {"sys/fs/cgroup/cpu.max": "100000 100000"}, 1),
        ("0::/", {"sys/fs/cgroup/cpu.max": "150000 100000"}, 1),
        ("0::/", {"sys/fs/cgroup/cpu.max": "20000 100000"}, 1),
        ("0::/", {"sys/fs/cgroup/cpu.max": "max 100000"}, FREE),
        ("0::/", {"sys/fs/cgroup/cpu.max": "99999900000 100000"}, FREE),
        ("0::/a.slice/b", {"sys/fs/cgroup/a.slice/cpu.max": "100000 100000"}, 1),
        ("0::/a/b", {"sys/fs/cgroup/a/b/cpu.max": "max 1", "sys/fs/cgroup/a/cpu.max": "1 1"}, 1),
        (
            "3:cpu,cpuacct:/docker/x\n0::/",
            {
                "sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us": "100000",
                "sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us": "100000",
            },
            1,
        ),
        (
            "3:cpu,cpuacct:/docker/x",  # the container sees its own group as the root
            {
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "100000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            1,
        ),
        (
            "3:cpu:/",
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            FREE,
        ),
        ("nonsense", {"sys/fs/cgroup/cpu.max": "nonsense"}, FREE),
    ],
)
def test_cores_are_those_of_the_affinity_and_of_the_quota(groups, files, cores, tmp_path):
    assert n_cores(system(tmp_path, groups, files)) == cores


def test_without_control_groups_the_affinity_counts(tmp_path):
    assert n_cores(tmp_path) == FREE


@pytest.mark.parametrize("name", POLICIES)
def test_a_user_who_says_how_threads_wait_is_obeyed(name):
    assert waiting({name: "anything"}) == {}
    assert waiting({}) == SHORT_SPIN


def seen_by_the_command(**variables: str) -> dict[str, object]:
    """Environment and modules at the moment when a command begins."""
    asked = [sys.executable, "-c", LOOK]
    done = subprocess.run(asked, env=QUIET | variables, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_command_spins_briefly_before_torch_is_loaded():
    seen = seen_by_the_command()
    unset = dict.fromkeys(("OMP_NUM_THREADS", "OMP_WAIT_POLICY"))
    assert seen == {"torch": False, **unset} | SHORT_SPIN


def test_the_command_keeps_what_a_user_has_set():
    asked = {"OMP_NUM_THREADS": "7", "OMP_WAIT_POLICY": "ACTIVE"}
    assert seen_by_the_command(**asked) == asked | {"torch": False, "GOMP_SPINCOUNT": None}


QUOTA = """
from pathlib import Path
import json, os, sys
from microtome import threads
threads.n_cores.__defaults__ = (Path(sys.argv[1]),)
threads.prepare()
print(json.dumps([os.environ.get("OMP_NUM_THREADS"), threads.threads_each(1)]))
"""


@pytest.mark.skipif(FREE < 2, reason="a quota below one core can't be seen on one core")
@pytest.mark.parametrize(("variables", "threads"), [({}, "1"), ({"OMP_NUM_THREADS": "2"}, "2")])
def test_a_quota_decides_the_threads_unless_the_user_does(variables, threads, tmp_path):
    folder = system(tmp_path, "0::/", {"sys/fs/cgroup/cpu.max": "100000 100000"})
    asked = [sys.executable, "-c", QUOTA, str(folder)]
    done = subprocess.run(asked, env=QUIET | variables, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [threads, int(threads)]
