"""What the cells print must agree between the languages, cell by cell and number by number."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import nbformat
from jupyter_cache import get_cache

from book.execute import cache_folder, cell_line, read_notebook
from book.layout import LANGUAGES, Book, Problem

NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?(?![\w])")

MAY_VARY = "varies"
"""Tag of a cell whose output is not the same twice, such as a timing."""


def check(book: Book) -> list[Problem]:
    """Compare the executed outputs of every page with its other language; pages come from the cache."""
    first, second = LANGUAGES
    pages = {language: book.pages(language) for language in LANGUAGES}
    problems: list[Problem] = []
    for name in sorted(pages[first].keys() & pages[second].keys()):
        problems += compare(book, pages[first][name], pages[second][name])
    return problems


def executed(book: Book, path: Path) -> nbformat.NotebookNode:
    """A page with the outputs that the cache holds for it.

    Raises:
        KeyError: it has not been executed.
    """
    _, notebook = get_cache(str(cache_folder(book) / "cells")).merge_match_into_notebook(read_notebook(path))
    return notebook


def compare(book: Book, left: Path, right: Path) -> list[Problem]:
    """The first difference in each cell of two pages."""
    cells = [[*code_cells(executed(book, path))] for path in (left, right)]
    problems = []
    for (number, a), (_, b) in zip(*cells, strict=True):
        if MAY_VARY in a.metadata.get("tags", []):
            continue
        for one, two in zip_longest(numbers(a), numbers(b)):
            if one != two:
                where = f"{book.shown(left)}:{cell_line(left, number)}"
                message = f"this cell gives {two or 'nothing'} where {where} gives {one or 'nothing'}"
                problems.append(Problem(right, cell_line(right, number), message))
                break
    return problems


def code_cells(notebook: nbformat.NotebookNode) -> Iterator[tuple[int, nbformat.NotebookNode]]:
    """Code cells with their place among the code cells."""
    return enumerate(cell for cell in notebook.cells if cell.cell_type == "code")


def numbers(cell: nbformat.NotebookNode) -> list[str]:
    """All numbers in the text that a cell gives, in order; a decimal comma counts as a point."""
    return [found.replace(",", ".").replace("−", "-") for text in texts(cell) for found in NUMBER.findall(text)]


def texts(cell: nbformat.NotebookNode) -> Iterator[str]:
    """What a cell prints, shows as a table, and glues."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.text
            continue
        data: dict[str, Any] = output.get("data", {})
        if "text/html" in data:
            table = re.sub(r"<(style|script)\b.*?</\1>", " ", data["text/html"], flags=re.S)
            yield html.unescape(re.sub(r"<[^>]+>", " ", table))
        elif "image/svg+xml" not in data:
            yield next((text for kind, text in sorted(data.items()) if kind.endswith("text/plain")), "")
