r"""Weighted sums of TD residuals: what is left of the critic in them, and what that does to an advantage.

A sum :math:`\sum_t w_t\delta_t` contains each value between the ends twice, once with the discount of the step before
and once with its own weight. With :math:`w_t = \gamma^t` the two cancel: the sum telescopes. With any other weights a
part of every value stays behind. Generalised advantages are such a leaking telescope, with
:math:`w_t = (\gamma\lambda)^t`, and the leak is their bias.

The residuals themselves, the advantages and the :math:`\lambda`-returns are in :mod:`keydoor.returns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

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
    whole,
)
from keydoor.exact import History, Policy, _ahead, belief_model, evaluate_exactly
from keydoor.rules import get_rules

ROUNDING = 1e-6
"""How far the rows of a log may disagree, as a share of its largest number, where they are floats."""


def value_coefficients(weights: Iterable[Any], gamma: Number, *, terminated: bool) -> list[Number]:
    r"""What a weighted sum of TD residuals keeps of each value: summation by parts.

    .. math::
        \sum_{t=0}^{T-1} w_t\delta_t = \sum_{t=0}^{T-1} w_t r_t + \sum_{t=0}^{T} c_t V_t, \qquad
        c_0 = -w_0, \quad c_t = \gamma w_{t-1} - w_t, \quad c_T = \gamma m_T w_{T-1},

    with :math:`m_T = 0` at a true end and :math:`m_T = 1` at a cut. The values between the ends drop out,
    :math:`c_1 = \dots = c_{T-1} = 0`, exactly if :math:`w_t = \gamma^t w_0`.

    Args:
        weights: :math:`w_0, \dots, w_{T-1}`, at least one, any finite numbers.
        gamma: the discount factor inside the residuals, in [0, 1].
        terminated: whether the episode came to a true end.

    Returns:
        :math:`c_0, \dots, c_T`; the last one is 0 at a true end, where :math:`V_T` does not exist.

    Raises:
        ValueError: no weights, a number outside of its range, or a coefficient that overflows.

    Source:
        Abel's summation by parts. For :math:`w_t = (\gamma\lambda)^t` the coefficients are those of Schulman et al.
        (2016), *High-Dimensional Continuous Control Using Generalized Advantage Estimation*, section 3.

    Example:
        >>> from fractions import Fraction as F
        >>> gamma, mix = F(9, 10), F(1, 2)
        >>> print(*value_coefficients([gamma**t for t in range(3)], gamma, terminated=False))
        -1 0 0 729/1000
        >>> print(*value_coefficients([(gamma * mix) ** t for t in range(3)], gamma, terminated=True))
        -1 9/20 81/400 0
    """
    w = finite_sequence(weights, "weights")
    gamma = unit_interval(gamma, "gamma")
    ended = flag(terminated, "terminated")
    if not w:
        refuse("weights", w, "at least one weight: an episode has at least one turn")
    with float_range("a coefficient"):
        inner = [gamma * before - now for before, now in pairwise(w)]
        last = 0 if ended else gamma * w[-1]
    return [finite(number, f"coefficient {t}", IN_RANGE) for t, number in enumerate([-w[0], *inner, last])]


def n_step_advantages(deltas: Iterable[Any], gamma: Number) -> list[Number]:
    r"""All :math:`n`-step advantages of one turn: the telescope, drawn out step by step.

    .. math:: A^{(n)} = \sum_{l=0}^{n-1} \gamma^l \delta_l = \sum_{l=0}^{n-1} \gamma^l r_l + \gamma^n V_n - V_0,
              \qquad n = 1, \dots, N,

    where :math:`V_N` is absent at a true end.

    Args:
        deltas: the residuals :math:`\delta_0, \dots, \delta_{N-1}` from the turn on, as
            :func:`keydoor.returns.td_residuals` returns them; at least one.
        gamma: the discount factor that they were made with, in [0, 1].

    Returns:
        :math:`A^{(1)}, \dots, A^{(N)}`.

    Raises:
        ValueError: no residual, a number outside of its range, or an advantage that overflows.

    Source:
        Schulman et al. (2016), equations 11 to 14.

    Example:
        >>> from fractions import Fraction as F
        >>> print(*n_step_advantages([F(1, 20), F(1, 25), F(2, 5)], F(9, 10)))
        1/20 43/500 41/100
    """
    d = finite_sequence(deltas, "deltas")
    gamma = unit_interval(gamma, "gamma")
    if not d:
        refuse("deltas", d, "at least one residual")
    total: Number = 0
    discount: Number = 1
    advantages = []
    for n, delta in enumerate(d, 1):
        total = finite(total + discount * delta, f"advantage of {n} steps", IN_RANGE)
        discount = discount * gamma
        advantages.append(total)
    return advantages


def lambda_weights(gae_lambda: Number, steps: int) -> list[Number]:
    r"""The mixture that is behind :math:`\lambda`: how much the advantage of each number of steps counts.

    .. math:: p_n = (1-\lambda)\lambda^{n-1} \quad (n < N), \qquad p_N = \lambda^{N-1}, \qquad
              A^\lambda = \sum_{n=1}^{N} p_n A^{(n)} .

    The probabilities of a look-ahead that goes on after each step with probability :math:`\lambda`, and stops at the
    end at the latest. Its mean is :math:`1 + \lambda + \dots + \lambda^{N-1}`.

    Args:
        gae_lambda: :math:`\lambda`, in [0, 1].
        steps: :math:`N`, the number of steps to the end, at least 1.

    Returns:
        :math:`p_1, \dots, p_N`; they are not negative, and their sum is 1.

    Raises:
        ValueError: a number outside of its range.

    Source:
        Sutton and Barto (2018), *Reinforcement Learning: An Introduction*, 2nd edition, section 12.1.

    Example:
        >>> from fractions import Fraction as F
        >>> print(*lambda_weights(F(1, 2), 4))
        1/2 1/4 1/8 1/8
    """
    mix = unit_interval(gae_lambda, "gae_lambda")
    count = whole(steps, "steps", least=1)
    return [(1 - mix) * mix ** (n - 1) for n in range(1, count)] + [mix ** (count - 1)]


def read_decay(deltas: Iterable[Any], advantages: Iterable[Any]) -> Number:
    r"""The product :math:`\gamma\lambda` that a log was made with, or where the log contradicts itself.

    .. math:: A_{T-1} = \delta_{T-1}, \qquad \frac{A_t - \delta_t}{A_{t+1}} = \gamma\lambda \quad (t < T-1)

    One number for all turns of an episode. Where the recursion ran over an end, where a mask cut it, or where the
    advantages were normalised before they were written, the rows disagree.

    Args:
        deltas: :math:`\delta_0, \dots, \delta_{T-1}` of one episode, at least two.
        advantages: :math:`A_0, \dots, A_{T-1}` of the same episode.

    Returns:
        :math:`\gamma\lambda`. It is read where the next advantage is largest, and holds on every turn: exactly for
        fractions, within :data:`ROUNDING` of the largest number of the log for floats.

    Raises:
        ValueError: lengths that do not fit, a bad number, advantages that are all 0 after the first turn, or a turn
            that contradicts; the message names it.

    Source:
        The recursion of Schulman et al. (2016), equation 16, solved for its factor.

    Example:
        >>> from fractions import Fraction as F
        >>> from keydoor.returns import gae_advantages, td_residuals
        >>> rewards, values, gamma = [0, 0, 1], [F(2, 5), F(1, 2), F(3, 5), 0], F(9, 10)
        >>> made = gae_advantages(rewards, values, gamma, F(1, 2), terminated=True)
        >>> read_decay(td_residuals(rewards, values, gamma, [False, False, True]), made)
        Fraction(9, 20)
    """
    d: list[Any] = finite_sequence(deltas, "deltas")
    a: list[Any] = finite_sequence(advantages, "advantages")
    same_length(deltas=d, advantages=a)
    if len(d) < 2:
        refuse("deltas", d, "at least two turns: one has no next advantage")
    largest = max(range(1, len(a)), key=lambda t: abs(a[t]))
    if a[largest] == 0:
        refuse("advantages", a, "one that is not 0 after the first turn")
    with float_range("the decay"):
        gap = a[largest - 1] - d[largest - 1]
        decay = (Fraction(gap) if isinstance(gap, int) else gap) / a[largest]  # a quotient of integers stays exact
        tolerance = ROUNDING * max(map(abs, [*d, *a])) if any(isinstance(x, float) for x in [*d, *a]) else 0
        for t, (delta, now) in enumerate(zip(d, a, strict=True)):
            expected = delta + decay * a[t + 1] if t + 1 < len(a) else delta
            if not abs(now - expected) <= tolerance:
                refuse(f"advantages[{t}]", now, f"{expected}, with the factor {decay} read at turn {largest - 1}")
    return finite(decay, "the decay", IN_RANGE)


def token_advantages(
    rewards: Iterable[Any],
    token_values: Iterable[Iterable[Any]],
    gamma: Number,
    gae_lambda: Number,
    *,
    token_lambda: Number = 1,
    terminated: bool,
    last_value: Number | None = None,
) -> list[list[Number]]:
    r"""Generalised advantages of every token that the policy wrote, turn by turn.

    .. math::
        d_{t,i} &= U_{t,i+1} - U_{t,i} \quad (i < n_t - 1), \qquad
        d_{t,n_t-1} = r_t + \gamma m_{t+1} U_{t+1,0} - U_{t,n_t-1}, \\
        A_{t,i} &= d_{t,i} + \zeta A_{t,i+1} \quad (i < n_t - 1), \qquad
        A_{t,n_t-1} = d_{t,n_t-1} + \gamma\lambda A_{t+1,0}.

    :math:`\gamma` and :math:`\lambda` belong to the turn, :math:`\zeta` to the step from token to token inside it.
    What the environment writes is no step at all: its tokens have no place in the arguments, so that its length
    cannot enter. At :math:`\zeta = 1` the first token of a turn has the advantage of
    :func:`keydoor.returns.gae_advantages`, whatever the critic says inside the turn.

    Args:
        rewards: :math:`r_0, \dots, r_{T-1}`, one per turn.
        token_values: for each turn :math:`U_{t,0}, \dots, U_{t,n_t-1}`, the critic before each of its tokens, at
            least one; :math:`U_{t,0}` is the value :math:`V_t` of the turn.
        gamma: discount of a turn, in [0, 1].
        gae_lambda: :math:`\lambda` from one turn to the next, in [0, 1].
        token_lambda: :math:`\zeta`, in [0, 1].
        terminated: whether the episode came to a true end.
        last_value: :math:`V_T`, needed at a cut and not looked at otherwise.

    Returns:
        For each turn :math:`A_{t,0}, \dots, A_{t,n_t-1}`.

    Raises:
        ValueError: lengths that do not match, a turn without tokens, a number outside of its range, or an overflow.

    Source:
        Schulman et al. (2016), equation 16, with a decay that depends on the step.

    Example:
        >>> token_advantages([0, 1], [[0.5, 0.75], [0.5]], 1, 0.5, token_lambda=1, terminated=True)
        [[0.25, 0.0], [0.5]]
        >>> token_advantages([0, 1], [[0.5, 0.75], [0.5]], 1, 0.5, token_lambda=0.5, terminated=True)
        [[0.25, 0.0], [0.5]]
        >>> token_advantages([0, 1], [[0.5, 0.5], [0.5]], 1, 0.5, token_lambda=0.5, terminated=True)
        [[0.125, 0.25], [0.5]]
    """
    r = finite_sequence(rewards, "rewards")
    turns = [
        finite_sequence(turn, f"token_values[{t}]") for t, turn in enumerate(sequence(token_values, "token_values"))
    ]
    gamma, mix = unit_interval(gamma, "gamma"), unit_interval(gae_lambda, "gae_lambda")
    inside = unit_interval(token_lambda, "token_lambda")
    if not r:
        refuse("rewards", r, "at least one reward: an episode has at least one turn")
    same_length(rewards=r, token_values=turns)
    for t, turn in enumerate(turns):
        if not turn:
            refuse(f"token_values[{t}]", turn, "at least one value: a turn has at least one token")
    following: Number = 0
    if not flag(terminated, "terminated"):
        following = finite(last_value, "last_value", "a finite number unless terminated=True")
    result: list[list[Number]] = []
    ahead: Number = 0
    for t in reversed(range(len(r))):
        row: list[Number] = []
        after, decay = r[t] + gamma * following, gamma * mix
        for i, value in reversed(list(enumerate(turns[t]))):
            with float_range(f"advantage of token {i} of turn {t}"):
                ahead = after - value + decay * ahead
            row.append(finite(ahead, f"advantage of token {i} of turn {t}", IN_RANGE))
            after, decay = value, inside
        following = turns[t][0]
        result.append(row[::-1])
    return result[::-1]


class AdvantageMoments(NamedTuple):
    """One action of one information state, and what :func:`advantage_moments` knows of it.

    Example:
        >>> row = advantage_moments(lambda history: [Fraction(1, 6)] * 6, 0, 1, horizon=1)[0]
        >>> row.history, row.action, str(row.probability), str(row.variance)
        (('room',), 'inspect', '1/6', '0')
    """

    turn: int
    """Turns taken before it."""
    history: History
    """What the policy is told."""
    action: str
    """The action."""
    probability: Number
    """That an episode comes here and takes the action."""
    error: Number
    """The critic's value minus the exact one."""
    exact: Number
    """The exact advantage of the action, its value minus that of the state."""
    mean: Number
    """Expectation of the generalised advantage, given state and action."""
    variance: Number
    """Its variance, given state and action."""


def advantage_moments(
    policy: Policy,
    critic: Callable[[History], Any] | Mapping[Any, Any] | Number,
    gae_lambda: Number,
    *,
    rules: str = "standard",
    horizon: int = 8,
    colours: int = 2,
    delay: int = 0,
    gamma: Number = 1,
) -> list[AdvantageMoments]:
    r"""Mean and variance of the generalised advantage at every state and action, without sampling.

    .. math:: A^\lambda(h, a) = \delta_b + \gamma\lambda A^\lambda(h', a'), \qquad
              \delta_b = r_b + \gamma V(h') - V(h),

    with the branch :math:`b`, which leads to :math:`h'`, and :math:`a' \sim \pi(\cdot \mid h')` drawn at random; after
    a true end :math:`V` and :math:`A` are absent. Means and variances are carried backwards through the tree.

    Args:
        policy: as for :func:`keydoor.exact.evaluate_exactly`.
        critic: :math:`V(h)`, a function of what the policy is told, a table, or one number for all; finite numbers.
        gae_lambda: :math:`\lambda`, in [0, 1].
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1; reaching it is a true end.
        colours: number of colours, at least 2.
        delay: turns between a clue and the next valid pickup, at least 0.
        gamma: discount in [0, 1].

    Returns:
        One :class:`AdvantageMoments` for each state that is reached and each action that is taken there, in the order
        of the turns. The probabilities of one turn add up to the probability that the turn is played.

    Raises:
        ValueError: as :func:`keydoor.exact.evaluate_exactly`, or a critic without a finite number somewhere.

    Source:
        Schulman et al. (2016), equation 16, for the advantage; Sobel (1982), *The Variance of Discounted Markov
        Decision Processes*, for a variance that is carried backwards.

    Example:
        >>> uniform = lambda history: [Fraction(1, 6)] * 6
        >>> rows = advantage_moments(uniform, lambda history: Fraction(1, 10), 1, horizon=4)
        >>> {str(row.mean - row.exact + row.error) for row in rows}  # no bias at lambda = 1, up to the baseline
        {'0'}
    """
    world = get_rules(rules, colours=colours, delay=delay)
    model = belief_model(world)
    gamma = unit_interval(gamma, "gamma")
    decay = gamma * unit_interval(gae_lambda, "gae_lambda")
    nodes = evaluate_exactly(policy, rules=rules, horizon=horizon, colours=colours, delay=delay, gamma=gamma).nodes
    memoryless = isinstance(policy, Mapping) and all(isinstance(key, str) for key in policy)
    # Value, mean and variance of the advantage at each place of the turn that follows.
    ahead: dict[Any, tuple[Number, Number, Number]] = {}
    here: dict[Any, tuple[Number, Number, Number]] = {}
    rows: list[AdvantageMoments] = []
    turn = nodes[-1].turn
    for node in reversed(nodes):
        if node.turn != turn:
            ahead, here, turn = here, {}, node.turn
        value = _value(critic, node.history)
        found: list[AdvantageMoments] = []
        for action, chosen in enumerate(node.policy):
            exact = node.action_values[action]
            if not chosen or exact is None:
                continue
            outcomes: list[tuple[Number, Number, Number]] = []
            for branch, following in _ahead(model, (node.history, node.belief), action, memoryless):
                centre: Number = branch.base_reward - value
                spread: Number = Fraction(0)
                if branch.stop_reason is None and node.turn + 1 < horizon:
                    after, mean, variance = ahead[following]
                    centre, spread = centre + gamma * after + decay * mean, decay * decay * variance
                outcomes.append((branch.probability, centre, spread))
            found.append(
                AdvantageMoments(
                    turn=node.turn,
                    history=node.history,
                    action=world.actions[action],
                    probability=node.probability * chosen,
                    error=value - node.value,
                    exact=exact - node.value,
                    mean=_mean(outcomes),
                    variance=_spread(outcomes),
                )
            )
        taken = [chosen for chosen in node.policy if chosen]
        mixed = [(chosen, row.mean, row.variance) for chosen, row in zip(taken, found, strict=True)]
        here[node.history, node.belief] = value, _mean(mixed), _spread(mixed)
        rows[:0] = found
    return rows


def _value(critic: Any, history: History) -> Number:
    """What the critic says there, checked."""
    if callable(critic):
        found = critic(history)
    elif isinstance(critic, Mapping):
        key: Any = history[-1] if history[-1] in critic else history
        if key not in critic:
            refuse("critic", sorted(map(str, critic)), f"an entry for {key!r:.200}, which is reached")
        found = critic[key]
    else:
        found = critic
    return finite(found, f"critic[{history!r:.200}]")


def _mean(outcomes: list[tuple[Number, Number, Number]]) -> Number:
    """Mean of a mixture of (probability, mean, variance)."""
    total: Number = Fraction(0)
    for probability, centre, _ in outcomes:
        total = total + probability * centre
    return total


def _spread(outcomes: list[tuple[Number, Number, Number]]) -> Number:
    """Variance of the mixture: the mean variance and the variance of the means. No term of the sum is negative."""
    total: Number = Fraction(0)
    middle = _mean(outcomes)
    for probability, centre, variance in outcomes:
        total = total + probability * (variance + (centre - middle) ** 2)
    return total
