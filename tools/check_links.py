"""Try the external links of the book: those of its pages, of the README and its kin, and of the references.

``make links`` needs a network, reports and never blocks: the status is 0 unless ``--strict`` is given. A host that
refuses programs (403, 429) says nothing about its page, and is counted apart.
"""

from __future__ import annotations

import argparse
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urldefrag, urlsplit

from pybtex.database import parse_string

from book.gates.references import identifiers, line_of, normal
from book.gates.tokens import leaves
from book.layout import Book, Problem

SCHEMES = ("https",)
SECONDS = 20
AT_ONCE = 4
AGENT = "Mozilla/5.0 (compatible; keydoor-link-check)"
REFUSALS = (401, 403, 405, 429, 999)
"""Answers by which a host turns programs away."""


class Link(NamedTuple):
    """An address, and where it stands."""

    path: Path
    line: int
    url: str


def links(book: Book) -> Iterator[Link]:
    """All external links; hosts of this machine are none."""
    pages = [*book.all_pages(), *sorted(book.root.glob("*.md"))]
    for path in pages:
        for line, token in leaves(path):
            url = str(token.attrs.get("href", "")) if token.type == "link_open" else ""
            if urlsplit(url).scheme in ("http", "https"):
                yield Link(path, line, url)
    bibliography = book.source / "references.bib"
    if bibliography.is_file():
        text = bibliography.read_text("utf8")
        for key, entry in parse_string(text, "bibtex").entries.items():
            for item in identifiers(entry):
                prefix = {"DOI": "https://doi.org/", "arXiv id": "https://arxiv.org/abs/", "url": ""}.get(item.kind)
                if prefix is not None:
                    value = normal(item) if item.kind == "arXiv id" else item.value
                    yield Link(bibliography, line_of(text, key, item.field), prefix + value)


def fault(url: str, seconds: float = SECONDS) -> str:
    """What is wrong with an address: first asked for its head, then, where that is refused, for its page.

    Returns:
        Empty if the page is there; else the status or the error.
    """
    if urlsplit(url).scheme not in SCHEMES:
        return "it is not https"
    message = ""
    for method in ("HEAD", "GET"):
        request = urllib.request.Request(url, method=method, headers={"User-Agent": AGENT, "Accept": "*/*"})
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                end = urlsplit(answer.url).scheme
                return "" if end in SCHEMES else f"it leads to {answer.url}, which is not https"
        except urllib.error.HTTPError as error:
            error.close()
            message = f"{'refused' if error.code in REFUSALS else 'answer'} {error.code} {error.reason}"
        except (OSError, ValueError) as error:
            return f"no answer: {getattr(error, 'reason', None) or error or type(error).__name__}"
    return message


def check(book: Book, seconds: float = SECONDS) -> tuple[list[Problem], list[Problem], int]:
    """Try every address once, a few at a time.

    Returns:
        Links that are broken, links whose host turns programs away, and the number of addresses.
    """
    where: dict[str, list[Link]] = {}
    for link in links(book):
        where.setdefault(urldefrag(link.url).url, []).append(link)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = dict(zip(where, pool.map(lambda url: fault(url, seconds), where), strict=True))
    broken, refused = [], []
    for url, message in answers.items():
        if message:
            group = refused if re.match("refused", message) else broken
            group += [Problem(link.path, link.line, f"{link.url}: {message}") for link in where[url]]
    return sorted(broken), sorted(refused), len(where)


def main(arguments: list[str] | None = None) -> int:
    """Command line; the status is 1 only with ``--strict`` and a broken link."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_links", description="Try the book's external links.")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="folder with _config.yml (default: here)")
    parser.add_argument("--strict", action="store_true", help="end with status 1 if a link is broken")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to wait for an answer")
    options = parser.parse_args(arguments)
    book = Book(options.root.resolve(), options.root.resolve() / "_build")
    broken, refused, count = check(book, options.seconds)
    for problem in broken + refused:
        print(problem.text(book))
    if broken and all(": no answer: " in problem.message for problem in broken):
        print("No host answered: is there a network?")
    print(f"{count} addresses: {len(broken)} link(s) broken, {len(refused)} not shown to programs.")
    return int(options.strict and bool(broken))


if __name__ == "__main__":
    sys.exit(main())
