"""The commands that train: ``train``, ``evaluate`` and ``sweep``.

Torch is loaded by the command that needs it, and not before: ``python -m keydoor --help`` answers at once.
"""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import sys
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

from keydoor._checks import refuse, whole
from keydoor.profiles import PROFILES
from keydoor.rules import PALETTE, REWARD_MODES, RULE_SETS

_MOST_SEEDS = 100_000
_LONGEST_PLAYED = 20  # bits: a million turns, some minutes an episode

_SIZES = {
    "updates": "updates of the policy, at least 0",
    "episodes_per_update": "episodes before each update, at least 1",
    "evaluation_interval": "a row of the curve after so many updates, at least 1 (default: a fifth of the updates)",
    "evaluation_episodes": "greedy episodes of one evaluation, at least 1",
}
_WORLD = {
    "task_horizon": "turns that the task allows, at least 1",
    "rules": f"rule set: {', '.join(RULE_SETS)}",
    "colours": f"number of colours, 2 to {len(PALETTE)}",
    "delay": "turns between a clue and the next valid pickup, at least 0",
}
_RECIPE = {
    "collector_limit": "turns after which the collector cuts an episode, at least 1",
    "hidden_size": "units of the network, at least 1, at most 4095",
    "previous_action": "whether the network is shown its previous action",
    "head_scale": "factor on the first weights of the policy head, not below 0",
    "learning_rate": "step size of Adam, above 0",
    "gamma": "discount, in [0, 1]",
    "gae_lambda": "lambda of the advantages, in [0, 1]",
    "entropy_coefficient": "weight of the entropy, not below 0",
    "value_coefficient": "weight of the critic's error, not below 0",
    "epochs": "gradient steps per update, at least 1",
    "clip": "clipping of the probability ratios, above 0",
    "max_gradient_norm": "greatest length of the gradient, above 0",
    "normalise_advantages": "whether the advantages of a batch get mean 0 and deviation 1",
}


def add_train(parser: argparse.ArgumentParser) -> None:
    """Options of ``train``."""
    parser.add_argument("--seed", type=int, default=1, help="seed of the run, at least 0 (default: 1)")
    modes = f"rewards to learn from: {', '.join(REWARD_MODES)} (default: potential)"
    parser.add_argument("--reward-mode", choices=REWARD_MODES, default="potential", help=modes, metavar="MODE")
    parser.add_argument("--model", metavar="FILE", help="write the network to this file (default: it is not kept)")
    _add_settings(parser)
    parser.add_argument("--json", action="store_true", help="print one object of JSON")
    parser.set_defaults(run=train)


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Options of ``evaluate``."""
    parser.add_argument("path", metavar="MODEL", help="a file that train or sweep has written")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--episodes", type=int, default=100, help="episodes to play, at least 1 (default: 100)")
    how.add_argument("--exact", action="store_true", help="compute the success probability instead of playing")
    parser.add_argument("--seed", type=int, default=0, help="seed of the episodes, at least 0 (default: 0)")
    parser.add_argument("--sample", action="store_true", help="sample the actions (default: take the most likely one)")
    for name in ("task_horizon", "rules", "delay"):
        _add(parser, name, _WORLD[name], str if name == "rules" else int, "as it was trained")
    parser.add_argument("--json", action="store_true", help="print one object of JSON")
    parser.set_defaults(run=evaluate)


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """Options of ``sweep``."""
    from keydoor.sweep import ENGINES

    seeds = "such as 1-20 or 1,3,5-8, each at least 0 (default: 1-20)"
    parser.add_argument("--seeds", type=seed_list, default=seed_list("1-20"), help=seeds)
    parser.add_argument("--results", required=True, metavar="FILE", help="results file; one that is there is continued")
    what = parser.add_mutually_exclusive_group()
    modes = f"settings that differ in their rewards, with commas (default: {','.join(REWARD_MODES)})"
    what.add_argument("--reward-mode", default=",".join(REWARD_MODES), help=modes, metavar="MODES")
    what.add_argument("--settings", metavar="FILE", help='or a file of JSON, {"NAME": {"reward_mode": …, …}, …}')
    engines = "stacked in this process, joblib on all cores, ray on a cluster (default: stacked)"
    parser.add_argument("--engine", choices=ENGINES, default="stacked", help=engines)
    parser.add_argument("--address", help="of a running Ray: auto, host:port, ray://host:port (default: a local one)")
    parser.add_argument("--workers", type=int, help="processes, at least 1 (default: one for each core)")
    parser.add_argument("--block", type=int, help="seeds trained together, at least 1 (default: up to 8)")
    parser.add_argument("--models", metavar="FOLDER", help="keep the networks in this folder (default: they are not)")
    reached = "success from which on a run counts as one that has learned, in [0, 1] (default: 0.95)"
    parser.add_argument("--threshold", type=float, default=0.95, help=reached)
    _add_settings(parser)
    parser.add_argument("--json", action="store_true", help="print one object of JSON")
    parser.set_defaults(run=sweep)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    import dataclasses

    from keydoor.training import TrainingConfig

    defaults = {field.name: field.default for field in dataclasses.fields(TrainingConfig)}
    sizes = parser.add_argument_group("sizes")
    profile = f"sizes of {', '.join(PROFILES)} (default: full)"
    sizes.add_argument("--profile", choices=tuple(PROFILES), default="full", help=profile, metavar="NAME")
    for name, text in _SIZES.items():
        _add(sizes, name, text, int, None if name == "evaluation_interval" else "of the profile")
    for title, options in (("world", _WORLD), ("recipe", _RECIPE)):
        group = parser.add_argument_group(title)
        for name, text in options.items():
            default = defaults[name]
            _add(group, name, text, int if default is None else type(default), default)


def _add(group: Any, name: str, text: str, kind: type, default: Any) -> None:
    """One option; it is absent from the result unless it was given, so that a file of settings can say it instead."""
    flags = [f"--{name.replace('_', '-')}", *(["--horizon"] if name == "task_horizon" else [])]
    if name != "evaluation_interval":
        words = {"None": "never", "True": "yes", "False": "no"}
        text += f" (default: {words.get(str(default), default)})"
    options: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": text}
    if kind is bool:
        group.add_argument(*flags, action=argparse.BooleanOptionalAction, **options)
        return
    group.add_argument(*flags, type=kind, metavar={int: "N", float: "X", str: "NAME"}[kind], **options)


def seed_list(text: str) -> list[int]:
    """``"1-3,7"`` as 1, 2, 3, 7."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = (x.strip() for x in part.partition("-"))
        ends = [first, last] if dash else [first]
        if not all(end.isascii() and end.isdigit() and len(end) < 20 for end in ends):
            raise argparse.ArgumentTypeError(f"{part!r} is no seed and no range of seeds; expected such as 1-20 or 1,3")
        low, high = int(ends[0]), int(ends[-1])
        if high < low or high - low >= _MOST_SEEDS:
            raise argparse.ArgumentTypeError(
                f"{part!r} has {max(0, high - low + 1)} seeds; expected 1 to {_MOST_SEEDS}"
            )
        seeds += range(low, high + 1)
    return seeds


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of a setting; the sizes that it leaves out are those of the profile."""
    profile = PROFILES[options.profile]
    said = {name: getattr(options, name) for name in (*_SIZES, *_WORLD, *_RECIPE) if hasattr(options, name)}
    return {name: getattr(profile, name) for name in _SIZES if hasattr(profile, name)} | said


def train(options: argparse.Namespace) -> None:
    """One training run."""
    from keydoor._settings import SIZES, WORLD
    from keydoor.sweep import SweepError, full_settings, save_model
    from keydoor.training import TrainingConfig, evaluate_policy, train_actor_critic

    mode, seed = options.reward_mode, whole(options.seed, "seed", least=0, bits=63)
    settings = full_settings({"train": {"reward_mode": mode, **_given(options)}})["train"]
    if options.model is not None:  # before the training, not after it
        file = Path(options.model)
        with suppress(FileNotFoundError):
            file.lstat()  # a name that is too long, a part of it that is no folder: the system says which
        if not options.model or file.is_dir() or not file.absolute().parent.is_dir():
            refuse("--model", options.model, "the name of a file in a folder that there is")
    config = TrainingConfig(**{k: v for k, v in settings.items() if k not in (*SIZES, "reward_mode")})
    sizes = {name: settings[name] for name in SIZES}
    try:
        model, curve = train_actor_critic(seed=seed, reward_mode=mode, config=config, **sizes)
    except ValueError as error:  # the arguments were fine
        raise SweepError(f"the training has failed: {error}") from error
    world = {name: settings[name] for name in WORLD}
    success = evaluate_policy(model, episodes=settings["colours"], seed=0, **world)["success_rate"]
    if options.model is not None:
        save_model(options.model, model, seed=seed, settings=settings)
    if options.json:
        _print({"seed": seed, "success": success, "model": options.model, "settings": settings, "curve": curve})
        return
    print("update  success  of the training  entropy")
    for row in curve:
        trained, entropy = (_cell(row[name]) for name in ("training_success_rate", "entropy"))
        print(f"{row['update']:6}  {row['success_rate']:7.3f}  {trained:>15}  {entropy:>7}")
    print(f"Greedy play now succeeds with probability {success:g}. One run says little of its setting: see sweep.")


def evaluate(options: argparse.Namespace) -> None:
    """A trained network, by playing or exactly."""
    from keydoor._settings import WORLD
    from keydoor.gradients import exact_objective
    from keydoor.sweep import load_model
    from keydoor.training import evaluate_policy

    if not Path(options.path).is_file():
        refuse("MODEL", options.path, "a file that train or sweep has written")
    model, about = load_model(options.path)
    world = {name: getattr(options, name, about["settings"][name]) for name in WORLD}
    whole(world["task_horizon"], "task_horizon", least=1, bits=_LONGEST_PLAYED)  # a network may never end an episode
    found: dict[str, Any]
    if options.exact:
        names = {"horizon" if name == "task_horizon" else name: value for name, value in world.items()}
        found = {
            "greedy_success": evaluate_policy(model, episodes=world["colours"], seed=0, **world)["success_rate"],
            "sampled_success": exact_objective(model, **names).item(),
        }
    else:
        played = {"episodes": options.episodes, "seed": options.seed, "greedy": not options.sample}
        found = {**evaluate_policy(model, **played, **world), **played}
    if options.json:
        _print({"model": options.path, "trained_with": {"seed": about["seed"], **about["settings"]}, **world, **found})
        return
    print(f"{options.path}: {about['settings']['reward_mode']}, seed {about['seed']}, keydoor {about['code']}")
    print("  " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in world.items()))
    for name, value in found.items():
        print(f"  {name.replace('_', ' '):20} {_cell(value) if isinstance(value, float) else value}")


def sweep(options: argparse.Namespace) -> None:
    """Many seeds and settings, and what they say."""
    from keydoor import sweep as home
    from keydoor.summaries import compare, summarise

    threshold = options.threshold
    if not 0 <= threshold <= 1:
        refuse("--threshold", threshold, "a number in [0, 1]")
    given = _given(options)
    if options.settings is not None:
        settings = {name: {**given, **_object(one)} for name, one in _object(_read(options.settings)).items()}
    else:
        modes = [mode.strip() for mode in options.reward_mode.split(",")]
        if len({*modes}) < len(modes):
            refuse("--reward-mode", options.reward_mode, "each mode once")
        settings = {mode: {"reward_mode": mode, **given} for mode in modes}
    where = {"results": options.results, "models": options.models}
    how = {name: getattr(options, name) for name in ("engine", "address", "workers", "block")}
    notes = logging.StreamHandler()
    logger = logging.getLogger("keydoor.sweep")
    logger.addHandler(notes)
    logger.setLevel(logging.INFO)
    try:
        rows = home.sweep(options.seeds, settings, **where, **how)
    except KeyboardInterrupt:
        finished = home.read_results(options.results) if Path(options.results).is_file() else []
        of_these = sum(row["setting"] in settings and row["seed"] in options.seeds for row in finished)
        told = f"{options.results} has {of_these} of {len(options.seeds) * len(settings)} runs; go on with:"
        again = shlex.join(["python", "-m", "keydoor", *options.arguments])
        print(f"\nInterrupted. {told}\n{again}", file=sys.stderr)
        raise
    finally:
        logger.removeHandler(notes)
    summary = summarise(rows, threshold=threshold)
    several = [one["setting"] for one in summary if one["runs"] > 1]
    pairs = [compare(rows, first, second) for second, first in combinations(several, 2)]
    if options.json:
        what = {"results": options.results, "runs": len(rows), "code": home.code_version(), "threshold": threshold}
        _print({**what, "summary": summary, "comparisons": pairs})
        return
    _print_summary(summary, pairs, threshold)


def _print_summary(summary: list[dict[str, Any]], pairs: list[dict[str, Any]], threshold: float) -> None:
    width = max(7, *(len(one["setting"]) for one in summary))
    print("Exact success of greedy play after the training; in brackets intervals of 95 %.")
    share = f"share >= {threshold:g}"
    print(f"{'setting':{width}}  runs  median  lowest  highest  {'middle half':21}  {share}")
    for one in summary:
        if one["runs"] == 1:
            print(f"{one['setting']:{width}}     1  one run says nothing of a setting; add seeds")
            continue
        low, middle, high = (f"{one[name]:.3f}" for name in ("lowest", "median", "highest"))
        mean, reached = (
            f"{one[name]:.3f} [{one[f'{name}_interval'][0]:.3f}, {one[f'{name}_interval'][1]:.3f}]"
            for name in ("interquartile_mean", "reached")
        )
        print(f"{one['setting']:{width}}  {one['runs']:4}  {middle:>6}  {low:>6}  {high:>7}  {mean}  {reached}")
    for pair in pairs:
        ends = "[{:.3f}, {:.3f}]".format(*pair["interval"])
        print(
            f"A run of {pair['first']} beats one of {pair['second']} with probability {pair['probability']:.3f} {ends}."
        )


def _read(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text("utf-8"), object_pairs_hook=_without_repeats)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"--settings {path}: {error}") from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Python would keep the last of two equal names, and a setting would be lost without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} comes twice; expected each name of an object once")
    return found


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse("--settings", value, "an object of JSON: names, and for each an object of settings")
    return value


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _print(value: dict[str, Any]) -> None:
    # Elsewhere than in UTF-8 a name may hold letters that the output cannot: JSON can say all of them in ASCII.
    plain = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") != "utf8"
    print(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=plain))
