"""The exact world against everything that can be computed without it: the environment, Bayes' rule, all sequences."""

import itertools
import random
import subprocess
import sys
from fractions import Fraction
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.env import KeyDoorAgentEnv
from keydoor.exact import (
    LIMIT,
    LONGEST,
    belief_model,
    check_horizon,
    check_size,
    count_histories,
    evaluate_exactly,
    histories,
)
from keydoor.returns import discounted_return, semi_markov_return
from keydoor.rules import ACTIONS, COLOURS, OBSERVATIONS, RULE_SETS, STOP_REASONS, get_rules

F = Fraction
UNIFORM = dict.fromkeys(OBSERVATIONS, [F(1, 6)] * 6)
WORLDS = [{"rules": name} for name in RULE_SETS] + [{"colours": 3}, {"delay": 1}, {"rules": "quiet", "delay": 1}]


def named(world):
    return get_rules(world.get("rules", "standard"), colours=world.get("colours", 2), delay=world.get("delay", 0))


def episodes(policy, horizon, world, collector_limit=None):
    """All episodes of an environment with their probabilities: an enumeration that knows nothing of beliefs.

    Yields (probability, target, transitions), a transition being (history before, action, step's return value).
    """
    rules = named(world)
    for target in rules.colours:
        stack = [(F(1, len(rules.colours)), [])]
        while stack:
            probability, actions = stack.pop()
            env = KeyDoorAgentEnv(task_horizon=horizon, collector_limit=collector_limit, gamma=F(9, 10), **world)
            history, transitions, ended = (env.reset(target=target)[0],), [], False
            for action in actions:
                step = env.step(action)
                transitions.append((history, action, step))
                history, ended = (*history, action, step[0]), step[2] or step[3]
            if ended:
                yield probability, target, transitions
            else:
                for action, chosen in zip(rules.actions, policy(history), strict=True):
                    if chosen:
                        stack.append((probability * chosen, [*actions, action]))


def odd_policy(history):
    """A policy with memory and fractions that no symmetry explains."""
    weights = [3 + (7 * len(history) + 5 * action + len(history[-1])) % 4 for action in range(6)]
    return [F(weight, sum(weights)) for weight in weights]


# --- beliefs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", WORLDS)
def test_posterior_is_bayes_rule(world):
    """Prior times likelihood, normalised, from the tables alone; the policy's factors cancel."""
    rules = named(world)
    model = belief_model(rules)
    for history, belief in histories(horizon=4, **world):
        likelihood = {}
        for target in rules.colours:
            state, fits = rules.start[target], 1
            for action, seen in zip(history[1::2], history[2::2], strict=True):
                outcome = rules.table[state][rules.actions.index(action)]
                fits *= outcome.observation == seen and outcome.stop_reason is None
                state = outcome.state
            likelihood[target] = F(fits, len(rules.colours))
        evidence = sum(likelihood.values())
        assert model.posterior(belief) == {target: p / evidence for target, p in likelihood.items()}
        assert model.follow(history) == belief


@pytest.mark.parametrize("world", WORLDS)
def test_the_belief_is_a_martingale(world):
    r"""E[P(target | h_{t+1}) | h_t, a_t] = P(target | h_t) for each action, ends included.

    A true end reveals which targets were possible there, so its posterior is over those. The foil, the posterior over
    what goes on alone, is no martingale: that an episode goes on is news.
    """
    model = belief_model(named(world))
    foil_differs = False
    for belief, states in enumerate(model.beliefs):
        prior = model.posterior(belief)
        for action, branches in enumerate(model.branches[belief]):
            mean = dict.fromkeys(prior, F(0))
            alone = dict.fromkeys(prior, F(0))
            for branch in branches:
                possible = [
                    colour
                    for colour, state in zip(prior, states, strict=True)
                    if state is not None
                    and (outcome := model.world.table[state][action]).observation == branch.observation
                    and outcome.stop_reason == branch.stop_reason
                ]
                for colour in possible:
                    mean[colour] += branch.probability * F(1, len(possible))
                    alone[colour] += branch.probability * F(1, len(possible)) * (branch.belief is not None)
            assert mean == prior
            foil_differs |= alone != prior
    assert foil_differs


@pytest.mark.parametrize("world", WORLDS)
def test_branches_are_the_environments_steps(world):
    """Each branch of each belief, against an environment that is led there with each possible target."""
    model = belief_model(named(world))
    for history, belief in histories(horizon=3, **world):
        for action in model.world.actions:
            seen = {}
            for target, p in model.posterior(belief).items():
                if p:
                    env = KeyDoorAgentEnv(task_horizon=99, gamma=1, **world)
                    env.reset(target=target)
                    for before in history[1::2]:
                        env.step(before)
                    observation, reward, _, _, info = env.step(action)
                    key = observation, info["stop_reason"]
                    seen.setdefault(key, []).append((p, reward, info["potential_after"], info["invalid"]))
            branches = model.branches[belief][model.world.actions.index(action)]
            assert {(b.observation, b.stop_reason) for b in branches} == set(seen)
            for branch in branches:
                rows = seen[branch.observation, branch.stop_reason]
                mass = sum(row[0] for row in rows)
                assert branch.probability == mass
                means = [sum(row[0] * F(row[i]) for row in rows) / mass for i in (1, 2, 3)]
                assert [branch.base_reward, branch.potential_after, branch.invalid] == means


def test_number_of_histories():
    """Counted without a list, against the list; and the sizes that are published for each hidden target.

    10,512 and 195,312 count a history once for each target that is still possible; before the first look that is two.
    """
    for world in WORLDS:
        for horizon in (1, 2, 5):
            assert count_histories(horizon=horizon, **world) == len([*histories(horizon=horizon, **world)])
    blind = {"standard": 2, "soft": 4}  # actions that end nothing and show nothing before the first look
    for name, published in (("standard", 10_512), ("soft", 195_312)):
        assert count_histories(rules=name, horizon=8) + sum(blind[name] ** t for t in range(8)) == published


# --- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "horizon", "value"),
    [
        # The authors of the rules found these with a search of their own.
        ("standard", 6, F(5, 1458)),
        ("standard", 8, F(389, 69984)),
        ("soft", 6, F(293, 46656)),
        ("soft", 8, F(9223, 559872)),
        ("quiet", 6, F(293, 46656)),
        ("quiet", 8, F(9223, 559872)),
    ],
)
def test_uniform_policy_has_the_published_fractions(name, horizon, value):
    found = evaluate_exactly(UNIFORM, rules=name, horizon=horizon)
    assert found.success_probability == found.expected_return == value
    assert sum(found.stop_reasons.values()) == 1


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("collector_limit", [None, 2, 4])
def test_every_number_against_all_episodes_of_the_environment(world, collector_limit):
    """Probabilities, turns, ends, invalid actions, both returns, with plain time and with durations.

    4 is the horizon: on that tie the task's end wins.
    """
    gamma, horizon = F(9, 10), 4
    if world.get("colours"):
        policy, horizon = (lambda history: [F(i + 1, 36) for i in range(8)]), 3
    else:
        policy = odd_policy
    durations = {"inspect": 2, "finish": 3}
    exact = {"horizon": horizon, "gamma": gamma, "collector_limit": collector_limit, **world}
    runs = [*episodes(policy, horizon, world, collector_limit)]
    for mode in ("sparse", "potential"):
        found = evaluate_exactly(policy, reward_mode=mode, **exact)
        field = "base_reward" if mode == "sparse" else "shaped_reward"
        returns = timed = F(0)
        reasons, turns, invalid = dict.fromkeys(STOP_REASONS, F(0)), F(0), F(0)
        for probability, _, transitions in runs:
            infos = [step[4] for _, _, step in transitions]
            returns += probability * discounted_return([F(info[field]) for info in infos], gamma)
            times = [durations.get(action, 1) for _, action, _ in transitions]
            rewards = [
                F(info["base_reward"])
                + (mode == "potential") * (gamma**tau * F(info["potential_after"]) - F(info["potential_before"]))
                for tau, info in zip(times, infos, strict=True)
            ]
            timed += probability * semi_markov_return(rewards, times, gamma)
            reasons[infos[-1]["stop_reason"]] += probability
            turns += probability * len(infos)
            invalid += probability * sum(info["invalid"] for info in infos)
        assert found.expected_return == returns
        assert found.stop_reasons == reasons
        assert (found.success_probability, found.expected_turns) == (reasons["success"], turns)
        assert found.invalid_actions == invalid
        assert evaluate_exactly(policy, reward_mode=mode, durations=durations, **exact).expected_return == timed


@pytest.mark.parametrize("mode", ["sparse", "potential"])
def test_value_and_occupancy_of_each_history(mode):
    """Each information state against a conditional mean over the episodes that pass through it."""
    gamma, horizon, world = F(9, 10), 4, {}
    mass, total = {}, {}
    for probability, _, transitions in episodes(odd_policy, horizon, world):
        field = "base_reward" if mode == "sparse" else "shaped_reward"
        rewards = [F(step[4][field]) for _, _, step in transitions]
        for turn, (history, action, _) in enumerate(transitions):
            share = probability * discounted_return(rewards[turn:], gamma)
            for key in (history, (history, action)):
                mass[key] = mass.get(key, F(0)) + probability
                total[key] = total.get(key, F(0)) + share
    found = evaluate_exactly(odd_policy, horizon=horizon, gamma=gamma, reward_mode=mode)
    assert {node.history for node in found.nodes} == {key for key in mass if isinstance(key[0], str)}
    for node in found.nodes:
        assert node.probability == mass[node.history]
        assert node.value == total[node.history] / mass[node.history] == found.value(node.history)
        for action, value in zip(ACTIONS, node.action_values, strict=True):
            assert value == total[node.history, action] / mass[node.history, action]


def test_shaping_moves_values_by_the_potential():
    r"""V' = V − E[Φ | h] at each history, and so not one difference of action values changes."""
    arguments = {"horizon": 5, "gamma": F(9, 10)}
    plain = evaluate_exactly(odd_policy, **arguments)
    shaped = evaluate_exactly(odd_policy, reward_mode="potential", **arguments)
    model = belief_model(get_rules())
    for a, b in zip(plain.nodes, shaped.nodes, strict=True):
        assert b.value == a.value - model.potential[a.belief]
        assert {x - y for x, y in zip(a.action_values, b.action_values, strict=True)} == {model.potential[a.belief]}


@pytest.mark.parametrize("world", WORLDS)
def test_three_ways_to_say_the_same_policy(world):
    """A function, a table of histories and a table of observations: memoryless ones merge into few states."""
    rules = named(world)
    draws = random.Random(1)
    table = {}
    for seen in rules.observations:
        weights = [draws.randrange(1, 9) for _ in rules.actions]
        table[seen] = {a: F(w, sum(weights)) for a, w in zip(rules.actions, weights, strict=True)}
    merged = evaluate_exactly(table, horizon=4, gamma=F(1, 2), **world)
    by_function = evaluate_exactly(lambda history: table[history[-1]], horizon=4, gamma=F(1, 2), **world)
    whole = {history: table[history[-1]] for history, _ in histories(horizon=4, **world)}
    by_history = evaluate_exactly(whole, horizon=4, gamma=F(1, 2), **world)
    for name in ("success_probability", "expected_return", "expected_turns", "invalid_actions", "stop_reasons"):
        assert getattr(merged, name) == getattr(by_function, name) == getattr(by_history, name)
    assert len(merged.nodes) < len(by_function.nodes) == len(by_history.nodes)
    occupancy = {}
    for node in by_history.nodes:
        key = node.turn, node.history[-1:], node.belief
        occupancy[key] = occupancy.get(key, 0) + node.probability
    assert occupancy == {(node.turn, node.history, node.belief): node.probability for node in merged.nodes}


@given(st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6), min_size=6, max_size=6), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_probabilities_and_the_bellman_equation(weights, horizon):
    """For any memoryless policy: ends add up to 1, occupancies add up to the mean number of turns, V = Σ π Q."""
    rows = [[F(w + (i == 0), sum(row) + 1) for i, w in enumerate(row)] for row in weights]
    table = dict(zip(OBSERVATIONS, rows, strict=False))
    found = evaluate_exactly(table, horizon=horizon, off_path=True)
    assert sum(found.stop_reasons.values()) == 1
    assert sum(node.probability for node in found.nodes) == found.expected_turns <= horizon
    for node in found.nodes:
        assert None not in node.action_values
        assert node.value == sum(p * q for p, q in zip(node.policy, node.action_values, strict=True))


def test_floats_agree_with_fractions():
    exact = evaluate_exactly(odd_policy, horizon=6, gamma=F(9, 10), reward_mode="potential")
    rounded = evaluate_exactly(
        lambda history: [float(p) for p in odd_policy(history)], horizon=6, gamma=0.9, reward_mode="potential"
    )
    assert isinstance(rounded.expected_return, float)
    assert isclose(rounded.expected_return, exact.expected_return, rel_tol=1e-12)
    assert isclose(rounded.success_probability, exact.success_probability, rel_tol=1e-12)


def test_values_behind_what_the_policy_never_does():
    """A deterministic policy: off the path nothing is looked at unless asked for, and then where the table answers."""
    policy = {"room": {"inspect": 1}, "clue_red": {"finish": 1}, "clue_blue": {"finish": 1}}
    (start, *_) = evaluate_exactly(policy).nodes
    assert start.action_values == (0, None, None, 0, 0, 0)
    (start, *_) = evaluate_exactly({**policy, "invalid": {"finish": 1}}, off_path=True).nodes
    assert None not in start.action_values
    (start, *_) = evaluate_exactly(policy, off_path=True).nodes
    assert start.action_values[1] is None


def test_a_cut_is_no_end():
    """Up to the cut the limits are alike; the shaped return keeps the potential at a cut, not at the task's end."""
    walk = {"room": {"inspect": 1}, "clue_red": {"pickup_red": 1}, "clue_blue": {"pickup_red": 1}}
    ended = evaluate_exactly(walk, horizon=2, reward_mode="potential")
    cut = evaluate_exactly(walk, horizon=9, collector_limit=2, reward_mode="potential")
    assert ended.stop_reasons["task_horizon"] == cut.stop_reasons["collector_limit"] == 1
    assert ended.expected_return == 0
    assert cut.expected_return == (F(1, 2) + F(1, 4)) / 2  # the right key for one target, the wrong one for the other


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda history: [F(1, 6)] * 5, r"policy\[\('room',\)\] is .*; expected 6 probabilities"),
        (lambda history: [F(1, 5)] * 6, r"probabilities that add up to 1, not to 6/5"),
        (lambda history: [0.2] * 6, r"add up to 1, not to 1\.2"),
        (lambda history: [0.5, 0.5 + 1e-6, 0, 0, 0, 0], r"add up to 1, not to 1\.000001"),
        (lambda history: [F(1, 6)] * 5 + [F(1, 6) + F(1, 10**12)], "add up to 1"),
        (lambda history: [float("nan")] * 6, r"policy\[\('room',\)\]\[0\] is nan; expected a number in \[0, 1\]"),
        (lambda history: [1.5, -0.5, 0, 0, 0, 0], r"\[0\] is 1\.5"),
        (lambda history: {"fly": 1}, "'fly'; expected one of inspect"),
        (lambda history: "inspect", "expected a sequence"),
        (lambda history: None, "expected a sequence"),
        ({"room": {"inspect": 1}}, "expected an entry for .*'clue_red'"),
        ({("room",): {"inspect": 1}}, r"expected an entry for \('room', 'inspect', 'clue_red'\)"),
        ({}, "expected an entry for"),
    ],
)
def test_what_is_no_policy(policy, message):
    with pytest.raises(ValueError, match=message):
        evaluate_exactly(policy, horizon=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rules": "hard"}, "rules is 'hard'; expected one of standard, soft, quiet"),
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": 2.0}, "horizon is 2.0"),
        ({"horizon": LONGEST + 1}, "horizon is 10001; expected at most 10,000"),
        ({"colours": 1}, "colours is 1"),
        ({"delay": -1}, "delay is -1"),
        ({"gamma": 1.1}, r"gamma is 1\.1"),
        ({"gamma": float("nan")}, "gamma is nan"),
        ({"reward_mode": "shaped"}, "reward_mode is 'shaped'"),
        ({"collector_limit": 0}, "collector_limit is 0"),
        ({"durations": {"inspect": 0}}, r"durations\['inspect'\] is 0; expected a positive number"),
        ({"durations": {"fly": 1}}, "a name in durations is 'fly'"),
        ({"durations": [1]}, "durations is"),
    ],
)
def test_arguments_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate_exactly(UNIFORM, **arguments)


def test_a_tree_that_is_too_large_is_refused_before_it_is_built():
    """The message says the size and the limit, and no history has been asked for. A memoryless policy needs no tree."""
    asked = []
    with pytest.raises(ValueError, match=rf"horizon is 30; expected at most {LIMIT:,} histories; .* has [\d,]+"):
        evaluate_exactly(lambda history: asked.append(history), horizon=30)
    assert not asked
    with pytest.raises(ValueError, match="expected at most"):
        histories(horizon=30)
    with pytest.raises(ValueError, match="expected at most 100 histories"):
        check_size(rules="standard", horizon=5, colours=2, delay=0, limit=100)
    assert check_horizon(LONGEST) == LONGEST
    assert evaluate_exactly(UNIFORM, horizon=60, gamma=0.5).stop_reasons["success"] < 1


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ((), r"history is \[\]|history is \(\)"),
        (("room", "inspect"), "observations and actions in turn"),
        (("clue_red",), "observations and actions in turn"),
        (("room", "fly", "clue_red"), r"history\[1\] is 'fly'"),
        (("room", "inspect", "key_held"), r"history\[2\] is 'key_held'; expected one of clue_red, clue_blue"),
        (("room", "finish", "failure"), "a history in which the task goes on"),
    ],
)
def test_what_is_no_history(history, message):
    with pytest.raises(ValueError, match=message):
        belief_model(get_rules()).follow(history)


def test_what_is_not_reached_has_no_value():
    found = evaluate_exactly(UNIFORM, horizon=4)
    with pytest.raises(ValueError, match="one that is reached once, not 0 times"):
        found.value(("room", "inspect"))
    several = [node for node in found.nodes if node.history == ("key_held",)]
    with pytest.raises(ValueError, match=f"not {len(several)} times"):
        found.value(("key_held",))
    with pytest.raises(ValueError, match="belief is 99"):
        belief_model(get_rules()).posterior(99)
    with pytest.raises(ValueError, match="world is 'standard'; expected Rules"):
        belief_model("standard")


def test_the_standard_library_is_enough():
    """The solver is to run in a reader's browser: neither numpy nor torch is loaded, in a fresh interpreter."""
    code = """
import sys
from keydoor.exact import evaluate_exactly
from keydoor.optima import best_stochastic_memoryless
evaluate_exactly(dict.fromkeys(("room",), {"finish": 1}))
best_stochastic_memoryless(horizon=4)
print(sorted({"numpy", "torch", "gymnasium"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_all_targets_have_equal_probability():
    """With n colours the optimum of one that never looks is 1/n of what it is with a clue: the prior is uniform."""
    for colours in (2, 3, 5):
        rules = get_rules(colours=colours)
        model = belief_model(rules)
        assert set(model.posterior(model.start).values()) == {F(1, colours)}
        inspect = model.branches[model.start][0]
        assert [branch.observation for branch in inspect] == [f"clue_{colour}" for colour in rules.colours]
    assert get_rules().colours == COLOURS
    assert len([*itertools.islice(histories(horizon=2, colours=5), 100)]) == 1 + 5 + 5
