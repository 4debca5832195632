"""The world, once: states, actions, observations, potentials and transition tables.

A target colour is hidden, red or blue with probability ½ each. The agent may look at the room (the clue is shown
for that one turn), take a key, use it on a door, and finish. Everything else that knows the world reads the tables
made here: the scalar and the vector environment, the exact solver, the text environment and the tables in the
chapters.

A *rule set* says what a failed attempt to open a door does:

``standard``
    It ends the task in failure. Memory is needed.
``soft``
    It is harmless and visible (observation ``invalid``). A key opens the door of its colour, target or not, and the
    door opened last counts. The world remembers for the agent: trying one door after the other needs no memory.
``quiet``
    As ``soft``, but a failed action has no observation of its own: it shows again the last of ``room``, ``key_held``
    and ``door_open``. Only an agent that remembers can tell that nothing happened.

Two numbers make the world larger. There may be more *colours* than two, and so more keys, doors and clues. And with
a *delay* of :math:`d` the keys stay locked away for :math:`d` turns after each clue: the clue has to be remembered for
so long, since looking again starts the wait again.

The two limits, of the task and of the collector, belong to an episode and not to the tables; see
:class:`keydoor.env.KeyDoorAgentEnv`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from keydoor._checks import one_of, refuse, whole

PALETTE = ("red", "blue", "green", "yellow", "purple", "orange", "white", "black")
"""All colours that a world may have; a world with ``n`` colours has the first ``n``."""

COLOURS = PALETTE[:2]
"""Colours of keys and doors, unless more are asked for; the target is one of them."""

ACTIONS = ("inspect", "pickup_red", "pickup_blue", "open_red", "open_blue", "finish")
"""The six actions, in the order of their indices. ``Rules.actions`` has those of a world with more colours."""

OBSERVATIONS = (
    "room",
    "clue_red",
    "clue_blue",
    "key_held",
    "door_open",
    "invalid",
    "success",
    "failure",
)
"""All observations, in the order of their indices; the last two are seen at true ends only. ``Rules.observations`` has
those of a world with more colours."""

STOP_REASONS = ("success", "wrong_finish", "failed_open", "task_horizon", "collector_limit")
"""Why an episode stopped. All but the last are true ends (``terminated``); the last is a cut (``truncated``)."""

REWARD_MODES = ("sparse", "potential")
"""Which rewards are looked at: the base reward, or the shaped one."""

RULE_SETS = ("standard", "soft", "quiet")
"""Names of the rule sets; see the module's text."""


class State(NamedTuple):
    """All that the future depends on, the hidden target included. The agent never sees it.

    Example:
        >>> rules = get_rules("standard")
        >>> rules.states[rules.start["blue"]]
        State(target='blue', inspected=False, key=None, opened=None, shown='room', wait=0)
    """

    target: str
    """Colour of the door that counts."""
    inspected: bool
    """Whether the clue has been shown; before that no key can be taken."""
    key: str | None
    """Colour of the key in hand; taking another key swaps them."""
    opened: str | None
    """Colour of the open door (of the one opened last, where several can open)."""
    shown: str
    """Last of ``room``, ``key_held``, ``door_open`` that was observed: what a failed action repeats in ``quiet``."""
    wait: int = 0
    """Turns that must still pass before a key can be taken; 0 in a world without delay."""


class Outcome(NamedTuple):
    """What one action does in one state.

    Example:
        >>> rules = get_rules("standard")
        >>> outcome = rules.table[rules.start["red"]][ACTIONS.index("finish")]
        >>> outcome.observation, outcome.base_reward, outcome.stop_reason
        ('failure', 0.0, 'wrong_finish')
    """

    state: int
    """Index of the next state in ``Rules.states``; at a true end, of the state in which the action was taken."""
    observation: str
    """What the agent sees next, one of :data:`OBSERVATIONS`."""
    base_reward: float
    """1.0 for finishing with the target door open, else 0.0."""
    invalid: bool
    """Whether the action counts as invalid: a pickup before the clue or in the wait, a door tried without its key."""
    stop_reason: str | None
    """``None`` while the task goes on, else the true end that the action caused."""


@dataclass(frozen=True, eq=False)
class Rules:
    """One rule set as tables.

    Example:
        >>> rules = get_rules("soft")
        >>> [rules.potential[outcome.state] for outcome in rules.table[rules.start["red"]]]
        [0.25, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    name: str
    """One of :data:`RULE_SETS`."""
    states: tuple[State, ...]
    """All states that can be reached, those without a true end; a state's index is its place here."""
    table: tuple[tuple[Outcome, ...], ...]
    """``table[s][a]`` is the :class:`Outcome` of action ``ACTIONS[a]`` in state ``states[s]``."""
    potential: tuple[float, ...]
    """``potential[s]`` is :math:`\\Phi` of ``states[s]``."""
    start: Mapping[str, int]
    """``start[colour]`` is the index of the state in which an episode with that target begins."""
    start_observation: str = "room"
    """What the agent sees before its first action."""
    colours: tuple[str, ...] = COLOURS
    """The colours of this world; the target is one of them, each with the same probability."""
    delay: int = 0
    """Turns between a clue and the first pickup that is not invalid."""
    actions: tuple[str, ...] = ACTIONS
    """All actions, in the order of their indices."""
    observations: tuple[str, ...] = OBSERVATIONS
    """All observations, in the order of their indices."""

    def __reduce__(self) -> tuple[Callable[..., Rules], tuple[str, int, int]]:
        """Copies and pickles by name: equal tables are one object."""
        return _build, (self.name, len(self.colours), self.delay)


def potential(state: State) -> float:
    """The potential :math:`\\Phi` of a state that is not an end: 0, ¼, ½ or ¾.

    ¾ once the target door is open, ½ with the right key in hand, ¼ after the clue, 0 at the start. At every true end
    the potential is 0, whatever the state before; at a cut by the collector it is kept.

    :math:`\\Phi` reads the hidden target: it is privileged information of the training, not something that the agent
    could compute.

    Args:
        state: a state with its hidden target.

    Returns:
        :math:`\\Phi`, one of 0, ¼, ½ and ¾.

    Raises:
        ValueError: this is no :class:`State`, or one without a target.

    Example:
        >>> potential(State("red", True, "red", None, "key_held"))
        0.5
        >>> potential(State("red", True, "blue", None, "key_held"))
        0.25
    """
    if not isinstance(state, State) or state.target not in PALETTE:
        refuse("state", state, f"a State whose target is one of {', '.join(PALETTE)}")
    if state.opened == state.target:
        return 0.75
    if state.key == state.target:
        return 0.5
    return 0.25 if state.inspected else 0.0


def _apply(rules: str, delay: int, before: State, action: str) -> tuple[State, str, float, bool, str | None]:
    """The rules themselves: next state, observation, base reward, invalid, stop reason."""
    verb, _, colour = action.partition("_")
    state = before._replace(wait=max(before.wait - 1, 0))  # one turn passes, whatever is done

    if verb == "inspect":  # looking again starts the wait again, else the last turn of a wait would show the clue
        return state._replace(inspected=True, wait=delay), f"clue_{state.target}", 0.0, False, None

    if verb == "finish":
        if state.opened == state.target:
            return state, "success", 1.0, False, "success"
        return state, "failure", 0.0, False, "wrong_finish"

    if verb == "pickup" and state.inspected and before.wait == 0:
        return state._replace(key=colour, shown="key_held"), "key_held", 0.0, False, None

    if verb == "open" and state.key == colour and (rules != "standard" or colour == state.target):
        return state._replace(opened=colour, shown="door_open"), "door_open", 0.0, False, None

    # What is left has failed: a pickup too early, a door without its key, under `standard` the wrong door.
    if verb == "open" and rules == "standard":
        return state, "failure", 0.0, state.key != colour, "failed_open"
    return state, state.shown if rules == "quiet" else "invalid", 0.0, True, None


def get_rules(name: str = "standard", *, colours: int = 2, delay: int = 0) -> Rules:
    """The tables of a rule set, built once by walking all states that can be reached.

    Args:
        name: one of :data:`RULE_SETS`.
        colours: number of colours, at least 2, at most 8: the first ones of :data:`PALETTE`.
        delay: turns that must pass between a clue and the next pickup that is not invalid, at least 0, at most 1000.
            With ``delay=1`` a pickup on the turn after the clue is invalid, and on the turn after that one it is not.

    Returns:
        The same immutable :class:`Rules` object at each call.

    Raises:
        ValueError: the name is unknown, or a number is out of its range.

    Example:
        >>> rules = get_rules("standard")
        >>> start = rules.start["red"]
        >>> rules.table[start][ACTIONS.index("inspect")].observation
        'clue_red'
        >>> rules.table[start][ACTIONS.index("open_red")].stop_reason
        'failed_open'
        >>> [len(get_rules(name).states) for name in RULE_SETS]
        [14, 20, 20]
        >>> get_rules("standard", colours=3).actions
        ('inspect', 'pickup_red', 'pickup_blue', 'pickup_green', 'open_red', 'open_blue', 'open_green', 'finish')
    """
    name = one_of(name, "rules", RULE_SETS)
    colours = whole(colours, "colours", least=2)
    if colours > len(PALETTE):
        refuse("colours", colours, f"at most {len(PALETTE)}")
    delay = whole(delay, "delay", least=0)
    if delay > MAX_DELAY:
        refuse("delay", delay, f"at most {MAX_DELAY}")
    return _build(name, colours, delay)


MAX_DELAY = 1000
"""The largest delay; the tables grow with it."""


@cache
def _build(name: str, count: int, delay: int) -> Rules:
    colours = PALETTE[:count]
    pickups, opens = (tuple(f"{verb}_{colour}" for colour in colours) for verb in ("pickup", "open"))
    actions = ("inspect", *pickups, *opens, "finish")
    clues = tuple(f"clue_{colour}" for colour in colours)
    start = {colour: State(colour, False, None, None, "room") for colour in colours}
    index = {state: number for number, state in enumerate(start.values())}
    table: list[tuple[Outcome, ...]] = []
    queue = list(start.values())
    for state in queue:  # grows while it is walked: breadth first
        row = []
        for action in actions:
            after, observation, base_reward, invalid, stop_reason = _apply(name, delay, state, action)
            if stop_reason is not None:
                after = state
            elif after not in index:
                index[after] = len(index)
                queue.append(after)
            row.append(Outcome(index[after], observation, base_reward, invalid, stop_reason))
        table.append(tuple(row))
    return Rules(
        name=name,
        states=tuple(index),
        table=tuple(table),
        potential=tuple(potential(state) for state in index),
        start=MappingProxyType({colour: index[state] for colour, state in start.items()}),
        colours=colours,
        delay=delay,
        actions=actions,
        observations=("room", *clues, "key_held", "door_open", "invalid", "success", "failure"),
    )
