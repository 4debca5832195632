"""Results in prose come from cells: a decimal number or a percentage typed by hand is refused.

What is an input of an example and no result is written with the role ``given``: ``{given}`0.9` ``. Whole numbers are
left to the human eye: most of them count things that the page itself lists.
"""

from __future__ import annotations

import re

from book.gates.prose import prose
from book.layout import Book, Problem

TYPED = re.compile(r"(?<![\w.,:/#])[-−+]?(?:\d+[.,]\d+|\d+(?=[ \u00a0\u202f]?%))[ \u00a0\u202f]?%?(?![\w/]|[.,]\d)")
"""A number with a decimal point or comma, or a percentage; not a version of three parts, a date, a section. Signs such
as ½ stand for exact constants of definitions and theorems and are left alone."""

VERSION = re.compile(r"(?:Python|versions?|верси\w+|Commons|CC BY)\b(?:[^.;:()]|\d\.\d){0,60}$")
"""What comes before a number that names a version or a licence."""

EXEMPT = frozenset({"sources", "changes"})
"""Pages that cite and date, and report no results."""


def check(book: Book) -> list[Problem]:
    """Every page of both languages."""
    problems = []
    for path in book.all_pages():
        if path.stem in EXEMPT:
            continue
        for part in prose(path):
            for found in TYPED.finditer(part.text):
                if VERSION.search(part.text, 0, found.start()):
                    continue
                number = found[0].strip()
                message = (
                    f"the number {number} is typed by hand: glue it from the cell that computes it, "
                    f"or, if it is an input and no result, write {{given}}`{number}`"
                )
                problems.append(Problem(path, part.line_at(found.start()), message))
    return problems
