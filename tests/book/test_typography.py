"""Quotation marks, dashes, numbers, spaces and ё: each fault planted in the two-page book."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from book.gates import typography
from book.layout import Book

Plant = Callable[..., int]
N = "\u00a0"


def texts(book: Book) -> list[str]:
    return [problem.text(book) for problem in sorted(typography.check(book))]


def test_right_pages_pass(mini: Book) -> None:
    """A gate that cries wolf is worse than none; on the real pages the build itself would stop."""
    assert texts(mini) == []


RUSSIAN = [
    ("два  слова", "two spaces"),
    (f"два {N}слова", "two spaces"),
    ("слово , слово", "no space before a punctuation mark"),
    ("слово .", "no space before a punctuation mark"),
    ("( слово)", "no space inside brackets"),
    ("« слово»", "no space inside brackets"),
    ("доля 5% слов", "between number and %"),
    ("доля 5 % слов", "between number and %"),
    ("доля {glue:text}`mini_value:.0f`% слов", "between number and %"),
    ("прошло 5 минут", "between the number and what it counts"),
    ("всего 128 шагов", "between the number and what it counts"),
    ("ответ № 5", "between the sign and its number"),
    ("слово, т. е. слово", "«т. е.», «т. д.»"),
    ("слово, т.е. слово", "«т. е.», «т. д.»"),
    (f"слово и т.{N}д.", "after «и» too"),
    ("слово — слово", "before the dash"),
    ("слово\n— слово", "before the dash"),
    (f"слово{N}—слово", "a dash has"),
    ("слово—слово", "a dash has"),
    ("слово – слово", "– is for ranges"),
    ("слово - слово", "a hyphen is no dash"),
    ("слово -- слово", "a hyphen is no dash"),
    ("шаги 3-5", "has an en dash"),
    ("равно -1", "minus sign"),
    ('слово "слово"', "quotation marks are «…»"),
    ("слово “слово”", "quotation marks are «…»"),
    ("слово 'слово'", "no apostrophe in Russian"),
    ("«слово «слово» слово»", "quotation marks inside «…» are"),
    ("«слово", "without its pair"),
    ("слово...", "the ellipsis is one character"),
    ("равно 0.5", "decimal comma"),
    ("равно $x=0.5$", "decimal comma"),
    ("слово еще слово", "«еще» is written with ё: «ещё»"),
    ("слово Ее слово", "«Ее» is written with ё: «её»"),
    ("много зерен", "«зерен» is written with ё: «зёрен»"),
]


@pytest.mark.parametrize(("wrong", "says"), RUSSIAN)
def test_russian(mini: Book, plant: Plant, wrong: str, says: str) -> None:
    """The message names line and rule, and shows the words around the place."""
    line = plant("ru/index.md", "Агенты действуют в средах.", f"Агенты\nдействуют: {wrong}")
    messages = texts(mini)
    assert len([text for text in messages if says in text]) == 1, messages
    assert messages[0].startswith(f"book/ru/index.md:{line + 1}: ")


@pytest.mark.parametrize(
    ("place", "old"),
    [("a title", "{exercise} ★ Счёт"), ("an alternative text", "alt: Линия растёт"), ("a caption", "caption: Линия")],
)
def test_words_outside_paragraphs(mini: Book, plant: Plant, place: str, old: str) -> None:
    line = plant("ru/index.md", old, f"{old} - еще")
    messages = texts(mini)
    assert len(messages) == 2, place
    assert all(text.startswith(f"book/ru/index.md:{line}: ") for text in messages)


def test_yo_in_labels_of_figures(mini: Book, plant: Plant) -> None:
    line = plant("ru/index.md", 'set_xlabel("время")', 'set_xlabel("идет время")')
    (message,) = texts(mini)
    assert message == f"book/ru/index.md:{line}: «идет» is written with ё: «идёт»"


@pytest.mark.parametrize(
    "right",
    [
        f"слово{N}— слово, {N.join(['т.', 'е.'])} слово и{N}т.{N}д.",
        f"`код`{N}— слово; $x$, `код`: (`код`) «`код`»",
        f"«слово „слово“ слово», актор–критик, 3–5, 5{N}%, 75{N}минут, №{N}5",
        "все, чем, небо, самое, узнает, берет",  # with е and with ё these are different words
        f"Python{N}3.11, 3.12 или 3.13, с{N}версии 1.8, раздел 2.3, trl>=1.8, 1.0.0 и CC BY 4.0",
        "всего 0,5 и $0{,}5$, $[0,1]$, $x_{1.}$, $\\hspace{0.35em}$",
        "−1, $-1$, `-1`, 2026-01-02, ISO 8601-1, GPT-4, 0000-0002-1825-0097",
        "в разделе 8 токены, из награды 1 и",
        'слово `"x" - 0.5...` https://example.org/0.5--x',
        "строка\nи строка",
    ],
)
def test_right_russian_passes(mini: Book, plant: Plant, right: str) -> None:
    plant("ru/index.md", "Агенты", f"{right} агенты")
    assert texts(mini) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("two  spaces", "two spaces"),
        ("a word , a word", "no space before a punctuation mark"),
        ("( a word)", "no space inside brackets"),
        ("5 % of them", "no space between number and %"),
        ("a word - a word", "a hyphen is no dash"),
        ("steps 3-5", "has an en dash"),
        ("it is -1", "minus sign"),
        ("a “word”", "straight \" and '"),
        ("the agent’s", "straight \" and '"),
        ("a «word»", "straight \" and '"),
        ("a word...", "the ellipsis is one character"),
        ("it is 0,5", "decimal point"),
        ("it is $0{,}5$", "decimal point"),
    ],
)
def test_english(mini: Book, plant: Plant, wrong: str, says: str) -> None:
    line = plant("en/index.md", "Count to two.", f"Count\nto two: {wrong}")
    messages = texts(mini)
    assert len({text for text in messages if says in text}) >= 1, messages
    assert all(text.startswith(f"book/en/index.md:{line + 1}: ") for text in messages)


@pytest.mark.parametrize(
    "right",
    [
        'the agent\'s "word", 3–5, 5%, 0.5, 10,000 and 1, 2; actor–critic, top-p',
        "$10{,}000$, $0.5$, −1, 2026-01-02, `a - b`, Python 3.11",
        "(*ход*) «ход»",
    ],
)
def test_right_english_passes(mini: Book, plant: Plant, right: str) -> None:
    plant("en/index.md", "Count to two.", f"Count {right}.")
    assert texts(mini) == []
