"""The tables of the world: facts that follow from the rules, and the exact values that make the world worth studying.

The searches below know nothing but the tables. They are written for this file and share no code with the package's
own exact solver, so that the two can be compared.
"""

import copy
import dataclasses
import pickle
from fractions import Fraction
from itertools import product

import pytest

from keydoor.rules import (
    ACTIONS,
    COLOURS,
    OBSERVATIONS,
    PALETTE,
    RULE_SETS,
    STOP_REASONS,
    State,
    get_rules,
    potential,
)

F = Fraction
OTHER = {"red": "blue", "blue": "red"}


def act(rules, state, action):
    return rules.table[state][ACTIONS.index(action)]


def play(rules, target, actions):
    """Outcomes of a sequence of actions up to the end of the task; no limit on turns."""
    state, outcomes = rules.start[target], []
    for action in actions:
        outcomes.append(act(rules, state, action))
        state = outcomes[-1].state
        if outcomes[-1].stop_reason:
            break
    return outcomes


def potentials(rules, target, actions):
    return [0.0 if outcome.stop_reason else rules.potential[outcome.state] for outcome in play(rules, target, actions)]


# --- the tables -----------------------------------------------------------------------------------------------------


def test_names_and_their_order():
    """Indices of actions and observations are part of the contract: saved models and records depend on them."""
    assert ACTIONS == ("inspect", "pickup_red", "pickup_blue", "open_red", "open_blue", "finish")
    running = ("room", "clue_red", "clue_blue", "key_held", "door_open", "invalid")
    assert (*running, "success", "failure") == OBSERVATIONS
    assert STOP_REASONS == ("success", "wrong_finish", "failed_open", "task_horizon", "collector_limit")
    assert RULE_SETS == ("standard", "soft", "quiet")


@pytest.mark.parametrize("name", RULE_SETS)
def test_a_rule_set_is_built_once_and_cannot_be_changed(name):
    rules = get_rules(name)
    assert get_rules(name) is rules
    assert rules.name == name
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.name = "other"
    with pytest.raises(TypeError):
        rules.start["red"] = 1
    with pytest.raises(AttributeError):
        rules.table[0][0].base_reward = 5.0


@pytest.mark.parametrize("name", ["", "Standard", "hard", "soft "])
def test_unknown_rule_set(name):
    with pytest.raises(ValueError, match=r"rules is .*expected one of standard, soft, quiet"):
        get_rules(name)


@pytest.mark.parametrize("name", RULE_SETS)
def test_every_entry_is_well_formed(name):
    """Reward 1 and ``success`` are one event; ends have an end's observation; what goes on has another."""
    rules = get_rules(name)
    assert len(rules.states) == len(set(rules.states)) == len(rules.table) == len(rules.potential)
    for state, row in zip(rules.states, rules.table, strict=True):
        assert len(row) == len(ACTIONS)
        for action, outcome in zip(ACTIONS, row, strict=True):
            assert outcome.observation in OBSERVATIONS
            assert (
                (outcome.base_reward == 1.0) == (outcome.observation == "success") == (outcome.stop_reason == "success")
            )
            assert outcome.base_reward in (0.0, 1.0)
            assert (outcome.stop_reason is not None) == (outcome.observation in ("success", "failure"))
            assert rules.states[outcome.state].target == state.target  # nothing repaints the target
            if outcome.invalid or outcome.stop_reason:
                assert rules.states[outcome.state] == state  # what failed, or ended, has changed nothing
            if outcome.observation == "invalid":
                assert outcome.invalid
            assert (action == "finish") == (outcome.stop_reason in ("success", "wrong_finish"))


@pytest.mark.parametrize("name", RULE_SETS)
def test_colours_are_exchangeable(name):
    """Exchanging red and blue everywhere maps the table onto itself: neither colour is easier."""

    def swap(word):
        return word if word is None else word.replace("red", "*").replace("blue", "red").replace("*", "blue")

    rules = get_rules(name)
    index = {state: number for number, state in enumerate(rules.states)}
    mirror = [
        index[state._replace(target=swap(state.target), key=swap(state.key), opened=swap(state.opened))]
        for state in rules.states
    ]
    for number, row in enumerate(rules.table):
        assert rules.potential[number] == rules.potential[mirror[number]]
        for action, outcome in zip(ACTIONS, row, strict=True):
            twin = act(rules, mirror[number], swap(action))
            assert twin == outcome._replace(state=mirror[outcome.state], observation=swap(outcome.observation))


@pytest.mark.parametrize("name", RULE_SETS)
def test_only_three_things_tell_the_target(name):
    """In states equal but for the target, pickups look alike; only the clue, a door's answer and the end differ."""
    rules = get_rules(name)
    index = {state: number for number, state in enumerate(rules.states)}
    compared = 0
    for state, row in zip(rules.states, rules.table, strict=True):
        twin = index.get(state._replace(target=OTHER[state.target]))
        if twin is None:  # under `standard` an open door is the target door: no twin
            assert name == "standard"
            assert state.opened == state.target
            continue
        for action, outcome in zip(ACTIONS, row, strict=True):
            if action.startswith("pickup") or (action.startswith("open") and name != "standard"):
                assert outcome.observation == act(rules, twin, action).observation
                compared += 1
    assert compared > 0


@pytest.mark.parametrize("name", RULE_SETS)
def test_the_key_in_hand_is_never_named(name):
    """Case H1: one colour in one pickup observation, and a policy without memory wins always (see the twins below)."""
    rules = get_rules(name)
    for target in COLOURS:
        red, blue = (play(rules, target, ("inspect", f"pickup_{c}"))[-1] for c in COLOURS)
        assert red.observation == blue.observation == "key_held"
        assert rules.states[red.state].key == "red"
        assert rules.states[blue.state].key == "blue"


def test_pickup_before_the_clue_is_invalid_and_changes_nothing():
    """Visible in ``standard`` and ``soft``; in ``quiet`` the room looks as it did."""
    for name, seen in (("standard", "invalid"), ("soft", "invalid"), ("quiet", "room")):
        rules = get_rules(name)
        (outcome,) = play(rules, "red", ["pickup_red"])
        assert outcome == (rules.start["red"], seen, 0.0, True, None)


@pytest.mark.parametrize("forced", [(), ("inspect",), ("inspect", "pickup_blue")])
def test_forcing_a_lock(forced):
    """No key, or the wrong key: the end under ``standard``, harmless elsewhere; an invalid action in all three."""
    before = {(): "room", ("inspect",): "room", ("inspect", "pickup_blue"): "key_held"}[forced]
    for name, seen, reason in (
        ("standard", "failure", "failed_open"),
        ("soft", "invalid", None),
        ("quiet", before, None),
    ):
        outcome = play(get_rules(name), "red", (*forced, "open_red"))[-1]
        assert (outcome.observation, outcome.stop_reason, outcome.invalid) == (seen, reason, True)


def test_opening_the_wrong_door_with_its_key():
    """It ends ``standard``, and is no invalid action there, for the key did match. Elsewhere that door opens."""
    for name in RULE_SETS:
        rules = get_rules(name)
        outcome = play(rules, "red", ("inspect", "pickup_blue", "open_blue"))[-1]
        assert not outcome.invalid
        if name == "standard":
            assert (outcome.observation, outcome.stop_reason) == ("failure", "failed_open")
        else:
            assert (outcome.observation, outcome.stop_reason) == ("door_open", None)
            assert act(rules, outcome.state, "finish").stop_reason == "wrong_finish"


@pytest.mark.parametrize("name", ["soft", "quiet"])
def test_the_door_opened_last_counts(name):
    """Both doors in turn: what was opened last decides, in either order."""
    rules = get_rules(name)
    one_way = ("inspect", "pickup_blue", "open_blue", "pickup_red", "open_red", "finish")
    other_way = ("inspect", "pickup_red", "open_red", "pickup_blue", "open_blue", "finish")
    assert play(rules, "red", one_way)[-1].stop_reason == "success"
    assert play(rules, "red", other_way)[-1].stop_reason == "wrong_finish"
    assert potentials(rules, "red", other_way) == [0.25, 0.5, 0.75, 0.75, 0.25, 0.0]


def test_a_quiet_failure_repeats_the_kind_of_observation_before_it():
    """``room``, ``key_held`` or ``door_open``, whichever was seen last; a clue in between is not repeated."""
    actions = ("pickup_red", "inspect", "open_red", "pickup_red", "inspect", "open_blue", "open_red", "open_blue")
    seen = [outcome.observation for outcome in play(get_rules("quiet"), "red", actions)]
    assert seen == ["room", "clue_red", "room", "key_held", "clue_red", "key_held", "door_open", "door_open"]
    loud = [outcome.observation for outcome in play(get_rules("soft"), "red", actions)]
    assert [i for i in range(8) if seen[i] != loud[i]] == [0, 2, 5, 7]
    assert {loud[i] for i in (0, 2, 5, 7)} == {"invalid"}


@pytest.mark.parametrize("name", RULE_SETS)
def test_rule_sets_differ_in_failures_only(name):
    """What succeeds under ``standard`` has the same outcome in the variants."""
    standard, rules = get_rules("standard"), get_rules(name)
    index = {state: number for number, state in enumerate(rules.states)}
    for state, row in zip(standard.states, standard.table, strict=True):
        for action, outcome in zip(ACTIONS, row, strict=True):
            if not outcome.invalid and outcome.stop_reason != "failed_open":
                there = act(rules, index[state], action)
                assert there[1:] == outcome[1:]
                assert rules.states[there.state] == standard.states[outcome.state]


# --- the potential --------------------------------------------------------------------------------------------------


def test_potential_of_the_four_milestones():
    """0, ¼, ½, ¾ along the shortest way to success, and 0 at the end."""
    way = ("inspect", "pickup_red", "open_red", "finish")
    for name in RULE_SETS:
        rules = get_rules(name)
        assert rules.potential[rules.start["red"]] == 0.0
        assert potentials(rules, "red", way) == [0.25, 0.5, 0.75, 0.0]


@pytest.mark.parametrize("name", RULE_SETS)
def test_potential_is_a_function_of_the_state(name):
    """The table holds what :func:`potential` says; the four values occur; multiples of ¼ are exact as floats."""
    rules = get_rules(name)
    assert rules.potential == tuple(potential(state) for state in rules.states)
    assert {F(phi) for phi in rules.potential} == {F(0), F(1, 4), F(1, 2), F(3, 4)}
    for state, phi in zip(rules.states, rules.potential, strict=True):
        assert (phi == 0.0) == (not state.inspected)
        assert (phi == 0.75) == (state.opened == state.target)


def test_potential_reads_the_hidden_target():
    """The same history of observations, two potentials: the agent cannot compute Φ, and the wrong key earns nothing."""
    rules = get_rules("standard")
    right = play(rules, "red", ("inspect", "pickup_red"))
    assert rules.potential[right[-1].state] == 0.5
    wrong = play(rules, "red", ("inspect", "pickup_blue"))
    assert [o.observation for o in right] == [o.observation for o in wrong]
    assert rules.potential[wrong[-1].state] == 0.25
    # Swapping the keys goes down and up again; with the door open a swap costs nothing.
    assert potentials(rules, "red", ("inspect", "pickup_red", "pickup_blue", "pickup_red")) == [0.25, 0.5, 0.25, 0.5]
    assert potentials(rules, "red", ("inspect", "pickup_red", "open_red", "pickup_blue"))[-1] == 0.75
    assert potential(State("red", True, None, None, "room")) == 0.25


# --- exact values ---------------------------------------------------------------------------------------------------


def uniform_success(name, horizon):
    """Success of the uniform policy: push a distribution over states through the table, ``horizon`` times."""
    rules = get_rules(name)
    mass = {rules.start[colour]: F(1, 2) for colour in COLOURS}
    success = F(0)
    for _ in range(horizon):
        after = {}
        for state, p in mass.items():
            for outcome in rules.table[state]:
                success += p / len(ACTIONS) * F(outcome.base_reward)
                if outcome.stop_reason is None:
                    after[outcome.state] = after.get(outcome.state, F(0)) + p / len(ACTIONS)
        mass = after
    return success


@pytest.mark.parametrize(
    ("name", "horizon", "value"),
    [
        # Found by the authors of the rules with a search of their own; the table stands in the chapter on the world.
        ("standard", 6, F(5, 1458)),
        ("standard", 8, F(389, 69984)),
        ("soft", 6, F(293, 46656)),
        ("soft", 8, F(9223, 559872)),
        ("quiet", 6, F(293, 46656)),
        ("quiet", 8, F(9223, 559872)),
    ],
)
def test_uniform_policy(name, horizon, value):
    assert uniform_success(name, horizon) == value


def test_uniform_policy_by_counting_sequences():
    """At horizon 4 one sequence of 6⁴ succeeds for each target: the dynamic programme must say 1/1296."""
    for name in RULE_SETS:
        rules = get_rules(name)
        wins = [
            actions
            for actions in product(ACTIONS, repeat=4)
            if play(rules, "red", actions)[-1].stop_reason == "success"
        ]
        assert wins == [("inspect", "pickup_red", "open_red", "finish")]
        assert uniform_success(name, 4) == F(1, 6**4)
        assert uniform_success(name, 3) == 0


def run_memoryless(rules, policy, target, horizon, observe):
    """One episode of a map from observations to actions: ``True``, ``False``, or the observation it lacks."""
    state, seen = rules.start[target], rules.start_observation
    for _ in range(horizon):
        if seen not in policy:
            return seen
        outcome = act(rules, state, policy[seen])
        if outcome.stop_reason:
            return outcome.stop_reason == "success"
        state, seen = outcome.state, observe(rules, outcome)
    return False


def as_told(rules, outcome):
    return outcome.observation


def with_colour_of_key(rules, outcome):
    """The twin in which a pickup says which key is held."""
    return f"key_{rules.states[outcome.state].key}" if outcome.observation == "key_held" else outcome.observation


def best_memoryless(name, horizon, observe=as_told):
    """The best deterministic map from observations to actions, by depth-first search.

    An observation gets its action when an episode first meets it, so maps that differ where no episode comes are
    tried once. Nothing is cut by a bound: the search is exhaustive.
    """
    rules = get_rules(name)
    best, stack = F(0), [{}]
    while stack:
        policy = stack.pop()
        results = []
        for target in COLOURS:
            result = run_memoryless(rules, policy, target, horizon, observe)
            if isinstance(result, str):
                stack.extend({**policy, result: action} for action in ACTIONS)
                break
            results.append(result)
        else:
            best = max(best, F(sum(results), 2))
    return best


def test_lazy_search_against_all_maps():
    """All 6⁶ maps over the six observations of a running task, against the search that assigns lazily."""
    rules, running = get_rules("standard"), OBSERVATIONS[:6]
    best = max(
        sum(run_memoryless(rules, dict(zip(running, actions, strict=True)), c, 6, as_told) for c in COLOURS)
        for actions in product(ACTIONS, repeat=6)
    )
    assert F(best, 2) == best_memoryless("standard", 6) == F(1, 2)


@pytest.mark.parametrize("horizon", [4, 6, 8, 12])
@pytest.mark.parametrize("name", ["standard", "quiet"])
def test_without_memory_half_is_the_most(name, horizon):
    """Case H1, third point (ikostrikov/pytorch-a2c-ppo-acktr-gail#206 and others): success above ½ needs memory.

    ½ is what anyone gets who always plays for red. Only with this value may a chapter say that success proves memory.
    """
    assert best_memoryless(name, horizon) == F(1, 2)


@pytest.mark.parametrize(("horizon", "value"), [(3, F(0)), (4, F(1, 2)), (5, F(1)), (6, F(1)), (8, F(1))])
def test_soft_twin_a_visible_failure_is_a_memory(horizon, value):
    """Case H1, first twin: a failed ``open`` with an observation of its own, and no memory is needed from 5 turns on.

    The clue picks the key, one door is tried, and ``invalid`` sends the agent to the other: the world remembers.
    """
    assert best_memoryless("soft", horizon) == value


def test_soft_twin_has_a_witness():
    policy = {
        "room": "inspect",
        "clue_red": "pickup_red",
        "clue_blue": "pickup_blue",
        "key_held": "open_red",
        "invalid": "open_blue",
        "door_open": "finish",
    }
    wins = {
        name: [run_memoryless(get_rules(name), policy, colour, 5, as_told) for colour in COLOURS] for name in RULE_SETS
    }
    assert wins == {"soft": [True, True], "standard": [True, False], "quiet": [True, False]}


@pytest.mark.parametrize("name", RULE_SETS)
def test_twin_that_names_the_key_needs_no_memory(name):
    """Case H1, second twin: if the pickup observation named the colour, four turns without memory would do."""
    assert best_memoryless(name, 4, with_colour_of_key) == 1
    assert best_memoryless(name, 4) == F(1, 2)


@pytest.mark.parametrize("name", RULE_SETS)
def test_with_memory_the_optimum_is_one(name):
    """Witness: inspect, take the key of the clue, open its door, finish. Four turns, and no three turns succeed."""
    rules = get_rules(name)
    for target in COLOURS:
        clue = play(rules, target, ["inspect"])[0].observation.removeprefix("clue_")
        outcomes = play(rules, target, ("inspect", f"pickup_{clue}", f"open_{clue}", "finish"))
        assert [o.base_reward for o in outcomes] == [0.0, 0.0, 0.0, 1.0]
        assert not any(o.invalid for o in outcomes)
        assert not any(play(rules, target, a)[-1].base_reward for a in product(ACTIONS, repeat=3))


@pytest.mark.parametrize(
    "name", [["standard"], {}, {"standard"}, 10**5000, None, b"standard"], ids=lambda x: str(type(x))
)
def test_a_name_that_is_no_text_is_refused(name):
    """A cache asks for a hash before the check is reached."""
    with pytest.raises(ValueError, match=r"^rules is .*; expected one of standard, soft, quiet$"):
        get_rules(name)


def test_one_object_however_the_name_is_given():
    """A cache tells the three calls apart."""
    assert get_rules() is get_rules("standard") is get_rules(name="standard")
    assert len({get_rules(), get_rules("standard"), get_rules("soft")}) == 2


@pytest.mark.parametrize(
    "state", [None, 0, "red", ("red", True, "red", None, "room"), State("pink", True, None, None, "room")]
)
def test_the_potential_of_what_is_no_state(state):
    with pytest.raises(ValueError, match=r"^state is .*; expected a State whose target is one of red, blue, green"):
        potential(state)
    with pytest.raises(ValueError, match=r"^state is "):  # nothing opened is not the target opened
        potential(State(None, True, None, None, "room"))


# --- more colours, and a delay --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULE_SETS)
@pytest.mark.parametrize("count", [3, 5, 8])
def test_more_colours_are_the_same_world(name, count):
    """A renaming of the colours that are not the target maps the world onto itself, and two colours stand in n.

    Forgetting all actions and states that know a third colour leaves exactly the tables of two.
    """
    rules, two = get_rules(name, colours=count), get_rules(name)
    assert rules.colours == PALETTE[:count]
    assert len(rules.actions) == 2 * count + 2
    assert set(rules.observations) - set(two.observations) == {f"clue_{colour}" for colour in PALETTE[2:count]}
    known = {*COLOURS, None}
    for state, row in zip(rules.states, rules.table, strict=True):
        if {state.target, state.key, state.opened} <= known:
            twin = two.table[two.states.index(state)]
            for action, outcome in zip(rules.actions, row, strict=True):
                if action in ACTIONS:
                    expected = twin[ACTIONS.index(action)]
                    assert outcome._replace(state=0) == expected._replace(state=0)
                    assert rules.states[outcome.state] == two.states[expected.state]


@pytest.mark.parametrize("name", RULE_SETS)
@pytest.mark.parametrize("delay", [0, 1, 2, 4])
def test_a_pickup_needs_the_delay_since_the_last_clue(name, delay):
    """All sequences of six looks and pickups: valid if and only if ``delay`` turns lie between it and the last look.

    The foil counts from the first look: it would let the agent look again on the last turn of the wait, and a delay
    would ask nothing of its memory.
    """
    rules, foil_differs = get_rules(name, delay=delay), False
    for actions in product(("inspect", "pickup_red", "pickup_blue"), repeat=6):
        for turn, (action, outcome) in enumerate(zip(actions, play(rules, "red", actions), strict=True)):
            looks = [before for before in range(turn) if actions[before] == "inspect"]
            if action != "inspect":
                assert outcome.invalid == (not looks or turn - looks[-1] - 1 < delay)
                foil_differs |= outcome.invalid != (not looks or turn - looks[0] - 1 < delay)
    assert foil_differs == (delay > 0)


def test_the_wait_passes_whatever_is_done_and_adds_no_state_without_delay():
    """Two turns of wait, one of them a second look at a door; in the standard world nobody ever waits."""
    rules = get_rules("soft", delay=2)
    looked = play(rules, "blue", ["inspect", "open_red", "open_blue", "pickup_blue", "open_blue", "finish"])
    assert [outcome.invalid for outcome in looked] == [False, True, True, False, False, False]
    assert looked[-1].stop_reason == "success"
    assert all(state.wait == 0 for kind in RULE_SETS for state in get_rules(kind, colours=4).states)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"colours": 1}, "colours is 1; expected an integer not below 2"),
        ({"colours": 9}, "colours is 9; expected at most 8"),
        ({"colours": True}, "colours is True; expected an integer"),
        ({"colours": 2.0}, "colours is 2.0; expected an integer"),
        ({"delay": -1}, "delay is -1; expected an integer not below 0"),
        ({"delay": 10**400}, "delay is .*; expected at most 1000"),
        ({"delay": None}, "delay is None; expected an integer"),
    ],
)
def test_numbers_of_the_world_out_of_range(numbers, message):
    with pytest.raises(ValueError, match=message):
        get_rules(**numbers)


@pytest.mark.parametrize("numbers", [{"colours": 3}, {"delay": 2}, {"colours": 4, "delay": 1}])
def test_the_numbers_belong_to_the_identity_of_the_rules(numbers):
    rules = get_rules("quiet", **numbers)
    assert rules is get_rules("quiet", **numbers) is pickle.loads(pickle.dumps(rules)) is copy.deepcopy(rules)
    assert rules is not get_rules("quiet")
