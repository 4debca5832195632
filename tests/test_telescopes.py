"""Weighted sums of residuals against sums written out, advantages against every path of a small world.

Fractions throughout: equal means equal. The wrong formulas of the public reports stay as foils.
"""

import math
from collections import defaultdict
from fractions import Fraction as F
from itertools import pairwise, product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from keydoor.exact import belief_model, evaluate_exactly
from keydoor.returns import (
    discounted_return,
    discounted_td_sum,
    gae_advantages,
    lambda_returns,
    td_residuals,
)
from keydoor.rules import ACTIONS, get_rules
from keydoor.telescopes import (
    advantage_moments,
    lambda_weights,
    n_step_advantages,
    read_decay,
    token_advantages,
    value_coefficients,
)

fractions = st.integers(-60, 60).map(lambda n: F(n, 12))
shares = st.integers(0, 12).map(lambda n: F(n, 12))
steps = st.lists(st.tuples(fractions, fractions), min_size=1, max_size=7)
ends = st.booleans()


def residuals(rewards, values, gamma, ended):
    return td_residuals(rewards, values, gamma, [False] * (len(rewards) - 1) + [ended])


def columns(rows, last):
    return [r for r, _ in rows], [v for _, v in rows] + [last]


# --- which sums telescope ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(steps, fractions, shares, ends, st.data())
def test_any_weighted_sum_keeps_its_coefficients_of_the_values(rows, last, gamma, ended, data):
    """Summation by parts: sum w d = sum w r + sum c V, with c_0 = -w_0, c_t = gamma w_(t-1) - w_t between the ends and
    c_T = gamma w_(T-1) at a cut, for all weights, rewards and values.
    """
    rewards, values = columns(rows, last)
    weights = [data.draw(fractions) for _ in rewards]
    left = sum(w * d for w, d in zip(weights, residuals(rewards, values, gamma, ended), strict=True))
    kept = value_coefficients(weights, gamma, terminated=ended)
    assert left == sum(w * r for w, r in zip(weights, rewards, strict=True)) + sum(
        c * v for c, v in zip(kept, values, strict=True)
    )
    assert kept[-1] == (0 if ended else gamma * weights[-1])


@settings(deadline=None)
@given(st.lists(fractions, min_size=1, max_size=7), shares, ends)
def test_only_the_discounted_sum_telescopes(weights, gamma, ended):
    """The values between the ends drop out if and only if w_t = gamma^t w_0; then the ends are left, -w_0 V_0 and
    gamma^T w_0 V_T at a cut: the identity of discounted_td_sum, and no other up to a factor.
    """
    kept = value_coefficients(weights, gamma, terminated=ended)
    geometric = [gamma**t * weights[0] for t in range(len(weights))]
    assert all(c == 0 for c in kept[1:-1]) == (weights == geometric)
    kept = value_coefficients(geometric, gamma, terminated=ended)
    tail = 0 if ended else gamma ** len(weights) * weights[0]
    assert kept == [-weights[0]] + [0] * (len(weights) - 1) + [tail]


@settings(deadline=None)
@given(st.integers(1, 8), shares, shares, ends)
def test_generalised_advantages_are_a_telescope_that_leaks(count, gamma, mix, ended):
    """With w_t = (gamma lambda)^t the value of turn t keeps gamma (1 - lambda) (gamma lambda)^(t-1). At gamma = 1 all
    coefficients together make -lambda^(T-1) at a true end and 0 at a cut: what a constant added to the critic does.
    """
    kept = value_coefficients([(gamma * mix) ** t for t in range(count)], gamma, terminated=ended)
    assert kept[1:-1] == [gamma * (1 - mix) * (gamma * mix) ** (t - 1) for t in range(1, count)]
    kept = value_coefficients([mix**t for t in range(count)], 1, terminated=ended)
    assert sum(kept) == (-(mix ** (count - 1)) if ended else 0)


def test_a3_each_wrong_sum_is_recognised_by_its_leak():
    """Case A3: 0.41 at a true end and 0.6287 at a cut. The foils differ by what their weights or flags leave behind:
    a flag one row early (anthonytorlucci/rlevo#342) loses gamma^2 V_2 and keeps gamma^3 V_3; another discount in the
    sum than in the residuals leaks (gamma - gamma') gamma'^(t-1) V_t; a baseline inside the mask
    (AI4Finance-Foundation/ElegantRL#183) is lost at the end.
    """
    rewards, values, gamma = [F(0), F(0), F(1)], [F(2, 5), F(1, 2), F(3, 5), F(3, 10)], F(9, 10)
    at_end, at_cut = (discounted_td_sum(residuals(rewards, values, gamma, end), gamma) for end in (True, False))
    assert (at_end, at_cut) == (F(41, 100), F(6287, 10_000))
    assert at_cut - at_end == gamma**3 * values[3]
    early = [
        rewards[0] + gamma * values[1] - values[0],
        rewards[1] - values[1],
        rewards[2] + gamma * values[3] - values[2],
    ]
    assert discounted_td_sum(early, gamma) == F(1427, 10_000) == at_cut - gamma**2 * values[2]
    other = F(1)
    leak = sum((gamma - other) * other ** (t - 1) * values[t] for t in (1, 2))
    undiscounted = discounted_td_sum(residuals(rewards, values, gamma, True), other)
    assert undiscounted == discounted_return(rewards, other) - values[0] + leak == F(49, 100)
    inside = [
        r + m * (gamma * after - before)
        for r, m, after, before in zip(rewards, (1, 1, 0), values[1:], values, strict=False)
    ]
    assert discounted_td_sum(inside, gamma) == at_end + gamma**2 * values[2] == F(896, 1000)


# --- the mixture behind lambda -----------------------------------------------------------------------------------


@settings(deadline=None)
@given(steps, fractions, shares, shares, ends)
def test_the_generalised_advantage_is_a_mixture_of_n_step_advantages(rows, last, gamma, mix, ended):
    """A^(n) = G^(n) - V, the return of n steps and the value after them; their mixture with the weights of lambda is
    the advantage of the recursion and the lambda-return minus the value.
    """
    rewards, values = columns(rows, last)
    short = n_step_advantages(residuals(rewards, values, gamma, ended), gamma)
    for n, advantage in enumerate(short, 1):
        tail = 0 if ended and n == len(rewards) else gamma**n * values[n]
        assert advantage == discounted_return(rewards[:n], gamma) + tail - values[0]
    mixed = sum(p * a for p, a in zip(lambda_weights(mix, len(short)), short, strict=True))
    assert mixed == gae_advantages(rewards, values, gamma, mix, terminated=ended)[0]
    assert mixed == lambda_returns(rewards, values, gamma, mix, terminated=ended)[0] - values[0]


@settings(deadline=None)
@given(st.lists(fractions, min_size=1, max_size=7), shares, st.data())
def test_every_mixture_of_look_aheads_is_a_falling_sequence_of_weights(deltas, gamma, data):
    """sum_n p_n A^(n) = sum_l gamma^l Pr(n > l) d_l for any probabilities p. So weights 1 = P_0 >= P_1 >= ... >= 0 and
    mixtures are the same thing, and lambda^l belongs to the geometric look-ahead alone.
    """
    parts = [data.draw(st.integers(0, 5)) for _ in deltas]
    assume(sum(parts))
    p = [F(part, sum(parts)) for part in parts]
    mixed = sum(q * a for q, a in zip(p, n_step_advantages(deltas, gamma), strict=True))
    survival = [sum(p[l:]) for l in range(len(p))]  # noqa: E741
    assert mixed == sum(gamma**l * s * d for l, (s, d) in enumerate(zip(survival, deltas, strict=True)))  # noqa: E741
    assert [s - after for s, after in zip(survival, [*survival[1:], 0], strict=True)] == p


@settings(deadline=None)
@given(shares, st.integers(1, 9))
def test_the_weights_of_lambda_are_a_distribution_with_a_known_mean(mix, count):
    """They add up to 1, and the mean look-ahead is 1 + lambda + ... + lambda^(N-1), (1 - lambda^N)/(1 - lambda).
    At lambda = 0 all weight is on one step, at 1 all on the last. Foil: without the correction of the last weight the
    sum is 1 - lambda^N (anthonytorlucci/rlevo#343 asks where that mass goes).
    """
    weights = lambda_weights(mix, count)
    assert sum(weights) == 1
    assert min(weights) >= 0
    assert sum(n * p for n, p in enumerate(weights, 1)) == sum(mix**l for l in range(count))  # noqa: E741
    assert lambda_weights(0, 3) == [1, 0, 0]
    assert lambda_weights(1, 3) == [0, 0, 1]
    assert sum((1 - mix) * mix ** (n - 1) for n in range(1, count + 1)) == 1 - mix**count


@settings(deadline=None)
@given(steps, fractions, shares, shares, ends)
def test_the_decay_can_be_read_off_a_log(rows, last, gamma, mix, ended):
    """(A_t - d_t)/A_(t+1) = gamma lambda on every turn. Only the product: gamma and lambda apart cannot be told."""
    rewards, values = columns(rows, last)
    deltas = residuals(rewards, values, gamma, ended)
    made = gae_advantages(rewards, values, gamma, mix, terminated=ended)
    assume(any(made[1:]))
    assert read_decay(deltas, made) == gamma * mix
    floats = [float(d) for d in deltas], [float(a) for a in made]
    assert read_decay(*floats) == pytest.approx(float(gamma * mix), abs=1e-9)


def test_a_log_that_contradicts_itself_is_refused():
    """Normalised advantages, a recursion that ran over an end, and a mask in the middle: each names a turn."""
    rewards, values, gamma, mix = [F(0), F(0), F(1)], [F(2, 5), F(1, 2), F(3, 5), F(3, 10)], F(9, 10), F(1, 2)
    deltas = residuals(rewards, values, gamma, True)
    made = gae_advantages(rewards, values, gamma, mix, terminated=True)
    mean = sum(made) / 3
    with pytest.raises(ValueError, match=r"advantages\[\d\] is"):
        read_decay(deltas, [a - mean for a in made])
    leaking = [a + (gamma * mix) ** (3 - t) for t, a in enumerate(made)]
    with pytest.raises(ValueError, match=r"advantages\[2\] is Fraction\(17, 20\); expected 2/5, with the factor 9/20"):
        read_decay(deltas, leaking)
    masked = [deltas[0], *made[1:]]
    with pytest.raises(ValueError, match=r"advantages\[0\]"):
        read_decay(deltas, masked)


# --- tokens and turns --------------------------------------------------------------------------------------------

turns = st.lists(st.tuples(fractions, st.lists(fractions, min_size=1, max_size=4)), min_size=1, max_size=5)


@settings(deadline=None)
@given(turns, fractions, shares, shares, ends)
def test_without_decay_inside_a_turn_the_token_advantage_is_the_turn_advantage(rows, last, gamma, mix, ended):
    """At kappa = 1 the residuals inside a turn telescope: A_(t,i) = A_t + V_t - U_(t,i) for any critic inside."""
    rewards, inside = [r for r, _ in rows], [u for _, u in rows]
    found = token_advantages(rewards, inside, gamma, mix, terminated=ended, last_value=None if ended else last)
    whole = gae_advantages(rewards, [*(u[0] for u in inside), last], gamma, mix, terminated=ended)
    assert found == [[a + u[0] - v for v in u] for a, u in zip(whole, inside, strict=True)]


@settings(deadline=None)
@given(turns, fractions, shares, shares, shares, ends)
def test_the_decay_between_tokens_weighs_what_the_critic_says_inside(rows, last, gamma, mix, inner, ended):
    """Written out: A_(t,0) = sum_i kappa^i d_(t,i) + kappa^(n-1) gamma lambda A_(t+1,0). The value of token i >= 1
    keeps kappa^(i-1) (1 - kappa): none of it drops out unless kappa is 1 (or 0, beyond i = 1).
    """
    rewards, inside = [r for r, _ in rows], [u for _, u in rows]
    settings_ = {"token_lambda": inner, "terminated": ended, "last_value": last}
    found = token_advantages(rewards, inside, gamma, mix, **settings_)
    after, advantage = (F(0) if ended else last), F(0)
    for t in reversed(range(len(rows))):
        path = [*inside[t], rewards[t] + gamma * after]
        d = [b - a for a, b in pairwise(path)]
        advantage = sum(inner**i * x for i, x in enumerate(d)) + inner ** (len(d) - 1) * gamma * mix * advantage
        after = inside[t][0]
        assert found[t][0] == advantage
    for i in range(1, len(inside[0])):
        moved = [list(u) for u in inside]
        moved[0][i] += 1
        change = token_advantages(rewards, moved, gamma, mix, **settings_)[0][0] - found[0][0]
        assert change == inner ** (i - 1) * (1 - inner)


@settings(deadline=None)
@given(turns, shares, shares, shares)
def test_a_critic_that_is_flat_inside_a_turn_lets_the_credit_die_out(rows, gamma, mix, inner):
    """U_(t,i) = V_t: token i of n has kappa^(n-1-i) of what the last token has. With every token of an episode of K
    policy tokens counted as a step, the final reward reaches the first one as lambda^(K-1): 0.95^1000 is 5e-23.
    """
    rewards, inside = [r for r, _ in rows], [[u[0]] * len(u) for _, u in rows]
    found = token_advantages(rewards, inside, gamma, mix, token_lambda=inner, terminated=True)
    for row in found:
        assert row == [inner ** (len(row) - 1 - i) * row[-1] for i in range(len(row))]
    first = token_advantages([0, 1], [[0] * 3, [0] * 4], 1, mix, token_lambda=mix, terminated=True)[0][0]
    assert first == mix**6


def test_b6_the_length_of_an_observation_does_not_enter():
    """Case B6 (verl-project/verl#6376, #7278; radixark/miles#1827): rewards [0, 0, 1], mask [1, 0, 1], gamma 1/2 make
    returns [0.5, 1] on the policy's tokens, and with gamma .99 a gap of 1000 tokens 0.99. With V = 0 and lambda = 1 the
    advantage is the return. Foils: the mask taken for an end, a step charged for each token of the tool, and values
    of masked tokens set to 0 while they stay steps, which cuts the bootstrap in the middle.
    """
    assert token_advantages([0, 1], [[0], [0]], F(1, 2), 1, terminated=True) == [[F(1, 2)], [1]]
    assert token_advantages([0, 1], [[0], [0]], F(99, 100), 1, terminated=True)[0] == [F(99, 100)]
    assert F(1, 2) ** 2 == F(1, 4) != F(1, 2)
    assert math.isclose(0.99**1001, 4.273953e-05, rel_tol=1e-6)
    values, mix = [F(2, 5), F(1, 2)], F(19, 20)
    right = token_advantages([0, 1], [[v] for v in values], 1, mix, terminated=True)[0][0]
    assert right == F(23, 40)
    for gap in (0, 1, 10, 1000):
        zeroed = gae_advantages([0] * (gap + 1) + [1], [values[0], *[0] * gap, values[1], 0], 1, mix, terminated=True)[
            0
        ]
        whole = gae_advantages([0] * (gap + 1) + [1], [values[0], *[0] * gap, values[1], 0], 1, 1, terminated=True)[0]
        assert (zeroed == right) == (gap == 0)
        assert whole == 1 - values[0]  # at lambda = 1 even these values telescope
    assert float(zeroed) == pytest.approx(-0.4, abs=1e-9)


# --- mean and variance in the world ------------------------------------------------------------------------------

NOISE, GAMMA = F(3, 10), F(9, 10)


def careful(history):
    """What an agent does that remembers the clue and its own key."""
    clues = [word for word in history if word.startswith("clue_")]
    if not clues:
        return "inspect"
    colour, key = clues[-1][5:], None
    for action, shown in zip(history[1::2], history[2::2], strict=True):
        if action.startswith("pickup_") and shown == "key_held":
            key = action[7:]
    if history[-1] == "door_open":
        return "finish"
    return f"open_{colour}" if key == colour else f"pickup_{colour}"


def policy(history):
    return [NOISE / 6 + (1 - NOISE) * (action == careful(history)) for action in ACTIONS]


def every_episode(horizon):
    """Probability, histories, actions and rewards of every episode, by a walk of its own through the tables."""
    model = belief_model(get_rules("standard"))

    def walk(history, belief, probability, path):
        for action, chosen in enumerate(policy(history)):
            for branch in model.branches[belief][action]:
                share = probability * chosen * branch.probability
                step = [*path, (history, ACTIONS[action], branch.base_reward)]
                if branch.stop_reason is None and len(step) < horizon:
                    yield from walk((*history, ACTIONS[action], branch.observation), branch.belief, share, step)
                else:
                    yield share, *map(list, zip(*step, strict=True))

    return list(walk(("room",), model.start, F(1), []))


EPISODES = every_episode(3)
EXACT = {node.history: node.value for node in evaluate_exactly(policy, horizon=3, gamma=GAMMA).nodes}


def wrong(history):
    """A critic without merit, that tells histories apart."""
    return F(sum(map(len, history)) % 7, 10)


@pytest.mark.parametrize("mix", [F(0), F(1, 2), F(1)])
@pytest.mark.parametrize("critic", [wrong, EXACT, F(1, 4)])
def test_moments_agree_with_all_episodes_one_by_one(critic, mix):
    """Each episode's advantages by gae_advantages, weighed with its probability: mean, variance and exact advantage
    (the mean of the discounted return minus the value) of every state and action.
    """
    number = critic if callable(critic) else critic.__getitem__ if isinstance(critic, dict) else lambda _: critic
    sums = defaultdict(lambda: [F(0)] * 4)
    for probability, states, actions, rewards in EPISODES:
        made = gae_advantages(rewards, [*map(number, states), 0], GAMMA, mix, terminated=True)
        for t, key in enumerate(zip(states, actions, strict=True)):
            found = 1, made[t], made[t] ** 2, discounted_return(rewards[t:], GAMMA)
            sums[key] = [s + probability * x for s, x in zip(sums[key], found, strict=True)]
    rows = advantage_moments(policy, critic, mix, horizon=3, gamma=GAMMA)
    assert {(row.history, row.action) for row in rows} == set(sums)
    for row in rows:
        mass, first, second, returned = sums[row.history, row.action]
        assert row.probability == mass
        assert row.mean == first / mass
        assert row.variance == second / mass - (first / mass) ** 2
        assert row.exact == returned / mass - EXACT[row.history]
        assert row.error == number(row.history) - EXACT[row.history]


@pytest.mark.parametrize("mix", [F(0), F(1, 3), F(1)])
def test_the_bias_is_the_lambda_return_of_the_critics_error(mix):
    """With e = V - V^pi, on every path A[V] = A[V^pi] + (lambda-return of rewards 0 and values e) - e. Its mean is the
    bias: gamma (1 - lambda) sum (gamma lambda)^(l-1) E e_(t+l), minus e_t, which no action can change.
    """
    leak, mass = defaultdict(F), defaultdict(F)
    for probability, states, actions, rewards in EPISODES:
        exact, errors = [EXACT[h] for h in states], [wrong(h) - EXACT[h] for h in states]
        made, ideal = (
            gae_advantages(rewards, [*values, 0], GAMMA, mix, terminated=True) for values in (map(wrong, states), exact)
        )
        carried = lambda_returns([0] * len(rewards), [*errors, 0], GAMMA, mix, terminated=True)
        assert [a - b for a, b in zip(made, ideal, strict=True)] == [
            g - e for g, e in zip(carried, errors, strict=True)
        ]
        for t, key in enumerate(zip(states, actions, strict=True)):
            ahead = sum((GAMMA * mix) ** (l - 1) * errors[t + l] for l in range(1, len(errors) - t))  # noqa: E741
            assert carried[t] == GAMMA * (1 - mix) * ahead
            mass[key] += probability
            leak[key] += probability * carried[t]
    for row in advantage_moments(policy, wrong, mix, horizon=3, gamma=GAMMA):
        key = row.history, row.action
        assert row.mean == row.exact - row.error + leak[key] / mass[key]
        if mix == 1:
            assert leak[key] == 0
    assert mix == 1 or any(leak.values())


def test_a_constant_error_pays_for_turns():
    """V = V^pi + c and gamma = 1: the bias is c (1 - E lambda^(tau-t-1)) - c, and grows with the turns still to come if
    c > 0. An action that ends the episode at once has 0 of it, one that goes on has more: optimism pays for turns.
    """
    values = {node.history: node.value for node in evaluate_exactly(policy, horizon=3).nodes}
    mix, c = F(1, 2), F(1, 4)
    left, mass = defaultdict(F), defaultdict(F)
    for probability, states, actions, _ in EPISODES:
        for t, key in enumerate(zip(states, actions, strict=True)):
            mass[key] += probability
            left[key] += probability * mix ** (len(states) - t - 1)
    found = {}
    for row in advantage_moments(policy, lambda h: values[h] + c, mix, horizon=3):
        key = row.history, row.action
        found[key] = row.mean - row.exact + c
        assert found[key] == c * (1 - left[key] / mass[key])
    assert found[("room",), "finish"] == 0 < found[("room",), "inspect"]


@pytest.mark.parametrize("mix", [F(0), F(1, 2), F(1)])
def test_with_an_exact_critic_each_residual_adds_its_own_variance(mix):
    """The residuals of V^pi are differences of a martingale, hence uncorrelated: no bias, and the variance is
    sum_l (gamma lambda)^(2l) E[d_(t+l)^2] beyond the first, which only grows with lambda. So lambda = 0 is best there.
    """
    squares, mass = defaultdict(F), defaultdict(F)
    for probability, states, actions, rewards in EPISODES:
        d = residuals(rewards, [*(EXACT[h] for h in states), 0], GAMMA, True)
        for t, key in enumerate(zip(states, actions, strict=True)):
            mass[key] += probability
            squares[key] += probability * sum((GAMMA * mix) ** (2 * l) * x * x for l, x in enumerate(d[t:]))  # noqa: E741
    for row in advantage_moments(policy, EXACT, mix, horizon=3, gamma=GAMMA):
        key = row.history, row.action
        assert row.mean == row.exact
        assert row.variance == squares[key] / mass[key] - row.exact**2
    totals = [
        sum(row.probability * row.variance for row in advantage_moments(policy, EXACT, x, horizon=3, gamma=GAMMA))
        for x in (F(0), F(1, 2), F(1))
    ]
    assert totals == sorted(totals)


def test_the_error_has_three_parts_and_the_gradient_sees_one_of_them():
    """Mean square = level^2 + steering^2 + noise, where the level is the mean over actions. For softmax logits z the
    expected gradient, sum_a pi(a) (e_a - pi) E A, does not change when the level is taken out; the steering does.
    """
    rows = advantage_moments(policy, wrong, F(1, 2), horizon=3, gamma=GAMMA)
    states = defaultdict(list)
    for row in rows:
        states[row.history].append(row)
    parts, changed = [F(0)] * 3, False
    for found in states.values():
        mass = sum(row.probability for row in found)
        bias = [row.mean - row.exact for row in found]
        level = sum(row.probability * b for row, b in zip(found, bias, strict=True)) / mass
        parts[0] += mass * level**2
        parts[1] += sum(row.probability * (b - level) ** 2 for row, b in zip(found, bias, strict=True))
        parts[2] += sum(row.probability * row.variance for row in found)
        pi = [row.probability / mass for row in found]

        def gradient(column, pi=pi):
            mean = sum(p * x for p, x in zip(pi, column, strict=True))
            return [p * (x - mean) for p, x in zip(pi, column, strict=True)]

        means, exact = [row.mean for row in found], [row.exact for row in found]
        assert gradient(means) == gradient([m - level for m in means])
        changed = changed or gradient(means) != gradient(exact)
    assert changed
    square = sum(row.probability * (row.variance + (row.mean - row.exact) ** 2) for row in rows)
    assert square == sum(parts)


def test_memoryless_tables_and_other_worlds_are_evaluated_too():
    """A policy that sees the last observation alone, against itself as a function of histories."""
    table = {"room": {"inspect": 1}, "clue_red": {"pickup_red": 1}, "clue_blue": {"pickup_blue": 1},
             "key_held": {"open_red": F(1, 3), "open_blue": F(2, 3)}, "door_open": {"finish": 1}}  # fmt: skip
    rows = advantage_moments(table, {key: F(len(key), 20) for key in table}, F(1, 2), horizon=4, gamma=GAMMA)
    full = advantage_moments(lambda h: table[h[-1]], lambda h: F(len(h[-1]), 20), F(1, 2), horizon=4, gamma=GAMMA)
    merged, expected = defaultdict(F), defaultdict(F)
    for row in rows:
        merged[row.turn, row.history[-1], row.action] += row.probability * row.mean
    for row in full:
        expected[row.turn, row.history[-1], row.action] += row.probability * row.mean
    assert merged == expected
    others = advantage_moments(lambda h: [F(1, 8)] * 8, 0, 1, horizon=2, colours=3)
    assert sum(row.probability for row in others if row.turn == 0) == 1


# --- normalised advantages ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(steps, fractions, shares, shares, ends, fractions, st.integers(1, 12).map(lambda n: F(n, 3)))
def test_normalised_advantages_belong_to_other_rewards(rows, last, gamma, mix, ended, mu, sigma):
    """(A - mu)/sigma are the generalised advantages, divided by sigma, of rewards that are smaller by (1 - g) mu on
    every turn and by a further g mu on the last, with g = gamma lambda. At g = 1 only the last turn pays.
    """
    rewards, values = columns(rows, last)
    made = gae_advantages(rewards, values, gamma, mix, terminated=ended)
    g = gamma * mix
    other = [r - (1 - g) * mu for r in rewards]
    other[-1] -= g * mu
    again = gae_advantages(other, values, gamma, mix, terminated=ended)
    assert [(a - mu) / sigma for a in made] == [a / sigma for a in again]


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: value_coefficients([], 1, terminated=True), "weights is .*at least one weight"),
        (lambda: value_coefficients([1, math.nan], 1, terminated=True), r"weights\[1\] is nan"),
        (lambda: value_coefficients([1], 1.5, terminated=True), "gamma is 1.5"),
        (lambda: value_coefficients([1], 1, terminated=1), "terminated is 1"),
        (lambda: n_step_advantages([], 1), "deltas is .*at least one residual"),
        (lambda: n_step_advantages([1.7e308, 1.7e308], 1), "advantage of 2 steps"),
        (lambda: lambda_weights(2, 3), "gae_lambda is 2"),
        (lambda: lambda_weights(0.5, 0), "steps is 0"),
        (lambda: lambda_weights(0.5, True), "steps is True"),
        (lambda: read_decay([1], [1]), "at least two turns"),
        (lambda: read_decay([1, 2], [1]), "deltas has 2, advantages has 1"),
        (lambda: read_decay([1, 0], [1, 0]), "one that is not 0"),
        (lambda: read_decay([1, None], [1, 0]), r"deltas\[1\]"),
        (lambda: token_advantages([], [], 1, 1, terminated=True), "at least one reward"),
        (lambda: token_advantages([1], [[]], 1, 1, terminated=True), r"token_values\[0\] is .*at least one value"),
        (lambda: token_advantages([1], [[0], [0]], 1, 1, terminated=True), "rewards has 1, token_values has 2"),
        (lambda: token_advantages([1], [[math.inf]], 1, 1, terminated=True), r"token_values\[0\]\[0\] is inf"),
        (lambda: token_advantages([1], [[0]], 1, 1, terminated=False), "last_value is None"),
        (lambda: token_advantages([1], [[0]], 1, 1, token_lambda=-1, terminated=True), "token_lambda is -1"),
        (lambda: advantage_moments(policy, lambda h: None, 1, horizon=2), r"critic\[.*is None"),
        (lambda: advantage_moments(policy, {"room": 0}, 1, horizon=2), "critic is .*an entry for"),
        (lambda: advantage_moments(policy, 0, 1.5, horizon=2), "gae_lambda is 1.5"),
        (lambda: advantage_moments(policy, 0, 1, horizon=0), "horizon is 0"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_integers_are_exact():
    """A quotient of two integers is a fraction, and a decay of a third is found as such."""
    assert read_decay([1, 3], [2, 3]) == F(1, 3)
    for first, second in product((1, -2), (3, 4)):
        assert read_decay([0, second], [first, second]) == F(first, second)
