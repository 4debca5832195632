"""Many training runs at once: the seeds of a block, stacked in one batched network.

A network of this size spends its time on starting operations, not on arithmetic. Ten runs that take their turns and
gradient steps together, in products of one batch, cost little more than two runs one after the other.

**Equal bit for bit.** :func:`train_many` and :func:`keydoor.training.train_actor_critic` are one training, of a stack
of many networks and of one. Each run keeps its own random numbers, its own episodes, its own mean and deviation of the
advantages, its own length of the gradient; and no sum runs over more than one network. So a run's weights and curve do
not depend on its company or place, to the last bit, as long as the products of a batch do not depend on how many there
are. That holds for the matrix library that torch brings for x86 processors, and the tests check it on the machine where
they run. Where it fails, runs part only as two machines do: by some :math:`10^{-6}` after the first update, and then
slowly further.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keydoor._checks import one_of, refuse, sequence, whole
from keydoor.policy import RecurrentActorCritic
from keydoor.rules import REWARD_MODES
from keydoor.training import TrainingConfig, _check_sizes, _train


def train_many(
    seeds: Iterable[int],
    *,
    reward_mode: str | Iterable[str],
    updates: int,
    episodes_per_update: int,
    evaluation_interval: int,
    evaluation_episodes: int,
    config: TrainingConfig | None = None,
) -> list[tuple[RecurrentActorCritic, list[dict[str, Any]]]]:
    """Train one recurrent actor-critic for each seed, all of them together.

    Args:
        seeds: seeds of the runs, integers in :math:`[0, 2^{63})`, at least one. A seed may come twice with
            different reward modes, not twice with the same one.
        reward_mode: ``"sparse"`` or ``"potential"``, for all runs, or a sequence with one of them for each seed.
        updates: how many updates, at least 0.
        episodes_per_update: episodes of each run before each update, at least 1.
        evaluation_interval: a row of the curves after every so many updates, at least 1.
        evaluation_episodes: greedy episodes of one evaluation, at least 1.
        config: the rest of the recipe, the same for all runs; ``None`` means ``TrainingConfig()``.

    Returns:
        A pair ``(model, curve)`` for each seed, in their order, equal to what
        :func:`keydoor.training.train_actor_critic` returns for that seed and mode; see this module's text. Memory
        grows with the number of seeds: with the sizes of the full profile by about 1 MB for each.

    Raises:
        ValueError: an argument is outside of its range, or a run has diverged; the message names its seed. The other
            runs of the block are then lost too.

    Example:
        >>> from keydoor.training import train_actor_critic
        >>> size = dict(updates=2, episodes_per_update=4, evaluation_interval=1, evaluation_episodes=2)
        >>> runs = train_many([1, 1, 2], reward_mode=["sparse", "potential", "potential"], **size)
        >>> [len(curve) for _, curve in runs]
        [3, 3, 3]
        >>> runs[2][1] == train_actor_critic(seed=2, reward_mode="potential", **size)[1]
        True
    """
    known = [whole(seed, f"seeds[{i}]", least=0, bits=63) for i, seed in enumerate(sequence(seeds, "seeds"))]
    if not known:
        refuse("seeds", [], "at least one seed")
    if isinstance(reward_mode, str):
        modes = [one_of(reward_mode, "reward_mode", REWARD_MODES)] * len(known)
    else:
        given = sequence(reward_mode, "reward_mode")
        modes = [one_of(mode, f"reward_mode[{i}]", REWARD_MODES) for i, mode in enumerate(given)]
        if len(modes) != len(known):
            raise ValueError(f"reward_mode has length {len(modes)}; expected one name, or {len(known)}: one per seed")
    first: dict[tuple[int, str], int] = {}
    for i, run in enumerate(zip(known, modes, strict=True)):
        if first.setdefault(run, i) != i:
            refuse(f"seeds[{i}]", run[0], f"another seed or reward mode than seeds[{first[run]}] has")
    sizes = _check_sizes(updates, episodes_per_update, evaluation_interval, evaluation_episodes, config)
    return _train(known, modes, *sizes)
