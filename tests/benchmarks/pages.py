"""What a page of the site weighs, and when a reader sees it: ``python -m tests.benchmarks.pages``.

Pages of the built site (``make book``) are opened in the system's Chromium from a server on this machine, 1280 × 900,
each in a window without a cache, and in between those of others: ``--peer NAME=FOLDER/PAGE.html`` names a built page of
another book. Measured are

* the **weight**: all that the page asks for until it is idle, compressed by gzip where a server would compress it;
* the **largest contentful paint** and the **layout shift** as the browser reports them, the median of a few rounds;
* the work of the page's main thread, in seconds, the least of these rounds.

A request to another host is refused and counted: a reader's page would wait for it.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Response, sync_playwright

from tests.benchmarks.recipe import write_json
from tests.browser.chromium import find_chromium, missing
from tests.browser.conftest import serving

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
OURS = ("en/shaping.html", "ru/shaping.html", "en/environment.html", "en/lab.html", "en/api.html", "en/glossary.html")
PACKED = (".html", ".css", ".js", ".mjs", ".json", ".svg", ".txt", "/")
LARGEST = """() => new Promise((done) => {
  const found = { paint: 0, shift: 0 };
  new PerformanceObserver((list) => { found.paint = list.getEntries().at(-1).startTime; })
    .observe({ type: "largest-contentful-paint", buffered: true });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) found.shift += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done({ ...found, elements: document.querySelectorAll("*").length }), 300);
})"""


def weight(response: Response) -> int:
    """Bytes on the way to a reader whose server compresses text."""
    body = response.body() if response.ok else b""
    path = response.url.split("?")[0]
    return len(gzip.compress(body, 6)) if path.endswith(PACKED) else len(body)


def visit(browser: Browser, folder: Path, page: str) -> dict[str, float]:
    """One page, once, in a window of its own."""
    with serving(folder) as address:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        tab, answers, foreign = context.new_page(), [], []

        def route(asked: Any) -> None:
            inside = asked.request.url.startswith((address, "data:", "blob:"))
            if not inside:
                foreign.append(asked.request.url)
            asked.continue_() if inside else asked.abort()

        tab.route("**/*", route)
        tab.on("response", lambda answer: answers.append(answer))
        work = context.new_cdp_session(tab)
        work.send("Performance.enable")
        tab.goto(address + page, wait_until="networkidle", timeout=120_000)
        tab.evaluate("async () => { await window.MathJax?.startup?.promise; await document.fonts.ready; }")
        seen = tab.evaluate(LARGEST)
        total = sum(weight(answer) for answer in answers if answer.request.url.startswith(address))
        spent = {row["name"]: row["value"] for row in work.send("Performance.getMetrics")["metrics"]}
        context.close()
    return {
        "kilobytes": total / 1000,
        "paint_ms": seen["paint"],
        "shift": seen["shift"],
        "elements": seen["elements"],
        "task_seconds": spent["TaskDuration"],
        "requests": len(answers),
        "foreign": len(foreign),
    }


def measure(pages: dict[str, tuple[Path, str]], rounds: int) -> list[dict[str, Any]]:
    """All pages in turn, several times."""
    program = find_chromium(os.environ)
    if not program:
        sys.exit(missing(os.environ))
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in pages}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--disable-gpu", "--no-sandbox"])
        for _ in range(rounds):
            for name, (folder, page) in pages.items():
                seen[name].append(visit(browser, folder, page))
        version = browser.version
        browser.close()
    rows = []
    for name, visits in seen.items():
        row: dict[str, Any] = {"page": name, "browser": version}
        for key in visits[0]:
            values = [one[key] for one in visits]
            row[key] = round(min(values) if key == "task_seconds" else statistics.median(values), 4)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="weigh pages and time them in the system's Chromium")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=FOLDER/PAGE.html")
    parser.add_argument("--about-peers", default="", help="what the report says of the peers")
    parser.add_argument("--save", action="store_true", help="write results/pages.json")
    arguments = parser.parse_args()
    if not SITE.is_dir():
        sys.exit("there is no site in _build/html: run make book first")
    pages = {page: (SITE, page) for page in OURS}
    for peer in arguments.peer:
        name, _, path = peer.partition("=")
        if not Path(path).is_file():
            sys.exit(f"--peer {peer}: there is no file {path!r}; expected NAME=FOLDER/PAGE.html")
        pages[name] = (Path(path).parent, Path(path).name)
    rows = measure(pages, arguments.rounds)
    for row in rows:
        print(
            "{page:34} {kilobytes:8.0f} kB {paint_ms:8.0f} ms, shift {shift:.3f}, {task_seconds:.2f} s of work, "
            "{elements:.0f} elements, {requests:.0f} requests, {foreign:.0f} to others".format(**row)
        )
    if arguments.save:
        print(write_json("pages.json", {"rounds": arguments.rounds, "peers": arguments.about_peers, "rows": rows}))


if __name__ == "__main__":
    main()
