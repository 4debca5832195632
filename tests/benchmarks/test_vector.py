"""Steps a second of the world, one episode at a time and many at once, beside environments that others use.

``python -m tests.benchmarks.test_vector`` prints the tables. Each row is divided by CartPole of the same run: through
``gymnasium.make`` where there is one environment, and Gymnasium's native ``CartPoleVectorEnv`` of the same size where
there are many. The rows of a table take turns, and the fastest round of each counts. With pytest-benchmark
``pytest tests/benchmarks/test_vector.py -o python_functions="bench_*" --benchmark-only`` times the same rows.

Actions are random and valid, drawn beforehand; resets count as the time they take, not as steps where they are calls
of their own. A row that a vector environment spends on a reset counts as a step, here and for CartPole. A peer that is
not installed is left out, and the table says why. Memory is what Python's tracing counts after some steps, numpy's
arrays included.

Measured on one core of a machine that did little else: Python 3.11, numpy 2.4.6, Gymnasium 1.4.0, Minigrid 3.2.0,
popgym 1.0.7 (`results/timings.json` has all rows).

* One environment: 7.7 times CartPole and 5.4 times FrozenLake, 4.3 times popgym's RepeatFirst, 82 times DoorKey-5x5.
  Half of the random actions end an episode; where none does, 11 times CartPole.
* Vector, neither copies nor infos: 89 M steps/s at 1,024 and 195 M at 65,536; 11 to 15 times CartPole's native vector
  environment of the same size, with a collector's limit and shaping 10 to 12 times.
* With copies 9 to 10 times CartPole, with copies and infos 2 to 3 times.
* Memory: 77 bytes for each of 65,536 environments (CartPole 115), 152 with copies and infos; one alone takes 0.13 MB,
  most of it the stock of targets and the tables.
* Gymnasium's environments in JAX (0.10, on the CPU) are no yardstick: 0.05 to 0.07 M steps/s, measured apart.
"""

from __future__ import annotations

import argparse
import importlib
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

SIZES = (1, 64, 1_024, 65_536)
KEY_DOOR = "keydoor.env:keydoor/KeyDoor-v1"
BARE = {"copy": False, "with_info": False}

SCALAR = {  # name: module to import first, id, more arguments
    "CartPole-v1": ("gymnasium", "CartPole-v1", {}),
    "FrozenLake-v1": ("gymnasium", "FrozenLake-v1", {}),
    "MiniGrid-DoorKey-5x5-v0": ("minigrid", "MiniGrid-DoorKey-5x5-v0", {}),
    "popgym-RepeatFirstEasy-v0": ("popgym", "popgym-RepeatFirstEasy-v0", {}),
    "key-door": ("keydoor.env", KEY_DOOR, {}),
    "key-door, horizon 100, never ends early": ("keydoor.env", KEY_DOOR, {"rules": "soft", "task_horizon": 100}),
}
"""One environment through ``gymnasium.make`` with its usual wrappers; the first is the yardstick."""

VECTOR = {
    "CartPole-v1, native": ("gymnasium", "CartPole-v1", {}),
    "phys2d/CartPole-v1, native, JAX": ("gymnasium.envs.phys2d", "phys2d/CartPole-v1", {}),
    "key-door, same_step": ("keydoor.env", KEY_DOOR, {"autoreset_mode": "same_step", **BARE}),
    "key-door, next_step": ("keydoor.env", KEY_DOOR, {"autoreset_mode": "next_step", **BARE}),
    "key-door, next_step, collector, shaped": (
        "keydoor.env",
        KEY_DOOR,
        {"autoreset_mode": "next_step", "collector_limit": 6, "reward_mode": "potential", **BARE},
    ),
    "key-door, next_step, with copies": ("keydoor.env", KEY_DOOR, {"with_info": False}),
    "key-door, next_step, with copies and infos": ("keydoor.env", KEY_DOOR, {}),
}
"""Many environments through ``gymnasium.make_vec``; the first is the yardstick."""


class Missing(Exception):
    """A peer that is not installed."""


def need(module: str) -> None:
    """Import what registers the ids, or say what brings it."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        extra = "gymnasium[jax]" if module == "gymnasium.envs.phys2d" else "keydoor[bench]"
        how = f'pip install "{extra}"' + (", or make bench" if extra == "keydoor[bench]" else "")
        raise Missing(f"{module} is not installed ({error}): {how}") from error


def scalar_row(name: str, steps: int = 2_000) -> tuple[Callable[[], None], int]:
    """What is timed for one environment, and how many steps that is."""
    module, env_id, arguments = SCALAR[name]
    need(module)
    env = gymnasium.make(env_id, **arguments)
    count = int(env.action_space.n)
    ends = {count - 1} if "soft" in arguments.values() else set()  # without `finish` this one lasts
    choices = [action for action in range(count) if action not in ends]
    actions = [choices[i] for i in np.random.default_rng(0).integers(0, len(choices), steps)]
    env.reset(seed=0)

    def run() -> None:
        step, reset = env.step, env.reset
        for action in actions:
            _, _, terminated, truncated, _ = step(action)
            if terminated or truncated:
                reset()

    run()
    return run, steps


def vector_row(name: str, size: int) -> tuple[Callable[[], None], int]:
    """What is timed for many environments, and how many steps of single environments that is."""
    module, env_id, arguments = VECTOR[name]
    need(module)
    envs = gymnasium.make_vec(env_id, num_envs=size, vectorization_mode="vector_entry_point", **arguments)
    actions = [*np.random.default_rng(0).integers(0, envs.single_action_space.n, (64, size))]
    envs.reset(seed=0)
    turns = max(4, min(1_000, 400_000 // size))
    position = 0

    def run() -> None:
        nonlocal position
        step = envs.step
        for turn in range(position, position + turns):
            step(actions[turn % 64])
        position += turns

    run()
    return run, turns * size


def bytes_per_environment(name: str, size: int) -> float:
    """Traced memory after some steps, over the number of environments; arrays of actions are not counted."""
    module, env_id, arguments = VECTOR[name]
    need(module)
    actions = np.zeros(size, dtype=np.int64)
    gymnasium.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point", **arguments)  # caches, imports
    tracemalloc.start()
    try:
        envs = gymnasium.make_vec(env_id, num_envs=size, vectorization_mode="vector_entry_point", **arguments)
        envs.reset(seed=0)
        held = [envs.step(actions) for _ in range(3)][-1:]
        found = tracemalloc.get_traced_memory()[0]
        del held
        return found / size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [*SCALAR])
def bench_scalar(benchmark: Any, name: str) -> None:
    try:
        run, steps = scalar_row(name)
    except Missing as reason:
        pytest.skip(str(reason))
    benchmark.extra_info["steps"] = steps
    benchmark.pedantic(run, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [*VECTOR])
def bench_vector(benchmark: Any, name: str, size: int) -> None:
    try:
        run, steps = vector_row(name, size)
    except Missing as reason:
        pytest.skip(str(reason))
    benchmark.extra_info["steps"] = steps
    benchmark.pedantic(run, rounds=5, warmup_rounds=1)


def table(title: str, makers: dict[str, Callable[[], tuple[Callable[[], None], int]]], rounds: int) -> None:
    """Print steps a second and the ratio to the first row, whose rounds lie between those of the others."""
    print(title)
    rows, best = {}, {}
    for name, make in makers.items():
        try:
            rows[name] = make()
        except Missing as reason:
            print(f"  {name:44} left out: {reason}")
    for _ in range(rounds):
        for name, (run, steps) in rows.items():
            start = time.perf_counter()
            run()
            best[name] = max(best.get(name, 0.0), steps / (time.perf_counter() - start))
    unit = best[next(iter(rows))]
    for name, rate in best.items():
        print(f"  {name:44} {rate / 1e6:10.3f} M steps/s {rate / unit:8.2f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description="time the scalar and the vector environment beside others")
    parser.add_argument("--rounds", type=int, default=20, help="the fastest of so many rounds counts")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    arguments = parser.parse_args()
    makers = {name: lambda name=name: scalar_row(name) for name in SCALAR}
    table("one environment, through gymnasium.make", makers, arguments.rounds)
    for size in arguments.sizes:
        many = {name: lambda name=name, size=size: vector_row(name, size) for name in VECTOR}
        table(f"{size:,} environment{'s' * (size > 1)}, through gymnasium.make_vec", many, arguments.rounds)
    print("bytes for each environment, at " + ", ".join(f"{size:,}" for size in arguments.sizes))
    for name in VECTOR:
        try:
            found = [bytes_per_environment(name, size) for size in arguments.sizes]
        except Missing:
            continue
        print(f"  {name:44} " + " ".join(f"{value:10,.0f}" for value in found))


if __name__ == "__main__":
    main()
