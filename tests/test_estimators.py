"""Moments of gradient estimators: against enumeration in fractions, and against what theorems say of them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction as F
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from keydoor._play import one_thread
from keydoor.estimators import (
    EstimatorMoments,
    Gae,
    GroupAdvantage,
    Reinforce,
    Surrogate,
    estimator_moments,
    group_gradient_factor,
)
from keydoor.exact import belief_model, evaluate_exactly, histories
from keydoor.gradients import exact_gradient, policy_table
from keydoor.groups import group_advantages
from keydoor.policy import RecurrentActorCritic
from keydoor.returns import discounted_return, gae_advantages
from keydoor.rules import ACTIONS, get_rules

SEEN = ("room", "clue_red", "clue_blue", "key_held", "door_open", "invalid")
History = tuple[str, ...]
Table = dict[str, list[F]]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """As the package does it: for tensors of this size two threads are slower."""
    with one_thread():
        yield


def table(seed: int) -> Table:
    """A memoryless policy in fractions: weights 1 to 9, divided by their sum."""
    generator = random.Random(seed)
    weights = {name: [generator.randint(1, 9) for _ in ACTIONS] for name in SEEN}
    return {name: [F(w, sum(row)) for w in row] for name, row in weights.items()}


def skilled() -> Table:
    """A policy that succeeds often, and more often where the target is red."""
    weights = {
        "room": [9, 1, 1, 1, 1, 1],
        "clue_red": [1, 20, 2, 1, 1, 1],
        "clue_blue": [1, 3, 9, 1, 1, 1],
        "key_held": [1, 1, 1, 20, 3, 1],
        "door_open": [1, 1, 1, 1, 1, 20],
        "invalid": [2, 1, 1, 1, 1, 1],
    }
    return {name: [F(w, sum(row)) for w in row] for name, row in weights.items()}


def logits(policy: dict[Any, list[F]]) -> dict[Any, list[float]]:
    """The softmax of the logarithms is the policy again."""
    return {key: [math.log(p) for p in row] for key, row in policy.items()}


def vector(numbers: Any) -> Tensor:
    return torch.tensor([float(x) for x in numbers], dtype=torch.float64)


# --- the same by brute force, in fractions ---------------------------------------------------------------------------


@dataclass
class Played:
    """One episode: what chance and the policies give it, and all that an estimator may look at."""

    chance: F
    target: str
    history: History  # without the last observation, unless the collector cut
    actions: list[int]
    base: list[F]
    potentials: list[F]
    cut: bool
    success: bool

    def histories(self) -> list[History]:
        return [self.history[: 2 * turn + 1] for turn in range(len(self.actions))]

    def rewards(self, mode: str, gamma: F) -> list[F]:
        if mode == "sparse":
            return self.base
        phi = self.potentials
        return [r + gamma * phi[t + 1] - phi[t] for t, r in enumerate(self.base)]


def played(behaviour: Table, *, rules: str = "standard", horizon: int, limit: int | None = None) -> Iterator[Played]:
    """All episodes with a positive probability, by recursion from the tables of the world."""
    world = get_rules(rules)

    def walk(state: int, episode: Played) -> Iterator[Played]:
        for action, probability in enumerate(behaviour[episode.history[-1]]):
            if probability == 0:
                continue
            outcome = world.table[state][action]
            turn = len(episode.actions) + 1
            over = outcome.stop_reason is not None or turn == horizon
            after = replace(
                episode,
                chance=episode.chance * probability,
                actions=[*episode.actions, action],
                base=[*episode.base, F(outcome.base_reward)],
                potentials=[*episode.potentials, F(0) if over else F(world.potential[outcome.state])],
                history=(*episode.history, ACTIONS[action], outcome.observation),
                cut=not over and turn == limit,
                success=outcome.stop_reason == "success",
            )
            if over or after.cut:
                yield after
            else:
                yield from walk(outcome.state, after)

    for target in world.colours:
        yield from walk(world.start[target], Played(F(1, 2), target, ("room",), [], [], [F(0)], False, False))


def score(policy: Table, name: str, action: int) -> dict[tuple[str, int], F]:
    """The gradient of log softmax with respect to the logits: e_a - pi in the row of the observation."""
    return {(name, k): (k == action) - p for k, p in enumerate(policy[name])}


def combined(policy: Table, episode: Played, weights: list[F]) -> dict[tuple[str, int], F]:
    total: dict[tuple[str, int], F] = {}
    for history, action, weight in zip(episode.histories(), episode.actions, weights, strict=True):
        if weight:
            for place, part in score(policy, history[-1], action).items():
                total[place] = total.get(place, F(0)) + weight * part
    return total


def moments_of(estimates: list[tuple[F, dict[tuple[str, int], F]]]) -> tuple[Tensor, Tensor]:
    """Mean and covariance of estimates that are fractions; only the sums over episodes are rounded."""
    places = list(itertools.product(SEEN, range(len(ACTIONS))))
    chances = vector(p for p, _ in estimates)
    found = torch.stack([vector(g.get(place, 0) for place in places) for _, g in estimates])
    mean = chances @ found
    return mean, (chances * (found - mean).T) @ (found - mean)


def reinforce(e: Played, gamma: F, mode: str, to_go: bool, baseline: dict[str, F], discounted: bool) -> list[F]:
    rewards = e.rewards(mode, gamma)
    if not to_go:
        return [F(discounted_return(rewards, gamma)) - baseline[h[-1]] for h in e.histories()]
    return [
        (gamma**t if discounted else 1) * (F(discounted_return(rewards[t:], gamma)) - baseline[h[-1]])
        for t, h in enumerate(e.histories())
    ]


BASELINE = {name: F(k, 7) for k, name in enumerate(SEEN)}
ZERO = dict.fromkeys(SEEN, F(0))
G = F(9, 10)


@pytest.mark.parametrize(
    ("rules", "horizon", "limit", "options"),
    [
        ("standard", 4, None, {}),
        ("standard", 4, None, {"reward_to_go": False, "baseline": BASELINE}),
        ("soft", 3, None, {"reward_mode": "potential", "baseline": BASELINE}),
        ("soft", 4, 2, {"reward_mode": "potential", "discount_turns": False}),
        ("quiet", 3, 2, {"reward_mode": "potential", "reward_to_go": False}),
    ],
)
def test_reinforce_by_enumeration_in_fractions(rules: str, horizon: int, limit: int | None, options: Any) -> None:
    policy = table(1)
    o = {"reward_to_go": True, "baseline": None, "reward_mode": "sparse", "discount_turns": True} | options
    estimates = []
    for episode in played(policy, rules=rules, horizon=horizon, limit=limit):
        weights = reinforce(episode, G, o["reward_mode"], o["reward_to_go"], o["baseline"] or ZERO, o["discount_turns"])
        estimates.append((episode.chance, combined(policy, episode, weights)))
    mean, covariance = moments_of(estimates)
    found = estimator_moments(
        logits(policy), Reinforce(gamma=G, **options), rules=rules, horizon=horizon, collector_limit=limit
    )
    assert found.method == "enumeration"
    assert found.episodes == len(estimates)
    assert found.parameters == tuple(itertools.product(SEEN, ACTIONS))
    assert covariance.trace() > 1e-4
    assert torch.allclose(found.mean, mean, atol=1e-14, rtol=1e-12)
    assert torch.allclose(found.covariance, covariance, atol=1e-14, rtol=1e-12)
    assert found.variance == pytest.approx(float(covariance.trace()), abs=1e-14)
    assert found.mse == pytest.approx(found.variance + float(found.bias.square().sum()), abs=1e-15)  # type: ignore[union-attr]
    assert not found.mean_standard_error.any()
    assert found.mse_standard_error == 0


@pytest.mark.parametrize("gae_lambda", [F(0), F(2, 3), F(1)])
@pytest.mark.parametrize("limit", [None, 2])
def test_gae_by_enumeration_in_fractions(gae_lambda: F, limit: int | None) -> None:
    """Weights from :func:`keydoor.returns.gae_advantages`, whose value at a cut is that of the history after it."""
    policy = table(2)
    estimates = []
    for episode in played(policy, rules="soft", horizon=3, limit=limit):
        values = [BASELINE[h[-1]] for h in episode.histories()]
        values.append(BASELINE[episode.history[-1]] if episode.cut else F(0))
        found = gae_advantages(episode.rewards("potential", G), values, G, gae_lambda, terminated=not episode.cut)
        weights = [G**t * F(advantage) for t, advantage in enumerate(found)]
        estimates.append((episode.chance, combined(policy, episode, weights)))
    mean, covariance = moments_of(estimates)
    estimator = Gae(BASELINE, gae_lambda=gae_lambda, gamma=G, reward_mode="potential")
    moments = estimator_moments(logits(policy), estimator, rules="soft", horizon=3, collector_limit=limit)
    assert torch.allclose(moments.mean, mean, atol=1e-14, rtol=1e-12)
    assert torch.allclose(moments.covariance, covariance, atol=1e-14, rtol=1e-12)


# --- what theorems say ------------------------------------------------------------------------------------------------


def by_differences(
    policy: dict[Any, list[float]], key: Callable[[History], Any], names: Sequence[Any], **world: Any
) -> Tensor:
    """Central differences of the exact return in some rows: their gradient without any theorem about policies."""
    slopes = []
    for name, place in itertools.product(names, range(len(ACTIONS))):
        ends = []
        for step in (1e-4, -1e-4):
            moved = {k: vector(row) for k, row in policy.items()}
            moved[name][place] += step
            probabilities = {k: torch.softmax(row, -1).tolist() for k, row in moved.items()}
            plan = probabilities if key is last else lambda h, p=probabilities: p[key(h)]
            ends.append(float(evaluate_exactly(plan, **world).expected_return))
        slopes.append((ends[0] - ends[1]) / 2e-4)
    return vector(slopes)


def rows_of(gradient: Tensor | None, policy: dict[Any, list[float]], names: Sequence[Any]) -> Tensor:
    assert gradient is not None
    return torch.cat([gradient.reshape(-1, len(ACTIONS))[[*policy].index(name)] for name in names])


def last(history: History) -> str:
    return history[-1]


def with_clue(history: History) -> tuple[str, str]:
    """A policy with memory: the last observation, and the last clue that was shown."""
    return history[-1], next((name for name in reversed(history) if name.startswith("clue")), "none")


def softmax_with_memory(seed: int, rules: str, horizon: int) -> dict[Any, list[float]]:
    keys = sorted({with_clue(history) for history, _ in histories(rules=rules, horizon=horizon)})
    generator = random.Random(seed)
    return {key: [generator.gauss(0, 1) for _ in ACTIONS] for key in keys}


def probabilities(policy: dict[Any, list[float]], key: Callable[[History], Any]) -> Callable[[History], list[float]]:
    rows = {k: torch.softmax(torch.tensor(row, dtype=torch.float64), -1).tolist() for k, row in policy.items()}
    return lambda history: rows[key(history)]  # type: ignore[no-any-return]


def values_of(plan: Any, **world: Any) -> dict[History, float]:
    """The exact value of each history."""
    return {node.history: float(node.value) for node in evaluate_exactly(plan, **world).nodes}


SMALL: dict[str, Any] = {"rules": "standard", "horizon": 5}


def test_true_gradient_is_the_slope_of_the_exact_return() -> None:
    policy = logits(table(3))
    found = estimator_moments(policy, Reinforce(gamma=0.9), rules="soft", horizon=4)
    expected = by_differences(policy, last, SEEN, rules="soft", horizon=4, gamma=0.9)
    assert expected.norm() > 0.001
    assert torch.allclose(rows_of(found.true_gradient, policy, SEEN), expected, atol=1e-9, rtol=0)
    memory = softmax_with_memory(0, "soft", 4)
    found = estimator_moments(memory, Reinforce(), row=with_clue, rules="soft", horizon=4)
    names = [("room", "none"), ("key_held", "clue_red"), ("invalid", "clue_blue")]
    expected = by_differences(memory, with_clue, names, rules="soft", horizon=4)
    assert torch.allclose(rows_of(found.true_gradient, memory, names), expected, atol=1e-9, rtol=0)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_reinforce_is_unbiased_with_every_baseline(seed: int, reward_to_go: bool) -> None:
    """E[b(h_t) grad log pi(a_t | h_t)] = 0. A baseline of the action (the foil) does not have this property."""
    generator = random.Random(seed)
    policy = {key: [generator.gauss(0, 1) for _ in ACTIONS] for key in SEEN}
    numbers: dict[History, float] = {}
    for baseline in (None, 0.5, lambda history: numbers.setdefault(history, generator.gauss(0, 1))):
        estimator = Reinforce(gamma=0.9, reward_to_go=reward_to_go, baseline=baseline)
        found = estimator_moments(policy, estimator, **SMALL)
        assert found.bias is not None
        assert found.bias.norm() < 1e-14
    assert found.variance > 0
    plan = probabilities(policy, last)
    weighed = vector(p * (k == 0) for k, p in enumerate(plan(("room",))))  # b = 1 for the action inspect
    scores = torch.eye(6, dtype=torch.float64) - vector(plan(("room",)))
    assert (weighed @ scores).norm() > 1e-3


def test_without_the_discount_of_turns_the_mean_is_another_vector() -> None:
    """With gamma < 1 the factor gamma^t belongs to the gradient; at gamma = 1 there is none."""
    policy = logits(table(4))
    assert estimator_moments(policy, Reinforce(gamma=0.5, discount_turns=False), **SMALL).bias.norm() > 1e-4  # type: ignore[union-attr]
    assert estimator_moments(policy, Reinforce(discount_turns=False), **SMALL).bias.norm() < 1e-15  # type: ignore[union-attr]


@pytest.mark.parametrize("gae_lambda", [0, 0.6, 1])
@pytest.mark.parametrize("mode", ["sparse", "potential"])
def test_gae_is_unbiased_with_exact_values(gae_lambda: float, mode: str) -> None:
    """With V the exact value of each history, E[delta_t | h_t, a_t] is the advantage, and later terms have mean 0.

    The values have to be those of the rewards: shaped ones have another value, V' = V - E[Phi | h].
    """
    world = SMALL | {"gamma": 0.9}
    policy = softmax_with_memory(1, "standard", 5)
    plan = probabilities(policy, with_clue)
    values = values_of(plan, **world, reward_mode=mode)
    right, wrong = (
        estimator_moments(policy, Gae(v, gae_lambda, 0.9, mode), row=with_clue, **SMALL)
        for v in (values, {h: v + 0.1 * len(h) for h, v in values.items()})
    )
    assert right.bias is not None
    assert wrong.bias is not None
    assert right.bias.norm() < 1e-15
    assert (wrong.bias.norm() < 1e-14) == (gae_lambda == 1)
    if mode == "potential" and gae_lambda < 1:
        mixed = estimator_moments(policy, Gae(values_of(plan, **world), gae_lambda, 0.9, mode), row=with_clue, **SMALL)
        assert mixed.bias is not None
        assert mixed.bias.norm() > 1e-4


def test_shaping_is_a_baseline_at_lambda_1() -> None:
    """G'_t = G_t - Phi(s_t): the same mean, and the same estimate as with the potential taken off as a baseline.

    The potential is of the hidden state, not of the history, so that its part is done here in fractions. Below
    lambda = 1 shaped rewards credit other turns: with the values 0 the mean is another one.
    """
    policy = table(5)
    shaped = estimator_moments(logits(policy), Reinforce(gamma=G, reward_mode="potential"), rules="soft", horizon=4)
    plain = estimator_moments(logits(policy), Reinforce(gamma=G), rules="soft", horizon=4)
    assert torch.allclose(shaped.mean, plain.mean, atol=1e-14, rtol=0)
    assert shaped.variance > 2 * plain.variance  # rewards for progress are not always less noise
    estimates = []
    for episode in played(policy, rules="soft", horizon=3):
        to_go = reinforce(episode, G, "sparse", True, ZERO, False)
        weights = [G**t * (w - phi) for t, (w, phi) in enumerate(zip(to_go, episode.potentials, strict=False))]
        estimates.append((episode.chance, combined(policy, episode, weights)))
    mean, covariance = moments_of(estimates)
    shaped = estimator_moments(logits(policy), Reinforce(gamma=G, reward_mode="potential"), rules="soft", horizon=3)
    assert torch.allclose(shaped.mean, mean, atol=1e-14, rtol=0)
    assert torch.allclose(shaped.covariance, covariance, atol=1e-14, rtol=0)
    low = estimator_moments(logits(policy), Gae(0.0, 0, G, "potential"), rules="soft", horizon=4)
    assert low.bias is not None
    assert low.bias.norm() > 1e-3


@pytest.mark.parametrize("gae_lambda", [0, 0.5, 1])
@pytest.mark.parametrize("mode", ["sparse", "potential"])
def test_a_cut_needs_the_value_of_what_follows(gae_lambda: float, mode: str) -> None:
    """With the exact bootstrap unbiased for the decisions before the cut; foils: no bootstrap, no continuation."""
    policy = softmax_with_memory(2, "soft", 5)
    plan, world = probabilities(policy, with_clue), {"rules": "soft", "horizon": 5}
    values = values_of(plan, **world, gamma=0.9, reward_mode=mode)
    cut = {h: 0.0 if len(h) == 2 * 3 + 1 else v for h, v in values.items()}
    for numbers, unbiased in ((values, True), (cut, False)):
        found = estimator_moments(
            policy, Gae(numbers, gae_lambda, 0.9, mode), row=with_clue, **world, collector_limit=3
        )
        assert found.bias is not None
        assert (found.bias.norm() < 1e-14) == unbiased
        assert (found.bias.norm() < 1e-4) == unbiased
    whole = estimator_moments(policy, Reinforce(gamma=0.9), row=with_clue, **world)
    assert found.true_gradient is not None
    assert (found.true_gradient - whole.mean).norm() > 1e-3  # the decisions after the cut are in no episode


def test_rao_blackwell() -> None:
    """With parameters of their own for each turn the estimate for a turn is w_t grad log pi(a_t | h_t) alone.

    With exact V the residual is delta_t = E[G_t - V(h_t) | h_t, a_t, o_{t+1}], a conditional mean of the weight at
    lambda = 1, so that for every parameter the second moment is not larger (Rao, Blackwell). And G_t - V(h_t), with
    all its noise, has the same mean.
    """
    generator = random.Random(0)

    def key(history: History) -> tuple[int, History]:
        return len(history) // 2, with_clue(history)

    keys = sorted({key(history) for history, _ in histories(**SMALL)})
    policy = {k: [generator.gauss(0, 0.5) for _ in ACTIONS] for k in keys}
    values = values_of(probabilities(policy, key), **SMALL)
    smooth, noisy = (estimator_moments(policy, Gae(values, x), row=key, **SMALL) for x in (0, 1))
    assert torch.allclose(smooth.mean, noisy.mean, atol=1e-15, rtol=0)
    assert (smooth.covariance.diagonal() <= noisy.covariance.diagonal() + 1e-16).all()
    assert smooth.variance < 0.9 * noisy.variance


def test_best_constant_baseline() -> None:
    """For w_t = G_0 - b the variance is a parabola in b, with the second difference 2 E|S|^2, S the sum of scores.

    Its lowest point is E[G |S|^2] / E|S|^2 (Greensmith, Bartlett, Baxter 2004), not the mean return.
    """
    policy = table(6)
    norms, weighed = F(0), F(0)
    for episode in played(policy, rules="soft", horizon=4):
        total = combined(policy, episode, [F(1)] * len(episode.actions))
        square = episode.chance * sum(x * x for x in total.values())
        norms, weighed = norms + square, weighed + square * sum(episode.base)
    best = weighed / norms

    def variance(b: F) -> float:
        estimator = Reinforce(reward_to_go=False, baseline=b)
        return estimator_moments(logits(policy), estimator, rules="soft", horizon=4).variance

    low, at, high = variance(best - 1), variance(best), variance(best + 1)
    assert low - at == pytest.approx(float(norms), rel=1e-10)
    assert high - at == pytest.approx(float(norms), rel=1e-10)
    mean_return = evaluate_exactly(policy, rules="soft", horizon=4).expected_return
    assert at < variance(mean_return)


# --- ratios -----------------------------------------------------------------------------------------------------------


def tokens(action: int) -> list[str]:
    return ACTIONS[action].split("_")


def verb_probability(row: list[F], action: int) -> F:
    return sum((p for k, p in enumerate(row) if tokens(k)[0] == tokens(action)[0]), F(0))


def surrogate_by_hand(policy: Table, behaviour: Table, e: Played, weights: list[F], level: str, clip: F | None) -> Any:
    """The clipped objective, differentiated token by token: d rho = rho d log pi where nothing is clipped."""
    total: dict[tuple[str, int], F] = {}

    def add(name: str, ratio: F, weight: F, gradient: list[F]) -> None:
        if clip is not None and ((weight > 0 and ratio > 1 + clip) or (weight < 0 and ratio < 1 - clip)):
            return
        for k, part in enumerate(gradient):
            total[name, k] = total.get((name, k), F(0)) + ratio * weight * part

    turn_ratios = [policy[h[-1]][a] / behaviour[h[-1]][a] for h, a in zip(e.histories(), e.actions, strict=True)]
    for turn, (history, action, weight) in enumerate(zip(e.histories(), e.actions, weights, strict=True)):
        name = history[-1]
        row, other = policy[name], behaviour[name]
        own = [(k == action) - p for k, p in enumerate(row)]
        if level != "token":
            ratio = {
                "turn": turn_ratios[turn],
                "prefix": math.prod(turn_ratios[: turn + 1]),
                "trajectory": math.prod(turn_ratios),
            }[level]
            add(name, F(ratio), weight, own)
            continue
        verb, verb_other = verb_probability(row, action), verb_probability(other, action)
        # log pi(verb) = log sum of exp(logit) over the verb's actions - log sum over all
        same = [tokens(k)[0] == tokens(action)[0] for k in range(len(row))]
        add(name, verb / verb_other, weight, [(p / verb if s else 0) - p for p, s in zip(row, same, strict=True)])
        if len(tokens(action)) == 2:
            inner = [(k == action) - (p / verb if s else 0) for k, (p, s) in enumerate(zip(row, same, strict=True))]
            add(name, (row[action] / verb) / (other[action] / verb_other), weight, inner)
    return total


@pytest.mark.parametrize("level", ["token", "turn", "prefix", "trajectory"])
@pytest.mark.parametrize("clip", [None, F(1, 5)])
def test_surrogates_by_enumeration_in_fractions(level: str, clip: F | None) -> None:
    policy, behaviour = table(7), table(8)
    estimates = []
    for episode in played(behaviour, rules="soft", horizon=3):
        weights = reinforce(episode, G, "potential", True, BASELINE, True)
        estimates.append((episode.chance, surrogate_by_hand(policy, behaviour, episode, weights, level, clip)))
    mean, covariance = moments_of(estimates)
    inner = Reinforce(gamma=G, reward_mode="potential", baseline=BASELINE)
    found = estimator_moments(logits(policy), Surrogate(inner, behaviour, level, clip), rules="soft", horizon=3)
    assert torch.allclose(found.mean, mean, atol=1e-13, rtol=1e-12)
    assert torch.allclose(found.covariance, covariance, atol=1e-12, rtol=1e-12)
    free = estimator_moments(logits(policy), Surrogate(inner, behaviour, level), rules="soft", horizon=3)
    assert torch.allclose(found.mean, free.mean, atol=1e-6) == (clip is None)


@pytest.mark.parametrize("level", ["token", "turn", "prefix", "trajectory"])
@pytest.mark.parametrize("inner", [Reinforce(gamma=0.9, baseline=0.1), Gae(0.3, 0.5), GroupAdvantage(3)])
def test_all_ratios_are_1_at_the_behaviour_policy(level: str, inner: Any) -> None:
    policy = table(9)
    plain = estimator_moments(logits(policy), inner, **SMALL)
    for behaviour in (None, policy):
        found = estimator_moments(logits(policy), Surrogate(inner, behaviour, level, clip=0.2), **SMALL)
        assert torch.allclose(found.mean, plain.mean, atol=1e-14, rtol=0)
        assert torch.allclose(found.covariance, plain.covariance, atol=1e-13, rtol=0)


def test_which_ratios_are_unbiased() -> None:
    """Only the ratio of whole episodes brings back the mean under the policy that is trained, whatever is weighed."""
    policy, behaviour = table(10), table(11)
    inner = Reinforce(gamma=0.9)
    bias = {}
    for level in ("token", "turn", "prefix", "trajectory"):
        found = estimator_moments(logits(policy), Surrogate(inner, behaviour, level), **SMALL)
        bias[level] = found.bias.norm()  # type: ignore[union-attr]
    assert bias.pop("trajectory") < 1e-14
    assert min(bias.values()) > 1e-4
    # With exact values the residual needs nothing of the policy after its turn: the ratios up to it are enough.
    memory = softmax_with_memory(3, "standard", 5)
    values = values_of(probabilities(memory, with_clue), **SMALL)
    for level, unbiased in (("prefix", True), ("trajectory", True), ("turn", False), ("token", False)):
        estimator = Surrogate(Gae(values, 0), probabilities(softmax_with_memory(4, "standard", 5), with_clue), level)
        found = estimator_moments(memory, estimator, row=with_clue, **SMALL)
        assert (found.bias.norm() < 1e-14) == unbiased  # type: ignore[union-attr]
    # And episodes that the behaviour policy never plays are missed by every ratio.
    never = {name: [*row[:-1], 0] for name, row in behaviour.items()}
    never = {name: [p / sum(row) for p in row] for name, row in never.items()}
    found = estimator_moments(logits(policy), Surrogate(inner, never, "trajectory"), **SMALL)
    assert torch.equal(found.mean, torch.zeros(36, dtype=torch.float64))  # nobody finishes
    assert found.bias.norm() > 1e-4  # type: ignore[union-attr]


def test_what_turn_and_token_ratios_estimate() -> None:
    """The gradients of sums over the behaviour policy's histories, with its action values Q^mu.

    Turns: sum_h d_mu(h) sum_a pi(a | h) Q^mu(h, a). Tokens: the same with pi(v) mu(c | v) + mu(v) pi(c | v) for
    actions with a colour. By central differences in the logits.
    """
    policy, behaviour = table(12), table(13)
    weighed = {name: torch.zeros(6, dtype=torch.float64) for name in SEEN}  # d_mu(h) Q^mu(h, .), added up
    for node in evaluate_exactly(behaviour, **SMALL).nodes:
        weighed[node.history[-1]] += float(node.probability) * vector(node.action_values)
    verbs = [[k for k in range(6) if tokens(k)[0] == tokens(a)[0]] for a in range(6)]

    def objective(level: str, moved: dict[str, Tensor]) -> float:
        total = 0.0
        for name in SEEN:
            pi, mu = torch.softmax(moved[name], -1), vector(behaviour[name])
            if level == "token":
                mixed = []
                for a, same in enumerate(verbs):
                    v, w = pi[same].sum(), mu[same].sum()
                    mixed.append(v * mu[a] / w + w * pi[a] / v if len(same) > 1 else pi[a])
                pi = torch.stack(mixed)
            total += float(pi @ weighed[name])
        return total

    for level in ("turn", "token"):
        slopes = []
        for name, place in itertools.product(SEEN, range(6)):
            ends = []
            for step in (1e-4, -1e-4):
                moved = {k: vector(row) for k, row in logits(policy).items()}
                moved[name][place] += step
                ends.append(objective(level, moved))
            slopes.append((ends[0] - ends[1]) / 2e-4)
        found = estimator_moments(logits(policy), Surrogate(Reinforce(), behaviour, level), **SMALL)
        assert found.mean.norm() > 1e-4
        assert torch.allclose(found.mean, vector(slopes), atol=1e-9, rtol=0)


def test_clipping_stops_what_has_gone_far_enough() -> None:
    """A behaviour policy so far away that every ratio is outside of the range: what is left is what pulls back."""
    near, far = {name: [F(1, 6)] * 6 for name in SEEN}, table(14)
    loose = estimator_moments(logits(far), Surrogate(Reinforce(), near, "turn", clip=1000), **SMALL)
    free = estimator_moments(logits(far), Surrogate(Reinforce(), near, "turn"), **SMALL)
    tight = estimator_moments(logits(far), Surrogate(Reinforce(), near, "turn", clip=1e-9), **SMALL)
    assert torch.equal(loose.mean, free.mean)
    expected = []
    for episode in played(near, horizon=5):
        weights = [
            w if far[h[-1]][a] <= F(1, 6) else F(0)  # w is 0 or 1: only ratios above 1 are clipped
            for h, a, w in zip(
                episode.histories(), episode.actions, reinforce(episode, F(1), "sparse", True, ZERO, True), strict=True
            )
        ]
        if any(weights):
            expected.append((episode.chance, surrogate_by_hand(far, near, episode, weights, "turn", None)))
    assert torch.allclose(tight.mean, moments_of(expected)[0], atol=1e-14, rtol=0)
    assert tight.mean.norm() < free.mean.norm()


# --- groups -----------------------------------------------------------------------------------------------------------

GROUPS = [
    GroupAdvantage(2),
    GroupAdvantage(2, scale=False),
    GroupAdvantage(2, ddof=1, epsilon=1e-4),
    GroupAdvantage(3),
    GroupAdvantage(3, ddof=1, epsilon=0.5),
    GroupAdvantage(3, scale=False),
    GroupAdvantage(1),
]


@pytest.mark.parametrize("group", GROUPS, ids=str)
@pytest.mark.parametrize(("level", "clip"), [("turn", None), ("turn", F(1, 5)), ("token", F(1, 5))])
def test_groups_by_enumeration(group: GroupAdvantage, level: str, clip: F | None) -> None:
    """All lists of G episodes of one target. The behaviour policy takes few actions, so that there are few of them."""
    policy = table(15)
    behaviour = {
        "room": [F(1), F(0), F(0), F(0), F(0), F(0)],
        "clue_red": [F(0), F(2, 3), F(1, 3), F(0), F(0), F(0)],
        "clue_blue": [F(0), F(1, 4), F(3, 4), F(0), F(0), F(0)],
        "key_held": [F(0), F(0), F(0), F(2, 5), F(3, 5), F(0)],
        "door_open": [F(0), F(0), F(0), F(0), F(0), F(1)],
    }
    by_target: dict[str, list[tuple[float, bool, Any, Any]]] = {}
    for e in played(behaviour, horizon=4):
        up, down = (
            surrogate_by_hand(policy, behaviour, e, [F(sign)] * len(e.actions), level, clip) for sign in (1, -1)
        )
        parts = [np.array([float(x.get(place, 0)) for place in itertools.product(SEEN, range(6))]) for x in (up, down)]
        by_target.setdefault(e.target, []).append((float(2 * e.chance), e.success, parts[0], -parts[1]))
    mean, second, chance = np.zeros(36), np.zeros((36, 36)), 0.0
    for episodes in by_target.values():
        for members in itertools.product(episodes, repeat=group.group_size):
            probability = math.prod(member[0] for member in members) / 2
            advantages = group_advantages(
                [int(member[1]) for member in members], scale=group.scale, ddof=group.ddof, epsilon=group.epsilon
            )
            # member[2] is the clipped sum of scores where A > 0, member[3] where A < 0
            terms = [float(a) * member[2 if a > 0 else 3] for a, member in zip(advantages, members, strict=True)]
            estimate = sum(terms) / group.group_size
            mean += probability * estimate
            second += probability * np.outer(estimate, estimate)
            chance += probability
    assert chance == pytest.approx(1, abs=1e-12)
    found = estimator_moments(logits(policy), Surrogate(group, behaviour, level, clip), horizon=4)
    assert np.allclose(found.mean, mean, atol=1e-13, rtol=0)
    assert np.allclose(found.covariance, second - np.outer(mean, mean), atol=1e-12, rtol=0)
    assert (group.group_size == 1) == (not mean.any())  # a group of one has no signal


@cache
def slopes_by_target() -> dict[str, tuple[float, Tensor]]:
    """For each target the success probability of the skilled policy, and its gradient by central differences.

    A finish succeeds at the places where the door of the target is open, with the posterior of that target.
    """
    model = belief_model(get_rules("soft"))

    def success(moved: dict[str, Tensor]) -> Tensor:
        plan = {name: torch.softmax(row, -1).tolist() for name, row in moved.items()}
        chances = [0.0, 0.0]
        for node in evaluate_exactly(plan, rules="soft", horizon=5).nodes:
            for c, state in enumerate(model.beliefs[node.belief]):
                if state is not None and model.world.table[state][5].stop_reason == "success":
                    posterior = float([*model.posterior(node.belief).values()][c])
                    chances[c] += 2 * float(node.probability) * posterior * float(node.policy[5])
        return vector(chances)

    start = {name: vector(row) for name, row in logits(skilled()).items()}
    slopes = []
    for name, place in itertools.product(SEEN, range(6)):
        step = torch.zeros(6, dtype=torch.float64)
        step[place] = 1e-4
        ends = [success(start | {name: start[name] + sign * step}) for sign in (1, -1)]
        slopes.append((ends[0] - ends[1]) / 2e-4)
    both = torch.stack(slopes, dim=1)
    return {c: (float(success(start)[k]), both[k]) for k, c in enumerate(("red", "blue"))}


@pytest.mark.parametrize("group", [*GROUPS, GroupAdvantage(64), GroupAdvantage(64, scale=False)], ids=str)
def test_groups_stretch_the_gradient_of_each_target(group: GroupAdvantage) -> None:
    """The mean is the mean over the targets of kappa(p_c) grad p_c.

    Without the scale that is (G - 1)/G times the gradient. With it the targets count differently, and not even the
    direction is that of the gradient.
    """
    targets = slopes_by_target()
    assert targets["red"][0] > 3 * targets["blue"][0] > 0.1
    options: dict[str, Any] = {"scale": group.scale, "ddof": group.ddof, "epsilon": group.epsilon}
    expected = torch.zeros(36, dtype=torch.float64)
    for p, slope in targets.values():
        expected += group_gradient_factor(p, group.group_size, **options) * slope / 2
    found = estimator_moments(logits(skilled()), group, rules="soft", horizon=5)
    assert torch.allclose(found.mean, expected, atol=2e-8, rtol=0)
    assert found.true_gradient is not None
    factor = (group.group_size - 1) / group.group_size
    if group.group_size == 1 or not group.scale:
        assert torch.allclose(found.mean, factor * found.true_gradient, atol=1e-14, rtol=0)
    elif group.group_size > 3:  # up to three episodes a mixed group has always the same deviation
        assert torch.cosine_similarity(found.mean, found.true_gradient, dim=0) < 1 - 1e-5


@settings(max_examples=30, deadline=None)
@given(st.fractions(F(1, 50), F(49, 50), max_denominator=50), st.integers(1, 7), st.booleans(), st.integers(0, 1))
def test_group_factor_by_all_groups(p: F, size: int, scale: bool, ddof: int) -> None:
    """The factor is E[(1/G) sum_i A_i (r_i - p)] / (p (1 - p)): the Bernoulli score, over all 2^G lists of rewards."""
    total = 0.0
    for rewards in itertools.product((0, 1), repeat=size):
        chance = math.prod(p if r else 1 - p for r in rewards)
        advantages = group_advantages(rewards, scale=scale, ddof=ddof)
        terms = (float(a) * float(r - p) for a, r in zip(advantages, rewards, strict=True))
        total += float(chance) * sum(terms) / size
    expected = total / float(p * (1 - p))
    assert group_gradient_factor(p, size, scale=scale, ddof=ddof) == pytest.approx(expected, abs=1e-11)


def test_group_factor_in_closed_form() -> None:
    """(G - 1)/G without the scale; 1/sqrt(p (1 - p)) for large groups with it; 0 for a group of one.

    At p = 0 and p = 1 the factor is the advantage of a first success, sqrt(G - 1). Mixed groups of two or three have
    all the same deviation, (G - 1)/G divided by it is 1 and sqrt(2) for every p.
    """
    for p in (0.0, 0.01, 0.5, 1.0):
        assert group_gradient_factor(p, 8, scale=False) == pytest.approx(7 / 8, abs=1e-14)
        assert group_gradient_factor(p, 1) == 0
        assert group_gradient_factor(p, 2) == pytest.approx(1, abs=1e-14)
        assert group_gradient_factor(p, 3) == pytest.approx(math.sqrt(2), abs=1e-14)
    assert group_gradient_factor(0.3, 1000) == pytest.approx(1 / math.sqrt(0.21), rel=0.01)
    assert group_gradient_factor(0.3, 4) != pytest.approx(1 / math.sqrt(0.21), rel=0.01)
    assert group_gradient_factor(0, 5) == group_gradient_factor(1, 5) == pytest.approx(2, abs=1e-14)
    for size in (4, 5, 8, 33):  # a strictly convex bowl, lowest in the middle
        bowl = [group_gradient_factor(k / 20, size) for k in range(21)]
        assert all(bowl[k - 1] + bowl[k + 1] > 2 * bowl[k] + 1e-9 for k in range(1, 20))
        assert min(bowl) == bowl[10]


# --- networks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("previous_action", [True, False])
def test_networks(previous_action: bool) -> None:
    """Mean: autograd of the exact objective. Variance: the gradient of each episode by autograd of ``forward``."""
    model = RecurrentActorCritic(seed=1, hidden_size=2, head_scale=2.0, previous_action=previous_action)
    found = estimator_moments(model, Reinforce(gamma=0.9), rules="soft", horizon=3)
    assert found.mean.norm() == 0  # nothing can be earned
    estimator = Reinforce(gamma=0.9, reward_mode="potential", baseline=0.1)
    found = estimator_moments(model, estimator, rules="soft", horizon=3)
    double = RecurrentActorCritic(seed=1, hidden_size=2, head_scale=2.0, previous_action=previous_action).double()
    plan, world = policy_table(double, rules="soft", horizon=3), get_rules("soft")
    mean, square = torch.zeros(len(found.mean)).double(), 0.0
    parameters = [p for n, p in double.named_parameters() if not n.startswith("value")]
    uniform = {name: [F(1, 6)] * 6 for name in SEEN}
    for e in played(uniform, rules="soft", horizon=3):
        seen = torch.tensor([[world.observations.index(h[-1]) for h in e.histories()]])
        done = torch.tensor([[6, *e.actions[:-1]]])
        logprobs = torch.log_softmax(double(seen, done)[0][0], -1)[range(len(e.actions)), e.actions]
        chance = 0.5 * math.prod(plan[h][a] for h, a in zip(e.histories(), e.actions, strict=True))
        weights = vector(reinforce(e, G, "potential", True, dict.fromkeys(SEEN, F(1, 10)), True))
        parts = torch.autograd.grad((weights * logprobs).sum(), parameters)
        estimate = torch.cat([part.flatten() for part in parts])
        mean += chance * estimate
        square += chance * float(estimate.square().sum())
    assert len(found.parameters) == len(mean)
    assert torch.allclose(found.mean, mean, atol=1e-14, rtol=0)
    assert found.variance == pytest.approx(square - float(mean.square().sum()), abs=1e-13)


def test_the_mean_of_a_network_is_autograd_of_the_exact_objective() -> None:
    model = RecurrentActorCritic(seed=2, hidden_size=2, head_scale=2.0).double()
    found = estimator_moments(model, Reinforce(gamma=0.9), horizon=5)
    _, gradient = exact_gradient(model, horizon=5, gamma=0.9)
    expected = torch.tensor([gradient[name].flatten()[place].item() for name, place in found.parameters])
    assert found.mean.norm() > 1e-5
    assert torch.allclose(found.mean, expected.double(), atol=1e-9, rtol=1e-6)
    assert found.bias is not None
    assert found.bias.norm() < 1e-15
    behaviour = RecurrentActorCritic(seed=3, hidden_size=3).double()
    found = estimator_moments(model, Surrogate(Reinforce(gamma=0.9), behaviour, "trajectory"), horizon=5)
    assert found.bias is not None
    assert found.bias.norm() < 1e-14


# --- by sampling ------------------------------------------------------------------------------------------------------


def both(estimator: Any, policy: Any, **world: Any) -> tuple[EstimatorMoments, EstimatorMoments]:
    exact = estimator_moments(policy, estimator, **world)
    sampled = estimator_moments(policy, estimator, **world, method="monte carlo", episodes=4000, seed=1)
    assert (exact.method, sampled.method, sampled.episodes) == ("enumeration", "monte carlo", 4000)
    return exact, sampled


@pytest.mark.parametrize(
    ("estimator", "world"),
    [
        (Reinforce(gamma=0.9, reward_mode="potential", baseline=BASELINE), {"rules": "soft", "horizon": 5}),
        (Gae(BASELINE, 0.5, 0.9, "potential"), {"rules": "quiet", "horizon": 5, "collector_limit": 3}),
        (Surrogate(Reinforce(reward_mode="potential"), table(20), "token", 0.2), {"rules": "soft", "horizon": 4}),
        (GroupAdvantage(4), {"rules": "soft", "horizon": 5}),
    ],
    ids=str,
)
def test_sampling_agrees_with_enumeration(estimator: Any, world: dict[str, Any]) -> None:
    """Within five standard errors in each component and in the squared error; the seed is fixed."""
    exact, sampled = both(estimator, logits(skilled()), **world)
    away = (sampled.mean - exact.mean).abs()
    seen = sampled.mean_standard_error > 0
    assert seen.sum() > 20
    assert (away[seen] < 5 * sampled.mean_standard_error[seen]).all()
    assert away.norm() > 1e-6  # it is not the enumeration
    assert sampled.mse is not None
    assert exact.mse is not None
    assert sampled.mse_standard_error is not None
    assert abs(sampled.mse - exact.mse) < 5 * sampled.mse_standard_error
    assert sampled.mse_standard_error < 0.2 * exact.mse
    assert torch.equal(exact.true_gradient, sampled.true_gradient)  # type: ignore[arg-type]
    assert sampled.variance == pytest.approx(exact.variance, rel=0.5)


def test_sampling_depends_on_its_seed_alone() -> None:
    policy, world = logits(table(21)), {"rules": "soft", "horizon": 4, "method": "monte carlo", "episodes": 50}
    estimator = Reinforce(reward_mode="potential")
    random.seed(1)
    state = random.getstate()
    first, again, other = (estimator_moments(policy, estimator, **world, seed=seed) for seed in (3, 3, 4))
    assert random.getstate() == state
    assert torch.equal(first.mean, again.mean)
    assert not torch.equal(first.mean, other.mean)


def test_trees_that_are_too_large_are_sampled() -> None:
    """At horizon 12 there are some hundred million histories. A memoryless policy has its exact gradient even there."""
    world: dict[str, Any] = {"rules": "soft", "horizon": 12}
    policy = logits(table(22))
    found = estimator_moments(policy, Reinforce(gamma=0.9), **world, episodes=200)
    assert found.method == "monte carlo"
    assert found.mse is not None
    assert found.mse_standard_error is not None
    assert found.mse_standard_error > 0
    expected = by_differences(policy, last, ["door_open"], **world, gamma=0.9)
    assert torch.allclose(rows_of(found.true_gradient, policy, ["door_open"]), expected, atol=1e-9, rtol=0)
    # With a memory it is not known, and nothing is said of bias and error.
    memory = {(o, c): row for o, row in policy.items() for c in ("none", "clue_red", "clue_blue")}
    found = estimator_moments(memory, Reinforce(gamma=0.9), row=with_clue, **world, episodes=200)
    assert (found.true_gradient, found.bias, found.mse, found.mse_standard_error) == (None, None, None, None)
    assert found.mean_standard_error.any()
    with pytest.raises(ValueError, match=r"^method is 'enumeration'; .* at most 1,000,000 episodes; there are \d"):
        estimator_moments(policy, Reinforce(), **world, method="enumeration")


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Reinforce(gamma=2), r"^gamma is 2"),
        (lambda: Reinforce(gamma=math.nan), r"^gamma is nan"),
        (lambda: Reinforce(reward_to_go=1), r"^reward_to_go is 1"),
        (lambda: Reinforce(baseline=math.inf), r"^baseline is inf"),
        (lambda: Reinforce(baseline="b"), r"^baseline is 'b'"),
        (lambda: Reinforce(reward_mode="dense"), r"^reward_mode is 'dense'"),
        (lambda: Reinforce(discount_turns=None), r"^discount_turns is None"),
        (lambda: Gae(None), r"^values is None"),
        (lambda: Gae(0.0, gae_lambda=-1), r"^gae_lambda is -1"),
        (lambda: GroupAdvantage(0), r"^group_size is 0"),
        (lambda: GroupAdvantage(1001), r"^group_size is 1001; expected at most 1000"),
        (lambda: GroupAdvantage(4, ddof=2), r"^ddof is 2"),
        (lambda: GroupAdvantage(4, epsilon=-1), r"^epsilon is -1"),
        (lambda: GroupAdvantage(4, scale=0), r"^scale is 0"),
        (lambda: Surrogate("advantages"), r"^advantages is 'advantages'"),
        (lambda: Surrogate(Reinforce(), level="sentence"), r"^level is 'sentence'"),
        (lambda: Surrogate(Reinforce(), clip=0), r"^clip is 0"),
        (lambda: Surrogate(Reinforce(), behaviour=[1]), r"^behaviour is \[1\]"),
        (lambda: group_gradient_factor(1.5, 4), r"^p is 1\.5"),
    ],
)
def test_bad_settings_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"policy": {}}, r"^policy is \{\}"),
        ({"policy": {"room": [0.0] * 5}}, r"^policy\['room'\] is .*; expected 6 logits"),
        ({"policy": {"room": [0.0] * 5 + [math.nan]}}, r"^policy\['room'\]\[5\] is nan"),
        ({"policy": {"room": [0.0] * 6}}, r"^policy is \['room'\]; expected an entry for 'clue_red'"),
        ({"policy": None}, r"^policy is None"),
        ({"row": lambda history: [history]}, r"^row\(\('room',\)\) is .*; expected a key"),
        ({"policy": RecurrentActorCritic(hidden_size=2), "row": last}, r"^row is .*; expected None"),
        ({"policy": RecurrentActorCritic(colours=3)}, r"^policy is 'a network for 8 actions'; expected one for the 6"),
        ({"policy": RecurrentActorCritic(), "horizon": 7}, r"^policy is 'a network of \d+ parameters'; expected at"),
        ({"estimator": "reinforce"}, r"^estimator is 'reinforce'"),
        ({"estimator": Reinforce(baseline={"room": 1})}, r"^baseline is \['room'\]; expected an entry for"),
        ({"estimator": Gae(lambda history: math.nan)}, r"^values\(\('room',\)\) is nan"),
        ({"estimator": Surrogate(Reinforce(), {"room": [1] * 6})}, r"^policy\['room'\] is .*; .* add up to 1"),
        ({"method": "guess"}, r"^method is 'guess'"),
        ({"episodes": 1}, r"^episodes is 1"),
        ({"seed": -1}, r"^seed is -1"),
        ({"horizon": 0}, r"^horizon is 0"),
        ({"collector_limit": 0}, r"^collector_limit is 0"),
        ({"rules": "hard"}, r"^rules is 'hard'"),
        (
            {"estimator": GroupAdvantage(8), "method": "monte carlo", "episodes": 15},
            r"^episodes is 15; expected at least 16, two groups",
        ),
    ],
)
def test_bad_arguments_are_named(changed: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"policy": logits(table(0)), "estimator": Reinforce(), "horizon": 3} | changed
    policy, estimator = arguments.pop("policy"), arguments.pop("estimator")
    with pytest.raises(ValueError, match=message):
        estimator_moments(policy, estimator, **arguments)


def test_moments_outside_of_all_floats_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^the moments leave the range of a float"):
        estimator_moments(logits(table(0)), Reinforce(baseline=1e200), horizon=3)
