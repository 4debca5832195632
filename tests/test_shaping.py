"""Potential-based shaping: the identity, and what breaks when the potential at the end, or the discount, is wrong."""

import math
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.returns import discounted_return
from keydoor.shaping import potential_shaping, shaped_return_identity

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
