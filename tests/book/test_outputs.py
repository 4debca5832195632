"""Numbers that the cells give agree between the languages; a fault is named by both places."""

from __future__ import annotations

from collections.abc import Callable

import nbformat
import pytest

from book import execute
from book.gates import outputs, parity
from book.layout import Book

Plant = Callable[..., int]


def faults(mini: Book) -> list[str]:
    assert execute.execute_pages(mini) == []
    return [problem.text(mini) for problem in outputs.check(mini)]


def test_equal_outputs_pass(executed: Book) -> None:
    assert faults(executed) == []


@pytest.mark.usefixtures("executed")
def test_a_number_inside_a_string(mini: Book, plant: Plant) -> None:
    """Strings may differ between the languages, so the parity of code cannot see a number that stands in one."""
    plant("ru/index.md", 'print(f"число {number}")', 'print(f"число 1{number}")')
    first = plant("ru/index.md", "for number in (1, 2):", "for number in (1, 2):")
    assert parity.check(mini) == []
    (message,) = faults(mini)
    assert message.startswith(f"book/ru/index.md:{first}: this cell gives 11 where book/en/index.md:")
    assert message.endswith(" gives 1")


@pytest.mark.usefixtures("executed")
def test_a_number_that_one_language_lacks(mini: Book, plant: Plant) -> None:
    plant("en/index.md", 'print(f"number {number}")', 'print(f"number {number} of 2")')
    (message,) = faults(mini)
    assert "this cell gives nothing where book/en/index.md:" in message
    assert message.endswith(" gives 2")


def test_a_cell_that_may_vary(mini: Book, plant: Plant) -> None:
    """A timing differs from run to run: its cell says so with a tag, in both languages."""
    for page, word in (("en/index.md", "number"), ("ru/index.md", "число")):
        old = f'```{{code-cell}} ipython3\nfor number in (1, 2):\n    print(f"{word} {{number}}")'
        plant(page, old, "```{code-cell} ipython3\n:tags: [varies]\nimport time\nprint(time.time_ns())")
    assert parity.check(mini) == []
    assert faults(mini) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p=0.25, G=4", ["0.25", "4"]),
        ("среднее 0,25", ["0.25"]),
        ("−1.5e-07 и x2, v1.0.0", ["-1.5e-07"]),
        ("Fraction(41, 100)", ["41", "100"]),
        ("нет чисел", []),
    ],
)
def test_what_counts_as_a_number(text: str, expected: list[str]) -> None:
    """Signs, exponents and a decimal comma; not the digits of a name or a version."""
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("stream", text=text)])
    assert outputs.numbers(cell) == expected


def test_tables_are_read_without_their_markup() -> None:
    data = {"text/html": "<style>td {width: 7px}</style><td colspan=3>1.5</td><td>2</td>", "text/plain": "9"}
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", data=data)])
    assert outputs.numbers(cell) == ["1.5", "2"]
