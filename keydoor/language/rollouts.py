r"""Groups of rollouts on a table, their advantages, and the clipped surrogate that they give.

The reward comes at the end of a rollout, and all its turns get the advantage relative to the group,
:func:`keydoor.groups.group_advantages`. A turn is weighted by the ratio of the policies for its *semantic action*, and
the surrogate is clipped as :func:`keydoor.weights.clipped_surrogate` does:

.. math:: L = -\frac1N\sum_{i,t}\min\bigl(\rho_{it}A_i,\ \mathrm{clip}(\rho_{it},1-\varepsilon,1+\varepsilon)A_i\bigr)

The ratio of a turn depends on its situation and action alone. So the sum over thousands of turns is a sum over 15 × 6
cells, with the positive and the negative advantages of a cell added up, and a gradient step costs one pass through the
tree of prompts, however many rollouts there were.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from keydoor._checks import one_of
from keydoor.groups import group_advantages
from keydoor.language.tables import SITUATIONS, _rows_of_states
from keydoor.returns import discounted_return
from keydoor.rules import ACTIONS, REWARD_MODES, get_rules


class Rollout(NamedTuple):
    """One episode of a group, as rows and columns of the table.

    Example:
        >>> Rollout(rows=(0,), actions=(5,), reward=0.0, shaped=(0.0,)).reward
        0.0
    """

    rows: tuple[int, ...]
    """The situation before each turn, an index into ``SITUATIONS``."""
    actions: tuple[int, ...]
    """The action of each turn, an index into ``ACTIONS``."""
    reward: float
    """1 for success, else 0."""
    shaped: tuple[float, ...]
    """The shaped reward of each turn, at a discount of 1."""


def play_group(
    table: Sequence[Sequence[float]], target: str, size: int, source: random.Random, *, rules: str, horizon: int
) -> list[Rollout]:
    """Rollouts of one task.

    Args:
        table: probabilities of shape (15, 6).
        target: colour of the door that counts.
        size: number of rollouts, at least 1.
        source: where random numbers come from.
        rules: rule set.
        horizon: turns that the task allows, at least 1.

    Returns:
        The rollouts.

    Raises:
        ValueError: an unknown rule set.

    Example:
        >>> table = [[0, 0, 0, 0, 0, 1]] * 15
        >>> play_group(table, "red", 1, random.Random(0), rules="standard", horizon=6)
        [Rollout(rows=(0,), actions=(5,), reward=0.0, shaped=(0.0,))]
    """
    world = get_rules(rules)
    row_of = _rows_of_states(world)
    columns = range(len(ACTIONS))
    played = []
    for _ in range(size):
        state, rows, actions, shaped, reward = world.start[target], [], [], [], 0.0
        for turn in range(horizon):
            row = row_of[state]
            action = source.choices(columns, table[row])[0]
            outcome = world.table[state][action]
            over = outcome.stop_reason is not None or turn + 1 == horizon
            ahead = 0.0 if over else world.potential[outcome.state]
            rows.append(row)
            actions.append(action)
            shaped.append(outcome.base_reward + ahead - world.potential[state])
            state, reward = outcome.state, outcome.base_reward
            if over:
                break
        played.append(Rollout(tuple(rows), tuple(actions), reward, tuple(shaped)))
    return played


def turn_advantages(group: Sequence[Rollout], *, reward_mode: str = "sparse", scale: bool = True) -> list[list[float]]:
    """The advantage of each turn of each rollout of a group.

    Args:
        group: rollouts of one task, at least one.
        reward_mode: ``"sparse"`` credits every turn with the end's reward, ``"potential"`` with the shaped return from
            it on, relative to all turns of the group.
        scale: whether the deviation divides.

    Returns:
        A list for each rollout with a number for each turn, in the mode ``sparse`` the same for all turns.

    Raises:
        ValueError: an empty group, or an unknown reward mode.

    Example:
        >>> won, lost = Rollout((0, 1), (0, 1), 1.0, (0.25, 0.75)), Rollout((0,), (5,), 0.0, (0.0,))
        >>> turn_advantages([won, lost])
        [[1.0, 1.0], [-1.0]]
    """
    if one_of(reward_mode, "reward_mode", REWARD_MODES) == "sparse":
        found = group_advantages([rollout.reward for rollout in group], scale=scale)
        return [[float(a)] * len(rollout.rows) for a, rollout in zip(found, group, strict=True)]
    returns = [[discounted_return(one.shaped[t:], 1.0) for t in range(len(one.rows))] for one in group]
    flat = iter(group_advantages([g for row in returns for g in row], scale=scale))
    return [[float(next(flat)) for _ in row] for row in returns]


def cell_weights(group: Sequence[Rollout], advantages: Sequence[Sequence[float]]) -> Tensor:
    """The advantages of a group added up by situation, action and sign.

    Args:
        group: rollouts of one task.
        advantages: finite numbers, one for each turn of each.

    Returns:
        Sums of the positive ones, and of the negative ones, of shape (2, 15, 6).

    Example:
        >>> weights = cell_weights([Rollout((0, 0), (5, 5), 0.0, (0.0, 0.0))], [[-1.0, 2.0]])
        >>> weights[:, 0, 5].tolist()
        [2.0, -1.0]
    """
    weights = torch.zeros(2, len(SITUATIONS), len(ACTIONS), dtype=torch.float64)
    for rollout, numbers in zip(group, advantages, strict=True):
        for row, action, advantage in zip(rollout.rows, rollout.actions, numbers, strict=True):
            weights[int(advantage < 0), row, action] += advantage
    return weights


def clipped_loss(logits: Tensor, old: Tensor, weights: Tensor, count: int, clip: float) -> Tensor:
    """The clipped surrogate of all turns, negated, from the cells of :func:`cell_weights`.

    Args:
        logits: log-probabilities under the policy being trained, of shape (15, 6).
        old: the same under the policy that played, of shape (15, 6).
        weights: shape (2, 15, 6).
        count: number of rollouts, at least 1.
        clip: how far a ratio counts, positive.

    Returns:
        One number, with a gradient.

    Example:
        >>> logits = torch.zeros(15, 6)
        >>> clipped_loss(logits, logits, torch.ones(2, 15, 6), 10, 0.2).item()
        -18.0
    """
    ratio = (logits - old).exp()
    gains = weights[0] * ratio.clamp(max=1 + clip) + weights[1] * ratio.clamp(min=1 - clip)
    return -gains.sum() / count
