r"""The exact world for a network: success, return and the policy gradient, without sampling.

A recurrent policy depends on the whole history, so all histories are walked through, a turn at a time, each level of
the tree as one batch. Along the way from the root the log-probabilities of the actions add up, and the expected return
is a finite sum over the pairs of a history and an action that pays:

.. math:: J(\theta) = \sum_{h, a} \Pr(o_{1:t} \mid a_{0:t-1})\, \gamma^{\tau_0 + \dots + \tau_{t-1}}\, R(h, a)\,
          \exp \sum_{k \le t} \log \pi_\theta(a_k \mid h_k),

where :math:`\Pr(o_{1:t} \mid a_{0:t-1})` is what chance contributes and :math:`R(h, a)` the mean reward given what the
agent knows. Autograd of this sum is the policy gradient itself. Histories from which no reward can be reached in time
have no term in it, and are left out.

Everything behind the logits is computed in double precision. A network that is in training mode stays in it: one with
dropout is another policy at each call, and should be brought to ``eval()`` first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from keydoor._checks import Number, one_of, refuse, unit_interval, whole
from keydoor._play import one_thread
from keydoor.exact import (
    BeliefModel,
    History,
    _discounts,
    _walk,
    belief_model,
    check_size,
)
from keydoor.rules import REWARD_MODES, get_rules


def policy_table(
    model: nn.Module, *, rules: str = "standard", horizon: int = 8, colours: int = 2, delay: int = 0
) -> dict[History, tuple[float, ...]]:
    """What a network does after each history: its policy as a table, for :func:`keydoor.exact.evaluate_exactly`.

    Args:
        model: a :class:`keydoor.policy.RecurrentActorCritic`, or a module with its ``initial_state`` and ``step`` whose
            state is a tensor with the episodes in its second dimension.
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1.
        colours: number of colours, at least 2; the network has to be made for as many.
        delay: turns between a clue and the next valid pickup, at least 0.

    Returns:
        From each history at which the agent decides, in the order of :func:`keydoor.exact.histories`, to the
        probabilities of the actions, which add up to 1 within :data:`keydoor.exact.ROUNDING`.

    Raises:
        ValueError: an argument is outside of its range, there are more histories than :data:`keydoor.exact.LIMIT`, the
            network is for other actions, or it returns NaN or plus infinity.

    Example:
        >>> from keydoor.policy import RecurrentActorCritic
        >>> table = policy_table(RecurrentActorCritic(head_scale=0), horizon=3)
        >>> len(table), [round(p, 4) for p in table["room", "inspect", "clue_red"]]
        (19, [0.1667, 0.1667, 0.1667, 0.1667, 0.1667, 0.1667])
    """
    size = {"rules": rules, "horizon": horizon, "colours": colours, "delay": delay}
    outputs = _whole_tree(model, **size)  # type: ignore[arg-type]
    rows = [row for logits, _ in outputs for row in _log_policy(logits).exp().tolist()]
    return {history: tuple(row) for (history, _), row in zip(_names(**size), rows, strict=True)}  # type: ignore[arg-type]


def critic_table(
    model: nn.Module, *, rules: str = "standard", horizon: int = 8, colours: int = 2, delay: int = 0
) -> dict[History, float]:
    """What the critic says after each history, next to which the exact value can be put.

    Args:
        model: as for :func:`policy_table`.
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1.
        colours: number of colours, at least 2; the network has to be made for as many.
        delay: turns between a clue and the next valid pickup, at least 0.

    Returns:
        From each history at which the agent decides, in the order of :func:`keydoor.exact.histories`, to
        the critic's value, a finite number.

    Raises:
        ValueError: as :func:`policy_table`.

    Example:
        >>> from keydoor.exact import evaluate_exactly
        >>> from keydoor.policy import RecurrentActorCritic
        >>> model = RecurrentActorCritic(seed=0)
        >>> critic, exact = critic_table(model, horizon=4), evaluate_exactly(model, horizon=4)
        >>> all(abs(critic[node.history] - node.value) < 1 for node in exact.nodes)
        True
    """
    size = {"rules": rules, "horizon": horizon, "colours": colours, "delay": delay}
    values = torch.cat([values for _, values in _whole_tree(model, **size)])  # type: ignore[arg-type]
    if not values.isfinite().all():
        refuse("the critic's value", float(values[~values.isfinite()][0]), "a finite number: the network has diverged")
    return {history: value for (history, _), value in zip(_names(**size), values.tolist(), strict=True)}  # type: ignore[arg-type]


def exact_objective(
    model: nn.Module,
    *,
    rules: str = "standard",
    horizon: int = 8,
    colours: int = 2,
    delay: int = 0,
    gamma: Number = 1,
    reward_mode: str = "sparse",
    durations: Mapping[str, Number] | None = None,
    collector_limit: int | None = None,
) -> Tensor:
    r"""The expected return of a network, as a tensor with a gradient: its autograd is the exact policy gradient.

    .. math:: \nabla J(\theta) = \sum_{\tau} P_\theta(\tau)\, G_0(\tau) \sum_t \nabla \log \pi_\theta(a_t \mid h_t),
              \qquad J(\theta) = \sum_\tau P_\theta(\tau)\, G_0(\tau)

    With ``gamma=1`` and the sparse reward :math:`J` is the probability of success. The shaped rewards of an episode
    add up to :math:`G_0 - \Phi_0 + \gamma^T \Phi_T`, where :math:`\Phi_T` is 0 at true ends; so they change :math:`J`
    only where the collector cuts, and are counted there.

    Args:
        model: as for :func:`policy_table`; its parameters get the gradient, in their own precision.
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        horizon: turns that the task allows, at least 1; reaching it is a true end.
        colours: number of colours, at least 2; the network has to be made for as many.
        delay: turns between a clue and the next valid pickup, at least 0.
        gamma: discount in [0, 1] per unit of time.
        reward_mode: ``"sparse"``, the base reward, or ``"potential"``, the shaped one.
        durations: how long each action takes, positive numbers by name; what is missing takes 1. The reward of an
            action counts from its start.
        collector_limit: turn at which the collector cuts, at least 1; nothing is added there. ``None``: never.

    Returns:
        A scalar in double precision. It has no gradient where no policy can earn anything, as at horizons below 4.

    Raises:
        ValueError: as :func:`policy_table`, or for ``gamma``, ``reward_mode``, ``durations`` or ``collector_limit``.

    Source:
        Williams (1992), section 4, for the gradient; Ng, Harada, Russell (1999) for the shaped rewards.

    Example:
        >>> from keydoor.policy import RecurrentActorCritic
        >>> model = RecurrentActorCritic(head_scale=0)  # uniform: success in four turns has probability (1/6)**4
        >>> success = exact_objective(model, horizon=4)
        >>> success.backward()
        >>> round(1296 * success.item(), 9), [round(6 * 1296 * g) for g in model.policy_head.bias.grad.tolist()]
        (1.0, [2, -1, -1, -1, -1, 2])
    """
    world = get_rules(rules, colours=colours, delay=delay)
    horizon = whole(horizon, "horizon", least=1)
    limit = horizon if collector_limit is None else whole(collector_limit, "collector_limit", least=1)
    discount = torch.tensor(
        [float(d) for d in _discounts(world, unit_interval(gamma, "gamma"), durations)], dtype=torch.float64
    )
    shaped = one_of(reward_mode, "reward_mode", REWARD_MODES) == "potential"
    _check_network(model, len(world.actions))
    check_size(rules=rules, horizon=horizon, colours=colours, delay=delay)
    levels, before = _earning_tree(rules, horizon, colours, delay, min(limit, horizon), shaped)
    total = torch.zeros((), dtype=torch.float64) - before
    reach = torch.zeros(1, dtype=torch.float64)  # log-probability of the actions so far
    weight = torch.ones(1, dtype=torch.float64)  # chance times discount
    log_policy = reach[:, None]
    with one_thread():
        for level, (logits, _) in zip(levels, _outputs(model, [paid.level for paid in levels]), strict=True):
            place = level.level
            if place.parent is not None:
                reach = reach[place.parent] + log_policy[place.parent, place.action]
                weight = weight[place.parent] * place.chance * discount[place.action]
            log_policy = _log_policy(logits)
            if len(level.rows):
                earned = level.base + level.kept * discount[level.columns]
                chosen = reach[level.rows] + log_policy[level.rows, level.columns]
                total = total + chosen.exp() @ (weight[level.rows] * earned)
    return total


def exact_gradient(model: nn.Module, **settings: Any) -> tuple[float, dict[str, Tensor]]:
    """The exact objective and its gradient, without touching the ``grad`` of the parameters.

    Args:
        model: as for :func:`policy_table`.
        settings: as for :func:`exact_objective`.

    Returns:
        The value, and for each parameter that requires a gradient a tensor of its shape and precision, with zeros for
        those on which the policy does not depend, such as the critic's.

    Raises:
        ValueError: as :func:`exact_objective`; or the gradient is not finite.

    Example:
        >>> from keydoor.policy import RecurrentActorCritic
        >>> success, gradient = exact_gradient(RecurrentActorCritic(head_scale=0), horizon=6)
        >>> abs(success - 5 / 1458) < 1e-9, len(gradient["policy_head.bias"]), float(gradient["value_head.bias"])
        (True, 6, 0.0)
    """
    value = exact_objective(model, **settings)
    names, parameters = zip(*[(n, p) for n, p in model.named_parameters() if p.requires_grad], strict=True)
    found: Sequence[Tensor | None] = [None] * len(names)
    if value.requires_grad:
        with one_thread():
            found = torch.autograd.grad(value, parameters, allow_unused=True)
    gradient = {n: torch.zeros_like(p) if g is None else g for n, p, g in zip(names, parameters, found, strict=True)}
    for name, part in gradient.items():
        if not part.isfinite().all():
            refuse(f"the gradient of {name}", float(part[~part.isfinite()][0]), "finite numbers")
    return value.item(), gradient


# --- the tree as tensors --------------------------------------------------------------------------------------------


class _Level(NamedTuple):
    """The histories of one turn, in the order of :func:`keydoor.exact.histories`; one entry of each for a history."""

    parent: Tensor | None  # place in the level before; None for the root
    action: Tensor  # of the turn before
    observation: Tensor
    belief: Tensor
    chance: Tensor  # of the observation, given the action


class _Earning(NamedTuple):
    """A level without the histories from which nothing can be earned, and the pairs in it that earn something."""

    level: _Level
    rows: Tensor
    columns: Tensor
    base: Tensor  # mean base reward
    kept: Tensor  # mean potential kept at a cut, before the discount of the action


def _children(model: BeliefModel) -> tuple[Tensor, Tensor, Tensor]:
    """For each belief how many branches go on, where they begin in the list of all, and that list: four columns."""
    index = {name: number for number, name in enumerate(model.world.observations)}
    rows = [
        [
            (a, index[b.observation], b.belief, float(b.probability))
            for a, bs in enumerate(row)
            for b in bs
            if b[2] is not None
        ]
        for row in model.branches
    ]
    counts = torch.tensor([len(row) for row in rows])
    return (
        counts,
        counts.cumsum(0) - counts,
        torch.tensor([entry for row in rows for entry in row], dtype=torch.float64),
    )


@lru_cache(maxsize=4)
def _tree(rules: str, horizon: int, colours: int, delay: int) -> tuple[_Level, ...]:
    model = belief_model(get_rules(rules, colours=colours, delay=delay))
    counts, first, entries = _children(model)
    seen = model.world.observations.index(model.world.start_observation)
    no_action = len(model.world.actions)
    one = torch.ones(1, dtype=torch.float64)
    levels = [_Level(None, torch.tensor([no_action]), torch.tensor([seen]), torch.tensor([model.start]), one)]
    for _ in range(horizon - 1):
        count = counts[levels[-1].belief]
        parent = torch.arange(len(count)).repeat_interleave(count)
        within = torch.arange(len(parent)) - (count.cumsum(0) - count)[parent]
        entry = entries[first[levels[-1].belief[parent]] + within]
        action, observation, belief = entry[:, :3].long().unbind(1)
        levels.append(_Level(parent, action, observation, belief, entry[:, 3]))
    return tuple(levels)


@lru_cache(maxsize=16)
def _earning_tree(
    rules: str, horizon: int, colours: int, delay: int, turns: int, shaped: bool
) -> tuple[tuple[_Earning, ...], float]:
    """The part of the tree that earns, to the end or the cut; and the potential at the start, which shaping takes."""
    model = belief_model(get_rules(rules, colours=colours, delay=delay))
    base = [[float(sum(b.probability * b.base_reward for b in bs)) for bs in row] for row in model.branches]
    kept = [[float(sum(b.probability * b.potential_after for b in bs)) for bs in row] for row in model.branches]
    base_table, kept_table = (torch.tensor(rows, dtype=torch.float64) for rows in (base, kept))
    if not shaped or turns == horizon:  # the task's horizon is a true end, after which no potential is left
        kept_table = torch.zeros_like(kept_table)
    found: list[_Earning] = []
    levels = _tree(rules, horizon, colours, delay)[:turns]
    for turn, level in reversed([*enumerate(levels)]):
        pays = base_table[level.belief]
        keeps = kept_table[level.belief] if turn == turns - 1 else torch.zeros_like(pays)
        needed_here = ((pays != 0) | (keeps != 0)).any(1)
        if found:
            parents = found[-1].level.parent
            needed_here[parents] = True
            renumbered = needed_here.cumsum(0) - 1
            found[-1] = found[-1]._replace(level=found[-1].level._replace(parent=renumbered[parents]))
        if not needed_here.any():
            continue  # nothing is earned here or later
        parent = None if level.parent is None else level.parent[needed_here]
        kept_level = _Level(parent, *(column[needed_here] for column in level[1:]))
        pays, keeps = pays[needed_here], keeps[needed_here]
        rows, columns = ((pays != 0) | (keeps != 0)).nonzero(as_tuple=True)
        found.append(_Earning(kept_level, rows, columns, pays[rows, columns], keeps[rows, columns]))
    return tuple(reversed(found)), float(model.potential[model.start]) if shaped else 0.0


def _names(rules: str, horizon: int, colours: int, delay: int) -> Iterator[tuple[History, int]]:
    return _walk(belief_model(get_rules(rules, colours=colours, delay=delay)), horizon)


# --- the network on the tree ----------------------------------------------------------------------------------------


def _check_network(model: Any, actions: int) -> None:
    if not isinstance(model, nn.Module) or not all(
        callable(getattr(model, x, None)) for x in ("initial_state", "step")
    ):
        refuse("model", model, "a RecurrentActorCritic, or a module with its initial_state and step")
    made_for = getattr(model, "no_action", actions)  # a wrapped network may not say what it is for
    if made_for != actions:
        refuse("model", f"a network for {made_for} actions", f"one for the {actions} of this world")


def _whole_tree(model: nn.Module, *, rules: str, horizon: int, colours: int, delay: int) -> list[tuple[Tensor, Tensor]]:
    """Logits and values of all histories, without gradients."""
    world = get_rules(rules, colours=colours, delay=delay)
    horizon = whole(horizon, "horizon", least=1)
    _check_network(model, len(world.actions))
    check_size(rules=rules, horizon=horizon, colours=colours, delay=delay)
    with torch.no_grad(), one_thread():
        return [*_outputs(model, _tree(rules, horizon, colours, delay))]


def _outputs(model: Any, levels: Sequence[_Level]) -> Iterator[tuple[Tensor, Tensor]]:
    """Logits and values of the histories of each level."""
    state = model.initial_state(1)
    for level in levels:
        if level.parent is not None:
            if not isinstance(state, Tensor) or state.dim() < 2:
                refuse("the state of the model", state, "a tensor with the episodes in its second dimension")
            state = state.index_select(1, level.parent)
        logits, values, state = model.step(level.observation, level.action, state)
        yield logits, values


def _log_policy(logits: Tensor) -> Tensor:
    """Log-probabilities in double precision. Minus infinity is let in: an action that is masked out."""
    found = log_softmax(logits.double(), dim=-1)
    if found.isnan().any():
        row = logits[found.isnan().any(-1)][0].tolist()
        refuse("the logits of a history", row, "numbers: the network has diverged")
    return found
