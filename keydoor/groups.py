"""Groups of rollouts of one task: when they carry a signal, and the advantages relative to the group.

With a binary reward, a group-relative advantage is zero for everyone when all succeed or all fail. The share of groups
that say anything depends on the success probability and the group's size, not on the learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from keydoor._checks import IN_RANGE, Number, finite, finite_sequence, flag, refuse, unit_interval, whole


def informative_group_probability(p: Number, group_size: int) -> Number:
    r"""The probability that a group of independent rollouts holds both successes and failures.

    .. math:: P(\text{mixed}) = 1 - p^G - (1-p)^G

    On floats the difference is not taken as it stands: at :math:`p = 10^{-12}` it would have four correct digits, and
    below :math:`10^{-16}` none. With :math:`q = \min(p, 1-p)` the form
    :math:`-\mathrm{expm1}(G\,\mathrm{log1p}(-q)) - q^G` keeps full relative accuracy.

    Args:
        p: success probability of a single rollout, in [0, 1].
        group_size: :math:`G`, an integer not below 1 (and below :math:`2^{63}`).

    Returns:
        A probability; a fraction for a fraction. Exactly 0 for a group of one, and at p = 0 and p = 1. Symmetric
        in p and 1 - p.

    Raises:
        ValueError: ``p`` outside [0, 1] or NaN, or ``group_size`` not an integer of at least 1.

    Source:
        Elementary; used as a filter in Yu et al. (2025), *DAPO* ("dynamic sampling").

    Example:
        >>> round(informative_group_probability(0.05, 8), 6)
        0.33658
        >>> from fractions import Fraction
        >>> informative_group_probability(Fraction(3, 10), 4)
        Fraction(3759, 5000)
    """
    p = unit_interval(p, "p")
    size = whole(group_size, "group_size", least=1, bits=63)
    if not isinstance(p, float):
        return 1 - p**size - (1 - p) ** size
    q = min(p, 1 - p)  # exact: 1 - p has no rounding error for p in [1/2, 1]
    if size == 1 or q == 0:
        return 0.0
    return -math.expm1(size * math.log1p(-q)) - q**size


def group_advantages(
    rewards: Iterable[Number], *, ddof: int = 0, epsilon: Number = 0.0, scale: bool = True
) -> list[Number]:
    r"""Advantages relative to the group of rollouts of the same task.

    .. math:: A_i = \frac{r_i - \bar r}{s + \varepsilon}, \qquad
              s^2 = \frac{1}{G - \mathrm{ddof}}\sum_{i=1}^{G}(r_i - \bar r)^2

    A group of equal rewards has no signal: it gets zeros, decided by **equality** and not by a small
    :math:`s`. (The float mean of three rewards 0.1 is not 0.1, and dividing that error by its own deviation
    gives -1, -1, -1.) A group of one also gets zero, for every ``ddof``. Mean and deviations are computed exactly
    and rounded once, so that nearly equal rewards are told apart.

    Args:
        rewards: one finite number per **trajectory** (not per turn: long ones would count several times).
        ddof: 0 divides the squares by :math:`G`, 1 by :math:`G - 1`. Libraries differ; TRL takes
            ``ddof=1, epsilon=1e-4``.
        epsilon: a number not below 0, added to the deviation :math:`s`. Not needed against division by zero here.
        scale: ``False`` returns the bare differences :math:`r_i - \bar r`.

    Returns:
        The list :math:`A_1, \dots, A_G`, as floats; with ``scale=False`` fractions give fractions.

    Raises:
        ValueError: no reward at all, a reward that is not finite, or an argument outside its range.

    Source:
        Shao et al. (2024), *DeepSeekMath* (the group-relative advantage); Liu et al. (2025), *Understanding
        R1-Zero-Like Training* (without the division).

    Example:
        >>> group_advantages([0, 1])
        [-1.0, 1.0]
        >>> group_advantages([0.1, 0.1, 0.1])
        [0.0, 0.0, 0.0]
        >>> [round(a, 6) for a in group_advantages([1] + [0] * 7, ddof=1, epsilon=1e-4)][:2]
        [2.474174, -0.353453]
    """
    r = finite_sequence(rewards, "rewards")
    if not r:
        refuse("rewards", r, "at least one reward")
    if whole(ddof, "ddof", least=0) > 1:
        refuse("ddof", ddof, "0 or 1")
    epsilon = finite(epsilon, "epsilon", "a finite number not below 0")
    if epsilon < 0:
        refuse("epsilon", epsilon, "a finite number not below 0")
    scale = flag(scale, "scale")

    exact = not scale and any(isinstance(x, Fraction) for x in r) and not any(isinstance(x, float) for x in r)
    if all(x == r[0] for x in r):  # a group of one is one of these
        return [Fraction(0) if exact else 0.0 for _ in r]
    rational = [Fraction(x) for x in r]
    mean = sum(rational, Fraction(0)) / len(rational)
    deviations = [x - mean for x in rational]
    if exact:
        return [*deviations]
    largest = max(abs(d) for d in deviations)
    if not scale:
        finite(largest, "the largest deviation", IN_RANGE)
        return [float(d) for d in deviations]
    # Squares are taken relative to the largest deviation, so that they neither overflow nor vanish.
    relative = [d / largest for d in deviations]
    s = math.sqrt(sum((d * d for d in relative), Fraction(0)) / (len(r) - ddof))
    denominator = largest * Fraction(s) + Fraction(epsilon)
    return [float(d / denominator) for d in deviations]
