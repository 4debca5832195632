"""Whether there is a browser for the tests. ``python -m tests.browser.chromium`` says so before long tests begin."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from book.chromium import find_chromium
from book.chromium import missing as missing_browser

LEFT_OUT = "KEYDOOR_NO_BROWSER=1: the site is not tried in a browser"


def left_out(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for no browser."""
    return environ.get("KEYDOOR_NO_BROWSER") == "1"


def missing(environ: Mapping[str, str]) -> str:
    """The line that says what to do where there is no browser."""
    return f"{missing_browser(environ)}; KEYDOOR_NO_BROWSER=1 leaves the tests in a browser out"


if __name__ == "__main__":
    if left_out(os.environ):
        print(LEFT_OUT, file=sys.stderr)
    elif not find_chromium(os.environ):
        sys.exit(missing(os.environ))
