"""Figures can be read: by who does not see them, in the page's language, in both colour modes, without colour.

What is checked is what the cells have drawn: the SVG in the cache of executed pages, as the site shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

from jupyter_cache import get_cache

from book._ext.themed import themed_svg
from book.execute import cache_folder, read_notebook
from book.gates.drawing import Drawing, Paint, read
from book.gates.outputs import code_cells
from book.gates.page import Item, read_options, read_page
from book.gates.tokens import leaves
from book.layout import LANGUAGES, Book, Problem

LEAST_LETTERS = 20
"""An alternative text that is shorter cannot say what is seen."""

GRAPHICS, LETTERS = 3.0, 4.5
"""Least contrasts of WCAG 2.1: 1.4.11 for graphics, 1.4.3 for text."""

SCRIPTS = {"en": (r"[A-Za-z]", "English"), "ru": (r"[А-Яа-яЁё]", "Russian")}

FUNCTIONS = frozenset(["arg", "cos", "det", "exp", "inf", "lim", "log", "max", "min", "mod", "sin", "sup", "tan"])
"""Signs of mathematics that are written as words."""


def check(book: Book) -> list[Problem]:
    """All figures of all pages, which must have been executed."""
    problems: list[Problem] = []
    for language in LANGUAGES:
        for path in book.pages(language).values():
            try:
                problems += check_page(book, path, language)
            except ValueError as error:
                problems.append(Problem(path, 1, str(error)))
    return problems


def check_page(book: Book, path: Path, language: str) -> list[Problem]:
    """Figures of one page: those of its cells and those of files."""
    problems = [
        Problem(path, line, text)
        for line, alternative in pictures(path)
        for text in check_alternative(alternative, language)
    ]
    if "```{code-cell}" not in path.read_text("utf8"):
        return problems
    notebook = read_notebook(path)
    # What a cell says of its figure may have changed since it was executed: the cache may keep the old words.
    options = [cell.metadata.get("mystnb", {}) for _, cell in code_cells(notebook)]
    _, executed = get_cache(str(cache_folder(book) / "cells")).merge_match_into_notebook(notebook)
    outputs = [[output.get("data", {}) for output in cell.outputs] for _, cell in code_cells(executed)]
    if not any(kind.startswith("image/") for output in outputs for data in output for kind in data):
        return problems
    names, grounds, cells = named(path), backgrounds(book), read_page(path).of("cell")
    for cell, option, output in zip(cells, options, outputs, strict=True):
        drawn = ["".join(data["image/svg+xml"]) for data in output if "image/svg+xml" in data]
        if not drawn and not any("image/png" in data for data in output):
            continue
        alternative = str(option.get("image", {}).get("alt") or "")
        place = _line_of_option(path, cell)
        problems += [Problem(path, place, text) for text in check_alternative(alternative, language)]
        for svg in drawn:
            drawing = read(themed_svg(svg, "", ""))
            for words, message in check_drawing(drawing, language, names, grounds, cell.text):
                problems.append(Problem(path, _line_of(cell, words), message))
    return list(dict.fromkeys(problems))


# --- alternative texts ----------------------------------------------------------------------------------------------


def pictures(path: Path) -> Iterator[tuple[int, str]]:
    """Pictures that come from files, ``![...](...)`` and ``{figure}``, with their alternative texts."""
    for line, token in leaves(path):
        if token.type == "image":
            yield line, token.content
        elif token.type in ("fence", "colon_fence") and re.match(r"\s*\{(figure|image)\}", token.info):
            options, _, _ = read_options(path, line, token.content)
            yield line, str(options.get("alt", ""))


def check_alternative(text: str, language: str) -> Iterator[str]:
    """What an alternative text lacks."""
    script, name = SCRIPTS[language]
    text = " ".join(text.split())
    letters = re.findall(r"[^\W\d_]", text)
    if not text:
        yield f"this figure has no alternative text: say in {name} what is seen, in a cell under mystnb: image: alt"
    elif re.fullmatch(r"\S+\.\w{2,4}", text):
        yield f"the alternative text {text!r} is the name of a file: say in {name} what is seen"
    elif len(re.findall(script, text)) < len(letters) / 2:
        yield f"the alternative text {text!r} is not {name}"
    elif len(text) < LEAST_LETTERS:
        yield f"the alternative text {text!r} is too short to say what is seen ({LEAST_LETTERS} characters at least)"


# --- what is drawn --------------------------------------------------------------------------------------------------


def check_drawing(
    drawing: Drawing, language: str, names: frozenset[str], grounds: dict[str, str], code: str
) -> Iterator[tuple[str, str]]:
    """Faults of a drawing: the words or the colour by which its line in the cell is found, and the message."""
    for text in drawing.texts:
        if not drawing_language(text.words, language, names):
            advice = "; names of code are known if they stand in `backticks` on the page" if language == "ru" else ""
            yield text.words, f"{text.words!r} in the figure is not {SCRIPTS[language][1]}{advice}"
        if text.box and not text.box.within(text.visible):
            yield text.words, f"{text.words!r} is clipped: it does not fit into the figure or its axes"
    for axis in drawing.axes:
        if axis.ticks and not axis.label and not re.search(rf"\.sup{axis.name[0]}label\(", code):
            yield "", f"the {axis.name} has no label: call set_{axis.name[0]}label"
    for paints in drawing.paints:
        for mode, ground in grounds.items():
            best = max(paints, key=lambda paint: contrast(over(paint, ground), ground) / _least(paint))
            ratio = contrast(over(best, ground), ground)
            if ratio < _least(best):
                shown = f"{best.colour} at an opacity of {best.opacity:g}" if best.opacity < 1 else best.colour
                advice = "leave words black, which" if best.letters else "take one of C0 to C4, or black, which"
                yield (
                    best.colour,
                    f"the colour {shown} has a contrast of {ratio:.1f} on the {mode} page, {ground}, and needs "
                    f"{_least(best):g}: {advice} follows the page",
                )
    for legend in drawing.legends:
        for (one, look), (two, other) in combinations(legend, 2):
            if look == other:
                yield two, f"{one!r} and {two!r} differ by colour alone: give them other dashes, markers or hatches"


def drawing_language(words: str, language: str, names: frozenset[str]) -> bool:
    """Whether words in a figure are in the page's language; formulas, abbreviations and names of code are in none."""
    words = re.sub(r"\$[^$]*\$", " ", words)
    if language == "en":
        return not re.search(SCRIPTS["ru"][0], words)
    common = [word for word in re.findall(r"\w+", words) if re.fullmatch(r"[A-Z]?[a-z]{2,}", word)]
    return all(word in names or word in FUNCTIONS for word in common)


def named(path: Path) -> frozenset[str]:
    """Words that stand in code between the lines of a page."""
    code = (token.content for _, token in leaves(path) if token.type in ("code_inline", "myst_role"))
    return frozenset(word for text in code for word in re.findall(r"[A-Za-z]+", text))


def _least(paint: Paint) -> float:
    return LETTERS if paint.letters else GRAPHICS


def over(paint: Paint, ground: str) -> str:
    """The colour that is seen when a paint lies on a ground."""
    pairs = zip(_channels(paint.colour), _channels(ground), strict=True)
    return "#" + "".join(f"{round(paint.opacity * top + (1 - paint.opacity) * below):02x}" for top, below in pairs)


def contrast(one: str, two: str) -> float:
    """The contrast of two colours by WCAG 2.1, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    shares = [value / 255 for value in _channels(colour)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _channels(colour: str) -> list[int]:
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    return [int(digits[place : place + 2], 16) for place in (0, 2, 4)]


def backgrounds(book: Book) -> dict[str, str]:
    """The background of the page in both modes, from the style sheets that the site loads, the last one winning."""
    sheets = [
        Path(folder)
        / "theme"
        / theme
        / "static"
        / "styles"
        / f"{theme.replace('_theme', '').replace('_', '-')}-theme.css"
        for theme in ("pydata_sphinx_theme", "sphinx_book_theme")
        for folder in (find_spec(theme).submodule_search_locations or ())
    ]
    css = "\n".join(sheet.read_text("utf8") for sheet in [*sheets, *sorted((book.source / "_static").glob("*.css"))])
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    found = {}
    for mode in ("light", "dark"):
        rule = rf'html\[data-theme="?{mode}"?\][^{{}}]*\{{[^{{}}]*--pst-color-background:\s*(#[0-9a-fA-F]{{3,6}})\b'
        values = re.findall(rule, css)
        if not values:
            raise LookupError(f"the style sheets {sheets} set no --pst-color-background for the {mode} mode")
        found[mode] = values[-1]
    return found


# --- lines ----------------------------------------------------------------------------------------------------------


def _line_of(cell: Item, words: str) -> int:
    """The line of a cell that holds some words, else its first."""
    lines = cell.text.splitlines()
    return cell.line + next((number for number, line in enumerate(lines) if words and words in line), 0)


def _line_of_option(path: Path, cell: Item) -> int:
    """The line with the alternative text of a cell, else the one that opens the cell."""
    lines = path.read_text("utf8").splitlines()
    start = max(number for number in range(cell.line - 1) if lines[number].startswith("```{code-cell}"))
    return 1 + next(
        (number for number in range(start, cell.line - 1) if lines[number].strip().startswith("alt:")), start
    )
