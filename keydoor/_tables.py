"""The world and both limits of an episode as arrays: what steps many episodes at once reads these.

A row is a turn and a state, a column is an action. Row ``turn * len(world.states) + state`` says what each action does
in that state when ``turn`` turns have been taken; row ``c`` is the start of an episode whose target is
``world.colours[c]``. Two rows more follow, ``over`` for an episode that has ended and ``over + 1`` for one that was
cut. They lead to themselves, pay nothing and show the first observation, so that whoever steps on does no harm.

Nothing of the rules is said here again: all comes from :func:`keydoor.rules.get_rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydoor._checks import Number, refuse
from keydoor.rules import STOP_REASONS, Outcome, Rules

REASONS = (None, *STOP_REASONS)
"""What the numbers in ``Tables.reason`` stand for."""

MAX_ENTRIES = 2**22
"""So many pairs of a row and an action at most: about 0.3 GB with all fields."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Arrays of shape ``(over + 2, number of actions)``, apart from three numbers."""

    turns: int
    """Turns until one of the limits ends or cuts the episode."""
    states: int
    """Number of states: rows of one turn."""
    over: int
    """The row of an episode that has ended; the next and last one is that of an episode that was cut."""
    following: NDArray[np.intp]
    """The next row; ``over`` at a true end, ``over + 1`` at a cut."""
    observation: NDArray[np.int64]
    """Index in ``world.observations`` of what is seen next."""
    base_reward: NDArray[np.float64]
    shaped_reward: NDArray[np.float64]
    potential_before: NDArray[np.float64]
    potential_after: NDArray[np.float64]
    invalid: NDArray[np.bool_]
    reason: NDArray[np.int8]
    """Index in :data:`REASONS`."""
    turn: NDArray[np.int64]
    """Turns taken, this one included."""

    @property
    def terminated(self) -> NDArray[np.bool_]:
        """Whether the step ends the task."""
        return self._leads_to(self.over)

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Whether the collector cuts after the step."""
        return self._leads_to(self.over + 1)

    def _leads_to(self, row: int) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.following == row
        found[self.over :] = False  # an episode that is over does not end once more
        return found


def fill_tables(world: Rules, *, task_horizon: int, collector_limit: int | None, gamma: Number) -> Tables:
    """All fields of the scalar environment, for each turn, state and action; the arguments have been checked.

    >>> from keydoor.rules import get_rules
    >>> tables = fill_tables(get_rules("standard"), task_horizon=2, collector_limit=None, gamma=1.0)
    >>> tables.over, tables.following.shape
    (28, (30, 6))
    >>> tables.following[0].tolist()
    [16, 14, 14, 28, 28, 28]
    >>> [REASONS[why] for why in tables.reason[16]]
    ['task_horizon', 'task_horizon', 'task_horizon', 'failed_open', 'failed_open', 'wrong_finish']
    """
    states, width = len(world.states), len(world.actions)
    turns = task_horizon if collector_limit is None else min(task_horizon, collector_limit)
    most = MAX_ENTRIES // (states * width)
    if turns > most:
        expected = f"at most {most} turns in this world, by the task's limit or the collector's"
        refuse("task_horizon" if turns == task_horizon else "collector_limit", turns, expected)
    over, ends = turns * states, turns == task_horizon  # on a tie the task's end wins
    index_of = {name: number for number, name in enumerate(world.observations)}

    def outcomes(value: Callable[[Outcome], Any]) -> NDArray[Any]:
        return np.array([[value(outcome) for outcome in row] for row in world.table])

    def field(dtype: Any, each_turn: Any, last_turn: Any, when_over: Any = 0) -> NDArray[Any]:
        table = np.empty((over + 2, width), dtype=dtype)
        by_turn = table[:over].reshape(turns, states, width)
        by_turn[:-1], by_turn[-1], table[over:] = each_turn, last_turn, when_over
        return table

    # What an action does while no limit bites, and then what it does on the last turn: the task ends there, or the
    # collector cuts, unless the action has ended the task by itself.
    own = outcomes(lambda outcome: outcome.stop_reason is not None)
    seen = outcomes(lambda outcome: index_of[outcome.observation])
    reason = outcomes(lambda outcome: REASONS.index(outcome.stop_reason))
    base = outcomes(lambda outcome: outcome.base_reward)
    invalid = outcomes(lambda outcome: outcome.invalid)
    after = np.where(own, 0.0, outcomes(lambda outcome: world.potential[outcome.state]))
    before = np.repeat(world.potential, width).reshape(states, width)

    last_seen = np.where(own, seen, index_of["failure"]) if ends else seen
    last_reason = np.where(own, reason, REASONS.index("task_horizon" if ends else "collector_limit"))
    last_after = np.zeros_like(after) if ends else after

    turn = np.arange(1, turns).reshape(-1, 1, 1)
    next_row = np.where(own, over, turn * states + outcomes(lambda outcome: outcome.state))
    return Tables(
        turns=turns,
        states=states,
        over=over,
        following=field(np.intp, next_row, np.where(own | ends, over, over + 1), [[over], [over + 1]]),
        observation=field(np.int64, seen, last_seen, index_of[world.start_observation]),
        base_reward=field(np.float64, base, base),
        shaped_reward=field(np.float64, _shaped(base, before, after, gamma), _shaped(base, before, last_after, gamma)),
        potential_before=field(np.float64, before, before),
        potential_after=field(np.float64, after, last_after),
        invalid=field(np.bool_, invalid, invalid),
        reason=field(np.int8, reason, last_reason),
        turn=field(np.int64, turn, turns),
    )


def _shaped(
    base: NDArray[np.float64], before: NDArray[np.float64], after: NDArray[np.float64], gamma: Number
) -> NDArray[np.float64]:
    """Base reward and shaping; with an exact discount rounded once, as the scalar environment's reward is."""
    if isinstance(gamma, Fraction):
        terms = zip(base.flat, before.flat, after.flat, strict=True)
        exact = [float(Fraction(b) + gamma * Fraction(a) - Fraction(p)) for b, p, a in terms]
        return np.array(exact).reshape(base.shape)
    return base + float(gamma) * after - before
