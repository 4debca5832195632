"""A result typed into prose is refused, an input marked as given is not, and neither are versions or code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from book.gates import parity, typed
from book.layout import Book

Plant = Callable[..., int]
END = "```{bibliography}"


@pytest.mark.parametrize(
    ("page", "text", "number"),
    [
        ("en/second.md", "The ratio is 1.1618 here.", "1.1618"),
        ("en/second.md", "It wins in 98 % of the runs.", "98 %"),
        ("en/second.md", "It wins in 98% of the runs.", "98%"),
        ("en/second.md", "| a | b |\n|---|---|\n| one | -0.41 |", "-0.41"),
        ("en/second.md", "```{note}\nIt ends at 0.6287.\n```", "0.6287"),
        ("ru/second.md", "Отношение равно 1,1618.", "1,1618"),
        ("ru/second.md", "Разность равна −0,41: это много.", "−0,41"),
    ],
)
def test_a_typed_result(mini: Book, plant: Plant, page: str, text: str, number: str) -> None:
    line = plant(page, END, f"{text}\n\n{END}")
    at = line + text[: text.index(number)].count("\n")
    (problem,) = typed.check(mini)
    assert problem.text(mini).startswith(f"book/{page}:{at}: the number {number} is typed by hand: glue it")


@pytest.mark.parametrize(
    "text",
    [
        "The discount is {given}`0.9`, the target door red or blue with probability ½.",
        "Python 3.11, 3.12 or 3.13; version 1.0 of the world; version 2.13.0; on 2026-11-30; section 2.3.1.",
        "Here $\\gamma=0.9$ and `gamma = 0.99`; {glue:text}`some_value:.2f`; [a link](second.md).",
        "Three of 5 seeds, 128 turns of 500 tokens, 308/39.",
    ],
)
def test_what_may_be_typed(mini: Book, plant: Plant, text: str) -> None:
    """Inputs that say so, versions, dates, code, formulas, values from cells, and whole numbers."""
    plant("en/second.md", END, f"{text}\n\n{END}")
    assert typed.check(mini) == []


def test_given_numbers_agree_between_the_languages(mini: Book, plant: Plant) -> None:
    """``0.9`` and ``0,9`` are one number; another one is not."""
    plant("en/second.md", END, f"The discount is {{given}}`0.9`.\n\n{END}")
    plant("ru/second.md", END, f"Коэффициент равен {{given}}`0,9`.\n\n{END}")
    assert parity.check(mini) == []
    plant("ru/second.md", "0,9", "0,8")
    assert len(parity.check(mini)) == 2
