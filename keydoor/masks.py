"""Whose tokens are these? What of a transcript may enter the policy loss.

The policy gradient holds for tokens that the policy has *sampled*. The text of the task, of the user and of the tools
is the environment's part: it conditions the policy and gets no gradient. A role in a chat template is an
approximation of this provenance: it fails as soon as a controller writes, repairs or appends text in the
assistant's name. Then the flag ``sampled`` has to be carried along from the place where sampling happens.

A mask *selects*: what stands in a masked position is never read, since engines put NaN or ``None`` there. Which number
the selected losses are divided by is a second choice, with consequences of its own: :func:`average_token_losses`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from keydoor._checks import (
    IN_RANGE,
    Number,
    binary,
    exact_sum,
    finite,
    flag,
    float_range,
    one_of,
    refuse,
    same_length,
    sequence,
    unit_interval,
    whole,
)

ROLES = ("system", "developer", "user", "assistant", "tool")
"""The roles of a chat transcript. Any other name is an error: it must not pass in silence as "not the policy"."""

AVERAGES = ("token", "sequence", "constant", "micro_batch")
"""The four averages of :func:`average_token_losses`."""


@dataclass(frozen=True)
class TrajectoryMaskReport:
    """How much of a transcript belongs to the policy.

    Example:
        >>> report = trajectory_mask_report([("user", 6), ("assistant", 2)])
        >>> report.policy_tokens, report.total_tokens, report.masked_fraction, report.dilution_factor
        (2, 8, 0.75, 4.0)
    """

    policy_tokens: int
    """Tokens that the policy sampled: those that enter the loss."""

    total_tokens: int
    """All tokens of the transcript; at least 1."""

    masked_fraction: float
    """Share of the tokens kept out of the loss, in [0, 1]: ``1 - policy_tokens / total_tokens``."""

    dilution_factor: float
    """``total_tokens / policy_tokens``, at least 1: what averaging the loss over *all* tokens divides the
    policy's signal by. Infinite without policy tokens: nothing is left of a signal."""


def _segment(segment: Any, name: str) -> tuple[int, bool]:
    """Token count and provenance of one segment."""
    items: Sequence[Any] = sequence(segment, name)
    if len(items) not in (2, 3):
        refuse(name, segment, "(role, count) or (role, count, sampled)")
    role = items[0]
    if not isinstance(role, str) or role not in ROLES:
        refuse(f"role of {name}", role, "one of " + ", ".join(ROLES))
    count = whole(items[1], f"token count of {name}", least=0, bits=63)
    sampled = flag(items[2], f"sampled flag of {name}") if len(items) == 3 else role == "assistant"
    return count, sampled


def trajectory_mask_report(segments: Iterable[Sequence[Any]]) -> TrajectoryMaskReport:
    r"""Count the policy's tokens in a transcript.

    .. math:: \text{masked fraction} = 1 - \frac{n_\pi}{n}, \qquad \text{dilution} = \frac{n}{n_\pi}

    Args:
        segments: the transcript in order, each segment ``(role, count)`` or ``(role, count, sampled)``.
            ``role`` is one of :data:`ROLES`, ``count`` a non-negative integer. Without ``sampled`` the role
            decides: the assistant's tokens are the policy's. With it (a boolean) the flag decides alone, whatever
            the role; both forms may be mixed.

    Returns:
        A :class:`TrajectoryMaskReport`. Without policy tokens the dilution is infinite and everything is masked.

    Raises:
        ValueError: an unknown role, a count that is negative or no integer, a malformed segment; or a transcript
            without any token, whose fraction would be 0/0.

    Source:
        Jin et al. (2025), *Search-R1*, keep retrieved tokens out of the loss for this reason.

    Example:
        >>> segments = [("system", 44), ("user", 63), ("assistant", 18), ("tool", 162), ("assistant", 21)]
        >>> trajectory_mask_report(segments).dilution_factor
        7.897435897435898
        >>> trajectory_mask_report([("user", 9), ("assistant", 2, True), ("assistant", 1, False)]).policy_tokens
        2
    """
    policy_tokens = total_tokens = 0
    for index, segment in enumerate(sequence(segments, "segments")):
        count, sampled = _segment(segment, f"segments[{index}]")
        total_tokens += count
        if sampled:
            policy_tokens += count
    if total_tokens == 0:
        raise ValueError("segments hold no tokens; expected at least one (a fraction of nothing has no value)")
    return TrajectoryMaskReport(
        policy_tokens=policy_tokens,
        total_tokens=total_tokens,
        masked_fraction=(total_tokens - policy_tokens) / total_tokens,
        dilution_factor=total_tokens / policy_tokens if policy_tokens else math.inf,
    )


def _selected(values: Any, mask: Any, name: str, mask_name: str) -> list[Number]:
    """The finite numbers at the policy's positions; the others are not read."""
    items = sequence(values, name)
    keep = [binary(m, f"{mask_name}[{index}]") for index, m in enumerate(sequence(mask, mask_name))]
    same_length(**{name: items, mask_name: keep})
    return [finite(x, f"{name}[{i}]") for i, (x, own) in enumerate(zip(items, keep, strict=True)) if own]


def _sum(terms: Sequence[Number], name: str) -> Number:
    return finite(exact_sum(terms), name, IN_RANGE)


def policy_token_sum(values: Iterable[Number], mask: Iterable[Any]) -> Number:
    r"""The sum of a per-token quantity over the tokens that the policy sampled.

    .. math:: \sum_{i:\,m_i=1} v_i

    With :math:`v_i = \log\pi(x_i\mid x_{<i})` it is the only part of a transcript's log-likelihood that depends on
    the policy's parameters; with the derivative of that, it is the transcript's score, the factor of the return in
    the policy gradient.

    Args:
        values: one entry per token, a finite number at the policy's tokens. What stands at the others is not read.
        mask: 1 or ``True`` where the policy sampled the token, else 0 or ``False``; as long as ``values``.

    Returns:
        The sum; a fraction for fractions. It is 0 without policy tokens, since a transcript that the policy had no
        part in has no score.

    Raises:
        ValueError: unequal lengths, a mask entry that is neither 0 nor 1, a value of the policy's that is not finite.

    Source:
        Williams (1992), *Simple Statistical Gradient-Following Algorithms*, for the sum of scores.

    Example:
        >>> policy_token_sum([-0.5, float("nan"), -0.25], [1, 0, 1])
        -0.75
    """
    return _sum(_selected(values, mask, "values", "mask"), "the sum of values")


def average_token_losses(
    losses: Iterable[Iterable[Number]],
    masks: Iterable[Iterable[Any]],
    *,
    average: str = "token",
    length: int | None = None,
    micro_batches: Iterable[int] | None = None,
) -> Number:
    r"""One number out of the token losses of a batch of sequences, in one of four ways.

    With :math:`s_k` the sum of the losses of the :math:`n_k` policy tokens of sequence :math:`k = 1, \dots, K`, and
    :math:`B` micro-batches that hold :math:`S_b` losses in :math:`N_b` policy tokens:

    .. math:: \frac{\sum_k s_k}{\sum_k n_k}, \qquad \frac1K\sum_k\frac{s_k}{n_k}, \qquad
              \frac{1}{KL}\sum_k s_k, \qquad \frac1B\sum_b\frac{S_b}{N_b}

    These are four objectives. The first and the fourth agree only if the micro-batches hold equally many policy
    tokens; a fourth that was meant to be the first is a common fault of gradient accumulation.

    Args:
        losses: for each sequence, one entry per token: a finite number at the policy's tokens. What stands at the
            others is not read.
        masks: for each sequence, as many zeros and ones (or booleans) as it has tokens.
        average: one of :data:`AVERAGES`: ``"token"``, ``"sequence"``, ``"constant"``, ``"micro_batch"``.
        length: :math:`L`, an integer not below 1; for ``"constant"``, and only for it.
        micro_batches: numbers of sequences in each micro-batch, in order, not below 1, with :math:`K` as their sum;
            for ``"micro_batch"``, and only for it.

    Returns:
        The average; a fraction if the losses are fractions.

    Raises:
        ValueError: no sequence, unequal lengths, a policy token's loss that is not finite, a mask entry that is
            neither 0 nor 1, an option that is missing or belongs to another average; and a division by zero: no
            policy token in the batch, in a sequence (``"sequence"``) or in a micro-batch (``"micro_batch"``).

    Source:
        Shao et al. (2024), *DeepSeekMath* (the second); Yu et al. (2025), *DAPO* (the first); Liu et al. (2025),
        *Understanding R1-Zero-Like Training* (the third).

    Example:
        >>> from fractions import Fraction
        >>> losses, masks = [[Fraction(-1)] * 2, [Fraction(1)] * 8], [[1] * 2, [1] * 8]
        >>> average_token_losses(losses, masks), average_token_losses(losses, masks, average="sequence")
        (Fraction(3, 5), Fraction(0, 1))
        >>> average_token_losses(losses, masks, average="constant", length=10)
        Fraction(3, 10)
        >>> average_token_losses(losses, masks, average="micro_batch", micro_batches=[1, 1])
        Fraction(0, 1)
    """
    one_of(average, "average", AVERAGES)
    rows, mask_rows = sequence(losses, "losses"), sequence(masks, "masks")
    same_length(losses=rows, masks=mask_rows)
    if not rows:
        refuse("losses", rows, "at least one sequence")
    own = [_selected(x, m, f"losses[{k}]", f"masks[{k}]") for k, (x, m) in enumerate(zip(rows, mask_rows, strict=True))]
    for option, value, belongs in (("length", length, "constant"), ("micro_batches", micro_batches, "micro_batch")):
        if (value is None) == (average == belongs):
            refuse(option, value, f"a value with average={belongs!r}, and None otherwise")
    if average == "constant":
        divisor = whole(length, "length", least=1, bits=63)
        return _ratio(_sum([x for row in own for x in row], "the sum of losses"), divisor * len(own))
    if average == "token":
        parts = [("losses", own)]
    elif average == "sequence":
        parts = [(f"losses[{k}]", [row]) for k, row in enumerate(own)]
    else:
        sizes = [
            whole(m, f"micro_batches[{b}]", least=1) for b, m in enumerate(sequence(micro_batches, "micro_batches"))
        ]
        if sum(sizes) != len(own):
            refuse("micro_batches", sizes, f"numbers that add up to the {len(own)} sequences")
        starts = [sum(sizes[:b]) for b in range(len(sizes))]
        parts = [(f"micro-batch {b}", own[start : start + sizes[b]]) for b, start in enumerate(starts)]
    means = []
    for name, part in parts:
        values = [x for row in part for x in row]
        if not values:
            raise ValueError(f"{name} holds no policy tokens; expected at least one (their mean would be 0/0)")
        means.append(_ratio(_sum(values, f"the sum of {name}"), len(values)))
    return _ratio(_sum(means, "the sum of the means"), len(means))


def _ratio(total: Number, count: int) -> Number:
    """A quotient that stays exact for fractions; of two integers, a float."""
    return total / count if isinstance(total, (float, Fraction)) else finite(total / count, "the average", IN_RANGE)


def masked_returns(rewards: Iterable[Number], mask: Iterable[Any], gamma: Number) -> list[Number]:
    r"""Returns of the policy's tokens, with tokens of the environment between them that take no time.

    Let :math:`i_1 < \dots < i_n` be the policy's positions. A reward belongs to the last policy token before or at its
    position, and only a policy token costs a discount:

    .. math:: G_j = \sum_{i_j \le i < i_{j+1}} r_i + \gamma\,G_{j+1}, \qquad G_{n+1} = 0

    So the result does not depend on how many tokens a tool answered with, and a reward that falls on a token of the
    environment is not lost. (Here one *token* is one decision. With one decision per *turn*, use
    :func:`keydoor.returns.discounted_return` with one reward per turn.)

    Args:
        rewards: one finite number per token, :math:`r_0, r_1, \dots`
        mask: 1 or ``True`` where the policy sampled the token, else 0 or ``False``; as long as ``rewards``.
        gamma: discount factor in [0, 1].

    Returns:
        A list with one return per policy token, fractions for fractions.

    Raises:
        ValueError: unequal lengths, a reward that is not finite, ``gamma`` outside [0, 1], a mask entry that is
            neither 0 nor 1, or a reward other than 0 before the first policy token: no decision earned it.

    Source:
        Elementary: the definition of a return, on the subsequence of decisions.

    Example:
        >>> masked_returns([0, 0, 1], [1, 0, 1], 0.5)
        [0.5, 1]
        >>> masked_returns([0] * 1001 + [1], [1] + [0] * 1000 + [1], 0.99)
        [0.99, 1]
    """
    r = [finite(x, f"rewards[{i}]") for i, x in enumerate(sequence(rewards, "rewards"))]
    own = [binary(m, f"mask[{i}]") for i, m in enumerate(sequence(mask, "mask"))]
    same_length(rewards=r, mask=own)
    gamma = unit_interval(gamma, "gamma")
    first = own.index(True) if any(own) else len(own)
    for i, reward in enumerate(r[:first]):
        if reward != 0:
            refuse(f"rewards[{i}]", reward, "0 before the first policy token, since no decision earned it")
    returns: list[Number] = []
    earned: Number = 0
    for i in range(len(r) - 1, first - 1, -1):
        name = f"the return from token {i}"
        with float_range(name):
            earned = finite(earned + r[i], name, IN_RANGE)
            if own[i]:
                returns.append(finite(earned + gamma * returns[-1] if returns else earned, name, IN_RANGE))
                earned = 0
    return returns[::-1]
