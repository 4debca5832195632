"""Build the book: all gates, both languages, one place.

``python -m book.build`` checks the pages, runs the doctests, executes the cells, renders both languages and puts the
site together in ``_build/html``. The last good site stays in place until a new one is whole.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from book import addresses, assemble, execute
from book.gates import (
    api,
    doctests,
    equations,
    fences,
    figures,
    identities,
    language,
    live,
    outputs,
    parity,
    references,
    typed,
    typography,
)
from book.layout import LANGUAGES, Book, Problem

RENDER = """
import json, os, sys, traceback
from pathlib import Path
from jupyter_book.sphinx import build_sphinx
import myst_nb.sphinx_ext, sphinx_book_theme, sphinxcontrib.bibtex  # loaded once for all languages


def render(source, output, config, toc, cells, languages, version, kind, only):
    overrides = {
        "latex_individualpages": False,
        "language": Path(source).name,
        "external_toc_path": toc,
        "nb_execution_cache_path": cells,
        "book_languages": languages.split(","),
        "version": version,
        "release": version,
    }
    if only:
        overrides["nb_execution_excludepatterns"] = [
            f"{page.relative_to(source)}" for page in Path(source).rglob("*.md")
            if str(page.relative_to(source).with_suffix("")) != only
        ]
    return build_sphinx(
        source, output, path_config=config, noconfig=True, confoverrides=overrides, quiet=True,
        warningiserror=kind == "strict", keep_going=True, freshenv=False, force_all=kind == "strict",
    )


running = []
for arguments, log in json.load(sys.stdin):
    child = os.fork()
    if child:
        running.append(child)
        continue
    status = 1
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        status = 0 if render(*arguments) == 0 else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in running]))
"""


@contextmanager
def step(title: str) -> Iterator[None]:
    """Say what a long step does, and how long it took."""
    print(f"- {title} ...", flush=True)
    start = time.perf_counter()
    yield
    print(f"  {time.perf_counter() - start:.1f} s", flush=True)


def stop_at(book: Book, problems: list[Problem]) -> None:
    """Report faults, one a line, and end the build; the site of the build before stays as it is."""
    if not problems:
        return
    for problem in sorted(problems):
        print(problem.text(book), file=sys.stderr)
    raise SystemExit(f"{len(problems)} problem(s): the book was not built.")


def version(book: Book) -> str:
    """The version of the book, from ``pyproject.toml``."""
    found = re.search(r'^version = "([^"]+)"', (book.root / "pyproject.toml").read_text("utf8"), flags=re.M)
    return found[1] if found else "0"


def render(book: Book, languages: tuple[str, ...] = LANGUAGES, only: str = "") -> list[str]:
    """Render languages side by side, in two processes that share what Sphinx loads.

    Args:
        book: the book.
        languages: which of its languages.
        only: a page for a quick look: nothing else is executed, the environment of the last time is reused and
            warnings are shown but do not count.

    Returns:
        Sphinx's warnings and errors, ``file:line: message``; empty if all is well.
    """
    kind = "quick" if only else "strict"
    jobs = []
    for code in languages:
        folder = book.output / ("one" if only else "render") / code
        if not only:
            restore(book, code)
        folder.mkdir(parents=True, exist_ok=True)
        arguments = [
            str(book.source / code),
            str(folder / "html"),
            str(book.root / "_config.yml"),
            str(book.root / "_toc.yml"),
            str(execute.cache_folder(book) / "cells"),
            ",".join(LANGUAGES),
            version(book),
            kind,
            only,
        ]
        jobs.append((arguments, str(folder / "messages.txt")))
    process = subprocess.run(
        [sys.executable, "-c", RENDER],
        cwd=book.root,
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        env=execute.kernel_environment(book, execute.prepare(book)),
    )
    if process.returncode:
        return [*process.stderr.splitlines(), f"rendering ended with status {process.returncode}"]
    statuses = json.loads(process.stdout.splitlines()[-1])
    messages = []
    for code, status, (_, log) in zip(languages, statuses, jobs, strict=True):
        errors = Path(log).read_text("utf8", "replace") if Path(log).is_file() else ""
        lines = [_readable(book, line) for line in errors.splitlines() if line.strip()]
        if status and not lines:
            lines = [f"rendering {code} ended with status {status} and no message"]
        if status or only:
            messages += lines
    if not messages and not only:
        for code in languages:
            remember(book, code)
    return messages


KEPT = (".doctrees", "jupyter_execute", "html/_modules")
"""What a rendering leaves for the next: parsed pages, figures, and the listings of the package's source. Not all of its
HTML: Sphinx gives stylesheets that are there at the start another address, and two builds would differ."""


def render_key(book: Book) -> str:
    """A hash of all that the rendering depends on besides the text of the pages."""
    digest = hashlib.sha256(f"{execute.cache_key(book)} {book.root} {version(book)}".encode())
    folders = ("_ext", "_static", "_templates", "locale")  # listings of code name the style sheets by their hash
    files = [path for name in folders for path in sorted((book.source / name).rglob("*")) if path.suffix != ".mo"]
    files += [*(book.root / name for name in assemble.ROOT_FILES), Path(__file__)]
    files += [path for suffix in ("*.bib", "*.csv") for path in sorted(book.source.glob(suffix))]
    for path in files:
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.read_bytes())
    digest.update(" ".join(map(book.shown, book.all_pages())).encode())
    return digest.hexdigest()


def restore(book: Book, code: str) -> None:
    """Begin a rendering with the parsed pages of the last good one, if only texts of pages have changed since.

    Sphinx then parses the changed pages alone. All pages are resolved and written anew all the same, so that a
    reference to something that has gone is found wherever it stands. Parsed pages of a build with a fault are never
    used: their warnings would not come again.
    """
    work, good = (book.output / name / code for name in ("render", "good"))
    shutil.rmtree(work, ignore_errors=True)
    key = good / "key"
    if key.is_file() and key.read_text("utf8") == render_key(book):
        for name in filter(lambda name: (good / name).is_dir(), KEPT):
            shutil.copytree(good / name, work / name)


def remember(book: Book, code: str) -> None:
    """Keep the parsed pages of a good rendering for :func:`restore`."""
    work, good = (book.output / name / code for name in ("render", "good"))
    shutil.rmtree(good, ignore_errors=True)
    for name in filter(lambda name: (work / name).is_dir(), KEPT):  # a book without figures or package has not all
        shutil.copytree(work / name, good / name)
    (good / "key").write_text(render_key(book), "utf8")


def _readable(book: Book, line: str) -> str:
    """A message of Sphinx without colours and with the path that an author would type."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", line).replace(f"{book.root}{os.sep}", "")
    found = re.match(r"(?:\S+\.py:)?docstring of ((?:\w+\.)+)(\w+):(\d*): ", line)
    return f"{_definition(book, found[1], found[2])}{line[found.end() :]}" if found else line


def _definition(book: Book, place: str, name: str) -> str:
    """``keydoor/rules.py:12: `` for an object whose docstring has a fault; Sphinx counts lines inside the docstring."""
    parts, target = [*place.rstrip(".").split("."), name], name
    while parts and not (file := book.root.joinpath(*parts).with_suffix(".py")).is_file():
        target = parts.pop()
    if not parts:
        return f"{place}{name}: "
    pattern = re.compile(rf"\s*(def |class )?{target}\b")
    lines = file.read_text("utf8").splitlines()
    number = next((n for n, text in enumerate(lines, 1) if pattern.match(text)), 1)
    return f"{book.shown(file)}:{number}: docstring of {name}: "


def build(book: Book) -> None:
    """The whole way from sources to site.

    Raises:
        SystemExit: at the first group of faults, with each named by file and line on stderr.
    """
    gates: list[tuple[str, Callable[[Book], list[Problem]]]] = [
        ("reading the addresses and the errata", addresses.check),
        ("comparing the two languages", parity.check),
        ("checking results, functions and tests", identities.check),
        ("reading the language of the pages", language.check),
        ("checking the typography", typography.check),
        ("running the examples between the lines", fences.check),
        ("checking the public API", api.check),
        ("running the doctests of the package", doctests.check),
        ("looking for results typed into prose", typed.check),
        ("typesetting the equations", equations.check),
        ("checking the references", references.check),
        ("reading the checks of exercises", live.check),
        ("executing the cells that have changed", execute.execute_pages),
        ("comparing what the cells give in both languages", outputs.check),
        ("looking at the figures", figures.check),
    ]
    key = assemble.site_key(book)  # of the sources as they are now: they may be edited while the build runs
    with ThreadPoolExecutor(2) as pool:
        # These two wait for pytest and for Node, which run on the other core while the gates before them read pages.
        ahead = {gate: pool.submit(gate, book) for gate in (doctests.check, equations.check)}
        for title, gate in gates:
            with step(title):
                problems = ahead[gate].result() if gate in ahead else gate(book)
            stop_at(book, problems)
    with step("rendering both languages"):
        messages = render(book)
    if messages:
        print("\n".join(messages), file=sys.stderr)
        raise SystemExit(f"{len(messages)} message(s) of Sphinx: the book was not built.")
    with step("looking for addresses that are lost"):
        folders = {code: book.output / "render" / code / "html" for code in LANGUAGES}
        problems = addresses.check_addresses(book, folders)
    stop_at(book, problems)
    with step("putting the site together"):
        site = assemble.assemble(book, version(book), key)
    print(f"The book is in {book.shown(site)}: open index.html there, or run `make serve`.")


def look(book: Book, language: str, page: str) -> None:
    """A quick look at one page while writing: only its cells are executed, and nothing else is checked."""
    pages = book.pages(language)
    if page not in pages:
        raise SystemExit(f"no page {page!r} in {book.shown(book.source / language)}; there are: {', '.join(pages)}")
    with step(f"executing {language}/{page}"):
        problems = execute.execute_pages(book, [pages[page]])
    stop_at(book, problems)
    with step(f"rendering {language}/{page}"):
        for message in render(book, (language,), only=page):
            print(message, file=sys.stderr)
    assemble.write_live(book, book.output / "one" / language)
    print(f"The page is in {book.shown(book.output / 'one' / language / 'html' / f'{page}.html')}.")


def main(arguments: list[str] | None = None) -> None:
    """Command line of the build."""
    parser = argparse.ArgumentParser(prog="python -m book.build", description="Build the book in both languages.")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="folder with _config.yml (default: here)")
    parser.add_argument("--output", type=Path, help="where to build (default: _build in the root)")
    parser.add_argument("--language", choices=LANGUAGES, help="with --page: the page's language")
    parser.add_argument("--page", help="a quick look at one page, by name without .md")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    if not (root / "_config.yml").is_file():
        raise SystemExit(f"no _config.yml in {root}: run this in the folder of the book, or give --root.")
    os.environ.setdefault("RL_LLM_PROFILE", "full")  # what readers see is the full profile; it takes seconds
    book = Book(root, (options.output or root / "_build").resolve())
    if options.page:
        look(book, options.language or LANGUAGES[0], options.page)
    else:
        build(book)


if __name__ == "__main__":
    main()
