"""Checks of arguments, shared by the whole package: each returns the value it was given, or says what is wrong.

A message always holds the name of the argument, the position where there is one, the value itself, and what was
expected: ``rewards[2] is nan; expected a finite number``. Exact types pass through unchanged, so that
:class:`fractions.Fraction` in gives :class:`fractions.Fraction` out; scalars of numpy and torch are unwrapped by
their own ``item()``, so that neither library has to be imported here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, NoReturn

Number = int | float | Fraction
"""What the arithmetic of this package accepts and returns."""


def refuse(name: str, value: Any, expected: str) -> NoReturn:
    """Raise the :class:`ValueError` of a value that has no meaning.

    >>> refuse("gamma", 1.5, "a number in [0, 1]")
    Traceback (most recent call last):
    ...
    ValueError: gamma is 1.5; expected a number in [0, 1]
    """
    try:
        text = repr(value).replace("\n", " ")  # an array takes several lines
    except Exception:  # an integer of thousands of digits, for one: Python makes no text of it
        text = f"<{type(value).__name__} that has no text>"
    if len(text) > 80:
        text = text[:77] + "..."
    raise ValueError(f"{name} is {text}; expected {expected}")


def unwrap(value: Any) -> Any:
    """A zero-dimensional numpy or torch scalar as a plain Python number; anything else as it is.

    An array of one element is not a scalar: a column of shape (n, 1) would otherwise pass for n numbers. Nor is a
    masked entry, whose ``item()`` is 0. A date or a duration of numpy becomes its text: numpy calls it an integer.
    """
    if type(value) in (float, int, bool, Fraction, str) or not hasattr(value, "item"):
        return value
    if getattr(value, "ndim", None) != 0 or hasattr(value, "mask"):
        return value
    if getattr(getattr(value, "dtype", None), "kind", None) in ("m", "M"):
        return str(value)
    try:
        return value.item()
    except (RuntimeError, TypeError, ValueError):  # a tensor without data, for one: the caller's check refuses it
        return value


def real(value: Any, name: str, expected: str = "a number") -> Number:
    """A real number that is not NaN; infinities pass. Booleans are not numbers here."""
    value = unwrap(value)
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        refuse(name, value, expected)
    # Other real types (numpy's long double, whose item() is itself) become floats, so that the checks that
    # follow, and the arithmetic, meet no type that they do not know.
    number: Number = value if isinstance(value, (int, float, Fraction)) else float(value)
    return number


def finite(value: Any, name: str, expected: str = "a finite number") -> Number:
    """A finite real number, also an exact one, no larger than a float can hold (about 1.8e308)."""
    if type(value) is float and -sys.float_info.max <= value <= sys.float_info.max:
        return value  # the common case, which a training run meets at every turn
    number = real(value, name, expected)
    if not -sys.float_info.max <= number <= sys.float_info.max:
        refuse(name, number, expected)
    return number


def unit_interval(value: Any, name: str) -> Number:
    """A number in [0, 1], such as a probability or a discount factor; ends included."""
    number = real(value, name, "a number in [0, 1]")
    if not 0 <= number <= 1:
        refuse(name, number, "a number in [0, 1]")
    return number


def whole(value: Any, name: str, *, least: int, bits: int | None = None) -> int:
    """An integer not below ``least``, and below ``2**bits``. ``True`` is not 1, and 2.0 is not 2."""
    value = unwrap(value)
    expected = f"an integer not below {least}" + (f" and below 2**{bits}" if bits else "")
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        refuse(name, value, expected)
    if bits and value >= 2**bits:
        refuse(name, value, expected)
    return int(value)


def one_of(value: Any, name: str, known: Sequence[str]) -> str:
    """One of a few known words, spelt exactly."""
    if not isinstance(value, str) or value not in known:
        refuse(name, value, f"one of {', '.join(known)}")
    return str(value)


def values_along(values: Any, rewards: Sequence[Any], ended: bool, unit: str = "turn") -> list[Any]:
    """The values of an episode, one more than its rewards; the last one is read only where the episode was cut."""
    found = sequence(values, "values")
    if not rewards:
        refuse("rewards", [], f"at least one reward: an episode has at least one {unit}")
    if len(found) != len(rewards) + 1:
        expected = f"{len(rewards) + 1}: one value per reward, and the one after the last"
        raise ValueError(f"values has length {len(found)}; expected {expected}")
    return [finite(value, f"values[{t}]") for t, value in enumerate(found[: len(rewards)] if ended else found)]


def flag(value: Any, name: str) -> bool:
    """``True`` or ``False`` (numpy's too). 0 and 1 are refused: they may be a count in the wrong column."""
    value = unwrap(value)
    if not isinstance(value, bool):
        refuse(name, value, "True or False")
    return value


def binary(value: Any, name: str) -> bool:
    """An entry of a 0/1 mask: ``True``, ``False``, 1, 0, 1.0 or 0.0 (trainers keep masks in all three types)."""
    value = unwrap(value)
    if not isinstance(value, (bool, int, float)) or value not in (0, 1):
        refuse(name, value, "0 or 1")
    return bool(value)


def sequence(values: Any, name: str) -> list[Any]:
    """The elements of a list, tuple, array or column, in order. Strings, mappings and sets are refused."""
    if isinstance(values, (str, bytes, bytearray, Mapping, Set)) or not isinstance(values, Iterable):
        refuse(name, values, "a sequence")
    # A zero-dimensional array has nothing to iterate over; a table of pandas iterates over the names of its columns.
    if getattr(values, "ndim", 1) != 1:
        refuse(name, values, "a sequence, of one dimension")
    return list(values)


def finite_sequence(values: Any, name: str) -> list[Number]:
    """A sequence of finite numbers; the message of a bad one names its index."""
    return [finite(value, f"{name}[{index}]") for index, value in enumerate(sequence(values, name))]


def same_length(**columns: Sequence[Any]) -> None:
    """Refuse sequences of unequal length, and name each with its length."""
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} has {len(column)}" for name, column in columns.items())
        raise ValueError(f"sequences of unequal length: {lengths}")


IN_RANGE = "a result within the range of a float"


@contextmanager
def float_range(name: str) -> Iterator[None]:
    """Arithmetic whose result ``name`` may leave the range of a float.

    Floats then become infinite, which :func:`finite` finds in the result. An integer that has grown too large raises
    where it meets a float.
    """
    try:
        yield
    except OverflowError:
        raise ValueError(f"{name} is too large; expected {IN_RANGE}") from None


def exact_sum(terms: Sequence[Number]) -> Number:
    """Sum of numbers below plus infinity: exact without floats, correctly rounded with them."""
    if not any(isinstance(term, float) for term in terms):
        return sum(terms)
    try:
        return math.fsum(terms)
    except OverflowError:  # sentinels such as the lowest float: add them without rounding
        if -math.inf in terms:
            return -math.inf
        exact = sum((Fraction(term) for term in terms), Fraction(0))
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf
