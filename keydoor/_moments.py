"""The sums behind :mod:`keydoor.estimators`: coefficients of scores, moments of episodes and of groups."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from keydoor._checks import Number, finite, refuse
from keydoor._episodes import Episodes
from keydoor._scores import Row, Scores, is_network, logit_table, row_of, scores_at
from keydoor.exact import LIMIT, History, Policy, _distribution, count_histories, evaluate_exactly
from keydoor.gradients import policy_table
from keydoor.rules import Rules

if TYPE_CHECKING:
    from keydoor.estimators import Gae, GroupAdvantage, Reinforce, Surrogate, Values


def numbers_at(values: Values, histories: Sequence[History], name: str) -> Tensor:
    """A number for each history, from a constant, a table or a function."""
    if isinstance(values, Mapping):
        found = []
        for history in histories:
            key: Any = history[-1] if history[-1] in values else history
            if key not in values:
                refuse(name, sorted(map(str, values)), f"an entry for {key!r:.200}, which is reached")
            found.append(finite(values[key], f"{name}[{key!r:.200}]"))
    elif callable(values):
        found = [finite(values(history), f"{name}({history!r:.200})") for history in histories]
    else:
        found = [finite(values, name)] * len(histories)
    return torch.tensor([float(x) for x in found], dtype=torch.float64)


def rewards_of(settings: Reinforce | Gae, batch: Episodes) -> Tensor:
    if settings.reward_mode == "sparse":
        return batch.base
    return batch.base + float(settings.gamma) * batch.after - batch.before


def sums_from_here(terms: Tensor, discount: float) -> Tensor:
    """Discounted sums along the turns, each from its own turn on."""
    columns = [terms[:, -1]]
    for column in reversed(terms[:, :-1].unbind(1)):
        columns.append(column + discount * columns[-1])
    return torch.stack(columns[::-1], dim=1)


def turn_discounts(settings: Reinforce | Gae, rewards: Tensor) -> Tensor:
    gamma = float(settings.gamma) if settings.discount_turns else 1.0
    return gamma ** torch.arange(rewards.shape[1], dtype=torch.float64)


class Estimates(NamedTuple):
    """One estimator at one policy, ready to be applied to episodes."""

    surrogate: Surrogate
    scores: Scores
    behaviour: Tensor  # (histories, actions)
    values: Tensor  # baseline or critic, at the histories and at the cuts; empty where there is none
    tokens: Tensor  # (actions, actions): whether two actions share their first token
    has_colour: Tensor  # (actions,): whether an action has a second one

    def probability(self, batch: Episodes) -> Tensor:
        """Of each episode given its target, under the behaviour policy."""
        return self.behaviour[batch.node, batch.action].prod(1)

    def played(self, batch: Episodes) -> Episodes:
        """The episodes that the behaviour policy can play: the others have no ratio."""
        kept = self.probability(batch) > 0
        return Episodes(*(None if column is None else column[kept] for column in batch))  # type: ignore[arg-type]

    def of(self, batch: Episodes) -> Tensor:
        """The estimate from each episode, (episodes, parameters); of a group the part without the size of A."""
        if self.group is None:
            weights = self.surrogate.advantages._weights(batch, self.values)  # type: ignore[union-attr]
        else:  # a success has an advantage not below 0, a failure one not above
            weights = (2.0 * batch.success.double() - 1.0)[:, None].expand(batch.node.shape)
        return self.scores.combine(batch.node, self._coefficients(batch, weights))

    @property
    def group(self) -> GroupAdvantage | None:
        found = self.surrogate.advantages
        return found if hasattr(found, "group_size") else None  # type: ignore[return-value]

    def _coefficients(self, batch: Episodes, weights: Tensor) -> Tensor:
        """What multiplies the score of each action at each turn, (episodes, turns, actions)."""
        current, behaviour = self.scores.probabilities[batch.node], self.behaviour[batch.node]
        if self.surrogate.level != "token":
            own = batch.action.unsqueeze(-1)
            ratio = (current.gather(-1, own) / behaviour.gather(-1, own)).squeeze(-1)
            if self.surrogate.level == "prefix":
                ratio = ratio.cumprod(1)
            elif self.surrogate.level == "trajectory":
                ratio = ratio.prod(1, keepdim=True).expand_as(ratio)
            return torch.zeros_like(current).scatter_(-1, own, self._weighed(ratio, weights).unsqueeze(-1))
        # The verb of the action taken: sums over the actions that share it.
        same = self.tokens[batch.action]
        chosen = torch.zeros_like(current).scatter_(-1, batch.action.unsqueeze(-1), 1.0)
        verb, verb_behaviour = (current * same).sum(-1), (behaviour * same).sum(-1)
        given_verb = current * same / verb.unsqueeze(-1)  # the score of the verb is the mean score given the verb
        found = self._weighed(verb / verb_behaviour, weights).unsqueeze(-1) * given_verb
        taken, taken_behaviour = (current * chosen).sum(-1), (behaviour * chosen).sum(-1)
        ratio = (taken / verb) / (taken_behaviour / verb_behaviour)
        colour = self._weighed(ratio, weights) * self.has_colour[batch.action]
        return found + colour.unsqueeze(-1) * (chosen - given_verb)

    def _weighed(self, ratio: Tensor, weights: Tensor) -> Tensor:
        """Ratio times weight, 0 where the smaller of the two terms of the clipped objective is the constant one."""
        if self.surrogate.clip is not None:
            clip = float(self.surrogate.clip)
            clipped = ((weights > 0) & (ratio > 1 + clip)) | ((weights < 0) & (ratio < 1 - clip))
            weights = weights.masked_fill(clipped, 0.0)
            ratio = ratio.masked_fill(clipped, 0.0)
        return ratio * weights


def estimates(
    surrogate: Surrogate,
    policy: Any,
    row: Row | None,
    world: Rules,
    decided: Sequence[History],
    cuts: Sequence[History],
) -> Estimates:
    """Everything that is looked up at histories, looked up once: those with a decision, and those at a cut."""
    scores = scores_at(policy, row, decided, world)
    behaviour = scores.probabilities
    if surrogate.behaviour is not None:
        behaviour = _behaviour_at(surrogate.behaviour, decided, world)
    verbs = [action.partition("_")[0] for action in world.actions]
    tokens = torch.tensor([[float(a == b) for b in verbs] for a in verbs], dtype=torch.float64)
    values = torch.zeros(0, dtype=torch.float64)
    advantages: Any = surrogate.advantages
    if getattr(advantages, "baseline", None) is not None:
        values = numbers_at(advantages.baseline, decided, "baseline")
    elif hasattr(advantages, "values"):
        values = numbers_at(advantages.values, [*decided, *cuts], "values")
    return Estimates(surrogate, scores, behaviour, values, tokens, (tokens.sum(1) > 1).double())


def _behaviour_at(behaviour: Policy, decided: Sequence[History], world: Rules) -> Tensor:
    """Its probabilities, asked for where it can come; elsewhere zeros. Histories stand behind their beginnings."""
    rows: dict[History, list[float]] = {}
    for history in decided:
        comes = len(history) == 1 or rows[history[:-2]][world.actions.index(history[-2])] > 0
        rows[history] = _played(behaviour, history, world) if comes else [0.0] * len(world.actions)
    return torch.tensor([*rows.values()], dtype=torch.float64)


def _played(behaviour: Policy, history: History, world: Rules) -> list[float]:
    found = _distribution(behaviour, history, world, needed=True)
    return [float(p) for p in found or ()]


def player(
    policy: Any, behaviour: Policy | None, row: Row | None, world: Rules, size: Mapping[str, Any]
) -> Callable[[History], Sequence[float]]:
    """The probabilities with which episodes are sampled, as a function of the history."""
    if behaviour is not None:
        return lambda history: _played(behaviour, history, world)
    if is_network(policy):
        return policy_table(copy.deepcopy(policy).double(), **size).__getitem__
    return _softmax(policy, row, world)


def _softmax(policy: Any, row: Row | None, world: Rules) -> Callable[[History], Sequence[float]]:
    keys, log_policy = logit_table(policy, world)
    table = dict(zip(keys, log_policy.exp().tolist(), strict=True))

    def distribution(history: History) -> Sequence[float]:
        key = row_of(history, row)
        if key not in table:
            refuse("policy", keys, f"an entry for {key!r:.200}, which is reached")
        return table[key]  # type: ignore[no-any-return]

    return distribution


def true_gradient(
    policy: Any, row: Row | None, world: Rules, size: Mapping[str, Any], turns: int, gamma: Number
) -> Tensor | None:
    """From exact action values, over the turns before the cut. Memoryless tables need no tree, whatever the horizon."""
    if is_network(policy):
        plan: Policy = policy_table(copy.deepcopy(policy).double(), **size)
    else:
        plan = _softmax(policy, row, world)
        if row is None:
            plan = {o: plan((o,)) for o in world.observations if o in policy}
        elif count_histories(**size) > LIMIT:
            return None
    nodes = [n for n in evaluate_exactly(plan, gamma=float(gamma), **size).nodes if n.turn < turns]
    scores = scores_at(policy, row, [node.history for node in nodes], world)
    coefficients = [
        [
            float(n.probability) * float(gamma) ** n.turn * float(p) * float(q or 0)
            for p, q in zip(n.policy, n.action_values, strict=True)
        ]
        for n in nodes
    ]
    total = torch.zeros(len(scores.labels), dtype=torch.float64)
    for start in range(0, len(nodes), 4096):
        part = torch.tensor(coefficients[start : start + 4096], dtype=torch.float64)
        total += scores.combine(start + torch.arange(len(part))[:, None], part[:, None, :]).sum(0)
    return total


def enumerated(estimate: Estimates, batches: Iterable[Episodes], targets: int) -> tuple[Tensor, Tensor]:
    """Mean and mean square (as a matrix) of the estimate from one episode."""
    size = len(estimate.scores.labels)
    mean, second = torch.zeros(size, dtype=torch.float64), torch.zeros(size, size, dtype=torch.float64)
    for batch in map(estimate.played, batches):
        probability = estimate.probability(batch) / targets
        found = estimate.of(batch)
        mean += probability @ found
        second += found.T @ (found * probability[:, None])
    return mean, second


def enumerated_groups(estimate: Estimates, batches: Iterable[Episodes], targets: int) -> tuple[Tensor, Tensor]:
    """The same for a group, from the moments of one episode that succeeds, and of one that fails, for each target."""
    size = len(estimate.scores.labels)
    chance = torch.zeros(targets, dtype=torch.float64)
    first = torch.zeros(targets, 2, size, dtype=torch.float64)
    square = torch.zeros(targets, 2, size, size, dtype=torch.float64)
    for batch in map(estimate.played, batches):
        probability, found = estimate.probability(batch), estimate.of(batch)
        for target in range(targets):
            for failed, outcome in enumerate((batch.success, ~batch.success)):
                here = outcome & (batch.target == target)
                part, weight = found[here], probability[here]
                first[target, failed] += weight @ part
                square[target, failed] += part.T @ (part * weight[:, None])
            chance[target] += probability[batch.success & (batch.target == target)].sum()
    group: Any = estimate.group
    (up, down), count = signals(group), group.group_size
    mean, second = torch.zeros(size, dtype=torch.float64), torch.zeros(size, size, dtype=torch.float64)
    for p, (u_1, u_0), (m_1, m_0) in zip(chance.clamp(max=1.0).tolist(), first, square, strict=True):
        others = binomial(p, count - 1)
        mean += (others @ up[1:]) * u_1 + (others @ down[:-1]) * u_0
        second += ((others @ up[1:].square()) * m_1 + (others @ down[:-1].square()) * m_0) / count
        if count > 1:
            rest = binomial(p, count - 2)
            both = (rest @ up[2:].square()) * torch.outer(u_1, u_1) + (rest @ down[:-2].square()) * torch.outer(
                u_0, u_0
            )
            mixed = (rest @ (up[1:-1] * down[1:-1])) * torch.outer(u_1, u_0)
            second += (both + mixed + mixed.T) * (count - 1) / count
    return mean / targets, second / targets


def signals(group: GroupAdvantage) -> tuple[Tensor, Tensor]:
    """The advantage of a success, and minus that of a failure, in a group with 0, ..., G successes.

    What :func:`keydoor.groups.group_advantages` gives for rewards 1 and 0, without its care for other numbers.
    """
    size = group.group_size
    up, down = [0.0] * (size + 1), [0.0] * (size + 1)  # all alike: no signal
    for successes in range(1, size):
        share = successes / size
        variance = successes * (size - successes) / (size * (size - group.ddof))
        scale = math.sqrt(variance) + float(group.epsilon) if group.scale else 1.0
        up[successes], down[successes] = (1 - share) / scale, share / scale
    return torch.tensor(up, dtype=torch.float64), torch.tensor(down, dtype=torch.float64)


def binomial(p: float, count: int) -> Tensor:
    """Probabilities of 0, ..., count successes."""
    found = [math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1)]
    return torch.tensor(found, dtype=torch.float64)


def sample(estimate: Estimates, batches: Iterable[Episodes], episodes: int) -> Tensor:
    """Estimates from sampled episodes, or groups: (estimates, parameters)."""
    found = torch.zeros(episodes, len(estimate.scores.labels), dtype=torch.float64)
    success = torch.zeros(episodes, dtype=torch.bool)
    for batch in batches:
        found[batch.number] = estimate.of(batch)
        success[batch.number] = batch.success
    group = estimate.group
    if group is None:
        return found
    up, down = signals(group)
    outcomes = success.reshape(-1, group.group_size)
    successes = outcomes.sum(1, keepdim=True)
    size = torch.where(outcomes, up[successes], down[successes])
    return (size.unsqueeze(-1) * found.reshape(*outcomes.shape, -1)).mean(1)
