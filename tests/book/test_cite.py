"""How a page is cited: what Zotero and Google Scholar read, what BibTeX reads, what people copy."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from pybtex.database import parse_string

from book.build import version
from book.layout import LANGUAGES, Book
from tests.book.conftest import ROOT
from tests.book.test_site import Tags, html

AUTHOR = {"en": "The keydoor authors", "ru": "Авторы keydoor"}
BOOK = {
    "en": "Reinforcement Learning for Agents That Act Through Tools",
    "ru": "Обучение с подкреплением для агентов, действующих через инструменты",
}
SECOND = {"en": "The second page", "ru": "Вторая страница"}


class Box(HTMLParser):
    """The text of each `pre` in the citation box, as a browser has it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.inside = ""
        self.copied: list[str] = []
        self.feed(path.read_text("utf8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "details" and ("class", "citation") in attrs:
            self.inside = "details"
        elif tag == "pre" and self.inside:
            self.inside = "pre"
            self.copied.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = {"details": "", "pre": "details"}.get(tag, self.inside) if self.inside else ""

    def handle_data(self, data: str) -> None:
        if self.inside == "pre":
            self.copied[-1] += data


def metadata(path: Path) -> dict[str, list[str]]:
    """Names and contents of the tags `citation_*` in the head, as Zotero's "Embedded Metadata" collects them."""
    found: dict[str, list[str]] = {}
    for tag in Tags(path).all("meta"):
        if (name := tag.get("name") or "").startswith("citation_"):
            found.setdefault(name, []).append(tag["content"] or "")
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_tags_of_a_page(site: Book, language: str) -> None:
    """A part of a book, in Zotero's eyes by `citation_book_title`; the address is not known and not invented."""
    assert metadata(html(site, language, "second")) == {
        "citation_title": [SECOND[language]],
        "citation_author": [AUTHOR[language]],
        "citation_publication_date": ["2026"],
        "citation_language": [language],
        "citation_inbook_title": [BOOK[language]],
        "citation_book_title": [BOOK[language]],
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_page_stands_for_the_book(site: Book, language: str) -> None:
    found = metadata(html(site, language, "index"))
    assert found["citation_title"] == [BOOK[language]]
    assert not {"citation_inbook_title", "citation_book_title"} & found.keys()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", ["index", "second"])
def test_the_box_of_a_page(site: Book, language: str, page: str) -> None:
    """The text and an entry that BibTeX reads, with the version and the date; the two say the same."""
    text, bibtex = Box(html(site, language, page)).copied
    entries = parse_string(bibtex, "bibtex").entries
    (entry,) = entries.values()
    assert entry.type == {"index": "book", "second": "incollection"}[page]
    title = BOOK[language] if page == "index" else SECOND[language]
    assert entry.fields["title"] == title
    assert [str(person) for person in entry.persons["author"]] == [f"{{{AUTHOR[language]}}}"]
    assert entry.fields["year"] == "2026"
    assert entry.fields["note"].endswith(f" {version(site)}")
    assert entry.fields["langid"] == {"en": "english", "ru": "russian"}[language]
    assert not {"url", "chapter"} & set(entry.fields)
    for part in (AUTHOR[language], title, BOOK[language], version(site), "2026"):
        assert part in text
    assert not re.search(r"\.\.|\{|None", text)


def test_generated_pages_have_no_citation(site: Book) -> None:
    for page in ("search", "genindex"):
        assert metadata(html(site, "en", page)) == {}
        assert Box(html(site, "en", page)).copied == []


def test_keys_differ(site: Book) -> None:
    """So that a bibliography can hold several pages, in both languages."""
    keys = set()
    for language in LANGUAGES:
        for page in ("index", "second"):
            keys |= set(parse_string(Box(html(site, language, page)).copied[1], "bibtex").entries)
    assert keys == {"keydoor2026", "keydoor2026-second", "keydoor2026-ru", "keydoor2026-second-ru"}


PEOPLE = """
authors:
  - family-names: Неймар
    given-names: Ада
  - family-names: Beethoven
    name-particle: van
    given-names: Lou
date-released: 2027-03-09
"""


def test_people_dates_and_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is still empty in this book: names of people, a day, an address; and what TeX takes for itself."""
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    citing = import_module("citing")
    path = tmp_path / "CITATION.cff"
    path.write_text(PEOPLE, "utf8")
    data = citing.read_citation(path)
    cited = {
        language: citing.citation(
            language,
            "part/one",
            "4. Is R_t 50% & {more}?",
            data,
            version="2.1.0",
            book="A book",
            url=f"https://example.org/{language}/part/one.html",
        )
        for language in LANGUAGES
    }
    assert cited["en"]["text"] == (
        "Неймар, Ада, van Beethoven, Lou. Is R_t 50% & {more}? In: A book. Version 2.1.0. 2027. "
        "https://example.org/en/part/one.html"
    )
    assert cited["ru"]["text"] == (
        "Неймар, Ада, van Beethoven, Lou. Is R_t 50% & {more}? // A book. Версия 2.1.0. 2027. "
        "URL: https://example.org/ru/part/one.html"
    )
    (key, entry), *rest = parse_string(cited["en"]["bibtex"], "bibtex").entries.items()
    assert (key, rest) == ("keydoor2027-part-one", [])
    assert entry.fields["title"] == r"Is R\_t 50\% \& \{more\}?"
    assert entry.fields["chapter"] == "4"
    assert [person.last_names for person in entry.persons["author"]] == [["Неймар"], ["Beethoven"]]
    assert (entry.fields["year"], entry.fields["month"]) == ("2027", "3")
    assert entry.fields["url"] == "https://example.org/en/part/one.html"
    tags = cited["ru"]["tags"]
    assert [content for name, content in tags if name == "citation_author"] == ["Неймар, Ада", "van Beethoven, Lou"]
    assert ("citation_publication_date", "2027/03/09") in tags
    assert ("citation_public_url", "https://example.org/ru/part/one.html") in tags


def test_the_version_is_the_same_everywhere() -> None:
    """`CITATION.cff` repeats the version of `pyproject.toml` for those who read that file alone."""
    data = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    wanted = version(Book(ROOT, ROOT / "_build"))
    assert data["version"] == data["preferred-citation"]["version"] == wanted
