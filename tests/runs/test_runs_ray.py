"""A real Ray cluster of two nodes on loopback, with a token; one node is killed on the way."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from toy_trials import sweep, toy

from microtome.errors import RunError
from microtome.runs import open_run, ray_executor, run
from microtome.runs.ray_executor import packed, unpack
from microtome.threads import POLICIES, SHORT_SPIN
from support.trimming.cases import case

TOKEN = "f" * 64

# Ray wants a process of its own: it changes the environment, and its warnings aren't ours.
DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_runs_ray import ray_sweep
from microtome.runs import run
run(ray_sweep(Path(sys.argv[3])), sys.argv[2], {}, executor="ray", ray_address=sys.argv[4])
"""


COMMAND = "import sys; from microtome.cli import run; sys.exit(run(sys.argv[1:]))"
TIMED = ("speed", "speed_low", "speed_high", "latency_ms", "batch_ms")


def ray_sweep(log: Path):
    """Trials with needs and files, one that fails, one that diverges, one that hangs."""
    faulty = [toy("fail"), toy("diverge"), toy("hang", limit=2.0)]
    reader = toy("read_need", needs=[sweep(1, seconds=0.4)[0].hash])
    return [*sweep(40, log=log, seconds=0.4), reader, toy("how_threads_wait"), *faulty]


def free_port() -> int:
    """A free port outside 10002–19999, where Ray puts its workers."""
    for port in range(21000, 24000, 7):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("no free port")


class Cluster:
    """Two nodes started by ``ray start``; each is killed by its own processes' ids."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        }
        self.address = f"127.0.0.1:{free_port()}"
        self._folder = folder
        self._nodes: list[list[psutil.Process]] = []

    def start_node(self) -> None:
        port = self.address.partition(":")[2]
        head = ["--head", f"--port={port}", "--include-dashboard=false"]
        head += [f"--temp-dir={self._folder}"]
        which = [f"--address={self.address}"] if self._nodes else head
        options = ["--node-ip-address=127.0.0.1", "--num-cpus=2", "--num-gpus=0"]
        options += ["--object-store-memory=80000000"]
        before = {process.pid for process in self._processes()}
        ray = str(Path(sys.executable).with_name("ray"))
        subprocess.run(
            [ray, "start", *which, *options],
            env=self.environment, check=True, timeout=180, capture_output=True,
        )  # fmt: skip
        self._nodes.append([one for one in self._processes() if one.pid not in before])

    def _processes(self) -> list[psutil.Process]:
        """The cluster's processes that have outlived the command which started them."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            line = " ".join(process.info["cmdline"] or [])
            ours = str(self._folder) in line or self.address in line
            if ours and "ray start" not in line and process.pid != os.getpid():
                found.append(process)
        return found

    def kill_node(self, index: int) -> None:
        for process in self._nodes[index]:
            try:
                children = process.children(recursive=True)
                for one in [process, *children]:
                    one.kill()
            except psutil.NoSuchProcess:
                continue

    def close(self) -> None:
        for index in reversed(range(len(self._nodes))):
            self.kill_node(index)
        processes = [one for node in self._nodes for one in node]
        assert not psutil.wait_procs(processes, timeout=30)[1]


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray", reason="ray is not installed (pip install 'microtome-lab[ray]')")
    # Ray's sockets have long names and a limit of 107 bytes: a short folder.
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start_node()
            cluster.start_node()
            yield cluster
        finally:
            cluster.close()


def wait_for_records(folder: Path, n_records: int, driver: subprocess.Popen) -> None:
    deadline = time.monotonic() + 180
    while len(list((folder / "records").glob("[!.]*.json"))) < n_records:
        assert driver.poll() is None, "the driver ended early"
        assert time.monotonic() < deadline, "the cluster does nothing"
        time.sleep(0.1)


def essence(folder: Path) -> dict[str, tuple]:
    """What must be equal wherever a trial ran: all but times, names of workers and tracebacks."""
    return {
        one: (record.status, record.rows, record.summary, record.arrays, record.checkpoint)
        for one, record in open_run(folder).records.items()
    }


def test_a_killed_node_changes_nothing_and_records_equal_the_local_ones(cluster, tmp_path):
    pytest.importorskip("ray")
    folder, log = tmp_path / "ray", tmp_path / "log"
    arguments = [str(Path(__file__).parent), str(folder), str(log), cluster.address]
    said = tmp_path / "said"
    with said.open("w") as out:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *arguments], env=cluster.environment, stderr=out
        )
    try:
        wait_for_records(folder, 8, driver)
        cluster.kill_node(1)
        assert driver.wait(timeout=240) == 0, said.read_text()
    finally:
        driver.kill()
        driver.wait()
    workers = {record.worker for record in open_run(folder).records.values() if record.ok}
    assert len(workers) == 2, "both nodes have worked"

    run(ray_sweep(tmp_path / "log2"), tmp_path / "local", {}, workers=2, progress=False)
    assert essence(folder) == essence(tmp_path / "local")
    waited = open_run(folder).records[toy("how_threads_wait").hash].summary["waiting"]
    expected = {name: os.environ[name] for name in POLICIES if name in os.environ} or SHORT_SPIN
    assert waited == " ".join(str(expected.get(name)) for name in POLICIES[:2])
    table, local = (tmp_path / name / "results.parquet" for name in ("ray", "local"))
    assert table.read_bytes() == local.read_bytes()
    for one in ("arrays", "checkpoints"):
        assert packed(folder / one) == packed(tmp_path / "local" / one)


def test_a_trim_on_a_cluster_equals_a_local_one_but_for_times(cluster, tmp_path):
    model, data = case("classification", tmp_path)
    wish = ["--steps", "3", "--layers", "2", "--lose", "99", "--quiet"]
    where = {
        "ray": ["--executor", "ray", "--ray-address", cluster.address],
        "local": ["--workers", "0"],
    }
    for name, options in where.items():
        places = ["--run", tmp_path / name, "--out", tmp_path / f"{name}.out"]
        asked = ["trim", model, *data, *wish, *options, *places]
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *map(str, asked)],
            env=cluster.environment, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    on_ray, local = (pq.read_table(tmp_path / name / "results.parquet") for name in where)
    untimed = [name for name in local.column_names if name not in TIMED]
    assert on_ray.select(untimed).equals(local.select(untimed))
    healed = [packed(tmp_path / name / "checkpoints") for name in where]
    assert any(name.endswith("model.safetensors") for name in healed[0])
    assert healed[0] == healed[1]


def test_without_the_token_nobody_gets_in(cluster):
    code = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False)"
    stranger = subprocess.Popen(
        [sys.executable, "-c", code, cluster.address],
        env={**cluster.environment, "RAY_AUTH_TOKEN": "0" * 64},
        stderr=subprocess.PIPE,
        text=True,
    )
    with stranger:
        # Ray says no at once, and tries again for 20 seconds.
        refused = any("InvalidAuthToken" in line for line in stranger.stderr)
        stranger.kill()
    assert refused


class SlowRay:
    """What Ray does on a machine so busy that its node isn't up after half a minute."""

    def init(self, **options: object) -> None:
        raise Exception("The current node timed out during startup.")  # not a RuntimeError


def test_a_cluster_that_starts_too_slowly_is_told_in_a_line(monkeypatch):
    monkeypatch.setattr(ray_executor, "_imported", SlowRay)
    with pytest.raises(RunError, match="Ray didn't start: The current node timed out"):
        ray_executor.RayExecutor()


def test_a_checkpoint_cannot_leave_its_folder(tmp_path):
    with pytest.raises(RunError, match="expected checkpoint files below their folder"):
        unpack({"../evil": b""}, tmp_path / "checkpoint")


def test_what_is_packed_unpacks_to_the_same(tmp_path):
    files = {"a.bin": b"\x00\xff", "deep/er/b.txt": b"text"}
    unpack(files, tmp_path / "x")
    assert packed(tmp_path / "x") == files
