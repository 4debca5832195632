"""Answers to the exercises of the chapter ``shaping`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers

WRONG: Answers = {
    "ex-shaping-exchange": [
        (
            "g = F(99, 100)\nright_round = (g**2 - 1) / 2\none_round = (g - 1) / 4\nup_round = g * (g / 2 - F(1, 4))",
            RIGHT,
        ),
        (
            "g = F(99, 100)\nright_round = g / 4 - F(1, 2) + g / 2 - F(1, 4)\none_round = up_round = 0",
            ("(a) This adds", "(а) Здесь сложены"),
        ),
        ("right_round = one_round = up_round = 0", ("(a) 0.000000", "(а) 0.000000")),
        ("g = F(99, 100)\nright_round = (g**2 - 1) / 2\none_round = up_round = 0", ("(b) The two", "(б) Премии")),
        ("g = F(99, 100)\nright_round = (g**2 - 1) / 2\none_round = up_round = 1", ("(b) 1.000000", "(б) 1.000000")),
        (
            "g = F(99, 100)\nright_round = (g**2 - 1) / 2\none_round = (g - 1) / 4\nup_round = g / 2 - F(1, 4)",
            ("(c) Nearly", "(в) Почти"),
        ),
        (
            "g = F(99, 100)\nright_round = (g**2 - 1) / 2\none_round = (g - 1) / 4\nup_round = 0",
            ("(c) 0.000000", "(в) 0.000000"),
        ),
    ],
    "ex-shaping-durations": [
        (
            "levels = [F(1, 5), F(1, 4), F(1, 2), F(0)]\ndurations, g = [2, 3, 1], F(9, 10)\n"
            "terms = [g**d * levels[k + 1] - levels[k] for k, d in enumerate(durations)]",
            RIGHT,
        ),
        ("durations, levels, terms = [2, 3, 1], [F(0)] * 4, []", ("three macro-actions", "трёх макродействий")),
        (
            "levels = [F(1, 5), F(1, 4), F(1, 2), F(0)]\ndurations, g = [2, 3, 1], F(9, 10)\n"
            "terms = [g * levels[k + 1] - levels[k] for k in range(3)]",
            ("are overpaid", "переплачивают"),
        ),
        (
            "levels = [F(1, 5), F(1, 4), F(1, 2), F(0)]\ndurations, g, e = [2, 3, 1], F(9, 10), [0, 2, 5, 6]\n"
            "terms = [g ** e[k + 1] * levels[k + 1] - g ** e[k] * levels[k] for k in range(3)]",
            ("Bonus 1: the return", "Премия 1: на прошедшее"),
        ),
        (
            "levels = [F(1, 5), F(1, 4), F(1, 2), F(0)]\ndurations, terms = [2, 3, 1], [F(0)] * 3",
            ("Bonus 0: 0", "Премия 0: 0"),
        ),
    ],
}
