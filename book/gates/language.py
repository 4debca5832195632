"""Each page speaks its own language, and in the words of the glossary.

Refused are English words that nobody translated on a Russian page, Russian words on an English one, labels in cells
that are the same in both languages, letters of one alphabet inside a word of the other, words that ``avoid.csv`` lists,
and a glossary page that says something else than ``glossary.csv``.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeAlias

from pymorphy3 import MorphAnalyzer

from book.gates.prose import (
    GAP,
    QUOTED,
    Fragment,
    blank,
    cells,
    code_words,
    formulas,
    literals,
    parsed,
    prose,
    without_quotations,
    words_of,
)
from book.layout import Book, Problem

CYRILLIC = re.compile(r"[А-Яа-яЁё]+")
RUSSIAN_WORD = re.compile(r"[А-Яа-яЁё]+(?:-[А-Яа-яЁё]+)*")
LATIN_WORD = r"(?<![\w/.\\-])[A-Za-z][A-Za-z'’-]*(?![\w/\\])"
LATIN_RUN = re.compile(rf"{LATIN_WORD}(?:[ ,;:\n\u00a0]+{LATIN_WORD}){{2,}}")
PLAIN_WORD = re.compile(r"(?<![\w/.\\(-])[a-z]{3,}(?![\w/\\(-]|\.\w)")
"""A word of English rather than a name: small letters and nothing else."""
MIXED = re.compile(r"\w*(?:[A-Za-z][А-Яа-яЁё]|[А-Яа-яЁё][A-Za-z])\w*")
TEXT_IN_TEX = re.compile(r"\\(?:text\w*|mbox)\{([^{}]*)\}")

SHOWS = re.compile(
    r"print|display|rename_axis|to_frame|text|annotate|legend|title|suptitle|sup[xy]label|[xy]label"
    r"|set_(?:title|label|caption|[xyz]label|[xy]ticklabels)"
)
"""Functions whose strings a reader sees."""
NAMED_ELSEWHERE = "translate it, or if it is a name of code, explain it as `…` in the text"
SHOWN_ARGUMENTS = frozenset(["label", "title", "xlabel", "ylabel", "columns", "labels", "tick_labels"])
TABLES = frozenset(["DataFrame", "Series"])
PASSES_ON = TABLES | frozenset(["join", "format", "sorted", "list", "dict", "tuple", "append", "extend", "round"])
"""Functions that do not change what becomes of a string among their arguments."""


def check(book: Book) -> list[Problem]:
    """The languages of all pages."""
    english, russian = book.pages("en"), book.pages("ru")
    avoided = read_avoided(Path(__file__).with_name("avoid.csv"))
    names = frozenset(name for path in russian.values() for name in re.findall(r"`([^`\n]+)`", path.read_text("utf8")))
    problems = check_glossary(book)
    for path in english.values():
        try:
            problems += check_english(path)
        except ValueError as error:
            problems.append(Problem(path, 1, str(error)))
    for name, path in russian.items():
        try:
            problems += check_untranslated(path, english.get(name), names)
            problems += check_terms(path, avoided)
        except ValueError as error:
            problems.append(Problem(path, 1, str(error)))
    return problems


# --- scripts --------------------------------------------------------------------------------------------------------


def _own_words(part: Fragment) -> str:
    """A fragment without quotations and without the emphasis that marks a foreign term or a title."""
    text = without_quotations(part.text)
    for begin, end in part.emphasis:
        if text[:begin].strip() or text[end:].strip():
            text = text[:begin] + blank(text[begin:end], re.compile(r".+")) + text[end:]
    return text


def check_english(path: Path) -> list[Problem]:
    """Russian words on an English page."""
    advice = "translate it; a Russian term that is meant stands in (*…*) or in quotation marks"
    problems = []
    for part in [*prose(path), *code_words(path), *formulas(path)]:
        text = _own_words(part)
        if found := CYRILLIC.search(text):
            words = re.match(r"[^\n]{0,40}", text[found.start() :])[0].strip(GAP + " ")
            problems.append(
                Problem(path, part.line_at(found.start()), f"Russian on an English page, {words!r}: {advice}")
            )
    return problems


def check_untranslated(path: Path, twin: Path | None, names: frozenset[str]) -> list[Problem]:
    """English words on a Russian page; what is equal in the twin counts even if it is short.

    Args:
        path: the Russian page.
        twin: the same page in English.
        names: what Russian pages show as code.
    """
    problems = []
    advice = "translate it; a name of code stands in `…`, a quotation in «…», the title of a work in *…*"
    english = {part.text for part in prose(twin)} if twin else set()
    for part in prose(path):
        text = _own_words(part)
        for found in LATIN_RUN.finditer(text):
            if _is_english(found[0]):
                line = part.line_at(found.start())
                problems.append(Problem(path, line, f"not translated: {found[0][:60]!r}; {advice}"))
        short = not CYRILLIC.search(part.text) and not LATIN_RUN.search(text) and part.text in english
        if short and (found := PLAIN_WORD.search(text)):
            line = part.line_at(found.start())
            problems.append(Problem(path, line, f"not translated: this {part.kind} reads {part.text!r}; {advice}"))
    for part in [*prose(path), *code_words(path)]:
        for found in MIXED.finditer(part.text):
            if part.kind != "string" or not re.search(r"\d|_", found[0]):
                foreign = re.findall(r"[A-Za-z]", found[0])
                message = (
                    f"the word {found[0]!r} mixes two alphabets: {', '.join(foreign)} of it is Latin; type it anew"
                )
                problems.append(Problem(path, part.line_at(found.start()), message))
    if twin:
        problems += _same_formula_words(path, twin)
        problems += _same_labels(path, twin, names)
        problems += _same_comments(path, twin)
    return problems


def _same_formula_words(path: Path, twin: Path) -> Iterator[Problem]:
    known = {words for part in formulas(twin) for words in TEXT_IN_TEX.findall(part.text)}
    for part in formulas(path):
        for found in TEXT_IN_TEX.finditer(part.text):
            if found[1] in known and PLAIN_WORD.search(found[1]):
                message = f"not translated: \\text{{{found[1]}}} in a formula; names are set with \\mathrm"
                yield Problem(path, part.line_at(found.start()), message)


def _same_comments(path: Path, twin: Path) -> Iterator[Problem]:
    known = {part.text for part in code_words(twin) if part.kind == "comment"}
    for part in code_words(path):
        # A comment of one word, or with brackets, may be code.
        if part.kind == "comment" and part.text in known and LATIN_RUN.search(part.text):
            yield Problem(path, part.line, f"this comment is not translated: {part.text[:60]!r}")


def _same_labels(path: Path, twin: Path, names: frozenset[str]) -> Iterator[Problem]:
    """Strings of cells that a reader sees and that are the same in both languages."""
    for own, other in zip(cells(path), cells(twin), strict=False):
        known = {text for _, text in literals(other.text)}
        for node, text, shown in shown_strings(parsed(own.text)):
            words = [word for word in PLAIN_WORD.findall(text) if word not in names]
            enough = len(words) > (0 if shown and text.strip(" :.=") not in names else 1)
            same = text in known and not CYRILLIC.search(text) and enough
            half = shown and CYRILLIC.search(text) and any(map(_is_english, LATIN_RUN.findall(text)))
            if same or half:
                message = f"not translated: {text.strip()[:60]!r}{', the same as in English' * same}; {NAMED_ELSEWHERE}"
                yield Problem(path, own.line + node.lineno - 1, message)


def _is_english(run: str) -> bool:
    """Whether a run of Latin words is more than a name."""
    return len(PLAIN_WORD.findall(run)) >= 2


def shown_strings(tree: ast.Module) -> Iterator[tuple[ast.expr, str, bool]]:
    """Strings that a reader may see, each with whether that is sure; in other tables words and data look alike."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    shows = [argument for call in calls if _called(call) in ("display", "print") for argument in call.args]
    names = {node.id for argument in shows for node in ast.walk(argument) if isinstance(node, ast.Name)}
    return _shown(tree, names, shown=False, loose=True)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _shown(tree: ast.AST, names: set[str], shown: bool, loose: bool) -> Iterator[tuple[ast.expr, str, bool]]:
    """Strings below a node.

    Args:
        tree: the node.
        names: variables that are displayed somewhere in the cell.
        shown: whether it is an argument of a function that shows it.
        loose: whether it stands outside classes and functions, whose strings are mostly data.
    """
    if isinstance(tree, ast.expr) and (text := words_of(tree)) is not None:
        if shown:
            yield tree, text, True
        return
    if isinstance(tree, (ast.Raise, ast.Compare, ast.comprehension)):
        return
    if isinstance(tree, ast.Call):
        name = _called(tree)
        inside = SHOWS.fullmatch(name) is not None or (shown and name in PASSES_ON)
        parts = [(tree.func, shown and isinstance(tree.func, ast.Attribute))]
        parts += [(argument, inside) for argument in tree.args]
        for keyword in tree.keywords:
            # rename(columns={"data": "words"}): what is replaced is data.
            mapped = isinstance(keyword.value, ast.Dict) and name not in TABLES
            values = keyword.value.values if mapped else [keyword.value]
            parts += [(value, inside or keyword.arg in SHOWN_ARGUMENTS) for value in values]
    elif isinstance(tree, ast.Subscript):
        # {"a": x}[key]: the keys are data.
        values = tree.value.values if isinstance(tree.value, ast.Dict) else [tree.value]
        parts = [(value, shown) for value in values]
    elif isinstance(tree, ast.Assign):
        table = any(isinstance(node, ast.Call) and _called(node) in TABLES for node in ast.walk(tree.value))
        parts = [(tree.value, table and any(getattr(target, "id", "") in names for target in tree.targets))]
    else:
        parts = [(child, shown and isinstance(child, ast.expr)) for child in ast.iter_child_nodes(tree)]
    if loose and not shown and isinstance(tree, (ast.Dict, ast.List, ast.Tuple)):
        for part in tree.keys if isinstance(tree, ast.Dict) else tree.elts:
            if part is not None and (text := words_of(part)) is not None:
                yield part, text, False
    loose = loose and not isinstance(tree, (ast.ClassDef, ast.FunctionDef))
    for part, inside in parts:
        yield from _shown(part, names, inside, loose)


# --- terms ----------------------------------------------------------------------------------------------------------


@cache
def morphology() -> MorphAnalyzer:
    """The dictionary of Russian; it takes a third of a second to load."""
    return MorphAnalyzer(lang="ru")


@lru_cache(maxsize=65536)
def lemmas(word: str) -> frozenset[str]:
    """All dictionary forms that a word may have, with е for ё."""
    forms = {form.normal_form for form in morphology().parse(word)} | {word.lower()}
    return frozenset(form.replace("ё", "е") for form in forms)


Avoided: TypeAlias = dict[str, list[tuple[tuple[str, ...], str, str]]]
"""What is not said, word by word (a lemma, or a stem with ``*``), what is said instead, and why; the keys are the first
three letters, which tell most words apart."""


def read_rows(path: Path) -> list[dict[str, str]]:
    """A table with a head."""
    with path.open(encoding="utf8", newline="") as file:
        return list(csv.DictReader(file))


def read_avoided(path: Path) -> Avoided:
    """The table of words that the book does not use: ``wrong,right,reason``."""
    avoided: Avoided = {}
    for row in read_rows(path):
        wrong = tuple(row["wrong"].lower().replace("ё", "е").split())
        avoided.setdefault(wrong[0][:3], []).append((wrong, row["right"], row["reason"]))
    return avoided


def check_terms(path: Path, avoided: Avoided) -> list[Problem]:
    """Words of ``avoid.csv``; a single word in «…» is spoken of, not used."""
    problems = []
    for part in [*prose(path), *code_words(path)]:
        text = QUOTED.sub(lambda found: found[0] if " " in found[0] else GAP * len(found[0]), part.text)
        for position, phrase, right, reason in avoided_words(text, avoided):
            message = f"«{phrase}»: this book says «{right}» ({reason}; see book/gates/avoid.csv)"
            problems.append(Problem(path, part.line_at(position), message))
    return problems


def avoided_words(text: str, avoided: Avoided) -> Iterator[tuple[int, str, str, str]]:
    """Words of a text that the table refuses: where, what, what to say instead, why."""
    words = list(RUSSIAN_WORD.finditer(text))
    free = 0
    for number, word in enumerate(words):
        if number < free:
            continue  # it belongs to a phrase that was found
        for wrong, right, reason in avoided.get(word[0].lower().replace("ё", "е")[:3], ()):
            said = words[number : number + len(wrong)]
            if len(said) == len(wrong) and all(map(_is, wrong, (found[0] for found in said))):
                yield word.start(), text[word.start() : said[-1].end()], right, reason
                free = number + len(wrong)
                break


def _is(pattern: str, word: str) -> bool:
    word = word.lower().replace("ё", "е")
    if pattern.endswith("*"):
        return word.startswith(pattern[:-1])
    return pattern in lemmas(word)


def check_glossary(book: Book) -> list[Problem]:
    """The glossary pages hold each row of ``glossary.csv``, with the other language's term behind it."""
    table = book.source / "glossary.csv"
    if not table.is_file():
        return []
    problems = []
    for own, other in (("en", "ru"), ("ru", "en")):
        path = book.pages(own).get("glossary")
        said = _translations(path) if path else {}
        for number, row in enumerate(read_rows(table), 2):
            line, translation = said.get(row[own], (0, ""))
            if path and not line:
                problems.append(Problem(table, number, f"{book.shown(path)} does not explain {row[own]!r}"))
            elif path and translation != row[other]:
                message = f"{row[own]!r} is {row[other]!r} in {book.shown(table)}:{number}, here (*{translation}*)"
                problems.append(Problem(path, line, message))
    return problems


def _translations(path: Path) -> dict[str, tuple[int, str]]:
    """The terms of a glossary page: line, and what stands in ``(*…*)`` at the start of the explanation."""
    said: dict[str, tuple[int, str]] = {}
    waiting: list[Fragment] = []
    for part in prose(path):
        if part.kind == "term":
            waiting.append(part)
        elif part.kind == "definition":
            begin, end = part.emphasis[0] if part.emphasis else (0, 0)
            said |= {term.text: (part.line, part.text[begin:end]) for term in waiting}
            waiting = []
    return said
