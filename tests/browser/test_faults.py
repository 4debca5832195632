"""Each fault that these tests look for is found when planted in a page of a few lines; right pages are quiet."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import find_chromium, missing
from tests.browser.conftest import ROOT, serving
from tests.browser.faults import Watch, axe, equations, identifiers, motion, settle, sheets, wide

MATHJAX = ROOT / "book" / "vendor" / "mathjax" / "tex-mml-chtml.js"
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf8"><title>A page</title><link rel="icon" href="data:,">{head}</head>
<body style="background: white"><main><h1 style="font-size: 1rem">A page</h1>{body}</main></body>
</html>
"""
Show = Callable[[str], tuple[Page, Watch]]


@pytest.fixture(scope="module")
def show(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Show]:
    """Open a page with this content, 360 px wide."""
    folder = tmp_path_factory.mktemp("pages")
    with serving(folder) as url:
        page = browser.new_page(viewport={"width": 360, "height": 900})
        number = count()

        def draw(body: str, head: str = "") -> tuple[Page, Watch]:
            path = folder / f"{next(number)}.html"  # a new name: the browser would keep the old page
            path.write_text(PAGE.format(head=head, body=body), "utf8")
            watch = Watch(page, url)
            page.goto(url + path.name)
            settle(page)
            return page, watch

        yield draw
        page.close()


def look(page: Page, watch: Watch) -> list[str]:
    return [*watch.faults(), *equations(page), *identifiers(page), *sheets(page), *wide(page, keyboard=True)]


@pytest.mark.parametrize(
    "body",
    [
        "<p>Some words, and <a href='#'>a link</a>.</p>",
        "<div style='overflow-x: auto' tabindex='0'><div style='width: 900px'>a wide table in its box</div></div>",
        "<div style='visibility: hidden; position: absolute; left: -400px; width: 300px'>a closed sidebar</div>",
        "<span style='position: absolute; width: 1px; height: 1px; overflow: hidden'>for screen readers only</span>",
    ],
)
def test_right_pages_are_quiet(show: Show, body: str) -> None:
    page, watch = show(body)
    assert look(page, watch) + axe(page) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<div style='width: 400px'>too wide</div>", "the page is 408 px wide"),
        ("<div style='width: 400px'>too wide</div>", 'from 8 to 408 px: <div class=""> too wide'),
        ("<p style='margin-left: -50px; width: 300px'>left of the window</p>", "from -42 to 258 px"),
        ("<div style='overflow: hidden'><p style='width: 500px'>lost</p></div>", "cut off at 344 of 500 px"),
        ("<pre style='overflow: auto' tabindex='-1'>" + "long " * 99 + "</pre>", "the keyboard cannot scroll <pre"),
        ("<p id='one'></p><p id='one'></p>", "the identifier one stands twice"),
        ("<style>p { color: black }</style>", "a style sheet in the text, which makes a browser begin again: p {"),
        (
            "<svg><style>* { fill: red }</style></svg>",
            "a style sheet in the text, which makes a browser begin again: * {",
        ),
        ("<script>console.error('a complaint')</script>", "console error: a complaint"),
        ("<script>console.warn('a complaint')</script>", "console warning: a complaint"),
        ("<script>undefinedFunction()</script>", "script error: undefinedFunction is not defined"),
        ("<img src='gone.png' alt='gone'>", "status 404: http://127.0.0.1:"),
        (
            "<img src='http://localhost:9/one.png' alt='one'>",
            "asks another host: http://localhost:9/one.png",
        ),
        ("<img src='http://localhost:9/one.png' alt='one'>", "request failed, net::ERR_"),
        ("<button></button>", "axe button-name: "),
        ("<p style='color: #999'>pale</p>", "axe color-contrast: "),
        (
            "<pre><span style='color: #999'>pale</span> <span style='color: #999'>code</span></pre>",
            "axe color-contrast: ",
        ),
        ("<p>one</p><p style='color: #999'>pale among others</p>", "axe color-contrast: "),
        ("<ul><li><a href='#'>one</a></li><li><a href='#'></a></li></ul>", "axe link-name: "),
        ("<p>one</p><p role='nosuchrole'>two</p>", "axe aria-roles: "),
        ("<table><tr><th></th><th>a</th></tr><tr><td>1</td><td>2</td></tr></table>", "axe empty-table-header: "),
    ],
)
def test_faults_are_found(show: Show, body: str, message: str) -> None:
    page, watch = show(body)
    found = axe(page) if message.startswith("axe") else look(page, watch)
    assert any(fault.startswith(message) for fault in found), found


def test_paper_does_not_scroll(show: Show) -> None:
    page, _ = show("<div style='overflow-x: auto' tabindex='0'><div style='width: 900px'>wide</div></div>")
    assert wide(page) == []
    assert [fault.split(":")[0] for fault in wide(page, printed=True)] == ["cut off at 344 of 900 px"]


def test_formulas_that_mathjax_refuses(show: Show) -> None:
    """An undefined macro is an error only without the package ``noundefined``, as in ``_config.yml``.

    A formula that MathJax was not shown stays bare.
    """
    config = '<script>window.MathJax = {tex: {packages: {"[-]": ["noundefined", "noerrors"]}}}</script>'
    head = f"{config}<script>{MATHJAX.read_text('utf8')}</script>"
    page, _ = show(r'<span class="math">\(a^2\)</span>', head)
    assert equations(page) == []
    page, _ = show(r'<span class="math">\(a^2\)</span> <span class="math">\(\nosuchmacro\)</span>', head)
    assert equations(page) == [r"formula not understood: Undefined control sequence \nosuchmacro"]
    page, _ = show(r'<span class="math">\(a^2\)</span> <span class="math">b^2</span>', head)
    assert equations(page) == ["1 of 2 formulas are set"]


def test_a_colour_is_looked_at_on_every_ground(show: Show) -> None:
    """Thinning out code does not lose the one word that is unreadable: same colour, other ground."""
    word = "<span style='color: #767676'>word</span> "
    page, _ = show(f"<pre>{word * 5}</pre>")
    assert axe(page, contrast_only=True) == []
    page, _ = show(f"<pre>{word * 5}</pre><pre style='background: #ddd'>{word * 5}</pre>")
    assert len(axe(page, contrast_only=True)) == 1


def test_a_colour_that_no_class_tells_is_looked_at(show: Show) -> None:
    """One paragraph of many that are alike has a colour by its identifier."""
    page, _ = show("<p>one</p>" * 3 + "<p id='pale'>four</p>", "<style>#pale { color: #999 }</style>")
    assert len(axe(page, contrast_only=True)) == 1


@pytest.mark.parametrize(
    ("right", "wrong", "rule"),
    [
        ("<p>one</p>", "<p style='color: #999'>pale</p>", "color-contrast"),
        ("<p>one</p>", "<p role='nosuchrole'>two</p>", "aria-roles"),
        ("<ul><li><a href='#'>one</a></li></ul>", "<ul><li><a href='#'></a></li></ul>", "link-name"),
        ("<p><b role='img' aria-label='a'></b></p>", "<p><b role='img' aria-label=' '></b></p>", "role-img-alt"),
        (
            "<p>many words stand around <a href='#'>link</a></p>",
            "<p>many words stand around <a href='#' style='color: #222; text-decoration: none'>link</a></p>",
            "link-in-text-block",
        ),
    ],
)
def test_what_earlier_pages_have_shown_hides_no_fault(show: Show, right: str, wrong: str, rule: str) -> None:
    """What is known to be right is left out; what differs from it is looked at, and never becomes known."""
    known: set[int] = set()
    assert axe(show(right)[0], known=known) == []
    before = set(known)
    assert before
    assert axe(show(right)[0], known=known) == []
    assert known == before
    for _ in range(2):
        (fault,) = axe(show(wrong)[0], known=known)
        assert fault.startswith(f"axe {rule}: ")
        assert known == before


def test_motion_is_found(show: Show) -> None:
    page, _ = show("<p>still</p>")
    assert motion(page) == []
    page, _ = show("<p style='transition: color 1s'>fades</p>")
    assert len(motion(page)) == 1
    page, _ = show("<p>still</p>", "<style>html { scroll-behavior: smooth }</style>")
    assert len(motion(page)) == 1


def test_which_browser_is_taken(tmp_path: Path) -> None:
    """The one that is named, else the first on the path; a name that does not exist is no reason to take another."""
    assert find_chromium({"PATH": str(tmp_path)}) is None
    for name in ("google-chrome", "chromium", "chromium-headless-shell"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert find_chromium({"PATH": str(tmp_path)}) == str(tmp_path / name)
    assert find_chromium({"KEYDOOR_CHROMIUM": str(tmp_path / "google-chrome")}) == str(tmp_path / "google-chrome")
    assert find_chromium({"PATH": str(tmp_path), "KEYDOOR_CHROMIUM": str(tmp_path / "gone")}) is None


def test_without_a_browser_one_line_says_what_to_do(tmp_path: Path) -> None:
    """Before anything long begins: `make test` and `make reader` ask first, `make browser` asks for nothing else."""

    def ask(**environ: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.browser.chromium"]
        return subprocess.run(command, cwd=ROOT, env={"PATH": str(tmp_path), **environ}, capture_output=True, text=True)

    nothing = ask()
    assert nothing.returncode == 1
    assert nothing.stderr.count("\n") == 1
    assert "sudo apt-get install chromium" in nothing.stderr
    assert "KEYDOOR_CHROMIUM=/path/to/it" in nothing.stderr
    assert ask(KEYDOOR_CHROMIUM="/gone").stderr == missing({"KEYDOOR_CHROMIUM": "/gone"}) + "\n"
    assert ask(KEYDOOR_NO_BROWSER="1").returncode == 0
    assert ask(KEYDOOR_CHROMIUM=sys.executable).returncode == 0
    makefile = (ROOT / "Makefile").read_text("utf8")
    assert re.search(r"^browser: chromium .*\n", makefile, flags=re.M)
    assert "-m tests.browser.chromium ||" in re.search(r"^TRY_CHROMIUM := (.*)\n", makefile, flags=re.M)[1]
    for target in ("test", "reader"):
        first, *rest = re.search(rf"^{target}: .*\n((?:\t.*\n)+)", makefile, flags=re.M)[1].splitlines()
        assert first == "\t@$(TRY_CHROMIUM)"
        assert not any("--ignore" in line for line in rest)
