"""Results, functions and tests belong together: each break planted in the two-page book, and the pages it makes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from book.gates import identities
from book.gates.naming import fault_of_function, fault_of_test, touches
from book.layout import LANGUAGES, Book

Plant = Callable[..., int]

BLOCK = """```{identity} prop-mini
:function: tools.sums.total
:test: tests/test_sums.py::test_pairs
```

"""


def texts(book: Book) -> list[str]:
    return [problem.text(book) for problem in sorted(identities.check(book))]


def both(plant: Plant, old: str, new: str) -> int:
    """The same change in both languages, so that they still agree."""
    plant("ru/index.md", old, new)
    return plant("en/index.md", old, new)


def test_a_book_without_a_fault_passes(mini: Book) -> None:
    assert texts(mini) == []


@pytest.mark.parametrize(
    ("old", "new", "says", "shift"),
    [
        (BLOCK, "", "the result prop-mini names no function and no test; add after it ```{identity}", -5),
        (":label: prop-mini\n", "", "this result has no label; add the option ':label:", -1),
        ("{identity} prop-mini", "{identity} prop-other", "no result with the label prop-other stands before", 0),
        (":function: tools.sums.total\n", "", "the identity of prop-mini has no line ':function:'", -1),
        (":test: tests/test_sums.py::test_pairs\n", "", "the identity of prop-mini has no line ':test:'", -2),
        ("tools.sums.total", "tools.other.total", "there is no module for tools.other.total", -1),
        ("tools.sums.total", "tools.sums.sum_of_all", "sum_of_all is not defined in tools/sums.py", -1),
        ("tools.sums.total", "tools.sums", "tools.sums is a module; name a function of it", -1),
        ("tools.sums.total", "tools.sums._total", "tools.sums._total is private", -1),
        ("test_sums.py::", "test_other.py::", "the test file tests/test_other.py does not exist", -2),
        ("::test_pairs", "::test_triples", "test_triples is not in tests/test_sums.py; has the test been renamed?", -2),
        ("::test_pairs", "::added", "added is not in tests/test_sums.py", -2),
        ("::test_pairs", "", "is no name of a test; write tests/test_FILE.py::test_NAME", -2),
        ("::test_pairs", "::test_of_nothing", "test_of_nothing never names tools.sums.total", -2),
        (
            "::test_pairs",
            "::test_pairs, tests/test_sums.py::test_of_nothing",
            "test_of_nothing never names tools.sums.total",
            -2,
        ),
        (
            "tools.sums.total",
            "tools.sums.total, tools.sums.unrelated",
            "no test of this identity names tools.sums.unrelated",
            -1,
        ),
        (BLOCK, BLOCK + BLOCK, "prop-mini has an identity already", 5),
        (BLOCK, "## A heading\n\n" + BLOCK, "the result prop-mini names no function", -5),
    ],
)
def test_faults(mini: Book, plant: Plant, old: str, new: str, says: str, shift: int) -> None:
    """In both languages at once: each of the two pages is named, with the line of the result or of its identity."""
    line = both(plant, old, new) + shift
    found = [text for text in texts(mini) if says in text]
    assert [text.split(": ")[0] for text in found] == [f"book/{code}/index.md:{line}" for code in LANGUAGES], (
        line,
        texts(mini),
    )


def test_an_identity_after_another_result(mini: Book, plant: Plant) -> None:
    other = "```{prf:lemma} Another\n:label: lem-mini\nTwo is two.\n```\n\n"
    line = both(plant, BLOCK, other + BLOCK)
    messages = texts(mini)
    assert f"book/en/index.md:{line + 5}: this stands after lem-mini; put it right after prop-mini" in messages
    assert any(text.startswith(f"book/en/index.md:{line}: the result lem-mini names no function") for text in messages)


def test_what_claims_nothing_needs_none(mini: Book, plant: Plant) -> None:
    both(plant, BLOCK, BLOCK + "```{prf:definition} Two\n:label: def-mini\nTwo is one plus one.\n```\n\n")
    assert texts(mini) == []


def test_an_identity_may_stand_after_the_proof(mini: Book, plant: Plant) -> None:
    both(plant, BLOCK, "")
    both(plant, "```{exercise}", BLOCK + "```{exercise}")
    assert texts(mini) == []


@pytest.mark.parametrize(
    ("old", "new", "where", "says"),
    [
        (BLOCK, "", "en", "book/ru/index.md has no identity of prop-mini; add the same one"),
        ("tools.sums.total\n", "tools.sums.total, tools.sums.total\n", "ru", "differs from book/en/index.md:"),
        ("::test_pairs", "::test_pairs, tests/test_sums.py::test_pairs", "ru", "differs from book/en/index.md:"),
    ],
)
def test_the_two_languages_agree(mini: Book, plant: Plant, old: str, new: str, where: str, says: str) -> None:
    plant("ru/index.md", old, new)
    line = (mini.source / "en/index.md").read_text("utf8").partition(BLOCK)[0].count("\n") + 1
    assert any(text.startswith(f"book/{where}/index.md:{line}: ") and says in text for text in texts(mini)), texts(mini)


def test_a_language_without_the_index(mini: Book, plant: Plant) -> None:
    plant("ru/second.md", "```{identity-index}\n```\n", "")
    (message,) = texts(mini)
    assert re.match(r"book/ru/index\.md:\d+: no page shows the index of results: put the directive ", message)


# --- what a test touches --------------------------------------------------------------------------------------------

SOURCES = {
    "keydoor/__init__.py": "",
    "keydoor/sums.py": "from keydoor._inner import lent\ndef total(): ...\nclass World:\n    def step(self): ...\n",
    "keydoor/_inner.py": "def lent(): ...\n",
}

TOUCHING = {
    "a call": "from keydoor.sums import total\ndef test_it():\n    total()\n",
    "another name": "from keydoor.sums import total as t\ndef test_it():\n    t()\n",
    "from the package": "from keydoor import total\ndef test_it():\n    total()\n",
    "an attribute of the module": "from keydoor import sums\ndef test_it():\n    sums.total()\n",
    "the whole path": "import keydoor.sums\ndef test_it():\n    keydoor.sums.total()\n",
    "an attribute of the package": "import keydoor\ndef test_it():\n    keydoor.total()\n",
    "a module with another name": "import keydoor.sums as s\ndef test_it():\n    s.total()\n",
    "an import inside": "def test_it():\n    from keydoor.sums import total\n    total()\n",
    "parameters": (
        "import pytest\nfrom keydoor.sums import total\n"
        "@pytest.mark.parametrize('f', [total])\ndef test_it(f):\n    f()\n"
    ),
    "a helper": "from keydoor.sums import total\ndef help():\n    total()\ndef test_it():\n    help()\n",
    "a helper of a helper": (
        "from keydoor.sums import total\ndef a():\n    total()\nb = [a]\ndef test_it():\n    b[0]()\n"
    ),
    "a fixture": (
        "import pytest\nfrom keydoor.sums import total\n@pytest.fixture\ndef made():\n    return total()\n"
        "def test_it(made):\n    pass\n"
    ),
    "a fixture by its name": (
        "import pytest\nfrom keydoor.sums import total\n@pytest.fixture\ndef made():\n    return total()\n"
        "@pytest.mark.usefixtures('made')\ndef test_it():\n    pass\n"
    ),
}

NOT_TOUCHING = {
    "a docstring": 'from keydoor.sums import total\ndef test_it():\n    """It tests total."""\n',
    "a string": "from keydoor.sums import total\ndef test_it():\n    assert 'total'\n",
    "another test": "from keydoor.sums import total\ndef test_other():\n    total()\ndef test_it():\n    pass\n",
    "an unused helper": "from keydoor.sums import total\ndef help():\n    total()\ndef test_it():\n    pass\n",
    "a name of its own": "def total():\n    pass\ndef test_it():\n    total()\n",
    "another module": "from keydoor.others import total\ndef test_it():\n    total()\n",
    "a method of that name": "from keydoor.sums import World\ndef test_it():\n    World().total()\n",
}


def written(root: Path, test: str) -> Path:
    for name, text in {**SOURCES, "tests/test_it.py": test}.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf8")
    return root


@pytest.mark.parametrize("how", TOUCHING)
def test_a_test_that_touches(tmp_path: Path, how: str) -> None:
    assert touches(written(tmp_path, TOUCHING[how]), "tests/test_it.py::test_it", "keydoor.sums.total")


@pytest.mark.parametrize("how", NOT_TOUCHING)
def test_a_test_that_does_not_touch(tmp_path: Path, how: str) -> None:
    assert not touches(written(tmp_path, NOT_TOUCHING[how]), "tests/test_it.py::test_it", "keydoor.sums.total")


def test_tests_in_classes(tmp_path: Path) -> None:
    """A method, with a decorator of its class, and what it reaches through ``self``."""
    root = written(
        tmp_path,
        "import pytest\nfrom keydoor.sums import total\n"
        "@pytest.mark.parametrize('f', [total])\nclass TestA:\n    def test_it(self, f):\n        f()\n"
        "class TestB:\n    def help(self):\n        total()\n    def test_it(self):\n        self.help()\n"
        "    def test_other(self):\n        pass\n",
    )
    found = {
        name: touches(root, f"tests/test_it.py::{name}", "keydoor.sums.total")
        for name in ("TestA::test_it", "TestB::test_it", "TestB::test_other")
    }
    assert found == {"TestA::test_it": True, "TestB::test_it": True, "TestB::test_other": False}
    assert fault_of_test(root, "tests/test_it.py::TestA::test_it") is None
    assert "is not in" in (fault_of_test(root, "tests/test_it.py::TestA") or "")


@pytest.mark.parametrize("mark", ["skip", "skip(reason='later')", "xfail", "xfail(strict=True)"])
def test_a_test_that_is_skipped_checks_nothing(tmp_path: Path, mark: str) -> None:
    root = written(tmp_path, f"import pytest\n@pytest.mark.{mark}\ndef test_it():\n    pass\n")
    assert "checks nothing" in (fault_of_test(root, "tests/test_it.py::test_it") or "")


def test_functions_of_the_package(tmp_path: Path) -> None:
    """Defined, a method, lent by a private module; and not."""
    root = written(tmp_path, "")
    for name in ("keydoor.sums.total", "keydoor.sums.World.step", "keydoor.sums.lent", "keydoor.sums.World"):
        assert fault_of_function(root, name) is None
    for name in ("keydoor.sums.World.stop", "keydoor.sums.total.step", "keydoor.sums.nothing", "keydoor.total", "sums"):
        assert fault_of_function(root, name)


# --- what readers see -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ("Checked by: ", "Result and page", "Proposition 1", "(A result)", "A book of two pages")),
        ("ru", ("Проверено: ", "Результат и страница", "Предложение 1", "(Результат)", "Книга в две страницы")),
    ],
)
def test_the_line_and_the_table(site: Book, language: str, words: tuple[str, ...]) -> None:
    """The line below the result and the row of the table link to the entry of the function, the result and its page."""
    page, table = ((site.output / "html" / language / f"{name}.html").read_text("utf8") for name in ("index", "second"))
    (line,) = re.findall(r'<p class="identity">.*?</p>', page)
    (row,) = re.findall(r"<tbody>.*?</tbody>", table, flags=re.S)
    bare = [re.sub(r"<[^>]+>", "", text) for text in (line, table)]
    assert bare[0] == f"{words[0]}total · tests/test_sums.py::test_pairs"
    assert all(word in bare[1] for word in words[1:])
    assert 'href="second.html#tools.sums.total"' in line
    for target in ("#tools.sums.total", "index.html#prop-mini", "index.html"):
        assert f'href="{target}"' in row, target
