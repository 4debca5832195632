"""From tokens to turns to actions: probabilities of strings, their ratios, and the one parser of actions.

Three objects are easily taken for one another:

* the **string** that the policy sampled: its log-probability is the *sum* over its tokens;
* the **turn ratio** of two policies for that string: the *product* of the token ratios, neither their mean nor
  their geometric mean (the length-normalised ratio of GSPO is another object with a similar name);
* the **semantic action** that the environment reads out of the string: its probability is the sum over all strings
  that parse to it.

Values that are masked out are never looked at. They are selected away and not multiplied by zero, because engines
put NaN, ``None`` or minus infinity there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from keydoor._checks import Number, binary, exact_sum, real, refuse, same_length, sequence, unit_interval, unwrap
from keydoor.rules import PALETTE, get_rules

ROUNDING = 1e-9
"""How far a log-probability may lie above 0, or a sum of probabilities above 1, and still count as rounding."""

_TOOL_CALLS = {
    (tool, colour): f"{action}_{colour}"
    for tool, action in (("pickup", "pickup"), ("open_door", "open"))
    for colour in PALETTE
}

Parser = Mapping[str, Any] | Callable[[str], Any]
"""A table from strings to actions, or a function such as :func:`parse_action`."""


def _logprobs(values: Sequence[Any], selected: Sequence[bool], name: str, *, sampled_from: bool) -> list[Number]:
    """The selected log-probabilities; those of the policy that sampled must be above minus infinity."""
    expected = "a log-probability: a number not above 0"
    if sampled_from:
        expected += ", and finite (a sampled token has positive probability)"
    checked: list[Number] = []
    for index, (value, keep) in enumerate(zip(values, selected, strict=True)):
        if keep:
            logprob = real(value, f"{name}[{index}]", expected)
            if logprob > ROUNDING or (sampled_from and logprob == -math.inf):
                refuse(f"{name}[{index}]", logprob, expected)
            checked.append(logprob)
    return checked


def macro_action_logprob(token_logprobs: Iterable[Number]) -> Number:
    r"""The log-probability of a sampled string, given its tokens'.

    .. math:: \log\pi(x\mid h) = \sum_{i=1}^{n} \log\pi(x_i\mid h, x_{<i})

    A sum, not a mean: a mean compares strings of different length wrongly.

    Args:
        token_logprobs: natural logarithms, at least one, none above 0 (beyond 1e-9 of rounding). Minus infinity
            is legal: this policy cannot write the string. The token that ends the turn belongs to the list if it
            was sampled.

    Returns:
        The log-probability, a number not above 0 (but for the rounding that was let in); a fraction for fractions.

    Raises:
        ValueError: an empty list, NaN, ``None``, a positive value; the message names its position.

    Source:
        Elementary: the chain rule of probability.

    Example:
        >>> macro_action_logprob([-0.42, -0.31, -0.27])
        -1.0
    """
    values = sequence(token_logprobs, "token_logprobs")
    if not values:
        refuse("token_logprobs", values, "at least one token")
    return exact_sum(_logprobs(values, [True] * len(values), "token_logprobs", sampled_from=False))


def turn_log_ratio(current: Iterable[Number], behavior: Iterable[Number], mask: Iterable[Any] | None = None) -> Number:
    r"""The logarithm of the turn ratio; it stays finite where the ratio itself overflows.

    .. math:: \log\rho = \sum_{i:\,m_i=1} \bigl(\log\pi(x_i\mid h, x_{<i}) - \log\mu(x_i\mid h, x_{<i})\bigr)

    Both lists score **the same tokens**: those that were sampled. Text that was decoded and encoded again may have
    other tokens; lists of unequal length are a sign of it, and refused.

    Args:
        current: log-probabilities under the policy :math:`\pi` being trained. Minus infinity is legal.
        behavior: log-probabilities under the policy :math:`\mu` that sampled the tokens; finite, since a sampled
            token has positive probability, and scored on the same support (temperature, top-p, top-k).
        mask: 1 or ``True`` for the policy's tokens, 0 or ``False`` for others; all are the policy's without it.
            What stands in a masked position is not read.

    Returns:
        :math:`\log\rho`; minus infinity if the current policy cannot write the turn. Fractions stay exact.

    Raises:
        ValueError: unequal lengths, no (unmasked) token, NaN, ``None``, a log-probability above 0 (beyond 1e-9
            of rounding), or minus infinity in ``behavior``; the message names the position.

    Source:
        Elementary: the chain rule of probability, for both policies. As a weight in learning, see
        :func:`turn_probability_ratio`.

    Example:
        >>> round(turn_log_ratio([-0.35, -0.26, -0.24], [-0.42, -0.31, -0.27]), 12)
        0.15
        >>> turn_log_ratio([-0.5, float("nan")], [-0.5, float("-inf")], mask=[1, 0])
        0.0
    """
    current_list, behavior_list = sequence(current, "current"), sequence(behavior, "behavior")
    if mask is None:
        selected = [True] * len(current_list)
        same_length(current=current_list, behavior=behavior_list)
    else:
        selected = [binary(m, f"mask[{index}]") for index, m in enumerate(sequence(mask, "mask"))]
        same_length(current=current_list, behavior=behavior_list, mask=selected)
    if not any(selected):
        raise ValueError("the turn has no policy tokens; expected at least one log-probability (unmasked)")
    now = _logprobs(current_list, selected, "current", sampled_from=False)
    then = _logprobs(behavior_list, selected, "behavior", sampled_from=True)
    return exact_sum([*now, *(-logprob for logprob in then)])


def turn_probability_ratio(
    current: Iterable[Number], behavior: Iterable[Number], mask: Iterable[Any] | None = None
) -> float:
    r"""The importance ratio of a whole turn.

    .. math:: \rho = \frac{\pi(x\mid h)}{\mu(x\mid h)} = \exp\log\rho

    Args:
        current: as in :func:`turn_log_ratio`.
        behavior: as in :func:`turn_log_ratio`.
        mask: as in :func:`turn_log_ratio`.

    Returns:
        A number not below 0. 0.0 if the current policy cannot write the turn (or the ratio is below the smallest
        float), ``inf`` if it exceeds the largest float: work with :func:`turn_log_ratio` there.

    Raises:
        ValueError: as :func:`turn_log_ratio`.

    Source:
        Precup, Sutton and Singh (2000), *Eligibility Traces for Off-Policy Policy Evaluation*. The
        length-normalised ratio is that of Zheng et al. (2025), *Group Sequence Policy Optimization*.

    Example:
        >>> round(turn_probability_ratio([-0.35, -0.26, -0.24], [-0.42, -0.31, -0.27]), 6)
        1.161834
        >>> turn_probability_ratio([-0.1] * 10, [-100.0] * 10)
        inf
    """
    log_ratio = turn_log_ratio(current, behavior, mask)
    try:
        return math.exp(log_ratio)
    except OverflowError:
        return math.inf if log_ratio > 0 else 0.0  # below: a fraction too negative to become a float


def _action_of(string: str, parser: Parser) -> Any:
    """What the parser makes of a string; ``None`` where it makes nothing of it."""
    if isinstance(parser, Mapping):
        return parser.get(string)
    try:
        return parser(string)
    except (ValueError, KeyError):  # "this is no action"; anything else is a fault of the parser, and passes
        return None


def _masses(
    strings: Mapping[str, Number], parser: Parser, action: Hashable, name: str = "string_probabilities"
) -> tuple[Number, Number]:
    """Mass of the strings that mean ``action``, and mass of all strings in the table."""
    if not isinstance(strings, Mapping):
        refuse(name, strings, "a mapping from strings to probabilities")
    if not isinstance(parser, Mapping) and not callable(parser):
        refuse("parser", parser, "a mapping from strings to actions, or a callable")
    if action is None:
        refuse("action", action, "an action (None is what a parser says of an invalid string)")
    try:
        comparable = hash(action) is not None and bool(action == action)
    except Exception:  # arrays cannot be hashed; tensors of several numbers, and missing values, not compared
        comparable = False
    if not comparable:
        refuse("action", action, "one action: a hashable value that equals itself")
    table: dict[str, Number] = {}
    for string, probability in strings.items():
        if not isinstance(string, str):
            refuse(f"a key of {name}", string, "a string")
        table[string] = unit_interval(probability, f"{name}[{string!r:.60}]")
    known = exact_sum([*table.values()])
    if known > (1 + ROUNDING if isinstance(known, float) else 1):
        refuse(f"the sum of {name}", known, "at most 1")
    matching = [probability for string, probability in table.items() if _action_of(string, parser) == action]
    return (exact_sum(matching) if matching else 0 * known), known


def semantic_action_probability(string_probabilities: Mapping[str, Number], parser: Parser, action: Hashable) -> Number:
    r"""The probability of an action, summed over the strings that mean it.

    .. math:: P(a\mid h) = \sum_{x:\,\mathrm{parse}(x)=a} P(x\mid h)

    Nothing is renormalised. If the table holds only the likeliest strings, the result is a **lower bound**;
    :func:`semantic_action_bounds` gives both. A string that the parser does not know, or refuses, is an invalid
    action: it belongs to no action and keeps its mass to itself.

    Args:
        string_probabilities: from strings to probabilities, whose sum is at most 1 (up to 1e-9 of rounding).
        parser: a mapping from strings to actions, where an absent string is invalid; or a callable such as
            :func:`parse_action`, which says "invalid" by :class:`ValueError`, :class:`KeyError` or ``None``.
        action: what to look for. One that no string maps to has probability 0.

    Returns:
        A probability; a fraction for fractions.

    Raises:
        ValueError: a probability that is negative, above 1 or NaN, a sum above 1, or arguments of a wrong kind.

    Source:
        Elementary: the strings that mean one action exclude one another, so their probabilities add.

    Example:
        >>> strings = {'{"name":"inspect"}': 0.25, '{"name": "inspect"}': 0.15, "inspekt": 0.6}
        >>> semantic_action_probability(strings, parse_action, "inspect")
        0.4
    """
    return _masses(string_probabilities, parser, action)[0]


def semantic_action_bounds(
    string_probabilities: Mapping[str, Number], parser: Parser, action: Hashable
) -> tuple[Number, Number]:
    r"""What an incomplete table of strings says about an action: the least and the greatest probability.

    .. math:: \sum_{x:\,\mathrm{parse}(x)=a} P(x) \;\le\; P(a) \;\le\;
              \sum_{x:\,\mathrm{parse}(x)=a} P(x) + \Bigl(1 - \sum_x P(x)\Bigr)

    Args:
        string_probabilities: as in :func:`semantic_action_probability`.
        parser: as in :func:`semantic_action_probability`.
        action: as in :func:`semantic_action_probability`.

    Returns:
        ``(low, high)``. They are equal if the table is complete.

    Raises:
        ValueError: as :func:`semantic_action_probability`.

    Source:
        Elementary: of the strings that are not in the table, none or all may mean the action.

    Example:
        >>> from fractions import Fraction as F
        >>> table = {"inspect": F(40, 100), "finish": F(53, 100)}
        >>> semantic_action_bounds(table, parse_action, "inspect")
        (Fraction(2, 5), Fraction(47, 100))
    """
    low, known = _masses(string_probabilities, parser, action)
    return low, (low + (1 - known) if known < 1 else low)  # a sum above 1 by rounding leaves nothing missing


def semantic_action_ratio(
    current: Mapping[str, Number], behavior: Mapping[str, Number], parser: Parser, action: Hashable
) -> Number:
    r"""The importance ratio of an action: what is left of the strings' ratios when spelling is averaged out.

    .. math:: \rho_{\mathrm{sem}}(a) = \frac{P_\pi(a\mid h)}{P_\mu(a\mid h)}
              = \mathrm{E}_\mu\bigl[\rho(x)\bigm|\mathrm{parse}(x)=a\bigr]

    The second form needs :math:`\mu(x)>0` for every string of :math:`\pi` that means the action.

    Args:
        current: from strings to probabilities under the policy :math:`\pi` being trained; the whole table, summing
            to 1 (up to 1e-9 with floats). A quotient of two lower bounds would be no bound of anything.
        behavior: the same for the policy :math:`\mu` that sampled.
        parser: as in :func:`semantic_action_probability`; the same for both, since another parser is another policy.
        action: the action that was taken.

    Returns:
        A number not below 0; a fraction for fractions.

    Raises:
        ValueError: an incomplete table, an action to which ``behavior`` gives no mass, and whatever
            :func:`semantic_action_probability` refuses.

    Source:
        Elementary: the law of total expectation. Its variance is not above that of the strings' ratio, which is the
        Rao-Blackwell theorem.

    Example:
        >>> then = {'{"name":"inspect"}': 0.25, '{"name": "inspect"}': 0.25, "finish": 0.5}
        >>> now = {'{"name":"inspect"}': 0.375, '{"name": "inspect"}': 0.125, "finish": 0.5}
        >>> semantic_action_ratio(now, then, parse_action, "inspect")
        1.0
    """
    masses: list[Number] = []
    for name, table in (("current", current), ("behavior", behavior)):
        mass, known = _masses(table, parser, action, name)
        if known < (1 - ROUNDING if isinstance(known, float) else 1):
            refuse(f"the sum of {name}", known, "1, a complete table (semantic_action_bounds takes others)")
        masses.append(mass)
    now, then = masses
    if then == 0:
        refuse(f"the probability of {action!r:.60} under behavior", then, "a positive number")
    return now / (Fraction(then) if isinstance(then, int) else then)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, unless it names a key twice: :mod:`json` would keep the last one in silence."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r:.60} twice")
        found[key] = value
    return found


def _no_constant(text: str) -> NoReturn:
    """NaN and the infinities are not JSON, although :mod:`json` reads them."""
    raise ValueError(f"{text}, which is not JSON")


def _parse_call(text: str, actions: tuple[str, ...]) -> str:
    """The action of a JSON object, or a :class:`ValueError` that says why there is none."""
    call = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    if not isinstance(call, dict):
        raise ValueError("JSON, but not an object")
    if not {"name"} <= call.keys() <= {"name", "arguments"}:
        raise ValueError(f"the keys {sorted(call)!r:.60}, where 'name' and perhaps 'arguments' belong")
    name, arguments = call["name"], call.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ValueError("a 'name' that is not a string, or 'arguments' that are not an object")
    if name in actions and not arguments:
        return name
    if arguments.keys() == {"color"} and isinstance(arguments["color"], str):
        action = _TOOL_CALLS.get((name, arguments["color"]))
        if action in actions:
            return action
    raise ValueError(f"unknown call {name!r:.60} with {arguments!r:.60}")


def parse_action(action: Any, *, colours: int = 2) -> str:
    """The one action that a string or an index means: the parser of the package.

    Four forms are read, and nothing else: no case folding, no trimming, no guess, no default.

    * the exact name, ``inspect``;
    * the index in :data:`keydoor.rules.ACTIONS`, an integer (not ``True``, not 2.0);
    * a JSON object with the name, ``{"name": "pickup_red"}``, where empty ``"arguments": {}`` may follow;
    * the call of a tool, ``{"name": "pickup", "arguments": {"color": "red"}}``, or ``open_door`` in the same way.

    Spacing between the tokens of JSON and the order of keys do not matter. Text after the object, a key given twice
    or an extra one, NaN, an unknown name or colour make the string invalid.

    Args:
        action: a string or an integer, also one of numpy or torch.
        colours: number of colours of the world, at least 2; see :func:`keydoor.rules.get_rules`.

    Returns:
        One of :data:`keydoor.rules.ACTIONS`, or with more colours of the ``actions`` of that world.

    Raises:
        ValueError: for anything that is not exactly one known action.

    Source:
        RFC 8259 (JSON), which leaves open what a duplicate key means; hence the refusal.

    Example:
        >>> parse_action(0), parse_action('{ "name" : "inspect" }')
        ('inspect', 'inspect')
        >>> parse_action('{"arguments": {"color": "blue"}, "name": "open_door"}')
        'open_blue'
        >>> parse_action('{"name": "fly"}')
        Traceback (most recent call last):
        ...
        ValueError: action is '{"name": "fly"}'; expected one known action, got unknown call 'fly' with {}
    """
    actions = get_rules(colours=colours).actions
    value = unwrap(action)
    expected = f"one of {', '.join(actions)}, its index 0 to {len(actions) - 1}, or a JSON object"
    if isinstance(value, str):
        if value in actions:
            return actions[actions.index(value)]
        if value.lstrip().startswith("{"):
            try:
                return _parse_call(value, actions)
            except ValueError as reason:
                expected = f"one known action, got {reason}"
            except RecursionError:
                expected = "one known action, got brackets nested too deeply"
    elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(actions):
        return actions[value]
    return refuse("action", value, expected)
