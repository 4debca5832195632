"""Answers to the exercises of the chapter ``stopping`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers


def verdict(*places: int) -> str:
    """Programs by their places in `twins`: right, one flag, cut wins, flags swapped."""
    return f"verdict = [list(twins)[i] for i in {places}]"


def trick(**wrong: str) -> str:
    answer = {
        "replaced": "[0, 0, F(8, 10) * gamma]",
        "advantages": "False",
        "lambda_returns": "False",
        "logged_return": "True",
        "clipped_advantages": "True",
    } | wrong
    changes = ", ".join(f"{name}={value}" for name, value in answer.items() if name != "replaced")
    return f"replaced = {answer['replaced']}\nchanges = dict({changes})"


def potential(unshaped: str = "g**2 * V", kept: str = "g**2 * V - F(1, 10)", zeroed: str = "kept - g**2 / 2") -> str:
    return f"g, V = F(9, 10), F(7, 10)\nunshaped = {unshaped}\nkept = {kept}\nzeroed = {zeroed}"


def tasks(high: str = "(F(1, 2), 1, 0)", low: str = "(F(1, 2), 0, 1)") -> str:
    return f"high = {high}\nlow = {low}"


def phase(four: str = "[g**3, g**2, g, 1]", two: str = "[0, 0, g, 1]") -> str:
    return f"g = F(9, 10)\nby_four = {four}\nby_two = {two}"


CLOSED = """
def closed(lam, limit):
    q = gamma * lam
    sums = [sum(q**j for j in range(n)) for n in range(limit + 1)]
    return VALUE
"""


def closed(value: str) -> str:
    return CLOSED.replace("VALUE", value)


def impatience(
    careful: str = "g**9",
    hasty: str = "F(3, 10)",
    lives: str = "g**9 / (1 - g**10)",
    short_lives: str = "F(3, 10) / (1 - g)",
    rows: str = "8",
) -> str:
    pairs = f"right_pair = [{careful}, {hasty}]\nchained = [{lives}, {short_lives}]"
    return f"g = F(99, 100)\n{pairs}\nlargest_n = {rows}"


def means(bootstrapped: str, left_out: str) -> str:
    return f"def means(q):\n    return {bootstrapped}, {left_out}"


WRONG: Answers = {
    "ex-stopping-log": [
        (verdict(1, 3, 2), RIGHT),
        ("verdict = []", ("Three names", "три имени")),
        ("verdict = [list(twins)[1], 'done', 0]", ("none of the four names", "не из тех четырёх имён")),
        (
            verdict(1, 1, 2),
            ("(b) For a true end such a program prints 0.25", "(б) При истинном завершении такая программа напечатала"),
        ),
        (verdict(1, 3, 0), ("For both at once such", "При том и другом сразу такая")),
    ],
    "ex-stopping-promise": [
        ("which = 'through'\npromise = gamma**3 / (1 - gamma**4)", RIGHT),
        ("which = 'through'\npromise = 0.9**3 / (1 - 0.9**4)", RIGHT),
        ("which = 4\npromise = 2.12", ("which is 'right'", "which — это 'right'")),
        ("which = 'right'\npromise = 2.12", ("above gamma**3 = 0.729", "больше gamma**3 = 0.729")),
        ("which = 'cut'\npromise = 2.12", ("too little", "слишком мало")),
        ("which = 'through'\npromise = None", ("Now the number", "Теперь число")),
        ("which = 'through'\npromise = gamma**3", ("what one life returns", "Столько возвращает одна жизнь")),
        ("which = 'through'\npromise = gamma**3 / (1 - gamma**3)", ("three factors gamma", "три множителя gamma")),
        ("which = 'through'\npromise = 1 / (1 - gamma**4)", ("with the first step", "с первым шагом")),
        ("which = 'through'\npromise = 2.12", ("number rounded", "округлённое число")),
        ("which = 'through'\npromise = float('nan')", ("promise = nan is not right", "promise = nan — неверно")),
    ],
    "ex-stopping-trick": [
        (trick(), RIGHT),
        (trick(replaced="[0, 0, 0.72]"), RIGHT),
        (trick(replaced="None"), ("Three rewards", "три награды")),
        (trick(replaced="[0, 0, F(8, 10)]"), ("discounted once", "дисконтируют один раз")),
        (trick(replaced="[0, 0, 0.54]"), ("one step old", "опоздала на шаг")),
        (trick(replaced="[0.45, 0.54, 0.72]"), ("Only the row of the cut", "только строку усечения")),
        (trick(replaced="[1, 0, 0.72]"), ("Reward 0: 1 is not right", "Награда 0: 1 — неверно")),
        (trick(advantages="1"), ("changes['advantages'] is to be", "changes['advantages'] должно быть")),
        (trick(advantages="True"), ("without the replacement", "advantages: без замены")),
        (trick(logged_return="False"), ("logged_return: 0 without", "logged_return: без замены 0")),
        (trick(clipped_advantages="False"), ("clipped_advantages: ", "clipped_advantages: ")),
    ],
    "ex-stopping-potential": [
        (potential(), RIGHT),
        (potential(unshaped="0.567"), RIGHT),
        (potential(zeroed="None"), ("Three returns", "три возврата")),
        (potential(unshaped="0"), ("Its bootstrap is missing", "Не хватает бутстрэпа")),
        (potential(unshaped="g * V"), ("discounted twice", "дисконтируется дважды")),
        (potential(unshaped="1"), ("unshaped = 1.0000", "unshaped = 1.0000")),
        (potential(kept="unshaped"), ("Nothing gives it back", "Ничто его не возвращает")),
        (potential(kept="unshaped - F(1, 10) + g**2 / 2"), ("bootstraps with V", "бутстрэп взят с V")),
        (potential(kept="1"), ("kept = 1.0000", "kept = 1.0000")),
        (potential(zeroed="kept"), ("and cancels again", "снова сокращается")),
        (potential(zeroed="kept + g**2 / 2"), ("the sign", "знак")),
        (potential(zeroed="kept - g / 2"), ("two discounts away", "двумя дисконтами")),
    ],
    "ex-stopping-leaving-out": [
        (tasks(), RIGHT),
        (tasks(high="[0.25, 1, F(1, 3)]"), RIGHT),
        (tasks(high="[0.25, 1, 0.333]"), ("this task is 0.49975", "этой задачи 0.49975")),
        (tasks(low="1"), ("three numbers", "три числа")),
        (tasks(low="(F(1, 2), 0, 2)"), ("between 0 and 1", "между 0 и 1")),
        (tasks(high="(0, 1, F(1, 2))"), ("nothing to average", "усреднять нечего")),
        (tasks(high="(1, F(1, 2), 0)"), ("nothing is cut", "усекать и отбрасывать нечего")),
        (tasks(high="(F(1, 4), 1, 0)"), ("this task is 0.250", "этой задачи 0.250")),
        (tasks(high="(F(1, 2), F(1, 2), F(1, 2))"), ("paid alike", "оплачены одинаково")),
        (tasks(high="(F(1, 2), 0, 1)"), ("0.000, where 1 is asked", "0.000, а нужно 1")),
    ],
    "ex-stopping-phase": [
        (phase(), RIGHT),
        (phase(two="[0, 0.0, 0.9, 1.0]"), RIGHT),
        (phase(two="[0, 0, 1]"), ("four numbers", "четыре числа")),
        (phase(four="[(g * 3 / 4) ** k for k in (3, 2, 1, 0)]"), ("now and then", "время от времени усекают")),
        (phase(four="[g**4, g**3, g**2, g]"), ("before that turn", "перед этим ходом")),
        (phase(four="[0, 0, 0, 1]"), ("Four rows, turn 1: 0", "Четыре строки, ход 1: 0")),
        (phase(two="[(g / 2) ** k for k in (3, 2, 1, 0)]"), ("independent of the state", "от состояния не зависит")),
        (phase(two="[g**3, g**2, g, 1]"), ("the true values", "истинные ценности")),
        (phase(two="[0, 0, 0, 0]"), ("Two rows, turn 3: 0", "Две строки, ход 3: 0")),
    ],
    "ex-stopping-lambda": [
        (closed("(sum(sums[1:]) / limit) / (1 - gamma * (1 - lam) * sum(sums[:-1]) / limit)"), RIGHT),
        (closed("float(sum(sums[1:]) / (limit - gamma * (1 - lam) * sum(sums[:-1])))"), RIGHT),
        (closed("limit / (1 - lam / lam)"), ("ZeroDivisionError", "ZeroDivisionError")),
        (closed("'w'"), ("returns 'w'", "возвращает 'w'")),
        (closed("1 / (1 - gamma)"), ("the last step bootstraps too", "на последнем шаге")),
        (
            closed("sum(sum(gamma**j for j in range(n)) for n in range(1, limit + 1)) / limit"),
            ("mean of the full returns", "среднее полных возвратов"),
        ),
        (closed("sum(sums[1:]) / limit"), ("lambda = 0, N = 2: 1.0000", "λ = 0, N = 2: 1.0000")),
    ],
    "ex-stopping-impatience": [
        (impatience(), RIGHT),
        (impatience(hasty="0.3", short_lives="30.0"), RIGHT),
        (impatience(careful="0.9135", lives="9.5538", rows="8.0"), RIGHT),
        (impatience(short_lives="None"), ("Two pairs of numbers", "две пары чисел")),
        (impatience(rows="8.5"), ("a number of rows", "число строк")),
        (impatience(rows="float('inf')"), ("a number of rows", "число строк")),
        (impatience(careful="g**10"), ("nine turns", "только девять")),
        (impatience(hasty="0.3 * g"), ("right_pair = 0.9135, 0.2970", "right_pair = 0.9135, 0.2970")),
        (impatience(lives="g**9 / (1 - g**9)"), ("nine discounts away", "девять дисконтов")),
        (impatience(lives="g**9"), ("careful policy: 0.9135", "Осмотрительная: 0.9135")),
        (impatience(short_lives="0.3 / (1 - 0.7 * g)"), ("after failures only", "лишь после неудач")),
        (impatience(short_lives="0.3"), ("hasty policy: 0.3000", "Торопливая: 0.3000")),
        (impatience(rows="7"), ("the only discount", "одна лишь граница")),
        (impatience(rows="9"), ("With N = 9", "При N = 9")),
        (impatience(rows="5"), ("With one row more", "Ещё одна строка")),
    ],
    "ex-stopping-outcome": [
        (means("gamma / 2", "gamma / (2 - q)"), RIGHT),
        (means("0.45", "0.9 * 0.5 / (1 - q / 2)"), RIGHT),
        (means("gamma / 2", "q[0]"), ("stops with TypeError", "прерывается: TypeError")),
        ("def means(q):\n    pass", ("returns None", "возвращает None")),
        (means("F(1, 2)", "gamma / (2 - q)"), ("one step later", "шагом позже")),
        (means("gamma", "gamma / (2 - q)"), ("bootstrapped 0.9000", "с бутстрэпом 0.9000")),
        (means("gamma / 2", "gamma / 2"), ("more often than half", "чаще, чем в половине")),
        (means("gamma / 2", "gamma * (1 - q) / (2 - q)"), ("It is those into b", "а надо — в b")),
        (means("gamma / 2", "1 / (2 - q)"), ("left out 0.6667", "с отбрасыванием 0.6667")),
    ],
    "ex-stopping-buffer": [
        ("real = F(99, 100) * F(127, 128)\nsmallest = 891", RIGHT),
        ("real = 0.9823\nsmallest = 891.0", RIGHT),
        ("real = None\nsmallest = 891", ("Replace the three dots", "Замените многоточия")),
        ("real = 0.99\nsmallest = 891", ("the discount that was set", "Это заданный дисконт")),
        ("real = 1 - 1 / 128\nsmallest = 891", ("the share of rows", "Это доля строк")),
        ("real = 0.99 - 1 / 128\nsmallest = 891", ("0.98219 is not right", "0.98219 неверен")),
        ("real = 0.98\nsmallest = 891", ("0.98000 is not right", "0.98000 неверен")),
        ("real = 0.99 * 127 / 128\nsmallest = 990", ("of 100 steps at least 90", "из 100 шагов")),
        ("real = 0.99 * 127 / 128\nsmallest = 900", ("N = 900", "N = 900")),
    ],
    "ex-stopping-rows": [
        ("mask = [[1, 0], [1, 1], [0, 1], [1, 0], [1, 1]]\nwrong = 1", RIGHT),
        ("mask = None\nwrong = 1", ("Five rows", "пять строк")),
        ("mask = []\nwrong = 1", ("Five rows", "пять строк")),
        ("mask = [[1, 1], [0, 1], [1, 0], [1, 1], [0, 1]]\nwrong = 1", ("the last step", "последний шаг")),
        ("mask = [[1, 1], [1, 1], [0, 1], [1, 0], [1, 1]]\nwrong = 1", ("is a reset", "— сброс")),
        ("mask = [[1, 0], [1, 1], [1, 1], [1, 0], [1, 1]]\nwrong = 1", ("Row 2, environment 0", "Строка 2, среда 0")),
        ("mask = [[1, 0], [1, 1], [0, 1], [1, 0], [1, 1]]\nwrong = 2", ("wrong = 2", "wrong = 2")),
    ],
}
