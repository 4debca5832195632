"""Returns, TD residuals and the end of a trajectory, against closed forms and exact fractions.

Every wrong formula that the public reports show stays here as a *foil*: computed beside the right one, with the
value by which it is recognised.
"""

import math
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.returns import (
    collector_target,
    discounted_return,
    discounted_td_sum,
    gae_advantages,
    lambda_returns,
    semi_markov_return,
    td_fixed_point,
    td_residuals,
)

approx = lambda x: pytest.approx(x, rel=1e-9, abs=1e-12)  # noqa: E731

fractions = st.integers(-60, 60).map(lambda n: F(n, 12))
discounts = st.integers(0, 20).map(lambda n: F(n, 20))
NOT_FINITE = [math.nan, math.inf, -math.inf, None, "1", True]
NO_DISCOUNT = [-0.1, 1.0000001, math.nan, None, "0.9", True]


# --- discounted return -------------------------------------------------------------------------------------------


def test_the_values_of_the_lab():
    """Discounted return and telescoping as the seed lab prints them: 0.81, and 0.41 = 0.41."""
    assert discounted_return([0.0, 0.0, 1.0], 0.9) == approx(0.81)
    deltas = td_residuals([0.0, 0.0, 1.0], [0.4, 0.5, 0.6, 0.0], 0.9, terminated=[False, False, True])
    assert discounted_td_sum(deltas, 0.9) == approx(0.41)


@settings(deadline=None)
@given(st.lists(fractions, max_size=8), discounts)
def test_discounted_return_is_its_defining_sum(rewards, gamma):
    """Horner's scheme against the sum of powers, on fractions: equal, not merely close. 0**0 is 1: at gamma = 0
    the first reward counts.
    """
    assert discounted_return(rewards, gamma) == sum(gamma**t * r for t, r in enumerate(rewards))


def test_geometric_series():
    """1 + g + ... + g^(n-1) = (1 - g^n) / (1 - g)."""
    assert discounted_return([1] * 50, F(9, 10)) == (1 - F(9, 10) ** 50) / (1 - F(9, 10))


@pytest.mark.parametrize(
    "rewards",
    [
        (0.0, 0.0, 1.0),
        np.array([0.0, 0.0, 1.0]),
        np.array([0, 0, 1]),
        torch.tensor([0.0, 0.0, 1.0], requires_grad=True),
        pd.Series([0.0, 0.0, 1.0], index=[5, 3, 4]),
    ],
    ids=lambda rewards: type(rewards).__name__,
)
def test_rewards_from_any_library(rewards):
    result = discounted_return(rewards, 0.9)
    assert type(result) is float
    assert result == approx(0.81)


def test_an_empty_episode_is_the_empty_sum():
    assert discounted_return([], 0.9) == 0
    assert discounted_td_sum([], 0.9) == 0
    assert semi_markov_return([], [], 0.9) == 0


@pytest.mark.parametrize("bad", NOT_FINITE)
def test_a_bad_reward_is_named_with_its_position(bad):
    with pytest.raises(ValueError, match=r"rewards\[1\]"):
        discounted_return([0.0, bad], 0.9)
    with pytest.raises(ValueError, match=r"deltas\[1\]"):
        discounted_td_sum([0.0, bad], 0.9)


@pytest.mark.parametrize("gamma", NO_DISCOUNT)
def test_a_discount_outside_the_unit_interval_is_refused_everywhere(gamma):
    for call in (
        lambda: discounted_return([1.0], gamma),
        lambda: discounted_td_sum([1.0], gamma),
        lambda: semi_markov_return([1.0], [1], gamma),
        lambda: td_residuals([1.0], [0.0, 0.0], gamma, [True]),
        lambda: collector_target(1.0, 0.0, gamma=gamma, terminated=True),
    ):
        with pytest.raises(ValueError, match="gamma"):
            call()


def test_overflow_is_an_error_and_not_an_infinity_that_travels_on():
    for call in (
        lambda: discounted_return([1.5e308] * 3, 1.0),
        lambda: semi_markov_return([1.5e308] * 3, [1, 1, 1], 1.0),
        lambda: td_residuals([1.5e308], [-1.5e308, 0.0], 1.0, [True]),
        lambda: collector_target(1.5e308, 1.5e308, gamma=1.0, terminated=False),
    ):
        with pytest.raises(ValueError, match="within the range of a float"):
            call()


def test_b6_the_length_of_a_tool_observation_does_not_discount():
    """Case B6 (verl-project/verl#6376, #7278): one reward per turn. The foil charges a step per tool token:
    0.99^1001 = 4.27e-05 instead of 0.99.
    """
    assert discounted_return([0, 1], 0.99) == approx(0.99)
    for tool_tokens in (0, 1, 10, 1000):
        foil = discounted_return([0] * (tool_tokens + 1) + [1], 0.99)
        assert (foil == approx(0.99)) == (tool_tokens == 0)
    assert foil == pytest.approx(4.273953e-05, rel=1e-6)


# --- semi-Markov return ------------------------------------------------------------------------------------------


def test_e1_the_reward_counts_from_the_start_of_its_macro_action():
    """Case E1 (DLR-RM/stable-baselines3#1889, openai/gym#27). Foils: one discount per decision, 0.9; reward
    read as arriving at the end of its macro-action, 0.9^5 = 0.59049.
    """
    assert semi_markov_return([0.0, 1.0], [2, 3], 0.9) == approx(0.81)
    assert semi_markov_return([0, 1], [2, 3], F(9, 10)) == F(81, 100)
    per_decision = discounted_return([0, 1], F(9, 10))
    at_the_end = semi_markov_return([F(9, 10) ** 2 * 0, F(9, 10) ** 3 * 1], [2, 3], F(9, 10))
    assert per_decision == F(9, 10)
    assert at_the_end == F(59049, 100_000)


def test_e1_primitive_stream_decides_the_reading():
    """Case E1: the stream [0,0 | 0,0,1] is worth 0.9^4 = 0.6561; inner sums [0, 0.81] give the same."""
    gamma = F(9, 10)
    inner = [discounted_return(part, gamma) for part in ([0, 0], [0, 0, 1])]
    assert inner == [0, F(81, 100)]
    assert semi_markov_return(inner, [2, 3], gamma) == discounted_return([0, 0, 0, 0, 1], gamma) == F(6561, 10_000)


@settings(deadline=None)
@given(st.lists(st.lists(fractions, min_size=1, max_size=5), max_size=6), discounts)
def test_semi_markov_return_equals_the_return_of_the_primitive_stream(macros, gamma):
    """sum_k g^(elapsed) sum_i g^i r_ki is the sum over the concatenated stream, for every way of cutting it."""
    inner = [discounted_return(part, gamma) for part in macros]
    stream = [r for part in macros for r in part]
    assert semi_markov_return(inner, [len(part) for part in macros], gamma) == discounted_return(stream, gamma)


@settings(deadline=None)
@given(st.lists(fractions, max_size=8), discounts)
def test_unit_durations_give_the_discounted_return(rewards, gamma):
    assert semi_markov_return(rewards, [1] * len(rewards), gamma) == discounted_return(rewards, gamma)


def test_e1_the_last_duration_matters_only_to_a_bootstrap():
    """Case E1: macro TD residual with R = .2, tau = 3, V = .5, V' = .7 is .2 + .9^3 * .7 - .5 = 0.2103; the foil
    takes one discount for the macro-action: .2 + .9 * .7 - .5 = 0.33.
    """
    assert semi_markov_return([0, 1], [2, 3], 0.9) == semi_markov_return([0, 1], [2, 77.5], 0.9)
    residual = semi_markov_return([F(2, 10), F(7, 10)], [3, 1], F(9, 10)) - F(5, 10)
    foil = discounted_return([F(2, 10), F(7, 10)], F(9, 10)) - F(5, 10)
    assert (residual, foil) == (F(2103, 10_000), F(33, 100))


def test_e1_fractions_of_a_unit():
    """Case E1: durations [0.5, 1.25] delay the second reward by half a unit: sqrt(0.9) = 0.948683..."""
    assert semi_markov_return([0, 1], [0.5, 1.25], 0.9) == approx(math.sqrt(0.9))
    assert semi_markov_return([0, 1], [F(1, 2), F(5, 4)], 0.9) == approx(math.sqrt(0.9))
    assert semi_markov_return([0, 1], torch.tensor([0.5, 1.25]), 0.9) == approx(math.sqrt(0.9))


@pytest.mark.parametrize("bad", [0, 0.0, -1, -2.5, math.nan, math.inf, None, "2", True])
def test_e1_a_duration_is_positive_and_finite(bad):
    """Case E1: the foil lets -2 through, and the reward *grows*, to 0.9^-2 = 1.234568. Zero is refused too: a
    semi-Markov process needs time to pass.
    """
    for durations, place in (([bad, 3], 0), ([2, bad], 1)):
        with pytest.raises(ValueError, match=rf"durations\[{place}\]"):
            semi_markov_return([0, 1], durations, 0.9)
    rewards, durations = [0, 1], [-2, 3]
    foil = sum(0.9 ** sum(durations[:k]) * reward for k, reward in enumerate(rewards))
    assert foil == pytest.approx(1.234568, rel=1e-6)


@pytest.mark.parametrize("durations", [[2], [2, 3, 4], []])
def test_e1_every_reward_has_a_duration(durations):
    with pytest.raises(ValueError, match=rf"rewards has 2, durations has {len(durations)}"):
        semi_markov_return([0, 1], durations, 0.9)


# --- TD residuals and telescoping --------------------------------------------------------------------------------

A3_REWARDS = [F(0), F(0), F(1)]
A3_VALUES = [F(4, 10), F(5, 10), F(6, 10), F(3, 10)]


def test_a3_true_end_and_cut():
    """Case A3(b) (hill-a/stable-baselines#1004): with V_3 = 0.3 the sum is 0.41 at a true end and 0.6287 at a cut.
    The foil drops the mask on the right-hand side only and says 0.6287 in both cases.
    """
    gamma = F(9, 10)
    ended = td_residuals(A3_REWARDS, A3_VALUES, gamma, [False, False, True])
    cut = td_residuals(A3_REWARDS, A3_VALUES, gamma, [False, False, False])
    assert ended == [F(5, 100), F(4, 100), F(4, 10)]
    assert type(ended) is list
    assert discounted_td_sum(ended, gamma) == F(41, 100)
    assert discounted_td_sum(cut, gamma) == F(6287, 10_000)
    foil = discounted_return(A3_REWARDS, gamma) - A3_VALUES[0] + gamma**3 * A3_VALUES[3]
    assert foil == F(6287, 10_000) != discounted_td_sum(ended, gamma)


def test_a3_one_call_takes_one_episode():
    """Case A3(a) (pytorch/rl#4210): episode A, cut with r = 0 and V = 1 on both sides, has residual 0. Foil: the
    arrays of two episodes concatenated, where the 100 of the next one leaks in: 0 + 100 - 1 = 99.
    """
    assert td_residuals([0], [1, 1], 1.0, [False]) == [0.0]
    foil = td_residuals([0, 0], [1, 100, 100], 1.0, [False, False])[0]
    assert foil == 99.0


def test_a3_a_flag_before_the_last_step_is_refused():
    """Case A3(c) (anthonytorlucci/rlevo#342): flags [F, T, F] would give 0.1427, equal to neither form."""
    with pytest.raises(ValueError, match=r"terminated\[1\] is True; expected False before the last step 2"):
        td_residuals(A3_REWARDS, A3_VALUES, F(9, 10), [False, True, False])
    with pytest.raises(ValueError, match=r"terminated\[0\]"):
        td_residuals([0, 0], [0, 0, 0], 0.9, [True, True])
    flags = [False, True, False]
    foil = [
        r + F(9, 10) * (0 if flag else after) - before
        for r, before, after, flag in zip(A3_REWARDS, A3_VALUES, A3_VALUES[1:], flags, strict=False)
    ]
    assert discounted_td_sum(foil, F(9, 10)) == F(1427, 10_000)


episodes = st.lists(st.tuples(fractions, fractions), min_size=1, max_size=8)


@settings(deadline=None)
@given(episodes, fractions, discounts, st.booleans())
def test_telescoping_with_and_without_a_true_end(steps, last_value, gamma, ended):
    """The sum g^t delta_t = G - V_0 + m g^T V_T, with m = 0 at a true end and 1 at a cut, for *any* numbers V.

    Shifting the index in sum g^(t+1) m V_(t+1) leaves only the two ends; nothing is asked of V.
    """
    rewards = [r for r, _ in steps]
    values = [v for _, v in steps] + [last_value]
    flags = [False] * (len(rewards) - 1) + [ended]
    total = discounted_td_sum(td_residuals(rewards, values, gamma, flags), gamma)
    tail = 0 if ended else gamma ** len(rewards) * last_value
    assert total == discounted_return(rewards, gamma) - values[0] + tail


@settings(deadline=None)
@given(episodes, discounts, fractions, fractions)
def test_a_true_end_does_not_look_at_the_value_after_it(steps, gamma, one, other):
    rewards = [r for r, _ in steps]
    values = [v for _, v in steps]
    flags = [False] * (len(rewards) - 1) + [True]
    reference = td_residuals(rewards, [*values, one], gamma, flags)
    assert td_residuals(rewards, [*values, other], gamma, flags) == reference
    assert td_residuals(rewards, [*values, math.nan], gamma, flags) == reference
    assert td_residuals(rewards, [*values, None], gamma, flags) == reference


def test_the_exact_value_function_has_residuals_zero():
    """V_t = r_t + g V_(t+1) by construction; an independent use of the definition."""
    gamma, rewards = F(3, 4), [F(1), F(-2), F(5)]
    values = [discounted_return(rewards[t:], gamma) for t in range(3)]
    assert td_residuals(rewards, [*values, math.nan], gamma, [False, False, True]) == [0, 0, 0]


@pytest.mark.parametrize("bad", NOT_FINITE)
def test_values_must_be_finite_where_they_exist(bad):
    with pytest.raises(ValueError, match=r"values\[1\]"):
        td_residuals([0.0, 0.0], [0.0, bad, 0.0], 0.9, [False, True])
    with pytest.raises(ValueError, match=r"values\[2\]"):
        td_residuals([0.0, 0.0], [0.0, 0.0, bad], 0.9, [False, False])


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.0] * 4, []])
def test_there_is_one_value_more_than_rewards(values):
    with pytest.raises(ValueError, match=rf"values has length {len(values)}; expected 3"):
        td_residuals([0.0, 0.0], values, 0.9, [False, True])


def test_flags_fit_the_rewards_and_are_booleans():
    with pytest.raises(ValueError, match="rewards has 2, terminated has 1"):
        td_residuals([0.0, 0.0], [0.0] * 3, 0.9, [True])
    with pytest.raises(ValueError, match=r"terminated\[1\] is 1; expected True or False"):
        td_residuals([0.0, 0.0], [0.0] * 3, 0.9, [False, 1])
    with pytest.raises(ValueError, match="terminated is True; expected a sequence"):
        td_residuals([0.0], [0.0] * 2, 0.9, True)


def test_an_episode_has_at_least_one_turn():
    with pytest.raises(ValueError, match=r"rewards is \[\]; expected at least one reward"):
        td_residuals([], [0.5], 0.9, [])


def test_arrays_tensors_and_columns():
    for array in (np.array, torch.tensor, pd.Series):
        deltas = td_residuals(
            array([0.0, 0.0, 1.0]), array([0.4, 0.5, 0.6, math.nan]), 0.9, array([False, False, True])
        )
        assert all(type(delta) is float for delta in deltas)
        assert deltas == pytest.approx([0.05, 0.04, 0.4], rel=1e-6)  # torch holds 0.4 in 32 bits


# --- collector target --------------------------------------------------------------------------------------------


def test_a1_only_termination_cuts_the_bootstrap():
    """Case A1 (DLR-RM/stable-baselines3#1864, #633; vwxyzjn/cleanrl#198): 0.25 at a true end, 0.25 + .95 * .8 = 1.01
    at a cut, and 0.25 if both flags are set. Foil: done = terminated or truncated loses the bootstrap, 0.25.
    """
    kwargs = {"gamma": F(95, 100)}
    reward, value = F(25, 100), F(8, 10)
    assert collector_target(reward, value, terminated=True, **kwargs) == F(25, 100)
    assert collector_target(reward, value, terminated=False, **kwargs) == F(101, 100)
    assert collector_target(reward, value, terminated=False, truncated=True, **kwargs) == F(101, 100)
    assert collector_target(reward, value, terminated=True, truncated=True, **kwargs) == F(25, 100)
    terminated, truncated = False, True
    foil = reward + kwargs["gamma"] * value * (1 - (terminated or truncated))
    assert foil == F(25, 100) != collector_target(reward, value, terminated=terminated, truncated=truncated, **kwargs)


def test_a1_a_value_that_does_not_exist_is_selected_away():
    """Case A1 (DLR-RM/stable-baselines3#1276): the foil multiplies, and NaN * 0 is NaN."""
    for nothing in (math.nan, None, math.inf):
        assert collector_target(0.25, nothing, gamma=0.95, terminated=True) == 0.25
    assert math.isnan(0.25 + 0.95 * math.nan * (1 - True))


def test_the_targets_of_the_lab():
    assert collector_target(0.0, 0.7, gamma=0.9, terminated=True) == 0.0
    assert collector_target(0.0, 0.7, gamma=0.9, terminated=False) == approx(0.63)


@pytest.mark.parametrize("bad", NOT_FINITE)
def test_a_target_is_made_of_finite_numbers(bad):
    with pytest.raises(ValueError, match="next_value"):
        collector_target(0.25, bad, gamma=0.95, terminated=False)
    with pytest.raises(ValueError, match="reward"):
        collector_target(bad, 0.8, gamma=0.95, terminated=True)


@pytest.mark.parametrize("bad", [None, 0, 1, 1.0, "False", math.nan])
def test_flags_of_a_target_are_booleans(bad):
    """``terminated="False"`` is true in Python; a flag is a boolean or an error."""
    with pytest.raises(ValueError, match="terminated"):
        collector_target(0.25, 0.8, gamma=0.95, terminated=bad)
    with pytest.raises(ValueError, match="truncated"):
        collector_target(0.25, 0.8, gamma=0.95, terminated=True, truncated=bad)


def test_flags_of_numpy_and_torch():
    assert collector_target(np.float64(0.25), 0.8, gamma=0.95, terminated=np.True_) == 0.25
    assert collector_target(0.25, torch.tensor(0.5), gamma=0.5, terminated=torch.tensor(False)) == 0.5


@settings(deadline=None)
@given(fractions, fractions, discounts, st.booleans(), st.booleans())
def test_a_target_is_the_td_residual_plus_the_value_before(reward, next_value, gamma, terminated, truncated):
    target = collector_target(reward, next_value, gamma=gamma, terminated=terminated, truncated=truncated)
    assert td_residuals([reward], [7, next_value], gamma, [terminated]) == [target - 7]


def test_a5_a_limit_of_the_task_and_a_limit_of_the_collector():
    """Case A5 (luchris429/purejaxrl#20; RobertTLange/gymnax#109; Pardo et al. 2018): reward 1 per step, gamma .9, three
    steps, always the same observation.

    If the limit belongs to the task, the values with one, two, three steps to go are 1, 1.9, 2.71. If it is the
    collector's, V = 1 + .9 V, so V = 10. Foils: a critic without a clock under a task limit has to give one
    number to three values: their mean, 1.87, by Monte Carlo; and TD(0) solves V = 1 + (2/3) .9 V, so V = 2.5.
    """
    gamma, one = F(9, 10), F(1)
    assert [discounted_return([one] * left, gamma) for left in (3, 2, 1)] == [F(271, 100), F(19, 10), one]
    value = F(0)
    for left in (1, 2, 3):  # backwards from the true end, one target each
        value = collector_target(one, value, gamma=gamma, terminated=left == 1, truncated=False)
    assert value == F(271, 100)
    assert collector_target(one, F(10), gamma=gamma, terminated=False, truncated=True) == 10
    monte_carlo = sum(discounted_return([one] * left, gamma) for left in (1, 2, 3)) / 3
    aliased = F(5, 2)
    targets = [collector_target(one, aliased, gamma=gamma, terminated=step == 2) for step in range(3)]
    assert monte_carlo == F(187, 100)
    assert sum(targets) / 3 == aliased  # the fixed point of TD(0)
    assert not {monte_carlo, aliased} & {F(271, 100), F(19, 10), one, F(10)}


BIG = 10**308  # a third of it more does not fit into a float


@pytest.mark.parametrize(
    "call",
    [
        lambda: discounted_return([0.5, BIG, BIG], 1),
        lambda: discounted_return([0.5, F(BIG), F(BIG)], F(1)),
        lambda: discounted_td_sum([0.5, BIG, BIG], 1),
        lambda: semi_markov_return([0.5, BIG, BIG], [1, 1, 1], 1),
        lambda: td_residuals([BIG], [0.5, BIG], 1, [False]),
        lambda: gae_advantages([1e308] * 3, [0.0] * 4, 1, 1, terminated=True),
        lambda: gae_advantages([BIG, BIG, 0.5], [0, 0, 0, 0], 1, 1, terminated=True),
    ],
)
def test_a_sum_beyond_a_float_is_a_value_error(call):
    """Floats become infinite; integers grow on, and raise ``OverflowError`` where they meet a float."""
    with pytest.raises(OverflowError):
        0.5 + (BIG + BIG)
    with pytest.raises(ValueError, match="expected a result within the range of a float"):
        call()


@pytest.mark.parametrize("gamma", [None, "0.9", math.nan, 1.5, True, 10**400, [0.9], 1j], ids=repr)
def test_the_discount_of_the_advantages_is_checked(gamma):
    with pytest.raises(ValueError, match=r"^gamma is .*; expected a number in \[0, 1\]"):
        gae_advantages([0.0, 1.0], [0.5, 0.5, 0.75], gamma, 0.5, terminated=True)


@pytest.mark.parametrize("scalar", [np.float32, np.float64, np.array, torch.tensor, lambda x: torch.tensor([x])[0]])
def test_advantages_are_plain_numbers_whatever_the_discount_is(scalar):
    """Half is exact in all of them, so that the values are equal; a tensor would have carried a gradient on."""
    result = gae_advantages([0.0, 1.0], [0.5, 0.5, 0.75], scalar(0.5), scalar(1.0), terminated=False)
    assert result == [0.1875, 0.875]
    assert [type(advantage) for advantage in result] == [float, float]


# --- lambda-returns and advantages across a cut ---------------------------------------------------------------------


@settings(deadline=None)
@given(episodes, fractions, discounts, discounts, st.booleans())
def test_the_advantage_is_the_lambda_return_minus_the_value(steps, last_value, gamma, mix, ended):
    """A_t = G^lambda_t - V_t, for both kinds of end and any numbers V. ``lambda_returns`` recurs on returns and
    ``gae_advantages`` on residuals, and the third computation here is the definition of the lambda-return by n-step
    returns: (1 - lambda) sum_(n < T-t) lambda^(n-1) G^(n) + lambda^(T-t-1) G^(T-t), where an n-step return takes the
    value after its last reward unless a true end stands there.
    """
    rewards = [r for r, _ in steps]
    values = [v for _, v in steps] + [last_value]
    length = len(rewards)

    def n_step(t, n):
        tail = 0 if ended and t + n == length else gamma**n * values[t + n]
        return discounted_return(rewards[t : t + n], gamma) + tail

    by_definition = [
        (1 - mix) * sum(mix ** (n - 1) * n_step(t, n) for n in range(1, length - t))
        + mix ** (length - t - 1) * n_step(t, length - t)
        for t in range(length)
    ]
    returns = lambda_returns(rewards, values, gamma, mix, terminated=ended)
    advantages = gae_advantages(rewards, values, gamma, mix, terminated=ended)
    assert returns == by_definition
    assert advantages == [g - v for g, v in zip(returns, values, strict=False)]


@settings(deadline=None)
@given(episodes, episodes, fractions, discounts, discounts)
def test_the_next_episode_leaks_if_the_recursion_runs_over_a_cut(first, second, last_value, gamma, mix):
    """Two episodes in one row of a buffer, the first one cut. Two masks are needed: m says whether there is a next
    value, c whether the next row belongs to this episode. Foil (Toni-SM/skrl#449, pytorch/rl#4210): one mask, c = m.
    The advantage of the next episode then enters with (gamma lambda)^(T-t), and nothing else changes.
    """
    rewards, values = [r for r, _ in first], [v for _, v in first] + [last_value]
    later = gae_advantages([r for r, _ in second], [v for _, v in second] + [0], gamma, mix, terminated=True)
    right = gae_advantages(rewards, values, gamma, mix, terminated=False)
    leaking, running = [], later[0]  # the foil does not stop here
    for delta in reversed(td_residuals(rewards, values, gamma, [False] * len(rewards))):
        running = delta + gamma * mix * running
        leaking.insert(0, running)
    length = len(rewards)
    assert [a - b for a, b in zip(leaking, right, strict=True)] == [
        (gamma * mix) ** (length - t) * later[0] for t in range(length)
    ]


def test_the_two_ends_of_lambda():
    """At lambda = 0 these are the one-step targets, at lambda = 1 the return and the discounted value at a cut."""
    rewards, values, gamma = A3_REWARDS, A3_VALUES, F(9, 10)
    for ended in (True, False):
        one_step = [
            collector_target(r, after, gamma=gamma, terminated=ended and t == 2)
            for t, (r, after) in enumerate(zip(rewards, values[1:], strict=True))
        ]
        assert lambda_returns(rewards, values, gamma, 0, terminated=ended) == one_step
        full = [
            discounted_return(rewards[t:], gamma) + (0 if ended else gamma ** (3 - t) * values[3]) for t in range(3)
        ]
        assert lambda_returns(rewards, values, gamma, 1, terminated=ended) == full


def test_lambda_returns_read_no_value_after_a_true_end():
    kwargs = {"gamma": 0.9, "gae_lambda": 0.5}
    reference = lambda_returns([0.0, 1.0], [0.5, 0.5, 7.0], **kwargs, terminated=True)
    for nothing in (math.nan, math.inf, None):
        assert lambda_returns([0.0, 1.0], [0.5, 0.5, nothing], **kwargs, terminated=True) == reference
        with pytest.raises(ValueError, match=r"values\[2\]"):
            lambda_returns([0.0, 1.0], [0.5, 0.5, nothing], **kwargs, terminated=False)


def test_lambda_returns_refuse_what_has_no_meaning():
    with pytest.raises(ValueError, match="at least one reward"):
        lambda_returns([], [0.5], 0.9, 0.5, terminated=True)
    with pytest.raises(ValueError, match="values has length 2; expected 3"):
        lambda_returns([0.0, 1.0], [0.5, 0.5], 0.9, 0.5, terminated=True)
    with pytest.raises(ValueError, match="terminated is 0"):
        lambda_returns([1.0], [0.5, 0.5], 0.9, 0.5, terminated=0)
    with pytest.raises(ValueError, match="gae_lambda"):
        lambda_returns([1.0], [0.5, 0.5], 0.9, 1.5, terminated=True)
    with pytest.raises(ValueError, match="gamma"):
        lambda_returns([1.0], [0.5, 0.5], math.nan, 0.5, terminated=True)
    with pytest.raises(ValueError, match="within the range of a float"):
        lambda_returns([1e308] * 3, [0.0] * 4, 1, 1, terminated=True)


# --- fixed points ---------------------------------------------------------------------------------------------------


@st.composite
def processes(draw, most=4):
    """Rewards, a substochastic matrix with an end in every row, and a discount: all exact."""
    n = draw(st.integers(1, most))
    rewards = draw(st.lists(fractions, min_size=n, max_size=n))
    weights = [draw(st.lists(st.integers(0, 3), min_size=n + 1, max_size=n + 1)) for _ in range(n)]
    rows = [[F(w, sum(row) + 1) for w in row[:n]] for row in weights]
    return rewards, rows, draw(discounts)


def after_one_step(rewards, rows, gamma, values):
    """The right side of the Bellman equation, by its definition."""
    return [
        r + gamma * sum(p * v for p, v in zip(row, values, strict=True)) for r, row in zip(rewards, rows, strict=True)
    ]


@settings(deadline=None)
@given(processes())
def test_a_fixed_point_solves_its_bellman_equation(process):
    """V = r + gamma P V, exactly, where each row of P lacks the probability of a true end. And it is the value: what a
    sum of n expected rewards leaves, V - sum_(t<n) gamma^t P^t r, is gamma^n P^n V, which dies out with the mass that
    has not ended. That sum is also the foil: the value of a task that ends after n steps.
    """
    rewards, rows, gamma = process
    values = td_fixed_point(rewards, rows, gamma)
    assert values == after_one_step(rewards, rows, gamma, values)
    truncated, remainder, mass = [F(0)] * len(rewards), values, [F(1)] * len(rewards)
    for _ in range(9):
        truncated = after_one_step(rewards, rows, gamma, truncated)
        remainder = after_one_step([0] * len(rewards), rows, gamma, remainder)
        mass = after_one_step([0] * len(rewards), rows, gamma, mass)
        assert [v - w for v, w in zip(values, truncated, strict=True)] == remainder
    bound = max(abs(v) for v in values)
    assert all(abs(rest) <= m * bound for rest, m in zip(remainder, mass, strict=True))


@settings(deadline=None)
@given(processes(), processes())
def test_the_bias_of_a_target_is_its_defect_carried_on(process, twin):
    """A target that sees rewards r' and transitions K leads to W = r' + gamma K W. Put the value V into it once: the
    defect is d = V - r' - gamma K V, and V - W is the fixed point of d under K. The special cases of the chapter are
    foils: a cut taken for an end (K loses the cut steps), a value that is one step old (K stays in place), a life that
    goes on after the end (K leads back to the start), a reset row (r' and K are mixed with it).
    """
    rewards, rows, gamma = process
    n = len(rewards)
    other_rewards, other_rows, _ = twin
    other_rewards = (other_rewards * n)[:n]
    other_rows = [([*row, *[F(0)] * n])[:n] for row in (other_rows * n)[:n]]
    value = td_fixed_point(rewards, rows, gamma)
    wrong = td_fixed_point(other_rewards, other_rows, gamma)
    defect = [v - t for v, t in zip(value, after_one_step(other_rewards, other_rows, gamma, value), strict=True)]
    carried = td_fixed_point(defect, other_rows, gamma)
    assert [v - w for v, w in zip(value, wrong, strict=True)] == carried


@settings(deadline=None)
@given(processes(), st.data())
def test_a_cut_taken_for_an_end_costs_the_value_at_the_first_cut(process, data):
    """Let a step s -> s' be cut with probability C(s, s'). The target that treats cuts as ends leads to the solution of
    W = r + gamma P_c W, P_c = P (1 - C), and its bias is -gamma sum over the first cut of gamma^t V: the closed form
    -(I - gamma P_c)^-1 gamma (P - P_c) V, itself a fixed point. The right target leads to V whatever C is.
    """
    rewards, rows, gamma = process
    cut = [[F(data.draw(st.integers(0, 4)), 4) for _ in row] for row in rows]
    kept = [[p * (1 - c) for p, c in zip(row, crow, strict=True)] for row, crow in zip(rows, cut, strict=True)]
    value = td_fixed_point(rewards, rows, gamma)
    lost = [
        gamma * sum((p - k) * v for p, k, v in zip(row, krow, value, strict=True))
        for row, krow in zip(rows, kept, strict=True)
    ]
    wrong = td_fixed_point(rewards, kept, gamma)
    bias = [-b for b in td_fixed_point(lost, kept, gamma)]
    assert [w - v for w, v in zip(wrong, value, strict=True)] == bias


@settings(deadline=None)
@given(processes())
def test_bootstrapping_through_true_ends_strings_lives_together(process):
    """With an auto-reset the "next value" at a true end is the first value of the next episode, in state 0. The target
    that always bootstraps leads to W = V + L W(0), where L = E gamma^tau is the discount of the end, the fixed point
    of L = gamma e + gamma P L; in state 0 W(0) = V(0) / (1 - L(0)), a geometric series of lives.
    """
    rewards, rows, gamma = process
    ended = [1 - sum(row) for row in rows]
    if gamma == 1:
        gamma = F(9, 10)  # without discount the series of lives has no sum
    value = td_fixed_point(rewards, rows, gamma)
    discount_of_the_end = td_fixed_point([gamma * e for e in ended], rows, gamma)
    joined = [[p + (e if after == 0 else 0) for after, p in enumerate(row)] for row, e in zip(rows, ended, strict=True)]
    immortal = td_fixed_point(rewards, joined, gamma)
    assert immortal[0] == value[0] / (1 - discount_of_the_end[0])
    assert immortal == [v + d * immortal[0] for v, d in zip(value, discount_of_the_end, strict=True)]


def test_a5_all_fixed_points_of_the_time_limit_example():
    """Case A5 (Pardo et al. 2018): reward 1, gamma .9, three steps. The right targets give 2.71, 1.9, 1 if the limit is
    the task's and 10 if it is the collector's; each wrong target has a fixed point of its own.
    """
    gamma, chain, one = F(9, 10), [[0, 1, 0], [0, 0, 1], [0, 0, 0]], [1, 1, 1]
    assert td_fixed_point(one, chain, gamma) == [F(271, 100), F(19, 10), 1]
    assert td_fixed_point([1], [[1]], gamma) == [10]
    assert td_fixed_point(one, [[0, 1, 0], [0, 0, 1], [1, 0, 0]], gamma) == [10, 10, 10]  # foil: through the end
    assert td_fixed_point([1], [[F(2, 3)]], gamma) == [F(5, 2)]  # foil: no clock, one step of three ends
    assert td_fixed_point([F(3, 4)], [[1]], gamma) == [F(15, 2)]  # foil: one row of four is a reset, with reward 0


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 19).map(lambda n: F(n, 20)), discounts)
def test_a_clockless_critic_under_a_task_limit(limit, gamma, mix):
    """One observation, reward 1, a limit of N steps that belongs to the task. Averaged over visits, Monte Carlo gives
    (1/N) sum_n (1 - gamma^n)/(1 - gamma) and TD(0) 1/(1 - gamma (1 - 1/N)). TD(lambda) solves
    W = (1/N) sum_n sum_(l<n) (gamma lambda)^l (1 + gamma (1 - lambda) W [l < n - 1]); these two are lambda = 1 and 0.
    """
    states = td_fixed_point([1] * limit, [[int(j == i + 1) for j in range(limit)] for i in range(limit)], gamma)
    assert states[0] == (1 - gamma**limit) / (1 - gamma)
    monte_carlo = sum(states) / limit
    aliased = td_fixed_point([1], [[1 - F(1, limit)]], gamma)[0]
    assert aliased == 1 / (1 - gamma * (1 - F(1, limit)))

    def average_of_lambda_returns(w, lam):
        return sum(lambda_returns([1] * limit, [w] * (limit + 1), gamma, lam, terminated=True)) / F(limit)

    def solved(lam):
        start = average_of_lambda_returns(F(0), lam)
        return start / (1 - (average_of_lambda_returns(F(1), lam) - start))  # affine in w

    assert solved(F(0)) == aliased
    assert solved(F(1)) == monte_carlo
    closed = [
        sum((gamma * mix) ** l * F(1) for n in range(1, limit + 1) for l in range(n)) / limit,  # noqa: E741
        sum((gamma * mix) ** l * gamma * (1 - mix) for n in range(1, limit + 1) for l in range(n - 1)) / limit,  # noqa: E741
    ]
    assert solved(mix) == closed[0] / (1 - closed[1])


@settings(deadline=None)
@given(processes(), st.data())
def test_monte_carlo_and_td_on_observations_differ_by_what_the_observation_hides(process, data):
    """States x with weights d and observations o = phi(x). Monte Carlo leads to the average U(o) of the exact values,
    TD(0) to the fixed point W of averaged rewards and transitions, and U - W = gamma (I - gamma P')^-1 g, where
    g(o) is the average over x in o of sum_x' P(x, x') (U(x') - U(phi(x'))).
    """
    rewards, rows, gamma = process
    n = len(rewards)
    phi = [data.draw(st.integers(0, 1)) for _ in range(n)]
    phi = [sorted(set(phi)).index(o) for o in phi]
    weight = [F(data.draw(st.integers(1, 5))) for _ in range(n)]
    share = [w / sum(v for v, o in zip(weight, phi, strict=True) if o == phi[x]) for x, w in enumerate(weight)]
    seen = range(max(phi) + 1)
    value = td_fixed_point(rewards, rows, gamma)

    def average(column):
        return [sum(share[x] * column[x] for x in range(n) if phi[x] == o) for o in seen]

    mean_value, mean_reward = average(value), average(rewards)
    mean_rows = [
        average([sum(p for p, a in zip(row, phi, strict=True) if a == after) for row in rows]) for after in seen
    ]
    mean_rows = [[mean_rows[after][o] for after in seen] for o in seen]
    td = td_fixed_point(mean_reward, mean_rows, gamma)
    hidden = average([sum(p * (v - mean_value[a]) for p, v, a in zip(row, value, phi, strict=True)) for row in rows])
    gap = td_fixed_point([gamma * g for g in hidden], mean_rows, gamma)
    assert [u - w for u, w in zip(mean_value, td, strict=True)] == gap


def test_fixed_points_of_floats_agree_with_a_solver_of_linear_systems():
    generator = np.random.default_rng(3)
    rows = generator.dirichlet(np.ones(7), size=6)[:, :6]
    rewards = generator.normal(size=6)
    expected = np.linalg.solve(np.eye(6) - 0.97 * rows, rewards)
    assert td_fixed_point(rewards, rows, 0.97) == pytest.approx(expected.tolist(), rel=1e-9)


@pytest.mark.parametrize(
    ("rewards", "transitions", "gamma", "message"),
    [
        ([1, 1], [[0, 1]], F(1, 2), "rewards has 2, transitions has 1"),
        ([1], [[0, 1]], F(1, 2), r"transitions\[0\] has length 2; expected 1"),
        ([1], [[-0.1]], 0.5, r"transitions\[0\]\[0\] is -0.1; expected a probability"),
        ([1], [[F(11, 10)]], 0.5, r"the sum of transitions\[0\]"),
        ([math.nan], [[0]], 0.5, r"rewards\[0\]"),
        ([1], [[math.nan]], 0.5, r"transitions\[0\]\[0\]"),
        ([1], [["1"]], 0.5, r"transitions\[0\]\[0\]"),
        ([1], [1], 0.5, r"transitions\[0\]"),
        ([1], [[1]], 1, "no true end can be reached from state 0"),
        ([1, 1, 1], [[0, 1, 0], [0, 1, 0], [0, 0, 0]], 1, "from state 0"),
        ([1], [[0]], 1.5, "gamma"),
        ([1e308, 1e308], [[0.0, 1.0], [0.0, 0.0]], 1, "within the range of a float"),
    ],
)
def test_a_fixed_point_needs_a_process(rewards, transitions, gamma, message):
    with pytest.raises(ValueError, match=message):
        td_fixed_point(rewards, transitions, gamma)


def test_rounded_rows_and_the_discount_one():
    """Three thirds are not 1 in floats, and a row that sums to 1 but for rounding has no end."""
    thirds = [0.1, 0.2, 0.7]
    assert td_fixed_point([1.0] * 3, [thirds] * 3, 0.5) == pytest.approx([2.0] * 3)
    assert td_fixed_point([1, 1], [[0, 1], [0, 0]], 1) == [2, 1]
    with pytest.raises(ValueError, match="from state 0"):
        td_fixed_point([1.0] * 3, [thirds] * 3, 1)
    assert td_fixed_point([], [], 0.5) == []


@settings(deadline=None)
@given(st.integers(1, 9), discounts.filter(lambda g: g < 1), fractions)
def test_a_reset_row_pulls_the_critic_down(length, gamma, reward):
    """Next-step auto-reset (Denys88/rl_games#362): after each cut the vector environment returns
    one row that is no transition, from the last observation to the next first one, reward 0, no flag. In a world of one
    state an episode of N steps then gives N + 1 rows, and W = (N r + (N + 1) gamma W)/(N + 1) is the critic's mean
    target: the value times N/(N + 1). Checked against the rows themselves, one target at a time.
    """
    value = td_fixed_point([reward], [[1]], gamma)[0]
    polluted = td_fixed_point([reward * F(length, length + 1)], [[1]], gamma)[0]
    assert polluted == value * F(length, length + 1)
    rows = [reward] * length + [F(0)]
    targets = [collector_target(r, polluted, gamma=gamma, terminated=False) for r in rows]
    assert sum(targets) / len(rows) == polluted
    right = [
        collector_target(reward, value, gamma=gamma, terminated=False, truncated=t == length - 1) for t in range(length)
    ]
    assert sum(right) / length == value


@settings(deadline=None)
@given(processes(), st.data())
def test_a_cut_can_come_at_any_time(process, data):
    """Bootstrapping with the exact value is unbiased for every rule of stopping that looks back only: r_0 + ... up to
    the cut, and gamma^sigma V(s_sigma) there, has the mean V(s_0). The rule here cuts in state s at time t with a
    probability of its own; the foil counts nothing after the cut, and loses E gamma^sigma V(s_sigma).
    """
    rewards, rows, gamma = process
    n, horizon = len(rewards), 4
    value = td_fixed_point(rewards, rows, gamma)
    stop = [[F(data.draw(st.integers(0, 3)), 3) for _ in range(n)] for _ in range(horizon - 1)] + [[F(1)] * n]

    def collected(state, time, tail):
        total = rewards[state]
        for after, p in enumerate(rows[state]):
            cut = stop[time][after]
            total += gamma * p * cut * tail[after]
            if cut < 1:
                total += gamma * p * (1 - cut) * collected(after, time + 1, tail)
        return total

    assert [collected(s, 0, value) for s in range(n)] == value
    foil = collected(0, 0, [F(0)] * n)
    mass = [F(int(s == 0)) for s in range(n)]  # forwards: where the process is when it is cut, and what it is worth
    lost = F(0)
    for time in range(horizon):
        reached = [sum(mass[s] * rows[s][after] for s in range(n)) for after in range(n)]
        lost += gamma ** (time + 1) * sum(m * stop[time][s] * value[s] for s, m in enumerate(reached))
        mass = [m * (1 - stop[time][s]) for s, m in enumerate(reached)]
    assert foil == value[0] - lost
