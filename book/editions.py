"""The book to take along: what its PDF (``book/pdf.py``) and its EPUB (``book/epub.py``) share.

Both are made from the pages of the built site, so that references, numbers from cells, figures and the index of
identities are those that readers see. How the site offers them is in ``book/offer.py``.
"""

from __future__ import annotations

import argparse
import html
import os
import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

from book import assemble, offer
from book.addresses import addresses
from book.build import build, step
from book.build import version as version_of
from book.layout import LANGUAGES, Book

sys.path.insert(0, str(Path(__file__).with_name("_ext")))  # where Sphinx finds them too
from book_words import WORDS
from citing import read_citation

STYLE = Path(__file__).with_name("edition.css")
ASIDE = re.compile(r"<(svg|pre|mjx-container)\b.*?</\1>", re.S)
MATHML = re.compile(r"<mjx-assistive-mml[^>]*>(.*?)</mjx-assistive-mml>", re.S)
"""The MathML of a formula, inside what MathJax draws of it."""
PLACEHOLDER = re.compile(r'<svg data-number="(\d+)"></svg>')
NOT_TAKEN = (
    "a.headerlink, a:has(> .viewcode-link), script, button, form, input, template, .toctree-wrapper, .d-print-none"
)
"""What belongs to the screen and not to a file or to paper."""


@dataclass
class Chapter:
    """One page of the book, without the frame of the site.

    ``body`` is a tree that may be changed. Figures, formulas and code are kept aside in ``pieces`` as text: a parser of
    HTML would change the first two and take long for the third.
    """

    name: str
    part: str
    title: str
    body: Tag
    pieces: list[str]

    def text(self) -> str:
        """The body as HTML that is well-formed XML too, with all its pieces."""
        return PLACEHOLDER.sub(lambda found: self.pieces[int(found[1])], str(self.body))

    def places(self) -> set[str]:
        """Identifiers of all places of the chapter."""
        return {str(element["id"]) for element in [self.body, *self.body.find_all(id=True)] if element.get("id")}

    def sections(self) -> Iterator[tuple[str, str]]:
        """Identifiers and titles of the sections."""
        for heading in self.body.select("h2"):
            parent = heading.parent
            if parent is not None and parent.name == "section" and parent.get("id"):
                yield str(parent["id"]), words(heading, self.pieces)


# --- reading the pages ----------------------------------------------------------------------------------------------


def parts(book: Book, language: str) -> Iterator[tuple[str, str]]:
    """Names of all pages in the order of the table of contents, each with the title of its part."""
    toc = yaml.safe_load((book.root / "_toc.yml").read_text("utf8"))
    captions = WORDS[language]["captions"]
    yield toc["root"], ""
    for part in toc.get("parts", []):
        for chapter in part["chapters"]:
            yield chapter["file"], captions.get(part.get("caption"), part.get("caption") or "")
    for chapter in toc.get("chapters", []):
        yield chapter["file"], ""


def read_chapter(path: Path, name: str, part: str) -> Chapter:
    """A page of the site as a chapter of an edition.

    Raises:
        ValueError: if the page has no article with a title.
    """
    found = re.search(r'<article class="bd-article">(.*?)</article>', path.read_text("utf8"), flags=re.S)
    if not found:
        raise ValueError(f"{path}: no article in this page")
    pieces: list[str] = []

    def aside(piece: re.Match[str]) -> str:
        pieces.append(piece[0])
        return f'<svg data-number="{len(pieces) - 1}"></svg>'

    soup = BeautifulSoup(ASIDE.sub(aside, found[1]), "html.parser")
    for unwanted in soup.select(NOT_TAKEN):
        unwanted.decompose()
    if soup.select_one("style"):
        raise ValueError(f"{path}: a style sheet in the text; it belongs into book.css and edition.css")
    for element in soup.select("noscript"):
        element.unwrap()  # neither file nor paper runs scripts
    for details in soup.select("details"):
        details["open"] = ""
    for element in soup.select("[border], [valign], [align], [target], [tabindex]"):
        for attribute in ("border", "valign", "align", "target", "tabindex"):
            element.attrs.pop(attribute, None)
    for link in soup.select("a[title]"):
        del link["title"]
    body, heading = soup.find("section"), soup.find("h1")
    if not isinstance(body, Tag) or not isinstance(heading, Tag):
        raise ValueError(f"{path}: no title in this page")
    return Chapter(name, part, words(heading, pieces), body, pieces)


def read_chapters(book: Book, language: str) -> list[Chapter]:
    """The whole book in one language, in order."""
    folder = book.output / "html" / language
    return [read_chapter(folder / f"{name}.html", name, part) for name, part in parts(book, language)]


def relink(chapters: list[Chapter], address: str, internal: Callable[[str, str, str], str]) -> None:
    """Let links between pages lead to the same places inside an edition.

    Args:
        chapters: all of them.
        address: of this language's folder on the web; a page that is no chapter, such as a listing, is linked there.
            Empty while the site has none: then only the words of such a link stay.
        internal: makes a link of the name of the chapter that it stands in, the name of the one that it leads to, and
            the identifier of a place there, which may be empty.

    Raises:
        ValueError: if a link leads to a place that is not there.
    """
    known = {chapter.name: chapter.places() for chapter in chapters}
    for chapter in chapters:
        for link in chapter.body.select("a[href]"):
            parts = urlsplit(str(link["href"]))
            if parts.scheme or parts.netloc:
                continue
            folder = posixpath.dirname(chapter.name)
            page = posixpath.normpath(posixpath.join(folder, unquote(parts.path))) if parts.path else chapter.name
            name, place = page.removesuffix(".html"), unquote(parts.fragment)
            if name not in known:
                if address:
                    link["href"] = f"{address}{page}{f'#{parts.fragment}' if place else ''}"
                else:
                    link.unwrap()
            elif place and place not in known[name]:
                raise ValueError(f"{chapter.name}: the link to {link['href']} leads nowhere")
            else:
                link["href"] = internal(chapter.name, name, place)


@dataclass(frozen=True)
class Front:
    """What the title page says."""

    language: str
    title: str
    authors: str
    date: str
    version: str
    licence: str
    address: str


def front(book: Book, language: str, version: str) -> Front:
    """The title page, from ``CITATION.cff`` and the words of the site."""
    words = WORDS[language]
    data = read_citation(book.root / "CITATION.cff")
    names = [
        words["author"] if (f, g) == (WORDS["en"]["author"], "") else f"{g} {f}".strip() for f, g in data["authors"]
    ]
    address, _ = addresses(book)
    licence = f"{words['colophon']} {version}."
    return Front(language, words["title"], ", ".join(names), data["date"], version, licence, address)


def light_code(site: Path) -> str:
    """The colours of code on a light ground, from the style sheet of the site."""
    code = (site / "_static" / "pygments.css").read_text("utf8")
    return "".join(f"{rule}\n" for rule in re.findall(r'^html\[data-theme="light"\] (.*)$', code, flags=re.M))


def words(heading: Tag, pieces: list[str]) -> str:
    """The text of a title, with the letters of its formulas."""

    def letters(found: re.Match[str]) -> str:
        formula = MATHML.search(pieces[int(found[1])])
        return formula[1] if formula else ""

    text = re.sub(r"<[^>]*>", "", PLACEHOLDER.sub(letters, str(heading)))
    return " ".join(html.unescape(text).split())


# --- the command -----------------------------------------------------------------------------------------------------


def make(kind: str, edition: Callable[[Book, str, str], bytes], arguments: list[str] | None = None) -> None:
    """Command line of both kinds: make the edition of each language from the built site, and let the site offer it."""
    parser = argparse.ArgumentParser(prog=f"python -m book.{kind}", description=f"Make the {kind.upper()} of the book.")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="folder with _config.yml (default: here)")
    parser.add_argument("--language", choices=LANGUAGES, help="only this language")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    if not (root / "_config.yml").is_file():
        raise SystemExit(f"no _config.yml in {root}: run this in the folder of the book, or give --root.")
    os.environ.setdefault("RL_LLM_PROFILE", "full")  # as the build does
    book = Book(root, root / "_build")
    if not assemble.site_is_fresh(book):
        build(book)
    version = version_of(book)
    for language in (options.language,) if options.language else LANGUAGES:
        with step(f"making the {kind.upper()}, {WORDS[language]['title']}"):
            path = offer.write(book, version, language, kind, edition(book, language, version))
        print(f"  {book.shown(path)}, {path.stat().st_size / 1e6:.1f} MB")
    offer.offer(book, book.output / "html", version, offer.site_key(book))


def escaped(text: str) -> str:
    """Text for HTML and XML."""
    return html.escape(text, quote=True)
