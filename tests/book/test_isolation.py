"""Each page runs alone, without a network, and gives the same outputs in another locale, time zone and hash seed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_cache import get_cache

from book import execute
from book.gates.outputs import MAY_VARY
from book.layout import LANGUAGES, Book
from tests.book.conftest import ROOT

OFFLINE = ROOT / "tests" / "data" / "offline"
BOOK = Book(ROOT, ROOT / "_build")


def with_cells() -> list[Path]:
    """The pages that are executed, the longest first, each in one of its languages; the languages take turns.

    The code of both is equal but for its texts (the gate `parity`), and so are the numbers that it gives (`outputs`):
    what depends on the surroundings does so in both.
    """
    names = sorted(BOOK.pages("en"))
    pages = [BOOK.pages(LANGUAGES[n % len(LANGUAGES)])[name] for n, name in enumerate(names)]
    pages = [path for path in pages if "```{code-cell}" in path.read_text("utf8")]
    return sorted(pages, key=lambda path: -path.stat().st_size)


def outputs(notebook: nbformat.NotebookNode) -> list[Any]:
    """What the cells gave, without what may vary by declaration."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell.outputs for cell in cells if MAY_VARY not in cell.metadata.get("tags", [])]


def run(page: Path, environ: dict[str, str]) -> nbformat.NotebookNode:
    notebook = execute.read_notebook(page)
    problems, _ = execute.run_cells(page, notebook, environ)
    assert problems == []
    return notebook


def of_the_build(page: Path) -> nbformat.NotebookNode | None:
    """The page as the build has executed it, in a kernel of its own; ``None`` where it has not, or not as it is now.

    A page that asks for the profile, or shares training results between the languages, gave the build other outputs
    than it gives here.
    """
    if re.search(r"KEYDOOR_CACHE|current_profile", page.read_text("utf8")):
        return None
    cells = BOOK.output / "cache" / execute.cache_key(BOOK, {"RL_LLM_PROFILE": "full"}) / "cells"
    if not cells.is_dir():
        return None
    try:
        _, notebook = get_cache(str(cells)).merge_match_into_notebook(execute.read_notebook(page))
    except KeyError:
        return None
    return notebook


def environment(tmp_path: Path, **changes: str) -> dict[str, str]:
    """The kernel's environment in the build, with the profile that takes seconds and without shared results."""
    environ = execute.kernel_environment(BOOK, tmp_path)
    del environ["KEYDOOR_CACHE"]
    return {**environ, "RL_LLM_PROFILE": "smoke", **changes}


@pytest.mark.parametrize("page", with_cells(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_page_gives_the_same_outputs_elsewhere(page: Path, tmp_path: Path) -> None:
    """Twice in fresh kernels: as in the build, and with all that should not matter changed, the network cut.

    The first time is the build's own, if it has executed the page as it is now.
    """
    here = of_the_build(page) or run(page, environment(tmp_path))
    changed = environment(tmp_path, LC_ALL="C", LANG="C", TZ="Asia/Kamchatka", PYTHONHASHSEED="4242")
    changed["PYTHONPATH"] = os.pathsep.join([str(OFFLINE), changed["PYTHONPATH"]])
    assert outputs(here) == outputs(run(page, changed))


@pytest.mark.parametrize(
    ("code", "same"),
    [
        ("print(sorted({'a', 'b', 'c'}))", True),
        ("print({'a', 'b', 'c', 'd', 'e', 'f'})", False),
        ("import time; print(time.strftime('%H', time.gmtime(0)), time.localtime(0).tm_hour)", False),
    ],
)
def test_what_depends_on_the_surroundings_is_seen(tmp_path: Path, code: str, same: bool) -> None:
    """The order of a set and the local hour differ between the two runs; a sorted list does not."""
    page = tmp_path / "page.md"
    page.write_text(f"---\nfile_format: mystnb\n---\n\n# Page\n\n```{{code-cell}} ipython3\n{code}\n```\n", "utf8")
    here = run(page, environment(tmp_path, TZ="UTC"))
    there = run(page, environment(tmp_path, LC_ALL="C", TZ="Asia/Kamchatka", PYTHONHASHSEED="4242"))
    assert (outputs(here) == outputs(there)) == same


def test_the_network_is_cut(tmp_path: Path) -> None:
    """The guard itself: a page that asks for a name or an address fails, with the reason."""
    for code in ("socket.create_connection(('example.org', 80))", "socket.create_connection(('192.0.2.1', 80), 1)"):
        page = tmp_path / "page.md"
        text = f"---\nfile_format: mystnb\n---\n\n# Page\n\n```{{code-cell}} ipython3\nimport socket\n{code}\n```\n"
        page.write_text(text, "utf8")
        environ = environment(tmp_path)
        environ["PYTHONPATH"] = os.pathsep.join([str(OFFLINE), environ["PYTHONPATH"]])
        (problem,), _ = execute.run_cells(page, execute.read_notebook(page), environ)
        assert "pages run without a network" in problem.message
        assert problem.line == 9


def test_printed_text_is_one_output_between_tables() -> None:
    """Messages of one stream are joined; a table between two prints stays between them."""
    table = nbformat.v4.new_output("display_data", data={"text/plain": "table"})
    parts = [("stdout", "a"), ("stdout", "b\n"), None, ("stdout", "c"), ("stderr", "d"), ("stdout", "e")]
    made = [nbformat.v4.new_output("stream", name=p[0], text=p[1]) if p else table for p in parts]
    cell = nbformat.v4.new_code_cell(outputs=made)
    execute.join_streams(cell)
    seen = [(output.get("name"), output.get("text")) for output in cell.outputs]
    assert seen == [("stdout", "ab\n"), (None, None), ("stdout", "c"), ("stderr", "d"), ("stdout", "e")]
