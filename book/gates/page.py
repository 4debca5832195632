"""A page as the gates see it: headings, directives, equations, references and cells, each with its line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from myst_parser.parsers.mdit import create_md_parser

EXTENSIONS = {"amsmath", "colon_fence", "deflist", "dollarmath", "linkify", "substitution", "attrs_inline"}

NESTING = frozenset(
    ["note", "tip", "warning", "important", "admonition", "dropdown", "exercise", "solution", "figure", "play-world"]
    + ["prf:" + kind for kind in ("theorem", "proposition", "lemma", "corollary", "definition", "proof", "remark")]
    + ["prf:" + kind for kind in ("example", "assumption", "axiom", "algorithm", "observation", "conjecture")]
)
"""Directives whose body is Markdown again."""

LOCAL_OPTIONS = frozenset({"alt", "caption", "title"})
"""Options that hold words of a language; all others must agree."""


@dataclass(frozen=True)
class Item:
    """One element of a page's structure."""

    kind: str
    """``heading``, ``label``, ``directive``, ``equation``, ``cell``, ``nested cell``, ``fence`` or ``references``."""
    key: str
    """What must agree between the languages: level, label, name and options, TeX."""
    line: int
    text: str = ""
    """The element's own text: a cell's code, a fence's body, a heading."""
    references: tuple[str, ...] = ()
    """Roles of one block of text, sorted: ``ref lab-masks``. How a citation is worded is a matter of grammar: ``cite``
    stands for all its forms."""


@dataclass
class Page:
    """A parsed page."""

    path: Path
    items: list[Item] = field(default_factory=list)
    front_matter: str = ""

    def of(self, kind: str) -> list[Item]:
        """Items of one kind, in order."""
        return [item for item in self.items if item.kind == kind]


ROLE = re.compile(r"\{([a-z:]+)\}`([^`]+)`")
COUNTED_ROLES = ("given", "cite", "ref", "eq", "numref", "prf:ref", "py:", "doc", "glue:", "download")


@cache
def parser() -> MarkdownIt:
    """The parser of the build, with the extensions of ``_config.yml``.

    It puts its rules together when it first parses; that is done here, since gates that share it run in two threads.
    """
    made = create_md_parser(MdParserConfig(enable_extensions=EXTENSIONS), DocutilsRenderer)
    made.parse("words")
    return made


def read_page(path: Path) -> Page:
    """Parse a page with the parser of the build.

    Raises:
        ValueError: the front matter or the options of a directive are not YAML; the message names file and line.
    """
    return _parse(path, path.read_text("utf8"))


@lru_cache(maxsize=256)  # several gates read the same pages
def _parse(path: Path, text: str) -> Page:
    page = Page(path)
    _collect(page, parser().parse(text), 0)
    return page


def _collect(page: Page, tokens: list[Token], offset: int, nested: bool = False) -> None:
    for index, token in enumerate(tokens):
        line = (token.map[0] if token.map else 0) + 1 + offset
        if token.type == "front_matter":
            page.front_matter = token.content
        elif token.type == "heading_open":
            page.items.append(Item("heading", token.tag, line, tokens[index + 1].content))
        elif token.type == "myst_target":
            page.items.append(Item("label", token.content, line))
        elif token.type in ("math_block", "math_block_label", "amsmath"):
            label = token.info if token.type == "math_block_label" else ""
            page.items.append(Item("equation", f"{label} {_tex(token.content)}".strip(), line, token.content))
        elif token.type in ("fence", "colon_fence", "code_block"):
            _collect_fence(page, token, line, nested or token.level > 0)
        elif token.type == "inline":
            _collect_inline(page, token, line)


def _collect_inline(page: Page, token: Token, line: int) -> None:
    roles = sorted(
        f"{'cite' if name.startswith('cite') else name} {_target(name, content)}"
        for name, content in ROLE.findall(token.content)
        if name.startswith(COUNTED_ROLES)
    )
    if roles:
        page.items.append(Item("references", "", line, references=tuple(roles)))
    for child in token.children or ():
        if child.type in ("math_inline_double", "amsmath"):
            page.items.append(Item("equation", _tex(child.content), line, child.content))


def _target(role: str, content: str) -> str:
    """The target of a role, without its text; a glued value without its format."""
    found = re.search(r"<([^<>]+)>\s*$", content)
    target = found[1] if found else content
    if role == "given":
        return target.replace(",", ".")
    return target.rsplit(":", 1)[0] if role.startswith("glue:") else target


def _tex(tex: str) -> str:
    """TeX up to words, spaces and the decimal comma."""
    tex = re.sub(r"\\(text|textrm|textit|textbf|mbox)\{[^{}]*\}", r"\\\1{}", tex)
    return " ".join(tex.replace("{,}", ".").split())


def _collect_fence(page: Page, token: Token, line: int, nested: bool) -> None:
    info = token.info.strip()
    found = re.match(r"\{([^}]+)\}\s*(.*)", info)
    if not found:
        page.items.append(Item("fence", info.split(" ")[0], line, token.content))
        return
    name, argument = found.groups()
    options, body, skipped = read_options(page.path, line, token.content)
    if name == "code-cell":
        kind = "nested cell" if nested else "cell"
        page.items.append(Item(kind, _options_key(options), line + 1 + skipped, body))
        return
    # A title is words of a language; an argument without a space is a name that must agree.
    free = name in NESTING or name in ("code-block", "glossary", "image", "list-table", "table")
    argument = "" if free and name != "solution" else argument
    page.items.append(Item("directive", f"{name} {argument} {_options_key(options)}".strip(), line, body))
    if name == "math":
        page.items.append(Item("equation", f"{options.get('label', '')} {_tex(body)}".strip(), line, body))
    elif name in NESTING:
        _collect(page, parser().parse(body), line + skipped, nested=True)


def read_options(path: Path, line: int, content: str) -> tuple[dict[str, object], str, int]:
    """Options of a directive (``:key: value`` lines or a YAML block), its body, and the lines before the body."""
    lines = content.splitlines()
    if lines and lines[0].strip() == "---":
        try:
            end = next(number for number, text in enumerate(lines[1:], 1) if text.strip() == "---")
        except StopIteration:
            raise ValueError(f"{path}:{line}: the option block that begins with --- has no closing ---") from None
        block, body = "\n".join(lines[1:end]), end + 1
    else:
        count = next((n for n, text in enumerate(lines) if not re.match(r":[\w-]+:", text)), len(lines))
        block = "\n".join(re.sub(r"^:([\w-]+):\s*", r"\1: ", text) for text in lines[:count])
        body = count
    try:
        options = yaml.safe_load(block) if block else {}
    except yaml.YAMLError as error:
        raise ValueError(f"{path}:{line}: the options of this directive are not YAML: {error}") from None
    return options if isinstance(options, dict) else {}, "\n".join(lines[body:]), body


def _options_key(options: object) -> str:
    """Options without the words of a language."""

    def bare(value: object) -> object:
        if isinstance(value, dict):
            return {key: "…" if key in LOCAL_OPTIONS else bare(inner) for key, inner in sorted(value.items())}
        return value

    return str(bare(options)) if options else ""
