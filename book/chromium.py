"""Where the system's Chromium is: it prints the PDF and opens the site for the tests. None is ever downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
MISSING = (
    "no Chromium: `sudo apt-get install chromium` (Debian) installs it; elsewhere install Chromium or Chrome and, "
    "where it is not found, set KEYDOOR_CHROMIUM=/path/to/it"
)


def find_chromium(environ: Mapping[str, str]) -> str | None:
    """The browser that the environment names, else the first that the system has."""
    if chosen := environ.get("KEYDOOR_CHROMIUM"):
        return shutil.which(chosen)
    return next(filter(None, (shutil.which(name, path=environ.get("PATH")) for name in (*NAMES, MAC))), None)


def missing(environ: Mapping[str, str]) -> str:
    """The line that says what to do where there is no browser."""
    chosen = environ.get("KEYDOOR_CHROMIUM")
    return f"KEYDOOR_CHROMIUM={chosen} is no program; {MISSING}" if chosen else MISSING
