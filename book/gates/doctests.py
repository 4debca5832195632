"""The doctests of the package's docstrings, run when the package has changed since they last passed."""

from __future__ import annotations

import re
import subprocess
import sys

from book.execute import cache_folder
from book.layout import Book, Problem


def check(book: Book) -> list[Problem]:
    """Run the doctests of ``keydoor/``.

    Returns:
        A fault for each example that failed, at its line; one for the package if they could not be run at all.
    """
    passed = cache_folder(book) / "doctests-passed"
    package = book.root / "keydoor"
    if passed.exists() or not package.is_dir():
        return []
    command = [sys.executable, "-m", "pytest", "--doctest-modules", "-q", "-p", "no:cacheprovider", "--tb=short"]
    command += ["--doctest-continue-on-failure", "--rootdir", str(book.root), str(package)]
    result = subprocess.run(command, cwd=book.root, capture_output=True, text=True)
    if result.returncode == 0:
        passed.parent.mkdir(parents=True, exist_ok=True)
        passed.touch()
        return []
    found = re.findall(r"^(\S+\.py):(\d+): (DocTestFailure|UnexpectedException\S*)?", result.stdout, flags=re.M)
    if not found:
        return [Problem(package, 1, "the doctests could not be run:\n" + result.stdout + result.stderr)]
    print(result.stdout, file=sys.stderr)
    return [Problem(book.root / path, int(line), "this doctest is wrong; see above") for path, line, _ in found]
