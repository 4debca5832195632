"""Figures to take: below each one its file as SVG and PNG, and a line to copy that names it, its source and licence."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from typing import Any

import resvg_py
from book_words import WORDS
from joblib import Memory
from sphinx.application import Sphinx

FIGURE = re.compile(
    r'<figure\b[^>]*\bid="(?P<label>[^"]+)"[^>]*>\s*(?P<svg><svg class="keydoor-figure".*?</svg>)'
    r"(?P<caption>.*?)(?P<end></figure>)",
    re.S,
)
BOX = """<details class="figure-file d-print-none">
<summary>{open}</summary>
<p><a href="{stem}.svg" download>{name}.svg</a> <a href="{stem}.png" download>{name}.png</a></p>
<div class="highlight-text notranslate"><div class="highlight"><pre tabindex="0">{credit}
</pre></div></div>
</details>
"""


def standalone(svg: str) -> str:
    """A figure of a page as a file: black on white, since a file knows no colour mode, with its words as its title."""
    label = re.search(r'aria-label="([^"]*)"', svg)
    svg = svg.replace("currentColor", "#000000").replace(' class="keydoor-figure"', ' style="background: #ffffff"', 1)
    head = svg.index(">") + 1
    title = f"<title>{label[1]}</title>" if label else ""
    return f'<?xml version="1.0" encoding="utf-8"?>\n{svg[:head]}{title}{svg[head:]}\n'


def pixels(svg: str, version: str) -> bytes:
    """A file of :func:`standalone` as PNG, twice the size that pages show, for programs that do not know SVG.

    Drawn without the fonts of this machine: letters of the book's figures are outlines. ``version`` is resvg's, so that
    what is kept is drawn anew by another one.
    """
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, background="#ffffff", dpi=192.0, skip_system_fonts=True))


@cache
def kept(folder: Path) -> Any:
    """:func:`pixels`, which takes half a second, with what it has drawn kept in a folder."""
    return Memory(folder, verbose=0).cache(pixels)


def words(fragment: str) -> str:
    """The text of a piece of a page, without the link to itself."""
    fragment = re.sub(r'<a class="headerlink".*?</a>', "", fragment, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", fragment)).split())


def offer_figures(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Write the figures of a page as files and put the boxes below them."""
    if doctree is None or app.builder.name != "html" or "keydoor-figure" not in context.get("body", ""):
        return
    language = WORDS[app.config.language]
    draw = kept(Path(app.doctreedir).parent / "drawings")

    def with_box(figure: re.Match[str]) -> str:
        name = figure["label"]
        target = Path(app.outdir, "_images", f"{name}.svg")
        target.parent.mkdir(exist_ok=True)
        svg = standalone(figure["svg"])
        target.write_text(svg, "utf8")
        target.with_suffix(".png").write_bytes(draw(svg, resvg_py.__version__))
        number = re.search(r'<span class="caption-number">(.*?)</span>', figure["caption"], flags=re.S)
        caption = figure["caption"].replace(number[0], "") if number else figure["caption"]
        credit = language["figures"]["credit"].format(
            number=words(number[1]) if number else language["figure"],
            caption=re.sub(r"(?<=[^.!?…])$", ".", words(caption)),
            page=app.env.titles[pagename].astext(),
            book=language["title"],
            author=app.config.author,
            version=app.config.version,
        )
        url = context.get("pageurl")
        box = BOX.format(
            open=language["figures"]["open"],
            stem=f"{'../' * pagename.count('/')}_images/{name}",
            name=name,
            credit=html.escape(f"{credit} {url}#{figure['label']}" if url else credit),
        )
        return figure[0][: figure.start("end") - figure.start()] + box + figure["end"]

    context["body"] = FIGURE.sub(with_box, context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the above."""
    app.connect("html-page-context", offer_figures, priority=950)  # after slides and Markdown, which need no boxes
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
