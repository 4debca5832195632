"""Answers to the exercises of the chapter ``telescoping`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers


def gap(says: str, first: int = 1, second: int = 2) -> str:
    return f"says, mend_first, mend_second = {says}, {first}, {second}"


def log(decay: str = "F(1, 2)", row: int = 1, mended: str = "[F(1, 8), F(1, 20), 0.5, 0.4]") -> str:
    return f"decay, row, mended = {decay}, {row}, {mended}"


def change(value: str) -> str:
    return f"def change(t, T, lam, b, terminated):\n    return {value}"


def mean_square(value: str) -> str:
    return f"def mean_square(T, s, gamma):\n    return {value}"


def pasted(together: str = "0", refuses: str = "False", alone: str = "99") -> str:
    return f"gap_pasted, refuses, gap_of_A = {together}, {refuses}, {alone}"


def critic_error(value: str, bias: str = "0") -> str:
    return f"def critic_error(value, potential):\n    return {value}\n\n\nbias_at_one = {bias}"


def best_lambda(value: str) -> str:
    return f"def best_lambda(e, v, K):\n    return {value}"


def payoff(rewards: str, difference: str) -> str:
    return f"payoff = dict(zip([(0, 0), (0, 1), (1, 0), (1, 1)], {rewards}, strict=False))\ndifference = {difference}"


WRONG: Answers = {
    "ex-telescoping-gap": [
        (gap("F(1, 4)"), RIGHT),
        (gap("0.128 / 0.8**3"), RIGHT),
        (gap("None"), ("Three numbers are asked for", "Нужны три числа")),
        (gap("0.128"), ("the gap itself", "само расхождение")),
        (gap("0.128 / 0.8"), ("The power of gamma", "Степень gamma")),
        (gap("-0.25"), ("The size is right", "Величина верна")),
        (gap("1"), ("says = 1.0000", "says = 1.0000")),
        (gap("0.25", 3), ("For each program 1", "Для каждой программы")),
        (gap("0.25", 2, 2), ("opposite signs", "Знаки расхождений противоположны")),
        (gap("0.25", 2, 1), ("The other way round", "Наоборот")),
    ],
    "ex-telescoping-row": [
        (log(), RIGHT),
        (log("0.5", 1, "(0.125, 0.05, 0.5, 0.4)"), RIGHT),
        (log("'0.5'"), ("decay is a number", "decay — число")),
        (log("0"), ("the one ratio that does not fit", "не сходится с остальными")),
        (log("1 / 3"), ("the mean of the three ratios", "среднее трёх отношений")),
        (log("0.45"), ("decay = 0.4500", "decay = 0.4500")),
        (log(row=0), ("Row 0 obeys", "Строка 0 рекурсии подчиняется. Она неверна")),
        (log(row=2), ("Row 2 obeys", "Строка 2 рекурсии подчиняется")),
        (log(mended="[0.125, 0.05, 0.5]"), ("a list of four", "список из четырёх")),
        (log(mended="[0, -0.2, 0.5, 0.4]"), ("the advantages of the log", "преимущества из журнала")),
        (log(mended="[0, 0.05, 0.5, 0.4]"), ("row 0 is computed from", "строка 0 вычисляется из")),
        (log(mended="[0.4, 0.5, 0.05, 0.125]"), ("in reverse order", "в обратном порядке")),
        (log(mended="[0.125, 0.1, 0.5, 0.4]"), ("Row 1: 0.1000", "Строка 1: 0.1000")),
    ],
    "ex-telescoping-shift": [
        (change("-b * lam ** (T - 1 - t) * terminated"), RIGHT),
        (change("-b * lam ** (T - 1 - t) if terminated else 0"), RIGHT),
        (change("missing"), ("raises NameError", "прерывается: NameError")),
        (change("'b'"), ("no number, but b", "не число, а b")),
        (change("-b * lam ** (T - 1 - t)"), ("A cut at T = 5, t = 1", "Усечение при T = 5, t = 1")),
        (change("0"), ("something changes", "что-то меняется")),
        (change("b * lam ** (T - 1 - t) * terminated"), ("the sign is wrong", "знак не тот")),
        (change("-b * terminated"), ("everywhere only for lambda = 1", "лишь при λ = 1")),
        (change("-b * lam ** (T - t) * terminated"), ("One power of lambda too many", "Лишний множитель λ")),
        (change("-b * lam**t * terminated"), ("from the beginning", "отсчитана от начала")),
        (change("b * lam * terminated"), ("T = 5, t = 1, b = 1/4", "T = 5, t = 1, b = 1/4")),
    ],
    "ex-telescoping-passes": [
        (mean_square("2 * s**2 * sum(gamma ** (2 * t) for t in range(1, T))"), RIGHT),
        (mean_square("2 * s**2 * gamma**2 * (1 - gamma ** (2 * T - 2)) / (1 - gamma**2)"), RIGHT),
        (mean_square("missing"), ("raises NameError", "прерывается: NameError")),
        (mean_square("None"), ("no number, but None", "не число, а None")),
        (mean_square("0"), ("the mean of the gap", "среднее самого расхождения")),
        (mean_square("s**2 * sum(gamma ** (2 * t) for t in range(1, T))"), ("half of it", "Это половина")),
        (mean_square("4 * s**2 * sum(gamma ** (2 * t) for t in range(1, T))"), ("twice as much", "вдвое больше")),
        (mean_square("2 * s**2 * sum(gamma**t for t in range(1, T))"), ("with gamma**t", "с gamma**t")),
        (mean_square("2 * s**2 * (T - 1)"), ("The discount is missing", "Пропал дисконт")),
        (mean_square("2 * s**2 * sum(gamma ** (2 * t) for t in range(T))"), ("begins at t = 1", "начинается с t = 1")),
        (mean_square("2 * s**2 * sum(gamma ** (2 * t) for t in range(1, T + 1))"), ("there is no V_T", "нет V_T")),
        (
            mean_square("2 * (s * sum(gamma**t for t in range(1, T))) ** 2"),
            ("the mixed terms vanish", "смешанные слагаемые в среднем исчезают"),
        ),
        (
            mean_square("float(2 * s**2 * sum(gamma ** (2 * t) for t in range(1, T))) ** 0.5"),
            ("the root of it", "корень из среднего квадрата"),
        ),
        (mean_square("s**2 * T"), ("T = 4, s = 1/10, gamma = 9/10", "T = 4, s = 1/10, gamma = 9/10")),
    ],
    "ex-telescoping-pasted": [
        (pasted(), RIGHT),
        (pasted("F(0)", "0", "99.0"), RIGHT),
        (pasted("'0'"), ("Two gaps are asked for", "Нужны два расхождения")),
        (pasted("99"), ("stands in two residuals", "стоит в двух остатках")),
        (pasted("1"), ("gap_pasted = 1", "gap_pasted = 1")),
        (pasted(refuses="None"), ("is True or False", "это True или False")),
        (pasted(refuses="True"), ("has only the rows", "есть только строки")),
        (pasted(alone="0"), ("one and the same next value", "слева и справа одна и та же")),
        (pasted(alone="-99"), ("The sign is wrong", "Знак не тот")),
        (pasted(alone="100"), ("the value of its own turn", "оценка собственного хода")),
        (pasted(alone="98"), ("gap_of_A = 98", "gap_of_A = 98")),
    ],
    "ex-telescoping-shaping": [
        (critic_error("potential - value"), RIGHT),
        (critic_error("missing"), ("raises NameError", "прерывается: NameError")),
        (critic_error("None"), ("no number, but None", "не число, а None")),
        (critic_error("0"), ("the potential is the value already", "уже равен ценности")),
        (critic_error("-value"), ("the error without shaping", "ошибка без формирования")),
        (critic_error("potential"), ("to which shaping with 0 amounts", "к которому сводится формирование")),
        (critic_error("value - potential"), ("The sign is wrong", "Знак не тот")),
        (critic_error("value + potential"), ("V^pi = 1/2, Phi = 1/5", "V^pi = 1/2, Phi = 1/5")),
        (critic_error("potential - value", "..."), ("still missing", "ещё нет")),
        (critic_error("potential - value", "1"), ("bias_at_one = 1", "bias_at_one = 1")),
    ],
    "ex-telescoping-best": [
        (best_lambda("e**2 / (e**2 + v / K)"), RIGHT),
        (best_lambda("K * e * e / (K * e * e + v)"), RIGHT),
        (
            "def best_lambda(e, v, K):\n    low, high = 0.0, 1.0\n"
            "    square = lambda x: (1 - x) ** 2 * e**2 + x**2 * v / K\n"
            "    for _ in range(100):\n        left, right = (2 * low + high) / 3, (low + 2 * high) / 3\n"
            "        low, high = (low, right) if square(left) < square(right) else (left, high)\n"
            "    return low",
            RIGHT,
        ),
        (best_lambda("missing"), ("raises NameError", "прерывается: NameError")),
        (best_lambda("None"), ("no number, but None", "не число, а None")),
        (best_lambda("e**2 / (e**2 + v)"), ("right for one estimate", "верно для одной оценки")),
        (best_lambda("e**2 / (e**2 + K * v)"), ("averaging lowers the noise", "усреднение снижает шум")),
        (best_lambda("v / K / (e**2 + v / K)"), ("This is 1 - lambda", "Это 1 - λ")),
        (best_lambda("e / (e + v / K)"), ("with its square", "своим квадратом")),
        (best_lambda("1 / 2"), ("e = 1/6, v = 2/9, K = 4", "e = 1/6, v = 2/9, K = 4")),
    ],
    "ex-telescoping-token-gradient": [
        (payoff("[0, 1, 1, 0]", "F(9, 160)"), RIGHT),
        (payoff("[0, 0, 0, 0]", "0.05625"), RIGHT),
        (payoff("[0, 0, 0, 1]", "3 / 32 * (0.6 - 2 / 3)"), RIGHT),
        (payoff("[0, 0, 0]", "0"), ("each of the four pairs", "каждой из четырёх пар")),
        (payoff("[0.3, 0.3, 0.9, 0.9]", "0"), ("tells the truth", "говорит правду")),
        (payoff("[0, 1, 1, 0]", "..."), ("The reward will do", "Награда подходит")),
        (payoff("[0, 1, 1, 0]", "0"), ("the gradients differ", "градиенты различаются")),
        (payoff("[0, 1, 1, 0]", "-9 / 160"), ("The sign is wrong", "Знак не тот")),
        (payoff("[0, 1, 1, 0]", "9 / 80"), ("half of the reward only", "лишь половину награды")),
        (payoff("[0, 1, 1, 0]", "0.3"), ("difference of the two signals", "разность двух сигналов")),
        (payoff("[0, 1, 1, 0]", "1"), ("difference = 1.000000", "difference = 1.000000")),
    ],
    "ex-telescoping-lookahead": [
        ("far_sight, ten = '0.95', None", ("two numbers", "нужны два числа")),
        ("far_sight = F(19, 20)\nten = 20 * (1 - far_sight**10)", RIGHT),
        ("far_sight = 0.95\nten = 8.03", RIGHT),
        ("far_sight = F(1, 20)\nten = 8", ("1 - lambda: the share", "1 - λ: доля")),
        ("far_sight = F(9, 10)\nten = 8", ("lambda = 9/10", "λ = 9/10")),
        ("far_sight = F(19, 20)\nten = 20", ("further than ten turns", "дальше десяти ходов")),
        ("far_sight = F(19, 20)\nten = 10", ("the farthest", "самое дальнее")),
        ("far_sight = F(19, 20)\nten = 5", ("ten = 5.0000", "ten = 5.0000")),
    ],
    "ex-telescoping-durations": [
        ("one, hasty = 0.2103, None", ("two numbers", "нужны два числа")),
        ("one, hasty = F(2103, 10_000), F(33, 100)", RIGHT),
        ("one, hasty = F(33, 100), F(33, 100)", ("takes three units", "занимает три единицы")),
        ("one, hasty = F(1, 5) + F(9, 10) ** 4 * F(7, 10) - F(1, 2), 0", ("not four", "не на четыре")),
        ("one, hasty = 0, 0", ("one = 0.0000", "one = 0.0000")),
        ("one, hasty = F(2103, 10_000), 0", ("hasty = 0.0000", "hasty = 0.0000")),
    ],
}
