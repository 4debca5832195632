"""Collecting, training and evaluating a recurrent actor-critic.

A single rollout for the record and the episodes of an evaluation are played by one function, in the environment. It
steps all its episodes together, a turn at a time, each with a hidden state and a source of random numbers of its own,
so that the company an episode is in does not matter to it (up to the rounding of a matrix product, some
:math:`10^{-7}` in a logit). The episodes of an update are played in the same way on the environment's tables, which is
faster: from the same targets and random numbers come the same episodes. The training of one network is that of a stack
of one; see :mod:`keydoor.stacked`.

**Boundaries.** An episode begins with the initial hidden state and no previous action. Where the collector cuts, the
bootstrap value is the critic's at the state of the cut, with the hidden state of the cut. At a true end there is none.

**Global state.** Nothing here reads or changes the global random generators of :mod:`random`, numpy or torch. Torch
runs on one thread meanwhile, which for networks of this size is several times faster than two, and rounds the same
way everywhere; the caller's number of threads is put back at the end.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from keydoor._checks import finite, flag, one_of, refuse, unit_interval, whole
from keydoor._learning import advantages as gae_advantages  # the same numbers without the checks, which take longer
from keydoor._learning import learn, prepare
from keydoor._play import Episode, one_thread, play
from keydoor._rollouts import Rollouts, play_stack
from keydoor._stack import Stack
from keydoor.env import KeyDoorAgentEnv, draw_target
from keydoor.policy import RecurrentActorCritic
from keydoor.records import Transition
from keydoor.returns import discounted_return
from keydoor.rules import REWARD_MODES, RULE_SETS, Rules, get_rules

_EVALUATED_TOGETHER = 256  # episodes in one batch of an evaluation: bounds its memory, changes no result
_LARGEST_SETTING = 1e30  # torch's float32 overflows a little above


@dataclass(frozen=True)
class TrainingConfig:
    """The recipe: every number of the training that is not a size of the experiment.

    The defaults reach a greedy success of at least .95 in nearly all runs of the full profile with shaping. Change one
    with ``TrainingConfig(gae_lambda=1.0)``.

    Raises:
        ValueError: a setting is outside of its range.

    Source:
        Schulman et al. (2017), *Proximal Policy Optimization Algorithms*; Schulman et al. (2016),
        *High-Dimensional Continuous Control Using Generalized Advantage Estimation*.

    Example:
        >>> TrainingConfig(gae_lambda=1).gae_lambda
        1.0
        >>> TrainingConfig(clip=0)
        Traceback (most recent call last):
        ...
        ValueError: clip is 0; expected a number above 0, at most 1e+30
    """

    hidden_size: int = 32
    """Units of the GRU, at least 1, at most 4095."""
    previous_action: bool = True
    """Whether the network is shown the action of the turn before; see :mod:`keydoor.policy`."""
    head_scale: float = 0.01
    """Factor on the initial weights of the policy head, not below 0."""
    learning_rate: float = 0.01
    """Step size of Adam, above 0."""
    gamma: float = 0.99
    """Discount of the learner, in [0, 1]; the shaping term gets the same one."""
    gae_lambda: float = 0.65
    """:math:`\\lambda` of the advantages, in [0, 1]. At 1 shaping leaves the expected policy gradient (of unclipped,
    unnormalised advantages) as it was; below 1 it changes what is credited when."""
    entropy_coefficient: float = 0.05
    """Weight of the entropy bonus, not below 0."""
    value_coefficient: float = 0.5
    """Weight of the critic's squared error, not below 0."""
    epochs: int = 4
    """Gradient steps per update, each on the full batch; at least 1."""
    clip: float = 0.2
    """Where the probability ratio of one turn is clipped: outside of :math:`1 \\pm` this; above 0."""
    max_gradient_norm: float = 1.0
    """The gradient is shortened to this length, above 0."""
    normalise_advantages: bool = True
    """Whether the advantages of a batch are brought to mean 0 and standard deviation 1."""
    task_horizon: int = 8
    """Turns that the task allows, at least 1. Reaching it is a true end."""
    collector_limit: int | None = None
    """Turns after which the collector cuts, at least 1; ``None``: never. Evaluations run without it."""
    rules: str = "standard"
    """Rule set of the world."""
    colours: int = 2
    """Number of colours of the world, at least 2."""
    delay: int = 0
    """Turns between a clue and the next valid pickup, at least 0."""

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[Any, str], Any]] = {
            "hidden_size": partial(whole, least=1, bits=12),
            **dict.fromkeys(("epochs", "task_horizon"), partial(whole, least=1)),
            **dict.fromkeys(("gamma", "gae_lambda"), lambda value, name: float(unit_interval(value, name))),
            **dict.fromkeys(("head_scale", "entropy_coefficient", "value_coefficient"), partial(_measure, zero=True)),
            **dict.fromkeys(("learning_rate", "clip", "max_gradient_norm"), partial(_measure, zero=False)),
            **dict.fromkeys(("previous_action", "normalise_advantages"), flag),
            "rules": partial(one_of, known=RULE_SETS),
            "colours": lambda value, _: len(get_rules(colours=value).colours),
            "delay": lambda value, _: get_rules(delay=value).delay,
        }
        if self.collector_limit is not None:
            checks["collector_limit"] = checks["task_horizon"]
        for name, check in checks.items():  # what is kept are plain numbers, also where numpy, torch or fractions came
            object.__setattr__(self, name, check(getattr(self, name), name))


def _measure(value: Any, name: str, *, zero: bool) -> float:
    expected = f"a number {'not below' if zero else 'above'} 0, at most {_LARGEST_SETTING}"
    number = float(finite(value, name, expected))
    if not 0 <= number <= _LARGEST_SETTING or (number == 0 and not zero):
        refuse(name, value, expected)
    return number


def collect_episode(
    model: RecurrentActorCritic,
    env: KeyDoorAgentEnv,
    *,
    reward_mode: str,
    greedy: bool = False,
    target: str | None = None,
    policy_version: str = "unversioned",
    seed: int | None = None,
    gamma: float | None = None,
) -> tuple[list[Transition], float, dict[str, Any]]:
    """Play one episode from its beginning to its end or cut.

    Args:
        model: the policy; not changed.
        env: the environment itself; of a wrapped one pass ``env.unwrapped``, since wrappers know neither ``target`` nor
            ``gamma``. It is reset, and after the call the episode in it is over.
        reward_mode: ``"sparse"`` or ``"potential"``: which rewards ``selected_return`` adds up. The transitions carry
            both.
        greedy: take the most likely action instead of sampling; ties go to the lowest index. A greedy turn has
            behaviour log-probability 0 (it had probability 1), and :math:`\\log\\pi` is kept beside it as ``logprob``.
        target: forces the hidden colour; ``None`` leaves it to the environment.
        policy_version: which weights these are, for the report; not blank.
        seed: seed of the sampled actions, a whole number; ``None`` takes one from the operating system.
        gamma: discount of the return and of the shaping term, in [0, 1]; ``None`` means ``model.gamma``, that is, the
            learner's.

    Returns:
        ``(transitions, bootstrap_value, report)``. The bootstrap value is the critic's value at a collector cut, with
        the hidden state of the cut, and 0.0 at a true end. The report holds ``target``, ``success``, ``terminated``,
        ``truncated``, ``stop_reason``, ``policy_version`` and ``selected_return``, the discounted sum of the rewards
        of the selected mode (without the bootstrap value).

    Raises:
        ValueError: an argument is outside of its range, or the network returns something that is not a number.

    Example:
        >>> model, env = RecurrentActorCritic(seed=0), KeyDoorAgentEnv(seed=0, collector_limit=1)
        >>> transitions, bootstrap_value, report = collect_episode(
        ...     model, env, reward_mode="sparse", target="red", policy_version="untrained", seed=3
        ... )
        >>> len(transitions), report["target"], report["terminated"] == (bootstrap_value == 0.0)
        (1, 'red', True)
    """
    _check_policy(model)
    if not isinstance(env, KeyDoorAgentEnv):
        refuse("env", env, "a KeyDoorAgentEnv (of a wrapped one, env.unwrapped)")
    one_of(reward_mode, "reward_mode", REWARD_MODES)
    if not isinstance(policy_version, str) or not policy_version.strip():
        refuse("policy_version", policy_version, "a text that is not blank")
    if seed is not None:
        seed = whole(seed, "seed", least=0)
    gamma = float(model.gamma if gamma is None else unit_interval(gamma, "gamma"))
    draws = None if flag(greedy, "greedy") else [random.Random(seed)]
    _check_fit(model, env.world)
    observation, _ = env.reset(target=target)
    with one_thread():
        (episode,) = play(model, [env], [observation], draws, gamma)
    last = episode.transitions[-1]
    report = {
        "target": env.target,
        "success": last.stop_reason == "success",
        "terminated": last.terminated,
        "truncated": last.truncated,
        "stop_reason": last.stop_reason,
        "policy_version": policy_version,
        "selected_return": float(discounted_return(episode.rewards(reward_mode), gamma)),
    }
    return episode.transitions, episode.values[-1], report


def _check_policy(model: Any) -> None:
    """Experiments may wrap a network, so what counts is what :func:`play` asks of it."""
    if not isinstance(model, torch.nn.Module) or not all(hasattr(model, x) for x in ("initial_state", "step", "gamma")):
        refuse("model", model, "a RecurrentActorCritic, or a module with its initial_state, step and gamma")


def _check_fit(model: Any, world: Rules) -> None:
    """A network for two colours would read the indices of three as others. A wrapped one may not say what it is for."""
    made_for = getattr(model, "no_action", len(world.actions))
    if made_for != len(world.actions):
        refuse("model", f"a network for {made_for} actions", f"one for the {len(world.actions)} of this world")


def evaluation_plan(episodes: int, seed: int, *, colours: int = 2) -> list[tuple[str, int]]:
    """Which episodes an evaluation plays: the target and the seed of the actions of each.

    The targets take turns, so that each has its share; ``seed`` decides who gets one more where they do not divide.
    Each can be played alone by :func:`collect_episode`, in any order, and comes out as it did in the evaluation.

    Args:
        episodes: how many, at least 1.
        seed: seed of the plan, a whole number.
        colours: number of colours of the world, at least 2.

    Returns:
        A pair ``(target, seed)`` for each episode.

    Raises:
        ValueError: an argument is outside of its range.

    Example:
        >>> [target for target, _ in evaluation_plan(5, seed=0)]
        ['red', 'blue', 'red', 'blue', 'blue']
    """
    episodes, seed = whole(episodes, "episodes", least=1), whole(seed, "seed", least=0)
    generator = random.Random(seed)
    names = get_rules(colours=colours).colours
    first = names.index(draw_target(generator, names))
    rest = episodes % len(names)
    targets = [names[i % len(names)] for i in range(episodes - rest)]
    targets += [names[(first + i) % len(names)] for i in range(rest)]
    return [(target, generator.getrandbits(63)) for target in targets]


def evaluate_policy(
    model: RecurrentActorCritic,
    *,
    episodes: int,
    seed: int,
    greedy: bool = True,
    task_horizon: int = 8,
    rules: str = "standard",
    colours: int = 2,
    delay: int = 0,
) -> dict[str, float]:
    """How well a policy does, over whole episodes.

    Args:
        model: the policy. Its parameters, gradients and train/eval mode are as before afterwards; during the call it
            is in eval mode.
        episodes: how many to play, at least 1; each target has its share, see :func:`evaluation_plan`.
        seed: seed of the evaluation, a whole number.
        greedy: take the most likely action at each turn (ties: the lowest index) instead of sampling. In this world
            greedy play has one trajectory for each target: with two colours the success rate of an even number of
            episodes is 0, ½ or 1.
        task_horizon: turns that the task allows, at least 1.
        rules: rule set of the world.
        colours: number of colours of the world, at least 2; the network has to be made for as many.
        delay: turns between a clue and the next valid pickup, at least 0.

    Returns:
        ``success_rate``, the share of episodes that end in success; ``mean_turns``, turns per episode;
        ``invalid_action_rate``, the share of all turns whose action was invalid. Equal arguments give equal results,
        and an episode's result does not depend on the others (but for rounding, see :mod:`keydoor.training`).

    Raises:
        ValueError: an argument is outside of its range.

    Example:
        >>> evaluate_policy(RecurrentActorCritic(seed=0), episodes=10, seed=0, greedy=False)["success_rate"]
        0.0
    """
    _check_policy(model)
    plan = evaluation_plan(episodes, seed, colours=colours)
    greedy = flag(greedy, "greedy")
    count = min(len(plan), _EVALUATED_TOGETHER)
    world: dict[str, Any] = {"task_horizon": task_horizon, "rules": rules, "colours": colours, "delay": delay}
    envs = [KeyDoorAgentEnv(**world) for _ in range(count)]
    _check_fit(model, envs[0].world)
    with one_thread():
        return _evaluate(model, envs, plan, greedy)


def _evaluate(
    model: RecurrentActorCritic, envs: Sequence[KeyDoorAgentEnv], plan: Sequence[tuple[str, int]], greedy: bool
) -> dict[str, float]:
    wins = turns = invalid = 0
    # Greedy play draws nothing, so that all episodes with one target are the same one: it is played once.
    times = Counter(target for target, _ in plan)
    played = [(target, 0) for target in times] if greedy else plan
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        for start in range(0, len(played), len(envs)):
            part = played[start : start + len(envs)]
            first = [env.reset(target=target)[0] for env, (target, _) in zip(envs, part, strict=False)]
            draws = None if greedy else [random.Random(seed) for _, seed in part]
            for (target, _), episode in zip(
                part, play(model, envs[: len(part)], first, draws, model.gamma), strict=True
            ):
                count = times[target] if greedy else 1
                wins += count * (episode.transitions[-1].stop_reason == "success")
                turns += count * len(episode.transitions)
                invalid += count * sum(transition.invalid for transition in episode.transitions)
    finally:
        for module, training in modes.items():  # each its own: parts of a network may be frozen in eval mode
            module.training = training
    return {
        "success_rate": wins / len(plan),
        "mean_turns": turns / len(plan),
        "invalid_action_rate": invalid / turns,
    }


def train_actor_critic(
    *,
    seed: int,
    reward_mode: str,
    updates: int,
    episodes_per_update: int,
    evaluation_interval: int,
    evaluation_episodes: int,
    config: TrainingConfig | None = None,
) -> tuple[RecurrentActorCritic, list[dict[str, Any]]]:
    """Train one recurrent actor-critic with clipped policy-gradient updates.

    Each update plays ``episodes_per_update`` fresh episodes with the current policy and takes ``config.epochs``
    gradient steps on all of them,

    .. math:: L = -\\overline{\\min(\\rho_t \\hat A_t,\\ \\mathrm{clip}(\\rho_t, 1 \\pm \\epsilon) \\hat A_t)}
              + c_V \\overline{(V_t - \\hat A_t - V_t^{\\text{old}})^2} - c_H \\overline{H(\\pi_t)},

    with the means over all turns that were played.

    Args:
        seed: seed of the run, an integer in :math:`[0, 2^{63})`: initial weights, targets and actions. Equal arguments
            give equal weights and curves, bit for bit on one machine.
        reward_mode: ``"sparse"``, the base reward, or ``"potential"``, the shaped one.
        updates: how many updates, at least 0.
        episodes_per_update: episodes before each update, at least 1.
        evaluation_interval: a row of the curve after every so many updates, at least 1. It changes nothing but the
            curve.
        evaluation_episodes: greedy episodes of one evaluation, at least 1, always the same ones.
        config: the rest of the recipe; ``None`` means ``TrainingConfig()``.

    Returns:
        ``(model, curve)``. A row of the curve holds ``update`` (-1 before the training, then counted from 0; the last
        update is always there) and what :func:`evaluate_policy` returns, and about the latest update
        ``training_success_rate`` and ``training_return`` (means over its episodes, of the selected rewards,
        discounted), ``policy_loss``, ``value_loss`` and ``entropy`` (at its first gradient step; in nats); the last
        five are ``None`` in the row before the training.

    Raises:
        ValueError: an argument is outside of its range, or the training has diverged.

    Source:
        Williams (1992) for the gradient; Schulman et al. (2017) for clipping; Ng, Harada and Russell (1999) for
        the shaped reward.

    Example:
        >>> model, curve = train_actor_critic(
        ...     seed=1, reward_mode="potential", updates=3, episodes_per_update=4,
        ...     evaluation_interval=2, evaluation_episodes=2,
        ... )
        >>> [row["update"] for row in curve]
        [-1, 1, 2]
    """
    seed = whole(seed, "seed", least=0, bits=63)
    one_of(reward_mode, "reward_mode", REWARD_MODES)
    sizes = _check_sizes(updates, episodes_per_update, evaluation_interval, evaluation_episodes, config)
    return _train([seed], [reward_mode], *sizes)[0]


def _check_sizes(
    updates: Any, episodes_per_update: Any, evaluation_interval: Any, evaluation_episodes: Any, config: Any
) -> tuple[int, int, int, int, TrainingConfig]:
    updates = whole(updates, "updates", least=0)
    episodes_per_update = whole(episodes_per_update, "episodes_per_update", least=1)
    evaluation_interval = whole(evaluation_interval, "evaluation_interval", least=1)
    evaluation_episodes = whole(evaluation_episodes, "evaluation_episodes", least=1)
    if config is None:
        config = TrainingConfig()
    elif not isinstance(config, TrainingConfig):
        refuse("config", config, "a TrainingConfig")
    return updates, episodes_per_update, evaluation_interval, evaluation_episodes, config


def _train(
    seeds: Sequence[int],
    modes: Sequence[str],
    updates: int,
    episodes_per_update: int,
    evaluation_interval: int,
    evaluation_episodes: int,
    config: TrainingConfig,
) -> list[tuple[RecurrentActorCritic, list[dict[str, Any]]]]:
    """The runs of all seeds, each with its own mode: one stack of networks, each with random numbers of its own."""
    size: dict[str, Any] = {name: getattr(config, name) for name in ("task_horizon", "rules", "colours", "delay")}
    world = get_rules(config.rules, colours=config.colours, delay=config.delay)
    plans = [evaluation_plan(evaluation_episodes, seed, colours=config.colours) for seed in seeds]
    evaluation_envs = [KeyDoorAgentEnv(**size) for _ in range(min(evaluation_episodes, _EVALUATED_TOGETHER))]
    generators = [random.Random(seed) for seed in seeds]
    figures: list[dict[str, Any]] = [
        dict.fromkeys(("training_success_rate", "training_return", "policy_loss", "value_loss", "entropy"))
        for _ in seeds
    ]
    curves: list[list[dict[str, Any]]] = [[] for _ in seeds]

    def diverged(row: int, what: str, value: float) -> None:
        refuse(f"{what}, in the training with seed {seeds[row]},", value, "a finite number: the network has diverged")

    def evaluate(update: int) -> None:
        stack.write(models)
        for row, curve in enumerate(curves):
            try:
                results = _evaluate(models[row], evaluation_envs, plans[row], True)
            except ValueError as error:
                raise ValueError(f"in the training with seed {seeds[row]}, {error}") from None
            curve.append({"update": update, **results, **figures[row]})

    label = f"{modes[0]}, seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} runs"
    with one_thread(), torch.inference_mode(False), torch.enable_grad(), _progress(updates, label) as advance:
        models = [
            RecurrentActorCritic(
                seed=seed,
                hidden_size=config.hidden_size,
                head_scale=config.head_scale,
                gamma=config.gamma,
                previous_action=config.previous_action,
                colours=config.colours,
            )
            for seed in seeds
        ]
        stack = Stack(models)
        optimiser = torch.optim.Adam([stack.weights], lr=config.learning_rate, fused=True)
        evaluate(-1)
        for update in range(updates):
            targets, draws = [], []
            for generator in generators:
                targets.append([draw_target(generator, world.colours) for _ in range(episodes_per_update)])
                draws.append([random.Random(generator.getrandbits(63)) for _ in range(episodes_per_update)])
            played = play_stack(
                stack,
                world,
                targets,
                draws,
                gamma=config.gamma,
                task_horizon=config.task_horizon,
                collector_limit=config.collector_limit,
                diverged=diverged,
            )
            batch = prepare(stack, played, modes, config, gae_advantages)
            losses = learn(stack, batch, config, optimiser.step)
            for row, fine in enumerate(torch.isfinite(stack.weights).all(dim=1).tolist()):
                if not fine:
                    bad = stack.weights[row][~torch.isfinite(stack.weights[row])]
                    diverged(row, f"a weight after update {update}", bad[0].item())
            for row, (won, earned) in enumerate(played.results(modes, config.gamma)):
                figures[row] = {"training_success_rate": won, "training_return": earned, **losses[row]}
            if (update + 1) % evaluation_interval == 0 or update == updates - 1:
                evaluate(update)
            advance()
    return list(zip(models, curves, strict=True))


def _learn(
    model: RecurrentActorCritic,
    optimiser: torch.optim.Optimizer,
    episodes: Sequence[Episode],
    reward_mode: str,
    config: TrainingConfig,
) -> dict[str, float]:
    """The gradient steps of one update on episodes with their transitions, by an optimiser of the network's parameters.

    The training itself keeps arrays, and does the same to its stack.
    """
    stack = Stack([model])

    def step() -> None:
        stack.write_gradient([model])
        optimiser.step()
        stack.read([model])

    world = get_rules(colours=config.colours)
    batch = prepare(stack, Rollouts.of(episodes, world), [reward_mode], config, gae_advantages)
    return learn(stack, batch, config, step)[0]


@contextmanager
def _progress(total: int, label: str) -> Iterator[Callable[[], object]]:
    """A progress bar where a person is watching a terminal; elsewhere, in a notebook's cell for one, nothing."""
    # Without a console there is no stderr, or a closed one.
    watched = sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
    if total == 0 or not watched or "ipykernel" in sys.modules:
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=label, leave=False) as bar:
        yield bar.update
