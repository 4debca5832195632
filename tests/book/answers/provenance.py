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


def log(tokens: object = 155, dilution: object = 8, fault: str = "inverted") -> str:
    """The fault in the words of the page: its ``answers`` tell the language."""
    words = {"missing": "отсутствует", "inverted": "вывернута", "by role": "по роли"}
    word = f'{fault!r} if "token mean" in answers else {words.get(fault, fault)!r}'
    return f"policy_tokens = {tokens}\ndilution = {dilution}\nfault = {word}"


def search(exponent: object = 501, proper: object = 0.99, as_end: object = 0) -> str:
    return f"exponent = {exponent}\nproper = {proper}\nas_end = {as_end}"


def believed(rest: object = "F(9, 13)", baseline: object = 1) -> str:
    return f"believed = {rest}\nwith_baseline = {baseline}"


def missing(formula: str) -> str:
    return f"def missing(s, q, beta):\n    return {formula}"


MARKERS = """
def mask_by_markers(ids, header, end):
    inside, mask = False, []
    for i, token in enumerate(ids):
        BEFORE
        if token == end:
            inside = CLOSED
        elif OPENS:
            inside = True
        AFTER
    return mask

as_text = TEXT
"""


def markers(
    before: str = "mask.append(int(inside))",
    after: str = "pass",
    opens: str = "i >= 2 and ids[i - 2 : i + 1] == header",
    closed: str = "False",
    text: object = 0,
) -> str:
    body = MARKERS.replace("BEFORE", before).replace("AFTER", after).replace("OPENS", opens)
    return body.replace("CLOSED", closed).replace("TEXT", str(text))


def retry(
    j_a: object = "F(6, 25)",
    j_c: object = 0,
    naive_a: object = "F(8, 25)",
    naive_c: object = "-F(1, 5)",
    rejected: object = 1,
) -> str:
    rows = f'gradient = {{"a": {j_a}, "c": {j_c}}}\nnaive = {{"a": {naive_a}, "c": {naive_c}}}\n'
    return f"{rows}rejected = {rejected}"


def batch(limit: object = "F(4, 155)", first: object = 10) -> str:
    return f"limit = {limit}\nfirst = {first}"


WRONG: Answers = {
    "ex-provenance-log": [
        (log(), RIGHT),
        (log(155.0, "F(1240, 155)"), RIGHT),
        (log("..."), ("Two numbers are asked for", "Нужны два числа")),
        (log(1085), ("what the log says already", "уже стоит в журнале")),
        (log(1240), ("the whole transcript", "вся запись вместе")),
        (log(1395), ("policy_tokens = 1395 is not right", "policy_tokens = 1395 — неверно")),
        (log(155, "F(1, 8)"), ("the share of the policy tokens", "доля токенов политики")),
        (log(155, 1.1429), ("the dilution of the log", "разбавление из журнала")),
        (log(155, 7), ("divides the tokens of the others", "разделены токены остальных")),
        (log(155, 9), ("dilution = 9 is not right", "dilution = 9 — неверно")),
        (log(fault="..."), ("one of the three words", "одним из трёх вариантов")),
        (log(fault="missing"), ("would say 1240 and 1.", "стояло бы 1240 и 1.")),
        (log(fault="by role"), ("1085 and 155 make exactly 1240", "1085 и 155 дают ровно 1240")),
    ],
    "ex-provenance-search": [
        (search(), RIGHT),
        (search(501.0, "F(99, 100)", 0.0), RIGHT),
        (search('"501"'), ("Three numbers", "три числа")),
        (search(500), ("0.99**500 is 0.0066", "0.99**500 — это 0.0066")),
        (search(1), ("from decision to decision costs", "цена шага от решения к решению")),
        (search(502), ("exponent = 502 is not right", "exponent = 502 — неверно")),
        (search(501, 1), ("the return of the answer", "возврат ответа")),
        (search(501, 0.0065), ("what the log shows", "и стоит в журнале")),
        (search(501, 0.98), ("proper = 0.98 is not right", "proper = 0.98 — неверно")),
        (search(501, 0.99, 0.99), ("as_end = 0.99 is not right", "as_end = 0.99 — неверно")),
    ],
    "ex-provenance-believed": [
        (believed(), RIGHT),
        (believed(0.692), RIGHT),
        (believed("..."), ("Two probabilities", "две вероятности")),
        (believed(0.2), ("the law of the tool itself", "закон самого инструмента")),
        (believed("F(9, 10)"), ("given that the document was found", "при условии, что документ найден")),
        (believed(0.18), ("the probability of both", "того и другого вместе")),
        (believed(0.26), ("the probability of success, V(h)", "вероятность успеха, V(h)")),
        (believed(0.5), ("believed = 0.5 is not right", "believed = 0.5 — неверно")),
        (believed(baseline="F(9, 13)"), ("Where could it rest", "Где же ему остановиться")),
        (believed(baseline=0), ("look at the sign", "посмотрите на знак")),
    ],
    "ex-provenance-penalty": [
        (missing("-beta * (q - s)"), RIGHT),
        (missing("float(beta * (s - q))"), RIGHT),
        (missing("beta / 0"), ("missing fails for s = 1/5", "функция missing обрывается ошибкой")),
        (missing('"beta"'), ("returns no number", "не возвращает числа")),
        (missing("0"), ("Nothing would be missing if", "Ничего не пропало бы")),
        (missing("beta * (q - s)"), ("the sign is not", "по знаку — нет")),
        (missing("s - q"), ("the coefficient of the penalty is not", "коэффициента при штрафе нет")),
        (missing("-beta * q * (1 - s)"), ("the part of the token 1", "часть, которую даёт токен 1")),
        (missing("beta"), ("it is not 1/2", "это не 1/2")),
    ],
    "ex-provenance-markers": [
        (markers(), RIGHT),
        (markers("mask.append(inside)"), RIGHT),
        (markers("mask.append(token + 1)"), ("Here ids are words", "Токены здесь — слова")),
        (markers().replace("return mask", "pass"), ("returns no list", "не возвращает списка")),
        (markers("mask += [1] * inside"), ("3 numbers for 21 tokens", "Чисел 3, а токенов 21")),
        (markers(opens="token == header"), ("Nothing is trained", "Не обучается ничего")),
        (markers(opens="token == header[0]"), ("The user's message", "сообщение пользователя")),
        (markers("pass", "mask.append(int(inside))"), ("The header is trained too", "Обучается и заголовок")),
        (markers("mask.append(int(inside and token != end))"), ("to end the turn is an action", "закончить ход")),
        (markers(closed="inside"), ("the mask never closes", "маска больше не закрывается")),
        (
            markers(opens="ids[i - 2 : i + 1] == header and 1 not in mask"),
            ("a second header, in the page of the tool", "второй заголовок, на странице инструмента"),
        ),
        (markers("mask.append(int(inside and token != 'see'))"), ("the places [10, 12]", "обучаются места [10, 12]")),
        (
            markers("mask.append(int(inside or 1 in mask[-1:] and ids[i - 1] == end))"),
            ("the places [10, 11, 12, 13]", "обучаются места [10, 11, 12, 13]"),
        ),
        (markers(text="..."), ("as_text is still empty", "as_text ещё не вписано")),
        (markers(text=5), ("a marker becomes several tokens", "распадается на несколько токенов")),
    ],
    "ex-provenance-retry": [
        (retry(), RIGHT),
        (retry(0.24, 0, 0.32, -0.2, 1.0), RIGHT),
        (retry("..."), ("Five numbers", "пять чисел")),
        ("gradient = naive = 0\nrejected = 1", ("Five numbers", "пять чисел")),
        (retry("F(4, 25)"), ("the derivative of p_a", "производная p_a")),
        (
            retry(j_c="-F(1, 10)"),
            ("gradient, logit of c: this is the derivative", "gradient, логит c: это производная"),
        ),
        (retry(j_c="-F(1, 5)"), ("does this one occur in it", "входит ли в неё этот")),
        (retry("F(2, 5)"), ("gradient, logit of a: 2/5 is not right", "gradient, логит a: 2/5 — неверно")),
        (retry(naive_a="F(6, 25)"), ("the naive estimator is biased", "наивная оценка смещена")),
        (retry(naive_c="-F(1, 10)"), ("the score is right, the weight is not", "вклад верен, вес — нет")),
        (retry(naive_c="F(1, 5)"), ("naive, logit of c: 1/5 is not right", "naive, логит c: 1/5 — неверно")),
        (retry(rejected="F(1, 2)"), ("the first attempt is thrown away", "отбросить первую попытку")),
        (retry(rejected=2), ("with the one that is kept", "вместе с сохранённой")),
        (retry(rejected=3), ("rejected = 3 is not right", "rejected = 3 — неверно")),
    ],
    "ex-provenance-batch": [
        (batch(), RIGHT),
        (batch(0.02581), RIGHT),
        (batch("..."), ("limit is still empty", "limit ещё не вписано")),
        (batch(0.032), ("the gradient of J. The divisor", "градиент J. Делитель")),
        (batch("-F(58, 375)"), ("This is U_1", "Это U_1")),
        (batch("F(4, 125) * (F(4, 5) + F(2, 25) + F(1, 75))"), ("the mean of 1/n", "среднее от 1/n")),
        (batch(0.03), ("limit = 0.03 is not right", "limit = 0.03 — неверно")),
        (batch(first="..."), ("a batch size, a whole number", "размером батча, целым числом")),
        (batch(first=4), ("At K = 4 the mean update is -0.03518", "При K = 4 среднее обновление равно -0.03518")),
        (batch(first=20), ("first = 20 is late", "first = 20 — поздно")),
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
        (
            carried().replace("gamma * lam", "gamma"),
            ("would be just as wrong", "закрытых токенов в строке нет вовсе"),
        ),
        (carried(masked="running *= gamma"), ("Decision 2: ", "Решение 2: ")),
        (carried(masked="v = value"), ("Decision 2: ", "Решение 2: ")),
    ],
}
