"""Whether a site that stands is of the present sources: the stamp that the build leaves in it."""

from __future__ import annotations

import pytest

from book.assemble import STAMP, site_is_fresh, site_key
from book.layout import Book

FULL = {"RL_LLM_PROFILE": "full"}


@pytest.mark.parametrize(
    "name",
    [
        "book/ru/second.md",
        "book/_static/book.css",
        "book/_templates/layout.html",
        "book/_ext/keydoor_book.py",
        "book/references.bib",
        "_config.yml",
        "_toc.yml",
        "pyproject.toml",
        "CITATION.cff",
        "CHANGELOG.md",
        "requirements.txt",
        "keydoor/one.py",
    ],
)
def test_every_source_counts(mini: Book, name: str) -> None:
    """A change of any file that the site is made from, a new one too; back again gives the old key."""
    (mini.root / "keydoor").mkdir()
    (mini.root / "keydoor/one.py").write_text("x = 1\n", "utf8")
    key = site_key(mini, FULL)
    path = mini.root / name
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    assert site_key(mini, FULL) != key
    path.write_bytes(before)
    assert site_key(mini, FULL) == key
    (mini.source / "en" / "third.md").write_text("new", "utf8")
    assert site_key(mini, FULL) != key


def test_what_does_not_count(mini: Book) -> None:
    """Outputs and caches of Python leave the key alone; the profile counts, since cells depend on it."""
    key = site_key(mini, FULL)
    for name in ("_build/html/en/index.html", "book/_ext/__pycache__/x.pyc", "book/locale/ru/LC_MESSAGES/sphinx.mo"):
        path = mini.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    assert site_key(mini, FULL) == key
    assert site_key(mini, {"RL_LLM_PROFILE": "smoke"}) != key


def test_a_built_site_is_fresh_until_a_source_changes(built: Book) -> None:
    assert site_is_fresh(built, FULL)
    assert not site_is_fresh(built, {"RL_LLM_PROFILE": "smoke"})
    page = built.source / "en" / "second.md"
    text = page.read_text("utf8")
    page.write_text(text + "\nMore.\n", "utf8")
    assert not site_is_fresh(built, FULL)
    page.write_text(text, "utf8")
    assert site_is_fresh(built, FULL)


def test_no_site_and_a_site_without_stamp_are_not_fresh(mini: Book) -> None:
    assert not site_is_fresh(mini, FULL)
    (mini.output / "html").mkdir(parents=True)
    assert not site_is_fresh(mini, FULL)
    (mini.output / "html" / STAMP).write_text("of other sources", "utf8")
    assert not site_is_fresh(mini, FULL)
