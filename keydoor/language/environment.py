"""The world as a text environment with four tools, for training programs that let a language model call them.

:class:`TextKeyDoorEnv` keeps to the contract that TRL's ``GRPOTrainer`` calls ``environment_factory``, and needs
nothing of TRL: made without arguments, reset with the columns of a dataset's row, *every* public method other than
``reset`` and ``get_reward`` a tool, docstrings that describe the tools to the model. The rules are those of
:mod:`keydoor.rules`, looked up and not written again.

A trainer of this kind goes on calling tools as long as the model asks for it; the environment cannot stop it. So the
reward is settled by the first end of the task, and what is called later raises.

There is no adapter for other frameworks. ``verifiers`` 0.4.0 installs beside the pins of this book, but brings 49
packages, among them the clients of several services; OpenEnv puts a server between trainer and environment, where a
class in the same process is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keydoor._checks import one_of, refuse, whole
from keydoor.language.texts import LANGUAGES, WORDINGS, observation_text
from keydoor.rules import ACTIONS, COLOURS, RULE_SETS, Rules, get_rules


class TextKeyDoorEnv:
    """The key-door world behind four tools: ``inspect``, ``pickup``, ``open_door`` and ``finish``.

    Under the standard rules a failed attempt to open a door ends the task. The reward is 1 where the task has ended
    with the target door open, else 0, and nothing after the end changes it. An invalid pickup uses up a turn and
    changes nothing else. An unknown colour is no action: it raises, and uses up no turn.

    Example:
        >>> env = TextKeyDoorEnv()
        >>> env.reset(prompt="ignored", target="red")
        '\\nYou are in a room with a red door and a blue door. Both are locked.'
        >>> env.inspect(), env.pickup("red"), env.open_door("red"), env.finish()
        ('The target door is red.', 'You are holding a key.', 'The door is open.', 'Success: the target door is open.')
        >>> env.get_reward()
        1.0
        >>> env.inspect()
        Traceback (most recent call last):
        ...
        RuntimeError: the episode is over (success); no tool can be called any more
    """

    def __init__(self) -> None:
        self._world: Rules | None = None
        self._state = 0
        self._horizon = 0
        self._turns = 0
        self._said = ("en", "plain")
        self._reward = 0.0
        self._stop_reason: str | None = None

    def reset(
        self,
        target: str | None = None,
        rules: str = "standard",
        horizon: int = 8,
        language: str = "en",
        wording: str = "plain",
        **row: Any,
    ) -> str:
        """Begin an episode; nothing of the one before is left.

        Args:
            target: colour of the door that counts, one of :data:`keydoor.rules.COLOURS`.
            rules: rule set, one of :data:`keydoor.rules.RULE_SETS`.
            horizon: turns that the task allows, at least 1.
            language: of the observations, one of :data:`keydoor.language.texts.LANGUAGES`.
            wording: of the observations, one of :data:`keydoor.language.texts.WORDINGS`.
            **row: other columns of the dataset, the prompt among them; they are not read.

        Returns:
            The first observation. It begins with a line break, since trainers append it to the prompt as it is.

        Raises:
            ValueError: no target, or an unknown target, rule set, language or wording.
        """
        colour = one_of(target, "target", COLOURS)
        world = get_rules(one_of(rules, "rules", RULE_SETS))
        turns = whole(horizon, "horizon", least=1)
        said = one_of(language, "language", LANGUAGES), one_of(wording, "wording", WORDINGS)
        self.__init__()  # type: ignore[misc]  # whatever a later version keeps, an episode begins as the first one
        self._world, self._state, self._horizon, self._said = world, world.start[colour], turns, said
        return "\n" + self._seen(world.start_observation)

    def inspect(self) -> str:
        """Look around the room. Shows the colour of the target door, for this one turn.

        Returns:
            What is seen.

        Raises:
            RuntimeError: the episode is over.
        """
        return self._act("inspect")

    def pickup(self, color: str) -> str:
        """Take a key; a key that is already held is put back. Possible only after a look around.

        Args:
            color: Colour of the key, either "red" or "blue".

        Returns:
            What is seen. It does not say which key is held.

        Raises:
            ValueError: an unknown colour; nothing has changed.
            RuntimeError: the episode is over.
        """
        return self._act(f"pickup_{one_of(color, 'color', COLOURS)}")

    def open_door(self, color: str) -> str:
        """Open a door with the key of its colour. A failed attempt may end the task.

        Args:
            color: Colour of the door, either "red" or "blue".

        Returns:
            What is seen.

        Raises:
            ValueError: an unknown colour; nothing has changed.
            RuntimeError: the episode is over.
        """
        return self._act(f"open_{one_of(color, 'color', COLOURS)}")

    def finish(self) -> str:
        """Say that the target door is open. This ends the task.

        Returns:
            Whether that was so.

        Raises:
            RuntimeError: the episode is over.
        """
        return self._act("finish")

    def get_reward(self) -> float:
        """The reward of the episode so far; reading it changes nothing.

        Returns:
            1.0 after success, else 0.0.
        """
        return self._reward

    def _seen(self, observation: str) -> str:
        language, wording = self._said
        return observation_text(observation, language=language, wording=wording)

    def _act(self, action: str) -> str:
        if self._world is None:
            raise RuntimeError("no episode has begun; call reset first")
        if self._stop_reason is not None:
            raise RuntimeError(f"the episode is over ({self._stop_reason}); no tool can be called any more")
        outcome = self._world.table[self._state][ACTIONS.index(action)]
        self._turns += 1
        self._state = outcome.state
        self._stop_reason = outcome.stop_reason or ("task_horizon" if self._turns == self._horizon else None)
        self._reward = outcome.base_reward
        return self._seen(outcome.observation)


def call_of(action: str) -> tuple[str, dict[str, str]]:
    """An action as the call of a tool.

    Args:
        action: one of :data:`keydoor.rules.ACTIONS`.

    Returns:
        Name of the tool, and its arguments.

    Raises:
        ValueError: an unknown action.

    Example:
        >>> call_of("open_blue"), call_of("finish")
        (('open_door', {'color': 'blue'}), ('finish', {}))
    """
    verb, _, colour = one_of(action, "action", ACTIONS).partition("_")
    if not colour:
        return verb, {}
    return ("open_door" if verb == "open" else verb), {"color": colour}


def play(env: Any, actions: Iterable[str | tuple[str, Mapping[str, Any]]]) -> list[str]:
    r"""Call tools one after the other as a trainer does: an exception becomes the text that the model would read.

    Args:
        env: an environment whose public methods are tools, reset.
        actions: names of actions, or pairs of a tool and its arguments.

    Returns:
        One text for each call.

    Raises:
        ValueError: an unknown action.

    Example:
        >>> env = TextKeyDoorEnv()
        >>> _ = env.reset(target="red")
        >>> play(env, ["inspect", "pickup_red", ("pickup", {"color": "green"})])
        ['The target door is red.', 'You are holding a key.',
         '{\'error\': "color is \'green\'; expected one of red, blue"}']
    """
    answers = []
    for action in actions:
        tool, arguments = call_of(action) if isinstance(action, str) else action
        method = getattr(env, tool, None)
        if tool.startswith("_") or not callable(method):
            refuse("a tool in actions", tool, "a public method of the environment")
        try:
            answers.append(str(method(**arguments)))
        except Exception as error:
            answers.append(str({"error": str(error)}))
    return answers
