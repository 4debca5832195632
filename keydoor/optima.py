r"""The best policies of the world: with memory, and without.

*With memory* the belief is all that matters, and dynamic programming over beliefs finds an optimal policy:
:func:`optimal_policy`. *Without memory* a policy sees the last observation alone, :math:`\pi(a \mid o)`. Its success
probability is a polynomial in the numbers :math:`\pi(a \mid o)` with non-negative coefficients, a sum over the
trajectories that succeed, and finding its maximum is another kind of problem:

* deterministic policies are finitely many, and :func:`best_deterministic_memoryless` looks at all of them;
* :func:`best_stochastic_memoryless` climbs from many starts by the map of Baum and Eagon, which never goes down, and
  certifies what it found: its value exactly, how far it is from stationary, and whether it is a strict local maximum;
* for the standard rules with two colours a theorem leaves three unknowns, and :func:`stochastic_memoryless_interval`
  encloses the global maximum between two fractions.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from keydoor._bernstein import Polynomial, enclose_maximum
from keydoor._checks import Number, one_of, refuse, unit_interval, whole
from keydoor._memoryless import Objective, dot
from keydoor.exact import History, belief_model, check_horizon, evaluate_exactly
from keydoor.rules import REWARD_MODES, Rules, get_rules

Table = dict[str, dict[str, Fraction]]
"""A memoryless policy: for each observation the probabilities of the actions that have one."""

LARGEST_ENCLOSED = 12
"""Largest horizon of :func:`stochastic_memoryless_interval`."""

LARGEST_CLIMBED = 64
"""Largest horizon of :func:`best_stochastic_memoryless`."""


@dataclass(frozen=True, eq=False)
class OptimalPolicy:
    """An optimal policy with memory; called with a history, it says what to do.

    Example:
        >>> best = optimal_policy(horizon=4)
        >>> best(("room", "inspect", "clue_blue"))
        {'pickup_blue': Fraction(1, 1)}
    """

    value: Number
    """The largest expected return of any policy."""
    actions: Mapping[tuple[int, int], tuple[str, ...]]
    """All best actions by turn and belief (an index into the beliefs of :func:`keydoor.exact.belief_model`)."""
    world: Rules
    """The rules for which it is optimal."""

    def __call__(self, history: History) -> dict[str, Fraction]:
        """The first best action, with probability 1.

        Args:
            history: ``(o_0, a_0, ..., o_t)``, with t below the horizon.

        Returns:
            The distribution, in the form that :func:`keydoor.exact.evaluate_exactly` reads.

        Raises:
            ValueError: the history is not possible, or as long as the horizon.
        """
        place = len(history) // 2, belief_model(self.world).follow(history)
        if place not in self.actions:
            refuse("history", history, "one that is shorter than the horizon")
        return {self.actions[place][0]: Fraction(1)}


def optimal_policy(
    *,
    rules: str = "standard",
    horizon: int = 8,
    colours: int = 2,
    delay: int = 0,
    gamma: Number = 1,
    reward_mode: str = "sparse",
) -> OptimalPolicy:
    r"""The best policy with memory, by dynamic programming over beliefs.

    .. math:: V_T = 0, \qquad V_t(b) = \max_a \sum_{o} \Pr(o \mid b, a)\, [r + \gamma V_{t+1}(b')]

    with :math:`V = 0` behind true ends. The belief is a sufficient statistic of the history, so no policy that reads
    whole histories does better.

    Args:
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1, at most :data:`keydoor.exact.LONGEST`: no history is
            enumerated.
        colours: number of colours, at least 2.
        delay: turns between a clue and the next valid pickup, at least 0.
        gamma: discount, in [0, 1].
        reward_mode: ``"sparse"`` or ``"potential"``.

    Returns:
        An :class:`OptimalPolicy`; its value is the largest success probability where ``gamma`` is 1.

    Raises:
        ValueError: an argument is outside of its range.

    Source:
        Kaelbling, Littman, Cassandra (1998), section 4.2.

    Example:
        >>> str(optimal_policy(horizon=6).value), str(optimal_policy(horizon=3).value)
        ('1', '0')
        >>> str(optimal_policy(horizon=9, delay=5).value), str(optimal_policy(horizon=8, delay=5).value)
        ('1', '0')
    """
    model = belief_model(get_rules(rules, colours=colours, delay=delay))
    horizon = check_horizon(horizon)
    gamma = unit_interval(gamma, "gamma")
    shaped = one_of(reward_mode, "reward_mode", REWARD_MODES) == "potential"
    reached = _reached(model.branches, horizon)
    chosen: dict[tuple[int, int], tuple[str, ...]] = {}
    values: dict[int, Number] = {}
    for turn in reversed(range(horizon)):
        ahead, values = values, {}
        for belief in reached[turn]:
            found: list[Number] = []
            for branches in model.branches[belief]:
                total: Number = Fraction(0)
                for branch in branches:
                    goes_on = branch.belief is not None and turn + 1 < horizon
                    reward: Number = branch.base_reward
                    if shaped:
                        kept = branch.potential_after if goes_on else 0
                        reward = reward + gamma * kept - model.potential[belief]
                    if goes_on and branch.belief is not None:
                        reward = reward + gamma * ahead[branch.belief]
                    total = total + branch.probability * reward
                found.append(total)
            values[belief] = best = max(found)
            named = zip(model.world.actions, found, strict=True)
            chosen[turn, belief] = tuple(name for name, value in named if value == best)
    return OptimalPolicy(values[model.start], chosen, model.world)


def _reached(branches: Sequence[Sequence[Sequence[Any]]], horizon: int) -> list[list[int]]:
    """The beliefs that any policy may have after so many turns."""
    levels = [[0]]
    for _ in range(horizon - 1):
        after = {
            branch.belief
            for belief in levels[-1]
            for row in branches[belief]
            for branch in row
            if branch.belief is not None
        }
        levels.append(sorted(after))
    return levels


@dataclass(frozen=True)
class DeterministicOptimum:
    """The best deterministic memoryless policy.

    Example:
        >>> best = best_deterministic_memoryless(rules="soft", horizon=5)
        >>> str(best.success_probability), best.policy["invalid"]
        ('1', 'open_blue')
    """

    success_probability: Fraction
    """The largest one."""
    policy: dict[str, str]
    """A witness: an action for each observation that it meets."""
    examined: int
    """How many policies were looked at; two that differ where neither ever comes count as one."""


def best_deterministic_memoryless(
    *, rules: str = "standard", horizon: int = 8, colours: int = 2, delay: int = 0
) -> DeterministicOptimum:
    """The best map from the last observation to an action, by looking at all of them.

    A map is extended only where it meets an observation for which it has no action yet. A clue is seen with one target
    alone, so that its action is chosen for that target.

    Args:
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1.
        colours: number of colours, at least 2.
        delay: turns between a clue and the next valid pickup, at least 0.

    Returns:
        A :class:`DeterministicOptimum`.

    Raises:
        ValueError: an argument is outside of its range.

    Source:
        Littman (1994), *Memoryless policies: theoretical limitations and practical results*.

    Example:
        >>> best = best_deterministic_memoryless(horizon=8)
        >>> str(best.success_probability), best.policy["room"], best.policy["door_open"]
        ('1/2', 'inspect', 'finish')
    """
    world = get_rules(rules, colours=colours, delay=delay)
    horizon = check_horizon(horizon)
    index = {name: number for number, name in enumerate(world.actions)}
    examined = 0
    best: tuple[int, dict[str, str]] = (-1, {})

    def play(target: str, policy: Mapping[str, str]) -> tuple[bool, str | None]:
        """Whether it succeeds with this target, or the observation at which it does not know what to do."""
        state, seen = world.start[target], world.start_observation
        for _ in range(horizon):
            if seen not in policy:
                return False, seen
            outcome = world.table[state][index[policy[seen]]]
            if outcome.stop_reason is not None:
                return outcome.stop_reason == "success", None
            state, seen = outcome.state, outcome.observation
        return False, None

    def look(policy: dict[str, str]) -> None:
        nonlocal best, examined
        found = dict(policy)
        wins = 0
        for target in world.colours:
            clue = f"clue_{target}"
            results = []
            for action in world.actions:
                won, unknown = play(target, {**policy, clue: action})
                if unknown is not None:
                    for choice in world.actions:
                        look({**policy, unknown: choice})
                    return
                results.append((won, action))
            wins += max(won for won, _ in results)
            found[clue] = next(action for won, action in results if won == max(won for won, _ in results))
        examined += len(world.actions) ** len(world.colours)
        if wins > best[0]:
            best = (wins, found)

    look({})
    wins, witness = best
    met = {
        node.history[-1]
        for node in evaluate_exactly(
            {seen: {action: Fraction(1)} for seen, action in witness.items()},
            rules=rules,
            horizon=horizon,
            colours=colours,
            delay=delay,
        ).nodes
    }
    policy = {seen: action for seen, action in witness.items() if seen in met}
    return DeterministicOptimum(Fraction(wins, len(world.colours)), policy, examined)


@dataclass(frozen=True)
class StochasticOptimum:
    """A stochastic memoryless policy that climbing has found, with its certificate.

    Example:
        >>> found = best_stochastic_memoryless(horizon=6)
        >>> str(found.success_probability), str(found.gap), found.strict
        ('65/128', '0', True)
    """

    success_probability: Fraction
    """Of the policy below, exactly: no policy's maximum is smaller."""
    policy: Table
    """The policy, in fractions."""
    gap: Fraction
    r"""First-order certificate, the sum over the observations of

    .. math:: \max_a \frac{\partial J}{\partial \pi(a \mid o)}
              - \sum_a \pi(a \mid o) \frac{\partial J}{\partial \pi(a \mid o)}.

    It is 0 exactly where no small change of the policy improves it to first order."""
    strict: bool
    """Second-order certificate: the curvature is negative in all directions along which nothing is lost to first order.
    Together with a gap of 0 this is a strict local maximum, as far as the policy comes. ``False`` where the success
    probability is 1: nothing is then left to certify."""
    upper: Fraction
    """What no memoryless policy exceeds: the bound of :func:`stochastic_memoryless_interval` where it applies, else
    1."""


def best_stochastic_memoryless(
    *,
    rules: str = "standard",
    horizon: int = 8,
    colours: int = 2,
    delay: int = 0,
    starts: int = 24,
    seed: int = 0,
) -> StochasticOptimum:
    r"""The best stochastic memoryless policy that can be found, and what is certain about it.

    The success probability :math:`J` is a polynomial in :math:`\pi(a \mid o)` with non-negative coefficients.
    Therefore the map

    .. math:: \pi(a \mid o) \;\leftarrow\;
              \frac{\pi(a \mid o)\, \partial J / \partial \pi(a \mid o)}
                   {\sum_{a'} \pi(a' \mid o)\, \partial J / \partial \pi(a' \mid o)}

    never lowers it. It is followed from several starts; the best end is rounded to fractions, small ones first, and
    the certificate is computed for these fractions.

    Args:
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1, at most :data:`LARGEST_CLIMBED`.
        colours: number of colours, at least 2.
        delay: turns between a clue and the next valid pickup, at least 0.
        starts: how many starts, at least 1: near the best deterministic policy, and random ones. The best three ends
            of short climbs are followed to the top.
        seed: of the random starts, a whole number.

    Returns:
        A :class:`StochasticOptimum`. Nothing says that it is the global maximum unless ``upper`` does.

    Raises:
        ValueError: an argument is outside of its range.

    Source:
        Baum, Eagon (1967) for the map, and Baum, Sell (1968) for polynomials that are not homogeneous; Jaakkola, Singh,
        Jordan (1995) for why the best memoryless policy may have to be stochastic.

    Example:
        >>> found = best_stochastic_memoryless(rules="quiet", horizon=8)
        >>> str(found.success_probability), {a: str(p) for a, p in found.policy["key_held"].items()}
        ('31/32', {'open_red': '1/2', 'open_blue': '1/2'})
    """
    if whole(horizon, "horizon", least=1) > LARGEST_CLIMBED:
        refuse("horizon", horizon, f"at most {LARGEST_CLIMBED}")
    numbers: dict[str, Any] = {"rules": rules, "horizon": horizon, "colours": colours, "delay": delay}
    whole(starts, "starts", least=1)
    draws = random.Random(whole(seed, "seed", least=0))
    world = get_rules(rules, colours=colours, delay=delay)
    objective = Objective(world, horizon)
    guess = best_deterministic_memoryless(**numbers).policy
    ends = []
    for start in range(starts):
        rows = []
        for seen in objective.seen:
            weights = [draws.expovariate(1) ** 3 + 1e-9 for _ in world.actions]  # some near a corner, some not
            weight = 0.5 if start == 0 and seen in guess else 0.0
            rows.append(
                [
                    (1 - weight) * x / sum(weights) + weight * (action == guess.get(seen))
                    for action, x in zip(world.actions, weights, strict=True)
                ]
            )
        ends.append(objective.climb(rows, rounds=60))
    ends.sort(key=lambda end: -end[0])
    tops = [objective.climb(rows, rounds=300) for _, rows in ends[:3]]
    tops += [objective.polish(objective.without_rare(rows)) for _, rows in tops]
    best = max(tops, key=lambda end: end[0])[1]
    exact = objective.rounded(best)
    value, slopes = objective.slopes(exact)
    strict = value < 1 and objective.strict(exact, slopes)
    gap = sum((max(slope) - dot(row, slope) for row, slope in zip(exact, slopes, strict=True)), Fraction(0))
    upper = Fraction(1)
    if (rules, colours, delay) == ("standard", 2, 0) and horizon <= LARGEST_ENCLOSED:
        upper = stochastic_memoryless_interval(horizon=horizon)[1]
    policy = {
        seen: {action: p for action, p in zip(world.actions, row, strict=True) if p}
        for seen, row in zip(objective.seen, exact, strict=True)
        if any(row)
    }
    return StochasticOptimum(value, policy, gap, strict, upper)


def stochastic_memoryless_interval(
    *, horizon: int = 8, width: Fraction | int = Fraction(1, 10**9)
) -> tuple[Fraction, Fraction]:
    r"""Two fractions that enclose the largest success probability of all memoryless policies, standard rules.

    For the standard rules with two colours and no delay every memoryless policy is matched or beaten by one with three
    unknowns, a and b, the probabilities of taking the right key at the two clues (else the door is tried), and c, that
    of looking again when a key is held (else the red door is tried). With :math:`T \ge 4` the horizon the maximum is

    .. math:: \max_{a, b, c} \tfrac12 \bigl[ a K_{T-3}(a, 1 - c) + b K_{T-3}(b, 0) \bigr],

    .. math:: K_n(x, d) = d + c\,[(1 - x) + x K_{n-2}(x, d)],

    where :math:`K_1 = d` and :math:`K_0 = 0`; the proof is in the book's chapter on the environment. A polynomial
    on the unit cube is enclosed by its coefficients in Bernstein form, in fractions, so the interval is proved and not
    estimated.

    Args:
        horizon: turns that the task allows, at least 1, at most :data:`LARGEST_ENCLOSED`.
        width: how far the two may be apart, a number above 0.

    Returns:
        ``(lower, upper)``, with the maximum in between.

    Raises:
        ValueError: an argument is outside of its range.

    Source:
        Garloff (1986) for the enclosure; the reduction is defined here.

    Example:
        >>> lower, upper = stochastic_memoryless_interval(horizon=6)
        >>> lower <= Fraction(65, 128) <= upper, upper - lower <= Fraction(1, 10**9)
        (True, True)
        >>> [f"{float(bound):.8f}" for bound in stochastic_memoryless_interval(horizon=8)]
        ['0.53034066', '0.53034066']
    """
    horizon = whole(horizon, "horizon", least=1)
    if horizon > LARGEST_ENCLOSED:
        refuse("horizon", horizon, f"at most {LARGEST_ENCLOSED}: the polynomials of larger ones take minutes")
    if not isinstance(width, (Fraction, int)) or isinstance(width, bool) or width <= 0:
        refuse("width", width, "a fraction above 0")
    tries = horizon - 3
    if tries < 1:
        return Fraction(0), Fraction(0)
    a, b, c = (Polynomial({tuple(int(i == j) for i in range(3)): 1}) for j in range(3))
    one, zero = Polynomial({(0, 0, 0): 1}), Polynomial({})
    total = zero
    for right_key, door in ((a, one + c * -1), (b, zero)):
        held = [zero, door]  # by the number of turns left in which a door can be opened
        clue = [zero, one + right_key * -1]
        for n in range(2, tries + 1):
            held.append(door + c * clue[n - 1])
            clue.append(one + right_key * -1 + right_key * held[n - 1])
        total = total + right_key * held[tries]
    return enclose_maximum(total * Fraction(1, 2), 3, Fraction(width))
