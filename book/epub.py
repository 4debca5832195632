"""The book as an EPUB for each language: ``python -m book.epub``, after ``make book``.

Its chapters are the pages of the built site as XHTML, its figures SVG inside them, and its formulas the MathML that
stands in the pages for screen readers.
"""

from __future__ import annotations

import io
import posixpath
import re
import sys
import unicodedata
import uuid
import zipfile
from collections.abc import Iterable
from pathlib import PurePosixPath
from xml.etree import ElementTree

from book import editions
from book.assemble import EPOCH
from book.editions import MATHML, Chapter, Front, escaped
from book.layout import Book

TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg"}
WORDS = {
    "en": {
        "contents": "Contents",
        "start": "Start of the text",
        "access": "Formulas are MathML, every figure has an alternative text, and all of the book can be read aloud.",
    },
    "ru": {
        "contents": "Оглавление",
        "start": "Начало текста",
        "access": "Формулы записаны в MathML, у каждого рисунка есть описание, и книгу можно целиком прослушать.",
    },
}

PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"
 lang="{language}" xml:lang="{language}">
<head>
<meta charset="utf-8"/>
<title>{title}</title>
<link rel="stylesheet" type="text/css" href="{up}style.css"/>
</head>
<body>
{body}
</body>
</html>
"""
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book/content.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="{language}">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">urn:uuid:{identifier}</dc:identifier>
<dc:title>{title}</dc:title>
<dc:language>{language}</dc:language>
<dc:creator>{authors}</dc:creator>
<dc:date>{date}</dc:date>
<dc:rights>{rights}</dc:rights>
<meta property="dcterms:modified">{modified}</meta>
<meta property="schema:accessMode">textual</meta>
<meta property="schema:accessMode">visual</meta>
<meta property="schema:accessModeSufficient">textual</meta>
<meta property="schema:accessibilityFeature">MathML</meta>
<meta property="schema:accessibilityFeature">alternativeText</meta>
<meta property="schema:accessibilityFeature">structuralNavigation</meta>
<meta property="schema:accessibilityFeature">tableOfContents</meta>
<meta property="schema:accessibilityHazard">none</meta>
<meta property="schema:accessibilitySummary">{access}</meta>
</metadata>
<manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="title" href="title.xhtml" media-type="application/xhtml+xml"/>
<item id="style" href="style.css" media-type="text/css"/>
{manifest}
</manifest>
<spine>
<itemref idref="title"/>
<itemref idref="nav"/>
{spine}
</spine>
</package>
"""

# --- formulas -------------------------------------------------------------------------------------------------------

ALPHABETS = {
    "bold": "MATHEMATICAL BOLD",
    "italic": "MATHEMATICAL ITALIC",
    "bold-italic": "MATHEMATICAL BOLD ITALIC",
    "double-struck": "MATHEMATICAL DOUBLE-STRUCK",
    "script": "MATHEMATICAL SCRIPT",
    "fraktur": "MATHEMATICAL FRAKTUR",
    "sans-serif": "MATHEMATICAL SANS-SERIF",
    "monospace": "MATHEMATICAL MONOSPACE",
}
OLDER = {"DOUBLE-STRUCK": "DOUBLE-STRUCK", "SCRIPT": "SCRIPT", "FRAKTUR": "BLACK-LETTER"}
"""Letters that Unicode had before the alphabets, ℝ or ℒ, are missing from these and have names of another form."""


def letter(character: str, variant: str) -> str:
    """A letter or digit of one of Unicode's mathematical alphabets; readers draw these also without ``mathvariant``."""
    name = unicodedata.name(character, "")
    kind = re.fullmatch(r"(?:LATIN|GREEK) (CAPITAL|SMALL) LETTER (\w+)|DIGIT (\w+)", name)
    if kind is None:
        return character
    tail = f"DIGIT {kind[3]}" if kind[3] else f"{kind[1]} {kind[2]}"
    alphabet = ALPHABETS[variant]
    older = OLDER.get(alphabet.removeprefix("MATHEMATICAL "), "")
    for candidate in (f"{alphabet} {tail}", f"{older} {tail}", f"{older} {kind[1]} {kind[2]}"):
        try:
            return unicodedata.lookup(candidate)
        except KeyError:
            continue
    return character


def readable(piece: str) -> str:
    """The MathML of a formula as EPUB wants it: without notes of MathJax, and in letters that need no style."""
    found = MATHML.search(piece)
    if found is None:
        raise ValueError(f"a formula without MathML: {piece[:120]}")
    mathml = re.sub(r'\s(?:data-[\w-]+|class)="[^"]*"', "", found[1])

    def styled(token: re.Match[str]) -> str:
        text = "".join(letter(character, token[2]) for character in token[4])
        return f"<{token[1]}{token[3]}>{text}</{token[1]}>"

    variants = "|".join(ALPHABETS)
    return re.sub(rf'<(m[ion]) mathvariant="({variants})"([^>]*)>([^<&]*)</\1>', styled, mathml).strip()


def set_formulas(chapter: Chapter) -> None:
    """Put MathML in place of what MathJax draws.

    Raises:
        ValueError: if a formula has none, because the site was not built as it should be.
    """
    if chapter.body.find(class_="math") and not any(piece.startswith("<mjx-") for piece in chapter.pieces):
        raise ValueError(f"{chapter.name}: the formulas of this page are not set")
    chapter.pieces[:] = [readable(piece) if piece.startswith("<mjx-") else piece for piece in chapter.pieces]


def link(here: str, name: str, place: str) -> str:
    """From one chapter to a place in another, or in itself."""
    return f"{posixpath.relpath(name, posixpath.dirname(here) or '.')}.xhtml{'#' if place else ''}{place}"


# --- files ----------------------------------------------------------------------------------------------------------


def chapter_page(chapter: Chapter, language: str) -> str:
    """A chapter as XHTML.

    Raises:
        ValueError: if it is not well-formed.
    """
    page = PAGE.format(
        language=language,
        title=escaped(chapter.title),
        up="../" * chapter.name.count("/"),
        body=chapter.text(),
    )
    try:
        ElementTree.fromstring(page)
    except ElementTree.ParseError as error:
        line = page.split("\n")[error.position[0] - 1]
        raise ValueError(f"{chapter.name}: {error}: {line[max(0, error.position[1] - 60) :][:120]}") from None
    return page


def navigation(front: Front, chapters: list[Chapter]) -> str:
    """Parts, chapters and sections."""
    words = WORDS[front.language]
    lines, part = ["<ol>"], ""
    for chapter in chapters:
        if chapter.part != part:
            lines += (["</ol></li>"] if part else []) + [f"<li><span>{escaped(chapter.part)}</span><ol>"]
            part = chapter.part
        file = f"{chapter.name}.xhtml"
        sections = [f'<li><a href="{file}#{place}">{escaped(title)}</a></li>' for place, title in chapter.sections()]
        inside = f"<ol>{''.join(sections)}</ol>" if sections else ""
        lines.append(f'<li><a href="{file}">{escaped(chapter.title)}</a>{inside}</li>')
    lines += ["</ol></li>", "</ol>"] if part else ["</ol>"]
    toc = "\n".join(lines)
    body = (
        f'<nav epub:type="toc" id="toc"><h1>{words["contents"]}</h1>\n{toc}</nav>\n'
        f'<nav epub:type="landmarks" hidden=""><h2>{words["contents"]}</h2><ol>'
        f'<li><a epub:type="toc" href="#toc">{words["contents"]}</a></li>'
        f'<li><a epub:type="bodymatter" href="{chapters[0].name}.xhtml">{words["start"]}</a></li></ol></nav>'
    )
    return PAGE.format(language=front.language, title=words["contents"], up="", body=body)


def title_page(front: Front) -> str:
    """The first page."""
    address = f' <a href="{front.address}">{front.address}</a>' if front.address else ""
    body = (
        f'<section class="title-page" epub:type="titlepage"><h1>{escaped(front.title)}</h1>'
        f"<p>{escaped(front.authors)}</p><p>{front.date}</p><p>{escaped(front.licence)}{address}</p></section>"
    )
    return PAGE.format(language=front.language, title=escaped(front.title), up="", body=body)


def package(front: Front, pages: dict[str, str], pictures: Iterable[str]) -> str:
    """The list of all files, with what a catalogue wants to know."""
    manifest, spine = [], []
    for number, (name, page) in enumerate(pages.items()):
        found = [kind for kind, tag in (("mathml", "<math"), ("svg", "<svg")) if tag in page]
        properties = f' properties="{" ".join(found)}"' if found else ""
        manifest.append(f'<item id="c{number}" href="{name}" media-type="application/xhtml+xml"{properties}/>')
        spine.append(f'<itemref idref="c{number}"/>')
    for number, name in enumerate(pictures):
        kind = TYPES[PurePosixPath(name).suffix]
        manifest.append(f'<item id="p{number}" href="{name}" media-type="{kind}"/>')
    year, month, day = (*front.date.split("-"), "01", "01")[:3]
    return PACKAGE.format(
        language=front.language,
        identifier=uuid.uuid5(uuid.NAMESPACE_URL, f"keydoor-book/{front.version}/{front.language}"),
        title=escaped(front.title),
        authors=escaped(front.authors),
        date=front.date,
        rights=escaped(front.licence),
        modified=f"{year}-{month:0>2}-{day:0>2}T00:00:00Z",
        access=WORDS[front.language]["access"],
        manifest="\n".join(manifest),
        spine="\n".join(spine),
    )


def edition(book: Book, language: str, version: str) -> bytes:
    """The EPUB of one language; equal sites give equal bytes."""
    site = book.output / "html" / language
    front = editions.front(book, language, version)
    chapters = editions.read_chapters(book, language)
    address = f"{front.address}{language}/" if front.address else ""
    editions.relink(chapters, address, link)
    pictures = {}
    for chapter in chapters:
        set_formulas(chapter)
        for image in chapter.body.select("img[src]"):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(chapter.name), str(image["src"])))
            pictures[path] = (site / path).read_bytes()
    pages = {f"{chapter.name}.xhtml": chapter_page(chapter, language) for chapter in chapters}
    style = editions.light_code(site) + editions.STYLE.read_text("utf8").split("/* Paper:")[0]
    files: dict[str, str | bytes] = {
        "META-INF/container.xml": CONTAINER,
        "book/content.opf": package(front, pages, pictures),
        "book/nav.xhtml": navigation(front, chapters),
        "book/title.xhtml": title_page(front),
        "book/style.css": style,
        **{f"book/{name}": content for name, content in {**pages, **pictures}.items()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        first = zipfile.ZipInfo("mimetype", EPOCH)
        archive.writestr(first, "application/epub+zip", zipfile.ZIP_STORED)
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


if __name__ == "__main__":
    editions.make("epub", edition, sys.argv[1:])
