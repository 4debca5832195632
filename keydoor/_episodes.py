"""Episodes as tensors: all of them, or a sample, in batches of one length.

Given the target the world is deterministic, so that an episode is a target and a list of actions. Batches hold indices
of histories, to which whoever made them has the list.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from keydoor.exact import BeliefModel, History, belief_model
from keydoor.gradients import _tree
from keydoor.rules import Rules

BATCH = 8192
"""Largest number of episodes in a batch."""


class Episodes(NamedTuple):
    """Episodes of one length, all of which end or all of which are cut."""

    number: Tensor  # which of all episodes, (episodes,)
    target: Tensor  # index of the colour, (episodes,)
    node: Tensor  # index of the history at each turn, (episodes, turns)
    action: Tensor  # (episodes, turns)
    base: Tensor  # base rewards, (episodes, turns)
    before: Tensor  # potential before each turn, with the hidden target, (episodes, turns)
    after: Tensor  # and after it, 0 at a true end
    success: Tensor  # (episodes,)
    cut: Tensor | None  # index of the history after the cut, (episodes,), None at a true end


def count_episodes(model: BeliefModel, horizon: int, turns: int) -> int:
    """How many episodes there are, before any is built: pairs of a target and a list of actions."""
    level, total = {model.start: 1}, 0
    for turn in range(turns):
        after: dict[int, int] = {}
        for belief, count in level.items():
            for action, branches in enumerate(model.branches[belief]):
                states = [state for state in model.beliefs[belief] if state is not None]
                ends = sum(model.world.table[state][action].stop_reason is not None for state in states)
                total += count * (ends if turn + 1 < turns else len(states))
                for branch in branches:
                    if branch.belief is not None:
                        after[branch.belief] = after.get(branch.belief, 0) + count
        level = after
    return total


class _Tables(NamedTuple):
    """The world by belief, target and action, (beliefs, targets, actions) but for ``before`` (beliefs, targets)."""

    possible: Tensor
    ends: Tensor
    base: Tensor
    before: Tensor
    after: Tensor
    success: Tensor


def _tables(model: BeliefModel) -> _Tables:
    world = model.world
    shape = (len(model.beliefs), len(world.colours), len(world.actions))
    found = _Tables(
        torch.zeros(shape, dtype=torch.bool),
        torch.zeros(shape, dtype=torch.bool),
        torch.zeros(shape, dtype=torch.float64),
        torch.zeros(shape[:2], dtype=torch.float64),
        torch.zeros(shape, dtype=torch.float64),
        torch.zeros(shape, dtype=torch.bool),
    )
    for b, belief in enumerate(model.beliefs):
        for c, state in enumerate(belief):
            if state is None:
                continue
            found.before[b, c] = world.potential[state]
            for a, outcome in enumerate(world.table[state]):
                found.possible[b, c, a] = True
                found.ends[b, c, a] = outcome.stop_reason is not None
                found.base[b, c, a] = outcome.base_reward
                found.success[b, c, a] = outcome.stop_reason == "success"
                found.after[b, c, a] = 0.0 if outcome.stop_reason else world.potential[outcome.state]
    return found


def all_episodes(world: Rules, horizon: int, turns: int) -> Iterator[Episodes]:
    """Every episode once. The histories are those of :func:`keydoor.exact.histories`, in that order."""
    tables = _tables(belief_model(world))
    levels = _tree(world.name, min(turns + 1, horizon), len(world.colours), world.delay)
    offset = count = 0
    nodes = torch.zeros(1, 0, dtype=torch.int64)
    actions = torch.zeros(1, 0, dtype=torch.int64)
    beliefs = torch.zeros(1, 0, dtype=torch.int64)
    for turn, level in enumerate(levels):
        own = offset + torch.arange(len(level.belief))
        if level.parent is not None:
            nodes, beliefs = nodes[level.parent], beliefs[level.parent]
            actions = torch.cat([actions[level.parent], level.action[:, None]], dim=1)
        if turn == turns:  # here the collector cuts, once for each target that is still possible
            place, target = tables.possible[level.belief].any(-1).nonzero(as_tuple=True)
            path, cut = actions[place], own[place]
        else:
            nodes = torch.cat([nodes, own[:, None]], dim=1)
            beliefs = torch.cat([beliefs, level.belief[:, None]], dim=1)
            over = tables.possible if turn + 1 == horizon else tables.ends
            place, target, action = over[level.belief].nonzero(as_tuple=True)
            path, cut = torch.cat([actions[place], action[:, None]], dim=1), None
        for start in range(0, len(target), BATCH):
            part = slice(start, start + BATCH)
            yield Episodes(
                number=count + torch.arange(len(target))[part],
                target=target[part],
                node=nodes[place[part]],
                action=path[part],
                success=tables.success[beliefs[place[part]], target[part, None], path[part]].any(-1),
                cut=None if cut is None else cut[part],
                **_rewards(tables, beliefs[place[part]], target[part, None], path[part], is_cut=cut is not None),
            )
        offset += len(own)
        count += len(target)


def _rewards(tables: _Tables, belief: Tensor, target: Tensor, action: Tensor, *, is_cut: bool) -> dict[str, Tensor]:
    after = tables.after[belief, target, action]
    if not is_cut:
        after[:, -1] = 0.0  # also where the horizon is the end
    return {"base": tables.base[belief, target, action], "before": tables.before[belief, target], "after": after}


def sampled_episodes(
    world: Rules,
    horizon: int,
    turns: int,
    targets: Sequence[int],
    distribution: Callable[[History], Sequence[float]],
    generator: random.Random,
) -> tuple[list[History], list[History], list[Episodes]]:
    """One episode for each target.

    Returns the histories at which the agent decided; those at which the collector cut; and the batches. In a batch
    ``cut`` counts on from the first list into the second.
    """
    decided: dict[History, int] = {}
    cuts: dict[History, int] = {}
    sums: dict[History, list[float]] = {}
    kinds: dict[tuple[int, bool], list[list[list[float]]]] = {}
    for number, target in enumerate(targets):
        state = world.start[world.colours[target]]
        history: History = (world.start_observation,)
        rows: list[list[float]] = []
        cut, success = -1, False
        for turn in range(turns):
            node = decided.setdefault(history, len(decided))
            if history not in sums:
                sums[history] = [*accumulate(distribution(history))]
            cumulative = sums[history]
            draw = generator.random() * cumulative[-1]
            action = min(bisect_right(cumulative, draw), len(cumulative) - 1)
            outcome = world.table[state][action]
            ends = outcome.stop_reason is not None or turn + 1 == horizon
            after = 0.0 if ends else world.potential[outcome.state]
            rows.append([node, action, outcome.base_reward, world.potential[state], after])
            if ends:
                success = outcome.stop_reason == "success"
                break
            state, history = outcome.state, (*history, world.actions[action], outcome.observation)
        else:
            cut = cuts.setdefault(history, len(cuts))
        kinds.setdefault((len(rows), cut >= 0), []).append([[number, target, success, cut], *rows])
    batches = []
    for (_, is_cut), episodes in kinds.items():
        for start in range(0, len(episodes), BATCH):
            part = episodes[start : start + BATCH]
            head = torch.tensor([episode[0] for episode in part], dtype=torch.int64)
            body = torch.tensor([episode[1:] for episode in part], dtype=torch.float64).unbind(-1)
            batches.append(
                Episodes(
                    number=head[:, 0],
                    target=head[:, 1],
                    node=body[0].long(),
                    action=body[1].long(),
                    base=body[2],
                    before=body[3],
                    after=body[4],
                    success=head[:, 2] > 0,
                    cut=len(decided) + head[:, 3] if is_cut else None,
                )
            )
    return [*decided], [*cuts], batches
