"""What the book's site needs beyond its extensions: two languages from one configuration, and figures for two modes.

The extension stands first in ``_config.yml``. It takes the language of a build from the name of the source folder
(``book/en``, ``book/ru``) before any other extension loads its translations, so that ``jupyter-book build book/ru``
speaks Russian without a second configuration file.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import pybtex.plugin
from book_words import OWN_NAMES, WORDS
from docutils import nodes
from jupyter_cache import get_cache
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.ext import viewcode
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.i18n import CatalogInfo
from sphinx_proof.directive import ProofDirective
from sphinx_proof.domain import ProofDomain
from sphinx_proof.nodes import proof_node
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import PersonStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle
from themed import themed_svg

logger = logging.getLogger(__name__)

PLAINTEXT = ("pybtex.backends", "plaintext")


def page_language(srcdir: str | os.PathLike[str]) -> str:
    """The language of a source folder: its name if that is one of the book's languages, else English."""
    name = Path(srcdir).name
    return name if name in OWN_NAMES else "en"


# --- language -------------------------------------------------------------------------------------------------------


def set_language(app: Sphinx) -> None:
    """Give Sphinx the folder's language while other extensions have not yet asked for it."""
    app.config.language = page_language(app.srcdir)
    app._init_i18n()  # has run once, with the language of the configuration


def complete_catalogue(app: Sphinx) -> None:
    """Give sphinx-exercise the Russian words that it lacks; Sphinx compiles only the catalogue of its own name."""
    folder = Path(app.srcdir).parent / "locale" / "ru" / "LC_MESSAGES"
    if app.config.language == "ru" and (folder / "exercise.po").is_file():
        catalogue = CatalogInfo(str(folder), "exercise", "utf-8")
        if catalogue.is_outdated():
            catalogue.write_mo("ru")
        app.add_message_catalog("exercise", str(folder.parent.parent))


@dataclass
class RussianCitations(AuthorYearReferenceStyle):
    """Citations in the text as Russian writes them: «Саттон и Барто», «и др.»."""

    person: PersonStyle = field(default_factory=lambda: PersonStyle(sep2=" и ", last_sep=" и ", other=" и др."))


register_plugin("sphinxcontrib.bibtex.style.referencing", "author_year_ru", RussianCitations)


def speak(app: Sphinx, config: Config) -> None:
    """Title, author and search field in the page's language."""
    words = WORDS[page_language(app.srcdir)]
    config.html_title = words["title"]
    config.html_short_title = words["title"]
    config.project = words["title"]
    config.author = words["author"]
    if page_language(app.srcdir) == "ru":
        config.bibtex_reference_style = "author_year_ru"
    config.html_theme_options = {**config.html_theme_options, "search_bar_text": words["search"]}


def translate_captions(app: Sphinx, config: Config) -> None:
    """Captions of the table of contents, which both languages share."""
    captions = WORDS[page_language(app.srcdir)]["captions"]
    site_map = getattr(config, "external_site_map", None)
    for document in site_map.values() if site_map else ():
        for subtree in document.subtrees:
            subtree.caption = captions.get(subtree.caption, subtree.caption)


class LocalNumbers(SphinxPostTransform):
    """Numbers that prose takes from cells (``{glue:text}``) get a decimal comma on Russian pages."""

    default_priority = 10

    def run(self, **kwargs: Any) -> None:
        if self.config.language != "ru":
            return
        for node in list(self.document.findall(nodes.inline)):
            if "pasted-text" in node["classes"]:
                # A number has one point; "1.4.0" is a version and stays as it is.
                text = re.sub(r"(?<![\d.])(\d+)\.(\d+)(?![\d.]*\d)", r"\1,\2", node.astext())
                text = re.sub(r"-(?=\d)", "−", text)
                node.children = [nodes.Text(text)]


class Proof(ProofDirective):
    """``prf:proof`` with its title as a paragraph, so that a proof can begin with a numbered step."""

    def run(self) -> list[nodes.Node]:
        body = nodes.admonition(classes=["proof", "proof-of-result", *self.options.get("class", [])])
        title = nodes.paragraph("", "", nodes.emphasis("", WORDS[page_language(self.env.srcdir)]["proof"]))
        title["classes"].append("proof-title")
        body += title
        self.state.nested_parse(self.content, self.content_offset, body)
        node = proof_node()
        node += body
        return [node]


class UniqueIdentifiers(SphinxPostTransform):
    """Take the identifier away that sphinx-proof and sphinx-exercise give to the content of every result.

    Nothing refers to it, and an identifier may stand once in a page.
    """

    default_priority = 10

    def run(self, **kwargs: Any) -> None:
        for node in self.document.findall(nodes.section):
            if node["ids"] in (["proof-content"], ["exercise-content"], ["solution-content"]):
                node["ids"] = []


class PandasTables(SphinxPostTransform):
    """The empty corner of a table is a cell and no heading, which needs words; ``book.css`` has the table's style.

    A style sheet in the text would make a browser begin again with the styles of the whole page.
    """

    default_priority = 400
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(nodes.raw)):
            text = re.sub(r"<style scoped>.*?</style>\n", "", node.astext(), flags=re.S)
            text = text.replace("<th></th>", "<td></td>")
            if text != node.astext():
                node.replace_self(nodes.raw("", text, format="html"))


def visit_citation(self: Any, node: nodes.citation) -> None:
    """An entry of the bibliography is an item of its list; docutils still writes a role that is deprecated."""
    type(self).visit_citation(self, node)
    self.body[-1] = self.body[-1].replace('role="doc-biblioentry"', 'role="listitem"')


def depart_citation(self: Any, node: nodes.citation) -> None:
    """Close it as docutils does."""
    type(self).depart_citation(self, node)


# --- figures --------------------------------------------------------------------------------------------------------


class InlineFigures(SphinxPostTransform):
    """Put the SVG output of cells into the page itself, so that CSS can colour it."""

    default_priority = 400
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for number, image in enumerate(list(self.document.findall(nodes.image))):
            uri = str(image.get("uri", ""))
            path = Path(self.env.srcdir, uri)
            if not uri.endswith(".svg") or "jupyter_execute" not in path.parts:
                continue
            svg = themed_svg(path.read_text("utf8"), image.get("alt", ""), f"f{number}-")
            image.replace_self(nodes.raw("", svg, format="html"))


# --- docstrings -----------------------------------------------------------------------------------------------------

COLON = "\ue000"  # a private character stands for the colon while napoleon reads the docstring


def hide_colons(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep napoleon from reading ``A word: more`` in the docstring of an attribute as ``type: description``."""
    if what in ("attribute", "data"):
        lines[:] = [re.sub(r":(?= |$)", COLON, line) for line in lines]


def show_colons(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Put them back."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def module_file(app: Sphinx, module: str) -> str | None:
    """Where the source of a module lies, without importing it: viewcode's own way would load torch for each build."""
    found = find_spec(module)
    return found.origin if found else None


# --- pages ----------------------------------------------------------------------------------------------------------


def page_context(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Links to the same page in the other language, the executed notebook, and words of the templates."""
    language = app.config.language
    up = "../" * (pagename.count("/") + 1)
    context["book_words"] = WORDS[language]
    context["lean"] = lean
    context["book_version"] = app.config.version
    context["alternates"] = [
        {"language": code, "name": name, "title": WORDS[code]["switch"], "url": f"{up}{code}/{pagename}.html"}
        for code, name in OWN_NAMES.items()
        if code in app.config.book_languages
    ]
    if doctree is not None and app.builder.format == "html" and write_notebook(app, pagename):
        context["ipynb_source"] = f"{pagename}.ipynb"


def write_notebook(app: Sphinx, pagename: str) -> bool:
    """Put the executed notebook of a page beside its source, for download; false if the page was not executed.

    The notebook that myst-nb leaves behind is the one without outputs where they came from the cache.
    """
    source = Path(app.env.doc2path(pagename))
    notebook = read_myst_markdown_notebook(source.read_text("utf8"), path=source)
    try:
        _, executed = get_cache(app.env.mystnb_config.execution_cache_path).merge_match_into_notebook(notebook)
    except KeyError:
        return False
    target = Path(app.outdir, "_sources", f"{pagename}.ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    for number, cell in enumerate(executed.cells):
        cell["id"] = f"cell-{number}"  # else a random one, and no two builds were equal
    nbformat.write(executed, target)
    return True


THEME = re.compile(r'document\.documentElement\.dataset\.theme = localStorage\.getItem\("theme"\) \|\| "auto";')
THEME_NOW = """(["light", "dark"].find((mode) => mode === document.documentElement.dataset.mode)
      || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"))"""


def lean(head: str) -> str:
    """The head of a page without what the icons do not need.

    They come from the web fonts, so that the script that would draw them as SVG can go; it weighs 1.4 MB. And a page
    uses one or two of the three fonts: the browser loads those by itself, and complains of any that it had to load
    ahead for nothing. The colour mode is known before anything is drawn: else the theme's script finds it out at the
    end, and the whole page is coloured anew before the reader's eyes.
    """
    head = THEME.sub(f"document.documentElement.dataset.theme = {THEME_NOW};", head)
    head = re.sub(r'\s*<link rel="preload" as="font"[^>]*/fontawesome/[^>]*>', "", head)
    return re.sub(r'\s*<script src="[^"]*/fontawesome/[^"]*"></script>', "", head)


class Results(ProofDomain):
    """References to results may have words of their own with the number in them: ``{prf:ref}`теореме {number} <…>` ``.

    In a language with cases the noun is declined, and inside a sentence it is not capitalised.
    """

    def resolve_xref(self, env: Any, fromdocname: str, builder: Any, typ: str, target: str, *rest: Any) -> Any:
        found = super().resolve_xref(env, fromdocname, builder, typ, target, *rest)
        if found is not None and "{number}" in found.astext():
            result = env.proof_list[target]
            number = env.toc_fignumbers[result["docname"]][result["countertype"]][target]
            for text in [*found.findall(nodes.Text)]:
                text.parent.replace(text, nodes.Text(text.replace("{number}", ".".join(map(str, number)))))
        return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of the above."""
    set_language(app)
    complete_catalogue(app)
    app.setup_extension("sphinx_proof")  # whose directive for proofs is replaced below
    app.add_domain(Results, override=True)
    viewcode.get_module_filename = module_file
    # sphinxcontrib-bibtex asks for this one at each citation, and pybtex would search all installed packages each time.
    pybtex.plugin.register_plugin(*PLAINTEXT, pybtex.plugin.find_plugin(*PLAINTEXT), force=True)
    app.setup_extension("sphinx.ext.autodoc")  # whose docstrings are mended below
    app.add_config_value("book_languages", [], "html")
    app.connect("config-inited", speak, priority=100)
    app.connect("config-inited", translate_captions, priority=901)  # sphinx_external_toc reads the table at 900
    app.connect("autodoc-process-docstring", hide_colons, priority=400)  # napoleon: 500
    app.connect("autodoc-process-docstring", show_colons, priority=600)
    app.connect("html-page-context", page_context, priority=100)  # before the theme drops templates that look empty
    app.add_directive_to_domain("prf", "proof", Proof, override=True)
    app.add_generic_role("given", nodes.inline)  # a typed number that is an input: see book/gates/typed.py
    app.add_post_transform(LocalNumbers)
    app.add_post_transform(InlineFigures)
    app.add_post_transform(UniqueIdentifiers)
    app.add_post_transform(PandasTables)
    app.add_js_file("boxes.js", loading_method="defer")
    app.add_node(nodes.citation, override=True, html=(visit_citation, depart_citation))
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
