"""Search for symbols: «λ» finds the formulas that say ``\\lambda``, and «е» in a query stands for «ё» too.

Sphinx cuts text into words when it makes the index, and a script of the site cuts queries in the same way. Here both
write Greek letters as the names that TeX gives them, and ё as е, before they cut. A name such as ``td_residuals`` is
one word for Sphinx already.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from sphinx import search
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.search.ru import SearchRussian

GREEK = {chr(code): unicodedata.name(chr(code)).split()[-1].lower() for code in range(0x3B1, 0x3CA)}
GREEK |= {"λ": "lambda", "ϵ": "epsilon", "ϑ": "theta", "ϕ": "phi"}  # Unicode writes lamda
SIGNS = {"∑": "sum", "∏": "prod", "∞": "infty", "∇": "nabla"}
REPLACED = {
    **{letter.upper(): f" {name} " for letter, name in GREEK.items()},
    **{letter: f" {name} " for letter, name in {**GREEK, **SIGNS}.items()},
    "ё": "е",
    "Ё": "Е",
}
TABLE = str.maketrans(REPLACED)

SPLITTER = """
const REPLACED = %s;
function splitQuery(query) {
  const plain = Array.from(query, (letter) => REPLACED[letter] ?? letter).join("");
  return plain.split(/[^\\p{Letter}\\p{Number}_]+/u).filter((word) => word);
}
""" % json.dumps(REPLACED, ensure_ascii=False, sort_keys=True)  # noqa: UP031 - the script is full of braces


class Symbols:
    """What both languages do before they cut text into words."""

    js_splitter_code = SPLITTER

    def split(self, text: str) -> list[str]:
        """The words of a text, with symbols by their names."""
        return super().split(text.translate(TABLE))


class English(Symbols, SearchEnglish):
    """English with symbols."""


class Russian(Symbols, SearchRussian):
    """Russian with symbols."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Put both in the places of Sphinx' own; ``app.add_search_language`` would do the same."""
    for language in (English, Russian):
        search.languages[language.lang] = language
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
