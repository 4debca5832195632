"""Every labelled result names the function that computes it and the test that checks it, and both exist.

Right after a result, before the next heading or result, stands::

    ```{identity} prop-lab-telescoping
    :function: keydoor.returns.td_residuals, keydoor.returns.discounted_td_sum
    :test: tests/test_returns.py::test_telescoping_with_and_without_a_true_end
    ```

When a test touches a function is said in :mod:`book.gates.naming`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from book.gates.naming import fault_of_function, fault_of_test, touches
from book.gates.page import Item, read_page
from book.layout import LANGUAGES, Book, Problem

RESULTS = ("prf:theorem", "prf:proposition", "prf:lemma", "prf:corollary")
"""Directives that claim something; definitions, examples and remarks may have an identity and need none."""

EXAMPLE = "```{identity} LABEL with the lines :function: keydoor.MODULE.NAME and :test: tests/test_FILE.py::test_NAME"


@dataclass(frozen=True)
class Identity:
    """One directive: the label of the result, and what computes and checks it."""

    path: Path
    line: int
    label: str
    functions: tuple[str, ...]
    tests: tuple[str, ...]


def check(book: Book) -> list[Problem]:
    """The identities of all pages."""
    problems: list[Problem] = []
    found: dict[str, dict[str, Identity]] = {}
    for language in LANGUAGES:
        identities: list[Identity] = []
        index = False
        for path in book.pages(language).values():
            text = path.read_text("utf8")
            if "{prf:" in text or "{identity" in text:
                index = index or "{identity-index}" in text
                try:
                    problems += _read(path, read_page(path).items, identities)
                except ValueError as error:
                    problems.append(Problem(path, 1, str(error)))
        for identity in identities:
            problems += [Problem(identity.path, identity.line, message) for message in _faults(book, identity)]
        if identities and not index:
            where = f"book/{language}/identities.md"
            message = f"no page shows the index of results: put the directive {{identity-index}} on {where}"
            problems.append(Problem(identities[0].path, identities[0].line, message))
        found[language] = {identity.label: identity for identity in identities}
    return [*problems, *_between_languages(book, found)]


def _read(path: Path, items: list[Item], identities: list[Identity]) -> Iterator[Problem]:
    """Collect the identities of a page into a list; faults are results without one, and those without a result."""
    open_result: tuple[str, int] | None = None
    labels: set[str] = set()
    said: set[str] = set()

    def unsaid() -> Iterator[Problem]:
        if open_result and open_result[0] not in said:
            label, line = open_result
            yield Problem(path, line, f"the result {label} names no function and no test; add after it {EXAMPLE}")

    for item in items:
        name, argument, options = _directive(item)
        label = options.get("label", "")
        if name.startswith("prf:") and name != "prf:proof":
            yield from unsaid()
            open_result = None
            labels.add(label)
            if name in RESULTS and label:
                open_result = (label, item.line)
            elif name in RESULTS:
                yield Problem(path, item.line, "this result has no label; add the option ':label: prop-PAGE-NAME'")
        elif item.kind == "heading":
            yield from unsaid()
            open_result = None
        elif name == "identity":
            if argument in said:
                yield Problem(path, item.line, f"{argument} has an identity already; list all in one, with commas")
            elif argument not in labels:
                yield Problem(path, item.line, f"no result with the label {argument or '(none)'} stands before this")
            elif open_result and argument != open_result[0]:
                yield Problem(path, item.line, f"this stands after {open_result[0]}; put it right after {argument}")
            said.add(argument)
            names = [tuple(re.split(r"[,\s]+", options.get(key, "").strip(", "))) for key in ("function", "test")]
            identities.append(Identity(path, item.line, argument, *(() if n == ("",) else n for n in names)))
    yield from unsaid()


def _directive(item: Item) -> tuple[str, str, dict[str, str]]:
    """Name, argument and options of a directive."""
    if item.kind != "directive":
        return "", "", {}
    head, brace, rest = item.key.partition("{")
    name, _, argument = head.strip().partition(" ")
    try:
        options = ast.literal_eval(brace + rest) if brace else {}
    except (SyntaxError, ValueError):  # a brace in the argument of another directive
        options = {}
    return name, argument.strip(), {str(key): str(value) for key, value in options.items()}


def _faults(book: Book, identity: Identity) -> Iterator[str]:
    """What is wrong with the functions and tests of one identity."""
    for option, names in (("function", identity.functions), ("test", identity.tests)):
        if not names:
            yield f"the identity of {identity.label} has no line ':{option}:'; it looks like {EXAMPLE}"
    faults = {function: fault_of_function(book.root, function) for function in identity.functions}
    functions = [function for function, fault in faults.items() if not fault]
    faults |= {test: fault_of_test(book.root, test) for test in identity.tests}
    tests = [test for test in identity.tests if not faults[test]]
    yield from filter(None, faults.values())
    if not functions or not tests:
        return
    touched = {test: {f for f in functions if touches(book.root, test, f)} for test in tests}
    for test, names in touched.items():
        if not names:
            yield f"the test {test} never names {' or '.join(functions)}; name a test that calls it"
    for function in functions:
        if all(touched.values()) and not any(function in names for names in touched.values()):
            yield f"no test of this identity names {function}; add one that calls it, or leave the function out"


def _between_languages(book: Book, found: dict[str, dict[str, Identity]]) -> Iterator[Problem]:
    first, second = LANGUAGES
    for here, there in ((first, second), (second, first)):
        for label, identity in found[here].items():
            other = found[there].get(label)
            if other is None:
                page = book.shown(book.source / there / identity.path.relative_to(book.source / here))
                yield Problem(identity.path, identity.line, f"{page} has no identity of {label}; add the same one")
            elif here == second and (identity.functions, identity.tests) != (other.functions, other.tests):
                where = f"{book.shown(other.path)}:{other.line}"
                yield Problem(identity.path, identity.line, f"the identity of {label} differs from {where}")
