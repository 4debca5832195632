"""Playing episodes: the one place where a policy meets the environment. (Updates play on its tables: ``_rollouts``.)

:func:`play` steps all its episodes together, a turn at a time, each with a hidden state and a source of random numbers
of its own. See :mod:`keydoor.training` for what that promises.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from keydoor._checks import refuse
from keydoor.env import KeyDoorAgentEnv
from keydoor.policy import RecurrentActorCritic
from keydoor.records import Transition


@dataclass
class Episode:
    """One episode as it was played."""

    transitions: list[Transition] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    """The critic's :math:`V(h_0), \\dots, V(h_{T-1})` while it was played, and at the end the bootstrap value."""

    def rewards(self, reward_mode: str) -> list[float]:
        if reward_mode == "sparse":
            return [transition.base_reward for transition in self.transitions]
        return [transition.shaped_reward for transition in self.transitions]


def play(
    model: RecurrentActorCritic,
    envs: Sequence[KeyDoorAgentEnv],
    observations: Sequence[str | int],
    draws: Sequence[random.Random] | None,
    gamma: float,
) -> list[Episode]:
    """Play one episode in each environment, all of them together, a turn at a time.

    ``observations`` are the first ones, from ``reset``. Each sampled action uses one number of its episode's ``draws``;
    without ``draws`` the play is greedy, and of equally likely actions the one with the lowest index is taken. All
    environments have the same actions and observations.
    """
    episodes = [Episode() for _ in envs]
    names, words = envs[0].world.actions, envs[0].world.observations
    index_of = {word: index for index, word in enumerate(words)}
    seen = [index_of[x] if isinstance(x, str) else x for x in observations]
    previous = [len(names)] * len(envs)
    running = list(range(len(envs)))
    cut: list[int] = []
    with torch.no_grad():
        state = model.initial_state(len(envs))
        while running or cut:
            # Episodes that are over stay in the batch; what is computed for them is not looked at.
            logits, values_now, state = model.step(torch.tensor(seen), torch.tensor(previous), state)
            logprobs = log_softmax(logits.double(), dim=-1)
            choice = logprobs.argmax(dim=-1) if draws is None else _sample(logprobs, draws, running)
            chosen = logprobs.gather(-1, choice.unsqueeze(-1)).squeeze(-1).tolist()
            actions, values = choice.tolist(), values_now.tolist()
            for i in cut:  # turn T of a cut episode is computed for its value alone
                episodes[i].values.append(_number(values[i], "the critic's value at the cut"))
            cut, still_running = [], []
            for i in running:
                name = names[actions[i]]
                logprob = _number(chosen[i], "the log-probability of the action taken")
                episodes[i].values.append(_number(values[i], "the critic's value"))
                after, _, terminated, truncated, info = envs[i].step(name, gamma=gamma)
                after_index = index_of[after] if isinstance(after, str) else after
                episodes[i].transitions.append(
                    Transition(
                        observation=words[seen[i]],
                        action=name,
                        next_observation=words[after_index],
                        behavior_logprob=0.0 if draws is None else logprob,
                        base_reward=info["base_reward"],
                        shaped_reward=info["shaped_reward"],
                        terminated=terminated,
                        truncated=truncated,
                        stop_reason=info["stop_reason"],
                        logprob=logprob,
                        invalid=info["invalid"],
                        potential_before=info["potential_before"],
                        potential_after=info["potential_after"],
                        greedy=draws is None,
                    )
                )
                seen[i], previous[i] = after_index, actions[i]
                if terminated:
                    episodes[i].values.append(0.0)
                elif truncated:
                    cut.append(i)
                else:
                    still_running.append(i)
            running = still_running
    return episodes


def _sample(logprobs: Tensor, draws: Sequence[random.Random], running: Sequence[int]) -> Tensor:
    """One action per row by inversion of its distribution function; rows that are over draw no number."""
    numbers = [0.0] * len(draws)
    for i in running:
        numbers[i] = draws[i].random()
    uniform = torch.tensor(numbers, dtype=logprobs.dtype).unsqueeze(-1)
    cumulative = logprobs.exp().cumsum(dim=-1)
    # Divided by its last entry, the function ends at exactly 1: a draw below 1 always finds an action, and the first
    # action whose entry exceeds the draw never has probability 0.
    return (cumulative / cumulative[:, -1:] <= uniform).sum(dim=-1).clamp(max=logprobs.shape[-1] - 1)


def _number(value: float, name: str) -> float:
    if not math.isfinite(value):
        refuse(name, value, "a finite number: the network has diverged")
    return value


@contextmanager
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
