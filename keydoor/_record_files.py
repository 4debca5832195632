"""Reading and writing rollout records as JSON Lines; the public names are those of :mod:`keydoor.records`."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from keydoor._record_checks import check_record
from keydoor._record_values import show


def write_rollout_records(path: str | os.PathLike[str], records: Iterable[Mapping[str, Any]]) -> int:
    """Write records as JSON Lines (UTF-8, one record a line), all or nothing.

    The lines go to a temporary file in the same folder, which takes the place of ``path`` once it is safely on disk.
    If anything fails, a file that was there before stays as it was and no temporary file is left.

    Args:
        path: the file; a symbolic link stays one, and its target is replaced. What is no regular file, such as
            ``/dev/null``, is not replaced but refused.
        records: the records; a generator is read once.

    Returns:
        The number of records written.

    Raises:
        ValueError: a record with violations; the message has its index and the violations. Or no path, or no records.
        OSError: the file cannot be written.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = os.path.join(folder.name, "rollouts.jsonl")
        >>> write_rollout_records(path, [])
        0
        >>> write_rollout_records(path, [{"schema_version": "0.9"}])
        Traceback (most recent call last):
        ...
        ValueError: records[0] is not a valid rollout record:
          - unknown schema_version '0.9'; this package knows '1.0'
        >>> folder.cleanup()
    """
    if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
        raise ValueError(f"records is {show(records)}; expected a sequence of records")
    target = Path(os.path.realpath(_path(path)))
    if os.path.lexists(target) and not target.is_file():  # links that go round in a circle exist, but are no file
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(target))
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    count = 0
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            for record in records:
                violations = check_record(record)
                if violations:
                    raise ValueError(_told(f"records[{count}] is not a valid rollout record", violations))
                # The separators and the escapes of JSON keep a record on one line, whatever its texts hold.
                line = json.dumps(record, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
                file.write(line + "\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return count


def read_rollout_records(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read records written as JSON Lines; each is valid, and its floats are those written, to the bit.

    Args:
        path: the file. An empty file holds no records.

    Returns:
        The records, in the order of the file.

    Raises:
        ValueError: with file name and line number: a blank or broken line, bytes that are not UTF-8, ``NaN`` or
            ``Infinity`` (no JSON, though Python's own reader takes them), a key that occurs twice in an object (of
            which other readers keep the last), an unknown ``schema_version``, any other violation.
        OSError: the file cannot be read.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = os.path.join(folder.name, "rollouts.jsonl")
        >>> write_rollout_records(path, [])
        0
        >>> read_rollout_records(path)
        []
        >>> folder.cleanup()
    """
    records = []
    file_name = _path(path)
    with file_name.open("rb") as file:
        for number, line in enumerate(file, start=1):
            where = f"{file_name}, line {number}"
            try:
                record = json.loads(
                    line.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_object_of_pairs
                )
            except (ValueError, RecursionError) as error:
                what = "blank" if not line.strip() else str(error)
                raise ValueError(f"{where}: not a JSON record: {what}") from error
            violations = check_record(record)
            if violations:
                raise ValueError(_told(f"{where}: not a valid rollout record", violations))
            records.append(record)
    return records


def rollout_schema() -> dict[str, Any]:
    """The record's JSON Schema (draft 2020-12), as shipped with the package.

    Returns:
        The schema, a new object at each call.

    Example:
        >>> rollout_schema()["properties"]["schema_version"]["const"]
        '1.0'
    """
    text = resources.files("keydoor").joinpath("rollout.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _path(path: str | os.PathLike[str]) -> Path:
    """The path as an object; a number would be taken for an open file, an empty text for the current folder."""
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError(f"path is {show(path)}; expected the name of a file, as text or as a Path")
    return Path(path)


def _told(heading: str, violations: list[str]) -> str:
    return "\n".join([heading + ":", *(f"  - {violation}" for violation in violations)])


def _refuse_constant(token: str) -> NoReturn:
    raise ValueError(f"{token} is not JSON; expected a finite number")


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {show(key)} occurs twice in one object")
        found[key] = value
    return found
