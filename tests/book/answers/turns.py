"""Answers to the exercises of the chapter ``turns`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers

WRONG: Answers = {
    "ex-turns-log": [
        ("found = [F(2), F(9, 8)]", RIGHT),
        ("found = [F(1), F(1), F(1)]", ("3 tokens cannot be", "не может быть 3")),
        ("found = [F(1), F(1)]", ("your ratios is 2", "ваших отношений — 2")),
        ("found = [F(3, 2), F(13, 8)]", ("the product 39/16", "произведение 39/16")),
    ],
    "ex-turns-truncation": [
        ("truncated = sum(then[x] * min(rho[x], 3) for x in then if right_key(x))\nmasked = 0", RIGHT),
        ("truncated = truth\nmasked = 0", ("under pi: nothing", "ничего не усечено")),
        (
            "truncated = sum(now[x] * min(rho[x], 3) for x in now if right_key(x))\nmasked = 0",
            ("weigh with `then`", "взвешивайте по `then`"),
        ),
        ("truncated = 1\nmasked = 0", ("truncated = 1", "truncated = 1")),
        (
            "truncated = sum(then[x] * min(rho[x], 3) for x in then if right_key(x))\nmasked = truncated",
            ("only turns with rho at most 3", "где rho не больше 3"),
        ),
    ],
}
