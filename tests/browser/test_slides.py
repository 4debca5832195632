"""The lecture view in the browser: every slide of every chapter, by keyboard, in both modes, on paper."""

from __future__ import annotations

import io
from pathlib import Path

import pikepdf
import pytest
from playwright.sync_api import Page

from book.layout import LANGUAGES
from tests.browser.faults import Reader, axe, equations
from tests.browser.test_pages import LOOKS, PAGES

pytestmark = pytest.mark.reader
NAMES = sorted(name for name, path in PAGES.items() if "{prf:" in path.read_text("utf8"))
OUTSIDE = """() => Array.from(document.querySelectorAll(".slides > section.present"), (slide) => {
  const frame = document.querySelector(".slides").getBoundingClientRect();
  return Array.from(slide.querySelectorAll("h1, p, li, figure, figcaption, mjx-container, table"), (box) => {
    const place = box.getBoundingClientRect();
    const out = place.bottom > frame.bottom + 2 || place.right > frame.right + 2 || place.left < frame.left - 2;
    return out ? `${slide.id}: ${box.tagName} ${box.textContent.trim().slice(0, 60)}` : "";
  }).filter((text) => text);
}).flat()"""


def begin(page: Page) -> int:
    """Wait for the slides; gives how many there are."""
    page.wait_for_function("() => window.Reveal && Reveal.isReady()")
    return int(page.evaluate("Reveal.getTotalSlides()"))


@pytest.mark.parametrize("name", NAMES)
def test_slides(reader: Reader, name: str) -> None:
    """From the first to the last by the space bar; each is inside its frame, and nothing complains."""
    faults = []
    for language, mode in zip(LANGUAGES, ("light", "dark"), strict=True):
        page, watch = reader(f"{language}/{name}-slides.html", width=1280, color_scheme=mode)
        total = begin(page)
        assert total > 1
        seen = []
        for _ in range(total):
            seen.append(page.evaluate("Reveal.getCurrentSlide().id"))
            faults += [f"{language}: does not fit: {text}" for text in page.evaluate(OUTSIDE)]
            page.keyboard.press("Space")
        assert len(set(seen)) == total
        assert page.evaluate("Reveal.isLastSlide()")
        known = LOOKS.setdefault((mode, 0), set())  # slides have a style of their own
        found = watch.faults() + equations(page) + axe(page, contrast_only=mode == "dark", known=known)
        faults += [f"{language}, {mode}: {fault}" for fault in found]
    assert not faults, "\n" + "\n".join(faults)


def test_slides_on_paper_and_without_scripts(reader: Reader, site: Path) -> None:
    """One on each sheet; without scripts they stand one below the other."""
    page, _ = reader(f"ru/{NAMES[0]}-slides.html")
    total = begin(page)
    page.emulate_media(media="print")
    with pikepdf.open(io.BytesIO(page.pdf(prefer_css_page_size=True))) as printed:
        assert len(printed.pages) == total
        assert [round(float(side)) for side in printed.pages[0].MediaBox[2:]] == [960, 540]  # 1280 by 720 px
    page, _ = reader(f"ru/{NAMES[0]}-slides.html", java_script_enabled=False)
    tops = page.locator(".slides > section").evaluate_all(
        "all => all.map((slide) => slide.getBoundingClientRect().top)"
    )
    assert len(tops) == total
    assert tops == sorted(set(tops))


def test_a_page_leads_to_its_slides_and_back(reader: Reader, address: str) -> None:
    """By the button with a name, to the slide of a result by its address, and from it to the result."""
    page, watch = reader(f"en/{NAMES[0]}.html")
    button = page.get_by_role("link", name="Slides of this chapter")
    assert button.get_attribute("href") == f"{NAMES[0]}-slides.html"
    page.goto(f"{address}en/{NAMES[0]}-slides.html")
    begin(page)
    page.keyboard.press("Space")
    place = page.evaluate("Reveal.getCurrentSlide().id")
    page.wait_for_url(f"**#/{place}")
    page.locator("section.present a").first.click()
    page.wait_for_url(f"{address}en/{NAMES[0]}.html#{place}")
    assert not watch.faults()
