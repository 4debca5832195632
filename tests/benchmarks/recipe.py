"""How often the recipe works: a hundred fresh seeds, with shaping and without, in the sizes of the full profile.

``python -m tests.benchmarks.recipe`` trains them in blocks (:func:`keydoor.stacked.train_many`) and writes
``tests/benchmarks/results/recipe.json``. The seeds are not those of the lab, and not those with which the recipe was
found. A run has solved the task if its greedy policy wins in at least .95 of the episodes. Greedy play has one
trajectory for each target, so its success is exact, and .95 means all of them. The success of sampled play is exact
too, from the tree of histories.

The recipe was made for the shaped reward. So that the comparison is fair, the sparse reward also gets the settings that
served it best in a search of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import keydoor
from keydoor.gradients import exact_objective
from keydoor.profiles import PROFILES
from keydoor.stacked import train_many
from keydoor.training import TrainingConfig, evaluate_policy

RESULTS = Path(__file__).parent / "results"
FULL = PROFILES["full"]
SOLVED = 0.95
VARIANTS: dict[str, tuple[str, dict[str, float]]] = {
    "shaped": ("potential", {}),
    "sparse": ("sparse", {}),
    "sparse, best settings found": (
        "sparse",
        {"gae_lambda": 1.0, "learning_rate": 0.02, "entropy_coefficient": 0.03},
    ),
}
"""What is compared: name, reward mode, and what differs from the recipe."""


def best(function: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the fastest round."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def versions() -> dict[str, str]:
    """Where numbers come from: other versions may give others."""
    return {
        "keydoor": keydoor.__version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "processor": platform.machine(),
    }


def write_json(name: str, data: Any) -> Path:
    """Whole or not at all."""
    RESULTS.mkdir(exist_ok=True)
    path, partial = RESULTS / name, RESULTS / f"{name}.partial"
    partial.write_text(json.dumps(data, indent=1) + "\n", "utf8")
    os.replace(partial, path)
    return path


def measure(seeds: range, block: int, config: TrainingConfig) -> dict[str, Any]:
    world: dict[str, Any] = {"rules": config.rules, "colours": config.colours, "delay": config.delay}
    size: dict[str, int] = {
        "updates": FULL.updates,
        "episodes_per_update": FULL.episodes_per_update,
        "evaluation_interval": FULL.updates,
        "evaluation_episodes": config.colours,
    }
    variants: dict[str, Any] = {}
    for name, (mode, changes) in VARIANTS.items():
        recipe = dataclasses.replace(config, **changes)
        greedy: list[float] = []
        sampled: list[float] = []
        for first in range(seeds.start, seeds.stop, block):
            runs = train_many(range(first, min(first + block, seeds.stop)), reward_mode=mode, config=recipe, **size)
            for model, _ in runs:
                played = evaluate_policy(
                    model, episodes=config.colours, seed=0, task_horizon=config.task_horizon, **world
                )
                greedy.append(played["success_rate"])
                with torch.no_grad():
                    sampled.append(exact_objective(model, horizon=config.task_horizon, **world).item())
            print(f"{name}: {sum(x >= SOLVED for x in greedy)} of {len(greedy)} have solved the task", flush=True)
        variants[name] = {
            "reward_mode": mode,
            "changes": changes,
            "runs": len(greedy),
            "solved": sum(x >= SOLVED for x in greedy),
            "greedy_success": greedy,
            "sampled_success": [round(x, 6) for x in sampled],
        }
    return {
        "question": f"share of runs whose greedy policy, evaluated exactly, wins at least {SOLVED} of the episodes",
        "seeds": [seeds.start, seeds.stop - 1],
        "block": block,
        "profile": {"name": FULL.name, "updates": FULL.updates, "episodes_per_update": FULL.episodes_per_update},
        "config": dataclasses.asdict(config),
        "versions": versions(),
        "variants": variants,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="how often the recipe works")
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--runs", type=int, default=100, help="how many seeds")
    parser.add_argument("--block", type=int, default=20, help="how many are trained together")
    parser.add_argument("--horizon", type=int, default=8)
    parser.add_argument("--output", default="recipe.json", help="name of the file in tests/benchmarks/results")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.runs)
    result = measure(seeds, arguments.block, TrainingConfig(task_horizon=arguments.horizon))
    print(write_json(arguments.output, result))


if __name__ == "__main__":
    main()
