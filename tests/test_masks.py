"""Provenance of tokens: counts and fractions, the gradient of a transcript, averages, returns across observations."""

import dataclasses
import math
from collections import defaultdict
from fractions import Fraction as F
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.masks import (
    AVERAGES,
    ROLES,
    average_token_losses,
    masked_returns,
    policy_token_sum,
    trajectory_mask_report,
)
from keydoor.records import prefix_mismatch
from keydoor.returns import discounted_return
from keydoor.rules import ACTIONS, COLOURS, get_rules
from keydoor.turns import turn_log_ratio, turn_probability_ratio

LAB = [("system", 44), ("user", 63), ("assistant", 18), ("tool", 162), ("assistant", 21)]


def test_b1_the_transcript_of_the_lab():
    """Case B1 (mll-lab-nu/RAGEN#71; PrimeIntellect-ai/verifiers#11). By hand: 18 + 21 = 39 of
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


# --- sums over the policy's tokens, and the gradient of a transcript -------------------------------------------------


def test_a_sum_selects_and_never_reads_what_is_masked():
    """Case C3's fingerprint in this form: a mask that multiplies turns NaN * 0 into NaN."""
    for nothing in (math.nan, None, -math.inf, "text"):
        assert policy_token_sum([F(-1, 2), nothing, F(-1, 4)], [1, 0, 1]) == F(-3, 4)
        assert policy_token_sum([-0.5, nothing], [True, False]) == -0.5
    assert math.isnan(-0.5 * 1 + math.nan * 0)  # the foil
    assert policy_token_sum([1.0, 2.0], [0, 0]) == 0  # a transcript without policy tokens has no score
    assert policy_token_sum([], []) == 0
    assert policy_token_sum([0.1] * 10, [1] * 10) == 1.0  # correctly rounded


@pytest.mark.parametrize("bad", [math.nan, math.inf, None, "1", True])
def test_a_value_of_the_policys_is_finite(bad):
    with pytest.raises(ValueError, match=r"values\[1\] is .*; expected a finite number"):
        policy_token_sum([0.0, bad], [1, 1])


@pytest.mark.parametrize("mask", [[1], [1, 2], [1, 0.5], [1, None], None, "11"])
def test_the_mask_of_a_sum_has_zeros_and_ones(mask):
    with pytest.raises(ValueError, match="mask"):
        policy_token_sum([1.0, 2.0], mask)


def test_a_sum_beyond_the_floats():
    with pytest.raises(ValueError, match="the sum of values is"):
        policy_token_sum([1.7e308, 1.7e308], [1, 1])


SEEN = ("room", "clue_red", "clue_blue", "key_held", "door_open", "invalid")
SAID = (*SEEN, "success", "failure")


def _policy():
    """A policy of fractions in which no two actions and no two observations are alike."""
    weights = {o: [1 + (3 * i + j) % 7 for j in range(len(ACTIONS))] for i, o in enumerate(SEEN)}
    return {o: [F(w, sum(row)) for w in row] for o, row in weights.items()}


def _transcripts(policy, horizon):
    """All transcripts of the key-door world: probability, reward, and per token (sampled, context, token)."""
    rules = get_rules("standard")

    def follow(state, observation, turns_left, weight, tokens):
        for index, action in enumerate(ACTIONS):
            outcome = rules.table[state][index]
            said = outcome.observation
            over = outcome.stop_reason is not None
            if turns_left == 1 and not over:
                said, over = "failure", True
            written = [*tokens, (1, observation, action), (0, action, said)]
            chance = weight * policy[observation][index]
            if over:
                yield chance, F(outcome.base_reward), written
            else:
                yield from follow(outcome.state, said, turns_left - 1, chance, written)

    for colour in COLOURS:
        yield from follow(rules.start[colour], rules.start_observation, horizon, F(1, 2), [])


def _success_with_derivative(policy, horizon, observation, action):
    """J and its derivative by one softmax logit: forward over states, by the product rule, without any score."""
    rules, value, slope = get_rules("standard"), F(0), F(0)
    mass = {(rules.start[c], rules.start_observation): (F(1, 2), F(0)) for c in COLOURS}
    for _ in range(horizon):
        later = defaultdict(lambda: (F(0), F(0)))
        for (state, seen), (m, dm) in mass.items():
            for index, name in enumerate(ACTIONS):
                p = policy[seen][index]
                dp = p * ((name == action) - policy[seen][ACTIONS.index(action)]) if seen == observation else F(0)
                outcome = rules.table[state][index]
                new, dnew = m * p, dm * p + m * dp
                if outcome.stop_reason is None:
                    old, dold = later[outcome.state, outcome.observation]
                    later[outcome.state, outcome.observation] = (old + new, dold + dnew)
                elif outcome.stop_reason == "success":
                    value, slope = value + new, slope + dnew
        mass = later
    return value, slope


def test_the_gradient_of_a_transcript_sums_over_what_the_policy_sampled():
    r"""The theorem: dJ = E[G * sum over policy tokens of d log pi]. Both sides as fractions, by different methods: the
    left by the product rule along states, the right by enumerating transcripts. The entries of the environment are
    None, so that a sum that read them would raise.
    """
    policy, horizon = _policy(), 4
    gradient = dict.fromkeys(product(SEEN, ACTIONS), F(0))
    value = F(0)
    for weight, reward, tokens in _transcripts(policy, horizon):
        value += weight * reward
        if reward:
            mask = [sampled for sampled, _, _ in tokens]
            for observation, action in gradient:
                here = policy[observation][ACTIONS.index(action)]
                score = [(x == action) - here if c == observation else F(0) if s else None for s, c, x in tokens]
                gradient[observation, action] += weight * reward * policy_token_sum(score, mask)
    assert value > 0
    assert sum(g != 0 for g in gradient.values()) > 20
    for (observation, action), g in gradient.items():
        assert _success_with_derivative(policy, horizon, observation, action) == (value, g)


def test_what_unmasked_observations_add_vanishes_exactly_at_the_success_weighted_law():
    """The observations get a table of their own, p(said | action), with softmax logits. The term that they add is
    E[G * (count of the word - p(word) * count of the action)], so it is zero where p is the law of the observation
    weighted by the return; under the true law of the world it is not. With fractions, in the key-door world.
    """
    policy, horizon = _policy(), 4
    seen, weighted = defaultdict(F), defaultdict(F)
    runs = list(_transcripts(policy, horizon))
    for weight, reward, tokens in runs:
        for sampled, action, said in tokens:
            if not sampled:
                seen[action, said] += weight
                weighted[action, said] += weight * reward

    def law(mass):
        totals = {a: sum(mass[a, w] for w in SAID) for a in ACTIONS}
        return {(a, w): mass[a, w] / totals[a] for a in ACTIONS for w in SAID}

    def added(model):
        term = dict.fromkeys(product(ACTIONS, SAID), F(0))
        for weight, reward, tokens in runs:
            if reward:
                inverted = [1 - sampled for sampled, _, _ in tokens]
                for action, word in term:
                    score = [(x == word) - model[c, word] if c == action else F(0) for _, c, x in tokens]
                    term[action, word] += weight * reward * policy_token_sum(score, inverted)
        return term

    assert set(added(law(weighted)).values()) == {F(0)}
    assert any(added(law(seen)).values())  # the foil: knowing the world perfectly is not enough
    assert law(weighted)["open_red", "failure"] == 0 < law(seen)["open_red", "failure"]


@settings(deadline=None, max_examples=60)
@given(
    st.fractions(F(1, 20), F(19, 20), max_denominator=20),
    st.fractions(0, 1, max_denominator=12),
    st.fractions(0, 1, max_denominator=12),
    st.integers(0, 4),
    st.fractions(-1, 1, max_denominator=6),
)
def test_one_logit_for_actions_and_tools_turns_the_objective_round(s, q_good, q_bad, length, baseline):
    """One logit, p(a) = s. The agent writes one token, reward 1 for "a"; the tool answers with ``length`` tokens that
    are "a" with probability q_good or q_bad. By enumeration: the masked gradient is s(1-s), and the unmasked one
    s(1-s) + L[(1-b) s (q_good - s) - b (1-s)(q_bad - s)].
    """
    masked = unmasked = F(0)
    for word in product((1, 0), repeat=1 + length):
        q = q_good if word[0] else q_bad
        weight = (s if word[0] else 1 - s) * math.prod((q if x else 1 - q) for x in word[1:])
        score = [1 - s if x else -s for x in word]
        gain = word[0] - baseline
        masked += weight * gain * policy_token_sum(score, [1] + [0] * length)
        unmasked += weight * gain * policy_token_sum(score, [1] * (1 + length))
    assert masked == s * (1 - s)
    extra = length * ((1 - baseline) * s * (q_good - s) - baseline * (1 - s) * (q_bad - s))
    assert unmasked == s * (1 - s) + extra
    if baseline == 0 and length and q_good == q_bad:
        rest = (1 + length * q_good) / (1 + length)  # where the unmasked gradient ends: not at success 1
        assert (unmasked > 0) == (s < rest)


def test_a_token_that_was_sampled_and_replaced_still_counts():
    """A controller replaces "b" by "a"; the reward is 1 whatever the policy does, so dJ = 0. The score of what was
    *sampled* gives 0. Foils: the score of what stands there gives 1 - s, dropping the replaced token s(1-s).
    """
    s = F(2, 5)
    sampled = written = dropped = F(0)
    for token, weight in (("a", s), ("b", 1 - s)):
        score = {"a": 1 - s, "b": -s}
        sampled += weight * policy_token_sum([score[token]], [1])
        written += weight * policy_token_sum([score["a"]], [1])
        dropped += weight * policy_token_sum([score["a"]], [token == "a"])
    assert sampled == 0
    assert written == 1 - s
    assert dropped == s * (1 - s)


# --- what a constant factor does to a step ---------------------------------------------------------------------------


def _adam(gradients, *, lr, eps, clip=math.inf, betas=(0.75, 0.875)):
    """Steps of Adam, one list per gradient, after clipping by the global norm."""
    m, v, steps = [0.0] * len(gradients[0]), [0.0] * len(gradients[0]), []
    for t, gradient in enumerate(gradients, 1):
        norm = math.sqrt(sum(g * g for g in gradient))
        g = [x * min(1.0, clip / norm) for x in gradient]
        m = [betas[0] * a + (1 - betas[0]) * x for a, x in zip(m, g, strict=True)]
        v = [betas[1] * a + (1 - betas[1]) * x * x for a, x in zip(v, g, strict=True)]
        seconds = [math.sqrt(b / (1 - betas[1] ** t)) + eps for b in v]
        steps.append([-lr * a / (1 - betas[0] ** t) / b for a, b in zip(m, seconds, strict=True)])
    return steps


@settings(deadline=None)
@given(
    st.lists(st.lists(st.floats(-4, 4).filter(lambda g: abs(g) > 1e-3), min_size=2, max_size=2), min_size=1, max_size=6)
)
def test_dilution_is_another_epsilon_and_another_clipping_threshold(gradients):
    """Adam on g/d with (eps, clip) steps as on g with (d eps, d clip). The dilution is a power of two, which floats
    divide exactly, so the equality is bitwise; the report supplies it.
    """
    d = trajectory_mask_report([("tool", 56), ("assistant", 8)]).dilution_factor
    assert d == 8.0
    diluted = [[g / d for g in gradient] for gradient in gradients]
    assert _adam(diluted, lr=0.5, eps=0.25, clip=0.5) == _adam(gradients, lr=0.5, eps=0.25 * d, clip=0.5 * d)
    assert _adam(diluted, lr=0.5, eps=0.0) == _adam(gradients, lr=0.5, eps=0.0)  # hidden altogether
    assert _adam(diluted, lr=0.5, eps=0.25) != _adam(gradients, lr=0.5, eps=0.25)  # the foil


# --- averages --------------------------------------------------------------------------------------------------------

B5 = ([[F(-1)] * 2, [F(1)] * 8], [[1] * 2, [1] * 8])


def test_b5_one_loss_and_four_averages():
    """Case B5 (huggingface/trl#2995, #3138, #3256, #5375, #5619; NovaSky-AI/SkyRL#133; THUDM/slime#365). By hand:
    (-2 + 8)/10, (-1 + 1)/2, 6/20. Foils: 6/18 with eight tool tokens left in the denominator; 0 for the mean over
    tokens taken in each micro-batch.
    """
    losses, masks = B5
    assert average_token_losses(losses, masks) == F(3, 5)
    assert average_token_losses(losses, masks, average="sequence") == 0
    assert average_token_losses(losses, masks, average="constant", length=10) == F(3, 10)
    assert average_token_losses(losses, masks, average="micro_batch", micro_batches=[1, 1]) == 0
    assert average_token_losses(losses, masks, average="micro_batch", micro_batches=[2]) == F(3, 5)
    with_tools = [[*losses[0], *[F(0)] * 8], losses[1]]
    assert average_token_losses(with_tools, [[1] * 10, [1] * 8]) == F(1, 3)  # the foil
    assert average_token_losses(with_tools, [[1] * 2 + [0] * 8, [1] * 8]) == F(3, 5)
    assert isinstance(average_token_losses([[1, 2]], [[1, 1]]), float)


batches = st.lists(
    st.lists(st.tuples(st.fractions(-3, 3, max_denominator=8), st.booleans()), min_size=1, max_size=6).filter(
        lambda row: any(own for _, own in row)
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(batches, st.integers(1, 9), st.data())
def test_averages_differ_by_a_covariance_and_agree_where_weights_do(batch, length, data):
    """Each average weights the policy tokens of a sequence alike: 1/N, 1/(K n), 1/(K L), 1/(B N_b). The mean over
    tokens exceeds a mean of means by the covariance of size and mean, divided by the mean size.
    """
    losses = [[x if own else math.nan for x, own in row] for row in batch]
    masks = [[own for _, own in row] for row in batch]
    sums = [sum((x for x, own in row if own), F(0)) for row in batch]
    n = [sum(own for _, own in row) for row in batch]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(n) - 1)))) if len(n) > 1 else []
    bounds = [0, *cuts, len(n)]
    blocks = [range(a, b) for a, b in pairwise(bounds)]
    token = average_token_losses(losses, masks)
    sequence_ = average_token_losses(losses, masks, average="sequence")
    constant = average_token_losses(losses, masks, average="constant", length=length)
    micro = average_token_losses(losses, masks, average="micro_batch", micro_batches=[len(b) for b in blocks])
    assert token == sum(sums) / F(sum(n))
    assert sequence_ == sum((s / k for s, k in zip(sums, n, strict=True)), F(0)) / len(n)
    assert constant == sum(sums) / (length * len(n))
    sizes = [sum(n[k] for k in block) for block in blocks]
    assert micro == sum(sum(sums[k] for k in block) / F(size) for block, size in zip(blocks, sizes, strict=True)) / len(
        blocks
    )

    def covariance(a, b):
        mean = sum(a) / F(len(a))
        return sum((x - mean) * y for x, y in zip(a, b, strict=True)) / len(a)

    means = [s / k for s, k in zip(sums, n, strict=True)]
    assert token - sequence_ == covariance(n, means) / (F(sum(n)) / len(n))
    block_means = [sum(sums[k] for k in block) / F(size) for block, size in zip(blocks, sizes, strict=True)]
    assert token - micro == covariance(sizes, block_means) / (F(sum(sizes)) / len(sizes))
    if len(set(n)) == 1:
        assert token == sequence_
    if len(set(sizes)) == 1:
        assert token == micro
    if sum(n) == length * len(n):
        assert token == constant


PAY = {1: F(2), 2: F(3), 3: F(1)}


def _chain(go, normaliser):
    """Write "go" with probability ``go`` or "stop", at most three tokens; the reward depends on their number.

    Returns the mean reward times the normaliser, and its derivative by the logit of "go".
    """
    value = slope = F(0)
    for n, final in ((1, "stop"), (2, "stop"), (3, "stop"), (3, "go")):
        goes = n - 1 if final == "stop" else n
        chance = go**goes * (1 - go if final == "stop" else 1)
        dp = go * (1 - go)  # of the probability of "go" by its logit
        by_go = goes * go ** (goes - 1) if goes else F(0)
        derivative = (by_go * (1 - go) - go**goes if final == "stop" else by_go) * dp
        reward = PAY[n] * normaliser(n)
        value, slope = value + chance * reward, slope + derivative * reward
    return value, slope


@pytest.mark.parametrize("go", [F(1, 3), F(1, 2), F(4, 5)])
def test_dividing_by_the_length_of_a_transcript_divides_its_reward(go):
    """E[c G score] is the gradient of E[c G]: sequence mean (c = 1/n), mean over a whole transcript of n policy and n*n
    tool tokens (c = 1/(n + n^2)), constant length. The loss -G log pi of each token, and its derivative, are averaged
    by the function; the right side is differentiated by the product rule.
    """
    for average, options, normaliser in (
        ("sequence", {}, lambda n: F(1, n)),
        ("constant", {"length": 5}, lambda n: F(1, 5)),
        ("token", {}, lambda n: F(1, n + n * n)),
    ):
        left = F(0)
        for word in (("stop",), ("go", "stop"), ("go", "go", "stop"), ("go", "go", "go")):
            n = len(word)
            weight = math.prod(go if x == "go" else 1 - go for x in word)
            score = [PAY[n] * (1 - go if x == "go" else -go) for x in word]
            tools = [F(0)] * (n * n) if average == "token" else []
            row, mask = [*score, *tools], [1] * (n + len(tools))
            left += weight * average_token_losses([row], [mask], average=average, **options)
        assert left == _chain(go, normaliser)[1]
    assert _chain(go, lambda n: F(1, n))[1] != _chain(go, lambda n: F(1))[1]  # another objective


def test_what_is_masked_is_not_read_and_does_not_count():
    """alibaba/ROLL#444: losses [[1, 100], [1, -50]], mask [[1, 0], [1, 0]]. Foil: 26 = all four over two."""
    losses, masks = [[1.0, 100.0], [1.0, -50.0]], [[1, 0], [1, 0]]
    assert average_token_losses(losses, masks) == 1.0
    assert sum(map(sum, losses)) / 2 == 26.0  # the foil
    assert average_token_losses([[1.0, math.nan], [1.0, None]], masks, average="sequence") == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"average": "mean"}, "average is 'mean'; expected one of token, sequence"),
        ({"average": "constant"}, "length is None"),
        ({"length": 5}, "length is 5; expected a value with average='constant', and None otherwise"),
        ({"average": "constant", "length": 0}, "length is 0; expected an integer not below 1"),
        ({"average": "micro_batch"}, "micro_batches is None"),
        ({"micro_batches": [2]}, "micro_batches is .*; expected a value with average='micro_batch'"),
        ({"average": "micro_batch", "micro_batches": [1]}, "numbers that add up to the 2 sequences"),
        ({"average": "micro_batch", "micro_batches": [2, 0]}, r"micro_batches\[1\] is 0"),
    ],
)
def test_options_belong_to_their_average(options, message):
    with pytest.raises(ValueError, match=message):
        average_token_losses(*B5, **options)


def test_a_mean_over_no_policy_token_is_refused():
    """0/0: libraries clamp the denominator to 1, and a batch without policy tokens then passes for a loss of 0."""
    rows, masks = [[1.0], [2.0]], [[0], [1]]
    assert average_token_losses(rows, masks) == 2.0
    assert average_token_losses(rows, masks, average="constant", length=1) == 1.0
    with pytest.raises(ValueError, match=r"losses\[0\] holds no policy tokens"):
        average_token_losses(rows, masks, average="sequence")
    with pytest.raises(ValueError, match="micro-batch 0 holds no policy tokens"):
        average_token_losses(rows, masks, average="micro_batch", micro_batches=[1, 1])
    with pytest.raises(ValueError, match="losses holds no policy tokens"):
        average_token_losses(rows, [[0], [0]])


def test_bad_batches_are_named():
    with pytest.raises(ValueError, match="expected at least one sequence"):
        average_token_losses([], [])
    with pytest.raises(ValueError, match="losses has 1, masks has 2"):
        average_token_losses([[1.0]], [[1], [1]])
    with pytest.raises(ValueError, match=r"losses\[1\] has 1, masks\[1\] has 2"):
        average_token_losses([[1.0], [1.0]], [[1], [1, 0]])
    with pytest.raises(ValueError, match=r"losses\[0\]\[1\] is nan"):
        average_token_losses([[1.0, math.nan]], [[1, 1]])
    assert AVERAGES == ("token", "sequence", "constant", "micro_batch")


# --- other tokens for the same text ----------------------------------------------------------------------------------

VOCABULARY = {"H": F(1, 10), "AV": F(2, 10), "ING": F(4, 10), "HAV": F(3, 10)}


def _segmentations(text):
    if not text:
        yield ()
    for token in VOCABULARY:
        if text.startswith(token):
            for rest in _segmentations(text[len(token) :]):
                yield (token, *rest)


def test_b3_the_ratio_of_two_tokenisations_says_nothing_about_the_policies():
    """Case B3 (rllm-org/rllm#272; huggingface/trl#5144, #5224; verl-project/verl#6854). A model that draws tokens
    independently writes HAVING in two ways; the text's probability is the sum over both. Scored on the tokens that
    were sampled, equal weights have ratio 1; scored on the other tokenisation, the quotient of the two.
    """
    ways = list(_segmentations("HAVING"))
    assert sorted(ways) == [("H", "AV", "ING"), ("HAV", "ING")]
    mass = {way: math.prod(VOCABULARY[token] for token in way) for way in ways}
    assert sum(mass.values()) == F(8, 1000) + F(12, 100)
    sampled, encoded = ("H", "AV", "ING"), ("HAV", "ING")
    logs = {token: math.log(p) for token, p in VOCABULARY.items()}
    old = [logs[token] for token in sampled]
    assert turn_probability_ratio(old, old) == 1.0
    foil = math.exp(sum(logs[token] for token in encoded) - sum(old))
    assert foil == pytest.approx(float(mass[encoded] / mass[sampled]), rel=1e-12) == pytest.approx(15.0)
    with pytest.raises(ValueError, match="current has 2, behavior has 3"):
        turn_log_ratio([logs[token] for token in encoded], old)
    assert math.exp(-0.5 + 1.5) == pytest.approx(2.718282, rel=1e-6)  # the case's own fingerprint
    assert prefix_mismatch([1, 2, 3], [4, 3]) == 0


def test_b3_stripped_thinking_breaks_the_prefix_where_it_stood():
    """verl-project/verl#6854, PrimeIntellect-ai/prime-rl#1334: turn 0 was prompt [1, 2] and sampled [3, 4, 5], the next
    prompt [1, 2, 5, 6] has dropped the thinking [3, 4]. Cutting both rows to a common length would hide it.
    """
    assert prefix_mismatch([1, 2, 3, 4, 5], [1, 2, 5, 6]) == 2
    assert prefix_mismatch([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]) is None


# --- credit across observations --------------------------------------------------------------------------------------


def test_b6_credit_crosses_an_observation():
    """Case B6 (verl-project/verl#6376, #7278, #2337; radixark/miles#1827). Foils: the mask read as an end gives the
    first token 0; a discount for each tool token gives 0.25, and 4.27e-05 across a thousand.
    """
    assert masked_returns([0, 0, 1], [1, 0, 1], 0.5) == [0.5, 1.0]
    assert masked_returns([0] * 1001 + [1], [1] + [0] * 1000 + [1], 0.99) == [0.99, 1]
    assert discounted_return([0, 0, 1], 0.5) == 0.25
    assert discounted_return([0] * 1001 + [1], 0.99) == pytest.approx(4.273953e-05, rel=1e-6)


@settings(deadline=None)
@given(
    st.lists(st.fractions(-2, 2, max_denominator=6), min_size=1, max_size=6),
    st.fractions(0, 1, max_denominator=8),
    st.data(),
)
def test_b6_the_length_of_an_observation_does_not_enter(rewards, gamma, data):
    """Any number of tool tokens after each decision, 0 to 1000, and a reward anywhere among them: the returns are those
    of the decisions alone.
    """
    tokens, mask = [], []
    for reward in rewards:
        gap = data.draw(st.sampled_from([0, 1, 10, 1000]))
        place = data.draw(st.integers(0, gap))
        tokens += [reward if i == place else F(0) for i in range(gap + 1)]
        mask += [1] + [0] * gap
    assert masked_returns(tokens, mask, gamma) == [discounted_return(rewards[j:], gamma) for j in range(len(rewards))]


def test_a_reward_on_a_tools_token_is_not_lost():
    """radixark/miles#1827: the rollout ends with an observation and the reward is put on the last token. Foil: masking
    the rewards as well loses it.
    """
    assert masked_returns([0, 0, 0, 1], [1, 0, 1, 0], F(1, 2)) == [F(1, 2), 1]
    assert masked_returns([0, 0, 0, 0], [1, 0, 1, 0], F(1, 2)) == [0, 0]  # the foil


def test_returns_refuse_what_has_no_meaning():
    assert masked_returns([], [], 0.5) == []
    assert masked_returns([0, 0], [0, 0], 0.5) == []
    assert masked_returns([0, 1], [0, 1], 1) == [1]
    with pytest.raises(ValueError, match=r"rewards\[1\] is -1; expected 0 before the first policy token"):
        masked_returns([0, -1, 1], [0, 0, 1], 0.5)  # also where they cancel
    with pytest.raises(ValueError, match=r"rewards\[0\] is 1"):
        masked_returns([1], [0], 0.5)
    with pytest.raises(ValueError, match="gamma"):
        masked_returns([1], [1], 1.5)
    with pytest.raises(ValueError, match=r"rewards\[0\] is nan"):
        masked_returns([math.nan], [1], 0.5)
    with pytest.raises(ValueError, match="unequal length"):
        masked_returns([1], [1, 1], 0.5)
    with pytest.raises(ValueError, match="the return from token 0 is"):
        masked_returns([1.7e308, 1.7e308], [1, 1], 1.0)
