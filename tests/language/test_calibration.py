"""Calibration of a language model's log-probabilities: what it keeps, what it takes away, and that no other shift does.

The tables are random; least squares and softmax are done again here, by other means.
"""

import math
import random

import numpy as np
import pytest

from keydoor.language.tables import SITUATIONS, calibrate, probabilities

PROMPTS, ACTIONS = len(SITUATIONS), 6


def table(seed, spread=3.0):
    """Log-probabilities with strings that differ much and a reading that differs little."""
    draw = random.Random(seed)
    strings = [draw.uniform(-20, -5) for _ in range(ACTIONS)]
    return [[strings[a] - draw.uniform(0, spread) for a in range(ACTIONS)] for _ in range(PROMPTS)]


def shifted(rows, by_action, by_prompt):
    return [[x - a - b for x, a in zip(row, by_action, strict=True)] for row, b in zip(rows, by_prompt, strict=True)]


def odds(rows, prompt, first, second):
    return math.log(rows[prompt][first] / rows[prompt][second])


@pytest.mark.parametrize("seed", range(5))
def test_the_reading_stays(seed):
    """How the log-odds of two actions change from one prompt to another is the same with and without calibration, and
    is that of the log-probabilities. Strings that are worth more or less everywhere, and prompts in which all is worth
    more or less, change nothing. The foil, a division by a length, does change it.
    """
    rows = table(seed)
    raw, calibrated = probabilities(rows), probabilities(calibrate(rows))
    draw = random.Random(-seed - 1)
    moved = shifted(rows, [draw.uniform(0, 9) for _ in range(ACTIONS)], [draw.uniform(0, 9) for _ in range(PROMPTS)])
    assert np.allclose(probabilities(calibrate(moved)), calibrated, rtol=1e-9)
    assert not np.allclose(probabilities(moved), raw, rtol=1e-3)

    lengths = [1, 3, 2, 4, 2, 1]
    divided = probabilities([[x / n for x, n in zip(row, lengths, strict=True)] for row in rows])
    changes = [(odds(t, 0, 0, 1) - odds(t, 1, 0, 1)) for t in (raw, calibrated, divided)]
    assert changes[0] == pytest.approx((rows[0][0] - rows[0][1]) - (rows[1][0] - rows[1][1]), abs=1e-9)
    assert changes[1] == pytest.approx(changes[0], abs=1e-9)
    assert changes[2] != pytest.approx(changes[0], abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_are_the_residuals_of_least_squares(seed):
    """Centred in each prompt, calibrated logits are what a fit by action plus prompt leaves over; a model whose
    log-probabilities *are* action plus prompt becomes uniform.
    """
    rows = table(seed)
    design = np.zeros((PROMPTS * ACTIONS, PROMPTS + ACTIONS))
    for b in range(PROMPTS):
        for a in range(ACTIONS):
            design[b * ACTIONS + a, [a, ACTIONS + b]] = 1
    target = np.array(rows).ravel()
    fit, *_ = np.linalg.lstsq(design, target, rcond=None)
    residuals = (target - design @ fit).reshape(PROMPTS, ACTIONS)
    logits = np.array(calibrate(rows))
    assert np.allclose(logits - logits.mean(axis=1, keepdims=True), residuals, atol=1e-9)

    blind = (design @ fit).reshape(PROMPTS, ACTIONS)
    blind = blind - max(0.0, blind.max())  # log-probabilities are not above 0
    assert np.allclose(probabilities(calibrate(blind.tolist())), 1 / ACTIONS, rtol=1e-9)
    assert not np.allclose(probabilities(blind.tolist()), 1 / ACTIONS, rtol=1e-2)  # the foil: without calibration


@pytest.mark.parametrize("seed", range(5))
def test_no_other_shift_balances_the_actions(seed):
    """The geometric means over the prompts are equal for all actions; with another shift of one action they are not."""
    rows = table(seed)

    def unevenness(logits):
        means = np.log(probabilities(logits)).mean(axis=0)
        return means.max() - means.min()

    calibrated = calibrate(rows)
    assert unevenness(calibrated) < 1e-9
    assert unevenness(rows) > 1
    for action in range(ACTIONS):
        moved = [[x + 0.01 * (a == action) for a, x in enumerate(row)] for row in calibrated]
        assert unevenness(moved) == pytest.approx(0.01, abs=1e-9)


def test_the_reference_stays_what_it_was():
    """After training the means of the table before training are subtracted, so that what was learnt is not taken away
    again. The foil: calibrated with its own means, an action that has become likelier everywhere is back where it was.
    """
    before = table(0)
    learnt = [[x + (2.0 if a == 0 else 0.0) - 3.0 for a, x in enumerate(row)] for row in before]
    old, new, foil = (probabilities(t) for t in (calibrate(before), calibrate(learnt, before), calibrate(learnt)))
    assert all(n[0] > o[0] for n, o in zip(new, old, strict=True))
    assert np.allclose(foil, old, rtol=1e-9)
