"""The public API: documented in full, and unchanged unless the changelog says so; faults planted in a small package.

The gate reads sources and imports nothing, so the package here needs no more than to look right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import keydoor
import keydoor.language
from book.gates import api
from book.gates.raising import may_raise
from book.layout import Book

ROOT = Path(__file__).resolve().parents[1]

INIT = '''"""A package."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keydoor.sums import total as total
'''

CHECKS = '''"""Private: nothing here needs a section."""

LIMIT = 9
"""The largest index."""


def refuse(name):
    raise ValueError(name)


def whole(value, name):
    return value if isinstance(value, int) else refuse(name)


def plain(value):
    try:
        return value
    except ValueError:
        raise
'''

SUMS = '''"""A public module."""

from dataclasses import dataclass
from typing import NamedTuple

from keydoor._checks import LIMIT, plain, whole

__all__ = ["LIMIT", "Count", "Empty", "Pair", "Worker", "total", "twice"]


def total(n: int, scale: float = 1.0) -> float:
    """The sum of 1 to n.

    .. math:: S = n (n + 1) / 2

    Args:
        n: how many, an integer not below 0.
        scale: a factor in (0, 1].

    Returns:
        The sum.

    Raises:
        ValueError: no integer.

    Source:
        Gauss (1796), at school.

    Example:
        >>> total(2)
        3.0
    """
    return scale * whole(n, "n") * (n + 1) / 2


def twice(text: str) -> str:
    """A text, two times.

    Args:
        text: any text.

    Returns:
        Its double.

    Example:
        >>> twice("a")
        'aa'
    """
    return plain(text) * 2


class Empty(ValueError):
    """There is nothing."""


class Pair(NamedTuple):
    """Two numbers.

    Example:
        >>> Pair(1, 2).left
        1
    """

    left: int
    """The first."""
    right: int
    """The second."""


@dataclass
class Count:
    """How many.

    Raises:
        ValueError: no integer.

    Example:
        >>> Count(1).number
        1
    """

    number: int
    """How many, at least 0."""

    def __post_init__(self) -> None:
        whole(self.number, "number")


class Worker:
    """Does it.

    Args:
        speed: turns per second, above 0.

    Example:
        >>> Worker(1).speed
        1
    """

    def __init__(self, speed: int) -> None:
        self.speed = speed
        self._inner = 0

    def go(self, turns: int) -> int:
        """Work.

        Args:
            turns: how long, at least 1.

        Returns:
            What was done.

        Raises:
            Empty: as :attr:`rest` does.
        """
        return turns * self.rest

    @property
    def rest(self) -> int:
        """What is left.

        Raises:
            Empty: nothing is left.
        """
        raise Empty

    def stop(self) -> None:
        """End it."""


def _helper(x):
    return x
'''

CHANGELOG = """# Changelog

## [1.1.0] - Unreleased

- The function `twice` is new.

## [1.0.0] - 2026-01-01

- The class `Worker`.
"""


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A package without a fault, its API page in both languages, and its record."""
    files = {
        "keydoor/__init__.py": INIT,
        "keydoor/_checks.py": CHECKS,
        "keydoor/sums.py": SUMS,
        "book/en/api.md": "# API\n\n.. automodule:: keydoor.sums\n",
        "book/ru/api.md": "# API\n\n.. automodule:: keydoor.sums\n",
        "CHANGELOG.md": CHANGELOG,
        "pyproject.toml": '[project]\nname = "keydoor"\nversion = "1.0.0"\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")
    made = Book(tmp_path, tmp_path / "_build")
    (tmp_path / api.RECORD).parent.mkdir(parents=True)
    assert api.record(made) == []
    return made


Plant = Callable[..., int]


@pytest.fixture
def plant(book: Book) -> Plant:
    """Replace text in a file of the package; returns the line on which the new text begins."""

    def put(old: str, new: str, file: str = "keydoor/sums.py") -> int:
        path = book.root / file
        before, found, after = path.read_text("utf8").partition(old)
        if not found:
            raise LookupError(f"{old!r} is not in {file}")
        path.write_text(before + new + after, "utf8")
        return before.count("\n") + 1

    return put


def texts(book: Book) -> list[str]:
    return [problem.text(book) for problem in sorted(api.check(book))]


def line_of(text: str) -> int:
    return SUMS[: SUMS.index(text)].count("\n") + 1


def test_a_package_without_a_fault_passes(book: Book) -> None:
    assert texts(book) == []


def test_the_real_package_passes() -> None:
    """Every docstring is complete, and the record is that of this commit."""
    assert texts(Book(ROOT, ROOT / "_build")) == []


def test_a_book_without_a_package_has_no_api(tmp_path: Path) -> None:
    assert api.check(Book(tmp_path, tmp_path / "_build")) == []


def test_the_record_lends_what_the_package_lends() -> None:
    """What is read from the sources against what an import finds."""
    names = json.loads((ROOT / api.RECORD).read_text("utf8"))["names"]
    lent = {path.removeprefix("keydoor.") for path, text in names.items() if text.startswith("alias of ")}
    assert lent == {*keydoor.__all__, *(f"language.{name}" for name in keydoor.language.__all__)}
    assert names["keydoor.records.read_rollout_records"].startswith("function read_rollout_records(path: ")


# --- docstrings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "name", "says"),
    [
        ('"""A public module."""\n', "# No docstring.\n", "sums", "this public name has no docstring; write one"),
        ('    """There is nothing."""', "    pass", "sums.Empty", "this public name has no docstring; write one"),
        ('    """The second."""\n', "", "sums.Pair.right", "no docstring (a string below it)"),
        ("self._inner", "self.inner", "sums.Worker.inner", "no docstring (a string below it)"),
        ('        """End it."""', "        pass", "sums.Worker.stop", "this public name has no docstring; write one"),
        ("def _helper(x)", "def helper(x)", "sums.helper", ""),  # not in __all__: not public
        (
            "    Args:\n        text: any text.\n\n",
            "",
            "sums.twice",
            "add a section 'Args:' with an entry for text",
        ),
        ("        scale: a factor in (0, 1].\n", "", "sums.total", "'Args:' has no entry for scale"),
        ("scale: a factor in (0, 1].", "size: a factor in (0, 1].", "sums.total", "has no entry for scale"),
        (
            "scale: a factor in (0, 1].",
            "size: a factor in (0, 1].",
            "sums.total",
            "tells of size, which is no argument",
        ),
        ("scale: a factor in (0, 1].", "scale: a factor.", "sums.total", "the entry for scale does not say the range"),
        ("speed: turns per second, above 0.", "speed: how fast.", "sums.Worker", "the entry for speed does not say"),
        ("turns: how long, at least 1.", "turns: how long.", "sums.Worker.go", "the entry for turns does not say"),
        ("How many, at least 0.", "How many.", "sums.Count.number", "the docstring does not say the range"),
        ("    Returns:\n        Its double.\n\n", "", "sums.twice", "it returns something; add a section 'Returns:'"),
        ("\n\n        Returns:\n            What was done.", "", "sums.Worker.go", "add a section 'Returns:'"),
        ("    Raises:\n        ValueError: no integer.\n\n    Source", "    Source", "sums.total", "it may raise"),
        ("    Raises:\n        ValueError: no integer.\n\n    Ex", "    Ex", "sums.Count", "it may raise"),
        ("\n\n        Raises:\n            Empty: as :attr:`rest` does.", "", "sums.Worker.go", "it may raise"),
        ("\n\n        Raises:\n            Empty: nothing is left.", "", "sums.Worker.rest", "it may raise"),
        ("    Source:\n        Gauss (1796), at school.\n\n", "", "sums.total", "a formula and no section 'Source:'"),
        ("Gauss (1796), at school.", "Well known.", "sums.total", "'Source:' has no year in brackets"),
        ("Gauss (1796), at school.", "Elementary: pairs.", "sums.total", ""),
        ("Gauss (1796), at school.", "Defined here.", "sums.total", ""),
        (">>> total(2)", "total(2)", "sums.total", "add a section 'Example:' with a doctest"),
        (">>> Worker(1).speed", "Worker(1).speed", "sums.Worker", "add a section 'Example:' with a doctest"),
    ],
)
def test_docstrings(book: Book, plant: Plant, old: str, new: str, name: str, says: str) -> None:
    """Each part of a docstring, left out; the message names the file and a line of the name's definition."""
    plant(old, new)
    recorded = api.record(book) == []  # what is wrong is not the signature, but for a new attribute
    assert recorded or name == "sums.Worker.inner"
    found = [text for text in texts(book) if " is new." not in text]
    if not says:
        assert found == []
        return
    assert all(re.match(rf"keydoor/sums\.py:\d+: keydoor\.{re.escape(name)}: ", text) for text in found), found
    assert any(says in text for text in found), found
    source = (book.root / "keydoor/sums.py").read_text("utf8").splitlines()
    at = int(found[0].split(":")[1])
    if name != "sums":
        assert name.split(".")[-1] in source[at - 1] or source[at - 1].strip().startswith("@")


def test_which_functions_may_raise(book: Book) -> None:
    """By ``raise``, by a function that does, by a property, by the checks of a constructor; not by passing on."""
    assert may_raise(book.root / "keydoor") == {
        "keydoor._checks.refuse",
        "keydoor._checks.whole",
        "keydoor.sums.total",
        "keydoor.sums.Count",
        "keydoor.sums.Count.__post_init__",
        "keydoor.sums.Worker.go",
        "keydoor.sums.Worker.rest",
    }


def test_a_module_that_no_page_shows(book: Book, plant: Plant) -> None:
    plant(".. automodule:: keydoor.sums", "Nothing yet: .. automodule:: keydoor.other", "book/ru/api.md")
    (message,) = texts(book)
    assert message.startswith("keydoor/sums.py:1: the module is on no page; add '.. automodule:: keydoor.sums'")
    assert message.endswith("to book/ru/api.md")


# --- the record -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "scale: float = 1.0)",
            "scale: float = 2.0)",
            "keydoor.sums.total has changed: it was 'function total(n: int, scale: float = 1.0) -> float', it is"
            " 'function total(n: int, scale: float = 2.0) -> float'. Say so in CHANGELOG.md",
        ),
        ("n: int, scale: float", "n: int, *, scale: float", "keydoor.sums.total has changed"),
        ("speed: int", "speed: float", "keydoor.sums.Worker has changed"),
        ("    right: int", "    right: float", "keydoor.sums.Pair.right has changed"),
        ('"total", "twice"]', '"total"]', "keydoor.sums.twice is gone (it was: function twice("),
        (', "Worker"', "", "keydoor.sums.Worker.go is gone"),
        ("    def stop(self)", "    def halt(self)", "keydoor.sums.Worker.halt is new. Say so in CHANGELOG.md"),
        ("LIMIT = 9", "LIMIT: int = 9", "keydoor.sums.LIMIT has changed"),
        ("total as total", "twice as twice", "keydoor.total is gone"),
    ],
)
def test_a_change_needs_a_line_in_the_changelog(book: Book, plant: Plant, old: str, new: str, says: str) -> None:
    """Of a default, of keyword-only, of a field; a name that comes or goes; one that the package lends."""
    plant("- The function `twice` is new.", "- Nothing.", "CHANGELOG.md")
    file = next(
        name for name in ("sums", "_checks", "__init__") if old in (book.root / f"keydoor/{name}.py").read_text()
    )
    plant(old, new, f"keydoor/{file}.py")
    found = [text for text in texts(book) if says in text]
    assert len(found) == 1, texts(book)
    assert re.match(r"keydoor/\w+\.py:\d+: ", found[0])
    before = (book.root / api.RECORD).read_bytes()
    assert any(says in problem.message for problem in api.record(book))
    assert (book.root / api.RECORD).read_bytes() == before  # and it is not recorded in silence


def test_the_message_names_the_line_of_the_definition(book: Book, plant: Plant) -> None:
    line = plant("def total(n: int", "def total(m: int")
    message = next(text for text in texts(book) if "total has changed" in text)
    assert message.startswith(f"keydoor/sums.py:{line}: ")
    assert "in a line with `total` in backticks; then run: python -m tools.record_api" in message


@pytest.mark.parametrize("line", ["`total` takes", "`keydoor.sums.total`", "`total(n, scale)`"])
def test_with_the_line_it_can_be_recorded(book: Book, plant: Plant, line: str) -> None:
    """Named in the changelog, it waits only for the record; recorded, there is no fault left."""
    plant("scale: float = 1.0)", "scale: float = 2.0)")
    plant("- The function", f"- {line}.\n- The function", "CHANGELOG.md")
    (message,) = texts(book)
    assert message.endswith("CHANGELOG.md tells of it; now run: python -m tools.record_api")
    assert api.record(book) == []
    assert texts(book) == []


@pytest.mark.parametrize("line", ["total takes", "`totals`", "`subtotal`", "`Other.total_of`"])
def test_another_name_in_the_changelog_does_not_count(book: Book, plant: Plant, line: str) -> None:
    plant("scale: float = 1.0)", "scale: float = 2.0)")
    plant("- The function", f"- {line}.\n- The function", "CHANGELOG.md")
    assert len(api.record(book)) == 1


def test_a_line_about_the_last_release_does_not_count(book: Book, plant: Plant) -> None:
    """``Worker`` is named under 1.0.0, which was recorded and released: that line is about another change."""
    plant("speed: int", "speed: float")
    assert [problem.message[:32] for problem in api.record(book)] == ["keydoor.sums.Worker has changed:"]
    plant("1.0.0] - 2026-01-01", "1.0.0] - Unreleased", "CHANGELOG.md")
    assert api.record(book) == []


def test_a_method_is_named_with_its_class(book: Book, plant: Plant) -> None:
    plant("turns: int", "turns: int = 1")
    plant("- The function", "- `go` has a default.\n- The function", "CHANGELOG.md")
    assert len(api.record(book)) == 1
    plant("`go` has", "`Worker.go` has", "CHANGELOG.md")
    assert api.record(book) == []


def test_without_a_record(book: Book) -> None:
    (book.root / api.RECORD).unlink()
    (message,) = texts(book)
    assert message.startswith("tests/data/public_api.json:1: the record of the public API is missing; run: ")
