r"""The policy of a language model as a table: what the agent knows, six numbers for each, and its exact success.

Where the prompt says what the agent knows, and nothing else, there are only fifteen prompts, the *situations*. A
model that gives each of the six actions a score is then a table of 15 rows and 6 columns, and how often it succeeds
is found by dynamic programming, without sampling. All of this runs on the standard library, so that it can be
computed again from stored scores where no model is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from keydoor._checks import Number, exact_sum, finite, one_of, real, refuse, sequence, unit_interval
from keydoor.exact import History, belief_model, check_horizon
from keydoor.rules import ACTIONS, COLOURS, RULE_SETS, STOP_REASONS, Rules, State, get_rules
from keydoor.turns import ROUNDING, Parser, parse_action, semantic_action_probability


class Situation(NamedTuple):
    """What the agent knows before a turn: a belief state of the world, whichever the rule set.

    Example:
        >>> Situation("red", "blue", None).name
        'red, key blue'
        >>> Situation(None, None, None).name
        'start'
    """

    clue: str | None
    """Colour of the target, ``None`` before the first look."""
    key: str | None
    """Colour of the key in hand."""
    opened: str | None
    """Colour of the open door, of the one opened last where several can open."""

    @property
    def name(self) -> str:
        """A short English name, the same in files and in tests."""
        if self.clue is None:
            return "start"
        parts = [
            self.clue,
            *([f"key {self.key}"] if self.key else []),
            *([f"door {self.opened}"] if self.opened else []),
        ]
        return ", ".join(parts)


SITUATIONS: tuple[Situation, ...] = (
    Situation(None, None, None),
    *(
        Situation(clue, key, opened)
        for clue in COLOURS
        for key, opened in (
            *((None, None), *((key, None) for key in COLOURS)),
            *((key, opened) for key in COLOURS for opened in COLOURS),
        )
    ),
)
"""The fifteen situations, in the order of the rows of every table."""

_ROW = {situation: row for row, situation in enumerate(SITUATIONS)}
_WIDTH = len(ACTIONS)


def situation_of(state: State) -> Situation:
    """What the agent knows in a state of the world, if it forgets nothing.

    Args:
        state: a state of a world of two colours without delay.

    Returns:
        One of :data:`SITUATIONS`. The target is forgotten where it has not been shown.

    Raises:
        ValueError: this is no such state.

    Example:
        >>> situation_of(State("blue", False, None, None, "room")).name
        'start'
        >>> situation_of(State("blue", True, "red", None, "key_held")).name
        'blue, key red'
    """
    if not isinstance(state, State):
        refuse("state", state, "a State of keydoor.rules")
    found = Situation(state.target if state.inspected else None, state.key, state.opened)
    if found not in _ROW:
        refuse("state", state, "a state of a world of two colours that can be reached")
    return found


def reachable(rules: str = "standard") -> list[int]:
    """Which rows of a table can occur under a rule set.

    Args:
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.

    Returns:
        Indices into :data:`SITUATIONS`, ascending.

    Raises:
        ValueError: an unknown rule set.

    Example:
        >>> [len(reachable(rules)) for rules in ("standard", "soft", "quiet")]
        [11, 15, 15]
    """
    return sorted({*_rows_of_states(get_rules(one_of(rules, "rules", RULE_SETS)))})


def _rows_of_states(world: Rules) -> list[int]:
    """For each state of a world the row of what the agent knows in it."""
    return [_ROW[situation_of(state)] for state in world.states]


def _rows(table: Any, name: str, check: Callable[[Any, str], Number]) -> list[list[Number]]:
    """A table of 15 rows and 6 columns, checked."""
    rows = sequence(table, name)
    if len(rows) != len(SITUATIONS):
        raise ValueError(f"{name} has {len(rows)} rows; expected {len(SITUATIONS)}, one for each of SITUATIONS")
    found = []
    for s, row in enumerate(rows):
        cells = sequence(row, f"{name}[{s}]")
        if len(cells) != _WIDTH:
            raise ValueError(f"{name}[{s}] has {len(cells)} entries; expected {_WIDTH}, one for each of ACTIONS")
        found.append([check(cell, f"{name}[{s}][{a}]") for a, cell in enumerate(cells)])
    return found


def calibrate(logprobs: Any, reference: Any = None) -> list[list[float]]:
    r"""Scores without what an action's string is worth everywhere: each column minus its mean over the situations.

    .. math:: z_{sa} = \ell_{sa} - \frac{1}{15}\sum_{s'} \ell^0_{s'a}

    A long or rare string has a low probability in every situation, which says nothing about the situation.

    Args:
        logprobs: the log-probabilities :math:`\ell`, finite, of shape (15, 6), by situation and action.
        reference: :math:`\ell^0`, finite, of the same shape: usually those before training, so that what is
            subtracted stays the same; ``None`` takes ``logprobs``.

    Returns:
        The scores :math:`z`, of shape (15, 6).

    Raises:
        ValueError: another shape, or a number that is not finite; the message names its place.

    Source:
        Zhao et al. (2021), *Calibrate Before Use*, subtract what a prompt without content gives; the mean over the
        situations in its place is defined here.

    Example:
        >>> row = [-1.0, -9.0, -9.0, -9.0, -9.0, -9.0]
        >>> calibrate([row] * 14 + [[-1.0, -9.0, -9.0, -9.0, -9.0, -6.0]])[0][:2]
        [0.0, 0.0]
    """
    scores = _rows(logprobs, "logprobs", finite)
    base = scores if reference is None else _rows(reference, "reference", finite)
    means = [math.fsum(float(row[a]) for row in base) / len(base) for a in range(_WIDTH)]
    return [[float(score) - mean for score, mean in zip(row, means, strict=True)] for row in scores]


def probabilities(scores: Any, temperature: float = 1.0) -> list[list[float]]:
    r"""A policy from scores: the softmax of each row.

    .. math:: \pi(a\mid s) = \frac{e^{z_{sa}/\tau}}{\sum_{b} e^{z_{sb}/\tau}}

    Args:
        scores: finite numbers :math:`z` of shape (15, 6).
        temperature: :math:`\tau`, positive.

    Returns:
        Probabilities of shape (15, 6); each row adds up to 1 but for rounding.

    Raises:
        ValueError: another shape, a number that is not finite, or a temperature that is not positive.

    Source:
        Elementary.

    Example:
        >>> [round(p, 3) for p in probabilities([[0, 0, 0, 0, 0, 1]] * 15)[0]]
        [0.13, 0.13, 0.13, 0.13, 0.13, 0.352]
    """
    divisor = finite(temperature, "temperature", "a positive number")
    if divisor <= 0:
        refuse("temperature", temperature, "a positive number")
    table = []
    for row in _rows(scores, "scores", finite):
        top = max(row)
        weights = [math.exp(float(score - top) / divisor) for score in row]
        total = math.fsum(weights)
        table.append([weight / total for weight in weights])
    return table


class Success(NamedTuple):
    """What :func:`exact_success` finds; fractions for a table of fractions.

    Example:
        >>> uniform = exact_success([[Fraction(1, 6)] * 6] * 15)
        >>> str(uniform.probability), str(uniform.stop_reasons["failed_open"])
        ('5/1458', '3347/5184')
    """

    probability: Number
    """That an episode ends in success: the mean over the targets."""
    by_target: dict[str, Number]
    """The same for each target: what a group of rollouts of one task has."""
    expected_turns: Number
    """Mean number of turns of an episode."""
    stop_reasons: dict[str, Number]
    """Probability of each true end; they add up to 1."""


def _policy_rows(table: Any) -> list[list[Number]]:
    rows = _rows(table, "table", unit_interval)
    for s, row in enumerate(rows):
        total = exact_sum(row)
        tolerance = ROUNDING if isinstance(total, float) else 0.0
        if not -tolerance <= total - 1 <= tolerance:
            refuse(f"the sum of table[{s}]", total, f"1: probabilities of the actions in {SITUATIONS[s].name!r}")
    return rows


def exact_success(table: Any, *, rules: str = "standard", horizon: int = 6) -> Success:
    """How often a policy that acts by its situation succeeds, by dynamic programming over the states of the world.

    Args:
        table: probabilities of shape (15, 6); each row adds up to 1 (up to 1e-9 with floats).
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1, at most 10,000.

    Returns:
        A :class:`Success`.

    Raises:
        ValueError: another shape, a row that is no distribution, or an argument outside of its range.

    Example:
        >>> expert = {"start": 0, "red": 1, "blue": 2, "red, key red": 3, "blue, key blue": 4}
        >>> rows = [[float(a == expert.get(s.name, 5)) for a in range(6)] for s in SITUATIONS]
        >>> exact_success(rows).probability, exact_success(rows).expected_turns
        (1.0, 4.0)
    """
    rows = _policy_rows(table)
    world = get_rules(one_of(rules, "rules", RULE_SETS))
    turns = check_horizon(horizon)
    row_of = _rows_of_states(world)
    by_target: dict[str, Number] = {}
    share = Fraction(1, len(world.colours))
    reasons: dict[str, Number] = dict.fromkeys(STOP_REASONS[:-1], Fraction(0))
    expected: Number = Fraction(0)
    for target, start in world.start.items():
        won: Number = Fraction(0)
        level: dict[int, Number] = {start: Fraction(1)}
        for turn in range(turns):
            after: dict[int, Number] = {}
            for state, mass in level.items():
                expected = expected + share * mass
                for chosen, outcome in zip(rows[row_of[state]], world.table[state], strict=True):
                    taken = mass * chosen
                    if not taken:
                        continue
                    reason = outcome.stop_reason or ("task_horizon" if turn + 1 == turns else None)
                    if reason is None:
                        after[outcome.state] = after.get(outcome.state, Fraction(0)) + taken
                        continue
                    reasons[reason] = reasons[reason] + share * taken
                    if reason == "success":
                        won = won + taken
            level = after
        by_target[target] = won
    return Success(sum(by_target.values(), Fraction(0)) * share, by_target, expected, reasons)


def situation_after(history: Sequence[str], rules: str = "standard") -> Situation:
    """What the agent knows after a history, if it forgets nothing.

    Args:
        history: ``(o_0, a_0, o_1, ..., o_t)``, names in turn, of an odd number.
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.

    Returns:
        One of :data:`SITUATIONS`.

    Raises:
        ValueError: the history is not possible under these rules, or ends with the task.

    Example:
        >>> situation_after(("room", "inspect", "clue_red", "pickup_blue", "key_held")).name
        'red, key blue'
    """
    world = get_rules(one_of(rules, "rules", RULE_SETS))
    model = belief_model(world)
    return SITUATIONS[row_of_belief(world, model.beliefs[model.follow(history)])]


def as_policy(table: Any, rules: str = "standard") -> Callable[[History], list[Number]]:
    """The same policy as a function of histories, for :func:`keydoor.exact.evaluate_exactly`.

    Args:
        table: probabilities of shape (15, 6), as for :func:`exact_success`.
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.

    Returns:
        A function from a history ``(o_0, a_0, ..., o_t)`` to the row of its situation.

    Raises:
        ValueError: another shape, a row that is no distribution, or an unknown rule set.

    Example:
        >>> from keydoor.exact import evaluate_exactly
        >>> uniform = as_policy([[Fraction(1, 6)] * 6] * 15)
        >>> str(evaluate_exactly(uniform, horizon=6).success_probability)
        '5/1458'
    """
    rows = _policy_rows(table)
    world = get_rules(one_of(rules, "rules", RULE_SETS))
    model = belief_model(world)
    row_of = [row_of_belief(world, belief) for belief in model.beliefs]
    return lambda history: rows[row_of[model.follow(history)]]


def row_of_belief(world: Rules, belief: Sequence[int | None]) -> int:
    """The row of a belief of :func:`keydoor.exact.belief_model`.

    Args:
        world: what :func:`keydoor.rules.get_rules` returns.
        belief: for each target the index of its state, at least 0, ``None`` where the target is no longer possible.

    Returns:
        An index into :data:`SITUATIONS`.

    Raises:
        ValueError: the states of the belief are different situations, which no history leads to.

    Example:
        >>> world = get_rules()
        >>> row_of_belief(world, belief_model(world).beliefs[0])
        0
    """
    found = {situation_of(world.states[state]) for state in belief if state is not None}
    if len(found) != 1:
        refuse("belief", belief, "states that look the same to the agent")
    return _ROW[found.pop()]


def action_masses(string_logprobs: Mapping[str, float], parser: Parser = parse_action) -> dict[str, float]:
    r"""The log-probability of each action, summed over the strings that mean it.

    .. math:: \log P(a\mid s) = \log \sum_{x:\,\mathrm{parse}(x)=a} P(x\mid s)

    The sum is :func:`keydoor.turns.semantic_action_probability`, taken relative to the likeliest string, so that
    strings of probability :math:`e^{-800}` are not lost.

    Args:
        string_logprobs: from strings to log-probabilities, finite and not above 0.
        parser: as in :func:`keydoor.turns.semantic_action_probability`.

    Returns:
        The log-probabilities of the actions that some string means, in the order of
        :data:`keydoor.rules.ACTIONS`. A string that means none is left out.

    Raises:
        ValueError: no string, or a log-probability that is not finite or above 0.

    Source:
        Elementary: the strings that mean one action exclude one another.

    Example:
        >>> masses = action_masses({"inspect": -800.0, '{"name": "inspect"}': -800.0, "finish": -801.0})
        >>> {action: round(mass, 4) for action, mass in masses.items()}
        {'inspect': -799.3069, 'finish': -801.0}
    """
    if not isinstance(string_logprobs, Mapping) or not string_logprobs:
        refuse("string_logprobs", string_logprobs, "a mapping from strings to log-probabilities, not empty")
    logprobs: dict[str, float] = {}
    for string, value in string_logprobs.items():
        logprob = real(value, f"string_logprobs[{string!r:.60}]", "a finite number not above 0")
        if not -math.inf < logprob <= 0:
            refuse(f"string_logprobs[{string!r:.60}]", value, "a finite number not above 0")
        logprobs[string] = float(logprob)
    top = max(logprobs.values())
    relative = {string: math.exp(logprob - top) for string, logprob in logprobs.items()}
    total = math.fsum(relative.values())
    table = {string: weight / total for string, weight in relative.items()}
    masses = {action: semantic_action_probability(table, parser, action) for action in ACTIONS}
    return {action: math.log(mass * total) + top for action, mass in masses.items() if mass > 0}
