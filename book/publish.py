"""Put the built site into a folder that a static host serves, with the versions of the book side by side.

``python -m book.publish FOLDER`` copies ``_build/html`` to ``FOLDER/vX.Y.Z`` and, if this is the newest version
there, to ``FOLDER`` itself: addresses without a version lead to the newest. ``versions.html`` lists them all. What else
stands in the folder (``.git``, ``CNAME``) is left alone.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

from book import policy
from book._ext.book_words import WORDS
from book.addresses import addresses
from book.assemble import STAMP
from book.build import version
from book.layout import Book

KEPT = (".git", "CNAME", ".nojekyll", "versions.html")
VERSIONS = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Versions · Версии</title>
<style>
  :root {{ color-scheme: light dark; background: Canvas; color: CanvasText; }}
  body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 10vh auto 0; padding: 0 1.5rem; }}
  h1 {{ font-size: 1.3rem; margin: 0; }}
  p {{ margin: 0; }}
</style>
</head>
<body>
<main>
<h1>{en}</h1>
<p lang="ru">{ru}</p>
<p>Versions of the book, the newest first; addresses without a version lead to it.</p>
<p lang="ru">Версии книги, начиная с новейшей; адреса без номера версии ведут к ней.</p>
<ul>
{items}
</ul>
</main>
</body>
</html>
"""
ITEM = (
    '<li>{0}: <a href="v{0}/en/index.html" hreflang="en">English</a>, '
    '<a href="v{0}/ru/index.html" hreflang="ru" lang="ru">по-русски</a></li>'
)


def published_versions(folder: Path) -> list[str]:
    """Numbers of the versions that stand in a folder, the newest first."""
    found = [path.name[1:] for path in folder.iterdir() if re.fullmatch(r"v\d+(\.\d+)*", path.name) and path.is_dir()]
    return sorted(found, key=lambda number: [int(part) for part in number.split(".")], reverse=True)


def publish(site: Path, number: str, folder: Path) -> bool:
    """Add a site to the folder of a host.

    Args:
        site: the built site.
        number: its version.
        folder: what the host serves; made if it is missing.

    Returns:
        Whether it is the newest version, and now the one at the root.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own = folder / f"v{number}"
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(site, own, ignore=shutil.ignore_patterns(STAMP))
    numbers = published_versions(folder)
    newest = numbers[0] == number
    if newest:
        for path in folder.iterdir():
            if path.name not in KEPT and path.name[1:] not in numbers:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(own, folder, dirs_exist_ok=True)
    page = VERSIONS.format(
        **{code: words["title"] for code, words in WORDS.items()}, items="\n".join(map(ITEM.format, numbers))
    )
    (folder / "versions.html").write_text(policy.protected(page), "utf8")
    (folder / ".nojekyll").touch()  # GitHub Pages leaves out folders such as _static otherwise
    return newest


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m book.publish", description="Add the built site to a folder.")
    parser.add_argument("folder", type=Path, help="what the host serves")
    folder = parser.parse_args().folder
    book = Book(Path.cwd(), Path.cwd() / "_build")
    if not (book.output / "html" / "index.html").is_file():
        raise SystemExit("nothing built yet: run `make book` first.")
    if not addresses(book)[0]:
        raise SystemExit("_config.yml: html: baseurl: set the address of the site before it is published.")
    newest = publish(book.output / "html", version(book), folder)
    print(f"version {version(book)} is in {folder}{', also at its root' if newest else ''}")


if __name__ == "__main__":
    main()
