"""Answers to the exercises of the chapter ``environment`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from fractions import Fraction as F

from tests.book.answers import RIGHT, Answers

NOISY = "values = {4: F(4, 5), 5: FIVE, 6: SIX}"


def named(right: object, carried: object, dropped: object, noticed: object) -> str:
    """Numbers of logs, under the words of both languages."""
    en = f'{{"right": {right}, "carried over": {carried}, "dropped": {dropped}}}'
    ru = f'{{"верно": {right}, "перенесено": {carried}, "сброшено": {dropped}}}'
    return f"named = {en} | {ru}\nnoticed = {noticed}"


def evidence(n: object, greedy: str = "[0, F(1, 2)]") -> str:
    return f"n = {n}\ngreedy = {greedy}"


SIX = """six_turns = {
    "room": {"inspect": 1},
    "clue_red": {"pickup_red": F(1)},
    "clue_blue": {"open_blue": F(1)},
    "invalid": {"pickup_blue": F(1)},
    "key_held": {"inspect": F(1, 2), "open_red": F(1, 2)},
    "door_open": {"finish": F(1)},
}
"""
EIGHT = """eight_turns = six_turns | {
    "clue_red": {"pickup_red": 0.5, "open_red": 0.5},
    "key_held": {"inspect": F(1)},
}
"""
MEMORY = 'memory = "invalid"\n'
KNOCKS_WITH_BOTH = """six_turns = eight_turns = {
    "room": {"inspect": 1},
    "clue_red": {"open_red": 1},
    "clue_blue": {"pickup_blue": 0.5, "open_blue": 0.5},
    "invalid": {"pickup_red": 1},
    "key_held": {"inspect": 1},
    "door_open": {"finish": 1},
}
"""


def coin(clause: str = "A2", cutoff: object = 52, power: object = 0.998857) -> str:
    return f'clause = "{clause}"\ncutoff = {cutoff}\npower = {power}'


SYMMETRIC = """
def symmetric_value(alpha, sigma):
    eta = ETA
    return FRONT * (eta + sigma * (1 - alpha) + sigma * alpha * eta)

averaged = AVERAGED
missing = MISSING
"""


def symmetric(
    eta: str = "(1 - sigma) / 2", front: str = "alpha", averaged: str = "F(783, 2048)", missing: str = "CONCAVE"
) -> str:
    """The words of both languages are told apart by what the page has defined before, ``named``."""
    head = "concave, symmetric, continuous = WORDS_HERE\n"
    body = SYMMETRIC.replace("ETA", eta).replace("FRONT", front).replace("AVERAGED", averaged)
    return head.replace("WORDS_HERE", WORDS_HERE) + body.replace("MISSING", missing.lower())


WORDS_HERE = """(
    ("concave", "symmetric", "continuous") if "right" in named else ("вогнутость", "симметричность", "непрерывность")
)"""


def schedule(dice: str) -> str:
    return f"def schedule(horizon):\n    m = (horizon - 3) // 2\n    return {dice}"


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
    "ex-environment-logs": [
        (named(1, 2, 3, 2), RIGHT),
        (named(1, 2, 3, "..."), ("four numbers of logs", "четыре номера журналов")),
        ("named = [1, 2, 3]\nnoticed = 2", ("four numbers of logs", "четыре номера журналов")),
        (named(1, 2, 2, 2), ("names one of them twice", "назван дважды")),
        (named(2, 1, 3, 2), ("still holds an eighth", "содержит восьмую долю")),
        (named(3, 2, 1, 2), ("it is gone at once", "исчезает сразу")),
        (named(1, 3, 2, 2), ("have changed places", "Две ошибки перепутаны")),
        (named(1, 2, 3, 1), ("no fault in it", "замечать в нём нечего")),
        (named(1, 2, 3, 3), ("do their logs differ", "различаются ли их журналы")),
    ],
    "ex-environment-evidence": [
        (evidence(446), RIGHT),
        (evidence(446.0, "(0.5, 0.0)"), RIGHT),
        (evidence(450), RIGHT),
        (evidence('"446"'), ("n is still empty", "n ещё не вписано")),
        (evidence('float("nan")'), ("n = nan is no number", "n = nan не может быть")),
        (evidence(216), ("keeps a distance from ½", "расстояние до ½")),
        (evidence(441), ("the share of another agent", "доля другого агента")),
        (evidence(50), ("one standard error above", "на одну стандартную ошибку")),
        (evidence(149), ("falls like 1 over the root of n", "обратно пропорциональна корню из n")),
        (evidence(463), ("a share at the bound would have", "у доли на самой границе")),
        (evidence(445), ("n = 445 is just too few", "n = 445 — чуть меньше")),
        (evidence(F(9, 4) * 300), ("With n = 675", "При n = 675")),
        (evidence(446, "[...]"), ("greedy is still empty", "greedy ещё не заполнено")),
        (evidence(446, "[0, F(1, 2), 1]"), ("No such map wins", "Ни одно такое отображение")),
        (evidence(446, "[F(1, 2)]"), ("is not the list", "не тот список")),
    ],
    "ex-environment-free": [
        (SIX + EIGHT + MEMORY, RIGHT),
        (KNOCKS_WITH_BOTH + MEMORY, RIGHT),
        ("six_turns = eight_turns = None\n" + MEMORY, ("six_turns is still empty", "six_turns пока не заполнено")),
        (SIX.replace('"key_held"', '"key"') + EIGHT + MEMORY, ("no row for 'key_held'", "нет строки для 'key_held'")),
        (SIX + EIGHT.replace("F(1)", "F(1, 2)") + MEMORY, ("row 'key_held': expected", "строка 'key_held': нужны")),
        (SIX.replace('"inspect": 1', '"look": 1') + EIGHT + MEMORY, ("row 'room': expected", "строка 'room': нужны")),
        (
            SIX.replace('"finish"', '"inspect"') + EIGHT + MEMORY,
            ("never wins", "не выигрывает никогда"),
        ),
        (
            SIX.replace('"open_blue": F(1)', '"pickup_blue": F(1)') + EIGHT + MEMORY,
            ("Under the standard rules a map", "Столько при правилах standard"),
        ),
        (
            SIX.replace('"inspect": F(1, 2), "open_red": F(1, 2)', '"inspect": F(1, 8), "open_red": F(7, 8)')
            + EIGHT
            + MEMORY,
            ("not yet 5/8", "до 5/8 не хватает"),
        ),
        (SIX + "eight_turns = six_turns\n" + MEMORY, ("3/4 can be had", "а можно 3/4")),
        (SIX + EIGHT + "memory = ...", ("one of the six observations", "одного из шести наблюдений")),
        (SIX + EIGHT + 'memory = "clue_blue"', ("while it is there", "пока она видна")),
        (SIX + EIGHT + 'memory = "key_held"', ("just as under the standard rules", "так же, как и при правилах")),
    ],
    "ex-environment-noise": [
        ("values = {4: F(4, 5), 5: F(4, 5), 6: F(112, 125)}", RIGHT),
        ("values = {4: 0.8, 5: 0.8, 6: 0.896}", RIGHT),
        ("values = [F(4, 5)] * 3", ("Three probabilities", "три вероятности")),
        ("values = {4: 1, 5: 1, 6: 1}", ("certainty cannot be had", "уверенности быть не может")),
        ("values = {4: F(1, 2), 5: F(4, 5), 6: F(4, 5)}", ("H = 4: 1/2 is not right", "H = 4: 1/2 — неверно")),
        ("values = {4: F(4, 5), 5: F(16, 25), 6: 0}", ("can still guess", "ещё может угадать")),
        ("values = {4: F(4, 5), 5: F(24, 25), 6: 0}", ("that disagree as a win", "засчитана как выигрыш")),
        ("values = {4: F(4, 5), 5: F(112, 125), 6: 0}", ("this takes three looks", "это результат трёх взглядов")),
        ("values = {4: F(4, 5), 5: F(1, 2), 6: 0}", ("H = 5: 1/2 is not right", "H = 5: 1/2 — неверно")),
        ("values = {4: F(4, 5), 5: F(4, 5), 6: F(64, 125)}", ("counts three right looks", "посчитаны три верных")),
        ("values = {4: F(4, 5), 5: F(4, 5), 6: F(16, 25)}", ("one order of the three", "одном порядке из трёх")),
        ("values = {4: F(4, 5), 5: F(4, 5), 6: F(4, 5)}", ("H = 6: 4/5 is not right", "H = 6: 4/5 — неверно")),
    ],
    "ex-environment-coin": [
        (coin(), RIGHT),
        (coin(power="1 - 0.0011426"), RIGHT),
        (coin("..."), ("clause is to name", "В clause нужно имя")),
        (coin("A1"), ("A1 holds in this", "A1 в этой среде выполнено")),
        (coin(cutoff="None"), ("a whole number from 0 to 500", "целым числом от 0 до 500")),
        (coin(cutoff=51.5), ("a whole number from 0 to 500", "целым числом от 0 до 500")),
        (coin(cutoff=49), ("one side of the distribution", "одну сторону распределения")),
        (coin(cutoff=51), ("more than 1/1000", "больше 1/1000")),
        (coin(cutoff=55), ("so is a smaller cutoff", "допустим и меньший порог")),
        (coin(power="..."), ("power is still empty", "power ещё не вписано")),
        (coin(power=0.001143), ("test misses", "пропускает")),
        (coin(power=0.00089), ("a fair environment is accused. Here", "обвиняют честную среду. Здесь")),
        (coin(power=0.999078), ("at the cutoff itself", "на самом пороге")),
        (coin(power=0.998915), ("approximation by a normal law", "нормальное приближение")),
        (coin(power=0.9987), ("power = 0.9987 is not right", "power = 0.9987 — неверно")),
    ],
    "ex-environment-symmetric": [
        (symmetric(), RIGHT),
        (symmetric(averaged="0.38232421875"), RIGHT),
        (symmetric(averaged="0.382"), RIGHT),
        (symmetric(front="None"), ("fails for alpha = 3/4", "обрывается ошибкой")),
        (symmetric(front="0"), ("the value is not 0", "значение не 0")),
        (symmetric().replace("return alpha", "return None; alpha"), ("returns no number", "не возвращает числа")),
        (symmetric(front="1"), ("this is K_3 alone", "это одно K_3")),
        (symmetric(front="alpha / 2"), ("this is half of J", "это половина J")),
        (symmetric(eta="1 - sigma"), ("each door is tried", "каждую дверь пробуют")),
        (symmetric(averaged="None"), ("averaged is still empty", "averaged ещё не вписано")),
        (symmetric(averaged="F(65, 128)"), ("the average of the two values", "среднее двух значений")),
        (symmetric(averaged="0.5"), ("½ bounds all", "граница для всех симметричных")),
        (symmetric(averaged="F(3, 8)"), ("averaged = 3/8 is not right", "averaged = 3/8 — неверно")),
        (symmetric(missing="..."), ("one of the three words", "одним из трёх слов")),
        (symmetric(missing="symmetric"), ("J is symmetric", "Симметричность у J есть")),
        (symmetric(missing="continuous"), ("J is a polynomial", "J — многочлен")),
    ],
    "ex-environment-patience": [
        (schedule("1, 1 - m**-0.25, 1 - m**-0.5"), RIGHT),
        (schedule("[F(1), 1 - m**-0.2, 1 - m**-0.6]"), RIGHT),
        (schedule("1, 1 - 1e-4, 1 - 1e-8"), ("then J tends to a number below 1", "стремится к числу меньше 1")),
        (schedule("1 / 0"), ("schedule(1000000) fails", "schedule(1000000) обрывается")),
        (schedule("1 - m**-0.5"), ("is to return three numbers", "должна возвращать три числа")),
        (schedule("1, m, 0.5"), ("three probabilities between 0 and 1", "три вероятности от 0 до 1")),
        (schedule("1, 0.5, 0.125"), ("The same dice at every horizon", "Одни и те же кости")),
        (schedule("0.5, 1 - m**-0.25, 1 - m**-0.5"), ("not taking its key", "не брать ключ")),
        (schedule("1, 1 - m**-0.5, 1 - m**-1.5"), ("Red waits for a turn", "Красное ждёт хода")),
        (schedule("1, 1 - m**-0.5, 1 - m**-0.5"), ("Blue must not try", "Синему нельзя пробовать")),
    ],
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
