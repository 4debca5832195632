"""Pictures of the main kinds of page, for a person to look at, and the facts of their layout, for the test.

Pictures are kept in ``_build/screens``: both languages, light and dark, desk and telephone. They are not compared pixel
by pixel, which differs with every font; what is compared is where the parts of a page lie.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from book.layout import LANGUAGES
from tests.browser.conftest import ROOT
from tests.browser.faults import Reader, settle
from tests.browser.test_pages import DESK, TELEPHONE

pytestmark = pytest.mark.reader
SCREENS = ROOT / "_build" / "screens"
KINDS = {"index": "the welcome page", "stopping": "a chapter", "glossary": "a table", "search": "the search"}
TEXT = "article.bd-article, .bd-search-container"
PARTS = (".bd-sidebar-primary", ".bd-header-article", TEXT, ".bd-sidebar-secondary", "footer.bd-footer")


def boxes(page: Page) -> dict[str, dict[str, float]]:
    """Where the parts of a page lie, of those that can be seen."""
    return page.evaluate(
        """(parts) => Object.fromEntries(parts.flatMap((part) => {
          const e = document.querySelector(part);
          if (!e?.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return [];
          const { left, right, top, bottom } = e.getBoundingClientRect();
          const inside = right > 0 && left < innerWidth && right > left && bottom > top;
          return inside ? [[part, { left, right, top, bottom }]] : [];
        }))""",
        PARTS,
    )


def overlaps(found: dict[str, dict[str, float]]) -> list[str]:
    """Pairs of parts that lie on one another by more than a pixel."""
    names, faults = list(found), []
    for n, one in enumerate(names):
        for other in names[n + 1 :]:
            a, b = found[one], found[other]
            wide = min(a["right"], b["right"]) - max(a["left"], b["left"])
            high = min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
            if wide > 1 and high > 1:
                faults.append(f"{one} and {other} overlap by {wide:.0f} x {high:.0f} px")
    return faults


def test_overlaps_are_found() -> None:
    one = {"left": 0, "right": 10, "top": 0, "bottom": 10}
    assert overlaps({"a": one, "b": {**one, "left": 10, "right": 20}}) == []
    assert overlaps({"a": one, "b": {**one, "left": 5, "right": 20}}) == ["a and b overlap by 5 x 10 px"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", KINDS)
def test_screens(reader: Reader, name: str, language: str) -> None:
    """Text in the middle, at least half of the window wide on a telephone; on a desk the contents at its left."""
    page, watch = reader(f"{language}/{name}.html", width=DESK)
    folder: Path = SCREENS / language
    folder.mkdir(parents=True, exist_ok=True)
    for width in (DESK, TELEPHONE):
        page.set_viewport_size({"width": width, "height": 900})
        for mode in ("light", "dark"):
            page.emulate_media(color_scheme=mode)
            settle(page)
            page.screenshot(path=folder / f"{name}-{mode}-{width}.png")
        found = boxes(page)
        assert overlaps(found) == []
        text = found[TEXT]
        assert text["left"] >= 0
        assert text["right"] <= width
        if width == TELEPHONE:
            assert text["right"] - text["left"] > 0.8 * width
            assert ".bd-sidebar-primary" not in found
        else:
            assert found[".bd-sidebar-primary"]["right"] <= text["left"]
            assert 500 < text["right"] - text["left"] < 900
    assert watch.faults() == []
