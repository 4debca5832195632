"""Weights of a turn on trees small enough to follow every path: what each estimates, and how it varies."""

import math
from fractions import Fraction as F
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.turns import macro_action_logprob, turn_log_ratio, turn_probability_ratio
from keydoor.weights import chi_square, clipped_surrogate, length_normalised_ratio, turn_distribution

PI = {  # the small world of chapter 4: the root of every turn's ratio is rational
    (): {"inspect": F(1, 4), "finish": F(1, 8), "pickup": F(1, 2), "hm": F(1, 8)},
    ("pickup",): {"red": F(2, 3), "blue": F(1, 4), "green": F(1, 12)},
    ("hm",): {"inspect": F(3, 7), "pickup": F(4, 7)},
    ("hm", "pickup"): {"red": F(4, 7), "blue": F(2, 7), "green": F(1, 7)},
}
MU = {
    (): {"inspect": F(3, 8), "finish": F(1, 8), "pickup": F(1, 4), "hm": F(1, 4)},
    ("pickup",): {"red": F(1, 3), "blue": F(1, 2), "green": F(1, 6)},
    ("hm",): {"inspect": F(6, 7), "pickup": F(1, 7)},
    ("hm", "pickup"): {"red": F(1, 7), "blue": F(4, 7), "green": F(2, 7)},
}
ROOTS = {"inspect": F(2, 3), "pickup red": F(2), "hm inspect": F(1, 2), "hm pickup red": F(2)}  # all others: 1


def close(x):
    return pytest.approx(x, rel=1e-9, abs=1e-12)


def hybrid(position):
    """The policy that follows MU, except at one position of the turn, where it follows PI."""
    return {prefix: (PI if len(prefix) == position else MU)[prefix] for prefix in MU}


def token_ratios(turn):
    return [PI[turn[:i]][turn[i]] / MU[turn[:i]][turn[i]] for i in range(len(turn))]


def token_logs(policies, turn):
    """The log-probabilities of the tokens of a turn, one list for each policy."""
    return [[math.log(policy[turn[:i]][turn[i]]) for i in range(len(turn))] for policy in policies]


def expectation(weight, f=lambda turn: 1):
    """The mean of weight times f over the turns that MU writes, by complete enumeration."""
    return sum(p * weight(turn) * f(turn) for turn, p in turn_distribution(MU).items())


def right_key(turn):
    return turn[-1] == "red"


rows = st.lists(st.integers(1, 6), min_size=2, max_size=3)


@st.composite
def trees(draw, zeros=False):
    """Two policies over one random tree, at most three tokens deep, with positive probabilities (or some zeros)."""
    prefixes, shape = [()], {}
    while prefixes:
        prefix = prefixes.pop()
        weights = draw(rows)
        shape[prefix] = len(weights)
        for token in range(len(weights)):
            if len(prefix) < 2 and draw(st.booleans()):
                prefixes.append((*prefix, token))
    policies = []
    for least in (0 if zeros else 1, 1):
        policy = {}
        for prefix, width in shape.items():
            numbers = draw(st.lists(st.integers(least, 6), min_size=width, max_size=width).filter(any))
            policy[prefix] = {token: F(number, sum(numbers)) for token, number in enumerate(numbers)}
        policies.append(policy)
    return policies


# --- the tree ----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(trees())
def test_a_turn_is_a_product_and_all_turns_sum_to_one(policies):
    """The chain rule, against products taken by hand along each path; the sum is exactly 1. Foil: the geometric means
    of the same products are no distribution as soon as a turn has two tokens.
    """
    policy = policies[0]
    turns = turn_distribution(policy)
    assert sum(turns.values()) == 1
    for turn, probability in turns.items():
        assert probability == math.prod(policy[turn[:i]][turn[i]] for i in range(len(turn)))
        logs = [math.log(policy[turn[:i]][turn[i]]) for i in range(len(turn))]
        assert math.exp(macro_action_logprob(logs)) == close(float(probability))
    if any(len(turn) > 1 for turn in turns):
        assert sum(float(p) ** (1 / len(turn)) for turn, p in turns.items()) > 1


def test_no_turn_is_the_beginning_of_another_and_the_order_is_that_of_a_walk():
    turns = list(turn_distribution(MU))
    assert [" ".join(turn) for turn in turns[:4]] == ["inspect", "finish", "pickup red", "pickup blue"]
    assert not any(a != b and b[: len(a)] == a for a, b in product(turns, turns))


def test_turns_of_probability_zero_are_listed():
    assert turn_distribution({(): {"a": F(0), "b": F(1)}}) == {("a",): 0, ("b",): 1}


def test_floats_may_be_rounded():
    assert sum(turn_distribution({(): dict.fromkeys(range(10), 0.1)}).values()) == close(1.0)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({}, r"policy is .*an entry for \(\)"),
        ([], "policy is .*; expected a mapping"),
        ({(): {}}, r"policy\[\(\)\] is .*not empty"),
        ({(): {"a": 0.6, "b": 0.6}}, r"the sum of policy\[\(\)\] is 1\.2; expected 1"),
        ({(): {"a": F(1, 2)}}, r"the sum of policy\[\(\)\] is .*; expected 1"),
        ({(): {"a": math.nan}}, r"policy\[\(\)\]\['a'\] is nan"),
        ({(): {"a": F(1)}, "a": {"b": F(1)}}, "a key of policy is 'a'; expected a tuple"),
        ({(): {"a": F(1)}, ("b",): {"c": F(1)}}, r"a key of policy is \('b',\); expected a prefix that can be reached"),
        ({(): {"a": F(1)}, ("a", "b"): {"c": F(1)}}, "a prefix that can be reached"),
        ({(): {"a": F(1)}, ("b",): {"c": F(1)}, ("b", "c"): {"d": F(1)}}, "a prefix that can be reached"),
    ],
)
def test_a_tree_that_is_none(policy, message):
    with pytest.raises(ValueError, match=message):
        turn_distribution(policy)


# --- unbiased and biased weights ---------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(trees(), st.integers(0, 100))
def test_the_turn_ratio_is_unbiased(policies, salt):
    """E_mu[rho f] = E_pi[f] for any f, exactly; and a function of a prefix needs the ratio of that prefix only."""
    now, then = (turn_distribution(policy) for policy in policies)

    def f(turn):
        return hash((turn, salt)) % 7 - 3

    assert sum(q * (now[turn] / q) * f(turn) for turn, q in then.items()) == sum(p * f(turn) for turn, p in now.items())

    def ratio(turn, length):
        logs = [[math.log(p[turn[:i]][turn[i]]) for i in range(length)] for p in policies]
        return turn_probability_ratio(*logs)

    for turn, q in then.items():
        assert ratio(turn, len(turn)) == close(float(now[turn] / q))
    first = sum(float(q) * ratio(turn, 1) * f(turn[:1]) for turn, q in then.items())
    assert first == close(float(sum(p * f(turn[:1]) for turn, p in now.items())))


@settings(deadline=None, max_examples=40)
@given(trees(zeros=True), st.integers(0, 100))
def test_what_behaviour_cannot_write_is_lost(policies, salt):
    """Without full support the mean is E_pi[f; mu > 0]. The roles are turned here: the second policy is positive
    everywhere and is the one to be estimated, the first, with zeros, has sampled. Foil: the full E_pi[f].
    """
    then, now = (turn_distribution(policy) for policy in policies)

    def f(turn):
        return 1 + hash((turn, salt)) % 5

    mean = sum(q * (now[turn] / q) * f(turn) for turn, q in then.items() if q)
    missing = sum(p * f(turn) for turn, p in now.items() if not then[turn])
    foil = sum(p * f(turn) for turn, p in now.items())
    assert mean == foil - missing
    assert (mean == foil) == (missing == 0)


def test_the_length_normalised_weight_estimates_a_mixture():
    """E_mu[rho^(1/n) f] = sum pi^(1/n) mu^(1-1/n) f. On the small world every root is rational: the mass of the
    right key, 26/147, is added by hand, and pi's own probability of the right key, 55/147, is the foil.
    """
    now, then = turn_distribution(PI), turn_distribution(MU)

    def root(turn):
        return ROOTS.get(" ".join(turn), F(1))

    for turn, q in then.items():
        assert root(turn) ** len(turn) == now[turn] / q
        assert length_normalised_ratio(*token_logs((PI, MU), turn)) == close(float(root(turn)))
        mixture = float(now[turn]) ** (1 / len(turn)) * float(q) ** (1 - 1 / len(turn))
        assert float(q * root(turn)) == close(mixture)
    right = sum(p for turn, p in now.items() if right_key(turn))
    assert right == F(55, 147)
    assert expectation(root, right_key) == F(1, 6) + F(1, 98) == F(26, 147)
    assert expectation(lambda turn: now[turn] / then[turn], right_key) == right
    assert expectation(root) < 1 + sum((now[turn] - then[turn]) * F(1, len(turn)) for turn in then)


@settings(deadline=None, max_examples=40)
@given(trees())
def test_the_mass_of_the_length_normalised_weight_is_bounded(policies):
    """Weighted arithmetic and geometric means: E_mu[rho^(1/n)] <= 1 + E_pi[1/n] - E_mu[1/n]. (The ratio has mass 1.)"""
    now, then = (turn_distribution(policy) for policy in policies)
    mass = sum(float(q) * length_normalised_ratio(*token_logs(policies, turn)) for turn, q in then.items())
    assert mass <= 1 + float(sum((now[turn] - q) / len(turn) for turn, q in then.items())) + 1e-12


def test_the_mass_of_the_length_normalised_weight_can_exceed_one():
    """Short turns are weighted as pi would, long ones as mu does: mass 9/10 + 9/10 (1/9)^(1/4) = 1.4196."""
    tail = {("a",) * i: {"a": 1.0} for i in range(1, 4)}
    policies = [{(): {"b": p, "a": 1 - p}, **tail} for p in (0.9, 0.1)]
    then = turn_distribution(policies[1])
    mass = sum(q * length_normalised_ratio(*token_logs(policies, turn)) for turn, q in then.items())
    assert mass == close(0.9 + 0.9 * (1 / 9) ** 0.25)
    assert mass > 1.4


def test_a_token_weight_estimates_a_policy_that_deviates_once():
    """E_mu[r_i f; n >= i] is the mean of f under the hybrid policy, MU with token i from PI: exactly, for every i."""
    for position in range(3):
        at = turn_distribution(hybrid(position))
        for f in (right_key, len, lambda turn: turn[0] == "hm"):
            left = expectation(
                lambda turn, i=position: token_ratios(turn)[i] if len(turn) > i else 0,
                f,
            )
            assert left == sum(p * f(turn) for turn, p in at.items() if len(turn) > position)
    assert expectation(lambda turn: sum(token_ratios(turn))) == expectation(len)


@settings(deadline=None, max_examples=40)
@given(trees(), st.integers(0, 100))
def test_the_error_of_the_token_objective_is_of_second_order(policies, salt):
    """E_pi f - L = E_mu[sum_i (rho_{<i} - 1)(r_i - 1) f], and with |f| <= 1 it is at most 2 N (N - 1) delta^2, where N
    is the greatest length and delta the greatest total variation at one token.
    """
    pi, mu = policies
    now, then = (turn_distribution(policy) for policy in policies)

    def f(turn):
        return F(hash((turn, salt)) % 7 - 3, 3)

    surrogate = error = F(0)
    for turn, q in then.items():
        before, gain = F(1), F(0)
        for i in range(len(turn)):
            r = pi[turn[:i]][turn[i]] / mu[turn[:i]][turn[i]]
            gain += r - 1
            error += q * (before - 1) * (r - 1) * f(turn)
            before *= r
        surrogate += q * (1 + gain) * f(turn)
    assert sum(p * f(turn) for turn, p in now.items()) - surrogate == error
    delta = max(sum(abs(pi[h][x] - mu[h][x]) for x in mu[h]) / 2 for h in mu)
    longest = max(map(len, then))
    assert abs(error) <= 2 * longest * (longest - 1) * delta**2


def test_a_long_turn_is_hardly_corrected():
    """9000 tokens that each lost 2 per cent: the ratio is e^-180, its geometric mean e^-0.02, as if one token had."""
    current, behaviour = [-1.02] * 9000, [-1.0] * 9000
    assert turn_probability_ratio(current, behaviour) == pytest.approx(6.714184e-79, rel=1e-6)
    assert length_normalised_ratio(current, behaviour) == close(math.exp(-0.02))


def test_length_normalised_of_the_lab_masks_and_extremes():
    """Case C1: differences .07, .05, .03 have the geometric mean exp(.05) = 1.051271; a masked token is not counted."""
    current, behaviour = [-0.35, -0.26, -0.24], [-0.42, -0.31, -0.27]
    assert length_normalised_ratio(current, behaviour) == close(math.exp(0.05))
    masked = length_normalised_ratio([-0.35, math.nan, -0.24], [-0.42, None, -0.27], [1, 0, 1])
    assert masked == close(math.exp(0.05))
    foil = math.exp(turn_log_ratio([-0.35, -0.24], [-0.42, -0.27]) / 3)  # divided by all tokens, tool's included
    assert foil == pytest.approx(math.exp(0.1 / 3))
    assert length_normalised_ratio([-math.inf, -0.1], [-0.1, -0.1]) == 0.0
    assert length_normalised_ratio([0], [F(-(10**4))]) == math.inf
    assert length_normalised_ratio([F(-(10**400))], [F(-1)]) == 0.0
    assert length_normalised_ratio([F(-1), F(-2)], [F(-2), F(-1)]) == 1.0
    with pytest.raises(ValueError, match="current has 1, behavior has 2"):
        length_normalised_ratio([-0.1], [-0.1, -0.2])


# --- variance ----------------------------------------------------------------------------------------------------

step = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))


@settings(deadline=None)
@given(st.lists(step, min_size=1, max_size=3))
def test_the_variance_of_independent_tokens_multiplies(steps):
    """Var rho + 1 = prod (1 + chi_k^2), against complete enumeration of the turns. Foil: adding the chi squares, which
    is below the truth as soon as two of them are positive.
    """
    pis = [{"a": F(a, a + b), "b": F(b, a + b)} for a, b, _, _ in steps]
    mus = [{"a": F(c, c + d), "b": F(d, c + d)} for _, _, c, d in steps]
    words = [w for n in range(len(steps)) for w in product("ab", repeat=n)]
    now, then = (turn_distribution({w: table[len(w)] for w in words}) for table in (pis, mus))
    chis = [chi_square(p, m) for p, m in zip(pis, mus, strict=True)]
    variance = sum(q * (now[turn] / q) ** 2 for turn, q in then.items()) - 1
    assert chi_square(now, then) == variance == math.prod(1 + chi for chi in chis) - 1
    foil = sum(chis)
    assert (variance > foil) == (sum(chi > 0 for chi in chis) >= 2)


@settings(deadline=None, max_examples=40)
@given(trees())
def test_dependent_tokens_lie_between_powers(policies):
    """With every token's chi square between c and C, and length at most N, the variance lies between that of the
    shortest turn at c and of the longest at C.
    """
    pi, mu = policies
    now, then = (turn_distribution(policy) for policy in policies)
    chis = [chi_square(pi[prefix], mu[prefix]) for prefix in mu]
    lengths = [len(turn) for turn in then]
    assert (1 + min(chis)) ** min(lengths) <= 1 + chi_square(now, then) <= (1 + max(chis)) ** max(lengths)


@settings(deadline=None, max_examples=40)
@given(trees())
def test_the_second_moment_is_at_least_exp_of_kl(policies):
    """Jensen: E_mu[rho^2] = E_pi[rho] >= exp(KL(pi, mu)), and KL is a sum over the tokens met on the way."""
    pi, mu = policies
    now, then = (turn_distribution(policy) for policy in policies)
    kl = sum(float(p) * math.log(p / then[turn]) for turn, p in now.items())
    steps = sum(
        float(p) * sum(math.log(pi[turn[:i]][turn[i]] / mu[turn[:i]][turn[i]]) for i in range(len(turn)))
        for turn, p in now.items()
    )
    assert steps == pytest.approx(kl, abs=1e-12)
    assert 1 + chi_square(now, then) >= math.exp(kl) - 1e-12


@settings(deadline=None)
@given(step)
def test_the_lognormal_exponent_is_right_within_the_range_of_the_log_ratio(numbers):
    """((1 - e^-R)/R)^2 v <= log(1 + chi^2) <= ((e^R - 1)/R)^2 v with v the variance of the log-ratio under mu and R its
    range. Foil: the exponent v itself, which is not an upper bound.
    """
    a, b, c, d = numbers
    now, then = {"a": F(a, a + b), "b": F(b, a + b)}, {"a": F(c, c + d), "b": F(d, c + d)}
    logs = {x: math.log(now[x] / then[x]) for x in then}
    mean = sum(float(then[x]) * logs[x] for x in then)
    v = sum(float(then[x]) * (logs[x] - mean) ** 2 for x in then)
    R = max(logs.values()) - min(logs.values())
    exact = math.log(1 + chi_square(now, then))
    if R == 0:
        assert exact == 0
        return
    low, high = ((1 - math.exp(-R)) / R) ** 2 * v, ((math.exp(R) - 1) / R) ** 2 * v
    assert low * (1 - 1e-9) <= exact <= high * (1 + 1e-9)


def test_the_lognormal_exponent_can_err_on_either_side():
    for p, q, sign in ((F(1, 4), F(1, 10), 1), (F(3, 4), F(9, 10), 1), (F(1, 20), F(1, 4), -1)):
        now, then = {0: p, 1: 1 - p}, {0: q, 1: 1 - q}
        logs = [math.log(now[x] / then[x]) for x in (0, 1)]
        v = float(q * (1 - q)) * (logs[0] - logs[1]) ** 2
        assert (math.log(1 + chi_square(now, then)) - v) * sign > 0.005


def test_chi_square_of_what_is_missing():
    assert chi_square({"a": F(1)}, {"a": F(1, 2), "b": F(1, 2)}) == 1
    assert chi_square({"a": F(1, 2), "c": F(1, 2)}, {"a": F(1)}) == math.inf
    assert chi_square({"a": F(1, 2), "c": F(1, 2)}, {"a": F(1), "c": F(0)}) == math.inf
    assert chi_square({"a": 1, "c": 0}, {"a": 1}) == 0
    assert chi_square({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.75}) == close(1 / 3)
    for bad in ({}, [], {"a": 0.5}, {"a": math.nan}, {"a": -0.5, "b": 1.5}):
        with pytest.raises(ValueError, match=r"^(the sum of )?behavior"):
            chi_square({"a": 1}, bad)


# --- clipping ----------------------------------------------------------------------------------------------------

fractions = st.integers(0, 300).map(lambda n: F(n, 100))


@given(fractions, st.integers(-3, 3))
def test_where_the_clipped_objective_has_no_slope(w, advantage):
    """The objective is piecewise linear, so exact differences are its slopes: 0 for A > 0 above 1.28 and for A < 0
    below 0.8, else A. Foil: the plain clip(w) A, whose slope is 0 on both sides for either sign.
    """
    low, high, h = F(1, 5), F(28, 100), F(1, 1000)

    def slope(f):
        return (f(w + h) - f(w)) / h

    if any(w < kink <= w + h for kink in (1 - low, 1 + high)):
        return
    found = slope(lambda x: clipped_surrogate(x, advantage, epsilon_low=low, epsilon_high=high))
    dead = (advantage > 0 and w >= 1 + high) or (advantage < 0 and w < 1 - low)
    assert found == (0 if dead else advantage)
    foil = slope(lambda x: min(max(x, 1 - low), 1 + high) * advantage)
    assert foil == (advantage if 1 - low <= w < 1 + high else 0)


def test_c1_alternating_tokens_at_three_levels():
    """Case C1: log-ratios [1, -1, 1, -1]. The turn and its geometric mean have ratio 1 and keep their slope; of the
    tokens two are dead, and the mean of their objectives is (1.2 + 1/e)/2 = 0.783940 for A = 1.
    """
    current, behaviour = [-1.0, -3.0, -1.0, -3.0], [-2.0] * 4
    bounds = {"epsilon_low": 0.2, "epsilon_high": 0.2}
    for ratio in (turn_probability_ratio(current, behaviour), length_normalised_ratio(current, behaviour)):
        assert clipped_surrogate(ratio, 1.0, **bounds) == 1.0
    tokens = [math.exp(c - b) for c, b in zip(current, behaviour, strict=True)]
    means = [sum(clipped_surrogate(r, a, **bounds) for r in tokens) / 4 for a in (1.0, -1.0)]
    assert means == close([(1.2 + math.exp(-1)) / 2, -(math.e + 0.8) / 2])
    assert means[0] == pytest.approx(0.783940, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 1, 0.2, 0.2), "ratio is -0.1; expected a finite number not below 0"),
        ((math.inf, 1, 0.2, 0.2), "ratio is inf"),
        ((math.nan, 1, 0.2, 0.2), "ratio is nan"),
        ((1, math.nan, 0.2, 0.2), "advantage is nan"),
        ((1, 1, 1.2, 0.2), r"epsilon_low is 1.2; expected a number in \[0, 1\]"),
        ((1, 1, 0.2, -0.2), "epsilon_high is -0.2; expected a finite number not below 0"),
        ((1e200, -1e200, 0.2, 0.2), "the surrogate is -inf"),
    ],
)
def test_clipping_refuses_what_has_no_meaning(arguments, message):
    ratio, advantage, low, high = arguments
    with pytest.raises(ValueError, match=message):
        clipped_surrogate(ratio, advantage, epsilon_low=low, epsilon_high=high)
