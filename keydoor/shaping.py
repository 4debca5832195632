"""Potential-based shaping: rewards for progress that leave the return alone, up to the two ends of the episode.

A potential :math:`\\Phi` gives every state a number. The shaping term of a step,
:math:`\\gamma\\Phi_{t+1} - \\Phi_t`, telescopes: whatever the agent does in between, the discounted sum of all terms
is :math:`\\gamma^T\\Phi_T - \\Phi_0`. This leaves the order of policies unchanged under two conditions, which the
functions below cannot check, because they see numbers and not states:

* at a **true end** :math:`\\Phi_T = 0`, for success and failure alike. Otherwise the potential pays for ending
  there, and can turn the order of two policies round;
* at a **collector cut** :math:`\\Phi_T` is kept, since the process goes on: the shaped critic's bootstrap value, and
  not the shaping, accounts for what follows (for the true values, :math:`V'(s) = V(s) - \\Phi(s)`).

The discount of the shaping has to be the learner's. With another one a loop through the states pays or costs
something each time round.

:func:`find_potential` goes the other way: given the bonuses of some program, it finds the potential behind them, or
what they pay beyond any potential.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from fractions import Fraction

from keydoor._checks import IN_RANGE, Number, finite, finite_sequence, float_range, refuse, sequence, unit_interval
from keydoor.returns import discounted_return


def _checked(
    rewards: Iterable[Number], potentials: Iterable[Number], gamma: Number
) -> tuple[list[Number], list[Number], Number]:
    r = finite_sequence(rewards, "rewards")
    phi = finite_sequence(potentials, "potentials")
    if not r:
        refuse("rewards", r, "at least one reward: an episode has at least one turn")
    if len(phi) != len(r) + 1:
        raise ValueError(
            f"potentials has length {len(phi)}; expected {len(r) + 1}: one per reward, and the one after the last"
        )
    return r, phi, unit_interval(gamma, "gamma")


def potential_shaping(rewards: Iterable[Number], potentials: Iterable[Number], gamma: Number) -> list[Number]:
    r"""The shaped rewards of an episode.

    .. math:: r'_t = r_t + \gamma\Phi_{t+1} - \Phi_t

    Every step gets its term, also a step that changed nothing: an invalid action at potential :math:`\Phi` costs
    :math:`(1-\gamma)\Phi`. Leaving that out breaks the identity of :func:`shaped_return_identity`.

    Args:
        rewards: :math:`r_0, \dots, r_{T-1}`, at least one.
        potentials: :math:`\Phi_0, \dots, \Phi_T`, one more than rewards, all finite; pass :math:`\Phi_T = 0` at
            a true end, and the potential of the last state at a collector cut.
        gamma: the **learner's** discount factor, in [0, 1].

    Returns:
        The list :math:`r'_0, \dots, r'_{T-1}`.

    Raises:
        ValueError: lengths that do not fit, no reward at all, or a number that is not finite.

    Source:
        Ng, Harada and Russell (1999), *Policy Invariance Under Reward Transformations*. On the potential at the
        end of an episode: Grześ (2017), *Reward Shaping in Episodic Reinforcement Learning*.

    Example:
        >>> from fractions import Fraction as F
        >>> shaped = potential_shaping([0, 0, 1], [F(0), F(1, 4), F(11, 20), F(0)], F(9, 10))
        >>> [float(r) for r in shaped]
        [0.225, 0.245, 0.45]
    """
    r, phi, gamma = _checked(rewards, potentials, gamma)
    shaped: list[Number] = []
    for t, reward in enumerate(r):
        with float_range(f"shaped reward {t}"):
            shaped.append(finite(reward + gamma * phi[t + 1] - phi[t], f"shaped reward {t}", IN_RANGE))
    return shaped


def shaped_return_identity(
    rewards: Iterable[Number], potentials: Iterable[Number], gamma: Number
) -> tuple[Number, Number, Number]:
    r"""Both sides of the shaping identity, computed in two ways.

    .. math:: \sum_{t=0}^{T-1}\gamma^t r'_t = G_0 - \Phi_0 + \gamma^T\Phi_T

    The identity holds for **any** potentials, the last one included. That shaping leaves the order of policies
    alone is a stronger statement: it needs :math:`\Phi_T = 0` at a true end, so that only :math:`-\Phi_0` is
    left, which no action can change.

    Args:
        rewards: :math:`r_0, \dots, r_{T-1}`, at least one.
        potentials: :math:`\Phi_0, \dots, \Phi_T`, one more than rewards.
        gamma: discount factor in [0, 1], the same for return and shaping.

    Returns:
        ``(original, shaped, predicted)``: :math:`G_0`, the discounted sum of the shaped rewards, and the right
        side of the identity. The last two are equal: exactly on fractions, up to rounding on floats.

    Raises:
        ValueError: as :func:`potential_shaping`.

    Source:
        Ng, Harada and Russell (1999).

    Example:
        >>> from fractions import Fraction as F
        >>> identity = shaped_return_identity([0, 0, 1], [F(3, 10), F(1, 4), F(11, 20), F(0)], F(9, 10))
        >>> [float(side) for side in identity]
        [0.81, 0.51, 0.51]
    """
    r, phi, gamma = _checked(rewards, potentials, gamma)
    original = discounted_return(r, gamma)
    shaped = discounted_return(potential_shaping(r, phi, gamma), gamma)
    with float_range("the predicted return"):
        predicted = original - phi[0] + gamma ** len(r) * phi[-1]
    return original, shaped, finite(predicted, "the predicted return", IN_RANGE)


def find_potential(
    steps: Iterable[tuple[Hashable, Hashable | None, Number]], gamma: Number
) -> tuple[dict[Hashable, Number], list[Number]]:
    r"""The potential behind given bonuses, and what they pay beyond it.

    .. math:: F(s, s') = \gamma\Phi(s') - \Phi(s) + \text{excess}, \qquad \Phi = 0 \text{ at the end}

    The potential is built from the steps in their order, from the end outwards, so that the steps that fix it have no
    excess. Bonuses come from a potential exactly if **no** step has one; then the potential is the only one. Where
    some step has, the bonus of some loop or detour is not just a matter of where it begins and ends, and there is a
    world in which it changes the best policy. Which steps show an excess depends on the order; that some do does not.

    Args:
        steps: ``(state, next_state, bonus)`` for each kind of step, at least one; ``next_state`` is ``None`` at a true
            end. States are names of any hashable kind. The same step may occur more than once, for instance
            with different actions.
        gamma: the **learner's** discount factor, above 0, at most 1.

    Returns:
        ``(potential, excess)``: :math:`\Phi` of each state, and a number for each step. Integers and fractions give
        fractions; with floats an excess of the size of the rounding means none.

    Raises:
        ValueError: a step that is no triple, a bonus that is not finite, a state that no chain of steps joins to an
            end (nothing fixes its potential), ``gamma`` outside of its range, or a result that overflows.

    Source:
        Ng, Harada and Russell (1999), where the potential is read off the steps into an absorbing state in the proof
        that only potentials are safe.

    Example:
        >>> from fractions import Fraction as F
        >>> steps = [("hall", None, F(-1, 4)), ("hall", "door", F(1, 5)), ("door", None, F(-1, 2))]
        >>> potential, excess = find_potential(steps, F(9, 10))
        >>> print(*potential.items(), *excess)
        ('hall', Fraction(1, 4)) ('door', Fraction(1, 2)) 0 0 0
        >>> print(*find_potential([*steps, ("hall", "hall", 0)], F(9, 10))[1])  # an idle turn without its term
        0 0 0 1/40
    """
    gamma = unit_interval(gamma, "gamma")
    if gamma == 0:
        refuse("gamma", gamma, "a number above 0")
    rows: list[tuple[Hashable, Hashable | None, Number]] = []
    for i, step in enumerate(sequence(steps, "steps")):
        if not isinstance(step, (tuple, list)) or len(step) != 3:
            refuse(f"steps[{i}]", step, "a state, the next state or None, and a bonus")
        for place in (0, 1):
            try:
                hash(step[place])
            except TypeError:
                refuse(f"steps[{i}][{place}]", step[place], "the name of a state, hashable")
        if step[0] is None:
            refuse(f"steps[{i}][0]", None, "a state: no step begins at the end")
        bonus = finite(step[2], f"steps[{i}][2]")
        rows.append((step[0], step[1], Fraction(bonus) if isinstance(bonus, int) else bonus))
    if not rows:
        refuse("steps", rows, "at least one step")

    known: dict[Hashable | None, Number] = {None: Fraction(0)}
    waiting = list(rows)
    with float_range("the potential"):
        while waiting:
            left = []
            for state, after, bonus in waiting:
                if after in known:
                    known.setdefault(state, gamma * known[after] - bonus)
                elif state in known:
                    known[after] = (known[state] + bonus) / gamma
                else:
                    left.append((state, after, bonus))
            if len(left) == len(waiting):
                refuse("steps", left[0][0], "only states that some chain of steps joins to an end")
            waiting = left
        excess = [
            finite(bonus - gamma * known[after] + known[state], f"excess {i}", IN_RANGE)
            for i, (state, after, bonus) in enumerate(rows)
        ]
    names = dict.fromkeys(name for state, after, _ in rows for name in (state, after) if name is not None)
    return {name: finite(known[name], f"the potential of {name!r}", IN_RANGE) for name in names}, excess
