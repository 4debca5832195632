"""Every page of the real site, in both languages, light and dark, on a desk, on a telephone and on paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from book.layout import LANGUAGES, Book
from tests.browser.conftest import ROOT
from tests.browser.faults import Reader, Watch, axe, equations, identifiers, lighten, settle, sheets, wide

DESK, PROJECTOR, TELEPHONE, NARROW, PAPER = 1280, 1920, 360, 320, 680  # px; A4 without its margins is about 680 wide
GENERATED = ("_modules/index", "genindex", "prf-prf", "py-modindex", "search")
LOOKS: dict[tuple[str, int], set[int]] = {}  # and outlines that are known to be right, by mode and width
BOOK = Book(ROOT, ROOT / "_build")
PAGES = BOOK.pages("en")
NAMES = [*sorted(PAGES, key=lambda name: -PAGES[name].stat().st_size), *GENERATED]  # the longest first


def fits(page: Page, widths: tuple[int, ...], *, paper: bool = False) -> list[str]:
    """What a reader cannot get into view in some widths and, where asked for, on paper."""
    faults = []
    if paper:
        page.emulate_media(media="print")
        resize(page, PAPER)
        faults += [f"on paper: {fault}" for fault in wide(page, printed=True)]
        page.emulate_media(media="screen")
    for width in widths:
        resize(page, width)
        faults += [f"{width} px wide: {fault}" for fault in wide(page)]
    return faults


def look(
    page: Page, watch: Watch, modes: tuple[str, str], widths: tuple[int, ...], *, paper: bool = False
) -> list[str]:
    """All faults of a page that has just been opened in the first mode and width.

    It is loaded once and then seen in all widths, on paper where asked for, and in both modes. Formulas and figures
    have their full shape in the first width, and are boxes of the same size afterwards. axe, which takes longest, looks
    in the last width; colours are all that differs between the modes, so that it looks at the rest in one of them only.
    What looks the same on several pages is looked at on the first of them.
    """
    resize(page, widths[0])
    faults = watch.faults() + equations(page) + identifiers(page) + sheets(page)
    faults += [f"{widths[0]} px wide: {fault}" for fault in wide(page, keyboard=True)]
    lighten(page)
    faults += fits(page, widths[1:], paper=paper)
    for mode in modes:
        if mode != modes[0]:
            page.emulate_media(color_scheme=mode)
            settle(page)
        if page.evaluate("document.documentElement.dataset.theme") not in (mode, None):
            faults.append(f"{mode}: the page does not follow the system's colour mode")
        known = LOOKS.setdefault((mode, widths[-1]), set())
        found = axe(page, contrast_only=mode != modes[0], known=known)
        faults += [f"{mode}, {widths[-1]} px wide: {fault}" for fault in found]
    return [f"{page.url.split('/', 3)[3]}: {fault}" for fault in faults + watch.faults()]


def resize(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    settle(page)


@pytest.mark.parametrize("name", NAMES)
def test_page(reader: Reader, address: str, name: str) -> None:
    """Nothing on the console, no failed or foreign request, nothing too wide, all formulas set, nothing for axe.

    One language is loaded in the light on a desk, the other is reached by the switch, in the dark on a telephone. Both
    are then seen in the other width and the other mode; axe sees the first on a telephone, the second on a desk.
    """
    first, second = LANGUAGES
    page, watch = reader(f"{first}/{name}.html", width=DESK)
    faults = look(page, watch, ("light", "dark"), (DESK, TELEPHONE))
    page.locator("a.language-switch").click()
    page.wait_for_url(f"{address}{second}/{name}.html")
    faults += look(page, watch, ("dark", "light"), (TELEPHONE, DESK))
    assert page.evaluate("document.documentElement.lang") == second
    assert page.locator("a.language-switch").evaluate("a => a.href") == f"{address}{first}/{name}.html"
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.reader
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_page_narrow_wide_and_on_paper(reader: Reader, name: str, language: str) -> None:
    """On the narrowest telephone, to which pages have to reflow (WCAG 1.4.10), on a projector, and printed."""
    page, watch = reader(f"{language}/{name}.html", width=NARROW)
    settle(page)
    faults = wide(page, keyboard=True)
    lighten(page)
    faults += fits(page, (PROJECTOR,), paper=True) + watch.faults()
    assert not faults, "\n" + "\n".join(f"{language}/{name}.html: {fault}" for fault in faults)


def test_root_page(reader: Reader) -> None:
    page, watch = reader("index.html?stay")
    faults = look(page, watch, ("light", "dark"), (DESK, TELEPHONE), paper=True)
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.reader
def test_source_listings(reader: Reader, site: Path, address: str) -> None:
    """Listings of modules come from one template and differ in code only; axe reads the longest."""
    listings = sorted(site.glob("en/_modules/keydoor/**/*.html"))
    listings.sort(key=lambda path: path.stat().st_size)
    page, watch = reader("index.html?stay", width=TELEPHONE)
    faults = []
    for path in listings:
        page.goto(address + path.relative_to(site).as_posix())
        settle(page)
        faults += [f"{path.relative_to(site)}: {fault}" for fault in wide(page) + identifiers(page) + watch.faults()]
    faults += look(page, watch, ("light", "dark"), (TELEPHONE, DESK))
    assert listings
    assert not faults, "\n" + "\n".join(faults)


def test_no_page_is_left_out(site: Path) -> None:
    """A page that the build makes of itself has to be named above."""
    for language in LANGUAGES:
        folder = site / language
        made = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.html")}
        made = {name for name in made if not name.startswith(("_static/", "_modules/keydoor"))}
        made = {name for name in made if not name.endswith("-slides")}  # tests/browser/test_slides.py
        assert made == set(NAMES)
