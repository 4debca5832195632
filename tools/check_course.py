"""Unpack the course archive of the built site, build it, and compare the two sites byte by byte.

Usage, after ``make book``: ``python tools/check_course.py``. It proves two things at once: the archive holds all that
is needed, and two builds from one state are equal, also in another folder. Cells come from the cache.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"


def files(folder: Path) -> set[Path]:
    """All files below a folder, relative to it."""
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def main() -> None:
    """Build the archive and name every file that differs."""
    archives = sorted(SITE.glob("keydoor-book-*.zip"))
    if not archives:
        sys.exit("no course archive in _build/html: run make book first")
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(archives[-1]) as archive:
            archive.extractall(folder)
        root = Path(folder, archives[-1].stem)
        if (ROOT / "_build" / "editions").is_dir():  # the site offers them, and they are of the same sources
            shutil.copytree(ROOT / "_build" / "editions", root / "_build" / "editions")
        environ = {**os.environ, "KEYDOOR_BOOK_CACHE": str(ROOT / "_build" / "cache")}
        result = subprocess.run([sys.executable, "-m", "book.build"], cwd=root, env=environ)
        if result.returncode:
            sys.exit("the unpacked course does not build")
        again = root / "_build" / "html"
        one_sided = files(SITE) ^ files(again)
        differing = {path for path in files(SITE) & files(again) if not filecmp.cmp(SITE / path, again / path, False)}
        for path in sorted(one_sided | differing):
            print(f"  {path}", file=sys.stderr)
        if one_sided or differing:
            sys.exit("the files above differ between the site and the one built from its course archive")
    print(f"The course archive builds the same site, {len(files(SITE))} files equal to the byte.")


if __name__ == "__main__":
    main()
