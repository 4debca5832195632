"""``{twin-index}``: what goes wrong, as the chapters say it, each broken twin with its number and a link to its place.

Authors mark a twin in the text, **The broken twin** or ``{term}`` with the same words, and say there what it does. The
index takes these sentences as they are, from the one with the mark to the end of the paragraph, so that it needs no
second account of them. If they end with a colon, what the next cell prints belongs to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from docutils import nodes
from keydoor_book import page_language
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

MARKS = {"en": re.compile(r"\bbroken twins?\b", re.I), "ru": re.compile(r"\bдвойник", re.I)}
NOT_HERE = {"glossary", "index", "using"}
"""Pages that say what a broken twin is."""
LONGEST = 16
"""Lines of an output: a longer one is a table of many things."""
SENTENCE = re.compile(r"(?<=[.!?…])\s+(?=[A-ZА-ЯЁ«“])")


class Twin(NamedTuple):
    """What a page says about one: the section, its title, the sentences, and what the cell below prints."""

    place: str
    title: str
    text: list[nodes.Node]
    printed: list[nodes.Node]


class twin_index(nodes.General, nodes.Element):
    """Where the list will be, once all pages have been read."""


class IndexDirective(SphinxDirective):
    """``{twin-index}``."""

    def run(self) -> list[nodes.Node]:
        node = twin_index()
        self.set_source_info(node)
        return [node]


def marks(paragraph: nodes.paragraph, language: str) -> Iterator[nodes.Node]:
    """Children of a paragraph that name a broken twin in bold or as a term."""
    for child in paragraph.children:
        marked = isinstance(child, nodes.strong) or (
            isinstance(child, addnodes.pending_xref) and child.get("reftype") == "term"
        )
        if marked and MARKS[language].search(child.astext()):
            yield child


def sentences(paragraph: nodes.paragraph, mark: nodes.Node) -> list[nodes.Node]:
    """A paragraph from the sentence with the mark to its end; without identifiers, which may stand once."""
    position = paragraph.children.index(mark)
    before: list[nodes.Node] = []
    for child in reversed(paragraph.children[:position]):
        if isinstance(child, nodes.Text) and (cuts := list(SENTENCE.finditer(f"{child}A"))):
            before.append(nodes.Text(str(child)[cuts[-1].end() :]))
            break
        before.append(child.deepcopy())
    copies = [*reversed(before), *(child.deepcopy() for child in paragraph.children[position:])]
    for copy in copies:
        for node in copy.findall(nodes.Element):
            node["ids"] = []
    return copies


def printed(paragraph: nodes.paragraph) -> list[nodes.Node]:
    """What the cell below a paragraph prints, if the paragraph announces it."""
    following = paragraph.next_node(nodes.container, descend=False, siblings=True)
    if not paragraph.astext().endswith(":") or following is None or "cell" not in following["classes"]:
        return []
    outputs = [part for part in following.findall(nodes.container) if "cell_output" in part["classes"]]
    blocks = [block for output in outputs for block in output.findall(nodes.literal_block)]
    return [block.deepcopy() for block in blocks if block.astext().count("\n") < LONGEST]


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Keep what a page says about its broken twins."""
    language, found = page_language(app.srcdir), []
    twins_of(app.env)[app.env.docname] = found
    if app.env.docname in NOT_HERE:
        return
    for paragraph in doctree.findall(nodes.paragraph):
        for mark in list(marks(paragraph, language))[:1]:
            section = paragraph.parent
            while not (
                isinstance(section, nodes.section) and isinstance(section.parent, (nodes.section, nodes.document))
            ):
                section = section.parent  # the content of a result is a section too
            if isinstance(section.parent, nodes.section):  # what stands before the first section tells what is coming
                title = section.next_node(nodes.title).astext()
                found.append(Twin(section["ids"][0], title, sentences(paragraph, mark), printed(paragraph)))


def twins_of(env: BuildEnvironment) -> dict[str, list[Twin]]:
    """The twins of each page; kept with the parsed pages."""
    if not hasattr(env, "book_twins"):
        env.book_twins = {}
    return env.book_twins


class MakeIndex(SphinxPostTransform):
    """Put the list in its place, before Sphinx resolves the links in it."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        for place in list(self.document.findall(twin_index)):
            everything, here = twins_of(self.env), self.env.docname
            entries: list[nodes.Node] = []
            for name in self.env.collect_relations():
                if not everything.get(name):
                    continue
                uri = self.app.builder.get_relative_uri(here, name)
                heading = nodes.reference("", self.env.titles[name].astext(), internal=True, refuri=uri)
                entries.append(nodes.paragraph("", "", nodes.strong("", "", heading), classes=["twin-page"]))
                items = [self.item(twin, f"{uri}#{twin.place}") for twin in everything[name]]
                entries.append(nodes.bullet_list("", *items, bullet="-"))
            place.replace_self(entries)
            # Whether a page needs MathJax was decided when it was read; the sentences bring their formulas only now.
            if any(formula for entry in entries for formula in entry.findall(nodes.math)):
                self.env.get_domain("math").data["has_equations"][here] = True

    def item(self, twin: Twin, uri: str) -> nodes.list_item:
        """The title of the section as the link, and below it what the page says there."""
        link = nodes.reference("", twin.title, internal=True, refuri=uri)
        printed = [block.deepcopy() for block in twin.printed]
        text = [node.deepcopy() for node in twin.text]
        for node in (inner for part in text for inner in part.findall(addnodes.pending_xref)):
            node["refdoc"] = self.env.docname
        return nodes.list_item("", nodes.paragraph("", "", link), nodes.paragraph("", "", *text), *printed)


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """A page is read anew, or has gone."""
    twins_of(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Take over what another process has read."""
    twins_of(env).update({name: found for name, found in twins_of(other).items() if name in docnames})


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the list."""
    app.add_node(twin_index)
    app.add_directive("twin-index", IndexDirective)
    app.connect("doctree-read", collect, priority=400)  # before links to the glossary come into the sentences
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.add_post_transform(MakeIndex)
    return {"version": "1.0", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
