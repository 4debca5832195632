r"""The same world, many episodes at a time: the tables of :mod:`keydoor.rules` as a Gymnasium vector environment.

State, turn and both limits are one index, so that a step of any number of environments is a few look-ups:

.. math:: i_{t+1} = N[i_t, a_t], \qquad o_{t+1} = O[i_t, a_t], \qquad r_t = R[i_t, a_t]

Nothing of the rules is said here again: the tables are filled from :func:`keydoor.rules.get_rules`, and an automatic
reset is an entry of :math:`N` too, so that no step asks which environments have ended.

**Speed.** With ``copy=False`` and ``with_info=False`` a step writes into arrays that it made once and returns those: it
allocates nothing whose size grows with the number of environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from keydoor._checks import Number, flag, one_of, refuse, sequence, unit_interval, whole
from keydoor._tables import REASONS, Tables, fill_tables
from keydoor.env import ResetNeeded
from keydoor.rules import REWARD_MODES, RULE_SETS, get_rules

AUTORESET_MODES = ("next_step", "same_step", "disabled")
"""What happens to an episode that has ended; see :class:`KeyDoorVectorEnv`."""

_UNSIGNED = {np.dtype(code): np.dtype(code.upper()) for code in "bhilqBHILQ"}  # of the machine's own byte order
_RESET_FIELDS = ("turn", "potential_after", "stop_reason")  # what the scalar environment's reset tells
_TERMINATED, _TRUNCATED = -1, -2  # places that an automatic reset replaces in the same step

_Steps = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class KeyDoorVectorEnv(VectorEnv[NDArray[np.int64], Any, NDArray[Any]]):
    r"""Many key-door worlds, stepped together.

    Observations and actions are indices into ``world.observations`` and ``world.actions``, as in the registered scalar
    environment; rewards, flags and ``infos`` are those of :class:`keydoor.env.KeyDoorAgentEnv`, in the form in which
    :class:`gymnasium.vector.SyncVectorEnv` would put them together. ``gymnasium.make_vec`` makes one from the
    registered id.

    **What follows an end** is chosen by ``autoreset_mode``:

    ``next_step``
        The step after an end takes no action: its action is ignored, it returns the first observation of a new episode
        with reward 0 and both flags off. That row is no transition, and whoever learns has to leave it out: it is the
        one after a flag, and ``infos["turn"]`` is 0 there.
    ``same_step``
        The observation returned with the flag is already the first one of the next episode. The last one of the old
        episode, which a bootstrap at a cut needs, is in ``infos["final_obs"]`` and in :attr:`final_observations`, and
        its ``info`` in ``infos["final_info"]``.
    ``disabled``
        Nothing happens; :meth:`step` raises until the ended ones have been reset, all or with ``reset_mask``.

    **Targets.** One stream of numbers serves all environments. A step draws for each of them, needed or not, so that
    the target of an episode depends on the seed, on which environment it is and on when it begins, and not on what the
    others do. The scalar environment draws other targets from the same seed.

    Args:
        num_envs: how many, at least 1.
        seed: seed of the targets, an integer not below 0; ``None``: the operating system's entropy.
        task_horizon: number of turns that the task allows, at least 1.
        collector_limit: number of turns after which the collector cuts, at least 1; ``None``: never.
        gamma: discount :math:`\gamma\in[0,1]` of the shaping term. A :class:`~fractions.Fraction` counts exactly, and
            the rewards are rounded to floats once.
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        colours: number of colours, at least 2.
        delay: turns that must pass between a clue and the next pickup that is not invalid, at least 0.
        reward_mode: which reward :meth:`step` returns, one of :data:`keydoor.rules.REWARD_MODES`.
        observation_mode: ``"indices"``; arrays hold no names. The argument is there because the registered id gives it.
        render_mode: ``None``; the scalar environment renders.
        autoreset_mode: one of :data:`AUTORESET_MODES`, or a member of :class:`gymnasium.vector.AutoresetMode`.
        copy: return fresh arrays. ``False`` returns the same ones at each step, which then change under the reader.
        with_info: fill ``infos``. ``False`` leaves it empty.

    Raises:
        ValueError: an argument outside of what is said above, or a world whose tables would be too large (more than
            about four million pairs of a turn, a state and an action).

    Source:
        Towers et al. (2024), *Gymnasium: A Standard Interface for Reinforcement Learning Environments*, for the
        interface and its modes of automatic reset.

    Example:
        >>> envs = KeyDoorVectorEnv(2, seed=0, autoreset_mode="same_step")
        >>> observations, _ = envs.reset(options={"targets": ["red", "blue"]})
        >>> for actions in ([0, 0], [1, 2], [3, 3]):
        ...     observations, rewards, terminated, truncated, infos = envs.step(np.array(actions))
        >>> [envs.world.observations[index] for index in observations], terminated.tolist()
        (['door_open', 'room'], [False, True])
        >>> envs.world.observations[infos["final_obs"][1]], infos["final_info"]["stop_reason"][1]
        ('failure', 'failed_open')
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  (Gymnasium's form)
    """What Gymnasium asks of a class of environments; an instance states its own mode."""

    def __init__(
        self,
        num_envs: int = 1,
        *,
        seed: int | None = None,
        task_horizon: int = 8,
        collector_limit: int | None = None,
        gamma: Number = 0.99,
        rules: str = "standard",
        colours: int = 2,
        delay: int = 0,
        reward_mode: str = "sparse",
        observation_mode: str = "indices",
        render_mode: str | None = None,
        autoreset_mode: str | gymnasium.vector.AutoresetMode = "next_step",
        copy: bool = True,
        with_info: bool = True,
    ) -> None:
        self.num_envs = n = whole(num_envs, "num_envs", least=1)
        self.task_horizon = whole(task_horizon, "task_horizon", least=1)
        self.collector_limit = None if collector_limit is None else whole(collector_limit, "collector_limit", least=1)
        self.gamma = unit_interval(gamma, "gamma")
        self.rules = one_of(rules, "rules", RULE_SETS)
        self.world = get_rules(rules, colours=colours, delay=delay)
        """The tables of this world."""
        self.reward_mode = one_of(reward_mode, "reward_mode", REWARD_MODES)
        self.observation_mode = one_of(observation_mode, "observation_mode", ("indices",))
        if render_mode is not None:
            refuse("render_mode", render_mode, "None: only the scalar environment renders")
        if isinstance(autoreset_mode, AutoresetMode):
            autoreset_mode = autoreset_mode.name.lower()
        self.autoreset_mode = one_of(autoreset_mode, "autoreset_mode", AUTORESET_MODES)
        self.metadata = {**self.metadata, "autoreset_mode": AutoresetMode[self.autoreset_mode.upper()]}
        self.copy, self.with_info = flag(copy, "copy"), flag(with_info, "with_info")
        if seed is not None:
            super().reset(seed=whole(seed, "seed", least=0))
        self.single_action_space: gymnasium.spaces.Discrete = gymnasium.spaces.Discrete(len(self.world.actions))
        """The indices of ``world.actions``."""
        seen = len(self.world.observations)
        self.single_observation_space: gymnasium.spaces.Discrete = gymnasium.spaces.Discrete(seen)
        """The indices of ``world.observations``."""
        self.action_space: gymnasium.spaces.Space[Any] = batch_space(self.single_action_space, n)
        """An action for each environment."""
        self.observation_space: gymnasium.spaces.Space[Any] = batch_space(self.single_observation_space, n)
        """An observation for each environment."""

        self._width, self._room = len(self.world.actions), self.world.observations.index(self.world.start_observation)
        self._flatten(
            fill_tables(
                self.world, task_horizon=self.task_horizon, collector_limit=self.collector_limit, gamma=self.gamma
            )
        )
        self._targets = _Targets(len(self.world.colours), self._width, n)
        self._place = np.full(n, self._over, dtype=np.intp)  # number of the row times its width
        self._index = self._place.copy()  # of the latest step: place and action
        self._seen = np.full(n, self._room, dtype=np.int64)
        self._rewards = np.zeros(n)
        self._terminated, self._truncated = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        self._begun = False

    def _flatten(self, tables: Tables) -> None:
        """One entry for each place and action, with the automatic resets written in.

        A place below 0 stands for an episode that is about to begin. The starts of all colours are the lowest places,
        so that the larger one of a place and of a drawn start is the drawn start exactly where one is needed.
        """
        self._over = tables.over * self._width  # this place and all above it: the episode is over
        self._rows_per_turn = tables.states
        following = tables.following * self._width
        fields = {
            "potential_before": tables.potential_before,
            "potential_after": tables.potential_after,
            "base_reward": tables.base_reward,
            "shaped_reward": tables.shaped_reward,
            "stop_reason": np.array(REASONS, dtype=object)[tables.reason],
            "invalid": tables.invalid,
            "turn": tables.turn,
        }
        ended = tables.terminated | tables.truncated
        observation, resets = tables.observation, np.zeros_like(ended)
        resets[tables.over :] = True
        self._codes = (self._over, self._over + self._width)
        if self.autoreset_mode == "next_step":
            following[tables.over :] = _TERMINATED
        elif self.autoreset_mode == "same_step":
            self._codes = (_TERMINATED, _TRUNCATED)
            following[tables.terminated], following[tables.truncated] = self._codes
            observation, resets = np.where(ended, self._room, observation), resets | ended
        self._cuts = bool(tables.truncated.any())
        self._next = following.ravel()
        self._table_seen, self._table_final = observation.ravel(), tables.observation.ravel()
        self._table_reward = (tables.base_reward if self.reward_mode == "sparse" else tables.shaped_reward).ravel()
        if not self.with_info:
            return
        self._ended, self._resets = ended.ravel(), resets.ravel()
        first: dict[str, Any] = {"turn": 0, "potential_after": self.world.potential[0], "stop_reason": None}
        # Where a mask is off Gymnasium has the zero of the type, and so have these.
        self._table_info = {k: np.where(resets, first.get(k, 0), v).astype(v.dtype).ravel() for k, v in fields.items()}
        blank: dict[str, Any] = {"stop_reason": None}
        self._table_last = {k: np.where(ended, v, blank.get(k, 0)).astype(v.dtype).ravel() for k, v in fields.items()}

    @property
    def targets(self) -> list[str]:
        """The hidden colour of each running episode; ``""`` where none is running. Privileged information."""
        names = [*(state.target for state in self.world.states)]
        rows = (self._place // self._width).tolist()
        over = self._over // self._width
        return ["" if row >= over else names[row % self._rows_per_turn] for row in rows]

    @property
    def final_observations(self) -> NDArray[np.int64]:
        """What each environment showed at the end of the latest step, before an automatic reset in that step.

        Where a flag is up it is the last observation of the episode; elsewhere it is the observation returned.
        """
        return self._table_final.take(self._index)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Begin a new episode in all environments, or in some.

        Args:
            seed: begins the stream of targets anew, an integer not below 0; ``None`` goes on with it.
            options: ``{"reset_mask": mask}`` resets those of a Boolean array of shape ``(num_envs,)`` alone;
                ``{"target": colour}`` forces the target of all that are reset, ``{"targets": colours}`` that of each,
                a sequence with one entry for each environment; ``None`` in it: drawn.

        Returns:
            Observations of shape ``(num_envs,)``, and infos with ``turn``, ``potential_after`` and ``stop_reason`` as
            arrays, each with a mask that says which environments were reset.

        Raises:
            ValueError: an unknown option or colour, a mask or a sequence of colours that does not fit, a mask at the
                first reset, a seed that is not a non-negative integer. The episodes that were running still are.
        """
        n = self.num_envs
        if seed is not None:
            seed = whole(seed, "seed", least=0)
        options = {} if options is None else options
        if not isinstance(options, Mapping) or set(options) - {"reset_mask", "target", "targets"}:
            refuse("options", options, "a mapping with no key but 'reset_mask', 'target' and 'targets'")
        mask = options.get("reset_mask")
        if mask is None:
            mask = np.ones(n, dtype=np.bool_)
        elif not (isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (n,) and mask.any()):
            refuse("options['reset_mask']", mask, f"a Boolean array of shape ({n},), not all False")
        elif not self._begun:
            refuse("options['reset_mask']", mask, "no mask at the first reset")
        forced = self._forced(options.get("target"), options.get("targets"))

        if seed is not None:
            super().reset(seed=seed)
        places = self._targets.draw(self.np_random)
        if forced is not None:
            places = np.where(forced < 0, places, forced)
        self._place[mask], self._index[mask] = places[mask], self._over
        self._seen[mask] = self._room  # rewards and flags of the latest step stay, for whoever still reads them
        self._begun = True
        observations = self._seen.copy() if self.copy else self._seen
        if not self.with_info:
            return observations, {}
        # A place that is over tells what a reset tells.
        infos: dict[str, Any] = {}
        for name in _RESET_FIELDS:
            infos[name] = np.full(n, self._table_info[name][self._over], dtype=self._table_info[name].dtype)
            infos[f"_{name}"] = mask.copy()
        return observations, infos

    def _forced(self, target: Any, targets: Any) -> NDArray[np.intp] | None:
        """The places in which forced targets begin, below 0 where one is to be drawn."""
        if target is not None:
            colour = one_of(target, "options['target']", self.world.colours)
            if targets is not None:
                refuse("options['targets']", targets, "nothing beside 'target'")
            return np.full(self.num_envs, self.world.start[colour] * self._width, dtype=np.intp)
        if targets is None:
            return None
        found = sequence(targets, "options['targets']")
        if len(found) != self.num_envs:
            raise ValueError(f"options['targets'] has length {len(found)}; expected {self.num_envs}, one for each")
        for i, colour in enumerate(found):
            if colour is not None:
                one_of(colour, f"options['targets'][{i}]", self.world.colours)
        rows = [-1 if colour is None else self.world.start[colour] for colour in found]
        return np.array(rows, dtype=np.intp) * self._width

    def step(self, actions: Any) -> _Steps:
        """Take one turn in each environment.

        Args:
            actions: integers of shape ``(num_envs,)``, indices into ``world.actions``. Where a step only resets, the
                action is ignored, but it must be one.

        Returns:
            ``(observations, rewards, terminated, truncated, infos)``, arrays of shape ``(num_envs,)``. ``infos`` holds
            the fields of the scalar environment as arrays, each with a mask ``_name`` that says where it means
            something; with ``same_step`` also ``final_obs`` and ``final_info`` where an episode has ended.

        Raises:
            ResetNeeded: before the first :meth:`reset`, or with ``disabled`` while an episode is over.
            ValueError: no integers, another shape, or an index that does not exist. No turn is then used up.
        """
        if not self._begun:
            raise ResetNeeded("no episode is running: call reset() before the first step")
        actions = self._checked(actions)
        if self.autoreset_mode == "disabled" and self._place.max() >= self._over:
            over = np.flatnonzero(self._place >= self._over)
            raise ResetNeeded(f"episode {over[0]} is over ({len(over)} in all): reset it, alone with 'reset_mask'")

        index, place = self._index, self._place
        # All indices exist, as the actions have been checked; "clip" is the mode of `take` that needs no buffer.
        np.add(place, actions, out=index, dtype=np.intp, casting="unsafe")
        self._next.take(index, out=place, mode="clip")
        self._table_seen.take(index, out=self._seen, mode="clip")
        self._table_reward.take(index, out=self._rewards, mode="clip")
        np.equal(place, self._codes[0], out=self._terminated)
        if self._cuts:
            np.equal(place, self._codes[1], out=self._truncated)
        if self.autoreset_mode != "disabled":
            np.maximum(place, self._targets.draw(self.np_random), out=place)

        infos = self._infos() if self.with_info else {}
        if self.copy:
            return self._seen.copy(), self._rewards.copy(), self._terminated.copy(), self._truncated.copy(), infos
        return self._seen, self._rewards, self._terminated, self._truncated, infos

    def _checked(self, actions: Any) -> NDArray[Any]:
        """Actions as an array of indices that exist."""
        if type(actions) is not np.ndarray:
            if hasattr(actions, "mask"):
                refuse("actions", actions, "an array without masked entries")
            try:
                actions = np.asarray(actions)
            except (TypeError, ValueError):  # rows of unequal length, for one
                refuse("actions", actions, f"integers of shape ({self.num_envs},)")
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            found = f"{actions.dtype} of shape {actions.shape}"
            raise ValueError(f"actions is an array of {found}; expected integers of shape ({self.num_envs},)")
        # Read as unsigned, a negative number is a large one: one pass finds both kinds that are out of range.
        unsigned = _UNSIGNED.get(actions.dtype)
        if unsigned is None:
            actions, unsigned = actions.astype(np.int64), np.dtype(np.uint64)
        worst = actions.view(unsigned).argmax()
        if not 0 <= actions[worst] < self._width:
            wrong = int(np.flatnonzero((actions < 0) | (actions >= self._width))[0])
            refuse(f"actions[{wrong}]", int(actions[wrong]), f"an index from 0 to {self._width - 1}")
        return actions  # type: ignore[no-any-return]

    def _infos(self) -> dict[str, Any]:
        """What the scalar environments would tell of this step, a field only where at least one of them tells it."""
        infos: dict[str, Any] = {}
        ended = self._ended.take(self._index)
        if self.autoreset_mode == "same_step" and ended.any():
            infos["final_obs"] = np.full(self.num_envs, None, dtype=object)
            infos["final_obs"][ended] = self.final_observations[ended]
            infos["final_info"] = last = {}
            for name, table in self._table_last.items():
                last[name], last[f"_{name}"] = table.take(self._index), ended.copy()
            infos["_final_obs"], infos["_final_info"] = ended.copy(), ended.copy()
        reset = self._resets.take(self._index)
        for name in _RESET_FIELDS if reset.all() else self._table_info:
            infos[name] = self._table_info[name].take(self._index)
            infos[f"_{name}"] = np.ones(self.num_envs, dtype=np.bool_) if name in _RESET_FIELDS else ~reset
        return infos


class _Targets:
    """Places in which new episodes begin, each colour with the same probability: as many at a time as environments.

    They come from a stock that is filled now and then, in arrays made once. One random number in [0, 1) serves for
    several targets: they are its first digits to the base of the number of colours.
    """

    def __init__(self, colours: int, width: int, num_envs: int) -> None:
        self._num_envs = num_envs
        digits = 1
        while colours ** (digits + 1) <= 256:
            digits += 1
        self._codes_in_all = colours**digits
        codes = np.arange(self._codes_in_all).reshape(-1, 1)
        self._places = codes // colours ** np.arange(digits)[::-1] % colours * width  # of the digits of each code
        rows = -(-max(num_envs, 8192) // digits)
        self._numbers, self._codes = np.empty(rows), np.empty(rows, dtype=np.intp)
        self._stock = np.empty((rows, digits), dtype=np.intp)
        self._flat_size = rows * digits
        self._used = self._flat_size
        self._generator: np.random.Generator | None = None

    def draw(self, generator: np.random.Generator) -> NDArray[np.intp]:
        """A view into the stock; what is left over of another generator's is thrown away."""
        if self._used + self._num_envs > self._flat_size or generator is not self._generator:
            generator.random(out=self._numbers)
            np.multiply(self._numbers, self._codes_in_all, out=self._numbers)
            np.copyto(self._codes, self._numbers, casting="unsafe")  # cuts off what is behind the point
            self._places.take(self._codes, axis=0, out=self._stock, mode="clip")
            self._generator, self._used = generator, 0
        self._used += self._num_envs
        return self._stock.reshape(-1)[self._used - self._num_envs : self._used]
