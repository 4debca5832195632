"""Everything that Markdown makes of a page, down to the words of a line: formulas, roles and links, each with its line.

Bodies of directives are Markdown too, and so are their titles and captions; what is code stays one token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from markdown_it.token import Token

from book.gates.page import parser, read_options

CODE = frozenset(["code", "code-block", "code-cell", "eval-rst", "literalinclude", "math", "raw", "sourcecode"])
"""Directives whose body is no Markdown."""


class Leaf(NamedTuple):
    """A token that holds no others, and the line on which it begins."""

    line: int
    token: Token


def leaves(path: Path) -> tuple[Leaf, ...]:
    """All leaves of a page, parsed once for all gates.

    Raises:
        ValueError: the options of a directive are not YAML; the message names file and line.
    """
    return _leaves(path, path.read_text("utf8"))


@lru_cache(maxsize=1024)
def _leaves(path: Path, text: str) -> tuple[Leaf, ...]:
    return tuple(_blocks(path, text, 0))


def _blocks(path: Path, text: str, offset: int) -> Iterator[Leaf]:
    line = 1 + offset
    for token in parser().parse(text):
        if token.map:
            line = token.map[0] + 1 + offset
        if token.type == "inline":
            yield from _inline(token, line)
        elif token.type in ("fence", "colon_fence") and (found := re.match(r"\s*\{([^}]+)\}\s*(.*)", token.info)):
            yield Leaf(line, token)
            yield from _directive(path, token.content, line, *found.groups())
        elif token.content:
            yield Leaf(line, token)


def _directive(path: Path, content: str, line: int, name: str, argument: str) -> Iterator[Leaf]:
    if argument and name not in CODE:
        yield from _blocks(path, argument, line - 1)
    options, body, skipped = read_options(path, line, content)
    for caption in _captions(options):
        first = caption.split("\n")[0]
        place = next((number for number, text in enumerate(content.splitlines(), 1) if first in text), 1)
        yield from _blocks(path, caption, line + place - 1)
    if name == "glossary":  # definitions are indented, and would look like code
        body = "\n".join(text.strip() for text in body.splitlines())
    if name not in CODE:
        yield from _blocks(path, body, line + skipped)


def _captions(options: object) -> Iterator[str]:
    """Captions among the options of a directive or a cell."""
    if isinstance(options, dict):
        for key, value in options.items():
            if key in ("caption", "title") and isinstance(value, str):
                yield value
            else:
                yield from _captions(value)


def _inline(token: Token, line: int) -> Iterator[Leaf]:
    for child in token.children or ():
        yield Leaf(line, child)
        line += 1 if child.type in ("softbreak", "hardbreak") else child.content.count("\n")
