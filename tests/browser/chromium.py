"""Where the system's Chromium is. ``python -m tests.browser.chromium`` says so before long tests begin."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
MISSING = (
    "no Chromium for the browser tests: `sudo apt-get install chromium` (Debian) installs it; elsewhere install "
    "Chromium or Chrome and, where it is not found, set KEYDOOR_CHROMIUM=/path/to/it; "
    "KEYDOOR_NO_BROWSER=1 leaves these tests out"
)
LEFT_OUT = "KEYDOOR_NO_BROWSER=1: the site is not tried in a browser"


def find_chromium(environ: Mapping[str, str]) -> str | None:
    """The browser that the environment names, else the first that the system has."""
    if chosen := environ.get("KEYDOOR_CHROMIUM"):
        return shutil.which(chosen)
    return next(filter(None, (shutil.which(name, path=environ.get("PATH")) for name in (*NAMES, MAC))), None)


def left_out(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for no browser."""
    return environ.get("KEYDOOR_NO_BROWSER") == "1"


def missing(environ: Mapping[str, str]) -> str:
    """The line that says what to do where there is no browser."""
    chosen = environ.get("KEYDOOR_CHROMIUM")
    return f"KEYDOOR_CHROMIUM={chosen} is no program; {MISSING}" if chosen else MISSING


if __name__ == "__main__":
    if left_out(os.environ):
        print(LEFT_OUT, file=sys.stderr)
    elif not find_chromium(os.environ):
        sys.exit(missing(os.environ))
