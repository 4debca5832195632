"""The environment against the rules as prose: a second, naive implementation, exhaustive walks, Gymnasium's checker."""

import copy
import importlib.util
import json
import pickle
import random
import subprocess
import sys
import warnings
from fractions import Fraction
from itertools import pairwise, product

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

import keydoor.env
from keydoor.env import ENV_ID, KeyDoorAgentEnv, ResetNeeded, contract_table, draw_target
from keydoor.rules import ACTIONS, COLOURS, OBSERVATIONS, RULE_SETS, STOP_REASONS, get_rules

F = Fraction
MAKE_ID = f"keydoor.env:{ENV_ID}"
WIN = ("inspect", "pickup_red", "open_red", "finish")  # with a red target
ENDS = {  # a way to every stop reason, with a red target and the limits it needs
    "success": (WIN, {}),
    "wrong_finish": (("inspect", "finish"), {}),
    "failed_open": (("inspect", "pickup_blue", "open_blue"), {}),
    "task_horizon": (("inspect", "pickup_red"), {"task_horizon": 2}),
    "collector_limit": (("inspect", "pickup_red"), {"collector_limit": 2}),
}


def started(target="red", **arguments):
    env = KeyDoorAgentEnv(seed=0, **arguments)
    env.reset(target=target)
    return env


def rollout(env, actions, **keywords):
    """The steps of the running episode, up to its end."""
    steps = []
    for action in actions:
        steps.append(env.step(action, **keywords))
        if steps[-1][2] or steps[-1][3]:
            break
    return steps


# --- the calls of the lab -------------------------------------------------------------------------------------------


def test_the_labs_first_trace():
    """Red target, four turns: Φ runs 0, ¼, ½, ¾, 0, and the discounted shaped return is γ³ − Φ(s₀) = 0.99³."""
    env = KeyDoorAgentEnv(seed=0)
    observation, info = env.reset(target="red")
    assert observation == "room"
    assert info == {"turn": 0, "potential_after": 0.0, "stop_reason": None}
    steps = rollout(env, WIN, gamma=0.99)
    assert [step[:4] for step in steps] == [
        ("clue_red", 0.0, False, False),
        ("key_held", 0.0, False, False),
        ("door_open", 0.0, False, False),
        ("success", 1.0, True, False),
    ]
    assert [step[4]["potential_before"] for step in steps] == [0.0, 0.25, 0.5, 0.75]
    assert [step[4]["potential_after"] for step in steps] == [0.25, 0.5, 0.75, 0.0]
    assert sum(0.99**t * step[4]["shaped_reward"] for t, step in enumerate(steps)) == pytest.approx(0.99**3, rel=1e-12)
    assert steps[-1][4] == {
        "potential_before": 0.75,
        "potential_after": 0.0,
        "base_reward": 1.0,
        "shaped_reward": 1.0 - 0.75,
        "stop_reason": "success",
        "invalid": False,
        "turn": 4,
    }


def test_the_labs_collector_cut():
    """The second call of the lab: the collector's limit of 2 inside a horizon of 6."""
    env = KeyDoorAgentEnv(task_horizon=6, collector_limit=2, seed=0)
    env.reset(target="blue")
    env.step("inspect")
    observation, reward, terminated, truncated, info = env.step("pickup_blue")
    assert (observation, reward, terminated, truncated) == ("key_held", 0.0, False, True)
    assert (info["stop_reason"], info["potential_after"]) == ("collector_limit", 0.5)


# --- a second implementation ----------------------------------------------------------------------------------------


class Naive:
    """The rules once more, read off their description in prose, one ``if`` after another. No tables."""

    def __init__(self, rules, target, task_horizon, collector_limit, gamma):
        self.rules, self.target, self.gamma = rules, target, gamma
        self.task_horizon, self.collector_limit = task_horizon, collector_limit
        self.clue_given, self.hand, self.open_door = False, None, None
        self.kind, self.turns = "room", 0

    def phi(self):
        if self.open_door == self.target:
            return 0.75
        if self.hand == self.target:
            return 0.5
        if self.clue_given:
            return 0.25
        return 0.0

    def failed(self):
        return "invalid" if self.rules != "quiet" else self.kind

    def step(self, action):
        before, reward, reason, invalid = self.phi(), 0.0, None, False
        if action == "inspect":
            self.clue_given = True
            seen = "clue_red" if self.target == "red" else "clue_blue"
        elif action in ("pickup_red", "pickup_blue"):
            if not self.clue_given:
                invalid, seen = True, self.failed()
            else:
                self.hand = "red" if action == "pickup_red" else "blue"
                self.kind = seen = "key_held"
        elif action in ("open_red", "open_blue"):
            door = "red" if action == "open_red" else "blue"
            if self.hand != door:
                invalid = True
                if self.rules == "standard":
                    seen, reason = "failure", "failed_open"
                else:
                    seen = self.failed()
            elif self.rules == "standard" and door != self.target:
                seen, reason = "failure", "failed_open"
            else:
                self.open_door = door
                self.kind = seen = "door_open"
        elif self.open_door == self.target:
            seen, reward, reason = "success", 1.0, "success"
        else:
            seen, reason = "failure", "wrong_finish"
        self.turns += 1

        terminated, truncated = reason is not None, False
        if not terminated and self.turns == self.task_horizon:
            seen, reason, terminated = "failure", "task_horizon", True
        if not terminated and self.turns == self.collector_limit:
            reason, truncated = "collector_limit", True
        after = 0.0 if terminated else self.phi()
        info = {
            "potential_before": before,
            "potential_after": after,
            "base_reward": reward,
            "shaped_reward": reward + self.gamma * after - before,
            "stop_reason": reason,
            "invalid": invalid,
            "turn": self.turns,
        }
        return seen, reward, terminated, truncated, info


PREFIXES = [(), ("inspect", "pickup_red"), ("inspect", "pickup_blue", "open_blue", "pickup_red")]


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_all_sequences_against_the_naive_rules(rules, prefix):
    """All 6⁴ sequences of four actions after each prefix, both targets, limits that bite and limits that tie."""
    n = len(prefix)
    reasons = set()
    for target, (task_horizon, collector_limit) in product(COLOURS, [(20, None), (n + 3, n + 3), (n + 4, n + 2)]):
        env = KeyDoorAgentEnv(
            seed=0, task_horizon=task_horizon, collector_limit=collector_limit, gamma=0.9, rules=rules
        )
        for actions in product(ACTIONS, repeat=4):
            env.reset(target=target)
            naive = Naive(rules, target, task_horizon, collector_limit, 0.9)
            for action in (*prefix, *actions):
                step = env.step(action)
                assert step == naive.step(action), (prefix, actions)
                if step[2] or step[3]:
                    reasons.add(step[4]["stop_reason"])
                    with pytest.raises(ResetNeeded):
                        env.step(action)
                    break
    expected = set(STOP_REASONS)
    if rules != "standard":
        expected -= {"failed_open"}
    elif n == 4:  # the third prefix fails where the target is red, and has opened the right door where it is blue
        expected -= {"wrong_finish"}
    assert reasons == expected


@pytest.mark.parametrize("rules", RULE_SETS)
def test_long_random_episodes_against_the_naive_rules(rules):
    """Deeper states than four actions reach: 300 random episodes of up to 30 turns without early ends."""
    generator = random.Random(3)
    env = KeyDoorAgentEnv(task_horizon=30, rules=rules, gamma=0.5)
    turns = 0
    for _ in range(300):
        target = generator.choice(COLOURS)
        env.reset(target=target)
        naive = Naive(rules, target, 30, None, 0.5)
        for _ in range(30):
            action = generator.choice(ACTIONS[:5] if rules != "standard" else ACTIONS[:3])
            step = env.step(action)
            assert step == naive.step(action)
            turns += 1
    assert turns == 9000


# --- ends: cases A1, A5, I4 -----------------------------------------------------------------------------------------


def test_a1_never_both_flags_and_the_target_that_follows():
    """Case A1 (DLR-RM/stable-baselines3#1864, #1276, #633; vwxyzjn/cleanrl#198; Farama-Foundation/PettingZoo#1126).

    At reward 0.25, next value 0.8 and γ = 0.95 the target is 0.25 at a true end and 1.01 at a cut. Foil: whoever
    merges the flags into ``done`` gets 0.25 at the cut too.
    """
    flags = {}
    for reason, (actions, limits) in ENDS.items():
        *_, (_, _, terminated, truncated, info) = rollout(started(**limits), actions)
        assert info["stop_reason"] == reason
        assert terminated is not truncated
        flags[reason] = terminated, truncated
    assert [reason for reason, (_, truncated) in flags.items() if truncated] == ["collector_limit"]

    def target(reason, merged=False):
        terminated, truncated = flags[reason]
        return 0.25 if terminated or (merged and truncated) else 0.25 + 0.95 * 0.8

    assert target("task_horizon") == 0.25
    assert target("collector_limit") == pytest.approx(1.01, rel=1e-9)
    assert target("collector_limit", merged=True) == 0.25


def test_a5_whose_limit_it_is():
    """Case A5 (luchris429/purejaxrl#20; RobertTLange/gymnax#109; Pardo et al. 2018).

    The same two actions under the task's limit and under the collector's. The first is an end: its own observation, Φ
    0. The second changes nothing but a flag: the observation and Φ are those of an episode without a limit.
    """
    actions = ("inspect", "pickup_red")
    task = rollout(started(task_horizon=2), actions)[-1]
    cut = rollout(started(collector_limit=2), actions)[-1]
    free = rollout(started(), actions)[-1]
    assert task[:4] == ("failure", 0.0, True, False)
    assert cut[:4] == ("key_held", 0.0, False, True)
    assert free[:4] == ("key_held", 0.0, False, False)
    assert task[4] == {
        **free[4],
        "stop_reason": "task_horizon",
        "potential_after": 0.0,
        "shaped_reward": 0.99 * 0.0 - 0.25,
    }
    assert cut[4] == {**free[4], "stop_reason": "collector_limit"}
    assert cut[4]["shaped_reward"] != task[4]["shaped_reward"]


@pytest.mark.parametrize("limit", [2, 3, None])
def test_a5_the_tasks_end_wins_a_tie(limit):
    """Both limits on one step: the task's. A limit beyond the horizon never bites. Foil: ``truncated`` on the tie."""
    steps = rollout(started(task_horizon=2, collector_limit=limit), ("inspect", "inspect", "inspect"))
    assert len(steps) == 2
    assert steps[-1][2:4] == (True, False)
    assert steps[-1][4]["stop_reason"] == "task_horizon"


@pytest.mark.parametrize("reason", ["success", "wrong_finish", "failed_open"])
def test_a5_an_action_that_ends_the_task_on_the_last_allowed_turn(reason):
    """``finish`` (or a forced lock) on the last turn of either limit is what ended the episode, not the limit."""
    actions, _ = ENDS[reason]
    for limits in ({"task_horizon": len(actions)}, {"collector_limit": len(actions)}):
        *_, last = rollout(started(**limits), actions)
        assert last[2:4] == (True, False)
        assert last[4]["stop_reason"] == reason


def test_a5_no_observation_tells_the_time():
    """The same observation at every turn: a critic on it alone aliases. Only ``info`` counts the turns."""
    steps = rollout(started(), ["inspect"] * 7)
    assert {step[0] for step in steps} == {"clue_red"}
    assert [step[4]["turn"] for step in steps] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("reason", list(ENDS))
def test_i4_step_after_the_end_raises(reason):
    """Case I4 (BY571/DQN-Atari-Agents#8; Motphys/UniLab#236 and others): after every kind of end, and at each try."""
    actions, limits = ENDS[reason]
    env = started(**limits)
    *_, last = rollout(env, actions)
    assert last[4]["stop_reason"] == reason
    for _ in range(2):
        with pytest.raises(ResetNeeded, match="reset"):
            env.step("inspect")
    assert env.target == "red"  # what a report needs is still there
    env.reset(target="blue")
    assert env.step("inspect")[0] == "clue_blue"


def test_i4_step_before_the_first_reset_raises():
    """It is a ``RuntimeError``, and an error of Gymnasium too, so that code written for either catches it."""
    env = KeyDoorAgentEnv(seed=0)
    for error in (ResetNeeded, RuntimeError, gymnasium.error.ResetNeeded):
        with pytest.raises(error):
            env.step("inspect")
    for attribute in ("target", "state"):
        with pytest.raises(ResetNeeded):
            getattr(env, attribute)


NO_ACTIONS = [
    "",
    "Inspect",
    " inspect",
    "jump",
    "0",
    6,
    -1,
    1.0,
    1.5,
    True,
    False,
    None,
    [0],
    {},
    ("inspect",),
    b"inspect",
]


@pytest.mark.parametrize(
    "action",
    [*NO_ACTIONS, '{"name": "fly"}', '{"name"', np.int64(6), np.float64(1.0), np.bool_(True), np.array([1, 2])],
)
def test_i4_what_is_no_action_raises_and_uses_up_nothing(action):
    """Unknown names, ``True`` for 1 and 1.0 for 1 are errors; the episode goes on as if nothing had been said.

    The trap: ``True`` and ``1.0`` find the key 1 in a dictionary, so a table look-up alone would take them.
    """
    assert {1: "pickup_red"}.get(True) == {1: "pickup_red"}.get(1.0) == "pickup_red"
    for observation_mode in ("names", "indices"):
        env = started(observation_mode=observation_mode)
        with pytest.raises(ValueError, match="action"):
            env.step(action)
        assert env.step("inspect")[4]["turn"] == 1


@pytest.mark.parametrize("index", range(6))
def test_all_forms_of_an_action_do_the_same(index):
    """Names, indices, their numpy kinds and tool calls; from the state with the red key in hand all six differ."""
    name = ACTIONS[index]
    forms = [name, index, np.int64(index), np.int32(index), np.uint8(index), np.array(index), np.str_(name)]
    forms += [json.dumps({"name": name}), json.dumps({"name": name}, indent=2)]
    results = []
    for form in forms:
        env = started()
        rollout(env, WIN[:2])
        results.append((env.step(form), env.state))
    assert all(result == results[0] for result in results)
    other = started()
    rollout(other, WIN[:2])
    assert (other.step(ACTIONS[(index + 1) % 6]), other.state) != results[0]


def test_indices_are_the_names_in_order():
    """Both observation modes step through the same world."""
    generator = random.Random(5)
    names, indices = KeyDoorAgentEnv(seed=4), KeyDoorAgentEnv(seed=4, observation_mode="indices")
    for _ in range(200):
        assert indices.reset()[0] == OBSERVATIONS.index(names.reset()[0]) == 0
        running = True
        while running:
            action = generator.choice(ACTIONS[:3] + ACTIONS[5:])
            by_name, by_index = names.step(action), indices.step(ACTIONS.index(action))
            assert type(by_index[0]) is int
            assert by_name[1:] == by_index[1:]
            assert by_name[0] == OBSERVATIONS[by_index[0]]
            running = not (by_name[2] or by_name[3])


# --- shaping: cases F1, F3 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [reason for reason in ENDS if reason != "collector_limit"])
def test_f1_the_potential_of_every_true_end_is_zero(reason):
    """Case F1 (HumanCompatibleAI/imitation#323; anthonytorlucci/rlevo#646; jsboige/CoursIA#14836)."""
    actions, limits = ENDS[reason]
    *_, (*_, info) = rollout(started(**limits), actions)
    assert info["stop_reason"] == reason
    assert info["potential_after"] == 0.0
    assert info["potential_before"] > 0  # so that a forgotten zero would show


def test_f1_a_terminal_potential_would_pay_for_failing_early():
    """Losing at once with the key in hand, against winning in turn 8, at γ = ½.

    Right: the shaped returns are 0 and γ⁷ = 1/128, as the base returns are. Foil: with Φ = ½ kept at the loss, losing
    in turn 3 pays γ³·½ = 1/16 and is the better thing to do.
    """
    gamma = F(1, 2)

    def shaped_return(actions, kept=0):
        steps = rollout(started(), actions, gamma=gamma)
        return sum(gamma**t * step[4]["shaped_reward"] for t, step in enumerate(steps)) + gamma ** len(steps) * kept

    late_win, early_loss = ("inspect",) * 5 + WIN[1:], ("inspect", "pickup_red", "finish")
    assert shaped_return(early_loss) == 0 < shaped_return(late_win) == F(1, 128)
    assert shaped_return(early_loss, kept=F(1, 2)) == F(1, 16) > shaped_return(late_win)


@given(
    actions=st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=12),
    gamma=st.fractions(0, 1, max_denominator=20),
    rules=st.sampled_from(RULE_SETS),
    target=st.sampled_from(COLOURS),
    task_horizon=st.integers(1, 12),
    collector_limit=st.none() | st.integers(1, 12),
)
def test_shaped_return_identity(actions, gamma, rules, target, task_horizon, collector_limit):
    """Σγᵗr′ₜ = Σγᵗrₜ − Φ(s₀) + γᵀΦ(s_T), exactly, for any actions and limits, with Φ(s_T) = 0 at a true end.

    Steps must chain, Φ after one being Φ before the next; invalid actions are no exception (case F3).
    """
    env = started(target, rules=rules, task_horizon=task_horizon, collector_limit=collector_limit)
    steps = rollout(env, actions, gamma=gamma)
    infos = [step[4] for step in steps]
    base = sum(gamma**t * F(info["base_reward"]) for t, info in enumerate(infos))
    shaped = sum(gamma**t * info["shaped_reward"] for t, info in enumerate(infos))
    last = 0 if steps[-1][2] else F(infos[-1]["potential_after"])
    assert isinstance(infos[0]["shaped_reward"], Fraction)
    assert shaped == base - F(infos[0]["potential_before"]) + gamma ** len(steps) * last
    assert all(a["potential_after"] == b["potential_before"] for a, b in pairwise(infos))
    assert infos[0]["potential_before"] == 0.0
    assert last == 0 or steps[-1][0] not in ("success", "failure")


def test_f3_going_in_circles_pays_under_unequal_discounts():
    """Case F3a (HumanCompatibleAI/evaluating-rewards#22; johnsutor/so101-nexus#123; axon-rl/gem#38).

    Swapping the keys runs Φ = ¼ → ½ → ¼. With the learner's γ = 9/10 in the shaping too, the discounted sum of n
    cycles is γ²ⁿ/4 − 1/4, bounded as it telescopes. Foil: shaping with 1 pays +(1 − γ)/4 = 1/40 for each cycle.
    """
    learner, cycles = F(9, 10), 5

    def gain(shaping):
        env = started(task_horizon=99)
        rollout(env, ("inspect", "pickup_blue"))
        steps = rollout(env, ("pickup_red", "pickup_blue") * cycles, gamma=shaping)
        return sum(learner**t * step[4]["shaped_reward"] for t, step in enumerate(steps))

    assert gain(learner) == (learner ** (2 * cycles) - 1) / 4 < 0
    assert gain(F(1)) == F(1, 40) * sum(learner ** (2 * k) for k in range(cycles)) > 0


@pytest.mark.parametrize(
    ("rules", "no_op"), [("soft", "open_blue"), ("quiet", "open_blue"), ("standard", "pickup_red")]
)
def test_f3_a_turn_that_changes_nothing_costs(rules, no_op):
    """Case F3b (Grid2op/grid2op#737): five no-ops at Φ = ½ and γ = .99 cost (γ − 1)Φ = −0.005 each, ½(γ⁵ − 1) in all.

    Invalid attempts to open, and under ``standard`` taking the key once more. Foil: 0, the no-op left unshaped, after
    which the identity above fails by that amount.
    """
    gamma = F(99, 100)
    env = started(rules=rules)
    rollout(env, ("inspect", "pickup_red"))
    steps = rollout(env, [no_op] * 5, gamma=gamma)
    assert {step[4]["invalid"] for step in steps} == {rules != "standard"}
    assert [step[4]["shaped_reward"] for step in steps] == [F(-1, 200)] * 5
    total = sum(gamma**t * step[4]["shaped_reward"] for t, step in enumerate(steps))
    assert total == (gamma**5 - 1) / 2 != 0


def test_f3_change_one_discount_and_see_the_other_follow():
    """The constructor's γ is the default of ``step``, documented as 0.99, and ``step(gamma=…)`` overrides it once."""
    assert started().gamma == 0.99
    for own in (0.99, 0.5, 0, 1):
        env = started(gamma=own)
        assert env.step("inspect")[4]["shaped_reward"] == own * 0.25
        assert env.step("pickup_red", gamma=0.25)[4]["shaped_reward"] == 0.25 * 0.5 - 0.25
        assert env.step("open_red")[4]["shaped_reward"] == own * 0.75 - 0.5


@pytest.mark.parametrize("gamma", [-0.1, 1.1, float("nan"), float("inf"), "0.9", True, [0.9], np.float64(2)])
def test_a_bad_discount_raises_and_uses_up_nothing(gamma):
    with pytest.raises(ValueError, match="gamma"):
        KeyDoorAgentEnv(gamma=gamma)
    env = started()
    with pytest.raises(ValueError, match="gamma"):
        env.step("inspect", gamma=gamma)
    assert env.step("inspect", gamma=np.float32(0.5))[4] == started().step("inspect", gamma=0.5)[4]


def test_reward_modes():
    """``sparse`` returns the base reward, ``potential`` the shaped one; ``info`` has both in either mode."""
    sparse, shaped = started(gamma=0.9), started(gamma=0.9, reward_mode="potential")
    for action in WIN:
        one, other = sparse.step(action), shaped.step(action)
        assert one[4] == other[4]
        assert one[1] == one[4]["base_reward"]
        assert other[1] == one[4]["shaped_reward"] != one[1]
    reward = started(reward_mode="potential").step("inspect", gamma=F(1, 2))[1]
    assert type(reward) is float
    assert reward == 0.125


# --- reset, seeds, targets: case H3 ---------------------------------------------------------------------------------


def targets(env, n=30, **first):
    drawn = []
    for number in range(n):
        env.reset(**(first if number == 0 else {}))
        drawn.append(env.target)
    return drawn


def test_h3_equal_seeds_equal_targets():
    """Case H3 (DLR-RM/stable-baselines3#1480; TorchTrade/torchtrade#173; ray-project/ray#27292).

    The stream is that of ``random.Random(seed)``, one number per free episode: an independent reconstruction.
    """
    for seed in range(10):
        generator = random.Random(seed)
        expected = ["red" if generator.random() < 0.5 else "blue" for _ in range(30)]
        assert targets(KeyDoorAgentEnv(seed=seed)) == expected
        assert targets(KeyDoorAgentEnv(seed=99), seed=seed) == expected
        assert targets(KeyDoorAgentEnv(), seed=np.int64(seed)) == expected
    assert len({tuple(targets(KeyDoorAgentEnv(seed=seed))) for seed in range(10)}) == 10


def test_h3_two_environments_do_not_share_a_stream():
    """Drawing in turn from two environments gives each what it would draw alone."""
    one, two = KeyDoorAgentEnv(seed=1), KeyDoorAgentEnv(seed=2)
    pairs = [(targets(one, 1)[0], targets(two, 1)[0]) for _ in range(30)]
    assert [a for a, _ in pairs] == targets(KeyDoorAgentEnv(seed=1))
    assert [b for _, b in pairs] == targets(KeyDoorAgentEnv(seed=2))


def test_h3_actions_do_not_touch_the_stream_of_targets():
    env = KeyDoorAgentEnv(seed=1)
    drawn = []
    for number in range(30):
        env.reset()
        drawn.append(env.target)
        rollout(env, ["inspect"] * (number % 5))
    assert drawn == targets(KeyDoorAgentEnv(seed=1))


def test_h3_global_generators_are_neither_read_nor_changed():
    """Foil: an environment on the global generator would draw the same 64 targets after the same global seed."""
    drawn = []
    for _ in range(2):
        random.seed(7)
        np.random.seed(7)
        before = random.getstate(), np.random.get_state()[1].tolist()
        drawn.append(targets(KeyDoorAgentEnv(), 64))
        targets(KeyDoorAgentEnv(seed=3), 3, seed=4)
        assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert drawn[0] != drawn[1]  # unseeded: the operating system's entropy; equal once in 2⁶⁴


def test_both_colours_are_drawn_evenly():
    """Standard deviation of the count of 4000 fair draws is 31.6; the seed is fixed, so this is no game of chance."""
    generator = random.Random(0)
    reds = sum(draw_target(generator) == "red" for _ in range(4000))
    assert abs(reds - 2000) < 4 * 31.6


def test_a_forced_target_draws_nothing():
    """The free episodes around forced ones are what they would be without them; forcing works in both forms."""
    env = KeyDoorAgentEnv(seed=5)
    drawn = []
    for _ in range(30):
        for form in ({"target": "blue"}, {"options": {"target": "blue"}}, {"target": "blue", "options": {}}):
            env.reset(**form)
            assert env.target == "blue"
        env.reset(target="red", options={"target": "red"})
        assert env.target == "red"
        drawn += targets(env, 1)
    assert drawn == targets(KeyDoorAgentEnv(seed=5))
    env.reset(seed=5, target="red")  # reseeds all the same
    assert targets(env) == targets(KeyDoorAgentEnv(seed=5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "green"}, "target is 'green'; expected one of red, blue"),
        ({"target": "Red"}, "target"),
        ({"target": 0}, "target"),
        ({"target": ["red"]}, "target"),
        ({"options": {"target": "green"}}, r"options\['target'\]"),
        ({"options": {"goal": "red"}}, "options"),
        ({"options": {"target": "red", "goal": 1}}, "options"),
        ({"options": "red"}, "options"),
        ({"options": [("target", "red")]}, "options"),
        ({"target": "red", "options": {"target": "blue"}}, r"options\['target'\] is 'blue'.*red"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.0}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": "1"}, "seed"),
        ({"seed": 3, "target": "green"}, "target"),
    ],
)
def test_a_bad_reset_raises_and_changes_nothing(arguments, message):
    """The running episode goes on, and the stream of targets is where it was, even if a good seed came along."""
    env = started("blue")
    env.step("inspect")
    with pytest.raises(ValueError, match=message):
        env.reset(**arguments)
    assert env.step("pickup_blue")[4]["turn"] == 2
    assert targets(env) == targets(KeyDoorAgentEnv(seed=0))


@pytest.mark.parametrize(
    "argument",
    [
        {"task_horizon": 0},
        {"task_horizon": -1},
        {"task_horizon": 8.0},
        {"task_horizon": None},
        {"task_horizon": True},
        {"collector_limit": 0},
        {"collector_limit": 2.5},
        {"rules": "hard"},
        {"rules": None},
        {"reward_mode": "dense"},
        {"observation_mode": "strings"},
        {"render_mode": "human"},
        {"seed": -1},
        {"seed": 0.5},
    ],
)
def test_a_bad_argument(argument):
    """One message for all: which argument, what it was, what would do."""
    ((name, _),) = argument.items()
    with pytest.raises(ValueError, match=f"^{name} is .*; expected"):
        KeyDoorAgentEnv(**argument)


def test_reset_in_the_middle_of_an_episode():
    """Nothing of the old episode is left: not the turn, nor the key, nor the clue."""
    env = started("red")
    rollout(env, WIN[:3])
    env.reset(target="red")
    assert env.state == started("red").state
    assert env.step("pickup_red")[4] == started("red").step("pickup_red")[4]


def test_each_call_returns_an_info_of_its_own():
    """Users keep infos: a buffer that is reused would rewrite the past."""
    env = started()
    first = env.step("inspect")[4]
    kept = dict(first)
    first["turn"] = 99
    second = env.step("pickup_red")[4]
    assert second["turn"] == 2
    assert kept["turn"] == 1
    assert env.reset()[1] is not env.reset()[1]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_copy_in_mid_episode_goes_on_equally(duplicate, rules):
    """The rest of the episode and, for the deep copies, all later targets; the two do not disturb one another."""
    env = started(rules=rules, task_horizon=7, gamma=0.9, observation_mode="indices", render_mode="ansi")
    rollout(env, WIN[:2])
    twin = duplicate(env)
    assert twin.render() == env.render()
    assert rollout(twin, WIN[2:]) == rollout(env, WIN[2:])
    assert env.action_space == twin.action_space
    if duplicate is not copy.copy:
        assert targets(twin) == targets(env)


# --- Gymnasium ------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.usefixtures("no_warnings")
@pytest.mark.parametrize("observation_mode", ["names", "indices"])
@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("reward_mode", ["sparse", "potential"])
def test_gymnasiums_checker(observation_mode, rules, reward_mode):
    """``check_env`` in full, render modes included, any warning being an error."""
    settings = {"observation_mode": observation_mode, "rules": rules, "reward_mode": reward_mode}
    check_env(gymnasium.make(MAKE_ID, **settings).unwrapped)
    check_env(KeyDoorAgentEnv(**settings), skip_render_check=True)  # it says only that a bare class has no spec


def test_gymnasiums_checker_would_notice():
    """Foil: an environment whose observation is outside of its space does not pass."""

    class Broken(KeyDoorAgentEnv):
        def step(self, action, *, gamma=None):
            return ("a sentence", *super().step(action, gamma=gamma)[1:])

    with pytest.warns(UserWarning, match="observation space"):
        check_env(Broken(), skip_render_check=True)


@pytest.mark.usefixtures("no_warnings")
def test_make_from_nothing_in_a_fresh_interpreter():
    """``gymnasium.make("keydoor.env:keydoor/KeyDoor-v1", …)`` with nothing imported; importing twice does not warn."""
    script = f"""
import warnings, gymnasium
warnings.simplefilter("error")
env = gymnasium.make({MAKE_ID!r}, gamma=0.5, reward_mode="potential", rules="soft", task_horizon=5)
print(env.reset(seed=0)[0], env.step(0)[1], env.spec.id, env.unwrapped.rules, env.unwrapped.task_horizon)
import importlib, keydoor.env
importlib.reload(keydoor.env)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0.125", ENV_ID, "soft", "5"]
    assert done.stderr == ""


@pytest.mark.usefixtures("no_warnings")
def test_made_environment_returns_the_reward_of_its_mode():
    """Wrappers pass no ``step(gamma=)``, so the constructor's counts; and no ``reset(target=)``, so ``options`` do."""
    for reward_mode, expected in (("sparse", [0.0, 0.0, 0.0, 1.0]), ("potential", [0.125, 0.0, -0.125, 0.25])):
        env = gymnasium.make(MAKE_ID, gamma=0.5, reward_mode=reward_mode)
        env.reset(options={"target": "red"})
        steps = [env.step(np.int64(ACTIONS.index(action))) for action in WIN]
        assert [step[1] for step in steps] == expected
        assert [OBSERVATIONS[step[0]] for step in steps] == ["clue_red", "key_held", "door_open", "success"]
        assert env.unwrapped.target == "red"
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        gymnasium.make(MAKE_ID).step(0)


def test_no_time_limit_wrapper():
    """Gymnasium's own limit would report this task's horizon as ``truncated``: the id must not set it."""
    env = gymnasium.make(MAKE_ID, task_horizon=2)
    assert env.spec.max_episode_steps is None
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[2:4] == (True, False)


def test_spaces():
    """``Discrete`` for the registered id, with as many members as there are names; strings in a ``Text`` space."""
    env = gymnasium.make(MAKE_ID)
    assert env.observation_space == gymnasium.spaces.Discrete(len(OBSERVATIONS))
    assert env.action_space == gymnasium.spaces.Discrete(len(ACTIONS))
    named = KeyDoorAgentEnv()
    assert named.action_space == gymnasium.spaces.Discrete(len(ACTIONS))
    assert all(name in named.observation_space for name in OBSERVATIONS)
    assert "" not in named.observation_space
    assert 0 not in named.observation_space


@pytest.mark.usefixtures("no_warnings")
def test_vectorised_with_autoreset():
    """What CleanRL and SB3 do: several copies, seeds 3, 4, 5, one array of actions; a finished copy starts anew.

    By default the step after an end ignores its action, returns the first observation and reward 0.
    """
    envs = gymnasium.make_vec(MAKE_ID, num_envs=3, vectorization_mode="sync", task_horizon=4, gamma=0.5)
    observations, infos = envs.reset(seed=3)
    assert observations.tolist() == [0, 0, 0]
    assert infos["turn"].tolist() == [0, 0, 0]
    hidden = [env.unwrapped.target for env in envs.envs]
    assert hidden == [targets(KeyDoorAgentEnv(seed=seed), 1)[0] for seed in (3, 4, 5)]
    assert set(hidden) == set(COLOURS)

    red = [ACTIONS.index(action) for action in WIN]
    for action in red[:3]:
        observations, rewards, terminated, truncated, infos = envs.step(np.full(3, action))
    lost = [colour == "blue" for colour in hidden]  # the wrong door ended it
    assert terminated.tolist() == lost
    assert infos["stop_reason"].tolist() == ["failed_open" if over else None for over in lost]
    observations, rewards, terminated, truncated, infos = envs.step(np.full(3, red[3]))
    assert terminated.tolist() == [not over for over in lost]
    assert rewards.tolist() == [0.0 if over else 1.0 for over in lost]
    assert [OBSERVATIONS[o] for o in observations] == ["room" if over else "success" for over in lost]
    assert not truncated.any()
    envs.close()


@pytest.mark.usefixtures("no_warnings")
def test_vectorised_with_reset_in_the_same_step():
    """The other autoreset mode keeps the last observation, which a bootstrap at a collector cut needs."""
    envs = gymnasium.make_vec(
        MAKE_ID,
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
        collector_limit=2,
    )
    envs.reset(seed=0, options={"target": "red"})
    envs.step(np.zeros(2, dtype=np.int64))
    observations, _, terminated, truncated, infos = envs.step(np.array([1, 5]))
    assert observations.tolist() == [0, 0]
    assert terminated.tolist() == [False, True]
    assert truncated.tolist() == [True, False]
    assert [OBSERVATIONS[o] for o in infos["final_obs"]] == ["key_held", "failure"]
    assert infos["final_info"]["stop_reason"].tolist() == ["collector_limit", "wrong_finish"]
    envs.close()


@pytest.mark.usefixtures("no_warnings")
def test_common_wrappers():
    """Statistics of episodes and one-hot observations, as in many training scripts."""
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.FlattenObservation(gymnasium.make(MAKE_ID)))
    observation, _ = env.reset(seed=0, options={"target": "red"})
    assert observation.tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    for action in WIN:
        *_, info = env.step(ACTIONS.index(action))
    assert info["episode"]["r"] == 1.0
    assert info["episode"]["l"] == 4


# --- text -----------------------------------------------------------------------------------------------------------


def test_render_is_one_line_with_the_hidden_state():
    env = KeyDoorAgentEnv(seed=0, render_mode="ansi")
    with pytest.raises(ResetNeeded):
        env.render()
    env.reset(target="red")
    lines = [env.render()]
    for action in WIN:
        env.step(action)
        lines.append(env.render())
    assert lines == [
        "turn 0/8 | target red | key none | open none | room",
        "turn 1/8 | target red | key none | open none | inspect -> clue_red",
        "turn 2/8 | target red | key red | open none | pickup_red -> key_held",
        "turn 3/8 | target red | key red | open red | open_red -> door_open",
        "turn 4/8 | target red | key red | open red | finish -> success (success)",
    ]
    assert KeyDoorAgentEnv().render() is None
    made = gymnasium.make(MAKE_ID, render_mode="ansi")
    made.reset(options={"target": "blue"})
    assert made.render() == "turn 0/8 | target blue | key none | open none | room"


def test_render_starts_anew_after_reset():
    env = KeyDoorAgentEnv(render_mode="ansi")
    env.reset(target="red")
    first = env.render()
    env.step("inspect")
    env.reset(target="red")
    assert env.render() == first


@pytest.mark.parametrize(("heading", "names"), [("Actions", ACTIONS), ("Observations", OBSERVATIONS)])
def test_tables_of_the_docstring(heading, names):
    """Tables typed by hand drift from the code: these must list the names of the rules in their order."""
    text = KeyDoorAgentEnv.__doc__.split(f"**{heading}.**")[1].split("\n    **")[0]
    rows = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert [(int(row[0]), row[1]) for row in rows] == [(i, f"``{name}``") for i, name in enumerate(names)]
    assert f"``Discrete({len(names)})``" in text


@pytest.mark.parametrize("rules", RULE_SETS)
def test_contract_table_says_what_the_environment_does(rules):
    """Each row of the printed table, played. The ways to the states are found by walking the environment itself."""
    keys = ("inspected", "key", "opened", "shown")
    env = KeyDoorAgentEnv(rules=rules, task_horizon=20)
    for target in COLOURS:
        rows = contract_table(rules, target)
        env.reset(target=target)
        ways, queue = {env.state: ()}, [()]
        for way in queue:  # grows while it is walked: breadth first
            for action in ACTIONS:
                env.reset(target=target)
                if not rollout(env, (*way, action))[-1][2] and env.state not in ways:
                    ways[env.state] = (*way, action)
                    queue.append((*way, action))
        assert len(rows) == len(ways) * len(ACTIONS)
        by_description = {tuple(getattr(state, key) for key in keys): way for state, way in ways.items()}
        assert len(by_description) == len(ways)
        for row in rows:
            env.reset(target=target)
            rollout(env, by_description[tuple(row[key] for key in keys)])
            observation, _, _, _, info = env.step(row["action"])
            assert observation == row["observation"]
            assert {key: info[key] for key in row.keys() & info.keys()}.items() <= row.items()
            assert len(row.keys() & info.keys()) == 5
    for bad in ({"target": "green"}, {"rules": "hard"}):
        with pytest.raises(ValueError, match="expected one of"):
            contract_table(**bad)


# --- without Gymnasium ----------------------------------------------------------------------------------------------

TRACE = """
from keydoor.env import KeyDoorAgentEnv, ResetNeeded
with KeyDoorAgentEnv(seed=11, collector_limit=6, rules="quiet", gamma=0.9, render_mode="ansi") as env:
    seen = []
    try:
        env.step("inspect")
    except ResetNeeded as error:
        seen.append(isinstance(error, RuntimeError))
    for episode in range(12):
        seen.append(env.reset(seed=5 if episode == 6 else None))
        seen.append(env.target)
        for action in ("inspect", 1, '{"name": "open_red"}', "pickup_blue", 4, 5):
            seen.append(env.step(action))
            seen.append(env.render())
            if seen[-2][2] or seen[-2][3]:
                break
    seen.append(env.unwrapped is env)
print(repr(seen))
"""


def test_without_gymnasium_and_numpy_the_same_world():
    """A browser's Python has neither: the same class, the same targets, the same steps, number for number."""
    hidden = "import sys\nsys.modules['gymnasium'] = sys.modules['numpy'] = sys.modules['torch'] = None\n"
    bare, full = (
        subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
        for script in (hidden + TRACE + "print(hasattr(env, 'action_space'))", TRACE)
    )
    assert bare.stdout.splitlines() == [*full.stdout.splitlines(), "False"]
    assert bare.stderr == full.stderr == ""
    assert full.stdout.startswith("[True, ")
    assert full.stdout.count("'red', ") > 0 < full.stdout.count("'blue', ")


def test_registration_is_the_modules_doing():
    """Reloading finds the id in place: one entry, no warning (warnings are errors here)."""
    assert ENV_ID in gymnasium.registry
    spec = gymnasium.registry[ENV_ID]
    module = importlib.util.find_spec("keydoor.env")
    fresh = importlib.util.module_from_spec(module)  # executed beside the real one, whose classes others hold
    module.loader.exec_module(fresh)
    assert gymnasium.registry[ENV_ID] is spec
    assert fresh.KeyDoorAgentEnv is not keydoor.env.KeyDoorAgentEnv


# --- other worlds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize(("colours", "delay"), [(3, 0), (2, 2), (5, 1)])
def test_the_environment_walks_the_tables_of_any_world(rules, colours, delay):
    """Random actions, by name, by index and as a tool call: each step is the entry of the table."""
    world = get_rules(rules, colours=colours, delay=delay)
    env = KeyDoorAgentEnv(seed=3, rules=rules, colours=colours, delay=delay, task_horizon=9)
    assert env.world is world
    assert env.action_space.n == len(world.actions)
    draws, seen = random.Random(1), set()
    for _ in range(60):
        env.reset()
        seen.add(env.target)
        state, running = world.start[env.target], True
        while running:
            index = draws.randrange(len(world.actions))
            name = world.actions[index]
            form = draws.choice([index, name, json.dumps({"name": name})])
            observation, _, terminated, _, info = env.step(form)
            outcome = world.table[state][index]
            state, running = outcome.state, not terminated
            if info["stop_reason"] != "task_horizon":
                assert (observation, info["invalid"], info["stop_reason"]) == outcome[1:2] + outcome[3:]
                assert observation in env.observation_space
    assert seen == set(world.colours)


def test_a_colour_of_another_world_is_unknown():
    env = KeyDoorAgentEnv(colours=3)
    assert env.reset(target="green")[0] == "room"
    assert env.target == "green"
    with pytest.raises(ValueError, match="target is 'yellow'; expected one of red, blue, green"):
        env.reset(target="yellow")
    with pytest.raises(ValueError, match="action is 'open_yellow'"):
        env.step("open_yellow")
    with pytest.raises(ValueError, match="action is 'pickup_green'"):
        started().step("pickup_green")
