"""Put the site together: both languages, a root page, the course as a zip; then swap it in at once."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from book import execute, typeset, web
from book._ext import live_files
from book._ext.runnable import read_package
from book.layout import LANGUAGES, Book
from book.offer import STAMP, course_name, offer

ROOT_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reinforcement Learning for Agents That Act Through Tools · Обучение с подкреплением для агентов</title>
<link rel="alternate" hreflang="en" href="en/index.html">
<link rel="alternate" hreflang="ru" href="ru/index.html">
<link rel="alternate" hreflang="x-default" href="index.html">
<link rel="icon" type="image/svg+xml" href="en/_static/key.svg">
<style>
  :root { color-scheme: light dark; background: Canvas; color: CanvasText; }
  body { font: 1.2rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto 0; padding: 0 1.5rem; }
  h1 { font-size: inherit; margin: 1.5rem 0 0; }
  p { margin: 0; }
</style>
<script>
  // The first language of the browser that the book speaks; ?stay shows this page.
  if (!location.search.includes("stay")) {
    const wanted = (navigator.languages || [navigator.language]).map((tag) => tag.slice(0, 2).toLowerCase());
    location.replace((wanted.find((tag) => ["en", "ru"].includes(tag)) || "en") + "/index.html");
  }
</script>
</head>
<body>
<main>
<h1>Reinforcement Learning for Agents That Act Through Tools</h1>
<p><a href="en/index.html" hreflang="en">Read the book in English</a></p>
<h1 lang="ru">Обучение с подкреплением для агентов, действующих через инструменты</h1>
<p><a href="ru/index.html" hreflang="ru" lang="ru">Читать книгу по-русски</a></p>
</main>
</body>
</html>
"""

COURSE = (
    ".ci",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "LICENSE-TEXT",
    "Makefile",
    "README.md",
    "THIRD-PARTY.md",
    "_config.yml",
    "_toc.yml",
    "book",
    "docs",
    "keydoor",
    "pyproject.toml",
    "requirements.in",
    "requirements-language.txt",
    "requirements.txt",
    "tests",
    "tools",
)
"""What the course archive holds: all that is needed to build and test the book after unpacking."""

ROOT_FILES = ("_config.yml", "_toc.yml", "pyproject.toml", "CITATION.cff", "CHANGELOG.md")
"""What the pages are made from outside the folder of the book and the package."""

NOT_IN_COURSE = frozenset({"__pycache__", ".ipynb_checkpoints", "_build"})
EPOCH = (2026, 1, 1, 0, 0, 0)


def write_course(book: Book, path: Path, version: str) -> None:
    """The whole course in one zip, with its folders as they are and the executed notebooks of both languages.

    Equal sources give equal bytes: names are sorted and times are fixed.
    """
    members: dict[str, Path] = {}
    for name in COURSE:
        top = book.root / name
        files = [top] if top.is_file() else sorted(path for path in top.rglob("*") if path.is_file())
        for file in files:
            relative = file.relative_to(book.root)
            if not NOT_IN_COURSE & set(relative.parts) and file.suffix not in (".mo", ".pyc"):
                members[relative.as_posix()] = file
    for language in LANGUAGES:
        folder = book.output / "render" / language / "html" / "_sources"
        for file in sorted(folder.rglob("*.ipynb")):
            members[f"notebooks/{language}/{file.relative_to(folder).as_posix()}"] = file
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(members.items()):
            entry = zipfile.ZipInfo(f"{course_name(version)}/{name}", EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            content = file.read_bytes()
            entry.external_attr = (0o755 if content.startswith(b"#!") else 0o644) << 16
            archive.writestr(entry, content)


def site_key(book: Book, environ: Mapping[str, str] = os.environ) -> str:
    """A hash of all that the pages are made from: package, requirements, profile, texts and the means of the build."""
    digest = hashlib.sha256(execute.cache_key(book, environ).encode())
    files = [book.root / name for name in ROOT_FILES]
    files += sorted(path for path in book.source.rglob("*") if path.is_file())
    for path in files:
        if "__pycache__" not in path.parts and path.suffix != ".mo" and path.is_file():
            digest.update(path.relative_to(book.root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def site_is_fresh(book: Book, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the site that stands in the output folder was built from the present sources."""
    stamp = book.output / "html" / STAMP
    return stamp.is_file() and stamp.read_text("utf8") == site_key(book, environ)


def write_live(book: Book, folder: Path) -> None:
    """The files behind live cells, beside the folders of the languages; a book without them has no live cells."""
    live, package = book.source / "live", book.root / "keydoor"
    if live.is_dir():
        live_files.write(folder, live, package, read_package(package).modules)


def assemble(book: Book, version: str, key: str) -> Path:
    """Make the site beside the old one, then put it in the old one's place.

    Args:
        book: the book.
        version: its version, for the name of the course.
        key: :func:`site_key` as it was when the build began: sources may change while it runs.

    Returns:
        The folder of the site, ``html`` in the output folder.
    """
    site, fresh, old = (book.output / name for name in ("html", "html.new", "html.old"))
    for folder in (fresh, old):
        shutil.rmtree(folder, ignore_errors=True)
    fresh.mkdir(parents=True)
    for language in LANGUAGES:
        shutil.copytree(book.output / "render" / language / "html", fresh / language)
        (fresh / language / ".buildinfo").unlink(missing_ok=True)
    (fresh / "index.html").write_text(ROOT_PAGE, "utf8")
    schema = book.root / "keydoor" / "rollout.schema.json"
    if schema.is_file():
        shutil.copy(schema, fresh / schema.name)
    write_live(book, fresh)
    write_course(book, fresh / f"{course_name(version)}.zip", version)
    typeset.typeset(book, fresh)
    offer(book, fresh, version, key)
    web.finish(book, fresh)
    (fresh / STAMP).write_text(key, "utf8")
    if site.exists():
        site.rename(old)
    fresh.rename(site)
    shutil.rmtree(old, ignore_errors=True)
    return site
