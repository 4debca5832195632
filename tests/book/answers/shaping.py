"""Answers to the exercises of the chapter ``shaping`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers


def log(a: str = "A1", b: str = "A2", c: str = "A3", kept: str = "F(1, 2)") -> str:
    return f"dropped = {[a, b, c]!r}\nkept = {kept}"


def ends(win: str = "0", lose: str = "F(3, 5)", limit: str = "F(5, 9)") -> str:
    return f"at_win, at_lose, limit = {win}, {lose}, {limit}"


def weights(fails: str = "4 / 3 / 0.99", waits: str = "4 / 3 / 0.99**5") -> str:
    return f"fails, waits = {fails}, {waits}"


def fading(value: str, safe: str = "[True, False, True]") -> str:
    return f"safe = {safe}\n\n\ndef left_over(weights, levels, gamma):\n    return {value}"


def summed(term: str) -> str:
    return fading(f"sum({term} for t in range(1, len(levels) - 1))")


def group(
    scores: str = "[0, 0, -0.5, -0.5]",
    bare: str = "[0.25, 0.25, -0.25, -0.25]",
    scaled: str = "[1, 1, -1, -1]",
    repaired: str = "[0] * 4",
) -> str:
    return f"group, bare = {scores}, {bare}\nscaled, repaired = {scaled}, {repaired}"


def perfect(gap: str = "0.01 * 0.99**3", margin: str = "0.01 * 0.99**2") -> str:
    return f"gap, margin = {gap}, {margin}"


def whose(
    discount: str = "F(9, 10)", culprit: str = '("c", "b")', trip: str = "F(13, 40) - F(99, 100) * F(3, 10)"
) -> str:
    return f"discount, culprit = {discount}, {culprit}\nround_trip = {trip}"


def one_weight(errors: str = "[F(1, 2), F(1, 4)]", plain: str = "0", critic: str = "[0, F(1, 2)]") -> str:
    return f"shaped_errors, plain_first = {errors}, {plain}\nas_plain = {critic}"


WRONG: Answers = {
    "ex-shaping-log": [
        (log(), RIGHT),
        (log(kept="0.4851 / 0.99**3"), RIGHT),
        (log("first"), ("names three assumptions", "dropped — три предположения")),
        (log("A2"), ("the ends are in order", "с концами всё в порядке")),
        (log("A3"), ("Another discount would show on every", "Другой дисконт был бы виден на каждом")),
        (log("A4"), ("(a) Not A4", "(а) Не A4")),
        (log(b="A1"), ("is no level of this room", "не уровень этой комнаты")),
        (log(b="A3"), ("would pay for the way", "платил бы за путь")),
        (log(b="A6"), ("(b) Not A6", "(б) Не A6")),
        (log(c="A2"), ("over a longer episode", "у длинного эпизода")),
        (log(c="A1"), ("Here every turn adds something", "Здесь же что-то прибавляет каждый")),
        (log(c="A5"), ("(c) Not A5", "(в) Не A5")),
        (log(kept="None"), ("kept is still empty", "kept ещё не задано")),
        (log(kept="0.4851"), ("what the log shows", "число из журнала")),
        (log(kept="0.49"), ("The power of gamma", "Степень gamma не та")),
        (log(kept="1"), ("kept = 1.0000", "kept = 1.0000")),
    ],
    "ex-shaping-kept": [
        (ends(), RIGHT),
        (ends("0.0", "0.54 / 0.9", "0.5 / 0.9"), RIGHT),
        (ends(limit="0.556"), RIGHT),
        (ends("None"), ("Three numbers", "Нужны три числа")),
        (ends("0.6", "0"), ("in the order win, lose", "в порядке «выигрыш, проигрыш»")),
        (ends("0.5"), ("at_win = 0.5000", "at_win = 0.5000")),
        (ends(lose="0.54"), ("the discount of one turn", "с дисконтом за один ход")),
        (ends(lose="0.5"), ("at_lose = 0.5000", "at_lose = 0.5000")),
        (ends(limit="0.5"), ("losing pays 0.45", "проигрыш приносит 0.45")),
        (ends(limit="0.45"), ("Divide, and do not multiply", "Делите, а не умножайте")),
        (ends(limit="1"), ("limit = 1.0000", "limit = 1.0000")),
    ],
    "ex-shaping-weight": [
        (weights(), RIGHT),
        (weights("1.3468", "1.4020"), RIGHT),
        (weights("None"), ("Two weights", "Нужны два веса")),
        (weights("4 / 3"), ("with one gamma more", "ещё с одной gamma")),
        (weights("4 / 3 * 0.99"), ("Divide by gamma", "Делите на gamma")),
        (weights("2 / 0.99"), ("with the key in hand", "с ключом в руке")),
        (weights("4 / 3 / 0.99**4"), ("The success is discounted too", "Успех тоже дисконтируется")),
        (weights("1"), ("fails = 1.0000", "fails = 1.0000")),
        (weights(waits="4 / 3 / 0.99"), ("Waiting costs discount", "За ожидание платят")),
        (weights(waits="4 / 3 / 0.99**4"), ("is Phi_8", "это Phi_8")),
        (weights(waits="4 / 3 / 0.99**8"), ("The success is discounted too", "Успех тоже дисконтируется")),
        (weights(waits="1"), ("waits = 1.0000", "waits = 1.0000")),
    ],
    "ex-shaping-clipped": [
        ("right_key, wrong_key = 1, -1", RIGHT),
        ("right_key, wrong_key = '+1', '-1'", ("Two numbers", "Нужны два числа")),
        ("right_key, wrong_key = 0, 0", ("three signs", "три знака")),
        ("right_key, wrong_key = 2, 0", ("The failure pays as well", "Добавка есть и у неудачи")),
        ("right_key, wrong_key = -1, 0", ("right_key = -1", "right_key = -1")),
        ("right_key, wrong_key = 1, 1", ("brings nobody nearer", "ни к чему не приближает")),
        ("right_key, wrong_key = 1, 0", ("where it was", "потенциал прежним")),
        ("right_key, wrong_key = 1, -2", ("wrong_key = -2", "wrong_key = -2")),
    ],
    "ex-shaping-fading": [
        (summed("gamma**t * (weights[t - 1] - weights[t]) * levels[t]"), RIGHT),
        (
            fading(
                "weights[0] * levels[0] + sum(gamma**t * weights[t] * (gamma * levels[t + 1] - levels[t])"
                " for t in range(len(levels) - 1))"
            ),
            RIGHT,
        ),
        (fading("0", "[True, False]"), ("three times", "три раза")),
        (fading("0", "[False, False, True]"), ("(a) Within an episode", "(а) Внутри эпизода")),
        (fading("0", "[True, True, True]"), ("(b) The next potential", "(б) Следующий потенциал")),
        (fading("0", "[True, False, False]"), ("(c) Call the product", "(в) Назовите произведение")),
        (fading("missing"), ("raises NameError", "прерывается: NameError")),
        (fading("None"), ("no number, but None", "не число, а None")),
        (fading("0"), ("what is left in (c)", "остаётся в случае (в)")),
        (
            fading("sum(gamma**t * weights[t] * (gamma * levels[t + 1] - levels[t]) for t in range(len(levels) - 1))"),
            ("the whole sum", "вся сумма добавок"),
        ),
        (summed("gamma**t * (weights[t] - weights[t - 1]) * levels[t]"), ("The sign is wrong", "Знак не тот")),
        (summed("(weights[t - 1] - weights[t]) * levels[t]"), ("The discount is missing", "Пропал дисконт")),
        (
            summed("gamma ** (t - 1) * (weights[t - 1] - weights[t]) * levels[t]"),
            ("One power of gamma is missing", "Не хватает одной степени gamma"),
        ),
        (
            summed("gamma**t * (weights[t] - weights[t + 1]) * levels[t]"),
            ("one turn too late", "на ход позже"),
        ),
        (summed("gamma**t * levels[t]"), ("For w = 1, 2/3", "При w = 1, 2/3")),
    ],
    "ex-shaping-group": [
        (group(), RIGHT),
        (group("(0, 0, F(-1, 2), F(-1, 2))"), RIGHT),
        (group("None"), ("Four lists", "четыре списка")),
        (group("[0] * 4"), ("is not the reward", "не награда")),
        (group("[0, 0, 0.5, 0.5]"), ("The sign is wrong", "Знак не тот")),
        (group("[1, 1, 0.5, 0.5]"), ("group = [1, 1", "group = [1, 1")),
        (group(bare="[0, 0, -0.5, -0.5]"), ("These are the scores", "Это сами оценки")),
        (group(bare="[0.5, 0.5, -0.5, -0.5]"), ("bare = [0.5", "bare = [0.5")),
        (group(scaled="[x * 3**0.5 / 2 for x in (1, 1, -1, -1)]"), ("has the divisor 3", "делитель 3")),
        (group(scaled="[0.25, 0.25, -0.25, -0.25]"), ("Nothing has been divided", "ничего не делили")),
        (group(scaled="[2, 2, -2, -2]"), ("scaled = [2", "scaled = [2")),
        (group(repaired="[0, 0, -1, -1]"), ("twice", "вычтен дважды")),
        (group(repaired="[1, 1, -1, -1]"), ("repaired = [1", "repaired = [1")),
    ],
    "ex-shaping-perfect": [
        (perfect(), RIGHT),
        (perfect("0.009703", "0.009801"), RIGHT),
        (perfect("None"), ("gap and margin", "gap и margin")),
        (perfect("0.01"), ("before the open door", "перед открытой дверью")),
        (perfect("0.01 * 0.99**4"), ("One power of gamma too many", "Лишняя степень gamma")),
        (perfect("0.01 * 0.99**2"), ("after the clue", "после подсказки")),
        (perfect("0.1"), ("gap = 0.1000000", "gap = 0.1000000")),
        (perfect(margin="0.01 * 0.99**3"), ("is discounted before", "его дисконтируют")),
        (perfect(margin="0.01 * 0.99**4"), ("Divide by gamma", "Делите на gamma")),
        (perfect(margin="0.1"), ("margin = 0.1000000", "margin = 0.1000000")),
    ],
    "ex-shaping-discount": [
        (whose(), RIGHT),
        (whose("0.9", '("b", "c")', "0.028"), RIGHT),
        (whose("None"), ("are numbers", "— числа")),
        (whose("0.8"), ("to the other side", "перенесите Phi(a)")),
        (whose("0.99"), ("discount = 0.9900", "discount = 0.9900")),
        (whose(culprit='"c -> b"'), ("as a pair of names", "в виде пары имён")),
        (whose(culprit='("a", "b")'), ("a discount above 1", "дисконта больше 1")),
        (whose(trip="0.025"), ("adds the two bonuses", "просто сложены")),
        (whose(trip="0.325 - 0.9 * 0.3"), ("with the program's number", "взят дисконт программы")),
        (whose(trip="(0.99**2 - 1) / 2"), ("what a potential would pay", "заплатил бы потенциал")),
        (whose(trip="1"), ("round_trip = 1.0000", "round_trip = 1.0000")),
    ],
    "ex-shaping-features": [
        (one_weight(), RIGHT),
        (one_weight("(0.5, 0.25)", "0.0", "(0, 0.5)"), RIGHT),
        (one_weight("None"), ("lists of two numbers", "списки из двух чисел")),
        (one_weight("[0, 0.25]"), ("First error: 0", "Первая ошибка: 0")),
        (one_weight("[0.5, 0.5]"), ("has moved the one weight", "сдвинуло единственный вес")),
        (one_weight("[0.5, 0.75]"), ("gets its bonus as well", "тоже получает добавку")),
        (one_weight("[0.5, 1]"), ("Second error: 1", "Вторая ошибка: 1")),
        (one_weight(plain="None"), ("plain_first is still empty", "plain_first ещё не задано")),
        (one_weight(plain="0.5"), ("plain_first = 0.5", "plain_first = 0.5")),
        (one_weight(critic="[0, -0.5]"), ("The sign is wrong", "Знак не тот")),
        (one_weight(critic="[0, 0]"), ("what w = 0 says", "Это и есть w = 0")),
        (one_weight(critic="[0.5, 0.5]"), ("as_plain = [0.5", "as_plain = [0.5")),
    ],
    "ex-shaping-exchange": [
        ("right_round = one_round = up_round = None", ("three numbers", "нужны три числа")),
        (
            "g = F(99, 100)\nright_round = (g**2 - 1) / 2\none_round = (g - 1) / 4\nup_round = g * (g / 2 - F(1, 4))",
            RIGHT,
        ),
        (
            "g = F(99, 100)\nright_round = g / 4 - F(1, 2) + g / 2 - F(1, 4)\none_round = up_round = 0",
            ("(a) This adds", "(а) Здесь сложены"),
        ),
        ("right_round = one_round = up_round = 0", ("(a) 0.000000", "(а) 0.000000")),
        ("g = F(99, 100)\nright_round = (g**2 - 1) / 2\none_round = up_round = 0", ("(b) The two", "(б) Добавки")),
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
        ("durations, levels, terms = [2, 3, 1], [F(0)] * 4, None", ("three macro-actions", "трёх макродействий")),
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
        ("terms = [0.9 * 0.25 - 0.2, 0.9 * 0.5 - 0.25, -0.5]", ("are overpaid", "переплачивают")),
        (
            "levels = [F(1, 5), F(1, 4), F(1, 2), F(0)]\ndurations, g, e = [2, 3, 1], F(9, 10), [0, 2, 5, 6]\n"
            "terms = [g ** e[k + 1] * levels[k + 1] - g ** e[k] * levels[k] for k in range(3)]",
            ("Bonus 1: the return", "Добавка 1: за прошедшее"),
        ),
        (
            "levels = [F(1, 5), F(1, 4), F(1, 2), F(0)]\ndurations, terms = [2, 3, 1], [F(0)] * 3",
            ("Bonus 0: 0", "Добавка 0: 0"),
        ),
    ],
}
