"""The files behind live cells, which both languages share: Python for the browser, the editor, scripts, the package.

They stand in ``live/VERSION/`` beside the folders of the languages. The version is a hash of their sources, so that a
browser never mixes two versions.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

EPOCH = (2026, 1, 1, 0, 0, 0)
NOT_SERVED = ("editor", "README.md", "__pycache__")
LOADED = (
    "session.py",
    "vendor/pyodide/pyodide-lock.json",
    "vendor/pyodide/pyodide.asm.wasm.gz",
    "vendor/pyodide/python_stdlib.zip",
)
"""What the worker counts while it loads, besides the package."""


def package_files(package: Path, modules: Iterable[str]) -> dict[str, Path]:
    """The modules that the browser gets, and the package's data, by their paths in the package."""
    found = {}
    for name in sorted(modules):
        path = package.joinpath(*name.split(".")) if name else package
        path = path / "__init__.py" if path.is_dir() else path.with_name(f"{path.name}.py")
        found[path.relative_to(package).as_posix()] = path
    return found | {path.relative_to(package).as_posix(): path for path in sorted(package.rglob("*.json"))}


def served(live: Path) -> dict[str, Path]:
    """Files of ``book/live`` that the site serves."""
    files = sorted(path for path in live.rglob("*") if path.is_file())
    names = {path.relative_to(live).as_posix(): path for path in files}
    return {name: path for name, path in names.items() if not set(name.split("/")) & set(NOT_SERVED)}


def version(live: Path, package: Path, modules: Iterable[str]) -> str:
    """The version in the address of the files."""
    digest = hashlib.sha256()
    for name, path in [*served(live).items(), *package_files(package, modules).items()]:
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:10]


def text_version(path: Path) -> str:
    """The version in the address of a page's program."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:10]


def archive(package: Path, modules: Iterable[str]) -> bytes:
    """The package as an archive; equal sources give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, path in package_files(package, modules).items():
            entry = zipfile.ZipInfo(f"{package.name}/{name}", EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            file.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def loaded_bytes(live: Path, package: Path, modules: Iterable[str]) -> int:
    """How many bytes a reader waits for at the first Run."""
    return sum((live / name).stat().st_size for name in LOADED) + len(archive(package, modules))


def write(folder: Path, live: Path, package: Path, modules: Iterable[str]) -> Path:
    """Put the files into ``folder/live/VERSION``; gives that folder."""
    modules = tuple(modules)
    target = folder / "live" / version(live, package, modules)
    for name, path in served(live).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / name)
    (target / "keydoor.zip").write_bytes(archive(package, modules))
    return target
