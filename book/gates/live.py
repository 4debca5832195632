"""Checks of exercises: each runs in the reader's browser, and in the build after the solution, which has to pass it."""

from __future__ import annotations

from book import execute
from book._ext.runnable import cells_of, read_package, read_program
from book.layout import Book, Problem


def check(book: Book) -> list[Problem]:
    """Cells with the tag ``check`` that could not run in a browser, or that would change what later cells read.

    Args:
        book: the book. That solutions pass their checks is seen when the cells are executed.
    """
    package = read_package(book.root / "keydoor")
    problems = []
    for path in book.all_pages():
        notebook = execute.read_notebook(path)
        for number, message in read_program(cells_of(notebook), package).faults:
            problems.append(Problem(path, execute.cell_line(path, number), message))
    return problems
