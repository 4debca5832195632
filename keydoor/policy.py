"""A recurrent actor-critic: one GRU, and on it a head for the policy and a head for the value.

.. math:: h_t = \\mathrm{GRU}(x_t, h_{t-1}), \\qquad \\pi(\\cdot \\mid h_t) = \\mathrm{softmax}(W h_t + b),
          \\qquad V(h_t) = w^\\top h_t + c

The input :math:`x_t` is the observation :math:`o_t` and the action of the turn before, :math:`a_{t-1}`, both one-hot.
The critic shares the hidden state of the actor: it sees the history and never the hidden target.

**What the agent carries from turn to turn** is the pair (hidden state, previous action). An experiment that takes the
memory away has to restart both: the previous action alone is a memory of one turn, and in this world the one that
counts, since ``pickup_red`` says what the clue was. With ``previous_action=False`` the network is not shown it, and
the hidden state is all there is.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from keydoor._checks import finite, flag, refuse, unit_interval, whole
from keydoor.rules import ACTIONS, get_rules

NO_ACTION = len(ACTIONS)
"""Index of the previous action at the first turn, when there is none yet; ``model.no_action`` with more colours."""


class RecurrentActorCritic(nn.Module):
    """The policy :math:`\\pi(a_t \\mid o_0, a_0, \\dots, o_t)` and its critic.

    One network serves two ways of use: :meth:`forward` over whole episodes (learning) and :meth:`step` for one turn
    (playing). Both run the same GRU, so they agree up to rounding.

    Args:
        seed: seed of the initial weights, an integer in :math:`[0, 2^{63})`. Equal seeds give equal weights, and no
            global random state is read or changed.
        hidden_size: units of the GRU, at least 1 and at most 4095, which take a quarter of a gigabyte.
        head_scale: factor on the initial weights of the policy head, a finite number. At .01 the first policy is near
            uniform, so that every action is tried.
        gamma: the discount to which the critic's values belong, in [0, 1]. Whoever bootstraps with these values or
            adds a shaping term for this learner has to use the same number.
        previous_action: whether the network is shown the action of the turn before.
        colours: number of colours of the world, at least 2; see :func:`keydoor.rules.get_rules`.

    Raises:
        ValueError: an argument is outside of its range.

    Source:
        Cho, van Merrienboer, Gulcehre, Bahdanau, Bougares, Schwenk, Bengio (2014), the gated recurrent unit;
        Hausknecht, Stone (2015) for recurrent networks in partially observed worlds.

    Example:
        >>> model = RecurrentActorCritic(seed=1)
        >>> state = model.initial_state(batch=2)
        >>> logits, values, state = model.step(torch.tensor([0, 0]), torch.tensor([NO_ACTION, NO_ACTION]), state)
        >>> tuple(logits.shape), tuple(values.shape), tuple(state.shape)
        ((2, 6), (2,), (1, 2, 32))
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        hidden_size: int = 32,
        head_scale: float = 0.01,
        gamma: float = 0.99,
        previous_action: bool = True,
        colours: int = 2,
    ) -> None:
        super().__init__()
        seed = whole(seed, "seed", least=0, bits=63)
        self.hidden_size = whole(hidden_size, "hidden_size", least=1, bits=12)
        head_scale = float(finite(head_scale, "head_scale"))
        self.gamma = float(unit_interval(gamma, "gamma"))
        self.previous_action = flag(previous_action, "previous_action")
        world = get_rules(colours=colours)
        observations, actions = len(world.observations), len(world.actions)
        self.no_action = actions
        """Index of the previous action at the first turn, when there is none yet."""
        with torch.random.fork_rng(devices=[]):  # torch's layers draw from the global generator as they are built
            self.gru = nn.GRU(observations + actions + 1, self.hidden_size, batch_first=True)
            """The memory, from one-hot observation and previous action to the hidden state."""
            self.policy_head = nn.Linear(self.hidden_size, actions)
            """From a hidden state to one logit for each action."""
            self.value_head = nn.Linear(self.hidden_size, 1)
            """From a hidden state to the critic's value."""
        self._observation_codes: Tensor
        self._action_codes: Tensor
        self.register_buffer("_observation_codes", torch.eye(observations), persistent=False)
        self.register_buffer("_action_codes", torch.eye(actions + 1), persistent=False)
        # What torch has put there is replaced by its own distribution, U(-1/sqrt(n), 1/sqrt(n)), from our generator.
        generator = torch.Generator().manual_seed(seed)
        bound = 1 / math.sqrt(self.hidden_size)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.uniform_(-bound, bound, generator=generator)
            self.policy_head.weight.mul_(head_scale)
            self.policy_head.bias.mul_(head_scale)

    def initial_state(self, batch: int = 1) -> Tensor:
        """The hidden state before the first turn.

        Args:
            batch: number of episodes that are played together, at least 1.

        Returns:
            Zeros of shape ``(1, batch, hidden_size)``.

        Raises:
            ValueError: ``batch`` is no integer of at least 1.
        """
        return self.value_head.weight.new_zeros(1, whole(batch, "batch", least=1, bits=31), self.hidden_size)

    def forward(
        self, observations: Tensor, previous_actions: Tensor, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Policy and values along whole sequences.

        Args:
            observations: integers of shape ``(batch, turns)``, indices into the world's ``observations``.
            previous_actions: integers of the same shape; ``previous_actions[i, t]`` is the action of turn ``t - 1``,
                ``no_action`` at the first turn.
            state: hidden state before the first of these turns, ``(1, batch, hidden_size)``; ``None`` starts afresh.

        Returns:
            ``(logits, values, state)`` of shapes ``(batch, turns, actions)``, ``(batch, turns)`` and
            ``(1, batch, hidden_size)``; the state is the one after the last turn.

        Raises:
            ValueError: no tensors of integers, shapes that do not fit, no turn at all, or an index that does not exist.
        """
        hidden, state = self.encode(observations, previous_actions, state)
        return *self.heads(hidden), state

    def encode(
        self, observations: Tensor, previous_actions: Tensor, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The GRU alone, without the heads.

        Args:
            observations: as in :meth:`forward`.
            previous_actions: as in :meth:`forward`.
            state: as in :meth:`forward`.

        Returns:
            ``(hidden, state)``: the hidden states of all turns, ``(batch, turns, hidden_size)``, and the last of them
            in the form of :meth:`initial_state`.

        Raises:
            ValueError: as :meth:`forward`.
        """
        _integers(observations, "observations")
        _integers(previous_actions, "previous_actions")
        if observations.dim() != 2 or observations.shape != previous_actions.shape or observations.shape[1] == 0:
            shapes = (tuple(observations.shape), tuple(previous_actions.shape))
            refuse(
                "shapes of observations and previous_actions", shapes, "equal shapes (batch, turns), turns at least 1"
            )
        dtype, shape = self.value_head.weight.dtype, (1, len(observations), self.hidden_size)
        if state is not None and not (isinstance(state, Tensor) and state.shape == shape and state.dtype == dtype):
            found = (state.dtype, tuple(state.shape)) if isinstance(state, Tensor) else state
            refuse("state", found, f"None, or a tensor of {dtype} and shape {shape}")
        if not self.previous_action:
            previous_actions = torch.full_like(previous_actions, self.no_action)
        seen = _one_hot(observations, "observations", self._observation_codes)
        done = _one_hot(previous_actions, "previous_actions", self._action_codes)
        hidden, state = self.gru(torch.cat([seen, done], dim=-1), state)
        return hidden, state

    def heads(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Policy and value at given hidden states.

        Args:
            hidden: hidden states of any shape ``(..., hidden_size)``.

        Returns:
            ``(logits, values)`` of shapes ``(..., actions)`` and ``(...)``.
        """
        return self.policy_head(hidden), self.value_head(hidden).squeeze(-1)

    def step(self, observations: Tensor, previous_actions: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One turn of ``batch`` episodes: :meth:`forward` without the dimension of time.

        Args:
            observations: integers of shape ``(batch,)``.
            previous_actions: integers of shape ``(batch,)``.
            state: hidden state after the turn before, ``(1, batch, hidden_size)``, or :meth:`initial_state`.

        Returns:
            ``(logits, values, state)`` of shapes ``(batch, actions)``, ``(batch,)`` and ``(1, batch, hidden_size)``.

        Raises:
            ValueError: as :meth:`forward`.
        """
        observations = _integers(observations, "observations").unsqueeze(-1)
        logits, values, state = self(observations, _integers(previous_actions, "previous_actions").unsqueeze(-1), state)
        return logits.squeeze(1), values.squeeze(1), state


def _integers(indices: Tensor, name: str) -> Tensor:
    if not isinstance(indices, Tensor) or indices.dtype not in (torch.int64, torch.int32):
        refuse(name, indices, "a tensor of integers (int64 or int32)")
    return indices


def _one_hot(indices: Tensor, name: str, codes: Tensor) -> Tensor:
    """Rows of the unit matrix: the same as torch's own one_hot, in one operation."""
    try:
        return functional.embedding(indices, codes)
    except IndexError as error:  # torch names neither the tensor nor the limit
        raise ValueError(f"{name} holds what is no index below {len(codes)}: {error}") from error
