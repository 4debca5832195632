"""Policies with parameters, as the estimators need them: probabilities and the gradients of their logarithms.

A *score* is the gradient of log pi(a | h). Whatever an estimator is, its value for one episode is a combination of
scores of actions at the histories of the episode, which :meth:`combine` adds up.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, one_hot

from keydoor._checks import finite_sequence, refuse
from keydoor._play import one_thread
from keydoor.exact import History
from keydoor.policy import RecurrentActorCritic
from keydoor.rules import Rules

LARGEST_SCORES = 50_000_000
"""Numbers that the scores of a network may take: 400 megabytes."""

Row = Callable[[History], Hashable]


class Scores(Protocol):
    """Probabilities and scores at a list of histories."""

    @property
    def labels(self) -> tuple[Any, ...]:
        """Names of the parameters."""

    @property
    def probabilities(self) -> Tensor:
        """Of shape (histories, actions)."""

    def combine(self, node: Tensor, coefficient: Tensor) -> Tensor:
        """Sum over turns and actions of coefficient times score.

        ``node`` has shape (episodes, turns), ``coefficient`` (episodes, turns, actions), the result (episodes,
        parameters).
        """


@dataclass(frozen=True, eq=False)
class TableScores:
    """A softmax over each row of a table of logits; the score of a in its row is e_a - pi, elsewhere 0."""

    labels: tuple[Any, ...]
    probabilities: Tensor
    row: Tensor

    def combine(self, node: Tensor, coefficient: Tensor) -> Tensor:
        episodes, _, actions = coefficient.shape
        inner = coefficient - coefficient.sum(-1, keepdim=True) * self.probabilities[node]
        place = self.row[node].unsqueeze(-1) * actions + torch.arange(actions)
        out = torch.zeros(episodes, len(self.labels), dtype=torch.float64)
        return out.scatter_add_(1, place.flatten(1), inner.flatten(1))


@dataclass(frozen=True, eq=False)
class NetworkScores:
    """All scores of a small network, of shape (histories, actions, parameters)."""

    labels: tuple[Any, ...]
    probabilities: Tensor
    scores: Tensor

    def combine(self, node: Tensor, coefficient: Tensor) -> Tensor:
        out = torch.zeros(len(node), len(self.labels), dtype=torch.float64)
        for turn in range(node.shape[1]):
            out += torch.einsum("na,nad->nd", coefficient[:, turn], self.scores[node[:, turn]])
        return out


def is_network(policy: Any) -> bool:
    return hasattr(policy, "initial_state")


def scores_at(policy: Any, row: Row | None, histories: Sequence[History], world: Rules) -> Scores:
    """The scores of a table or a network at these histories; everything is checked here."""
    if is_network(policy):
        if row is not None:
            refuse("row", row, "None, since the policy is a network")
        return _network(policy, histories, world)
    keys, log_policy = logit_table(policy, world)
    number = {key: place for place, key in enumerate(keys)}
    rows = []
    for history in histories:
        key = row_of(history, row)
        if key not in number:
            refuse("policy", [*keys], f"an entry for {key!r:.200}, which is reached")
        rows.append(number[key])
    labels = tuple((key, action) for key in keys for action in world.actions)
    index = torch.tensor(rows, dtype=torch.int64)
    return TableScores(labels, log_policy.exp()[index], index)


def row_of(history: History, row: Row | None) -> Hashable:
    """The key of the table that is used after a history: the last observation, unless a function says otherwise."""
    if row is None:
        return history[-1]
    key = row(history)
    if not isinstance(key, Hashable):
        refuse(f"row({history!r:.200})", key, "a key of the policy")
    return key


def logit_table(policy: Any, world: Rules) -> tuple[list[Any], Tensor]:
    """The keys of a table of logits, and its log-probabilities in double precision."""
    if not isinstance(policy, Mapping) or not policy:
        refuse("policy", policy, "a RecurrentActorCritic, or a mapping from keys to lists of logits, not empty")
    rows = {key: finite_sequence(logits, f"policy[{key!r:.200}]") for key, logits in policy.items()}
    for key, logits in rows.items():
        if len(logits) != len(world.actions):
            refuse(f"policy[{key!r:.200}]", logits, f"{len(world.actions)} logits, one for each action")
    table = torch.tensor([[float(x) for x in logits] for logits in rows.values()], dtype=torch.float64)
    return [*rows], log_softmax(table, dim=-1)


def _network(model: Any, histories: Sequence[History], world: Rules) -> NetworkScores:
    """Scores of a recurrent network: each history gets a copy of the parameters, and its own gradient with it.

    The unit is written out here, because torch's own adds up the gradients of a batch.
    """
    if not isinstance(model, RecurrentActorCritic):
        refuse("policy", model, "a RecurrentActorCritic, or a mapping from keys to lists of logits")
    if model.no_action != len(world.actions):
        refuse("policy", f"a network for {model.no_action} actions", f"one for the {len(world.actions)} of this world")
    model = copy.deepcopy(model).double()
    parts = {n: p.detach() for n, p in model.named_parameters() if n.startswith(("gru.", "policy_head."))}
    labels = tuple((name, place) for name, part in parts.items() for place in range(part.numel()))
    size = len(histories) * len(world.actions) * len(labels)
    if size > LARGEST_SCORES:
        refuse("policy", f"a network of {len(labels)} parameters", f"at most {LARGEST_SCORES:,} scores, not {size:,}")
    probabilities = torch.zeros(len(histories), len(world.actions), dtype=torch.float64)
    scores = torch.zeros(len(histories), len(world.actions), len(labels), dtype=torch.float64)
    by_length: dict[int, list[int]] = {}
    for place, history in enumerate(histories):
        by_length.setdefault(len(history), []).append(place)
    with one_thread():
        for places in by_length.values():
            for start in range(0, len(places), 2048):
                part = torch.tensor(places[start : start + 2048])
                inputs = _inputs([histories[place] for place in part.tolist()], world, model.previous_action)
                probabilities[part], scores[part] = _unroll(parts, inputs, model.hidden_size)
    if not (probabilities.isfinite().all() and scores.isfinite().all()):
        raise ValueError("policy gives probabilities or scores that are not finite; expected a network of numbers")
    return NetworkScores(labels, probabilities, scores)


def _inputs(histories: Sequence[History], world: Rules, previous_action: bool) -> Tensor:
    """One-hot observations and previous actions of histories of one length, (histories, turns, inputs)."""
    seen = [[world.observations.index(o) for o in history[::2]] for history in histories]
    no_action = len(world.actions)
    done = [[no_action, *(world.actions.index(a) for a in history[1::2])] for history in histories]
    previous = torch.tensor(done) if previous_action else torch.full((len(done), len(done[0])), no_action)
    codes = [one_hot(torch.tensor(seen), len(world.observations)), one_hot(previous, no_action + 1)]
    return torch.cat(codes, dim=-1).double()


def _unroll(parts: Mapping[str, Tensor], inputs: Tensor, hidden_size: int) -> tuple[Tensor, Tensor]:
    count = len(inputs)
    own = {n: p.expand(count, *p.shape).clone().requires_grad_() for n, p in parts.items()}

    def linear(weight: str, bias: str, x: Tensor) -> Tensor:
        return torch.einsum("nij,nj->ni", own[weight], x) + own[bias]

    hidden = torch.zeros(count, hidden_size, dtype=torch.float64)
    for x in inputs.unbind(1):
        r_in, z_in, n_in = linear("gru.weight_ih_l0", "gru.bias_ih_l0", x).chunk(3, dim=1)
        r_hidden, z_hidden, n_hidden = linear("gru.weight_hh_l0", "gru.bias_hh_l0", hidden).chunk(3, dim=1)
        z = torch.sigmoid(z_in + z_hidden)
        new = torch.tanh(n_in + torch.sigmoid(r_in + r_hidden) * n_hidden)
        hidden = (1 - z) * new + z * hidden
    logprobs = log_softmax(linear("policy_head.weight", "policy_head.bias", hidden), dim=-1)
    scores = []
    for action in range(logprobs.shape[1]):
        found = torch.autograd.grad(logprobs[:, action].sum(), [*own.values()], retain_graph=True)
        scores.append(torch.cat([part.flatten(1) for part in found], dim=1))
    return logprobs.detach().exp(), torch.stack(scores, dim=1)
