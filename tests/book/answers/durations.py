"""Answers to the exercises of the chapter ``durations`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers


def watchdog(value: str) -> str:
    return f"gamma = F(9, 10)\ndef with_watchdog(w):\n    return {value}"


def programs(*words: str) -> str:
    return f"programs = {list(words)}"


def frames(frame: str = "0.99**0.25", ratio: str = "4 * (1 - 0.99**0.25) / 0.01") -> str:
    return f"frame = {frame}\nratio = {ratio}"


def door(value: str = "(g**a + g ** (a + b)) / 2 * g**2", best: str = '["red", "blue", "either"]') -> str:
    return f"g = F(99, 100)\ndef red_first(a, b):\n    return {value}\nbest = {best}"


def decay(left: str = "0.95**200", token: str = "0.95 ** (1 / 200)", turn: str = "0.95**5") -> str:
    return f"left = {left}\nper_token = {token}\nlong_turn = {turn}"


def lottery(
    discount: str = "[g**10, (g + g**19) / 2]", price: str = "[F(9, 10)] * 2", deadline: str = "[1, F(1, 2)]"
) -> str:
    return f"g = F(99, 100)\nby_discount = {discount}\nby_price = {price}\nby_deadline = {deadline}"


def zero(rate: str = "beta ** (1 / J)", solutions: str = '["one", "many", "none"]') -> str:
    return f"def rate(beta, J):\n    return {rate}\nsolutions = {solutions}"


def inside(memoryless: str = "F(9, 14)", larger: str = "F(14, 9)", fixed: str = "g ** (6 - c)") -> str:
    numbers = f"u_memoryless = {memoryless}\nv_too_large = {larger}"
    return f"g = F(9, 10)\n{numbers}\ndef u_fixed(c):\n    return {fixed}"


def exponential(exact: str = "mu / (mu + beta)", by_mean: str = "exp(-beta / mu)", z: str = "0.53") -> str:
    return f"from math import exp\nmu, beta = 0.5, 0.2\nexact = {exact}\nby_mean = {by_mean}\nz = {z}"


def price(discount: str = "[(h, 9, 1), (h, 50, 0)]", other: str = "[(h, 10, 1), (h, 1, 0)]") -> str:
    return f"h = F(1, 2)\ndiscount_prefers = {discount}\nprice_prefers = {other}"


WRONG: Answers = {
    "ex-durations-fingerprints": [
        (programs("start", "last", "after", "decision", "none"), RIGHT),
        (programs("start"), ("Five words", "пять слов")),
        (programs("start", "last", "after", "decision", "zero"), ("'zero' is none", "'zero' — не из")),
        (
            programs("start", "after", "last", "decision", "none"),
            ("0.6561 is not what 'after' gives", "0.6561 — это не 'after'"),
        ),
        (
            programs("decision", "last", "after", "start", "none"),
            ("0.81 is not what 'decision' gives", "0.81 — это не 'decision'"),
        ),
    ],
    "ex-durations-half-life": [
        ("half_life = log(2) / log(1 / 0.95) / 400\nper_token = 0.95 ** (1 / 400)", RIGHT),
        ("half_life = 0.034\nper_token = 0.999872", RIGHT),
        ("half_life = per_token = None", ("by numbers", "числами")),
        ("half_life = log(2) / log(1 / 0.95)\nper_token = 1", ("half-life in tokens", "период в токенах")),
        ("half_life = 0.033\nper_token = 1", ("half_life = 0.033", "half_life = 0.033")),
        ("half_life = 20\nper_token = 1", ("half_life = 20", "half_life = 20")),
        ("half_life = log(2) / log(1 / 0.95) / 400\nper_token = 0.95**400", ("the other way round", "обратное")),
        ("half_life = log(2) / log(1 / 0.95) / 400\nper_token = 1 - 0.05 / 400", ("are multiplied", "перемножаются")),
        ("half_life = log(2) / log(1 / 0.95) / 400\nper_token = 0.99", ("per_token = 0.99", "per_token = 0.99")),
    ],
    "ex-durations-frames": [
        (frames(), RIGHT),
        (frames(frame="0.997491", ratio="1.00377"), RIGHT),
        (frames(ratio="'4'"), ("Two numbers", "два числа")),
        (frames(frame="0.99**4"), ("four decisions count", "четыре решения")),
        (frames(frame="1 - 0.01 / 4"), ("dividing the loss by four", "разделить потерю на четыре")),
        (frames(frame="0.99"), ("its fourth power is 0.960596", "его четвёртая степень 0.960596")),
        (frames(ratio="0.01 / (4 * (1 - 0.99**0.25))"), ("the other way round", "наоборот")),
        (frames(ratio="0.99 ** (-3 / 4)"), ("the bound of the proposition", "граница из предложения")),
        (frames(ratio="4"), ("only one decision", "решение одно")),
        (frames(ratio="1"), ("three are added", "три складывают")),
        (frames(ratio="2"), ("ratio = 2.00000", "ratio = 2.00000")),
    ],
    "ex-durations-hang": [
        (watchdog("F(9, 10) * gamma**2 / (1 - F(1, 10) * gamma**w)"), RIGHT),
        (f"discount, got, once = 1, 10, 0.729\n{watchdog('once * discount / (1 - gamma**w / got)')}", RIGHT),
        (watchdog("F(9, 10) * gamma**2"), ("without a watchdog", "без сторожа")),
        (watchdog("gamma**2"), ("always answered", "всегда отвечал")),
        (watchdog("gamma**2 * F(9, 10) / (1 - F(1, 10))"), ("always answered", "всегда отвечал")),
        (watchdog("w[0]"), ("stops with TypeError", "прерывается: TypeError")),
        (watchdog("gamma ** (2 * F(9, 10) + w * F(1, 10))"), ("w = 5: 0.784798", "w = 5: 0.784798")),
        (watchdog("F(9, 10) * gamma**2 + F(1, 10) * gamma**w"), ("w = 5: 0.788049", "w = 5: 0.788049")),
        (watchdog("F(1, 2)"), ("w = 5: 0.500000", "w = 5: 0.500000")),
    ],
    "ex-durations-door": [
        (door(), RIGHT),
        (door(value="0.99**2 * (0.99**a + 0.99 ** (a + b)) / 2"), RIGHT),
        (door(value="a[0]"), ("stops with TypeError", "прерывается: TypeError")),
        (door(value="None"), ("returns None", "возвращает None")),
        (door(value="(g**a + g ** (a + b)) / 2"), ("looks and takes a key", "осматривается и берёт ключ")),
        (door(value="(g**a + g ** (a + b)) / 2 * g**3"), ("here `finish` takes time", "здесь `finish` занимает")),
        (door(value="(g**b + g ** (a + b)) / 2 * g**2"), ("the blue door first", "если начать с синей двери")),
        (door(value="(g**a + g**b) / 2 * g**2"), ("is spent as well", "уже потрачено")),
        (door(value="0.99 ** (a + b / 2 + 2)"), ("discount of the mean time", "дисконт среднего времени")),
        (door(value="1"), ("red_first(1, 4): 1.000000", "red_first(1, 4): 1.000000")),
        (door(best="[]"), ("three words", "три слова")),
        (door(best="['red', 'green', 'blue']"), ("By tokens: 'green' is none", "По токенам: 'green' — не")),
        (door(best="['blue', 'blue', 'either']"), ("By seconds: compare", "По секундам: сравните")),
        (door(best="['red', 'blue', 'red']"), ("By turns: compare", "По ходам: сравните")),
    ],
    "ex-durations-lambda": [
        (decay(), RIGHT),
        (decay(left="3.5e-5", token="0.999744", turn="0.774"), RIGHT),
        (decay(turn="None"), ("Three numbers", "три числа")),
        (decay(left="0.95"), ("if lambda counts turns", "если λ считает ходы")),
        (decay(left="0.95 / 200"), ("not divided up", "а не делятся")),
        (decay(left="0.5"), ("left = 5.00e-01", "left = 5.00e-01")),
        (decay(token="0.95**200"), ("the other direction", "в другую сторону")),
        (decay(token="1 - 0.05 / 200"), ("dividing the loss by 200", "разделить потерю на 200")),
        (decay(token="190"), ("per_token = 190.000000", "per_token = 190.000000")),
        (decay(token="0.99"), ("200 such factors", "200 таких множителей")),
        (decay(turn="0.95"), ("five times as many tokens", "токенов впятеро")),
        (decay(turn="0.75"), ("five factors of 0.95", "пять множителей 0.95")),
        (decay(turn="0.95**0.2"), ("a turn of 40 tokens", "ход в 40 токенов")),
        (decay(turn="0.5"), ("long_turn = 0.5000", "long_turn = 0.5000")),
    ],
    "ex-durations-lottery": [
        (lottery(), RIGHT),
        (lottery(discount="[0.904382, 0.908084]", price="[0.9, 0.9]"), RIGHT),
        (lottery(discount="[0.9044, 0.9081]"), RIGHT),
        (lottery(price="0.9"), ("Three pairs of numbers", "три пары чисел")),
        (lottery(discount="[g**9, 0]"), ("by_discount, A: 0.91352", "by_discount, A: 0.91352")),
        (lottery(discount="[g**10, g**10]"), ("discount of the mean duration", "дисконт средней длительности")),
        (lottery(discount="[g**10, g + g**19]"), ("the probability one half", "половина")),
        (lottery(discount="[g**10, g]"), ("by_discount, B: 0.99000", "by_discount, B: 0.99000")),
        (lottery(price="[F(1, 10), F(1, 10)]"), ("The reward of 1 is paid besides", "Но есть ещё награда 1")),
        (lottery(price="[F(9, 10), 1]"), ("by_price, B: 1.0000", "by_price, B: 1.0000")),
        (lottery(deadline="[0, 0]"), ("Is A ever late", "Опаздывает ли A")),
        (lottery(deadline="[1, 1]"), ("one of the two is not", "одна из двух — нет")),
        (lottery(deadline="[1, 0]"), ("at most 15", "не больше 15")),
    ],
    "ex-durations-zero": [
        (zero(), RIGHT),
        (zero(rate="float(beta) ** (1 / J)", solutions='("one", "many", "none")'), RIGHT),
        (zero(rate="beta[J]"), ("stops with TypeError", "прерывается: TypeError")),
        (zero(rate="None"), ("returns None", "возвращает None")),
        (zero(rate="beta"), ("3 backups together", "J применений сразу, J = 3")),
        (zero(rate="beta**J"), ("if every step took time", "каждый шаг")),
        (zero(rate="1 - (1 - beta) / J"), ("dividing the loss by J", "разделить потерю на J")),
        (zero(rate="beta / J"), ("rate(9/10, 3): 0.30000", "rate(9/10, 3): 0.30000")),
        (zero(solutions="[]"), ("three words", "три слова")),
        (zero(solutions='["one", "two", "none"]'), ("Case 2: 'two' is none", "Случай 2: 'two' — не")),
        (zero(solutions='["many", "many", "none"]'), ("V = 1 + 9/10 V", "V = 1 + 9/10 V")),
        (zero(solutions='["one", "one", "none"]'), ("two values are equal", "две ценности равны")),
        (zero(solutions='["one", "many", "many"]'), ("V = 2 + V", "V = 2 + V")),
    ],
    "ex-durations-inside": [
        (inside(), RIGHT),
        (inside(memoryless="0.18 / 0.28", larger="0.28 / 0.18", fixed="0.9 ** (6 - c)"), RIGHT),
        (inside(memoryless="0.6429", larger="1.5556"), RIGHT),
        (inside(larger="None"), ("are to be numbers", "должны быть числами")),
        (inside(memoryless="g**5"), ("with the mean duration", "дисконт средней длительности")),
        (inside(memoryless="F(9, 14) / g"), ("in which the call ends", "вызов заканчивается")),
        (inside(memoryless="g / 5"), ("The others go on", "Остальные идут дальше")),
        (inside(memoryless="1"), ("u_memoryless = 1.0000", "u_memoryless = 1.0000")),
        (inside(larger="F(9, 14)"), ("v over U", "v делят на U")),
        (inside(larger="2"), ("v_too_large = 2.0000", "v_too_large = 2.0000")),
        (inside(fixed="c[0]"), ("stops with TypeError", "прерывается: TypeError")),
        (inside(fixed="None"), ("returns None", "возвращает None")),
        (inside(fixed="g**6"), ("this is V(s)", "это V(s)")),
        (inside(fixed="1"), ("this is v, as if", "это v, будто")),
        (inside(fixed="g**c"), ("does not count any more", "уже не в счёт")),
        (inside(fixed="g**2"), ("u_fixed(1) = 0.8100", "u_fixed(1) = 0.8100")),
    ],
    "ex-durations-exponential": [
        (exponential(), RIGHT),
        (exponential(exact="F(5, 7)", by_mean="0.6703", z="0.532"), RIGHT),
        ("import math\nexact, by_mean, z = 0.7143, math.exp(-0.4), 0.53", RIGHT),
        (exponential(z="None"), ("Three numbers", "три числа")),
        (exponential(exact="beta / (mu + beta)"), ("dead before the call", "не доживёт")),
        (
            exponential(exact="exp(-beta / mu)"),
            ("exact: this is the discount of the mean", "exact: это дисконт средней"),
        ),
        (exponential(exact="1 / (mu + beta)"), ("factor mu is missing", "множитель mu потерян")),
        (exponential(exact="0.5"), ("exact = 0.5000", "exact = 0.5000")),
        (exponential(by_mean="exp(-beta * mu)"), ("mu is a rate", "mu — это интенсивность")),
        (exponential(by_mean="0.5"), ("by_mean = 0.5000", "by_mean = 0.5000")),
        (exponential(z="0.2**0.5"), ("the beginning of the series", "начало ряда")),
        (exponential(z="0.4"), ("z = 0.400", "z = 0.400")),
        (exponential(z="-1000"), ("z = -1000.000", "z = -1000.000")),
    ],
    "ex-durations-price": [
        (price(), RIGHT),
        (price(discount="[(0.5, 1, 2), (0.5, 9, 0)]", other="[(1, 2, 1)]"), RIGHT),
        (price(discount="[(F(1, 4), 5, 1), (F(1, 4), 15, 1), (h, 50, 0)]"), RIGHT),
        (price(discount="[(h, 10, 1), (h, 50, 0)]"), ("5.000 and 5.000", "5.000 и 5.000")),
        (price(discount="[(1, 2)]"), ("discount_prefers is still empty", "discount_prefers ещё пуст")),
        (price(other="[(h, -1, 1), (h, 1, 0)]"), ("are not negative", "неотрицательны")),
        (price(other="[(h, 10, 1)]"), ("probabilities sum to 1/2", "сумма вероятностей равна 1/2")),
        (price(other="[(1, 10, 1)]"), ("are 0.500 and 1.000", "награды 0.500 и 1.000")),
        (price(discount="[(h, 10, 1), (h, 1, 0)]", other="[(h, 9, 1), (h, 50, 0)]"), ("exchanged", "перепутаны")),
        (price(discount="[(h, 11, 1), (h, 50, 0)]"), ("needs less.", "Дисконт берёт за время")),
        (price(discount="[(h, 9, 1), (h, 0, 0)]"), ("Where can time pass", "Где время может идти")),
    ],
}
