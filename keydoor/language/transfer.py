"""What a trained model does with prompts that it was not trained on: other words, other colours, another language.

Both the untrained and the trained model are calibrated with the untrained model's means *on the same prompts*, so that
the difference is what the training has done, and not what the calibration has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keydoor.exact import evaluate_exactly, histories
from keydoor.language.adapters import forget, load_adapter
from keydoor.language.scoring import ActionScorer, situation_prompts
from keydoor.language.tables import calibrate, exact_success, probabilities
from keydoor.language.texts import history_messages
from keydoor.language.weights import Loaded


class Trial(NamedTuple):
    """One kind of prompts.

    Example:
        >>> TESTS[0].name, TESTS[0].language
        ('trained', 'en')
    """

    name: str
    """What is different from the training."""
    language: str = "en"
    """Language of the prompts."""
    wording: str = "plain"
    """Their wording."""
    names: Mapping[str, str] | None = None
    """Other names for the colours."""
    history: bool = False
    """Whether the prompt is the whole history; the horizon is then :data:`SHORT`."""


SHORT = 4
"""Horizon at which the whole history is affordable, and at which an episode can just succeed."""

TESTS = (
    Trial("trained"),
    Trial("wording", wording="paraphrase"),
    Trial("colours", names={"red": "yellow", "blue": "purple"}),
    Trial("colours", names={"red": "white", "blue": "black"}),
    Trial("russian", language="ru"),
    Trial("russian wording", language="ru", wording="paraphrase"),
    Trial("history", history=True),
)
"""All tests; the first one is what was trained."""


def centred(table: Sequence[Sequence[float]], reference: Sequence[Sequence[float]]) -> list[list[float]]:
    """A policy from log-probabilities, calibrated with other ones, for any number of prompts.

    Args:
        table: log-probabilities of shape (prompts, 6).
        reference: the same shape: the untrained model's.

    Returns:
        Probabilities of the same shape.

    Raises:
        ValueError: a number is not finite.

    Example:
        >>> [round(p, 3) for p in centred([[-1.0] * 6, [-1.0] * 6], [[-1.0] * 6, [-1.0] * 6])[0]][:2]
        [0.167, 0.167]
    """
    import torch

    found = torch.tensor(table, dtype=torch.float64) - torch.tensor(reference, dtype=torch.float64).mean(0)
    rows: list[list[float]] = torch.softmax(found, dim=-1).tolist()
    return rows


def transfer_rows(
    loaded: Loaded, adapters: Mapping[int, str | os.PathLike[str]], *, rules: str = "standard", horizon: int = 6
) -> list[dict[str, Any]]:
    """Exact success on every kind of prompts, before and after the training.

    Args:
        loaded: the model; adapters that it has are taken out.
        adapters: files of adapters by the seed of their run, at least 0.
        rules: rule set that was trained on.
        horizon: turns that the task allows, at least 1.

    Returns:
        Rows, one for each test and seed, with ``test``, ``language``, ``wording``, ``names``, ``horizon``,
        ``prompts``, ``seed``, ``before`` and ``after``.

    Raises:
        ValueError: a file holds no adapters of this model, or an argument is outside of its range.

    Example:
        >>> transfer_rows(None, {})
        []
    """
    rows: list[dict[str, Any]] = []
    for test in TESTS if adapters else ():
        said: dict[str, Any] = {"language": test.language, "wording": test.wording, "names": test.names}
        turns = SHORT if test.history else horizon
        told = [history for history, _ in histories(rules=rules, horizon=turns)] if test.history else []
        chats = [history_messages(history, **said) for history in told] or situation_prompts(**said)
        forget(loaded.model)
        layers = len(loaded.model.model.layers)
        first = next(iter(adapters.values()))
        frozen = layers - load_adapter(first, loaded.model)["settings"]["layers"]
        forget(loaded.model)
        scorer = ActionScorer(loaded.model, loaded.tokenizer, chats, forms=("name",), names=test.names, frozen=frozen)
        base = scorer.table()

        def success(table: Sequence[Sequence[float]], base: Any = base, told: Any = told, turns: int = turns) -> float:
            if not told:
                found = probabilities(calibrate(table, base))
                return float(exact_success(found, rules=rules, horizon=turns).probability)
            policy = dict(zip(told, centred(table, base), strict=True))
            return float(evaluate_exactly(policy, rules=rules, horizon=turns).success_probability)

        before = success(base)
        for seed, file in adapters.items():
            load_adapter(file, loaded.model)
            rows.append(
                {
                    "test": test.name,
                    **said,
                    "horizon": turns,
                    "prompts": len(chats),
                    "seed": seed,
                    "before": before,
                    "after": success(scorer.table()),
                }
            )
    if adapters:
        forget(loaded.model)
    return rows
