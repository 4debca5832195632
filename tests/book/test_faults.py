"""Each fault that the build must refuse, planted in a two-page book: the message names file and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from book import execute
from book.assemble import site_is_fresh
from book.build import main, render
from book.gates import doctests, fences, parity
from book.layout import Book
from tests.book.conftest import contents, run_build
from tests.book.test_fresh import FULL

Plant = Callable[..., int]


def texts(book: Book, problems: list) -> list[str]:
    return [problem.text(book) for problem in sorted(problems)]


def test_the_book_without_a_fault_passes_the_gates(mini: Book) -> None:
    """A gate that cries wolf is worse than none."""
    assert parity.check(mini) == []
    assert fences.check(mini) == []
    assert doctests.check(mini) == []  # it has no package


# --- the two languages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("## Раздел", "### Раздел", "the heading h3 'Раздел' stands where"),
        ("(second-section)=", "(second-part)=", "the label second-part stands where"),
        ("```{bibliography}", "## Ещё\n\n```{bibliography}", "the heading h2 'Ещё' stands where"),
        ("```{bibliography}\n```\n", "```{bibliography}\n```\n\n## Ещё\n", "the heading h2 'Ещё' has no counterpart"),
    ],
)
def test_structure(mini: Book, plant: Plant, old: str, new: str, says: str) -> None:
    """A heading of another level, another label, a section that one language lacks, inside a page and at its end."""
    line = plant("ru/second.md", old, new)
    (message,) = texts(mini, parity.check(mini))
    at = line + new[: new.find("## Ещё")].count("\n") if "Ещё" in new else line
    assert message.startswith(f"book/ru/second.md:{at}: ")
    assert says in message


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (r"G = \sum_t \gamma^t r_t", r"G = \sum_t r_t", "the equation"),
        ("(eq-mini-return)\n\n```", "(eq-mini)\n\n```", "the equation eq-mini"),
        ("fig-mini\n    caption", "fig-other\n    caption", "fig-other"),
        (":label: prop-mini", ":label: prop-other", "prop-other"),
    ],
)
def test_equations_and_labels(mini: Book, plant: Plant, old: str, new: str, says: str) -> None:
    """TeX, its label, and the options of directives and cells must be equal up to words."""
    plant("ru/index.md", old, new)
    problems = texts(mini, parity.check(mini))
    assert len(problems) == 1
    assert problems[0].startswith("book/ru/index.md:")
    assert says in problems[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ax.plot([0, 1], [0, 1])", "ax.plot([0, 1], [0, 2])"),
        ("for number in (1, 2):", "for number in (1, 2, 3):"),
        ('print(f"число {number}")', 'print(f"число {number + 1}")'),
        ('print(f"число {number}")', 'print(f"число {number:.1f}")'),
        ("plt.show()", "plt.show()\nplt.close()"),
    ],
)
def test_code_may_differ_in_strings_and_comments_only(mini: Book, plant: Plant, old: str, new: str) -> None:
    """Numbers, names, expressions inside f-strings and their formats are code; the line is that of the difference."""
    line = plant("ru/index.md", old, new)
    (message,) = texts(mini, parity.check(mini))
    assert message.startswith(f"book/ru/index.md:{line + new.count(chr(10))}: the code differs from book/en/index.md:")


def test_code_may_differ_in_strings_and_comments(mini: Book, plant: Plant) -> None:
    """Comments, labels of axes and the words of an f-string belong to the page's language."""
    plant("ru/index.md", "# примечание", "# совсем другое примечание: 1 + 1")
    plant("ru/index.md", 'print(f"число {number}")', 'print(f"номер {number}, всё")')
    assert parity.check(mini) == []


def test_citations_and_values(mini: Book, plant: Plant) -> None:
    """Citations, references and glued values are counted in each section, in any order and any grammar."""
    plant("ru/index.md", "и {cite:t}`sutton2018reinforcement`", "и книгу")
    plant("ru/index.md", "{glue:text}`mini_value:.2f`", "1234,57")
    messages = texts(mini, parity.check(mini))
    assert len(messages) == 2
    assert "{cite} sutton2018reinforcement" in messages[0]
    assert "{glue:text} mini_value" in messages[1]


@pytest.mark.parametrize(("here", "there"), [("en", "ru"), ("ru", "en")])
def test_a_page_that_one_language_lacks(mini: Book, here: str, there: str) -> None:
    (mini.source / there / "second.md").unlink()
    (message,) = texts(mini, parity.check(mini))
    assert message == f"book/{here}/second.md:1: this page has no counterpart: write book/{there}/second.md"


# --- code between the lines -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "says", "shift"),
    [
        (">>> 1 + 1\n2", ">>> 1 + 1\n3", "the example is wrong", 0),
        (">>> 1 + 1\n2", "raise KeyError('x')", "the example raised KeyError", 0),
        ('{"number": 1}', '{"number": 1,}', "not json", -1),
        ("```json", "```", "this code fence has no label", 0),
        ("```json", "```pycon", "the label 'pycon'", 0),
        ("```json\n", "```bash\nif then ", "not bash", 0),
    ],
)
def test_examples_and_labelled_fences(mini: Book, plant: Plant, old: str, new: str, says: str, shift: int) -> None:
    """A wrong ``>>>`` example, a fence that is not what its label says, and a fence without one.

    An example is named by its own line, a fence by the line that opens it (``shift``).
    """
    line = plant("en/second.md", old, new)
    (message,) = texts(mini, fences.check(mini))
    assert message.startswith(f"book/en/second.md:{line + shift}: ")
    assert says in message


def test_a_page_must_say_that_it_is_a_notebook(mini: Book, plant: Plant) -> None:
    """Without its front matter the cells of a page would be shown and not run."""
    plant("ru/second.md", "file_format: mystnb\n", "")
    (message,) = texts(mini, fences.check(mini))
    assert message.startswith("book/ru/second.md:1: the page must begin with front matter")


def test_a_cell_inside_a_directive_would_not_run(mini: Book, plant: Plant) -> None:
    plant("en/second.md", "```{bibliography}\n```", "````{note}\n```{code-cell} ipython3\n1 / 0\n```\n````")
    (message,) = texts(mini, fences.check(mini))
    assert "would not be executed" in message


def test_a_wrong_doctest_in_a_docstring(mini: Book) -> None:
    """A package with one wrong example."""
    package = mini.root / "keydoor"
    package.mkdir()
    (package / "__init__.py").write_text('"""One.\n\n>>> 1 + 1\n2\n>>> 1 + 1\n3\n"""\n', "utf8")
    (message,) = texts(mini, doctests.check(mini))
    assert message.startswith("keydoor/__init__.py:5: this doctest is wrong")


# --- cells ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        {
            "import warnings; warnings.warn('careful')": "the cell writes to stderr",
            "import sys; print('careful', file=sys.stderr)": "the cell writes to stderr: careful",
            "1 / 0": "the cell raised ZeroDivisionError: division by zero",
        },
        {"import os; os._exit(3)": "the kernel died in this cell"},
    ],
)
def test_a_cell_that_raises_or_warns(mini: Book, plant: Plant, faults: dict[str, str]) -> None:
    """The line is that of the statement where Python says it, else that of the cell; the last one ends the page."""
    cells = "".join(f"```{{code-cell}} ipython3\nnumber = 1\n{code}\n```\n" for code in faults)
    first = plant("en/second.md", "```json", f"{cells}\n```json") + 1
    page = mini.source / "en" / "second.md"
    problems = texts(mini, execute.execute_pages(mini, [page]))
    assert len(problems) == len(faults)
    for number, (problem, says) in enumerate(zip(problems, faults.values(), strict=True)):
        line = first + 4 * number + ("raised" in says)
        assert problem.startswith(f"book/en/second.md:{line}: ")
        assert says in problem


# --- what Sphinx sees -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("executed")
def test_references_citations_and_links(mini: Book, plant: Plant) -> None:
    """All in one page, so that one run shows all of them; each line is named."""
    faults = {
        "{ref}`no-such-label`": "no-such-label",
        "{eq}`no-such-equation`": "no-such-equation",
        "{numref}`no-such-figure`": "no-such-figure",
        "{cite:p}`no_such_source`": "no_such_source",
        "[a link](no-such-page.md)": "no-such-page.md",
        "{term}`no such term`": "no such term",
        "{py:func}`keydoor.no_such_function`": "no_such_function",
        "{glue:text}`no_such_value:.2f`": "no_such_value",
        "{prf:ref}`no-such-result`": "no-such-result",
        "{nosuchrole}`x`": "nosuchrole",
    }
    for page in ("en/second.md", "ru/second.md"):
        first = plant(page, "```json", "\n\n".join(faults) + "\n\n```json")
    execute.execute_pages(mini)
    messages = render(mini)
    for number, name in enumerate(faults.values()):
        for language in ("en", "ru"):
            place = f"book/{language}/second.md:{first + 2 * number}: "
            assert any(message.startswith(place) and name in message for message in messages), (place, name, messages)


# --- the whole build ------------------------------------------------------------------------------------------------


def test_a_fault_ends_the_build_and_the_last_good_site_stays(built: Book) -> None:
    """Exit status 1, the place on stderr, and not a byte of the site has changed; it is not taken for a present one."""
    before = contents(built.output / "html")
    page = built.source / "ru" / "second.md"
    text = page.read_text("utf8")
    page.write_text(text.replace("## Раздел", "### Раздел"), "utf8")
    result = run_build(built)
    assert result.returncode == 1
    assert f"book/ru/second.md:{text[: text.index('## Раздел')].count(chr(10)) + 1}: " in result.stderr
    assert "the book was not built" in result.stderr
    assert contents(built.output / "html") == before
    assert not site_is_fresh(built, FULL)
    page.write_text(text, "utf8")
    assert site_is_fresh(built, FULL)


def test_a_folder_without_a_book(tmp_path: Path) -> None:
    """The command says what it looked for and where."""
    with pytest.raises(SystemExit, match=re.escape(f"no _config.yml in {tmp_path}: ")):
        main(["--root", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []
