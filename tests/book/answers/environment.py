"""Answers to the exercises of the chapter ``environment`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers

COPYIST = """
def copyist(seen, action):
    if seen == "room":
        return "inspect"
    if seen.startswith("clue"):
        return f"pickup_{seen[5:]}"
    if seen == "invalid":
        return WAIT
    return f"open_{action[7:]}" if seen == "key_held" else "finish"
"""

TIMED = """
def timed(seen, turn):
    if seen.startswith("clue"):
        return f"pickup_{seen[5:]}" if turn == 1 else f"open_{seen[5:]}"
    return "finish" if seen == "door_open" else LATER
"""


WRONG: Answers = {
    "ex-environment-count": [
        ("wins_of = {4: 1, 5: 10}\nby_hand = F(1, 6**4) + F(10, 6**5)", RIGHT),
        ("wins_of = {4: 2, 5: 10}\nby_hand = F(1)", ("Length 4: 2", "Длина 4: 2")),
        ("wins_of = {4: 1, 5: 8}\nby_hand = F(1)", ("8 is too few", "8 — слишком мало")),
        ("wins_of = {4: 1, 5: 16}\nby_hand = F(1)", ("16 is too many", "16 — слишком много")),
        ("wins_of = {4: 1, 5: 10}\nby_hand = F(11, 6**5)", ("give each length its own", "у каждой длины она своя")),
        (
            "wins_of = {4: 1, 5: 10}\nby_hand = F(10, 6**5)",
            ("add the sequences", "сложите вероятности последовательностей"),
        ),
    ],
    "ex-environment-notebook": [
        (COPYIST.replace("WAIT", "action"), RIGHT),
        (COPYIST.replace("WAIT", '"inspect"'), ("With delay 1 and target red", "При задержке 1 и цели red")),
        (COPYIST.replace("WAIT", '"wait"'), ("no action of the world", "не действие этого мира")),
    ],
    "ex-environment-clock": [
        (TIMED.replace("LATER", '"inspect"'), RIGHT),
        (TIMED.replace("LATER", '"open_red"'), ("With 2 colours and target red", "При числе цветов 2 и цели red")),
        (TIMED.replace("LATER", "turn"), ("no action of the world: 0", "не действие этого мира: 0")),
    ],
}
