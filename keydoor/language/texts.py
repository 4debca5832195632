"""The world in words: what the model is told, and what it may answer, in English and in Russian.

The *action strings* are code and the same in both languages. Everything around them is written twice, and each thing
in two wordings, ``plain`` for training and ``paraphrase`` for a test. Colours can be renamed, so that a model meets
ones that it has not been trained on; the table of its policy keeps its six columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keydoor._checks import one_of, refuse, whole
from keydoor.language.tables import Situation
from keydoor.rules import ACTIONS, COLOURS, OBSERVATIONS, PALETTE

LANGUAGES = ("en", "ru")
"""Languages in which the world is described."""

WORDINGS = ("plain", "paraphrase")
"""Two ways to say the same; the first one is trained on."""

FORMS = ("name", "json", "tool")
"""Forms of an action string: ``pickup_red``, ``{"name": "pickup_red"}`` and the call of a tool."""

_RUSSIAN = {
    "red": ("красная", "красный"),
    "blue": ("синяя", "синий"),
    "green": ("зелёная", "зелёный"),
    "yellow": ("жёлтая", "жёлтый"),
    "purple": ("фиолетовая", "фиолетовый"),
    "orange": ("оранжевая", "оранжевый"),
    "white": ("белая", "белый"),
    "black": ("чёрная", "чёрный"),
}
"""As a door is called, and as a key is."""

_BELIEFS = {
    ("en", "plain"): "Target: {clue}. Key: {key}. Open door: {opened}.",
    ("en", "paraphrase"): "The door that counts is {clue}; in your hand there is {key}; unlocked so far is {opened}.",
    ("ru", "plain"): "Цель: {clue}. Ключ: {key}. Открытая дверь: {opened}.",
    ("ru", "paraphrase"): "Нужная дверь: {clue}; в руке у вас: {key}; уже отперта дверь: {opened}.",
}
_UNKNOWN = {
    ("en", "plain"): ("unknown", "none", "none"),
    ("en", "paraphrase"): ("not known yet", "nothing", "nothing"),
    ("ru", "plain"): ("неизвестна", "нет", "нет"),
    ("ru", "paraphrase"): ("пока неизвестно какая", "ничего", "никакая"),
}
_TASKS = {
    "en": "You are in a room with two locked doors. Choose the next action.",
    "ru": "Вы в комнате с двумя запертыми дверями. Выберите следующее действие.",
}
_OBSERVATIONS = {
    ("en", "plain"): {
        "room": "You are in a room with a {first} door and a {second} door. Both are locked.",
        "clue": "The target door is {colour}.",
        "key_held": "You are holding a key.",
        "door_open": "The door is open.",
        "invalid": "That did not work; nothing has changed.",
        "success": "Success: the target door is open.",
        "failure": "Failure: the task is over.",
    },
    ("en", "paraphrase"): {
        "room": "Two doors are in front of you, one {first} and one {second}, and neither can be opened by hand.",
        "clue": "A note on the wall says: {colour} is the one that counts.",
        "key_held": "Something metallic lies in your palm, a key.",
        "door_open": "The lock turns and the way is free.",
        "invalid": "No effect. Everything is as it was.",
        "success": "Well done, this was the right door.",
        "failure": "It is over, and it went wrong.",
    },
    ("ru", "plain"): {
        "room": "Вы в комнате, в ней {first} дверь и {second} дверь. Обе заперты.",
        "clue": "Нужная дверь — {colour}.",
        "key_held": "У вас в руке ключ.",
        "door_open": "Дверь открыта.",
        "invalid": "Не вышло, ничего не изменилось.",
        "success": "Успех: нужная дверь открыта.",
        "failure": "Неудача: задача окончена.",
    },
    ("ru", "paraphrase"): {
        "room": "Перед вами две двери, {first} и {second}, руками не открыть ни одну.",
        "clue": "Записка на стене: {colour} — вот какая дверь нужна.",
        "key_held": "На ладони лежит что-то металлическое, ключ.",
        "door_open": "Замок щёлкнул, путь свободен.",
        "invalid": "Никакого действия: всё как было.",
        "success": "Получилось, дверь та самая.",
        "failure": "Всё кончено, и кончено плохо.",
    },
}
_TOOL_TASKS = {
    "en": (
        "Inspect the room, take the key of the target colour, open the door of that colour, and finish.",
        "Use the tools to open the target door, then finish.",
    ),
    "ru": (
        "Осмотрите комнату, возьмите ключ нужного цвета, откройте дверь этого цвета и завершите задачу.",
        "С помощью инструментов откройте нужную дверь и завершите задачу.",
    ),
}


def _checked(language: str, wording: str, names: Mapping[str, str] | None) -> dict[str, str]:
    """The two colours by their names; unknown words are refused."""
    one_of(language, "language", LANGUAGES)
    one_of(wording, "wording", WORDINGS)
    found = {colour: colour for colour in COLOURS}
    if names is None:
        return found
    if not isinstance(names, Mapping):
        refuse("names", names, f"a mapping from {' and '.join(COLOURS)} to colours, or None")
    for colour, name in names.items():
        found[one_of(colour, "a key of names", COLOURS)] = one_of(name, f"names[{colour!r}]", PALETTE)
    if len({*found.values()}) < len(found):
        refuse("names", dict(names), "two different colours")
    return found


def _demonstrated(names: dict[str, str]) -> str:
    """The colour in which the procedure is shown: the first one that the task does not have."""
    return next(colour for colour in PALETTE if colour not in COLOURS and colour not in names.values())


def _door(colour: str, language: str) -> str:
    return _RUSSIAN[colour][0] if language == "ru" else colour


def _key(colour: str, language: str) -> str:
    return _RUSSIAN[colour][1] if language == "ru" else colour


def _belief(clue: str | None, key: str | None, opened: str | None, language: str, wording: str) -> str:
    no_clue, no_key, no_door = _UNKNOWN[language, wording]
    return _BELIEFS[language, wording].format(
        clue=_door(clue, language) if clue else no_clue,
        key=_key(key, language) if key else no_key,
        opened=_door(opened, language) if opened else no_door,
    )


def situation_text(
    situation: Situation, *, language: str = "en", wording: str = "plain", names: Mapping[str, str] | None = None
) -> str:
    """What the agent knows, in words.

    Args:
        situation: one of :data:`keydoor.language.tables.SITUATIONS`.
        language: one of :data:`LANGUAGES`.
        wording: one of :data:`WORDINGS`.
        names: other names for the colours.

    Returns:
        One sentence or three.

    Raises:
        ValueError: an unknown language, wording or colour, or no situation.

    Example:
        >>> situation_text(Situation("red", "red", None))
        'Target: red. Key: red. Open door: none.'
        >>> situation_text(Situation("red", None, None), names={"red": "white", "blue": "black"})
        'Target: white. Key: none. Open door: none.'
    """
    called = _checked(language, wording, names)
    if not isinstance(situation, Situation):
        refuse("situation", situation, "one of SITUATIONS")
    clue, key, opened = (colour and called[one_of(colour, "a colour of situation", COLOURS)] for colour in situation)
    return _belief(clue, key, opened, language, wording)


def messages(
    situation: Situation, *, language: str = "en", wording: str = "plain", names: Mapping[str, str] | None = None
) -> list[dict[str, str]]:
    """The question to the model as a chat: the procedure, shown once in another colour, then what is known now.

    The demonstration gives the procedure away, and the clue stays in the prompt. What is learnt from it tests
    neither memory nor invention.

    Args:
        situation: one of :data:`keydoor.language.tables.SITUATIONS`.
        language: one of :data:`LANGUAGES`.
        wording: one of :data:`WORDINGS`.
        names: other names for the colours.

    Returns:
        Messages with ``role`` and ``content``, the last one of the user; the answer is the assistant's next.

    Raises:
        ValueError: as :func:`situation_text`.

    Example:
        >>> for message in messages(Situation("blue", None, None)):
        ...     print(message["role"][:4], message["content"])
        syst You are in a room with two locked doors. Choose the next action.
        user Target: unknown. Key: none. Open door: none.
        assi inspect
        user Target: green. Key: none. Open door: none.
        assi pickup_green
        user Target: green. Key: green. Open door: none.
        assi open_green
        user Target: green. Key: green. Open door: green.
        assi finish
        user Target: blue. Key: none. Open door: none.
    """
    called = _checked(language, wording, names)
    shown = _demonstrated(called)
    steps: tuple[tuple[str | None, str | None, str | None, str], ...] = (
        (None, None, None, "inspect"),
        (shown, None, None, f"pickup_{shown}"),
        (shown, shown, None, f"open_{shown}"),
        (shown, shown, shown, "finish"),
    )
    asked = situation_text(situation, language=language, wording=wording, names=names)
    return _chat(language, [(_belief(a, b, c, language, wording), action) for a, b, c, action in steps], asked)


def _chat(language: str, turns: Sequence[tuple[str, str]], asked: str) -> list[dict[str, str]]:
    chat = [{"role": "system", "content": _TASKS[language]}]
    for seen, action in turns:
        chat += [{"role": "user", "content": seen}, {"role": "assistant", "content": action}]
    return [*chat, {"role": "user", "content": asked}]


def history_messages(
    history: Sequence[str], *, language: str = "en", wording: str = "plain", names: Mapping[str, str] | None = None
) -> list[dict[str, str]]:
    """The question with everything that was seen and done instead of a summary of it: here the model must remember.

    Args:
        history: ``(o_0, a_0, o_1, ..., o_t)``, names of observations and actions in turn, of an odd number.
        language: one of :data:`LANGUAGES`.
        wording: one of :data:`WORDINGS`.
        names: other names for the colours.

    Returns:
        Messages as of :func:`messages`.

    Raises:
        ValueError: an unknown language, wording, colour, observation or action, or an even number of names.

    Example:
        >>> [message["content"] for message in history_messages(("room", "inspect", "clue_red"))][-3:]
        ['You are in a room with a red door and a blue door. Both are locked.', 'inspect', 'The target door is red.']
    """
    called = _checked(language, wording, names)
    if isinstance(history, str) or len(history) % 2 == 0:
        refuse("history", history, "observations and actions in turn, an odd number of names")
    shown = _demonstrated(called)

    def seen(observation: str) -> str:
        return observation_text(observation, language=language, wording=wording, names=names)

    turns = [
        (seen("room"), "inspect"),
        (_OBSERVATIONS[language, wording]["clue"].format(colour=_door(shown, language)), f"pickup_{shown}"),
        (seen("key_held"), f"open_{shown}"),
        (seen("door_open"), "finish"),
    ]
    for turn in range(0, len(history) - 1, 2):
        turns.append((seen(history[turn]), spelling(history[turn + 1], names=names)))
    return _chat(language, turns, seen(history[-1]))


def spelling(action: str, *, form: str = "name", names: Mapping[str, str] | None = None) -> str:
    """One string that means an action.

    Args:
        action: one of :data:`keydoor.rules.ACTIONS`.
        form: one of :data:`FORMS`.
        names: other names for the colours.

    Returns:
        The string. :func:`keydoor.turns.parse_action` reads it back (with ``colours=8`` where colours were renamed).

    Raises:
        ValueError: an unknown action, form or colour.

    Example:
        >>> spelling("pickup_red"), spelling("inspect", form="json")
        ('pickup_red', '{"name": "inspect"}')
        >>> spelling("open_blue", form="tool", names={"blue": "white"})
        '{"name": "open_door", "arguments": {"color": "white"}}'
    """
    one_of(action, "action", ACTIONS)
    one_of(form, "form", FORMS)
    called = _checked("en", "plain", names)
    verb, _, colour = action.partition("_")
    name = f"{verb}_{called[colour]}" if colour else verb
    if form == "name":
        return name
    if form == "json":
        return f'{{"name": "{name}"}}'
    if not colour:
        return f'{{"name": "{verb}", "arguments": {{}}}}'
    tool = "open_door" if verb == "open" else verb
    return f'{{"name": "{tool}", "arguments": {{"color": "{called[colour]}"}}}}'


def spellings(action: str, *, names: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """All strings that are scored for an action, one for each of :data:`FORMS`.

    Args:
        action: one of :data:`keydoor.rules.ACTIONS`.
        names: other names for the colours.

    Returns:
        Three strings.

    Raises:
        ValueError: an unknown action or colour.

    Example:
        >>> spellings("finish")
        ('finish', '{"name": "finish"}', '{"name": "finish", "arguments": {}}')
    """
    return tuple(spelling(action, form=form, names=names) for form in FORMS)


def observation_text(
    observation: str, *, language: str = "en", wording: str = "plain", names: Mapping[str, str] | None = None
) -> str:
    """What the agent sees, in words. Of a key it says that it is held, never which colour it has.

    Args:
        observation: one of :data:`keydoor.rules.OBSERVATIONS`.
        language: one of :data:`LANGUAGES`.
        wording: one of :data:`WORDINGS`.
        names: other names for the colours.

    Returns:
        A sentence.

    Raises:
        ValueError: an unknown observation, language, wording or colour.

    Example:
        >>> observation_text("clue_blue"), observation_text("key_held", language="ru")
        ('The target door is blue.', 'У вас в руке ключ.')
    """
    called = _checked(language, wording, names)
    kind, _, colour = one_of(observation, "observation", OBSERVATIONS).partition("_")
    sentences = _OBSERVATIONS[language, wording]
    if kind == "clue":
        return sentences["clue"].format(colour=_door(called[colour], language))
    first, second = (_door(called[colour], language) for colour in COLOURS)
    return sentences[observation].format(first=first, second=second)


def task_text(language: str = "en", variant: int = 0) -> str:
    """The user's message of a task in which tools are called.

    Args:
        language: one of :data:`LANGUAGES`.
        variant: 0 or 1, at least 0: two ways to ask.

    Returns:
        A sentence.

    Raises:
        ValueError: an unknown language or variant.

    Example:
        >>> task_text(variant=1)
        'Use the tools to open the target door, then finish.'
    """
    known = _TOOL_TASKS[one_of(language, "language", LANGUAGES)]
    if whole(variant, "variant", least=0) >= len(known):
        refuse("variant", variant, f"an index below {len(known)}")
    return known[variant]
