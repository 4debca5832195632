"""The policy as a table: rows, calibration, and the exact success against the solver that knows nothing of tables."""

from __future__ import annotations

import math
import random
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydoor.exact import evaluate_exactly, histories
from keydoor.language.tables import (
    SITUATIONS,
    Situation,
    action_masses,
    as_policy,
    calibrate,
    exact_success,
    probabilities,
    reachable,
    row_of_belief,
    situation_after,
    situation_of,
)
from keydoor.rules import ACTIONS, RULE_SETS, State, get_rules

SCORES = st.lists(st.lists(st.floats(-30, 0, allow_nan=False), min_size=6, max_size=6), min_size=15, max_size=15)


def fractions(seed: int) -> list[list[F]]:
    """A policy in fractions, with a zero here and there."""
    source = random.Random(seed)
    rows = []
    for _ in SITUATIONS:
        weights = [source.choice((0, 1, 2, 3)) for _ in ACTIONS]
        weights[source.randrange(6)] += 1
        rows.append([F(w, sum(weights)) for w in weights])
    return rows


def test_fifteen_different_situations_in_a_fixed_order() -> None:
    """Start; then for each clue no key, two keys, and each door open with each key in hand."""
    names = [situation.name for situation in SITUATIONS]
    assert len({*SITUATIONS}) == len(SITUATIONS) == 15
    assert names[:4] == ["start", "red", "red, key red", "red, key blue"]
    assert names[8:10] == ["blue", "blue, key red"]
    assert all(s.key is not None for s in SITUATIONS if s.opened is not None)


@pytest.mark.parametrize("rules", RULE_SETS)
def test_every_reachable_state_has_a_row_and_every_history_the_row_of_its_states(rules: str) -> None:
    world = get_rules(rules)
    assert {SITUATIONS[row] for row in reachable(rules)} == {situation_of(state) for state in world.states}
    for history, _ in histories(rules=rules, horizon=4):
        found = situation_after(history, rules)
        assert found.clue == next((name[5:] for name in history if name.startswith("clue_")), None)


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("horizon", [1, 4, 5])
@pytest.mark.parametrize("seed", range(3))
def test_exact_success_is_what_the_exact_solver_says(rules: str, horizon: int, seed: int) -> None:
    """Two ways that share no line: over states of the world, and over histories of what the agent saw; in fractions."""
    table = fractions(seed)
    found = exact_success(table, rules=rules, horizon=horizon)
    expected = evaluate_exactly(as_policy(table, rules), rules=rules, horizon=horizon)
    assert found.probability == expected.success_probability
    assert found.expected_turns == expected.expected_turns
    assert found.stop_reasons == {k: v for k, v in expected.stop_reasons.items() if k != "collector_limit"}
    assert sum(found.stop_reasons.values()) == 1
    assert found.probability == sum(found.by_target.values()) / 2


def test_known_values() -> None:
    """Uniform: the numbers of the book; an expert wins always in four turns, and never with three."""
    uniform = [[F(1, 6)] * 6] * 15
    assert exact_success(uniform, horizon=6).probability == F(5, 1458)
    assert exact_success(uniform, horizon=8).probability == F(389, 69984)
    assert exact_success(uniform, rules="soft", horizon=6).probability == F(293, 46656)
    steps = {"start": 0, "red": 1, "blue": 2, "red, key red": 3, "blue, key blue": 4}
    expert = [[F(int(a == steps.get(s.name, 5))) for a in range(6)] for s in SITUATIONS]
    assert exact_success(expert, horizon=4).probability == 1
    assert exact_success(expert, horizon=3).probability == 0
    one_eyed = [row if s.clue != "blue" else expert[1] for s, row in zip(SITUATIONS, expert, strict=True)]
    assert exact_success(one_eyed).by_target == {"red": 1, "blue": 0}


@given(SCORES)
def test_calibration_takes_away_what_a_string_is_worth_everywhere(scores: list[list[float]]) -> None:
    """Each column gets the mean 0, twice is once, and a constant on a column is not seen."""
    once = calibrate(scores)
    for a in range(6):
        assert math.fsum(row[a] for row in once) == pytest.approx(0, abs=1e-9)
    assert calibrate(once) == [pytest.approx(row, abs=1e-9) for row in once]
    shifted = [[x - 7 * a for a, x in enumerate(row)] for row in scores]
    assert calibrate(shifted) == [pytest.approx(row, abs=1e-9) for row in once]


def test_a_short_string_wins_everywhere_unless_scores_are_calibrated() -> None:
    """The foil: the raw scores of a model that knows what to do, but finds one string four nats shorter."""
    steps = {"start": 0, "red": 1, "blue": 2, "red, key red": 3, "blue, key blue": 4}
    scores = [[-10.0 + 3 * (a == steps.get(s.name, 5)) + 6 * (a == 5) for a in range(6)] for s in SITUATIONS]
    raw, fair = (exact_success(probabilities(x)).probability for x in (scores, calibrate(scores)))
    assert raw < 0.001 < 0.05 < fair


def test_probabilities_survive_scores_that_no_exponential_holds() -> None:
    row = [-5000.0, -5001.0, -9000.0, -9000.0, -9000.0, -9000.0]
    found = probabilities([row] * 15)[3]
    assert found[0] == pytest.approx(1 / (1 + math.exp(-1)))
    assert sum(found) == pytest.approx(1)


def test_spellings_of_an_action_add_up_and_other_strings_count_for_none() -> None:
    strings = {"inspect": math.log(0.2), '{"name": "inspect"}': math.log(0.1), "inspekt": math.log(0.5)}
    assert action_masses(strings) == {"inspect": pytest.approx(math.log(0.3))}
    assert action_masses({"finish": -2000.0}) == {"finish": pytest.approx(-2000.0)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exact_success([[1 / 6] * 6] * 14), "14 rows; expected 15"),
        (lambda: exact_success([[1 / 5] * 5] * 15), r"table\[0\] has 5 entries"),
        (lambda: exact_success([[0.5] * 6] * 15), r"sum of table\[0\] is 3"),
        (lambda: exact_success([[F(1, 7)] * 6] * 15), r"sum of table\[0\]"),
        (lambda: exact_success([[float("nan")] * 6] * 15), r"table\[0\]\[0\] is nan"),
        (lambda: exact_success([[1 / 6] * 6] * 15, rules="hard"), "rules is 'hard'"),
        (lambda: exact_success([[1 / 6] * 6] * 15, horizon=0), "horizon is 0"),
        (lambda: calibrate([[0.0] * 6] * 15, [[math.inf] * 6] * 15), r"reference\[0\]\[0\] is inf"),
        (lambda: probabilities([[0.0] * 6] * 15, temperature=0), "temperature is 0"),
        (lambda: action_masses({}), "string_logprobs"),
        (lambda: action_masses({"inspect": 0.5}), "not above 0"),
        (lambda: action_masses({"inspect": -math.inf}), "finite"),
        (lambda: situation_of(State("green", True, "green", None, "room")), "two colours"),
        (lambda: situation_of(Situation("red", None, None)), "a State"),
        (lambda: situation_after(("room", "inspect", "key_held")), r"history\[2\]"),
        (lambda: row_of_belief(get_rules(), (0, 5)), "look the same"),
    ],
)
def test_bad_input_is_refused(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()
