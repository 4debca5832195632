"""What ties the site to the web, with and without an address: links, cards, feed, redirects, files for machines."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from importlib import import_module
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
import yaml

from book import addresses, policy, publish, web
from book._ext.changelog import read_changelog
from book.layout import LANGUAGES, Book
from tests.book.conftest import ADDRESS, MORE, REPOSITORY, ROOT, set_addresses
from tests.book.test_cite import Box, metadata
from tests.book.test_site import Tags, html

# --- without an address ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", ["index", "second", "search"])
def test_without_addresses_nothing_needs_them(site: Book, language: str, page: str) -> None:
    tags = Tags(html(site, language, page))
    assert tags.all("link", rel="canonical") == []
    assert [tag for tag in tags.all("meta") if (tag.get("property") or "").startswith("og:")] == []
    assert not any("atom" in (tag.get("type") or "") for tag in tags.all("link"))
    links = [tag.get("href") or "" for tag in tags.all("a")]
    assert not [link for link in links if "issues" in link or "/edit/" in link or "versions.html" in link]
    assert "citation_public_url" not in metadata(html(site, language, page))


def test_without_addresses_no_files_need_them(site: Book) -> None:
    folder = site.output / "html"
    assert not (folder / "sitemap.xml").exists()
    assert list(folder.rglob("changes.xml")) == list(folder.rglob("_cards")) == []


# --- with an address ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", ["index", "second", "genindex"])
def test_canonical_address_and_languages(public: Book, language: str, page: str) -> None:
    tags = Tags(html(public, language, page))
    assert [tag["href"] for tag in tags.all("link", rel="canonical")] == [f"{ADDRESS}{language}/{page}.html"]
    alternates = {tag["hreflang"]: tag["href"] for tag in tags.all("link", rel="alternate") if "hreflang" in tag}
    assert alternates == {
        **{code: f"{ADDRESS}{code}/{page}.html" for code in LANGUAGES},
        "x-default": f"{ADDRESS}en/{page}.html",
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_cards(public: Book, language: str) -> None:
    """Title, address, first words and a picture of the size that is promised."""
    tags = {tag["property"]: tag["content"] or "" for tag in Tags(html(public, language, "index")).all("meta")
            if "property" in tag}  # fmt: skip
    assert tags["og:url"] == f"{ADDRESS}{language}/index.html"
    assert tags["og:site_name"] == web.WORDS[language]["title"]
    assert tags["og:description"].startswith({"en": "Text with", "ru": "Текст со ссылками"}[language])
    assert tags["og:locale"] == {"en": "en_GB", "ru": "ru_RU"}[language]
    picture = public.output / "html" / tags["og:image"].removeprefix(ADDRESS)
    header = picture.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    size = int.from_bytes(header[16:20]), int.from_bytes(header[20:24])
    assert size == (int(tags["og:image:width"]), int(tags["og:image:height"]))
    assert b"matplotlib" not in picture.read_bytes()  # its version would be in the bytes of the site


def test_equal_words_give_equal_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the byte; a dollar and a long word are drawn as they are."""
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    cards = import_module("cards")
    for name in ("one", "two"):
        cards.draw_card(tmp_path / name, "Above", "Costs $1 and $2", "Слово " * 60, "example.org/")
    cards.draw_card(tmp_path / "other", "Above", "Costs $1 and $3", "Слово " * 60, "example.org/")
    one, two, other = ((tmp_path / name).read_bytes() for name in ("one", "two", "other"))
    assert one == two != other


@pytest.mark.parametrize("language", LANGUAGES)
def test_citation_has_the_address(public: Book, language: str) -> None:
    path = html(public, language, "second")
    url = f"{ADDRESS}{language}/second.html"
    assert metadata(path)["citation_public_url"] == [url]
    text, bibtex = Box(path).copied
    assert text.strip().endswith(url)
    assert f"url = {{{url}}}" in bibtex


def test_sitemap(public: Book) -> None:
    """Every page of the book in both languages, each naming both; the addresses lead to pages."""
    root = ElementTree.parse(public.output / "html/sitemap.xml").getroot()
    found = {}
    for url in root.iter(f"{{{web.SITEMAP}}}url"):
        links = {link.get("hreflang"): link.get("href") for link in url.iter(f"{{{web.XHTML}}}link")}
        found[url.findtext(f"{{{web.SITEMAP}}}loc")] = links
    assert set(found) == {f"{ADDRESS}{code}/{page}.html" for code in LANGUAGES for page in public.pages(code)}
    for address, links in found.items():
        assert (public.output / "html" / address.removeprefix(ADDRESS)).is_file()
        assert set(links) == {*LANGUAGES, "x-default"}
        assert address in links.values()
        assert set(links.values()) <= set(found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_feed(public: Book, language: str) -> None:
    """Valid as RFC 4287 asks: identifiers, titles, dates, authors; released versions only, the newest first."""
    path = public.output / "html" / language / "changes.xml"
    root = ElementTree.parse(path).getroot()
    atom = f"{{{web.ATOM}}}"
    assert root.tag == f"{atom}feed"
    assert root.findtext(f"{atom}id") == f"{ADDRESS}{language}/changes.xml"
    assert root.find(f"{atom}author/{atom}name") is not None
    entries = root.findall(f"{atom}entry")
    assert [entry.findtext(f"{atom}title", "").split()[-1] for entry in entries] == ["1.0.1", "1.0.0"]
    assert len({entry.findtext(f"{atom}id") for entry in entries}) == 2
    stamps = [element.text or "" for element in root.iter(f"{atom}updated")]
    assert stamps == ["2027-02-01T00:00:00Z", "2027-02-01T00:00:00Z", "2026-12-01T00:00:00Z"]
    first = entries[0].findtext(f"{atom}content", "")
    assert {"en": "it said <em>this</em>", "ru": "было написано <em>так</em>"}[language] in first
    assert {"ru": "it said", "en": "было"}[language] not in first
    (link,) = Tags(html(public, language, "index")).all("link", type="application/atom+xml")
    assert link["href"] == "changes.xml"


@pytest.mark.parametrize("language", LANGUAGES)
def test_links_to_report_and_to_edit(public: Book, language: str) -> None:
    """They name the file of the page in its language, and so does the text that a report begins with."""
    file = f"book/{language}/second.md"
    links = [tag for tag in Tags(html(public, language, "second")).all("a") if REPOSITORY in (tag.get("href") or "")]
    edit, report = (next(tag for tag in links if word in tag["href"]) for word in ("/edit/", "/issues/new"))
    assert edit["href"] == f"{REPOSITORY}/edit/main/{file}"
    query = parse_qs(urlsplit(report["href"]).query)
    assert file in query["title"][0]
    assert file in query["body"][0]
    assert f"{ADDRESS}{language}/second.html" in query["body"][0]
    wanted = {"en": "Report a problem on this page", "ru": "Сообщить об ошибке на этой странице"}[language]
    assert report["title"] == wanted
    assert edit["title"] == {"en": "Suggest an edit", "ru": "Предложить правку"}[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_notebooks_install_the_package_of_the_repository(public: Book, site: Book, language: str) -> None:
    """In their first cell, and a button opens them in Colab; without an address neither is there."""
    for book, there in ((public, True), (site, False)):
        page = html(book, language, "index")
        notebook = json.loads((page.parent / "_sources/index.ipynb").read_text("utf8"))
        first = "".join(notebook["cells"][0]["source"])
        assert (f'"keydoor[lab] @ git+{REPOSITORY}@v1.0.0"' in first) == there
        assert ("pip install" in json.dumps(notebook)) == there
        wanted = f"https://colab.research.google.com/github/someone/keydoor/blob/gh-pages/v1.0.0/{language}/_sources/"
        links = [tag["href"] for tag in Tags(page).all("a") if "colab" in (tag.get("href") or "")]
        assert links == ([f"{wanted}index.ipynb"] if there else [])
        if there:
            compile(re.sub("^ +%.*$", "    pass", first, flags=re.M), "the first cell", "exec")
            assert notebook["cells"][0]["outputs"] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_errata_come_from_the_changelog(public: Book, site: Book, language: str) -> None:
    text = html(public, language, "third").read_text("utf8")
    assert {"en": "it said <em>this</em>", "ru": "было написано <em>так</em>"}[language] in text
    assert {"en": "Corrected in version 1.0.1", "ru": "Исправлено в версии 1.0.1"}[language] in text
    assert {"ru": "it said", "en": "было написано"}[language] not in text
    assert "{errata}" in (ROOT / "book" / language / "changes.md").read_text("utf8")


def test_an_address_or_erratum_with_a_fault_is_named(mini: Book) -> None:
    """At the start of a build, with the line."""
    assert addresses.check(mini) == []
    set_addresses(mini, "example.org/book", "https://github.com/someone")
    text = (MORE / "CHANGELOG.md").read_text("utf8")
    half = text.replace("- `second-section` (1.0.0): было написано *так*; верно *иначе*.", "")
    (mini.root / "CHANGELOG.md").write_text(half, "utf8")
    found = [problem.text(mini) for problem in sorted(addresses.check(mini))]
    lines = (mini.root / "_config.yml").read_text("utf8").splitlines()
    url, base = (next(n for n, line in enumerate(lines, 1) if f"  {key}:" in line) for key in ("url", "baseurl"))
    assert found == [
        "CHANGELOG.md:9: the errata of version 1.0.1 differ in number (1 in en, 0 in ru): "
        "### Errata and ### Errata (ru)",
        f"_config.yml:{url}: repository: url: 'https://github.com/someone' is no address https://HOST/OWNER/NAME "
        "of github or gitlab",
        f"_config.yml:{base}: html: baseurl: 'example.org/book/' is no address https://HOST/PATH/",
    ]


def test_the_changelog_of_the_book_is_read() -> None:
    """All its versions, so that a release comes into the feed."""
    text = (ROOT / "CHANGELOG.md").read_text("utf8")
    assert len(read_changelog(ROOT / "CHANGELOG.md")) == len(re.findall("^## ", text, flags=re.M)) > 0


# --- addresses that others hold -------------------------------------------------------------------------------------


def folders(book: Book) -> dict[str, Path]:
    """What is checked before redirects stand in place of pages that have gone."""
    return {language: book.output / "render" / language / "html" for language in LANGUAGES}


def test_a_lost_address_is_named(site: Book, tmp_path: Path) -> None:
    known = tmp_path / "addresses.txt"
    known.write_text("\n".join(sorted(addresses.in_all(folders(site)))), "utf8")
    assert {"index.html", "index.html#page-index", "index.html#equation-eq-mini-return", "index.html#fig-mini",
            "index.html#prop-mini", "index.html#ex-mini", "second.html#second-section"} <= set(
        known.read_text("utf8").split())  # fmt: skip
    assert addresses.check_addresses(site, folders(site), known) == []
    known.write_text("third.html\nindex.html#equation-eq-mini-lost\nindex.html#prop-mini\n", "utf8")
    found = [problem.message for problem in addresses.check_addresses(site, folders(site), known)]
    assert found == [
        *(f"{code}/third.html has been published and is lost: name its new address in book/redirects.csv"
          for code in LANGUAGES),
        *(f"{code}/index.html#equation-eq-mini-lost has been published and is lost: put the old label as "
          "(eq-mini-lost)= above the place that it named" for code in LANGUAGES),
    ]  # fmt: skip


def test_redirects(public: Book, tmp_path: Path) -> None:
    """Old pages lead to new ones, also without scripts; a moved page is not lost."""
    known = tmp_path / "addresses.txt"
    known.write_text("first.html\ngone/old.html#anything\n", "utf8")
    assert addresses.check_addresses(public, folders(public), known) == []
    for language in LANGUAGES:
        for old, new in (("first", "second.html#second-section"), ("gone/old", "../index.html")):
            path = html(public, language, old)
            assert [tag["href"] for tag in Tags(path).all("a")] == [new]
            assert f'content="0; url={new}"' in path.read_text("utf8")
            assert (path.parent / new.partition("#")[0]).is_file()
    assert '{"eq-old": "../index.html#equation-eq-mini-return"}' in html(public, "ru", "gone/old").read_text("utf8")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("first.html,third.html", "first.html leads to third.html, and there is no page en/third.html"),
        ("first.html,index.html#x", "first.html leads to index.html#x, and en/index.html has no such label"),
        ("second.html,index.html", "'second.html' is no page that has gone: PAGE.html, or PAGE.html#LABEL"),
        ("first,index.html", "'first' is no page that has gone"),
    ],
)
def test_a_redirect_with_a_fault_is_named(mini: Book, site: Book, line: str, message: str) -> None:
    (mini.source / "redirects.csv").write_text(f"old,new\n{line}\n", "utf8")
    found = addresses.check_addresses(mini, folders(site))
    assert message in found[0].message
    assert (found[0].line, found[0].path.name) == (2, "redirects.csv")


# --- permalinks -----------------------------------------------------------------------------------------------------


def test_everything_that_can_be_cited_links_to_itself(site: Book) -> None:
    """Headings, equation, figure, result and exercise: by the same label in both languages, titled in their own."""
    links = {
        language: Tags(html(site, language, "index")).all("a", **{"class": "headerlink"}) for language in LANGUAGES
    }
    for language in LANGUAGES:
        found = [tag["href"] for tag in links[language]]
        assert found == ["#page-index", "#equation-eq-mini-return", "#fig-mini", "#prop-mini", "#ex-mini"]
    for english, russian in zip(links["en"], links["ru"], strict=True):
        assert (english["title"] or "").startswith("Link to this")
        assert (russian["title"] or "").startswith("Ссылка на эт")


# --- pages and files at the root ------------------------------------------------------------------------------------


def test_page_for_addresses_that_lead_nowhere(site: Book, public: Book) -> None:
    """Both languages without scripts; its own files are none, and its links begin at the root of the site."""
    for book, root in ((site, "/"), (public, "/book/")):
        tags = Tags(book.output / "html/404.html")
        assert [tag["lang"] for tag in tags.all("section")] == list(LANGUAGES)
        assert [tag["href"] for tag in tags.all("a")] == [f"{root}{code}/index.html" for code in LANGUAGES]
        assert [tag["action"] for tag in tags.all("form")] == [f"{root}{code}/search.html" for code in LANGUAGES]
        assert tags.all("link") == tags.all("img") == tags.all("base") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_markdown_of_a_page(site: Book, language: str) -> None:
    """The text as readers see it: outputs, numbers from cells, formulas, references, the figure in words."""
    (link,) = Tags(html(site, language, "index")).all("link", type="text/markdown")
    text = (html(site, language, "index").parent / str(link["href"])).read_text("utf8")
    word = {"en": "number", "ru": "число"}[language]
    for part in (
        "\n$$\nG = \\sum_t \\gamma^t r_t\n$$ (1)\n",
        f"```text\n{word} 1\n{word} 2\n```",
        "```python\nimport matplotlib.pyplot as plt",
        {"en": "[Figure: A line that rises from 0 to 1]", "ru": "[Рисунок: Линия растёт от 0 до 1]"}[language],
        {"en": "1234.57", "ru": "1234,57"}[language],
        {"en": "[Proposition 1](#prop-mini)", "ru": "[предложении 1](#prop-mini)"}[language],
    ):
        assert part in text, part
    assert text.startswith("# ")
    assert not re.search(r"\{(glue|ref|eq|cite)|<div|<svg|headerlink", text)
    assert Tags(html(site, language, "search")).all("link", type="text/markdown") == []


def test_guide_for_language_models(site: Book, public: Book) -> None:
    """``llms.txt``: a heading, a summary, and a list of links for each language; every link leads to a file."""
    for book, start, more in ((site, "", ()), (public, ADDRESS, ("third", "glossary", "twins"))):
        text = (book.output / "html/llms.txt").read_text("utf8")
        assert re.match(r"# .+\n\n> .+\n", text)
        links = re.findall(r"^- \[(.+)\]\((.+)\)$", text, flags=re.M)
        assert [url for _, url in links] == [
            f"{start}{code}/{page}.md" for code in LANGUAGES for page in ("index", "second", *more)
        ]
        assert all((book.output / "html" / url.removeprefix(start)).is_file() for _, url in links)
        assert [title for title, _ in links][2 + len(more) :][:2] == ["Книга в две страницы", "Вторая страница"]


# --- content security policy ----------------------------------------------------------------------------------------


def test_every_page_has_a_policy(site: Book) -> None:
    """Before anything that is loaded; no script is allowed but the site's own and those whose hash it holds."""
    pages = [path for path in (site.output / "html").rglob("*.html") if "_static" not in path.parts]
    assert {"404.html", "index.html", "second.html", "search.html"} <= {path.name for path in pages}
    for path in pages:
        (tag,) = Tags(path).all("meta", **{"http-equiv": "Content-Security-Policy"})
        rules = dict(rule.split(" ", 1) for rule in str(tag["content"]).split("; "))
        sources = rules["script-src"].split()
        assert all(s == "'self'" or s == "'unsafe-hashes'" or s.startswith("'sha256-") for s in sources)
        assert rules["default-src"] == "'self'"
        assert "http" not in str(tag["content"])
        text = path.read_text("utf8")
        assert text.index('<meta charset="utf-8"') < 1024 - 30  # where browsers look for it
        assert not re.search(r"<(script|link)\b", text[: text.index("Content-Security-Policy")])


def test_hashes_of_a_policy() -> None:
    """As the standard has them: SHA-256 of the script's text, and of a handler as the browser sees it."""
    page = '<script>a < b</script><script src="x.js"></script><button onclick="f(&quot;x&quot;)">onclick="no"</button>'
    wanted = {f"'sha256-{base64.b64encode(hashlib.sha256(code).digest()).decode()}'" for code in (b"a < b", b'f("x")')}
    rule = next(rule for rule in policy.policy(page).split("; ") if rule.startswith("script-src"))
    assert set(rule.split()[1:]) == {"'self'", "'unsafe-hashes'", *wanted}
    assert "'unsafe-hashes'" not in policy.policy("<script>1</script>")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_search_knows_the_buttons_of_the_pages_that_it_reads(site: Book, language: str) -> None:
    """Of every other page each policy names its own alone; pages with formulas have more than the search itself."""
    search, second = (html(site, language, name).read_text("utf8") for name in ("search", "second"))
    own, read = policy.handlers_of(search), policy.handlers_of(second)
    assert read - own
    assert all(digest in search for digest in read | own)
    assert not any(digest in html(site, language, "genindex").read_text("utf8") for digest in read - own)


def test_no_script_makes_code_of_a_string(site: Book) -> None:
    """Sphinx would for the plural forms of Russian, and a policy that allows it allows much."""
    text = (site.output / "html/ru/_static/translations.js").read_text("utf8")
    assert "addTranslations" not in text
    assert re.search(r"PLURAL_EXPR = \(n\) => \(n%10==1 && .*\);\n", text)
    assert policy.without_eval("") == ""


def test_both_addresses_are_set_in_one_place() -> None:
    """Empty or not, they stand in ``_config.yml`` and nowhere else in what the site is made from."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    for address in filter(None, (config["html"]["baseurl"], config["repository"]["url"])):
        for path in (ROOT / "book").rglob("*"):
            if path.suffix in (".py", ".html", ".md", ".csv", ".js"):
                assert address not in path.read_text("utf8"), path


# --- publishing -----------------------------------------------------------------------------------------------------


def test_versions_side_by_side(tmp_path: Path) -> None:
    """The newest at the root, a correction of an older one beside it, and nothing that is not ours is touched."""
    site, folder = tmp_path / "site", tmp_path / "served"
    (folder / ".git").mkdir(parents=True)
    (folder / "CNAME").write_text("example.org")
    for number, newest in (("1.0.0", True), ("1.10.0", True), ("1.9.1", False)):
        shutil.rmtree(site, ignore_errors=True)
        (site / "en/_static").mkdir(parents=True)
        (site / "en/index.html").write_text(number)
        (site / f"only-{number}.html").touch()
        (site / ".stamp").touch()
        assert publish.publish(site, number, folder) == newest
    assert {path.name for path in folder.iterdir()} == {
        *(".git", ".nojekyll", "CNAME", "en", "only-1.10.0.html", "versions.html"),
        *("v1.0.0", "v1.9.1", "v1.10.0"),
    }
    assert (folder / "en/index.html").read_text() == "1.10.0"
    assert (folder / "v1.9.1/en/index.html").read_text() == "1.9.1"
    tags = Tags(folder / "versions.html")
    links = [tag["href"] or "" for tag in tags.all("a", hreflang="ru")]
    assert links == [f"v{number}/ru/index.html" for number in ("1.10.0", "1.9.1", "1.0.0")]
    assert tags.all("meta", **{"http-equiv": "Content-Security-Policy"})


def test_the_workflow_runs_what_exists() -> None:
    """It parses, its actions are pinned to a commit, and each command of ours is there under its name."""
    text = (ROOT / ".github/workflows/publish.yml").read_text("utf8")
    steps = yaml.safe_load(text)["jobs"]["publish"]["steps"]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action), action
        assert re.search(rf"{action} # v\d+\.\d+\.\d+$", text, flags=re.M), f"{action}: name its version"
    commands = "\n".join(step.get("run", "") for step in steps)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf8"), flags=re.M))
    made, modules = re.findall(r"\bmake (\w+)", commands), re.findall(r"python -m ([\w.]+)", commands)
    assert made == ["book"]
    assert set(made) <= targets
    assert modules == ["book.pdf", "book.epub", "book.addresses", "book.publish"]
    for module in modules:
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
    for name in re.findall(r"[\w./]+\.txt", commands):
        assert Path(name) == addresses.ADDRESSES
    programs = {line.split()[0] for line in commands.splitlines() if line.strip()}
    assert programs <= {"git", "make", ".venv/bin/python", "if", "else", "fi"}


def test_a_book_without_address_is_not_published(mini: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    (mini.output / "html").mkdir(parents=True)
    (mini.output / "html/index.html").touch()
    monkeypatch.chdir(mini.root)
    monkeypatch.setattr("sys.argv", ["publish", "served"])
    with pytest.raises(SystemExit, match=r"_config\.yml: html: baseurl: set the address"):
        publish.main()
    assert not (mini.root / "served").exists()
