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
from keydoor._stack import Stack, Tape, padded

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
    """What the gradient steps of an update have in common, in the order of a :class:`~keydoor._stack.Tape`.

    A network's longest episodes come first, so that turn t has its episodes in the first ``rows[t]`` rows. What was not
    played has weight 0.
    """

    inputs: Tensor
    rows: list[int]
    actions: Tensor
    """A column; what follows are vectors."""
    logprobs: Tensor
    advantages: Tensor
    targets: Tensor
    weight: Tensor
    """One over the number of turns that the network's episodes have."""
    entropy_weight: Tensor
    """The same times the entropy's coefficient, a column."""
    error_weight: Tensor
    """The same times twice the coefficient of the squared error."""
    played: list[Array]
    """For each network the rows in which its turns are."""


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

    order = np.argsort(-lengths, axis=1, kind="stable")
    share = np.broadcast_to(1 / lengths.sum(axis=1)[:, None], rewards.shape)
    back = (gains.transpose(2, 0, 1), targets.transpose(2, 0, 1))
    columns = np.stack([played.pairs, played.actions, played.logprobs, *back, share])
    columns = np.take_along_axis(columns, order[None, None], axis=3)
    on_sorted = np.arange(turns)[:, None, None] < np.take_along_axis(lengths, order, axis=1)
    columns *= on_sorted
    rows = [padded(n) for n in on_sorted.sum(axis=2).max(axis=1).tolist()]
    flat = np.concatenate([columns[:, t, :, :n].reshape(len(columns), -1) for t, n in enumerate(rows)], axis=1)
    # The number of the network, from 1, where it has played.
    owners = on_sorted * np.arange(1, count + 1)[:, None]
    owner = np.concatenate([owners[t, :, :n].reshape(-1) for t, n in enumerate(rows)])
    indices = torch.from_numpy(flat[:2].astype(np.int64))
    logprobs, gains_, targets_, weight = torch.from_numpy(flat[2:]).to(stack.weights.dtype)
    return Batch(
        inputs=embedding(indices[0], stack.codes),
        rows=rows,
        actions=indices[1].unsqueeze(-1),
        logprobs=logprobs,
        advantages=gains_,
        targets=targets_,
        weight=weight,
        entropy_weight=(weight * config.entropy_coefficient).unsqueeze(-1),
        error_weight=weight * (2 * config.value_coefficient),
        played=[np.flatnonzero(owner == n + 1) for n in range(count)],
    )


def loss_terms(tape: Tape, batch: Batch, config: TrainingConfig) -> list[Tensor]:
    """The three parts of the loss at each turn: surrogate (with its sign), squared error, entropy.

    Their gradient goes into the tape. With respect to the logits,
    :math:`\\partial\\log\\pi(a)/\\partial\\ell_j = 1_{j=a} - \\pi_j` and
    :math:`\\partial H/\\partial\\ell_j = -\\pi_j(\\log\\pi_j + H)`; the surrogate's own derivative with respect to
    :math:`\\log\\pi(a)` is :math:`\\rho\\hat A` where the minimum is the term that is not clipped, and else 0.
    """
    actions, outputs, outer = tape.stack.actions, tape.forward(), tape.outer
    logprobs = log_softmax(outputs[:, :actions], dim=-1)
    probabilities = logprobs.exp()
    ratio = logprobs.gather(-1, batch.actions).squeeze(-1).sub_(batch.logprobs).exp_()
    free = ratio * batch.advantages
    clipped = ratio.clamp_(1 - config.clip, 1 + config.clip).mul_(batch.advantages)
    entropy = (probabilities * logprobs).sum(dim=-1, keepdim=True).neg_()
    error = outputs[:, actions] - batch.targets

    gain = torch.where(free <= clipped, free, 0).mul_(batch.weight).unsqueeze(-1)
    of_logits = outer[:, :actions]
    torch.addcmul(gain, logprobs.add_(entropy), batch.entropy_weight, out=of_logits).mul_(probabilities)
    of_logits.scatter_add_(-1, batch.actions, gain.neg_())
    torch.mul(error, batch.error_weight, out=outer[:, actions])
    return [torch.minimum(free, clipped).neg_(), error.square_(), entropy.squeeze(-1)]


def learn(stack: Stack, batch: Batch, config: TrainingConfig, step: Callable[[], object]) -> list[dict[str, float]]:
    """The gradient steps of one update; ``step`` applies the stack's ``gradient``.

    Returns the parts of each network's loss at the first of them.
    """
    figures: list[dict[str, float]] = []
    with torch.no_grad():
        tape = Tape(stack, batch.inputs, batch.rows)
        for _ in range(config.epochs):
            parts = loss_terms(tape, batch, config)
            tape.backward()
            norm = torch.linalg.vector_norm(stack.gradient, dim=1, keepdim=True)
            stack.gradient.mul_((config.max_gradient_norm / (norm + 1e-6)).clamp_(max=1.0))
            step()
            if not figures:
                names = ("policy_loss", "value_loss", "entropy")
                columns = [part.double().numpy() for part in parts]
                for on in batch.played:  # in float64, and without the rest: the same in any company
                    means = (float(column[on].mean()) for column in columns)
                    figures.append(dict(zip(names, means, strict=True)))
    return figures
