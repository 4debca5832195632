"""Figures that cannot be read, planted in a page and executed: the message names file and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from book import execute
from book.gates import figures
from book.layout import LANGUAGES, Book
from tests.book.conftest import MINI, ROOT, copy_mini, once

Plant = Callable[..., int]


GOOD = {
    "en": "A line that rises from the lower left corner to the upper right one",
    "ru": "Линия поднимается из левого нижнего угла в правый верхний",
}
LABELS = {"en": ("time, turns", "value"), "ru": ("время, ходы", "значение")}

DRAWINGS: dict[str, tuple[str, str]] = {
    # name: code after `fig, ax = plt.subplots()` and the labels, and what the message says ("" for a right figure)
    "a plain one": ("ax.plot([0, 1])", ""),
    "lines and markers": (
        "ax.plot([0, 1], 'o-', label='a')\nax.plot([1, 0], 's--', label='b')\nax.axhline(0.5, color='k')\nax.legend()",
        "",
    ),
    "a band and bars": (
        "ax.bar([0, 1], [1, 2])\nax.fill_between([0, 1], [0, 0], [1, 1], alpha=0.2)\nax.set_yscale('log')",
        "",
    ),
    "hatches": (
        "ax.bar([0], [1], hatch='//', label='a')\nax.bar([1], [1], hatch='..', label='b')\nax.legend(frameon=True)",
        "",
    ),
    "a map of colours": (
        "m = ax.imshow([[0, 1], [2, 3]])\nax.text(0, 0, 'x', color='w')\nfig.colorbar(m, label='%')",
        "",
    ),
    "no ticks, no labels": ("ax.axis('off')\nax.text(0, 0, '1 + 1')", ""),
    "powers of ten": ("ax.plot([1e9, 2e9])\nax.set_ylabel('')", "the y axis of subplot 1 has no label"),
    "no x label": ("ax.plot([0, 1])\nax.set_xlabel('')", "the x axis of subplot 1 has no label: call set_xlabel"),
    "a second axis": ("ax.twinx().plot([2, 3])", "the y axis of subplot 2 has no label"),
    "yellow": ("ax.plot([0, 1], color='#ffff00')", "#ffff00 has a contrast of 1.1 on the light page"),
    "navy": ("ax.plot([0, 1], color='#000080')", "#000080 has a contrast of 1.2 on the dark page"),
    "a pale line": ("ax.plot([0, 1], color='#0072b2', alpha=0.3)", "#0072b2 at an opacity of 0.3 has a contrast"),
    "coloured words": (
        "ax.text(0, 0, '1 + 1', color='#d55e00')",
        "has a contrast of 3.9 on the light page, #fff, and needs 4.5",
    ),
    "colour alone": (
        "ax.plot([0, 1], '-', label='a')\nax.plot([1, 0], '-', label='b')\nax.legend()",
        "'a' and 'b' differ by colour alone",
    ),
    "bars by colour alone": (
        "ax.bar([0], [1], label='a')\nax.bar([1], [1], label='b')\nax.legend()",
        "'a' and 'b' differ by colour alone",
    ),
    "scatter by colour alone": (
        "ax.scatter([0], [1], label='a')\nax.scatter([1], [1], label='b')\nax.legend()",
        "'a' and 'b' differ by colour alone",
    ),
    "cut by the axes": ("ax.plot([0, 1])\nax.text(0.95, 0.5, '1 + 1 + 1 + 1 + 1', clip_on=True)", "is clipped"),
    "cut by the figure": ("ax.text(0.9, 0.5, '1 + 1 + 1 + 1 + 1 + 1').set_in_layout(False)", "is clipped"),
}

WORDS: dict[str, list[tuple[str, str]]] = {
    # words in the figure, and what the message says
    "en": [("value $V_t$", ""), ("значение", "'значение' in the figure is not English")],
    "ru": [
        ("KeyDoorAgentEnv: медиана, GRPO", ""),
        ("G = 8", ""),
        (r"$\\gamma$ и $\\text{return}$", ""),
        ("log p, max p", ""),
        ("smoke", ""),  # stands in `code` on the page
        ("baseline", "'baseline' in the figure is not Russian"),
        ("доля success", "'доля success' in the figure is not Russian"),
    ],
}


ALTERNATIVES = [
    # language, alternative text, and what the message says
    ("en", "two-curves.svg", "'two-curves.svg' is the name of a file"),
    ("en", "Two curves", "too short to say what is seen (20 characters at least)"),
    ("en", "", "this figure has no alternative text: say in English what is seen"),
    ("en", GOOD["ru"], "is not English"),
    ("ru", GOOD["en"], "is not Russian"),
    ("ru", "", "this figure has no alternative text: say in Russian what is seen"),
]


def cell(language: str, code: str, alternative: str | None = None) -> str:
    x, y = LABELS[language]
    alternative = GOOD[language] if alternative is None else alternative
    head = f"```{{code-cell}} ipython3\n---\nmystnb:\n  image:\n    alt: {alternative}\n---\n"
    start = f'fig, ax = plt.subplots()\nax.set_xlabel("{x}")\nax.set_ylabel("{y}")\n'
    return f"{head}{start}{code}\nplt.show()\n```\n\n"


def cells(language: str) -> dict[str, str]:
    """Cells of this file's page: those with drawings in one language, since nothing in them depends on it.

    Where words are what matters, nothing else is drawn: an axis takes most of the time.
    """
    made = {name: cell("en", code) for name, (code, _) in DRAWINGS.items()} if language == "en" else {}
    made |= {words: cell(language, f'ax.axis("off")\nax.set_title("{words}")') for words, _ in WORDS[language]}
    made |= {
        f"alt {text}": cell(language, 'ax.axis("off")', text) for lang, text, _ in ALTERNATIVES if lang == language
    }
    made["no options"] = (
        "```{code-cell} ipython3\nimport matplotlib.pyplot as plt\n" + made[f"alt {''}"].split("---\n")[2]
    )
    return made


Found = dict[tuple[str, str], list[str]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """All figures of this file on one page, executed once and checked as a page of each language.

    Returns:
        Of each cell, by language and name, the messages: the line within the cell (0: its fence) and the text.
    """
    places: dict[tuple[str, str], tuple[int, int]] = {}
    text = (MINI / "book/en/second.md").read_text("utf8").partition("```json")[0]
    text += "`smoke`\n\n```{code-cell} ipython3\nimport matplotlib.pyplot as plt\n```\n\n"
    for language in LANGUAGES:
        for name, code in cells(language).items():
            start = text.count("\n") + 1
            text += code
            places[language, name] = start, text.count("\n")

    def make(folder: Path) -> None:
        book = copy_mini(folder)
        page = book.source / "en/second.md"
        page.write_text(text, "utf8")
        assert execute.execute_pages(book, [page]) == []

    folder = once(tmp_path_factory, "figures", make)
    book = Book(folder, folder / "_build")
    problems = {language: figures.check_page(book, book.source / "en/second.md", language) for language in LANGUAGES}
    return {
        (language, name): [
            f"{problem.line - first}: {problem.message}"
            for problem in problems[language]
            if first <= problem.line <= last
        ]
        for (language, name), (first, last) in places.items()
    }


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings(found: Found, name: str) -> None:
    """Labels, contrasts, series and clipping; a right figure of each kind is left alone."""
    _, says = DRAWINGS[name]
    messages = found["en", name]
    assert bool(messages) == bool(says), messages
    assert all(says in message for message in messages), messages


def test_the_line_is_that_of_the_words_or_the_colour(found: Found) -> None:
    """Six lines open a cell and three label its axes; what no line of the cell names is reported at its first."""
    assert found["en", "yellow"][0].startswith("9: ")
    assert found["en", "cut by the axes"][0].startswith("10: ")
    assert found["en", "no x label"][0].startswith("6: ")


@pytest.mark.parametrize(("language", "words", "says"), [(lang, *pair) for lang in LANGUAGES for pair in WORDS[lang]])
def test_words_in_figures(found: Found, language: str, words: str, says: str) -> None:
    """The page's language; formulas, abbreviations, names of code and signs of mathematics are in none."""
    messages = found[language, words]
    assert bool(messages) == bool(says), messages
    assert all(says in message and message.startswith("10: ") for message in messages)


@pytest.mark.parametrize(("language", "text", "says"), ALTERNATIVES)
def test_alternative_texts(found: Found, language: str, text: str, says: str) -> None:
    """The line is that of the option."""
    (message,) = found[language, f"alt {text}"]
    assert message.startswith("4: ")
    assert says in message


def test_a_figure_without_options(found: Found) -> None:
    """The line is the one that opens the cell."""
    (message,) = found["en", "no options"]
    assert message.startswith("0: this figure has no alternative text")


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ("![](key.svg)", "no alternative text"),
        ("![a key](key.svg)", "too short"),
        ("```{figure} key.svg\n:alt: Ключ от красной двери в руке\nA key\n```", "is not English"),
        ("```{image} key.svg\n```", "no alternative text"),
        ("![A key on a ring, its bit to the left](key.svg)", ""),
        ("```{figure} key.svg\n:alt: A key on a ring, its bit to the left\nA key\n```", ""),
    ],
)
def test_pictures_from_files(mini: Book, plant: Plant, new: str, says: str) -> None:
    line = plant("en/second.md", "```json", f"{new}\n\n```json")
    page = mini.source / "en" / "second.md"
    messages = [problem.text(mini) for problem in figures.check_page(mini, page, "en")]
    assert bool(messages) == bool(says)
    assert all(message.startswith(f"book/en/second.md:{line}: ") and says in message for message in messages)


@pytest.mark.parametrize(
    ("one", "two", "ratio"),
    [("#000000", "#ffffff", 21.0), ("#ffffff", "#ffffff", 1.0), ("#777777", "#ffffff", 4.48), ("#00f", "#fff", 8.59)],
)
def test_contrast(one: str, two: str, ratio: float) -> None:
    """Of WCAG 2.1: 21 for black on white, 4.48 for #777 on white, 8.59 for blue, whose luminance is 0.0722."""
    assert figures.contrast(one, two) == pytest.approx(ratio, abs=0.005)
    assert figures.contrast(two, one) == figures.contrast(one, two)


def test_backgrounds_are_those_of_the_theme(mini: Book) -> None:
    """From the style sheets; one of the book's own has the last word."""
    assert set(figures.backgrounds(mini)) == {"light", "dark"}
    light, dark = figures.backgrounds(mini).values()
    assert figures.contrast(light, dark) > 15
    sheet = mini.source / "_static" / "book.css"
    sheet.write_text('html[data-theme="dark"] { --pst-color-background: #0a0b0c; }', "utf8")
    assert figures.backgrounds(mini)["dark"] == "#0a0b0c"


def test_the_style_of_the_book_is_readable(mini: Book) -> None:
    """The colours of the cycle in ``figures.mplstyle``, in both modes."""
    style = (ROOT / "book" / "figures.mplstyle").read_text("utf8")
    colours = re.findall(r"'([0-9A-F]{6})'", re.search(r"axes.prop_cycle.*", style)[0])
    assert len(colours) >= 5
    for ground in figures.backgrounds(mini).values():
        assert min(figures.contrast(f"#{colour}", ground) for colour in colours) >= figures.GRAPHICS


def test_the_two_page_book(executed: Book) -> None:
    assert execute.execute_pages(executed) == []
    assert figures.check(executed) == []
