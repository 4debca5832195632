"""Terms of the glossary: each page links their first uses, and the glossary says where they are defined and used.

A term is recognised in all its forms: by the dictionary of pymorphy3 in Russian, by the plural in English. The link
goes into running text only, where nothing else is marked, and the words in ``EVERYDAY``, which mean something else as
often, are left to the authors, who write ``{term}``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from keydoor_book import page_language
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform

WORDS = {
    "en": {"defined": "Defined in: ", "used": "In the text: "},
    "ru": {"defined": "Где введено: ", "used": "В тексте: "},
}
EVERYDAY = {
    "en": {"clock", "greedy", "history", "option", "profile", "score", "update", "value", "violation"},
    "ru": {"вклад", "длительность", "жадный", "история", "нарушение", "обновление", "опция", "профиль", "часы"},
}
"""In English every noun may be a verb: those in ``NOUNS`` count after an article or another word that wants a noun."""
NOUNS = {"mask", "potential", "return", "target", "turn"}
BEFORE_NOUN = {"a", "an", "the", "each", "every", "this", "that", "one", "its", "per", "of", "no", "two", "whole"}
NOT_HERE = {"api", "changes", "glossary", "identities", "index", "sources", "twins"}
"""Pages that lead to others, or have no running text of their own."""
WORD = re.compile(r"[^\W\d_]+(?:[-–’'][^\W\d_]+)*")


class Use(NamedTuple):
    """The first place of a term on a page: the identifier of the section, or of the definition, that it stands in."""

    term: str
    place: str
    defined: bool


# --- recognising ----------------------------------------------------------------------------------------------------


@cache
def morphology() -> Any:
    """The dictionary of Russian; it takes a third of a second to load."""
    from pymorphy3 import MorphAnalyzer

    return MorphAnalyzer(lang="ru")


@lru_cache(maxsize=65536)
def forms(word: str, language: str) -> frozenset[str]:
    """What a word may be a form of."""
    word = word.lower().replace("ё", "е")
    if language == "en":
        singular = {word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word)}
        return frozenset(singular if len(word) > 3 and not word.endswith("ss") else {word})
    return frozenset({word} | {form.normal_form.replace("ё", "е") for form in morphology().parse(word)})


class Finder:
    """Terms of one language, by the first three letters of their first words."""

    def __init__(self, terms: list[str], language: str) -> None:
        self.language = language
        self.terms: dict[str, list[tuple[list[frozenset[str]], str]]] = {}
        for term in sorted(terms, key=lambda term: -len(term.split())):
            if "(" not in term and term not in EVERYDAY[language]:
                words = term.split()
                self.terms.setdefault(self.key(words[0]), []).append(([self.forms(word) for word in words], term))

    def key(self, word: str) -> str:
        """What most words differ in, so that few are looked up."""
        return word[:3].lower().replace("ё", "е")

    def forms(self, word: str) -> frozenset[str]:
        """In this language."""
        return forms(word, self.language)

    def find(self, text: str, heading: bool = False) -> Iterator[tuple[int, int, str]]:
        """Terms of a text, the longest first where several begin: begin, end, term. Headings have no verbs."""
        words = list(WORD.finditer(text))
        free = 0
        for number, word in enumerate(words):
            for wanted, term in self.terms.get(self.key(word[0]), ()) if number >= free else ():
                said = words[number : number + len(wanted)]
                gaps = [text[one.end() : two.start()] for one, two in pairwise(said)]
                if (
                    len(said) == len(wanted)
                    and not any(gap.strip() for gap in gaps)
                    and all(forms & self.forms(found[0]) for forms, found in zip(wanted, said, strict=True))
                    and (heading or self.is_noun(term, words[number - 1][0] if number else ""))
                ):
                    yield word.start(), said[-1].end(), term
                    free = number + len(wanted)
                    break

    def is_noun(self, term: str, before: str) -> bool:
        """Whether an English word that may be a verb is none here."""
        return term not in NOUNS or before.lower() in BEFORE_NOUN


@lru_cache(maxsize=4)
def finder(path: Path, changed: float, language: str) -> Finder:
    """The finder for a glossary, a table with one column for each language."""
    with path.open(encoding="utf8", newline="") as file:
        return Finder([row[language] for row in csv.DictReader(file)], language)


def finder_of(app: Sphinx) -> Finder | None:
    """The finder of a book, if it has a glossary."""
    path = Path(app.srcdir).parent / "glossary.csv"
    return finder(path, path.stat().st_mtime, page_language(app.srcdir)) if path.is_file() else None


# --- linking --------------------------------------------------------------------------------------------------------


def uses_of(env: BuildEnvironment) -> dict[str, list[Use]]:
    """The terms of each page; kept with the parsed pages."""
    if not hasattr(env, "book_terms"):
        env.book_terms = {}
    return env.book_terms


def running_text(doctree: nodes.document) -> Iterator[nodes.Text]:
    """Text that stands in paragraphs as it is: no heading, caption, table, code, formula, link or emphasis."""
    outside = (nodes.entry, nodes.caption, nodes.citation, nodes.footnote, addnodes.desc)
    for paragraph in list(doctree.findall(nodes.paragraph)):
        if type(paragraph) is nodes.paragraph and not paragraph["classes"] and not inside(paragraph, outside):
            for is_text, run in groupby(list(paragraph.children), lambda child: isinstance(child, nodes.Text)):
                if is_text:
                    first, *others = run  # a parser of Markdown makes one of each line, and of what is between them
                    for other in others:
                        paragraph.remove(other)
                    whole = nodes.Text("".join(map(str, (first, *others))))
                    paragraph.replace(first, whole)
                    yield whole


def inside(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    """Whether a node stands somewhere in one of some kinds."""
    parent = node.parent
    while parent is not None and not isinstance(parent, kinds):
        parent = parent.parent
    return parent is not None


def place_of(node: nodes.Node) -> str:
    """The identifier of the section or of the labelled result around a node."""
    while (node := node.parent) is not None:
        # The content of a result is a section too, whose identifier is taken away later.
        section = isinstance(node, nodes.section) and isinstance(node.parent, (nodes.section, nodes.document))
        if (section or node.get("label")) and node["ids"]:
            return node["ids"][0]
    return ""


def link_terms(app: Sphinx, doctree: nodes.document) -> None:
    """Link the first use of each term of a page that no author has linked, and keep where the terms stand."""
    found: list[Use] = []
    uses_of(app.env)[app.env.docname] = found
    finder = finder_of(app)
    if finder is None or app.env.docname in NOT_HERE:
        return
    for node in doctree.findall(nodes.Element):
        if node.get("realtype") == "definition" and isinstance(node[0], nodes.title):
            found += [Use(term, node["label"], True) for _, _, term in finder.find(node[0].astext(), heading=True)]
    linked = set()
    for node in doctree.findall(addnodes.pending_xref):
        if node.get("reftype") == "term":
            linked.add(node["reftarget"])
            found.append(Use(node["reftarget"], place_of(node), False))
    for text in running_text(doctree):
        parts: list[nodes.Node] = []
        end = 0
        for begin, stop, term in finder.find(str(text)):
            if term not in linked:
                linked.add(term)
                found.append(Use(term, place_of(text), False))
                parts += [nodes.Text(text[end:begin]), reference(term, text[begin:stop], app.env.docname)]
                end = stop
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def reference(term: str, text: str, docname: str) -> addnodes.pending_xref:
    """A link to a term of the glossary, in the words of the page."""
    node = addnodes.pending_xref(
        "", refdomain="std", reftype="term", reftarget=term, refdoc=docname, refexplicit=True, refwarn=True
    )
    node += nodes.inline("", text, classes=["term-link"])
    return node


# --- where terms stand ----------------------------------------------------------------------------------------------


class ShowUses(SphinxPostTransform):
    """Below each explanation of the glossary: the definitions, and the pages by number or by the name of the page."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        glossaries = list(self.document.findall(addnodes.glossary))
        everything = uses_of(self.env)
        order = [name for name in self.env.collect_relations() if name in everything] if glossaries else []
        for item in (item for place in glossaries for item in place.findall(nodes.definition_list_item)):
            terms = {term.astext() for term in item.findall(nodes.term)}
            uses = [(name, use) for name in order for use in everything[name] if use.term in terms]
            for defined, word in ((True, "defined"), (False, "used")):
                first: dict[str, Use] = {}
                for name, use in uses:
                    if use.defined == defined:
                        first.setdefault(f"{name} {use.place}" if defined else name, use)
                links = [self.link(key.split()[0], use) for key, use in first.items()]
                if links:
                    line = nodes.paragraph("", WORDS[page_language(self.env.srcdir)][word], classes=["uses"])
                    for number, link in enumerate(links):
                        line += [nodes.Text(", "), link] if number else [link]
                    item[-1] += line

    def link(self, name: str, use: Use) -> nodes.Node:
        """A definition by its number, a page by the number in its title or else by the title up to a colon."""
        here = self.env.docname
        if use.defined:
            attributes = {"refdomain": "prf", "reftype": "ref", "reftarget": use.place, "refdoc": here}
            return addnodes.pending_xref("", nodes.inline("", use.place), **attributes)
        title = self.env.titles[name].astext()
        number = re.match(r"(\d+)\. ", title)
        text = number[1] if number else title.split(":")[0]
        uri = f"{self.app.builder.get_relative_uri(here, name)}{'#' if use.place else ''}{use.place}"
        return nodes.reference("", text, internal=True, refuri=uri)


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """A page is read anew, or has gone."""
    uses_of(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Take over what another process has read."""
    uses_of(env).update({name: found for name, found in uses_of(other).items() if name in docnames})


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the above."""
    app.connect("doctree-read", link_terms)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.add_post_transform(ShowUses)
    return {"version": "1.0", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
