"""How a link to a page looks where links are shown with a picture: OpenGraph tags and a card drawn for each page.

They need absolute addresses, and appear once ``html: baseurl`` in ``_config.yml`` is set.
"""

from __future__ import annotations

import html
import textwrap
from pathlib import Path
from typing import Any

from book_words import OWN_NAMES, WORDS
from docutils import nodes
from sphinx.application import Sphinx

LOCALES = {"en": "en_GB", "ru": "ru_RU"}
BLUE = "#0072B2"  # of the key in the corner of a browser's tab
GREY = "#4a4f55"
TITLE_LINE, TEXT_LINE = 27, 74  # letters that fit beside each other, in Russian, whose letters are wider
WIDTH, HEIGHT = 1200, 630  # pixels, as the places that show cards ask for


def summary(doctree: nodes.document, length: int = 200) -> str:
    """The first paragraph of running text, cut at a word; empty on a page that has none."""
    for node in doctree.findall(nodes.paragraph):
        if isinstance(node.parent, nodes.section) and (text := " ".join(node.astext().split())):
            return textwrap.shorten(text, length, placeholder=" …")
    return ""


def draw_card(path: Path, above: str, title: str, text: str, address: str) -> None:
    """A card with a title, a line above it, the first words and the address; equal words give equal bytes."""
    from matplotlib.figure import Figure  # a second of import that a site without address can do without
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor="white")
    figure.add_artist(Rectangle((0, 0), 1, 0.05, transform=figure.transFigure, facecolor=BLUE, edgecolor="none"))
    figure.text(0.06, 0.87, above, size=17, color=GREY)
    for number, line in enumerate(textwrap.wrap(title, TITLE_LINE)[:4]):
        figure.text(0.06, 0.72 - 0.11 * number, line, size=38, weight="bold", color="#16191d")
    for number, line in enumerate(reversed(textwrap.wrap(text, TEXT_LINE)[:3])):
        figure.text(0.06, 0.19 + 0.05 * number, line, size=16, color=GREY)
    figure.text(0.06, 0.095, address, size=18, color=BLUE)
    for words in figure.texts:
        words.set_parse_math(False)  # a dollar is a dollar
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", metadata={"Software": None})


def add_card(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Draw the card of a page of the book and name it in its head."""
    address, language = app.config.html_baseurl, app.config.language
    if doctree is None or not address or app.builder.format != "html":
        return
    book, title, text = WORDS[language]["title"], app.env.titles[pagename].astext(), summary(doctree)
    card = f"_cards/{pagename}.png"
    above, large = (WORDS[language]["author"], book) if pagename == "index" else (book, title)
    draw_card(Path(app.outdir, card), above, large, text, address.split("//", 1)[1])
    tags = [
        ("og:title", title),
        ("og:type", "book" if pagename == "index" else "article"),
        ("og:url", context["pageurl"]),
        ("og:site_name", book),
        ("og:description", text),
        ("og:locale", LOCALES[language]),
        *(("og:locale:alternate", LOCALES[code]) for code in OWN_NAMES if code != language),
        ("og:image", f"{address}{card}"),
        ("og:image:width", str(WIDTH)),
        ("og:image:height", str(HEIGHT)),
        ("og:image:alt", title),
    ]
    lines = [f'<meta property="{name}" content="{html.escape(content)}">' for name, content in tags if content]
    lines.append('<meta name="twitter:card" content="summary_large_image">')
    context["metatags"] += "".join(f"\n{line}" for line in lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the above."""
    app.connect("html-page-context", add_card)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
