"""The text environment: the rules of the world behind four tools, and no way to be paid twice."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import pytest

from keydoor.language.environment import TextKeyDoorEnv, call_of, play
from keydoor.language.texts import observation_text
from keydoor.rules import ACTIONS, COLOURS, RULE_SETS, get_rules

EXPERT = ("inspect", "pickup_red", "open_red", "finish")


def fresh(**row: Any) -> TextKeyDoorEnv:
    env = TextKeyDoorEnv()
    env.reset(**{"target": "red", **row})
    return env


def act(env: TextKeyDoorEnv, action: str) -> str:
    tool, arguments = call_of(action)
    return getattr(env, tool)(**arguments)


class SeedKeyDoorEnv:
    """The foil, written anew after the seed lab's class: no end, a reward that the last call decides."""

    def reset(self, target: str, **row: Any) -> str:
        self.target, self.inspected, self.carrying, self.opened, self.reward = target, False, None, None, 0.0
        return "Inspect before choosing a key."

    def inspect(self) -> str:
        self.inspected = True
        return f"The target door is {self.target}."

    def pickup(self, color: str) -> str:
        if not self.inspected or color not in COLOURS:
            return "The pickup failed."
        self.carrying = color
        return f"You are carrying the {color} key."

    def open_door(self, color: str) -> str:
        if self.carrying != color:
            return "The door did not open."
        self.opened = color
        return f"The {color} door is open."

    def finish(self) -> str:
        self.reward = float(self.opened == self.target)
        return "success" if self.reward else "failure"

    def get_reward(self) -> float:
        return self.reward


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("target", COLOURS)
def test_every_short_play_follows_the_tables(rules: str, target: str) -> None:
    """All lists of four actions: text, reward and end are those of the tables of `keydoor.rules`."""
    world = get_rules(rules)
    for actions in itertools.product(ACTIONS, repeat=4):
        env, state = fresh(target=target, rules=rules, horizon=9), world.start[target]
        for action in actions:
            outcome = world.table[state][ACTIONS.index(action)]
            assert act(env, action) == observation_text(outcome.observation)
            state = outcome.state
            if outcome.stop_reason is not None:
                break
        assert env.get_reward() == float(outcome.stop_reason == "success")
        if outcome.stop_reason is not None:
            with pytest.raises(RuntimeError, match=outcome.stop_reason):
                act(env, "inspect")


@pytest.mark.parametrize(
    ("actions", "reward", "why"),
    [
        (EXPERT, 1.0, "success"),
        (("inspect", "finish"), 0.0, "wrong_finish"),
        (("inspect", "open_red"), 0.0, "failed_open"),
        (("inspect", "pickup_blue", "open_blue"), 0.0, "failed_open"),
        (("inspect",) * 8, 0.0, "task_horizon"),
        ((*("inspect",) * 4, *EXPERT), 1.0, "success"),
    ],
)
def test_nothing_after_the_end_changes_the_reward(actions: tuple[str, ...], reward: float, why: str) -> None:
    env = fresh()
    play(env, actions)
    assert env.get_reward() == reward
    for action in (*ACTIONS, *EXPERT):
        with pytest.raises(RuntimeError, match=why):
            act(env, action)
    assert env.get_reward() == reward


def test_the_play_that_ignores_the_clue_is_paid_by_the_seed_and_not_here() -> None:
    """The broken twin: try one door, finish, try the other, finish. The seed's class pays 1 for either target."""
    both = ["inspect", "pickup_red", "open_red", "finish", "pickup_blue", "open_blue", "finish"]
    for target in COLOURS:
        seed, ours = SeedKeyDoorEnv(), TextKeyDoorEnv()
        for env in (seed, ours):
            env.reset(target=target)
            play(env, both)
        assert seed.get_reward() == float(target == "blue"), "the last finish decides"
        assert ours.get_reward() == float(target == "red"), "the first end decides"
    stop_when_paid = {"red": 4, "blue": 7}
    paid = []
    for target, calls in stop_when_paid.items():
        env = SeedKeyDoorEnv()
        env.reset(target=target)
        answers = play(env, both[:calls])
        paid.append(answers[-1])
    assert paid == ["success", "success"], "a policy that reads 'failure' and goes on wins always"


def test_an_invalid_pickup_changes_nothing_but_the_turn() -> None:
    env = fresh(horizon=5)
    before = dict(vars(env))
    assert env.pickup("red") == observation_text("invalid")
    after = dict(vars(env))
    assert after.pop("_turns") == before.pop("_turns") + 1
    assert after == before
    play(env, EXPERT)
    assert env.get_reward() == 1.0, "the fifth turn was the last one, and was enough"


@pytest.mark.parametrize("colour", ["green", "Red", "", None, 1])
def test_an_unknown_colour_is_no_action(colour: Any) -> None:
    env = fresh()
    env.inspect()
    before = dict(vars(env))
    for tool in (env.pickup, env.open_door):
        with pytest.raises(ValueError, match="expected one of red, blue"):
            tool(colour)
    assert vars(env) == before


def test_instances_are_independent_and_reset_leaves_nothing() -> None:
    """Whole dictionaries are compared, so that a field that is added later is seen too."""
    one, other = fresh(), fresh(target="blue")
    untouched = dict(vars(other))
    play(one, EXPERT)
    assert vars(other) == untouched
    one.reset(target="blue", rules="soft", horizon=5, language="ru", wording="paraphrase")
    anew = TextKeyDoorEnv()
    anew.reset(target="blue", rules="soft", horizon=5, language="ru", wording="paraphrase")
    assert vars(one) == vars(anew)
    assert TextKeyDoorEnv.__dict__.keys().isdisjoint({"state", "reward", "target"}), "nothing is kept on the class"


def test_reset_takes_a_row_and_begins_with_a_line_break() -> None:
    env = TextKeyDoorEnv()
    text = env.reset(prompt=[{"role": "user", "content": "…"}], target="red", extra=1, environment="x")
    assert text[0] == "\n"
    assert "red" in text
    assert "blue" in text
    assert env.reset(target="red", language="ru")[1:].startswith("Вы")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({}, "target is None; expected one of red, blue"),
        ({"target": "green"}, "target is 'green'"),
        ({"target": "red", "rules": "hard"}, "rules is 'hard'"),
        ({"target": "red", "language": "de"}, "language is 'de'"),
        ({"target": "red", "wording": "loud"}, "wording is 'loud'"),
        ({"target": "red", "horizon": 0}, "horizon is 0"),
    ],
)
def test_a_bad_row_is_refused_and_the_episode_before_stays_over(row: dict[str, Any], message: str) -> None:
    env = fresh()
    play(env, EXPERT)
    with pytest.raises(ValueError, match=message):
        env.reset(**row)
    assert env.get_reward() == 1.0


def test_before_the_first_reset_there_is_nothing_to_call() -> None:
    env = TextKeyDoorEnv()
    assert env.get_reward() == 0.0
    with pytest.raises(RuntimeError, match="call reset first"):
        env.inspect()


def test_exactly_four_tools_each_described_in_full() -> None:
    """What a trainer counts as a tool: every public function of the class but `reset` and `get_reward`."""
    tools = {
        name: method
        for name, method in inspect.getmembers(TextKeyDoorEnv, predicate=inspect.isfunction)
        if not name.startswith("_") and name not in ("reset", "get_reward")
    }
    assert sorted(tools) == ["finish", "inspect", "open_door", "pickup"]
    for name, method in tools.items():
        signature = inspect.signature(method)
        assert signature.return_annotation in (str, "str")
        for argument in list(signature.parameters.values())[1:]:
            assert argument.annotation in (str, "str"), name
            assert f"{argument.name}: " in (method.__doc__ or ""), name
    assert inspect.signature(TextKeyDoorEnv).parameters == {}


def test_play_hands_errors_on_as_a_trainer_does() -> None:
    env = fresh()
    answers = play(env, ["finish", "inspect", ("pickup", {"colour": "red"})])
    assert answers[0] == observation_text("failure")
    assert all(answer.startswith("{'error': ") for answer in answers[1:])
    with pytest.raises(ValueError, match="a public method"):
        play(env, [("_act", {"action": "finish"})])
    with pytest.raises(ValueError, match="a public method"):
        play(env, [("fly", {})])
    with pytest.raises(ValueError, match="action is 'fly'"):
        play(env, ["fly"])
