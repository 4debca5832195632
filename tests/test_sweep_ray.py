"""Sweeps on a real Ray of two nodes, on this machine: workers and drivers die, and nothing is lost, nothing twice."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from keydoor import _engines
from keydoor._engines import Block, run_block
from keydoor.sweep import SweepError, read_results, sweep

if importlib.util.find_spec("ray") is None:
    pytest.skip('Ray is not installed; pip install "keydoor[cluster]" brings it', allow_module_level=True)

TINY: dict[str, Any] = {"updates": 1, "episodes_per_update": 2, "evaluation_episodes": 2, "hidden_size": 4}
BOTH = {mode: {"reward_mode": mode, **TINY} for mode in ("sparse", "potential")}


def untimed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@contextmanager
def two_nodes() -> Iterator[str]:
    """Two nodes with a core each, without dashboard and without reports to anyone; they talk to no other machine.

    This process stays connected, so that its sweeps share their workers. At the end no process is left.
    """
    before = {process.pid for process in psutil.Process().children(recursive=True)}

    def left() -> list[psutil.Process]:
        return [process for process in psutil.Process().children(recursive=True) if process.pid not in before]

    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Workers find the package where this process has it, installed or not.
    patch.setenv("PYTHONPATH", os.pathsep.join(path for path in (os.getcwd(), *sys.path) if path))
    import ray
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # a short name: it is part of those of sockets
        patch.setenv("RAY_TMPDIR", folder)
        Path(folder, "ray").mkdir()  # Ray writes the cluster's address there, and makes the folder only later
        node = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
        for tries_left in (2, 1, 0):
            cluster = Cluster()
            try:
                cluster.add_node(**node, include_dashboard=False)
                cluster.add_node(**node)
                break
            except Exception as error:  # Ray gives a node 30 s to start, while other tests keep all cores busy
                cluster.shutdown()
                for process in left():
                    process.kill()
                if "timed out during startup" not in str(error):
                    raise
                if not tries_left:
                    pytest.skip(f"Ray starts no nodes on this machine: {error}")
        try:
            ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
            yield cluster.address
        finally:
            ray.shutdown()
            cluster.shutdown()
            patch.undo()
        assert psutil.wait_procs(left(), timeout=20)[1] == []


def late_block(block: Block, code: str, keep: bool) -> Any:
    """A block that is computed, and whose result is not sent yet: there is time to kill who has computed it."""
    runs = run_block(block, code, keep)
    if block.setting == "late":
        time.sleep(1)
    return runs


class Killer(threading.Thread):
    """Kills, by their pids, so many workers that are computing a late block."""

    def __init__(self, times: int) -> None:
        super().__init__(daemon=True)
        self.times, self.killed, self.over = times, list[int](), threading.Event()

    def run(self) -> None:
        while len(self.killed) < self.times and not self.over.wait(0.05):
            for process in psutil.Process().children(recursive=True):
                try:
                    working = process.cmdline()[:1] == ["ray::late_block"] and process.pid not in self.killed
                    if working and len(self.killed) < self.times and not self.over.wait(0.2):
                        process.kill()
                        self.killed.append(process.pid)
                except psutil.Error:  # it has ended meanwhile
                    continue

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def rows_are_those_of_the_other_engine(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sweep([3, 1, 2], BOTH, results=tmp_path / "stacked.jsonl")
    file, folder = tmp_path / "ray.jsonl", tmp_path / "models"
    rows = sweep([3, 1, 2], BOTH, results=file, engine="ray", models=folder, block=1)
    assert untimed(rows) == untimed(expected)
    assert len(file.read_bytes().splitlines()) == len(list(folder.iterdir())) == 6
    import ray

    assert ray.is_initialized(), "who was connected before is connected afterwards"
    with pytest.raises(SweepError, match="connected to a Ray already"):
        sweep([9], BOTH, results=file, engine="ray", address=address)


def a_worker_is_killed_in_mid_task(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them: their blocks are computed again. Each run is in the file once, with the row it always has."""
    monkeypatch.setattr(_engines, "run_block", late_block)
    late = {"late": BOTH["potential"]}
    file = tmp_path / "ray.jsonl"
    with Killer(2) as killer:
        rows = sweep([1, 2, 3, 4], late, results=file, engine="ray", block=1)
    assert len(killer.killed) == 2
    assert sorted(row["seed"] for row in read_results(file)) == [1, 2, 3, 4]
    monkeypatch.undo()
    assert untimed(rows) == untimed(sweep([1, 2, 3, 4], late, results=tmp_path / "stacked.jsonl"))


def without_another_try_a_killed_worker_ends_the_sweep(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The foil: what is killed above does not come back by itself. What is finished is kept."""
    monkeypatch.setattr(_engines, "run_block", late_block)
    monkeypatch.setattr(_engines, "_RETRIES", 0)
    file = tmp_path / "ray.jsonl"
    sweep([1], BOTH, results=file, engine="ray")
    with Killer(1), pytest.raises(SweepError, match=r"Ray gave up on the setting 'late' with seeds . after 0 retries"):
        sweep([1, 2], {"late": BOTH["sparse"]}, results=file, engine="ray", block=1)
    assert {("sparse", 1), ("potential", 1)} <= {(row["setting"], row["seed"]) for row in read_results(file)}


def a_driver_is_interrupted_and_goes_on(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in mid-sweep, from the command line; the same sweep again does what is missing."""
    file = tmp_path / "ray.jsonl"
    given = {"updates": 30, "episodes_per_update": 16, "evaluation_episodes": 2}
    sizes = [word for name, n in given.items() for word in (f"--{name.replace('_', '-')}", str(n))]
    options = ["sweep", "--seeds", "1-8", "--reward-mode", "potential", "--results", str(file), *sizes]
    command = [sys.executable, "-m", "keydoor", *options, "--engine", "ray", "--address", address, "--block", "1"]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 100
    while not (file.is_file() and file.stat().st_size) and driver.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    driver.send_signal(signal.SIGINT)
    stdout, stderr = driver.communicate(timeout=60)
    assert (driver.returncode, stdout) == (130, ""), stderr
    assert "Traceback" not in stderr
    assert f"go on with:\npython -m keydoor sweep --seeds 1-8 --reward-mode potential --results {file}" in stderr
    first = file.read_bytes()
    assert 1 <= len(read_results(file)) < 8
    rows = sweep(range(1, 9), {"potential": {"reward_mode": "potential", **given}}, results=file, engine="ray")
    assert [row["seed"] for row in rows] == [*range(1, 9)]
    assert file.read_bytes().startswith(first)
    assert len(file.read_bytes().splitlines()) == 8


@pytest.mark.cluster
def test_on_two_nodes(subtests: pytest.Subtests, tmp_path: Path) -> None:
    """One test, so that one process starts one cluster, however the tests are spread."""
    with two_nodes() as address:
        for part in (
            rows_are_those_of_the_other_engine,
            a_worker_is_killed_in_mid_task,
            without_another_try_a_killed_worker_ends_the_sweep,
            a_driver_is_interrupted_and_goes_on,
        ):
            folder = tmp_path / part.__name__
            folder.mkdir()
            with subtests.test(part.__name__), pytest.MonkeyPatch.context() as monkeypatch:
                part(address, folder, monkeypatch)


@pytest.mark.parametrize("form", ["{}", "ray://{}"])
def test_nobody_answers_at_the_address(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port of this machine that is free: found at once, and named."""
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = form.format(f"127.0.0.1:{free.getsockname()[1]}")
    with pytest.raises(ConnectionError) as caught:
        sweep([1], BOTH, results=tmp_path / "results.jsonl", engine="ray", address=address)
    assert f"no Ray answers at the address {address!r}" in str(caught.value)
    assert read_results(tmp_path / "results.jsonl") == []


@pytest.mark.parametrize("address", [None, "auto"])
def test_what_ray_is_asked_for(address: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address a cluster of this machine alone, on the loopback interface, with no dashboard."""
    import ray

    asked: dict[str, Any] = {}

    def init(**arguments: Any) -> None:
        asked.update(arguments)
        raise ConnectionError("there is none")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ConnectionError, match="there is none"):
        sweep([1], BOTH, results=tmp_path / "results.jsonl", engine="ray", address=address, workers=2)
    assert asked["address"] == (address or "local")
    assert asked["log_to_driver"] is False
    if address is None:
        assert (asked["num_cpus"], asked["include_dashboard"], asked["_node_ip_address"]) == (2, False, "127.0.0.1")
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert "RAY_gcs_server_port_wait_time_s" not in os.environ
