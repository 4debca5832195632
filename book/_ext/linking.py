"""What ties the pages to the rest of the web: permalinks, the site's and the repository's address, Markdown copies.

Two addresses are set in ``_config.yml``, ``html: baseurl`` and ``repository: url``. Both may be empty, and then nothing
appears that needs them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from book_words import OWN_NAMES, WORDS
from bs4 import BeautifulSoup, Tag
from changelog import FEED, read_changelog
from docutils import nodes
from keydoor_book import page_language
from markdownify import MarkdownConverter
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import is_exercise_node
from sphinx_proof.nodes import NODE_TYPES, unenumerable_node

RESULTS = (*NODE_TYPES.values(), unenumerable_node)

# --- permalinks -----------------------------------------------------------------------------------------------------


class LabelsFirst(SphinxTransform):
    """A heading's label is its address, in both languages, before the one that is made from its English words."""

    default_priority = 700  # after labels have come to their headings, before the tables of contents are made

    def apply(self, **kwargs: Any) -> None:
        for node in self.document.findall(nodes.section):
            labels = {self.document.nameids[name] for name in node["names"] if self.document.nametypes.get(name)}
            node["ids"].sort(key=lambda identifier: identifier not in labels)


class Permalinks(SphinxPostTransform):
    """Results and exercises get the link to themselves that Sphinx gives to headings, equations and figures."""

    default_priority = 400
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        words = WORDS[page_language(self.env.srcdir)]["permalinks"]
        for node in self.document.findall(nodes.Admonition):
            kind = "exercise" if is_exercise_node(node) else "result" if isinstance(node, RESULTS) else ""
            title = next((child for child in node.children if isinstance(child, nodes.title)), None)
            if kind and title is not None and node["ids"]:
                link = f'<a class="headerlink" href="#{node["ids"][0]}" title="{words[kind]}">#</a>'
                title += nodes.raw("", link, format="html")


# --- addresses ------------------------------------------------------------------------------------------------------


def set_addresses(app: Sphinx, config: Config) -> None:
    """The two addresses, where they are set, as Sphinx and the theme want them."""
    language = page_language(app.srcdir)
    if config.html_baseurl:
        config.html_baseurl = f"{config.html_baseurl.rstrip('/')}/{language}/"  # canonical links come from this
    options = config.html_theme_options
    if options.get("repository_url"):
        buttons = {"use_issues_button": True, "use_edit_page_button": True}
        config.html_theme_options = {**options, **buttons, "path_to_docs": f"book/{language}"}


def add_addresses(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Absolute links to both languages, once the site has an address."""
    context["site_address"] = address = app.config.html_baseurl.removesuffix(f"{app.config.language}/")
    if address:
        context["absolute_alternates"] = [
            (code, f"{address}{code}/{pagename}.html") for code in OWN_NAMES if code in app.config.book_languages
        ]
        versions = read_changelog(Path(app.srcdir).parent.parent / "CHANGELOG.md")
        context["changes_feed"] = FEED if any(version.date for version in versions) else ""


def name_buttons(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The theme's buttons for problems and edits in the page's language; the report names file, version and address."""
    words = WORDS[app.config.language]["talk"]
    groups = context.get("header_buttons", [])
    buttons = [button for group in groups for button in group.get("buttons", [group])]
    for button in buttons:
        if button.get("label") == "source-issues-button":
            file = f"book/{app.config.language}/{pagename}.md"
            title = words["report"].format(file)
            body = words["body"].format(file=file, version=app.config.version, url=context.get("pageurl") or "—")
            base, query = button["url"].split("?", 1)
            first, second = re.findall(r"(?:^|&)([^=]+)=", query)
            button["url"] = f"{base}?{first}={quote(title)}&{second}={quote(body)}"
            button["text"] = button["tooltip"] = words["problem"]
        elif button.get("label") == "source-edit-button":
            button["text"] = button["tooltip"] = words["edit"]
    for group in groups:
        if group.get("label") == "source-buttons":
            group["tooltip"] = words["group"]


# --- Markdown -------------------------------------------------------------------------------------------------------


class PageConverter(MarkdownConverter):
    """A page as Markdown: formulas between dollars, figures as their alternative text, code with its language."""

    def convert_span(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "math" in el.get("class", []):
            return f"${el.get_text().removeprefix(chr(92) + '(').removesuffix(chr(92) + ')').strip()}$"
        return text

    def convert_div(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "math" in el.get("class", []):
            number = el.find(class_="eqno")
            label = f" {number.extract().get_text().strip()}" if number else ""
            formula = el.get_text().strip().removeprefix("\\[").removesuffix("\\]").strip()
            return f"\n\n$$\n{formula}\n$${label}\n\n"
        return super().convert_div(el, text, parent_tags)

    def convert_svg(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        label = el.get("aria-label", "")
        return f"\n\n[{self.options['figure']}: {label}]\n\n" if label else ""


def code_language(el: Tag) -> str:
    """The label of a fence, from the class that Sphinx gives to the box around the code."""
    box = el.find_parent("div", class_=re.compile("^highlight-"))
    name = next((c.removeprefix("highlight-") for c in box["class"] if c.startswith("highlight-")), "") if box else ""
    return {"ipython3": "python", "default": "", "myst-ansi": "text", "none": "text"}.get(name, name)


def to_markdown(body: str, language: str) -> str:
    """The text of a page as it stands in the book, with the outputs of its cells, in Markdown."""
    # Colours of code and curves of figures are most of a page, and nothing of them is left: parsing them takes seconds.
    body = re.sub(r"(?<=<pre>)(.*?)(?=</pre>)", lambda code: re.sub(r"<[^>]*>", "", code[0]), body, flags=re.S)
    body = re.sub(r"(<svg\b[^>]*>).*?</svg>", r"\1</svg>", body, flags=re.S)
    body = re.sub(r'<span class="pre">([^<]*)</span>|<wbr>', r"\1", body)
    soup = BeautifulSoup(body, "html.parser")
    for unwanted in soup.select("a.headerlink, a:has(> .viewcode-link), script, style, svg:not([aria-label])"):
        unwanted.decompose()
    for link in soup.select("a:has(> .term-link)"):
        link.unwrap()
    for cell in soup.select("thead td"):
        cell.name = "th"  # an empty corner
    for link in soup.select("a[title]"):
        del link["title"]
    for title in soup.select("p.admonition-title"):
        title.name = "strong"
        title.insert_after(soup.new_tag("br"))
    converter = PageConverter(
        heading_style="ATX",
        bullets="-",
        code_language_callback=code_language,
        escape_misc=False,
        escape_underscores=False,
        figure=WORDS[language]["figure"],
    )
    return re.sub(r"\n{3,}", "\n\n", converter.convert_soup(soup)).strip() + "\n"


def write_markdown(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Put ``PAGE.md`` beside ``PAGE.html`` and name it in the head of the page."""
    if doctree is None or app.builder.name != "html":
        return
    target = Path(app.outdir, f"{pagename}.md")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(to_markdown(context["body"], app.config.language), "utf8")
    context["markdown_copy"] = f"{pagename.rsplit('/', 1)[-1]}.md"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of the above."""
    app.add_transform(LabelsFirst)
    app.add_post_transform(Permalinks)
    app.connect("config-inited", set_addresses, priority=50)
    app.connect("html-page-context", add_addresses, priority=90)
    app.connect("html-page-context", write_markdown, priority=90)
    app.connect("html-page-context", name_buttons, priority=900)  # after the theme has made them
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
