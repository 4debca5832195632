"""Tokens, turns and actions: sums of logarithms, products of ratios, and a parser that guesses nothing."""

import json
import math
from collections import defaultdict
from fractions import Fraction as F

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.rules import ACTIONS, COLOURS
from keydoor.turns import (
    macro_action_logprob,
    parse_action,
    semantic_action_bounds,
    semantic_action_probability,
    semantic_action_ratio,
    turn_log_ratio,
    turn_probability_ratio,
)

BEHAVIOUR = [-0.42, -0.31, -0.27]  # the lists of the lab
CURRENT = [-0.35, -0.26, -0.24]


def close(x):
    return pytest.approx(x, rel=1e-9, abs=1e-12)


# --- strings -----------------------------------------------------------------------------------------------------


def test_c1_log_probability_of_the_lab():
    """Case C1: -0.42 - 0.31 - 0.27 = -1.0."""
    assert macro_action_logprob(BEHAVIOUR) == close(-1.0)
    assert macro_action_logprob([F(-42, 100), F(-31, 100), F(-27, 100)]) == -1


def test_c1_a_sum_and_not_a_mean():
    """Case C1: twice -.5 (probability 0.367879) is likelier than six times -.2 (0.301194). Foil: the means turn the
    order round (0.606531 against 0.818731).
    """
    short, long = [-0.5] * 2, [-0.2] * 6
    assert math.exp(macro_action_logprob(short)) == pytest.approx(0.367879, rel=1e-5)
    assert math.exp(macro_action_logprob(long)) == pytest.approx(0.301194, rel=1e-5)
    foil = [math.exp(macro_action_logprob(tokens) / len(tokens)) for tokens in (short, long)]
    assert foil == pytest.approx([0.606531, 0.818731], rel=1e-5)
    assert foil[0] < foil[1]


def test_a_string_that_cannot_be_written():
    assert macro_action_logprob([-0.1, -math.inf]) == -math.inf


def test_long_sums_are_rounded_once():
    """Ten times -0.1 is -1 in exact addition of the floats, rounded; a running sum says -0.9999999999999999."""
    assert macro_action_logprob([-0.1] * 10) == -1.0
    foil = 0.0
    for logprob in [-0.1] * 10:
        foil += logprob
    assert foil != -1.0


@pytest.mark.parametrize("lowest", [-1.7e308, F(-(10**400))])
def test_sentinels_near_the_lowest_float_do_not_crash(lowest):
    """A masked-out logit leaves the lowest float behind; two of them exceed the range, and mean "impossible"."""
    assert macro_action_logprob([lowest, lowest, -0.5]) == -math.inf
    assert macro_action_logprob([lowest, -math.inf, lowest, -0.5]) == -math.inf
    assert turn_probability_ratio([lowest, lowest], [-0.5, -0.5]) == 0.0
    assert turn_probability_ratio([lowest, lowest], [lowest, lowest]) == 1.0
    assert turn_probability_ratio([-0.5, -0.5], [lowest, lowest]) == math.inf


@pytest.mark.parametrize("bad", [math.nan, None, math.inf, 0.3, 2e-9, "nan", True])
def test_a_bad_logprob_of_a_string_is_named_with_its_position(bad):
    with pytest.raises(ValueError, match=r"token_logprobs\[1\] is .*; expected a log-probability"):
        macro_action_logprob([-0.1, bad, -0.2])


def test_rounding_above_zero_is_let_through_unchanged():
    assert macro_action_logprob([1e-10]) == 1e-10


@pytest.mark.parametrize("empty", [[], (), np.array([]), torch.tensor([])])
def test_a_string_has_a_token(empty):
    with pytest.raises(ValueError, match=r"token_logprobs is \[\]; expected at least one token"):
        macro_action_logprob(empty)


# --- ratios ------------------------------------------------------------------------------------------------------


def test_c1_ratio_of_the_lab_and_its_foils():
    """Case C1 (huggingface/trl#5814, #4772; DigiRL-agent/digirl#40): the differences .07, .05, .03 give exp(.15),
    1.161834.

    Foils: the geometric mean exp(.05) = 1.051271 (GSPO's ratio), the mean of token ratios 1.051411, their sum
    3.154234.
    """
    ratio = turn_probability_ratio(CURRENT, BEHAVIOUR)
    assert ratio == close(1.161834242728283)
    assert turn_log_ratio(CURRENT, BEHAVIOUR) == close(0.15)
    token_ratios = [math.exp(c - b) for c, b in zip(CURRENT, BEHAVIOUR, strict=True)]
    assert ratio == close(math.prod(token_ratios))
    foils = [ratio ** (1 / 3), sum(token_ratios) / 3, sum(token_ratios)]
    assert foils == pytest.approx([1.051271, 1.051411, 3.154234], rel=1e-6)


@pytest.mark.parametrize(("tokens", "difference", "expected"), [(100, 0.012, 3.320117), (9000, -0.02, 6.714184e-79)])
def test_c1_small_differences_add_up(tokens, difference, expected):
    """Case C1: 100 tokens of .012 and 9000 of -.02."""
    assert turn_probability_ratio([-1 + difference] * tokens, [-1.0] * tokens) == pytest.approx(expected, rel=1e-6)
    assert turn_log_ratio([-1 + difference] * tokens, [-1.0] * tokens) == close(tokens * difference)


def test_c1_the_token_clipped_surrogate_is_another_object():
    """Case C1: differences [1, -1, 1, -1] have turn ratio 1, and nothing to clip. The token-clipped surrogate with
    A = +1 and eps = .2 is the mean of min(rho, clip(rho, .8, 1.2)): (1.2 + 1/e) / 2 = 0.783940.
    """
    differences = [1, -1, 1, -1]
    behaviour = [-2.0] * 4
    current = [b + d for b, d in zip(behaviour, differences, strict=True)]
    assert turn_probability_ratio(current, behaviour) == 1.0
    surrogate = sum(min(math.exp(d), min(max(math.exp(d), 0.8), 1.2)) for d in differences) / 4
    assert surrogate == pytest.approx(0.783940, rel=1e-6)


logprobs = st.integers(-250, 0).map(lambda n: F(n, 50))
turns = st.lists(st.tuples(logprobs, logprobs, st.booleans()), min_size=2, max_size=12)


@settings(deadline=None)
@given(turns, st.data())
def test_the_ratio_of_a_turn_factorises_over_any_split(turn, data):
    """The sum log rho(ab) = log rho(a) + log rho(b), exactly on fractions; the ratios multiply. (The foil, a mean
    over tokens, does not: see the example below.)
    """
    split = data.draw(st.integers(1, len(turn) - 1))
    current, behaviour = [t[0] for t in turn], [t[1] for t in turn]
    parts = [turn_log_ratio(current[a:b], behaviour[a:b]) for a, b in ((0, split), (split, len(turn)))]
    assert turn_log_ratio(current, behaviour) == sum(parts)
    assert turn_log_ratio(current, behaviour) == macro_action_logprob(current) - macro_action_logprob(behaviour)
    product = turn_probability_ratio(current[:split], behaviour[:split])
    product *= turn_probability_ratio(current[split:], behaviour[split:])
    assert turn_probability_ratio(current, behaviour) == close(product)


def test_the_geometric_mean_does_not_factorise():
    current, behaviour = [F(-1), F(-2), F(-2)], [F(-2), F(-2), F(-2)]
    whole = turn_log_ratio(current, behaviour) / 3
    parts = turn_log_ratio(current[:1], behaviour[:1]) + turn_log_ratio(current[1:], behaviour[1:]) / 2
    assert (whole, parts) == (F(1, 3), 1)


@settings(deadline=None)
@given(turns)
def test_a_mask_selects(turn):
    """The masked ratio is the ratio of the selected tokens, whatever stands elsewhere."""
    current, behaviour, mask = map(list, zip(*turn, strict=True))
    if not any(mask):
        with pytest.raises(ValueError, match="no policy tokens"):
            turn_log_ratio(current, behaviour, mask)
        return
    kept = [i for i, m in enumerate(mask) if m]
    expected = turn_log_ratio([current[i] for i in kept], [behaviour[i] for i in kept])
    assert turn_log_ratio(current, behaviour, mask) == expected
    for nothing in (math.nan, None, -math.inf, 1.0, "pad"):
        spoiled = [(c, b) if m else (nothing, nothing) for c, b, m in turn]
        assert turn_log_ratio(*zip(*spoiled, strict=True), mask) == expected


def test_c3_masked_sentinels():
    """Case C3 (huggingface/trl#6693, #6297; radixark/miles#2662): mask [1,0,1], masked pair (NaN, -inf): ratio 1.

    Foils: multiplying by the mask gives NaN; a sentinel "log-prob 1.0" that is not masked gives exp(-1) = 0.367879;
    NaN replaced by 0.0, that is by probability one, gives exp(-.2) = 0.818731.
    """
    current, behaviour, mask = [-0.5, math.nan, -0.7], [-0.5, -math.inf, -0.7], [1, 0, 1]
    assert turn_probability_ratio(current, behaviour, mask) == 1.0
    foil = math.exp(sum((c - b) * m for c, b, m in zip(current, behaviour, mask, strict=True)))
    assert math.isnan(foil)
    assert math.exp((-0.5 + 0.5) + (0.0 - 1.0)) == pytest.approx(0.367879, rel=1e-5)
    assert math.exp((-0.5 + 0.5) + (-0.2 - 0.0)) == pytest.approx(0.818731, rel=1e-5)
    with pytest.raises(ValueError, match=r"current\[1\] is 1\.0"):
        turn_probability_ratio([-0.5, 1.0], [-0.5, 1.0])


@pytest.mark.parametrize("mask", [[1, 0, 1], [True, False, True], [1.0, 0.0, 1.0], np.array([1, 0, 1])])
def test_masks_of_every_kind(mask):
    assert turn_log_ratio([-0.25, None, -0.5], [-0.5, None, -1.0], mask) == 0.75
    assert turn_log_ratio([-0.25, math.nan, -0.5], [-0.5, math.nan, -1.0], torch.tensor(mask)) == 0.75


@pytest.mark.parametrize("entry", [0.5, 2, -1, None, "1", math.nan])
def test_a_mask_is_not_a_weight(entry):
    with pytest.raises(ValueError, match=r"mask\[1\] is .*; expected 0 or 1"):
        turn_probability_ratio([-0.1, -0.1], [-0.1, -0.1], [1, entry])


@pytest.mark.parametrize("bad", [math.nan, None, math.inf, 0.3, 2e-9, "nan", True])
def test_c3_a_bad_logprob_is_named_with_its_position(bad):
    """Case C3: none of these is silently replaced."""
    with pytest.raises(ValueError, match=r"behavior\[0\]"):
        turn_probability_ratio([-0.1], [bad])
    with pytest.raises(ValueError, match=r"current\[1\]"):
        turn_probability_ratio([-0.1, bad], [-0.1, -0.1])
    with pytest.raises(ValueError, match=r"behavior\[2\]"):  # the position in the list, not among the selected
        turn_probability_ratio([-0.1, None, -0.1], [-0.1, None, bad], [1, 0, 1])


def test_c3_minus_infinity_is_legal_on_one_side():
    """Case C3: the current policy may have unlearned a token (ratio 0); a *sampled* token had positive probability."""
    assert turn_probability_ratio([-0.1, -math.inf], [-0.1, -0.2]) == 0.0
    assert turn_log_ratio([-0.1, -math.inf], [-0.1, -0.2]) == -math.inf
    with pytest.raises(ValueError, match=r"behavior\[0\] is -inf.*a sampled token has positive probability"):
        turn_probability_ratio([-0.1], [-math.inf])
    with pytest.raises(ValueError, match=r"behavior\[0\] is -inf"):
        turn_probability_ratio([-math.inf], [-math.inf])


def test_c3_unequal_lengths():
    """Case C3 (pytorch/rl#2856): lists of length 1 and 2. Foils: broadcasting exp(.1 + .2) = 1.349859, separate sums
    exp(-.1 + .5) = 1.491825, zip exp(.1) = 1.105171.
    """
    current, behaviour = [-0.1], [-0.2, -0.3]
    with pytest.raises(ValueError, match="current has 1, behavior has 2"):
        turn_probability_ratio(current, behaviour)
    foils = [
        math.exp((np.array(current) - np.array(behaviour)).sum()),
        math.exp(sum(current) - sum(behaviour)),
        math.exp(sum(c - b for c, b in zip(current, behaviour, strict=False))),
    ]
    assert foils == pytest.approx([1.349859, 1.491825, 1.105171], rel=1e-6)
    with pytest.raises(ValueError, match="current has 2, behavior has 2, mask has 1"):
        turn_probability_ratio(behaviour, behaviour, [1])


def test_c3_an_empty_turn_has_no_ratio():
    for arguments in (([], []), ([], [], []), ([-0.1], [-0.1], [0])):
        with pytest.raises(ValueError, match="no policy tokens"):
            turn_probability_ratio(*arguments)


def test_b3_another_tokenisation_is_another_event():
    """Case B3(a) (rllm-org/rllm#272; huggingface/trl#5144): "HAVING" was sampled as [H, AV, ING] with -.9, -.4, -.2,
    and encoded again as [HAV, ING] with -.3, -.2 under the same weights. What was sampled has log-probability -1.5 and
    ratio 1. Foil: the sums compared all the same, exp(-.5 + 1.5) = 2.718282.
    """
    vocabulary = {1: "H", 2: "AV", 3: "ING", 4: "HAV"}
    assert "".join(vocabulary[i] for i in (1, 2, 3)) == "".join(vocabulary[i] for i in (4, 3)) == "HAVING"
    sampled, encoded_again = [-0.9, -0.4, -0.2], [-0.3, -0.2]
    assert macro_action_logprob(sampled) == close(-1.5)
    assert turn_probability_ratio(sampled, sampled) == 1.0
    foil = math.exp(macro_action_logprob(encoded_again) - macro_action_logprob(sampled))
    assert foil == pytest.approx(2.718282, rel=1e-6)
    with pytest.raises(ValueError, match="current has 2, behavior has 3"):
        turn_probability_ratio(encoded_again, sampled)


def test_c4_behaviour_scored_on_a_truncated_support():
    """Case C4 (huggingface/trl#6789, #7269): top-p .8 keeps .5 and .3. The engine's log-prob of the first token is
    log(.5/.8) = -0.470004, the trainer's log .5; each kept token differs by log .8. On one support the ratio is 1;
    foil: five such tokens give .8^5 = 0.32768 although nothing was learned, and twenty at top-p .95 give 0.358486.
    """
    engine, trainer = math.log(0.5 / 0.8), math.log(0.5)
    assert engine == pytest.approx(-0.470004, rel=1e-5)
    assert trainer - engine == pytest.approx(-0.223144, rel=1e-5)
    assert math.log(0.3) - math.log(0.3 / 0.8) == close(trainer - engine)
    assert turn_probability_ratio([engine] * 5, [engine] * 5) == 1.0
    assert turn_probability_ratio([trainer] * 5, [engine] * 5) == close(0.32768)
    assert turn_probability_ratio([math.log(0.95)] * 20, [0.0] * 20) == pytest.approx(0.358486, rel=1e-5)


def test_a_ratio_beyond_the_floats_is_infinite_and_its_logarithm_is_there():
    assert turn_probability_ratio([-1.0] * 100, [-9.0] * 100) == math.inf
    assert turn_log_ratio([-1.0] * 100, [-9.0] * 100) == 800.0
    assert turn_probability_ratio([-9.0] * 100, [-1.0] * 100) == 0.0
    assert turn_log_ratio([-9.0] * 100, [-1.0] * 100) == -800.0


def test_arrays_tensors_and_columns():
    for array in (np.array, torch.tensor, pd.Series):
        assert turn_probability_ratio(array(CURRENT), array(BEHAVIOUR)) == pytest.approx(1.161834, rel=1e-6)
        assert macro_action_logprob(array(BEHAVIOUR)) == pytest.approx(-1.0, rel=1e-6)
    with pytest.raises(ValueError, match=r"current is .*; expected a sequence, of one dimension"):  # a batch is no turn
        turn_probability_ratio(torch.zeros(2, 3), torch.zeros(2, 3))


# --- semantic actions --------------------------------------------------------------------------------------------

SPELLINGS = {
    '{"name":"inspect"}': 0.25,
    '{"name": "inspect"}': 0.15,
    '{ "name" : "inspect" }': 0.05,
    '{"name":"pickup_red"}': 0.55,
}


def test_the_value_of_the_lab():
    strings = {'{"name":"inspect"}': 0.25, '{"name": "inspect"}': 0.15, '{"name":"pickup_red"}': 0.60}
    parser = {string: "pickup_red" if "pickup" in string else "inspect" for string in strings}
    assert semantic_action_probability(strings, parser, "inspect") == close(0.40)
    assert semantic_action_probability(strings, parse_action, "inspect") == close(0.40)


def test_d1_several_strings_one_action():
    """Case D1 (NousResearch/hermes-agent#87160; WeihaoTan/TWOSOME#4): .25 + .15 + .05 = .45, log -0.798508. Foils: the
    likeliest string alone, log .25 = -1.386294; the ratio of one string, .05/.15 = 0.333333, where the action's is 1.
    """
    before = semantic_action_probability(SPELLINGS, parse_action, "inspect")
    assert before == close(0.45)
    assert math.log(before) == pytest.approx(-0.798508, rel=1e-6)
    assert math.log(SPELLINGS['{"name":"inspect"}']) == pytest.approx(-1.386294, rel=1e-6)
    updated = dict(zip(SPELLINGS, (0.35, 0.05, 0.05, 0.55), strict=True))
    assert semantic_action_probability(updated, parse_action, "inspect") / before == close(1.0)
    assert updated['{"name": "inspect"}'] / SPELLINGS['{"name": "inspect"}'] == close(1 / 3)


def test_d1_an_action_that_no_string_means():
    result = semantic_action_probability(SPELLINGS, parse_action, "finish")
    assert result == 0.0
    assert type(result) is float
    assert semantic_action_probability({}, parse_action, "finish") == 0


tables = st.lists(
    st.tuples(st.sampled_from([*ACTIONS, "nonsense", "?"]), st.integers(0, 20)), min_size=1, max_size=10
).filter(lambda rows: any(weight for _, weight in rows))


@settings(deadline=None)
@given(tables, st.integers(0, 5))
def test_actions_and_invalid_strings_share_the_mass(rows, missing):
    """Exact on fractions: the actions' probabilities and the mass of invalid strings add up to what is known, and the
    upper bounds add what is missing to each.
    """
    total = sum(weight for _, weight in rows) + missing
    strings = {f"{word}#{i}": F(weight, total) for i, (word, weight) in enumerate(rows)}
    by_table = {string: string.split("#")[0] for string in strings if string.split("#")[0] in ACTIONS}
    known = sum(strings.values())
    invalid = sum(p for string, p in strings.items() if string not in by_table)
    bounds = [semantic_action_bounds(strings, by_table, action) for action in ACTIONS]
    assert sum(low for low, _ in bounds) + invalid == known
    assert {high - low for low, high in bounds} == {1 - known}
    by_call = [semantic_action_probability(strings, lambda s: parse_action(s.split("#")[0]), a) for a in ACTIONS]
    assert by_call == [low for low, _ in bounds]


def test_d3_a_table_of_the_likeliest_strings_gives_bounds():
    """Case D3 (clab/language-universal-parser#3): of .93 known mass, .40 is inspect, so the probability lies in
    [0.40, 0.47]. Foil: renormalised, 0.40/0.93 = 0.430108.
    """
    strings = {"inspect": 0.40, "finish": 0.50, "what?": 0.03}
    assert semantic_action_probability(strings, parse_action, "inspect") == 0.40
    assert semantic_action_bounds(strings, parse_action, "inspect") == (0.40, close(0.47))
    assert 0.40 / sum(strings.values()) == pytest.approx(0.430108, rel=1e-5)


def test_d3_sums_and_rounding():
    """Case D3: ten entries of 0.1 are a complete table, although a running sum says 0.9999999999999999; 1.2 is none."""
    ten = {f"{i}": 0.1 for i in range(10)}
    assert semantic_action_bounds(ten, {"3": "inspect"}, "inspect") == (0.1, close(0.1))
    third = {"inspect": 1 / 3, "finish": 1 / 3, "x": 1 / 3 + 1e-10}  # above 1 by rounding
    assert semantic_action_bounds(third, parse_action, "inspect") == (1 / 3, 1 / 3)
    for table in ({"inspect": 0.6, "finish": 0.6}, {"inspect": 0.5, "finish": 0.5 + 1e-8}):
        with pytest.raises(ValueError, match=r"sum of string_probabilities is 1\..*; expected at most 1"):
            semantic_action_probability(table, parse_action, "inspect")
    with pytest.raises(ValueError, match="sum of string_probabilities"):  # fractions do not round
        semantic_action_probability({"inspect": F(1), "finish": F(1, 10**12)}, parse_action, "inspect")


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, 1.5, None, "0.5", True])
def test_d3_a_bad_probability_is_named_with_its_string(bad):
    """Case D3: NaN passes the test ``sum > 1``, so each entry is checked, also those of other actions."""
    for action in ("inspect", "finish"):
        with pytest.raises(ValueError, match=r"string_probabilities\['inspect'\] is .*; expected a number in"):
            semantic_action_probability({"finish": 0.5, "inspect": bad}, parse_action, action)
    assert not math.nan + 0.5 > 1


def test_d3_what_does_not_parse_is_no_action():
    """Case D3 (charmbracelet/crush#3408): an absent or refused string is invalid; no KeyError, no default action."""
    strings = {"inspect": 0.5, "INSPECT": 0.3, "fly": 0.2}
    with_default = defaultdict(lambda: "inspect", {"inspect": "inspect"})
    table = {"inspect": "inspect", "INSPECT": None}
    for parser in (parse_action, table, with_default, table.__getitem__, table.get):
        assert semantic_action_probability(strings, parser, "inspect") == 0.5
    assert len(with_default) == 1  # nothing was added to it either


def test_a_faulty_parser_is_not_an_invalid_string():
    """Only "this is no action" is caught. A programming error in the parser must not look like probability 0."""

    def faulty(string):
        return string.no_such_method()

    with pytest.raises(AttributeError):
        semantic_action_probability({"inspect": 1.0}, faulty, "inspect")


@pytest.mark.parametrize("function", [semantic_action_probability, semantic_action_bounds])
def test_arguments_of_a_wrong_kind(function):
    with pytest.raises(ValueError, match=r"string_probabilities is .*; expected a mapping"):
        function([("inspect", 1.0)], parse_action, "inspect")
    with pytest.raises(ValueError, match="a key of string_probabilities is 3; expected a string"):
        function({3: 1.0}, parse_action, "inspect")
    with pytest.raises(ValueError, match="parser is None; expected a mapping"):
        function({"inspect": 1.0}, None, "inspect")
    with pytest.raises(ValueError, match="action is None"):  # else: the mass of the invalid strings
        function({"fly": 1.0}, {"fly": None}, None)


# --- the parser --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("index", "action"), list(enumerate(ACTIONS)))
def test_every_form_of_every_action(index, action):
    forms = [
        action,
        np.str_(action),
        index,
        np.int64(index),
        np.uint8(index),
        torch.tensor(index),
        json.dumps({"name": action}),
        json.dumps({"name": action, "arguments": {}}),
        json.dumps({"arguments": {}, "name": action}, indent=4),
        f' \n\t{{ "name"\r\n:\t"{action}" }} \n',
    ]
    for form in forms:
        assert parse_action(form) == action
        assert type(parse_action(form)) is str


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize(("tool", "verb"), [("pickup", "pickup"), ("open_door", "open")])
def test_calls_of_tools(tool, verb, colour):
    call = {"name": tool, "arguments": {"color": colour}}
    assert parse_action(json.dumps(call)) == f"{verb}_{colour}"
    assert parse_action(json.dumps(dict(reversed(call.items())), separators=(",", ":"))) == f"{verb}_{colour}"


def test_escapes_of_json_are_spelling_too():
    assert parse_action('{"n\\u0061me": "insp\\u0065ct"}') == "inspect"


REFUSED = [
    # not exactly the name
    *(
        "",
        " inspect",
        "inspect ",
        "inspect\n",
        "Inspect",
        "INSPECT",
        "inspekt",
        "inspect()",
        "0",
        "pickup",
        "open_door",
    ),
    # not an index
    *(-1, 6, 10**30, True, False, 0.0, 2.0, math.nan, np.float64(1), np.True_, torch.tensor(1.0), torch.tensor(True)),
    # neither
    *(
        None,
        b"inspect",
        [],
        ["inspect"],
        ("inspect",),
        {},
        {"name": "inspect"},
        object,
        np.array([0]),
        torch.tensor([1]),
    ),
    # JSON, but not a known object
    *('"inspect"', '["inspect"]', "null", "{}", "[]", "[" * 100_000, '{"a":' * 100_000),
    *('{"name": "fly"}', '{"name": "Inspect"}', '{"name": " inspect"}', '{"name": ""}', '{"Name": "inspect"}'),
    *('{"name": null}', '{"name": 0}', '{"name": ["inspect"]}', '{"name": {"name": "inspect"}}', '{"name": true}'),
    # keys
    *('{"name": "inspect", "name": "inspect"}', '{"name": "inspect", "name": "finish"}'),
    '{"name": "inspect", "n\\u0061me": "finish"}',
    *('{"name": "inspect", "arguments": {}, "arguments": {}}', '{"name": "inspect", "id": 1}', '{"arguments": {}}'),
    '{"name": "pickup", "arguments": {"color": "red", "color": "blue"}}',
    '{"name": "pickup", "arguments": {"color": "red"}, "thought": "hm"}',
    # arguments
    *('{"name": "inspect", "arguments": null}', '{"name": "inspect", "arguments": []}'),
    *('{"name": "inspect", "arguments": "{}"}', '{"name": "inspect", "arguments": {"color": "red"}}'),
    *('{"name": "pickup_red", "arguments": {"color": "red"}}', '{"name": "pickup"}'),
    *('{"name": "pickup", "arguments": {}}', '{"name": "pickup", "arguments": {"colour": "red"}}'),
    *('{"name": "pickup", "arguments": {"color": "green"}}', '{"name": "pickup", "arguments": {"color": "Red"}}'),
    *('{"name": "pickup", "arguments": {"color": ["red"]}}', '{"name": "pickup", "arguments": {"color": 0}}'),
    '{"name": "pickup", "arguments": {"color": "red", "force": true}}',
    *('{"name": "open", "arguments": {"color": "red"}}', '{"name": "finish", "arguments": {"color": "red"}}'),
    # not JSON, or text around it
    *('{"name": NaN}', '{"name": "inspect", "arguments": NaN}', '{"name": "inspect", "arguments": {"x": Infinity}}'),
    *(
        '{"name": "inspect"',
        '{"name": "inspect",}',
        "{'name': 'inspect'}",
        "{name: inspect}",
        '\ufeff{"name": "inspect"}',
    ),
    *('{"name": "inspect"} done', '{"name": "inspect"}{"name": "finish"}', 'I will {"name": "inspect"}'),
    *('```json\n{"name": "inspect"}\n```', '{"name": "inspect"} // look', '\xa0{"name": "inspect"}'),
    '{"name": 1' + "0" * 10_000 + "}",
]


@pytest.mark.parametrize("action", REFUSED, ids=lambda action: repr(action)[:60])
def test_what_is_not_exactly_one_known_action_is_refused(action):
    """Case D3 and the contract: duplicate keys and unknown strings are invalid. The message stays short."""
    with pytest.raises(ValueError, match=r"action is .*; expected one ") as caught:
        parse_action(action)
    assert len(str(caught.value)) < 350


def test_messages_say_what_is_wrong():
    for text, reason in (
        ('{"name": "inspect", "name": "finish"}', "the key 'name' twice"),
        ('{"name": NaN}', "NaN, which is not JSON"),
        ('{"name": "inspect"} done', "Extra data"),
        ('{"name": "inspect", "id": 1}', r"the keys \['id', 'name'\]"),
        ('{"name": "pickup"}', "unknown call 'pickup' with {}"),
        ("fly", "one of inspect, pickup_red, .*, finish, its index 0 to 5, or a JSON object"),
    ):
        with pytest.raises(ValueError, match=reason):
            parse_action(text)


def test_a_long_object_is_refused_in_linear_time():
    """A hundred thousand different keys: looking for duplicates by counting each key would take minutes."""
    text = json.dumps({str(i): i for i in range(100_000)})
    with pytest.raises(ValueError, match="the keys"):
        parse_action(text)


@settings(deadline=None)
@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.binary()))
def test_anything_is_an_action_or_a_value_error(value):
    legal = value in ACTIONS if isinstance(value, str) else type(value) is int and 0 <= value < 6
    if legal:
        assert parse_action(value) in ACTIONS
    else:  # no text drawn here is one of the JSON objects, which start with {"name"
        with pytest.raises(ValueError, match=r"^action is "):
            parse_action(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.sampled_from([*ACTIONS, *COLOURS, "pickup", "open_door"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "arguments", "color", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(json_values)
def test_json_values_against_a_list_of_all_legal_calls(value):
    """The legal objects can be listed; everything else that JSON can say is refused."""
    legal = [({"name": a}, a) for a in ACTIONS] + [({"name": a, "arguments": {}}, a) for a in ACTIONS]
    for tool, verb in (("pickup", "pickup"), ("open_door", "open")):
        legal += [({"name": tool, "arguments": {"color": c}}, f"{verb}_{c}") for c in COLOURS]
    expected = next((action for call, action in legal if call == value and isinstance(value, dict)), None)
    if expected is not None:
        assert parse_action(json.dumps(value)) == expected
    else:
        with pytest.raises(ValueError, match=r"^action is "):
            parse_action(json.dumps(value))


@pytest.mark.parametrize(
    "action",
    [np.array([0, 1]), torch.tensor([0, 1]), pd.Series(["inspect"]), pd.NA, math.nan, ["inspect"], {"name": "inspect"}],
    ids=lambda action: type(action).__name__,
)
def test_an_action_can_be_looked_for_only_if_it_can_be_compared(action):
    """Arrays, tensors and missing values answer ``==`` with no truth; NaN would be found in no table, in silence."""
    for function in (semantic_action_probability, semantic_action_bounds):
        with pytest.raises(ValueError, match=r"^action is .*; expected one action"):
            function({"inspect": 0.5}, parse_action, action)
    assert semantic_action_probability({"x": 0.5}, {"x": 0}, torch.tensor(0)) == 0.5


def test_a_long_string_does_not_fill_the_message():
    with pytest.raises(ValueError, match=r"^string_probabilities") as caught:
        semantic_action_probability({"x" * 10_000: 2.0}, parse_action, "inspect")
    assert len(str(caught.value)) < 200


# --- the ratio of an action --------------------------------------------------------------------------------------

mass_lists = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6), st.integers(0, 2)), min_size=1, max_size=7)


@settings(deadline=None)
@given(mass_lists.filter(lambda rows: any(now for now, _, _ in rows)), st.integers(0, 124))
def test_the_semantic_ratio_is_a_conditional_mean_and_varies_less(rows, salt):
    """rho_sem(a) = E_mu[rho | a], exactly, with the invalid strings (2) as an action of their own; weighting a function
    of the action by it is unbiased, and Var(rho f) - Var(rho_sem f) = E_mu[f^2 Var(rho | a)] >= 0, zero only if no
    spelling's ratio differs from its action's where f is not 0.
    """
    now = {f"s{i}": F(n, sum(n for n, _, _ in rows)) for i, (n, _, _) in enumerate(rows)}
    then = {f"s{i}": F(m, sum(m for _, m, _ in rows)) for i, (_, m, _) in enumerate(rows)}
    meaning = {f"s{i}": ("inspect", "finish", "invalid")[a] for i, (_, _, a) in enumerate(rows)}
    f = {action: F(salt // 5**k % 5 - 2) for k, action in enumerate(("inspect", "finish", "invalid"))}
    ratio = {s: now[s] / then[s] for s in then}
    semantic = {}
    for action in set(meaning.values()):
        strings = [s for s in then if meaning[s] == action]
        mass = sum(then[s] for s in strings)
        semantic[action] = semantic_action_ratio(now, then, meaning, action)
        assert semantic[action] == sum(then[s] * ratio[s] for s in strings) / mass

    def moments(weight):
        values = [(then[s], weight(s) * f[meaning[s]]) for s in then]
        mean = sum(p * v for p, v in values)
        return mean, sum(p * v * v for p, v in values) - mean**2

    mean, variance = moments(ratio.__getitem__)
    semantic_mean, semantic_variance = moments(lambda s: semantic[meaning[s]])
    assert mean == semantic_mean == sum(now[s] * f[meaning[s]] for s in now)
    gap = sum(then[s] * f[meaning[s]] ** 2 * (ratio[s] - semantic[meaning[s]]) ** 2 for s in then)
    assert variance - semantic_variance == gap
    assert (gap == 0) == all(f[meaning[s]] == 0 or ratio[s] == semantic[meaning[s]] for s in then)


def test_d1_the_semantic_ratio_of_the_spellings():
    """Case D1: after the update to .35/.05/.05 the action's ratio is 1; foils: the strings' 1.4, 0.333333 and 1."""
    updated = dict(zip(SPELLINGS, (0.35, 0.05, 0.05, 0.55), strict=True))
    assert semantic_action_ratio(updated, SPELLINGS, parse_action, "inspect") == close(1.0)
    foils = [updated[s] / SPELLINGS[s] for s in list(SPELLINGS)[:3]]
    assert foils == pytest.approx([1.4, 0.333333, 1.0], rel=1e-5)
    assert semantic_action_ratio({"finish": 1}, {"finish": F(1, 2), "inspect": F(1, 2)}, parse_action, "finish") == 2
    assert semantic_action_ratio({"finish": 1}, {"finish": F(1, 2), "inspect": F(1, 2)}, parse_action, "inspect") == 0
    assert type(semantic_action_ratio({"finish": 1}, {"finish": 1}, parse_action, "finish")) is F


def test_d3_a_semantic_ratio_needs_whole_tables():
    """Case D3: from tables with .93 and .90 known, a quotient .40/.30 would be neither a lower nor an upper bound: the
    truth may be anything from .40/.40 to .47/.30.
    """
    now, then = {"inspect": F(40, 100), "finish": F(53, 100)}, {"inspect": F(30, 100), "finish": F(60, 100)}
    for current, behaviour, name in ((now, {"inspect": F(1)}, "current"), ({"inspect": F(1)}, then, "behavior")):
        with pytest.raises(ValueError, match=f"the sum of {name} is .*; expected 1, a complete table"):
            semantic_action_ratio(current, behaviour, parse_action, "inspect")
    low_now, high_now = semantic_action_bounds(now, parse_action, "inspect")
    low_then, high_then = semantic_action_bounds(then, parse_action, "inspect")
    assert low_now / high_then == 1 < low_now / low_then < high_now / low_then == F(47, 30)
    with pytest.raises(ValueError, match=r"the probability of 'finish' under behavior is .*0.*; expected a positive"):
        semantic_action_ratio({"finish": F(1)}, {"inspect": F(1)}, parse_action, "finish")
    with pytest.raises(ValueError, match=r"current\['inspect'\] is nan"):
        semantic_action_ratio({"inspect": math.nan}, {"inspect": 1.0}, parse_action, "inspect")


@given(st.lists(st.integers(1, 9), min_size=3, max_size=3), st.lists(st.integers(-5, 5), min_size=3, max_size=3))
def test_d3_renormalising_over_valid_strings_is_another_policy(weights, values):
    """With invalid mass e, value q_bad there and the renormalised policy's value J', the policy's value is
    J = (1 - e) J' + e q_bad, so J' - J = e (J' - q_bad). The mass of each action shrinks by 1 - e.
    """
    total = sum(weights)
    strings = {"inspect": F(weights[0], total), "finish": F(weights[1], total), "fly": F(weights[2], total)}
    p = {action: semantic_action_probability(strings, parse_action, action) for action in ("inspect", "finish")}
    bad = 1 - sum(p.values())
    assert bad == strings["fly"]
    value = p["inspect"] * values[0] + p["finish"] * values[1] + bad * values[2]
    renormalised = (p["inspect"] * values[0] + p["finish"] * values[1]) / (1 - bad)
    assert renormalised - value == bad * (renormalised - values[2])


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 8), st.integers(1, 40))
def test_noise_of_the_log_probabilities_adds_up(n, hundredths):
    """Equal policies whose recorded log-probabilities are off by +c or -c with probability 1/2: over all 2^n patterns
    the log-ratio has variance n c^2 and stays within n c, and the mean ratio is cosh(c)^n, between 1 and exp(n c^2/2).
    Foil: the noise of one token, as if it averaged out over the turn.
    """
    c = F(hundredths, 100)
    logs = [
        turn_log_ratio([F(-2)] * n, [F(-2) + (c if pattern >> i & 1 else -c) for i in range(n)])
        for pattern in range(2**n)
    ]
    assert max(map(abs, logs)) == n * c
    assert sum(logs) == 0
    assert sum(x * x for x in logs) / 2**n == n * c**2
    mean = math.fsum(map(math.exp, logs)) / 2**n
    assert mean == close(math.cosh(c) ** n)
    assert 1 < mean <= math.exp(n * c**2 / 2)
    assert n == 1 or sum(x * x for x in logs) / 2**n > c**2
