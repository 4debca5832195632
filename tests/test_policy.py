"""The recurrent actor-critic: its equations, its two ways of use, its initial weights."""

from __future__ import annotations

import copy
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from keydoor.policy import NO_ACTION, RecurrentActorCritic
from keydoor.rules import ACTIONS, OBSERVATIONS

BATCH, TURNS = 5, 7


def random_inputs(seed: int, batch: int = BATCH, turns: int = TURNS) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    observations = torch.randint(len(OBSERVATIONS), (batch, turns), generator=generator)
    previous = torch.randint(len(ACTIONS) + 1, (batch, turns), generator=generator)
    previous[:, 0] = NO_ACTION
    return observations, previous


def by_hand(model: RecurrentActorCritic, observations: list[int], previous: list[int], reset: str) -> list[list[float]]:
    """Logits along one episode from the equations of the gated recurrent unit, in plain Python.

    .. math:: r = \\sigma(W_{ir}x + b_{ir} + W_{hr}h + b_{hr}), \\quad z = \\sigma(\\dots), \\quad
              n = \\tanh(W_{in}x + b_{in} + r \\odot (W_{hn}h + b_{hn})), \\quad h' = (1 - z) \\odot n + z \\odot h

    ``reset="before"`` is the other unit that goes by the same name, with :math:`W_{hn}(r \\odot h)`.
    """
    size = model.hidden_size
    w_i, w_h, b_i, b_h = (parameter.tolist() for parameter in model.gru.parameters())
    head, bias = model.policy_head.weight.tolist(), model.policy_head.bias.tolist()

    def dot(weights: list[float], vector: list[float]) -> float:
        return math.fsum(w * v for w, v in zip(weights, vector, strict=True))

    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    hidden, logits = [0.0] * size, []
    for observation, action in zip(observations, previous, strict=True):
        x = [float(i == observation) for i in range(len(OBSERVATIONS))]
        x += [float(i == action) for i in range(len(ACTIONS) + 1)]
        r = [sigmoid(dot(w_i[k], x) + b_i[k] + dot(w_h[k], hidden) + b_h[k]) for k in range(size)]
        z = [sigmoid(dot(w_i[k], x) + b_i[k] + dot(w_h[k], hidden) + b_h[k]) for k in range(size, 2 * size)]
        n = []
        for j in range(size):
            k = 2 * size + j
            if reset == "after":
                inner = r[j] * (dot(w_h[k], hidden) + b_h[k])
            else:
                inner = dot(w_h[k], [a * b for a, b in zip(r, hidden, strict=True)]) + b_h[k]
            n.append(math.tanh(dot(w_i[k], x) + b_i[k] + inner))
        hidden = [(1 - z[j]) * n[j] + z[j] * hidden[j] for j in range(size)]
        logits.append([dot(head[a], hidden) + bias[a] for a in range(len(ACTIONS))])
    return logits


def test_equations() -> None:
    """The network against its printed equations, in double precision; the reset gate elsewhere makes another unit."""
    model = RecurrentActorCritic(seed=3, hidden_size=4, head_scale=1.0).double()
    observations, previous = random_inputs(0, batch=1)
    logits = model(observations, previous)[0][0].tolist()
    expected = by_hand(model, observations[0].tolist(), previous[0].tolist(), reset="after")
    foil = by_hand(model, observations[0].tolist(), previous[0].tolist(), reset="before")
    assert np.allclose(logits, expected, rtol=0, atol=1e-12)
    assert not np.allclose(logits, foil, rtol=0, atol=1e-4)


def test_shapes() -> None:
    model = RecurrentActorCritic(seed=0, hidden_size=3)
    logits, values, state = model(*random_inputs(0))
    assert logits.shape == (BATCH, TURNS, len(ACTIONS))
    assert values.shape == (BATCH, TURNS)
    assert state.shape == model.initial_state(BATCH).shape == (1, BATCH, 3)
    assert not model.initial_state(2).any()


def test_steps_agree_with_the_sequence() -> None:
    """H1: :math:`\\pi(\\cdot\\mid h_t)` must not depend on whether the turns come one by one or at once.

    The foil drops the state at every call, as an evaluation that forgets to hand it on does (public reports:
    openai/baselines#340, notadamking/RLTrader#49).
    """
    model = RecurrentActorCritic(seed=1, head_scale=1.0)
    observations, previous = random_inputs(1)
    logits, values, last = model(observations, previous)
    state, stepped, forgotten = model.initial_state(BATCH), [], []
    for t in range(TURNS):
        forgotten.append(model.step(observations[:, t], previous[:, t], model.initial_state(BATCH))[0])
        logits_t, values_t, state = model.step(observations[:, t], previous[:, t], state)
        stepped.append(logits_t)
        assert torch.allclose(values_t, values[:, t], atol=1e-6)
    assert torch.allclose(torch.stack(stepped, 1), logits, atol=1e-6)
    assert torch.allclose(state, last, atol=1e-6)
    assert torch.allclose(forgotten[0], logits[:, 0], atol=1e-6), "at the first turn there is nothing to forget"
    assert not torch.allclose(torch.stack(forgotten, 1), logits, atol=1e-3)


def test_a_sequence_can_be_cut_and_continued() -> None:
    model = RecurrentActorCritic(seed=1, head_scale=1.0)
    observations, previous = random_inputs(2)
    whole, _, _ = model(observations, previous)
    first, _, state = model(observations[:, :3], previous[:, :3])
    rest, _, _ = model(observations[:, 3:], previous[:, 3:], state)
    assert torch.allclose(torch.cat([first, rest], 1), whole, atol=1e-6)
    afresh, _, _ = model(observations[:, 3:], previous[:, 3:])
    assert not torch.allclose(afresh, whole[:, 3:], atol=1e-3)


def test_an_episode_is_not_touched_by_its_batch() -> None:
    """Each row alone gives what it gives in company, and in another order; only rounding may differ."""
    model = RecurrentActorCritic(seed=2, head_scale=1.0)
    observations, previous = random_inputs(3)
    logits, values, _ = model(observations, previous)
    order = [3, 0, 4, 2, 1]
    shuffled = model(observations[order], previous[order])[0]
    assert torch.allclose(shuffled, logits[order], atol=1e-6)
    for i in range(BATCH):
        alone, value, _ = model(observations[i : i + 1], previous[i : i + 1])
        assert torch.allclose(alone[0], logits[i], atol=1e-6)
        assert torch.allclose(value[0], values[i], atol=1e-6)


def test_previous_action_can_be_hidden() -> None:
    """With ``previous_action=False`` nothing depends on it; by default the very first use of it is seen."""
    observations, previous = random_inputs(4)
    other = previous.clone()
    other[:, 1:] = (other[:, 1:] + 1) % (len(ACTIONS) + 1)
    blind = RecurrentActorCritic(seed=0, head_scale=1.0, previous_action=False)
    assert torch.equal(blind(observations, previous)[0], blind(observations, other)[0])
    seeing = RecurrentActorCritic(seed=0, head_scale=1.0)
    first, second = seeing(observations, previous)[0], seeing(observations, other)[0]
    assert torch.equal(first[:, 0], second[:, 0])
    assert not torch.allclose(first[:, 1:], second[:, 1:], atol=1e-3)


def test_seed_decides_the_weights_and_nothing_else_does() -> None:
    """H3: a local generator. Seeding the global one changes nothing, and building a network leaves it where it was."""

    def weights(seed: int) -> list[Tensor]:
        return list(RecurrentActorCritic(seed=seed).parameters())

    torch.manual_seed(1)
    first = weights(7)
    torch.manual_seed(2)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    second = weights(7)
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert before[:2] == after[:2]
    assert torch.equal(before[2], after[2])
    assert not any(torch.equal(a, b) for a, b in zip(first, weights(8), strict=True))
    torch.nn.Linear(2, 2)  # the foil: a layer of torch does move the global generator
    assert not torch.equal(after[2], torch.get_rng_state())


def test_initial_weights() -> None:
    """All are uniform within 1/√n, the policy head's a hundredth of that, so no logit exceeds .01 (n + 1) / √n.

    The bound holds since each hidden unit lies in (−1, 1). With ``head_scale=1`` the same network breaks it.
    """
    size = 32
    model = RecurrentActorCritic(seed=0, hidden_size=size)
    bound = 1 / math.sqrt(size)
    heads = {id(model.policy_head.weight), id(model.policy_head.bias)}
    for parameter in model.parameters():
        limit = bound * (0.01 if id(parameter) in heads else 1.0)
        assert parameter.abs().max() <= limit * (1 + 1e-6)
    weights = model.gru.weight_hh_l0.flatten()
    assert weights.abs().max() > 0.99 * bound  # 3072 draws: all below .99 of the bound has probability 4e-14
    assert weights.mean().abs() < 5 * bound / math.sqrt(3 * len(weights))  # five standard deviations of the mean
    largest = 0.01 * (size + 1) * bound
    assert model(*random_inputs(5))[0].abs().max() <= largest
    plain = RecurrentActorCritic(seed=0, hidden_size=size, head_scale=1.0)
    assert plain(*random_inputs(5))[0].abs().max() > largest
    assert torch.equal(plain.gru.weight_hh_l0, model.gru.weight_hh_l0)


def test_copy_and_file_keep_everything(tmp_path: Path) -> None:
    model = RecurrentActorCritic(seed=4, gamma=0.5)
    twin = copy.deepcopy(model)
    assert twin.gamma == 0.5
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    other = RecurrentActorCritic(seed=5, gamma=0.5)
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    inputs = random_inputs(6)
    for copied in (twin, other):
        assert torch.equal(copied(*inputs)[0], model(*inputs)[0])


@pytest.mark.parametrize(
    "arguments",
    [
        {"seed": -1},
        {"seed": 1.0},
        {"seed": True},
        {"seed": 2**63},
        {"hidden_size": 0},
        {"head_scale": math.nan},
        {"head_scale": math.inf},
        {"gamma": 1.5},
        {"gamma": math.nan},
        {"previous_action": 1},
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object]) -> None:
    (name,) = arguments
    with pytest.raises(ValueError, match=f"^{name} is "):
        RecurrentActorCritic(**arguments)  # type: ignore[arg-type]


def test_bad_inputs_are_refused() -> None:
    model = RecurrentActorCritic(seed=0)
    observations, previous = random_inputs(7)
    with pytest.raises(ValueError, match="equal shapes"):
        model(observations, previous[:, :-1])
    with pytest.raises(ValueError, match="equal shapes"):
        model(observations[0], previous[0])
    with pytest.raises(ValueError, match="observations holds what is no index below 8"):
        model(torch.full_like(observations, len(OBSERVATIONS)), previous)
    for bad in (-1, NO_ACTION + 1):
        with pytest.raises(ValueError, match="previous_actions holds what is no index below 7"):
            model(observations, torch.full_like(previous, bad))


INDICES = torch.zeros(1, 1, dtype=torch.int64)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (([[0]], INDICES), r"observations is \[\[0\]\]; expected a tensor of integers"),
        ((INDICES.float(), INDICES), r"observations is tensor\(\[\[0\.\]\]\); expected a tensor of integers"),
        ((INDICES, INDICES.bool()), "previous_actions is .*; expected a tensor of integers"),
        ((INDICES[:, :0], INDICES[:, :0]), "equal shapes .* turns at least 1"),
        ((INDICES, INDICES, torch.zeros(1, 2, 32)), r"state is \(torch.float32, \(1, 2, 32\)\); expected None, or a"),
        ((INDICES, INDICES, torch.zeros(1, 32)), "state is "),
        ((INDICES, INDICES, torch.zeros(1, 1, 32).double()), r"state is \(torch.float64, "),
        ((INDICES, INDICES, 5), "state is 5; expected None, or a tensor"),
    ],
)
def test_inputs_of_another_kind_are_named(inputs: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"{message}"):
        RecurrentActorCritic(seed=0)(*inputs)


def test_inputs_of_one_turn_are_named() -> None:
    model = RecurrentActorCritic(seed=0)
    with pytest.raises(ValueError, match=r"^observations is 0; expected a tensor"):
        model.step(0, INDICES[0], model.initial_state())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^previous_actions is 6; expected a tensor"):
        model.step(INDICES[0], 6, model.initial_state())  # type: ignore[arg-type]


def test_sizes_beyond_all_tensors() -> None:
    for size in (0, True, 1.0, 2**31, 10**400):
        with pytest.raises(ValueError, match=r"^batch is "):
            RecurrentActorCritic(seed=0).initial_state(size)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^hidden_size is "):
            RecurrentActorCritic(hidden_size=size)  # type: ignore[arg-type]
