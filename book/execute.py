"""Execution of the pages' cells: cached by code and requirements, both languages sharing what is expensive.

Each page runs in a fresh kernel, in its own folder. A page's two languages run one after the other, so that the
second finds the training results of the first; different pages run side by side. What was executed goes into the
cache from which myst-nb reads when the pages are rendered.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from myst_nb.core.read import read_myst_markdown_notebook
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from book.gates.page import read_page
from book.layout import Book, Problem

SECONDS_PER_CELL = 600
CACHES_KEPT = 3

KERNEL_CONFIG = """\
c = get_config()
c.InlineBackend.figure_formats = {"svg"}
c.IPKernelApp.log_level = "ERROR"  # else every kernel warns that its loopback connection is not encrypted
"""


def cache_key(book: Book, environ: Mapping[str, str] = os.environ) -> str:
    """A hash of all that a cell's output depends on besides its own page: package, requirements, style, profile."""
    package = book.root / "keydoor"
    files = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".json"))
    files += [book.root / "requirements.txt", book.source / "figures.mplstyle", Path(__file__)]
    digest = hashlib.sha256()
    for path in files:
        if path.is_file():
            digest.update(str(path.name).encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(f"{platform.python_version()} {platform.machine()} {environ.get('RL_LLM_PROFILE', '')}".encode())
    return digest.hexdigest()[:16]


def cache_folder(book: Book) -> Path:
    """The folder of the caches for the present state of package and requirements."""
    root = Path(os.environ.get("KEYDOOR_BOOK_CACHE", book.output / "cache"))
    return root / cache_key(book)


def prepare(book: Book) -> Path:
    """Make the cache folder; all but the last few caches are removed."""
    folder = cache_folder(book)
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    caches = sorted((path for path in folder.parent.iterdir() if path.is_dir()), key=lambda path: -path.stat().st_mtime)
    for old in caches[CACHES_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def kernel_environment(book: Book, folder: Path) -> dict[str, str]:
    """The environment in which pages are executed and rendered.

    Args:
        book: the book; its package comes first on the path, also where another copy is installed.
        folder: for the kernels' configuration and for results that the two languages share.
    """
    config = folder / "ipython" / "profile_default" / "ipython_kernel_config.py"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(KERNEL_CONFIG, "utf8")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(book.root), os.environ.get("PYTHONPATH")])),
        "IPYTHONDIR": str(folder / "ipython"),
        "MATPLOTLIBRC": str(book.source / "figures.mplstyle"),
        "KEYDOOR_CACHE": str(folder / "results"),
        "PYTHONHASHSEED": "0",
        "SOURCE_DATE_EPOCH": "1767225600",  # dates inside figures: two builds of one state are equal
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TQDM_DISABLE": "1",
    }


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """A page as a notebook whose metadata say on which line each cell begins."""
    return read_myst_markdown_notebook(path.read_text("utf8"), add_source_map=True, path=path)


def execute_pages(book: Book, pages: list[Path] | None = None) -> list[Problem]:
    """Execute all cells that the cache does not know.

    Args:
        book: the book.
        pages: some of its pages; all of them by default.

    Returns:
        Faults: a cell that raises, or writes to stderr. Only pages without a fault enter the cache.
    """
    folder = prepare(book)
    cache = get_cache(str(folder / "cells"))
    waiting: dict[str, list[tuple[Path, nbformat.NotebookNode]]] = {}
    for path in pages or book.all_pages():
        notebook = read_notebook(path)
        if any(cell.cell_type == "code" for cell in notebook.cells):
            try:
                cache.match_cache_notebook(notebook)
                continue
            except KeyError:
                waiting.setdefault(path.name, []).append((path, notebook))
        else:
            _store(cache, path, notebook, 0.0)

    problems: list[Problem] = []
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for results in pool.map(_execute_group, waiting.values(), repeat(kernel_environment(book, folder))):
            for path, notebook, faults, seconds in results:
                print(f"  executed {book.shown(path)} in {seconds:.1f} s", flush=True)
                problems += faults
                if not faults:
                    _store(cache, path, notebook, seconds)
    return problems


def _execute_group(
    group: list[tuple[Path, nbformat.NotebookNode]], env: dict[str, str]
) -> list[tuple[Path, nbformat.NotebookNode, list[Problem], float]]:
    """The languages of one page, one after the other."""
    return [(path, notebook, *run_cells(path, notebook, env)) for path, notebook in group]


def _store(cache: Any, path: Path, notebook: nbformat.NotebookNode, seconds: float) -> None:
    bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
    cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def run_cells(
    path: Path, notebook: nbformat.NotebookNode, env: dict[str, str] | None = None
) -> tuple[list[Problem], float]:
    """Execute the cells of one page in a fresh kernel, in place.

    Args:
        path: the page; its folder is the kernel's.
        notebook: the page as :func:`read_notebook` gives it; gets the outputs.
        env: environment of the kernel; that of this process by default.

    Returns:
        The faults, and how many seconds it took.
    """
    start = time.perf_counter()
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        shutdown_kernel="immediate",  # all outputs are there; leaving torch and pandas in good order takes a second
        resources={"metadata": {"path": str(path.parent)}},
    )
    problems: list[Problem] = []
    # The kernel must be this environment's python, whatever kernels the machine has.
    client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    sockets = tempfile.TemporaryDirectory(prefix="kernel-")
    if os.name == "posix":  # a free port may be another's before the kernel has it: kernels start side by side
        client.km.transport, client.km.ip = "ipc", f"{sockets.name}/ipc"
    try:
        client.execute(**({"env": env} if env else {}))
    except CellExecutionError as error:
        problems.append(_fault(path, notebook, f"the cell raised {error.ename}: {error.evalue}"))
    except CellTimeoutError:
        problems.append(_fault(path, notebook, f"the cell did not finish within {SECONDS_PER_CELL} s"))
    except DeadKernelError as error:
        problems.append(_fault(path, notebook, f"the kernel died in this cell: {error}"))
    finally:
        sockets.cleanup()
    for cell in notebook.cells:
        join_streams(cell)
    for number, text in _errors(notebook):
        message = "the cell writes to stderr: " + " ".join(text.split())
        problems.append(Problem(path, _line(path, notebook, number), message))
    return problems, time.perf_counter() - start


def join_streams(cell: nbformat.NotebookNode) -> None:
    """Make one output of each run of printed text: how the kernel cuts it into messages is an accident of timing.

    nbclient's own ``coalesce_streams`` would also move text across the tables and figures between.
    """
    joined: list[nbformat.NotebookNode] = []
    for output in cell.get("outputs", ()):
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    if joined:
        cell.outputs = joined


def _errors(notebook: nbformat.NotebookNode) -> Iterator[tuple[int, str]]:
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stderr":
                yield number, output.text


def _fault(path: Path, notebook: nbformat.NotebookNode, message: str) -> Problem:
    """A fault in the cell that was running: the one that failed, else the first without an execution count."""
    code = [(number, cell) for number, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    failed = [n for n, cell in code if any(output.output_type == "error" for output in cell.outputs)]
    unfinished = [n for n, cell in code if cell.execution_count is None]
    number = (failed or unfinished or [code[-1][0]])[0]
    within = 1
    for output in notebook.cells[number].outputs:
        if output.output_type == "error":
            within = _line_of_traceback(output.traceback)
    return Problem(path, _line(path, notebook, number) + within - 1, message)


def _line_of_traceback(traceback: list[str]) -> int:
    """The line inside the cell at which it failed, from IPython's arrow; the first where there is none."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(traceback))
    found = re.search(r"^-+> *(\d+) ", text, flags=re.M)
    return int(found[1]) if found else 1


def cell_line(path: Path, number: int) -> int:
    """The line of the page on which the code of its cell ``number`` (from 0) begins, after fence and options."""
    return read_page(path).of("cell")[number].line


def _line(path: Path, notebook: nbformat.NotebookNode, number: int) -> int:
    """The same for a cell counted among all cells of a notebook, those with text included."""
    return cell_line(path, sum(cell.cell_type == "code" for cell in notebook.cells[:number]))
