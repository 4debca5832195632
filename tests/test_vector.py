"""The vector environment beside the scalar one: every field of every step in all modes; what learners get wrong."""

import copy
import dataclasses
import pickle
import tracemalloc
from fractions import Fraction
from functools import cache
from itertools import product

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import keydoor.vector
from keydoor._tables import fill_tables
from keydoor.env import ENV_ID, KeyDoorAgentEnv, ResetNeeded
from keydoor.rules import OBSERVATIONS, REWARD_MODES, RULE_SETS, get_rules
from keydoor.vector import AUTORESET_MODES, KeyDoorVectorEnv

MAKE_ID = f"keydoor.env:{ENV_ID}"
ROOM, KEY_HELD, SUCCESS = (OBSERVATIONS.index(name) for name in ("room", "key_held", "success"))
STEP_FIELDS = (
    "potential_before",
    "potential_after",
    "base_reward",
    "shaped_reward",
    "stop_reason",
    "invalid",
    "turn",
)
RESET_FIELDS = ("potential_after", "stop_reason", "turn")
WIN = [0, 1, 3, 5]  # with a red target


def same(found, expected, at="result"):
    """Equal to the last bit and of the same types, arrays and dictionaries within dictionaries included."""
    assert type(found) is type(expected), at
    if isinstance(expected, dict):
        assert set(found) == set(expected), at
        for key, value in expected.items():
            same(found[key], value, f"{at}[{key!r}]")
    elif isinstance(expected, tuple):
        assert len(found) == len(expected), at
        for i, value in enumerate(expected):
            same(found[i], value, f"{at}[{i}]")
    else:
        assert found.dtype == expected.dtype, at
        assert found.tolist() == expected.tolist(), at
        assert [*map(type, found.tolist())] == [*map(type, expected.tolist())], at


# --- all sequences --------------------------------------------------------------------------------------------------


@cache
def scalars_of(n, *world):
    """Copies of one, made once for each world: every walk begins with a reset to a target, so that nothing is drawn."""
    one = KeyDoorAgentEnv(observation_mode="indices", **dict(world))
    return [copy.copy(one) for _ in range(n)]


def walk(envs, targets, columns, **world):
    """Step both kinds through the same actions and compare every field; the loop over environments is written out.

    ``columns[t][i]`` is the action of environment ``i`` in step ``t``. The scalar environments are told the targets
    that the vector environment has drawn, and reset as ``autoreset_mode`` says.
    """
    mode, n = envs.autoreset_mode, envs.num_envs
    scalars = scalars_of(n, *world.items())
    observations, infos = envs.reset(options={"targets": targets})
    first = [scalar.reset(target=target) for scalar, target in zip(scalars, targets, strict=True)]
    assert observations.tolist() == [observation for observation, _ in first]
    compare(infos if envs.with_info else None, [info for _, info in first], RESET_FIELDS)
    over = [False] * n
    for column in columns:
        if mode == "disabled" and any(over):
            with pytest.raises(ResetNeeded, match=rf"episode {over.index(True)} is over \({sum(over)} in all\)"):
                envs.step(np.array(column))
            envs.reset(options={"reset_mask": np.array(over)})
            for i, target in enumerate(envs.targets):
                if over[i]:
                    scalars[i].reset(target=target)
        *found, infos = envs.step(np.array(column))
        drawn = envs.targets
        rows, told, final = [], [], [None] * n
        for i, scalar in enumerate(scalars):
            if mode == "next_step" and over[i]:
                assert drawn[i], "an episode has begun"
                observation, info = scalar.reset(target=drawn[i])
                row = (observation, 0.0, False, False)
            else:
                *row, info = scalar.step(column[i])
            over[i] = row[2] or row[3]
            if over[i]:
                final[i] = (row[0], info)
                if mode == "same_step":
                    assert drawn[i], "an episode has begun"
                    row[0], info = scalar.reset(target=drawn[i])
            rows.append(row)
            told.append(info)
        assert [array.tolist() for array in found] == [[*column] for column in zip(*rows, strict=True)]
        assert drawn == ["" if mode != "same_step" and over[i] else scalars[i].target for i in range(n)]
        last = [row[0] if kept is None else kept[0] for row, kept in zip(rows, final, strict=True)]
        assert envs.final_observations.tolist() == last
        if not envs.with_info:
            assert infos == {}
            continue
        if mode == "same_step" and any(over):
            assert infos.pop("final_obs").tolist() == [kept and kept[0] for kept in final]
            compare(infos.pop("final_info"), [kept and kept[1] for kept in final], STEP_FIELDS)
            assert infos.pop("_final_obs").tolist() == infos.pop("_final_info").tolist() == over
        compare(infos, told, STEP_FIELDS if any(len(info) > 3 for info in told) else RESET_FIELDS)


def compare(infos, told, fields):
    """Arrays and masks against the dictionaries of the scalar environments, ``None`` where there is none."""
    if infos is None:
        return
    assert set(infos) == {*fields, *(f"_{name}" for name in fields)}
    for name in fields:
        there = [info is not None and name in info for info in told]
        blank = None if name == "stop_reason" else 0
        assert infos[f"_{name}"].tolist() == there, name
        expected = [info[name] if is_there else blank for info, is_there in zip(told, there, strict=True)]
        assert infos[name].tolist() == expected, name


@cache
def all_sequences(actions, colours, horizon):
    """Targets and columns of actions: each target with each sequence, one step more than the horizon."""
    pairs = [*product(colours, product(range(actions), repeat=horizon))]
    targets = [target for target, _ in pairs]
    columns = [[sequence[t % horizon] for _, sequence in pairs] for t in range(horizon + 1)]
    return targets, columns


LIMITS = [  # that of the task alone, a tie, that of the collector
    {"task_horizon": 4},
    {"task_horizon": 4, "collector_limit": 4},
    {"task_horizon": 9, "collector_limit": 3},
]


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("mode", AUTORESET_MODES)
@pytest.mark.parametrize("limits", LIMITS, ids=["task", "tie", "collector"])
def test_all_sequences(rules, mode, limits):
    """All 6⁴ sequences with both targets, side by side as 2,592 environments, and into the episodes that follow."""
    world = {"rules": rules, "gamma": 0.9, **limits}
    targets, columns = all_sequences(6, ("red", "blue"), 4)
    walk(KeyDoorVectorEnv(len(targets), seed=1, autoreset_mode=mode, **world), targets, columns, **world)


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize(
    ("colours", "delay", "horizon"), [(3, 0, 3), (2, 1, 4), (3, 1, 3)], ids=["3 colours", "delay 1", "both"]
)
def test_all_sequences_of_larger_worlds(rules, colours, delay, horizon):
    """More colours and a delay, with the flags ``copy`` and ``with_info`` off and the shaped reward."""
    world = {"rules": rules, "colours": colours, "delay": delay, "task_horizon": horizon, "reward_mode": "potential"}
    tables = get_rules(rules, colours=colours, delay=delay)
    targets, columns = all_sequences(len(tables.actions), tables.colours, horizon)
    envs = KeyDoorVectorEnv(len(targets), seed=2, autoreset_mode="same_step", copy=False, with_info=False, **world)
    walk(envs, targets, columns, **world)


def test_after_a_clue_of_any_sequence():
    """Deep states: the first three actions are a way to a key, the right one or the wrong one, and all 6³ follow."""
    pairs = [*product(("red", "blue"), product(range(6), repeat=3))]
    prefix = [[action] * len(pairs) for action in (0, 1, 3)]
    columns = prefix + [[sequence[t] for _, sequence in pairs] for t in range(3)]
    for rules, mode in product(RULE_SETS, AUTORESET_MODES):
        world = {"rules": rules, "task_horizon": 6, "collector_limit": 5}
        envs = KeyDoorVectorEnv(len(pairs), seed=3, autoreset_mode=mode, **world)
        walk(envs, [target for target, _ in pairs], columns, **world)


@pytest.mark.parametrize("mode", AUTORESET_MODES)
@pytest.mark.parametrize(("copied", "with_info"), [(True, False), (False, True), (False, False)])
def test_the_flags_change_no_number(mode, copied, with_info):
    world = {"task_horizon": 5, "collector_limit": 3}
    targets, columns = all_sequences(6, ("red", "blue"), 3)
    envs = KeyDoorVectorEnv(len(targets), autoreset_mode=mode, copy=copied, with_info=with_info, **world)
    walk(envs, targets, columns, **world)


def test_a_planted_fault_is_found(monkeypatch):
    """Each entry that two turns can read, wrong in one field after the other: the walk finds every one of them."""
    world = {"task_horizon": 9, "collector_limit": 2}
    targets, columns = all_sequences(6, ("red", "blue"), 2)
    rules = get_rules()
    right = fill_tables(rules, gamma=0.99, **world)
    after_one = {int(row) for row in right.following[:2].flat if row < right.over}
    entries = [*product([0, 1, *after_one], range(6))]
    assert len(entries) == 6 * (2 + 4)

    def check():
        envs = KeyDoorVectorEnv(len(targets), autoreset_mode="same_step", **world)
        walk(envs, targets, columns[:2], **world)

    check()
    for field in (f.name for f in dataclasses.fields(right)[3:]):
        for entry in entries:
            table = getattr(right, field).copy()
            if field == "following":
                table[entry] = (table[entry] + 1) % len(table)
            elif table.dtype == np.bool_:
                table[entry] = not table[entry]
            else:
                table[entry] = table[entry] - 1 if field == "reason" and table[entry] else table[entry] + 1
            wrong = dataclasses.replace(right, **{field: table})
            monkeypatch.setattr(keydoor.vector, "fill_tables", lambda *_, wrong=wrong, **__: wrong)
            with pytest.raises(AssertionError):
                check()


# --- Gymnasium's own vector environment -----------------------------------------------------------------------------


class Told(KeyDoorAgentEnv):
    """A scalar environment whose targets somebody else has drawn."""

    def __init__(self, **world):
        super().__init__(observation_mode="indices", **world)
        self.told = None

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed, target=self.told, options=options)


WORLDS = st.fixed_dictionaries(
    {
        "rules": st.sampled_from(RULE_SETS),
        "colours": st.integers(2, 4),
        "delay": st.integers(0, 2),
        "task_horizon": st.integers(1, 7),
        "collector_limit": st.none() | st.integers(1, 7),
        "gamma": st.floats(0, 1),
        "reward_mode": st.sampled_from(REWARD_MODES),
    }
)


@settings(deadline=None, max_examples=80)
@given(
    WORLDS,
    st.sampled_from(AUTORESET_MODES),
    st.booleans(),
    st.lists(st.integers(0, 2**30), min_size=1, max_size=4),
    st.integers(0, 9),
)
def test_as_gymnasium_would_put_scalar_environments_together(world, mode, copied, draws, seed):
    """Observations, rewards, flags and ``infos`` of ``SyncVectorEnv`` over scalar environments: keys, masks, types."""
    n = len(draws)
    envs = KeyDoorVectorEnv(n, seed=seed, autoreset_mode=mode, copy=copied, **world)
    sync = SyncVectorEnv(
        [lambda: Told(**world)] * n, copy=copied, autoreset_mode=AutoresetMode[mode.upper()], observation_mode="same"
    )
    assert (sync.observation_space, sync.action_space) == (envs.observation_space, envs.action_space)
    assert sync.single_observation_space == envs.single_observation_space
    assert sync.single_action_space == envs.single_action_space
    assert sync.metadata["autoreset_mode"] is envs.metadata["autoreset_mode"]

    def tell():
        for scalar, target in zip(sync.envs, envs.targets, strict=True):
            scalar.told = target or None

    def reset(**options):
        found = envs.reset(options={**options})
        tell()
        same(found, sync.reset(options={**options}))

    reset()
    for t in range(12):
        actions = np.array([(draw >> 2 * t) % envs.single_action_space.n for draw in draws])
        mask = np.array([(draw >> t) % 3 == 0 for draw in draws])
        if t % 5 == 4 and mask.any():
            reset(reset_mask=mask)
        found = envs.step(actions)
        tell()
        same(found, sync.step(actions))
        assert found[0] in envs.observation_space
        over = found[2] | found[3]
        if mode == "disabled" and over.any():
            reset(reset_mask=over)


def test_an_exact_discount_counts_exactly():
    """Rewards are those of the scalar environment, rounded once. Foil: the discount as a float gives another number."""
    gamma = Fraction(1, 3)
    envs = KeyDoorVectorEnv(1, gamma=gamma, reward_mode="potential")
    scalar = KeyDoorAgentEnv(gamma=gamma, reward_mode="potential")
    envs.reset(options={"target": "red"})
    scalar.reset(target="red")
    rewards = [(float(envs.step([action])[1][0]), scalar.step(action)[1]) for action in WIN]
    assert all(found == expected for found, expected in rewards)
    assert envs.gamma is gamma
    assert rewards[2][0] == float(gamma * Fraction(3, 4) - Fraction(1, 2)) == -0.25
    assert rewards[1][0] == float(gamma * Fraction(1, 2) - Fraction(1, 4)) != float(gamma) * 0.5 - 0.25


# --- targets --------------------------------------------------------------------------------------------------------


def drawn(envs, resets, **first):
    """The targets of so many resets of all environments."""
    found = []
    for i in range(resets):
        envs.reset(**first if i == 0 else {})
        found.append(envs.targets)
    return found


def test_the_seed_decides():
    """The same from the constructor's seed, from the reset's, and after another seed; a second reset goes on."""
    expected = drawn(KeyDoorVectorEnv(50, seed=4), 3)
    assert expected[0] != expected[1] != expected[2] != expected[0]
    assert drawn(KeyDoorVectorEnv(50), 3, seed=4) == expected
    envs = KeyDoorVectorEnv(50, seed=5)
    assert drawn(envs, 3) != expected
    assert drawn(envs, 3, seed=4) == expected
    assert envs.np_random_seed == 4
    envs.np_random = np.random.default_rng(4)  # as Gymnasium allows: what was in stock is not used any more
    assert drawn(envs, 2) == drawn(KeyDoorVectorEnv(50, seed=4), 2)
    assert drawn(KeyDoorVectorEnv(50), 1) != drawn(KeyDoorVectorEnv(50), 1)  # equal once in 2⁵⁰ times


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_what_others_do_changes_no_target(mode):
    """Environment 0 always wins; with the same seed it meets the same targets, whatever the other one does."""
    met = []
    for other in (0, 5):
        envs = KeyDoorVectorEnv(2, seed=7, autoreset_mode=mode)
        envs.reset()
        met.append([])
        for t in range(60):
            envs.step([5 if t % 3 == 0 else 0, other])
            met[-1].append(envs.targets[0])
    assert met[0] == met[1]
    assert set(met[0]) == {"red", "blue"} | ({""} if mode == "next_step" else set())


@pytest.mark.parametrize(("colours", "digits"), [(2, 8), (3, 5), (5, 3), (8, 2)])
def test_targets_are_the_digits_of_the_random_numbers(colours, digits):
    """The first number of the stream, written to the base of the number of colours, names the first targets."""
    envs = KeyDoorVectorEnv(4 * digits, seed=11, colours=colours)
    envs.reset()
    expected = []
    for number in np.random.default_rng(11).random(4).tolist():
        rest = Fraction(number)
        for _ in range(digits):
            rest *= colours
            expected.append(envs.world.colours[int(rest)])
            rest -= int(rest)
    assert envs.targets == expected


@pytest.mark.parametrize("colours", [2, 3, 5, 8])
def test_each_colour_as_often(colours):
    """60,000 targets by seed: each colour within 5 standard deviations of its share, and so each pair of neighbours.

    Foil: were one number used for two neighbours, only ``colours`` of the ``colours²`` pairs would occur.
    """
    n = 60_000
    envs = KeyDoorVectorEnv(n, seed=0, colours=colours)
    [found] = drawn(envs, 1)
    kinds = np.array([envs.world.colours.index(name) for name in found])
    for numbers, kinds_in_all in ((kinds, colours), (kinds[:-1] * colours + kinds[1:], colours**2)):
        p = 1 / kinds_in_all
        counts = np.bincount(numbers, minlength=kinds_in_all)
        assert len(counts) == kinds_in_all
        assert abs(counts - n * p).max() < 5 * (n * p * (1 - p)) ** 0.5


def test_forced_targets():
    envs = KeyDoorVectorEnv(3, seed=0)
    envs.reset(options={"target": "blue"})
    assert envs.targets == ["blue"] * 3
    envs.reset(options={"targets": ("red", np.str_("blue"), "red")})
    assert envs.targets == ["red", "blue", "red"]
    mask = np.array([True, True, False])
    envs.reset(options={"reset_mask": mask, "targets": ["blue", "red", "blue"]})
    assert envs.targets == ["blue", "red", "red"]
    seen = set()
    for _ in range(40):
        envs.reset(options={"targets": [None, "blue", None]})
        seen.add(tuple(envs.targets))
    assert len(seen) == 4
    assert {targets[1] for targets in seen} == {"blue"}


def test_no_targets_where_no_episode_runs():
    envs = KeyDoorVectorEnv(2, seed=0)
    assert envs.targets == ["", ""]
    envs.reset(options={"target": "red"})
    envs.step([5, 0])
    assert envs.targets == ["", "red"]


# --- what learners get wrong ----------------------------------------------------------------------------------------


def test_foil_the_row_that_resets_is_no_transition():
    """Three wins in a row with ``next_step``: the discounted return of each episode is γ³.

    Foil: whoever cuts the rows into episodes by the flags alone takes the row that resets for the first turn of the
    next episode. Every episode but the first then has five turns, and a return of γ⁴.
    """
    gamma = 0.9
    envs = KeyDoorVectorEnv(1, seed=0)
    envs.reset()
    right, wrong = [[]], [[]]
    over = False
    for _ in range(14):  # 4 + (1 + 4) + (1 + 4)
        turn, blue = len(right[-1]), envs.targets == ["blue"]
        _, [reward], [terminated], _, infos = envs.step([(0, 1 + blue, 3 + blue, 5)[turn]])
        assert (infos["turn"] == 0).tolist() == [over]  # this tells a reset from a transition
        if not over:
            right[-1].append(reward)
        wrong[-1].append(reward)
        over = bool(terminated)
        if over:
            right.append([])
            wrong.append([])

    def returns(episodes):
        return [sum(gamma**t * reward for t, reward in enumerate(rewards)) for rewards in episodes if rewards]

    assert returns(right) == pytest.approx([gamma**3] * 3, rel=1e-12)
    assert returns(wrong) == pytest.approx([gamma**3, gamma**4, gamma**4], rel=1e-12)


def test_foil_the_bootstrap_needs_the_final_observation():
    """The collector cuts after the key has been taken; the policy would win two turns later.

    With V(room) = γ³ and V(key_held) = γ the target of the cut turn is γV(key_held) = γ². Foils: the observation
    returned with the flag is the room of the next episode, and gives γ⁴; the cut taken for an end gives 0.
    """
    gamma = 0.9
    value = {ROOM: gamma**3, KEY_HELD: gamma}
    envs = KeyDoorVectorEnv(1, seed=0, collector_limit=2, autoreset_mode="same_step")
    envs.reset(options={"target": "red"})
    envs.step([0])
    [observation], [reward], [terminated], [truncated], infos = envs.step([1])
    assert (terminated, truncated) == (False, True)
    [last] = infos["final_obs"]
    assert envs.final_observations.tolist() == [last] == [KEY_HELD]
    assert reward + gamma * value[last] == pytest.approx(gamma**2, rel=1e-12)
    assert reward + gamma * value[int(observation)] == pytest.approx(gamma**4, rel=1e-12)
    assert reward + gamma * 0.0 == 0.0


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0; expected an integer not below 1"),
        ({"num_envs": 2.0}, "num_envs is 2.0"),
        ({"num_envs": True}, "num_envs is True"),
        ({"seed": -1}, "seed is -1; expected an integer not below 0"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"task_horizon": 0}, "task_horizon is 0"),
        ({"collector_limit": 0}, "collector_limit is 0"),
        ({"gamma": 1.5}, r"gamma is 1.5; expected a number in \[0, 1\]"),
        ({"gamma": float("nan")}, "gamma is nan"),
        ({"rules": "hard"}, "rules is 'hard'; expected one of standard, soft, quiet"),
        ({"colours": 1}, "colours is 1"),
        ({"colours": 9}, "colours is 9; expected at most 8"),
        ({"delay": -1}, "delay is -1"),
        ({"reward_mode": "dense"}, "reward_mode is 'dense'; expected one of sparse, potential"),
        ({"observation_mode": "names"}, "observation_mode is 'names'; expected one of indices"),
        ({"render_mode": "ansi"}, "render_mode is 'ansi'; expected None"),
        ({"autoreset_mode": "never"}, "autoreset_mode is 'never'; expected one of next_step, same_step, disabled"),
        ({"copy": 1}, "copy is 1; expected True or False"),
        ({"with_info": "yes"}, "with_info is 'yes'"),
        ({"task_horizon": 10**9}, "task_horizon is 1000000000; expected at most 49932 turns in this world"),
        ({"task_horizon": 10**9, "collector_limit": 10**6}, "collector_limit is 1000000; expected at most 49932"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        KeyDoorVectorEnv(**{"num_envs": 2, **arguments})


def test_a_long_horizon_is_no_trouble_where_the_collector_cuts():
    """The tables end with whichever limit comes first."""
    envs = KeyDoorVectorEnv(1, task_horizon=10**9, collector_limit=3)
    envs.reset()
    assert [bool(envs.step([0])[3][0]) for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 6, -1], r"actions\[1\] is 6; expected an index from 0 to 5"),
        ([0, 1, -1], r"actions\[2\] is -1; expected an index from 0 to 5"),
        (np.array([0, -128, 5], dtype=np.int8), r"actions\[1\] is -128"),
        (np.array([0, 5, 200], dtype=np.uint8), r"actions\[2\] is 200"),
        (np.array([2**64 - 1, 0, 0], dtype=np.uint64), r"actions\[0\] is 18446744073709551615"),
        (np.array([2**63, 0, 0], dtype=">u8"), r"actions\[0\] is"),
        (np.array([0, -(2**40), 0], dtype=">i8"), r"actions\[1\] is -1099511627776"),
        ([0, 1], r"actions is an array of int64 of shape \(2,\); expected integers of shape \(3,\)"),
        ([[0, 1, 2]], r"shape \(1, 3\)"),
        (3, r"shape \(\); expected integers of shape \(3,\)"),
        ([0.0, 1.0, 2.0], "an array of float64"),
        ([True, False, True], "an array of bool"),
        (["inspect", "inspect", "finish"], "an array of <U7"),
        ([0, None, 1], "an array of object"),
        ([0, 2**70, 1], "an array of object"),
        ([[0], [1, 2], [3]], r"actions is \[\[0\], \[1, 2\], \[3\]\]; expected integers"),
        (np.zeros(3, dtype="m8[s]"), "an array of timedelta64"),
        (np.ma.array([0, 1, 2], mask=[False, True, False]), "expected an array without masked entries"),
        (None, "an array of object"),
    ],
)
def test_bad_actions_raise_and_use_up_nothing(actions, message):
    envs = KeyDoorVectorEnv(3, seed=0)
    envs.reset()
    targets = envs.targets
    with pytest.raises(ValueError, match=message):
        envs.step(actions)
    *_, infos = envs.step([0, 0, 0])
    assert infos["turn"].tolist() == [1, 1, 1]
    assert envs.targets == targets


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i4"])
def test_integers_of_every_size_are_actions(dtype):
    """And views that are not contiguous, and tuples."""
    expected = KeyDoorVectorEnv(3)
    expected.reset(options={"target": "red"})
    [*arrays, infos] = expected.step([0, 1, 5])
    wide = np.array([0, 9, 1, 9, 5, 9], dtype=dtype)
    for actions in (wide[::2], wide[::2].copy(), tuple(wide[::2].tolist())):
        envs = KeyDoorVectorEnv(3)
        envs.reset(options={"target": "red"})
        same(envs.step(actions), (*arrays, infos))


def test_a_reset_is_needed():
    for mode in AUTORESET_MODES:
        envs = KeyDoorVectorEnv(2, autoreset_mode=mode)
        for error in (ResetNeeded, RuntimeError, gymnasium.error.ResetNeeded):
            with pytest.raises(error, match="reset"):
                envs.step([0, 0])
        with pytest.raises(ValueError, match="expected no mask at the first reset"):
            envs.reset(options={"reset_mask": np.array([True, False])})
        with pytest.raises(ResetNeeded):
            envs.step([0, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"seed": [1, 2]}, r"seed is \[1, 2\]"),
        ({"options": ["target"]}, "options is .*; expected a mapping with no key but"),
        ({"options": {"colour": "red"}}, "options is {'colour': 'red'}; expected a mapping with no key but"),
        ({"options": {"target": "green"}}, r"options\['target'\] is 'green'; expected one of red, blue"),
        ({"options": {"targets": ["red"]}}, r"options\['targets'\] has length 1; expected 2"),
        ({"options": {"targets": "red"}}, r"options\['targets'\] is 'red'; expected a sequence"),
        ({"options": {"targets": ["red", "pink"]}}, r"options\['targets'\]\[1\] is 'pink'"),
        ({"options": {"targets": ["red", 0]}}, r"options\['targets'\]\[1\] is 0"),
        ({"options": {"target": "red", "targets": ["red", "red"]}}, "expected nothing beside 'target'"),
        ({"options": {"reset_mask": [True, False]}}, r"expected a Boolean array of shape \(2,\), not all False"),
        ({"options": {"reset_mask": np.array([1, 0])}}, "expected a Boolean array"),
        ({"options": {"reset_mask": np.array([True])}}, "expected a Boolean array"),
        ({"options": {"reset_mask": np.array([False, False])}}, "not all False"),
    ],
)
def test_bad_resets_raise_and_change_nothing(arguments, message):
    """With a good seed beside a bad option too: the stream goes on where it was."""
    envs, twin = (KeyDoorVectorEnv(2, seed=0) for _ in range(2))
    envs.reset()
    twin.reset()
    envs.step([0, 1])
    twin.step([0, 1])
    for extra in ({}, {"seed": 9}):
        with pytest.raises(ValueError, match=message):
            envs.reset(**{**extra, **arguments})
    same(envs.step([1, 5]), twin.step([1, 5]))
    assert drawn(envs, 5) == drawn(twin, 5)


def test_options_are_left_as_they_are():
    options = {"reset_mask": np.array([True, False]), "target": "red"}
    envs = KeyDoorVectorEnv(2, seed=0)
    envs.reset()
    envs.reset(options=options)
    assert [*options] == ["reset_mask", "target"]


# --- what users of Gymnasium expect ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_make_vec():
    """From the registered id, by name of the mode and by default; its ``spec`` makes another one."""
    for arguments in ({"vectorization_mode": "vector_entry_point"}, {}):
        envs = gymnasium.make_vec(MAKE_ID, num_envs=8, **arguments, task_horizon=4, rules="soft", seed=3)
        assert type(envs) is KeyDoorVectorEnv
        assert (envs.num_envs, envs.task_horizon, envs.rules) == (8, 4, "soft")
        assert repr(envs) == f"KeyDoorVectorEnv({ENV_ID}, num_envs=8)"
        again = gymnasium.make_vec(envs.spec)
        assert type(again) is KeyDoorVectorEnv
        same(again.reset(), envs.reset())
        assert again.targets == envs.targets
        assert again.spec == envs.spec
        envs.close()
        assert envs.closed
    modes = {mode: AutoresetMode[mode.upper()] for mode in AUTORESET_MODES}
    for name, mode in modes.items():
        for given_as in (name, mode):
            envs = gymnasium.make_vec(MAKE_ID, num_envs=2, autoreset_mode=given_as)
            assert envs.metadata["autoreset_mode"] is mode
            assert envs.autoreset_mode == name
    assert KeyDoorVectorEnv.metadata == {"autoreset_mode": AutoresetMode.NEXT_STEP}
    with pytest.raises(ValueError, match="observation_mode is 'names'"):
        gymnasium.make_vec(MAKE_ID, num_envs=2, observation_mode="names")


def test_wrappers():
    """Statistics of episodes, and one dictionary for each environment."""
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(gymnasium.make_vec(MAKE_ID, num_envs=2))
    envs.reset(seed=0, options={"target": "red"})
    for action in WIN:
        *_, infos = envs.step(np.array([action, 0]))
    assert infos["episode"]["r"].tolist() == [1.0, 0.0]
    assert infos["episode"]["l"].tolist() == [4, 0]
    assert infos["_episode"].tolist() == [True, False]

    envs = gymnasium.wrappers.vector.DictInfoToList(gymnasium.make_vec(MAKE_ID, num_envs=2))
    scalar = gymnasium.make(MAKE_ID)
    assert envs.reset(options={"target": "red"})[1] == [scalar.reset(options={"target": "red"})[1]] * 2
    for action in WIN[:3]:
        assert envs.step(np.full(2, action))[-1] == [scalar.step(action)[-1]] * 2


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
@pytest.mark.parametrize("copied", [True, False])
def test_copies_and_pickles_go_on_alike(duplicate, copied):
    """In the middle of episodes, the stock of targets included, and without a shared array."""
    envs = KeyDoorVectorEnv(40, seed=5, autoreset_mode="same_step", copy=copied)
    envs.reset()
    generator = np.random.default_rng(0)
    for _ in range(5):
        envs.step(generator.integers(0, 6, 40))
    twin = duplicate(envs)
    assert twin.world is envs.world
    for _ in range(300):  # through several stocks of 8,192 targets
        actions = generator.integers(0, 6, 40)
        same(envs.step(actions), twin.step(actions))
    envs.step(actions)
    before = twin.targets
    envs.step(actions)
    assert twin.targets == before


def test_fresh_arrays_or_the_same_ones():
    for copied in (True, False):
        envs = KeyDoorVectorEnv(2, seed=0, copy=copied)
        first, _ = envs.reset()
        steps = [envs.step([0, 0])[:4], envs.step([5, 0])[:4]]
        for before, after in zip(*steps, strict=True):
            assert (before is after) is not copied
        assert (first is steps[0][0]) is not copied
        if copied:  # what a caller writes into the arrays does not come back
            for array in steps[1]:
                array[:] = 1
            assert envs.step([0, 0])[2].tolist() == [False, False]


@pytest.mark.parametrize("copied", [True, False])
def test_no_array_of_the_infos_is_another_one(copied):
    """Who writes into one mask, or into the mask that was given, changes nothing else and no later step."""
    envs, twin = (KeyDoorVectorEnv(3, seed=0, autoreset_mode="same_step", copy=copied) for _ in range(2))
    mask = np.array([True, True, False])
    for which in (envs, twin):
        which.reset()
    for act in (lambda each: each.reset(options={"reset_mask": mask}), lambda each: each.step([5, 0, 0])):
        *_, infos = act(envs)
        act(twin)
        arrays = [mask]
        for found in (infos, infos.get("final_info", {})):
            arrays += [array for array in found.values() if isinstance(array, np.ndarray)]
        assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
        for array in arrays[1:]:
            array[:] = 1
        assert mask.tolist() == [True, True, False]
    same(envs.step([5, 0, 1]), twin.step([5, 0, 1]))


@pytest.mark.parametrize("mode", AUTORESET_MODES)
def test_a_reset_shows_the_room_and_leaves_the_last_rewards_and_flags(mode):
    """With ``copy=False`` a learner may still read, after it has reset what ended, which ones these were."""
    envs = KeyDoorVectorEnv(3, seed=0, autoreset_mode=mode, collector_limit=2, copy=False)
    envs.reset(options={"target": "red"})
    assert envs.final_observations.tolist() == [ROOM] * 3
    for actions in ([0, 0, 0], [1, 5, 1]):
        _, _, terminated, truncated, _ = envs.step(actions)
    flags = [False, True, False], [True, False, True]
    assert (terminated.tolist(), truncated.tolist()) == flags
    observations, _ = envs.reset(options={"reset_mask": np.array([False, True, True])})
    assert observations[1:].tolist() == [ROOM, ROOM]
    assert envs.final_observations.tolist() == [KEY_HELD, ROOM, ROOM]
    assert (terminated.tolist(), truncated.tolist()) == flags


@pytest.mark.parametrize("mode", AUTORESET_MODES)
@pytest.mark.parametrize("limit", [None, 3])
def test_a_step_allocates_nothing_that_grows(mode, limit):
    """Peak of traced memory over 20 steps of 20,000 environments. Foil: with copies it is the size of the arrays."""
    peaks = {}
    for copied in (False, True):
        envs = KeyDoorVectorEnv(
            20_000, seed=0, autoreset_mode=mode, collector_limit=limit, copy=copied, with_info=False
        )
        envs.reset()
        actions = [np.full(20_000, t % 2) for t in range(20)]
        tracemalloc.start()
        try:
            for t, action in enumerate(actions):
                if mode == "disabled" and t % (limit or 8) == 0:
                    envs.reset()
                    tracemalloc.clear_traces()
                    tracemalloc.reset_peak()
                envs.step(action)
            peaks[copied] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peaks[False] < 4_000
    assert peaks[True] > 20_000 * 8


# --- the tables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("limits", [(8, None), (3, 3), (9, 2), (2, 5)])
def test_starts_come_first_and_what_is_over_last(rules, limits):
    """What an automatic reset rests on: row ``c`` is the start of colour ``c``, and no row leads back to one."""
    world = get_rules(rules, colours=3)
    tables = fill_tables(world, task_horizon=limits[0], collector_limit=limits[1], gamma=0.99)
    turns = min(limit for limit in limits if limit)
    assert [world.start[colour] for colour in world.colours] == [0, 1, 2]
    assert (tables.turns, tables.states, tables.over) == (turns, len(world.states), turns * len(world.states))
    assert tables.following.min() >= len(world.states)
    assert tables.following.shape == (tables.over + 2, len(world.actions))
    assert (tables.following[tables.over] == tables.over).all()
    assert (tables.following[tables.over + 1] == tables.over + 1).all()
    assert ((tables.following == tables.over)[: tables.over] == tables.terminated[: tables.over]).all()
    assert ((tables.following == tables.over + 1)[: tables.over] == tables.truncated[: tables.over]).all()
    for field in dataclasses.fields(tables)[3:]:
        table = getattr(tables, field.name)
        assert table.shape == tables.following.shape
        if field.name not in ("following", "observation"):
            assert not table[tables.over :].any(), field.name
    assert not (tables.terminated | tables.truncated)[tables.over :].any()
    assert (tables.observation[tables.over :] == world.observations.index("room")).all()
