"""Optima against searches that share no code with them, against theorems, and against one another."""

import itertools
import random
from fractions import Fraction

import pytest

from keydoor._bernstein import Polynomial, enclose_maximum
from keydoor._memoryless import Objective
from keydoor.exact import belief_model, evaluate_exactly, histories
from keydoor.optima import (
    LARGEST_CLIMBED,
    LARGEST_ENCLOSED,
    best_deterministic_memoryless,
    best_stochastic_memoryless,
    optimal_policy,
    stochastic_memoryless_interval,
)
from keydoor.rules import ACTIONS, RULE_SETS, get_rules

F = Fraction


def table_of(rows):
    return {seen: {action: F(1)} for seen, action in rows.items()}


# --- with memory ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULE_SETS)
@pytest.mark.parametrize(("horizon", "value"), [(1, 0), (3, 0), (4, 1), (6, 1), (8, 1), (50, 1)])
def test_with_memory_four_turns_are_enough(name, horizon, value):
    """Look, take, open, finish; with three turns nobody can finish behind an open door."""
    assert optimal_policy(rules=name, horizon=horizon).value == value


@pytest.mark.parametrize("world", [{}, {"rules": "soft"}, {"colours": 3}, {"delay": 2}])
@pytest.mark.parametrize("mode", ["sparse", "potential"])
def test_belief_is_sufficient(world, mode):
    """No policy of histories does better: the largest of all values by a recursion over whole histories, unmerged.

    And the plan earns its value when it is played.
    """
    gamma, horizon = F(9, 10), 5
    best = optimal_policy(horizon=horizon, gamma=gamma, reward_mode=mode, **world)
    assert evaluate_exactly(best, horizon=horizon, gamma=gamma, reward_mode=mode, **world).expected_return == best.value
    tables = get_rules(world.get("rules", "standard"), colours=world.get("colours", 2), delay=world.get("delay", 0))
    weight = F(1, len(tables.colours))

    def worth(states, turn):
        """Largest sum over targets of probability times return, for the targets that one history leaves possible."""
        values = []
        for action in range(len(tables.actions)):
            total, seen = F(0), {}
            for state in states:
                outcome = tables.table[state][action]
                ended = outcome.stop_reason is not None or turn + 1 == horizon
                total += weight * F(outcome.base_reward)
                if mode == "potential":
                    kept = 0 if ended else F(tables.potential[outcome.state])
                    total += weight * (gamma * kept - F(tables.potential[state]))
                if not ended:
                    seen.setdefault(outcome.observation, []).append(outcome.state)
            values.append(total + gamma * sum(worth(after, turn + 1) for after in seen.values()))
        return max(values)

    assert worth(list(tables.start.values()), 0) == best.value


@pytest.mark.parametrize(("delay", "colours"), [(0, 2), (1, 2), (3, 4), (20, 2)])
def test_a_delay_costs_its_turns(delay, colours):
    """Four turns and the wait, and with memory nothing else; one turn less and nobody succeeds."""
    assert optimal_policy(horizon=4 + delay, delay=delay, colours=colours).value == 1
    assert optimal_policy(horizon=3 + delay, delay=delay, colours=colours).value == 0


def test_the_plan_names_all_best_actions():
    """At horizon 4 no turn may be lost; with one to spare, looking twice or an invalid pickup is as good."""
    tight, loose = optimal_policy(horizon=4), optimal_policy(horizon=5)
    assert tight.actions[0, 0] == ("inspect",)
    assert loose.actions[0, 0] == ("inspect", "pickup_red", "pickup_blue")
    with pytest.raises(ValueError, match="shorter than the horizon"):
        tight(("room", *("inspect", "clue_red") * 4))


# --- without memory, deterministic ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULE_SETS)
def test_deterministic_optimum_by_all_maps(name):
    """All 6⁶ maps over the six observations of a running task, each played with both targets."""
    rules, horizon = get_rules(name), 6
    running = ("room", "clue_red", "clue_blue", "key_held", "door_open", "invalid")
    best = 0
    for actions in itertools.product(range(6), repeat=6):
        policy, wins = dict(zip(running, actions, strict=True)), 0
        for target in rules.colours:
            state, seen = rules.start[target], "room"
            for _ in range(horizon):
                outcome = rules.table[state][policy[seen]]
                if outcome.stop_reason:
                    wins += outcome.stop_reason == "success"
                    break
                state, seen = outcome.state, outcome.observation
        best = max(best, wins)
    found = best_deterministic_memoryless(rules=name, horizon=horizon)
    assert found.success_probability == F(best, 2)


@pytest.mark.parametrize("world", [{"rules": name} for name in RULE_SETS] + [{"colours": 3}, {"delay": 1}])
def test_the_witness_earns_what_is_said(world):
    for horizon in (3, 4, 5, 7):
        found = best_deterministic_memoryless(horizon=horizon, **world)
        if found.policy:
            played = evaluate_exactly(table_of(found.policy), horizon=horizon, **world)
            assert played.success_probability == found.success_probability


def test_memory_is_worth_one_half():
    """The theorem of chapter 1, at each horizon from 4: with memory 1, without ½; and 1/n for n colours."""
    for horizon in range(4, 13):
        assert optimal_policy(horizon=horizon).value == 1
        assert best_deterministic_memoryless(horizon=horizon).success_probability == F(1, 2)
    for colours in (3, 4):
        assert best_deterministic_memoryless(horizon=6, colours=colours).success_probability == F(1, colours)


# --- without memory, stochastic -------------------------------------------------------------------------------------


def test_stochastic_optimum_is_enclosed():
    """65/128 at horizon 6, and about 0.530341 at 8: found, certified, and inside the proved interval."""
    six, eight = (best_stochastic_memoryless(horizon=horizon) for horizon in (6, 8))
    assert (six.success_probability, six.gap, six.strict) == (F(65, 128), 0, True)
    lower, upper = stochastic_memoryless_interval(horizon=8)
    assert upper - lower <= F(1, 10**9)
    assert lower - F(1, 10**9) <= eight.success_probability <= upper == eight.upper
    assert eight.strict
    assert eight.gap < F(1, 10**12)
    # The maximum of one published family over a and c, on a grid: it can only lie below, and it comes close.
    grid = max(
        F(1, 2) * (1 - c**3 + a * (1 - a) * c * (1 + a * c))
        for a, c in itertools.product((F(i, 100) for i in range(101)), repeat=2)
    )
    assert grid < upper
    assert upper - grid < F(1, 10**4)


@pytest.mark.parametrize("horizon", [4, 5, 6])
def test_no_memoryless_policy_exceeds_the_interval(horizon):
    """Random policies in all their unknowns, none of them reduced by the theorem, and climbs from them."""
    lower, upper = stochastic_memoryless_interval(horizon=horizon)
    objective, draws = Objective(get_rules(), horizon), random.Random(horizon)
    for _ in range(40):
        rows = []
        for _ in objective.seen:
            weights = [draws.expovariate(1) ** 4 + 1e-12 for _ in ACTIONS]
            rows.append([weight / sum(weights) for weight in weights])
        value, _ = objective.climb(rows, rounds=40)
        assert value <= float(upper) + 1e-12
    found = best_stochastic_memoryless(horizon=horizon)
    assert lower - F(1, 10**9) <= found.success_probability <= upper


@pytest.mark.parametrize("horizon", [4, 5, 6, 8])
def test_quiet_closed_form(horizon):
    """1 − 2^−(H−3): a fair coin at each of the H − 3 turns in which a door can be opened."""
    found = best_stochastic_memoryless(rules="quiet", horizon=horizon, starts=12)
    assert found.success_probability == 1 - F(1, 2 ** (horizon - 3))
    assert found.gap == 0


def test_soft_reaches_one():
    found = best_stochastic_memoryless(rules="soft", horizon=5, starts=8)
    assert (found.success_probability, found.gap, found.upper) == (1, 0, 1)


@pytest.mark.parametrize("name", RULE_SETS)
def test_slopes_are_occupancy_times_action_value(name):
    """∂J/∂π(a|o) against the nodes of the exact evaluation, and against the difference quotient of a polynomial."""
    rules, horizon = get_rules(name), 5
    objective, draws = Objective(rules, horizon), random.Random(7)
    rows = []
    for _ in objective.seen:
        weights = [draws.randrange(1, 9) for _ in ACTIONS]
        rows.append([F(weight, sum(weights)) for weight in weights])
    value, slopes = objective.slopes(rows)
    found = evaluate_exactly(dict(zip(objective.seen, rows, strict=True)), rules=name, horizon=horizon)
    assert value == found.success_probability
    expected = [[F(0)] * 6 for _ in objective.seen]
    for node in found.nodes:
        for action, worth in enumerate(node.action_values):
            expected[objective.seen.index(node.history[0])][action] += node.probability * worth
    assert slopes == expected
    step = F(1, 10**6)
    for seen, action in ((0, 0), (1, 1), (objective.seen.index("key_held"), 3)):
        moved = [list(row) for row in rows]
        moved[seen][action] += step
        assert abs((objective.slopes(moved)[0] - value) / step - slopes[seen][action]) < F(1, 10**4)


def test_the_climb_never_goes_down():
    """The theorem of Baum and Eagon, with powers above 1 taken only where they go up."""
    objective, draws = Objective(get_rules("quiet"), 6), random.Random(3)
    rows = []
    for _ in objective.seen:
        weights = [draws.random() for _ in ACTIONS]
        rows.append([weight / sum(weights) for weight in weights])
    values = [objective.slopes(rows)[0]]
    for _ in range(30):
        value, rows = objective.climb(rows, rounds=1)
        values.append(value)
        assert all(abs(sum(row) - 1) < 1e-12 for row in rows)
    assert all(after >= before for before, after in itertools.pairwise(values))
    assert values[-1] > values[0]


# --- the enclosure --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "variables", "maximum"),
    [
        ({(0,): 3}, 1, F(3)),
        ({(1,): 1, (2,): -1}, 1, F(1, 4)),  # x(1 − x)
        ({(1,): 1}, 1, F(1)),
        ({(1,): -1}, 1, F(0)),
        ({(1, 0): 1, (0, 1): 1, (1, 1): -2}, 2, F(1)),  # exclusive or: at two corners
        ({(2, 0): -1, (1, 0): F(2, 3), (0, 2): -1, (0, 1): F(1, 2)}, 2, F(1, 9) + F(1, 16)),  # two parabolas
    ],
)
def test_enclosure_of_known_maxima(terms, variables, maximum):
    lower, upper = enclose_maximum(Polynomial(terms), variables, F(1, 10**8))
    assert lower <= maximum <= upper
    assert upper - lower <= F(1, 10**8)


def test_polynomials_add_and_multiply():
    x, y = Polynomial({(1, 0): 1}), Polynomial({(0, 1): 1})
    square = (x + y * -1) * (x + y)
    assert square(F(3), F(2)) == 5
    assert (square * F(1, 2))(F(3), F(2)) == F(5, 2)


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (optimal_policy, {"horizon": 10**9}, "horizon is 1000000000; expected at most 10,000"),
        (optimal_policy, {"gamma": -1}, "gamma is -1"),
        (optimal_policy, {"reward_mode": "dense"}, "reward_mode is 'dense'"),
        (best_deterministic_memoryless, {"rules": ""}, "rules is ''"),
        (best_deterministic_memoryless, {"horizon": True}, "horizon is True"),
        (best_stochastic_memoryless, {"horizon": LARGEST_CLIMBED + 1}, "expected at most 64"),
        (best_stochastic_memoryless, {"starts": 0}, "starts is 0"),
        (best_stochastic_memoryless, {"seed": -1}, "seed is -1"),
        (stochastic_memoryless_interval, {"horizon": LARGEST_ENCLOSED + 1}, "expected at most 12"),
        (stochastic_memoryless_interval, {"width": 0}, "width is 0; expected a fraction above 0"),
        (stochastic_memoryless_interval, {"width": 1e-9}, "width is 1e-09"),
    ],
)
def test_arguments_out_of_range(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(**arguments)


def test_every_history_of_the_tree_has_a_plan():
    """The plan of :func:`optimal_policy` answers wherever an agent may come, also off its own path."""
    best = optimal_policy(horizon=4)
    for history, belief in histories(horizon=4):
        (action,) = best(history)
        assert action in best.actions[len(history) // 2, belief]
        assert belief_model(get_rules()).follow(history) == belief
