"""The lecture view of a chapter: its definitions, results, figures and key points as slides, made from the page itself.

``PAGE-slides.html`` beside ``PAGE.html`` holds the same HTML, so that numbers, formulas and colours are those of the
page, and each slide links back to its place. reveal.js shows one at a time; without scripts, and on paper, they stand
one below the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from book_words import OWN_NAMES, WORDS
from sphinx.application import Sphinx

ITEM = re.compile(
    r"<h2>(?P<heading>.*?)</h2>"
    r'|<div class="proof (?!proof-of-result)[\w-]+ admonition" id="(?P<result>[^"]+)">'
    r'|<figure\b[^>]*\bid="(?P<figure>[^"]+)".*?</figure>'
    r'|<section id="(?P<points>[\w-]+-key-points)">'
    r'|<div class="solution ',
    re.S,
)
TITLE = re.compile(r'\s*<p class="admonition-title">(.*?)</p>', re.S)
LINK = re.compile(r'<a class="headerlink".*?</a>', re.S)
TERM = re.compile(r'<a\b[^>]*><span class="term-link">(.*?)</span></a>', re.S)


class Slide(NamedTuple):
    """One slide: its place on the page, the title of the section, its own title if it has one, and what it shows."""

    place: str
    section: str
    title: str
    body: str


def end_of(body: str, start: int, tag: str) -> int:
    """Where the element ends that begins at a place; others of its kind may stand inside."""
    depth = 0
    for found in re.compile(rf"<(/?){tag}\b[^>]*>").finditer(body, start):
        depth += -1 if found[1] else 1
        if depth == 0:
            return found.end()
    raise ValueError(f"a <{tag}> is not closed: {body[start : start + 80]}")


def slides_of(body: str, page: str) -> Iterator[Slide]:
    """The slides of a page, in its order; what belongs to a solution is left to the page."""
    section, position = "", 0
    while found := ITEM.search(body, position):
        position = found.end()
        if found["heading"] is not None:
            section = LINK.sub("", found["heading"])
        elif found["result"]:
            position = end_of(body, found.start(), "div")
            inner = body[found.end() : position - len("</div>")]
            title = TITLE.match(inner)
            if title is None:
                raise ValueError(f"{page}: the result {found['result']} has no title")
            yield Slide(found["result"], section, clean(title[1], page), clean(inner[title.end() :], page))
        elif found["figure"]:
            yield Slide(found["figure"], section, "", clean(found[0], page))
        elif found["points"]:
            position = end_of(body, found.start(), "section")
            heading = re.search(r"<h2>(.*?)</h2>", body[found.start() : position], flags=re.S)
            if heading:
                inner = body[found.start() + heading.end() : position - len("</section>")]
                yield Slide(found["points"], LINK.sub("", heading[1]), "", clean(inner, page))
        else:
            position = end_of(body, found.start(), "div")


def clean(fragment: str, page: str) -> str:
    """A piece of the page for another page: links lead back to it, and only figures keep their identifiers."""
    fragment = TERM.sub(r"\1", LINK.sub("", fragment))
    fragment = re.sub(r"(</?)section\b", r"\1div", fragment)  # reveal.js takes any section for a slide
    fragment = re.sub(r'(<a\b[^>]*href=")(#[^"]*")', rf"\1{page.rsplit('/', 1)[-1]}.html\2", fragment)
    return re.sub(r'(<(?:div|section|span|p|figure|table|dl|ul|ol|li)\b[^>]*?) id="[^"]*"', r"\1", fragment)


def write_slides(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Write the slides of a page that has a result, and let the page link them."""
    if doctree is None or app.builder.name != "html" or not app.config.book_languages:
        return
    slides = list(slides_of(context["body"], pagename))
    if not any(slide.title for slide in slides):
        return
    name, language = f"{pagename}-slides.html", app.config.language
    words = WORDS[language]["slides"]
    up = "../" * pagename.count("/")
    other = [code for code in OWN_NAMES if code in app.config.book_languages and code != language]
    page = app.builder.templates.render(
        "slides.html",
        {
            "language": language,
            "title": app.env.titles[pagename].astext(),
            "book": WORDS[language]["title"],
            "author": app.config.author,
            "words": words,
            "up": up,
            "page": f"{pagename.rsplit('/', 1)[-1]}.html",
            "others": [(code, OWN_NAMES[code], f"../{up}{code}/{name}") for code in other],
            "mathjax": json.dumps(app.config.mathjax3_config),
            "slides": slides,
        },
    )
    Path(app.outdir, name).write_text(page, "utf8")
    button = {"type": "link", "url": name.rsplit("/", 1)[-1], "icon": "fas fa-person-chalkboard"}
    context["header_buttons"].append({**button, "tooltip": words["open"], "label": "slides-button"})


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the above."""
    app.connect("html-page-context", write_slides, priority=905)  # after the theme has made its buttons
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
