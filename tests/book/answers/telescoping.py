"""Answers to the exercises of the chapter ``telescoping`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers

WRONG: Answers = {
    "ex-telescoping-lookahead": [
        ("far_sight = F(19, 20)\nten = 20 * (1 - far_sight**10)", RIGHT),
        ("far_sight = F(1, 20)\nten = 8", ("1 - lambda: the share", "1 - лямбда: доля")),
        ("far_sight = F(9, 10)\nten = 8", ("lambda = 9/10", "лямбда 9/10")),
        ("far_sight = F(19, 20)\nten = 20", ("further than ten turns", "дальше десяти ходов")),
        ("far_sight = F(19, 20)\nten = 10", ("the farthest", "самое дальнее")),
        ("far_sight = F(19, 20)\nten = 5", ("ten = 5.0000", "ten = 5.0000")),
    ],
    "ex-telescoping-durations": [
        ("one, hasty = F(2103, 10_000), F(33, 100)", RIGHT),
        ("one, hasty = F(33, 100), F(33, 100)", ("takes three units", "занимает три единицы")),
        ("one, hasty = F(1, 5) + F(9, 10) ** 4 * F(7, 10) - F(1, 2), 0", ("not four", "не на четыре")),
        ("one, hasty = 0, 0", ("one = 0.0000", "one = 0.0000")),
        ("one, hasty = F(2103, 10_000), 0", ("hasty = 0.0000", "hasty = 0.0000")),
    ],
}
