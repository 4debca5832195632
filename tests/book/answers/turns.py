"""Answers to the exercises of the chapter ``turns`` that have a check; see the folder's ``__init__``."""

from __future__ import annotations

from tests.book.answers import RIGHT, Answers


def lists(by_sums: str = "exp(0.4)", by_zip: str = "1", sums: str = "True", by_pairs: str = "False") -> str:
    return f'by_sums = {by_sums}\nby_zip = {by_zip}\ntest_finds = {{"sums": {sums}, "zip": {by_pairs}}}'


def kept(mass: str = "0.95", side: str = '"engine"') -> str:
    return f"kept_mass = {mass}\nside = {side}"


WIDTH = """
def turn_interval(n):
    return TURN

def root_interval(n):
    return ROOT
"""


def width(turn: str = "(1 - 3e-4) ** n, (1 + 4e-4) ** n", root: str = "0.8 ** (1 / n), 1.2 ** (1 / n)") -> str:
    return WIDTH.replace("TURN", turn).replace("ROOT", root)


BELOW = """
up, down = log(14 / 10), log(86 / 90)
mu = [comb(1000, k) * 0.1**k * 0.9 ** (1000 - k) for k in range(1001)]
w = [exp(k * up + (1000 - k) * down) for k in range(1001)]
pi = [a * b for a, b in zip(mu, w)]
start = min(k for k in range(1001) if w[k] >= 1)
tail = min(k for k in range(1001) if sum(mu[k:]) < 1e-3)
above = ABOVE
carried = CARRIED
below = LESS
"""


def below(above: str = "sum(mu[start:])", carried: str = "sum(pi[tail:])", less: str = "261") -> str:
    return BELOW.replace("ABOVE", above).replace("CARRIED", carried).replace("LESS", less)


def deflated(v: str = "16.4", spread: str = "0.043") -> str:
    return f"v = {v}\ntoken_spread = {spread}"


def bounds(least: str = "F(1)", most: str = "F(47, 30)", is_bound: str = "False") -> str:
    return f"least, most = {least}, {most}\nis_bound = {is_bound}"


PREFIX = """
second = mean(lambda x: rho[x] ** 2, right_key)
moment = mean(lambda x: rho[x] ** 2)
def variance_of(turns):
    VALUE
"""


def prefix(value: str) -> str:
    return PREFIX.replace("VALUE", value)


SCORE = """
y = list(before)[0]
p = sum(before[x] for x in before if "inspect" in x)
string = {x: ("inspect" in x) * ((x == y) - before[y]) for x in before}
act = {x: ("inspect" in x) * (before[y] / p - before[y]) for x in before}
m = sum(before[x] * string[x] for x in before)
strings, actions = (sum(before[x] * s[x] ** 2 for x in before) for s in (string, act))
mean_score = MEAN
var_string = STRING
var_action = ACTION
"""


def score(mean: str = "m", string: str = "strings - m**2", action: str = "actions - m**2") -> str:
    return SCORE.replace("MEAN", mean).replace("STRING", string).replace("ACTION", action)


def grammar(local: str = "F(1, 21)", given: str = "plain / valid", equal: str = "F(6, 7)") -> str:
    start = 'plain = now["hm", "pickup", "red"]\nvalid = 1 - sum(now[x] for x in now if x[-1] == "green")\n'
    return f"{start}token_by_token = {local}\ngiven_valid = {given}\nequal_weights = {equal}"


DRIFT = """
def psi(z):
    return (exp(z) - 1 - z) / z**2

a, b = log(0.86 / 0.90), log(0.14 / 0.10)
kl = -(0.9 * a + 0.1 * b)
v = 0.9 * (a + kl) ** 2 + 0.1 * (b + kl) ** 2
kl_pi = 0.86 * a + 0.14 * b
v_pi = 0.86 * (a - kl_pi) ** 2 + 0.14 * (b - kl_pi) ** 2
kl_back = KL
lowest, highest = LOW, HIGH
"""


def drift(kl: str = "kl", low: str = "v * psi(a - b)", high: str = "v * psi(b - a)") -> str:
    return DRIFT.replace("KL", kl).replace("LOW", low).replace("HIGH", high)


WRONG: Answers = {
    "ex-turns-log": [
        ("found = [F(2), F(9, 8)]", RIGHT),
        ("found = [F(1), F(1), F(1)]", ("3 cannot be the number", "не может быть 3")),
        ("found = [F(25, 32), F(25, 32)]", ("25/16; it should be the one", "25/16; она должна равняться тому")),
        ("found = [F(1), F(1)]", ("your ratios is 2", "ваших отношений — 2")),
        ("found = [F(3, 2), F(13, 8)]", ("the product 39/16", "произведение 39/16")),
        ("found = 2", ("or not of numbers", "в нём не числа")),
    ],
    "ex-turns-lists": [
        (lists(), RIGHT),
        (lists(by_sums="1.492", by_zip="F(1)"), RIGHT),
        (lists(by_zip="None"), ("Two ratios", "два отношения")),
        (lists(by_sums="0.4"), ("a difference of logarithms", "разность логарифмов")),
        (lists(by_sums="exp(-0.4)"), ("the other way round", "наоборот")),
        (lists(by_sums="1"), ("both lists are equally long", "списки одной длины")),
        (lists(by_sums="2"), ("by_sums = 2", "by_sums = 2")),
        (lists(by_zip="exp(0.4)"), ("the shorter list", "более короткого списка")),
        (lists(by_zip="0"), ("sum of the differences", "сумма разностей")),
        (lists(by_zip="2"), ("by_zip = 2", "by_zip = 2")),
        (lists(sums="1"), ("test_finds['sums'] is to be", "test_finds['sums'] должно быть")),
        (lists(sums="False"), ("the ratio is 1.492", "отношение 1.492")),
        (lists(by_pairs="True"), ("the ratio is 1.000", "отношение 1.000")),
    ],
    "ex-turns-kept": [
        (kept(), RIGHT),
        (kept(mass="0.773781 ** (1 / 5)"), RIGHT),
        (kept(mass='"top-p"'), ("is to be a number", "должно быть числом")),
        (kept(mass="log(0.773781) / 5"), ("the logarithm per token", "логарифм на токен")),
        (kept(mass="0.05"), ("was cut off", "отрезанная масса")),
        (kept(mass="0.773781"), ("a whole turn's factor", "множитель за весь ход")),
        (kept(mass="0.773781 / 5"), ("take a root", "извлеките корень")),
        (kept(mass="0.9"), ("five such tokens make 0.5905", "пять таких токенов дают 0.5905")),
        (kept(side='"vLLM"'), ("side is 'engine'", "side — это 'engine'")),
        (kept(side='"both"'), ("give 1 on every turn", "дают 1 на каждом ходу")),
        (kept(side='"trainer"'), ("would be above 1", "больше 1")),
    ],
    "ex-turns-width": [
        (width(), RIGHT),
        (width(turn="exp(n * log(1 - 3e-4)), exp(n * log(1 + 4e-4))"), RIGHT),
        (width(turn="1 / 0"), ("stops with ZeroDivisionError", "прерывается: ZeroDivisionError")),
        (width(root="None"), ("root_interval(100) returns None", "root_interval(100) возвращает None")),
        (width(root="1.2 ** (1 / n), 0.8 ** (1 / n)"), ("lower bound comes first", "сначала нижняя граница")),
        (width(turn="1 - 3e-4 * n, 1 + 4e-4 * n"), ("the widths are multiplied", "умножены отклонения")),
        (width(turn="(1 - 3e-4) ** (1 / n), (1 + 4e-4) ** (1 / n)"), ("a root is taken", "взят корень")),
        (width(turn="1 - 3e-4, 1 + 4e-4"), ("turn_interval(100) = 0.9997", "turn_interval(100) = 0.9997")),
        (width(root="1 - 0.2 / n, 1 + 0.2 / n"), ("but factors are multiplied", "но множители перемножаются")),
        (width(root="0.8**n, 1.2**n"), ("its n-th powers", "их n-е степени")),
    ],
    "ex-turns-below": [
        (below(), RIGHT),
        (below(above="0.022", carried="0.81", less="255"), RIGHT),
        (below(less="[]"), ("Three numbers", "три числа")),
        (below(above="sum(pi[start:])"), ("under pi", "при pi")),
        (below(above="sum(mu[:start])"), ("probability of rho < 1", "вероятность rho < 1")),
        (below(above="0.5"), ("half of the turns", "половина ходов")),
        (below(above="0.1"), ("above = 0.1000", "above = 0.1000")),
        (below(carried="sum(mu[tail:])"), ("how often these turns come", "как часто такие ходы")),
        (below(carried="sum(pi[tail - 1:])"), ("one number of rare tokens too many", "одно лишнее число")),
        (below(carried="0.5"), ("carried = 0.500", "carried = 0.500")),
        (below(less="294"), ("nearly every single turn", "почти у каждого отдельного хода")),
        (below(less="150"), ("below = 150: too few", "below = 150: слишком мало")),
    ],
    "ex-turns-deflated": [
        (deflated(), RIGHT),
        (deflated(v="None"), ("Two positive numbers", "два положительных числа")),
        (deflated(v="12.33"), ("only the turns below 2", "лишь ходы ниже 2")),
        (deflated(v="16.44**0.5"), ("the standard deviation of log rho", "среднеквадратичное отклонение log rho")),
        (deflated(v="10"), ("and the log has 0.0596", "а в журнале 0.0596")),
        (deflated(spread="16.4 / 9000"), ("a token's variance", "дисперсия на токен")),
        (deflated(spread="16.4**0.5 / 9000"), ("the variances add up", "складываются дисперсии")),
        (deflated(spread="16.4**0.5"), ("a whole episode", "за весь эпизод")),
        (deflated(spread="0.1"), ("token_spread = 0.1000", "token_spread = 0.1000")),
    ],
    "ex-turns-truncation": [
        ("truncated = sum(then[x] * min(rho[x], 3) for x in then if right_key(x))\nmasked = 0", RIGHT),
        ("truncated, masked = 0.2653, 0.0", RIGHT),
        ("truncated = masked = None", ("by numbers", "числами")),
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
    "ex-turns-bounds": [
        (bounds(), RIGHT),
        (bounds(least="1", most="1.567"), RIGHT),
        (bounds(least="None"), ("the lower bound and the upper one", "нижняя граница и верхняя")),
        (bounds(most="4 / 3"), ("quotient of the known numbers", "частное известных чисел")),
        (bounds(least="0.40 / 0.93 / (0.30 / 0.90)"), ("by the known mass", "на известную массу")),
        (bounds(most="0.47 / 0.40"), ("in both tables", "в обеих таблицах")),
        (bounds(least="2", most="1"), ("The lower bound comes first", "Сначала нижняя граница")),
        (bounds(least="0"), ("least = 0 is not right", "least = 0 — неверно")),
        (bounds(most="3"), ("most = 3 is not right", "most = 3 — неверно")),
        (bounds(is_bound="1"), ("is_bound is to be", "is_bound должно быть")),
        (bounds(is_bound="True"), ("Compare it with the two bounds", "Сравните его с двумя")),
    ],
    "ex-turns-prefix": [
        (prefix("return second * moment ** (turns - 1) - truth**2"), RIGHT),
        (prefix("return float(second) * float(moment) ** (turns - 1) - float(truth) ** 2"), RIGHT),
        (prefix("return turns[0]"), ("stops with TypeError", "прерывается: TypeError")),
        (prefix("pass"), ("returns None", "возвращает None")),
        (prefix("return second * moment ** (turns - 1)"), ("the second moment", "второй момент")),
        (
            prefix("return (second - truth**2) * moment ** (turns - 1)"),
            ("not the variance. The mean", "а не дисперсию. Среднее"),
        ),
        (prefix("return second - truth**2"), ("the first ratio only", "одним лишь первым отношением")),
        (
            prefix("return second * (moment - 1) ** (turns - 1) - truth**2"),
            ("which is 1 plus the variance", "больше дисперсии rho"),
        ),
        (prefix("return second - truth**2 + (turns - 1) * (moment - 1)"), ("add up for a sum", "у суммы")),
        (prefix("return 1"), ("turns = 1: 1.0000", "turns = 1: 1.0000")),
    ],
    "ex-turns-score": [
        (score(), RIGHT),
        (score(mean="0.1375"), RIGHT),
        (score(string="0.13422", action="0.02311"), RIGHT),
        (score(mean="None"), ("a mean and two variances", "среднее и две дисперсии")),
        (score(mean="0"), ("the score alone is 0", "самого вклада")),
        (score(mean="before[y]"), ("the other strings have a score", "и у остальных строк")),
        (score(mean="1"), ("mean_score = 1.00000", "mean_score = 1.00000")),
        (score(string="strings"), ("var_string: this is the second moment", "var_string: это второй момент")),
        (score(action="actions"), ("var_action: this is the second moment", "var_action: это второй момент")),
        (score(string="before[y] * (1 - before[y])"), ("without phi", "без phi")),
        (score(string="1"), ("var_string = 1.00000", "var_string = 1.00000")),
        (score(action="strings - m**2"), ("now have one score", "один вклад")),
        (score(action="p * (1 - p) ** 3"), ("a logit of the whole action", "по логиту всего действия")),
        (score(action="1"), ("var_action = 1.00000", "var_action = 1.00000")),
    ],
    "ex-turns-grammar": [
        (grammar(), RIGHT),
        (grammar(local="1 / 21", equal="6 / 7"), RIGHT),
        (grammar(equal="None"), ("Three numbers", "три числа")),
        (grammar(local="plain"), ("this is pi(x) itself", "сама pi(x)")),
        (grammar(local="plain / valid"), ("only the row in which", "строку, где стоял")),
        (grammar(local="plain * F(12, 11)"), ("pickup without hm", "pickup без hm")),
        (grammar(local="1"), ("token_by_token = 1", "token_by_token = 1")),
        (grammar(given="plain"), ("together have less than 1", "вместе весят меньше 1")),
        (grammar(given="F(1, 21)"), ("over all valid turns", "между всеми допустимыми")),
        (grammar(given="1"), ("given_valid = 1", "given_valid = 1")),
        (grammar(equal="1"), ("both sides know", "знают обе стороны")),
        (grammar(equal="F(7, 6)"), ("the other way round", "наоборот")),
        (grammar(equal="valid"), ("sampled token by token", "токен за токеном")),
        (grammar(equal="F(1, 2)"), ("equal_weights = 1/2", "equal_weights = 1/2")),
    ],
    "ex-turns-drift": [
        (drift(), RIGHT),
        (drift(kl="0.00727"), RIGHT),
        (drift(low="None"), ("Three numbers", "три числа")),
        (drift(kl="-kl"), ("the sign", "знак")),
        (drift(kl="kl_pi"), ("KL(pi || mu)", "KL(pi || mu)")),
        (drift(kl="v / 2"), ("the approximation", "приближение")),
        (drift(kl="1"), ("kl_back = 1.000000", "kl_back = 1.000000")),
        (drift(low="v * psi(b - a)", high="v * psi(a - b)"), ("belongs to psi(-Delta)", "где psi(-Delta)")),
        (
            drift(low="v_pi * psi(a - b)", high="v_pi * psi(b - a)"),
            ("lowest: v is the variance under mu", "lowest: v — дисперсия при mu"),
        ),
        (drift(high="v * psi(b)"), ("highest: Delta is the distance", "highest: Delta — расстояние")),
        (drift(low="0"), ("lowest = 0.000000", "lowest = 0.000000")),
    ],
}
