"""Where the parts of a book lie, and how a fault in one of them is reported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = ("en", "ru")


@dataclass(frozen=True)
class Book:
    """A book: its root (``_config.yml``, ``_toc.yml``, the package), its pages and where it is built."""

    root: Path
    output: Path

    @property
    def source(self) -> Path:
        """The folder that holds one folder of pages per language."""
        return self.root / "book"

    def pages(self, language: str) -> dict[str, Path]:
        """Pages of one language: name without suffix → file, in alphabetical order."""
        folder = self.source / language
        return {str(path.relative_to(folder).with_suffix("")): path for path in sorted(folder.rglob("*.md"))}

    def all_pages(self) -> Iterator[Path]:
        """Every page, both languages of one page after the other."""
        both = [self.pages(language) for language in LANGUAGES]
        for name in sorted(set().union(*both)):
            yield from (pages[name] for pages in both if name in pages)

    def shown(self, path: Path) -> str:
        """A path as messages show it: relative to the root where possible."""
        return os.path.relpath(path, self.root) if path.is_relative_to(self.root) else str(path)


@dataclass(frozen=True, order=True)
class Problem:
    """One fault: where it is and what an author should do about it."""

    path: Path
    line: int
    message: str

    def text(self, book: Book) -> str:
        """``book/en/lab.md:12: what is wrong``."""
        return f"{book.shown(self.path)}:{self.line}: {self.message}"
