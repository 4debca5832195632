"""How the words of a page are set: quotation marks, dashes, numbers, spaces, and in Russian the letter ё.

A rule is a pattern of what is wrong. Code, formulas and addresses have been taken out before (see ``prose``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from book.gates.language import RUSSIAN_WORD, morphology
from book.gates.prose import GAP, Fragment, code_words, formulas, prose
from book.layout import LANGUAGES, Book, Problem

NBSP = "\u00a0"
NO_BREAK = "a no-break space (U+00A0)"
UNITS = (
    r"(?:[КМГ]?Б|мс|с|байт|минут[аы]?|секунд[аы]?|час(?:а|ов)?|дн(?:я|ей)|недел[ьи]|раза?|шаг(?:а|ов)?|ход(?:а|ов)?"
    r"|токен(?:а|ов)?|эпизод(?:а|ов)?|роллаут(?:а|ов)?|зёрен|зерна|задани[яй]|обновлени[яй]|страниц[ыа]?|строк[аи]?"
    r"|(?:мега|гига|кило)байта?|ядер|ядра|процент(?:а|ов)?)\b"
)
"""What is counted, in the forms that stand after a number."""


@dataclass(frozen=True)
class Rule:
    """What is wrong, what to do, and in which languages."""

    wrong: re.Pattern[str]
    advice: str
    languages: tuple[str, ...] = LANGUAGES


def _rule(wrong: str, advice: str, *languages: str) -> Rule:
    return Rule(re.compile(wrong), advice, languages or LANGUAGES)


RULES = (
    # Spaces
    _rule(rf"(?<=\S)[ {NBSP}]{{2,}}(?=\S)", "two spaces in a row; leave one"),
    _rule(rf"(?<=\S)[ {NBSP}][,;:!?.](?=\s|$)", "no space before a punctuation mark"),
    _rule(rf"\([ {NBSP}]|«[ {NBSP}]|[ {NBSP}]\)|[ {NBSP}]»", "no space inside brackets and «…»"),
    _rule(r"(?<=\d)\s%", "no space between number and %", "en"),
    _rule(rf"(?<=[\d{GAP}]) ?%", f"put {NO_BREAK} between number and %", "ru"),
    _rule(rf"(?<=\d) (?={UNITS})", f"put {NO_BREAK} between the number and what it counts", "ru"),
    _rule(r"[№§](?=[ \n]?\d)", f"put {NO_BREAK} between the sign and its number", "ru"),
    _rule(r"\b[Тт]\.[ \n]?[едпкно]\.", f"«т. е.», «т. д.» and the like have {NO_BREAK} inside", "ru"),
    _rule(rf"\bи[ \n]т\.{NBSP}?[дп]\.", f"put {NO_BREAK} after «и» too", "ru"),
    # Dashes
    _rule(r"(?<=\S)[ \n]—", f"put {NO_BREAK} before the dash", "ru"),
    _rule(rf"(?<=[^\s({NBSP}])—|—(?=[\w{GAP}«])", f"a dash has {NO_BREAK} before it and a space after it", "ru"),
    _rule(r"\s–\s", "– is for ranges; the dash is —", "ru"),
    _rule(r"(?<=\S)\s--?-?(?=\s)|(?<=\w)---?(?=\w)", "a hyphen is no dash; the dash is —"),
    _rule(
        r"(?<![\w.,/-])(?<![A-Z] )\d+(?:[.,]\d+)?-\d+(?:[.,]\d+)?(?![\w-]|[.,]\d)",
        "a range of numbers has an en dash: 3–5",
    ),
    _rule(r"(?<=[\s(])-(?=\d)", "a negative number has a minus sign: −1, or $-1$"),
    # Marks
    _rule(r"[\"“”]", "quotation marks are «…», inside them „…“", "ru"),
    _rule(r"'|(?<!\w)[‘’]|[‘’](?!\w)", "no apostrophe in Russian; quotation marks are «…»", "ru"),
    _rule(r"«[^«»]*«", "quotation marks inside «…» are „…“", "ru"),
    _rule(r"[“”„‘’]|«(?![А-Яа-яЁё])", "the English pages have straight \" and ' (the site makes them round)", "en"),
    _rule(r"\.{3}", "the ellipsis is one character: …"),
    # Numbers
    _rule(r"(?<![\w.,])\d{1,3}(?:,\d{1,2}(?!\d)|,\d{4,})(?!,\d)", "English numbers have a decimal point", "en"),
    _rule(r"(?<![\w.,])\d+\.\d+(?!\w|\.\d)", "Russian numbers have a decimal comma (a version: name it first)", "ru"),
)

IN_FORMULAS = (
    _rule(r"(?<![\w.])\d+\.\d+(?![\d.]|\s*(?:em|ex|pt|mu|cm))", "Russian decimal comma, in TeX: 0{,}5", "ru"),
    _rule(r"\d\{,\}(?!\d{3}(?!\d))\d", "English numbers have a decimal point", "en"),
)

INNER = re.compile(r"„[^„“”]*“")
NAMED = re.compile(
    rf"(?:[A-Za-z][\w.+-]*|{GAP}|»|(?:верси|выпуск|глав|раздел|пункт|теорем|предложени|уравнени|формул|лицензи)\w*"
    rf"|\b(?:рис|табл|с|п|гл)\.|№|§)[\s{NBSP}<>=≥≤]*(?:\d+(?:\.\d+)+[\s{NBSP},;–]*(?:(?:и|или|до|от)[\s{NBSP}]+)?)*$"
)
"""What stands before the number of a version or of a section: a name, and perhaps other numbers of the kind."""


def check(book: Book) -> list[Problem]:
    """The typography of all pages."""
    problems: list[Problem] = []
    for language in LANGUAGES:
        for path in book.pages(language).values():
            try:
                problems += check_page(path, language)
            except ValueError as error:
                problems.append(Problem(path, 1, str(error)))
    return problems


def check_page(path: Path, language: str) -> Iterator[Problem]:
    """One page."""
    for part in prose(path):
        yield from _broken(path, part, language, RULES)
    for part in formulas(path):
        yield from _broken(path, part, language, IN_FORMULAS)
    if language == "ru":
        for part in prose(path):
            if part.text.count("«") != part.text.count("»"):
                message = f"a quotation mark without its pair; {_shown(part.text, part.text.find('«'))}"
                yield Problem(path, part.line_at(max(part.text.find("«"), 0)), message)
        for part in [*prose(path), *code_words(path)]:
            yield from _without_yo(path, part)


def _broken(path: Path, part: Fragment, language: str, rules: tuple[Rule, ...]) -> Iterator[Problem]:
    # A quotation inside a quotation closes with the mark that elsewhere is wrong.
    text = INNER.sub(lambda found: found[0].replace("“", "*"), part.text) if language == "ru" else part.text
    for rule in rules:
        lines = set()  # one message for the two marks of a quotation
        for found in rule.wrong.finditer(text) if language in rule.languages else ():
            line = part.line_at(found.start())
            version = "decimal comma (" in rule.advice and NAMED.search(text[: found.start()])
            if line not in lines and not version:
                lines.add(line)
                yield Problem(path, line, f"{rule.advice}; {_shown(part.text, found.start())}")


def _shown(text: str, position: int) -> str:
    """The words around a place, so that an author finds it in a long line."""
    words = text[max(0, position - 20) : position + 20].replace(GAP, "…").replace(NBSP, " ")
    return f"here: {' '.join(words.split())!r}"


# --- ё --------------------------------------------------------------------------------------------------------------


@cache
def _substitution() -> Any:
    return morphology().dictionary.words.compile_replaces({"е": "ё"})


@cache
def with_yo(word: str) -> str:
    """A word with ё if the dictionary has it only so, else an empty string: «еще» is «ещё», but «все» may be right."""
    words = morphology().dictionary.words
    forms = words.similar_keys(word, _substitution()) if "е" in word and word not in words else []
    return next((form for form in forms if form != word), "")


def _without_yo(path: Path, part: Fragment) -> Iterator[Problem]:
    for found in RUSSIAN_WORD.finditer(part.text):
        for word in found[0].split("-"):
            if right := with_yo(word.lower()):
                yield Problem(path, part.line_at(found.start()), f"«{word}» is written with ё: «{right}»")
