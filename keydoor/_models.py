"""Trained networks as files; the public names are those of :mod:`keydoor.sweep`."""

from __future__ import annotations

import io
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from keydoor._checks import refuse, whole
from keydoor._results import code_version, file_path
from keydoor._settings import full_settings
from keydoor.policy import RecurrentActorCritic

_FORMAT = "keydoor model 1"
_SHAPE = ("hidden_size", "gamma", "previous_action", "colours")  # what the network is made of, of all the settings


def save_model(
    path: str | os.PathLike[str], model: RecurrentActorCritic, *, seed: int, settings: Mapping[str, Any]
) -> None:
    """Write a trained network with all that it takes to use it again, whole or not at all.

    The file is one of ``torch.save``: the state dict, and as JSON the seed, the settings and the version of the code.

    Args:
        path: the file; one that is there is replaced.
        model: the network.
        seed: the seed with which it was trained, not below 0.
        settings: its setting, see :func:`keydoor.sweep.full_settings`.

    Raises:
        ValueError: no path, no network, or settings that are not those of this network.
        OSError: the file cannot be written; one that was there before is as it was.

    Example:
        >>> import os, tempfile
        >>> from keydoor.sweep import load_model, save_model
        >>> settings = {"reward_mode": "sparse", "hidden_size": 4}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.pt")
        ...     save_model(path, RecurrentActorCritic(seed=1, hidden_size=4), seed=1, settings=settings)
        ...     model, about = load_model(path)
        >>> model.hidden_size, about["seed"], about["settings"]["reward_mode"]
        (4, 1, 'sparse')
    """
    write_whole(file_path(path, "path"), model_bytes(model, seed, settings))


def load_model(path: str | os.PathLike[str]) -> tuple[RecurrentActorCritic, dict[str, Any]]:
    """Read a network that :func:`save_model` has written. Nothing in the file is executed (``weights_only``).

    Args:
        path: the file.

    Returns:
        ``(model, about)``; ``about`` holds ``seed``, ``settings`` in full, and ``code``, the version of the code that
        trained it.

    Raises:
        ValueError: the file holds anything else, or weights that are not numbers.
        OSError: the file cannot be read.

    Example:
        >>> load_model("README.md")
        Traceback (most recent call last):
        ...
        ValueError: README.md is no model of keydoor, or not a whole one (UnpicklingError)
    """
    name = file_path(path, "path")
    data = name.read_bytes()
    try:
        found = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise ValueError(f"expected the format {_FORMAT!r}")
        about = json.loads(found["about"])
        about = {name: about[name] for name in ("seed", "settings", "code")}
        about["settings"] = full_settings({"model": about["settings"]})["model"]
        if not isinstance(about["code"], str):
            refuse("code", about["code"], "a text")
        whole(about["seed"], "seed", least=0, bits=63)
        model = RecurrentActorCritic(seed=0, **{field: about["settings"][field] for field in _SHAPE})
        model.load_state_dict(found["state_dict"])
    except Exception as error:  # torch, pickle, zip and json each have errors of their own for a file that is no model
        # Their words are left out: torch advises to read the file with a reader that executes what is in it.
        raise ValueError(f"{name} is no model of keydoor, or not a whole one ({type(error).__name__})") from error
    for key, weights in model.state_dict().items():
        if not torch.isfinite(weights).all():
            raise ValueError(f"{name}: {key} holds what is no finite number: this network has diverged")
    return model, about


def model_bytes(model: RecurrentActorCritic, seed: int, settings: Mapping[str, Any]) -> bytes:
    """What stands in the file; a worker on another machine sends it, and the sweep writes it."""
    if not isinstance(model, RecurrentActorCritic):
        refuse("model", model, "a RecurrentActorCritic")
    made = {
        "hidden_size": model.hidden_size,
        "gamma": model.gamma,
        "previous_action": model.previous_action,
        "colours": (model.no_action - 2) // 2,  # a pickup and an opening for each, inspect and finish
    }
    full = full_settings({"model": settings})["model"]
    for field, value in made.items():
        if full[field] != value:
            refuse(f"settings: {field}", full[field], f"{value!r}, as this network has")
    about = {"seed": whole(seed, "seed", least=0, bits=63), "settings": full, "code": code_version()}
    buffer = io.BytesIO()
    weights = {key: value.detach().cpu().clone() for key, value in model.state_dict().items()}
    torch.save({"format": _FORMAT, "about": json.dumps(about, allow_nan=False), "state_dict": weights}, buffer)
    return buffer.getvalue()


def write_whole(path: Path, data: bytes) -> None:
    """A file that is there completely or not at all: the bytes go to a temporary one in the same folder first."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        refuse("path", str(path), "the name of a regular file")
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
