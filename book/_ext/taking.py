"""What a reader takes along from a page: lines for the book as one file, and, once the repository has an address, a
button that opens the notebook in Colab and a first cell that installs the package there.

The lines are written for all editions; ``book/offer.py`` hides those that have not been made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
from book_words import WORDS
from sphinx.application import Sphinx

INSTALL = """# {comment}
import importlib.util

if importlib.util.find_spec("keydoor") is None:
    %pip install --quiet "keydoor[lab] @ git+{repository}@v{version}"
"""
"""The package comes from the repository of the book and from no index: there its name may be somebody else's."""
COLAB = "https://colab.research.google.com/github{path}/blob/gh-pages/v{version}/{language}/_sources/{notebook}"
"""The notebook as it is published (``book/publish.py``), in the version of the page."""


def edition_buttons(up: str, version: str, language: str) -> list[dict[str, str]]:
    """Buttons for the PDF and the EPUB of the whole book."""
    words = WORDS[language]["editions"]
    return [
        {
            "type": "link",
            "url": f"{up}keydoor-book-{version}-{language}.{kind}",
            "text": words[kind],
            "tooltip": words["tooltip"],
            "icon": "fas fa-book",
            "label": f"download-book-{kind}-button",
        }
        for kind in ("pdf", "epub")
    ]


def add_buttons(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Put all of them into the menus of a page that has a source."""
    groups = context.get("header_buttons", [])
    language, version = app.config.language, app.config.version
    for group in groups:
        # Plain Jupyter Book builds one language into a folder that has no site around it.
        if group.get("label") == "download-buttons" and app.config.book_languages:
            group["buttons"] += edition_buttons("../" * (pagename.count("/") + 1), version, language)
    repository = app.config.html_theme_options.get("repository_url") or ""
    notebook = context.get("ipynb_source")
    if repository and notebook:
        add_install_cell(Path(app.outdir, "_sources", notebook), language, repository, version)
        if urlsplit(repository).hostname == "github.com":
            path = urlsplit(repository).path.rstrip("/")
            url = COLAB.format(path=path, version=version, language=language, notebook=notebook)
            button = {"type": "link", "url": url, "icon": "fas fa-rocket", "label": "launch-colab-button"}
            groups.append({**button, "tooltip": WORDS[language]["colab"]})


def add_install_cell(path: Path, language: str, repository: str, version: str) -> None:
    """Let a notebook begin with a cell that installs the package where it is missing."""
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    source = INSTALL.format(comment=WORDS[language]["install"], repository=repository.rstrip("/"), version=version)
    cell = nbformat.v4.new_code_cell(source.strip(), id="cell-install")
    notebook.cells.insert(0, cell)
    nbformat.write(notebook, path)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the above."""
    app.connect("html-page-context", add_buttons, priority=910)  # after the theme has made the menus
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
