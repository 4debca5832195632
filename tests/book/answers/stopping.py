"""Answers to the exercises of the chapter ``stopping`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers

WRONG: Answers = {
    "ex-stopping-buffer": [
        ("real = F(99, 100) * F(127, 128)\nsmallest = 891", RIGHT),
        ("real = 0.99\nsmallest = 891", ("the discount that was set", "Это заданный дисконт")),
        ("real = 1 - 1 / 128\nsmallest = 891", ("the share of rows", "Это доля строк")),
        ("real = 0.98\nsmallest = 891", ("0.98000 is not right", "0.98000 неверен")),
        ("real = 0.99 * 127 / 128\nsmallest = 990", ("of 100 steps at least 90", "из 100 шагов")),
        ("real = 0.99 * 127 / 128\nsmallest = 900", ("N = 900", "N = 900")),
    ],
    "ex-stopping-rows": [
        ("mask = [[1, 0], [1, 1], [0, 1], [1, 0], [1, 1]]\nwrong = 1", RIGHT),
        ("mask = []\nwrong = 1", ("Five rows", "пять строк")),
        ("mask = [[1, 1], [0, 1], [1, 0], [1, 1], [0, 1]]\nwrong = 1", ("the last step", "последний шаг")),
        ("mask = [[1, 1], [1, 1], [0, 1], [1, 0], [1, 1]]\nwrong = 1", ("is a reset", "— сброс")),
        ("mask = [[1, 0], [1, 1], [1, 1], [1, 0], [1, 1]]\nwrong = 1", ("Row 2, environment 0", "Строка 2, среда 0")),
        ("mask = [[1, 0], [1, 1], [0, 1], [1, 0], [1, 1]]\nwrong = 2", ("wrong = 2", "wrong = 2")),
    ],
}
