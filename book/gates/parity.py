"""The two languages of a page must agree: headings, labels, directives, equations, references and cells.

What may differ is language: prose, titles, captions, alternative texts, and inside cells string literals and comments.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

from book.gates.page import Item, Page, read_page
from book.layout import LANGUAGES, Book, Problem


def check(book: Book) -> list[Problem]:
    """Compare every page with its other language."""
    problems: list[Problem] = []
    first, second = LANGUAGES
    pages = {language: book.pages(language) for language in LANGUAGES}
    for language, other in ((first, second), (second, first)):
        for name in pages[language].keys() - pages[other].keys():
            missing = book.source / other / f"{name}.md"
            problems.append(
                Problem(pages[language][name], 1, f"this page has no counterpart: write {book.shown(missing)}")
            )
    for name in sorted(pages[first].keys() & pages[second].keys()):
        try:
            problems += compare(book, read_page(pages[first][name]), read_page(pages[second][name]))
        except ValueError as error:
            problems.append(Problem(pages[first][name], 1, str(error)))
    return problems


def compare(book: Book, left: Page, right: Page) -> list[Problem]:
    """All differences between two pages; the structure first, since the rest lines up only if that agrees."""
    structure = [[item for item in page.items if item.kind != "references"] for page in (left, right)]
    for a, b in zip_longest(*structure):
        if a is None or b is None:
            extra, page, other = (b, right, left) if a is None else (a, left, right)
            return [Problem(page.path, extra.line, f"{_named(extra)} has no counterpart in {book.shown(other.path)}")]
        if (a.kind, a.key) != (b.kind, b.key):
            where = f"{book.shown(left.path)}:{a.line}"
            return [Problem(right.path, b.line, f"{_named(b)} stands where {where} has {_named(a)}")]
    problems = []
    for a, b in zip(left.of("cell"), right.of("cell"), strict=True):
        problems += [Problem(right.path, line, message) for line, message in _cells(book, left, a, b)]
    return problems + _references(book, left, right)


def _named(item: Item) -> str:
    shown = {"heading": f"{item.key} {item.text!r}", "cell": f"options {item.key}" if item.key else "without options"}
    return f"the {item.kind} {shown.get(item.kind, item.key or '(plain)')}"


def _cells(book: Book, left: Page, a: Item, b: Item) -> Iterator[tuple[int, str]]:
    """The first place where the code of two cells differs in more than strings and comments."""
    try:
        left_code, right_code = ast.parse(a.text), ast.parse(b.text)
    except SyntaxError as error:
        yield b.line, f"this cell or its counterpart {book.shown(left.path)}:{a.line} is not Python: {error}"
        return
    for one, two in zip_longest(_bones(left_code), _bones(right_code)):
        if one is None or two is None or one[0] != two[0]:
            line_a, line_b = a.line + (one or [0, 1])[1] - 1, b.line + (two or [0, 1])[1] - 1
            yield line_b, f"the code differs from {book.shown(left.path)}:{line_a} in more than strings and comments"
            return


def _bones(tree: ast.AST, line: int = 1) -> Iterator[tuple[str, int]]:
    """Code without the text of its strings, depth first, with line numbers; f-strings keep their expressions."""
    line = getattr(tree, "lineno", line)
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield "string", line
    elif isinstance(tree, ast.Constant):
        yield repr(tree.value), line
    elif isinstance(tree, ast.JoinedStr):
        yield "f-string", line
        for part in tree.values:
            if isinstance(part, ast.FormattedValue):
                yield from _bones(part, line)
    else:
        names = [f"{key}={value}" for key, value in ast.iter_fields(tree) if isinstance(value, (str, int))]
        yield f"{type(tree).__name__} {names}", line
        for child in ast.iter_child_nodes(tree):
            yield from _bones(child, line)


def _references(book: Book, left: Page, right: Page) -> list[Problem]:
    """Citations, cross-references and glued values of each section, in any order."""
    problems = []
    for (_, a), (line, b) in zip(_by_section(left), _by_section(right), strict=True):
        for surplus, page in ((a - b, left), (b - a, right)):
            for reference, count in sorted(surplus.items()):
                other = right if page is left else left
                problems.append(
                    Problem(
                        right.path,
                        line,
                        f"in this section {book.shown(page.path)} has {count} × {{{reference.replace(' ', '} ', 1)}"
                        f" more than {book.shown(other.path)}",
                    )
                )
    return problems


def _by_section(page: Page) -> list[tuple[int, Counter[str]]]:
    sections = [(1, Counter[str]())]
    for item in page.items:
        if item.kind == "heading":
            sections.append((item.line, Counter()))
        sections[-1][1].update(item.references)
    return sections
