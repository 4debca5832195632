"""The episodes of an update, of all networks of a stack in one batch, on tables and with plain arrays.

What is played is what :func:`keydoor._play.play` plays from the same targets and random numbers, but for the rounding
of the network; only :class:`~keydoor.records.Transition` objects are not made.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import embedding

from keydoor._play import Episode
from keydoor._stack import ROWS, Stack, padded
from keydoor._tables import REASONS, fill_tables
from keydoor.rules import Rules

Array = npt.NDArray[Any]


class Tables(NamedTuple):
    """A world as arrays; the outcome of action a in state s is entry s · (number of actions) + a."""

    state: Array
    """The state that follows; of an episode that is over, some state."""
    pair: Array
    """The observation and the action that led to it as one index, see ``Stack.codes``."""
    base_reward: Array
    potential_before: Array
    potential_after: Array
    over: Array
    won: Array


@cache
def tables(rules: Rules) -> Tables:
    """What the actions do while no limit bites: the first of two turns of :func:`keydoor._tables.fill_tables`."""
    full = fill_tables(rules, task_horizon=2, collector_limit=None, gamma=1.0)
    first = slice(0, full.states)
    return Tables(
        state=(full.following[first] % full.states).ravel(),  # the second turn's rows come right after the first one's
        pair=(full.observation[first] * (len(rules.actions) + 1) + np.arange(len(rules.actions))).ravel(),
        base_reward=full.base_reward[first].ravel(),
        potential_before=full.potential_before[first].ravel(),
        potential_after=full.potential_after[first].ravel(),
        over=full.terminated[first].ravel(),
        won=(full.reason[first] == REASONS.index("success")).ravel(),
    )


@dataclass
class Rollouts:
    """Episodes as they were played. Arrays over (networks, episodes) and, in front of both, turns.

    Entries after an episode's end mean nothing. There may be more episodes than were asked for, of length 0.
    """

    pairs: Array
    """Observation and previous action as one index, see ``Stack.codes``."""
    actions: Array
    logprobs: Array
    """Behaviour log-probabilities."""
    values: Array
    """The critic's, one turn more than of the others: after an episode's last value its bootstrap value, or 0."""
    base_rewards: Array
    shaped_rewards: Array
    lengths: Array
    terminated: Array
    won: Array

    def rewards(self, modes: Sequence[str]) -> Array:
        """Those of each network's reward mode."""
        shaped = np.array([mode == "potential" for mode in modes]).reshape(-1, 1)
        return np.where(shaped, self.shaped_rewards, self.base_rewards)

    def results(self, modes: Sequence[str], gamma: float) -> list[tuple[float, float]]:
        """Of each network the share of successes and the mean discounted return."""
        rewards, total = self.rewards(modes), np.zeros(self.lengths.shape)
        for t in range(len(rewards) - 1, -1, -1):
            total = np.where(t < self.lengths, rewards[t] + gamma * total, total)
        asked = (self.lengths > 0).sum(axis=1).tolist()
        return [
            (int(won.sum()) / n, math.fsum(row[:n].tolist()) / n)
            for won, row, n in zip(self.won, total, asked, strict=True)
        ]

    @classmethod
    def of(cls, episodes: Sequence[Episode], rules: Rules) -> Rollouts:
        """Episodes of one network, with their transitions."""
        actions, seen = ({name: i for i, name in enumerate(x)} for x in (rules.actions, rules.observations))
        turns = max(len(episode.transitions) for episode in episodes)
        made = np.zeros((6, turns + 1, 1, padded(len(episodes))))
        lengths, terminated, won = (np.zeros(made.shape[2:], kind) for kind in (int, bool, bool))
        for e, episode in enumerate(episodes):
            previous = len(actions)
            for t, x in enumerate(episode.transitions):
                pair, action = seen[x.observation] * (len(actions) + 1) + previous, actions[x.action]
                made[:5, t, 0, e] = pair, action, x.behavior_logprob, x.base_reward, x.shaped_reward
                previous = action
            last = episode.transitions[-1]
            lengths[0, e], terminated[0, e] = len(episode.transitions), last.terminated
            won[0, e] = last.stop_reason == "success"
            made[5, : len(episode.values), 0, e] = episode.values
        pairs, taken, logprobs, base, shaped = made[:5, :-1]
        return cls(pairs.astype(int), taken.astype(int), logprobs, made[5], base, shaped, lengths, terminated, won)


def play_stack(
    stack: Stack,
    rules: Rules,
    targets: Sequence[Sequence[str]],
    draws: Sequence[Sequence[random.Random]],
    *,
    gamma: float,
    task_horizon: int,
    collector_limit: int | None,
    diverged: Callable[[int, str, float], None],
) -> Rollouts:
    """One episode for each target, ``targets[network][episode]``; ``diverged(network, what, value)`` has to raise."""
    world, count, actions = tables(rules), stack.count, len(rules.actions)
    asked = len(targets[0])
    height = padded(asked)
    running: Array = np.tile(np.arange(height) < asked, count)
    starts = [[rules.start[target] for target in row] + [0] * (height - asked) for row in targets]
    state: Array = np.array(starts).reshape(-1)
    sources = [source for row in draws for source in (*row, *[row[0]] * (height - asked))]
    pair = np.full(state.shape, rules.observations.index(rules.start_observation) * (actions + 1) + actions)
    given = torch.zeros(count, height, stack.inputs + stack.width, dtype=stack.weights.dtype)
    after = stack.room_after(count, height)
    inputs, hidden = given[..., : stack.inputs], given[..., stack.inputs :]
    state_after, cell = after[..., ROWS:], stack.cell()
    numbers, each = np.zeros(state.shape), np.arange(len(state))
    columns: list[tuple[Array, ...]] = []
    values: list[Array] = []
    end = min(task_horizon, collector_limit or task_horizon)
    with torch.no_grad(), np.errstate(invalid="ignore", over="ignore"):  # what is no number is found below
        while True:
            inputs.copy_(embedding(torch.from_numpy(pair), stack.codes).view(inputs.shape))
            outputs = stack.turn(given, cell, after).flatten(0, 1).double().numpy()
            hidden.copy_(state_after)
            values.append(outputs[:, actions])
            if len(columns) == end or not running.any():  # one look after the last turn: a cut is worth what it shows
                break
            on = np.flatnonzero(running)
            numbers[on] = [sources[i].random() for i in on.tolist()]
            # As keydoor._play samples: the distribution function, divided by its last entry, inverted.
            logits = outputs[:, :actions]
            logits = logits - logits.max(axis=1, keepdims=True)
            upto = np.exp(logits).cumsum(axis=1)
            total = upto[:, -1:]
            taken = np.minimum((upto / total <= numbers[:, None]).sum(axis=1), actions - 1)
            logprob = logits[each, taken] - np.log(total[:, 0])
            entry = state * actions + taken
            columns.append((running, pair, entry, logprob))
            running = running & ~world.over[entry]
            state, pair = world.state[entry], world.pair[entry]

    turns = len(columns)
    ran, pairs, entries, logprobs_ = (np.stack(column) for column in zip(*columns, strict=True))
    lengths = ran.sum(axis=0)
    cut = running & (turns < task_horizon)
    critic = np.stack(values)
    for found, of, what in (
        (logprobs_, ran, "the log-probability of the action taken"),
        (critic[:turns], ran, "the critic's value"),
        (critic[turns:], cut[None], "the critic's value at the cut"),
    ):
        wrong = of & ~np.isfinite(found)
        if wrong.any():
            turn, at = np.argwhere(wrong)[0].tolist()
            diverged(at // height, what, float(found[turn, at]))
    ends = world.potential_after[entries]
    if turns == task_horizon:  # a true end, whatever the action has done
        ends[-1] = 0.0
    base = world.base_reward[entries]
    shape = (-1, count, height)
    return Rollouts(
        pairs=pairs.reshape(shape),
        actions=(entries % actions).reshape(shape),
        logprobs=logprobs_.reshape(shape),
        values=np.where(np.vstack([ran, cut]), critic, 0.0).reshape(shape),
        base_rewards=base.reshape(shape),
        shaped_rewards=(base + gamma * ends - world.potential_before[entries]).reshape(shape),
        lengths=lengths.reshape(count, height),
        terminated=((lengths > 0) & ~cut).reshape(count, height),
        won=(ran & world.won[entries]).any(axis=0).reshape(count, height),
    )
