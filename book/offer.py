"""The editions that stand beside the site, PDF and EPUB, and how its pages offer them.

They are made after the site and from it (``book/pdf.py``, ``book/epub.py``), and kept in ``_build/editions`` with the
key of its sources. The site holds those that are of its own sources, and its pages offer no others.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from book.layout import LANGUAGES, Book

KINDS = ("pdf", "epub")
STAMP = ".stamp"
"""A file of the site that says from which sources it was built."""


def course_name(version: str) -> str:
    """File name of the course archive, without suffix; the folder inside has the same name."""
    return f"keydoor-book-{version}"


def file_name(version: str, language: str, kind: str) -> str:
    """The name of an edition, the same in ``_build/editions``, on the site and on a reader's disk."""
    return f"{course_name(version)}-{language}.{kind}"


def write(book: Book, version: str, language: str, kind: str, content: bytes) -> Path:
    """Keep an edition with the key of the site that it was made from."""
    path = book.output / "editions" / file_name(version, language, kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, data in ((path, content), (path.with_name(f"{path.name}.key"), site_key(book).encode())):
        partial = target.with_name(f"{target.name}.partial")
        partial.write_bytes(data)
        partial.replace(target)
    return path


def site_key(book: Book) -> str:
    """The key of the site that stands in the output folder."""
    return (book.output / "html" / STAMP).read_text("utf8")


def offer(book: Book, site: Path, version: str, key: str) -> None:
    """Put the editions that were made from these sources into a site, and let its pages offer them and no others.

    Each page holds the lines of all editions (``book/_ext/taking.py``); the line of one that is not there is made a
    comment. So this may be done to a site again, after another edition has been made.
    """
    names = [file_name(version, language, kind) for language in LANGUAGES for kind in KINDS]
    there = set()
    for name in names:
        source = book.output / "editions" / name
        stamp = source.with_name(f"{name}.key")
        if source.is_file() and stamp.is_file() and stamp.read_text("utf8") == key:
            shutil.copyfile(source, site / name)
            there.add(name)
        else:
            (site / name).unlink(missing_ok=True)
    line = re.compile(rf'(?:<!--)?(<li><a href="(?:\.\./)+({"|".join(map(re.escape, names))})".*?</li>)(?:-->)?', re.S)
    for path in sorted(site.glob("*/**/*.html")):
        old = path.read_text("utf8")
        new = line.sub(lambda found: found[1] if found[2] in there else f"<!--{found[1]}-->", old)
        if new != old:
            partial = path.with_name(f"{path.name}.partial")
            partial.write_text(new, "utf8")
            partial.replace(path)
