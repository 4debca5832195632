"""Answers to the exercises of the page ``lab`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers

SOFT = """
soft_map = {
    "room": "inspect", "clue_red": "pickup_red", "clue_blue": "pickup_blue",
    "key_held": "open_red", "invalid": "open_blue", "door_open": "finish",
}
"""


def memoryless(standard: object = "F(1, 2)", soft: object = 1, rows: str = SOFT) -> str:
    return f'memoryless = {{"standard": {standard}, "soft": {soft}}}\n{rows}'


def averages(
    tokens: object = "F(3, 5)", sequences: object = 0, constant: object = "F(3, 10)", tools: object = "F(1, 3)"
) -> str:
    return f"token_mean = {tokens}\nsequence_mean = {sequences}\nconstant_length = {constant}\nwith_tools = {tools}"


def clock(
    task: object = "[F(271, 100), F(19, 10), 1]", cut: object = 10, averaged: object = 1.87, aliased: object = 2.5
) -> str:
    return f"task = {task}\ncut = {cut}\naveraged = {averaged}\naliased = {aliased}"


def cycle(same: object = 0, one: object = "F(1, 10)", endless: object = "F(10, 19)") -> str:
    return f"same_round = {same}\none_round = {one}\nendless = {endless}"


def sizes(half: object = 14, most: object = 45) -> str:
    return f"half = {half}\nmost = {most}"


CALLS = """calls = [("inspect",)]
for colour in ("red", "blue"):
    calls += [("pickup", colour), ("open_door", colour), ("finish",)]
"""


WRONG: Answers = {
    "ex-lab-memoryless": [
        (memoryless(), RIGHT),
        (
            memoryless(
                0.5,
                1.0,
                SOFT.replace("open_red", "open_").replace("open_blue", "open_red").replace('open_"', 'open_blue"'),
            ),
            RIGHT,
        ),
        (memoryless("..."), ("Two probabilities", "две вероятности")),
        (memoryless(1), ("no map wins with both targets", "ни одно отображение не выигрывает при обеих")),
        (memoryless(0.53), ("is out of reach", "недостижимо")),
        (memoryless("F(1, 4)"), ("standard: 1/4 is not right", "standard: 1/4 — неверно")),
        (memoryless(soft=0.5), ("soft: more is possible", "soft: можно больше")),
        (memoryless(soft=0.75), ("soft: 0.75 is not right", "soft: 0.75 — неверно")),
        (memoryless(rows="soft_map = None"), ("is to be a dictionary", "должно быть словарём")),
        (memoryless(rows='soft_map = {"room": "inspect"}'), ("see 'clue_red' and has no", "встречает 'clue_red', а")),
        (memoryless(rows=SOFT.replace('"inspect"', '"look"')), ("gives 'look'", "даёт 'look'")),
        (
            memoryless(rows=SOFT.replace('"invalid": "open_blue"', '"invalid": "open_red"')),
            ("does not win with target blue", "при цели blue не выигрывает"),
        ),
    ],
    "ex-lab-averages": [
        (averages(), RIGHT),
        (averages(0.6, 0.0, 0.3, 6 / 18), RIGHT),
        (averages(tools="None"), ("Four numbers", "четыре числа")),
        (averages("-F(3, 5)"), ("the sign is wrong", "знак не тот")),
        (averages(0), ("both sequences count alike", "одинаково весят обе последовательности")),
        (averages(3), ("Mean over tokens: 3 is not right", "По токенам: 3 — неверно")),
        (averages(sequences=0.6), ("mean over tokens once more", "снова среднее по токенам")),
        (averages(sequences=3), ("this is the mean of the sums", "это среднее сумм")),
        (averages(sequences=1), ("sequence means: 1 is not right", "Среднее средних: 1 — неверно")),
        (averages(constant=0.6), ("divides by 10 in all", "разделена всего на 10")),
        (averages(constant=0), ("Constant length: 0 is not right", "С постоянной длиной: 0 — неверно")),
        (averages(tools="F(6, 26)"), ("belong to sequence 1 only", "только в последовательности 1")),
        (averages(tools="-F(1, 9)"), ("Their loss is masked", "Их потери закрыты маской")),
        (averages(tools=0.6), ("tool's tokens: 0.6 is not right", "токенами инструмента: 0.6 — неверно")),
    ],
    "ex-lab-clock": [
        (clock(), RIGHT),
        (clock("(2.71, 1.9, 1.0)", 10.0, "F(187, 100)", "F(5, 2)"), RIGHT),
        (clock(aliased="..."), ("Six numbers", "шесть чисел")),
        (clock("2.71"), ("Six numbers", "шесть чисел")),
        (clock([1, 1.9, 2.71]), ("in reverse order", "в обратном порядке")),
        (clock([3, 2, 1]), ("sums without discount", "суммы без дисконта")),
        (clock([10, 10, 10]), ("a process that never ends", "процесса без конца")),
        (clock([2.71, 1.9, 0]), ("[2.71, 1.9, 0] is not right", "[2.71, 1.9, 0] — неверно")),
        (clock(cut=2.71), ("where the collector stops", "обрывается вместе со сборщиком")),
        (clock(cut=9), ("(b) 9 is not right", "(б) 9 — неверно")),
        (clock(averaged=2.5), ("This solves the TD equation", "Это решение TD-уравнения")),
        (clock(averaged=2), ("averaged = 2 is not right", "averaged = 2 — неверно")),
        (clock(aliased=1.87), ("this is the mean of the returns", "это среднее возвратов")),
        (clock(aliased=10), ("bootstraps in all three", "бутстрэп на всех трёх")),
        (clock(aliased=2), ("aliased = 2 is not right", "aliased = 2 — неверно")),
    ],
    "ex-lab-cycle": [
        (cycle(), RIGHT),
        (cycle(0.0, 0.1, 0.1 / 0.19), RIGHT),
        (cycle(endless=0.526), RIGHT),
        (cycle("..."), ("Three numbers", "три числа")),
        (cycle("-F(1, 10)"), ("same_round: this adds", "same_round: это сумма")),
        (cycle(0.9), ("same_round = 0.9 is not right", "same_round = 0.9 — неверно")),
        (cycle(one=0), ("one_round: the two bonuses are opposite", "one_round: добавки противоположны")),
        (cycle(one=1), ("this is the way there", "это путь туда")),
        (cycle(one=0.19), ("one_round = 0.19 is not right", "one_round = 0.19 — неверно")),
        (cycle(endless=1), ("a round begin at each step", "круг начинался бы на каждом шаге")),
        (cycle(endless='float("inf")'), ("their sum is finite", "сумма конечна")),
        (cycle(endless=0.5), ("endless = 0.5 is not right", "endless = 0.5 — неверно")),
    ],
    "ex-lab-group-size": [
        (sizes(), RIGHT),
        (sizes(14.0, 45.0), RIGHT),
        (sizes("..."), ("half is still empty", "half ещё не вписано")),
        (sizes(13.5), ("half = 13.5: a group has a whole number", "half = 13.5: в группе целое число")),
        (sizes('float("nan")'), ("a whole number of rollouts", "целое число роллаутов")),
        (sizes(10), ("the mean number of successes", "среднее число успехов")),
        (sizes(14, 44), ("most = 44: such a group is mixed", "most = 44: такая группа смешана")),
        (sizes(15), ("half = 15 is enough", "half = 15 хватает")),
    ],
    "ex-lab-two-finishes": [
        (CALLS, RIGHT),
        (CALLS.replace('("red", "blue")', '("blue", "red")'), RIGHT),
        ("calls = []", ("calls is still empty", "calls ещё не заполнено")),
        ('calls = ["inspect"]', ("'inspect' is no call", "'inspect' — не вызов")),
        ('calls = [("pickup",)]', ("('pickup',) is no call", "('pickup',) — не вызов")),
        (CALLS.replace('"blue")', '"green")'), ("names no colour", "называет цвет, которого")),
        (CALLS.replace(', ("finish",)', ""), ("never finish", "нет finish")),
        (CALLS.replace('[("inspect",)]', "[]"), ("before the first inspect", "до первого inspect")),
        (
            CALLS.replace('("red", "blue")', '["red"]'),
            ("With target blue the calls earn nothing, with", "При цели blue вызовы не приносят"),
        ),
        (
            CALLS.replace('("open_door", colour), ', ""),
            ("calls earn nothing: The target", "ничего не приносят: The target"),
        ),
    ],
}
