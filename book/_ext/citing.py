"""How to cite a page: a box at its foot, and the tags that Zotero and Google Scholar read.

Authors, title and date stand in ``CITATION.cff`` alone, and the version in ``pyproject.toml``, from where the build
gives it. What the Russian edition calls them is in ``WORDS``.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import yaml
from book_words import WORDS
from sphinx.application import Sphinx

LANGUAGE_NAMES = {"en": "english", "ru": "russian"}  # as babel and biblatex call them
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def read_citation(path: Path) -> dict[str, Any]:
    """Authors and date of the book from ``CITATION.cff``.

    Returns:
        ``authors``, a list of ``(family names, given names)``, the second empty for a group; ``date``, one to three
        numbers with hyphens; ``version``, for a build by plain Jupyter Book, which gives none.
    """
    data = yaml.safe_load(path.read_text("utf8"))
    book = data.get("preferred-citation", data)
    authors = [
        (person["name"], "")
        if "name" in person
        else (
            " ".join(filter(None, (person.get("name-particle"), person["family-names"], person.get("name-suffix")))),
            person.get("given-names", ""),
        )
        for person in book["authors"]
    ]
    date = book.get("date-released") or data.get("date-released") or book["year"]
    return {"authors": authors, "date": str(date), "version": str(book.get("version") or data.get("version", ""))}


def tex(text: str) -> str:
    """Text as a field of BibTeX has it."""
    return re.sub(r"[\\~^&%$#_{}]", lambda found: SPECIAL.get(found[0], f"\\{found[0]}"), text)


def sentences(*parts: str) -> str:
    """Parts with one mark at the end of each; a title may bring its own."""
    return " ".join(part if part.endswith((".", "?", "!", "…")) else f"{part}." for part in parts if part)


def citation(
    language: str, page: str, title: str, data: dict[str, Any], *, version: str, book: str, url: str
) -> dict[str, Any]:
    """The citation of one page in its language; the first page stands for the book.

    Args:
        language: of the page.
        page: its name.
        title: its title, as text; the number of a chapter before it becomes a field of its own.
        data: of :func:`read_citation`.
        version: of the book.
        book: title of the book.
        url: address of the page, empty as long as the site has none.

    Returns:
        ``text``, ``bibtex`` and ``tags``, pairs of name and content.
    """
    words = WORDS[language]["citing"]
    whole = page == "index"
    number, title = re.fullmatch(r"(?:(\d+)\. )?(.*)", title, flags=re.S).groups("")
    # A group has a name in each language; a person has one.
    authors = [
        (WORDS[language]["author"] if (f, g) == (WORDS["en"]["author"], "") else f, g) for f, g in data["authors"]
    ]
    year, *month = data["date"].split("-")
    edition = f"{words['version']} {version}"
    names = ", ".join(f"{family}, {given}" if given else family for family, given in authors)
    url_text = f"{words['url']}{url}" if url else ""
    if whole:
        text = sentences(names, book, edition, year)
    elif language == "ru":
        text = sentences(names, f"{title} // {book}", edition, year)
    else:
        text = sentences(names, title, f"In: {book}", edition, year)
    fields = {
        "author": " and ".join(f"{tex(f)}, {tex(g)}" if g else f"{{{tex(f)}}}" for f, g in authors),
        "title": tex(book if whole else title),
        "booktitle": "" if whole else tex(book),
        "chapter": number,
        "year": year,
        "month": month[0].lstrip("0") if month else "",
        "note": tex(edition),
        "url": url,
        "langid": LANGUAGE_NAMES[language],
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    kind = "book" if whole else "incollection"
    key = "-".join(
        [f"keydoor{year}", *([] if whole else re.findall(r"\w+", page)), *(["ru"] if language == "ru" else [])]
    )
    tags = [
        ("citation_title", book if whole else title),
        *(("citation_author", f"{family}, {given}" if given else family) for family, given in authors),
        ("citation_publication_date", data["date"].replace("-", "/")),
        ("citation_language", language),
        *((name, "" if whole else book) for name in ("citation_inbook_title", "citation_book_title")),
        ("citation_public_url", url),
    ]
    return {
        "text": f"{text} {url_text}".strip(),
        "bibtex": "\n".join([f"@{kind}{{{key},", *lines, "}"]),
        "tags": [(name, content) for name, content in tags if content],
    }


def add_citation(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Put the citation of a page of the book into its context and its head; generated pages have none."""
    source = Path(app.srcdir).parent.parent / "CITATION.cff"
    if doctree is None or app.builder.format != "html" or not source.is_file():
        return
    data = read_citation(source)
    cited = citation(
        app.config.language,
        pagename,
        app.env.titles[pagename].astext(),
        data,
        version=app.config.version or data["version"],
        book=WORDS[app.config.language]["title"],
        url=context.get("pageurl") or "",
    )
    context["citation"] = cited
    context["metatags"] += "".join(
        f'\n<meta name="{name}" content="{html.escape(content)}">' for name, content in cited["tags"]
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the above."""
    app.connect("html-page-context", add_citation, priority=100)  # before the theme drops templates that look empty
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
