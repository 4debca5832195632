"""The public API: every public name is documented in full, and none changes without a line in the changelog.

Nothing is imported: the sources are read by griffe, and by :mod:`ast` for what a function may raise. Public are the
names of the public modules of ``keydoor`` that have no underscore in front and were not imported from elsewhere, the
names in an ``__all__``, and what ``keydoor/__init__.py`` lends from its modules.

What a docstring must have:

* ``Args:`` if there are arguments, with an entry for each. For a number or numbers the entry says range or shape.
* ``Returns:`` if something is returned. A property says it in its first line.
* ``Raises:`` if the body raises, or calls something of this package that may.
* ``Source:`` under a displayed formula: author and year, or an RFC. A formula that follows in a line from definitions
  has ``Source: Elementary``, and one that this book has made up ``Source: Defined here``. So a missing source can be
  told from one that was forgotten.
* A doctest, for functions and classes. Methods are shown by the example of their class; an exception needs none.
"""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

from book.gates.raising import may_raise
from book.layout import LANGUAGES, Book, Problem

PACKAGE = "keydoor"
RECORD = Path("tests", "data", "public_api.json")
HOW_TO_RECORD = "python -m tools.record_api"

NUMBERS = re.compile(r"\b(int|float|Number|Fraction|Tensor|ndarray)\b")
"""Annotations of arguments that have a range or a shape."""

RANGE = re.compile(
    r"[\[(][^\])]*,[^\])]*[\])]"  # an interval, a shape
    r"|:math:|[<>≤≥]"
    r"|\b(at least|at most|not (below|above)|above|below|between|positive|finite|integers?|whole)\b"
    r"|\b(as in|as for|same shape)\b"
)
"""Words that say a range or a shape, or where it is said."""

SOURCE = re.compile(r"\((1[6-9]|20)\d\d[a-z]?\)|\bRFC \d+|^(Elementary|Defined here)\b")
"""What a source must hold: a year in brackets, an RFC, or one of the two words for a formula without a source."""


def check(book: Book) -> list[Problem]:
    """Docstrings and signatures of the package; a book without one has no fault."""
    if not (book.root / PACKAGE / "__init__.py").is_file():
        return []
    names = public_names(book)
    raising = may_raise(book.root / PACKAGE)
    problems = [*unshown_modules(book, names)]
    for path, found in names.items():
        if not _lent(found):
            problems += docstring_faults(path, found.final_target if found.is_alias else found, raising)
    return [*problems, *changes(book, names)]


# --- which names are public -----------------------------------------------------------------------------------------


def public_names(book: Book) -> dict[str, Any]:
    """All public names with their dots → what griffe knows of them, modules and members of classes included."""
    logging.getLogger("griffe").setLevel(logging.CRITICAL)
    package = griffe.load(
        PACKAGE, search_paths=[book.root], docstring_parser="google", try_relative_path=False, allow_inspection=False
    )
    found: dict[str, Any] = {}
    for module in _modules(package):
        found[module.path] = module
        found |= {f"{module.path}.{member.name}": member for member in _members(module)}
    for path, item in list(found.items()):
        if item.is_class and not item.is_alias:
            found |= {f"{path}.{member.name}": member for member in _members(item)}
    return found


def _modules(parent: Any) -> Iterator[Any]:
    """A module and the public ones in it, at any depth."""
    yield parent
    for member in parent.members.values():
        if not member.is_alias and member.is_module and not member.name.startswith("_"):
            yield from _modules(member)


def _lent(item: Any) -> bool:
    """Whether a package lends this name from one of its own modules; it is then documented at home."""
    return bool(item.is_alias and item.target_path.startswith(f"{item.parent.path}."))


def _members(parent: Any) -> Iterator[Any]:
    """Public members: those in ``__all__`` where there is one, else those defined here; and what the package lends."""
    listed = parent.exports if parent.is_module and parent.exports else None
    for name, member in parent.members.items():
        public = name in listed if listed is not None else not member.is_alias and not name.startswith("_")
        if (public or _lent(member)) and (member.is_alias or not member.is_module):
            yield member


def signature(item: Any) -> str:
    """Kind and signature in one line: what the record holds."""
    if _lent(item):
        return f"alias of {item.target_path}"
    item = item.final_target if item.is_alias else item
    if item.is_function:
        return f"function {item.signature()}"
    if item.is_class:
        constructor = item.members.get("__init__")  # griffe makes one up for dataclasses, not for named tuples
        fields = constructor.signature(return_type=False) if constructor else f"({', '.join(_fields(item))})"
        return f"class {item.name}{fields.removeprefix('__init__')}"
    if item.is_attribute:
        kind = "property" if "property" in item.labels else "attribute"
        return f"{kind} {item.name}" + (f": {item.annotation}" if item.annotation else "")
    return item.kind.value


def _fields(item: Any) -> list[str]:
    """The fields of a named tuple; none for other classes."""
    if not any(str(base).endswith("NamedTuple") for base in item.bases):
        return []
    return [f"{m.name}: {m.annotation}" for m in item.members.values() if m.is_attribute and m.annotation]


# --- docstrings -----------------------------------------------------------------------------------------------------


def docstring_faults(path: str, item: Any, raising: set[str]) -> Iterator[Problem]:
    """What the docstring of one name lacks."""

    def fault(message: str) -> Problem:
        return Problem(item.filepath, item.lineno or 1, f"{path}: {message}")

    documented = bool(item.docstring) or (item.is_attribute and item.parent.is_class and _is_argument(item))
    if not documented:
        below = " (a string below it)" if item.is_attribute else ""
        yield fault(f"this public name has no docstring{below}; write one, or begin the name with _")
    elif item.is_function or (item.is_class and not _is_exception(item)):
        for message in _missing(item, raising):
            yield fault(message)
    elif item.is_attribute and "property" in item.labels:
        if item.path in raising and not _section(item, "raises"):
            yield fault(NO_RAISES)
    elif item.is_attribute and _is_checked_field(item, raising) and not RANGE.search(item.docstring.value):
        yield fault(f"the docstring {NO_RANGE}")


HOW_TO_SOURCE = (
    "name author and year; or begin with 'Elementary' where the formula follows in a line from definitions, with"
    " 'Defined here' where it is the book's own"
)
NO_RAISES = "it may raise; add a section 'Raises:' that says what, and for which input"


def _missing(item: Any, raising: set[str]) -> Iterator[str]:
    constructor = item if item.is_function else None
    if item.is_class and "dataclass" not in item.labels:  # griffe makes up a constructor for those
        constructor = item.members.get("__init__")
    checks = item.path in raising
    if constructor:
        yield from _arguments(item, constructor.parameters)
    returned = str(item.returns) if item.is_function else "None"
    if returned not in ("None", "NoReturn") and not _section(item, "returns") and not _section(item, "yields"):
        yield "it returns something; add a section 'Returns:' that says what, with shape or range"
    if checks and not _section(item, "raises"):
        yield NO_RAISES
    source = _section(item, "admonition", "source")
    if ".. math::" in item.docstring.value and not source:
        yield f"there is a formula and no section 'Source:'; {HOW_TO_SOURCE}"
    if source and not SOURCE.search(source.value.description):
        yield f"the section 'Source:' has no year in brackets; {HOW_TO_SOURCE}"
    if item.parent.is_module and ">>>" not in item.docstring.value:
        yield "there is no example; add a section 'Example:' with a doctest (>>>) that shows a typical call"


NO_RANGE = "does not say the range or the shape; say, for instance, 'in [0, 1]', 'at least 1' or 'of shape (turns,)'"


def _arguments(item: Any, parameters: Any) -> Iterator[str]:
    wanted = {p.name: p for p in parameters if p.name not in ("self", "cls")}
    section = _section(item, "parameters")
    if wanted and not section:
        yield f"there are arguments; add a section 'Args:' with an entry for {', '.join(wanted)}"
        return
    entries = {entry.name.lstrip("*"): entry.description for entry in section.value} if section else {}
    if missing := [name for name in wanted if name not in entries]:
        yield f"the section 'Args:' has no entry for {', '.join(missing)}"
    if unknown := [name for name in entries if name not in wanted]:
        yield f"the section 'Args:' tells of {', '.join(unknown)}, which is no argument"
    for name, text in entries.items():
        if name in wanted and NUMBERS.search(str(wanted[name].annotation)) and not RANGE.search(text):
            yield f"the entry for {name} {NO_RANGE}"


def _section(item: Any, kind: str, title: str = "") -> Any:
    for section in item.docstring.parsed if item.docstring else ():
        if section.kind.value == kind and (not title or (section.title or "").lower() == title):
            return section
    return None


def _is_argument(attribute: Any) -> bool:
    """Whether an attribute keeps an argument of the constructor, whose entry documents it."""
    section = _section(attribute.parent, "parameters")
    return bool(section) and any(entry.name == attribute.name for entry in section.value)


def _is_checked_field(item: Any, raising: set[str]) -> bool:
    """Whether this is a number in a dataclass that checks its fields: their docstrings are its entries of Args."""
    dataclass = item.parent.is_class and "dataclass" in item.parent.labels
    return dataclass and item.parent.path in raising and bool(NUMBERS.search(str(item.annotation)))


def _is_exception(item: Any) -> bool:
    return any(re.search(r"(Error|Exception|Warning)$", str(base)) for base in item.bases)


def unshown_modules(book: Book, names: dict[str, Any]) -> Iterator[Problem]:
    """A public module that the API page of a language leaves out is not documented for that language's readers."""
    for language in LANGUAGES:
        pages = {path: path.read_text("utf8") for path in book.pages(language).values()}
        shown = set(re.findall(r"automodule:: *(\S+)", "\n".join(pages.values())))
        for path, item in names.items():
            if item.is_module and path != PACKAGE and path not in shown:
                where = next((book.shown(p) for p, text in pages.items() if "automodule::" in text), "a page")
                yield Problem(item.filepath, 1, f"the module is on no page; add '.. automodule:: {path}' to {where}")


# --- the record -----------------------------------------------------------------------------------------------------


def current(book: Book, names: dict[str, Any] | None = None) -> dict[str, str]:
    """Public names and their signatures as the sources have them now."""
    return {path: signature(item) for path, item in sorted((names or public_names(book)).items())}


def changes(book: Book, names: dict[str, Any], told_only: bool = False) -> Iterator[Problem]:
    """Names that differ from the record: not in the changelog yet, or (unless ``told_only``) not in the record yet."""
    file = book.root / RECORD
    if not file.is_file():
        yield Problem(file, 1, f"the record of the public API is missing; run: {HOW_TO_RECORD}")
        return
    record = json.loads(file.read_text("utf8"))
    before, now = record["names"], current(book, names)
    told = news(book, record["version"])
    for path in sorted(before.keys() | now.keys()):
        was, is_now = before.get(path), now.get(path)
        if was == is_now or ((named := _named(path, told)) and told_only):
            continue
        if was is None:
            what = "is new"
        elif is_now is None:
            what = f"is gone (it was: {was})"
        else:
            what = f"has changed: it was '{was}', it is '{is_now}'"
        todo = "CHANGELOG.md tells of it; now run"
        if not named:
            todo = (
                "Say so in CHANGELOG.md, under the version that is not released yet, in a line with"
                f" `{_short(path)}` in backticks; then run"
            )
        where, line = _place(names, path)
        yield Problem(where, line, f"{path} {what}. {todo}: {HOW_TO_RECORD}")


def _place(names: dict[str, Any], path: str) -> tuple[Path, int]:
    """Where a name stands; one that has gone, where it stood; a lent one, where it is lent."""
    item = names.get(path)
    if item is None:
        home = names.get(path.rpartition(".")[0], names[PACKAGE])
        return home.filepath, home.lineno or 1
    return (item.parent.filepath, item.alias_lineno or 1) if item.is_alias else (item.filepath, item.lineno or 1)


def _short(path: str) -> str:
    """How a changelog calls a name: ``function``, ``Class.method``."""
    *_, owner, name = path.split(".")
    return f"{owner}.{name}" if owner[:1].isupper() else name


def _named(path: str, text: str) -> bool:
    """Whether a text has the name in backticks: ``f``, ``keydoor.m.f``, ``C.method``, ``f(x=…)``; or its class.

    The bare name of a method would be too little, since many classes have a ``step``.
    """
    *_, owner, name = path.split(".")
    names = [f"{owner}.{name}", owner] if owner[:1].isupper() else [name]
    return any(re.search(rf"`(?:[\w.]+\.)?{re.escape(name)}(?=[`(\[ :=])", text) for name in names)


def version(book: Book) -> str:
    """The version of the package."""
    return str(tomllib.loads((book.root / "pyproject.toml").read_text("utf8"))["project"]["version"])


def news(book: Book, recorded: str) -> str:
    """What the changelog says since the record: the sections above the recorded version, and what is not released."""
    file = book.root / "CHANGELOG.md"
    sections = re.split(r"(?m)^## ", file.read_text("utf8") if file.is_file() else "")[1:]
    kept = []
    for section in sections:
        heading = section.split("\n", 1)[0]
        if recorded in heading and "unreleased" not in heading.lower():
            break
        kept.append(section)
    return "\n".join(kept)


def record(book: Book) -> list[Problem]:
    """Write the record anew, unless something has changed that the changelog does not tell of."""
    file = book.root / RECORD
    names = public_names(book)
    problems = [*changes(book, names, told_only=True)] if file.is_file() else []
    if not problems:
        text = json.dumps({"version": version(book), "names": current(book, names)}, indent=1, ensure_ascii=False)
        file.write_text(text + "\n", "utf8")
    return problems
