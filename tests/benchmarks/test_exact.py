"""The exact objective of a network, its gradient, and the moments of estimators: how long they take.

``python -m tests.benchmarks.test_exact`` prints a table. Each row is divided by a yardstick of the same run: forwards
and backwards through the same network once for each history, all in one batch, without a tree. With pytest-benchmark
``pytest tests/benchmarks -o python_functions="bench_*" --benchmark-only`` times the same rows.

Measured on one thread of an otherwise idle machine with Python 3.11 and torch 2.13, the default network of 32 units:

* ``standard``, horizon 8, 10,257 histories (10,512 pairs of a history and a target): value and gradient together
  24 ms, the value alone 13 ms. Histories from which nothing can be earned in time are left out, which leaves 5,186;
  with all of them it would be 38 ms.
* ``soft``, horizon 8, 173,467 histories (195,312 pairs): 80 ms and 38 ms; with all histories 660 ms.
* Moments of REINFORCE for a memoryless table over all 52,562 episodes of ``standard`` 0.2 s, over all 976,562 of
  ``soft`` 3 s.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from keydoor._play import one_thread
from keydoor.estimators import GroupAdvantage, Reinforce, estimator_moments
from keydoor.exact import count_histories, evaluate_exactly
from keydoor.gradients import critic_table, exact_gradient, exact_objective, policy_table
from keydoor.policy import RecurrentActorCritic
from keydoor.rules import ACTIONS, OBSERVATIONS

WORLDS = ("standard", "soft")
UNIFORM = {name: [0.0] * len(ACTIONS) for name in OBSERVATIONS[:-2]}


def rows(rules: str, horizon: int = 8) -> dict[str, Callable[[], Any]]:
    """What is timed, by name; the first is the yardstick."""
    model = RecurrentActorCritic(seed=0)
    count = count_histories(rules=rules, horizon=horizon)
    world: dict[str, Any] = {"rules": rules, "horizon": horizon}
    observations = torch.arange(count) % len(OBSERVATIONS)
    previous = torch.arange(count) % (len(ACTIONS) + 1)

    def yardstick() -> None:
        with one_thread():
            logits, _, _ = model.step(observations, previous, model.initial_state(count))
            loss = torch.log_softmax(logits.double(), -1)[:, 0].sum()
            torch.autograd.grad(loss, [p for n, p in model.named_parameters() if not n.startswith("value")])

    table = policy_table(model, **world)
    return {
        "yardstick: one batch, forwards and backwards": yardstick,
        "exact_objective: the value alone": lambda: exact_objective(model, **world),
        "exact_gradient: value and gradient": lambda: exact_gradient(model, **world),
        "critic_table": lambda: critic_table(model, **world),
        "policy_table": lambda: policy_table(model, **world),
        "evaluate_exactly of that table": lambda: evaluate_exactly(table, **world),
        "estimator_moments: REINFORCE, memoryless table": lambda: estimator_moments(UNIFORM, Reinforce(), **world),
        "estimator_moments: groups of 8": lambda: estimator_moments(UNIFORM, GroupAdvantage(8), **world),
    }


@pytest.mark.parametrize("rules", WORLDS)
@pytest.mark.parametrize("name", [*rows("standard", 2)])
def bench_exact(benchmark: Any, rules: str, name: str) -> None:
    few = rules == "soft"  # up to 13 s a round
    benchmark.pedantic(rows(rules)[name], rounds=2 if few else 5, warmup_rounds=0 if few else 1)


def main() -> None:
    parser = argparse.ArgumentParser(description="time the exact world")
    parser.add_argument("--rounds", type=int, default=5, help="the fastest of so many rounds counts")
    parser.add_argument("--rules", nargs="*", default=WORLDS)
    arguments = parser.parse_args()
    for rules in arguments.rules:
        print(f"{rules}, horizon 8: {count_histories(rules=rules, horizon=8):,} histories")
        unit = 0.0
        for name, function in rows(rules).items():
            best = float("inf")
            for _ in range(arguments.rounds):
                start = time.perf_counter()
                function()
                best = min(best, time.perf_counter() - start)
            unit = unit or best
            print(f"  {name:48} {1000 * best:9.1f} ms {best / unit:8.2f} x")


if __name__ == "__main__":
    main()
