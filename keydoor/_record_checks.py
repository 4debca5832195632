"""The rules of a rollout record, one violation per broken fact.

The checks run no code of the objects they look at (see :mod:`keydoor._record_values`). So an object whose ``__eq__``,
``__len__`` or ``__repr__`` raises, a list that contains itself, or an array that answers a comparison with another
array is reported like any other wrong value. Each list is read a fixed number of times: the cost is linear in the
number of turns and tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from keydoor._record_values import (
    LOGPROB_TOLERANCE,
    Violations,
    is_count,
    is_flag,
    is_logprob,
    is_name,
    is_number,
    is_text,
    show,
    show_turns,
)
from keydoor.rules import STOP_REASONS

SCHEMA_VERSION = "1.0"
"""Version of the record's form, written into each record."""

CUT_REASON = "collector_limit"
"""The only stop reason that is a truncation; all others are true ends."""

TOKEN_SUM_TOLERANCE = 1e-6
"""Relative and absolute tolerance between a turn's log-probability and its tokens' sum (engines add in float32)."""


def _or_none(rule: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or rule(value)


_TEXT, _FLAG, _NUMBER = "a non-empty string", "True or False", "a finite number"
_LOGPROB = "a finite number not above 0"

TURN_FIELDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "observations": (is_text, _TEXT),
    "actions": (is_text, _TEXT),
    "next_observations": (is_text, _TEXT),
    "policy_mask": (is_flag, _FLAG),
    # None only where the policy did not choose: checked together with the mask.
    "behavior_logprobs": (_or_none(is_logprob), _LOGPROB),
    "logprobs": (_or_none(is_logprob), _LOGPROB + ", or None"),
    "base_rewards": (is_number, _NUMBER),
    "shaped_rewards": (is_number, _NUMBER),
    "invalid": (is_flag, _FLAG),
    "terminated": (is_flag, _FLAG),
    "truncated": (is_flag, _FLAG),
}
"""The lists with one entry per turn: rule of an entry, and the rule in words."""

SAMPLING_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "greedy": (is_flag, _FLAG),
    "temperature": (lambda x: is_number(x) and x >= 0, "a finite number not below 0"),
    "top_p": (lambda x: is_number(x) and 0 < x <= 1, "a number in (0, 1]"),
    "top_k": (lambda x: x is None or is_count(x, 1), "an integer not below 1, or None"),
}
"""How actions or tokens were drawn: rule of a setting, and the rule in words."""

REQUIRED_FIELDS = (
    "schema_version",
    "task_id",
    "environment_version",
    *TURN_FIELDS,
    "stop_reason",
    "sampling",
    "policy_versions",
)
OPTIONAL_FIELDS = ("tokens",)
TOKEN_FIELDS = ("ids", "logprobs", "policy_mask")


def fields_of(value: object, where: str, required: tuple[str, ...], optional: tuple[str, ...], out: Violations) -> Any:
    """The known fields of a dict, or None if it is not one. Keys are compared as text only, never looked up.

    A look-up would call ``__eq__`` of a foreign key that has the same hash.
    """
    if type(value) is not dict:
        out.add(f"{where} is {show(value)}; expected a dict")
        return None
    found = {key: entry for key, entry in list(value.items()) if type(key) is str}
    known = set(required) | set(optional)
    for key in list(value):
        if type(key) is not str or key not in known:
            out.add(f"{where} has the unknown field {show(key)}")
    for key in required:
        if key not in found:
            out.add(f"{where} lacks the field {key}")
    return found


def check_record(record: object) -> list[str]:
    """All violations of one record; see :func:`keydoor.records.validate_rollout_record`."""
    out = Violations()
    if type(record) is dict:
        versions = [entry for key, entry in list(record.items()) if type(key) is str and key == "schema_version"]
        if versions and type(versions[0]) is str and versions[0] != SCHEMA_VERSION:
            # Of a record of another form no other field can be judged.
            return [f"unknown schema_version {show(versions[0])}; this package knows {SCHEMA_VERSION!r}"]
    # A record without policy_versions gets the message of its missing versions, below, and not a second one.
    fields = fields_of(record, "record", REQUIRED_FIELDS[:-1], ("policy_versions", *OPTIONAL_FIELDS), out)
    if fields is None:
        return out.lines()
    if "schema_version" in fields and type(fields["schema_version"]) is not str:
        out.add(f"schema_version is {show(fields['schema_version'])}; expected {SCHEMA_VERSION!r}")
    for key in ("task_id", "environment_version"):
        if key in fields and not is_name(fields[key]):
            out.add(f"{key} is {show(fields[key])}; expected {_TEXT}")

    columns: dict[str, list[Any]] = {}
    for key in (*TURN_FIELDS, *OPTIONAL_FIELDS):
        if key in fields and type(fields[key]) is list:
            columns[key] = fields[key]
        elif key in fields:
            out.add(f"{key} is {show(fields[key])}; expected a list with one entry per turn")
    lengths = Counter(len(column) for column in columns.values())
    turns = max(lengths, key=lambda length: (lengths[length], length), default=0)
    if columns and turns == 0:
        out.add("the record has no turns: its lists are empty")
    for key, column in columns.items():
        if len(column) != turns:
            out.add(f"unequal lengths: {key} has {len(column)}; expected {turns}, as most lists have")

    _check_versions(fields.get("policy_versions"), turns, out)
    for key, (rule, expected) in TURN_FIELDS.items():
        for t, value in enumerate(columns.get(key, ())):
            if not rule(value):
                out.add(f"turn {t}: {key} is {show(value)}; expected {expected}")
    _check_chain(columns, out)
    sampling = _check_sampling(fields, out)
    _check_behavior(columns, sampling.get("greedy") is True, out)
    _check_end(columns, turns, fields, out)
    for t, tokens in enumerate(columns.get("tokens", ())):
        _check_tokens(t, tokens, columns, out)
    return out.lines()


def _check_versions(versions: object, turns: int, out: Violations) -> None:
    """Every turn needs the version of the policy that acted, as it was when the turn began."""
    stated: dict[int, object] = {}
    if type(versions) is dict:
        for key, version in list(versions.items()):
            turn = _turn_of_key(key)
            if turn is None:
                out.add(f"policy_versions has the key {show(key)}; expected a turn, such as '0'")
            elif turn >= turns:
                out.add(f"policy_versions has a version for turn {show(turn)}, but there are {turns} turns")
            elif turn in stated:
                out.add(f"policy_versions has turn {turn} twice, as text and as a number")
            else:
                stated[turn] = version
                if version is not None and type(version) is not str:
                    out.add(f"turn {turn}: policy_versions is {show(version)}; expected {_TEXT}")
                elif type(version) is str and version and not is_text(version):
                    out.add(f"turn {turn}: policy_versions is {show(version)}; expected text that UTF-8 can hold")
    missing = [t for t in range(turns) if _is_absent(stated.get(t))]
    if missing:
        whole = "" if type(versions) is dict else f" (policy_versions is {show(versions)})"
        out.add(f"missing policy versions for {show_turns(missing)}{whole}")
    elif type(versions) is not dict:
        out.add(f"policy_versions is {show(versions)}; expected a dict from turn to version")


def _is_absent(version: object) -> bool:
    return version is None or (type(version) is str and not version.strip())


def _turn_of_key(key: object) -> int | None:
    """The turn a key means: ``"3"`` or ``3``; ``"03"``, ``True`` and ``-1`` mean none."""
    if type(key) is int:
        return key if key >= 0 else None
    if type(key) is not str or not 0 < len(key) <= 18:
        return None
    canonical = key.isascii() and key.isdigit() and (key == "0" or key[0] != "0")
    return int(key) if canonical else None


def _check_chain(columns: dict[str, list[Any]], out: Violations) -> None:
    """What a turn led to is what the next turn saw."""
    led_to, saw = columns.get("next_observations", []), columns.get("observations", [])
    for t, (after, before) in enumerate(zip(led_to, saw[1:], strict=False)):
        if type(after) is str and type(before) is str and after != before:
            out.add(
                f"turn {t}: next_observations is {show(after)}, "
                f"but observations of turn {t + 1} is {show(before)}; expected the same"
            )


def _check_sampling(fields: dict[str, Any], out: Violations) -> dict[str, Any]:
    if "sampling" not in fields:
        return {}
    sampling: dict[str, Any] = fields_of(fields["sampling"], "sampling", tuple(SAMPLING_FIELDS), (), out) or {}
    for key, (rule, expected) in SAMPLING_FIELDS.items():
        if key in sampling and not rule(sampling[key]):
            out.add(f"sampling.{key} is {show(sampling[key])}; expected {expected}")
    temperature = sampling.get("temperature")
    if is_number(temperature) and temperature == 0 and sampling.get("greedy") is False:
        out.add(f"sampling.temperature is {show(temperature)} although sampling.greedy is False; expected above 0")
    return sampling


def _check_behavior(columns: dict[str, list[Any]], greedy: bool, out: Violations) -> None:
    """A behaviour log-probability exists exactly where the policy chose; of a greedy choice it is log 1."""
    mask = columns.get("policy_mask", [])
    for t, value in enumerate(columns.get("behavior_logprobs", ())):
        forced = t < len(mask) and mask[t] is False
        if value is None and not forced:
            out.add(f"turn {t}: behavior_logprobs is None; expected {_LOGPROB}")
        elif value is not None and forced:
            out.add(f"turn {t}: behavior_logprobs is {show(value)} where policy_mask is False; expected None")
        elif greedy and is_logprob(value) and value < -LOGPROB_TOLERANCE:
            out.add(f"turn {t}: behavior_logprobs is {show(value)} although sampling.greedy is True; expected 0")


def _check_end(columns: dict[str, list[Any]], turns: int, fields: dict[str, Any], out: Violations) -> None:
    """One end, on the last turn, of one kind, and the stop reason that fits."""
    for key in ("terminated", "truncated"):
        for t, flag in enumerate(columns.get(key, [])[: max(turns - 1, 0)]):
            if flag is True:
                out.add(f"turn {t}: {key} is True before the last turn, {turns - 1}; expected no turn after the end")
    reason = fields.get("stop_reason")
    known = type(reason) is str and reason in STOP_REASONS
    if "stop_reason" in fields and not known:
        out.add(f"stop_reason is {show(reason)}; expected one of {', '.join(STOP_REASONS)}")
    last = turns - 1
    terminated, truncated = _entry(columns, "terminated", last), _entry(columns, "truncated", last)
    if is_flag(terminated) and is_flag(truncated):
        if terminated and truncated:
            out.add(f"turn {last}: terminated and truncated are both True; expected one (the task's end wins a tie)")
        elif not terminated and not truncated:
            out.add(f"turn {last}: terminated and truncated are both False on the last turn; expected one True")
        elif known and truncated is not (reason == CUT_REASON):
            flag, needed = ("truncated", "terminated") if truncated else ("terminated", "truncated")
            out.add(f"turn {last}: {flag} is True, but stop_reason is {show(reason)}; expected {needed}")
    reward = _entry(columns, "base_rewards", last)
    if known and is_number(reward):
        if reason == "success" and not reward > 0:
            out.add(f"turn {last}: base_rewards is {show(reward)} although stop_reason is 'success'; expected above 0")
        elif reason in ("wrong_finish", "failed_open") and reward > 0:
            out.add(f"turn {last}: base_rewards is {show(reward)} although stop_reason is {show(reason)}; expected 0")


def _entry(columns: dict[str, list[Any]], key: str, turn: int) -> Any:
    column = columns.get(key, [])
    return column[turn] if 0 <= turn < len(column) else None


def _check_tokens(turn: int, tokens: object, columns: dict[str, list[Any]], out: Violations) -> None:
    """Ids, log-probabilities and mask of one turn's new tokens; they line up, and they add up."""
    where = f"turn {turn}: tokens"
    found = fields_of(tokens, where, TOKEN_FIELDS, (), out)
    if found is None or any(key not in found for key in TOKEN_FIELDS):
        return
    lists = [found[key] for key in TOKEN_FIELDS]
    for key, column in zip(TOKEN_FIELDS, lists, strict=True):
        if type(column) is not list:
            out.add(f"{where}.{key} is {show(column)}; expected a list with one entry per token")
    if any(type(column) is not list for column in lists):
        return
    ids, logprobs, mask = lists
    for key, column in zip(TOKEN_FIELDS[1:], lists[1:], strict=True):
        if len(column) != len(ids):
            out.add(f"{where}.{key} has {len(column)} entries, but ids has {len(ids)}; expected one per id")
    if not len(ids) == len(logprobs) == len(mask):
        return
    for i, (token, logprob, chosen) in enumerate(zip(ids, logprobs, mask, strict=True)):
        if not is_count(token, 0):
            out.add(f"{where}.ids[{i}] is {show(token)}; expected an integer not below 0")
        if not is_flag(chosen):
            out.add(f"{where}.policy_mask[{i}] is {show(chosen)}; expected {_FLAG}")
        elif chosen and not is_logprob(logprob):
            out.add(f"{where}.logprobs[{i}] is {show(logprob)}; expected {_LOGPROB}")
        elif not chosen and logprob is not None:
            out.add(f"{where}.logprobs[{i}] is {show(logprob)} where policy_mask is False; expected None")
    own = [logprob for logprob, chosen in zip(logprobs, mask, strict=True) if chosen is True]
    by_policy = _entry(columns, "policy_mask", turn)
    if by_policy is True and not own:
        out.add(f"{where}.policy_mask has no True, but policy_mask of the turn is True; expected a policy token")
    elif by_policy is False and own:
        out.add(f"{where}.policy_mask has {len(own)} True, but policy_mask of the turn is False; expected none")
    whole = _entry(columns, "behavior_logprobs", turn)
    if by_policy is True and own and is_logprob(whole) and all(map(is_logprob, own)):
        total = _total(own)
        if not math.isclose(total, whole, rel_tol=TOKEN_SUM_TOLERANCE, abs_tol=TOKEN_SUM_TOLERANCE):
            out.add(f"{where}.logprobs add up to {total!r}, but behavior_logprobs of the turn is {show(whole)}")


def _total(logprobs: list[float]) -> float:
    try:
        return math.fsum(logprobs)
    except OverflowError:  # the sum is below what a float holds: exp of it is 0
        return -math.inf
