"""The content security policy of each page: a browser then runs no script that the build has not put there."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable
from pathlib import Path

POLICY = {
    "default-src": "'self'",
    "script-src": "'self'",  # and the hashes of what stands in the page itself
    "style-src": "'self' 'unsafe-inline'",  # MathJax and figures set styles of single elements
    "img-src": "'self' data:",  # icons of the theme's style sheets
    "font-src": "'self'",
    "connect-src": "'self'",  # the search reads pages for its excerpts
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
}
"""What a page may load and run: what the site itself serves, and the scripts that the build has put into the page.

Live cells: a worker that comes as a file of this site, and what it loads, is covered by ``'self'``. A page that
compiles WebAssembly itself, or a worker made from a ``blob:``, needs an entry here: ``'wasm-unsafe-eval'`` in
``script-src`` or ``"worker-src": "'self' blob:"``. Another host needs none, since nothing is loaded from one.
"""

SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.S)
HANDLER = re.compile(r"""<[a-z][^<>]*?\son[a-z]+="([^"]*)\"""")
CHARSET = re.compile(r'<meta charset="utf-8" ?/?>', re.I)


def digest(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def handlers_of(page: str) -> set[str]:
    """What the buttons of a page run."""
    return {digest(html.unescape(code)) for code in HANDLER.findall(page)}


def policy(page: str, others: Iterable[str] = ()) -> str:
    """The policy of a page: hashes allow the scripts that it holds and the handlers of its buttons, and no others.

    Args:
        page: its HTML.
        others: handlers of pages that it reads, as the search does for its excerpts. Nobody can press their buttons
            there, but Chromium (seen in 156) complains of each that the policy does not name.
    """
    inline = {digest(code) for attributes, code in SCRIPT.findall(page) if "src=" not in attributes}
    handlers = handlers_of(page).union(others)
    allowed = [POLICY["script-src"], *sorted(inline | handlers), *(["'unsafe-hashes'"] if handlers else [])]
    return "; ".join(f"{name} {value}" for name, value in {**POLICY, "script-src": " ".join(allowed)}.items())


def protected(page: str, others: Iterable[str] = ()) -> str:
    """A page with its policy (see :func:`policy`) right after its encoding, before anything that it loads."""
    found = CHARSET.search(page)
    if found is None:
        raise ValueError('a page does not name its encoding as <meta charset="utf-8">')
    tag = f'<meta http-equiv="Content-Security-Policy" content="{policy(page, others)}">'
    return f"{page[: found.end()]}\n{tag}{page[found.end() :]}"


def without_eval(translations: str) -> str:
    """Sphinx's words for its scripts, without the string that ``doctools.js`` would make a function of.

    The plural form is written down as the function that it means.
    """
    found = re.fullmatch(r"Documentation\.addTranslations\((.*)\);\s*", translations, re.S)
    if found is None:
        return translations
    catalogue = json.loads(found[1])
    plural, locale = catalogue["plural_expr"], json.dumps(catalogue["locale"])
    return (
        f"Object.assign(Documentation.TRANSLATIONS, {json.dumps(catalogue['messages'])});\n"
        f"Documentation.PLURAL_EXPR = (n) => {plural};\nDocumentation.LOCALE = {locale};\n"
    )


def protect(site: Path) -> None:
    """Give every page of a site its policy, and every language words that the policy allows."""
    for path in sorted(site.glob("*/_static/translations.js")):
        path.write_text(without_eval(path.read_text("utf8")), "utf8")
    pages = {path: path.read_text("utf8") for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    handlers = set().union(*map(handlers_of, pages.values()))
    for path, page in pages.items():
        path.write_text(protected(page, handlers if path.name == "search.html" else ()), "utf8")
