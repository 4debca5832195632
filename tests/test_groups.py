"""Groups: brute force over all outcomes, exact fractions, and the foils that divide rounding by rounding."""

import itertools
import math
import statistics
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.estimators import group_gradient_factor
from keydoor.groups import group_advantages, informative_group_probability

# --- mixed groups ------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(0, 30).map(lambda n: F(n, 30)), st.integers(1, 7))
def test_mixed_groups_by_brute_force(p, size):
    """Each of the 2^G outcomes has probability p^k (1-p)^(G-k); add up those with a success and a failure."""
    brute = sum(
        p ** sum(outcome) * (1 - p) ** (size - sum(outcome))
        for outcome in itertools.product((0, 1), repeat=size)
        if 0 < sum(outcome) < size
    )
    assert informative_group_probability(p, size) == brute
    assert isinstance(informative_group_probability(p, size), (F, int))


@pytest.mark.parametrize(
    ("p", "by_size"),
    [
        (0.1819, {2: 0.297625, 4: 0.550959, 8: 0.799343, 16: 0.959737}),
        (0.05, {4: 0.1854875, 8: 0.336580, 16: 0.559873}),
        (0.005, {4: 0.019850, 8: 0.039307, 16: 0.077069}),
        (0.3, {4: 0.7518}),
    ],
)
def test_g1_reported_values(p, by_size):
    """Case G1 (jsboige/CoursIA#10603, which measured 70% of groups without signal at p = .1819, G = 2)."""
    for size, expected in by_size.items():
        assert informative_group_probability(p, size) == pytest.approx(expected, abs=6e-7)
        # p and 1 - p differ as floats by the rounding of 1 - p alone
        assert informative_group_probability(1 - p, size) == pytest.approx(
            informative_group_probability(p, size), rel=1e-13
        )


@settings(deadline=None)
@given(st.floats(min_value=0, max_value=1), st.integers(1, 40))
def test_full_relative_accuracy_on_floats(p, size):
    """A float *is* a fraction; the exact value for this very fraction is the reference."""
    exact = informative_group_probability(F(p), size)
    assert informative_group_probability(p, size) == pytest.approx(float(exact), rel=2e-14, abs=0)


@pytest.mark.parametrize("p", [1e-12, 1e-17, 1e-300, 5e-324])
def test_tiny_probabilities(p):
    """G p to first order. The foil, the formula as it stands, is off in the fifth digit at 1e-12, and 0 at 1e-17."""
    assert informative_group_probability(p, 8) == pytest.approx(8 * p, rel=1e-11)
    foil = 1 - p**8 - (1 - p) ** 8
    assert foil != pytest.approx(8 * p, rel=1e-6, abs=0)


def test_no_signal_at_the_ends_and_alone():
    for p in (0, 1, 0.0, 1.0, F(0), F(1)):
        for size in (1, 2, 8, 1000):
            assert informative_group_probability(p, size) == 0
    # 39 of the grid's points would give some 1e-17 for a group of one if the formula were left to rounding.
    for p in (1e-12, F(1, 3), math.nextafter(1, 0), *(k / 997 for k in range(1, 997))):
        assert informative_group_probability(p, 1) == 0


def test_large_groups_do_not_overflow():
    assert informative_group_probability(0.5, 10**6) == 1.0
    assert informative_group_probability(1e-12, 10**12) == pytest.approx(1 - math.exp(-1), rel=1e-9)


@pytest.mark.parametrize("p", [-1e-9, 1.0000001, math.nan, math.inf, None, "0.5", True])
def test_g1_probability_outside_its_range(p):
    with pytest.raises(ValueError, match=r"p is .*; expected a number in \[0, 1\]"):
        informative_group_probability(p, 4)


@pytest.mark.parametrize("size", [0, -1, 2.0, 2.5, True, None, "4", math.nan])
def test_g1_a_group_size_is_a_positive_integer(size):
    with pytest.raises(ValueError, match=r"group_size is .*; expected an integer not below 1"):
        informative_group_probability(0.5, size)


def test_numpy_and_torch_scalars():
    assert informative_group_probability(np.float64(0.5), np.int64(2)) == 0.5
    assert informative_group_probability(torch.tensor(0.5), torch.tensor(2)) == 0.5


# --- advantages --------------------------------------------------------------------------------------------------


def test_g3_equal_rewards_have_no_advantage():
    """Case G3 (verl-project/verl#4597, #3635): the float mean of three 0.1 is not 0.1. Foil: divide the error
    by its own deviation, and all three get -1.
    """
    assert group_advantages([0.1] * 3) == [0.0, 0.0, 0.0]
    assert group_advantages([0.1] * 3, ddof=1, epsilon=1e-4) == [0.0, 0.0, 0.0]
    mean = sum([0.1] * 3) / 3
    deviation = math.sqrt(sum((0.1 - mean) ** 2 for _ in range(3)) / 3)
    assert mean != 0.1
    assert [(0.1 - mean) / deviation for _ in range(3)] == pytest.approx([-1.0] * 3)


@pytest.mark.parametrize(
    ("rewards", "kwargs", "expected"),
    [
        ([0, 1], {}, [-1.0, 1.0]),
        ([0, 1], {"ddof": 1}, [-0.707107, 0.707107]),
        ([0] + [0.95] * 7, {"ddof": 1}, [-2.474874] + [0.353553] * 7),
        ([1] + [0] * 7, {}, [2.645751] + [-0.377964] * 7),
        ([1] + [0] * 7, {"ddof": 1}, [2.474874] + [-0.353553] * 7),
        ([1] + [0] * 7, {"ddof": 1, "epsilon": 1e-4}, [2.474174] + [-0.353453] * 7),
    ],
)
def test_g3_libraries_differ_in_ddof_and_epsilon(rewards, kwargs, expected):
    """Case G3 (huggingface/trl#4662; NVIDIA-NeMo/RL#4158): one success of eight is worth 2.645751 = sqrt(7) with
    ddof 0, 2.474874 = 7/sqrt(8) with ddof 1, and 2.474174 with TRL's ddof 1 and +1e-4.
    """
    assert group_advantages(rewards, **kwargs) == pytest.approx(expected, abs=1e-6)


def test_g3_closed_forms():
    assert group_advantages([1] + [0] * 7)[0] == pytest.approx(math.sqrt(7), rel=1e-15)
    assert group_advantages([1] + [0] * 7, ddof=1)[0] == pytest.approx(7 / math.sqrt(8), rel=1e-15)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("scale", [True, False])
def test_g3_a_group_of_one(ddof, scale):
    """Case G3 (NousResearch/atropos#465): one sample has no deviation. Foil: numpy's ddof 1 gives NaN."""
    assert group_advantages([0.7], ddof=ddof, scale=scale) == [0.0]
    with pytest.warns(RuntimeWarning):
        assert math.isnan((0.7 - np.mean([0.7])) / np.std([0.7], ddof=1))


def test_g3_leave_one_out_in_32_bits():
    """Case G3 (Tencent-Hunyuan/UniRL#335): the other seven rewards are all 0.95, so their deviation is 0 and the
    leave-one-out advantage stays unnormalised, 0 - 0.95. Foil: E[x^2] - mean^2 in 32 bits says 1.788139e-07 where the
    truth is 0, and with ddof 1 and +1e-6 the advantage explodes to -2075.39.
    """
    others = [0.95] * 7
    assert group_advantages(others, ddof=1, epsilon=1e-6) == [0.0] * 7
    x = np.float32(0.95)
    total = squares = np.float32(0)
    for _ in others:
        total, squares = total + x, squares + x * x
    mean = total / np.float32(7)
    variance = float(squares / np.float32(7) - mean * mean)
    assert variance == pytest.approx(1.788139e-07, rel=1e-6)
    foil = -0.95 / (math.sqrt(variance * 7 / 6) + 1e-6)
    assert foil == pytest.approx(-2075.39, abs=0.01)


def test_g5_rows_are_trajectories():
    """Case G5 (microsoft/agent-lightning#445; verl-project/verl#7244): A has reward 1 in 1 turn, B reward 0 in 3 turns.
    Per trajectory +-0.5; foil: one row per turn, baseline 0.25, +0.75 and -0.25.
    """
    assert group_advantages([1, 0], scale=False) == [0.5, -0.5]
    assert group_advantages([1, 0, 0, 0], scale=False)[:2] == [0.75, -0.25]


rationals = st.lists(st.integers(-36, 36).map(lambda n: F(n, 12)), min_size=1, max_size=8)


@settings(deadline=None)
@given(rationals)
def test_bare_differences_are_exact_on_fractions(rewards):
    advantages = group_advantages(rewards, scale=False)
    assert all(type(a) is F for a in advantages)
    assert sum(advantages) == 0
    assert [a - b for a, b in itertools.pairwise(advantages)] == [a - b for a, b in itertools.pairwise(rewards)]


@settings(deadline=None)
@given(rationals, st.sampled_from([0, 1]), st.sampled_from([0.0, 1e-4, F(1, 2)]))
def test_scaled_advantages_against_the_statistics_module(rewards, ddof, epsilon):
    advantages = group_advantages(rewards, ddof=ddof, epsilon=epsilon)
    assert all(type(a) is float for a in advantages)
    if len(set(rewards)) == 1:
        assert advantages == [0.0] * len(rewards)
        return
    deviation = (statistics.stdev if ddof else statistics.pstdev)(rewards)
    mean = statistics.mean(rewards)
    expected = [float(r - mean) / (float(deviation) + float(epsilon)) for r in rewards]
    assert advantages == pytest.approx(expected, rel=1e-12, abs=1e-15)


@settings(deadline=None)
@given(rationals, st.integers(1, 100).map(lambda n: F(n, 10)), st.integers(-50, 50).map(lambda n: F(n, 10)))
def test_scaled_advantages_do_not_see_the_unit_of_the_reward(rewards, factor, shift):
    """Rewards a r + b with a > 0 have the advantages of r: mean and deviation follow. Not so with an epsilon."""
    moved = [factor * r + shift for r in rewards]
    assert group_advantages(moved) == pytest.approx(group_advantages(rewards), rel=1e-12)


@pytest.mark.parametrize("unit", [1e-320, 1e-200, 1e-16, 1.0, 1e200, 1.7e308])
def test_squares_neither_vanish_nor_overflow(unit):
    """[0, u] has advantages -1, 1 in every unit. Foil: the variance u^2/4 is 0 or infinite as a float."""
    assert group_advantages([0.0, unit]) == [-1.0, 1.0]


def test_nearly_equal_rewards_are_told_apart():
    """One reward is a single unit in the last place above the others: the pattern is that of one success in three."""
    close = [0.1, 0.1, math.nextafter(0.1, 1)]
    assert group_advantages(close) == group_advantages([0, 0, 1])
    mean = sum(close) / 3
    assert [r - mean for r in close] != group_advantages(close, scale=False)  # the foil: a rounded mean


def test_arrays_tensors_and_columns():
    for array in (np.array, torch.tensor, pd.Series):
        assert group_advantages(array([0.0, 1.0])) == [-1.0, 1.0]
        assert group_advantages(array([0, 1])) == [-1.0, 1.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, None, "1", True])
def test_a_bad_reward_is_named_with_its_position(bad):
    with pytest.raises(ValueError, match=r"rewards\[1\]"):
        group_advantages([0.0, bad])


@pytest.mark.parametrize(
    ("kwargs", "name"),
    [({"ddof": 2}, "ddof"), ({"ddof": -1}, "ddof"), ({"ddof": True}, "ddof"), ({"ddof": 0.0}, "ddof")]
    + [({"epsilon": e}, "epsilon") for e in (-1e-9, math.nan, math.inf, None, True)]
    + [({"scale": s}, "scale") for s in (0, 1, None, "group")],
)
def test_arguments_outside_their_range(kwargs, name):
    for rewards in ([0, 1], [1, 1], [1]):  # also where the argument would not be used
        with pytest.raises(ValueError, match=name):
            group_advantages(rewards, **kwargs)


def test_an_empty_group():
    with pytest.raises(ValueError, match=r"rewards is \[\]; expected at least one reward"):
        group_advantages([])


def test_a_deviation_beyond_the_largest_float():
    rewards = [-1.7e308, 1.7e308, 1.7e308]
    assert group_advantages(rewards) == group_advantages([0, 1, 1])
    with pytest.raises(ValueError, match="within the range of a float"):
        group_advantages(rewards, scale=False)


def test_the_denominator_neither_overflows_nor_vanishes():
    """Two rewards, ddof 1: the deviation is √2 times d, beyond a float for the largest d; the advantages are ±1/√2.

    The foil is the denominator in floats, which is infinite and gave advantages of 0.
    """
    biggest = 1.7976931348623157e308
    assert biggest * math.sqrt(2) == math.inf
    for epsilon in (0.0, 1e-4):
        assert group_advantages([-biggest, biggest], ddof=1, epsilon=epsilon) == pytest.approx(
            [-math.sqrt(0.5), math.sqrt(0.5)], rel=1e-15
        )
    # d is half of the smallest float, and so no float: the advantage is d / (d + epsilon).
    assert group_advantages([0, 5e-324]) == [-1.0, 1.0]
    assert group_advantages([0, 5e-324], epsilon=5e-324) == pytest.approx([-1 / 3, 1 / 3], rel=1e-15)


@pytest.mark.parametrize("size", [2**63, 10**400])
def test_a_size_beyond_all_groups(size):
    for p in (0.5, F(1, 2)):
        with pytest.raises(ValueError, match=r"group_size is .*; expected an integer not below 1 and below 2\*\*63"):
            informative_group_probability(p, size)
    assert informative_group_probability(0.5, 2**63 - 1) == 1.0


# --- what the advantages do to a gradient --------------------------------------------------------------------------
#
# A rollout takes one of a few actions with rational probabilities, softmax logits, and is paid by the dice of its
# action. Its score by logit k is 1[a = k] - p_k, and the gradient of the mean reward J by logit k is p_k (Q_k - J).

CHANCES = {"a": F(1, 2), "b": F(1, 3), "c": F(1, 6)}
PAID = {"a": {F(0): F(3, 4), F(1): F(1, 4)}, "b": {F(1, 2): F(1)}, "c": {F(0): F(1, 2), F(3): F(1, 2)}}
ROLLOUTS = [(a, r, p * q) for a, p in CHANCES.items() for r, q in PAID[a].items()]


def score(action, k):
    return (action == k) - CHANCES[k]


def true_slope(k):
    worth = {a: sum(r * q for r, q in row.items()) for a, row in PAID.items()}
    return CHANCES[k] * (worth[k] - sum(p * worth[a] for a, p in CHANCES.items()))


def mean_update(size, k, advantages):
    """Mean of 1/G times the sum of advantage times score, over all groups."""
    total = F(0)
    for group in itertools.product(ROLLOUTS, repeat=size):
        chance = math.prod((p for _, _, p in group), start=F(1))
        weights = advantages([r for _, r, _ in group])
        total += chance * sum(w * score(a, k) for w, (a, _, _) in zip(weights, group, strict=True)) / size
    return total


def against_the_others(rewards):
    """The leave-one-out baseline, by its definition."""
    return [r - (sum(rewards) - r) / (len(rewards) - 1) for r in rewards]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_groups_mean_shrinks_the_gradient_by_one_part_in_g(size):
    """E = (G - 1)/G times the gradient, since a rollout's reward is itself 1/G of its baseline; the other rewards are
    independent of its score, whose mean is 0. Without itself in the baseline the mean is the gradient. The foil, a
    bare mean without the factor, differs for every size.
    """
    for k in CHANCES:
        slope = true_slope(k)
        found = mean_update(size, k, lambda rewards: group_advantages(rewards, scale=False))
        assert found == F(size - 1, size) * slope
        assert found != slope  # the foil: "a baseline does not change the mean"
        if size > 1:
            assert mean_update(size, k, against_the_others) == slope


@settings(deadline=None)
@given(st.lists(st.integers(-36, 36).map(lambda n: F(n, 12)), min_size=2, max_size=8))
def test_leaving_oneself_out_is_a_factor(rewards):
    """r_i - mean of the others = G/(G - 1) (r_i - mean of all), group by group."""
    size = len(rewards)
    assert against_the_others(rewards) == [F(size, size - 1) * a for a in group_advantages(rewards, scale=False)]


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(-9, 9)), min_size=1, max_size=8))
def test_a_binary_group_compares_the_mean_scores_of_successes_and_failures(group):
    """With K successes of G the update is K (G - K)/G^2 times the difference of the mean scores; 0 for K = 0 and G."""
    wins, scores = [F(int(won)) for won, _ in group], [F(x) for _, x in group]
    size, k = len(group), int(sum(wins))
    advantages = group_advantages(wins, scale=False)
    update = sum(a * x for a, x in zip(advantages, scores, strict=True)) / size
    if k in (0, size):
        assert update == 0
    else:
        good = sum(x for won, x in zip(wins, scores, strict=True) if won) / k
        bad = sum(x for won, x in zip(wins, scores, strict=True) if not won) / (size - k)
        assert update == F(k * (size - k), size**2) * (good - bad)


def test_the_scale_can_turn_the_direction_round_with_three_rewards():
    """A risky action pays 10 with probability 1/8, a safe one pays 1; both are as probable. Risk is worth more, 5/4,
    and the bare differences say so. Divided by the deviation, which the rare 10 makes large, the mean update is against
    it. With two values of the reward this cannot happen (keydoor.estimators.group_gradient_factor is positive).
    """
    paid = [("risk", F(10), F(1, 16)), ("risk", F(0), F(7, 16)), ("safe", F(1), F(1, 2))]

    def update(scale):
        total = 0.0
        for group in itertools.product(paid, repeat=4):
            chance = float(math.prod(p for _, _, p in group))
            weights = group_advantages([r for _, r, _ in group], scale=scale)
            pairs = zip(weights, group, strict=True)
            total += chance * sum(float(w) * (0.5 if a == "risk" else -0.5) for w, (a, _, _) in pairs) / 4
        return total

    assert update(False) == pytest.approx(3 / 4 * 1 / 4 * (5 / 4 - 1))
    assert update(True) < -0.01
    assert group_gradient_factor(1 / 8, 4) > 0
