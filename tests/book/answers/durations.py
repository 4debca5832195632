"""Answers to the exercises of the chapter ``durations`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers


def watchdog(value: str) -> str:
    return f"gamma = F(9, 10)\ndef with_watchdog(w):\n    return {value}"


WRONG: Answers = {
    "ex-durations-hang": [
        (watchdog("F(9, 10) * gamma**2 / (1 - F(1, 10) * gamma**w)"), RIGHT),
        (watchdog("F(9, 10) * gamma**2"), ("without a watchdog", "без сторожа")),
        (watchdog("gamma**2"), ("always answers", "всегда отвечал")),
        (watchdog("gamma**2 * F(9, 10) / (1 - F(1, 10))"), ("always answers", "всегда отвечал")),
        (watchdog("F(1, 2)"), ("w = 2: 0.500000", "w = 2: 0.500000")),
    ],
    "ex-durations-half-life": [
        ("half_life = log(2) / log(1 / 0.95)\nper_token = 0.95 ** (1 / 400)", RIGHT),
        ("half_life = log(2) / log(1 / 0.95) / 400\nper_token = 1", ("in turns", "в ходах")),
        ("half_life = 20\nper_token = 1", ("half_life = 20", "half_life = 20")),
        ("half_life = log(2) / log(1 / 0.95)\nper_token = 0.95**400", ("the other way round", "обратное")),
        ("half_life = log(2) / log(1 / 0.95)\nper_token = 1 - 0.05 / 400", ("are multiplied", "перемножаются")),
        ("half_life = log(2) / log(1 / 0.95)\nper_token = 0.99", ("per_token = 0.99", "per_token = 0.99")),
    ],
}
