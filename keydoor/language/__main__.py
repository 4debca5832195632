"""The command line: ``python -m keydoor.language train --seed 1``.

Results go to stdout, everything else to stderr. Exit codes as of ``python -m keydoor``: 0, all went well; 1, failed at
run time, which includes missing weights and packages; 2, bad input; 130, interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keydoor._checks import refuse
from keydoor.language.results import STORED, provenance, save, stored
from keydoor.language.texts import LANGUAGES, WORDINGS
from keydoor.language.weights import WeightsError, load, require
from keydoor.rules import PALETTE, REWARD_MODES, RULE_SETS


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _loaded(options: argparse.Namespace) -> Any:
    require()  # before the weights are looked for: the message names the extra
    import torch

    torch.set_num_threads(options.threads)
    return load(options.weights)


def _names(options: argparse.Namespace) -> dict[str, str] | None:
    if options.colours is None:
        return None
    parts = options.colours.split(",")
    if len(parts) != 2:
        refuse("--colours", options.colours, "two names with a comma, such as yellow,purple")
    return {"red": parts[0], "blue": parts[1]}


def train(options: argparse.Namespace) -> None:
    """Train SmolLM2, or a model in a folder, to open the right door."""
    require()
    from keydoor.language.adapters import save_adapter
    from keydoor.language.learning import LanguageSettings
    from keydoor.language.learning import train as learn

    given = {f.name: getattr(options, f.name) for f in dataclasses.fields(LanguageSettings) if hasattr(options, f.name)}
    settings = LanguageSettings(**given)
    for name in ("adapter", "checkpoint"):
        file = getattr(options, name)
        if file is not None and not Path(file).absolute().parent.is_dir():
            refuse(f"--{name}", file, "the name of a file in a folder that there is")
    loaded = _loaded(options)
    _say("update  exact success  of the rollouts  CPU seconds")

    def show(row: dict[str, Any]) -> None:
        played = f"{row['sampled']:15.4f}" if "sampled" in row else " " * 15
        _say(f"{row['update']:6}  {row['success']:13.4f}  {played}  {row['cpu_seconds']:11.1f}")

    run = learn(loaded, settings, seed=options.seed, checkpoint=options.checkpoint, progress=show)
    about = {"settings": dataclasses.asdict(settings), "seed": run.seed, "weights": loaded.source.get("sha256")}
    if options.adapter is not None:
        save_adapter(options.adapter, loaded.model, about)
    last = run.curve[-1]["success"]
    _print({**about, "weights": loaded.source, "success": last, "curve": run.curve, "logprobs": run.logprobs}, options)


def score(options: argparse.Namespace) -> None:
    """The table of a model, and its exact success."""
    require()
    from keydoor.language.adapters import load_adapter
    from keydoor.language.scoring import ActionScorer, situation_prompts
    from keydoor.language.tables import calibrate, exact_success, probabilities

    loaded, names = _loaded(options), _names(options)
    said = {"language": options.language, "wording": options.wording, "names": names}
    scorer = ActionScorer(loaded.model, loaded.tokenizer, situation_prompts(**said), names=names)
    base = table = scorer.table()
    if options.adapter is not None:
        load_adapter(options.adapter, loaded.model)
        table = ActionScorer(loaded.model, loaded.tokenizer, situation_prompts(**said), names=names).table()
    where = {"rules": options.rules, "horizon": options.horizon}
    plain, fair = (exact_success(probabilities(x), **where) for x in (table, calibrate(table, base)))
    found = {"success": float(fair.probability), "success_without_calibration": float(plain.probability)}
    _print({"weights": loaded.source, **said, **where, **found, "logprobs": table, "reference": base}, options)


def transfer(options: argparse.Namespace) -> None:
    """What a trained model does with other words, other colours and another language."""
    require()
    from keydoor.language.transfer import transfer_rows

    loaded = _loaded(options)
    rows = transfer_rows(loaded, {0: options.adapter}, rules=options.rules, horizon=options.horizon)
    _print({"weights": loaded.source, "rows": rows}, options)


def record(options: argparse.Namespace) -> None:
    """Make the stored results anew, or compare with them."""
    require()
    from keydoor.language import record as plan

    work = Path(options.work)
    began = time.process_time()
    command = f"python -m keydoor.language record {options.what}"
    loaded: Any = None if options.what == "transcript" else _loaded(options)
    source = {"model": "a script"} if loaded is None else loaded.source
    if options.what == "training":
        plan.run_planned(loaded, work, _say)
        found = plan.training(work)
        spent = sum(run["curve"][-1]["cpu_seconds"] for run in found["runs"])
    else:
        found = plan.fields(options.what, loaded, work)
        spent = time.process_time() - began
    about = provenance(command, source, cpu_seconds=spent, threads=options.threads)
    path = save(options.what, {"provenance": about, **found}, options.folder)
    _print({"file": str(path), "provenance": about}, options)


def check(options: argparse.Namespace) -> None:
    """The short form of the chapter: score the untrained model anew, and compare with what is stored."""
    require()
    from keydoor.language.scoring import ActionScorer, situation_prompts

    loaded = _loaded(options)
    kept = stored("training")["runs"][0]["logprobs"]["before"]
    table = ActionScorer(loaded.model, loaded.tokenizer, situation_prompts(), forms=("name",)).table()
    worst = max(abs(a - b) for row, old in zip(table, kept, strict=True) for a, b in zip(row, old, strict=True))
    _print({"weights": loaded.source, "worst_difference": worst, "tolerance": options.tolerance}, options)
    if worst > options.tolerance:
        raise WeightsError(f"a stored log-probability differs by {worst:.2g}; expected at most {options.tolerance}")


def real_model(options: argparse.Namespace) -> None:
    """The profile real-model: Qwen3-0.6B through TRL on a GPU."""
    from keydoor.language import real_model as home

    given = {name: getattr(options, name) for name in home.settings_names() if hasattr(options, name)}
    settings = home.RealModelSettings(**given)
    if options.dry_run:
        _print(
            {
                "settings": dataclasses.asdict(settings),
                "memory_gb": round(home.memory_needed(settings), 1),
                "obstacles": home.obstacles(settings),
            },
            options,
        )
        return
    _print({"settings": dataclasses.asdict(settings), "log": home.train_real_model(settings)}, options)


def accelerate(options: argparse.Namespace) -> None:
    """The path of a configuration of accelerate."""
    from keydoor.language.real_model import launch_file

    print(launch_file(options.name))


def _print(found: dict[str, Any], options: argparse.Namespace) -> None:
    text = json.dumps(found, indent=None if options.compact else 1, ensure_ascii=False, allow_nan=False)
    print(text)


def parser() -> argparse.ArgumentParser:
    """What the command line understands.

    Returns:
        The parser.

    Example:
        >>> parser().parse_args(["score", "--language", "ru"]).language
        'ru'
    """
    whole = argparse.ArgumentParser(
        prog="python -m keydoor.language",
        description="A real language model in the key-door world. Results are JSON on stdout.",
        epilog="Exit codes: 0 all went well, 1 failed at run time or something is not installed, 2 bad input, "
        "130 interrupted.",
    )
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str, *, model: bool = True) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=run.__doc__)
        one.set_defaults(run=run)
        one.add_argument("--compact", action="store_true", help="JSON on one line")
        if model:
            one.add_argument("--weights", metavar="FOLDER", help="a model (default: SmolLM2 from its package)")
            one.add_argument("--threads", type=int, default=1, metavar="N", help="threads of torch (default: 1)")
        return one

    one = command("train", train, "train the model on a CPU, in about two minutes")
    one.add_argument("--seed", type=int, default=1, metavar="N", help="seed, at least 0 (default: 1)")
    one.add_argument("--adapter", metavar="FILE", help="write what was learnt to this file (default: it is not kept)")
    one.add_argument("--checkpoint", metavar="FILE", help="write a checkpoint after each update, and go on from it")
    _world(one, suppress=True)
    for name, kind, text in (
        ("updates", int, "updates of the policy (default: 40)"),
        ("group_size", int, "rollouts of each target in an update (default: 256)"),
        ("epochs", int, "gradient steps per update (default: 1)"),
        ("learning_rate", float, "step size at the start (default: 0.002)"),
        ("clip", float, "clipping of the ratios (default: 0.2)"),
        ("rank", int, "rank of the adapters (default: 8)"),
        ("layers", int, "layers with adapters (default: 8)"),
    ):
        flags = f"--{name.replace('_', '-')}"
        one.add_argument(flags, type=kind, default=argparse.SUPPRESS, metavar="X", help=text)
    modes = f"what a turn is credited with: {', '.join(REWARD_MODES)} (default: sparse)"
    one.add_argument("--reward-mode", choices=REWARD_MODES, default=argparse.SUPPRESS, help=modes, metavar="MODE")
    for name in ("calibrated", "scale"):
        one.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS)

    one = command("score", score, "the table of scores and the exact success")
    one.add_argument("--language", choices=LANGUAGES, default="en")
    one.add_argument("--wording", choices=WORDINGS, default="plain")
    one.add_argument("--colours", metavar="A,B", help=f"other names for red and blue, of {', '.join(PALETTE)}")
    one.add_argument("--adapter", metavar="FILE", help="what train has written")
    _world(one)

    one = command("transfer", transfer, "other words, colours and languages")
    one.add_argument("adapter", metavar="ADAPTER", help="what train has written")
    _world(one)

    one = command("record", record, "make a stored result anew")
    one.add_argument("what", choices=STORED)
    one.add_argument("--folder", default=str(Path(__file__).with_name("stored")), help="where it is written")
    one.add_argument("--work", default="_build/language", metavar="FOLDER", help="where finished runs are kept")

    one = command("check", check, "score the untrained model and compare with what is stored")
    one.add_argument("--tolerance", type=float, default=1e-3, metavar="X", help="largest difference (default: 0.001)")

    one = command("real-model", real_model, "Qwen3-0.6B through TRL on a GPU", model=False)
    one.add_argument("--dry-run", action="store_true", help="say what stands in the way, and the memory needed")
    one.add_argument("--model", default=argparse.SUPPRESS, metavar="FOLDER", help="the weights")
    one.add_argument("--output", default=argparse.SUPPRESS, metavar="FOLDER", help="checkpoints, gone on from")
    _world(one, suppress=True)
    one.add_argument("--language", choices=LANGUAGES, default=argparse.SUPPRESS)
    for name in ("num_generations", "max_steps", "max_completion_length", "save_steps", "seed"):
        one.add_argument(f"--{name.replace('_', '-')}", type=int, default=argparse.SUPPRESS, metavar="N")
    one.add_argument("--learning-rate", type=float, default=argparse.SUPPRESS, metavar="X")
    for name in ("vllm", "cpu"):
        one.add_argument(f"--{name}", action="store_true", default=argparse.SUPPRESS)

    one = command("accelerate", accelerate, "the path of a configuration file for accelerate", model=False)
    one.add_argument("name", choices=("one_gpu", "several_gpus", "several_machines"))
    return whole


def _world(one: argparse.ArgumentParser, *, suppress: bool = False) -> None:
    one.add_argument("--rules", choices=RULE_SETS, default=argparse.SUPPRESS if suppress else "standard")
    one.add_argument("--horizon", type=int, default=argparse.SUPPRESS if suppress else 6, metavar="N")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: what was typed; ``None`` takes the arguments of the program.

    Returns:
        The exit code.

    Example:
        >>> main(["score", "--language", "en", "--weights", "/no/such/folder"])  # doctest: +SKIP
        2
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        options = parser().parse_args(arguments)
        options.run(options)
    except ValueError as error:
        return _failed(error, 2)
    except (OSError, ImportError, WeightsError) as error:
        return _failed(error, 1)
    except KeyboardInterrupt:
        return 130
    return 0


def _failed(error: Exception, code: int) -> int:
    _say(f"python -m keydoor.language: {error}")
    return code


if __name__ == "__main__":
    sys.exit(main())
