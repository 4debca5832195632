"""The book as a PDF for each language: ``python -m book.pdf``, after ``make book``.

The chapters of the built site, whose formulas are set, are joined into one page and printed by the Chromium of the
system. It is printed twice: the first time shows on which pages the chapters begin, for the table of
contents of the second. Chromium leaves the tags for screen readers uncompressed, most of the file; that is mended last.
"""

from __future__ import annotations

import functools
import io
import json
import mimetypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pikepdf
from playwright.sync_api import Page, Route, sync_playwright

from book import editions
from book.chromium import find_chromium, missing
from book.editions import MATHML, Chapter, Front, escaped
from book.layout import Book

HOST = "http://book.invalid"  # nothing is served: each request is answered from the folder of the site
NEEDED = 131
"""The first Chromium that prints page numbers where a style sheet asks for them."""
PATIENCE = 600
"""Seconds that Chromium may take for a whole book of formulas."""
WIDTH = 643  # 17 cm in pixels of CSS: the width of the text on the page, see edition.css
WORDS = {"en": {"contents": "Contents"}, "ru": {"contents": "Оглавление"}}

PAGE = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<title>{title}</title>
<link rel="stylesheet" href="/_static/formulas.css">
<style>{style}</style>
</head>
<body class="paper">
<header class="title-page">
<h1>{title}</h1>
<p>{authors}</p>
<p>{date}</p>
<p class="licence">{licence}{address}</p>
</header>
<nav class="contents">
<h1>{contents}</h1>
{toc}
</nav>
{chapters}
</body>
</html>
"""

FIT = """() => {
  // A formula or a table that is wider than the paper is made smaller: paper does not scroll.
  for (const box of document.querySelectorAll("mjx-container[display=true], table")) {
    const room = box.parentElement.clientWidth;
    const inner = box.querySelector("mjx-math, tbody") || box;
    const width = Math.max(box.scrollWidth, inner.getBoundingClientRect().width);
    if (room && width > room) box.style.fontSize = `${Math.floor(100 * room / width) - 1}%`;
  }
  return document.fonts.ready.then(() => true);
}"""

NUMBER = """(numbers) =>
  document.querySelectorAll(".contents .number").forEach((place, index) => { place.textContent = numbers[index]; })
"""

CLIPPED = """() => {
  const right = document.body.getBoundingClientRect().right + 1;
  const found = [];
  for (const box of document.querySelectorAll("body *")) {
    if (box.closest("svg, mjx-container") && !box.matches("svg.keydoor-figure, mjx-container")) continue;
    const cut = box.clientWidth && box.scrollWidth > box.clientWidth + 1;
    if (cut || (box.getClientRects().length && box.getBoundingClientRect().right > right))
      found.push(`<${box.tagName} class="${box.getAttribute("class") || ""}"> ${box.textContent.trim().slice(0, 60)}`);
  }
  return found;
}"""


def identifier(chapter: str, place: str = "") -> str:
    """A place of a chapter in the joined page: two chapters may have the same identifier."""
    return f"{chapter}--{place}" if place else f"{chapter}--"


def joined(chapter: Chapter) -> str:
    """A chapter inside the joined page: its identifiers are its own, and its headings stand below that of its part."""
    text = MATHML.sub("", chapter.text())
    if chapter.part:
        text = re.sub(r"(?<=<)(/?)h([1-5])\b", lambda found: f"{found[1]}h{int(found[2]) + 1}", text)
    mark = identifier(chapter.name)

    def rename(tag: re.Match[str]) -> str:
        own = re.sub(r'\b(id|aria-labelledby)="([^"]+)"', rf'\1="{mark}\2"', tag[0])
        own = re.sub(r'xlink:href="#([^"]+)"', rf'xlink:href="#{mark}\1"', own)
        return re.sub(r"url\(#([^)]+)\)", rf"url(#{mark}\1)", own)

    return re.sub(r"<[a-zA-Z][^<>]*>", rename, text)


def contents(chapters: list[Chapter]) -> str:
    """The table of contents; zeros hold the place of the numbers, which are not yet known."""
    lines, part = ["<ol>"], ""
    for chapter in chapters:
        if chapter.part != part:
            part = chapter.part
            lines.append(f'<li class="part">{escaped(part)}</li>')
        title = escaped(chapter.title)
        lines.append(f'<li><a href="#{identifier(chapter.name)}">{title}</a><span class="number">000</span></li>')
    return "\n".join([*lines, "</ol>"])


def document(book: Book, front: Front, chapters: list[Chapter]) -> str:
    """The joined page."""
    site = book.output / "html" / front.language
    style = [editions.light_code(site), editions.STYLE.read_text("utf8")]
    bodies, part = [], ""
    for number, chapter in enumerate(chapters):
        head = chapter.title
        style.append(f"@page c{number} {{ @top-center {{ content: {json.dumps(head, ensure_ascii=False)}; }} }}")
        opening, level = "", "" if chapter.part else ' class="first"'
        if chapter.part != part:
            part = chapter.part
            opening = f'<h1 class="part">{escaped(part)}</h1>'
        bodies.append(
            f'<article id="{identifier(chapter.name)}"{level} style="page: c{number}">{opening}'
            f"{joined(chapter)}</article>"
        )
    return PAGE.format(
        language=front.language,
        title=escaped(front.title),
        style="\n".join(style),
        authors=escaped(front.authors),
        date=front.date,
        licence=escaped(front.licence),
        address=f' <a href="{front.address}">{front.address}</a>' if front.address else "",
        contents=WORDS[front.language]["contents"],
        toc=contents(chapters),
        chapters="\n".join(bodies),
    )


def answer(site: Path, text: str, route: Route) -> None:
    """The joined page, or a file of the site."""
    path = unquote(urlsplit(route.request.url).path).lstrip("/")
    file = (site / path).resolve()
    if not path:
        route.fulfill(body=text, content_type="text/html; charset=utf-8")
    elif file.is_file() and file.is_relative_to(site.resolve()):
        route.fulfill(body=file.read_bytes(), content_type=mimetypes.guess_type(file.name)[0] or "font/woff")
    else:
        route.abort()


@contextmanager
def opened(site: Path, text: str) -> Iterator[Page]:
    """The joined page in a browser, as wide as the text on paper, ready to be printed.

    Raises:
        SystemExit: if there is no browser, or too old a one.
    """
    program = find_chromium(os.environ)
    if not program:
        raise SystemExit(missing(os.environ))
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium has no sandbox for root, whom containers work as
    options = ["--disable-gpu", *(["--no-sandbox"] if root else [])]
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=program, args=options) as browser:
        if int(browser.version.split(".")[0]) < NEEDED:
            raise SystemExit(f"{program} is version {browser.version}; page numbers need {NEEDED} or newer")
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.set_default_timeout(1000 * PATIENCE)
        page.emulate_media(media="print", color_scheme="light")
        page.route("**/*", functools.partial(answer, site, text))
        lost: list[str] = []
        page.on("requestfailed", lambda request: lost.append(f"not found: {request.url}"))
        page.goto(f"{HOST}/")
        page.evaluate(FIT)
        check(page, lost)
        yield page


def check(page: Page, lost: list[str]) -> None:
    """Refuse what paper would show wrongly.

    Raises:
        SystemExit: if a file was not found, or something does not fit on the paper.
    """
    faults = [
        *lost,
        *(f"does not fit on the paper: {text}" for text in page.evaluate(CLIPPED)),
    ]
    if faults:
        raise SystemExit("\n".join([*faults, f"{len(faults)} fault(s): no PDF was made."]))


def printed(page: Page) -> bytes:
    """The page on paper, with tags for screen readers and an outline of its headings."""
    return page.pdf(prefer_css_page_size=True, print_background=True, tagged=True, outline=True)


def beginnings(content: bytes, chapters: list[Chapter]) -> list[int]:
    """On which pages the chapters begin."""
    with pikepdf.open(io.BytesIO(content)) as pdf:
        places = pdf.Root.Dests
        return [pikepdf.Page(places[f"/{identifier(chapter.name)}"][0]).index + 1 for chapter in chapters]


def finished(content: bytes, front: Front) -> bytes:
    """A PDF that says whose it is, compressed as a whole, with the date of the book and not the time of printing."""
    year, month, day = (*front.date.split("-"), "01", "01")[:3]
    date = f"D:{year}{month:0>2}{day:0>2}000000Z"
    buffer = io.BytesIO()
    with pikepdf.open(io.BytesIO(content)) as pdf:
        del pdf.docinfo
        information = {"/Title": front.title, "/Author": front.authors, "/CreationDate": date, "/ModDate": date}
        for key, value in information.items():
            pdf.docinfo[key] = value
        pdf.save(buffer, object_stream_mode=pikepdf.ObjectStreamMode.generate, deterministic_id=True)
    return buffer.getvalue()


def edition(book: Book, language: str, version: str) -> bytes:
    """The PDF of one language."""
    site = book.output / "html" / language
    front = editions.front(book, language, version)
    chapters = editions.read_chapters(book, language)
    address = f"{front.address}{language}/" if front.address else ""
    editions.relink(chapters, address, lambda _, name, place: f"#{identifier(name, place)}")
    with opened(site, document(book, front, chapters)) as page:
        numbers = beginnings(printed(page), chapters)
        page.evaluate(NUMBER, numbers)
        content = printed(page)
    return finished(content, front)


if __name__ == "__main__":
    editions.make("pdf", edition, sys.argv[1:])
