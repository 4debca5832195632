"""Formulas that are set when the site is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from book import typeset
from book.layout import Book
from book.typeset import Formula, set_all, split

Plant = Callable[..., int]


def test_what_a_browser_would_set(mini: Book) -> None:
    """Macros of the configuration and of the page, both kinds of formula, MathML beside what is drawn."""
    pages = [[Formula(r"\newcommand{\zz}{z}\zz", False), Formula(r"\E[x]", True)], [Formula(r"a\lt b", False)]]
    made = set_all(mini, pages)
    (own, mean), (less,) = made["pages"]
    assert "<mi>z</mi>" in own
    assert 'display="true"' in mean
    assert '<mi mathvariant="double-struck">E</mi>' in mean
    assert 'display="true"' not in less
    assert "&lt;" in less
    for code in ("1D44E", "3C"):  # a and <: the style has what is drawn, and no more
        assert f"mjx-c{code}" in less
        assert f".mjx-c{code}" in made["style"]
    assert ".mjx-c1D457" not in made["style"]


def test_a_macro_of_one_page_is_not_known_on_another(mini: Book, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="MathJax did not set the formulas"):
        set_all(mini, [[Formula(r"\newcommand{\zz}{z}\zz", False)], [Formula(r"\zz", False)]])
    assert r"Undefined control sequence \zz" in capfd.readouterr().err


def test_formulas_are_set_once(mini: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until one changes, or MathJax, or its configuration."""
    pages = [[Formula("a", False)]]
    made = set_all(mini, pages)
    monkeypatch.setattr(typeset, "node", lambda *_, **__: pytest.fail("MathJax was started again"))
    assert set_all(mini, pages) == made
    config = mini.root / "_config.yml"
    config.write_text(config.read_text("utf8").replace("mathbb{E}", "mathbf{E}"), "utf8")
    with pytest.raises(pytest.fail.Exception, match="started again"):
        set_all(mini, pages)


@pytest.mark.parametrize("content", ["a < b", r"\(a", r"<span class='eqno'>(1)</span>\[a\]", ""])
def test_an_element_without_a_formula(content: str) -> None:
    with pytest.raises(ValueError, match="a formula without its delimiters"):
        split(content)


def test_a_page_keeps_all_else(mini: Book, tmp_path: Path) -> None:
    """Numbers of equations, and text that only looks like a formula."""
    page = (
        "<head></head><p>In code \\(a\\) stays.</p>"
        '<div class="math notranslate nohighlight" id="x">\n<span class="eqno">(7)</span>\\[a\\]</div>'
    )
    for language in ("en", "ru"):
        (tmp_path / language / "deep" / "_static").mkdir(parents=True)
        (tmp_path / language / "_static").mkdir()
        (tmp_path / language / "deep" / "one.html").write_text(page, "utf8")
        (tmp_path / language / "two.html").write_text("<head></head><p>none</p>", "utf8")
    typeset.typeset(mini, tmp_path)
    made = (tmp_path / "ru" / "deep" / "one.html").read_text("utf8")
    assert '<p>In code \\(a\\) stays.</p><div class="math notranslate nohighlight" id="x">\n' in made
    assert '<span class="eqno">(7)</span><mjx-container' in made
    assert 'href="../_static/formulas.css?v=' in made
    assert (tmp_path / "ru" / "two.html").read_text("utf8") == "<head></head><p>none</p>"
