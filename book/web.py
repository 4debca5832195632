"""What the finished site gets besides its pages: a page for addresses that lead nowhere, and files for machines.

Sitemap and feed need the address of the site (``html: baseurl`` in ``_config.yml``), and appear once it is set.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import yaml
from markdown_it import MarkdownIt

from book import policy
from book._ext.book_words import OWN_NAMES, WORDS
from book._ext.changelog import FEED, read_changelog
from book.addresses import addresses, write_redirects
from book.layout import LANGUAGES, Book

# --- an address that leads nowhere ----------------------------------------------------------------------------------

NOT_FOUND = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>404 · Page not found · Страница не найдена</title>
<style>
  :root { color-scheme: light dark; background: Canvas; color: CanvasText; }
  body { font: 1.2rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto 0; padding: 0 1.5rem; }
  h1 { font-size: 1.4rem; margin: 1.5rem 0 0; }
  p { margin: 0.25rem 0 0; }
  input { font: inherit; max-width: 100%; }
</style>
</head>
<body>
<main>
SECTIONS
</main>
<script>
  // The host shows this page under the address that was asked for, at any depth. The folder of the language, the first
  // "en" or "ru" in it, says where the book begins and which language is meant; without one, both are offered.
  const parts = location.pathname.split("/");
  const at = parts.findIndex((part) => ["en", "ru"].includes(part));
  if (at > 0) {
    document.documentElement.lang = parts[at];
    document.title = document.querySelector(`section[lang=${parts[at]}] h1`).textContent;
    for (const section of document.querySelectorAll("section")) section.hidden = section.lang !== parts[at];
  }
  const root = at > 0 ? parts.slice(0, at).join("/") + "/" : "ROOT";
  for (const link of document.querySelectorAll("[data-to]"))
    link.setAttribute(link.tagName === "FORM" ? "action" : "href", root + link.dataset.to);
  const words = decodeURIComponent(parts.at(-1) || "").replace(/\\.\\w+$/, "").replace(/\\W+/gu, " ").trim();
  for (const field of document.querySelectorAll("input")) field.value = words;
</script>
</body>
</html>
"""
NOT_FOUND_SECTION = """<section lang="{language}">
<h1>{title}</h1>
<p>{text}</p>
<p><a data-to="{language}/index.html" href="{root}{language}/index.html">{start}</a></p>
<form data-to="{language}/search.html" action="{root}{language}/search.html" role="search">
<p><input type="search" name="q" aria-label="{search}"> <button>{search}</button></p>
</form>
</section>"""
NOT_FOUND_WORDS = {
    "en": {
        "title": "Page not found",
        "text": "There is no page at this address. It may be mistyped.",
        "start": "Start of the book",
        "search": "Search the book",
    },
    "ru": {
        "title": "Страница не найдена",
        "text": "По этому адресу ничего нет. Возможно, в нём опечатка.",
        "start": "К началу книги",
        "search": "Найти в книге",
    },
}


def not_found_page(root: str) -> str:
    """``404.html`` in both languages.

    Args:
        root: path of the site on its host, ``/`` or ``/NAME/``: where links lead while the script knows no better.
    """
    sections = [
        NOT_FOUND_SECTION.format(language=language, root=root, **NOT_FOUND_WORDS[language]) for language in LANGUAGES
    ]
    return NOT_FOUND.replace("SECTIONS", "\n".join(sections)).replace("ROOT", root)


# --- for machines ---------------------------------------------------------------------------------------------------


def listed_pages(book: Book) -> list[str]:
    """Names of the pages in the order of the table of contents."""
    toc = yaml.safe_load((book.root / "_toc.yml").read_text("utf8"))
    chapters = [chapter["file"] for part in toc.get("parts", []) for chapter in part["chapters"]]
    return [toc["root"], *chapters, *(chapter["file"] for chapter in toc.get("chapters", []))]


def guide(book: Book, site: Path, address: str) -> str:
    """``llms.txt`` as llmstxt.org describes it: what there is, and where its Markdown is."""
    lines = [
        f"# {WORDS['en']['title']}",
        "",
        "> An open textbook in English and Russian on reinforcement learning for language-model agents that act "
        "through tools over long trajectories, with the Python package keydoor. Each result is proved, run, and "
        "compared with an exact value.",
        "",
        "Both languages have the same results, labels, equations and code. Text CC BY 4.0, code MIT. Each page is also "
        "an HTML page and an executed notebook: PAGE.html and _sources/PAGE.ipynb beside PAGE.md.",
    ]
    for language in LANGUAGES:
        lines += ["", f"## {OWN_NAMES[language]}: {WORDS[language]['title']}", ""]
        for name in listed_pages(book):
            file = site / language / f"{name}.md"
            if file.is_file():
                title = file.read_text("utf8").split("\n", 1)[0].lstrip("# ")
                lines.append(f"- [{title}]({address}{language}/{name}.md)")
    return "\n".join(lines) + "\n"


ATOM = "http://www.w3.org/2005/Atom"
SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"
XHTML = "http://www.w3.org/1999/xhtml"
FEED_WORDS = {
    "en": ("Changes and errata", "Version {}"),
    "ru": ("Изменения и замеченные ошибки", "Версия {}"),
}


def xml(root: ElementTree.Element) -> bytes:
    ElementTree.indent(root)
    return ElementTree.tostring(root, "utf-8", xml_declaration=True) + b"\n"


def sitemap(book: Book, address: str) -> bytes:
    """All pages of the book with their counterparts; what is generated (search, indices, listings) is left out."""
    ElementTree.register_namespace("", SITEMAP)
    ElementTree.register_namespace("xhtml", XHTML)
    root = ElementTree.Element(f"{{{SITEMAP}}}urlset")
    for name in listed_pages(book):
        for language in LANGUAGES:
            url = ElementTree.SubElement(root, f"{{{SITEMAP}}}url")
            ElementTree.SubElement(url, f"{{{SITEMAP}}}loc").text = f"{address}{language}/{name}.html"
            for other in (*LANGUAGES, "x-default"):
                code = LANGUAGES[0] if other == "x-default" else other
                href = f"{address}{code}/{name}.html"
                ElementTree.SubElement(url, f"{{{XHTML}}}link", rel="alternate", hreflang=other, href=href)
    return xml(root)


def feed(book: Book, language: str, address: str) -> bytes | None:
    """The released versions of the changelog as an Atom feed in one language; nothing before the first release.

    The English feed has the text of the changelog, the Russian one the errata, which exist in Russian, and the page
    that tells the rest.
    """
    released = [version for version in read_changelog(book.root / "CHANGELOG.md") if version.date]
    if not released:
        return None
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.Element(f"{{{ATOM}}}feed", {"{http://www.w3.org/XML/1998/namespace}lang": language})
    page, title = f"{address}{language}/changes.html", FEED_WORDS[language]

    def add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> ElementTree.Element:
        element = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
        element.text = text or None
        return element

    add(root, "title", f"{WORDS[language]['title']}: {title[0]}")
    add(root, "id", f"{address}{language}/{FEED}")
    add(root, "link", rel="self", type="application/atom+xml", href=f"{address}{language}/{FEED}")
    add(root, "link", rel="alternate", type="text/html", hreflang=language, href=page)
    add(root, "updated", f"{max(version.date for version in released)}T00:00:00Z")
    add(add(root, "author"), "name", {"en": "The keydoor authors", "ru": "Авторы keydoor"}[language])
    markdown = MarkdownIt()
    for version in released:
        entry = add(root, "entry")
        add(entry, "title", title[1].format(version.number))
        add(entry, "id", f"{page}#{version.number}")
        add(entry, "link", rel="alternate", type="text/html", href=page)
        add(entry, "updated", f"{version.date}T00:00:00Z")
        if language == "en":
            own = {name: text for name, text in version.sections.items() if not name.startswith("Errata (")}
            text = "\n\n".join(f"### {name}\n\n{text}" for name, text in own.items())
        else:
            errata = version.errata(language)
            text = f"### Замеченные ошибки\n\n{errata}\n\n" if errata else ""
            text += f"Что изменилось в этой версии, рассказано на странице [«{title[0]}»]({page})."
        add(entry, "content", markdown.render(text), type="html")
    return xml(root)


def finish(book: Book, site: Path) -> None:
    """Add all of the above to a site that has its pages."""
    address, _ = addresses(book)
    write_redirects(book, site)
    (site / "404.html").write_text(not_found_page(urlsplit(address).path or "/"), "utf8")
    (site / "llms.txt").write_text(guide(book, site, address), "utf8")
    if address:
        (site / "sitemap.xml").write_bytes(sitemap(book, address))
        for language in LANGUAGES:
            if (content := feed(book, language, address)) is not None:
                (site / language / FEED).write_bytes(content)
    policy.protect(site)
