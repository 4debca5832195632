"""Answers to the exercises of the chapter ``provenance`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers

CARRIED = """
def carried(rewards, values, mask, gamma, lam):
    v = running = START
    out = []
    for r, value, own in reversed(list(zip(rewards, values, mask, strict=True))):
        if own:
            running = r + gamma * v - value + gamma * lam * running
            v = value
            out.append(running)
        else:
            MASKED
    return out[::ORDER]
"""


def carried(start: str = "F(0)", masked: str = "pass", order: str = "-1") -> str:
    return CARRIED.replace("START", start).replace("MASKED", masked).replace("ORDER", order)


WRONG: Answers = {
    "ex-provenance-three": [
        ("results = [F(0), F(-1, 2), F(0), F(-1, 4)]", RIGHT),
        ("results = [F(0), F(0)]", ("Four numbers", "четыре числа")),
        ("results = [F(1), F(-1, 2), F(0), F(-1, 4)]", ("Token mean: 1", "По токенам: 1")),
        ("results = [F(0), F(0), F(0), F(-1, 4)]", ("Sequence mean: 0", "По последовательностям: 0")),
        ("results = [F(0), F(-1, 2), F(1, 3), F(-1, 4)]", ("Constant length: 1/3", "С постоянной длиной: 1/3")),
        ("results = [F(0), F(-1, 2), F(0), F(1, 4)]", ("the sign is wrong", "знак не тот")),
        ("results = [F(0), F(-1, 2), F(0), F(0)]", ("Micro-batches: 0", "По микробатчам: 0")),
    ],
    "ex-provenance-carry": [
        (carried(), RIGHT),
        ("def carried(rewards, values, mask, gamma, lam):\n    pass", ("returns nothing", "ничего не возвращает")),
        (carried(masked="out.append(running)"), ("4 policy tokens and 7", "Токенов политики 4, а преимуществ 7")),
        (carried(order="1"), ("in reverse order", "в обратном порядке")),
        (carried(start="F(1)"), ("The last advantage", "Последнее преимущество")),
        (carried(masked="running *= gamma"), ("Decision 2: ", "Решение 2: ")),
        (carried(masked="v = value"), ("Decision 2: ", "Решение 2: ")),
    ],
}
