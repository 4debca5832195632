"""What can be wrong with a page that a browser has drawn: each function returns its findings as lines of text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Page, Request

Reader = Callable[..., tuple[Page, "Watch"]]

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
SCRIPT = Path(__file__).with_suffix(".js")


class Watch:
    """Listens to a page: its console, failed requests, requests to other hosts. :meth:`faults` reports and forgets."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.found: list[str] = []
        self.listeners = {
            "console": self.said,
            "pageerror": lambda error: self.found.append(f"script error: {error}"),
            "request": lambda request: self.asked(request.url),
            "websocket": lambda socket: self.asked(socket.url),
            "response": lambda r: self.found.append(f"status {r.status}: {r.url}") if r.status >= 400 else None,
            "requestfailed": self.failed,
        }
        for event, listener in self.listeners.items():
            page.on(event, listener)

    def said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.found.append(f"console {message.type}: {message.text}")

    def asked(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:", "about:")):
            self.found.append(f"asks another host: {url}")

    def failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # by the browser itself, when a page is left
            self.found.append(f"request failed, {request.failure}: {request.url}")

    def faults(self) -> list[str]:
        found = list(self.found)
        self.found.clear()
        return found

    def stop(self) -> None:
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)


def settle(page: Page) -> None:
    """Wait until formulas are set and the layout has followed."""
    page.wait_for_load_state("load")
    page.evaluate("async () => { await window.MathJax?.startup?.promise; await document.fonts.ready; }")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def call(page: Page, name: str, argument: object = None) -> Any:
    """Call a function of ``faults.js`` in the page."""
    if page.evaluate("() => !window.faults"):
        page.evaluate(SCRIPT.read_text("utf8"))
    return page.evaluate("([name, argument]) => faults[name](argument)", [name, argument])


def wide(page: Page, *, printed: bool = False, keyboard: bool = False) -> list[str]:
    """Everything that a reader cannot get into view: outside the window, or cut off by a box that does not scroll.

    Args:
        page: the page, settled.
        printed: on paper no box scrolls.
        keyboard: without a mouse only a box scrolls that takes the focus. The theme sees to it when a page is loaded,
            and 0.3 s after a change of the window.
    """
    return call(page, "wide", {"printed": printed, "keyboard": keyboard})


def equations(page: Page) -> list[str]:
    """Formulas with an error, and formulas that MathJax has not set."""
    return call(page, "equations")


def identifiers(page: Page) -> list[str]:
    """Identifiers that stand more than once; axe has retired its rule for them."""
    return call(page, "identifiers")


def sheets(page: Page) -> list[str]:
    """Style sheets outside of the head: a new rule, and the styles and the layout of the page are computed anew."""
    return call(page, "sheets")


def motion(page: Page) -> list[str]:
    """Elements that would move or fade."""
    return call(page, "motion")


def lighten(page: Page) -> None:
    """Put a box of its size in the place of each formula and figure, and plain text in that of coloured code.

    What follows, a change of the window or of the colours, then takes a fraction of its time. Look at formulas and code
    before.
    """
    call(page, "lighten")


def alone(page: Page, part: str) -> None:
    """Take the text around a part of the page away, so that what follows is quick: a chapter is a large page."""
    call(page, "alone", part)


def axe(page: Page, *, contrast_only: bool = False, known: set[int] | None = None) -> list[str]:
    """What axe-core finds: all rules of WCAG 2 A and AA and of good practice, or the contrast of text alone.

    What repeats itself on the page is taken out of it: look at all else first.

    Args:
        page: the page, settled.
        contrast_only: leave out what does not depend on colours.
        known: looks and outlines that have been found right, in this mode and about this width; those found right now
            are added. Style sheets are the same on all pages of the site.
    """
    known = set() if known is None else known
    new = []
    if page.evaluate("() => !window.axe"):
        page.evaluate(AXE.read_text("utf8") + ";0")
        new = call(page, "thin", sorted(known))
    looks, found = call(page, "barriers", {"known": sorted(known), "contrastOnly": contrast_only})
    if not found:
        known.update(new + looks)
    return found
