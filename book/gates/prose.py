"""The words of a page: what a reader reads, without code, formulas, targets of roles, addresses and numbers of reports.

What was taken out leaves a ``GAP`` behind, so that the words around it neither touch nor gain a double space.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml
from markdown_it.token import Token

from book.gates.page import LOCAL_OPTIONS, NESTING, parser, read_options

GAP = "\ufffc"
"""Stands for each piece of code, formula, value, citation or address that was taken out."""

SPOKEN_ROLES = ("term", "ref", "numref", "doc", "download", "prf:ref", "py:", "abbr", "any")
"""Roles whose text, ``{ref}`text <target>```, is prose."""

REPORT = re.compile(r"(?:[\w.-]+/[\w.-]+)?#\d+\b|\b[\w.-]+@[\w.-]+\.\w+")
"""``owner/name#123``, ``#124`` and addresses of mail."""


@dataclass(frozen=True)
class Fragment:
    """One block of words."""

    line: int
    """The line in the file, from 1, on which the block begins."""
    text: str
    """Its words; a line break of the source is a line break here."""
    kind: str
    """``heading``, ``paragraph``, ``item``, ``cell`` (of a table), ``term`` and ``definition`` (of a glossary),
    ``title`` (of a directive), ``caption``, ``alt``; ``formula``; ``code`` (of a cell), ``string``, ``comment``."""
    emphasis: tuple[tuple[int, int], ...] = ()
    """Where in the text words are emphasised: from, to."""

    def line_at(self, position: int) -> int:
        """The line of the file on which a character of the text stands."""
        return self.line + self.text.count("\n", 0, position)


def prose(path: Path) -> list[Fragment]:
    """What a page says in words, in the order of the file.

    Raises:
        ValueError: the options of a directive are not YAML; the message names file and line.
    """
    return [part for part in _read(path) if part.kind not in ("formula", "code", "comment")]


def formulas(path: Path) -> list[Fragment]:
    """TeX of a page, each formula by itself, in the order of the file."""
    return [part for part in _read(path) if part.kind == "formula"]


def cells(path: Path) -> list[Fragment]:
    """Code of the cells."""
    return [part for part in _read(path) if part.kind == "code"]


def code_words(path: Path) -> list[Fragment]:
    """Comments of cells and of ``python`` and ``bash`` fences; string literals of cells that are no docstrings."""
    words = [part for part in _read(path) if part.kind == "comment"]
    for cell in cells(path):
        words += [Fragment(cell.line + n.lineno - 1, text, "string") for n, text in literals(cell.text)]
    return sorted(words, key=lambda part: part.line)


def blank(text: str, pattern: re.Pattern[str]) -> str:
    """A text in which what the pattern finds is replaced by as many gaps; positions and lines stay as they are."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", GAP, found[0]), text)


QUOTED = re.compile(r"«[^«»]*(?:«[^«»]*»[^«»]*)*»|“[^“”]*”|„[^„“]*“|(?<![\w\"])\"[^\"\n]*\"(?![\w\"])")


def without_quotations(text: str) -> str:
    """A text whose quotations are gaps."""
    return blank(text, QUOTED)


def _read(path: Path) -> tuple[Fragment, ...]:
    return _fragments(path, path.read_text("utf8"))


@lru_cache(maxsize=256)  # several gates read the same pages
def _fragments(path: Path, text: str) -> tuple[Fragment, ...]:
    return tuple(sorted(_blocks(path, text, 0), key=lambda part: part.line))


def _blocks(path: Path, text: str, offset: int) -> Iterator[Fragment]:
    """Words of Markdown that begins below line ``offset`` of the file."""
    inside: list[str] = []
    for token in parser().parse(text):
        line = (token.map[0] if token.map else 0) + 1 + offset
        if token.type == "inline":
            kinds = {"heading": "heading", "th": "cell", "td": "cell", "list_item": "item", "dt": "term"}
            kind = next((kinds[name] for name in reversed(inside) if name in kinds), "paragraph")
            yield from _inline(token, line, kind)
        elif token.type in ("math_block", "math_block_label", "amsmath"):
            yield Fragment(line, token.content, "formula")
        elif token.type in ("fence", "colon_fence"):
            yield from _fence(path, token, line)
        elif token.nesting == 1:
            inside.append(token.type.removesuffix("_open"))
        elif token.nesting == -1:
            inside.pop()


def _inline(token: Token, line: int, kind: str) -> Iterator[Fragment]:
    """One block: its words, and the formulas, labels of pictures and titles inside it."""
    text, emphasis, begins, cursor, address = "", [], [], 0, False
    for child in token.children or ():
        # The place in the source keeps lines right where code or a formula goes over a line break.
        found = token.content.find(child.content.split("\n")[0], cursor) if child.content else -1
        if found >= 0:
            text += "\n" * (token.content.count("\n", 0, found) - text.count("\n"))
            cursor = found + len(child.content.split("\n")[0])
        here = line + text.count("\n")
        if child.type == "text":
            text += GAP if address and child.content else child.content
        elif child.type in ("softbreak", "hardbreak"):
            text += "\n"
        elif child.type == "em_open":
            begins.append(len(text))
        elif child.type == "em_close":
            emphasis.append((begins.pop(), len(text)))
        elif child.type == "link_open":
            address = child.markup in ("linkify", "autolink")
        elif child.type == "link_close":
            address = False
        elif child.type == "myst_role":
            text += _role(child)
        elif child.type in ("math_inline", "math_inline_double", "amsmath"):
            yield Fragment(here, child.content, "formula")
            text += GAP
        elif child.type == "image":
            yield Fragment(here, child.content, "alt")
            text += GAP
        elif child.type in ("code_inline", "html_inline", "footnote_ref", "substitution_inline"):
            text += GAP
    text += "\n" * (token.content.count("\n") - text.count("\n"))
    if text.strip():
        # Same length, so that the places of the emphasis stay right.
        yield Fragment(line, blank(text, REPORT), kind, tuple(emphasis))


def _role(token: Token) -> str:
    name = str(token.meta["name"])
    found = re.match(r"(.*\S)\s*<[^<>]+>\s*$", token.content, flags=re.S)
    if not name.startswith(SPOKEN_ROLES):
        return GAP
    return found[1] if found else token.content if name in ("term", "abbr") else GAP


def _fence(path: Path, token: Token, line: int) -> Iterator[Fragment]:
    info = token.info.strip()
    found = re.match(r"\{([^}]+)\}\s*(.*)", info)
    if not found:
        language = info.split(" ")[0]
        if language in ("python", "bash"):
            yield from _comments(token.content, line + 1, language)
        return
    name, argument = found.groups()
    _, body, skipped = read_options(path, line, token.content)
    yield from _captions(token.content.splitlines()[:skipped], line + 1)
    if name == "code-cell":
        yield Fragment(line + 1 + skipped, body, "code")
        yield from _comments(body, line + 1 + skipped, "python")
    elif name == "math":
        yield Fragment(line + 1 + skipped, body, "formula")
    elif name == "glossary":
        yield from _glossary(path, body, line + skipped)
    elif name in NESTING or name in ("list-table", "table", "figure", "margin", "epigraph"):
        if argument and name not in ("solution", "figure"):
            (inline,) = parser().parseInline(argument)
            yield from _inline(inline, line, "title")
        yield from _blocks(path, body, line + skipped)


def _captions(lines: list[str], first: int) -> Iterator[Fragment]:
    """Options of a directive that hold words."""
    if not lines:
        return
    # A line of options has the same number in the YAML that is made of it.
    block = "\n".join("" if text.strip() == "---" else re.sub(r"^:([\w-]+):\s*", r"\1: ", text) for text in lines)
    nodes = [yaml.compose(block)]
    while nodes:
        node = nodes.pop()
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(value, yaml.MappingNode):
                nodes.append(value)
            elif key.value in LOCAL_OPTIONS and value.value:
                (inline,) = parser().parseInline(value.value)
                kind = key.value if key.value != "title" else "title"
                yield from _inline(inline, first + value.start_mark.line, kind)


def _glossary(path: Path, body: str, offset: int) -> Iterator[Fragment]:
    """Terms stand at the margin; what is indented below them explains them."""
    lines = body.splitlines()
    explained = "\n".join(text.strip() if text[:1].isspace() else "" for text in lines)
    for part in _blocks(path, explained, offset):
        yield part if part.kind == "formula" else Fragment(part.line, part.text, "definition", part.emphasis)
    for number, text in enumerate(lines, 1):
        if text and not text[:1].isspace():
            yield Fragment(offset + number, text.strip(), "term")


# --- code -----------------------------------------------------------------------------------------------------------


def _comments(code: str, first: int, language: str) -> Iterator[Fragment]:
    if language == "bash":
        found = [(n, re.search(r"(?:^|\s)#\s+(.*)", text)) for n, text in enumerate(code.splitlines())]
        yield from (Fragment(first + number, match[1], "comment") for number, match in found if match)
        return
    code = re.sub(r"^(>>>|\.\.\.) ?", "", code, flags=re.M)
    with suppress(tokenize.TokenError, SyntaxError):  # the gates of the fences and of the cells report it
        for token in tokenize.generate_tokens(io.StringIO(code + "\n").readline):
            if token.type == tokenize.COMMENT:
                yield Fragment(first + token.start[0] - 1, token.string.lstrip("# "), "comment")


def parsed(code: str) -> ast.Module:
    """The syntax tree of a cell; an empty one if it is not Python, which another gate reports."""
    try:
        return ast.parse(code)
    except SyntaxError:
        return ast.Module([], [])


def words_of(node: ast.expr) -> str | None:
    """A string literal; of an f-string its words, with a gap for each expression; ``None`` for other nodes."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@lru_cache(maxsize=4096)
def literals(code: str) -> list[tuple[ast.expr, str]]:
    """String literals of a cell but docstrings."""
    found = []
    nodes: list[ast.AST] = [parsed(code)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.expr) and (text := words_of(node)) is not None:
            found.append((node, text))
        if isinstance(node, ast.JoinedStr):
            nodes += [part for part in node.values if isinstance(part, ast.FormattedValue)]
        else:
            nodes += ast.iter_child_nodes(node)
    return found
