"""The file of a sweep: finished runs as JSON Lines, each line whole or not there."""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

import keydoor
from keydoor._checks import refuse

LOG = logging.getLogger("keydoor.sweep")

_BEGINNING = b'{"setting":'  # of every row, and so of every part of one that a crash has left
_ROW: dict[str, tuple[type, ...]] = {
    "setting": (str,),
    "seed": (int,),
    "success": (int, float),
    "seconds": (int, float),
    "code": (str,),
    "settings": (dict,),
    "curve": (list,),
}


class SweepError(RuntimeError):
    """A sweep cannot go on: its file is in use, an engine has failed, or a training has diverged.

    What was finished before stands in the results file, and the same call goes on from there.
    """


@cache
def code_version() -> str:
    """Version of the package and a digest of its sources on which the result of a training depends.

    Those are the modules of the training and whatever of this package they import, directly or not.

    Returns:
        ``version+digest``, the digest of 12 hexadecimal digits.

    Example:
        >>> code_version().partition("+")[0] == keydoor.__version__
        True
    """
    package = resources.files("keydoor")
    waiting, sources = ["training", "stacked", "_engines"], {}
    while waiting:
        name = waiting.pop()
        file = package.joinpath(f"{name}.py")
        if name in sources or not file.is_file():
            continue
        text = sources[name] = file.read_text(encoding="utf-8")  # line ends of Windows become those of the others
        waiting += _imported(text)
    digest = hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()
    return f"{keydoor.__version__}+{digest[:12]}"


def _imported(text: str) -> Iterator[str]:
    """Modules of this package that a source imports, wherever in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "keydoor":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            package, _, name = node.module.partition(".")
            if package == "keydoor":
                yield name
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("keydoor."))


def file_path(path: Any, name: str) -> Path:
    """The path as an object; a number would be taken for an open file, an empty text for the current folder."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        refuse(name, path, "the name of a file, as text or as a Path")
    return Path(text)


def read_results(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The finished runs in a results file, in the order in which they finished.

    A last line that a crash has torn is left out; the file is not changed.

    Args:
        path: the file that :func:`keydoor.sweep.sweep` has written.

    Returns:
        The rows, as :func:`keydoor.sweep.sweep` describes them.

    Raises:
        ValueError: the file holds anything else; the message has the number of the line.
        OSError: the file cannot be read.

    Example:
        >>> read_results("README.md")
        Traceback (most recent call last):
        ...
        ValueError: README.md, line 1, is no run of a sweep: Expecting value: line 1 column 1 (char 0)
    """
    name = file_path(path, "path")
    return parse_rows(name.read_bytes(), name)[0]


def parse_rows(data: bytes, path: Path) -> tuple[list[dict[str, Any]], int]:
    """The rows, and how many bytes their lines take. What follows those is the beginning of a row, or refused."""
    *lines, rest = data.split(b"\n")
    rows: list[dict[str, Any]] = []
    first: dict[tuple[str, int], int] = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            wrong = _fault(row)
        except (ValueError, RecursionError) as error:
            wrong = str(error) if line.strip() else "it is blank"
        if wrong:
            raise ValueError(f"{path}, line {number}, is no run of a sweep: {wrong}")
        run = (row["setting"], row["seed"])
        if run in first:
            raise ValueError(f"{path}, line {number}: {describe(*run)} stands in line {first[run]} already")
        first[run] = number
        rows.append(row)
    # A crash of the system may leave zeros where the rest of the line should be.
    if not _BEGINNING.startswith(rest[: len(_BEGINNING)].rstrip(b"\0")):
        raise ValueError(f"{path}, line {len(lines) + 1}, is no run of a sweep, nor the beginning of one")
    return rows, len(data) - len(rest)


def _fault(row: Any) -> str | None:
    if not isinstance(row, dict):
        return "no object of JSON"
    for key, types in _ROW.items():
        if key not in row:
            return f"{key!r} is missing"
        if not isinstance(row[key], types) or isinstance(row[key], bool):
            return f"{key!r} is {row[key]!r}"
    if row["seed"] < 0:
        return f"'seed' is {row['seed']}; expected an integer not below 0"
    if not 0 <= row["success"] <= 1:  # Python reads NaN, which is no JSON, and it would travel on into every summary
        return f"'success' is {row['success']!r}; expected a number in [0, 1]"
    return None


def describe(setting: str, seed: int) -> str:
    """A run in words."""
    return f"the run {setting!r}, seed {seed},"


class Results:
    """An open results file: the runs it holds, and :meth:`append` for the next one."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        rows, length = parse_rows(file.read(), path)
        if torn := os.fstat(file.fileno()).st_size - length:
            os.ftruncate(file.fileno(), length)
            LOG.info("%s: its last line was torn (%d bytes); cut off, and that run is repeated", path, torn)
        self.rows = {(row["setting"], row["seed"]): row for row in rows}

    def check(self, settings: Mapping[str, Mapping[str, Any]], code: str) -> None:
        """Refuse a file whose runs cannot stand beside those of this sweep."""
        for row in self.rows.values():
            if row["code"] != code:
                raise ValueError(
                    f"{self.path} was made by keydoor {row['code']}, and this is keydoor {code}; go on with that "
                    "version, or begin another file"
                )
        for (name, _), row in self.rows.items():
            asked = settings.get(name)
            if asked is not None and row["settings"] != asked:
                fields = sorted(k for k in {*asked, *row["settings"]} if asked.get(k) != row["settings"].get(k))
                made, now = (", ".join(f"{k}={x.get(k)!r}" for k in fields) for x in (row["settings"], asked))
                raise ValueError(
                    f"{self.path} has runs of {name!r} made with {made}, and this sweep has {now}; give the setting "
                    "another name, or begin another file"
                )

    def append(self, row: dict[str, Any]) -> None:
        """Write one run, and return when it is on the disk; if that fails, nothing of it is left in the file."""
        line = json.dumps(row, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        length = os.fstat(self._file.fileno()).st_size
        try:
            write_all(self._file.fileno(), line)
            os.fsync(self._file.fileno())
        except BaseException as error:
            # An interrupt may come between two halves of a line. After the last one, the run is finished.
            if isinstance(error, OSError) or os.fstat(self._file.fileno()).st_size != length + len(line):
                os.ftruncate(self._file.fileno(), length)
            if not isinstance(error, OSError):
                raise
            raise OSError(
                error.errno,
                f"{error.strerror}: {describe(row['setting'], row['seed'])} could not be written. Its half line was "
                f"cut off, and what was finished before is kept (runs: {len(self.rows)}). Make room and start the same "
                "sweep again: it goes on from there",
                str(self.path),
            ) from error
        self.rows[row["setting"], row["seed"]] = json.loads(line)


def write_all(descriptor: int, data: bytes) -> None:
    """All bytes, in as many pieces as the system takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


@contextmanager
def open_results(path: Path) -> Iterator[Results]:
    """The results file, made if there is none, for this sweep alone."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        refuse("results", str(path), "the name of a regular file")
    with _alone(target, path), target.open("a+b", buffering=0) as file:
        file.seek(0)
        yield Results(path, file)


@contextmanager
def _alone(target: Path, path: Path) -> Iterator[None]:
    """The lock ends with the process that holds it, however that ends."""
    from filelock import FileLock, Timeout

    lock = FileLock(f"{target}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise SweepError(f"{path} is in use by another sweep; wait for it, or choose another file") from None
    try:
        yield
    finally:
        lock.release()
