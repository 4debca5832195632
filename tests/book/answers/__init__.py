"""Answers to the exercises that have a check, and words of what the check has to say, in English and in Russian.

One module for each chapter. An empty pair of words: the answer is right. Beside these, each starter as it stands must
be refused.
"""

from __future__ import annotations

import importlib
import pkgutil

Answers = dict[str, list[tuple[str, tuple[str, str]]]]
RIGHT = ("", "")


def all_answers() -> Answers:
    """The answers of all chapters, by the label of the exercise."""
    found: Answers = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        found |= importlib.import_module(module.name).WRONG
    return found
