"""How much the lab runs: the profiles ``smoke``, ``full`` and ``real-model``.

The environment variable ``RL_LLM_PROFILE`` chooses one; without it the profile is ``smoke``. The smoke profile tests
that everything fits together and solves nothing: its curves are flat, and that is no result. Claims rest on ``full``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from keydoor._checks import refuse

VARIABLE = "RL_LLM_PROFILE"
"""Name of the environment variable that chooses the profile."""


@dataclass(frozen=True)
class Profile:
    """One size of the lab.

    Example:
        >>> PROFILES["full"].seeds, PROFILES["full"].evaluation_episodes
        ((1, 2, 3, 4, 5), 100)
    """

    name: str
    """``smoke``, ``full`` or ``real-model``."""
    seeds: tuple[int, ...]
    """Seeds of the training runs; every reward mode is trained once with each."""
    updates: int
    """Updates of the policy in one run."""
    episodes_per_update: int
    """Episodes collected before each update."""
    evaluation_episodes: int
    """Episodes of one evaluation, half of them with each target."""


_SMOKE = Profile("smoke", (1, 2, 3), updates=8, episodes_per_update=16, evaluation_episodes=20)
_FULL = Profile("full", (1, 2, 3, 4, 5), updates=30, episodes_per_update=48, evaluation_episodes=100)
# The branch with a language model keeps the small network's share of the lab small.
_REAL_MODEL = replace(_SMOKE, name="real-model")

PROFILES: Mapping[str, Profile] = MappingProxyType({p.name: p for p in (_SMOKE, _FULL, _REAL_MODEL)})
"""All profiles by name; read-only."""


def current_profile(environ: Mapping[str, str] | None = None) -> Profile:
    """The profile that the environment asks for.

    Args:
        environ: where to look; ``None`` means :data:`os.environ`. Spaces around the value and capital letters do not
            matter.

    Returns:
        The :class:`Profile`; ``smoke`` when the variable is not set.

    Raises:
        ValueError: the variable holds anything else, the empty string included.

    Example:
        >>> current_profile({"RL_LLM_PROFILE": " Full "}).updates
        30
        >>> current_profile({}).name
        'smoke'
        >>> current_profile({"RL_LLM_PROFILE": "large"})
        Traceback (most recent call last):
        ...
        ValueError: RL_LLM_PROFILE must be smoke, full, or real-model; it is 'large'
    """
    if environ is None:
        environ = os.environ
    elif not isinstance(environ, Mapping):
        refuse("environ", environ, "a mapping such as os.environ")
    value = environ.get(VARIABLE, "smoke")
    profile = PROFILES.get(value.strip().lower()) if isinstance(value, str) else None
    if profile is None:
        raise ValueError(f"{VARIABLE} must be smoke, full, or real-model; it is {value!r}")
    return profile
