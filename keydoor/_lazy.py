"""Names that load on first use (:pep:`562`), for the packages that offer many and are to be imported quickly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_on_first_use(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names stand in its modules.

    Args:
        package: its name, ``__name__`` in its ``__init__``.
        homes: the module of each name, without the package.
    """
    own = vars(sys.modules[package])

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        own[name] = getattr(import_module(f"{package}.{home}"), name)
        return own[name]

    def names() -> list[str]:
        return sorted({*own, *homes})

    return load, names
