r"""The world without sampling: beliefs, and the exact value of any policy.

Everything that happens between two decisions of the agent is a *branch*: what it sees, how probable that is, what it
pays. The hidden target is uniform at the start and the rules are deterministic, so that after any history the posterior
is uniform over the targets that could still have led to it. A *belief* is therefore a short list, the state of the
world for each target that is still possible, and there are only a few dozen of them:

.. math:: \Pr(s_t = s \mid h_t) = \frac{1}{|C(h_t)|} \sum_{c \in C(h_t)} \mathbf 1[s = s_t(h_t, c)],
          \qquad C(h_t) = \{c : h_t \text{ is possible with target } c\}.

:func:`belief_model` is that small machine. :func:`evaluate_exactly` runs a policy through it, forwards for
probabilities and backwards for values. Both use the standard library alone, and fractions in give fractions out.
:mod:`keydoor.optima` finds the best policies, :mod:`keydoor.gradients` does the same for a network, with gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from keydoor._checks import Number, finite, one_of, refuse, sequence, unit_interval, whole
from keydoor.rules import REWARD_MODES, STOP_REASONS, Rules, get_rules

LIMIT = 1_000_000
"""Largest number of histories that are enumerated: about twenty seconds on one core."""

LONGEST = 10_000
"""Largest horizon where only beliefs are looked at."""

ROUNDING = 1e-9
"""How far the sum of a policy's probabilities may lie from 1 where they are floats."""

History = tuple[str, ...]
"""What the agent has seen and done, ``(o_0, a_0, o_1, ..., o_t)``: observations and actions in turn."""

Policy = Callable[[History], Any] | Mapping[Any, Any]
"""A function of histories, or a table; see :func:`evaluate_exactly`."""


class Branch(NamedTuple):
    """One of the things that an action may lead to under a belief; hidden quantities are means over its targets.

    Example:
        >>> model = belief_model(get_rules())
        >>> [(str(branch.probability), branch.observation) for branch in model.branches[model.start][0]]
        [('1/2', 'clue_red'), ('1/2', 'clue_blue')]
    """

    probability: Fraction
    """Of this branch, given the belief and the action."""
    observation: str
    """What the agent sees."""
    belief: int | None
    """Index of the belief that follows, ``None`` at a true end."""
    stop_reason: str | None
    """The true end, one of :data:`keydoor.rules.STOP_REASONS`, or ``None``."""
    base_reward: Fraction
    """Mean base reward."""
    potential_after: Fraction
    """Mean potential after the action, 0 at a true end."""
    invalid: Fraction
    """Share of the targets for which the action counts as invalid."""


@dataclass(frozen=True, eq=False)
class BeliefModel:
    """A world as its agent can know it: beliefs, and the branches between them.

    Example:
        >>> model = belief_model(get_rules())
        >>> model.beliefs[model.start]
        (0, 1)
        >>> model.posterior(model.start)
        {'red': Fraction(1, 2), 'blue': Fraction(1, 2)}
    """

    world: Rules
    """The rules behind it."""
    beliefs: tuple[tuple[int | None, ...], ...]
    """For each belief and each target the index of the state, ``None`` where the target is no longer possible."""
    branches: tuple[tuple[tuple[Branch, ...], ...], ...]
    """``branches[b][a]``: what action ``a`` may lead to under belief ``b``; probabilities add up to 1."""
    potential: tuple[Fraction, ...]
    """``potential[b]``: mean of the potential under the belief."""
    start: int = 0
    """The belief before the first action."""

    def posterior(self, belief: int) -> dict[str, Fraction]:
        """The probability of each target under a belief.

        Args:
            belief: an index into ``beliefs``, not below 0.

        Returns:
            A probability for each colour; they add up to 1.

        Raises:
            ValueError: there is no such belief.
        """
        belief = whole(belief, "belief", least=0)
        if belief >= len(self.beliefs):
            refuse("belief", belief, f"an index below {len(self.beliefs)}")
        possible = [state is not None for state in self.beliefs[belief]]
        share = Fraction(1, sum(possible))
        return {c: share if is_in else Fraction(0) for c, is_in in zip(self.world.colours, possible, strict=True)}

    def follow(self, history: Sequence[str]) -> int:
        """The belief after a history.

        Args:
            history: ``(o_0, a_0, o_1, ..., o_t)``, an odd number of names.

        Returns:
            An index into ``beliefs``.

        Raises:
            ValueError: the history is not possible in this world, or ends with the task; the message says where.
        """
        names = sequence(history, "history")
        if len(names) % 2 == 0 or names[0] != self.world.start_observation:
            refuse("history", history, f"observations and actions in turn, from {self.world.start_observation!r} on")
        belief = self.start
        for place in range(1, len(names), 2):
            action = self.world.actions.index(one_of(names[place], f"history[{place}]", self.world.actions))
            after = {branch.observation: branch.belief for branch in self.branches[belief][action]}
            seen = one_of(names[place + 1], f"history[{place + 1}]", tuple(after))
            following = after[seen]
            if following is None:
                refuse(f"history[{place + 1}]", seen, "a history in which the task goes on")
            belief = following
        return belief


@cache
def belief_model(world: Rules) -> BeliefModel:
    """The beliefs that can be reached, and the branches between them: the agent's side of a world.

    Args:
        world: what :func:`keydoor.rules.get_rules` returns.

    Returns:
        The same :class:`BeliefModel` at each call.

    Raises:
        ValueError: not a :class:`keydoor.rules.Rules`.

    Source:
        Kaelbling, Littman, Cassandra (1998), section 3.3, for belief states as a Markov process of their own.

    Example:
        >>> [len(belief_model(get_rules(name)).beliefs) for name in ("standard", "soft", "quiet")]
        [13, 19, 19]
    """
    if not isinstance(world, Rules):
        refuse("world", world, "Rules, from keydoor.rules.get_rules")
    start: tuple[int | None, ...] = tuple(world.start[colour] for colour in world.colours)
    index, queue, table = {start: 0}, [start], []
    for belief in queue:  # grows while it is walked
        row = []
        for action in range(len(world.actions)):
            groups: dict[tuple[str, str | None], list[int]] = {}
            for target, state in enumerate(belief):
                if state is not None:
                    outcome = world.table[state][action]
                    groups.setdefault((outcome.observation, outcome.stop_reason), []).append(target)
            branches = []
            for (observation, reason), targets in groups.items():
                outcomes = [world.table[belief[target]][action] for target in targets]  # type: ignore[index]
                following = None
                if reason is None:
                    moved = dict(zip(targets, (outcome.state for outcome in outcomes), strict=True))
                    after = tuple(moved.get(target) for target in range(len(belief)))
                    if after not in index:
                        index[after] = len(index)
                        queue.append(after)
                    following = index[after]
                count = len(targets)
                kept = [] if reason else [world.potential[outcome.state] for outcome in outcomes]
                branches.append(
                    Branch(
                        probability=Fraction(count, len(belief) - belief.count(None)),
                        observation=observation,
                        belief=following,
                        stop_reason=reason,
                        base_reward=_mean([outcome.base_reward for outcome in outcomes]),
                        potential_after=_mean(kept),
                        invalid=_mean([float(outcome.invalid) for outcome in outcomes]),
                    )
                )
            row.append(tuple(branches))
        table.append(tuple(row))
    potential = tuple(_mean([world.potential[state] for state in belief if state is not None]) for belief in queue)
    return BeliefModel(world, tuple(queue), tuple(table), potential)


def _mean(numbers: Sequence[float]) -> Fraction:
    """The tables hold multiples of ¼, which floats hold exactly."""
    return sum(map(Fraction, numbers), Fraction(0)) / max(len(numbers), 1)


def count_histories(*, rules: str = "standard", horizon: int = 8, colours: int = 2, delay: int = 0) -> int:
    """How many histories an agent may have to decide at, before any is enumerated.

    Args:
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1.
        colours: number of colours, at least 2.
        delay: turns between a clue and the next valid pickup, at least 0.

    Returns:
        The number of histories ``(o_0, ..., o_t)`` with ``t < horizon`` at which the task still goes on.

    Raises:
        ValueError: an argument is outside of its range.

    Example:
        >>> count_histories(horizon=8), count_histories(rules="soft", horizon=8)
        (10257, 173467)
    """
    model = belief_model(get_rules(rules, colours=colours, delay=delay))
    horizon = check_horizon(horizon)
    level, total = {model.start: 1}, 0
    for _ in range(horizon):
        total += sum(level.values())
        after: dict[int, int] = {}
        for belief, count in level.items():
            for branches in model.branches[belief]:
                for branch in branches:
                    if branch.belief is not None:
                        after[branch.belief] = after.get(branch.belief, 0) + count
        level = after
    return total


def check_horizon(horizon: int) -> int:
    """Refuse a horizon that would take minutes even where only beliefs are looked at.

    Args:
        horizon: turns that the task allows, at least 1, at most :data:`LONGEST`.

    Returns:
        The horizon.

    Raises:
        ValueError: it is outside of its range.

    Example:
        >>> check_horizon(10**6)
        Traceback (most recent call last):
        ...
        ValueError: horizon is 1000000; expected at most 10,000
    """
    if whole(horizon, "horizon", least=1) > LONGEST:
        refuse("horizon", horizon, f"at most {LONGEST:,}")
    return horizon


def check_size(*, rules: str, horizon: int, colours: int, delay: int, limit: int = LIMIT) -> int:
    """Refuse a tree that is too large, before anything is built.

    Args:
        rules: as for :func:`count_histories`.
        horizon: as for :func:`count_histories`.
        colours: as for :func:`count_histories`.
        delay: as for :func:`count_histories`.
        limit: largest number of histories, at least 1.

    Returns:
        The number of histories.

    Raises:
        ValueError: there are more than the limit; the message says how many.

    Example:
        >>> check_size(rules="soft", horizon=12, colours=2, delay=0)
        Traceback (most recent call last):
        ...
        ValueError: horizon is 12; expected at most 1,000,000 histories; soft with 2 colours and delay 0
        has 116,477,907
    """
    size = count_histories(rules=rules, horizon=horizon, colours=colours, delay=delay)
    if size > limit:
        kind = f"{rules} with {colours} colours and delay {delay}"
        refuse("horizon", horizon, f"at most {limit:,} histories; {kind} has {size:,}")
    return size


def histories(
    *, rules: str = "standard", horizon: int = 8, colours: int = 2, delay: int = 0
) -> Iterator[tuple[History, int]]:
    """All histories at which the agent decides, the short ones first.

    Args:
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1.
        colours: number of colours, at least 2.
        delay: turns between a clue and the next valid pickup, at least 0.

    Returns:
        An iterator over pairs of the history and its belief, an index into ``belief_model(...).beliefs``.

    Raises:
        ValueError: an argument is outside of its range, or there are more histories than :data:`LIMIT`.

    Example:
        >>> for history, belief in histories(horizon=2):
        ...     print(belief, *history)
        0 room
        1 room inspect clue_red
        2 room inspect clue_blue
        0 room pickup_red invalid
        0 room pickup_blue invalid
    """
    check_size(rules=rules, horizon=horizon, colours=colours, delay=delay)
    model = belief_model(get_rules(rules, colours=colours, delay=delay))
    return _walk(model, horizon)


def _walk(model: BeliefModel, horizon: int) -> Iterator[tuple[History, int]]:
    level: list[tuple[History, int]] = [((model.world.start_observation,), model.start)]
    for _ in range(horizon):
        yield from level
        level = [
            ((*history, action, branch.observation), branch.belief)
            for history, belief in level
            for action, branches in zip(model.world.actions, model.branches[belief], strict=True)
            for branch in branches
            if branch.belief is not None
        ]


class Node(NamedTuple):
    """One information state of an evaluation: where the policy decides, how often, and what that is worth.

    Example:
        >>> node = evaluate_exactly({"room": {"inspect": 1}}, horizon=1).nodes[0]
        >>> node.turn, node.history, str(node.probability), str(node.value)
        (0, ('room',), '1', '0')
    """

    turn: int
    """Turns taken before it."""
    history: History
    """What the policy is told: the whole history, or for a table over observations the last one alone."""
    belief: int
    """Index into the beliefs of the world's :func:`belief_model`."""
    probability: Number
    """That an episode comes here."""
    policy: tuple[Number, ...]
    """Probabilities of the actions here."""
    value: Number
    """Expected return from here on, counted from this turn."""
    action_values: tuple[Number | None, ...]
    """The same if the action is taken now and the policy followed afterwards. ``None`` where that leads to where the
    policy never comes, and ``off_path`` was not asked for or a table has no entry there."""


@dataclass(frozen=True, eq=False)
class ExactValues:
    """What :func:`evaluate_exactly` finds. Fractions where the policy, the discount and the durations are exact.

    Example:
        >>> uniform = evaluate_exactly(lambda history: [Fraction(1, 6)] * 6, horizon=6)
        >>> str(uniform.success_probability), str(sum(uniform.stop_reasons.values()))
        ('5/1458', '1')
    """

    success_probability: Number
    """That an episode ends in success."""
    expected_return: Number
    """Mean of the discounted sum of the selected rewards."""
    expected_turns: Number
    """Mean number of turns of an episode."""
    invalid_actions: Number
    """Mean number of invalid actions of an episode."""
    stop_reasons: dict[str, Number]
    """Probability of each of :data:`keydoor.rules.STOP_REASONS`; they add up to 1."""
    nodes: tuple[Node, ...]
    """All information states that are reached, in the order of their turns."""

    def value(self, history: Sequence[str], belief: int | None = None) -> Number:
        """The value of an information state that is reached.

        Args:
            history: as in :class:`Node`.
            belief: which one, at least 0, where a table over observations reaches several; ``None``: the only one.

        Returns:
            Its value.

        Raises:
            ValueError: none or several are reached.
        """
        found = [n.value for n in self.nodes if n.history == tuple(history) and belief in (None, n.belief)]
        if len(found) != 1:
            refuse("history", tuple(history), f"one that is reached once, not {len(found)} times")
        return found[0]


def evaluate_exactly(
    policy: Policy,
    *,
    rules: str = "standard",
    horizon: int = 8,
    colours: int = 2,
    delay: int = 0,
    gamma: Number = 1,
    reward_mode: str = "sparse",
    durations: Mapping[str, Number] | None = None,
    collector_limit: int | None = None,
    off_path: bool = False,
) -> ExactValues:
    r"""Probabilities and values of a policy, by enumeration.

    .. math:: V(h) = \sum_a \pi(a \mid h) \sum_{b} \Pr(b \mid h, a)\,
              \bigl[ r_b + \gamma^{\tau_a} V(h a o_b) \bigr], \qquad V = 0 \text{ at ends and at the cut,}

    over the branches :math:`b` of the belief of :math:`h`. The shaped reward is
    :math:`r_b + \gamma^{\tau_a} \Phi_b - \Phi`, where :math:`\Phi_b` is 0 at true ends and kept at the cut.

    Args:
        policy: what the agent does. Either a function that is given a history, a tuple ``(o_0, a_0, ..., o_t)`` of
            names, or a table from such histories (tuples), or a table from the last observation (strings): a
            memoryless policy. A distribution is a list of one probability per action in the order of ``Rules.actions``,
            or a mapping from names of actions, where what is missing has probability 0. A table needs entries only
            for what is reached. A network is accepted too; see :func:`keydoor.gradients.policy_table`.
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1, at most :data:`LONGEST`; reaching it is a true end.
        colours: number of colours, at least 2.
        delay: turns between a clue and the next valid pickup, at least 0.
        gamma: discount in [0, 1] per unit of time.
        reward_mode: ``"sparse"``, the base reward, or ``"potential"``, the shaped one.
        durations: how long each action takes, positive numbers by the name of the action; what is missing takes 1.
            The reward of an action counts from its start.
        collector_limit: turn at which the collector cuts, at least 1; nothing is added there. ``None``: never.
        off_path: look also behind the actions that the policy never takes, so that all action values are known.

    Returns:
        An :class:`ExactValues`.

    Raises:
        ValueError: an argument is outside of its range; a distribution is missing, does not add up to 1 (exactly for
            fractions, within :data:`ROUNDING` for floats), is negative, or names an unknown action; or the policy
            depends on histories and there are more of them than :data:`LIMIT`.

    Source:
        Kaelbling, Littman, Cassandra (1998), section 4.1; Sutton, Precup, Singh (1999), section 3, for durations.

    Example:
        >>> look_and_guess = {
        ...     "room": {"inspect": 1}, "clue_red": {"pickup_red": 1}, "clue_blue": {"pickup_blue": 1},
        ...     "key_held": {"open_red": Fraction(1, 3), "open_blue": Fraction(2, 3)}, "door_open": {"finish": 1},
        ... }
        >>> found = evaluate_exactly(look_and_guess, gamma=Fraction(9, 10))
        >>> str(found.success_probability), str(found.expected_return), str(found.expected_turns)
        ('1/2', '729/2000', '7/2')
    """
    world = get_rules(rules, colours=colours, delay=delay)
    model = belief_model(world)
    horizon = check_horizon(horizon)
    limit = horizon if collector_limit is None else whole(collector_limit, "collector_limit", least=1)
    gamma = unit_interval(gamma, "gamma")
    shaped = one_of(reward_mode, "reward_mode", REWARD_MODES) == "potential"
    discounts = _discounts(world, gamma, durations)
    if hasattr(policy, "initial_state"):
        from keydoor.gradients import policy_table

        network: Any = policy
        policy = policy_table(network, rules=rules, horizon=horizon, colours=colours, delay=delay)
    memoryless = isinstance(policy, Mapping) and all(isinstance(key, str) for key in policy)
    if not memoryless:
        check_size(rules=rules, horizon=horizon, colours=colours, delay=delay)
    turns = min(horizon, limit)

    # Forwards: which information states there are, and how often each is reached.
    first: _Place = ((world.start_observation,), model.start)
    level: dict[_Place, Number] = {first: Fraction(1)}
    levels, plans = [], []
    reasons: dict[str, Number] = dict.fromkeys(STOP_REASONS, Fraction(0))
    expected_turns: Number = Fraction(0)
    invalid: Number = Fraction(0)
    for turn in range(turns):
        plan = {place: _distribution(policy, place[0], world, needed=level[place] != 0) for place in level}
        after: dict[_Place, Number] = {}
        for place, probability in level.items():
            expected_turns = expected_turns + probability
            for action, chosen in enumerate(plan[place] or ()):
                if chosen == 0 and not off_path:
                    continue
                taken = probability * chosen
                certain = len(model.branches[place[1]][action]) == 1  # fractions are slow: nothing is multiplied by 1
                for branch, following in _ahead(model, place, action, memoryless):
                    share = taken if certain else taken * branch.probability
                    if branch.invalid:
                        invalid = invalid + share * branch.invalid
                    reason = branch.stop_reason or _at_limit(turn + 1, horizon, turns)
                    if reason is None:
                        after[following] = after.get(following, Fraction(0)) + share
                    else:
                        reasons[reason] = reasons[reason] + share
        levels.append(level)
        plans.append(plan)
        level = after

    # Backwards: what each is worth.
    nodes: list[Node] = []
    values: dict[_Place, Number | None] = {}
    for turn in reversed(range(turns)):
        ahead, values, row = values, {}, []
        for place, probability in levels[turn].items():
            distribution = plans[turn][place]
            if distribution is None:
                continue
            action_values: list[Number | None] = []
            for action, discount in enumerate(discounts):
                total: Number = Fraction(0)
                known = True
                for branch, following in _ahead(model, place, action, memoryless):
                    reason = branch.stop_reason or _at_limit(turn + 1, horizon, turns)
                    reward: Number = branch.base_reward
                    if shaped:
                        kept = branch.potential_after if reason in (None, "collector_limit") else 0
                        reward = reward + discount * kept - model.potential[place[1]]
                    later = ahead.get(following) if reason is None else 0
                    known = known and later is not None  # else the policy never comes there
                    if later:
                        reward = reward + discount * later
                    if reward:
                        total = total + branch.probability * reward
                action_values.append(total if known else None)
            value: Number = Fraction(0)
            for chosen, worth in zip(distribution, action_values, strict=True):
                if chosen and worth:
                    value = value + chosen * worth
            values[place] = value
            row.append(Node(turn, *place, probability, distribution, value, tuple(action_values)))
        nodes[:0] = row
    return ExactValues(
        success_probability=reasons["success"],
        expected_return=nodes[0].value,
        expected_turns=expected_turns,
        invalid_actions=invalid,
        stop_reasons=reasons,
        nodes=tuple(nodes),
    )


_Place = tuple[History, int]  # what the policy is told, and the belief


def _ahead(model: BeliefModel, place: _Place, action: int, memoryless: bool) -> Iterator[tuple[Branch, _Place]]:
    """The branches of an action, each with the place to which it leads (without meaning at a true end)."""
    history, belief = place
    done = () if memoryless else (*history, model.world.actions[action])
    for branch in model.branches[belief][action]:
        yield branch, ((*done, branch.observation), -1 if branch.belief is None else branch.belief)


def _at_limit(taken: int, horizon: int, turns: int) -> str | None:
    """Which limit ends an episode that has taken so many turns; on a tie the task's."""
    if taken == horizon:
        return "task_horizon"
    return "collector_limit" if taken == turns else None


def _discounts(world: Rules, gamma: Number, durations: Mapping[str, Number] | None) -> list[Number]:
    """The discount of each action, gamma to the power of its duration."""
    if durations is None:
        return [gamma] * len(world.actions)
    if not isinstance(durations, Mapping):
        refuse("durations", durations, "a mapping from names of actions to positive numbers, or None")
    for name, duration in durations.items():
        one_of(name, "a name in durations", world.actions)
        if not finite(duration, f"durations[{name!r}]", "a positive number") > 0:
            refuse(f"durations[{name!r}]", duration, "a positive number")
    return [gamma ** durations.get(name, 1) for name in world.actions]


def _distribution(policy: Policy, history: History, world: Rules, *, needed: bool) -> tuple[Number, ...] | None:
    """What the policy does there, checked; ``None`` where a table says nothing and nothing is needed."""
    if isinstance(policy, Mapping):
        key: Any = history[-1] if history[-1] in policy else history
        if key not in policy:
            if needed:
                refuse("policy", sorted(map(str, policy)), f"an entry for {key!r:.200}, which is reached")
            return None
        found = policy[key]
    else:
        key, found = history, policy(history)
    where = f"policy[{key!r:.200}]"
    if isinstance(found, Mapping):
        for name in found:
            one_of(name, f"an action of {where}", world.actions)
        found = [found.get(name, Fraction(0)) for name in world.actions]
    weights = sequence(found, where)
    if len(weights) != len(world.actions):
        refuse(where, weights, f"{len(world.actions)} probabilities, one for each action")
    numbers = tuple(unit_interval(weight, f"{where}[{action}]") for action, weight in enumerate(weights))
    total: Number = sum(numbers)
    tolerance = ROUNDING if isinstance(total, float) else 0.0
    if not -tolerance <= total - 1 <= tolerance:
        refuse(where, found, f"probabilities that add up to 1, not to {total}")
    return numbers
