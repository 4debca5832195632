"""Faults of the bibliography and of citations, planted: the message names file and line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from book.gates import references
from book.layout import Book

Plant = Callable[..., int]

ARTICLE = """
@article{doe2020words,
  author  = {Doe, Jane},
  title   = {On {Words}},
  journal = {Journal of Words},
  year    = {2020},
  doi     = {10.1000/182}
}
"""


def texts(book: Book) -> list[str]:
    return [problem.text(book) for problem in sorted(references.check(book))]


@pytest.fixture
def entry(mini: Book, plant: Plant) -> Callable[[str], int]:
    """Add entries to the bibliography; returns the line on which the text begins. ``doe2020words`` is cited."""
    for language in ("en", "ru"):
        plant(f"{language}/second.md", "```json", "{cite:t}`doe2020words`\n\n```json")

    def add(text: str) -> int:
        path = mini.source / "references.bib"
        before = path.read_text("utf8").rstrip("\n") + "\n"
        path.write_text(before + text, "utf8")
        return before.count("\n") + 1

    return add


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("doi     = {10.1000/182}", "eprint = {2407.17032v2}"),
        ("doi     = {10.1000/182}", "eprint = {hep-th/9901001}, archiveprefix = {arXiv}"),
        ("doi     = {10.1000/182}", "note = {arXiv:1412.6980}"),
        ("doi     = {10.1000/182}", "note = {arXiv:cs.LG/0001001}"),
        ("doi     = {10.1000/182}", "url = {https://example.org/a?b=c}"),
        ("doi     = {10.1000/182}", "noidentifier = {the proceedings have none}"),
        ("doi     = {10.1000/182}", "doi = {10.1016/S0004-3702(99)00052-1}"),
    ],
)
def test_a_right_entry(mini: Book, entry: Callable[[str], int], old: str, new: str) -> None:
    """Identifiers in all forms that occur, or a reason why there is none."""
    assert not old or old in ARTICLE
    entry(ARTICLE.replace(old, new) if old else ARTICLE)
    assert texts(mini) == []


@pytest.mark.parametrize(
    ("old", "new", "shift", "says"),
    [
        ("  author  = {Doe, Jane},\n", "", 1, "doe2020words has no author"),
        ("{On {Words}}", "{}", 1, "doe2020words has no title"),
        ("  year    = {2020},\n", "", 1, "doe2020words has no year"),
        ("{2020}", "{in press}", 1, "no year of four digits, but 'in press'"),
        ("  journal = {Journal of Words},\n", "", 1, "no venue: @article says it in journal"),
        ("@article", "@inproceedings", 1, "no venue: @inproceedings says it in booktitle"),
        ("@article", "@papers", 1, "no known type: @papers"),
        (",\n  doi     = {10.1000/182}", "", 1, "no identifier: look up its doi"),
        (",\n  doi     = {10.1000/182}", ",\n noidentifier = {}", 1, "no identifier: look up its doi"),
        ("{10.1000/182}", "{https://doi.org/10.1000/182}", 6, "is no DOI: write it as 10.1000/182"),
        ("{10.1000/182}", "{11.1000/182}", 6, "'11.1000/182' is no DOI"),
        ("doi     = {10.1000/182}", "eprint = {2413.17032}", 6, "'2413.17032' is no arXiv id"),  # a 13th month
        ("doi     = {10.1000/182}", "eprint = {2407.1703}", 6, "'2407.1703' is no arXiv id"),  # four digits
        ("doi     = {10.1000/182}", "eprint = {arXiv:2407.17032}", 6, "is no arXiv id"),
        ("Journal of Words", "arXiv preprint arXiv:1707.6347", 4, "'1707.6347' is no arXiv id"),
        ("doi     = {10.1000/182}", "isbn = {978-0-262-03924-5}", 6, "its check digit does not fit"),
        ("doi     = {10.1000/182}", "isbn = {0-262-19398-2}", 6, "its check digit does not fit"),
        ("doi     = {10.1000/182}", "url = {http://example.org}", 6, "is no https address"),
    ],
)
def test_a_wrong_entry(mini: Book, entry: Callable[[str], int], old: str, new: str, shift: int, says: str) -> None:
    """The line is that of the field where there is one, else that of the entry."""
    assert old in ARTICLE
    line = entry(ARTICLE.replace(old, new))
    messages = texts(mini)
    assert any(message.startswith(f"book/references.bib:{line + shift}: ") and says in message for message in messages)
    assert len(messages) == 1


@pytest.mark.parametrize(
    ("old", "new", "shift", "says"),
    [
        ("", "", 1, "the key 'doe2020words' stands here again"),
        ("doe2020words", "Doe2020Words", 1, "the key 'Doe2020Words' stands here again"),
        ("doe2020words", "doe2020again", 3, "doe2020again has the title of doe2020words"),
        ("doe2020words", "doe2020again", 6, "doe2020again has the DOI of doe2020words"),
    ],
)
def test_an_entry_twice(
    mini: Book, plant: Plant, entry: Callable[[str], int], old: str, new: str, shift: int, says: str
) -> None:
    """By key, in any case, by title without braces and case, and by identifier."""
    for language in ("en", "ru"):
        plant(f"{language}/second.md", "{cite:t}`doe2020words`", "{cite:t}`doe2020words,doe2020again`")
    entry(ARTICLE)
    again = ARTICLE.replace("On {Words}", "On words.").replace("10.1000/182", "10.1000/182")
    line = entry(again.replace(old, new) if old else again)
    assert f"book/references.bib:{line + shift}: {says}" in "\n".join(texts(mini))


@pytest.mark.parametrize(
    ("one", "two", "kind"),
    [
        ("eprint = {2407.17032}", "note = {arXiv:2407.17032v3}", "arXiv id"),
        ("isbn = {978-0-306-40615-7}", "isbn = {9780306406157}", "ISBN"),
        ("doi = {10.1000/ABC}", "doi = {10.1000/abc}", "DOI"),
    ],
)
def test_one_identifier_in_two_forms(
    mini: Book, plant: Plant, entry: Callable[[str], int], one: str, two: str, kind: str
) -> None:
    for language in ("en", "ru"):
        plant(f"{language}/second.md", "{cite:t}`doe2020words`", "{cite:t}`doe2020words,doe2021other`")
    entry(ARTICLE.replace("doi     = {10.1000/182}", one))
    other = (
        ARTICLE.replace("doi     = {10.1000/182}", two)
        .replace("On {Words}", "Other")
        .replace("doe2020words", "doe2021other")
    )
    line = entry(other)
    assert texts(mini) == [
        f"book/references.bib:{line + 6}: doe2021other has the {kind} of doe2020words: keep one of the two"
    ]


def test_a_bibliography_that_is_not_bibtex(mini: Book, entry: Callable[[str], int]) -> None:
    line = entry(ARTICLE.replace("year    =", "year"))
    (message,) = texts(mini)
    assert message.startswith(f"book/references.bib:{line + 5}: not BibTeX: ")


@pytest.mark.parametrize("language", ["en", "ru"])
def test_an_entry_that_one_language_does_not_cite(mini: Book, plant: Plant, language: str) -> None:
    """A key in code is no citation."""
    word = "{cite:p}`sutton2018reinforcement`" if language == "en" else "{cite:t}`sutton2018reinforcement`"
    plant(f"{language}/index.md", word, f"`` {word} ``")
    (message,) = texts(mini)
    assert message.startswith("book/references.bib:1: sutton2018reinforcement is cited nowhere in")
    assert f"book/{language}:" in message


@pytest.mark.parametrize(
    ("new", "shift", "says"),
    [
        ("See {cite:p}`no_such_source`.", 0, "there is no reference 'no_such_source': add it to book/references.bib"),
        ("One\ntwo\n{cite}`sutton2018reinforcement,other`", 2, "there is no reference 'other'"),
        ("```{note}\nSee {cite:t}`Sutton2018Reinforcement`.\n```", 1, "did you mean 'sutton2018reinforcement'?"),
    ],
)
def test_a_citation_without_a_reference(mini: Book, plant: Plant, new: str, shift: int, says: str) -> None:
    line = plant("ru/second.md", "```json", f"{new}\n\n```json")
    (message,) = texts(mini)
    assert message.startswith(f"book/ru/second.md:{line + shift}: ")
    assert says in message


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("0-306-40615-2", True),  # the example of the ISBN users' manual, in both lengths
        ("978-0-306-40615-7", True),
        ("0-8044-2957-X", True),  # X stands for ten
        ("0-306-40615-3", False),
        ("978-0-306-40651-7", False),  # two digits exchanged
        ("979-10-90636-07-1", True),
        ("977-0-306-40615-7", False),
        ("12345", False),
    ],
)
def test_check_digits(value: str, right: bool) -> None:
    """Weights 10 to 1 modulo 11 for ten digits, 1 and 3 modulo 10 for thirteen."""
    assert references.isbn(value) is right


def test_the_two_page_book(mini: Book) -> None:
    assert texts(mini) == []
