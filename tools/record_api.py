"""Record the public API of the package in tests/data/public_api.json, which the gate of the API compares with.

It refuses as long as a name has come, gone or changed of which CHANGELOG.md says nothing.

Usage, in the folder of the project: ``python -m tools.record_api``
"""

from __future__ import annotations

import sys
from pathlib import Path

from book.gates.api import RECORD, record
from book.layout import Book


def main() -> None:
    """Write the record, or say what the changelog does not tell of."""
    root = Path(__file__).resolve().parents[1]
    book = Book(root, root / "_build")
    problems = record(book)
    for problem in sorted(problems):
        print(problem.text(book), file=sys.stderr)
    if problems:
        raise SystemExit(f"{len(problems)} change(s) that the changelog does not tell of: nothing was recorded.")
    print(f"The public API is recorded in {RECORD}.")


if __name__ == "__main__":
    main()
