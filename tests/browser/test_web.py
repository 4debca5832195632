"""Citing, permalinks, lost addresses and the content security policy, as readers meet them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from book import addresses
from book.layout import LANGUAGES, Book
from tests.browser.conftest import ROOT
from tests.browser.faults import Reader, Watch, axe, settle, wide

pytestmark = pytest.mark.reader

# --- citing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("language", "width"), [("en", 1280), ("ru", 360)])
def test_a_citation_is_opened_and_copied(reader: Reader, language: str, width: int) -> None:
    """By keyboard; the open box has nothing for axe and fits the page in both modes."""
    permissions = ["clipboard-read", "clipboard-write"]
    page, watch = reader(f"{language}/changes.html", width=width, permissions=permissions)
    settle(page)
    summary = page.locator("details.citation > summary")
    summary.focus()
    page.keyboard.press("Enter")
    box = page.locator("details.citation .highlight-bibtex")
    box.wait_for()
    box.locator("button.copybtn").focus()
    page.keyboard.press("Enter")
    box.locator("button.copybtn.success").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == box.locator("pre").inner_text().strip()
    assert copied.startswith("@incollection{keydoor")
    faults = wide(page, keyboard=True) + axe(page)
    page.emulate_media(color_scheme="dark")
    settle(page)
    faults += axe(page, contrast_only=True) + watch.faults()
    assert not faults, "\n" + "\n".join(faults)


# --- permalinks -----------------------------------------------------------------------------------------------------

KINDS = ("h2", ".eqno", "figcaption", ".proof > .admonition-title", ".exercise > .admonition-title")


def test_permalinks_show_under_the_pointer_and_with_the_focus(reader: Reader) -> None:
    """In one language: style and template are shared, and `tests/book/test_web.py` reads the titles in both."""
    page, watch = reader("ru/lab.html")
    settle(page)
    for kind in KINDS:
        link = f"article {kind} a.headerlink"
        shown = expect(page.locator(link).first, kind)
        shown.to_have_css("opacity", "0")
        page.locator(f"article {kind}").first.hover()
        shown.to_have_css("opacity", "1")
        page.mouse.move(0, 0)
        shown.to_have_css("opacity", "0")
        page.locator(link).first.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")  # so that the browser takes the focus for one of the keyboard
        shown.to_have_css("opacity", "1")
        assert (page.locator(link).first.get_attribute("title") or "").startswith("Ссылка на эт")
    page.keyboard.press("Enter")
    anchor = page.evaluate("decodeURIComponent(location.hash.slice(1))")
    assert page.evaluate("(anchor) => document.getElementById(anchor) !== null", anchor)
    assert watch.faults() == []


# --- addresses ------------------------------------------------------------------------------------------------------


def test_no_published_address_is_lost(site: Path) -> None:
    """Each leads to a page of the real site, or to a redirect, and each label to its place."""
    known = (ROOT / addresses.ADDRESSES).read_text("utf8").split()
    moved = {old for _, old, _ in addresses.redirects(Book(ROOT, ROOT / "_build"))}
    lost = []
    for language in LANGUAGES:
        there: dict[str, set[str]] = {}
        for address in known:
            page, _, anchor = address.partition("#")
            if page not in there:
                there[page] = addresses.targets(site / language, page)
            gone = not (site / language / page).is_file()
            if gone or (anchor and anchor not in there[page] and not {page, address} & moved):
                lost.append(f"{language}/{address}")
    assert {"lab.html", "lab.html#page-lab"} <= set(known)
    assert lost == []


@contextmanager
def host(folder: Path) -> Iterator[str]:
    """A static host: what it has not gets ``404.html`` of the first folder that has one, with status 404."""

    class Host(SimpleHTTPRequestHandler):
        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            body = next(folder.glob("*/404.html")).read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Host, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_an_address_that_leads_nowhere(site: Path, tmp_path: Path, browser: Browser) -> None:
    """In the folder of a project, at any depth: the language of the address, a way home, and a search for its words."""
    (tmp_path / "project").symlink_to(site)
    with host(tmp_path) as url:
        page = browser.new_context(locale="en-GB").new_page()
        for language, other in (LANGUAGES, LANGUAGES[::-1]):
            page.goto(f"{url}project/{language}/some/where/policy_ratio.html")
            assert page.evaluate("document.documentElement.lang") == language
            assert page.locator(f"section[lang={language}]").is_visible()
            assert not page.locator(f"section[lang={other}]").is_visible()
            assert page.locator(f"section[lang={language}] input").input_value() == "policy_ratio"
            page.locator(f"section[lang={language}] a").click()
            page.wait_for_url(f"{url}project/{language}/index.html")
            page.goto(f"{url}project/{language}/{quote('дисконт')}.html")
            page.locator(f"section[lang={language}] button").click()
            page.wait_for_url(f"{url}project/{language}/search.html?q=*")
            page.goto(f"{url}project/{language}/policy_ratio.html")
            assert axe(page) == []
        page.goto(f"{url}nowhere")
        assert page.locator("section").evaluate_all("all => all.filter((e) => !e.hidden).length") == 2
        page.context.close()


def test_a_moved_page_leads_on(tmp_path: Path, browser: Browser) -> None:
    """With the place in it, which may have moved elsewhere; without scripts too."""
    book = Book(tmp_path, tmp_path / "_build")
    (tmp_path / "book").mkdir()
    lines = "old,new\na/old.html,b/new.html\na/old.html#far,far.html#here\n"
    (tmp_path / "book/redirects.csv").write_text(lines, "utf8")
    for name in ("b/new", "far"):
        path = tmp_path / f"site/ru/{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("<p id=here>x", "utf8")
    addresses.write_redirects(book, tmp_path / "site")
    with host(tmp_path / "site") as url:
        for scripts in (True, False):
            page = browser.new_context(java_script_enabled=scripts).new_page()
            for old, new in (("", "b/new.html"), ("#near", "b/new.html#near"), ("#far", "far.html#here")):
                if scripts or not old:
                    page.goto("about:blank")
                    page.goto(f"{url}ru/a/old.html{old}")
                    page.wait_for_url(f"{url}ru/{new}")
            page.context.close()


# --- content security policy ----------------------------------------------------------------------------------------

PLANT = """(kind) => new Promise((done) => {
  addEventListener("securitypolicyviolation", (e) => done(e.effectiveDirective), { once: true });
  const script = document.createElement("script");
  if (kind === "foreign") script.src = "https://example.org/planted.js";
  if (kind === "inline") script.textContent = "window.planted = true";
  if (kind === "handler") {
    document.body.insertAdjacentHTML("beforeend", '<b id="new-button" onclick="window.planted = true"></b>');
    document.querySelector("#new-button").click();
  }
  if (kind === "string") setTimeout("window.planted = true");
  if (kind === "fetch") fetch("https://example.org/").catch(() => {});
  if (script.src || script.textContent) document.head.append(script);
  setTimeout(() => done("nothing was blocked"), 2000);
})"""


def test_a_planted_script_does_not_run(reader: Reader) -> None:
    """Neither one of another host nor one in the page, in a handler or in a string; and no page calls home."""
    page, watch = reader("ru/notation.html")
    settle(page)
    assert watch.faults() == []
    wanted = {
        "foreign": "script-src-elem",
        "inline": "script-src-elem",
        "handler": "script-src-attr",
        "string": "script-src",
        "fetch": "connect-src",
    }
    assert {kind: page.evaluate(PLANT, kind) for kind in wanted} == wanted
    assert page.evaluate("window.planted") is None


def test_buttons_of_the_theme_run(reader: Reader) -> None:
    """Their handlers stand in attributes, and the policy knows them by their hashes."""
    page, watch = reader("en/changes.html")
    page.evaluate("window.toggleFullScreen = () => { window.called = true; }")
    page.locator("button.btn-fullscreen-button").click()
    assert page.evaluate("window.called") is True
    assert watch.faults() == []


def test_the_policy_lets_the_unpacked_folder_be_read(site: Path, browser: Browser) -> None:
    """From a disk: scripts, style and formulas come from beside the page (fonts Chromium takes from a server only)."""
    page = browser.new_context().new_page()
    watch = Watch(page, site.as_uri())
    page.goto((site / "en/notation.html").as_uri())
    settle(page)
    assert page.locator("mjx-container").count() > 10
    assert [fault for fault in watch.faults() if "Content Security Policy" in fault] == []
    page.context.close()
