"""A book of two pages, built by the same code as the real one in a few seconds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from book.layout import Book

ROOT = Path(__file__).resolve().parents[2]
MINI = Path(__file__).parent / "mini"
MORE = Path(__file__).parent / "more"
"""What the two-page book gets for the tests with an address: releases, errata, redirects, a glossary and an index."""

ADDRESS = "https://example.org/book/"
REPOSITORY = "https://github.com/someone/keydoor"
collect_ignore = ["mini"]  # the test in it belongs to the two-page book


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the published book is part of `make reader`."""
    for item in items:
        if "public" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.reader)


def copy_mini(target: Path) -> Book:
    """The two-page book with the real configuration, extension, templates and style."""
    shutil.copytree(MINI, target)
    for name in ("_config.yml", "requirements.txt", "pyproject.toml", "CITATION.cff"):
        shutil.copy(ROOT / name, target)
    for name in ("_ext", "_static", "_templates", "locale", "vendor", "figures.mplstyle"):
        source = ROOT / "book" / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, target / "book" / name)
    return Book(target, target / "_build")


def set_addresses(book: Book, site: str = ADDRESS, repository: str = REPOSITORY) -> None:
    """Set both in ``_config.yml``, as an author does."""
    path = book.root / "_config.yml"
    text = path.read_text("utf8")
    assert text.count('baseurl: ""') == text.count('  url: ""') == 1
    text = text.replace('baseurl: ""', f'baseurl: "{site}"').replace('  url: ""', f'  url: "{repository}"')
    path.write_text(text, "utf8")


def run_build(book: Book, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line of the build, as `make book` calls it."""
    command = [sys.executable, "-m", "book.build", "--root", str(book.root), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder, by their path inside it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def mini(tmp_path: Path) -> Book:
    """A fresh copy to plant faults in."""
    return copy_mini(tmp_path / "mini")


@pytest.fixture
def plant(mini: Book) -> Callable[..., int]:
    """Replace text in one page of the copy; returns the line (from 1) on which the new text begins."""

    def put(page: str, old: str, new: str) -> int:
        path = mini.source / page
        text = path.read_text("utf8")
        before, found, after = text.partition(old)
        if not found:
            raise LookupError(f"{old!r} is not in {page}")
        path.write_text(before + new + after, "utf8")
        return before.count("\n") + 1

    return put


def once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is made once in a run: by the process that asks first, while others that ask wait for it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of all processes of this run
    folder, done = base / name, base / f"{name}.done"
    with FileLock(base / f"{name}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """The two-page book, built once for all processes: to look at, not to change."""

    def make(folder: Path) -> None:
        result = run_build(copy_mini(folder))
        if result.returncode:
            pytest.fail(f"the two-page book does not build:\n{result.stdout}{result.stderr}")

    folder = once(tmp_path_factory, "mini-site", make)
    return Book(folder, folder / "_build")


@pytest.fixture(scope="session")
def public(site: Book, tmp_path_factory: pytest.TempPathFactory) -> Book:
    """The two-page book with both addresses and all that stands in ``more``, built once for all processes."""

    def make(folder: Path) -> None:
        book = copy_mini(folder)
        shutil.copytree(MORE, folder, dirs_exist_ok=True)
        shutil.copytree(site.output / "cache", book.output / "cache")  # only what is added is executed
        set_addresses(book, ADDRESS.rstrip("/"))
        result = run_build(book)
        if result.returncode:
            pytest.fail(f"the book with addresses does not build:\n{result.stdout}{result.stderr}")

    folder = once(tmp_path_factory, "mini-public", make)
    return Book(folder, folder / "_build")


@pytest.fixture
def built(site: Book, tmp_path: Path) -> Book:
    """A copy of the built two-page book, to change."""
    folder = tmp_path / "built"
    shutil.copytree(site.root, folder)
    return Book(folder, folder / "_build")


@pytest.fixture
def executed(mini: Book, site: Book, monkeypatch: pytest.MonkeyPatch) -> Book:
    """The fresh copy with the outputs of its cells: what executes it then executes only the pages that are changed."""
    monkeypatch.setenv("RL_LLM_PROFILE", "full")  # as the command does, whose outputs are then found
    shutil.copytree(site.output / "cache", mini.output / "cache")
    return mini
