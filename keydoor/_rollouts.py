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
from torch import Tensor
from torch.nn.functional import embedding, log_softmax

from keydoor._play import Episode, _sample
from keydoor._stack import Stack, padded
from keydoor.rules import Rules

Array = npt.NDArray[Any]


class Tables(NamedTuple):
    """A world as arrays; the outcome of action a in state s is entry s · (number of actions) + a."""

    state: Array
    observation: Array
    base_reward: Array
    potential_before: Array
    potential_after: Array
    over: Array
    won: Array


@cache
def tables(rules: Rules) -> Tables:
    seen = {name: index for index, name in enumerate(rules.observations)}
    outcomes = [outcome for row in rules.table for outcome in row]
    return Tables(
        state=np.array([outcome.state for outcome in outcomes]),
        observation=np.array([seen[outcome.observation] for outcome in outcomes]),
        base_reward=np.array([outcome.base_reward for outcome in outcomes]),
        potential_before=np.repeat(rules.potential, len(rules.actions)),
        potential_after=np.array([0.0 if x.stop_reason else rules.potential[x.state] for x in outcomes]),
        over=np.array([outcome.stop_reason is not None for outcome in outcomes]),
        won=np.array([outcome.stop_reason == "success" for outcome in outcomes]),
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
    lengths, terminated, won = np.zeros_like(state), np.zeros_like(running), np.zeros_like(running)
    columns: list[list[Array]] = [[] for _ in range(6)]
    hidden = stack.initial_state(height)

    def look() -> tuple[Tensor, Array]:
        nonlocal hidden
        inputs = embedding(torch.from_numpy(pair), stack.codes).view(count, height, -1)
        hidden = stack.turn(inputs, hidden)
        outputs = stack.heads(hidden).flatten(0, 1).double()
        return outputs[:, :actions], outputs[:, actions].numpy()

    def check(numbers: Array, of: Array, what: str) -> None:
        wrong = of & ~np.isfinite(numbers)
        if wrong.any():
            at = int(wrong.argmax())
            diverged(at // height, what, float(numbers[at]))

    turn = 0
    with torch.no_grad():
        while running.any():
            turn += 1
            logits, value = look()
            logprobs = log_softmax(logits, dim=-1)
            action = _sample(logprobs, sources, np.flatnonzero(running).tolist())
            logprob = logprobs.gather(-1, action.unsqueeze(-1)).squeeze(-1).numpy()
            check(logprob, running, "the log-probability of the action taken")
            check(value, running, "the critic's value")
            taken = action.numpy()
            entry = state * actions + taken
            over = world.over[entry]
            at_horizon = turn >= task_horizon
            after = world.potential_after[entry] * (0.0 if at_horizon else 1.0)
            base = world.base_reward[entry]
            shaped = base + gamma * after - world.potential_before[entry]
            for column, part in zip(columns, (pair, taken, logprob, value, base, shaped), strict=True):
                column.append(part)
            lengths += running
            won |= running & world.won[entry]
            ends = running & (over | at_horizon)
            terminated |= ends
            running = running & ~ends
            state = np.where(running, world.state[entry], state)
            pair = np.where(running, world.observation[entry] * (actions + 1) + taken, pair)
            if turn == collector_limit:
                break
        last = np.zeros(state.shape)
        if running.any():  # cut by the collector: one more look, for the value alone
            _, value = look()
            check(value, running, "the critic's value at the cut")
            last = np.where(running, value, 0.0)
    pairs, taken, logprobs_, values, base, shaped = (np.stack(x).reshape(turn, count, height) for x in columns)
    flat = np.arange(turn + 1).reshape(-1, 1, 1)
    lengths = lengths.reshape(count, height)
    longer = np.concatenate([values, np.zeros((1, count, height))])
    return Rollouts(
        pairs=pairs,
        actions=taken,
        logprobs=logprobs_,
        values=np.where(flat == lengths, last.reshape(count, height), longer),
        base_rewards=base,
        shaped_rewards=shaped,
        lengths=lengths,
        terminated=terminated.reshape(count, height),
        won=won.reshape(count, height),
    )
