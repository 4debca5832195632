"""What readers do: choose a language, search, go by keyboard, copy code, take pages away, read without motion."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page

from book.layout import LANGUAGES
from tests.browser.faults import Reader, axe, motion, settle


def tab_to(page: Page, selector: str, limit: int = 400) -> None:
    """Press Tab until an element that matches has the focus, as a reader without a mouse does."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"{limit} times Tab do not lead to {selector}")


# --- languages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("locale", "language"), [("ru-RU", "ru"), ("en-GB", "en"), ("de-DE", "en")])
def test_root_page_speaks_the_language_of_the_browser(reader: Reader, address: str, locale: str, language: str) -> None:
    """A language that the book does not speak gets English."""
    page, watch = reader("", locale=locale)
    page.wait_for_url(f"{address}{language}/index.html")
    assert page.evaluate("document.documentElement.lang") == language
    assert watch.faults() == []


def test_root_page_without_scripts_offers_both_languages(reader: Reader, address: str) -> None:
    for language in LANGUAGES:
        page, watch = reader("", java_script_enabled=False, locale="ru-RU")
        assert page.url == address
        page.locator(f"a[hreflang={language}]").click()
        page.wait_for_url(f"{address}{language}/index.html")
        assert page.locator("h1").is_visible()
        assert [fault for fault in watch.faults() if "failed, csp" not in fault] == []  # scripts, as was asked for


# --- search ---------------------------------------------------------------------------------------------------------


def pages_with(site: Path, language: str, word: str) -> set[str]:
    """Pages with a paragraph that holds a word of this form."""
    found = set()
    for path in (site / language).glob("*.html"):
        article = re.search(r'<article class="bd-article">.*?</article>', path.read_text("utf8"), flags=re.S)
        paragraphs = re.findall(r"<p>(.*?)</p>", article[0], flags=re.S) if article else []
        if any(re.search(word, re.sub(r"<[^>]*>", "", text), flags=re.I) for text in paragraphs):
            found.add(path.name)
    return found


def search(page: Page, query: str) -> list[str]:
    """Search from the page that is open, by keyboard; gives the addresses of what was found."""
    page.keyboard.press("Control+K")
    page.keyboard.type(query)
    with page.expect_navigation(url="**/search.html?*"):
        page.keyboard.press("Enter")
    page.locator("#search-results .search-summary").get_by_text(re.compile(r"\d")).wait_for()
    page.wait_for_load_state("networkidle")  # each result is loaded for its summary
    return page.locator("#search-results ul.search > li > a").evaluate_all("all => all.map((a) => a.href)")


def name_of(link: str) -> str:
    return re.split("[?#]", link)[0].rsplit("/", 1)[1]


@pytest.mark.parametrize(
    ("language", "query", "forms"),
    [
        ("ru", "агентами", r"\bагент(а|у|ом|е|ы|ов|ам|ами|ах)?\b"),
        ("en", "discounting", r"\bdiscount(s|ed|ing)?\b"),
    ],
)
def test_search_finds_all_forms_of_a_word(reader: Reader, site: Path, language: str, query: str, forms: str) -> None:
    """A page with some form of the word is found, whichever form was typed; no other host hears of the query."""
    wanted = pages_with(site, language, forms)
    assert wanted - pages_with(site, language, rf"\b{query}\b"), "choose a word that stands in other forms as well"
    page, watch = reader(f"{language}/changes.html")
    assert wanted <= {name_of(link) for link in search(page, query)}
    faults = watch.faults() + axe(page)
    page.emulate_media(color_scheme="dark")
    settle(page)
    faults += axe(page, contrast_only=True)
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.reader
@pytest.mark.parametrize("language", LANGUAGES)
def test_search_finds_symbols_and_functions(reader: Reader, language: str) -> None:
    """Chapters whose formulas or code hold them; for a function its entry on the page of the package comes first."""
    page, watch = reader(f"{language}/changes.html")
    wanted = {
        "λ": {"telescoping.html", "stopping.html"},
        "td_residuals": {"telescoping.html"},
        "semi_markov_return": {"durations.html"},
    }
    for query, pages in wanted.items():
        links = search(page, query)
        assert pages <= {name_of(link) for link in links}
        assert query == "λ" or links[0].endswith(f"api.html#keydoor.returns.{query}")
    assert not watch.faults()


@pytest.mark.reader
@pytest.mark.parametrize(("language", "query"), [("ru", "агент"), ("en", "discount")])
def test_found_words_are_marked(reader: Reader, site: Path, language: str, query: str) -> None:
    """Readable in light and dark."""
    holding = pages_with(site, language, rf"\b{query}\b")
    page, watch = reader(f"{language}/changes.html")
    links = [link for link in search(page, query) if name_of(link) in holding]
    page.goto(min(links, key=lambda link: (site / language / name_of(link)).stat().st_size))
    page.locator("article span.highlighted").first.wait_for()
    faults = []
    for mode in ("light", "dark"):
        page.emulate_media(color_scheme=mode)
        settle(page)
        faults += [f"{mode}: {fault}" for fault in axe(page, contrast_only=True)]
    faults += watch.faults()
    assert not faults, "\n" + "\n".join(faults)


# --- keyboard -------------------------------------------------------------------------------------------------------


@pytest.mark.reader
def test_first_of_all_the_keyboard_can_skip_to_the_text(reader: Reader) -> None:
    page, _ = reader("en/using.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main-content"
    page.keyboard.press("Enter")
    page.wait_for_url("**#main-content")


@pytest.mark.reader
def test_code_is_copied_by_keyboard(reader: Reader) -> None:
    """The button shows itself when it has the focus; what it copies is the code without prompts."""
    page, watch = reader("en/using.html", permissions=["clipboard-read", "clipboard-write"])
    settle(page)
    tab_to(page, "button.copybtn")
    button = page.locator("button.copybtn:focus")
    assert button.evaluate("(e) => getComputedStyle(e).opacity") == "1"
    page.keyboard.press("Enter")
    page.locator("button.copybtn.success").wait_for()
    code = page.locator("div.highlight:has(button.copybtn.success) pre").inner_text()
    assert page.evaluate("navigator.clipboard.readText()").strip() == code.strip() != ""
    assert watch.faults() == []


@pytest.mark.reader
@pytest.mark.parametrize(("width", "open_at_first"), [(1280, True), (360, False)])
def test_sidebar_by_keyboard(reader: Reader, address: str, width: int, open_at_first: bool) -> None:
    """The contents of the book open and close by Enter; while they are closed the focus does not stray into them."""
    page, watch = reader("ru/using.html", width=width)
    settle(page)
    link = page.locator(".bd-sidebar-primary a[href='notation.html']")
    assert link.is_visible() == open_at_first
    inside = "document.activeElement.closest('.bd-sidebar-primary') !== null"
    if open_at_first:
        tab_to(page, ".bd-sidebar-primary a[href='notation.html']")
        tab_to(page, "button.primary-toggle")
        page.keyboard.press("Enter")
        link.wait_for(state="hidden")
    else:
        tab_to(page, "button.primary-toggle", limit=5)
        assert not page.evaluate(inside)
        page.keyboard.press("Enter")
        link.wait_for(state="visible")
        tab_to(page, ".bd-sidebar-primary a[href='notation.html']")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{address}ru/notation.html")
    assert watch.faults() == []


# --- downloads ------------------------------------------------------------------------------------------------------


def smallest_notebook(site: Path) -> str:
    """The page whose cells are the fewest characters."""

    def size(path: Path) -> int:
        cells = json.loads(path.read_text("utf8"))["cells"]
        return sum(len("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code")

    sizes = {path.stem: size(path) for path in (site / "en/_sources").glob("*.ipynb")}
    return min((name for name in sizes if sizes[name]), key=sizes.__getitem__)


# Files for sockets, since ports may be taken by what runs beside.
RUN = """
import sys, nbclient, nbformat
from traitlets.config import Config
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=120, config=Config(KernelManager={"transport": "ipc"})).execute()
"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_downloaded_notebook_runs(reader: Reader, site: Path, tmp_path: Path, language: str) -> None:
    page, watch = reader(f"{language}/{smallest_notebook(site)}.html")
    page.locator(".dropdown-download-buttons > button").click()
    with page.context.expect_event("page") as opened, page.expect_download() as download:
        page.locator("a.btn-download-notebook-button").click()
    path = tmp_path / "page.ipynb"
    download.value.save_as(path)
    notebook = json.loads(path.read_text("utf8"))
    assert notebook["nbformat"] == 4
    assert opened
    assert any(cell.get("outputs") for cell in notebook["cells"])
    if language == "en":
        return  # the code is the same in both languages
    result = subprocess.run([sys.executable, "-c", RUN, path], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert watch.faults() == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_course_is_at_the_foot_of_every_page(reader: Reader, tmp_path: Path, language: str) -> None:
    """One archive with its folders: what builds the book, and the executed notebooks of both languages."""
    page, watch = reader(f"{language}/index.html")
    with page.expect_download() as download:
        page.locator(".colophon a[href$='.zip']").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = {name.split("/", 1)[1] for name in archive.namelist()}
    assert {"Makefile", "README.md", "book/en/index.md", "book/ru/index.md", "notebooks/ru/index.ipynb"} <= names
    assert watch.faults() == []


# --- motion ---------------------------------------------------------------------------------------------------------


@pytest.mark.reader
def test_nothing_moves_for_readers_who_ask_for_it(reader: Reader) -> None:
    """Without the request the theme scrolls smoothly and fades, which shows that the test can fail."""
    page, _ = reader("ru/index.html", reduced_motion="no-preference")
    assert motion(page)
    page, _ = reader("ru/index.html", reduced_motion="reduce")
    assert motion(page) == []
