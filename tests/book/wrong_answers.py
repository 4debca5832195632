"""Answers to the exercises that have a check, and words of what the check has to say, in English and in Russian.

An empty pair of words: the answer is right. Beside these, each starter as it stands must be refused.
"""

from __future__ import annotations

RIGHT = ("", "")

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


def watchdog(value: str) -> str:
    return f"gamma = F(9, 10)\ndef with_watchdog(w):\n    return {value}"


WRONG: dict[str, list[tuple[str, tuple[str, str]]]] = {
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
