"""The command line: ``python -m keydoor exact --rules standard --horizon 6 --json``.

Results go to stdout, everything else to stderr. Exit codes: 0, all went well; 1, failed at run time; 2, bad input; 130,
interrupted.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from keydoor import _commands
from keydoor._results import SweepError
from keydoor.exact import count_histories, evaluate_exactly
from keydoor.optima import best_deterministic_memoryless, best_stochastic_memoryless, optimal_policy
from keydoor.rules import PALETTE, RULE_SETS, get_rules

ROWS = {
    "optimal": "with memory, the optimum",
    "memoryless_deterministic": "without memory, deterministic",
    "memoryless_stochastic": "without memory, stochastic",
    "uniform": "uniformly random",
}


def exact(options: argparse.Namespace) -> None:
    """Success probabilities of the best policies, of three kinds, and of the uniform one."""
    world: dict[str, Any] = {name: getattr(options, name) for name in ("rules", "horizon", "colours", "delay")}
    tables = get_rules(options.rules, colours=options.colours, delay=options.delay)
    share = Fraction(1, len(tables.actions))
    uniform = dict.fromkeys(tables.observations, [share] * len(tables.actions))
    stochastic = best_stochastic_memoryless(**world)
    # A stationary point in small fractions is the maximum itself; else its value is only close to it.
    is_exact = stochastic.gap == 0
    found: dict[str, Any] = {
        "optimal": str(optimal_policy(**world).value),
        "memoryless_deterministic": str(best_deterministic_memoryless(**world).success_probability),
        "memoryless_stochastic": str(stochastic.success_probability)
        if is_exact
        else float(stochastic.success_probability),
        "uniform": str(evaluate_exactly(uniform, **world).success_probability),
    }
    bounds = [_outward(stochastic.success_probability, 0), _outward(stochastic.upper, 1)]
    if options.json:
        print(json.dumps({**world, **found, "memoryless_stochastic_bounds": bounds}, indent=2))
        return
    print(f"{options.rules}, horizon {options.horizon}, {options.colours} colours, delay {options.delay}:")
    print(f"  histories at which an agent may decide {count_histories(**world):,}")
    for name, title in ROWS.items():
        value = found[name]
        decimal = f"{float(Fraction(value)):.9f}" if isinstance(value, str) else f"{value:.9f}"
        print(f"  {title:31} {decimal}   {value if isinstance(value, str) else ''}".rstrip())
    print(f"  The stochastic optimum lies between {bounds[0]:.9f} and {bounds[1]:.9f}.")


def _outward(bound: Fraction, towards: int) -> float:
    """A float not inside of the bound: rounding must not make a proved interval narrower."""
    nearest = float(bound)
    inside = nearest > bound if towards == 0 else nearest < bound
    return math.nextafter(nearest, towards) if inside else nearest


class _Parser(argparse.ArgumentParser):
    """Options whose defaults are known to torch's modules alone are added when their command has been chosen."""

    fill: Callable[[argparse.ArgumentParser], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        fill, self.fill = self.fill, None
        if fill is not None:
            fill(self)
        return super().parse_known_args(args, namespace)


def parser() -> argparse.ArgumentParser:
    """What the command line understands."""
    whole = _Parser(
        prog="python -m keydoor",
        description="The key-door world, from the command line.",
        epilog="Exit codes: 0 all went well, 1 failed at run time, 2 bad input, 130 interrupted.",
    )
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    one = commands.add_parser(
        "exact",
        help="exact success probabilities of the best and of the uniform policy",
        description="Exact success probabilities: the best policy with memory, the best without (deterministic and "
        "stochastic), and the uniform one. Fractions are exact. The stochastic one is found by climbing; the interval "
        "around it is proved, and where no theorem narrows it its upper end is 1.",
    )
    one.add_argument("--rules", choices=RULE_SETS, default="standard", help="rule set (default: standard)")
    one.add_argument("--horizon", type=int, default=8, help="turns that the task allows (default: 8)")
    one.add_argument("--colours", type=int, default=2, help=f"number of colours, 2 to {len(PALETTE)} (default: 2)")
    one.add_argument("--delay", type=int, default=0, help="turns between a clue and the next valid pickup (default: 0)")
    one.add_argument("--json", action="store_true", help="print one object of JSON")
    one.set_defaults(run=exact)
    commands.add_parser(
        "train",
        help="train one network",
        description="Train one network, and print its curve. The same seed and settings give the same network.",
    ).fill = _commands.add_train
    commands.add_parser(
        "evaluate",
        help="evaluate a network that was trained",
        description="Play episodes with a network from a file, or compute exactly how often it succeeds.",
    ).fill = _commands.add_evaluate
    commands.add_parser(
        "sweep",
        help="train many seeds with several settings",
        description="Train every seed with every setting. Each finished run is written to the results file at once; "
        "the same command goes on where an interrupted one has stopped. At the end it says what the runs show.",
    ).fill = _commands.add_sweep
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a letter that the output cannot show is no bad input
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            options = parser().parse_args(given)
            options.arguments = given
            options.run(options)
        finally:
            if sys.stdout is not None:  # else the interpreter would do it at its end, with an exit code of its own
                sys.stdout.flush()
    except ValueError as error:
        return _failed(error, 2)
    except (OSError, ImportError, SweepError) as error:
        if isinstance(error, OSError) and _output_is_lost() and isinstance(error, BrokenPipeError):
            return 1  # whoever reads has seen enough, as `head` has
        if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "gymnasium", "numpy", "tqdm"):
            error = ImportError(
                f'this command needs {error.name}, which is not installed: pip install "keydoor[train]"'
            )
        return _failed(error, 1)
    except KeyboardInterrupt:
        return 130
    return 0


def _output_is_lost() -> bool:
    """Whether stdout takes nothing any more; what it still holds is then thrown away."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _failed(error: Exception, code: int) -> int:
    print(f"python -m keydoor: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
