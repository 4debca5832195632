r"""Time inside a turn: macro-actions, their rewards, residuals and advantages, and random durations.

Macro-action :math:`k` begins :math:`e_k = \tau_0 + \dots + \tau_{k-1}` units of time after the start and takes
:math:`\tau_k`. The unit is that of the discount: turns, tokens or seconds, but one for both. Rewards are read as in
:func:`keydoor.returns.semi_markov_return`, **from the start of their macro-action**; :func:`macro_rewards` makes them
of a stream of primitive rewards.

With :math:`K(s, s') = \mathbb E[\gamma^\tau; s' \mid s]` the values of a semi-Markov process solve
:math:`V = r + K V`, which is ``keydoor.returns.td_fixed_point(r, K, 1)``: what a row of :math:`K` lacks to 1 is the
discount and the true end together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keydoor._checks import (
    IN_RANGE,
    Number,
    finite,
    finite_sequence,
    flag,
    float_range,
    one_of,
    refuse,
    same_length,
    sequence,
    unit_interval,
    values_along,
    whole,
)

LAMBDA_CLOCKS = ("decision", "time")
"""What :math:`\\lambda` may count in :func:`semi_markov_advantages`: decisions, or units of time."""


def macro_rewards(stream: Iterable[Number], durations: Iterable[int], gamma: Number) -> list[Number]:
    r"""The rewards of macro-actions, made of the primitive rewards inside them.

    .. math:: R_k = \sum_{i=0}^{\tau_k-1} \gamma^i r_{e_k+i}

    This is the only weighting of the primitive rewards for which :func:`keydoor.returns.semi_markov_return` does not
    depend on how the stream is cut into macro-actions.

    Args:
        stream: :math:`r_0, r_1, \dots`, finite numbers, one per unit of time.
        durations: :math:`\tau_0, \dots, \tau_{K-1}`, integers not below 1 that add up to the length of the stream. A
            macro-action in which the collector stopped has the duration that it had reached.
        gamma: discount factor per unit of time, in [0, 1].

    Returns:
        :math:`R_0, \dots, R_{K-1}`.

    Raises:
        ValueError: a number outside of its range, durations that do not add up to the length of the stream, or a
            result that overflows.

    Source:
        Sutton, Precup and Singh (1999), *Between MDPs and semi-MDPs*, section 3, the reward of an option's model.

    Example:
        >>> macro_rewards([0.0, 0.0, 0.0, 0.0, 1.0], [2, 3], 0.9)
        [0.0, 0.81]
        >>> from keydoor.returns import semi_markov_return
        >>> round(semi_markov_return([0.0, 0.81], [2, 3], 0.9), 9)
        0.6561
    """
    rewards = finite_sequence(stream, "stream")
    spans = [whole(tau, f"durations[{k}]", least=1) for k, tau in enumerate(sequence(durations, "durations"))]
    gamma = unit_interval(gamma, "gamma")
    if sum(spans) != len(rewards):
        refuse("the sum of durations", sum(spans), f"{len(rewards)}, the length of stream")
    inner: list[Number] = []
    start = 0
    for k, tau in enumerate(spans):
        total: Number = 0
        with float_range(f"reward {k}"):
            for reward in reversed(rewards[start : start + tau]):
                total = reward + gamma * total
        inner.append(finite(total, f"reward {k}", IN_RANGE))
        start += tau
    return inner


def semi_markov_td_residuals(
    rewards: Iterable[Number],
    values: Iterable[Any],
    durations: Iterable[Number],
    gamma: Number,
    *,
    terminated: bool,
) -> list[Number]:
    r"""The temporal-difference residuals of an episode of macro-actions.

    .. math:: \delta_k = R_k + \gamma^{\tau_k} V_{k+1} - V_k, \qquad
              \delta_{K-1} = R_{K-1} - V_{K-1} \text{ at a true end}

    They telescope with elapsed time: :math:`\sum_k \gamma^{e_k} \delta_k = G_0 - V_0 + m\,\gamma^{e_K} V_K`, where
    :math:`m = 0` at a true end and 1 at a cut. The left side is ``semi_markov_return(residuals, durations, gamma)``.

    Args:
        rewards: :math:`R_0, \dots, R_{K-1}`, each counted from the start of its macro-action, at least one.
        values: :math:`V_0, \dots, V_K`, one more than rewards, at the moments of decision. At a true end :math:`V_K` is
            not read, and may be NaN.
        durations: :math:`\tau_0, \dots, \tau_{K-1}`, positive and finite, in the time unit of ``gamma``.
        gamma: discount factor per unit of time, in [0, 1].
        terminated: whether the episode came to a true end.

    Returns:
        :math:`\delta_0, \dots, \delta_{K-1}`.

    Raises:
        ValueError: lengths that do not fit, a number outside of its range, or a result that overflows.

    Source:
        Bradtke and Duff (1994), *Reinforcement Learning Methods for Continuous-Time Markov Decision Problems*,
        section 3.

    Example:
        >>> [round(delta, 9) for delta in semi_markov_td_residuals([0.2], [0.5, 0.7], [3], 0.9, terminated=False)]
        [0.2103]
        >>> semi_markov_td_residuals([0.25], [0.5, float("nan")], [3], 0.9, terminated=True)
        [-0.25]
    """
    r = finite_sequence(rewards, "rewards")
    spans = _positive(durations)
    gamma = unit_interval(gamma, "gamma")
    ended = flag(terminated, "terminated")
    v = values_along(values, r, ended, unit="decision")
    same_length(rewards=r, durations=spans)
    residuals: list[Number] = []
    for k, reward in enumerate(r):
        with float_range(f"residual {k}"):
            goes_on = k + 1 < len(r) or not ended
            residual = (reward + gamma ** spans[k] * v[k + 1] if goes_on else reward) - v[k]
        residuals.append(finite(residual, f"residual {k}", IN_RANGE))
    return residuals


def semi_markov_advantages(
    rewards: Iterable[Number],
    values: Iterable[Any],
    durations: Iterable[Number],
    gamma: Number,
    gae_lambda: Number,
    *,
    terminated: bool,
    lambda_per: str = "decision",
) -> list[Number]:
    r"""Generalised advantages of an episode of macro-actions, in two kinds.

    .. math::
        A^{\text{dec}}_k = \sum_{l \ge 0} \lambda^l \, \gamma^{e_{k+l}-e_k} \, \delta_{k+l}, \qquad
        A^{\text{time}}_k = \sum_{l \ge 0} (\lambda\gamma)^{e_{k+l}-e_k} \, \delta_{k+l}

    with the residuals of :func:`semi_markov_td_residuals`. They agree at :math:`\lambda` 0 and 1 and with unit
    durations. Between, the first changes if a macro-action is cut in two, the second does not if the value at the new
    border agrees with what follows.

    Args:
        rewards: :math:`R_0, \dots, R_{K-1}`, each counted from the start of its macro-action, at least one.
        values: :math:`V_0, \dots, V_K`; the last one is not read if ``terminated``.
        durations: :math:`\tau_0, \dots, \tau_{K-1}`, positive and finite, in the time unit of ``gamma``.
        gamma: discount factor per unit of time, in [0, 1].
        gae_lambda: :math:`\lambda`, in [0, 1].
        terminated: whether the episode came to a true end.
        lambda_per: one of :data:`LAMBDA_CLOCKS`: :math:`\lambda` is charged once per ``"decision"``, or once per unit
            of ``"time"``.

    Returns:
        The advantages :math:`A_0, \dots, A_{K-1}`.

    Raises:
        ValueError: lengths that do not fit, a number outside of its range, an unknown word, or a result that overflows.

    Source:
        Schulman et al. (2016), *High-Dimensional Continuous Control Using Generalized Advantage Estimation*,
        equation 16, for unit durations.

    Example:
        >>> from fractions import Fraction as F
        >>> episode = [0, 1], [F(1, 2), F(1, 2), F(3, 4)], [2, 3], F(1, 2)
        >>> print(*semi_markov_advantages(*episode, F(1, 2), terminated=True))
        -5/16 1/2
        >>> print(*semi_markov_advantages(*episode, F(1, 2), terminated=True, lambda_per="time"))
        -11/32 1/2
    """
    spans = _positive(durations)
    gamma, mix = unit_interval(gamma, "gamma"), unit_interval(gae_lambda, "gae_lambda")
    per_time = one_of(lambda_per, "lambda_per", LAMBDA_CLOCKS) == "time"
    deltas = semi_markov_td_residuals(rewards, values, spans, gamma, terminated=terminated)
    advantages: list[Number] = []
    running: Number = 0
    for k in reversed(range(len(deltas))):
        kept = mix ** spans[k] if per_time else mix
        running = finite(deltas[k] + gamma ** spans[k] * kept * running, f"advantage {k}", IN_RANGE)
        advantages.append(running)
    return advantages[::-1]


def mean_discount(law: Mapping[Number, Number], gamma: Number) -> Number:
    r"""The discount that a random duration carries, on average.

    .. math:: \mathbb E[\gamma^\tau] = \sum_\tau p_\tau \gamma^\tau \;\ge\; \gamma^{\mathbb E\tau} \quad(0 < \gamma < 1)

    Equality holds for constant durations only, so that discounting by the mean duration counts the future for too
    little. An action that goes on for certain makes the Bellman operator a contraction where this number is below 1;
    for ``gamma`` below 1 that is so unless the duration is 0 for certain.

    Args:
        law: probabilities by duration: durations finite, not below 0; probabilities in [0, 1] with a sum of at most 1.
            What is missing to 1 never comes back, and counts with :math:`\gamma^\infty = 0`.
        gamma: discount factor per unit of time, in [0, 1]; :math:`0^0 = 1`.

    Returns:
        The mean discount, in [0, 1].

    Raises:
        ValueError: a number outside of its range, or probabilities that add up to more than 1.

    Source:
        Bradtke and Duff (1994), where it multiplies the value of the next state; Jensen's inequality.

    Example:
        >>> from fractions import Fraction as F
        >>> mean_discount({1: F(1, 2), 3: F(1, 2)}, F(1, 2)), F(1, 2) ** 2
        (Fraction(5, 16), Fraction(1, 4))
        >>> mean_discount({2: F(9, 10)}, F(1, 2))  # one call in ten hangs for ever
        Fraction(9, 40)
    """
    if not isinstance(law, Mapping):
        refuse("law", law, "a mapping from durations to probabilities")
    gamma = unit_interval(gamma, "gamma")
    total: Number = 0
    mean: Number = 0
    for duration, probability in law.items():
        tau = finite(duration, "a duration of law", "a finite number, not below 0")
        if tau < 0:
            refuse("a duration of law", tau, "a finite number, not below 0")
        share = unit_interval(probability, f"law[{duration!r}]")
        total = total + share
        mean = mean + share * gamma**tau
    if total > 1 + (1e-9 if isinstance(total, float) else 0):
        refuse("the sum of law", total, "at most 1; what is missing to 1 never comes back")
    return mean


def _positive(durations: Iterable[Number]) -> list[Number]:
    spans = finite_sequence(durations, "durations")
    for k, duration in enumerate(spans):
        if duration <= 0:
            refuse(f"durations[{k}]", duration, "a positive finite duration")
    return spans
