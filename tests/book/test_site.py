"""What the build makes of a two-page book: both languages, the root page, downloads, the course, plain Jupyter Book."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from book.assemble import course_name, write_course
from book.build import look, render_key, version
from book.execute import cache_key
from book.layout import LANGUAGES, Book
from tests.book.conftest import ROOT, contents, copy_mini, run_build


class Tags(HTMLParser):
    """All tags of a page with their attributes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text("utf8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [a for name, a in self.found if name == tag and all(a.get(k) == v for k, v in wanted.items())]


def html(site: Book, language: str, page: str) -> Path:
    return site.output / "html" / language / f"{page}.html"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", ["index", "second", "search", "genindex"])
def test_every_page_names_its_language_and_the_other(site: Book, language: str, page: str) -> None:
    """``lang``, ``hreflang`` for both, and a visible link to the same page in the other language, which exists."""
    tags = Tags(html(site, language, page))
    assert tags.all("html")[0]["lang"] == language
    alternates = {link["hreflang"]: link["href"] for link in tags.all("link", rel="alternate") if "hreflang" in link}
    assert alternates == {code: f"../{code}/{page}.html" for code in LANGUAGES}
    other = next(code for code in LANGUAGES if code != language)
    (switch,) = [a for a in tags.all("a", rel="alternate") if a.get("hreflang") == other]
    assert switch["href"] == f"../{other}/{page}.html"
    assert html(site, other, page).is_file()


def test_the_root_page_offers_both_languages(site: Book) -> None:
    """Links to both for readers without scripts, and a script that picks the browser's language."""
    root = site.output / "html" / "index.html"
    assert [a["href"] for a in Tags(root).all("a")] == ["en/index.html", "ru/index.html"]
    assert "navigator.languages" in root.read_text("utf8")


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_comes_from_another_host(site: Book, language: str) -> None:
    """Scripts, styles, fonts and pictures are served by the site; links that a reader follows may lead elsewhere."""
    for path in sorted((site.output / "html" / language).rglob("*.html")):
        for tag, attributes in Tags(path).found:
            for name in ("src", "href") if tag in ("script", "img", "iframe", "source") else ():
                assert not (attributes.get(name) or "").startswith(("http:", "https:", "//")), (path, attributes)
            if tag == "link" and attributes.get("rel") not in ("canonical", "alternate"):
                assert not (attributes.get("href") or "").startswith(("http:", "https:", "//")), (path, attributes)
    for path in (site.output / "html" / language).rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text("utf8", "replace")), path


@pytest.mark.parametrize("language", LANGUAGES)
def test_formulas_come_set(site: Book, language: str) -> None:
    """No page brings MathJax, or TeX that waits for it; the fonts are there, and each formula has its MathML."""
    page = html(site, language, "index")
    text = page.read_text("utf8")
    formulas = text.count('class="math notranslate nohighlight"')
    assert text.count("<mjx-container") == text.count("<mjx-assistive-mml") == formulas > 0
    assert not re.search(r"\\[(\[]", re.sub(r"<script.*?</script>", "", text, flags=re.S))
    assert "window.MathJax =" not in text
    assert not [*page.parent.rglob("tex-mml-chtml.js"), *page.parent.rglob("liteDOM.js")]
    (style,) = [tag["href"] for tag in Tags(page).all("link") if "formulas.css" in (tag.get("href") or "")]
    sheet = page.parent / str(style).split("?")[0]
    fonts = re.findall(r'url\("?([^")]+\.woff)', sheet.read_text("utf8"))
    assert fonts
    assert all((sheet.parent / font).resolve().is_file() for font in fonts)


def test_the_colour_mode_is_known_before_anything_is_drawn(site: Book) -> None:
    """And not set to `auto`, which the theme's script would replace at the end, with all colours."""
    for path in sorted((site.output / "html").rglob("*.html")):
        head = path.read_text("utf8").split("</head>")[0]
        if "dataset.mode" in head:
            assert "prefers-color-scheme" in head.split("dataset.theme =")[1].split(";")[0], path
    assert "dataset.mode" in html(site, "en", "index").read_text("utf8")


def test_russian_interface(site: Book) -> None:
    """Words that the extensions draw: captions, figures, results, proofs, exercises, solutions, citations, search."""
    text = html(site, "ru", "index").read_text("utf8")
    for word in ("Начало", "Рис. 1", "Предложение 1", "Доказательство.", "Упражнение 1", "Решение", "Поиск по книге"):
        assert word in text
    for word in ("Proof", "Solution", "Exercise", "Toggle", "Back to top", "Contents", 'aria-label="Main"'):
        assert word not in re.sub(r"<!--.*?-->|<script.*?</script>", "", text, flags=re.S), word


def test_references_decline(site: Book) -> None:
    """The number of a result inside words of the sentence."""
    text = html(site, "ru", "index").read_text("utf8")
    assert re.search(r'всё есть в <a class="reference internal"[^>]*>предложении 1</a>', text)


def test_numbers_from_cells_are_local(site: Book) -> None:
    """1234.5678 as ``.2f``: a decimal comma in Russian prose, a point in English prose and in output of cells."""
    assert "1234.57" in html(site, "en", "index").read_text("utf8")
    russian = html(site, "ru", "index").read_text("utf8")
    assert "1234,57" in russian
    assert "1234.57" not in russian


def test_russian_search_stems(site: Book) -> None:
    """The index holds stems, «агент» for «агенты» and «сред» for «средах»; queries use the same stemmer."""
    index = (site.output / "html/ru/searchindex.js").read_text("utf8")
    terms = json.loads(index[index.index("(") + 1 : index.rindex(")")])["terms"]
    assert "агент" in terms
    assert "агенты" not in terms
    assert "сред" in terms
    assert "RussianStemmer" in (site.output / "html/ru/_static/language_data.js").read_text("utf8")


@pytest.mark.parametrize("language", LANGUAGES)
def test_figures_follow_the_colour_mode(site: Book, language: str) -> None:
    """Inline SVG with a label in the page's language, no black of its own, and identifiers that are unique."""
    path = html(site, language, "index")
    (figure,) = [svg for svg in Tags(path).all("svg") if svg.get("role") == "img"]
    assert figure["aria-label"] == {"en": "A line that rises from 0 to 1", "ru": "Линия растёт от 0 до 1"}[language]
    text = path.read_text("utf8")
    svg = text[text.index("<svg") : text.index("</svg>")]
    assert "currentColor" in svg
    assert "#000000" not in svg
    assert "<metadata" not in svg
    assert "<style" not in text  # in the text it would make a browser lay out the page again
    identifiers = [a["id"] for _, a in Tags(path).found if a.get("id")]
    repeated = {name for name in identifiers if identifiers.count(name) > 1}
    assert not repeated


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", ["index", "second"])
def test_every_page_can_be_downloaded_as_an_executed_notebook(site: Book, language: str, page: str) -> None:
    links = [a["href"] or "" for a in Tags(html(site, language, page)).all("a")]
    (link,) = [href for href in links if href.endswith(".ipynb")]
    notebook = json.loads((html(site, language, page).parent / link).read_text("utf8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) == (2 if page == "index" else 0)
    assert all(cell["execution_count"] for cell in code)
    if code:
        word = {"en": "number", "ru": "число"}[language]
        assert "".join(code[-1]["outputs"][0]["text"]) == f"{word} 1\n{word} 2\n"


@pytest.fixture
def unpacked(site: Book, tmp_path: Path) -> Book:
    """The course as its archive has it."""
    name = course_name(version(site))
    with zipfile.ZipFile(site.output / "html" / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    return Book(tmp_path / name, tmp_path / name / "_build")


def test_the_course_unpacks(site: Book, unpacked: Book) -> None:
    """The archive keeps the folders, and holds the pages and the executed notebooks."""
    with zipfile.ZipFile(site.output / "html" / f"{unpacked.root.name}.zip") as archive:
        names = archive.namelist()
    assert names == sorted(names)
    assert all(entry.startswith(f"{unpacked.root.name}/") for entry in names)
    assert {f"{unpacked.root.name}/notebooks/{code}/index.ipynb" for code in LANGUAGES} <= set(names)
    for language in LANGUAGES:
        assert unpacked.pages(language).keys() == site.pages(language).keys()


def test_equal_sources_give_equal_archives(site: Book, tmp_path: Path) -> None:
    write_course(site, tmp_path / "one.zip", "1")
    write_course(site, tmp_path / "two.zip", "1")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_the_course_of_the_real_book_is_complete(tmp_path: Path) -> None:
    """Everything that git tracks is in the archive: a new top-level file must be named in ``COURSE``."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout: this is the unpacked course itself")
    write_course(Book(ROOT, tmp_path), tmp_path / "course.zip", "1")
    with zipfile.ZipFile(tmp_path / "course.zip") as archive:
        packed = {name.split("/", 1)[1] for name in archive.namelist()}
    assert set(tracked.stdout.split()) - packed == set()


def test_the_course_builds_after_an_edit_of_prose_there_and_back(
    site: Book, unpacked: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the archive holds builds the same book, to the byte: not one tells of the edit, or of another folder.

    Nothing is executed: the cells come from the cache, which the course's package, requirements and style must fit. The
    second build begins with the parsed pages that the first has kept, and parses the edited page alone.
    """
    monkeypatch.setenv("RL_LLM_PROFILE", "full")  # as the command does, so that keys can be compared
    shutil.copytree(site.output / "cache", unpacked.output / "cache")
    page = unpacked.source / "en" / "second.md"
    text = page.read_text("utf8")
    page.write_text(text.replace("# The second page", "# The other page"), "utf8")
    result = run_build(unpacked)
    assert result.returncode == 0, result.stderr
    assert "executed" not in result.stdout.replace("executing", "")
    assert "The other page" in html(unpacked, "en", "second").read_text("utf8")
    page.write_text(text, "utf8")
    for language in LANGUAGES:
        assert (unpacked.output / "good" / language / "key").read_text("utf8") == render_key(unpacked)
    result = run_build(unpacked)
    assert result.returncode == 0, result.stderr
    before, after = (contents(book.output / "html") for book in (site, unpacked))
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []


def test_the_cache_depends_on_package_and_requirements(mini: Book) -> None:
    """An edit of the package or the requirements changes the key, another profile too; a page does not."""
    key = cache_key(mini, {})
    (mini.source / "en" / "index.md").write_text("other", "utf8")
    assert cache_key(mini, {}) == key
    assert cache_key(mini, {"RL_LLM_PROFILE": "smoke"}) != key
    (mini.root / "keydoor").mkdir()
    (mini.root / "keydoor" / "one.py").write_text("x = 1\n", "utf8")
    with_package = cache_key(mini, {})
    assert with_package != key
    (mini.root / "requirements.txt").write_text("other==1\n", "utf8")
    assert cache_key(mini, {}) not in (key, with_package)


def test_one_page_for_a_quick_look(mini: Book, capsys: pytest.CaptureFixture[str]) -> None:
    """`make one`: only that page's cells run; an unknown page is a clear error."""
    look(mini, "ru", "second")
    assert (mini.output / "one/ru/html/second.html").is_file()
    assert "executed" not in capsys.readouterr().out.replace("executing", "")
    with pytest.raises(SystemExit, match="no page 'third' in book/ru; there are: index, second"):
        look(mini, "ru", "third")


@pytest.mark.reader
def test_plain_jupyter_book_builds_a_language(tmp_path: Path) -> None:
    """The line of the README, as Jupyter Book's users type it; the language comes from the folder.

    Russian is built: English is what Sphinx speaks of itself.
    """
    mini = copy_mini(tmp_path / "mini")
    program = str(Path(sys.executable).with_name("jupyter-book"))
    for language in LANGUAGES:
        line = f'build book/{language} --config _config.yml --toc "$PWD/_toc.yml" --path-output _build/plain'
        assert f".venv/bin/jupyter-book {line}-{language}\n" in (ROOT / "README.md").read_text("utf8")
    command = [program, *shlex.split(line.replace("$PWD", str(mini.root)))]
    result = subprocess.run(command, cwd=mini.root, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    page = (mini.output / "plain/_build/html/index.html").read_text("utf8")
    assert 'lang="ru"' in page
    assert "Упражнение 1" in page
    assert "hreflang" not in page  # no switch to a language that this build has not made
