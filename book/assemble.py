"""Put the site together: both languages, a root page, the course as a zip; then swap it in at once."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from book.layout import LANGUAGES, Book

ROOT_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reinforcement Learning for Agents That Act Through Tools · Обучение с подкреплением для агентов</title>
<link rel="alternate" hreflang="en" href="en/index.html">
<link rel="alternate" hreflang="ru" href="ru/index.html">
<link rel="alternate" hreflang="x-default" href="index.html">
<style>
  :root { color-scheme: light dark; }
  body { font: 1.2rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto 0; padding: 0 1.5rem; }
  a { display: block; margin: 1.5rem 0; }
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
<a href="en/index.html" hreflang="en"><strong>Reinforcement Learning for Agents That Act Through Tools</strong><br>
Read the book in English</a>
<a href="ru/index.html" hreflang="ru" lang="ru"><strong>Обучение с подкреплением для агентов, действующих через
инструменты</strong><br>Читать книгу по-русски</a>
</main>
</body>
</html>
"""

COURSE = (
    ".ci",
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
    "requirements.txt",
    "tests",
    "tools",
)
"""What the course archive holds: all that is needed to build and test the book after unpacking."""

NOT_IN_COURSE = frozenset({"__pycache__", ".ipynb_checkpoints", "_build"})
EPOCH = (2026, 1, 1, 0, 0, 0)


def course_name(version: str) -> str:
    """File name of the course archive, without suffix; the folder inside has the same name."""
    return f"keydoor-book-{version}"


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
            entry.external_attr = (0o755 if os.access(file, os.X_OK) else 0o644) << 16
            archive.writestr(entry, file.read_bytes())


def assemble(book: Book, version: str) -> Path:
    """Make the site beside the old one, then put it in the old one's place.

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
    write_course(book, fresh / f"{course_name(version)}.zip", version)
    if site.exists():
        site.rename(old)
    fresh.rename(site)
    shutil.rmtree(old, ignore_errors=True)
    return site
