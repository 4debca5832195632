"""Numbers that the cells give agree between the languages; a fault is named by both places."""

from __future__ import annotations

from collections.abc import Callable

import nbformat
import pytest

from book import execute
from book.gates import outputs, parity
from book.layout import Book

Plant = Callable[..., int]


CELLS = {
    "en": ('print(f"number {1}")', 'print("number 2")', "import time\nprint(time.time_ns())"),
    "ru": ('print(f"число 1{1}")', 'print("число")', "import time\nprint(time.time_ns())"),
}


def faults(mini: Book) -> list[str]:
    assert execute.execute_pages(mini) == []
    return [problem.text(mini) for problem in outputs.check(mini)]


def test_equal_outputs_pass(executed: Book, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is executed a second time."""
    assert faults(executed) == []
    assert capsys.readouterr().out == ""


def test_numbers_inside_strings(executed: Book, plant: Plant) -> None:
    """Strings may differ between the languages, so the parity of code cannot see a number that stands in one.

    One number differs, one stands in one language alone; a timing differs from run to run, and its cell says so with a
    tag, in both languages.
    """
    lines = {}
    for language, (other, lost, timing) in CELLS.items():
        cells = [f"```{{code-cell}} ipython3\n{code}\n```\n\n" for code in (other, lost, f":tags: [varies]\n{timing}")]
        start = plant(f"{language}/second.md", "```json", f"{''.join(cells)}```json")
        lines[language] = start + 1, start + 5
    assert parity.check(executed) == []
    (english, russian), kinds = lines.values(), (("11", "1"), ("nothing", "2"))
    assert faults(executed) == [
        f"book/ru/second.md:{here}: this cell gives {two} where book/en/second.md:{there} gives {one}"
        for here, there, (two, one) in zip(russian, english, kinds, strict=True)
    ]


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
