"""Values of a rollout record: what they may be, and how a message shows one that is wrong.

No code of the object at hand is run. A value is compared by exact type with what JSON can hold (``dict``, ``list``,
``str``, ``int``, ``float``, ``bool``, ``None``), and only then read. ``isinstance`` would not do: it asks a foreign
object for its ``__class__``, and the answer may be an exception.
"""

from __future__ import annotations

import math
from typing import Any

MAX_VIOLATIONS = 20
"""At most so many messages; one more line counts the rest."""

LOGPROB_TOLERANCE = 1e-9
"""A log-probability may exceed 0 by this much: log-softmax in floating point does."""

_LISTED_TURNS, _LISTED_RANGES, _SHOWN_CHARACTERS = 10, 10, 60


class Violations:
    """Messages in order of appearance, the first ``MAX_VIOLATIONS`` kept and the rest counted."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._count = 0

    def add(self, message: str) -> None:
        """Keep the message, or only count it once the cap is reached."""
        self._count += 1
        if self._count <= MAX_VIOLATIONS:
            self._kept.append(message)

    def lines(self) -> list[str]:
        """What is told to the reader."""
        rest = self._count - len(self._kept)
        tail = [f"… and {rest} more violation{'s' if rest > 1 else ''}"] if rest else []
        return [*self._kept, *tail]


def show(value: object) -> str:
    """A short text for any value; only values of JSON's own types are read."""
    if value is None or type(value) is bool or type(value) is float:
        return repr(value)
    if type(value) is int:
        bits = value.bit_length()
        return repr(value) if bits <= 128 else f"an integer of {bits} bits"
    if type(value) is str:
        more = "…" if len(value) > _SHOWN_CHARACTERS else ""
        return repr(value[:_SHOWN_CHARACTERS]) + more
    if type(value) is list:
        return f"a list of {len(value)}"
    if type(value) is dict:
        return f"a dict of {len(value)}"
    # Not type(value).__name__: a metaclass may answer that with code of its own.
    name = str.__str__(type.__dict__["__name__"].__get__(type(value)))[:_SHOWN_CHARACTERS]
    return f"an object of type {name if name.isidentifier() else ascii(name)}"


def show_turns(turns: list[int]) -> str:
    """Turn numbers for a message: one by one while they are few, then as ranges, then as a count.

    >>> show_turns([2])
    'turn 2'
    >>> show_turns([0, 1, 3])
    'turns 0, 1, 3'
    >>> show_turns([*range(50), 70, 80, 81])
    'turns 0-49, 70, 80-81'
    """
    if len(turns) <= _LISTED_TURNS:
        return f"turn{'s' if len(turns) > 1 else ''} {', '.join(map(str, turns))}"
    ranges: list[list[int]] = []
    for turn in turns:
        if ranges and turn == ranges[-1][1] + 1:
            ranges[-1][1] = turn
        else:
            ranges.append([turn, turn])
    shown, hidden = ranges[:_LISTED_RANGES], ranges[_LISTED_RANGES:]
    text = "turns " + ", ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in shown)
    return text + (f" and {sum(b - a + 1 for a, b in hidden)} more" if hidden else "")


def is_text(value: object) -> bool:
    """A non-empty string that UTF-8 can hold (a lone surrogate, half of a character, cannot be written)."""
    if type(value) is not str or not value:
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_name(value: object) -> bool:
    """A text that is not only white space: an identifier or a version."""
    return type(value) is str and is_text(value) and bool(value.strip())


def is_flag(value: object) -> bool:
    """Exactly ``True`` or ``False``."""
    return type(value) is bool


def is_number(value: object) -> bool:
    """A finite number; ``True`` is not 1, and an integer too large for a float is not finite."""
    if type(value) is int:
        return value.bit_length() < 1024
    return type(value) is float and math.isfinite(value)


def is_logprob(value: Any) -> bool:
    """The logarithm of a positive probability: finite and not above 0."""
    return is_number(value) and value <= LOGPROB_TOLERANCE


def is_count(value: Any, least: int) -> bool:
    """An integer not below ``least`` that fits in 64 bits."""
    return type(value) is int and least <= value < 2**63
