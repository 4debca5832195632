"""Results and what checks them: ``{identity}`` after a result, ``{identity-index}`` for the table of all of them.

That results, functions and tests exist is for ``book/gates/identities.py`` to say; here they are only shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

WORDS = {
    "en": {"checked": "Checked by: ", "result": "Result and page", "check": "Function and test"},
    "ru": {"checked": "Проверено: ", "result": "Результат и страница", "check": "Функция и тест"},
}


class Identity(NamedTuple):
    """What the index shows of one result."""

    docname: str
    label: str
    title: list[nodes.Node]
    functions: list[str]
    tests: list[str]


class identity_line(nodes.paragraph):
    """The line below a result."""


class identity_index(nodes.General, nodes.Element):
    """Where the table will be, once all pages have been read."""


def names(argument: str) -> list[str]:
    """Names separated by commas."""
    return [name for name in re.split(r"[,\s]+", argument) if name]


def function_reference(name: str, docname: str, text: str) -> addnodes.pending_xref:
    """A link to the entry of a function on the page of the package."""
    reference = addnodes.pending_xref(
        "", refdomain="py", reftype="obj", reftarget=name, refdoc=docname, refexplicit=True, refwarn=True
    )
    reference += breakable(text, ["xref", "py", "py-obj"])
    return reference


def breakable(text: str, classes: list[str] | None = None) -> nodes.literal:
    """A long name that may be broken after ``_``, ``.``, ``/`` and ``::``, so that a phone can show it."""
    literal = nodes.literal("", "", classes=classes or [])
    for number, part in enumerate(re.findall(r".+?(?:::|[_/]|\.(?!py\b))+|.+", text)):
        if number:
            literal += nodes.raw("", "<wbr>", format="html")
        literal += nodes.Text(part)
    return literal


def joined(parts: list[nodes.Node], separator: str = ", ") -> Iterator[nodes.Node]:
    """Nodes with text between them."""
    for number, part in enumerate(parts):
        if number:
            yield nodes.Text(separator)
        yield part


class IdentityDirective(SphinxDirective):
    """``{identity} label``: the functions that compute a result and the tests that check it."""

    required_arguments = 1
    option_spec: ClassVar = {"function": directives.unchanged_required, "test": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        functions, tests = names(self.options.get("function", "")), names(self.options.get("test", ""))
        line = identity_line("", "", classes=["identity"], label=self.arguments[0], functions=functions, tests=tests)
        line += nodes.Text(WORDS[self.config.language]["checked"])
        links = [function_reference(name, self.env.docname, name.rpartition(".")[2]) for name in functions]
        line.extend(joined(links))
        line += nodes.Text(" · ")
        line.extend(joined([breakable(test) for test in tests]))
        for node in (line, *links):  # so that a link that leads nowhere is reported with its line
            self.set_source_info(node)
        return [line]


class IndexDirective(SphinxDirective):
    """``{identity-index}``: the table of all results of the book."""

    def run(self) -> list[nodes.Node]:
        node = identity_index()
        self.set_source_info(node)
        return [node]


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Keep what a page says about its results, with the titles of the results."""
    titles = {node["label"]: node[0].children for node in doctree.findall(nodes.Element) if "realtype" in node}
    found = [
        Identity(
            app.env.docname,
            line["label"],
            [child.deepcopy() for child in titles.get(line["label"], [])],
            line["functions"],
            line["tests"],
        )
        for line in doctree.findall(identity_line)
    ]
    of_all_pages(app.env)[app.env.docname] = found


def of_all_pages(env: BuildEnvironment) -> dict[str, list[Identity]]:
    """The identities of each page; kept with the parsed pages."""
    if not hasattr(env, "book_identities"):
        env.book_identities = {}
    return env.book_identities


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """A page is read anew, or has gone."""
    of_all_pages(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Take over what another process has read."""
    of_all_pages(env).update({name: found for name, found in of_all_pages(other).items() if name in docnames})


class MakeIndex(SphinxPostTransform):
    """Put the table in its place, before Sphinx resolves the links in it."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        for place in list(self.document.findall(identity_index)):
            everything = of_all_pages(self.env)
            order = [name for name in self.env.collect_relations() if name in everything]
            rows = [self.row(identity) for name in order for identity in everything[name]]
            words = WORDS[self.config.language]
            group = nodes.tgroup("", nodes.colspec(colwidth=40), nodes.colspec(colwidth=60), cols=2)
            heading = self.cells([[nodes.Text(words["result"])]], [[nodes.Text(words["check"])]])
            group += [nodes.thead("", heading), nodes.tbody("", *rows)]
            place.replace_self(nodes.table("", group, classes=["identity-index", "colwidths-given"]))
            # Whether a page needs MathJax was decided when it was read; the titles bring their formulas only now.
            if any(group.findall(nodes.math)):
                self.env.get_domain("math").data["has_equations"][self.env.docname] = True

    def row(self, identity: Identity) -> nodes.row:
        """Result above its page, functions above tests: two narrow columns, for a phone."""
        docname = self.env.docname
        result = addnodes.pending_xref(
            "",
            nodes.inline("", identity.label),
            refdomain="prf",
            reftype="ref",
            reftarget=identity.label,
            refdoc=docname,
        )
        page = addnodes.pending_xref(
            "", nodes.inline("", self.env.titles[identity.docname].astext()), refdomain="std", reftype="doc"
        )
        page.attributes.update(refdoc=docname, reftarget=f"/{identity.docname}", refexplicit=True, refwarn=True)
        title = [child.deepcopy() for child in identity.title]
        functions = [[function_reference(name, docname, name)] for name in identity.functions]
        tests = [[breakable(test)] for test in identity.tests]
        return self.cells([[result, *title], [page]], [*functions, *tests])

    def cells(self, *columns: list[list[nodes.Node]]) -> nodes.row:
        """A row whose cells hold one line for each list of nodes."""
        row = nodes.row()
        for lines in columns:
            row += nodes.entry("", *(nodes.paragraph("", "", *line) for line in lines))
        return row


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the two directives and the table."""
    app.add_node(identity_line, html=(visit_line, depart_line))
    app.add_node(identity_index)
    app.add_directive("identity", IdentityDirective)
    app.add_directive("identity-index", IndexDirective)
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.add_post_transform(MakeIndex)
    return {"version": "1.0", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}


def visit_line(self: Any, node: nodes.Element) -> None:
    """As any other paragraph."""
    self.visit_paragraph(node)


def depart_line(self: Any, node: nodes.Element) -> None:
    """As any other paragraph."""
    self.depart_paragraph(node)
