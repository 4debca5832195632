"""The rollout record: one episode as a plain, checked, JSON-ready object.

A text and a final reward are not enough to train from, or to find out later what went wrong. The record keeps, turn
by turn, what the agent saw and did, who chose (the policy or a controller), with which log-probability and under
which sampling settings, which policy version was acting, the two rewards, the two end flags, and why it stopped.

The work is divided: the *builder* copies what it is given and judges nothing, so that a broken episode can still be
looked at; the *validator* judges and never raises; the *writer* and the *reader* refuse what the validator finds
fault with. So a file never holds a broken record, and a broken record never costs the evidence.

Potentials stay out of the record: they read the hidden state, and a record is what others train from. Mind that shaped
rewards are privileged too, since :math:`\\Phi_{t+1} = (r'_t - r_t + \\Phi_t)/\\gamma` gives the potentials back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

from keydoor._checks import refuse, sequence, unwrap, whole
from keydoor._record_checks import CUT_REASON, SCHEMA_VERSION, check_record
from keydoor._record_files import read_rollout_records, rollout_schema, write_rollout_records
from keydoor._record_values import MAX_VIOLATIONS

__all__ = [
    "CUT_REASON",
    "MAX_VIOLATIONS",
    "SCHEMA_VERSION",
    "Staleness",
    "Transition",
    "prefix_mismatch",
    "read_rollout_records",
    "rollout_contract_from_transitions",
    "rollout_schema",
    "staleness",
    "validate_rollout_record",
    "write_rollout_records",
]

_REQUIRED, _MISSING = object(), object()

_COLUMN_OF_FIELD: dict[str, tuple[str, Any]] = {
    "observation": ("observations", _REQUIRED),
    "action": ("actions", _REQUIRED),
    "next_observation": ("next_observations", _REQUIRED),
    "sampled": ("policy_mask", True),
    "behavior_logprob": ("behavior_logprobs", _REQUIRED),
    "logprob": ("logprobs", None),
    "base_reward": ("base_rewards", _REQUIRED),
    "shaped_reward": ("shaped_rewards", _REQUIRED),
    "invalid": ("invalid", False),
    "terminated": ("terminated", _REQUIRED),
    "truncated": ("truncated", _REQUIRED),
}
_SAMPLING_DEFAULTS: dict[str, Any] = {"greedy": False, "temperature": 1.0, "top_p": 1.0, "top_k": None}


@dataclass(frozen=True)
class Transition:
    """One turn: the agent sees, acts, and the environment answers.

    The first nine fields are what every collector knows; the others have defaults that mean "an ordinary sampled
    turn". Log-probabilities are natural logarithms.

    Example:
        >>> Transition(
        ...     observation="room", action="inspect", next_observation="clue_red", behavior_logprob=-1.79,
        ...     base_reward=0.0, shaped_reward=0.2475, terminated=False, truncated=False, stop_reason=None,
        ... ).sampled
        True
    """

    observation: str
    """What the agent saw before it acted."""
    action: str
    """What it did."""
    next_observation: str
    """What it saw next; at an end, the final observation."""
    behavior_logprob: float | None
    """Log-probability with which the action was drawn: 0 if greedy, None if a controller chose (``sampled=False``)."""
    base_reward: float
    """Reward of the task."""
    shaped_reward: float
    """Reward given to the learner: base reward plus shaping."""
    terminated: bool
    """The task ended on this turn."""
    truncated: bool
    """The collector cut the episode after this turn."""
    stop_reason: str | None = None
    """Why the episode stopped; None while it runs."""
    logprob: float | None = None
    """Log π of the action at temperature 1 on the full support; None if it was not kept."""
    sampled: bool = True
    """The policy chose the action. False if a controller put it in: it then stays out of the policy loss."""
    invalid: bool = False
    """The environment counted the action as invalid."""
    potential_before: float = 0.0
    """Φ of the state before the action. It reads the hidden state, and does not enter the record."""
    potential_after: float = 0.0
    """Φ of the state after the action; 0 at a true end, kept at a cut."""
    greedy: bool = False
    """The most probable action was taken, not a sample."""
    temperature: float = 1.0
    """Divisor of the logits."""
    top_p: float = 1.0
    """Probability mass that sampling kept."""
    top_k: int | None = None
    """Number of candidates that sampling kept; None for all."""


def rollout_contract_from_transitions(
    transitions: Iterable[Any],
    *,
    task_id: str,
    environment_version: str,
    policy_version: str | Sequence[str] | None,
    tokens: Iterable[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The rollout record of one episode: a new plain dict that shares no list with its arguments.

    The builder copies; :func:`validate_rollout_record` judges. A log-probability that is NaN, or an empty episode,
    therefore becomes a record with violations and not an exception. numpy scalars and fractions become floats.

    Args:
        transitions: the turns, in order: :class:`Transition`, or objects with its first nine fields.
        task_id: name of the task, such as the prompt's.
        environment_version: version of the environment's rules.
        policy_version: version of the acting policy for the whole episode, or a sequence with one per turn, each as
            it was when the turn *began* (several versions in one episode are legal, and stay visible).
        tokens: optional, for each turn a mapping with the lists ``ids``, ``logprobs`` and ``policy_mask`` of that
            turn's *new* tokens.

    Returns:
        The record, with the fields of :func:`rollout_schema`; ``policy_versions`` has the keys ``"0"``, ``"1"``, …

    Raises:
        ValueError: what no record can hold: a transition that lacks a field, a stop reason on a turn without an end
            flag, sampling settings that change within the episode, a sequence of versions of another length.

    Example:
        >>> turn = dict(behavior_logprob=-0.5, base_reward=0.0, shaped_reward=0.0, terminated=False, truncated=False)
        >>> end = {**turn, "base_reward": 1.0, "terminated": True, "stop_reason": "success"}
        >>> record = rollout_contract_from_transitions(
        ...     [Transition("room", "inspect", "clue_red", **turn), Transition("clue_red", "finish", "success", **end)],
        ...     task_id="demo", environment_version="1.0", policy_version="v1",
        ... )
        >>> record["policy_versions"], record["stop_reason"], validate_rollout_record(record)
        ({'0': 'v1', '1': 'v1'}, 'success', [])
    """
    turns = sequence(transitions, "transitions")
    columns: dict[str, list[Any]] = {column: [] for column, _ in _COLUMN_OF_FIELD.values()}
    sampling: dict[str, Any] | None = None
    stop_reason = None
    for t, transition in enumerate(turns):
        for field, (column, default) in _COLUMN_OF_FIELD.items():
            columns[column].append(_plain(_field(transition, field, default, t)))
        settings = {key: getattr(transition, key, default) for key, default in _SAMPLING_DEFAULTS.items()}
        # top_k counts candidates and stays an integer; the other settings are measures.
        settings = {key: unwrap(value) if key == "top_k" else _plain(value) for key, value in settings.items()}
        if sampling is None:
            sampling = settings
        elif repr(settings) != repr(sampling):  # not !=: NaN differs from itself, and 1 equals True
            refuse(f"sampling of transitions[{t}]", settings, f"that of the turns before, {sampling!r}")
        stop_reason = _plain(_field(transition, "stop_reason", _REQUIRED, t))
        runs_on = columns["terminated"][t] is False and columns["truncated"][t] is False
        if stop_reason is not None and runs_on and t < len(turns) - 1:
            refuse(f"transitions[{t}].stop_reason", stop_reason, "None before the end of the episode")
    record = {
        "schema_version": SCHEMA_VERSION,
        "task_id": _plain(task_id),
        "environment_version": _plain(environment_version),
        "policy_versions": _versions(policy_version, len(turns)),
        **columns,
        "stop_reason": stop_reason,
        "sampling": dict(_SAMPLING_DEFAULTS) if sampling is None else sampling,
    }
    if tokens is not None:
        record["tokens"] = [_token_columns(entry, t) for t, entry in enumerate(sequence(tokens, "tokens"))]
    return record


def validate_rollout_record(record: object) -> list[str]:
    """What is wrong with a record: one readable message per fact, and none for a valid record.

    The check never raises, whatever it is given, and runs no code of the objects in it. A record holds only what JSON
    can hold: ``dict``, ``list``, ``str``, numbers, ``bool`` and ``None``; a numpy array or a tuple is a violation.

    Checked are: the fields and their types; equal lengths; finite numbers; log-probabilities not above 0 (so none
    is NaN, ``-inf`` or missing: a sampled action has positive probability), and 0 on greedy turns; a policy version
    for every turn and for no other; that each turn's ``next_observations`` is the next turn's ``observations``; one
    end flag, on the last turn; a known stop reason that fits the flag and the base reward; for tokens, lists that
    line up, and log-probabilities that add up to the turn's (up to 1e-6, relative or absolute).

    Args:
        record: anything. ``policy_versions`` may have the turns as strings (``"0"``, as written) or integers.

    Returns:
        The violations, each with turn, field and value; at most ``MAX_VIOLATIONS``, then a line that counts the rest.
        The cost is linear in the number of turns and tokens.

    Example:
        >>> validate_rollout_record({"schema_version": "0.9"})
        ["unknown schema_version '0.9'; this package knows '1.0'"]
        >>> validate_rollout_record(None)
        ['record is None; expected a dict']
    """
    return check_record(record)


class Staleness(NamedTuple):
    """How old the policy behind some tokens is, in trainer versions.

    Example:
        >>> staleness([(3, 1), (5, 3)], trainer_version=5).token_weighted
        0.5
    """

    worst: int
    """The greatest age: that of the oldest tokens."""
    token_weighted: float
    """The mean age over all tokens."""


def staleness(spans: Iterable[tuple[int, int]], trainer_version: int) -> Staleness:
    """Age of the policy versions that produced an episode, at its worst and on average over tokens.

    With n_i tokens from version v_i and the trainer at version V: worst = max(V − v_i), and the mean is
    Σ n_i (V − v_i) / Σ n_i. The version that was acting last says neither.

    Args:
        spans: pairs (version, number of tokens), versions ≥ 0, tokens ≥ 1.
        trainer_version: V, not below any v_i.

    Returns:
        Both ages, as a :class:`Staleness`.

    Raises:
        ValueError: no spans, a version above the trainer's, a count below 1.

    Example:
        >>> staleness([(7, 57), (8, 71)], trainer_version=12)
        Staleness(worst=5, token_weighted=4.4453125)
    """
    trainer = whole(trainer_version, "trainer_version", least=0, bits=63)
    ages, counts = [], []
    for i, span in enumerate(sequence(spans, "spans")):
        pair = sequence(span, f"spans[{i}]")
        if len(pair) != 2:
            refuse(f"spans[{i}]", span, "a pair (version, number of tokens)")
        version = whole(pair[0], f"version of spans[{i}]", least=0)
        if version > trainer:
            refuse(f"version of spans[{i}]", version, f"at most the trainer's version, {trainer}")
        ages.append(trainer - version)
        counts.append(whole(pair[1], f"token count of spans[{i}]", least=1, bits=63))
    if not ages:
        refuse("spans", [], "at least one pair (version, number of tokens)")
    return Staleness(max(ages), sum(age * n for age, n in zip(ages, counts, strict=True)) / sum(counts))


def prefix_mismatch(previous_ids: Iterable[int], prompt_ids: Iterable[int]) -> int | None:
    """Where a prompt stops repeating what came before it; None if it repeats all of it.

    Two turns fit into one training row only if the prompt of the second begins, id by id, with the prompt of the first
    and the tokens sampled after it. A chat template that drops earlier thinking, or text encoded anew, breaks that.

    Args:
        previous_ids: prompt of turn t followed by its sampled tokens, integers not below 0.
        prompt_ids: prompt of turn t + 1, integers not below 0.

    Returns:
        The first index at which they differ, or the length of a prompt that is too short.

    Raises:
        ValueError: what is no list of token ids (integers not below 0), a batch of them included.

    Example:
        >>> prefix_mismatch([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]) is None
        True
        >>> prefix_mismatch([1, 2, 3, 4, 5], [1, 2, 5, 6])
        2
    """
    previous, prompt = (
        [whole(token, f"{name}[{index}]", least=0) for index, token in enumerate(sequence(ids, name))]
        for name, ids in (("previous_ids", previous_ids), ("prompt_ids", prompt_ids))
    )
    for index, (before, after) in enumerate(zip(previous, prompt, strict=False)):
        if before != after:
            return index
    return len(prompt) if len(prompt) < len(previous) else None


def _field(transition: Any, name: str, default: Any, turn: int) -> Any:
    value = getattr(transition, name, _MISSING if default is _REQUIRED else default)
    if value is _MISSING:
        refuse(f"transitions[{turn}]", transition, f"a Transition; it lacks {name}")
    return value


def _plain(value: Any) -> Any:
    """Numbers as float, flags as bool, texts as str, each of exactly that type; anything else as it is.

    So is an integer that a float would round.
    """
    value = unwrap(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    try:
        number = float(value)
    except OverflowError:
        return value
    return int(value) if isinstance(value, Integral) and number != value else number


def _versions(policy_version: Any, turns: int) -> dict[str, Any]:
    if policy_version is None or isinstance(policy_version, str):
        return {str(t): _plain(policy_version) for t in range(turns)}
    versions = sequence(policy_version, "policy_version")
    if len(versions) != turns:
        refuse("policy_version", versions, f"one version, or {turns}, one for each turn")
    return {str(t): _plain(version) for t, version in enumerate(versions)}


def _token_columns(entry: Any, turn: int) -> dict[str, list[Any]]:
    if not isinstance(entry, Mapping) or set(entry) != {"ids", "logprobs", "policy_mask"}:
        refuse(f"tokens[{turn}]", entry, "a mapping with ids, logprobs and policy_mask")
    columns = {key: [unwrap(x) for x in sequence(entry[key], f"tokens[{turn}].{key}")] for key in entry}
    return {key: columns[key] for key in ("ids", "logprobs", "policy_mask")}
