"""Each page runs alone, without a network, and gives the same outputs in another locale, time zone and hash seed."""

from __future__ import annotations

import json
import os
import shutil
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


BUILT = BOOK.output / "cache" / execute.cache_key(BOOK, {"RL_LLM_PROFILE": "full"})


def of_the_build(page: Path) -> nbformat.NotebookNode | None:
    """The page as the build has executed it, in a kernel of its own; ``None`` where it has not, or not as it is now."""
    if not (BUILT / "cells").is_dir():
        return None
    try:
        _, notebook = get_cache(str(BUILT / "cells")).merge_match_into_notebook(execute.read_notebook(page))
    except KeyError:
        return None
    return notebook


def results_of_the_build(folder: Path) -> Path:
    """A copy of the training results that the build's pages share, without those of one seed: these are made anew."""
    shutil.copytree(BUILT / "results", folder)
    runs = [
        path
        for path in folder.rglob("metadata.json")
        if json.loads(path.read_text("utf8"))["input_args"]["seed"] == "1"
    ]
    assert runs, "no run with this seed: nothing would be trained"
    for path in runs:
        path.with_name("output.pkl").unlink()
    return folder


def environment(tmp_path: Path, **changes: str) -> dict[str, str]:
    """The kernel's environment in the build, with the profile that takes seconds and without shared results."""
    environ = execute.kernel_environment(BOOK, tmp_path)
    del environ["KEYDOOR_CACHE"]
    return {**environ, "RL_LLM_PROFILE": "smoke", **changes}


def elsewhere(tmp_path: Path, **changes: str) -> dict[str, str]:
    """An environment in which all that should not matter is changed, and the network cut."""
    environ = environment(tmp_path, LC_ALL="C", LANG="C", TZ="Asia/Kamchatka", PYTHONHASHSEED="4242", **changes)
    return {**environ, "PYTHONPATH": os.pathsep.join([str(OFFLINE), environ["PYTHONPATH"]])}


@pytest.mark.parametrize("page", with_cells(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_page_gives_the_same_outputs_elsewhere(page: Path, tmp_path: Path) -> None:
    """Twice in fresh kernels: as in the build, and with all that should not matter changed, the network cut.

    The first time is the build's own, if it has executed the page as it is now.
    """
    if here := of_the_build(page):
        changes = {"RL_LLM_PROFILE": "full"}
        if "KEYDOOR_CACHE" in page.read_text("utf8"):
            changes["KEYDOOR_CACHE"] = str(results_of_the_build(tmp_path / "results"))
        there = run(page, elsewhere(tmp_path, **changes))
    else:
        here, there = run(page, environment(tmp_path)), run(page, elsewhere(tmp_path))
    assert outputs(here) == outputs(there)


def page_with(tmp_path: Path, *codes: str) -> Path:
    """A page of these cells."""
    page = tmp_path / "page.md"
    cells = "\n".join(f"```{{code-cell}} ipython3\n{code}\n```\n" for code in codes)
    page.write_text(f"---\nfile_format: mystnb\n---\n\n# Page\n\n{cells}", "utf8")
    return page


def test_what_depends_on_the_surroundings_is_seen(tmp_path: Path) -> None:
    """The order of a set and the local hour differ between the two runs; a sorted list does not."""
    page = page_with(
        tmp_path,
        "print(sorted({'a', 'b', 'c'}))",
        "print({'a', 'b', 'c', 'd', 'e', 'f'})",
        "import time; print(time.strftime('%H', time.gmtime(0)), time.localtime(0).tm_hour)",
    )
    here, there = run(page, environment(tmp_path, TZ="UTC")), run(page, elsewhere(tmp_path))
    same = [one == other for one, other in zip(outputs(here), outputs(there), strict=True)]
    assert same == [True, False, False]


def test_the_network_is_cut(tmp_path: Path) -> None:
    """The guard itself: a page that asks for a name or an address fails, with the reason."""
    name = "import socket\ntry:\n    socket.create_connection(('example.org', 80))\nexcept OSError as e:\n    print(e)"
    page = page_with(tmp_path, name, "socket.create_connection(('192.0.2.1', 80), 1)")
    notebook = execute.read_notebook(page)
    (problem,), _ = execute.run_cells(page, notebook, elsewhere(tmp_path))
    reason = "pages run without a network"
    assert reason in outputs(notebook)[0][0].text
    assert reason in problem.message
    assert problem.line == 16


def test_printed_text_is_one_output_between_tables() -> None:
    """Messages of one stream are joined; a table between two prints stays between them."""
    table = nbformat.v4.new_output("display_data", data={"text/plain": "table"})
    parts = [("stdout", "a"), ("stdout", "b\n"), None, ("stdout", "c"), ("stderr", "d"), ("stdout", "e")]
    made = [nbformat.v4.new_output("stream", name=p[0], text=p[1]) if p else table for p in parts]
    cell = nbformat.v4.new_code_cell(outputs=made)
    execute.join_streams(cell)
    seen = [(output.get("name"), output.get("text")) for output in cell.outputs]
    assert seen == [("stdout", "ab\n"), (None, None), ("stdout", "c"), ("stderr", "d"), ("stdout", "e")]
