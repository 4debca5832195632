"""Stored results: what a run with the real weights has shown, kept with the package and checked when it is read.

The book shows these numbers where the extra ``language`` is not installed, and computes everything again from them
that needs no model. Each file says where it comes from: the command, the versions, the hash of the weights, the time.
``python -m keydoor.language record`` writes them.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections.abc import Callable, Mapping
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from keydoor import __version__
from keydoor._checks import one_of, refuse
from keydoor.language.tables import SITUATIONS
from keydoor.records import validate_rollout_record
from keydoor.rules import ACTIONS

FORMAT = 1
"""Version of the form of the files."""

STORED = ("scores", "training", "episodes", "transfer", "transcript", "drift")
"""The files, by what they hold."""

VERSIONS = ("torch", "transformers", "tokenizers", "peft", "trl", "gguf")
"""Packages whose versions are kept."""

_PROVENANCE = ("command", "versions", "weights", "keydoor", "threads", "cpu_seconds", "machine")


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == len(SITUATIONS)
        and all(
            isinstance(row, list) and len(row) == len(ACTIONS) and all(isinstance(x, float) and x <= 0 for x in row)
            for row in value
        )
    )


def _tables(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(_is_table(table) for table in value.values())


def _rows_with(*fields: str) -> Callable[[Any], bool]:
    """A list, not empty, of objects that have these fields."""
    return lambda value: (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, dict) and all(field in row for field in fields) for row in value)
    )


def _is_run(run: Any) -> bool:
    fields = ("label", "rules", "horizon", "seed", "fresh", "settings", "curve", "logprobs", "updates")
    return (
        isinstance(run, dict)
        and all(field in run for field in fields)
        and _rows_with("update", "success", "by_target")(run["curve"])
        and _tables(run["logprobs"])
    )


def _is_episode(one: Any) -> bool:
    fields = ("stage", "target", "seed", "record", "situations", "probabilities", "belief", "answers")
    if not isinstance(one, dict) or any(field not in one for field in fields):
        return False
    if validate_rollout_record(one["record"]):
        return False
    turns = len(one["record"]["actions"])
    told = [texts for field in ("belief", "answers") for texts in one[field].values()]
    return all(len(column) == turns for column in (one["situations"], one["probabilities"], *told))


def _is_token(token: Any) -> bool:
    fields = ("id", "text", "role", "source", "assistant_mask", "trl_mask")
    return (
        isinstance(token, dict)
        and all(field in token for field in fields)
        and token["source"] in ("template", "prompt", "sampled", "environment")
    )


def _each(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and bool(value) and all(check(one) for one in value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


_FORMS: dict[str, dict[str, tuple[Callable[[Any], bool], str]]] = {
    "scores": {
        "situations": (lambda v: v == [s.name for s in SITUATIONS], "the names of SITUATIONS"),
        "actions": (lambda v: v == list(ACTIONS), "the names of ACTIONS"),
        "tables": (_tables, "tables of 15 rows of 6 log-probabilities"),
        "strings": (_is_object, "log-probabilities of strings"),
        "pieces": (_is_object, "the tokens of strings"),
        "prompts": (_is_object, "fifteen texts in each language"),
    },
    "training": {
        "settings": (_is_object, "the default settings"),
        "runs": (_each(_is_run), "runs with curves and tables"),
    },
    "episodes": {
        "stages": (lambda v: v == ["before", "half", "after"], "the names of the stages"),
        "actions": (lambda v: v == list(ACTIONS), "the names of ACTIONS"),
        "episodes": (_each(_is_episode), "episodes with a valid rollout record and a column for each turn"),
    },
    "transfer": {"rows": (_rows_with("test", "language", "wording", "seed", "before", "after"), "rows of tests")},
    "transcript": {
        "template": (lambda v: isinstance(v, str), "the name of a template"),
        "tokens": (_each(_is_token), "tokens with their provenance"),
        "counts": (_is_object, "counts of tokens"),
    },
    "drift": {
        "samples": (_rows_with("text", "ids", "again"), "samples with two lists of ids"),
        "sampled": (lambda v: type(v) is int and v > 0, "a count"),
        "changed": (lambda v: type(v) is int and v >= 0, "a count"),
    },
}


def check_stored(found: Any, name: str, where: str) -> dict[str, Any]:
    """Refuse an object that is no stored result of a kind.

    Args:
        found: the object.
        name: one of :data:`STORED`.
        where: its place, for the message.

    Returns:
        The object.

    Raises:
        ValueError: a field is missing or has another form; the message names file and field.

    Example:
        >>> check_stored({"format": 1, "kind": "drift"}, "drift", "drift.json")
        Traceback (most recent call last):
        ...
        ValueError: drift.json: provenance is None; expected where the numbers come from
    """
    if not isinstance(found, dict):
        raise ValueError(f"{where}: {type(found).__name__}; expected an object")

    def wrong(field: str, expected: str) -> None:
        refuse(f"{where}: {field}", found.get(field), expected)

    if found.get("format") != FORMAT:
        wrong("format", f"{FORMAT}; record the results anew")
    if found.get("kind") != name:
        wrong("kind", repr(name))
    provenance = found.get("provenance")
    if not isinstance(provenance, dict) or any(field not in provenance for field in _PROVENANCE):
        wrong("provenance", "where the numbers come from")
    for field, (check, expected) in _FORMS[name].items():
        if not check(found.get(field)):
            wrong(field, expected)
    return found


def stored(name: str, folder: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """A stored result, checked.

    Args:
        name: one of :data:`STORED`.
        folder: where to read; ``None`` takes the files of the package.

    Returns:
        The object of the file, new at each call.

    Raises:
        ValueError: an unknown name, or a file that is no JSON or has another form; the message names file and field.
        OSError: the file cannot be read.

    Example:
        >>> stored("guesses")
        Traceback (most recent call last):
        ...
        ValueError: name is 'guesses'; expected one of scores, training, episodes, transfer, transcript, drift
    """
    one_of(name, "name", STORED)
    base = resources.files("keydoor.language").joinpath("stored") if folder is None else Path(folder)
    text = base.joinpath(f"{name}.json").read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}.json: {error}; expected JSON") from error
    return check_stored(found, name, f"{name}.json")


def save(name: str, content: Mapping[str, Any], folder: str | os.PathLike[str]) -> Path:
    """Write a result, whole or not at all.

    Args:
        name: one of :data:`STORED`.
        content: all fields but ``format`` and ``kind``; ``provenance`` from :func:`provenance`.
        folder: where to write.

    Returns:
        The file.

    Raises:
        ValueError: a field is missing or has another form.
        OSError: the file cannot be written.

    Example:
        >>> save("drift", {}, ".")
        Traceback (most recent call last):
        ...
        ValueError: drift.json: provenance is None; expected where the numbers come from
    """
    one_of(name, "name", STORED)
    whole = {"format": FORMAT, "kind": name, **content}
    check_stored(whole, name, f"{name}.json")
    target = Path(folder) / f"{name}.json"
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_text(_lines(whole), encoding="utf-8", newline="\n")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _lines(whole: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of the two outer levels, so that a change can be read."""
    parts = []
    for key, value in whole.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            inner = ",\n  ".join(json.dumps(one, ensure_ascii=False, allow_nan=False) for one in value)
            parts.append(f"{json.dumps(key)}: [\n  {inner}\n ]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}")
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def provenance(command: str, weights: Mapping[str, Any], *, cpu_seconds: float, threads: int = 1) -> dict[str, Any]:
    """Where numbers come from.

    Args:
        command: what was typed.
        weights: ``source`` of the loaded weights.
        cpu_seconds: what it took, not below 0.
        threads: threads of torch, at least 1.

    Returns:
        A mapping for the field ``provenance``.

    Example:
        >>> provenance("python -m keydoor.language record drift", {"model": "none"}, cpu_seconds=1.23)["cpu_seconds"]
        1.2
    """
    versions = {}
    for name in VERSIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    python = platform.python_version()
    return {
        "command": command,
        "versions": versions,
        "weights": dict(weights),
        "keydoor": __version__,
        "threads": threads,
        "cpu_seconds": round(cpu_seconds, 1),
        "machine": f"{platform.system()} {platform.machine()}, Python {python}",
    }
