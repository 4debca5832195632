r"""Gradient estimators, and what each of them is worth: mean, covariance and squared error, by enumeration.

An estimator turns the sampled episodes into a vector that is to point along the policy gradient. All the estimators
here have one form. With the scores :math:`\nabla\log\pi(a_t\mid h_t)` and weights :math:`w_t(\tau)` that depend on the
episode, the estimate from one episode is

.. math:: \hat g(\tau) = \sum_t w_t(\tau)\, \nabla \log \pi_\theta(a_t \mid h_t),

and from a group of :math:`G` episodes with the same target the mean of :math:`G` such sums. In this world there are
so few episodes that its moments under the policy can be added up over all of them. The measure is the true gradient,

.. math:: g = \sum_{t < L} \mathbb E\bigl[\gamma^t Q^\pi(h_t, a_t) \nabla \log \pi_\theta(a_t \mid h_t)\bigr],

where :math:`L` is the turn of the collector's cut. Without a cut this is :math:`\nabla J`, the gradient of the expected
discounted base return. With one it is the part of :math:`\nabla J` that belongs to the decisions before the cut: those
after it are in no episode, and no estimator can see them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from keydoor._checks import Number, finite, flag, one_of, refuse, unit_interval, whole
from keydoor._episodes import Episodes, all_episodes, count_episodes, sampled_episodes
from keydoor._moments import (
    binomial,
    enumerated,
    enumerated_groups,
    estimates,
    player,
    rewards_of,
    sample,
    signals,
    sums_from_here,
    true_gradient,
    turn_discounts,
)
from keydoor._play import one_thread
from keydoor._scores import Row, is_network
from keydoor.exact import LIMIT, History, Policy, _walk, belief_model
from keydoor.gradients import policy_table
from keydoor.groups import group_advantages
from keydoor.rules import REWARD_MODES, get_rules

METHODS = ("auto", "enumeration", "monte carlo")
"""How moments are found; ``"auto"`` enumerates where the tree allows."""

LEVELS = ("token", "turn", "prefix", "trajectory")
"""To what a probability ratio belongs; see :class:`Surrogate`."""

LARGEST_GROUP = 1000
"""Largest group size."""

Values = Number | Mapping[Any, Number] | Callable[[History], Number]
"""A number for each history: always the same one, a table from histories or from last observations, or a function."""


@dataclass(frozen=True, eq=False)
class Reinforce:
    r"""REINFORCE, with or without reward-to-go and a baseline.

    .. math:: w_t = \gamma^t \bigl(G_t - b(h_t)\bigr), \qquad G_t = \sum_{k \ge t} \gamma^{k-t} r_k,
              \qquad\text{or}\qquad w_t = G_0 - b(h_t)

    without reward-to-go. Both are unbiased for every baseline. Nothing is added at a cut, so that there the estimate
    belongs to the rewards before it.

    Raises:
        ValueError: a setting is outside of its range.

    Source:
        Williams (1992), section 4, with a baseline; Sutton, McAllester, Singh, Mansour (2000), theorem 1, for the
        factor :math:`\gamma^t`; Nota, Thomas (2020) on leaving it out.

    Example:
        >>> Reinforce(gamma=0.9, baseline={"room": 0.5})
        Reinforce(gamma=0.9, reward_to_go=True, baseline={'room': 0.5}, reward_mode='sparse', discount_turns=True)
    """

    gamma: Number = 1
    """Discount, in [0, 1]; also of the return whose gradient is wanted."""
    reward_to_go: bool = True
    """Weigh a turn with the rewards from it on, and not with those of the whole episode."""
    baseline: Values | None = None
    """:math:`b(h)`, finite numbers; see :data:`Values`. ``None``: zero."""
    reward_mode: str = "sparse"
    """``"sparse"``, the base reward, or ``"potential"``, the shaped one (with the potential of the hidden state)."""
    discount_turns: bool = True
    """The factor :math:`\\gamma^t` (only with reward-to-go). Without it the mean is no gradient where
    :math:`\\gamma < 1`."""

    def __post_init__(self) -> None:
        flag(self.reward_to_go, "reward_to_go")
        _check_settings(self, "baseline")

    def _weights(self, batch: Episodes, values: Tensor) -> Tensor:
        rewards, gamma = rewards_of(self, batch), float(self.gamma)
        weights = sums_from_here(rewards, gamma)
        if not self.reward_to_go:
            weights = weights[:, :1].expand(rewards.shape)
        if self.baseline is not None:
            weights = weights - values[batch.node]
        return weights * turn_discounts(self, rewards) if self.reward_to_go else weights


@dataclass(frozen=True, eq=False)
class Gae:
    r"""Generalised advantages, with the values' bootstrap at a cut.

    .. math:: w_t = \gamma^t \sum_{l \ge 0} (\gamma\lambda)^l \delta_{t+l}, \qquad
              \delta_t = r_t + \gamma V(h_{t+1}) - V(h_t)

    with :math:`V = 0` after a true end, and :math:`V(h_L)` at a cut, as :func:`keydoor.returns.gae_advantages` has it.
    Unbiased for every :math:`\lambda` if :math:`V` is the exact value of the policy (for the shaped reward, of the
    shaped return); at :math:`\lambda = 1` without a cut for every :math:`V`.

    Raises:
        ValueError: a setting is outside of its range.

    Source:
        Schulman, Moritz, Levine, Jordan, Abbeel (2016), equation 16.

    Example:
        >>> Gae(values=0.5, gae_lambda=0.95).gae_lambda
        0.95
    """

    values: Values
    """:math:`V(h)`, finite numbers; see :data:`Values`."""
    gae_lambda: Number = 1
    """:math:`\\lambda`, in [0, 1]."""
    gamma: Number = 1
    """Discount, in [0, 1], as in :class:`Reinforce`."""
    reward_mode: str = "sparse"
    """As in :class:`Reinforce`."""
    discount_turns: bool = True
    """As in :class:`Reinforce`."""

    def __post_init__(self) -> None:
        unit_interval(self.gae_lambda, "gae_lambda")
        _check_settings(self, "values")

    def _weights(self, batch: Episodes, values: Tensor) -> Tensor:
        rewards, gamma = rewards_of(self, batch), float(self.gamma)
        now = values[batch.node]
        last = torch.zeros(len(now), dtype=torch.float64) if batch.cut is None else values[batch.cut]
        residuals = rewards + gamma * torch.cat([now[:, 1:], last[:, None]], dim=1) - now
        return sums_from_here(residuals, gamma * float(self.gae_lambda)) * turn_discounts(self, rewards)


@dataclass(frozen=True, eq=False)
class GroupAdvantage:
    r"""The estimate from a group: :math:`G` episodes of one target, each weighed with its advantage in the group.

    .. math:: \hat g = \frac{1}{G} \sum_{i=1}^{G} A_i \sum_t \nabla \log \pi_\theta(a_{i,t} \mid h_{i,t}),

    with the advantages :math:`A_i` of :func:`keydoor.groups.group_advantages` for the rewards 1 (success) and 0. The
    mean over groups is :func:`group_gradient_factor` times the gradient of the success probability, target by target.

    Raises:
        ValueError: a setting is outside of its range.

    Source:
        Shao et al. (2024), *DeepSeekMath*; Liu et al. (2025), *Understanding R1-Zero-Like Training*, without the
        division.

    Example:
        >>> GroupAdvantage(group_size=8, scale=False)
        GroupAdvantage(group_size=8, scale=False, ddof=0, epsilon=0.0)
    """

    group_size: int
    """:math:`G`, at least 1, at most :data:`LARGEST_GROUP`."""
    scale: bool = True
    """Whether the differences from the mean are divided by the standard deviation."""
    ddof: int = 0
    """0 or 1, as for :func:`keydoor.groups.group_advantages`."""
    epsilon: Number = 0.0
    """Added to the standard deviation, not below 0."""

    def __post_init__(self) -> None:
        if whole(self.group_size, "group_size", least=1) > LARGEST_GROUP:
            refuse("group_size", self.group_size, f"at most {LARGEST_GROUP}")
        group_advantages([0, 1], scale=self.scale, ddof=self.ddof, epsilon=self.epsilon)


Advantages = Reinforce | Gae | GroupAdvantage
"""What weighs a turn."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    r"""Episodes of another policy, weighed with probability ratios, clipped or not.

    .. math:: \hat g(\tau) = \sum_t \mathbf 1[\rho_t \text{ is not clipped}]\, \rho_t\, w_t\,
              \nabla \log \pi(a_t \mid h_t), \qquad \tau \sim \mu,

    where :math:`w_t` comes from ``advantages`` and a ratio is clipped if :math:`w_t > 0` and
    :math:`\rho_t > 1 + \varepsilon`, or :math:`w_t < 0` and :math:`\rho_t < 1 - \varepsilon`. The levels are

    ``turn``
        :math:`\rho_t = \pi(a_t\mid h_t) / \mu(a_t\mid h_t)`: the gradient of PPO's clipped objective.
    ``token``
        The same for each token of a turn: its verb, and its colour given the verb (``pickup``, ``red``); ``inspect``
        and ``finish`` are one token. The terms of both are added.
    ``prefix``
        :math:`\prod_{k \le t}` of the turn ratios.
    ``trajectory``
        :math:`\prod_k` of all turn ratios. Where :math:`w_t` is the same for all turns, the gradient of a clipped
        objective of whole episodes.

    Where :math:`\mu = \pi` all are the estimator ``advantages`` itself. Without clipping and with
    :math:`\mu > 0` wherever :math:`\pi > 0`, ``trajectory`` has the mean that ``advantages`` has under :math:`\pi`, and
    ``prefix`` with the exact values of :math:`\pi` and :math:`\lambda = 0` is unbiased. The other two are not: ``turn``
    with reward-to-go has as mean the gradient of :math:`\sum_{h} d_\mu(h) \sum_a \pi(a\mid h) Q^\mu(h, a)`, and
    ``token`` that of the same sum with :math:`\pi(v)\mu(c\mid v) + \mu(v)\pi(c\mid v)` for actions of two tokens.

    Raises:
        ValueError: a setting is outside of its range.

    Source:
        Schulman et al. (2017), equation 7, for the clipped objective; Kakade, Langford (2002) for its mean without
        clipping; Precup, Sutton, Singh (2000) for products of ratios.

    Example:
        >>> Surrogate(Reinforce(), behaviour={"room": [1 / 6] * 6}, level="token", clip=0.2).level
        'token'
    """

    advantages: Advantages
    """What weighs each turn; of a group, with ``prefix`` or any other level, the advantage of its episode."""
    behaviour: Policy | None = None
    """:math:`\\mu`, which plays: probabilities, in the forms of :func:`keydoor.exact.evaluate_exactly`. ``None``: the
    current policy."""
    level: str = "turn"
    """One of :data:`LEVELS`."""
    clip: Number | None = None
    """:math:`\\varepsilon`, above 0, or ``None``: no clipping."""

    def __post_init__(self) -> None:
        if not isinstance(self.advantages, Advantages):
            refuse("advantages", self.advantages, "a Reinforce, Gae or GroupAdvantage")
        one_of(self.level, "level", LEVELS)
        if self.behaviour is not None and not isinstance(self.behaviour, Mapping) and not callable(self.behaviour):
            refuse("behaviour", self.behaviour, "a function of histories, a table or None")
        if self.clip is not None and not finite(self.clip, "clip", "a number above 0, or None") > 0:
            refuse("clip", self.clip, "a number above 0, or None")


@dataclass(frozen=True, eq=False)
class EstimatorMoments:
    r"""Mean, covariance and error of a gradient estimate from one episode, or one group.

    Example:
        >>> uniform = {o: [0.0] * 6 for o in ("room", "clue_red", "clue_blue", "key_held", "door_open", "invalid")}
        >>> found = estimator_moments(uniform, Reinforce(), horizon=5)
        >>> found.parameters[0], tuple(found.mean.shape), tuple(found.covariance.shape), found.mse_standard_error
        (('room', 'inspect'), (36,), (36, 36), 0.0)
        >>> abs(found.mse - found.variance - float(found.bias.square().sum())) < 1e-15
        True
    """

    parameters: tuple[Any, ...]
    """What the components belong to: (key, action) for a table, (name, place) for a network."""
    mean: Tensor
    """Of shape (parameters,), in double precision like the others."""
    covariance: Tensor
    """Of shape (parameters, parameters)."""
    true_gradient: Tensor | None
    """See :mod:`keydoor.estimators`. ``None`` if the policy depends on histories and there are too many of them."""
    mse: float | None
    """Mean of :math:`\\lVert \\hat g - g \\rVert^2`, which is the trace of the covariance plus the square of the bias;
    ``None`` without a true gradient."""
    method: str
    """``"enumeration"``, exact up to rounding, or ``"monte carlo"``."""
    episodes: int
    """How many were enumerated, or sampled."""
    mean_standard_error: Tensor
    """Of each component of the mean; 0 by enumeration."""
    mse_standard_error: float | None
    """0 by enumeration; ``None`` without a true gradient."""

    @property
    def bias(self) -> Tensor | None:
        """The mean minus the true gradient."""
        return None if self.true_gradient is None else self.mean - self.true_gradient

    @property
    def variance(self) -> float:
        """Trace of the covariance."""
        return float(self.covariance.trace())


def group_gradient_factor(
    p: Number, group_size: int, *, scale: bool = True, ddof: int = 0, epsilon: Number = 0.0
) -> float:
    r"""By how much group advantages stretch the gradient of the success probability of a task.

    .. math:: \mathbb E[\hat g] = \kappa\, \nabla p, \qquad
              \kappa = \mathbb E\bigl[A^+(1 + B)\bigr] - \mathbb E\bigl[A^-(B)\bigr], \qquad
              B \sim \mathrm{Binomial}(G - 1, p),

    where :math:`A^+(K)` and :math:`A^-(K)` are the advantages of a success and of a failure in a group with :math:`K`
    successes. It follows from :math:`\mathbb E[R \nabla \log P] = \nabla p` and
    :math:`\mathbb E[(1 - R) \nabla \log P] = -\nabla p`.
    Without the scale :math:`\kappa = (G - 1)/G` for all :math:`p`; with it, :math:`\kappa \to 1/\sqrt{p(1 - p)}` for
    large groups.

    Args:
        p: success probability of one episode, in [0, 1].
        group_size: :math:`G`, at least 1, at most :data:`LARGEST_GROUP`.
        scale: as for :func:`keydoor.groups.group_advantages`.
        ddof: 0 or 1, as for :func:`keydoor.groups.group_advantages`.
        epsilon: not below 0, as for :func:`keydoor.groups.group_advantages`.

    Returns:
        :math:`\kappa`, not below 0.

    Raises:
        ValueError: an argument is outside of its range.

    Source:
        Defined here; the advantages are those of Shao et al. (2024).

    Example:
        >>> group_gradient_factor(0.5, 2), round(group_gradient_factor(0.3, 4, scale=False), 9)
        (1.0, 0.75)
    """
    chance = float(unit_interval(p, "p"))
    up, down = signals(GroupAdvantage(group_size, scale=scale, ddof=ddof, epsilon=epsilon))
    others = binomial(chance, group_size - 1)
    return float(others @ up[1:] + others @ down[:-1])


@one_thread()
def estimator_moments(
    policy: Any,
    estimator: Advantages | Surrogate,
    *,
    row: Row | None = None,
    rules: str = "standard",
    horizon: int = 8,
    colours: int = 2,
    delay: int = 0,
    collector_limit: int | None = None,
    method: str = "auto",
    episodes: int = 10_000,
    seed: int = 0,
) -> EstimatorMoments:
    r"""Mean, covariance and mean squared error of an estimate from one episode, or one group.

    .. math:: \mathbb E\,\hat g = \sum_\tau P_\mu(\tau)\, \hat g(\tau), \qquad
              \mathrm{Cov}\,\hat g = \sum_\tau P_\mu(\tau)\, \hat g(\tau) \hat g(\tau)^\top
              - (\mathbb E\,\hat g)(\mathbb E\,\hat g)^\top

    For a group the sum over :math:`G` episodes is done in closed form: given the target its episodes are independent,
    and each advantage depends on the others through the number of successes among them, which is binomial. The mean of
    :math:`N` independent estimates has the covariance divided by :math:`N`, and the same bias.

    Args:
        policy: what is learned. Either a table of logits, from keys to one finite number per action; its parameters are
            the logits. Or a small :class:`keydoor.policy.RecurrentActorCritic` (its scores must have at most
            50,000,000 numbers: histories times actions times parameters), which is read in double precision.
        estimator: a :class:`Reinforce`, :class:`Gae`, :class:`GroupAdvantage` or :class:`Surrogate`.
        row: which key of the table is used after a history ``(o_0, a_0, ..., o_t)``. ``None``: the last observation, a
            memoryless policy.
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1; reaching it is a true end.
        colours: number of colours, at least 2.
        delay: turns between a clue and the next valid pickup, at least 0.
        collector_limit: turn at which the collector cuts, at least 1. ``None``: never.
        method: one of :data:`METHODS`. ``"auto"`` enumerates where there are at most :data:`keydoor.exact.LIMIT`
            episodes.
        episodes: how many to sample, at least 2 groups' worth; not used in an enumeration.
        seed: seed of the sample, a whole number; no global random state is used.

    Returns:
        An :class:`EstimatorMoments`, which says how it was found.

    Raises:
        ValueError: an argument is outside of its range; an enumeration was asked for where there are too many episodes;
            a table lacks what is reached; a baseline, value or network gives what is no finite number.

    Source:
        Elementary; the estimators have their sources.

    Example:
        >>> uniform = {o: [0.0] * 6 for o in ("room", "clue_red", "clue_blue", "key_held", "door_open", "invalid")}
        >>> plain = estimator_moments(uniform, Reinforce(), horizon=4)
        >>> float(plain.bias.norm()) < 1e-15, plain.method, plain.episodes
        (True, 'enumeration', 412)
        >>> group = estimator_moments(uniform, GroupAdvantage(4, scale=False), horizon=4)
        >>> bool(torch.allclose(group.mean, 0.75 * plain.mean))
        True
    """
    world = get_rules(rules, colours=colours, delay=delay)
    horizon = whole(horizon, "horizon", least=1)
    limit = horizon if collector_limit is None else whole(collector_limit, "collector_limit", least=1)
    turns = min(horizon, limit)
    size: dict[str, Any] = {"rules": rules, "horizon": horizon, "colours": colours, "delay": delay}
    if not isinstance(estimator, Surrogate | Advantages):
        refuse("estimator", estimator, "a Reinforce, Gae, GroupAdvantage or Surrogate")
    surrogate = estimator if isinstance(estimator, Surrogate) else Surrogate(estimator)
    if is_network(surrogate.behaviour):
        surrogate = replace(surrogate, behaviour=policy_table(surrogate.behaviour, **size))  # type: ignore[arg-type]
    one_of(method, "method", METHODS)
    episodes, seed = whole(episodes, "episodes", least=2), whole(seed, "seed", least=0)

    count = count_episodes(belief_model(world), horizon, turns)
    if method == "enumeration" and count > LIMIT:
        refuse("method", method, f"'monte carlo', or at most {LIMIT:,} episodes; there are {count:,}")
    exact = method == "enumeration" or (method == "auto" and count <= LIMIT)
    group_size = getattr(surrogate.advantages, "group_size", None)
    batches: Iterable[Episodes]
    if exact:
        episodes = count
        walk = [history for history, _ in _walk(belief_model(world), min(turns + 1, horizon))]
        decided = [history for history in walk if len(history) < 2 * turns]
        cuts, batches = walk[len(decided) :], all_episodes(world, horizon, turns)
    else:
        each = group_size or 1
        if episodes < 2 * each:
            refuse("episodes", episodes, f"at least {2 * each}, two groups")
        episodes -= episodes % each
        generator = random.Random(seed)
        drawn = [generator.randrange(len(world.colours)) for _ in range(episodes // each)]
        targets = [drawn[number // each] for number in range(episodes)]  # a group shares its target
        play = player(policy, surrogate.behaviour, row, world, size)
        decided, cuts, batches = sampled_episodes(world, horizon, turns, targets, play, generator)
    estimate = estimates(surrogate, policy, row, world, decided, cuts)
    gradient = true_gradient(policy, row, world, size, turns, getattr(surrogate.advantages, "gamma", 1))
    if exact:
        add_up = enumerated if group_size is None else enumerated_groups
        mean, second = add_up(estimate, batches, len(world.colours))
        covariance, mean_error = second - torch.outer(mean, mean), torch.zeros_like(mean)
    else:
        found = sample(estimate, batches, episodes)
        mean = found.mean(0)
        covariance = (found - mean).T @ (found - mean) / (len(found) - 1)
        mean_error = (covariance.diagonal() / len(found)).sqrt()
    if not (mean.isfinite().all() and covariance.isfinite().all()):
        raise ValueError("the moments leave the range of a float; expected smaller ratios, rewards or values")
    mse = mse_error = None
    if gradient is not None and exact:
        mse, mse_error = float(covariance.trace() + (mean - gradient).square().sum()), 0.0
    elif gradient is not None:
        squares = (found - gradient).square().sum(1)
        mse, mse_error = float(squares.mean()), float(squares.std() / math.sqrt(len(squares)))
    return EstimatorMoments(
        estimate.scores.labels,
        mean,
        covariance,
        gradient,
        mse,
        "enumeration" if exact else "monte carlo",
        episodes,
        mean_error,
        mse_error,
    )


def _check_settings(settings: Reinforce | Gae, values: str) -> None:
    unit_interval(settings.gamma, "gamma")
    one_of(settings.reward_mode, "reward_mode", REWARD_MODES)
    flag(settings.discount_turns, "discount_turns")
    found = getattr(settings, values)
    if not isinstance(found, Mapping) and not callable(found) and not (values == "baseline" and found is None):
        finite(found, values, "a finite number, a table or a function of histories")
