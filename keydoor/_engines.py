"""Where the runs of a sweep are computed: in this process, in processes of this machine, on a cluster.

Every engine calls :func:`run_block`, so that none can give another result, and hands back blocks in the order in which
they finish. Nothing but the process that called :func:`keydoor.sweep.sweep` writes results: a block that was computed
twice, since its worker died, arrives once.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

from keydoor._checks import refuse
from keydoor._models import model_bytes
from keydoor._results import SweepError, code_version
from keydoor._settings import SIZES, WORLD
from keydoor.stacked import train_many
from keydoor.training import TrainingConfig, evaluate_policy

_RETRIES = 3  # of a block whose worker or machine has died
_STACKED = 8  # seeds trained together: more gain little, and what has not finished when a sweep stops is lost
_STORE = 128 * 2**20  # bytes of shared memory for a local Ray: results are small, and its default is a third of it all
_PATIENCE = 5.0  # seconds to wait for an address to answer


class Block(NamedTuple):
    """Runs of one setting that are trained together."""

    setting: str
    settings: dict[str, Any]
    seeds: tuple[int, ...]


class Run(NamedTuple):
    """One finished run: its row, and the file of its network if that was asked for; or why there is none."""

    setting: str
    seed: int
    row: dict[str, Any] | None
    model: bytes | None
    fault: str | None


Finished = Generator[list[Run], None, None]
Engine = Callable[..., Finished]
Todo = Sequence[tuple[str, dict[str, Any], int]]
"""Runs to be done: a setting's name, the setting, a seed."""


def run_block(block: Block, code: str, keep: bool) -> list[Run]:
    """Train the runs of a block. One that diverges is told of, and does not take the others with it."""
    if code != code_version():
        raise SweepError(f"this sweep was started by keydoor {code}, and a worker has {code_version()}; install one")
    try:
        return _train(block, keep)
    except ValueError as error:  # the settings were checked before: the training has diverged
        if len(block.seeds) == 1:
            return [Run(block.setting, block.seeds[0], None, None, str(error))]
    return [run for seed in block.seeds for run in run_block(block._replace(seeds=(seed,)), code, keep)]


def _train(block: Block, keep: bool) -> list[Run]:
    settings = block.settings
    config = TrainingConfig(**{k: v for k, v in settings.items() if k not in (*SIZES, "reward_mode")})
    start = perf_counter()
    trained = train_many(
        block.seeds, reward_mode=settings["reward_mode"], config=config, **{name: settings[name] for name in SIZES}
    )
    seconds = (perf_counter() - start) / len(block.seeds)
    runs = []
    for seed, (model, curve) in zip(block.seeds, trained, strict=True):
        world: dict[str, Any] = {name: settings[name] for name in WORLD}
        # Greedy play has one trajectory for each target, so that one episode of each gives the exact success.
        success = evaluate_policy(model, episodes=settings["colours"], seed=0, **world)["success_rate"]
        row = {
            "setting": block.setting,
            "seed": seed,
            "success": success,
            "seconds": seconds,
            "code": code_version(),
            "settings": settings,
            "curve": curve,
        }
        runs.append(Run(block.setting, seed, row, model_bytes(model, seed, settings) if keep else None, None))
    return runs


def blocks(todo: Todo, size: int | None, workers: int) -> list[Block]:
    """Runs of one setting, so many at a time; by default such that every worker has something to do."""
    size = size or max(1, min(_STACKED, len(todo) // workers))
    found: list[Block] = []
    for name, settings, seed in todo:
        if found and found[-1].setting == name and len(found[-1].seeds) < size:
            found[-1] = found[-1]._replace(seeds=(*found[-1].seeds, seed))
        else:
            found.append(Block(name, settings, (seed,)))
    return found


def _stacked(todo: Todo, code: str, keep: bool, size: int | None, workers: int | None, address: str | None) -> Finished:
    for block in blocks(todo, size, 1):
        yield run_block(block, code, keep)


def _joblib(todo: Todo, code: str, keep: bool, size: int | None, workers: int | None, address: str | None) -> Finished:
    joblib = import_module("joblib")
    count = workers or joblib.cpu_count()
    tasks = [joblib.delayed(run_block)(block, code, keep) for block in blocks(todo, size, count)]
    parallel = joblib.Parallel(n_jobs=count, backend="loky", return_as="generator_unordered", batch_size=1)
    try:
        yield from parallel(tasks)
    except BrokenProcessPool as error:
        raise SweepError(
            "a worker process of joblib has died, perhaps for want of memory; finished runs are kept, and the same "
            "sweep goes on from there"
        ) from error


def _ray(todo: Todo, code: str, keep: bool, size: int | None, workers: int | None, address: str | None) -> Finished:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read by Ray at its import: no reports to anyone
    ray = import_module("ray")
    mine = not ray.is_initialized()
    if mine:
        _connect(ray, address, workers)
    elif address is not None:
        raise SweepError(f"this process is connected to a Ray already; address {address!r} cannot be used beside it")
    waiting: dict[Any, Block] = {}
    try:
        cores = int(ray.cluster_resources().get("CPU", 0))
        if cores == 0:
            raise SweepError("this Ray has no node with a CPU to work on; add one")
        task = ray.remote(num_cpus=1, max_retries=_RETRIES)(run_block)
        waiting = {task.remote(block, code, keep): block for block in blocks(todo, size, workers or cores)}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            block = waiting.pop(done)
            yield _fetched(ray, done, block)
    finally:
        for reference in waiting:  # where something went wrong: a Ray that goes on must not go on with these
            with suppress(Exception):
                ray.cancel(reference, force=True)
        if mine:
            ray.shutdown()


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        own = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": _STORE}
        ray.init(address="local", _node_ip_address="127.0.0.1", **own, **quiet)
        return
    reached = f"no Ray answers at the address {address!r}"
    if address != "auto":
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:  # Ray itself would wait for a quarter of an hour
            socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
        except OSError as error:
            raise ConnectionError(f"{reached}: {error}") from error
    try:
        with _one_attempt():
            ray.init(address=address, **quiet)
    except Exception as error:
        raise ConnectionError(f"{reached}: {error}") from error


@contextmanager
def _one_attempt() -> Iterator[None]:
    """Where something answers that is no Ray, let Ray find out in one attempt, of 40 s, instead of twenty."""
    name = "RAY_gcs_server_port_wait_time_s"
    given = os.environ.setdefault(name, "")
    os.environ[name] = given or "1"
    try:
        yield
    finally:
        os.environ[name] = given
        if not given:
            del os.environ[name]


def _fetched(ray: Any, reference: Any, block: Block) -> list[Run]:
    seeds = ", ".join(map(str, block.seeds))
    what = f"the setting {block.setting!r} with seeds {seeds}"
    kept = "finished runs are kept, and the same sweep goes on from there"
    try:
        found: list[Run] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, SweepError):
            raise SweepError(str(error.cause)) from None
        reason = str(error).strip().splitlines()[-1]
        raise SweepError(f"{what} failed on a worker of Ray: {reason}; {kept}") from error
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0]
        raise SweepError(f"Ray gave up on {what} after {_RETRIES} retries: {reason}; {kept}") from error
    return found


_ENGINES: dict[str, tuple[Engine, str | None, str]] = {
    "stacked": (_stacked, None, ""),
    "joblib": (_joblib, "joblib", "sweep"),
    "ray": (_ray, "ray", "cluster"),
}
"""Each engine, the library it needs, and the extra that brings it."""

ENGINES = tuple(_ENGINES)
"""Where a sweep may be computed; see :mod:`keydoor.sweep`."""


def get_engine(name: str, address: str | None) -> Engine:
    """The function of an engine that is installed; an address is one that can be understood."""
    engine, library, extra = _ENGINES[name]
    if address is not None:
        if name != "ray":
            refuse("address", address, "None: only the engine ray has one")
        port = address.rpartition(":")[2] if isinstance(address, str) else ""
        if address != "auto" and not (port.isascii() and port.isdigit() and int(port) < 2**16):
            refuse("address", address, "'auto', or host:port, or ray://host:port")
    if library is not None:
        need(library, f"the engine {name!r}", extra)
    return engine


def need(library: str, who: str, extra: str) -> None:
    """Refuse early, before anything is trained, what is not installed."""
    try:
        import_module(library)
    except ImportError as error:
        raise ImportError(
            f'{who} needs {library}, which is not installed ({error}): pip install "keydoor[{extra}]"'
        ) from error
