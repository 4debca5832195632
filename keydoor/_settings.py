"""Named settings of a training: what may be said, what is left out, and what that means."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from keydoor._checks import one_of, refuse, whole
from keydoor.profiles import PROFILES
from keydoor.rules import REWARD_MODES
from keydoor.training import TrainingConfig

SIZES = ("updates", "episodes_per_update", "evaluation_interval", "evaluation_episodes")
WORLD = ("task_horizon", "rules", "colours", "delay")

_NAME = re.compile(r"[\w+(=][\w .,+()=-]{0,99}")  # a name is the beginning of a file's name too


def full_settings(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Named settings with everything in them that was left to the defaults.

    Args:
        settings: for each name a mapping with ``reward_mode``, and whatever differs from the defaults of the sizes
            ``updates`` (30), ``episodes_per_update`` (48), ``evaluation_interval`` (a fifth of the updates, at least
            1) and ``evaluation_episodes`` (100), which are those of the profile ``full``, and from the fields of
            :class:`keydoor.training.TrainingConfig`. A name has at most 100 letters, digits, spaces and ``_.,+()=-``.

    Returns:
        The same names, each with a dictionary of all settings as plain numbers and words.

    Raises:
        ValueError: no setting at all, a name that could not be part of a file's name, an unknown setting, or a value
            that is out of its range.

    Example:
        >>> full_settings({"long wait": {"reward_mode": "sparse", "delay": 3}})["long wait"]["updates"]
        30
        >>> full_settings({"long wait": {"reward_mode": "sparse", "rules": "hard"}})
        Traceback (most recent call last):
        ...
        ValueError: settings['long wait']: rules is 'hard'; expected one of standard, soft, quiet
    """
    if not isinstance(settings, Mapping) or not settings:
        refuse("settings", settings, "a mapping with at least one name and its setting")
    return {_name(name): _full(given, f"settings[{name!r}]") for name, given in settings.items()}


def _name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        refuse("a name in settings", name, "1 to 100 letters, digits, spaces and _.,+()=-, not beginning with a dot")
    return name


def _full(given: Any, where: str) -> dict[str, Any]:
    fields = [field.name for field in dataclasses.fields(TrainingConfig)]
    known = ("reward_mode", *SIZES, *fields)
    if not isinstance(given, Mapping):
        refuse(where, given, "a mapping of settings")
    for key in given:
        if key not in known:
            refuse(f"a key of {where}", key, f"one of {', '.join(known)}")
    if "reward_mode" not in given:
        raise ValueError(f"{where} has no reward_mode; expected one of {', '.join(REWARD_MODES)}")
    profile = PROFILES["full"]
    sizes = {name: given.get(name, getattr(profile, name, None)) for name in SIZES}
    try:
        mode = one_of(given["reward_mode"], "reward_mode", REWARD_MODES)
        sizes["updates"] = whole(sizes["updates"], "updates", least=0)
        if "evaluation_interval" not in given:
            sizes["evaluation_interval"] = max(1, sizes["updates"] // 5)
        for name in SIZES[1:]:
            sizes[name] = whole(sizes[name], name, least=1)
        config = TrainingConfig(**{name: given[name] for name in fields if name in given})
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    return {"reward_mode": mode, **sizes, **dataclasses.asdict(config)}
