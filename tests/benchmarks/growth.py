"""How the cost grows: with the horizon, the colours, the delay and the number of seeds.

``python -m tests.benchmarks.growth`` times one update of a stack of networks (:func:`keydoor.stacked.train_many`) and
the two exact evaluations (:func:`keydoor.exact.evaluate_exactly` of a memoryless table,
:func:`keydoor.gradients.exact_objective` of a network), writes ``growth.json`` and ``growth.svg`` to
``tests/benchmarks/results``, and fits each series by least squares on logarithms: a power, cost ~ x^e, or, where each
step multiplies the cost, an exponential, cost ~ b^x. The largest three points count, since for small sizes the cost is
that of starting at all.

The table's histories fall together where the world is in the same state, so its cost is a power of the horizon. A
network tells all of them apart, and there are exponentially many.

All times are CPU time on one thread, the fastest of a few rounds. An update is timed as the difference of two runs of
different length, without evaluations on the way.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from keydoor._play import one_thread
from keydoor.exact import count_histories, evaluate_exactly
from keydoor.gradients import exact_objective
from keydoor.policy import RecurrentActorCritic
from keydoor.rules import get_rules
from keydoor.stacked import train_many
from keydoor.training import TrainingConfig
from tests.benchmarks.recipe import RESULTS, best, versions, write_json

UPDATES = 8
EPISODES = 48
STYLE = Path(__file__).parents[2] / "book" / "figures.mplstyle"
HORIZONS, COLOURS, DELAYS, SEEDS = (4, 8, 16, 32, 64), (2, 3, 4, 6, 8), (1, 4, 8, 16, 32), (1, 2, 5, 10, 20)
EXACT_HORIZONS, EXACT_COLOURS, EXACT_DELAYS = (6, 7, 8, 9, 10), (2, 3, 4, 5), (0, 1, 2, 3, 4)


def update_seconds(rounds: int, seeds: int = 5, **world: Any) -> float:
    """CPU seconds of one update of all networks together. The rules are soft: episodes last to the horizon."""
    config = TrainingConfig(rules="soft", **world)

    def run(updates: int) -> None:
        train_many(
            range(seeds),
            reward_mode="potential",
            updates=updates,
            episodes_per_update=EPISODES,
            evaluation_interval=updates + 1,
            evaluation_episodes=1,
            config=config,
        )

    run(1)
    return (best(lambda: run(UPDATES + 1), rounds) - best(lambda: run(1), rounds)) / UPDATES


def exact_seconds(rounds: int, **world: Any) -> tuple[float, float, int]:
    """CPU seconds of the two exact evaluations, and how many histories they look at."""
    names = get_rules(colours=world.get("colours", 2))
    table = {name: [1 / len(names.actions)] * len(names.actions) for name in names.observations[:-2]}
    model = RecurrentActorCritic(seed=0, colours=len(names.colours))

    def objective() -> None:
        with one_thread(), torch.no_grad():
            exact_objective(model, **world)

    objective()
    return (
        best(lambda: evaluate_exactly(table, **world), rounds),
        best(objective, rounds),
        count_histories(**world),
    )


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    middle, height = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - middle) * (b - height) for a, b in zip(x, y, strict=True))
    return above / sum((a - middle) ** 2 for a in x)


def fit(sizes: Sequence[float], seconds: Sequence[float], kind: str) -> float:
    """The exponent of a power, or the base of an exponential, by least squares over the last three points."""
    x, y = list(sizes)[-3:], [math.log(value) for value in list(seconds)[-3:]]
    if kind == "power":
        return slope([math.log(value) for value in x], y)
    return math.exp(slope(x, y))


def series(name: str, quantity: str, sizes: Sequence[int], seconds: Sequence[float], kind: str) -> dict[str, Any]:
    value = fit(sizes, seconds, kind)
    print(f"{name} against {quantity}: {kind}, {value:.2f}", [f"{1000 * x:.2f} ms" for x in seconds], flush=True)
    return {
        "name": name,
        "against": quantity,
        "sizes": list(sizes),
        "cpu_seconds": [round(x, 7) for x in seconds],
        "fit": kind,
        "exponent" if kind == "power" else "base": round(value, 3),
    }


def measure(rounds: int) -> list[dict[str, Any]]:
    update = "one update of 5 networks"
    found = [
        series(update, "horizon", HORIZONS, [update_seconds(rounds, task_horizon=n) for n in HORIZONS], "power"),
        series(update, "colours", COLOURS, [update_seconds(rounds, colours=n) for n in COLOURS], "power"),
        # The delay costs turns, and the horizon gives them: it grows with the delay.
        series(
            update,
            "delay",
            DELAYS,
            [update_seconds(rounds, delay=n, task_horizon=8 + n) for n in DELAYS],
            "power",
        ),
        series("one update", "seeds", SEEDS, [update_seconds(rounds, seeds=n) for n in SEEDS], "power"),
    ]
    for quantity, sizes, kind, world in (
        ("horizon", EXACT_HORIZONS, "exponential", lambda n: {"horizon": n}),
        ("colours", EXACT_COLOURS, "power", lambda n: {"colours": n, "horizon": 7}),
        ("delay", EXACT_DELAYS, "exponential", lambda n: {"delay": n, "horizon": 7 + n}),
    ):
        rows = [exact_seconds(rounds, **world(n)) for n in sizes]
        for column, name in enumerate(("evaluate_exactly of a table", "exact_objective of a network")):
            law = "power" if quantity == "horizon" and column == 0 else kind
            found.append(series(name, quantity, sizes, [row[column] for row in rows], law))
        found[-1]["histories"] = found[-2]["histories"] = [row[2] for row in rows]
    return found


def draw(found: Sequence[dict[str, Any]], path: Path) -> None:
    """Four panels, one for each quantity, with the fit in the legend."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    with pyplot.style.context(str(STYLE)):
        figure, panels = pyplot.subplots(2, 2, figsize=(11, 8))
        marks = dict(zip(("one", "evaluate_exactly", "exact_objective"), "osD", strict=True))
        for panel, quantity in zip(panels.flat, ("horizon", "colours", "delay", "seeds"), strict=True):
            for row in found:
                if row["against"] == quantity:
                    power = row["fit"] == "power"
                    law = f"$\\propto x^{{{row['exponent']:.2f}}}$" if power else f"$\\propto {row['base']:.2f}^x$"
                    milliseconds = [1000 * value for value in row["cpu_seconds"]]
                    mark = marks[row["name"].split()[0]]
                    panel.plot(row["sizes"], milliseconds, marker=mark, label=f"{row['name']}\n{law}")
            panel.set_yscale("log")
            if quantity in ("horizon", "seeds", "colours"):
                panel.set_xscale("log", base=2)
            ticks = sorted({size for row in found if row["against"] == quantity for size in row["sizes"]})
            crowded = {"horizon": (7, 9, 10), "delay": (1, 2, 3)}.get(quantity, ())
            ticks = [size for size in ticks if size not in crowded]
            panel.set_xticks(ticks, [str(size) for size in ticks])
            panel.minorticks_off()
            panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
            panel.set_xlabel(
                {"horizon": "horizon (turns)", "delay": "delay (turns)"}.get(quantity, f"number of {quantity}")
            )
            panel.set_ylabel("CPU time (ms)")
            panel.legend(fontsize=9)
        partial = path.with_suffix(".partial.svg")
        figure.savefig(partial, metadata={"Date": None})
        partial.replace(path)
        pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="how the cost grows")
    parser.add_argument("--rounds", type=int, default=3, help="the fastest of so many rounds counts")
    arguments = parser.parse_args()
    found = measure(arguments.rounds)
    settings = {
        "episodes_per_update": EPISODES,
        "epochs": TrainingConfig().epochs,
        "rules_of_the_updates": "soft",
        "rules_of_the_exact_evaluations": "standard",
        "world_of_the_updates": "horizon 8 (8 + delay), 2 colours, no delay, 5 seeds, unless it is what grows",
        "world_of_the_exact_evaluations": "2 colours, no delay; horizon 7 against colours, 7 + delay against delay",
    }
    print(write_json("growth.json", {"settings": settings, "versions": versions(), "series": found}))
    draw(found, RESULTS / "growth.svg")


if __name__ == "__main__":
    main()
