"""Slides of a page and files of its figures: the same numbers, words and drawings, for a lecture and for a paper."""

from __future__ import annotations

import re
from importlib import import_module
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from PIL import Image

from book.layout import LANGUAGES, Book
from tests.book.conftest import ROOT
from tests.book.test_site import Tags, html

# --- slides ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_slides_show_results_and_figures(site: Book, language: str) -> None:
    """In the order of the page, with its numbers, formulas and drawings; each leads back to its place."""
    path = html(site, language, "index-slides")
    soup = BeautifulSoup(path.read_text("utf8"), "html.parser")
    slides = soup.select(".slides > section")
    assert [slide["id"] for slide in slides] == ["title", "fig-mini", "prop-mini"]
    assert len(soup.select("section")) == len(slides)  # reveal.js takes any section for a slide
    title, figure, result = slides
    assert title.h1.get_text() == {"en": "A book of two pages", "ru": "Книга в две страницы"}[language]
    assert figure.svg["aria-label"] == {"en": "A line that rises from 0 to 1", "ru": "Линия растёт от 0 до 1"}[language]
    assert {"en": "Fig. 1", "ru": "Рис. 1"}[language] in figure.get_text()
    heading = {"en": "Proposition 1 (A result)", "ru": "Предложение 1 (Результат)"}[language]
    assert " ".join(result.h1.get_text().split()) == heading
    assert {"en": "Proof", "ru": "Доказательство"}[language] not in soup.get_text()
    for slide in (figure, result):
        assert f"index.html#{slide['id']}" in [link["href"] for link in slide.select("a")]
    assert not soup.select(".headerlink, .figure-file")
    identifiers = [element["id"] for element in soup.select("[id]")]
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("language", LANGUAGES)
def test_slides_are_served_by_the_site(site: Book, language: str) -> None:
    """All that they load is there; the other language is one link away; the page links them, one without has none."""
    path = html(site, language, "index-slides")
    tags = Tags(path)
    files = [tag["src"] for tag in tags.all("script") if tag.get("src")] + [
        tag["href"] for tag in tags.all("link", rel="stylesheet")
    ]
    assert set(files) == {"reveal/reveal.js", "reveal/reveal.css"}  # and formulas.css, if there are any
    assert all((path.parent / str(name)).is_file() for name in files)
    other = next(code for code in LANGUAGES if code != language)
    assert tags.all("link", rel="alternate") == [
        {"rel": "alternate", "hreflang": other, "href": f"../{other}/index-slides.html"}
    ]
    links = [tag.get("href") for tag in Tags(html(site, language, "index")).all("a")]
    assert links.count("index-slides.html") == 1
    assert not html(site, language, "second-slides").exists()
    assert not [tag for tag in Tags(html(site, language, "second")).all("a") if "slides" in (tag.get("href") or "")]


def test_pieces_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes inside boxes are kept whole, solutions are left out, and a result without a title is a fault."""
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    slides = import_module("slides")
    head = '<div class="proof theorem admonition" id="thm-{0}">\n<p class="admonition-title">T{0}</p>'
    result = f"{head}<section>{{1}}</section></div>"
    inner = '<div><div id="equation-x">a <a href="#eq">1</a></div></div>'
    page = (
        f'<h2>First<a class="headerlink" href="#a">#</a></h2>{result.format("one", inner)}'
        f'<div class="solution dropdown admonition" id="s"><div>{result.format("two", "")}</div></div>'
        '<div class="proof proof-of-result admonition" id="p">Proof</div>'
        '<section id="x-key-points"><span id="id1"></span><h2>Points</h2>'
        "<ul><li>one</li></ul><section>x</section></section>"
        "<h2>After</h2>"
    )
    one, points = slides.slides_of(page, "page")
    assert one == ("thm-one", "First", "Tone", '<div><div><div>a <a href="page.html#eq">1</a></div></div></div>')
    assert points == ("x-key-points", "Points", "", "<ul><li>one</li></ul><div>x</div>")
    with pytest.raises(ValueError, match="page: the result thm-three has no title"):
        list(slides.slides_of('<div class="proof theorem admonition" id="thm-three"><p>x</p></div>', "page"))
    with pytest.raises(ValueError, match="a <div> is not closed"):
        list(slides.slides_of('<div class="solution x"><div>', "page"))


# --- figures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_figures_can_be_taken(site: Book, language: str) -> None:
    """A file that draws by itself, with its words as its title, and a line that says what it is and whose."""
    page = html(site, language, "index")
    soup = BeautifulSoup(re.search(r"<figure.*?</figure>", page.read_text("utf8"), flags=re.S)[0], "html.parser")
    link, pixels = soup.select("details a[download]")
    assert link["href"] == "_images/fig-mini.svg"
    assert pixels["href"] == "_images/fig-mini.png"
    text = (page.parent / link["href"]).read_text("utf8")
    root = ElementTree.fromstring(text)
    words = {"en": "A line that rises from 0 to 1", "ru": "Линия растёт от 0 до 1"}[language]
    assert root.findtext("{http://www.w3.org/2000/svg}title") == words
    with Image.open(page.parent / pixels["href"]) as image:
        width, height = (float(root.get(side).removesuffix("pt")) for side in ("width", "height"))
        assert (image.format, image.size) == ("PNG", (round(width * 192 / 72), round(height * 192 / 72)))
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
        assert len(image.convert("RGB").getcolors(10**6)) > 10  # not white alone
    assert "currentColor" not in text
    assert "keydoor-figure" not in text
    credit = soup.select_one("details pre").get_text().strip()
    book = {
        "en": "Reinforcement Learning for Agents That Act Through Tools",
        "ru": "Обучение с подкреплением для агентов, действующих через инструменты",
    }[language]
    start = {"en": "Fig. 1. A line. From: A book of two pages.", "ru": "Рис. 1. Линия. — Книга в две страницы //"}
    assert credit.startswith(start[language])
    assert book in credit
    assert credit.endswith("CC BY 4.0.")
    assert soup.select_one("figcaption a.headerlink")["href"] == "#fig-mini"


@pytest.mark.parametrize("language", LANGUAGES)
def test_boxes_of_figures_stay_on_the_page(site: Book, language: str) -> None:
    """Copies for language models have the figure in words only."""
    text = (site.output / "html" / language / "index.md").read_text("utf8")
    assert "CC BY" not in text
    assert "fig-mini.svg" not in text
