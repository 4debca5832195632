"""The scalar environment: one episode at a time, as a Gymnasium environment.

Where Gymnasium is installed, :class:`KeyDoorAgentEnv` is a :class:`gymnasium.Env`, and importing this module registers
the id ``keydoor/KeyDoor-v1``. Elsewhere, in a reader's browser for one, the same class stands on a plain base, needs
the standard library alone, and draws the same targets from the same seed. It only has no spaces.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from keydoor._checks import Number, one_of, refuse, unit_interval, whole
from keydoor.rules import COLOURS, REWARD_MODES, RULE_SETS, Rules, State, get_rules
from keydoor.turns import parse_action

if TYPE_CHECKING:
    import gymnasium
    from gymnasium import Env as _Base
    from gymnasium.error import ResetNeeded as _OrderError
else:
    try:
        import gymnasium
        from gymnasium import Env as _Base
        from gymnasium.error import ResetNeeded as _OrderError
    except ImportError:
        gymnasium = None

        class _OrderError(Exception):
            """Stands in for the error of Gymnasium."""

        class _Base:
            """What code written for Gymnasium asks of an environment besides ``reset``, ``step`` and ``render``."""

            spec = None

            @property
            def unwrapped(self):
                return self

            def reset(self, *, seed=None, options=None):
                """Nothing to seed: the generator of numpy that Gymnasium would keep does not exist here."""

            def close(self):
                """Nothing to close."""

            def __enter__(self):
                return self

            def __exit__(self, *_):
                self.close()
                return False


ENV_ID = "keydoor/KeyDoor-v1"
"""The registered id: :class:`KeyDoorAgentEnv` with integer observations."""

OBSERVATION_MODES = ("names", "indices")
"""Observations as strings of :data:`keydoor.rules.OBSERVATIONS`, or as their indices."""


class ResetNeeded(RuntimeError, _OrderError):
    """An episode was needed and none is running: before the first ``reset``, or after the end.

    It is a :class:`RuntimeError`, and where Gymnasium is installed a :class:`gymnasium.error.ResetNeeded` too, so that
    code written for either catches it.
    """


@cache
def _flat(rules: Rules) -> tuple[tuple[tuple[Any, ...], ...], ...]:
    """The tables of a rule set with both potentials beside each outcome: a step is then one look-up."""
    return tuple(
        tuple((*outcome, phi, 0.0 if outcome.stop_reason else rules.potential[outcome.state]) for outcome in row)
        for phi, row in zip(rules.potential, rules.table, strict=True)
    )


def draw_target(generator: random.Random, colours: Sequence[str] = COLOURS) -> str:
    """The hidden colour of one episode, each with the same probability: one call of ``generator.random()``.

    Python promises the numbers of ``random()`` for a seed over versions and machines, and those of no other method.

    Args:
        generator: where the number comes from; one call of its ``random()`` is used up.
        colours: what is drawn from, at least one name.

    Returns:
        ``colours[i]`` for a number in :math:`[i/n, (i+1)/n)`, where :math:`n` is how many there are: with the two of
        the standard world ``"red"`` if the number is below ½, else ``"blue"``.

    Example:
        >>> generator = random.Random(0)
        >>> [draw_target(generator) for _ in range(4)]
        ['blue', 'blue', 'red', 'red']
    """
    return colours[int(len(colours) * generator.random())]


def contract_table(
    rules: str = "standard", target: str = "red", *, colours: int = 2, delay: int = 0
) -> list[dict[str, Any]]:
    """What each action does in each state that can be reached, as rows to print: the contract, from the tables.

    Args:
        rules: a rule set, one of :data:`keydoor.rules.RULE_SETS`.
        target: the hidden colour; another one only exchanges the names of the colours.
        colours: number of colours, at least 2; see :func:`keydoor.rules.get_rules`.
        delay: turns between a clue and the next valid pickup, at least 0.

    Returns:
        A row for each state and action, states in the order in which they can be reached. The two limits of an
        episode are no part of the table.

    Raises:
        ValueError: an unknown rule set or colour, or a number out of its range.

    Example:
        >>> rows = contract_table("standard")
        >>> len(rows)
        42
        >>> print(*(row["action"] for row in rows if row["stop_reason"] == "success"))
        finish finish finish
        >>> print(*(row["observation"] for row in rows[:6]))
        clue_red invalid invalid failure failure failure
    """
    tables = get_rules(rules, colours=colours, delay=delay)
    one_of(target, "target", tables.colours)
    rows = []
    for state, outcomes in zip(tables.states, _flat(tables), strict=True):
        if state.target == target:
            for action, (_, observation, base_reward, invalid, stop_reason, before, after) in zip(
                tables.actions, outcomes, strict=True
            ):
                rows.append(
                    {
                        "inspected": state.inspected,
                        "key": state.key,
                        "opened": state.opened,
                        "shown": state.shown,
                        "wait": state.wait,
                        "action": action,
                        "observation": observation,
                        "base_reward": base_reward,
                        "potential_before": before,
                        "potential_after": after,
                        "invalid": invalid,
                        "stop_reason": stop_reason,
                    }
                )
    return rows


class KeyDoorAgentEnv(_Base):
    """A room, two keys, two locked doors, and a clue that is shown once.

    **Description.** One of the two doors counts, red or blue with probability ½ each. Only ``inspect`` tells which, for
    one turn; any later one hides it, unless the agent looks again. The agent takes a key, uses it on a door and
    finishes. What a failed attempt to open a door does is the rule set's matter: see :mod:`keydoor.rules`.

    **Actions.** ``Discrete(6)``. :meth:`step` accepts an index, a name, or a tool call in JSON such as
    ``{"name": "inspect"}``.

    == =============== ==================================================
    0  ``inspect``     show the clue
    1  ``pickup_red``  take the red key; invalid before the clue
    2  ``pickup_blue`` take the blue key; invalid before the clue
    3  ``open_red``    use the key in hand on the red door
    4  ``open_blue``   use the key in hand on the blue door
    5  ``finish``      end the task; pays 1 if the target door is open
    == =============== ==================================================

    **Observations.** Strings, or with ``observation_mode="indices"`` members of ``Discrete(8)``. No observation tells
    the time: a policy that needs the turn has to count.

    == =============== ==================================================
    0  ``room``        the start
    1  ``clue_red``    the red door counts
    2  ``clue_blue``   the blue door counts
    3  ``key_held``    a key is in hand, which one is not said
    4  ``door_open``   a door has opened
    5  ``invalid``     the action changed nothing
    6  ``success``     the end, with reward
    7  ``failure``     the end, without
    == =============== ==================================================

    **Rewards.** The base reward is 1 for ``success``, else 0. The shaped reward adds
    :math:`\\gamma\\Phi(s_{t+1})-\\Phi(s_t)` with the potential of :func:`keydoor.rules.potential`, which is 0 at
    every true end and is kept where the collector cuts. :meth:`step` returns the one that ``reward_mode`` names, and
    both are in ``info``.

    **Ends.** ``terminated``: ``finish``; under ``standard`` a failed attempt to open; or turn number ``task_horizon``,
    a limit that belongs to the task. ``truncated``: turn number ``collector_limit``, a limit that belongs to whoever
    collects the data; the task would have gone on, and the observation is the one it goes on with. On a tie the task's
    end wins: the two flags are never both set.

    **Privileged information.** :attr:`target`, :attr:`state`, the potentials in ``info``, the shaped reward and the
    rendered text depend on the hidden colour. They are there for training, for reports and for people. No policy may
    see them.

    Args:
        seed: seed of the targets, a non-negative integer. ``None``: the operating system's entropy. The global
            generators of :mod:`random` and numpy are neither read nor changed.
        task_horizon: number of turns that the task allows, at least 1.
        collector_limit: number of turns after which the collector cuts, at least 1; ``None``: never.
        gamma: discount :math:`\\gamma\\in[0,1]` of the shaping term where :meth:`step` is given none. It must be the
            learner's, or the shaping pays for going in circles.
        rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
        colours: number of colours, at least 2. With :math:`n` of them there are :math:`2n+2` actions and
            :math:`n+6` observations; their names are ``world.actions`` and ``world.observations``.
        delay: turns that must pass between a clue and the next pickup that is not invalid, at least 0.
        reward_mode: which reward :meth:`step` returns, one of :data:`keydoor.rules.REWARD_MODES`.
        observation_mode: one of :data:`OBSERVATION_MODES`. The registered id has ``"indices"``.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ValueError: an argument outside of what is said above.

    Source:
        Towers et al. (2024), *Gymnasium: A Standard Interface for Reinforcement Learning Environments*, for the
        interface; Pardo et al. (2018), *Time Limits in Reinforcement Learning*, for the two kinds of limit.

    Example:
        >>> env = KeyDoorAgentEnv(seed=0)
        >>> observation, info = env.reset(target="red")
        >>> for action in ("inspect", "pickup_red", "open_red", "finish"):
        ...     observation, reward, terminated, truncated, info = env.step(action, gamma=0.99)
        ...     print(observation, reward, terminated, info["potential_after"], info["stop_reason"])
        clue_red 0.0 False 0.25 None
        key_held 0.0 False 0.5 None
        door_open 0.0 False 0.75 None
        success 1.0 True 0.0 success
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  (Gymnasium's form)
    """What Gymnasium asks of a class of environments: the render modes, and how many frames a second they show."""
    render_mode: str | None = None

    def __init__(
        self,
        *,
        seed: int | None = None,
        task_horizon: int = 8,
        collector_limit: int | None = None,
        gamma: Number = 0.99,
        rules: str = "standard",
        colours: int = 2,
        delay: int = 0,
        reward_mode: str = "sparse",
        observation_mode: str = "names",
        render_mode: str | None = None,
    ) -> None:
        self.task_horizon = whole(task_horizon, "task_horizon", least=1)
        self.collector_limit = None if collector_limit is None else whole(collector_limit, "collector_limit", least=1)
        self.gamma = unit_interval(gamma, "gamma")
        self.rules = one_of(rules, "rules", RULE_SETS)
        self.world = get_rules(rules, colours=colours, delay=delay)
        """The tables of this world."""
        self._table = _flat(self.world)
        self._action_index = {name: index for index, name in enumerate(self.world.actions)}
        self._observation_index = {name: index for index, name in enumerate(self.world.observations)}
        self.reward_mode = one_of(reward_mode, "reward_mode", REWARD_MODES)
        self.observation_mode = one_of(observation_mode, "observation_mode", OBSERVATION_MODES)
        if render_mode is not None:
            one_of(render_mode, "render_mode", self.metadata["render_modes"])
        self.render_mode = render_mode
        if gymnasium is not None:
            actions, observations = self.world.actions, self.world.observations
            self.action_space: gymnasium.spaces.Discrete = gymnasium.spaces.Discrete(len(actions))
            """The indices of ``world.actions``; only where Gymnasium is installed."""
            self.observation_space: gymnasium.spaces.Space[Any] = (
                gymnasium.spaces.Discrete(len(observations))
                if observation_mode == "indices"
                else gymnasium.spaces.Text(
                    min_length=min(map(len, observations)),
                    max_length=max(map(len, observations)),
                    charset=frozenset("".join(observations)),
                )
            )
            """Observations in the form that ``observation_mode`` chooses; only where Gymnasium is installed."""
        self._random = random.Random()
        if seed is not None:
            self._reseed(whole(seed, "seed", least=0))
        self._state: int | None = None  # index into the rule set's states; the last one stays after the end
        self._running = False
        self._turn = 0
        self._last = ""

    def _reseed(self, seed: int) -> None:
        self._random = random.Random(seed)
        super().reset(seed=seed)  # keeps Gymnasium's own generator reproducible for wrappers that use it

    def reset(
        self, *, seed: int | None = None, target: str | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, whether the one before has ended or not.

        Args:
            seed: begins the stream of targets anew, an integer not below 0; ``None`` goes on with it.
            target: forces the hidden colour. A forced target draws nothing: the targets of the free episodes around it
                are what they would be without it.
            options: ``{"target": colour}`` does the same through wrappers that pass no ``target``.

        Returns:
            The observation ``room`` and an ``info`` with ``turn`` 0, the potential of the start as ``potential_after``,
            and ``stop_reason`` ``None``.

        Raises:
            ValueError: an unknown colour or option, two different targets, a seed that is not a non-negative integer.
                The episode that was running is then still running.
        """
        if seed is not None:
            seed = whole(seed, "seed", least=0)
        if target is not None:
            target = one_of(target, "target", self.world.colours)
        if options is not None:
            if not isinstance(options, Mapping) or set(options) - {"target"}:
                refuse("options", options, "a mapping with no key but 'target'")
            wanted = options.get("target")
            if wanted is not None:
                wanted = one_of(wanted, "options['target']", self.world.colours)
                if target not in (None, wanted):
                    refuse("options['target']", wanted, f"the colour that target gives, {target}")
                target = wanted

        if seed is not None:
            self._reseed(seed)
        rules = self.world
        self._state = rules.start[target or draw_target(self._random, rules.colours)]
        self._running, self._turn, self._last = True, 0, ""
        observation: Any = rules.start_observation
        if self.observation_mode == "indices":
            observation = self._observation_index[observation]
        return observation, {"turn": 0, "potential_after": rules.potential[self._state], "stop_reason": None}

    def step(self, action: Any, *, gamma: Number | None = None) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one turn.

        Args:
            action: a name of ``world.actions``, its index, or a text that
                :func:`keydoor.turns.parse_action` reads as one of them.
            gamma: discount of the shaping term of this turn, in [0, 1]; ``None``: the environment's. A
                :class:`~fractions.Fraction` makes ``info["shaped_reward"]`` one.

        Returns:
            ``(observation, reward, terminated, truncated, info)``. ``info`` holds ``potential_before``,
            ``potential_after``, ``base_reward``, ``shaped_reward``, ``stop_reason`` (one of
            :data:`keydoor.rules.STOP_REASONS`, ``None`` while the task goes on), ``invalid`` (whether the action counts
            as invalid) and ``turn`` (how many turns have been taken, this one included).

        Raises:
            ResetNeeded: no episode is running.
            ValueError: not an action, or a discount outside of [0, 1]. The turn is then not used up.
        """
        if not self._running or self._state is None:
            raise ResetNeeded("no episode is running: call reset() before the first step and after an end")
        kind = type(action)
        if kind is str and action in self._action_index:
            index = self._action_index[action]
        elif kind is int and 0 <= action < len(self._action_index):
            index = action
        else:
            index = self._action_index[parse_action(action, colours=len(self.world.colours))]
        if gamma is None:
            gamma = self.gamma
        elif type(gamma) is not float or not 0.0 <= gamma <= 1.0:
            gamma = unit_interval(gamma, "gamma")

        outcome = self._table[self._state][index]
        self._state, observation, base_reward, invalid, stop_reason, before, after = outcome
        self._turn = turn = self._turn + 1
        truncated = False
        if stop_reason is None:
            if turn >= self.task_horizon:
                observation, stop_reason, after = "failure", "task_horizon", 0.0
            elif turn == self.collector_limit:
                stop_reason, truncated = "collector_limit", True
        terminated = stop_reason is not None and not truncated
        self._running = stop_reason is None

        if type(gamma) is Fraction:  # the potentials are multiples of ¼: exact as floats, and so exact here
            shaped_reward: Any = Fraction(base_reward) + gamma * Fraction(after) - Fraction(before)
        else:
            shaped_reward = base_reward + gamma * after - before
        if self.render_mode is not None:
            self._last = f"{self.world.actions[index]} -> {observation}" + (f" ({stop_reason})" if stop_reason else "")
        info = {
            "potential_before": before,
            "potential_after": after,
            "base_reward": base_reward,
            "shaped_reward": shaped_reward,
            "stop_reason": stop_reason,
            "invalid": invalid,
            "turn": turn,
        }
        return (
            self._observation_index[observation] if self.observation_mode == "indices" else observation,
            base_reward if self.reward_mode == "sparse" else float(shaped_reward),
            terminated,
            truncated,
            info,
        )

    @property
    def state(self) -> State:
        """All that the future depends on, the limits apart; after the end, the last state. Privileged information.

        Raises:
            ResetNeeded: before the first ``reset``.
        """
        if self._state is None:
            raise ResetNeeded("there is no state before the first reset()")
        return self.world.states[self._state]

    @property
    def target(self) -> str:
        """The hidden colour of this episode, or of the one that has ended. Privileged information.

        Raises:
            ResetNeeded: before the first ``reset``.
        """
        return self.state.target

    def render(self) -> Any:
        """One line of text with the hidden state, for people.

        Returns:
            The line; ``None`` without a render mode.

        Raises:
            ResetNeeded: before the first ``reset``, with a render mode.

        Example:
            >>> env = KeyDoorAgentEnv(render_mode="ansi")
            >>> _ = env.reset(target="blue"), env.step("inspect"), env.step("pickup_red")
            >>> print(env.render())
            turn 2/8 | target blue | key red | open none | pickup_red -> key_held
        """
        if self.render_mode is None:
            return None
        state = self.state
        parts = [f"turn {self._turn}/{self.task_horizon}", f"target {state.target}", f"key {state.key or 'none'}"]
        return " | ".join([*parts, f"open {state.opened or 'none'}", self._last or "room"])


# No max_episode_steps: Gymnasium's TimeLimit truncates, and this task's horizon is a true end.
if gymnasium is not None and ENV_ID not in gymnasium.registry:
    gymnasium.register(
        ENV_ID,
        entry_point="keydoor.env:KeyDoorAgentEnv",
        vector_entry_point="keydoor.vector:KeyDoorVectorEnv",
        kwargs={"observation_mode": "indices"},
    )
