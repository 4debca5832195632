"""Whose tokens are these? What of a transcript may enter the policy loss.

The policy gradient holds for tokens that the policy has *sampled*. The text of the task, of the user and of the tools
is the environment's part: it conditions the policy and gets no gradient. A role in a chat template is an
approximation of this provenance: it fails as soon as a controller writes, repairs or appends text in the
assistant's name. Then the flag ``sampled`` has to be carried along from the place where sampling happens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from keydoor._checks import flag, refuse, sequence, whole

ROLES = ("system", "developer", "user", "assistant", "tool")
"""The roles of a chat transcript. Any other name is an error: it must not pass in silence as "not the policy"."""


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
