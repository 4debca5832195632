"""Pages speak their language, in the words of the glossary: each fault planted in the two-page book."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from book.gates import language, prose
from book.layout import LANGUAGES, Book
from tests.book.conftest import ROOT

Plant = Callable[..., int]


def texts(book: Book) -> list[str]:
    return [problem.text(book) for problem in sorted(language.check(book))]


def test_right_pages_pass(mini: Book) -> None:
    """A gate that cries wolf is worse than none; on the real pages the build itself would stop."""
    assert texts(mini) == []


# --- what counts as prose -------------------------------------------------------------------------------------------

PAGE = """\
---
file_format: mystnb
---

(page-x)=
# Heading with `code`

One *two*
$x$ three {cite:p}`key` and {ref}`four <target>`,
`co
de` five https://example.org six owner/name#12 ![seven](x.png).

| eight | nine |
|---|---|
| ten | $y$ |

- eleven

```{prf:proposition} Twelve
:label: prop-x

Thirteen
fourteen.

$$ z $$ (eq-x)
```

````{note}
```{exercise} Fifteen
:label: ex-x
Sixteen.
```
````

```{glossary}
seventeen
  (*eighteen*) Nineteen.
```

```{figure} x.png
:name: fig-x
:alt: Twenty

Twenty-one.
```

```{code-cell} ipython3
---
mystnb:
  image:
    alt: Twenty-two
  figure:
    name: fig-y
    caption: Twenty-three
---
def f():
    "a docstring"
    return f"one {f()} two"  # a comment


print("three")
```

```bash
ls "#x"  # another
```
"""


def test_prose_has_every_word_at_its_line(tmp_path: Path) -> None:
    """Blocks of all kinds, nested ones too; the line is the one that an editor shows for the word."""
    path = tmp_path / "page.md"
    path.write_text(PAGE, "utf8")
    lines = PAGE.splitlines()
    found = {}
    for part in prose.prose(path):
        for number, text in enumerate(part.text.split("\n")):
            for word in text.replace(prose.GAP, " ").split():
                if (bare := word.strip("().,").lower()) not in ("with", "and", ""):
                    found[bare] = part.kind
                    assert word.strip("().,") in lines[part.line + number - 1], (word, part)
    assert found == {
        **dict.fromkeys(["heading"], "heading"),
        **dict.fromkeys(["one", "two", "three", "four", "five", "six", "thirteen", "fourteen", "sixteen"], "paragraph"),
        **dict.fromkeys(["seven", "twenty", "twenty-two"], "alt"),
        **dict.fromkeys(["eight", "nine", "ten"], "cell"),
        **dict.fromkeys(["eleven"], "item"),
        **dict.fromkeys(["twelve", "fifteen"], "title"),
        **dict.fromkeys(["seventeen"], "term"),
        **dict.fromkeys(["eighteen", "nineteen"], "definition"),
        **dict.fromkeys(["twenty-one"], "paragraph"),
        **dict.fromkeys(["twenty-three"], "caption"),
    }
    assert [(part.text.strip(), lines[part.line - 1]) for part in prose.formulas(path)] == [
        ("x", "$x$ three {cite:p}`key` and {ref}`four <target>`,"),
        ("y", "| ten | $y$ |"),
        ("z", "$$ z $$ (eq-x)"),
    ]
    assert [(part.kind, part.text, lines[part.line - 1]) for part in prose.code_words(path)] == [
        ("comment", "a comment", '    return f"one {f()} two"  # a comment'),
        ("string", f"one {prose.GAP} two", '    return f"one {f()} two"  # a comment'),
        ("string", "three", 'print("three")'),
        ("comment", "another", 'ls "#x"  # another'),
    ]


def test_emphasis_and_quotations(tmp_path: Path) -> None:
    """Where emphasis stands; a quotation is blanked character by character."""
    path = tmp_path / "page.md"
    path.write_text("a **b** *c d* e\n", "utf8")
    (part,) = prose.prose(path)
    assert [part.text[begin:end] for begin, end in part.emphasis] == ["c d"]
    text = "a «b «c» d» e “f” g"
    blank = prose.without_quotations(text)
    assert len(blank) == len(text)
    assert blank.replace(prose.GAP, "") == "a  e  g"


# --- scripts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "old", "new", "says"),
    [
        ("ru/index.md", "Агенты действуют в средах.", "The agents act in environments.", "'The agents act in env"),
        ("ru/index.md", "Агенты действуют", "Агенты act in an environment", "not translated: 'act in an environment'"),
        ("ru/index.md", "Один плюс один", "One plus one", "not translated: 'One plus one'"),
        ("ru/index.md", "alt: Линия растёт", "alt: A line that rises", "not translated: 'A line that rises'"),
        ("ru/index.md", "caption: Линия", "caption: A line", "this caption reads 'A line'"),
        ("ru/second.md", "## Раздел", "## A section", "this heading reads 'A section'"),
        ("ru/second.md", "```json", "- одно\n  и sets every new column\n\n```json", "'sets every new column'"),
        ("ru/index.md", "Агенты", "Aгенты", "'Aгенты' mixes two alphabets: A of it is Latin"),
        ("en/index.md", "Count to two.", "Count to два.", "Russian on an English page, 'два.'"),
        ("en/index.md", "caption: A line", "caption: Линия", "Russian on an English page, 'Линия'"),
        ("en/index.md", "# a comment", "# примечание", "Russian on an English page, 'примечание'"),
        ("en/index.md", 'xlabel("time")', 'xlabel("время")', "Russian on an English page, 'время'"),
        ("en/index.md", r"\gamma^t r_t", r"\gamma^t r_t \text{ всего}", "Russian on an English page, 'всего"),
    ],
)
def test_the_wrong_language(mini: Book, plant: Plant, page: str, old: str, new: str, says: str) -> None:
    """Prose, titles, captions, alternative texts, items, comments, labels, words in formulas."""
    line = plant(page, old, new) + (1 if new.startswith("- одно") else 0)
    messages = [text for text in texts(mini) if says in text]
    assert len(messages) == 1, texts(mini)
    assert messages[0].startswith(f"book/{page}:{line}: ")


@pytest.mark.parametrize(
    ("page", "old", "new"),
    [
        ("ru/index.md", "Агенты", "Агенты из Deep Mind Lab, «they act in an environment» и `act in it all`,"),
        ("ru/index.md", "Агенты", "Агенты (*agents that act in environments*)"),
        ("ru/index.md", "Агенты", "В PyTorch, NumPy и Gymnasium агенты"),
        ("ru/index.md", "Агенты", "См. https://example.org/one-two-three и some-org/some-repo#12, #13; TD-агенты"),
        ("ru/second.md", "# Вторая страница", "# Windows"),
        ("en/index.md", "Count to two.", "Count to two (*два*), “два” or `два`."),
    ],
)
def test_names_quotations_and_code_are_no_fault(mini: Book, plant: Plant, page: str, old: str, new: str) -> None:
    plant(page, old, new)
    assert texts(mini) == []


# --- cells ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("english", "russian", "shift"),
    [
        ('ax.set_xlabel("time")', "", 0),
        ('ax.plot([0, 1], [1, 0], label="second line")', "", 0),
        ('print("exact:", 1)', "", 0),
        ('print(f"number {1 + 1}")', "", 0),
        ('import pandas as pd\n\ntable = pd.DataFrame([{"value": 1}])\ndisplay(table.T)', "", 2),
        ('rows = []\nrows.append({"base reward": 1})', "", 1),
        ("x = 1  # this comment is long enough", "", 0),
        ('print(\n    "the exact value:", 1)', 'print(\n    "точно, the exact value of it:", 1)', 1),
    ],
)
def test_an_untranslated_label(mini: Book, plant: Plant, english: str, russian: str, shift: int) -> None:
    """Labels, printed words, tables and comments that are the same in both languages, and one half translated."""
    plant("en/index.md", "plt.show()", english)
    line = plant("ru/index.md", "plt.show()", russian or english)
    (message,) = texts(mini)
    assert message.startswith(f"book/ru/index.md:{line + shift}: ")
    assert "translated" in message


@pytest.mark.parametrize(
    "code",
    [
        'action = "inspect the room"',
        'print({"state": 1}["state"], "a" == "exact words")',
        'raise ValueError("this value is wrong")',
        'class A:\n    """What this does for you."""\n\n    said = {"door open": "The door is open."}',
        'print("mini_value", "V", "NaN", "x.csv", "TD")',
        'ax.plot([0], [0], linestyle="dashed", marker="o", label="Adam")',
        "x = frame.rename(columns={'median value': str(1)})",
    ],
)
def test_data_is_no_label(mini: Book, plant: Plant, code: str) -> None:
    """What code reads rather than people: keys, actions, errors, texts for a model, names."""
    for page in ("en/index.md", "ru/index.md"):
        plant(page, "plt.show()", code)
    assert texts(mini) == []


def test_words_in_formulas(mini: Book, plant: Plant) -> None:
    """``\\text`` speaks the page's language; names have ``\\mathrm``."""
    for page in ("en/index.md", "ru/index.md"):
        line = plant(page, r"r_t", r"r_t\ \text{if found},\ \mathrm{parse}")
    (message,) = texts(mini)
    assert message.startswith(f"book/ru/index.md:{line}: not translated: \\text{{if found}}")


# --- terms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("ревардами", "награда"),
        ("Полиси", "политика"),
        ("лосса", "функция потерь"),
        ("семян", "зерно"),
        ("сидами", "зерно"),
        ("трункацией", "внешнее усечение"),
        ("дисконт-фактором", "коэффициент дисконтирования"),
        ("апдейтов", "обновление"),
        ("токенайзеру", "токенизатор"),
        ("вознаграждением", "награда"),
        ("политикой поведения", "поведенческая политика"),
        ("агентными фреймворками", "среда агента или программа обучения"),
        ("сломанных двойников", "двойник с ошибкой"),
        ("частично обозреваемой", "частично наблюдаемая"),
    ],
)
def test_words_that_the_book_does_not_use(mini: Book, plant: Plant, wrong: str, right: str) -> None:
    """Any form of the word, alone or in a phrase; the message says what to write."""
    line = plant("ru/index.md", "Агенты действуют", f"Агенты с {wrong} действуют")
    (message,) = texts(mini)
    assert message.startswith(f"book/ru/index.md:{line}: «{wrong}»: this book says «{right}»")


def test_a_word_in_a_label_and_a_word_that_is_only_mentioned(mini: Book, plant: Plant) -> None:
    plant("ru/index.md", "Агенты", "На жаргоне говорят «лосс». Политики, семейство и отпечатано.")
    assert texts(mini) == []
    line = plant("ru/index.md", 'set_xlabel("время")', 'set_xlabel("лосс")')
    (message,) = texts(mini)
    assert message.startswith(f"book/ru/index.md:{line}: «лосс»")


def test_the_table_of_words_does_not_forbid_the_glossary() -> None:
    """No term of the glossary, in either column, contains a word that the table refuses; each row is used once."""
    rows = language.read_rows(ROOT / "book" / "glossary.csv")
    avoided = language.read_avoided(ROOT / "book" / "gates" / "avoid.csv")
    assert len(rows) > 50
    assert sum(map(len, avoided.values())) == len({wrong for group in avoided.values() for wrong, _, _ in group}) > 50
    for row in rows:
        assert list(language.avoided_words(row["ru"], avoided)) == [], row
    for group in avoided.values():
        for _, right, _ in group:
            assert list(language.avoided_words(right, avoided)) == [], right


def test_every_word_of_the_table_is_found_in_every_form() -> None:
    """The dictionary declines each word of the table; a word that it does not know must stand there as a stem."""
    avoided = language.read_avoided(ROOT / "book" / "gates" / "avoid.csv")
    for group in avoided.values():
        for wrong, _, _ in group:
            known = [language.morphology().parse(word.rstrip("*"))[0] for word in wrong]
            forms = [
                [form.word for form in word.lexeme if not {"COMP", "PREP"} & set(form.tag.grammemes)] for word in known
            ]
            for number, own in enumerate(forms):
                for form in [wrong[number].replace("*", "ами")] if wrong[number].endswith("*") else own:
                    said = [*(word.rstrip("*") for word in wrong[:number]), form]
                    said += [word.rstrip("*") for word in wrong[number + 1 :]]
                    found = [hit[2] for hit in language.avoided_words(" ".join(said), avoided)]
                    assert found, (wrong, said)


def test_the_glossary_page_says_what_the_table_says(mini: Book) -> None:
    """A term that a page lacks, and one with another translation."""
    table = mini.source / "glossary.csv"
    table.write_text("en,ru,note\nagent,агент,\npolicy,политика,\n", "utf8")
    for name, other in (
        ("en", "agent\n  (*агент*) One.\n\npolicy\n  (*правило*) Two."),
        ("ru", "агент\n  (*agent*) Один."),
    ):
        (mini.source / name / "glossary.md").write_text(f"# G\n\n```{{glossary}}\n{other}\n```\n", "utf8")
    assert texts(mini)[:2] == [
        "book/en/glossary.md:8: 'policy' is 'политика' in book/glossary.csv:3, here (*правило*)",
        "book/glossary.csv:3: book/ru/glossary.md does not explain 'политика'",
    ]


def test_options_that_are_not_yaml(mini: Book, plant: Plant) -> None:
    """A page that cannot be read is a fault, not a crash."""
    plant("ru/index.md", "alt: Линия растёт", "alt: [")
    assert any("not YAML" in text for text in texts(mini))


def test_both_languages_are_covered() -> None:
    """The gate knows the book's two languages by name; a third would need rules of its own."""
    assert LANGUAGES == ("en", "ru")
