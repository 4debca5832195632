"""The gradient steps of one update: advantages, the printed loss, and its gradient, for every network of a stack.

See :func:`keydoor.training.train_actor_critic` for the loss. Each network has its own: means, the normalisation of the
advantages and the length of the gradient are over its own turns and weights, never over the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding, log_softmax

from keydoor._rollouts import Array, Rollouts
from keydoor._stack import CHUNK, Stack, padded

if TYPE_CHECKING:
    from keydoor.training import TrainingConfig


def advantages(
    rewards: Sequence[float], values: Sequence[float], gamma: float, gae_lambda: float, *, terminated: bool
) -> list[float]:
    """:func:`keydoor.returns.gae_advantages`, bit for bit, without its checks: they cost more than the rest."""
    decay, running, following, found = gamma * gae_lambda, 0.0, values[-1], []
    for t in range(len(rewards) - 1, -1, -1):
        ended = terminated and t == len(rewards) - 1
        delta = rewards[t] - values[t] if ended else rewards[t] + gamma * following - values[t]
        running, following = delta + decay * running, values[t]
        found.append(running)
    return found[::-1]


class Batch(NamedTuple):
    """What the gradient steps of an update have in common. The turns of a network's episodes lie one after the other.

    The longest episodes come first, so that turn t has its episodes in the first ``rows[t]`` rows. What was not played
    has weight 0.
    """

    inputs: Tensor
    """``(networks, turns, rows, inputs)``."""
    rows: list[int]
    actions: Tensor
    """``(networks, turns · rows, 1)``; the others are ``(networks, turns · rows)``."""
    logprobs: Tensor
    advantages: Tensor
    targets: Tensor
    weight: Tensor
    """One over the number of turns that the network's episodes have."""
    played: Array


def prepare(
    stack: Stack,
    played: Rollouts,
    modes: Sequence[str],
    config: TrainingConfig,
    estimate: Callable[..., Sequence[Any]] = advantages,
) -> Batch:
    rewards, lengths = played.rewards(modes), played.lengths
    turns, count, height = rewards.shape
    first, last = [x.transpose(1, 2, 0).tolist() for x in (rewards, played.values)]
    gains = np.zeros((count, height, turns))
    for n, row in enumerate(lengths.tolist()):
        for e, length in enumerate(row):
            if length:
                gains[n, e, :length] = estimate(
                    first[n][e][:length],
                    last[n][e][: length + 1],
                    config.gamma,
                    config.gae_lambda,
                    terminated=bool(played.terminated[n, e]),
                )
    on = np.arange(turns) < lengths[..., None]
    values = played.values[:-1].transpose(1, 2, 0)
    targets = np.where(on, gains + values, 0.0)
    if config.normalise_advantages:
        for n in range(count):  # its own mean and deviation, in the order in which the network's turns were played
            own = gains[n][on[n]]
            spread = own.std()
            gains[n][on[n]] = (own - own.mean()) / (spread + 1e-8 if spread > 0 else 1.0)

    order = np.argsort(-lengths, axis=1, kind="stable")[..., None]
    bound = min(config.task_horizon, config.collector_limit or config.task_horizon, CHUNK)
    rest = -turns % bound

    def arrange(x: Array) -> Array:
        """From (networks, rows, turns) to (networks, turns · rows), sorted, the turns padded to whole chunks."""
        x = np.take_along_axis(x, order, axis=1).transpose(0, 2, 1)
        return np.pad(x, ((0, 0), (0, rest), (0, 0))).reshape(count, -1)

    dtype = stack.weights.dtype
    on_sorted = arrange(on)
    running = on_sorted.reshape(count, -1, height).sum(axis=2).max(axis=0)[:turns]
    pairs, actions = (
        torch.from_numpy(arrange(np.where(on, x.transpose(1, 2, 0), 0))) for x in (played.pairs, played.actions)
    )
    logprobs, gains_, targets_, weight = (
        torch.from_numpy(x).to(dtype)
        for x in (
            arrange(np.where(on, played.logprobs.transpose(1, 2, 0), 0.0)),
            arrange(gains),
            arrange(targets),
            on_sorted / lengths.sum(axis=1).reshape(-1, 1),
        )
    )
    return Batch(
        inputs=embedding(pairs, stack.codes).view(count, turns + rest, height, -1),
        rows=[padded(int(n)) for n in running],
        actions=actions.unsqueeze(-1),
        logprobs=logprobs,
        advantages=gains_,
        targets=targets_,
        weight=weight,
        played=on_sorted,
    )


def loss_terms(logits: Tensor, values: Tensor, batch: Batch, clip: float) -> tuple[Tensor, Tensor, Tensor]:
    """The three parts of the loss at each turn: surrogate (with its sign), squared error, entropy."""
    logprobs = log_softmax(logits, dim=-1)
    ratio = (logprobs.gather(-1, batch.actions).squeeze(-1) - batch.logprobs).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    surrogate = -torch.minimum(ratio * batch.advantages, clipped * batch.advantages)
    error = (values - batch.targets).square()
    return surrogate, error, -(logprobs.exp() * logprobs).sum(dim=-1)


def learn(stack: Stack, batch: Batch, config: TrainingConfig, step: Callable[[], object]) -> list[dict[str, float]]:
    """The gradient steps of one update; ``step`` applies ``stack.gradient``.

    Returns the parts of each network's loss at the first of them.
    """
    figures: list[dict[str, float]] = []
    for _ in range(config.epochs):
        with torch.no_grad():
            states, cells = stack.forward(batch.inputs, batch.rows)
            outputs = stack.heads(states[:, 1:].flatten(1, 2))
        outputs.requires_grad_()
        logits, values = outputs[..., : stack.actions], outputs[..., stack.actions]
        surrogate, error, entropy = loss_terms(logits, values, batch, config.clip)
        loss = surrogate + config.value_coefficient * error - config.entropy_coefficient * entropy
        (outer,) = torch.autograd.grad(loss, outputs, batch.weight)
        with torch.no_grad():
            stack.backward(batch.inputs, states, cells, outer.view(*batch.inputs.shape[:3], -1))
            norm = torch.linalg.vector_norm(stack.gradient, dim=1, keepdim=True)
            stack.gradient.mul_((config.max_gradient_norm / (norm + 1e-6)).clamp(max=1.0))
        step()
        if not figures:
            names = ("policy_loss", "value_loss", "entropy")
            parts = [part.detach().double().numpy() for part in (surrogate, error, entropy)]
            for n, on in enumerate(batch.played):  # in float64, and without the rest: the same in any company
                figures.append({name: float(part[n][on].mean()) for name, part in zip(names, parts, strict=True)})
    return figures
