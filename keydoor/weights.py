r"""What a turn is weighted by: the tree of a policy's turns, and the weights that training programs put on them.

A turn that was sampled from :math:`\mu` stands for turns of :math:`\pi` if it is weighted by its ratio, the product
over its tokens (:func:`keydoor.turns.turn_probability_ratio`). Other weights are in use: one ratio per token, the
geometric mean of the ratios, the product cut off at a threshold. Each estimates something else, and on a small
vocabulary all of it can be computed by following every path, exactly on fractions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from keydoor._checks import IN_RANGE, Number, binary, finite, refuse, sequence, unit_interval
from keydoor.turns import ROUNDING, turn_log_ratio

Prefix = tuple[Hashable, ...]
"""The tokens of a turn so far; ``()`` before the first."""


def _distribution(table: Any, name: str) -> dict[Any, Number]:
    """A table of probabilities that sum to 1."""
    if not isinstance(table, Mapping) or not table:
        refuse(name, table, "a mapping to probabilities, not empty")
    checked = {key: unit_interval(value, f"{name}[{key!r:.60}]") for key, value in table.items()}
    values = list(checked.values())
    total: Number = math.fsum(values) if any(isinstance(value, float) for value in values) else sum(values)
    tolerance = ROUNDING if isinstance(total, float) else 0
    if not -tolerance <= total - 1 <= tolerance:
        refuse(f"the sum of {name}", total, "1")
    return checked


def turn_distribution(policy: Mapping[Prefix, Mapping[Hashable, Number]]) -> dict[Prefix, Number]:
    r"""All turns that a policy can write, with their probabilities.

    .. math:: \pi(x\mid h) = \prod_{i=1}^{n}\pi(x_i\mid h, x_{<i}), \qquad \sum_x \pi(x\mid h) = 1

    The policy is a finite tree: a prefix that has an entry goes on, a prefix that has none is a complete turn. So no
    complete turn is the beginning of another, as with a token that ends the turn.

    Args:
        policy: from prefixes (tuples of tokens; ``()`` is the start) to tables from the next token to its
            probability, in [0, 1], which sum to 1 (up to 1e-9 with floats, exactly with fractions).

    Returns:
        From complete turns to probabilities, in the order of a walk through the tree; turns of probability 0 are
        listed. Fractions stay exact.

    Raises:
        ValueError: no start, a prefix that is no tuple or is never reached, a row that is no distribution.

    Source:
        Elementary: the chain rule of probability.

    Example:
        >>> from fractions import Fraction as F
        >>> policy = {(): {"inspect": F(1, 4), "pickup": F(3, 4)}, ("pickup",): {"red": F(1, 3), "blue": F(2, 3)}}
        >>> {" ".join(turn): str(p) for turn, p in turn_distribution(policy).items()}
        {'inspect': '1/4', 'pickup red': '1/4', 'pickup blue': '1/2'}
    """
    if not isinstance(policy, Mapping):
        refuse("policy", policy, "a mapping from prefixes to distributions over the next token")
    for prefix in policy:
        if not isinstance(prefix, tuple):
            refuse("a key of policy", prefix, "a tuple of tokens")
    if () not in policy:
        refuse("policy", policy, "an entry for (), the start of the turn")
    complete: dict[Prefix, Number] = {}
    reached = 0
    waiting: list[tuple[Prefix, Number]] = [((), 1)]
    while waiting:
        prefix, probability = waiting.pop()
        if prefix not in policy:
            complete[prefix] = probability
            continue
        reached += 1
        row = _distribution(policy[prefix], f"policy[{prefix!r:.60}]")
        waiting += [((*prefix, token), probability * p) for token, p in reversed(row.items())]
    if reached < len(policy):
        lost = [prefix for prefix in policy if any(prefix[:i] not in policy for i in range(len(prefix)))]
        lost += [p for p in policy if p and p[:-1] in policy and p[-1] not in policy[p[:-1]]]
        refuse("a key of policy", lost[0], "a prefix that can be reached from ()")
    return complete


def length_normalised_ratio(
    current: Iterable[Number], behavior: Iterable[Number], mask: Iterable[Any] | None = None
) -> float:
    r"""The geometric mean of the token ratios: the "sequence ratio" of GSPO, which is no importance ratio.

    .. math:: \rho^{1/n} = \exp\Bigl(\frac1n\sum_{i:\,m_i=1}
              \bigl(\log\pi(x_i\mid h,x_{<i})-\log\mu(x_i\mid h,x_{<i})\bigr)\Bigr), \qquad n=\sum_i m_i

    As a weight it estimates the mass :math:`\pi^{1/n}\mu^{1-1/n}` instead of :math:`\pi`: the longer the turn, the
    less is corrected.

    Args:
        current: as in :func:`keydoor.turns.turn_log_ratio`.
        behavior: as in :func:`keydoor.turns.turn_log_ratio`.
        mask: as in :func:`keydoor.turns.turn_log_ratio`; only the tokens it keeps are counted in :math:`n`.

    Returns:
        A number not below 0; 0.0 if the current policy cannot write the turn, ``inf`` beyond the largest float.

    Raises:
        ValueError: as :func:`keydoor.turns.turn_log_ratio`.

    Source:
        Zheng et al. (2025), *Group Sequence Policy Optimization*, the definition of the ratio s_i.

    Example:
        >>> round(length_normalised_ratio([-0.35, -0.26, -0.24], [-0.42, -0.31, -0.27]), 6)
        1.051271
    """
    current_list, behavior_list = sequence(current, "current"), sequence(behavior, "behavior")
    mask_list = None if mask is None else sequence(mask, "mask")
    log_ratio = turn_log_ratio(current_list, behavior_list, mask_list)
    count = len(current_list) if mask_list is None else sum(binary(m, "mask") for m in mask_list)
    mean = log_ratio / count if isinstance(log_ratio, float) else Fraction(log_ratio) / count
    try:
        return math.exp(mean)
    except OverflowError:
        return math.inf if mean > 0 else 0.0


def chi_square(current: Mapping[Any, Number], behavior: Mapping[Any, Number]) -> Number:
    r"""The chi-square divergence of two distributions: the variance of their ratio under the second.

    .. math:: \chi^2(\pi\,\|\,\mu) = \sum_x \frac{(\pi(x)-\mu(x))^2}{\mu(x)}
              = \mathrm{Var}_\mu\Bigl(\frac{\pi}{\mu}\Bigr)

    For turns of independent tokens :math:`1+\chi^2` of the turn is the product of :math:`1+\chi^2` over its tokens.

    Args:
        current: the distribution :math:`\pi`, from outcomes (tokens, turns, actions) to probabilities that sum to 1.
        behavior: the distribution :math:`\mu` in the same form. An outcome missing from one table has probability 0.

    Returns:
        A number not below 0, exact on fractions; ``inf`` if the current policy can do what the behaviour policy
        cannot (the ratio is not defined there).

    Raises:
        ValueError: a table that is no distribution.

    Source:
        Pearson's divergence. For its part in importance sampling see Chatterjee and Diaconis (2018), *The sample
        size required in importance sampling*, who show where a variance misleads.

    Example:
        >>> from fractions import Fraction as F
        >>> chi_square({"red": F(2, 3), "blue": F(1, 3)}, {"red": F(1, 2), "blue": F(1, 2)})
        Fraction(1, 9)
    """
    now, then = _distribution(current, "current"), _distribution(behavior, "behavior")
    if any(p > 0 and then.get(outcome, 0) == 0 for outcome, p in now.items()):
        return math.inf
    terms = [(now.get(outcome, 0) - q) ** 2 / _exact(q) for outcome, q in then.items() if q > 0]
    return math.fsum(terms) if any(isinstance(term, float) for term in terms) else sum(terms)


def _exact(number: Number) -> Number:
    """An integer as a fraction, so that a quotient of integers does not become a float."""
    return Fraction(number) if isinstance(number, int) else number


def clipped_surrogate(ratio: Number, advantage: Number, *, epsilon_low: Number, epsilon_high: Number) -> Number:
    r"""The clipped objective of one ratio, of a token or of a turn.

    .. math:: \min\bigl(wA,\ \mathrm{clip}(w,\,1-\varepsilon_{\mathrm{low}},\,1+\varepsilon_{\mathrm{high}})\,A\bigr)

    Its derivative by the ratio is 0 where :math:`A>0` and :math:`w>1+\varepsilon_{\mathrm{high}}`, or :math:`A<0` and
    :math:`w<1-\varepsilon_{\mathrm{low}}`, and :math:`A` elsewhere. The ratio itself is not bounded by it.

    Args:
        ratio: :math:`w`, finite and not below 0.
        advantage: :math:`A`, finite.
        epsilon_low: in [0, 1].
        epsilon_high: finite and not below 0.

    Returns:
        The objective (to be maximised), exact on fractions.

    Raises:
        ValueError: a number that is not finite or out of its range, also the result.

    Source:
        Schulman et al. (2017), *Proximal Policy Optimization Algorithms*, equation 7, with two bounds.

    Example:
        >>> from fractions import Fraction as F
        >>> clipped_surrogate(F(3, 2), 1, epsilon_low=F(1, 5), epsilon_high=F(1, 5))
        Fraction(6, 5)
        >>> clipped_surrogate(F(3, 2), -1, epsilon_low=F(1, 5), epsilon_high=F(1, 5))
        Fraction(-3, 2)
    """
    w, a = finite(ratio, "ratio", "a finite number not below 0"), finite(advantage, "advantage")
    if w < 0:
        refuse("ratio", w, "a finite number not below 0")
    low = 1 - unit_interval(epsilon_low, "epsilon_low")
    high = finite(epsilon_high, "epsilon_high", "a finite number not below 0")
    if high < 0:
        refuse("epsilon_high", high, "a finite number not below 0")
    return finite(min(w * a, min(max(w, low), 1 + high) * a), "the surrogate", IN_RANGE)
