"""The addresses of the book: where it is published, which addresses others hold, and where lost ones lead.

``python -m book.addresses`` adds the addresses of the site that was built last to ``tests/data/addresses.txt``. Do so
when a version is published: from then on the build refuses to lose one of them.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from book._ext.changelog import items, read_changelog
from book.layout import LANGUAGES, Book, Problem

PROVIDERS = ("github", "gitlab")
REDIRECTS = "redirects.csv"
ADDRESSES = Path("tests", "data", "addresses.txt")

# --- the two addresses ----------------------------------------------------------------------------------------------


def addresses(book: Book) -> tuple[str, str]:
    """Address of the site, with a slash at its end, and of the repository; each empty while it is not set."""
    config = yaml.safe_load((book.root / "_config.yml").read_text("utf8"))
    site = (config.get("html") or {}).get("baseurl") or ""
    repository = (config.get("repository") or {}).get("url") or ""
    return (f"{site.rstrip('/')}/" if site else ""), repository


def check(book: Book) -> list[Problem]:
    """Addresses that lead nowhere, and errata that one language lacks."""
    path = book.root / "_config.yml"
    text = path.read_text("utf8")
    site, repository = addresses(book)
    problems = []

    def line(key: str) -> int:
        found = re.search(rf"^ +{key}:", text, flags=re.M)
        return text.count("\n", 0, found.start()) + 1 if found else 1

    parts = urlsplit(site)
    if site and not (parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment):
        problems.append(Problem(path, line("baseurl"), f"html: baseurl: {site!r} is no address https://HOST/PATH/"))
    if repository:
        parts = urlsplit(repository)
        if not (
            parts.scheme == "https"
            and any(name in (parts.hostname or "") for name in PROVIDERS)
            and re.fullmatch(r"(/[\w.-]+){2,}/?", parts.path)
        ):
            message = (
                f"repository: url: {repository!r} is no address https://HOST/OWNER/NAME of {' or '.join(PROVIDERS)}"
            )
            problems.append(Problem(path, line("url"), message))
    for version in read_changelog(book.root / "CHANGELOG.md"):
        counts = {language: items(version.errata(language)) for language in LANGUAGES}
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{count} in {language}" for language, count in counts.items())
            message = (
                f"the errata of version {version.number} differ in number ({shown}): ### Errata and ### Errata (ru)"
            )
            problems.append(Problem(book.root / "CHANGELOG.md", version.line, message))
    return problems


# --- addresses that others hold -------------------------------------------------------------------------------------


def published(folder: Path) -> set[str]:
    """Addresses that readers of one language can hold: pages, and the anchors to which pages offer a link.

    Objects of the package are left out: ``public_api.json`` guards them.
    """
    found = set()
    for path in folder.rglob("*.html"):
        name = path.relative_to(folder).as_posix()
        if name.startswith(("_static/", "_modules/", "_sources/")):
            continue
        found.add(name)
        for anchor in re.findall(r'<a class="headerlink" href="#([^"]+)"', path.read_text("utf8")):
            if not anchor.startswith(("keydoor.", "module-keydoor", "term-")):
                found.add(f"{name}#{html.unescape(anchor)}")
    return found


def in_all(folders: Mapping[str, Path]) -> set[str]:
    """Addresses that stand in every language: those that a label or a file name makes."""
    return set.intersection(*(published(folder) for folder in folders.values()))


def targets(folder: Path, page: str) -> set[str]:
    """All places of a page to which an address can lead."""
    path = folder / page
    return set(re.findall(r'\bid="([^"]+)"', path.read_text("utf8"))) if path.is_file() else set()


def redirects(book: Book) -> Iterator[tuple[int, str, str]]:
    """Lines of ``book/redirects.csv``: number, old address, new address, both inside a language's folder."""
    path = book.source / REDIRECTS
    if path.is_file():
        with path.open(encoding="utf8", newline="") as file:
            for row in (reader := csv.DictReader(file)):
                yield reader.line_num, (row.get("old") or "").strip(), (row.get("new") or "").strip()


def check_addresses(book: Book, folders: Mapping[str, Path], known: Path | None = None) -> list[Problem]:
    """Redirects that lead nowhere, and published addresses that lead nowhere any more.

    Args:
        book: the book.
        folders: of the finished pages, by language.
        known: the list of published addresses; default: that of the book.
    """
    path, known = book.source / REDIRECTS, known or book.root / ADDRESSES
    problems = []
    moved: dict[str, str] = {}
    for line, old, new in redirects(book):
        page, _, anchor = new.partition("#")
        for language in LANGUAGES:
            if not (folders[language] / page).is_file() or not page.endswith(".html"):
                problems.append(Problem(path, line, f"{old} leads to {new}, and there is no page {language}/{page}"))
            elif anchor and anchor not in targets(folders[language], page):
                problems.append(Problem(path, line, f"{old} leads to {new}, and {language}/{page} has no such label"))
            if not re.fullmatch(r"[\w./-]+\.html(#.+)?", old) or (folders[language] / old.partition("#")[0]).is_file():
                message = f"{old!r} is no page that has gone: PAGE.html, or PAGE.html#LABEL for one place of it"
                problems.append(Problem(path, line, message))
        moved[old] = new
    if known.is_file():
        there = {
            (language, page): targets(folders[language], page)
            for language in LANGUAGES
            for page in {line.partition("#")[0] for line in known.read_text("utf8").split()}
        }
        for number, address in enumerate(known.read_text("utf8").split(), 1):
            page, _, anchor = address.partition("#")
            if address in moved or page in moved:
                continue
            for language in LANGUAGES:
                if not (folders[language] / page).is_file():
                    what = f"name its new address in book/{REDIRECTS}"
                elif anchor and anchor not in there[language, page]:
                    label = anchor.removeprefix("equation-")
                    what = f"put the old label as ({label})= above the place that it named"
                else:
                    continue
                message = f"{language}/{address} has been published and is lost: {what}"
                problems.append(Problem(known, number, message))
    return sorted(set(problems))


REDIRECT = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<title>{word}</title>
<meta name="robots" content="noindex">
<noscript><meta http-equiv="refresh" content="0; url={new}"></noscript>
<script>
  // Places of this page that have moved elsewhere; any other keeps its label.
  const places = {places};
  const hash = decodeURIComponent(location.hash.slice(1));
  location.replace(places[hash] || "{new}" + ("{new}".includes("#") ? "" : location.hash));
</script>
</head>
<body><p><a href="{new}">{word}</a></p></body>
</html>
"""
MOVED = {"en": "This page has moved", "ru": "Эта страница переехала"}


def write_redirects(book: Book, site: Path) -> None:
    """A small page in place of each that has gone."""
    pages: dict[str, str] = {}
    places: dict[str, dict[str, str]] = {}
    for _, old, new in redirects(book):
        page, _, anchor = old.partition("#")
        new = "../" * page.count("/") + new
        if anchor:
            places.setdefault(page, {})[anchor] = new
        else:
            pages[page] = new
    for page in sorted(pages.keys() | places.keys()):
        for language in LANGUAGES:
            file = site / language / page
            file.parent.mkdir(parents=True, exist_ok=True)
            table = json.dumps(places.get(page, {}), ensure_ascii=False).replace("<", "\\u003c")
            new = html.escape(pages.get(page) or next(iter(places[page].values())))
            file.write_text(REDIRECT.format(language=language, word=MOVED[language], new=new, places=table), "utf8")


def record(book: Book) -> int:
    """Add the addresses of the site that was built last to the list; gives how many were new. None is ever removed."""
    path = book.root / ADDRESSES
    known = set(path.read_text("utf8").split()) if path.is_file() else set()
    found = in_all({language: book.output / "render" / language / "html" for language in LANGUAGES})
    path.write_text("".join(f"{address}\n" for address in sorted(known | found)), "utf8")
    return len(found - known)


if __name__ == "__main__":
    here = Path.cwd()
    print(f"{record(Book(here, here / '_build'))} new address(es) in {ADDRESSES}")
