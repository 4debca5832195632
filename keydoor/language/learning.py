"""Turn-level policy optimisation of a language model that chooses among action strings.

An update plays a group of rollouts for each target with the policy's table, and makes one or a few gradient steps on
the clipped surrogate (:mod:`keydoor.language.rollouts`). Before each update the exact success of the policy is known,
since the table is all there is to it. The same seed and settings give the same run, also where it was interrupted and
went on from its checkpoint.
"""

from __future__ import annotations

import dataclasses
import os
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from keydoor._checks import finite, flag, one_of, refuse, whole
from keydoor.language.adapters import adapt, adapter_state, set_adapter_state
from keydoor.language.rollouts import cell_weights, clipped_loss, play_group, turn_advantages
from keydoor.language.scoring import ActionScorer, situation_prompts
from keydoor.language.tables import exact_success
from keydoor.language.texts import FORMS
from keydoor.language.weights import Loaded, enough_memory
from keydoor.rules import COLOURS, REWARD_MODES, RULE_SETS

STAGES = ("before", "half", "after")
"""When the table of scores is kept, and episodes are played for a reader to watch."""


@dataclass(frozen=True)
class LanguageSettings:
    """Settings of a training; the defaults are those of the book.

    Raises:
        ValueError: a setting is outside of its range.

    Example:
        >>> LanguageSettings(rules="soft").updates
        40
        >>> LanguageSettings(clip=0)
        Traceback (most recent call last):
        ...
        ValueError: clip is 0; expected a positive number
    """

    rules: str = "standard"
    """Rule set, one of :data:`keydoor.rules.RULE_SETS`."""
    horizon: int = 6
    """Turns that the task allows, at least 4."""
    updates: int = 40
    """Updates of the policy, at least 1; the learning rate falls to 0 over them in a line."""
    group_size: int = 256
    """Rollouts of each target in an update, at least 2: there are two groups."""
    epochs: int = 1
    """Gradient steps per update, at least 1."""
    learning_rate: float = 2e-3
    """Step size of AdamW at the start, positive."""
    clip: float = 0.2
    """Clipping of the ratios on both sides, positive."""
    max_gradient_norm: float = 1.0
    """Greatest length of the gradient, positive."""
    scale: bool = True
    """Whether advantages are divided by the deviation of their group."""
    calibrated: bool = True
    """Whether each action's mean log-probability before training is subtracted from its scores."""
    reward_mode: str = "sparse"
    """``sparse``: every turn is credited with the end's reward. ``potential``: with the shaped return from it on."""
    rank: int = 8
    """Rank of the adapters, at least 1."""
    layers: int = 8
    """How many of the last layers get adapters, at least 1; the others run once."""
    forms: tuple[str, ...] = ("name",)
    """Which forms of an action's string are scored, some of :data:`keydoor.language.texts.FORMS`."""

    def __post_init__(self) -> None:
        one_of(self.rules, "rules", RULE_SETS)
        one_of(self.reward_mode, "reward_mode", REWARD_MODES)
        for name, least in (
            ("horizon", 4),
            ("updates", 1),
            ("group_size", 2),
            ("epochs", 1),
            ("rank", 1),
            ("layers", 1),
        ):
            whole(getattr(self, name), name, least=least)
        for name in ("learning_rate", "clip", "max_gradient_norm"):
            if finite(getattr(self, name), name, "a positive number") <= 0:
                refuse(name, getattr(self, name), "a positive number")
        flag(self.scale, "scale")
        flag(self.calibrated, "calibrated")
        if not self.forms:
            refuse("forms", self.forms, f"at least one of {', '.join(FORMS)}")
        for form in self.forms:
            one_of(form, "a form", FORMS)


class LanguageRun(NamedTuple):
    """What a training leaves behind, beside the adapters in the model.

    Example:
        >>> LanguageRun(LanguageSettings(), 1, [{"success": 0.5}], {}, {}).curve[-1]["success"]
        0.5
    """

    settings: LanguageSettings
    """What it was trained with."""
    seed: int
    """Seed of adapters and rollouts."""
    curve: list[dict[str, Any]]
    """A row for each number of updates made, from 0 on: ``update``, exact ``success``, ``by_target``,
    ``expected_turns``, and but for the last one ``sampled``, ``mixed``, ``entropy`` and ``norm`` of the update that
    follows; ``cpu_seconds`` since the beginning."""
    logprobs: dict[str, list[list[float]]]
    """The table of log-probabilities at each of :data:`STAGES`, not calibrated."""
    updates: dict[str, int]
    """How many updates had been made at each stage."""


class _Training:
    """The state of a training between two updates."""

    def __init__(self, loaded: Loaded, settings: LanguageSettings, seed: int) -> None:
        self.loaded, self.settings, self.seed = loaded, settings, seed
        model = loaded.model
        self.parameters = adapt(model, rank=settings.rank, layers=settings.layers, seed=seed)
        frozen = len(model.model.layers) - settings.layers
        self.scorer = ActionScorer(model, loaded.tokenizer, situation_prompts(), forms=settings.forms, frozen=frozen)
        self.optimiser = torch.optim.AdamW(self.parameters, lr=settings.learning_rate, weight_decay=0.0)
        self.curve: list[dict[str, Any]] = []
        self.tables = {"before": self.scorer.table()}
        means = torch.tensor(self.tables["before"], dtype=torch.float64).mean(0)
        self.means = means if settings.calibrated else torch.zeros_like(means)

    def logits(self) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the actions under the policy, and those of the model, not calibrated."""
        logprobs = self.scorer.logprobs().double()
        return torch.log_softmax(logprobs - self.means, dim=-1), logprobs

    def update(self, number: int) -> dict[str, Any]:
        """Look at the policy, and make an update unless all have been made."""
        settings = self.settings
        last = number == settings.updates
        with torch.set_grad_enabled(not last):
            logits, logprobs = self.logits()
        old = logits.detach()
        table = old.exp().tolist()
        for stage, when in stage_updates(settings).items():
            if number == when:
                self.tables[stage] = logprobs.tolist()
        exact = exact_success(table, rules=settings.rules, horizon=settings.horizon)
        row: dict[str, Any] = {
            "update": number,
            "success": float(exact.probability),
            "by_target": {target: float(p) for target, p in exact.by_target.items()},
            "expected_turns": float(exact.expected_turns),
        }
        if last:
            return row
        weights = torch.zeros(2, *old.shape, dtype=torch.float64)
        visits = torch.zeros(len(table), dtype=torch.float64)
        won, mixed = 0.0, []
        for target in COLOURS:
            source = random.Random(f"{self.seed}/{number}/{target}")
            size, world = settings.group_size, {"rules": settings.rules, "horizon": settings.horizon}
            group = play_group(table, target, size, source, **world)  # type: ignore[arg-type]
            credit = turn_advantages(group, reward_mode=settings.reward_mode, scale=settings.scale)
            weights += cell_weights(group, credit)
            visits += torch.bincount(torch.tensor([r for one in group for r in one.rows]), minlength=len(table))
            mixed.append(len({one.reward for one in group}) > 1)
            won += sum(one.reward for one in group)
        count = settings.group_size * len(COLOURS)
        entropy = -(old.exp() * old).sum(-1)
        row |= {"sampled": won / count, "mixed": mixed, "entropy": float(visits @ entropy / visits.sum())}
        row["norm"] = 0.0
        for epoch in range(settings.epochs):
            if not weights.any():  # groups without variation: the gradient is zero, and need not be computed
                break
            if epoch:
                logits, _ = self.logits()
            self.optimiser.zero_grad()
            clipped_loss(logits, old, weights, count, settings.clip).backward()  # type: ignore[no-untyped-call]
            row["norm"] = float(torch.nn.utils.clip_grad_norm_(self.parameters, settings.max_gradient_norm))
            step = (number * settings.epochs + epoch) / (settings.updates * settings.epochs)
            for parameters in self.optimiser.param_groups:
                parameters["lr"] = settings.learning_rate * (1 - step)
            self.optimiser.step()
        return row

    def write(self, path: Path) -> None:
        """A checkpoint, whole or not at all."""
        state = {
            **self._about(),
            "curve": self.curve,
            "tables": self.tables,
            "adapter": adapter_state(self.loaded.model),
            "optimiser": self.optimiser.state_dict(),
        }
        temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            torch.save(state, temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def read(self, path: Path) -> None:
        """Go on from a checkpoint of the same run."""
        try:
            state = torch.load(path, weights_only=True)
        except Exception as error:
            raise ValueError(f"checkpoint {path}: {error}; expected a checkpoint of this program") from error
        for name, value in self._about().items():
            if state.get(name) != value:
                refuse(f"{name} in the checkpoint {path}", state.get(name), f"{value}, or another file")
        self.curve, self.tables = state["curve"], state["tables"]
        set_adapter_state(self.loaded.model, state["adapter"])
        self.optimiser.load_state_dict(state["optimiser"])

    def _about(self) -> dict[str, Any]:
        settings = dataclasses.asdict(self.settings)
        return {"settings": settings, "seed": self.seed, "weights": self.loaded.source.get("sha256")}


def stage_updates(settings: LanguageSettings) -> dict[str, int]:
    """How many updates have been made at each of :data:`STAGES`.

    Args:
        settings: of the training.

    Returns:
        A number for each stage.

    Example:
        >>> stage_updates(LanguageSettings(updates=40))
        {'before': 0, 'half': 20, 'after': 40}
    """
    return {"before": 0, "half": settings.updates // 2, "after": settings.updates}


def train(
    loaded: Loaded,
    settings: LanguageSettings | None = None,
    *,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> LanguageRun:
    """Train a model to open the right door; adapters that it has are replaced, and the new ones stay in it.

    Args:
        loaded: a model with its tokenizer, from :func:`keydoor.language.weights.load`.
        settings: what to train with; ``None`` takes the defaults.
        seed: of the adapters and the rollouts, at least 0.
        checkpoint: a file that is written after each update. One that is there is continued. ``None``: none.
        progress: called with each row of the curve.

    Returns:
        A :class:`LanguageRun`.

    Raises:
        ValueError: a setting is outside of its range, or the checkpoint is of another run.
        WeightsError: there was not enough memory.

    Source:
        Shao et al. (2024), *DeepSeekMath*, for the group-relative advantage; Schulman et al. (2017) for the clipping;
        Hu et al. (2022), *LoRA*, for the adapters.

    Example:
        >>> train(None, seed=-1)
        Traceback (most recent call last):
        ...
        ValueError: seed is -1; expected an integer not below 0 and below 2**63
    """
    chosen = LanguageSettings() if settings is None else settings
    seed = whole(seed, "seed", least=0, bits=63)

    def run() -> LanguageRun:
        training = _Training(loaded, chosen, seed)
        file = None if checkpoint is None else Path(checkpoint)
        if file is not None and file.exists():
            training.read(file)
        before = training.curve[-1]["cpu_seconds"] if training.curve else 0.0
        began = time.process_time()
        for number in range(len(training.curve), chosen.updates + 1):
            row = training.update(number)
            row["cpu_seconds"] = round(before + time.process_time() - began, 1)
            training.curve.append(row)
            if file is not None:
                training.write(file)
            if progress is not None:
                progress(row)
        return LanguageRun(chosen, seed, training.curve, training.tables, stage_updates(chosen))

    found: LanguageRun = enough_memory(run, "train the model")
    return found
