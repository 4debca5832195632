"""Answers to the exercises of the chapter ``language_model`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers


def library(divisor: str = "7", epsilon: str = "1e-6", others: str = "-2.474867 / 7") -> str:
    return f"divisor, epsilon, others = {divisor}, {epsilon}, {others}"


def budget(mixed: str = "{4: 1.0209, 16: 1.0089, 64: 0.9622}", signal: str = "0.6412") -> str:
    return f"mixed_groups, any_signal = {mixed}, {signal}"


THEN = "then, now = probabilities(calibrate(raw))[0], probabilities(raw)[0]\n"
RATIOS = "[y / x for x, y in zip(then, now)]"


def ratios(made: str = RATIOS, mean: str = "1", inside: str = "2") -> str:
    return f"{THEN}ratios = {made}\nmean_ratio, inside = {mean}, {inside}"


def rows(advantages: str = "[0.75, -0.25]", factor: str = "5 / 8") -> str:
    return f"advantages, factor = {advantages}, {factor}"


def cut(counted: str = "F(-1, 12)", masked: str = "F(-1, 24)", left_out: str = "0", truth: str = "F(1, 8)") -> str:
    return f"counted, masked, left_out, truth = {counted}, {masked}, {left_out}, {truth}"


FOUR = "(-1, -6), (-2, -7.5)"

FLIPS = """
def flips_of(rows, counts):
    return sum(
        ((raw[s][a] - raw[t][a]) - (raw[s][c] - raw[t][c]))
        * ((raw[s][a] - raw[t][a]) / counts[a] - (raw[s][c] - raw[t][c]) / counts[c])
        < 0
        for s in rows for t in rows if s < t for a in range(6) for c in range(a + 1, 6)
    )


counts = [len(scores["pieces"][action]) for action in ACTIONS]
"""


def length(four: str = FOUR, flips: str = "flips_of(here, counts)") -> str:
    return f"{FLIPS}first, second = {four}\nflips = {flips}"


def menu(tools: str = '["is_done", "peek"]', without: str = "0.5", peeking: str = "1") -> str:
    return f"tools, without, peeking = {tools}, {without}, {peeking}"


def filtered(value: str = "(1 - 1 / G) / (1 - p**G - (1 - p) ** G)", climbed: str = "log(p)") -> str:
    return (
        f"from math import asin, log, sqrt\n\n\ndef factor(p, G):\n    return {value}\n\n\n"
        f"def climbed(p):\n    return {climbed}"
    )


def arcsine(
    mean: str = "[0.75, 0.74]", objective: str = "[4.19, 4.67]", bend: str = "0.5", finishes: str = "True"
) -> str:
    return f"mean_success, objective = {mean}, {objective}\nbend, finishes = {bend}, {finishes}"


WRONG: Answers = {
    "ex-language-model-library": [
        (library(), RIGHT),
        (library(others="-0.353552"), RIGHT),
        (library("'G - 1'"), ("Three numbers", "Нужны три числа")),
        (library("8"), ("2.645751", "2.645751")),
        (library("6"), ("divisor = 6", "divisor = 6")),
        (library(epsilon="0"), ("in the sixth decimal", "в шестом знаке")),
        (library(epsilon="1e-4"), ("in the fourth decimal", "в четвёртом знаке")),
        (library(epsilon="1e-5"), ("With epsilon = 1e-05", "С epsilon = 1e-05")),
        (library(others="0.353552"), ("The sign is wrong", "Знак не тот")),
        (library(others="-1 / 8"), ("the bare difference", "голая разность")),
        (library(others="-2.474867"), ("there are seven failures", "неудач семь")),
        (library(others="0"), ("others = 0.000000", "others = 0.000000")),
    ],
    "ex-language-model-one": [
        ("bare, none = F(5, 7776), 0", RIGHT),
        ("bare = mean_update(law, 1, lambda rewards: rewards)\nnone = mean_update(law, 1, from_the_mean)", RIGHT),
        ("bare, none = None, None", ("Two numbers", "Нужны два числа")),
        ("bare, none = 0, 0", ("a success moves the weights", "успех здесь веса сдвигает")),
        ("bare, none = F(1, 1296), 0", ("This is the mean reward", "Это средняя награда")),
        ("bare, none = 1, 0", ("bare = 1.000000", "bare = 1.000000")),
        ("bare, none = slope, slope", ("This is the whole gradient", "Это весь градиент")),
        ("bare, none = slope, 1", ("none = 1", "none = 1")),
    ],
    "ex-language-model-budget": [
        (budget(), RIGHT),
        (
            "mixed_groups = {G: 512 // G * informative_group_probability(0.002, G) for G in (4, 16, 64)}\n"
            "any_signal = 1 - 0.998**512",
            RIGHT,
        ),
        (budget("{4: 1}"), ("for each of the sizes", "на каждый из размеров")),
        (budget("{4: 0.008, 16: 0.0315, 64: 0.12}"), ("of one group", "для одной группы")),
        (budget("{4: 1.024, 16: 1.024, 64: 1.024}"), ("the number of successes", "число успехов")),
        (budget("{4: 1.0209, 16: 1.5, 64: 0}"), ("G = 16: 1.5000", "G = 16: 1.5000")),
        (budget(signal="1.0209"), ("is no probability", "не вероятность")),
        (budget(signal="0.3588"), ("nothing comes", "не придёт ничего")),
        (budget(signal="0.12"), ("any_signal = 0.1200", "any_signal = 0.1200")),
    ],
    "ex-language-model-two": [
        (ratios(), RIGHT),
        (ratios("[0.0553, 0.8806, 1.921, 0.6605, 1.057, 3.895]", "1.0"), RIGHT),
        (ratios("None"), ("Six ratios", "шесть отношений")),
        (ratios("[1] * 6"), ("No weight has moved", "Ни один вес")),
        (ratios("[x / y for x, y in zip(then, now)]"), ("The other way round", "Наоборот")),
        (
            ratios("[exp(sum(row[a] for row in raw) / len(raw)) for a in range(6)]"),
            ("These are e^m(a)", "Это e^m(a)"),
        ),
        (ratios("[2] * 6"), ("ratios = [2.0", "ratios = [2.0")),
        (ratios(mean="sum(ratios) / 6"), ("the same weight", "один вес")),
        (
            ratios(mean="sum(x * y for x, y in zip(now, ratios))"),
            ("under the trainer's policy", "при политике программы обучения"),
        ),
        (ratios(mean="2"), ("mean_ratio = 2.0000", "mean_ratio = 2.0000")),
        (ratios(inside="4"), ("of those outside", "Столько лежит вне промежутка")),
        (ratios(inside="3"), ("inside = 3", "inside = 3")),
    ],
    "ex-language-model-rows": [
        (rows(), RIGHT),
        (rows("(F(3, 4), F(-1, 4))", "F(5, 8)"), RIGHT),
        (rows("[0.75, -0.25, -0.25, -0.25]"), ("one for each trajectory", "по одному на траекторию")),
        (rows("[0.5, -0.5]"), ("runs over four rows", "по четырём строкам")),
        (rows("[1, 0]"), ("advantages = [1.0", "advantages = [1.0")),
        (rows(factor="1 / 2"), ("the factor over rollouts", "множитель по роллаутам")),
        (rows(factor="5 / 4"), ("the mean update over rollouts", "на среднее обновление по роллаутам")),
        (rows(factor="3 / 8"), ("Only the baseline", "только базовую линию")),
        (rows(factor="15 / 512"), ("the update itself", "само обновление")),
        (rows(factor="1"), ("factor = 1.000000", "factor = 1.000000")),
    ],
    "ex-language-model-cut": [
        (cut(), RIGHT),
        (cut("-1 / 12", "-1 / 24", "0.0", "0.125"), RIGHT),
        (cut("-0.0833", "-0.0417", "0", "0.125"), RIGHT),
        (f"prod = sum = None\n{cut()}", RIGHT),  # names of functions that the check calls
        (cut("None"), ("Four numbers", "Нужны четыре числа")),
        (cut("-1 / 8"), ("(a) Nearly", "(а) Почти")),
        (cut("1 / 12"), ("(a) The sign", "(а) Знак")),
        (cut("0"), ("(a) 0.000000", "(а) 0.000000")),
        (cut(masked="0"), ("(b) No cut rollout", "(б) В функции потерь")),
        (cut(masked="-1 / 12"), ("(b) This is (a)", "(б) Это случай (а)")),
        (cut(masked="1"), ("(b) 1.000000", "(б) 1.000000")),
        (cut(left_out="-1 / 8"), ("(c) -0.125000", "(в) -0.125000")),
        (cut(truth="1 / 4"), ("how much more often", "насколько чаще")),
        (cut(truth="-1 / 8"), ("truth: the sign", "truth: знак")),
        (cut(truth="1 / 12"), ("truth = 0.083333", "truth = 0.083333")),
    ],
    "ex-language-model-length": [
        (length(), RIGHT),
        (length("(F(-1), F(-6)), (F(-2), F(-15, 2))", "51"), RIGHT),
        (length("(-1, -6), None"), ("pairs of numbers", "пары чисел")),
        (length("(1, -6), (2, -7.5)"), ("is not above 0", "не больше 0")),
        (length("(-1, -6), (-2, -7)"), ("the same after both prompts", "одинаковы после обоих запросов")),
        (length("(-1, -6), (-2, -6)"), ("Not turned round", "Не перевёрнуто")),
        (length(flips="..."), ("The four numbers do it", "Четыре числа годятся")),
        (length(flips="4 * flips_of(here, counts)"), ("make one quadruple", "одна четвёрка")),
        (length(flips="flips_of(range(15), counts)"), ("all fifteen situations", "все пятнадцать ситуаций")),
        (length(flips="flips_of(here, [n - 1 for n in counts])"), ("of the name alone", "токены одного имени")),
        (length(flips="flips_of(here, [len(a) for a in ACTIONS])"), ("divides by letters", "на число букв")),
        (length(flips="825"), ("flips = 825", "flips = 825")),
    ],
    "ex-language-model-menu": [
        (menu(), RIGHT),
        (menu('{"peek", "is_done"}', "F(1, 2)"), RIGHT),
        (menu("None"), ("tools lists names", "tools — список имён")),
        (menu('["done", "is_done", "peek"]'), ("no function of the class", "не функция класса")),
        (menu('["peek"]'), ("A method of the class", "Метод класса")),
        (menu('["is_done"]'), ("meant for the log", "предназначено для журнала")),
        (menu(without="None"), ("are numbers", "— числа")),
        (menu(without="1"), ("can only guess", "может лишь гадать")),
        (menu(without="1 / 6"), ("without = 0.1667", "without = 0.1667")),
        (menu(peeking="0.5"), ("need not read the clue", "Подсказка ей больше не нужна")),
        (menu(peeking="0.75"), ("peeking = 0.7500", "peeking = 0.7500")),
    ],
    "ex-language-model-filter": [
        (filtered(), RIGHT),
        (filtered("F(G - 1, G) / informative_group_probability(p, G)", "3 * log(p / (1 - p)) + 1"), RIGHT),
        (filtered("missing"), ("factor raises NameError", "factor прерывается: NameError")),
        (filtered("None"), ("factor returns no number", "factor возвращает не число")),
        (filtered("1 - 1 / G"), ("the factor without filtering", "множитель без отсева")),
        (filtered("1 / (1 - p**G - (1 - p) ** G)"), ("of the plain difference", "самой разности со средним")),
        (filtered("(1 - 1 / G) * (1 - p**G - (1 - p) ** G)"), ("The other way round", "Наоборот")),
        (filtered("(1 - 1 / G) / (1 - (1 - p) ** G)"), ("of successes alone", "из одних успехов")),
        (filtered("p * G"), ("p = 1/5, G = 4", "p = 1/5, G = 4")),
        (filtered(climbed="missing"), ("raises NameError", "прерывается: NameError")),
        (filtered(climbed="None"), ("climbed returns no number", "climbed возвращает не число")),
        (filtered(climbed="-1 / p"), ("the factor itself", "сам множитель")),
        (filtered(climbed="p"), ("the same slope", "Наклон здесь при всех")),
        (filtered(climbed="2 * asin(sqrt(p))"), ("by the deviation climbs", "деление на отклонение")),
        (filtered(climbed="-log(p)"), ("This falls", "Эта функция убывает")),
        (filtered(climbed="-p ** -2"), ("64.00 times", "в 64.00 раза")),
    ],
    "ex-language-model-arcsine": [
        (arcsine(), RIGHT),
        (arcsine("(F(3, 4), F(37, 50))", "(4.1888, 4.6724)", "F(1, 2)", "1"), RIGHT),
        (arcsine("None"), ("lists of two numbers", "списки из двух чисел")),
        (arcsine("[1.5, 1.48]"), ("half of the sum", "половина суммы")),
        (arcsine(objective="[2.09, 2.34]"), ("This is half of it", "Это половина")),
        (arcsine(objective="[3.39, 4.14]"), ("The root is missing", "Пропал корень")),
        (arcsine(objective="[240, 267.7]"), ("These are degrees", "Это градусы")),
        (arcsine(objective="[4.19, 4.19]"), ("Objective at (1.0, 0.48)", "Цель при (1.0, 0.48)")),
        (arcsine(bend="1"), ("At the edges", "На краях")),
        (arcsine(bend="0.25"), ("bend = 0.2500", "bend = 0.2500")),
        (arcsine(finishes="None"), ("finishes is True or False", "finishes — это True или False")),
        (arcsine(finishes="False"), ("Compare your two", "Сравните ваши два")),
    ],
}
