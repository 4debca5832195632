"""Time inside a turn, against primitive streams, closed forms and brute force on fractions.

The wrong formulas that are really used (one discount per decision, rewards at the end, mean durations) stay as foils.
"""

import math
from fractions import Fraction as F
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from keydoor.returns import (
    discounted_return,
    gae_advantages,
    lambda_returns,
    semi_markov_return,
    td_fixed_point,
    td_residuals,
)
from keydoor.semimarkov import macro_rewards, mean_discount, semi_markov_advantages, semi_markov_td_residuals

fractions = st.integers(-60, 60).map(lambda n: F(n, 12))
discounts = st.integers(0, 20).map(lambda n: F(n, 20))
between = st.integers(1, 19).map(lambda n: F(n, 20))
streams = st.lists(st.lists(fractions, min_size=1, max_size=4), min_size=1, max_size=5)


@st.composite
def episodes(draw, most=5):
    """Rewards, values, integer durations of an episode of macro-actions."""
    count = draw(st.integers(1, most))
    rewards = draw(st.lists(fractions, min_size=count, max_size=count))
    values = draw(st.lists(fractions, min_size=count + 1, max_size=count + 1))
    durations = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    return rewards, values, durations


@st.composite
def semi_markov_processes(draw, most=3):
    """Rewards and, for each state, branches (probability, duration, next state); what is missing to 1 is the end."""
    count = draw(st.integers(1, most))
    rewards = draw(st.lists(fractions, min_size=count, max_size=count))
    branch = st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, count - 1))
    rows = []
    for _ in range(count):
        drawn = draw(st.lists(branch, min_size=1, max_size=3))
        total = sum(weight for weight, _, _ in drawn) + draw(st.integers(1, 2))
        rows.append([(F(weight, total), tau, after) for weight, tau, after in drawn])
    return rewards, rows


def kernel(rows, gamma):
    """K(s, s') = E[gamma^tau; s' | s], by its definition."""
    matrix = [[F(0)] * len(rows) for _ in rows]
    for s, row in enumerate(rows):
        for share, tau, after in row:
            matrix[s][after] += share * gamma**tau
    return matrix


# --- macro-actions and the stream ---------------------------------------------------------------------------------


@settings(deadline=None)
@given(streams, discounts)
def test_the_macro_return_is_the_streams_at_every_decision(macros, gamma):
    """Reduction: from every decision on, the semi-Markov return of the inner sums is the discounted return of what is
    left of the stream. Foil: one discount per decision, which is off by sum (gamma^k - gamma^e_k) R_k.
    """
    stream, durations = [r for part in macros for r in part], [len(part) for part in macros]
    inner = macro_rewards(stream, durations, gamma)
    for j in range(len(macros)):
        start = sum(durations[:j])
        assert semi_markov_return(inner[j:], durations[j:], gamma) == discounted_return(stream[start:], gamma)
    starts = [sum(durations[:k]) for k in range(len(macros))]
    gap = sum((gamma**k - gamma**e) * r for k, (e, r) in enumerate(zip(starts, inner, strict=True)))
    assert discounted_return(inner, gamma) - discounted_return(stream, gamma) == gap


@settings(deadline=None)
@given(streams, discounts, fractions, st.data())
def test_a_cut_inside_a_macro_action(macros, gamma, beyond, data):
    """Cut c steps into macro-action j: the elapsed time is that of the cut, for the reward and for the value `beyond`
    of what follows. Foils: the value discounted as if the macro-action had ended, or had not begun.
    """
    stream, durations = [r for part in macros for r in part], [len(part) for part in macros]
    j = data.draw(st.integers(0, len(macros) - 1))
    c = data.draw(st.integers(1, durations[j]))
    elapsed = sum(durations[:j]) + c
    reached = [*durations[:j], c]
    inner = macro_rewards(stream[:elapsed], reached, gamma)
    cut = semi_markov_return([*inner, beyond], [*reached, 1], gamma)
    assert cut == discounted_return([*stream[:elapsed], beyond], gamma)
    if c < durations[j] and gamma not in (0, 1) and beyond:
        late = semi_markov_return([*inner, beyond], [*durations[: j + 1], 1], gamma)
        early = semi_markov_return(inner, reached, gamma) + gamma ** sum(durations[:j]) * beyond
        assert cut not in (late, early)


@pytest.mark.parametrize("place", range(4))
def test_no_other_weighting_inside_a_macro_action_reduces(place):
    """A single reward at `place` of one macro-action of four steps: its weight must be gamma^place. The foils, weight 1
    (frame skipping, which adds up), gamma^4 (due at the end) and an even spread, miss at least one place each.
    """
    gamma = F(9, 10)
    stream = [F(int(i == place)) for i in range(4)]
    assert macro_rewards(stream, [4], gamma) == [gamma**place]
    spread = discounted_return([F(1, 4)] * 4, gamma)
    assert spread == (1 - gamma**4) / (4 * (1 - gamma))
    assert (gamma**place == 1) == (place == 0)
    assert gamma**place not in (gamma**4, spread)


def test_e1_the_numbers_of_the_case():
    """Case E1 (DLR-RM/stable-baselines3#1889, openai/gym#27): 0.6561 for the stream, 0.81 from the start, and as foils
    0.59049 at the end, 0.9 per decision.
    """
    gamma, stream = F(9, 10), [0, 0, 0, 0, 1]
    inner = macro_rewards(stream, [2, 3], gamma)
    assert inner == [0, F(81, 100)]
    assert semi_markov_return(inner, [2, 3], gamma) == F(6561, 10_000) == discounted_return(stream, gamma)
    assert semi_markov_return([0, 1], [2, 3], gamma) == F(81, 100)
    assert semi_markov_return([0, gamma**3], [2, 3], gamma) == F(59_049, 100_000)
    assert discounted_return([0, 1], gamma) == F(9, 10)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 4).map(F), min_size=1, max_size=4), min_size=1, max_size=4), between)
def test_sums_inside_and_rewards_at_the_end_have_a_sign(macros, gamma):
    """With rewards that are not negative: G_end <= G <= G_sum <= G / gamma^(longest - 1), and
    G - G_end = sum gamma^e_k (1 - gamma^tau_k) R_k. Frame skipping computes G_sum.
    """
    stream, durations = [r for part in macros for r in part], [len(part) for part in macros]
    inner = macro_rewards(stream, durations, gamma)
    right = semi_markov_return(inner, durations, gamma)
    at_end = semi_markov_return([gamma**tau * r for tau, r in zip(durations, inner, strict=True)], durations, gamma)
    summed = semi_markov_return([sum(part) for part in macros], durations, gamma)
    assert at_end <= right <= summed <= right / gamma ** (max(durations) - 1)
    lost = [(1 - gamma**tau) * r for tau, r in zip(durations, inner, strict=True)]
    assert right - at_end == semi_markov_return(lost, durations, gamma)


@pytest.mark.parametrize(("quick", "slow"), [(F(4, 5), F(19, 20))])
def test_where_the_reward_is_booked_decides_between_a_quick_and_a_slow_tool(quick, slow):
    """Success .8 after one unit, .95 after twenty, gamma .99. Booked at the start the slow tool wins; booked in the
    last unit, where it is paid, the quick one: .8 > .95 * .99^19 = .785.
    """
    gamma = F(99, 100)
    booked_at_start = [semi_markov_return([p], [tau], gamma) for p, tau in ((quick, 1), (slow, 20))]
    paid = [macro_rewards([0] * (tau - 1) + [p], [tau], gamma)[0] for p, tau in ((quick, 1), (slow, 20))]
    assert booked_at_start[0] < booked_at_start[1]
    assert paid[0] > paid[1] == slow * gamma**19


@pytest.mark.parametrize(
    ("stream", "durations", "message"),
    [
        ([0, 1], [1], "sum of durations is 1; expected 2"),
        ([0, 1], [1, 2], "sum of durations is 3; expected 2"),
        ([0, 1], [2, 0], r"durations\[1\]"),
        ([0, 1], [1.5, 0.5], r"durations\[0\]"),
        ([0, math.nan], [2], r"stream\[1\]"),
        ([0, 1], [True, 1], r"durations\[0\]"),
    ],
)
def test_a_stream_is_cut_completely(stream, durations, message):
    with pytest.raises(ValueError, match=message):
        macro_rewards(stream, durations, 0.9)


def test_macro_rewards_of_arrays_and_of_nothing():
    assert macro_rewards(np.array([0.0, 0.0, 1.0]), np.array([1, 2]), 0.5) == [0.0, 0.5]
    assert macro_rewards([], [], 0.5) == []
    with pytest.raises(ValueError, match="reward 0"):
        macro_rewards([1.5e308] * 2, [2], 1.0)
    with pytest.raises(ValueError, match="gamma"):
        macro_rewards([1], [1], 1.1)


# --- residuals and advantages -------------------------------------------------------------------------------------


@settings(deadline=None)
@given(episodes(), discounts, st.booleans())
def test_residuals_telescope_with_elapsed_time(episode, gamma, ended):
    """The sum of gamma^e_k delta_k is G_0 - V_0 + m gamma^e_K V_K. Foil: the same residuals summed with gamma^k leave
    a gap, -V_1 (gamma - gamma^tau_0) for two macro-actions that end truly and pay nothing.
    """
    rewards, values, durations = episode
    deltas = semi_markov_td_residuals(rewards, values, durations, gamma, terminated=ended)
    total = semi_markov_return(deltas, durations, gamma)
    tail = 0 if ended else gamma ** sum(durations) * values[-1]
    assert total == semi_markov_return(rewards, durations, gamma) - values[0] + tail
    deltas = semi_markov_td_residuals([0, 0], [*values[:2], 0], [durations[0], 1], gamma, terminated=True)
    foil = discounted_return(deltas, gamma)
    assert foil + values[0] == -values[1] * (gamma - gamma ** durations[0])


@settings(deadline=None)
@given(episodes(), discounts, discounts, st.booleans(), st.sampled_from(["decision", "time"]))
def test_unit_durations_give_the_usual_residuals_and_advantages(episode, gamma, mix, ended, kind):
    rewards, values, _ = episode
    ones, flags = [1] * len(rewards), [False] * (len(rewards) - 1) + [ended]
    assert semi_markov_td_residuals(rewards, values, ones, gamma, terminated=ended) == td_residuals(
        rewards, values, gamma, flags
    )
    assert semi_markov_advantages(
        rewards, values, ones, gamma, mix, terminated=ended, lambda_per=kind
    ) == gae_advantages(rewards, values, gamma, mix, terminated=ended)


def test_e1_the_residual_of_the_case():
    """Case E1: .2 + .9^3 * .7 - .5 = 0.2103; the foil takes one discount for the macro-action, 0.33."""
    call = [F(2, 10)], [F(5, 10), F(7, 10)]
    assert semi_markov_td_residuals(*call, [3], F(9, 10), terminated=False) == [F(2103, 10_000)]
    assert td_residuals(*call, F(9, 10), [False]) == [F(33, 100)]


@settings(deadline=None)
@given(episodes(), discounts, discounts, st.booleans())
def test_both_advantages_are_weighted_telescopes(episode, gamma, mix, ended):
    """Abel: with weights c_0 = 1, c_1, ... the sum of c_l gamma^(elapsed) delta_(k+l) is the mixture of the n-step
    returns with weights c_(n-1) - c_n, the last with c_(N-1), minus V_k. Per decision c_l = lambda^l, per unit of time
    c_l = lambda^(elapsed). The n-step returns are computed from rewards and a value, without residuals.
    """
    rewards, values, durations = episode
    count = len(rewards)
    for kind in ("decision", "time"):
        advantages = semi_markov_advantages(rewards, values, durations, gamma, mix, terminated=ended, lambda_per=kind)
        for k in range(count):
            elapsed = [sum(durations[k : k + n]) for n in range(count - k + 1)]
            weight = [mix**n if kind == "decision" else mix**tau for n, tau in enumerate(elapsed)]
            mixture = F(0)
            for n in range(1, count - k + 1):
                n_step = semi_markov_return(rewards[k : k + n], durations[k : k + n], gamma)
                if k + n < count or not ended:
                    n_step += gamma ** elapsed[n] * values[k + n]
                mixture += (weight[n - 1] - (weight[n] if k + n < count else 0)) * n_step
            assert advantages[k] == mixture - values[k]


@settings(deadline=None)
@given(episodes(), between, st.booleans(), st.sampled_from(["decision", "time"]))
def test_the_two_ends_of_lambda(episode, gamma, ended, kind):
    """At 0 the residuals; at 1 the return minus the value, plus the bootstrap at a cut. The two kinds agree there."""
    rewards, values, durations = episode
    call = rewards, values, durations, gamma
    assert semi_markov_advantages(*call, 0, terminated=ended, lambda_per=kind) == semi_markov_td_residuals(
        *call, terminated=ended
    )
    for k, advantage in enumerate(semi_markov_advantages(*call, 1, terminated=ended, lambda_per=kind)):
        tail = 0 if ended else gamma ** sum(durations[k:]) * values[-1]
        assert advantage == semi_markov_return(rewards[k:], durations[k:], gamma) - values[k] + tail


@settings(deadline=None)
@given(episodes(), between, between, st.booleans(), st.data())
def test_lambda_per_time_does_not_see_where_a_macro_action_is_cut(episode, gamma, mix, ended, data):
    """Split macro-action j at u, with any division of its reward and the value at the border that agrees with what
    follows. Per unit of time no advantage changes. Per decision all that lies beyond gets one more factor lambda: the
    foil for "the same data, only logged in finer turns".
    """
    rewards, values, durations = episode
    j = data.draw(st.integers(0, len(rewards) - 1))
    durations = [*durations[:j], durations[j] + 1, *durations[j + 1 :]]  # long enough to be split
    u = data.draw(st.integers(1, durations[j] - 1))
    later = data.draw(fractions)  # what the second part earns, counted from the border
    last = j + 1 == len(rewards)
    border = later + (0 if last and ended else gamma ** (durations[j] - u) * values[j + 1])
    split = (
        [*rewards[:j], rewards[j] - gamma**u * later, later, *rewards[j + 1 :]],
        [*values[: j + 1], border, *values[j + 1 :]],
        [*durations[:j], u, durations[j] - u, *durations[j + 1 :]],
    )
    kept = [k if k <= j else k + 1 for k in range(len(rewards))]
    fine = semi_markov_advantages(*split, gamma, mix, terminated=ended, lambda_per="time")
    coarse = semi_markov_advantages(rewards, values, durations, gamma, mix, terminated=ended, lambda_per="time")
    assert [fine[k] for k in kept] == coarse
    fine = semi_markov_advantages(*split, gamma, mix, terminated=ended)
    coarse = semi_markov_advantages(rewards, values, durations, gamma, mix, terminated=ended)
    beyond = 0 if last else gamma ** sum(durations[: j + 1]) * coarse[j + 1]
    assert coarse[0] - fine[0] == (1 - mix) * mix ** (j + 1) * beyond


def test_a_value_after_the_end_is_not_read():
    for ended, value in ((True, math.nan), (False, 0.25)):
        deltas = semi_markov_td_residuals([0.0, 1.0], [0.5, 0.5, value], [2, 3], 0.5, terminated=ended)
        assert deltas == [-0.375, 0.5 if ended else 0.53125]
    with pytest.raises(ValueError, match=r"values\[2\]"):
        semi_markov_td_residuals([0.0, 1.0], [0.5, 0.5, math.nan], [2, 3], 0.5, terminated=False)


@pytest.mark.parametrize(
    ("rewards", "values", "durations", "message"),
    [
        ([], [0.0], [], "at least one reward"),
        ([1.0], [0.0, 0.0], [1, 1], "rewards has 1, durations has 2"),
        ([1.0], [0.0], [1], "values has length 1; expected 2"),
        ([1.0], [0.0, 0.0], [0], r"durations\[0\]"),
        ([1.0], [0.0, 0.0], [-1], r"durations\[0\]"),
        ([1.0], [0.0, 0.0], [math.inf], r"durations\[0\]"),
        ([math.nan], [0.0, 0.0], [1], r"rewards\[0\]"),
        ([1.5e308], [-1.5e308, 0.0], [1], "residual 0"),
    ],
)
def test_what_has_no_residual(rewards, values, durations, message):
    for call in (
        lambda: semi_markov_td_residuals(rewards, values, durations, 0.9, terminated=False),
        lambda: semi_markov_advantages(rewards, values, durations, 0.9, 0.5, terminated=False),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_the_words_and_numbers_of_an_advantage():
    call = [1.0], [0.0, 0.0], [1], 0.9
    with pytest.raises(ValueError, match="lambda_per is 'token'; expected one of decision, time"):
        semi_markov_advantages(*call, 0.5, terminated=True, lambda_per="token")
    with pytest.raises(ValueError, match="gae_lambda"):
        semi_markov_advantages(*call, 1.5, terminated=True)
    with pytest.raises(ValueError, match="terminated"):
        semi_markov_advantages(*call, 0.5, terminated=1)
    with pytest.raises(ValueError, match="advantage 0"):
        semi_markov_advantages([1e308] * 2, [0.0] * 3, [1, 1], 1, 1, terminated=True)


# --- the Bellman equation -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(semi_markov_processes(), between)
def test_the_bellman_equation_of_macro_actions_is_that_of_the_primitive_chain(process, gamma):
    """V = r + K V against a chain with one state per unit of time left, which td_fixed_point solves with gamma itself:
    a duration tau is tau - 1 waiting states. Foil: one gamma per decision, equal if all durations are 1.
    """
    rewards, rows = process
    count = len(rewards)
    value = td_fixed_point(rewards, kernel(rows, gamma), 1)
    waiting = [
        (s, b, left) for s, row in enumerate(rows) for b, (_, tau, _) in enumerate(row) for left in range(1, tau)
    ]
    index = {place: count + i for i, place in enumerate(waiting)}
    size = count + len(waiting)
    chain = [[F(0)] * size for _ in range(size)]
    for s, row in enumerate(rows):
        for b, (share, tau, after) in enumerate(row):
            chain[s][index[s, b, tau - 1] if tau > 1 else after] += share
            for left in range(1, tau):
                chain[index[s, b, left]][index[s, b, left - 1] if left > 1 else after] = F(1)
    primitive = td_fixed_point([*rewards, *[F(0)] * len(waiting)], chain, gamma)
    assert value == primitive[:count]
    foil = td_fixed_point(rewards, kernel([[(p, 1, after) for p, _, after in row] for row in rows], gamma), 1)
    if all(tau == 1 for row in rows for _, tau, _ in row):
        assert foil == value


@settings(deadline=None)
@given(semi_markov_processes(), between, st.lists(fractions, min_size=3, max_size=3), st.data())
def test_the_modulus_is_the_largest_mean_discount(process, gamma, other, data):
    """|T V - T W| <= rho |V - W| with rho = max_s E[gamma^tau; goes on], and V = W + 1 attains it."""
    rewards, rows = process
    matrix = kernel(rows, gamma)
    rho = max(mean_discount(merged([(tau, p) for p, tau, _ in row]), gamma) for row in rows)
    v = data.draw(st.lists(fractions, min_size=len(rows), max_size=len(rows)))
    w = other[: len(rows)]

    def backup(values):
        return [
            r + sum(k * x for k, x in zip(row, values, strict=True)) for r, row in zip(rewards, matrix, strict=True)
        ]

    def distance(one, two):
        return max(abs(a - b) for a, b in zip(one, two, strict=True))

    assert distance(backup(v), backup(w)) <= rho * distance(v, w)
    assert distance(backup([x + 1 for x in w]), backup(w)) == rho


def merged(pairs):
    law = {}
    for tau, p in pairs:
        law[tau] = law.get(tau, F(0)) + p
    return law


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=4), between, st.booleans())
def test_the_mean_discount_is_below_one_unless_time_stands_still(weights, gamma, hangs):
    """E[gamma^tau] = 1 only if tau = 0 for certain. And the two bounds of the chapter: with q = P(tau <= d) it is at
    most q + (1 - q) gamma^d, and at least q gamma^d.
    """
    total = sum(weight for _, weight in weights) + int(hangs)
    law = merged([(tau, F(weight, total)) for tau, weight in weights])
    mean = mean_discount(law, gamma)
    assert (mean == 1) == (set(law) == {0} and not hangs)
    for d in (1, 2, 4):
        q = sum((p for tau, p in law.items() if tau <= d), F(0))
        assert q * gamma**d <= mean <= q + (1 - q) * gamma**d


def test_free_decisions_have_no_value():
    """A state that thinks for no time and stays: K = [[1]], no equation to solve. With one more state in which time
    passes the modulus is still 1, and the solution exists: two steps contract.
    """
    with pytest.raises(ValueError, match="no true end can be reached from state 0"):
        td_fixed_point([0], [[mean_discount({0: 1}, F(9, 10))]], 1)
    matrix = [[0, 1], [F(9, 10), 0]]  # 0 -> 1 at once, 1 -> 0 after one unit
    assert td_fixed_point([0, 1], matrix, 1) == [10, 10]


def test_positive_durations_alone_are_not_enough():
    """Zeno: durations 1, 1/2, 1/4, ... are positive and add up to 2. The return of n decisions that pay 1 is then at
    least n gamma^2, without bound; with durations of 1 it stays below 1 / (1 - gamma).
    """
    for count in (10, 100, 1000):
        zeno = semi_markov_return([1] * count, [2.0**-k for k in range(count)], 0.9)
        assert zeno > 0.81 * count
        assert semi_markov_return([1] * count, [1] * count, 0.9) < 10 + 1e-9


# --- random durations ---------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5)), min_size=1, max_size=4), between)
def test_the_mean_duration_discounts_too_much(weights, gamma):
    """Jensen: E[gamma^tau] >= gamma^(E tau), equal for constant durations only. The power of a fraction is irrational
    in general, so both sides are raised to the denominator of the mean: E[gamma^tau]^n >= gamma^(n E tau), exactly.
    """
    total = sum(weight for _, weight in weights)
    law = merged([(tau, F(weight, total)) for tau, weight in weights])
    mean = sum((tau * p for tau, p in law.items()), F(0))
    left, right = mean_discount(law, gamma) ** mean.denominator, gamma**mean.numerator
    assert left >= right
    assert (left == right) == (len(law) == 1)


def test_closed_forms_of_mean_discounts():
    """Geometric: p g / (1 - (1 - p) g). The law 1 / (n (n + 1)) has no mean, yet 1 + (1 - g)/g ln(1 - g) is its mean
    discount; the foil, the mean duration, counts the future as 0.
    """
    p, g = F(1, 5), F(9, 10)
    geometric = mean_discount({n: p * (1 - p) ** (n - 1) for n in range(1, 300)}, g)
    assert float(geometric) == pytest.approx(float(p * g / (1 - (1 - p) * g)), rel=1e-12)
    heavy = mean_discount({n: 1 / (n * (n + 1)) for n in range(1, 20_000)}, 0.99)
    assert heavy == pytest.approx(1 + 0.01 / 0.99 * math.log(0.01), abs=1e-12)
    assert (
        mean_discount({1: F(9, 10), 100: F(1, 10)}, F(99, 100)) == F(9, 10) * F(99, 100) + F(1, 10) * F(99, 100) ** 100
    )


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4), fractions), min_size=1, max_size=4),
    between,
)
def test_discount_and_next_value_do_not_factor(outcomes, gamma):
    """E[gamma^tau V'] = E[gamma^tau] E[V'] + Cov. The foil without the covariance is right if one is constant."""
    total = sum(weight for weight, _, _ in outcomes)
    shares = [(F(weight, total), tau, value) for weight, tau, value in outcomes]
    joint = sum(p * gamma**tau * v for p, tau, v in shares)
    discount = mean_discount(merged([(tau, p) for p, tau, _ in shares]), gamma)
    value = sum(p * v for p, _, v in shares)
    covariance = sum(p * (gamma**tau - discount) * (v - value) for p, tau, v in shares)
    assert joint == discount * value + covariance
    if len({tau for _, tau, _ in shares}) == 1 or len({v for _, _, v in shares}) == 1:
        assert covariance == 0


@settings(deadline=None, max_examples=60)
@given(semi_markov_processes(), between)
def test_mean_durations_make_a_pessimist(process, gamma):
    """With rewards that are not negative, a critic that discounts by the mean duration of each (s, s') is nowhere
    above the value. Means are rounded up here to stay exact, which can only lower the foil further; constant durations
    are the case of equality.
    """
    rewards, rows = process
    rewards = [abs(r) for r in rewards]
    value = td_fixed_point(rewards, kernel(rows, gamma), 1)
    averaged = []
    for row in rows:
        total = sum(p for p, _, _ in row)
        mean = math.ceil(sum(p * tau for p, tau, _ in row) / total) if total else 1
        averaged.append([(p, mean, after) for p, _, after in row])
    independent = [
        [(p * q / total, tau, after) for p, tau, _ in row for q, _, after in row]
        if (total := sum(p for p, _, _ in row))
        else []
        for row in rows
    ]
    right = td_fixed_point(rewards, kernel(independent, gamma), 1)
    foil = td_fixed_point(rewards, kernel(averaged, gamma), 1)
    assert all(a <= b for a, b in zip(foil, right, strict=True))
    if all(len({tau for _, tau, _ in row}) == 1 for row in rows):
        assert foil == right == value


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ([1], "law is"),
        ({-1: 1}, "a duration of law is -1"),
        ({math.inf: 1}, "a duration of law is inf"),
        ({1: 1.5}, r"law\[1\]"),
        ({1: F(2, 3), 2: F(2, 3)}, "the sum of law is"),
        ({"1": 1}, "a duration of law"),
    ],
)
def test_what_is_no_law(law, message):
    with pytest.raises(ValueError, match=message):
        mean_discount(law, 0.9)


def test_the_edges_of_the_discount():
    assert mean_discount({0: F(1, 4), 1: F(3, 4)}, 0) == F(1, 4)  # 0^0 = 1
    assert mean_discount({0: F(1, 4), 7: F(1, 2)}, 1) == F(3, 4)
    assert mean_discount({}, F(1, 2)) == 0
    assert mean_discount(dict.fromkeys(range(10), 0.1), 1) == pytest.approx(1)


# --- clocks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [0, 1, 10, 1000])
def test_b6_the_clock_of_policy_tokens_does_not_see_the_tool(gap):
    """Case B6 (verl-project/verl#6376, #7278, #2337; radixark/miles#1827): a reward two policy tokens away is worth
    0.99, whatever the tool prints between. Foil: a clock of all tokens, 4.27e-05 at a gap of 1000.
    """
    gamma = F(99, 100)
    assert semi_markov_return([0, 1], [1, 1], gamma) == gamma
    foil = semi_markov_return([0, 1], [1 + gap, 1], gamma)
    assert (foil == gamma) == (gap == 0)
    if gap == 1000:
        assert float(foil) == pytest.approx(4.273953e-05, rel=1e-6)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), min_size=1, max_size=4), between)
def test_a_mixture_of_clocks_is_no_discount(loads, gamma):
    """D(t) = E_L[gamma^(L t)] satisfies D(s + t) >= D(s) D(t), with equality for a constant load only: no discount per
    step reproduces a load that persists. (Chebyshev's inequality for two monotone functions of L.)
    """
    total = sum(weight for _, weight in loads)
    law = merged([(load, F(weight, total)) for load, weight in loads])

    def d(t):
        return mean_discount({load * t: p for load, p in law.items()}, gamma)

    for s, t in ((1, 1), (1, 2), (3, 2)):
        assert d(s + t) >= d(s) * d(t)
        assert (d(s + t) == d(s) * d(t)) == (len(law) == 1)


@settings(deadline=None)
@given(st.integers(1, 12), between, fractions)
def test_a_wait_before_a_penalty_is_worth_something(wait, gamma, reward):
    """gamma^n r rises with n where r < 0: under any clock an agent that expects a penalty gains by writing on."""
    assume(reward != 0)
    worth = [semi_markov_return([0, reward], [n, 1], gamma) for n in range(1, wait + 2)]
    assert all((later > earlier) == (reward < 0) for earlier, later in pairwise(worth))


def test_lambda_returns_agree_with_unit_durations():
    """A third computation: advantages plus values are the lambda-returns of the module `returns`."""
    rewards, values = [F(0), F(1)], [F(1, 2), F(1, 3), F(3, 4)]
    advantages = semi_markov_advantages(rewards, values, [1, 1], F(9, 10), F(1, 2), terminated=False)
    whole = [a + v for a, v in zip(advantages, values, strict=False)]
    assert whole == lambda_returns(rewards, values, F(9, 10), F(1, 2), terminated=False)
