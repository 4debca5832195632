"""The world in words: nothing is missing, nothing says more than the agent may know, and strings can be read back."""

from __future__ import annotations

import itertools

import pytest

from keydoor import parse_action
from keydoor.language.tables import SITUATIONS, Situation
from keydoor.language.texts import (
    FORMS,
    LANGUAGES,
    WORDINGS,
    history_messages,
    messages,
    observation_text,
    situation_text,
    spelling,
    spellings,
    task_text,
)
from keydoor.rules import ACTIONS, OBSERVATIONS, PALETTE

BOTH = list(itertools.product(LANGUAGES, WORDINGS))
OTHER = {"red": "white", "blue": "black"}


@pytest.mark.parametrize(("language", "wording"), BOTH)
@pytest.mark.parametrize("names", [None, OTHER])
def test_fifteen_situations_are_fifteen_prompts(language: str, wording: str, names: dict[str, str] | None) -> None:
    said = {"language": language, "wording": wording, "names": names}
    chats = [messages(situation, **said) for situation in SITUATIONS]
    assert len({chat[-1]["content"] for chat in chats}) == 15
    assert {str(chat[:-1]) for chat in chats} == {str(chats[0][:-1])}, "they differ in their last message alone"
    assert [message["role"] for message in chats[0]] == ["system", *["user", "assistant"] * 4, "user"]


@pytest.mark.parametrize(("language", "wording"), BOTH)
def test_each_observation_has_its_own_text_and_that_of_a_key_names_no_colour(language: str, wording: str) -> None:
    said = [observation_text(name, language=language, wording=wording) for name in OBSERVATIONS]
    assert len({*said}) == len(OBSERVATIONS)
    roots = ("red", "blue", "красн", "син")
    for name in ("key_held", "door_open", "invalid", "success", "failure"):
        assert not any(root in observation_text(name, language=language, wording=wording) for root in roots), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_two_wordings_and_languages_differ(language: str) -> None:
    for situation in SITUATIONS:
        assert len({situation_text(situation, language=x, wording=y) for x, y in BOTH}) == len(BOTH)


def test_renamed_colours_leave_nothing_of_the_old_ones_and_are_shown_in_a_third() -> None:
    for situation in SITUATIONS:
        text = str(messages(situation, names=OTHER))
        assert "red" not in text
        assert "blue" not in text
        assert "green" in text
    shown = str(messages(SITUATIONS[0], names={"red": "green", "blue": "yellow"}))
    assert "pickup_purple" in shown


@pytest.mark.parametrize("action", ACTIONS)
def test_the_package_reads_every_spelling_back(action: str) -> None:
    assert len({*spellings(action)}) == len(FORMS)
    for string in spellings(action):
        assert parse_action(string) == action
    for string in spellings(action, names=OTHER):
        verb, _, colour = action.partition("_")
        assert parse_action(string, colours=8) == (f"{verb}_{OTHER[colour]}" if colour else verb)


def test_no_string_is_the_beginning_of_another() -> None:
    strings = [string for action in ACTIONS for string in spellings(action)]
    assert not any(a != b and b.startswith(a) for a, b in itertools.permutations(strings, 2))


def test_a_history_is_told_turn_by_turn() -> None:
    history = ("room", "inspect", "clue_blue", "pickup_red", "key_held")
    said = [message["content"] for message in history_messages(history)]
    assert said[-5:] == [
        "You are in a room with a red door and a blue door. Both are locked.",
        "inspect",
        "The target door is blue.",
        "pickup_red",
        "You are holding a key.",
    ]
    russian = [message["content"] for message in history_messages(history, language="ru")]
    assert russian[-4] == "inspect", "action strings are code"
    assert russian[-3] == "Нужная дверь — синяя."


@pytest.mark.parametrize("name", PALETTE)
def test_every_colour_has_its_russian_name(name: str) -> None:
    other = "red" if name != "red" else "blue"
    text = situation_text(Situation("red", "blue", None), language="ru", names={"red": name, "blue": other})
    assert name not in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: messages(SITUATIONS[0], language="de"), "language is 'de'; expected one of en, ru"),
        (lambda: messages(SITUATIONS[0], wording="loud"), "wording is 'loud'"),
        (lambda: messages(SITUATIONS[0], names={"red": "pink"}), r"names\['red'\] is 'pink'"),
        (lambda: messages(SITUATIONS[0], names={"green": "red"}), "a key of names is 'green'"),
        (lambda: messages(SITUATIONS[0], names={"red": "blue"}), "two different colours"),
        (lambda: messages(SITUATIONS[0], names="red"), "a mapping"),  # type: ignore[arg-type]
        (lambda: situation_text(("red", None, None)), "one of SITUATIONS"),  # type: ignore[arg-type]
        (lambda: situation_text(Situation("green", None, None)), "a colour of situation is 'green'"),
        (lambda: observation_text("clue_green"), "observation is 'clue_green'"),
        (lambda: spelling("fly"), "action is 'fly'"),
        (lambda: spelling("finish", form="xml"), "form is 'xml'"),
        (lambda: history_messages(("room", "inspect")), "an odd number"),
        (lambda: history_messages("room"), "an odd number"),
        (lambda: task_text("fr"), "language is 'fr'"),
        (lambda: task_text(variant=2), "variant is 2"),
    ],
)
def test_bad_input_is_refused(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()
