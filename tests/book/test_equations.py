"""Formulas that MathJax refuses, planted in pages and docstrings: the message names file and line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from book.gates import equations
from book.layout import Book

Plant = Callable[..., int]


def texts(book: Book) -> list[str]:
    return [problem.text(book) for problem in sorted(equations.check(book))]


def test_formulas_without_a_fault(mini: Book) -> None:
    """Formulas of every kind that Sphinx and MathJax understand, the macros of the configuration among them."""
    right = r"""Text $\E[X]$ and {math}`\P(a<b)`.

```{math}
:label: eq-mini-two
a &= b \\
  &= c
```

\begin{align}
a &= b \\ c &= d
\end{align}

$$ a = b

c = d $$

- An item $x_1$

  $$ y $$

| $\frac12$ | b |
|---|---|
| c | $\boldsymbol x$ |
""".replace(r"\boldsymbol x", r"\mathbf x")
    page = mini.source / "en" / "second.md"
    page.write_text(page.read_text("utf8") + "\n" + right, "utf8")
    found = [item.tex for item in equations.of_page(page)]
    assert len(found) == 9
    assert r"\begin{split}a &= b \\" in found[2]
    assert texts(mini) == []


REFUSED = [
    # what stands in a page, the line of the fault in it, and what the message says
    (r"Here $a_{1$ is.", 0, "missing close brace"),
    (r"$\undefinedmacro{x}$", 0, r"Undefined control sequence \undefinedmacro; mend its name, or define it"),
    ("One\ntwo $x$\nthree $x_1_2$.", 2, "Double subscripts"),
    ("$$\nx = \\frac{1}\n$$", 0, r"Missing argument for \frac"),
    ("$$\na &= b\n$$ (eq-mini-new)", 0, "Misplaced &"),
    ("\\begin{align}\na &= b\n\\end{aligned}\n\\end{align}", 0, r"ended with \end{aligned}"),
    ("```{math}\n:label: eq-mini-new\n\\left( x\n```", 0, r"Extra \left or missing \right"),
    ("{math}`a}b`", 0, "Extra close brace"),
    ("| a | b |\n|---|---|\n| c | $\\begin{foo}$ |", 2, "Unknown environment 'foo'"),
    ("```{note}\nText\n\nMore $\\foo$.\n```", 3, r"\foo"),
    ("```{prf:remark} On $\\foo$\nText\n```", 0, r"\foo"),
    ("- one\n- two\n\n  $$ \\foo $$", 3, r"\foo"),
    ("```{glossary}\nterm\n    Is $\\foo$.\n```", 2, r"\foo"),
    (r"$\boldsymbol{x}$", 0, "extensions/boldsymbol.js, which the site does not serve; write it with other macros"),
    ("$$\nx \\label{eq:one}\n$$", 0, r"\label does nothing inside a formula: write the label after"),
    (r"$\require{physics}x$", 0, "extensions/physics.js, which the site does not serve"),
]


def test_formulas_that_mathjax_refuses(mini: Book, plant: Plant) -> None:
    """In text, in displays with and without a label, in tables, lists, notes, titles and glossaries: on one page."""
    line = plant("ru/second.md", "```json", "".join(f"{new}\n\n" for new, _, _ in REFUSED) + "```json")
    messages = texts(mini)
    assert len(messages) == len(REFUSED)
    for message, (new, shift, says) in zip(messages, REFUSED, strict=True):
        assert message.startswith(f"book/ru/second.md:{line + shift}: ")
        assert says in message
        line += new.count("\n") + 2


def test_a_caption_of_a_cell(mini: Book, plant: Plant) -> None:
    line = plant("en/index.md", "caption: A line", r"caption: A line $\foo$")
    (message,) = texts(mini)
    assert message.startswith(f"book/en/index.md:{line}: ")


def test_a_macro_that_the_configuration_lacks(mini: Book, plant: Plant) -> None:
    """The macros are those of ``_config.yml``, not of the gate; each place where one is missed is named."""
    plant("en/second.md", "```json", "$\\E[X]$\n\n```json")
    config = mini.root / "_config.yml"
    config.write_text(config.read_text("utf8").replace("macros: { E:", "macros: { Exp:"), "utf8")
    (message,) = texts(mini)
    assert r"Undefined control sequence \E" in message


def test_a_macro_of_one_page_is_not_known_on_another(mini: Book, plant: Plant) -> None:
    """As in the browser: MathJax starts anew with each page."""
    plant("en/index.md", "The value is", r"$\newcommand{\zz}{z}\zz$. The value is")
    line = plant("en/second.md", "```json", "$\\zz$\n\n```json")
    (message,) = texts(mini)
    assert message.startswith(f"book/en/second.md:{line}: ")


DOCSTRINGS = [
    # a docstring, the line of the fault in it, and what the message says
    ('r"""One.\n\nIs :math:`\\foo`.\n"""', 3, r"Undefined control sequence \foo"),
    ('r"""One.\n\n.. math:: \\foo\n"""', 3, r"Undefined control sequence \foo"),
    ('r"""One.\n\n.. math::\n\n   a\n\n   x_1_2\n\nMore.\n"""', 3, "Double subscripts"),
    ('"""One.\n\nIs :math:`\\bar x`.\n"""', 3, 'a backslash was an escape: begin the docstring with r"""'),
]


def test_docstrings_of_the_package(mini: Book) -> None:
    """Roles and directives; an escape such as ``\\b`` in a docstring that is not raw is no TeX at all."""
    package = mini.root / "keydoor"
    package.mkdir()
    for number, (docstring, _, _) in enumerate(DOCSTRINGS):
        (package / f"module{number}.py").write_text(docstring + "\n", "utf8")
    messages = texts(mini)
    assert len(messages) == len(DOCSTRINGS)
    for number, (message, (_, line, says)) in enumerate(zip(messages, DOCSTRINGS, strict=True)):
        assert message.startswith(f"keydoor/module{number}.py:{line}: ")
        assert says in message


def test_nothing_runs_while_the_formulas_are_those_of_the_last_good_check(
    mini: Book, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prose may change; a new formula, another macro or another MathJax is checked, a fault is never remembered."""
    runs = []
    real = equations._run

    def counted(job: str) -> list[list[str | None]]:
        runs.append(job)
        return real(job)

    monkeypatch.setattr(equations, "_run", counted)
    assert texts(mini) == []
    plant("en/second.md", "# The second page", "# Another page")
    assert texts(mini) == []
    assert len(runs) == 1
    plant("en/second.md", "```json", "$\\foo$\n\n```json")
    assert len(texts(mini)) == 1
    assert len(texts(mini)) == 1
    assert len(runs) == 3
    plant("en/second.md", "$\\foo$", "$x$")
    assert texts(mini) == []
    bundle = mini.source / "vendor" / "mathjax" / equations.BUNDLE
    bundle.write_bytes(bundle.read_bytes() + b"\n")
    assert texts(mini) == []
    assert len(runs) == 5


def test_a_mathjax_that_does_not_start(mini: Book) -> None:
    """A broken bundle is said so, in a line and not in a megabyte."""
    (mini.source / "vendor" / "mathjax" / equations.BUNDLE).write_text("nonsense(", "utf8")
    with pytest.raises(RuntimeError, match="MathJax did not start"):
        equations.check(mini)
