"""The arithmetic of returns: discounting, time inside a turn, TD residuals, and the end of a trajectory.

One reward :math:`r_t` belongs to one turn :math:`t = 0, \\dots, T-1`, however many tokens the agent or the tool
wrote in it: the discount counts decisions, unless :func:`semi_markov_return` is told the time that each one took.

A trajectory stops in one of two ways. At a **true end** the task is over and nothing follows; the value of what
follows is not "0 by convention" but absent, so it is *selected away* and never multiplied by zero (NaN times zero
is NaN). At a **collector cut** the process goes on without us, and the critic's value stands for the rest.

All functions take lists, tuples, arrays, tensors or columns of a table, and return plain numbers: no gradient
flows through them. :class:`fractions.Fraction` in gives :class:`fractions.Fraction` out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from keydoor._checks import (
    IN_RANGE,
    Number,
    finite,
    finite_sequence,
    flag,
    float_range,
    refuse,
    same_length,
    sequence,
    unit_interval,
    values_along,
)


def _discounted_sum(terms: Sequence[Number], gamma: Number, name: str) -> Number:
    """Horner's scheme, from the last term to the first: one product per term, exact on fractions."""
    total: Number = 0
    with float_range(name):
        for term in reversed(terms):
            total = term + gamma * total
    return finite(total, name, IN_RANGE)


def discounted_return(rewards: Iterable[Number], gamma: Number) -> Number:
    r"""The discounted return of an episode.

    .. math:: G_0 = \sum_{t=0}^{T-1} \gamma^t r_t

    Args:
        rewards: :math:`r_0, \dots, r_{T-1}`, finite numbers, one per turn. None at all give the empty sum, 0.
        gamma: discount factor in [0, 1]; at 0 only :math:`r_0` counts.

    Returns:
        :math:`G_0`, in the units of the reward.

    Raises:
        ValueError: a reward is not a finite number, ``gamma`` lies outside [0, 1], or the sum overflows.

    Source:
        Sutton and Barto (2018), *Reinforcement Learning: An Introduction*, 2nd edition, chapter 3.

    Example:
        >>> discounted_return([0.0, 0.0, 1.0], 0.9)
        0.81
        >>> from fractions import Fraction
        >>> discounted_return([0, 0, 1], Fraction(9, 10))
        Fraction(81, 100)
    """
    return _discounted_sum(finite_sequence(rewards, "rewards"), unit_interval(gamma, "gamma"), "the discounted return")


def semi_markov_return(rewards: Iterable[Number], durations: Iterable[Number], gamma: Number) -> Number:
    r"""The discounted return of macro-actions that take different times.

    .. math:: G_0 = \sum_{k=0}^{K-1} \gamma^{\tau_0 + \dots + \tau_{k-1}} R_k

    The reward :math:`R_k` counts **from the start of its macro-action**: it is what the primitive steps inside
    have earned, already discounted to that start, :math:`R_k = \sum_{i<\tau_k} \gamma^i r_{k,i}`. With this
    reading the sum equals the discounted return of the primitive stream. (A reward that falls due when the
    macro-action ends has to be passed as :math:`\gamma^{\tau_k} r`.) The last duration delays nothing that is
    summed here; it matters to a bootstrap value, which can be passed as one more reward with any duration.

    Args:
        rewards: :math:`R_0, \dots, R_{K-1}`, finite numbers. None at all give the empty sum, 0.
        durations: :math:`\tau_0, \dots, \tau_{K-1}`, positive and finite, in the time unit of ``gamma``;
            fractions of a unit are allowed. Zero is refused: free decisions could go on for ever in no time.
        gamma: discount factor per unit of time, in [0, 1].

    Returns:
        :math:`G_0`. Fractional rewards and discount stay exact as long as the durations are integers.

    Raises:
        ValueError: a value outside its range, or sequences of unequal length.

    Source:
        Bradtke and Duff (1994), *Reinforcement Learning Methods for Continuous-Time Markov Decision Problems*;
        Sutton, Precup and Singh (1999), *Between MDPs and semi-MDPs*.

    Example:
        >>> semi_markov_return([0.0, 1.0], [2, 3], 0.9)
        0.81
        >>> # The TD residual of one macro-action: R = 0.2, three units of time, V = 0.5, V' = 0.7.
        >>> round(semi_markov_return([0.2, 0.7], [3, 1], 0.9) - 0.5, 9)
        0.2103
    """
    reward_list = finite_sequence(rewards, "rewards")
    duration_list = finite_sequence(durations, "durations")
    same_length(rewards=reward_list, durations=duration_list)
    gamma = unit_interval(gamma, "gamma")
    for k, duration in enumerate(duration_list):
        if duration <= 0:
            refuse(f"durations[{k}]", duration, "a positive finite duration")
    total: Number = 0
    with float_range("the semi-Markov return"):
        for reward, duration in zip(reversed(reward_list), reversed(duration_list), strict=True):
            total = reward + gamma**duration * total
    return finite(total, "the semi-Markov return", IN_RANGE)


def td_residuals(
    rewards: Iterable[Number], values: Iterable[Number], gamma: Number, terminated: Iterable[bool]
) -> list[Number]:
    r"""The temporal-difference residuals of one episode.

    .. math:: \delta_t = r_t + \gamma V_{t+1} - V_t, \qquad \delta_{T-1} = r_{T-1} - V_{T-1} \text{ at a true end}

    Args:
        rewards: :math:`r_0, \dots, r_{T-1}`, at least one.
        values: :math:`V_0, \dots, V_T`, one more than rewards. At a true end :math:`V_T` is not read, and may be
            NaN; everywhere else a value must be finite.
        gamma: discount factor in [0, 1].
        terminated: one flag per reward. Only the last may be ``True``: one call takes one episode, and after
            its end there is nothing to add. (For a rollout of several episodes, call once for each.)

    Returns:
        The list :math:`\delta_0, \dots, \delta_{T-1}`.

    Raises:
        ValueError: lengths that do not fit, no reward at all, a flag before the last step, or a bad number.

    Source:
        Sutton (1988), *Learning to Predict by the Methods of Temporal Differences*; for the two kinds of
        end, Pardo et al. (2018), *Time Limits in Reinforcement Learning*.

    Example:
        >>> from fractions import Fraction as F
        >>> values = [F(4, 10), F(5, 10), F(6, 10), F(3, 10)]
        >>> [str(d) for d in td_residuals([0, 0, 1], values, F(9, 10), [False, False, True])]
        ['1/20', '1/25', '2/5']
        >>> [str(d) for d in td_residuals([0, 0, 1], values, F(9, 10), [False, False, False])]
        ['1/20', '1/25', '67/100']
    """
    r = finite_sequence(rewards, "rewards")
    ends = [flag(value, f"terminated[{t}]") for t, value in enumerate(sequence(terminated, "terminated"))]
    gamma = unit_interval(gamma, "gamma")
    v = values_along(values, r, ends[-1:] == [True])
    same_length(rewards=r, terminated=ends)
    if True in ends[:-1]:
        refuse(
            f"terminated[{ends.index(True)}]",
            True,
            f"False before the last step {len(r) - 1}: one call, one episode",
        )
    residuals: list[Number] = []
    for t, reward in enumerate(r):
        with float_range(f"residual {t}"):
            residual = (reward if ends[t] else reward + gamma * v[t + 1]) - v[t]
        residuals.append(finite(residual, f"residual {t}", IN_RANGE))
    return residuals


def discounted_td_sum(deltas: Iterable[Number], gamma: Number) -> Number:
    r"""The discounted sum of TD residuals: the left side of the telescoping identity.

    .. math:: \sum_{t=0}^{T-1} \gamma^t \delta_t = G_0 - V_0 + m\,\gamma^T V_T,

    with :math:`m = 0` at a true end and :math:`m = 1` at a collector cut. The identity asks nothing of the
    values: it finds errors of bookkeeping, never a bad critic. Leaving out :math:`m` on the right goes unnoticed
    while :math:`V_T` happens to be 0.

    Args:
        deltas: :math:`\delta_0, \dots, \delta_{T-1}`, as :func:`td_residuals` returns them; none give 0.
        gamma: the discount factor that the residuals were made with, in [0, 1].

    Returns:
        The sum.

    Raises:
        ValueError: a residual is not a finite number, or ``gamma`` lies outside [0, 1].

    Source:
        Sutton (1988); Schulman et al. (2016), *High-Dimensional Continuous Control Using Generalized Advantage
        Estimation*, where this sum is the advantage estimate at :math:`\lambda = 1`.

    Example:
        >>> from fractions import Fraction as F
        >>> discounted_td_sum([F(1, 20), F(1, 25), F(2, 5)], F(9, 10))
        Fraction(41, 100)
    """
    return _discounted_sum(finite_sequence(deltas, "deltas"), unit_interval(gamma, "gamma"), "the discounted TD sum")


def gae_advantages(
    rewards: Iterable[Any], values: Iterable[Any], gamma: Number, gae_lambda: Number, *, terminated: bool
) -> list[Number]:
    """Generalised advantages of one episode.

    .. math:: \\hat A_t = \\sum_{l \\ge 0} (\\gamma\\lambda)^l \\, \\delta_{t+l}

    with the residuals :math:`\\delta_t` of :func:`td_residuals`: no value after a true end, the
    bootstrap value after a cut.

    Args:
        rewards: :math:`r_0, \\dots, r_{T-1}`.
        values: :math:`V_0, \\dots, V_T`; the last one is not looked at if ``terminated``.
        gamma: discount, in [0, 1].
        gae_lambda: :math:`\\lambda`, in [0, 1]. At 0 the advantage is the residual; at 1 it is
            :math:`G_t - V_t`, plus :math:`\\gamma^{T-t}V_T` at a cut.
        terminated: whether the episode came to a true end.

    Returns:
        :math:`\\hat A_0, \\dots, \\hat A_{T-1}`.

    Raises:
        ValueError: lengths that do not match, a number outside of its range, or an advantage that overflows.

    Source:
        Schulman et al. (2016), equation 16.

    Example:
        >>> gae_advantages([0.0, 1.0], [0.5, 0.5, 0.75], 0.5, 1.0, terminated=True)
        [0.0, 0.5]
        >>> gae_advantages([0.0, 1.0], [0.5, 0.5, 0.75], 0.5, 1.0, terminated=False)
        [0.1875, 0.875]
    """
    rewards = sequence(rewards, "rewards")
    ends = [False] * (len(rewards) - 1) + [flag(terminated, "terminated")]
    gamma = unit_interval(gamma, "gamma")
    decay = gamma * unit_interval(gae_lambda, "gae_lambda")
    advantages: list[Number] = []
    running: Number = 0
    for delta in reversed(td_residuals(rewards, values, gamma, ends)):
        running = finite(delta + decay * running, f"advantage {len(rewards) - 1 - len(advantages)}", IN_RANGE)
        advantages.append(running)
    return advantages[::-1]


def lambda_returns(
    rewards: Iterable[Any], values: Iterable[Any], gamma: Number, gae_lambda: Number, *, terminated: bool
) -> list[Number]:
    r"""The :math:`\lambda`-returns of one episode: what the critic of a :math:`\lambda`-method is drawn towards.

    .. math::
        G^\lambda_t = r_t + \gamma\bigl((1-\lambda)V_{t+1} + \lambda G^\lambda_{t+1}\bigr) \quad (t < T-1), \qquad
        G^\lambda_{T-1} = r_{T-1} + \gamma m_T V_T,

    with :math:`m_T = 0` at a true end (the term is absent) and :math:`m_T = 1` at a cut. The recursion stops at both:
    what comes after the last step of an episode is another episode, or nothing. :math:`G^\lambda_t - V_t` is the
    advantage of :func:`gae_advantages`; the two functions share no line, so that each tests the other.

    Args:
        rewards: :math:`r_0, \dots, r_{T-1}`, at least one.
        values: :math:`V_0, \dots, V_T`, one more than rewards. :math:`V_0` enters no return; the last one is not
            looked at if ``terminated``.
        gamma: discount factor in [0, 1].
        gae_lambda: :math:`\lambda`, in [0, 1]. At 0 the one-step targets of :func:`collector_target`; at 1 the
            discounted returns, plus :math:`\gamma^{T-t}V_T` at a cut.
        terminated: whether the episode came to a true end.

    Returns:
        :math:`G^\lambda_0, \dots, G^\lambda_{T-1}`.

    Raises:
        ValueError: lengths that do not match, no reward, a number outside of its range, or a result that overflows.

    Source:
        Sutton and Barto (2018), *Reinforcement Learning: An Introduction*, 2nd edition, section 12.1, for an episode
        that ends; the cut as in Pardo et al. (2018), *Time Limits in Reinforcement Learning*.

    Example:
        >>> lambda_returns([0.0, 1.0], [0.5, 0.5, 0.75], 0.5, 1.0, terminated=True)
        [0.5, 1.0]
        >>> lambda_returns([0.0, 1.0], [0.5, 0.5, 0.75], 0.5, 0.0, terminated=False)
        [0.25, 1.375]
    """
    r = finite_sequence(rewards, "rewards")
    gamma, mix = unit_interval(gamma, "gamma"), unit_interval(gae_lambda, "gae_lambda")
    ended = flag(terminated, "terminated")
    v = values_along(values, r, ended)
    returns: list[Number] = []
    for t in reversed(range(len(r))):
        with float_range(f"return {t}"):
            if t == len(r) - 1:
                target = r[t] if ended else r[t] + gamma * v[t + 1]
            else:
                target = r[t] + gamma * ((1 - mix) * v[t + 1] + mix * returns[-1])
        returns.append(finite(target, f"return {t}", IN_RANGE))
    return returns[::-1]


def collector_target(
    reward: Number, next_value: Number, *, gamma: Number, terminated: bool, truncated: bool = False
) -> Number:
    r"""The critic's one-step target at the visible end of a rollout, or anywhere inside it.

    .. math:: y_t = \begin{cases} r_t & \text{true end} \\ r_t + \gamma V_{t+1} & \text{otherwise} \end{cases}

    Only ``terminated`` removes the bootstrap value. ``truncated`` changes nothing: a cut by the collector leaves
    the process unfinished, exactly like a step in the middle. If both are set, the task's end wins.

    Args:
        reward: :math:`r_t`, a finite number.
        next_value: :math:`V_{t+1}`, a finite number; not read at a true end, where it may be NaN.
        gamma: discount factor in [0, 1].
        terminated: the task ended with this step.
        truncated: the collector stopped after this step.

    Returns:
        The target :math:`y_t`.

    Raises:
        ValueError: a number is not finite where it counts, or a flag is not a boolean.

    Source:
        Pardo, Tavakoli, Levdik and Kormushev (2018), *Time Limits in Reinforcement Learning*.

    Example:
        >>> collector_target(0.0, 0.7, gamma=0.9, terminated=True)
        0.0
        >>> collector_target(0.0, 0.7, gamma=0.9, terminated=False)
        0.63
        >>> collector_target(0.25, float("nan"), gamma=0.95, terminated=True, truncated=True)
        0.25
    """
    reward = finite(reward, "reward")
    gamma = unit_interval(gamma, "gamma")
    flag(truncated, "truncated")
    if flag(terminated, "terminated"):
        return reward
    target = reward + gamma * finite(next_value, "next_value", "a finite number unless terminated=True")
    return finite(target, "the target", IN_RANGE)


def td_fixed_point(rewards: Iterable[Any], transitions: Iterable[Iterable[Any]], gamma: Number) -> list[Number]:
    r"""Where a critic comes to rest: the solution of a Bellman equation with true ends.

    .. math:: V = r + \gamma P V, \qquad V = (I - \gamma P)^{-1} r

    Row :math:`s` of :math:`P` holds the probabilities with which the process **goes on** from :math:`s`; what the row
    lacks to 1 is the probability of a true end in this step. A cut by the collector takes nothing away. With the exact
    :math:`r` and :math:`P` of a Markov process the solution is its value function. With what a wrong target makes of
    them it is the number to which that target leads: leave the cut transitions out of :math:`P`, or lead the true ends
    back to the start, and compare. With averages over the states behind one observation, it is the fixed point of
    TD(0) on observations.

    Args:
        rewards: :math:`r(s)`, the expected reward of the step that begins in each of the :math:`n` states.
        transitions: :math:`n` rows of :math:`n` numbers, none negative, each row with a sum of at most 1.
        gamma: discount factor in [0, 1]. At 1 a true end must be reachable from every state.

    Returns:
        :math:`V`, one number per state. Integers and fractions are solved exactly and come back as fractions.

    Raises:
        ValueError: a shape that does not fit, a number outside of its range, or ``gamma`` 1 and a state from which the
            process goes on for ever.

    Source:
        Sutton and Barto (2018), *Reinforcement Learning: An Introduction*, 2nd edition, section 3.5; the end as a
        property of the transition is in White (2017), *Unifying Task Specification in Reinforcement Learning*.

    Example:
        >>> from fractions import Fraction as F
        >>> chain = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]  # three steps, then a true end
        >>> print(*td_fixed_point([1, 1, 1], chain, F(9, 10)))
        271/100 19/10 1
        >>> print(*td_fixed_point([1], [[1]], F(9, 10)))  # for ever
        10
    """
    r = finite_sequence(rewards, "rewards")
    matrix: Any = transitions.tolist() if hasattr(transitions, "tolist") else transitions  # an array has two dimensions
    rows = [finite_sequence(row, f"transitions[{s}]") for s, row in enumerate(sequence(matrix, "transitions"))]
    gamma = unit_interval(gamma, "gamma")
    n = len(r)
    same_length(rewards=r, transitions=rows)
    for s, row in enumerate(rows):
        if len(row) != n:
            raise ValueError(f"transitions[{s}] has length {len(row)}; expected {n}: one entry per state")
        for after, probability in enumerate(row):
            if probability < 0:
                refuse(f"transitions[{s}][{after}]", probability, "a probability, not below 0")
        total = sum(row)
        if total > 1 + (1e-9 if isinstance(total, float) else 0):
            refuse(f"the sum of transitions[{s}]", total, "at most 1; what is missing to 1 is the true end")
    if gamma == 1:
        ends = {s for s, row in enumerate(rows) if sum(row) < 1 - (1e-9 if isinstance(sum(row), float) else 0)}
        for _ in range(n):
            ends |= {s for s, row in enumerate(rows) if any(row[after] > 0 for after in ends)}
        for s in sorted(set(range(n)) - ends):
            refuse("gamma", gamma, f"a number below 1, since no true end can be reached from state {s}")

    def exact(number: Number) -> Number:
        return Fraction(number) if isinstance(number, int) else number  # a quotient of integers would be a float

    # Gauss and Jordan. No pivot is looked for: I - gamma P is an M-matrix, and its pivots are positive in any order.
    with float_range("the fixed point"):
        system = [
            [exact((s == after) - gamma * row[after]) for after in range(n)] + [exact(r[s])]
            for s, row in enumerate(rows)
        ]
        for s in range(n):
            pivot = system[s][s]
            system[s] = [entry / pivot for entry in system[s]]
            for other in range(n):
                factor = system[other][s]
                if other != s and factor != 0:
                    system[other] = [a - factor * b for a, b in zip(system[other], system[s], strict=True)]
    return [finite(row[n], f"value {s}", IN_RANGE) for s, row in enumerate(system)]
