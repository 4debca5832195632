"""Reinforcement learning for agents that act through tools: the code of the book.

The package is a small partially observed world (a room, a one-turn clue, two keys, two doors) and the exact
arithmetic of turns. Every public name can be imported from here::

    from keydoor import KeyDoorAgentEnv, discounted_return

Names load on first use (:pep:`562`), so that ``import keydoor`` costs a few milliseconds and pulls in neither
torch nor gymnasium nor numpy: a chapter that only needs arithmetic does not pay for a neural network.

**Errors.** Input that has no meaning raises :class:`ValueError` with the value, its position and what was
expected. Nothing is clamped, padded or dropped in silence, and no NaN travels on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keydoor import _lazy

__version__ = "1.0.0"

_HOME_OF_NAME = {
    "ACTIONS": "rules",
    "KeyDoorAgentEnv": "env",
    "RecurrentActorCritic": "policy",
    "collect_episode": "training",
    "collector_target": "returns",
    "discounted_return": "returns",
    "discounted_td_sum": "returns",
    "evaluate_policy": "training",
    "informative_group_probability": "groups",
    "macro_action_logprob": "turns",
    "parse_action": "turns",
    "potential_shaping": "shaping",
    "rollout_contract_from_transitions": "records",
    "semantic_action_probability": "turns",
    "semi_markov_return": "returns",
    "shaped_return_identity": "shaping",
    "td_residuals": "returns",
    "train_actor_critic": "training",
    "trajectory_mask_report": "masks",
    "turn_probability_ratio": "turns",
    "validate_rollout_record": "records",
}

__all__ = sorted(_HOME_OF_NAME)

__getattr__, __dir__ = _lazy.names_on_first_use(__name__, _HOME_OF_NAME)

if TYPE_CHECKING:
    from keydoor.env import KeyDoorAgentEnv as KeyDoorAgentEnv
    from keydoor.groups import informative_group_probability as informative_group_probability
    from keydoor.masks import trajectory_mask_report as trajectory_mask_report
    from keydoor.policy import RecurrentActorCritic as RecurrentActorCritic
    from keydoor.records import (
        rollout_contract_from_transitions as rollout_contract_from_transitions,
    )
    from keydoor.records import validate_rollout_record as validate_rollout_record
    from keydoor.returns import collector_target as collector_target
    from keydoor.returns import discounted_return as discounted_return
    from keydoor.returns import discounted_td_sum as discounted_td_sum
    from keydoor.returns import semi_markov_return as semi_markov_return
    from keydoor.returns import td_residuals as td_residuals
    from keydoor.rules import ACTIONS as ACTIONS
    from keydoor.shaping import potential_shaping as potential_shaping
    from keydoor.shaping import shaped_return_identity as shaped_return_identity
    from keydoor.training import collect_episode as collect_episode
    from keydoor.training import evaluate_policy as evaluate_policy
    from keydoor.training import train_actor_critic as train_actor_critic
    from keydoor.turns import macro_action_logprob as macro_action_logprob
    from keydoor.turns import parse_action as parse_action
    from keydoor.turns import semantic_action_probability as semantic_action_probability
    from keydoor.turns import turn_probability_ratio as turn_probability_ratio
