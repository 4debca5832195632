"""Provenance of tokens: counts, fractions, and the difference between a role and the fact of sampling."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.masks import ROLES, trajectory_mask_report

LAB = [("system", 44), ("user", 63), ("assistant", 18), ("tool", 162), ("assistant", 21)]


def test_b1_the_transcript_of_the_lab():
    """Case B1 (mll-lab-nu/RAGEN#71; PrimeIntellect-ai/verifiers#11; verl-project/verl#4412). By hand: 18 + 21 = 39 of
    44 + 63 + 18 + 162 + 21 = 308. Foil: the inverted mask trains the other 269, dilution 308/269 = 1.144981.
    """
    report = trajectory_mask_report(LAB)
    assert (report.policy_tokens, report.total_tokens) == (39, 308)
    assert report.masked_fraction == pytest.approx(0.8733766233766234, rel=1e-12)
    assert report.dilution_factor == pytest.approx(7.897435897435898, rel=1e-12)
    inverted = trajectory_mask_report([(role, count, role != "assistant") for role, count in LAB])
    assert inverted.policy_tokens == 269
    assert inverted.dilution_factor == pytest.approx(1.144981, rel=1e-6)


def test_explicit_provenance_overrides_the_role():
    """A controller closed the assistant's sentence (4 tokens that nobody sampled): the role alone counts them."""
    explicit = [("user", 10), ("assistant", 6, True), ("assistant", 4, False), ("tool", 3, True)]
    by_role = [segment[:2] for segment in explicit]
    assert trajectory_mask_report(explicit).policy_tokens == 9
    assert trajectory_mask_report(by_role).policy_tokens == 10  # the foil
    assert trajectory_mask_report(explicit).total_tokens == trajectory_mask_report(by_role).total_tokens == 23


segment_lists = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(ROLES), st.integers(0, 100)),
        st.tuples(st.sampled_from(ROLES), st.integers(0, 100), st.booleans()),
    ),
    min_size=1,
    max_size=8,
).filter(lambda segments: any(segment[1] for segment in segments))


@settings(deadline=None)
@given(segment_lists)
def test_the_report_equals_a_count_token_by_token(segments):
    mask = [
        segment[2] if len(segment) == 3 else segment[0] == "assistant"
        for segment in segments
        for _ in range(segment[1])
    ]
    report = trajectory_mask_report(segments)
    assert (report.policy_tokens, report.total_tokens) == (sum(mask), len(mask))
    assert report.masked_fraction == mask.count(False) / len(mask)
    # The dilution: averaging a loss of 1 per policy token over all tokens, against averaging over its own.
    if any(mask):
        assert report.dilution_factor == pytest.approx(1 / (sum(mask) / len(mask)), rel=1e-12)
    assert report == trajectory_mask_report(segments[::-1])  # the order does not matter


def test_without_policy_tokens_nothing_is_left_of_the_signal():
    report = trajectory_mask_report([("user", 5), ("tool", 7), ("assistant", 0)])
    assert (report.policy_tokens, report.masked_fraction, report.dilution_factor) == (0, 1.0, math.inf)


def test_only_policy_tokens():
    report = trajectory_mask_report([("assistant", 5)])
    assert (report.masked_fraction, report.dilution_factor) == (0.0, 1.0)


@pytest.mark.parametrize("segments", [[], [("user", 0)], [("assistant", 0, True), ("tool", 0)]])
def test_a_transcript_without_tokens_has_no_fraction(segments):
    """0/0: neither 0 nor 1 would be true, and NaN would travel on."""
    with pytest.raises(ValueError, match="segments hold no tokens"):
        trajectory_mask_report(segments)


def test_the_report_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        trajectory_mask_report(LAB).policy_tokens = 0


@pytest.mark.parametrize("role", ["function", "Assistant", "", "assistant ", "ASSISTANT", None, 3, b"tool", ["tool"]])
def test_b1_an_unknown_role_is_an_error_and_not_the_environment(role):
    """Case B1: a typo in a role would otherwise pass for "not the policy", and take the turn out of the loss."""
    for segment in ((role, 5), (role, 5, True)):
        with pytest.raises(ValueError, match=r"role of segments\[1\] is .*; expected one of system"):
            trajectory_mask_report([("user", 1), segment])


@pytest.mark.parametrize("count", [-1, 1.5, 2.0, math.nan, math.inf, None, "5", True])
def test_b1_a_count_is_a_non_negative_integer(count):
    with pytest.raises(ValueError, match=r"token count of segments\[1\] is .*; expected an integer not below 0"):
        trajectory_mask_report([("user", 1), ("assistant", count)])


@pytest.mark.parametrize("sampled", [0, 1, None, "True", 1.0])
def test_the_sampled_flag_is_a_boolean(sampled):
    with pytest.raises(ValueError, match=r"sampled flag of segments\[0\]"):
        trajectory_mask_report([("assistant", 1, sampled)])


@pytest.mark.parametrize("segment", [(), ("user",), ("user", 1, True, 0), "user", {"user": 1}, None, 5])
def test_a_malformed_segment_is_named_with_its_position(segment):
    with pytest.raises(ValueError, match=r"segments\[1\]"):
        trajectory_mask_report([("user", 1), segment])


@pytest.mark.parametrize("segments", [None, 5, "user", {"user": 1}])
def test_segments_are_a_sequence(segments):
    with pytest.raises(ValueError, match=r"segments is .*; expected a sequence"):
        trajectory_mask_report(segments)


def test_rows_of_a_table_and_counts_of_numpy():
    table = pd.DataFrame(LAB, columns=["role", "count"])
    expected = trajectory_mask_report(LAB)
    assert trajectory_mask_report(table.itertuples(index=False)) == expected
    assert trajectory_mask_report([[role, np.int64(count)] for role, count in LAB]) == expected
    assert type(trajectory_mask_report([("assistant", np.int64(3))]).policy_tokens) is int


def test_a_count_beyond_all_transcripts():
    """The quotient of two such counts may be no float."""
    assert trajectory_mask_report([("user", 2**63 - 1), ("assistant", 1)]).dilution_factor == 2.0**63
    with pytest.raises(ValueError, match=r"^token count of segments\[0\] is .*; expected .* below 2\*\*63"):
        trajectory_mask_report([("user", 10**400), ("assistant", 1)])
