"""Runs that are trained together are the runs that are trained alone: episodes, advantages, gradients, curves."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import keydoor.training as training_module
from keydoor._learning import Batch, advantages, learn, prepare
from keydoor._play import one_thread, play
from keydoor._rollouts import Rollouts, play_stack
from keydoor._stack import CHUNK, ROWS, Stack, Tape
from keydoor.env import KeyDoorAgentEnv
from keydoor.policy import RecurrentActorCritic
from keydoor.returns import discounted_return, gae_advantages
from keydoor.rules import REWARD_MODES, get_rules
from keydoor.stacked import train_many
from keydoor.training import TrainingConfig, train_actor_critic

TINY: dict[str, Any] = {
    "updates": 3,
    "episodes_per_update": 6,
    "evaluation_interval": 2,
    "evaluation_episodes": 5,
}
MODES = ("potential", "sparse", "potential")  # of three networks
WORLDS: tuple[dict[str, Any], ...] = (
    {},
    {"rules": "soft", "task_horizon": 11, "hidden_size": 17},
    {"rules": "quiet", "colours": 3, "delay": 2, "task_horizon": 12, "collector_limit": 9},
    {"collector_limit": 3, "previous_action": False, "head_scale": 1.0},
    {"task_horizon": 1, "hidden_size": 1},
    {"epochs": 1, "normalise_advantages": False, "gae_lambda": 1.0},
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


def flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def slices_agree() -> bool:
    """Whether this machine's matrix library gives a slice the same product in any batch: what the promise rests on."""
    generator = torch.Generator().manual_seed(0)
    for rows, inner, columns in ((16, 32, 96), (16, 96, 32), (16, 16, 96), (128, 32, 8), (16, 128, 128), (32, 128, 8)):
        a, b = (torch.randn(3, *shape, generator=generator) for shape in ((rows, inner), (inner, columns)))
        if not torch.equal(torch.bmm(a, b), torch.cat([torch.bmm(a[i : i + 1], b[i : i + 1]) for i in range(3)])):
            return False
    return True


def assert_equal_runs(first: Any, second: Any, updates: int = 3) -> None:
    """Bit for bit; where products of batches round otherwise, the weights up to rounding after a first update."""
    if slices_agree():
        assert torch.equal(flat(first[0]), flat(second[0]))
        assert first[1] == second[1]
    elif updates == 1:
        assert torch.allclose(flat(first[0]), flat(second[0]), atol=1e-5)


# --- equal to one by one ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("updates", [1, 3])
@pytest.mark.parametrize("world", WORLDS)
def test_equal_to_one_by_one(world: dict[str, Any], updates: int) -> None:
    """Three seeds with two reward modes, in worlds and networks of awkward sizes: the same curves and weights."""
    size = {**TINY, "updates": updates, "config": TrainingConfig(**world)}
    runs = train_many((3, 1, 2), reward_mode=MODES, **size)
    for seed, mode, run in zip((3, 1, 2), MODES, runs, strict=True):
        assert_equal_runs(run, train_actor_critic(seed=seed, reward_mode=mode, **size), updates)
    assert not torch.equal(flat(runs[0][0]), flat(runs[2][0]))


def test_equal_in_the_sizes_of_the_lab() -> None:
    """48 episodes of an update; some updates in, episodes have parted and lengths differ between the seeds."""
    size: dict[str, Any] = {
        "updates": 6,
        "episodes_per_update": 48,
        "evaluation_interval": 3,
        "evaluation_episodes": 100,
    }
    runs = train_many(range(1, 5), reward_mode="potential", **size)
    assert_equal_runs(runs[2], train_actor_critic(seed=3, reward_mode="potential", **size))
    assert len({row[1][-1]["training_return"] for row in runs}) == 4


def test_company_and_order_do_not_matter() -> None:
    alone = {seed: train_many([seed], reward_mode="potential", **TINY)[0] for seed in (5, 6, 7, 8)}
    for seeds in ((5, 6, 7, 8), (8, 5), (7, 6, 5)):
        for seed, run in zip(seeds, train_many(seeds, reward_mode="potential", **TINY), strict=True):
            assert_equal_runs(run, alone[seed])


def test_one_mode_for_all_or_one_for_each() -> None:
    for mode in REWARD_MODES:
        first, second = (train_many([1, 2], reward_mode=x, **TINY) for x in (mode, [mode, mode]))
        for one, other in zip(first, second, strict=True):
            assert_equal_runs(one, other)
    both = train_many([1, 1], reward_mode=REWARD_MODES, **TINY)
    assert not torch.equal(flat(both[0][0]), flat(both[1][0]))
    assert both[0][1][0] == both[1][1][0], "before the training a mode makes no difference"


def test_seeds_of_numpy_and_no_updates() -> None:
    runs = train_many(np.arange(2), reward_mode="sparse", **{**TINY, "updates": 0})
    for seed, (model, curve) in enumerate(runs):
        assert torch.equal(flat(model), flat(RecurrentActorCritic(seed=seed)))
        assert [row["update"] for row in curve] == [-1]


def test_networks_own_their_weights() -> None:
    """A network that is kept, saved or trained on does not hold, save or change the others of its block."""
    runs = train_many(range(8), reward_mode="sparse", **{**TINY, "updates": 1})
    saved = pickle.dumps(runs[0][0])
    assert len(saved) < 2 * 4 * len(flat(runs[0][0]))
    before = flat(runs[1][0])
    with torch.no_grad():
        for parameter in runs[0][0].parameters():
            parameter.fill_(1.0)
    assert torch.equal(flat(runs[1][0]), before)
    assert all(parameter.grad is None for parameter in runs[0][0].parameters())


# --- the episodes -----------------------------------------------------------------------------------------------------


def trained(count: int, **size: Any) -> list[RecurrentActorCritic]:
    """Networks whose policies are far from uniform, each another one."""
    return [RecurrentActorCritic(seed=seed, head_scale=20.0, **size) for seed in range(count)]


def refuse_all(row: int, what: str, value: float) -> None:
    raise AssertionError((row, what, value))


def together(models: list[RecurrentActorCritic], episodes: int, config: TrainingConfig) -> tuple[Stack, Rollouts]:
    rules = get_rules(config.rules, colours=config.colours, delay=config.delay)
    stack = Stack(models)
    targets = [[rules.colours[(n + e) % config.colours] for e in range(episodes)] for n in range(len(models))]
    draws = [[random.Random(100 * n + e) for e in range(episodes)] for n in range(len(models))]
    played = play_stack(
        stack,
        rules,
        targets,
        draws,
        gamma=config.gamma,
        task_horizon=config.task_horizon,
        collector_limit=config.collector_limit,
        diverged=refuse_all,
    )
    return stack, played


@pytest.mark.parametrize("rules", ["standard", "soft", "quiet"])
@pytest.mark.parametrize(("colours", "delay", "horizon", "limit"), [(2, 0, 8, None), (3, 2, 9, 4), (2, 1, 5, 5)])
def test_the_episodes_are_those_of_the_environment(
    rules: str, colours: int, delay: int, horizon: int, limit: int | None
) -> None:
    """From the same targets and random numbers: every field of every transition, values up to the network's rounding.

    The environment plays them one network after the other, with :func:`keydoor._play.play`.
    """
    config = TrainingConfig(
        rules=rules, colours=colours, delay=delay, task_horizon=horizon, collector_limit=limit, gamma=0.9
    )
    models = trained(3, colours=colours)
    _, played = together(models, 20, config)
    names = get_rules(rules, colours=colours, delay=delay)
    ends = set()
    for n, model in enumerate(models):
        env: dict[str, Any] = {"task_horizon": horizon, "rules": rules, "colours": colours, "delay": delay}
        envs = [KeyDoorAgentEnv(**env, collector_limit=limit) for _ in range(20)]
        first = [env.reset(target=names.colours[(n + e) % colours])[0] for e, env in enumerate(envs)]
        episodes = play(model, envs, first, [random.Random(100 * n + e) for e in range(20)], 0.9)
        returns = [discounted_return(episode.rewards("potential"), 0.9) for episode in episodes]
        won = [episode.transitions[-1].stop_reason == "success" for episode in episodes]
        assert played.results(["potential"] * 3, 0.9)[n] == (sum(won) / 20, pytest.approx(sum(returns) / 20, abs=1e-12))
        for e, episode in enumerate(episodes):
            length = len(episode.transitions)
            assert played.lengths[n, e] == length
            assert played.terminated[n, e] == episode.transitions[-1].terminated
            assert played.values[: length + 1, n, e].tolist() == pytest.approx(episode.values, abs=1e-4)
            assert (episode.values[-1] == 0.0) == (played.values[length, n, e] == 0.0)
            previous = len(names.actions)
            for t, transition in enumerate(episode.transitions):
                pair = names.observations.index(transition.observation) * (len(names.actions) + 1) + previous
                previous = int(played.actions[t, n, e])
                assert (played.pairs[t, n, e], names.actions[previous]) == (pair, transition.action)
                assert played.base_rewards[t, n, e] == transition.base_reward
                assert played.shaped_rewards[t, n, e] == transition.shaped_reward
                assert played.logprobs[t, n, e] == pytest.approx(transition.behavior_logprob, abs=1e-4)
            ends.add(episode.transitions[-1].stop_reason)
    assert len(ends) > 1
    assert played.lengths[:, 20:].sum() == 0, "rows that fill up a block are no episodes"
    assert played.lengths.shape[1] % ROWS == 0


def test_the_network_is_the_same_one() -> None:
    """A stack against :class:`RecurrentActorCritic`: up to rounding, in any row, and back again exactly."""
    models = [RecurrentActorCritic(seed=seed, hidden_size=5, head_scale=1.0, colours=3) for seed in range(3)]
    stack = Stack(models)
    copies = [RecurrentActorCritic(seed=9, hidden_size=5, colours=3) for _ in models]
    stack.write(copies)
    assert all(torch.equal(flat(a), flat(b)) for a, b in zip(models, copies, strict=True))
    generator = torch.Generator().manual_seed(1)
    pairs = torch.randint(len(stack.codes), (3, 6, 16), generator=generator)
    turns = pairs.transpose(0, 1)
    outputs = Tape(stack, stack.codes[turns.flatten()], [16] * 6).forward().view(6, 3, 16, -1).transpose(0, 1)
    for n, model in enumerate(models):
        seen, previous = (x.t() for x in (pairs[n] // 9, pairs[n] % 9))
        logits, values, _ = model(seen, previous)
        assert torch.allclose(outputs[n, ..., :8].transpose(0, 1), logits, atol=1e-6)
        assert torch.allclose(outputs[n, ..., 8].t(), values, atol=1e-6)
    wrong = models[1](pairs[0].t() // 9, pairs[0].t() % 9)[0]
    assert not torch.allclose(outputs[0, ..., :8].transpose(0, 1), wrong, atol=1e-2), "another network's weights"


# --- advantages and gradients -----------------------------------------------------------------------------------------

numbers = st.floats(-10, 10)
unit = st.floats(0, 1)


@settings(deadline=None)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), numbers, unit, unit, st.booleans())
def test_advantages_bit_for_bit(
    steps: list[tuple[float, float]], last: float, gamma: float, lam: float, terminated: bool
) -> None:
    """The recursion without checks gives the floats of :func:`keydoor.returns.gae_advantages`, not merely near ones."""
    rewards, values = (list(column) for column in zip(*steps, strict=True))
    values.append(last)
    expected = gae_advantages(rewards, values, gamma, lam, terminated=terminated)
    assert advantages(rewards, values, gamma, lam, terminated=terminated) == expected


def setting(**changes: Any) -> tuple[list[RecurrentActorCritic], Stack, Rollouts, TrainingConfig]:
    config = TrainingConfig(**{"epochs": 1, "max_gradient_norm": 1e9, **changes})
    models = [RecurrentActorCritic(seed=seed, head_scale=1.0) for seed in range(3)]
    return models, *together(models, 12, config), config


def own(batch: Batch, values: torch.Tensor, n: int) -> np.ndarray:
    return values.numpy()[batch.played[n]]


def test_advantages_are_normalised_per_network() -> None:
    """Each network's turns have mean 0 and deviation 1. Foil: over the whole stack none of them has."""
    _, stack, played, config = setting()
    batch = prepare(stack, played, MODES, config)
    raw = prepare(stack, played, MODES, TrainingConfig(normalise_advantages=False))
    every = np.concatenate([own(raw, raw.advantages, n) for n in range(3)])
    for n in range(3):
        mine, before = own(batch, batch.advantages, n), own(raw, raw.advantages, n)
        assert mine == pytest.approx((before - before.mean()) / before.std(), abs=1e-5)
        foil = (before - every.mean()) / every.std()
        assert mine != pytest.approx(foil, abs=0.1)
        assert own(batch, batch.weight, n).sum() == pytest.approx(1.0)
        assert own(batch, batch.targets, n) == pytest.approx(own(raw, raw.targets, n)), "targets are not normalised"


def moved(models: list[RecurrentActorCritic], played: Rollouts, config: TrainingConfig) -> list[torch.Tensor]:
    """What one step of length 1 takes off each network's weights."""
    stack, after = Stack(models), copy.deepcopy(models)
    batch = prepare(stack, played, MODES[: len(models)], config)
    learn(stack, batch, config, torch.optim.SGD([stack.weights], lr=1.0).step)
    stack.write(after)
    return [flat(old) - flat(new) for old, new in zip(models, after, strict=True)]


def autograd(model: RecurrentActorCritic, played: Rollouts, n: int, config: TrainingConfig) -> torch.Tensor:
    """The printed loss of one network through torch's own GRU, episode by episode, and torch's own gradient."""
    raw: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, list[float]]] = []
    for e, length in enumerate(played.lengths[n].tolist()):
        if length:
            pairs, actions, old = (
                torch.from_numpy(x[:length, n, e].copy()) for x in (played.pairs, played.actions, played.logprobs)
            )
            rewards = played.rewards(MODES[: played.lengths.shape[0]])[:length, n, e].tolist()
            values = played.values[: length + 1, n, e].tolist()
            gain = gae_advantages(
                rewards, values, config.gamma, config.gae_lambda, terminated=bool(played.terminated[n, e])
            )
            logits, now, _ = model(pairs[None] // 7, pairs[None] % 7)
            goal = torch.tensor([a + v for a, v in zip(gain, values, strict=False)])
            raw.append((logits[0].log_softmax(-1), actions, old, now[0] - goal, gain))
    logp = torch.cat([x[0] for x in raw])
    taken, old, error = (torch.cat([x[i] for x in raw]) for i in (1, 2, 3))
    gain = torch.tensor([a for x in raw for a in x[4]])
    gain = (gain - gain.mean()) / gain.std(correction=0)
    ratio = (logp.gather(-1, taken[:, None])[:, 0] - old.float()).exp()
    surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - config.clip, 1 + config.clip) * gain).mean()
    entropy = -(logp.exp() * logp).sum(-1).mean()
    loss = -surrogate + config.value_coefficient * (error**2).mean() - config.entropy_coefficient * entropy
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(model.parameters()))])


@pytest.mark.parametrize("limit", [None, 4])
def test_gradients_are_those_of_autograd(limit: int | None) -> None:
    """The gradient by hand, of three networks at once, against torch's of each; shifted ratios, so that some clip."""
    models, _, played, config = setting(collector_limit=limit)
    played.logprobs += np.random.default_rng(0).uniform(-0.5, 0.5, played.logprobs.shape)
    found = moved(models, played, config)
    for n, model in enumerate(models):
        expected = autograd(model, played, n, config)
        assert torch.allclose(found[n], expected, atol=1e-5, rtol=1e-3)
        assert not torch.allclose(found[n], autograd(model, played, n, TrainingConfig(clip=10.0)), atol=1e-4)


def test_gradients_are_shortened_per_network() -> None:
    """Each to the length that the settings give. Foil: one length for the stack leaves each of them shorter."""
    models, _, played, config = setting()
    free = moved(models, played, config)
    lengths = [part.norm().item() for part in free]
    bound = sorted(lengths)[1] * 0.9  # two are too long, one is not
    found = moved(models, played, TrainingConfig(epochs=1, max_gradient_norm=bound))
    joint = sum(length**2 for length in lengths) ** 0.5
    for part, length, whole in zip(found, lengths, free, strict=True):
        assert torch.allclose(part, whole * min(1.0, bound / length), atol=1e-6)
        assert not torch.allclose(part, whole * min(1.0, bound / joint), atol=1e-4)
    assert sum(length < bound for length in lengths) == 1


def test_many_episodes_are_summed_in_chunks() -> None:
    """More episodes than one chunk has rows: the gradient is still torch's, and still that of any company."""
    config = TrainingConfig(epochs=1, max_gradient_norm=1e9)
    models = [RecurrentActorCritic(seed=seed, head_scale=1.0) for seed in range(2)]
    _, played = together(models, 2 * CHUNK + 3, config)
    for n, part in enumerate(moved(models, played, config)):
        assert torch.allclose(part, autograd(models[n], played, n, config), atol=1e-5, rtol=1e-3)
    size: dict[str, Any] = {**TINY, "episodes_per_update": 2 * CHUNK + 3, "updates": 1}
    run = train_many([1, 2], reward_mode="sparse", **size)[1]
    assert_equal_runs(run, train_actor_critic(seed=2, reward_mode="sparse", **size), 1)


# --- errors and global state ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_a_diverging_run_is_named(place: int, number: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three networks gets a weight that is no number; the message has its seed, and when it was.

    Also a weight that the world never reads: the network that comes back would hold it.
    """
    poisoned: list[Stack] = []

    def poison(stack: Stack, *rest: Any) -> Any:
        figures = learn(stack, *rest)
        if poisoned:
            with torch.no_grad():
                stack.weights[1, place] = number
        poisoned.append(stack)
        return figures

    monkeypatch.setattr(training_module, "learn", poison)
    says = (
        rf"^a weight after update 1, in the training with seed 77, is {number}; expected a finite number: the network"
    )
    with pytest.raises(ValueError, match=says):
        train_many([5, 77, 6], reward_mode="sparse", **TINY)


@pytest.mark.parametrize(("columns", "what"), [(slice(0, 6), "the log-probability of"), (slice(6, 7), "the critic's")])
def test_numbers_that_overflow_in_play_are_named(columns: slice, what: str) -> None:
    """What the heads give may be no number although all weights are: found at the turn, in the run where it is."""
    stack = Stack(trained(3))
    with torch.no_grad():
        stack.parts["heads"][2, 0, columns] = float("inf")
    found: list[Any] = []

    def note(*found_: Any) -> None:
        found.append(found_)
        raise LookupError

    with pytest.raises(LookupError):
        play_stack(
            stack,
            get_rules(),
            [["red"] * 4] * 3,
            [[random.Random(i) for i in range(4)]] * 3,
            gamma=1.0,
            task_horizon=8,
            collector_limit=None,
            diverged=note,
        )
    ((row, said, value),) = found
    assert row == 2
    assert said.startswith(what)
    assert not np.isfinite(value)


def test_a_run_that_really_diverges() -> None:
    """Steps of 1e30, and the loss overflows; alone and in company the error says whose it was."""
    size = {**TINY, "config": TrainingConfig(learning_rate=1e30)}
    with pytest.raises(ValueError, match=r"in the training with seed 3, .*the network has diverged"):
        train_many([3, 4], reward_mode="potential", **size)
    with pytest.raises(ValueError, match=r"in the training with seed 4, .*the network has diverged"):
        train_actor_critic(seed=4, reward_mode="potential", **size)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seeds": []}, r"^seeds is \[\]; expected at least one seed"),
        ({"seeds": 3}, "^seeds is 3; expected a sequence"),
        ({"seeds": {1, 2}}, "^seeds is .*expected a sequence"),
        ({"seeds": "12"}, "^seeds is '12'; expected a sequence"),
        ({"seeds": [1, -1]}, r"^seeds\[1\] is -1; expected an integer not below 0"),
        ({"seeds": [1, 2.0]}, r"^seeds\[1\] is 2.0"),
        ({"seeds": [2**63]}, r"^seeds\[0\] is "),
        ({"seeds": [4, 2, 4]}, r"^seeds\[2\] is 4; expected another seed or reward mode than seeds\[0\] has"),
        ({"reward_mode": "shaped"}, "^reward_mode is 'shaped'; expected one of"),
        ({"reward_mode": ["sparse", "shaped"]}, r"^reward_mode\[1\] is 'shaped'"),
        ({"reward_mode": ["sparse"]}, "^reward_mode has length 1; expected one name, or 2: one per seed"),
        ({"reward_mode": None}, "^reward_mode is None"),
        ({"updates": -1}, "^updates is -1"),
        ({"episodes_per_update": 0}, "^episodes_per_update is 0"),
        ({"evaluation_interval": 0}, "^evaluation_interval is 0"),
        ({"evaluation_episodes": True}, "^evaluation_episodes is True"),
        ({"config": {"gamma": 0.9}}, "^config is "),
    ],
)
def test_bad_arguments(changes: dict[str, Any], says: str) -> None:
    arguments = {"seeds": [1, 2], "reward_mode": "sparse", **TINY, **changes}
    with pytest.raises(ValueError, match=says):
        train_many(arguments.pop("seeds"), **arguments)


def global_state() -> list[Any]:
    return [
        random.getstate(),
        [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()],
        torch.get_rng_state().tolist(),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
    ]


def errs() -> None:
    with pytest.raises(ValueError, match="diverged"):
        train_many([1], reward_mode="sparse", **TINY, config=TrainingConfig(learning_rate=1e30))


@pytest.mark.parametrize("call", [lambda: train_many([1, 2], reward_mode="sparse", **TINY), errs])
@pytest.mark.parametrize("threads", [1, 2])
def test_global_state_is_left_alone(call: Callable[[], object], threads: int) -> None:
    """Generators of random, numpy and torch, the number of threads and the gradient switch, after an error too."""
    torch.set_num_threads(threads)
    before = global_state()
    call()
    assert global_state() == before
    random.random()  # the foil
    assert global_state() != before


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_switched_off_gradients_do_not_matter(context: Callable[[], Any]) -> None:
    expected = train_many([1, 2], reward_mode="potential", **TINY)
    with context():
        runs = train_many([1, 2], reward_mode="potential", **TINY)
    for run, other in zip(runs, expected, strict=True):
        assert_equal_runs(run, other)


def test_curves_do_not_change_the_training() -> None:
    """Another interval, the same weights and the same rows, for every run of the block."""
    often, seldom = (
        train_many([1, 2], reward_mode="potential", **{**TINY, "evaluation_interval": interval}) for interval in (1, 9)
    )
    for (model, curve), (same, few) in zip(often, seldom, strict=True):
        assert torch.equal(flat(model), flat(same))
        assert [row["update"] for row in curve] == [-1, 0, 1, 2]
        assert few == [curve[0], curve[-1]]
    assert all(a[1][0]["update"] == b[1][0]["update"] for a, b in itertools.pairwise(often))
