"""The references: whole, well-formed, each cited in both languages, and no citation without one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from pybtex.database import BibliographyData, Entry, parse_string
from pybtex.exceptions import PybtexError

from book.gates.tokens import leaves
from book.layout import LANGUAGES, Book, Problem

VENUES = {
    "article": ("journal",),
    "book": ("publisher",),
    "incollection": ("booktitle",),
    "inproceedings": ("booktitle",),
    "mastersthesis": ("school",),
    "misc": ("howpublished", "publisher", "url"),
    "online": ("howpublished", "publisher", "url"),
    "phdthesis": ("school",),
    "techreport": ("institution",),
    "unpublished": ("note",),
}
"""Where each type of entry says where it appeared."""

WHY_NOT = "noidentifier"
"""The field that says why an entry has no identifier; it is not printed."""

DOI = re.compile(r"10\.\d{4,9}/[-._;()/:<>A-Za-z0-9]+")
ARXIV = re.compile(r"(?:(\d{2})(\d{2})\.(\d{4,5})|[a-z-]+(?:\.[A-Z]{2})?/(\d{2})(\d{2})\d{3})(?:v[1-9]\d*)?")


class Identifier(NamedTuple):
    """One identifier of an entry, as it is written."""

    kind: str
    value: str
    field: str


def check(book: Book) -> list[Problem]:
    """The bibliography and the citations of all pages."""
    path = book.source / "references.bib"
    text = path.read_text("utf8")
    try:
        entries = parse_string(_without_repetitions(text), "bibtex")
    except PybtexError as error:
        line = re.search(r"line (\d+)", str(error))
        return [Problem(path, int(line[1]) if line else 1, f"not BibTeX: {error}")]
    problems = [Problem(path, line, f"the key {key!r} stands here again") for key, line in _repeated(text)]
    problems += [Problem(path, line, message) for line, message in check_entries(text, entries)]
    return problems + check_citations(book, path, text, entries)


# --- entries --------------------------------------------------------------------------------------------------------


def check_entries(text: str, entries: BibliographyData) -> Iterator[tuple[int, str]]:
    """Line and message of each fault within the bibliography."""
    seen: dict[tuple[str, str], str] = {}
    for key, entry in entries.entries.items():
        for name in missing(entry):
            yield line_of(text, key), f"{key} has no {name}"
        found = list(identifiers(entry))
        for item in found:
            if fault := malformed(item):
                yield line_of(text, key, item.field), f"{key}: {fault}"
        if not found and not entry.fields.get(WHY_NOT, "").strip():
            yield (
                line_of(text, key),
                f"{key} has no identifier: look up its doi, eprint (of arXiv), isbn or url, "
                f"or say in the field {WHY_NOT} why there is none",
            )
        marks = [(item.kind, normal(item), item.field) for item in found if item.kind != "url"]
        marks.append(("title", _letters(entry.fields.get("title", "")), "title"))
        for kind, value, field in dict.fromkeys(marks):
            if value and seen.setdefault((kind, value), key) != key:
                yield line_of(text, key, field), f"{key} has the {kind} of {seen[kind, value]}: keep one of the two"


def missing(entry: Entry) -> Iterator[str]:
    """What every reference needs and this one lacks."""
    if not entry.persons.get("author") and not entry.persons.get("editor"):
        yield "author"
    for name in ("title", "year"):
        if not entry.fields.get(name, "").strip():
            yield name
    if not re.fullmatch(r"(1[5-9]|20)\d\d|", entry.fields.get("year", "").strip()):
        yield f"year of four digits, but {entry.fields['year']!r}"
    venues = VENUES.get(entry.type)
    if venues is None:
        yield f"known type: @{entry.type} is none of {', '.join('@' + name for name in VENUES)}"
    elif not any(entry.fields.get(name, "").strip() for name in venues):
        yield f"venue: @{entry.type} says it in {' or '.join(venues)}"


def identifiers(entry: Entry) -> Iterator[Identifier]:
    """Identifiers of an entry: of their own fields, and ``arXiv:...`` or an address within others."""
    kinds = {"doi": "DOI", "isbn": "ISBN", "url": "url"}
    for field, value in entry.fields.items():
        field, value = field.lower(), value.strip()
        if field in kinds:
            yield Identifier(kinds[field], value, field)
        elif field == "eprint" and entry.fields.get("archiveprefix", "arXiv").lower() == "arxiv":
            yield Identifier("arXiv id", value, field)
        elif field in ("note", "journal", "howpublished"):
            for found in re.findall(r"\barXiv:\s*([^\s,;\]})]+)", value, flags=re.I):
                yield Identifier("arXiv id", found.rstrip("."), field)
            for found in re.findall(r"\\url\{([^}]*)\}", value):
                yield Identifier("url", found, field)


def malformed(item: Identifier) -> str:
    """What is wrong with an identifier; empty if nothing is."""
    value = item.value
    if item.kind == "DOI" and not DOI.fullmatch(value):
        return f"{value!r} is no DOI: write it as 10.1000/182, without https://doi.org/"
    if item.kind == "url" and not re.fullmatch(r"https://[\w.-]+\.\w+(/\S*)?", value):
        return f"{value!r} is no https address"
    if item.kind == "arXiv id":
        found = ARXIV.fullmatch(value)
        year, month = (found[1] or found[4], found[2] or found[5]) if found else ("", "")
        # Since January 2015 the number has five digits.
        short = bool(found and found[3]) and (len(found[3]) == 4) != (int(year + month) < 1501)
        if not found or not 1 <= int(month) <= 12 or short:
            return f"{value!r} is no arXiv id: write it as 2407.17032, or cs/9901001 before April 2007"
    if item.kind == "ISBN" and not isbn(value):
        return f"{value!r} is no ISBN: its check digit does not fit; look it up again"
    return ""


def isbn(value: str) -> bool:
    """Whether the check digit of an ISBN of 10 or 13 digits fits."""
    digits = re.sub(r"[- ]", "", value)
    if re.fullmatch(r"\d{9}[\dXx]", digits):
        numbers = [10 if digit in "Xx" else int(digit) for digit in digits]
        return sum(weight * number for weight, number in zip(range(10, 0, -1), numbers, strict=True)) % 11 == 0
    if re.fullmatch(r"97[89]\d{10}", digits):
        return sum((3 if place % 2 else 1) * int(digit) for place, digit in enumerate(digits)) % 10 == 0
    return False


def normal(item: Identifier) -> str:
    """An identifier without case, hyphens and the version of a preprint."""
    value = item.value.lower()
    if item.kind == "ISBN":
        return re.sub(r"[- ]", "", value)
    return re.sub(r"v\d+$", "", value) if item.kind == "arXiv id" else value


def _letters(title: str) -> str:
    """A title without braces, accents, case, spaces and punctuation."""
    plain = unicodedata.normalize("NFKD", re.sub(r"\\[a-z]+\b|\\.", "", title))
    return "".join(re.findall(r"[^\W_]", plain)).lower()


# --- citations ------------------------------------------------------------------------------------------------------


def check_citations(book: Book, path: Path, text: str, entries: BibliographyData) -> list[Problem]:
    """Every citation has its entry, and every entry its citation, in each language."""
    problems = []
    keys = list(entries.entries)  # the mapping itself does not look at the case
    known = {key.lower(): key for key in keys}
    for language in LANGUAGES:
        cited = set()
        for page in book.pages(language).values():
            for line, key in citations(page):
                cited.add(key)
                if key not in keys:
                    other = known.get(key.lower())
                    advice = f"did you mean {other!r}?" if other else f"add it to {book.shown(path)}, or mend the key"
                    problems.append(Problem(page, line, f"there is no reference {key!r}: {advice}"))
        for key in keys:
            if key not in cited:
                folder = book.shown(book.source / language)
                problems.append(
                    Problem(path, line_of(text, key), f"{key} is cited nowhere in {folder}: cite it, or remove it")
                )
    return problems


def citations(page: Path) -> Iterator[tuple[int, str]]:
    """Keys that a page cites, with their lines."""
    for line, token in leaves(page):
        if token.type == "myst_role" and token.meta.get("name", "").startswith("cite"):
            for key in token.content.split(","):
                yield line, key.strip()


# --- lines ----------------------------------------------------------------------------------------------------------


def _begins(text: str) -> Iterator[tuple[str, int]]:
    """Keys with the places at which their entries begin."""
    for found in re.finditer(r"^[ \t]*@(?!comment|string|preamble)\w+\s*[{(]\s*([^\s,]+)\s*,", text, flags=re.M | re.I):
        yield found[1], found.start()


def line_of(text: str, key: str, field: str = "") -> int:
    """The line of an entry, or of one of its fields."""
    places = [*_begins(text), ("", len(text))]
    for (name, begin), (_, end) in pairwise(places):
        if name == key:
            found = re.search(rf"[\s,{{]({field})\s*=", text[begin:end], flags=re.I) if field else None
            return 1 + text.count("\n", 0, begin + (found.start(1) if found else 0))
    return 1


def _repeated(text: str) -> Iterator[tuple[str, int]]:
    seen = set()
    for key, begin in _begins(text):
        if key.lower() in seen:
            yield key, 1 + text.count("\n", 0, begin)
        seen.add(key.lower())


def _without_repetitions(text: str) -> str:
    """The bibliography without entries whose key has been there, at which pybtex stops; the lines stay."""
    seen: set[str] = set()
    places = [*_begins(text), ("", len(text))]
    whole = text[: places[0][1]]
    for (key, begin), (_, end) in pairwise(places):
        part = text[begin:end]
        whole += "\n" * part.count("\n") if key.lower() in seen else part
        seen.add(key.lower())
    return whole
