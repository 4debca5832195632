"""Live cells without a browser: which cells are live, what each gives, and what the checks of exercises say.

The session is the one that runs in the browser, here on this Python, without the packages that a browser lacks. That
the browser gives the same is tried in `tests/browser/test_live.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from book import execute
from book._ext import live_files
from book._ext.live_words import WORDS
from book._ext.runnable import Cell, Program, cells_of, read_package, read_program
from book.gates import live as live_gate
from book.layout import LANGUAGES, Book
from tests.book.answers import all_answers

ROOT = Path(__file__).resolve().parents[2]
WRONG = all_answers()
BOOK = Book(ROOT, ROOT / "_build")
PACKAGE = read_package(ROOT / "keydoor")


@cache
def page(language: str, name: str) -> tuple[list[Cell], Program]:
    cells = cells_of(execute.read_notebook(BOOK.pages(language)[name]))
    return cells, read_program(cells, PACKAGE)


# --- which cells ----------------------------------------------------------------------------------------------------


def live(*codes: str, tags: str = "") -> list[int]:
    """Numbers of the live cells among these."""
    cells = [Cell(code, frozenset(tags.split() if number == 0 else ())) for number, code in enumerate(codes)]
    return [step.cell for step in read_program(cells, PACKAGE).steps if not step.code]


def test_modules_for_the_browser_need_no_other_package() -> None:
    """A fresh Python that can import nothing outside of its standard library loads all of them from the archive."""
    code = """
import importlib, sys, tempfile, zipfile
folder = tempfile.mkdtemp()
zipfile.ZipFile(sys.argv[1]).extractall(folder)
sys.path[:] = [folder, *(path for path in sys.path if "site-packages" not in path)]
for name in sys.argv[2:]:
    assert importlib.import_module(f"keydoor.{name}").__file__.startswith(folder)
assert sys.modules["keydoor.language"].stored("scores")
"""
    assert {"rules", "env", "exact", "optima", "records", "telescopes"} <= PACKAGE.modules
    assert {"", "language", "language.tables", "language.results"} <= PACKAGE.modules
    assert not {"policy", "training", "gradients", "vector", "language.scoring"} & PACKAGE.modules
    path = ROOT / "_build" / "live-test.zip"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(live_files.archive(ROOT / "keydoor", PACKAGE.modules))
    names = sorted(PACKAGE.modules - {""})
    result = subprocess.run([sys.executable, "-I", "-c", code, path, *names], capture_output=True, text=True)
    path.unlink()
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["from fractions import Fraction\nprint(Fraction(1, 2))"], [0]),
        (["import numpy as np", "print(1)"], [1]),
        (["import numpy as np\nx = 1", "print(x)"], [1]),
        (["import numpy as np\nx = np.ones(2)", "print(x)"], []),
        (["import numpy as np\nx = np.ones(2)", "x = 1", "print(x)"], [1, 2]),
        (["import numpy as np\nrows = []\nrows.append(np.ones(2))", "print(rows)"], []),
        (["import numpy as np\ntable = {}\ntable['a'] = np.ones(2)", "print(table)"], []),
        (
            ["import numpy as np\ndef f(x):\n    return np.sum(x)", "print(f(1))", "def f(x):\n    return x", "f(1)"],
            [2, 3],
        ),
        (["import numpy as np\nfor name in 'ab':\n    np.sum(1)", "for name in 'ab':\n    print(name)"], [1]),
        (["import numpy as np\ntotal = np.sum(1)", "total += 1"], []),
        (["from keydoor import discounted_return", "from keydoor import train_actor_critic"], [0]),
        (["from keydoor.training import evaluate_policy"], []),
        (["from keydoor.language import stored, exact_success", "from keydoor.language import train"], [0]),
        (["from keydoor.language import tables", "from keydoor.language.tables import SITUATIONS"], [0, 1]),
        (["from keydoor.language.learning import train"], []),
        (["from keydoor import __version__", "from keydoor import no_such_name"], [0]),
        (["import keydoor\nprint(keydoor.discounted_return([1], 1))"], [0]),
        (["from myst_nb import glue\nglue('a', 1, display=False)"], [0]),
        (["from IPython.display import display, HTML"], []),
        (["import subprocess"], []),
        (["def late():\n    import torch\n    return torch"], []),
        (["try:\n    import numpy\nexcept ImportError:\n    numpy = None", "print(1)"], [0, 1]),
    ],
)
def test_liveness(codes: list[str], expected: list[int]) -> None:
    assert live(*codes) == expected


def test_an_author_can_take_a_cell_out() -> None:
    """What it defines is still there for later cells."""
    assert live("x = 1", "print(x)") == [0, 1]
    assert live("x = 1", "print(x)", tags="not-live") == [1]
    program = read_program([Cell("x = 1\nprint(x)", frozenset({"not-live"})), Cell("print(x)")], PACKAGE)
    assert [(step.cell, step.code) for step in program.steps] == [(0, "x = 1"), (1, "")]


def test_only_what_later_cells_build_on_runs_before_them() -> None:
    head = "import numpy as np\nfrom math import exp, log\nused = 1\nunused = 2\nprint(used)"
    first = f"{head}\ndef f():\n    return log(used)"
    steps = read_program([Cell(first), Cell("print(f())")], PACKAGE).steps
    assert " ".join(steps[0].code.split()) == "from math import log used = 1 def f(): return log(used)"
    assert [step.cell for step in steps] == [0, 1]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([Cell("assert x", frozenset({"check", "remove-cell"}), "ex")], "a check begins with a string"),
        ([Cell('"x = 1"\nassert x', frozenset({"check", "remove-cell"}))], "a check stands in a solution"),
        ([Cell('"x = 1"\nassert x', frozenset({"check"}), "ex")], "a check is not shown"),
        ([Cell('"# x"\nassert True', frozenset({"check", "remove-cell"}), "ex")], "defines the names"),
        (
            [
                Cell("y = 1", solution_of="ex"),
                Cell('"x = 1"\nassert x == y', frozenset({"check", "remove-cell"}), "ex"),
            ],
            "the check uses y",
        ),
        (
            [Cell("import numpy as np"), Cell('"x = 1"\nassert np', frozenset({"check", "remove-cell"}), "ex")],
            "does not run in a browser",
        ),
        (
            [Cell("z = 1"), Cell('"x = 1"\nz = x', frozenset({"check", "remove-cell"}), "ex"), Cell("print(z)")],
            "a check above has changed z",
        ),
    ],
)
def test_checks_that_could_not_run_are_refused(cells: list[Cell], message: str) -> None:
    faults = read_program(cells, PACKAGE).faults
    assert len(faults) == 1
    assert message in faults[0][1]


def test_a_faulty_check_is_reported_at_its_cell(mini: Book, plant: Callable[..., int]) -> None:
    cell = '```{code-cell} ipython3\n:tags: [check, remove-cell]\n"answer = ..."\nassert answer == number\n```\n\n'
    line = plant("en/index.md", "```{solution-end}", f"{cell}```{{solution-end}}")
    (problem,) = live_gate.check(mini)
    assert problem.path == mini.pages("en")["index"]
    assert problem.line == line + 2
    assert "the check uses number" in problem.message


def test_both_languages_have_the_same_live_cells_and_checks() -> None:
    for name in BOOK.pages("en"):
        programs = [page(language, name)[1] for language in LANGUAGES]
        shape = [
            ([(s.cell, bool(s.code)) for s in p.steps], [(e.label, e.after) for e in p.exercises]) for p in programs
        ]
        assert shape[0] == shape[1], name


def test_both_languages_have_the_same_words() -> None:
    assert WORDS["en"].keys() == WORDS["ru"].keys()
    same = {name for name in WORDS["en"] if WORDS["en"][name] == WORDS["ru"][name]} - {"phi"}
    assert not same


# --- what they give -------------------------------------------------------------------------------------------------


def page_of(label: str) -> str:
    """The page on which an exercise stands: labels are ``ex-PAGE-WORDS``, with hyphens for the page's underscores."""
    return next(name for name in BOOK.pages("en") if label.startswith(f"ex-{name.replace('_', '-')}-"))


def visits(language: str) -> Iterator[list[tuple[str, ...]]]:
    """What :mod:`tests.book.reader` does on each page: its cells, and where the exercises stand each of the answers."""
    for name in sorted({page_of(label) for label in WRONG}):
        cells, program = page(language, name)
        codes = [cell.code for cell in cells if "check" not in cell.tags]
        steps: list[tuple[str, ...]] = []
        done = 0
        for exercise in program.exercises:
            steps += [(step.code or codes[step.cell],) for step in program.steps[done : exercise.after]]
            done = exercise.after
            answers = (exercise.starter, *(answer for answer, _ in WRONG[exercise.label]))
            steps += [(exercise.label, answer, exercise.check, exercise.starter) for answer in answers]
        yield steps


@pytest.mark.reader
@pytest.mark.parametrize("language", LANGUAGES)
def test_checks_say_what_is_wrong(language: str) -> None:
    """Right answers pass, wrong ones get the sentence for their mistake, and so do starters as they stand."""
    command = [sys.executable, "-m", "tests.book.reader"]
    told = json.dumps(list(visits(language)))
    result = subprocess.run(command, input=told, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    place = LANGUAGES.index(language)
    expected = {(label, answer): words[place] for label, rows in WRONG.items() for answer, words in rows}
    found = json.loads(result.stdout)
    assert {label for label, _, _ in found} == WRONG.keys()
    for label, answer, sent in found:  # no-break spaces are a matter of typography
        words = expected.get((label, answer))
        assert len(sent) == 1, (label, answer, sent)
        kind, text = sent[0]
        if words == "":
            assert kind == "right", (label, answer, text)
        else:
            assert kind == "wrong", (label, answer, sent)
            assert (words or "") in text.replace("\xa0", " "), (label, answer, text)


def test_each_chapter_has_exercises_with_a_check() -> None:
    chapters = [name for name, path in BOOK.pages("en").items() if "```{exercise}" in path.read_text("utf8")]
    assert len(chapters) >= 9
    for name in chapters:
        assert len(page("en", name)[1].exercises) >= 2, name
