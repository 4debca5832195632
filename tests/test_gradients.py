"""The exact objective of a network: against enumeration, finite differences, and the score-function sum."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from keydoor._play import one_thread
from keydoor.env import KeyDoorAgentEnv
from keydoor.exact import count_histories, evaluate_exactly, histories
from keydoor.gradients import critic_table, exact_gradient, exact_objective, policy_table
from keydoor.policy import RecurrentActorCritic
from keydoor.rules import get_rules
from keydoor.training import collect_episode


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """As the package does it: for networks of this size two threads are slower."""
    with one_thread():
        yield


def network(seed: int = 0, *, double: bool = True, **settings: Any) -> RecurrentActorCritic:
    """A small network whose policy is far from uniform."""
    model = RecurrentActorCritic(seed=seed, **{"hidden_size": 5, "head_scale": 3.0, **settings})
    return model.double() if double else model


def outputs_along(model: RecurrentActorCritic, paths: list[tuple[str, ...]]) -> tuple[Tensor, Tensor]:
    """Log-probabilities and values at every turn of histories of one length, by one call of ``forward``."""
    world = get_rules(colours=(model.no_action - 2) // 2)
    observations = [[world.observations.index(name) for name in path[::2]] for path in paths]
    actions = [[model.no_action, *(world.actions.index(name) for name in path[1::2])] for path in paths]
    logits, values, _ = model(torch.tensor(observations), torch.tensor(actions))
    return torch.log_softmax(logits, dim=-1), values


def by_length(paths: Iterable[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
    return [[*group] for _, group in itertools.groupby(sorted(paths, key=len), key=len)]


def episodes(
    *, rules: str, horizon: int, colours: int = 2, delay: int = 0, collector_limit: int | None = None
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[float, float, float]]]]:
    """All episodes by trying every list of actions: stop reason, what was seen and done, rewards and potentials.

    Of lists that begin alike and end early only the first one counts.
    """
    world = get_rules(rules, colours=colours, delay=delay)
    limit = min(horizon, collector_limit or horizon)
    seen = set()
    for target in world.colours:
        for actions in itertools.product(range(len(world.actions)), repeat=limit):
            state, names, steps, stop = world.start[target], ["room"], [], "collector_limit"
            for turn, action in enumerate(actions):
                outcome = world.table[state][action]
                stop = outcome.stop_reason or ("task_horizon" if turn + 1 == horizon else "collector_limit")
                ended = outcome.stop_reason is not None or turn + 1 == horizon
                after = 0.0 if ended else world.potential[outcome.state]
                names += [world.actions[action], outcome.observation]
                steps.append((outcome.base_reward, world.potential[state], after))
                state = outcome.state
                if outcome.stop_reason:
                    break
            if (target, *names) not in seen:
                seen.add((target, *names))
                yield stop, tuple(names), steps


@pytest.mark.parametrize(
    ("world", "previous_action"),
    [
        ({"rules": "standard", "horizon": 5}, True),
        ({"rules": "standard", "horizon": 4}, False),
        ({"rules": "soft", "horizon": 4, "delay": 1}, True),
        ({"rules": "quiet", "horizon": 3, "colours": 3}, True),
        ({"rules": "quiet", "horizon": 1}, True),
    ],
)
def test_tables_are_the_network_along_each_history(world: dict[str, Any], previous_action: bool) -> None:
    """The tree carries hidden states from parents to children; ``forward`` runs each history from its beginning.

    The distributions are normalised in double precision, so that they add up to 1 within 1e-9 in ``evaluate_exactly``.
    """
    model = network(seed=3, previous_action=previous_action, colours=world.get("colours", 2))
    policy, critic = policy_table(model, **world), critic_table(model, **world)
    assert [*policy] == [*critic] == [history for history, _ in histories(**world)]
    assert len(policy) == count_histories(**world)
    for paths in by_length(policy):
        logprobs, values = outputs_along(model, paths)
        found = torch.tensor([policy[path] for path in paths], dtype=torch.float64)
        assert torch.allclose(found.log(), logprobs[:, -1], atol=1e-12, rtol=0)
        assert torch.allclose(found.sum(1), torch.ones(len(found)).double(), atol=1e-14, rtol=0)
        expected = torch.tensor([critic[path] for path in paths], dtype=torch.float64)
        assert torch.allclose(expected, values[:, -1], atol=1e-12, rtol=0)


def test_a_memory_is_carried() -> None:
    """After the key both clues look the same, and the network still tells them apart: nothing has been merged."""
    table = policy_table(network(seed=1, previous_action=False), horizon=4)
    red, blue = (("room", "inspect", f"clue_{c}", "pickup_red", "key_held") for c in ("red", "blue"))
    assert max(abs(p - q) for p, q in zip(table[red], table[blue], strict=True)) > 0.001


SETTINGS: list[dict[str, Any]] = [
    {"horizon": 6},
    {"horizon": 6, "gamma": 0.9, "reward_mode": "potential"},
    {"rules": "soft", "horizon": 5, "gamma": 0.9},
    {"rules": "quiet", "horizon": 5, "delay": 1},
    {"rules": "soft", "horizon": 4, "colours": 3, "gamma": 0.8},
    {"horizon": 6, "gamma": 0.9, "durations": {"inspect": 3, "pickup_red": 0.5}},
    {"rules": "soft", "horizon": 6, "collector_limit": 4, "gamma": 0.9, "reward_mode": "potential"},
    {"horizon": 6, "collector_limit": 2, "reward_mode": "potential", "gamma": 0.5, "durations": {"inspect": 2}},
    {"horizon": 5, "collector_limit": 5, "reward_mode": "potential", "gamma": 0.5},  # the task's end wins the tie
    {"horizon": 5, "collector_limit": 9},
    {"horizon": 5, "gamma": 0},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_value_equals_the_enumeration(settings: dict[str, Any]) -> None:
    """``evaluate_exactly`` adds every shaped reward; the objective uses that they telescope, and prunes the tree."""
    model = network(seed=1, colours=settings.get("colours", 2))
    expected = float(evaluate_exactly(model, **settings).expected_return)
    assert exact_objective(model, **settings).item() == pytest.approx(expected, abs=1e-12)
    assert exact_objective(model.float(), **settings).item() == pytest.approx(expected, abs=1e-6)


def test_shaping_changes_the_objective_at_a_cut_alone() -> None:
    """G'_0 = G_0 - Phi_0 + gamma^T Phi_T, and Phi is 0 at the start and at true ends."""
    model = network()
    sparse, shaped = (exact_objective(model, horizon=6, reward_mode=mode).item() for mode in ("sparse", "potential"))
    assert sparse == shaped > 0
    cut = {"horizon": 6, "collector_limit": 3}
    sparse, shaped = (exact_objective(model, **cut, reward_mode=mode).item() for mode in ("sparse", "potential"))
    assert sparse == 0 < shaped  # no success takes less than four turns


def test_uniform_policy_in_closed_form() -> None:
    """Uniform play under the standard rules succeeds within six turns with probability 5/1458 (design table).

    Within four turns there is one way for each target: (1/6)^4. There the gradient with respect to a bias is
    (times it was used - 4/6) / 1296, a pickup or an opening being used by half of the targets.
    """
    model = RecurrentActorCritic(head_scale=0).double()
    assert exact_objective(model, horizon=6).item() == pytest.approx(5 / 1458, abs=1e-15)
    _, gradient = exact_gradient(model, horizon=4)
    expected = torch.tensor([1, 0.5, 0.5, 0.5, 0.5, 1], dtype=torch.float64) - 4 / 6
    assert torch.allclose(gradient["policy_head.bias"] * 1296, expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize("settings", [SETTINGS[k] for k in (0, 1, 2, 5, 6)], ids=str)
def test_gradient_equals_finite_differences(settings: dict[str, Any]) -> None:
    """Central differences of the enumeration along random directions: the error is of order h^2, about 1e-9."""
    model = network(seed=2)
    _, gradient = exact_gradient(model, **settings)
    assert max(float(part.abs().max()) for part in gradient.values()) > 1e-4
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        direction = {n: torch.randn(p.shape, generator=generator).double() for n, p in model.named_parameters()}
        slope = sum(float((gradient[name] * part).sum()) for name, part in direction.items())
        ends, h = [], 1e-4
        for sign in (1, -1):
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    parameter += sign * h * direction[name]
            ends.append(float(evaluate_exactly(model, **settings).expected_return))
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    parameter -= sign * h * direction[name]
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(slope, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(
    "settings",
    [
        {"rules": "standard", "horizon": 4, "gamma": 0.9},
        {"rules": "soft", "horizon": 4, "gamma": 0.9},
        {"rules": "standard", "horizon": 5, "collector_limit": 3, "gamma": 0.9, "reward_mode": "potential"},
        {"rules": "quiet", "horizon": 4, "delay": 1, "collector_limit": 3, "reward_mode": "potential"},
    ],
    ids=str,
)
def test_gradient_equals_the_score_function_sum(settings: dict[str, Any]) -> None:
    """Sum over all episodes of P(tau) G(tau) sum_t grad log pi(a_t | h_t), from lists of actions and ``forward``.

    The foil gives the reward to the last action alone.
    """
    model, rest = network(seed=4), dict(settings)
    gamma, mode = rest.pop("gamma", 1), rest.pop("reward_mode", "sparse")
    total, last_only, chance = torch.zeros(()).double(), torch.zeros(()).double(), 0.0
    world = get_rules(rest["rules"], delay=rest.get("delay", 0))
    found = [*episodes(**rest)]
    for paths in by_length({names[:-2] for _, names, _ in found}):
        outputs = dict(zip(paths, outputs_along(model, paths)[0], strict=True))
        for _, names, steps in found:
            if names[:-2] not in outputs:
                continue
            actions = [world.actions.index(name) for name in names[1::2]]
            taken = outputs[names[:-2]][range(len(steps)), actions]
            probability = taken.sum().exp().item() / 2
            chance += probability
            rewards = [r + (gamma * after - before if mode == "potential" else 0) for r, before, after in steps]
            weight = probability * sum(gamma**t * r for t, r in enumerate(rewards))
            if weight:
                total = total + weight * taken.sum()
                last_only = last_only + weight * taken[-1]
    assert chance == pytest.approx(1, abs=1e-12)
    names_and_parameters = [*model.named_parameters()][:6]  # all but the critic's
    expected, foil = (
        torch.autograd.grad(objective, [p for _, p in names_and_parameters], retain_graph=True)
        for objective in (total, last_only)
    )
    _, gradient = exact_gradient(model, **settings)
    for (name, _), part, wrong in zip(names_and_parameters, expected, foil, strict=True):
        assert torch.allclose(gradient[name], part, atol=1e-13, rtol=1e-10)
        assert not torch.allclose(part, wrong, atol=1e-6, rtol=1e-3)


def test_gradient_leaves_the_parameters_alone() -> None:
    model = network(double=False)
    model.gru.bias_hh_l0.requires_grad_(False)
    value, gradient = exact_gradient(model, horizon=5)
    assert value == exact_objective(model, horizon=5).item()
    assert all(parameter.grad is None for parameter in model.parameters())
    assert {*gradient} == {name for name, _ in model.named_parameters()} - {"gru.bias_hh_l0"}
    assert all(gradient[name].dtype == torch.float32 for name in gradient)
    assert not gradient["value_head.weight"].any()
    assert gradient["gru.weight_hh_l0"].any()
    # Nothing can be earned in three turns, and nothing has a gradient then.
    value, gradient = exact_gradient(model, horizon=3)
    assert value == 0
    assert not any(part.any() for part in gradient.values())


def test_critic_is_the_one_that_plays() -> None:
    """The bootstrap value at a cut is the entry of the table for the history up to the cut."""
    model = network(seed=5, double=False)
    table = critic_table(model, rules="soft", horizon=6)
    transitions, bootstrap, report = collect_episode(
        model, KeyDoorAgentEnv(rules="soft", task_horizon=6, collector_limit=2, seed=0), reward_mode="sparse", seed=1
    )
    assert report["truncated"]
    history = ["room"]
    for transition in transitions:
        history += [transition.action, transition.next_observation]
    assert table[tuple(history)] == pytest.approx(bootstrap, abs=1e-6)


class Wrapped(nn.Module):
    """A network of another kind: its state counts the turns, and it masks one action out at the first."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.linspace(-1, 1, 8 * 6).reshape(8, 6).double())

    def initial_state(self, batch: int = 1) -> Tensor:
        return torch.zeros(1, batch, 1)

    def step(self, observations: Tensor, previous: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits = self.table[observations]
        first = torch.zeros_like(logits, dtype=torch.bool)
        first[:, -1] = state[0, :, 0] == 0
        return logits.masked_fill(first, -math.inf), state[0, :, 0], state + 1


def test_other_modules_and_masked_actions() -> None:
    """Whatever has ``initial_state`` and ``step`` will do. Probability 0 gives no NaN, in value and gradient."""
    model = Wrapped()
    table = policy_table(model, horizon=5)
    assert table["room",][-1] == 0.0 < table["room", "inspect", "clue_red"][-1]
    assert critic_table(model, horizon=5)["room", "inspect", "clue_red"] == 1.0
    value, gradient = exact_gradient(model, horizon=5)
    assert value == pytest.approx(float(evaluate_exactly(table, horizon=5).success_probability), abs=1e-15)
    assert gradient["table"].isfinite().all()
    assert gradient["table"].any()


def test_threads_and_random_state_are_left_alone() -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    exact_gradient(network(), horizon=4)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"colours": 3}, r"^model is 'a network for 6 actions'; expected one for the 8 of this world"),
        ({"rules": "soft", "horizon": 12}, r"^horizon is 12; expected at most 1,000,000 histories; .* 116,477,907"),
        ({"rules": "hard"}, r"^rules is 'hard'"),
        ({"horizon": 0}, r"^horizon is 0"),
        ({"delay": -1}, r"^delay is -1"),
    ],
)
def test_bad_worlds_are_named(settings: dict[str, Any], message: str) -> None:
    for function in (policy_table, critic_table, exact_objective, exact_gradient):
        with pytest.raises(ValueError, match=message):
            function(network(), **settings)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.5}, r"^gamma is 1\.5"),
        ({"gamma": math.nan}, r"^gamma is nan"),
        ({"reward_mode": "dense"}, r"^reward_mode is 'dense'"),
        ({"durations": {"inspect": 0}}, r"^durations\['inspect'\] is 0"),
        ({"durations": {"fly": 1}}, r"^a name in durations is 'fly'"),
        ({"collector_limit": 0}, r"^collector_limit is 0"),
    ],
)
def test_bad_objectives_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exact_objective(network(), **settings)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_no_nan_travels_on(bad: float) -> None:
    model = network()
    with torch.no_grad():
        model.policy_head.bias[2] = bad
    for function in (policy_table, exact_objective):
        with pytest.raises(ValueError, match=r"^the logits of a history is .*; expected numbers: .* has diverged"):
            function(model, horizon=4)  # type: ignore[operator]
    with torch.no_grad():
        model.value_head.bias[0] = bad
    with pytest.raises(ValueError, match=rf"^the critic's value is {bad}; expected a finite number"):
        critic_table(model, horizon=4)


@pytest.mark.parametrize("bad", [None, nn.Linear(2, 2), {"room": [1]}, "network"])
def test_what_is_no_network_is_named(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"^model is .*; expected a RecurrentActorCritic, or a module"):
        exact_objective(bad)


def test_a_state_that_cannot_be_divided_is_refused() -> None:
    class Odd(Wrapped):
        def step(self, *arguments: Tensor) -> tuple[Tensor, Tensor, Any]:
            logits, values, _ = super().step(arguments[0], arguments[1], torch.zeros(1, len(arguments[0]), 1))
            return logits, values, [None]

    with pytest.raises(ValueError, match=r"^the state of the model is \[None\]; expected a tensor"):
        policy_table(Odd(), horizon=2)
