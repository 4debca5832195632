"""The real site in the system's Chromium: one server and one browser for all tests of this folder in a process.

No browser is downloaded. `KEYDOOR_CHROMIUM=/path/to/it` chooses one, `KEYDOOR_NO_BROWSER=1` skips these tests.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, Page, sync_playwright

from book.assemble import site_is_fresh
from book.layout import Book
from tests.browser.chromium import LEFT_OUT, find_chromium, left_out, missing
from tests.browser.faults import Reader, Watch

ROOT = Path(__file__).resolve().parents[2]
PROFILE = {"RL_LLM_PROFILE": "full"}  # the site that readers see, whatever the profile of the other tests


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser. Asked for first, so that nothing is built where there is none.

    Where the system has none these tests are skipped with the line that installs it; one that was named and is not
    there is a fault.
    """
    if left_out(os.environ):
        pytest.skip(LEFT_OUT)
    found = find_chromium(os.environ)
    if not found and os.environ.get("KEYDOOR_CHROMIUM"):
        pytest.fail(missing(os.environ), pytrace=False)
    return found or pytest.skip(missing(os.environ))


@pytest.fixture(scope="session")
def site(chromium: str) -> Path:
    """The folder of the real site: the one that stands in `_build` if it is of the present sources, else a new one."""
    book = Book(ROOT, ROOT / "_build")
    book.output.mkdir(exist_ok=True)
    with FileLock(book.output / "browser.lock"):  # one worker builds, the others wait and find it fresh
        if not site_is_fresh(book, PROFILE):
            command = [sys.executable, "-m", "book.build"]
            result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **PROFILE})
            if result.returncode:
                pytest.fail(f"the book does not build, so there is no site to try:\n{result.stderr}", pytrace=False)
    return book.output / "html"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port; gives the address, which ends in a slash."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    with serving(site) as url:
        yield url


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """One browser for the session."""
    # Chromium has no sandbox for root, whom containers work as.
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--disable-gpu", *(["--no-sandbox"] if root else [])]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def _pages(browser: Browser) -> Iterator[dict[str, Page]]:
    pages: dict[str, Page] = {}
    yield pages
    for page in pages.values():
        page.context.close()


@pytest.fixture
def reader(address: str, browser: Browser, _pages: dict[str, Page]) -> Iterator[Reader]:
    """Opens pages of the site: ``reader("en/lab.html", width=360, color_scheme="dark")`` gives page and watch.

    Equal options share a window, with its cache and storage. Motion is reduced, so that colours are the final ones at
    once.
    """
    watches: list[Watch] = []

    def read(path: str, *, width: int = 1280, **options: Any) -> tuple[Page, Watch]:
        options = {"color_scheme": "light", "reduced_motion": "reduce", "locale": "en-GB", **options}
        key = repr(sorted(options.items()))
        if key not in _pages:
            _pages[key] = browser.new_context(**options).new_page()
        page = _pages[key]
        page.goto("about:blank")  # what the last page still asks for is none of this one's faults
        page.emulate_media(media="screen", color_scheme=options["color_scheme"])
        page.set_viewport_size({"width": width, "height": 900})
        watches.append(Watch(page, address))
        page.goto(address + path)
        return page, watches[-1]

    yield read
    for watch in watches:
        watch.stop()
