"""``tests/benchmarks/README.md`` from what the benchmarks have measured: ``python -m tests.benchmarks.report``.

Timings are those of ``results/timings.json``, which pytest-benchmark writes (``make bench``), reduced to what the table
says; the rest stands in ``results/training.json``, ``recipe.json`` and ``growth.json``. Rows of one table are of one
run, and each is divided by the first one: rates by the rate, times by the time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from keydoor.summaries import share_interval

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent / "README.md"
TITLES = {
    "bench_scalar": "One environment, through `gymnasium.make`",
    "bench_vector": "{size:,} environments, through `gymnasium.make_vec`",
    "bench_exact": "The exact world, rules `{rules}`, horizon 8",
    "bench_training": "Training: one run of the full profile (the first row: all ten), and other libraries' same steps",
}
HEAD = """\
# Benchmarks

Made by `make bench`, on one core of a machine that did little else. What each row is, is said in the modules beside \
this file. Times are CPU time of one thread, the fastest of a few rounds. A ratio is to the first row of its table, in \
the same run; rates differ between machines, ratios less. The last two tables are measured anew by \
`python -m tests.benchmarks.recipe` and `python -m tests.benchmarks.growth`.
"""


def reduce(measured: dict[str, Any]) -> dict[str, Any]:
    """What the tables need of pytest-benchmark's output.

    Args:
        measured: its JSON, as ``--benchmark-json`` writes it.

    Raises:
        ValueError: a benchmark that :data:`TITLES` does not know.
    """
    rows = []
    for one in measured["benchmarks"]:
        function = one["name"].split("[")[0]
        if function not in TITLES:
            raise ValueError(f"{one['name']} has no title; expected a function of {', '.join(TITLES)}")
        parameters = dict(one["params"] or {})
        name = parameters.pop("name")
        title = TITLES[function].format(**parameters)
        rows.append({"table": title, "row": name, "seconds": one["stats"]["min"], **one.get("extra_info", {})})
    versions = {"Python": measured["machine_info"]["python_version"]}
    return {"versions": versions, "processor": measured["machine_info"]["cpu"].get("brand_raw", "?"), "rows": rows}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown; all columns but the first are numbers."""
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def timings(reduced: dict[str, Any]) -> str:
    parts = []
    for title in dict.fromkeys(row["table"] for row in reduced["rows"]):
        rows = [row for row in reduced["rows"] if row["table"] == title]
        unit, lines = rows[0]["seconds"] / rows[0].get("steps", 1), []
        for row in rows:
            each = row["seconds"] / row.get("steps", 1)
            shown = f"{1e-6 / each:,.3f}" if "steps" in row else f"{1000 * each:,.1f}"
            ratio = unit / each if "steps" in row else each / unit
            lines.append((row["row"], shown, f"{ratio:,.2f}"))
        heads = ("", "million steps/s", "rate / first") if "steps" in rows[0] else ("", "ms", "time / first")
        title = title.replace("1 environments", "1 environment") if title.startswith("1 ") else title
        parts.append(f"## {title}\n\n{table(heads, lines)}")
    return "\n".join(parts)


def training(found: dict[str, Any]) -> str:
    lines = [
        (
            row["row"],
            f"{row['cpu_seconds']:.2f}",
            f"{row['steps_per_cpu_second']:,.0f}",
            f"{row['times_the_floor']:.1f}" if "times_the_floor" in row else "",
            f"{row['times_recurrent_ppo']:.2f}" if row["times_recurrent_ppo"] else "",
            f"{row['memory_mb']:.0f}",
        )
        for row in found["rows"]
    ]
    heads = ("", "CPU s", "steps per CPU s", "times the floor", "times RecurrentPPO", "MB")
    floor = (
        f"The floor is {1000 * found['floor_cpu_seconds']:.0f} ms: the {found['operations'] / 1e9:.2f} billion "
        f"floating-point operations of the network in the whole profile, at the {found['matmul']['gigaflops']:.0f} "
        f"billion a second of a product of two matrices of {found['matmul']['rows']} rows."
    )
    left_out = "".join(f"\n- {name}: left out, {reason}" for name, reason in found["left_out"].items())
    return f"## Training beside the floor and beside other libraries\n\n{floor}\n\n{table(heads, lines)}{left_out}"


def recipe(found: dict[str, Any]) -> str:
    lines = []
    for name, variant in found["variants"].items():
        low, high = share_interval(variant["solved"], variant["runs"])
        lines.append((name, f"{variant['runs']}", f"{variant['solved']}", f"{low:.2f} to {high:.2f}"))
    first, last = found["seeds"]
    text = (
        f"Seeds {first} to {last}, the sizes of the profile `{found['profile']['name']}`, horizon "
        f"{found['config']['task_horizon']}. Solved: greedy play, evaluated exactly, succeeds with probability at "
        "least 0.95. The interval of the share is Clopper and Pearson's, at 95 %."
    )
    return f"## Success by the recipe\n\n{text}\n\n{table(('reward', 'runs', 'solved', 'interval'), lines)}"


def growth(found: dict[str, Any]) -> str:
    lines = []
    for series in found["series"]:
        sizes, seconds = series["sizes"], series["cpu_seconds"]
        law = f"x^{series['exponent']:.2f}" if series["fit"] == "power" else f"{series['base']:.2f}^x"
        span = f"{sizes[0]} to {sizes[len(seconds) - 1]}"
        lines.append((f"{series['name']}, by {series['against']}", span, f"{1000 * seconds[-1]:,.0f}", law))
    text = "![CPU time against horizon, colours, delay and seeds, on logarithmic axes](results/growth.svg)"
    return f"## How the cost grows\n\n{text}\n\n{table(('', 'sizes', 'ms at the largest', 'cost ~'), lines)}"


def pages(found: dict[str, Any]) -> str:
    lines = [
        (
            row["page"],
            f"{row['kilobytes']:,.0f}",
            f"{row['paint_ms']:,.0f}",
            f"{row['shift']:.3f}",
            f"{row['task_seconds']:.2f}",
            f"{row['elements']:,.0f}",
            f"{row['requests']:.0f}",
        )
        for row in found["rows"]
    ]
    heads = ("", "kB", "largest paint, ms", "shift", "work, s", "elements", "requests")
    text = (
        "Opened in Chromium from a server on the same machine, without a cache: weight as sent (text compressed), "
        "largest contentful paint and layout shift as the browser reports them, seconds of work of the page's main "
        f"thread. {found.get('peers', '')}"
    )
    return f"## Pages\n\n{text.strip()}\n\n{table(heads, lines)}"


def render(results: Path = RESULTS) -> str:
    """The whole page, from the files that are there."""
    parts = [HEAD]
    for name, write in (
        ("timings", timings),
        ("training", training),
        ("recipe", recipe),
        ("growth", growth),
        ("pages", pages),
    ):
        path = results / f"{name}.json"
        if not path.is_file():
            continue
        found = json.loads(path.read_text("utf8"))
        if name == "timings":
            known = ", ".join(f"{package} {version}" for package, version in found["versions"].items())
            parts.append(f"Timings: {known}, {found['processor']}.\n")
        parts.append(write(found))
        if "remark" in found:  # added by hand; a new measurement replaces the file
            parts.append(found["remark"] + "\n")
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description="write tests/benchmarks/README.md")
    parser.add_argument("--timings", type=Path, help="take over the JSON that pytest-benchmark has written")
    arguments = parser.parse_args()
    if arguments.timings:
        reduced = reduce(json.loads(arguments.timings.read_text("utf8")))
        text = json.dumps(reduced, indent=1, ensure_ascii=False) + "\n"
        (RESULTS / "timings.json").write_text(text, "utf8")
    README.write_text(render(), "utf8")
    print(f"{README.name} is written.")


if __name__ == "__main__":
    main()
