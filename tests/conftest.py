"""The order of the tests, for all that are spread over processes, and how many examples each identity is tried on."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A run tries each identity on 30 random examples, others in each run; `--hypothesis-profile thorough` on many more.
settings.register_profile("usual", max_examples=30, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("usual")

EARLY = (
    "tests/browser/test_pages.py::test_no_page_is_left_out",  # in make test it builds the book, while the others ...
    "tests/browser/test_pages.py::test_root_page",
    "tests/test_types.py",  # ... read all types,
    "tests/book/test_isolation.py",  # execute its pages and build small books
    "tests/book/test_faults.py::test_references_citations_and_links",
    "tests/book/test_site.py",
    "tests/book/test_web.py",
    "tests/book/test_editions.py",  # the longest in make reader
    "tests/browser/test_live.py",
    "tests/browser/test_pages.py",
    "tests/browser",
    "tests/book",
)
"""Long before short, so that no process is left with a long test at the end; what others wait for comes first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests; within one line of the list they stay as they stand in their files."""

    def place(item: pytest.Item) -> int:
        return next((n for n, start in enumerate(EARLY) if item.nodeid.startswith(start)), len(EARLY))

    items.sort(key=place)
