"""Code in pages that is no cell: it must say its language, and be right in it.

``python`` fences are run by sybil, with and without ``>>>`` prompts, each page in a namespace of its own. ``json``,
``yaml``, ``toml``, ``bibtex`` and ``bash`` are parsed. ``text`` is for what a program prints. Every other label, and
none at all, is refused: what is not checked should look different from what is.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
import traceback
from pathlib import Path

import yaml
from pybtex.database import parse_string
from sybil import Sybil
from sybil.example import SybilFailure
from sybil.parsers.myst import PythonCodeBlockParser

from book.gates.page import read_page
from book.layout import Book, Problem


def _bash(text: str) -> None:
    result = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    if result.returncode:
        raise ValueError(result.stderr.strip())


PARSERS = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "bibtex": lambda text: parse_string(text, "bibtex"),
    "bash": _bash,
}

FRONT_MATTER = "file_format: mystnb"


def check(book: Book) -> list[Problem]:
    """All fences of all pages."""
    return [problem for path in book.all_pages() for problem in check_page(path)]


def check_page(path: Path) -> list[Problem]:
    """The fences of one page."""
    try:
        page = read_page(path)
    except ValueError as error:
        return [Problem(path, 1, str(error))]
    problems = []
    if FRONT_MATTER not in page.front_matter:
        problems.append(Problem(path, 1, f"the page must begin with front matter that holds '{FRONT_MATTER}'"))
    problems += check_spacing(path)
    for item in page.of("nested cell"):
        problems.append(Problem(path, item.line, "this cell is inside another directive and would not be executed"))
    for item in page.of("fence"):
        if item.key in ("python", "text"):
            continue
        if item.key not in PARSERS:
            label = f"the label {item.key!r}" if item.key else "no label"
            known = ", ".join(["python", "text", *PARSERS])
            problems.append(Problem(path, item.line, f"this code fence has {label}; known are {known}"))
            continue
        try:
            PARSERS[item.key](item.text)
        except Exception as error:
            problems.append(Problem(path, item.line, f"not {item.key}: {error}"))
    return problems + run_examples(path)


def check_spacing(path: Path) -> list[Problem]:
    """One empty line after the front matter and after each cell: with none or two, myst-nb's line numbers are off."""
    lines = [*path.read_text("utf8").splitlines(), "", "end"]
    ends = [number for number, line in enumerate(lines) if line == "---"][1:2]
    opened = False
    for number, line in enumerate(lines):
        if line.startswith("```{code-cell}"):
            opened = True
        elif opened and line == "```":
            opened = False
            ends.append(number)

    def separated(first: str, second: str) -> bool:
        return first.startswith("```") or (not first and bool(second))  # a longer fence closes around a nested cell

    message = "leave exactly one empty line after this, or the line numbers of other messages will be off by one"
    return [Problem(path, end + 1, message) for end in ends if not separated(lines[end + 1], lines[end + 2])]


def run_examples(path: Path) -> list[Problem]:
    """Run the ``python`` fences of one page, in order, in one namespace."""
    problems = []
    document = Sybil(parsers=[PythonCodeBlockParser()], encoding="utf8").parse(path)
    for example in document.examples():
        try:
            example.evaluate()
        except SybilFailure as failure:
            problems.append(Problem(path, example.line, f"the example is wrong: {failure.result}"))
        except Exception as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            line = (lines or [None])[-1] or example.line
            problems.append(Problem(path, line, f"the example raised {type(error).__name__}: {error}"))
    return problems
