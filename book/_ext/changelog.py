"""``CHANGELOG.md`` as data, and the directive ``errata``, which shows its errata on the page "Changes and errata".

The changelog is English; the errata of a version stand in it twice, in the same order::

    ## [1.0.1] - 2027-02-01

    ### Errata

    - `eq-turns-ratio` (1.0.0): it said *this*; it is *that*. Test: `tests/test_turns.py::test_ratio`.

    ### Errata (ru)

    - `eq-turns-ratio` (1.0.0): было написано *так*; верно *иначе*. Тест: `tests/test_turns.py::test_ratio`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FEED = "changes.xml"
"""File name of the feed of changes, in the folder of each language; written when the site is put together."""

NO_ERRATA = {"en": "No errata are known.", "ru": "Известных ошибок нет."}
IN_VERSION = {"en": "Corrected in version {}", "ru": "Исправлено в версии {}"}


@dataclass(frozen=True)
class Version:
    """One version: its number, its date (empty as long as it is not released), its sections by heading, its line."""

    number: str
    date: str
    sections: dict[str, str]
    line: int

    def errata(self, language: str) -> str:
        """The errata of this version in one language, as a list in Markdown."""
        return self.sections.get("Errata" if language == "en" else f"Errata ({language})", "")


def read_changelog(path: Path) -> list[Version]:
    """Versions of the changelog, the newest first; none where there is no changelog."""
    if not path.is_file():
        return []
    text = path.read_text("utf8")
    versions = []
    for found in re.finditer(r"^## \[([^\]]+)\] - ([^\n]+)\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S):
        number, date, body = found.groups()
        parts = re.split(r"^### (.+)\n", body, flags=re.M)
        sections = {name.strip(): part.strip() for name, part in zip(parts[1::2], parts[2::2], strict=True)}
        date = date.strip() if re.fullmatch(r"\d{4}-\d\d-\d\d", date.strip()) else ""
        versions.append(Version(number, date, sections, text.count("\n", 0, found.start()) + 1))
    return versions


def items(text: str) -> int:
    """Number of entries of a list in Markdown."""
    return len(re.findall(r"^- ", text, flags=re.M))


class Errata(SphinxDirective):
    """``{errata}``: the errata of all versions in the page's language, the newest first."""

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir).parent.parent / "CHANGELOG.md"
        self.env.note_dependency(str(path))
        language = self.config.language
        lines: list[str] = []
        for version in read_changelog(path):
            if text := version.errata(language):
                lines += ["", f"**{IN_VERSION[language].format(version.number)}**", "", *text.splitlines()]
        container = nodes.container()
        self.state.nested_parse(StringList(lines or [NO_ERRATA[language]], str(path)), 0, container)
        return container.children


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("errata", Errata)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
