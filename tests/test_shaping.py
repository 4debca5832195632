"""Potential-based shaping: the identity, and what breaks when the potential at the end, or the discount, is wrong."""

import math
import random
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.exact import belief_model, evaluate_exactly
from keydoor.groups import group_advantages
from keydoor.returns import (
    discounted_return,
    gae_advantages,
    lambda_returns,
    td_fixed_point,
    td_residuals,
)
from keydoor.rules import get_rules
from keydoor.shaping import find_potential, potential_shaping, shaped_return_identity

fractions = st.integers(-60, 60).map(lambda n: F(n, 12))
discounts = st.integers(0, 20).map(lambda n: F(n, 20))
episodes = st.lists(st.tuples(fractions, fractions), min_size=1, max_size=8)


def test_f1_the_values_of_the_lab():
    """Case F1: shaped rewards [0.225, 0.245, 0.45], and the three sides of the identity, 0.81 each."""
    rewards, potentials = [0.0, 0.0, 1.0], [0.0, 0.25, 0.55, 0.0]
    shaped = potential_shaping(rewards, potentials, 0.9)
    assert type(shaped) is list
    assert shaped == pytest.approx([0.225, 0.245, 0.45], rel=1e-9)
    assert shaped_return_identity(rewards, potentials, 0.9) == pytest.approx((0.81, 0.81, 0.81), rel=1e-9)


def test_f1_the_first_potential_is_subtracted():
    """Case F1: with Phi_0 = 0.3 the shaped return is 0.51 = 0.81 - 0.3."""
    identity = shaped_return_identity([0, 0, 1], [F(3, 10), F(1, 4), F(11, 20), F(0)], F(9, 10))
    assert identity == (F(81, 100), F(51, 100), F(51, 100))
    assert type(identity) is tuple


@settings(deadline=None)
@given(episodes, fractions, discounts)
def test_the_identity_holds_for_any_potentials(steps, last_potential, gamma):
    """The sum g^t r'_t = G - Phi_0 + g^T Phi_T: exact on fractions, whatever Phi is, at its end too. The left side
    here is added up with powers, independently of the package.
    """
    rewards = [r for r, _ in steps]
    potentials = [phi for _, phi in steps] + [last_potential]
    original, shaped, predicted = shaped_return_identity(rewards, potentials, gamma)
    by_hand = sum(gamma**t * (r + gamma * potentials[t + 1] - potentials[t]) for t, r in enumerate(rewards))
    assert original == discounted_return(rewards, gamma)
    assert shaped == predicted == by_hand
    assert predicted == original - potentials[0] + gamma ** len(rewards) * last_potential


def test_f1_a_potential_left_at_the_end_turns_the_order_round():
    """Case F1 (HumanCompatibleAI/imitation#323; HumanCompatibleAI/seals#25): gamma .9, from Phi = 0; "win" pays .5,
    "lose" pays 0 and has Phi = .6. With the potential of the end set to 0 winning is better, 0.5 against 0; foil: left
    in place, losing is worth .9 * .6 = 0.54.
    """
    gamma = F(9, 10)
    win = shaped_return_identity([F(1, 2)], [0, 0], gamma)[1]
    lose = shaped_return_identity([F(0)], [0, 0], gamma)[1]
    foil = shaped_return_identity([F(0)], [0, F(6, 10)], gamma)[1]
    assert (win, lose, foil) == (F(1, 2), 0, F(54, 100))
    assert lose < win < foil


@settings(deadline=None)
@given(st.lists(episodes, min_size=2, max_size=4), fractions, discounts)
def test_with_zero_at_the_end_episodes_from_one_state_keep_their_differences(group, start, gamma):
    """Phi_T = 0 leaves only -Phi_0, which all episodes from one state share: order and differences stay."""
    pairs = []
    for steps in group:
        rewards = [r for r, _ in steps]
        potentials = [start, *(phi for _, phi in steps[1:]), F(0)]
        pairs.append(shaped_return_identity(rewards, potentials, gamma)[:2])
    assert {shaped - original for original, shaped in pairs} == {-start}


def test_f3_a_loop_pays_nothing_only_under_the_learners_discount():
    """Case F3(a) (HumanCompatibleAI/evaluating-rewards#22): cycle Phi 0 -> 1 -> 0 under a learner with .9. Matched: 0
    per cycle. Foil: shaping with gamma 1 pays 0.1 a cycle, .1 / (1 - .81) = 0.526316 forever.
    """
    learner = F(9, 10)
    cycle = [0, 1, 0]
    matched = potential_shaping([0, 0], cycle, learner)
    foil = potential_shaping([0, 0], cycle, 1)
    assert discounted_return(matched, learner) == 0
    assert discounted_return(foil, learner) == F(1, 10)
    forever = F(1, 10) / (1 - learner**2)
    assert forever == F(10, 19)
    assert float(forever) == pytest.approx(0.526316, rel=1e-6)
    assert abs(discounted_return(foil * 100, learner) - forever) < F(1, 10**8)  # the sum of many rounds tends to it


def test_f3_an_invalid_action_has_a_shaping_term():
    """Case F3(b) (johnsutor/so101-nexus#123; axon-rl/gem#38): at Phi = .55 and gamma .99 a turn that changes nothing
    costs (gamma - 1) Phi = -0.0055, five of them .55 (.99^5 - 1) = -0.026955. Foil: 0 for such turns. At Phi = -.5 each
    of them *pays* 0.005.
    """
    gamma = F(99, 100)
    idle = potential_shaping([0] * 5, [F(55, 100)] * 6, gamma)
    assert idle == [F(-55, 10_000)] * 5
    assert discounted_return(idle, gamma) == F(55, 100) * (gamma**5 - 1)
    assert float(discounted_return(idle, gamma)) == pytest.approx(-0.026955, rel=1e-4)
    assert potential_shaping([0], [F(-1, 2)] * 2, gamma) == [F(5, 1000)]
    # The foil breaks the identity for an episode that goes 0 -> .55, idles five turns, and ends.
    rewards, potentials = [0] * 6 + [1], [0, *[F(55, 100)] * 6, 0]
    _, shaped, predicted = shaped_return_identity(rewards, potentials, gamma)
    without_terms = potential_shaping(rewards, potentials, gamma)
    without_terms[1:6] = [0] * 5
    assert shaped == predicted != discounted_return(without_terms, gamma)


def test_arrays_tensors_and_columns():
    for array in (np.array, torch.tensor, pd.Series):
        shaped = potential_shaping(array([0.0, 0.0, 1.0]), array([0.0, 0.25, 0.5, 0.0]), 0.5)
        assert shaped == [0.125, 0.0, 0.5]  # binary fractions: no rounding in 32 bits either
        assert all(type(r) is float for r in shaped)


@pytest.mark.parametrize("function", [potential_shaping, shaped_return_identity])
class TestRefusals:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, None, "0", True])
    def test_a_bad_number_is_named_with_its_position(self, function, bad):
        with pytest.raises(ValueError, match=r"rewards\[1\]"):
            function([0.0, bad], [0.0, 0.0, 0.0], 0.9)
        for place in range(3):  # the last one too: shaping has no flag that could select it away
            potentials = [0.0, 0.0, 0.0]
            potentials[place] = bad
            with pytest.raises(ValueError, match=rf"potentials\[{place}\]"):
                function([0.0, 0.0], potentials, 0.9)

    @pytest.mark.parametrize("potentials", [[0.0, 0.0], [0.0] * 4, []])
    def test_there_is_one_potential_more_than_rewards(self, function, potentials):
        with pytest.raises(ValueError, match=rf"potentials has length {len(potentials)}; expected 3"):
            function([0.0, 0.0], potentials, 0.9)

    def test_an_episode_has_at_least_one_turn(self, function):
        with pytest.raises(ValueError, match=r"rewards is \[\]; expected at least one reward"):
            function([], [0.0], 0.9)

    @pytest.mark.parametrize("gamma", [-0.1, 1.1, math.nan, None, True])
    def test_a_discount_outside_the_unit_interval(self, function, gamma):
        with pytest.raises(ValueError, match="gamma"):
            function([0.0], [0.0, 0.0], gamma)

    def test_overflow(self, function):
        with pytest.raises(ValueError, match="within the range of a float"):
            function([1.5e308], [-1.5e308, 0.0], 0.9)


def test_a_result_beyond_a_float_is_a_value_error():
    """An integer reward and an integer potential of 1e308 each: their sum meets a float potential."""
    big = 10**308
    for function in (potential_shaping, shaped_return_identity):
        with pytest.raises(ValueError, match=r"^shaped reward 0 is too large; expected a result within the range"):
            function([big], [0.5, big], 1)


def random_policy(seed):
    """A stochastic policy with memory: each history has a distribution of its own."""

    def policy(history):
        weights = random.Random(f"{seed} {history}").choices(range(6), k=6)
        weights[weights[0]] += 1
        return [F(weight, sum(weights)) for weight in weights]

    return policy


@pytest.mark.parametrize("rules", ["standard", "soft", "quiet"])
def test_every_policy_with_memory_loses_the_same_number(rules):
    """J' = J - E Phi(s_0), and at every history V' = V - E[Phi | h], Q' = Q - E[Phi | h], for policies that read whole
    histories; in this world Phi(s_0) = 0. The package computes both sides by separate enumerations.
    """
    gamma, potential = F(9, 10), belief_model(get_rules(rules)).potential
    for seed in range(3):
        setting = {"rules": rules, "horizon": 4, "gamma": gamma}
        plain = evaluate_exactly(random_policy(seed), **setting)
        shaped = evaluate_exactly(random_policy(seed), **setting, reward_mode="potential")
        assert shaped.expected_return == plain.expected_return
        for a, b in zip(plain.nodes, shaped.nodes, strict=True):
            assert b.value == a.value - potential[a.belief]
            assert b.action_values == tuple(None if q is None else q - potential[a.belief] for q in a.action_values)


def test_a_number_at_the_end_pays_for_the_way_of_ending():
    """With e in place of 0 at the end the return gains g^T e. A constant e = 1 pays for ending early if g < 1: .9
    against .81 after one and two turns; if g = 1 it pays all episodes alike. An e that depends on the end pays for the
    choice of the end even there, and at equal lengths (against a remark in HumanCompatibleAI/imitation#323).
    """
    for gamma, gap in ((F(9, 10), F(9, 100)), (F(1), F(0))):
        short = shaped_return_identity([F(0)], [F(0), F(1)], gamma)[1]
        long = shaped_return_identity([F(0)] * 2, [F(0), F(1, 2), F(1)], gamma)[1]
        assert short - long == gap
    ends = [shaped_return_identity([F(0)] * 2, [F(0), F(1, 2), e], F(1))[1] for e in (F(0), F(1))]
    assert ends == [0, 1]


@settings(deadline=None)
@given(episodes, fractions, fractions, discounts)
def test_at_a_cut_potential_and_bootstrap_value_belong_together(steps, last_potential, value, gamma):
    """Bootstrapped return of the shaped rewards = that of the plain ones - Phi_0, if Phi_T is kept and V - Phi_T
    bootstrapped, or if 0 is put for both. Foils: Phi_T dropped under V - Phi_T charges g^T Phi_T; Phi_T kept under V
    pays it twice.
    """
    rewards, phi = [r for r, _ in steps], [p for _, p in steps] + [last_potential]
    end = gamma ** len(rewards)

    def bootstrapped(potential_at_cut, bootstrap):
        return (
            discounted_return(potential_shaping(rewards, [*phi[:-1], potential_at_cut], gamma), gamma) + end * bootstrap
        )

    right = discounted_return(rewards, gamma) + end * value - phi[0]
    assert bootstrapped(last_potential, value - last_potential) == right
    assert bootstrapped(F(0), value) == right
    assert bootstrapped(F(0), value - last_potential) == right - end * last_potential
    assert bootstrapped(last_potential, value) == right + end * last_potential


def test_a_critic_of_rewards_whose_potential_is_dropped_at_cuts():
    """Three states in a row, each step cut with probability c. Targets with Phi = 0 at cuts, and the shaped value
    bootstrapped, lead the critic to V - Phi - (I - gP)^-1 g c P Phi: it is charged for progress at every cut.
    """
    gamma, c, phi = F(9, 10), F(1, 4), [F(0), F(1, 4), F(1, 2)]
    chain, pay = [[0, F(3, 4), 0], [0, 0, F(2, 3)], [0, 0, 0]], [F(0), F(0), F(1)]
    ahead = [sum(p * x for p, x in zip(row, phi, strict=True)) for row in chain]
    value = td_fixed_point(pay, chain, gamma)
    dropped = [r + gamma * (1 - c) * up - here for r, up, here in zip(pay, ahead, phi, strict=True)]
    charge = td_fixed_point([gamma * c * up for up in ahead], chain, gamma)
    learnt = td_fixed_point(dropped, chain, gamma)
    assert learnt == [v - here - x for v, here, x in zip(value, phi, charge, strict=True)]
    assert charge[0] > 0


@settings(deadline=None)
@given(episodes, discounts, discounts)
def test_another_discount_pays_rent_for_the_potential(steps, gamma, beta):
    """Shaping with b under a learner with g: the return gains (b - g) sum over t >= 1 of g^(t-1) Phi_t (a true end)."""
    rewards, phi = [r for r, _ in steps], [p for _, p in steps] + [F(0)]
    shaped = discounted_return(potential_shaping(rewards, phi, beta), gamma)
    rent = (beta - gamma) * sum(gamma ** (t - 1) * phi[t] for t in range(1, len(rewards)))
    assert shaped == discounted_return(rewards, gamma) - phi[0] + rent


@settings(deadline=None)
@given(st.lists(fractions, min_size=1, max_size=5), st.data(), st.integers(1, 20).map(lambda n: F(n, 20)))
def test_a_potential_is_found_from_its_bonuses(phi, data, gamma):
    """Bonuses made from a potential on a graph whose first state can end give it back, without excess, in any order; a
    changed bonus of a repeated step is found as an excess. With an exact second way: state 0 is fixed by its end.
    """
    n = len(phi)
    edges = [(0, None)] + [(s, data.draw(st.integers(0, s - 1))) for s in range(1, n)]
    edges += data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=5))
    steps = [(s, x, (0 if x is None else gamma * phi[x]) - phi[s]) for s, x in edges]
    steps = data.draw(st.permutations(steps))
    found, excess = find_potential(steps, gamma)
    assert found == dict(enumerate(phi))
    assert set(excess) == {0}
    s, x, bonus = steps[0]
    _, excess = find_potential([*steps, (s, x, bonus + 1)], gamma)
    assert any(excess)


def test_bonuses_without_a_potential():
    """Foils that ship: the difference of potentials with discount 1 under a learner with .9 (case F3,
    anthonytorlucci/rlevo#646), progress that is paid and never charged, and an idle turn without its term. Each leaves
    an excess; under its own discount the first one is a potential's.
    """
    phi, gamma = {"start": F(0), "far": F(1, 4), "near": F(1, 2)}, F(9, 10)
    moves = [("start", "far"), ("far", "near"), ("near", "far"), ("far", "far")]
    ends = [(state, None, -value) for state, value in phi.items()]

    def bonuses(rule):
        return ends + [(s, x, rule(phi[s], phi[x])) for s, x in moves]

    assert not any(find_potential(bonuses(lambda a, b: gamma * b - a), gamma)[1])
    assert not any(find_potential(bonuses(lambda a, b: b - a), 1)[1])
    rules = {
        "discount 1": lambda a, b: b - a,
        "progress only": lambda a, b: max(gamma * b - a, 0),
        "idle turn unpaid": lambda a, b: 0 if a == b else gamma * b - a,
    }
    for name, rule in rules.items():
        assert any(find_potential(bonuses(rule), gamma)[1]), name
    with pytest.raises(
        ValueError, match=r"steps is 'b'; expected only states that some chain of steps joins to an end"
    ):
        find_potential([("a", None, 0), ("b", "c", 1)], gamma)


def test_a_bonus_without_a_potential_changes_some_best_policy():
    """The construction of the converse (Ng, Harada and Russell 1999): where f(s, x) has an excess d, let one action
    lead to x or to the end with probability 1/2 each, and another end at once for half of what the excess earns. Then
    the plain and the paid problem prefer different actions. Checked by exact values of both policies, for x = s too.
    """
    gamma = F(9, 10)
    for name in ("s", "x"):
        for bonus in (F(1, 3), F(-1, 3)):
            steps = [("s", None, F(-1, 5)), ("x", None, F(-2, 5)), ("s", name, bonus)]
            (_, _, d), f = find_potential(steps, gamma)[1], {step[:2]: step[2] for step in steps}
            assert d != 0
            goal = d / (2 - gamma) if name == "s" else d / 2
            back = [[F(int(name == "s"), 2), F(int(name == "x"), 2)], [0, 0]]  # going on from s; x ends
            bonuses = [(f["s", name] + f["s", None]) / 2, f["x", None]]  # of going on; x ends
            plain = 0, goal / 2  # base value of going on (nothing) and of leaving
            paid = td_fixed_point(bonuses, back, gamma)[0], goal / 2 + f["s", None]
            assert (plain[0] > plain[1]) != (paid[0] > paid[1])
            assert paid[0] - paid[1] == goal / 2  # the excess alone decides: potentials cancel


lambdas = st.integers(0, 4).map(lambda n: F(n, 4))


@settings(deadline=None)
@given(
    st.lists(st.tuples(fractions, fractions, fractions), min_size=1, max_size=6),
    fractions,
    fractions,
    discounts,
    lambdas,
)
def test_shaped_rewards_are_a_critic_shifted_by_the_potential(steps, value, potential, gamma, lam):
    """For any numbers: residuals and advantages of r' under v are those of r under v + Phi, lambda-returns those minus
    Phi; at a true end (Phi_T = 0) and at a cut (Phi_T kept). Foil: at a cut with Phi_T dropped they differ by g Phi_T.
    """
    rewards, v = [r for r, _, _ in steps], [x for _, x, _ in steps] + [value]
    for ended in (True, False):
        phi = [p for _, _, p in steps] + [F(0) if ended else potential]
        shaped = potential_shaping(rewards, phi, gamma)
        u = [a + b for a, b in zip(v, phi, strict=True)]
        flags = [False] * (len(rewards) - 1) + [ended]
        assert td_residuals(shaped, v, gamma, flags) == td_residuals(rewards, u, gamma, flags)
        assert gae_advantages(shaped, v, gamma, lam, terminated=ended) == gae_advantages(
            rewards, u, gamma, lam, terminated=ended
        )
        pairs = zip(lambda_returns(rewards, u, gamma, lam, terminated=ended), phi, strict=False)
        assert lambda_returns(shaped, v, gamma, lam, terminated=ended) == [g - p for g, p in pairs]
    dropped = potential_shaping(rewards, [*phi[:-1], F(0)], gamma)
    foil = gae_advantages(dropped, v, gamma, lam, terminated=False)[-1]
    assert foil == gae_advantages(rewards, u, gamma, lam, terminated=False)[-1] - gamma * potential


@settings(deadline=None)
@given(st.lists(episodes, min_size=2, max_size=5), fractions, discounts)
def test_a_group_from_one_start_sees_nothing_of_the_potential(group, start, gamma):
    """Scores of whole episodes from one state all shift by -Phi(s_0), so that group advantages stay exactly. Foil: a
    bonus per goal reached, 1 for the first rollout alone, changes them unless the group has one member.
    """
    plain, shaped = [], []
    for steps in group:
        rewards, potentials = [r for r, _ in steps], [start, *(p for _, p in steps[1:]), F(0)]
        original, of_shaped, _ = shaped_return_identity(rewards, potentials, gamma)
        plain.append(original)
        shaped.append(of_shaped)
    assert group_advantages(shaped, scale=False) == group_advantages(plain, scale=False)
    foil = [score + (i == 0) for i, score in enumerate(plain)]
    assert group_advantages(foil, scale=False) != group_advantages(plain, scale=False)


def q_learning(initial, shaping, *, seed, episodes, gamma=F(9, 10), step=F(1, 2), end=F(0)):
    """Tabular Q-learning in the room with a known target, actions by softmax; returns the table and what was done."""
    rules = get_rules("standard")
    phi = [F(x) for x in rules.potential]
    q = {(s, a): initial(phi[s]) for s in range(len(rules.states)) for a in range(6)}
    dice, done = random.Random(seed), []
    for _ in range(episodes):
        s, turns = rules.start["red"], 0
        while turns < 6:
            best = max(q[s, a] for a in range(6))
            weights = [math.exp(float(q[s, a] - best)) for a in range(6)]
            action = dice.choices(range(6), weights)[0]
            outcome = rules.table[s][action]
            over = outcome.stop_reason is not None
            after = end if over else phi[outcome.state]
            reward = F(outcome.base_reward) + (gamma * after - phi[s] if shaping else 0)
            target = reward if over else reward + gamma * max(q[outcome.state, a] for a in range(6))
            q[s, action] += step * (target - q[s, action])
            done.append((s, action))
            turns, s = turns + 1, outcome.state
            if over:
                break
    return q, done, phi


def test_q_learning_with_shaping_is_q_learning_begun_at_the_potential():
    """Wiewiora (2003): with equal dice both learners act alike for ever, and the tables differ by Phi exactly. (The cut
    at six turns belongs to the collector: no target is treated as an end there.) Foils: begun at 0 without shaping, and
    potential_shaping's term at true ends made with Phi = 1/2 instead of 0, part with them.
    """
    shaped, acted, phi = q_learning(lambda p: F(0), True, seed=1, episodes=6)
    begun, also, _ = q_learning(lambda p: p, False, seed=1, episodes=6)
    assert acted == also
    assert all(begun[s, a] == shaped[s, a] + phi[s] for s, a in shaped)
    assert potential_shaping([F(1)], [phi[-1], F(0)], F(9, 10)) == [1 - phi[-1]]  # the term at a true end
    plain, other, _ = q_learning(lambda p: F(0), False, seed=1, episodes=6)
    assert plain != begun
    assert other != also
    kept, _, _ = q_learning(lambda p: F(0), True, seed=1, episodes=6, end=F(1, 2))
    assert any(begun[s, a] != kept[s, a] + phi[s] for s, a in kept)


def test_a_potential_of_the_moment_needs_one_number_per_moment():
    """Devlin and Kudenko (2012): potentials may change while they are used, if the number added as gamma Phi_(t+1) is
    the number subtracted one turn later. Foil: recomputed in between, the return gains g^t (old - new).
    """
    gamma, rewards, old, new = (
        F(9, 10),
        [F(0), F(0), F(1)],
        [F(0), F(1, 4), F(1, 2), F(0)],
        [F(0), F(1, 8), F(1, 3), F(0)],
    )
    _, shaped, predicted = shaped_return_identity(rewards, old, gamma)
    assert shaped == predicted == discounted_return(rewards, gamma)
    recomputed = [r + gamma * old[t + 1] - new[t] for t, r in enumerate(rewards)]
    drift = sum(gamma**t * (old[t] - new[t]) for t in range(3))
    assert discounted_return(recomputed, gamma) == shaped + drift != shaped


def test_the_bias_of_lambda_is_the_critics_error_further_on():
    """E[A | h, a] = Q - V + e(h) - g (1 - l) sum over n >= 1 of (g l)^(n-1) E[e(h_(t+n)) | h, a], with e = V - u: on a
    tree of three turns with random rewards, probabilities and critics, exactly, for gae_advantages averaged over all
    paths. At l = 1, and for the exact critic at every l, only Q - V + e is left. Foil: the sum without its factor g.
    """
    dice, gamma = random.Random(5), F(9, 10)

    def number():
        return F(dice.randint(-6, 6), 6)

    # A node: the critic's value u, and for each of two actions two branches (probability, reward, node or None).
    def grow(depth):
        if depth == 3:
            return None
        split = F(dice.randint(1, 4), 5)
        branches = [[(split, number(), grow(depth + 1)), (1 - split, number(), grow(depth + 1))] for _ in range(2)]
        return number(), branches

    def q(node, action):
        return sum(p * (r + gamma * value(after)) for p, r, after in node[1][action])

    def value(node):
        return F(0) if node is None else sum(q(node, action) for action in range(2)) / 2

    def paths(node, action):
        for p, r, after in node[1][action]:
            if after is None:
                yield p, [r], [node]
            else:
                for following in range(2):
                    for share, rewards, nodes in paths(after, following):
                        yield p * share / 2, [r, *rewards], [node, *nodes]

    root = grow(0)
    for critic in (lambda node: node[0], value):
        for lam in (F(0), F(1, 2), F(1)):
            for action in range(2):
                mean = bias = foil = F(0)
                for share, rewards, nodes in paths(root, action):
                    u = [critic(node) for node in nodes] + [F(0)]
                    mean += share * gae_advantages(rewards, u, gamma, lam, terminated=True)[0]
                    errors = [(gamma * lam) ** n * (value(x) - critic(x)) for n, x in enumerate(nodes[1:])]
                    bias += share * gamma * (1 - lam) * sum(errors)
                    foil += share * (1 - lam) * sum(errors)
                exact = q(root, action) - value(root) + value(root) - critic(root)
                assert mean == exact - bias
                if lam < 1 and critic is not value:
                    assert mean != exact - foil


def test_a_potential_that_knows_more_than_any_history():
    """The room in which all clues look alike: the potential reads the colour, the history does not have it. For
    policies of turn and belief J' = J (Phi(s_0) = 0), V' = V - mean of Phi under the belief, and what an action is paid
    on average is g E[Phibar'] - Phibar. Some key in hand has potential 3/8, the mean of 1/4 and 1/2. Foil: the
    potential of one of the two states in place of the mean.
    """
    room, gamma, horizon = get_rules("standard"), F(9, 10), 4
    blurred = tuple(
        tuple(x._replace(observation="clue") if x.observation.startswith("clue") else x for x in row)
        for row in room.table
    )
    model = belief_model(replace(room, table=blurred))
    assert F(3, 8) in model.potential

    def solve(shaped, seed):
        values, found = {}, {}
        for t in reversed(range(horizon)):
            ahead, values = values, {}
            for b, row in enumerate(model.branches):
                weights = random.Random(f"{seed} {t} {b}").choices(range(1, 9), k=6)
                for weight, branches in zip(weights, row, strict=True):
                    for x in branches:
                        on = x.belief is not None and t + 1 < horizon
                        worth = x.base_reward + (gamma * ahead[x.belief] if on else 0)
                        if shaped:
                            hidden = [s for s in model.beliefs[b] if s is not None]
                            before = sum(F(room.potential[s]) for s in hidden) / len(hidden)
                            worth += (gamma * x.potential_after if on else 0) - before
                        values[b] = values.get(b, 0) + F(weight, sum(weights)) * x.probability * worth
            found.update({(t, b): value for b, value in values.items()})
        return found

    for seed in range(3):
        plain, shaped = solve(False, seed), solve(True, seed)
        assert all(shaped[t, b] == plain[t, b] - model.potential[b] for t, b in plain)
        assert shaped[0, model.start] == plain[0, model.start]
    mixed = model.potential.index(F(3, 8))
    assert {F(room.potential[s]) for s in model.beliefs[mixed]} == {F(1, 4), F(1, 2)}  # each a foil for the mean


class TestFindPotentialRefusals:
    @pytest.mark.parametrize("gamma", [0, -0.1, 1.1, math.nan, None])
    def test_a_discount_outside_of_its_range(self, gamma):
        with pytest.raises(ValueError, match="gamma"):
            find_potential([("a", None, 0)], gamma)

    @pytest.mark.parametrize(
        ("steps", "message"),
        [
            ([], "steps is"),
            ([("a", None)], r"steps\[0\]"),
            (["abc"], r"steps\[0\]"),
            ([("a", None, 0), (None, "a", 0)], r"steps\[1\]\[0\]"),
            ([([], None, 0)], r"steps\[0\]\[0\]"),
            ([("a", {}, 0)], r"steps\[0\]\[1\]"),
            ([("a", None, math.nan)], r"steps\[0\]\[2\]"),
            ([("a", None, True)], r"steps\[0\]\[2\]"),
            ([("a", None, 1e308), ("a", "b", -1e308)], "too large|range of a float"),
        ],
    )
    def test_bad_steps_are_named(self, steps, message):
        with pytest.raises(ValueError, match=message):
            find_potential(steps, 1e-300)
