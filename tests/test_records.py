"""The rollout record: built, judged, written and read back.

A record is true or false about one episode. The tests build a small true one, break one fact at a time, and look
for the one message that names the turn, the field and the value.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import stat
import struct
import sys
import tempfile
from collections import OrderedDict
from enum import StrEnum
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor import _record_checks, records
from keydoor.records import (
    CUT_REASON,
    MAX_VIOLATIONS,
    SCHEMA_VERSION,
    Transition,
    prefix_mismatch,
    read_rollout_records,
    rollout_contract_from_transitions,
    rollout_schema,
    staleness,
    validate_rollout_record,
    write_rollout_records,
)
from keydoor.rules import STOP_REASONS

SCHEMA = jsonschema.Draft202012Validator(rollout_schema())
TURN_FIELDS = tuple(_record_checks.TURN_FIELDS)
REQUIRED = _record_checks.REQUIRED_FIELDS


def play(turns=4, stop_reason="success", **last):
    """A true episode: observation t+1 is what turn t led to, and the end is on the last turn."""
    played = []
    for t in range(turns):
        end = t == turns - 1
        played.append(
            Transition(
                observation=f"seen {t}",
                action=f"action {t}",
                next_observation=f"seen {t + 1}",
                behavior_logprob=-0.25 * (t + 1),
                logprob=-0.5 * (t + 1),
                base_reward=float(end and stop_reason == "success"),
                shaped_reward=0.1 * t,
                terminated=end and stop_reason != CUT_REASON,
                truncated=end and stop_reason == CUT_REASON,
                stop_reason=stop_reason if end else None,
            )
        )
    played[-1] = dataclasses.replace(played[-1], **last)
    return played


def build(transitions=None, **arguments):
    named = {"task_id": "demo", "environment_version": "1.0", "policy_version": "v1", **arguments}
    return rollout_contract_from_transitions(play() if transitions is None else transitions, **named)


def only(record):
    """The one violation of a record with one broken fact."""
    violations = validate_rollout_record(record)
    assert len(violations) == 1, violations
    return violations[0]


# --- The builder -----------------------------------------------------------------------------------------------------


def test_the_record_holds_what_was_played():
    transitions = play()
    record = build(transitions)
    assert validate_rollout_record(record) == []
    assert record["actions"] == ["action 0", "action 1", "action 2", "action 3"]
    assert record["behavior_logprobs"] == [-0.25, -0.5, -0.75, -1.0]
    assert record["logprobs"] == [-0.5, -1.0, -1.5, -2.0]
    assert record["policy_mask"] == [True] * 4
    assert record["policy_versions"] == {"0": "v1", "1": "v1", "2": "v1", "3": "v1"}
    assert record["stop_reason"] == "success"
    assert record["sampling"] == {"greedy": False, "temperature": 1.0, "top_p": 1.0, "top_k": None}
    assert set(record) == set(REQUIRED)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_transition_needs_only_the_nine_fields_every_collector_knows():
    """Objects of another class with these nine attributes serve as well: the builder sees nothing else."""
    nine = {
        "observation": "room",
        "action": "finish",
        "next_observation": "failure",
        "behavior_logprob": -1.5,
        "base_reward": 0.0,
        "shaped_reward": 0.0,
        "terminated": True,
        "truncated": False,
        "stop_reason": "wrong_finish",
    }
    record = build([Transition(**nine)])
    assert validate_rollout_record(record) == []
    assert record["logprobs"] == [None], "log pi was not kept: absent, not 0, which would be certainty"
    assert build([SimpleNamespace(**nine)]) == record
    with pytest.raises(dataclasses.FrozenInstanceError):
        Transition(**nine).action = "inspect"  # type: ignore[misc]
    for name in nine:
        partial = {key: value for key, value in nine.items() if key != name}
        with pytest.raises(ValueError, match=rf"transitions\[0\].*lacks {name}"):
            build([SimpleNamespace(**partial)])


@pytest.mark.parametrize("stop_reason", STOP_REASONS)
def test_every_stop_reason_of_the_world_makes_a_valid_record(stop_reason):
    record = build(play(stop_reason=stop_reason))
    assert validate_rollout_record(record) == []
    SCHEMA.validate(record)


@pytest.mark.parametrize(
    ("limits", "actions", "stop_reason"),
    [
        ({}, ("inspect", "pickup_red", "open_red", "finish"), "success"),
        ({}, ("inspect", "finish"), "wrong_finish"),
        ({}, ("pickup_red", "open_red"), "failed_open"),
        ({"task_horizon": 2}, ("inspect", "inspect"), "task_horizon"),
        ({"task_horizon": 6, "collector_limit": 2}, ("inspect", "pickup_red"), "collector_limit"),
        ({"task_horizon": 2, "collector_limit": 2}, ("inspect", "inspect"), "task_horizon"),
    ],
)
def test_the_world_itself_writes_valid_records(limits, actions, stop_reason):
    from keydoor.env import KeyDoorAgentEnv

    env = KeyDoorAgentEnv(seed=0, **limits)
    observation, _ = env.reset(target="red")
    played = []
    for action in actions:
        following, base_reward, terminated, truncated, info = env.step(action, gamma=0.99)
        played.append(
            Transition(
                observation=observation,
                action=action,
                next_observation=following,
                behavior_logprob=-math.log(6),
                base_reward=base_reward,
                shaped_reward=info["shaped_reward"],
                terminated=terminated,
                truncated=truncated,
                stop_reason=info["stop_reason"],
            )
        )
        observation = following
    record = build(played)
    assert validate_rollout_record(record) == []
    assert record["stop_reason"] == stop_reason


def test_two_records_share_no_list():
    """A shallow copy that is then edited must not reach into another record, nor into the caller's lists."""
    transitions, versions = play(2), ["v1", "v2"]
    tokens = [{"ids": [1], "logprobs": [-0.25 * t], "policy_mask": [True]} for t in (1, 2)]
    arguments = {"policy_version": versions, "tokens": tokens}
    first, second = build(transitions, **arguments), build(transitions, **arguments)
    pristine = copy.deepcopy(second)
    for value in first.values():
        if isinstance(value, list | dict):
            value.clear()
    assert second == pristine
    assert versions == ["v1", "v2"]
    assert tokens[0]["ids"] == [1]
    first["sampling"]["greedy"] = True
    assert build(transitions)["sampling"]["greedy"] is False
    empty = build([])
    empty["sampling"]["greedy"] = True
    assert build([])["sampling"]["greedy"] is False


def test_numbers_of_other_libraries_become_plain_ones():
    np = pytest.importorskip("numpy")

    class Name(StrEnum):
        LOOK = "inspect"

    turn = dataclasses.replace(
        play(1)[0],
        action=Name.LOOK,
        observation=np.str_("room"),
        behavior_logprob=np.float32(-0.1),
        logprob=Fraction(-1, 4),
        base_reward=1,
        terminated=np.True_,
        top_k=np.int64(40),
        temperature=1,
    )
    record = build([turn])
    assert validate_rollout_record(record) == []
    # A float32 is a float64 exactly; -0.1 itself would be another number.
    assert record["behavior_logprobs"] == [-0.10000000149011612] != [-0.1]
    kinds = [type(record[key][0]) for key in ("observations", "actions", "logprobs", "base_rewards", "terminated")]
    assert kinds == [str, str, float, float, bool]
    assert (record["actions"][0], record["sampling"]["top_k"]) == ("inspect", 40)


def test_a_controllers_turn_has_no_behaviour_probability():
    """What the policy did not choose has no log-probability; 0 there would say it was certain."""
    forced = dataclasses.replace(play(3)[1], sampled=False, behavior_logprob=None, logprob=None)
    transitions = play(3)
    transitions[1] = forced
    record = build(transitions)
    assert record["policy_mask"] == [True, False, True]
    assert validate_rollout_record(record) == []
    record["behavior_logprobs"][1] = 0.0
    assert only(record).startswith("turn 1: behavior_logprobs is 0.0 where policy_mask is False")


def test_what_no_record_can_hold_is_refused():
    with pytest.raises(ValueError, match=r"policy_version is \['v1'\]; expected one version, or 4"):
        build(policy_version=["v1"])
    with pytest.raises(ValueError, match="policy_version is 3"):
        build(policy_version=3)
    with pytest.raises(ValueError, match="transitions is 'abc'"):
        build("abc")
    with pytest.raises(ValueError, match=r"tokens\[0\] is"):
        build(tokens=[{"ids": [1]}] * 4)
    stopped = play()
    stopped[1] = dataclasses.replace(stopped[1], stop_reason="success")
    with pytest.raises(ValueError, match=r"transitions\[1\].stop_reason is 'success'"):
        build(stopped)
    cooler = play()
    cooler[2] = dataclasses.replace(cooler[2], temperature=0.7)
    with pytest.raises(ValueError, match=r"sampling of transitions\[2\]"):
        build(cooler)


# --- Policy versions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [{}, None, "", " "])
def test_i1_no_versions_at_all(nothing):
    """I1 (verl-project/verl#7568): the lab's broken record; the message names every turn."""
    broken = dict(build())
    broken["policy_versions"] = nothing
    assert only(broken).startswith("missing policy versions for turns 0, 1, 2, 3")
    del broken["policy_versions"]
    assert only(broken).startswith("missing policy versions for turns 0, 1, 2, 3")


@pytest.mark.parametrize("keys", [str, int])
@pytest.mark.parametrize("absent", [{}, {2: None}, {2: ""}, {2: "  "}])
def test_i1_one_version_is_missing(keys, absent):
    """I1 (verl-project/verl#7569): 4 turns, versions for 0, 1, 3; None and the empty string say no more than no key."""
    record = build()
    record["policy_versions"] = {keys(t): v for t, v in ({0: "v1", 1: "v1", 3: "v1"} | absent).items()}
    assert only(record) == "missing policy versions for turn 2"


def test_i1_versions_of_turns_that_do_not_exist():
    """I1 (rllm-org/rllm#622): an extra key 7 belongs to another episode."""
    for key in (7, "7", 4, "4", 10**30):
        record = build()
        record["policy_versions"][key] = "v1"
        message = only(record)
        assert str(key) in message
        assert "there are 4 turns" in message
    for key in ("02", "+2", "2.0", " 2", "²", "two", "", -1, True, 2.0, None):  # True == 1 and 2.0 == 2 in Python
        record = build()
        record["policy_versions"][key] = "v1"
        assert "expected a turn" in only(record)


def test_i1_both_forms_of_one_turn():
    """Integer keys are accepted, string keys are written; JSON would make one key of both, twice in one object."""
    record = build()
    record["policy_versions"][2] = "v2"
    assert only(record) == "policy_versions has turn 2 twice, as text and as a number"
    record["policy_versions"] = dict.fromkeys(range(4), "v1")
    assert validate_rollout_record(record) == []
    record["policy_versions"][2] = 7
    assert only(record) == "turn 2: policy_versions is 7; expected a non-empty string"


def test_i1_several_versions_are_legal_and_stay_visible():
    """I1 (THUDM/slime#2278): weights that change in mid-episode; keeping only the last would hide it."""
    record = build(policy_version=["v7", "v7", "v8", "v8"])
    assert validate_rollout_record(record) == []
    assert record["policy_versions"] == {"0": "v7", "1": "v7", "2": "v8", "3": "v8"}


@pytest.mark.parametrize("version", ["", None])
def test_i1_a_builder_without_a_version_is_found_out(version):
    assert only(build(policy_version=version)).startswith("missing policy versions for turns 0, 1, 2, 3")


def test_i1_many_missing_turns_are_ranges():
    record = build(play(1000))
    kept = {str(t): "v1" for t in range(1000) if t in (500, 700)}
    record["policy_versions"] = kept
    assert only(record) == "missing policy versions for turns 0-499, 501-699, 701-999"
    record["policy_versions"] = {str(t): "v1" for t in range(0, 1000, 2)}
    message = only(record)
    assert message.endswith("turns 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 490 more")


def test_i1_staleness():
    """I1 (vllm-project/vllm#54443): trainer at 12, 57 tokens from version 7 and 71 from version 8.

    Ages 5 and 4: worst 5, mean (5·57 + 4·71)/128 = 569/128. Foils: the last version alone, 4; the mean of spans, 4.5.
    """
    spans = [(7, 57), (8, 71)]
    aged = staleness(spans, trainer_version=12)
    assert aged == (5, 4.4453125) == (5, Fraction(569, 128))
    assert staleness(spans[::-1], trainer_version=12) == aged, "the worst is not the first"
    last_only, over_spans = 12 - spans[-1][0], sum(12 - version for version, _ in spans) / len(spans)
    assert (last_only, over_spans) == (4, 4.5)
    assert last_only not in aged
    assert over_spans not in aged
    for wrong in ([], [(13, 1)], [(7, 0)], [(7,)], [(7, 1.5)], [(True, 1)], "ab"):
        with pytest.raises(ValueError, match="expected"):
            staleness(wrong, trainer_version=12)


# --- Numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, None, "nan", 0.3, True, [], 10**400, -(10**400)])
@pytest.mark.parametrize("turn", [0, 2, 3])
def test_i3_behaviour_log_probabilities(wrong, turn):
    """I3 (OpenPipe/ART#903, NVIDIA-NeMo/RL#2962): each is a violation; -inf too, since the action was sampled.

    Foil: a test by ``value > 0`` alone finds only the positive ones, because every comparison with NaN is false.
    """
    record = build()
    record["behavior_logprobs"][turn] = wrong
    message = only(record)
    assert message.startswith(f"turn {turn}: behavior_logprobs is ")
    assert "finite" in message
    if isinstance(wrong, float) and not wrong > 0:
        assert not wrong > 0, "the foil lets NaN and -inf pass"
    transitions = play()
    transitions[turn] = dataclasses.replace(transitions[turn], behavior_logprob=wrong)
    assert only(build(transitions)) == message, "built from the same fault, the record tells the same"


@pytest.mark.parametrize("key", ["logprobs", "base_rewards", "shaped_rewards"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, "1", True, [], 10**400])
def test_i3_other_numbers(key, wrong):
    record = build()
    record[key][1] = wrong
    message = only(record)
    assert message.startswith(f"turn 1: {key} is ")
    if isinstance(wrong, float):
        assert repr(wrong) in message


def test_i3_a_float_error_above_zero_is_no_probability_above_one():
    record = build()
    record["behavior_logprobs"][0] = 1e-10
    assert validate_rollout_record(record) == []
    record["behavior_logprobs"][0] = 1e-8
    assert "expected a finite number not above 0" in only(record)


def test_i3_the_trap_in_the_test_itself():
    """A list with a NaN equals itself in Python (identity first), so ``rec == rec`` proves no round trip."""
    record = {"x": [math.nan]}
    assert record == record
    assert json.loads(json.dumps(record)) != record
    assert math.isnan(json.loads(json.dumps(record))["x"][0])


def test_a_greedy_turn_was_certain_to_be_taken():
    """Under greedy play the behaviour probability is 1; log pi is another number and is kept beside it."""
    greedy = [dataclasses.replace(turn, greedy=True, behavior_logprob=0.0) for turn in play()]
    record = build(greedy)
    assert validate_rollout_record(record) == []
    assert record["logprobs"] == [-0.5, -1.0, -1.5, -2.0]
    record["behavior_logprobs"][2] = record["logprobs"][2]
    assert only(record).startswith("turn 2: behavior_logprobs is -1.5 although sampling.greedy is True")


def test_c4_sampling_settings_stand_beside_the_log_probabilities():
    """C4 (huggingface/trl#6789): top-p .8 of p = (.5, .3, .15, .05) keeps .5 and .3, and draws the first with 5/8.

    Five such tokens: the two scores differ by 5 ln .8 although nothing was learned. Foil: their quotient .8^5 = .32768
    taken as the ratio. On one support it is 1. The record says which support each number belongs to.
    """
    kept = 0.5 + 0.3
    behavior, own = 5 * math.log(0.5 / kept), 5 * math.log(0.5)
    turn = play(1, behavior_logprob=behavior, logprob=own, top_p=0.8)
    record = build(turn)
    assert validate_rollout_record(record) == []
    assert record["sampling"]["top_p"] == 0.8
    foil = math.exp(record["logprobs"][0] - record["behavior_logprobs"][0])
    assert foil == pytest.approx(0.32768, rel=1e-12)
    on_one_support = record["logprobs"][0] - 5 * math.log(record["sampling"]["top_p"])
    assert math.exp(on_one_support - record["behavior_logprobs"][0]) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        *[("greedy", x) for x in (None, 0, "no")],
        *[("temperature", x) for x in (-1.0, math.nan, math.inf, None, True, "1", 0.0)],
        *[("top_p", x) for x in (0.0, 1.5, -0.5, math.nan, None, True)],
        *[("top_k", x) for x in (0, -1, 2.0, True, "5", 2**63)],
    ],
)
def test_c4_settings_without_meaning(setting, wrong):
    record = build()
    record["sampling"][setting] = wrong
    assert f"sampling.{setting} is {wrong!r}" in only(record)
    del record["sampling"][setting]
    assert only(record) == f"sampling lacks the field {setting}"


# --- Chain, flags, stop reason, lengths ------------------------------------------------------------------------------


def test_i4_an_observation_from_another_episode():
    """I4 (BY571/DQN-Atari-Agents#8): what turn 1 led to is not what turn 2 saw."""
    record = build()
    record["next_observations"][1] = "elsewhere"
    message = only(record)
    assert (
        message == "turn 1: next_observations is 'elsewhere', but observations of turn 2 is 'seen 2'; expected the same"
    )


def _edit(**changes):
    def apply(record):
        for key, value in changes.items():
            if isinstance(value, dict):
                for turn, entry in value.items():
                    record[key][turn] = entry
            else:
                record[key] = value

    return apply


@pytest.mark.parametrize(
    ("stop_reason", "edit", "expected"),
    [
        ("success", _edit(terminated={1: True}), "turn 1: terminated is True before the last turn, 3"),
        ("success", _edit(truncated={0: True}), "turn 0: truncated is True before the last turn, 3"),
        ("success", _edit(terminated={2: True}), "turn 2: terminated is True before the last turn, 3"),
        ("success", _edit(terminated={3: False}), "turn 3: terminated and truncated are both False"),
        ("success", _edit(truncated={3: True}), "turn 3: terminated and truncated are both True"),
        ("collector_limit", _edit(terminated={3: True}), "turn 3: terminated and truncated are both True"),
        ("success", _edit(terminated={3: False}, truncated={3: True}), "turn 3: truncated is True, but stop_reason"),
        ("collector_limit", _edit(terminated={3: True}, truncated={3: False}), "turn 3: terminated is True, but"),
        ("task_horizon", _edit(terminated={3: False}, truncated={3: True}), "stop_reason is 'task_horizon'; expected"),
        ("success", _edit(base_rewards={3: 0.0}), "turn 3: base_rewards is 0.0 although stop_reason is 'success'"),
        ("wrong_finish", _edit(base_rewards={3: 1.0}), "turn 3: base_rewards is 1.0 although stop_reason is 'wrong"),
        ("failed_open", _edit(base_rewards={3: 1.0}), "turn 3: base_rewards is 1.0 although stop_reason is 'failed"),
        *[
            ("success", _edit(stop_reason=wrong), f"stop_reason is {wrong!r}; expected one of success")
            for wrong in ("completed", "Success", "", None, 3, True)
        ],
        *[
            ("success", _edit(**{key: {1: wrong}}), f"turn 1: {key} is {wrong!r}; expected True or False")
            for key in ("terminated", "truncated", "policy_mask", "invalid")
            for wrong in (0, 1, None, "false")
        ],
        *[
            ("success", _edit(**{key: {last: wrong}}), f"turn {last}: {key} is {wrong!r}; expected a non-empty string")
            for key, last in (("observations", 0), ("actions", 2), ("next_observations", 3))
            for wrong in ("", None, 4, True)
        ],
        *[
            ("success", _edit(**{key: wrong}), f"{key} is {wrong!r}; expected a non-empty string")
            for key in ("task_id", "environment_version")
            for wrong in ("", " ", None, 1.0)
        ],
    ],
)
def test_i4_one_broken_fact_one_message(stop_reason, edit, expected):
    """I4 (Motphys/UniLab#236, PrimeIntellect-ai/verifiers#2608, OpenRLHF/OpenRLHF#1327): a violation, no exception."""
    record = build(play(stop_reason=stop_reason))
    edit(record)
    assert expected in only(record)


def test_i4_an_end_in_the_middle_built_from_two_episodes():
    """I4 (anthonytorlucci/rlevo#289): two episodes in one list; the flag in the middle is seen."""
    chain, flag = validate_rollout_record(build(play(2) + play(2)))
    assert chain.startswith("turn 1: next_observations is 'seen 2', but observations of turn 2 is 'seen 0'")
    assert flag.startswith("turn 1: terminated is True before the last turn, 3")


def test_i4_no_turns():
    record = build([])
    violations = validate_rollout_record(record)
    assert violations[0] == "the record has no turns: its lists are empty"
    assert not SCHEMA.is_valid(record)


@pytest.mark.parametrize("key", TURN_FIELDS)
def test_i4_lists_of_unequal_length(key):
    for edit in (lambda column: column[:-1], lambda column: column + column[-1:]):
        record = build()
        record[key] = edit(record[key])
        lengths = [line for line in validate_rollout_record(record) if line.startswith("unequal lengths")]
        assert lengths == [f"unequal lengths: {key} has {len(record[key])}; expected 4, as most lists have"]


@pytest.mark.parametrize("key", REQUIRED)
def test_each_field_is_required_and_no_other_is_known(key):
    """A misspelt field would otherwise be a fact that nobody checks."""
    record = build()
    record[f"my_{key}"] = record.pop(key)
    violations = validate_rollout_record(record)
    assert f"record has the unknown field 'my_{key}'" in violations
    assert any(key.replace("_", " ") in line or f"lacks the field {key}" in line for line in violations)
    assert not SCHEMA.is_valid(record)


def test_an_unknown_version_of_the_form_says_only_that():
    record = build()
    record["schema_version"] = "2.0"
    record["actions"] = None
    assert only(record) == "unknown schema_version '2.0'; this package knows '1.0'"
    record["schema_version"] = 1.0
    assert "schema_version is 1.0; expected '1.0'" in validate_rollout_record(record)


# --- Tokens ----------------------------------------------------------------------------------------------------------

HAVING = {"ids": [1, 2, 3], "logprobs": [-0.9, -0.4, -0.2], "policy_mask": [True] * 3}


def test_b3_same_text_other_tokens():
    """B3 (rllm-org/rllm#272, huggingface/trl#5144): 1 "H", 2 "AV", 3 "ING", 4 "HAV".

    [1, 2, 3] was sampled with log P = -1.5; [4, 3] is the same text encoded anew, log P = -0.5. Under equal weights the
    ratio of what was sampled is 1. Foil: e^(-0.5 + 1.5) = e, an old score of one tokenisation and a new of the other.
    """
    text = {1: "H", 2: "AV", 3: "ING", 4: "HAV"}
    again, again_logprobs = [4, 3], [-0.3, -0.2]
    assert "".join(text[i] for i in HAVING["ids"]) == "".join(text[i] for i in again) == "HAVING"
    sampled = math.fsum(HAVING["logprobs"])
    assert sampled == -1.5
    assert math.exp(sum(again_logprobs) - sampled) == pytest.approx(2.718282, abs=1e-6)

    record = build(play(1, behavior_logprob=sampled), tokens=[HAVING])
    assert validate_rollout_record(record) == []
    record["tokens"][0]["ids"] = again
    violations = validate_rollout_record(record)
    assert violations[0] == "turn 0: tokens.logprobs has 3 entries, but ids has 2; expected one per id"
    record["tokens"] = [{"ids": again, "logprobs": again_logprobs, "policy_mask": [True] * 2}]
    assert only(record) == "turn 0: tokens.logprobs add up to -0.5, but behavior_logprobs of the turn is -1.5"


def test_b3_turns_that_are_not_prefixes_of_the_next():
    """B3 (sgl-project/sglang#26555): prompt [1, 2], sampled [3, 4, 5]; a next prompt [1, 2, 5, 6] breaks at index 2."""
    assert prefix_mismatch([1, 2, 3, 4, 5], [1, 2, 5, 6]) == 2
    assert prefix_mismatch([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]) is None
    assert prefix_mismatch([1, 2, 3, 4, 5], [1, 2, 3]) == 3
    assert prefix_mismatch([], [1]) is None
    with pytest.raises(ValueError, match="prompt_ids"):
        prefix_mismatch([1], 1)


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_b3_prefix_mismatch_is_the_definition(previous, prompt):
    """None exactly for a prefix; else the longest common prefix ends at the index, and one element more breaks it."""
    index = prefix_mismatch(previous, prompt)
    assert (index is None) == (prompt[: len(previous)] == previous)
    if index is not None:
        assert previous[:index] == prompt[:index]
        assert previous[: index + 1] != prompt[: index + 1]


@pytest.mark.parametrize(
    ("key", "wrong", "expected"),
    [
        ("ids", [1, -2, 3], "turn 0: tokens.ids[1] is -2"),
        ("ids", [1, True, 3], "turn 0: tokens.ids[1] is True"),
        ("ids", [1, 2.0, 3], "turn 0: tokens.ids[1] is 2.0"),
        ("ids", "123", "turn 0: tokens.ids is '123'"),
        ("logprobs", [-0.9, math.nan, -0.2], "turn 0: tokens.logprobs[1] is nan"),
        ("logprobs", [-0.9, None, -0.2], "turn 0: tokens.logprobs[1] is None"),
        ("logprobs", [-0.9, -0.4, 0.2], "turn 0: tokens.logprobs[2] is 0.2"),
        ("logprobs", [-1e308, -1e308, -1e308], "turn 0: tokens.logprobs add up to -inf"),
        ("policy_mask", [True, False, True], "turn 0: tokens.logprobs[1] is -0.4 where policy_mask is False"),
        ("policy_mask", [True, 1, True], "turn 0: tokens.policy_mask[1] is 1"),
    ],
)
def test_tokens_of_a_turn(key, wrong, expected):
    """A masked token carries no number: 0.0 there reads as certainty, and 1.0 as a sentinel that gets added."""
    record = build(play(1, behavior_logprob=-1.5), tokens=[{**HAVING, key: wrong} if key != "ids" else HAVING])
    record["tokens"][0][key] = wrong
    assert validate_rollout_record(record)[0].startswith(expected)


def test_tokens_and_the_turns_own_mask_agree():
    given_ = {"ids": [5, 6], "logprobs": [None, None], "policy_mask": [False, False]}
    record = build(play(1, behavior_logprob=-1.5), tokens=[given_])
    assert "has no True" in only(record)
    forced = build(play(1, behavior_logprob=None, sampled=False), tokens=[given_])
    assert validate_rollout_record(forced) == []
    forced["tokens"] = [HAVING]
    assert "has 3 True" in only(forced)
    mixed = {"ids": [*HAVING["ids"], 9], "logprobs": [*HAVING["logprobs"], None], "policy_mask": [True] * 3 + [False]}
    assert validate_rollout_record(build(play(1, behavior_logprob=-1.5), tokens=[mixed])) == []
    short = {"ids": [1], "logprobs": [-0.25], "policy_mask": [True]}
    assert only(build(play(2), tokens=[short])).startswith("unequal lengths: tokens has 1; expected 2")


def test_i4_a_record_grows_with_the_episode_and_not_with_its_square():
    """I4 (NVIDIA-NeMo/Gym#1979): 128 turns of 500 tokens.

    A log that stores the whole prefix at each turn holds 500·(1 + 2 + … + 128) = 4 128 000 tokens, 64.5 times the
    64 000 there are. The record stores each turn's new tokens, and gives back every prefix by joining them.
    """
    turns, width = 128, 500
    new = [{"ids": [t] * width, "logprobs": [-0.5] * width, "policy_mask": [True] * width} for t in range(turns)]
    transitions = [dataclasses.replace(turn, behavior_logprob=-0.5 * width) for turn in play(turns)]
    record = build(transitions, tokens=new)
    assert validate_rollout_record(record) == []
    stored = sum(len(entry["ids"]) for entry in record["tokens"])
    with_prefixes = sum(width * (t + 1) for t in range(turns))
    assert (stored, with_prefixes, with_prefixes / stored) == (64_000, 4_128_000, 64.5)


# --- Whatever it is given --------------------------------------------------------------------------------------------


def _raise(*_):
    raise RuntimeError("touched")


def _evil(twin="actions"):
    """An object that raises whatever it is asked, its class included; its hash is that of a field's name.

    The class is made inside the function: a test collector would ask it for its attributes.
    """
    asked = ["eq", "lt", "le", "gt", "len", "iter", "bool", "repr", "str", "float", "int", "index", "getattribute"]
    meta = type("EvilMeta", (type,), {"__getattribute__": _raise, "__repr__": _raise})
    methods = {f"__{name}__": _raise for name in asked} | {"__hash__": lambda self: hash(twin)}
    return meta("Evil", (), methods)()


class EvilList(list):
    __iter__ = __len__ = __getitem__ = __eq__ = __repr__ = _raise


class EvilStr(str):
    __slots__ = ()
    __eq__ = __len__ = __repr__ = __str__ = strip = encode = _raise
    __hash__ = str.__hash__


class EvilFloat(float):
    __le__ = __gt__ = __ge__ = __lt__ = __eq__ = __repr__ = _raise
    __hash__ = float.__hash__


def _strange_values():
    cyclic_list: list[object] = []
    cyclic_list.append(cyclic_list)
    cyclic_dict: dict[str, object] = {}
    cyclic_dict["sampling"] = cyclic_dict["tokens"] = cyclic_dict
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    odd_name = type("not\na name", (), {})()
    return [
        *(None, True, 0, -1, 10**5000, 0.5, math.nan, math.inf, 1j, Fraction(1, 2), "", "text", "x" * 10**6, "\ud800"),
        *(
            b"bytes",
            (),
            (1,),
            set(),
            {1, 2},
            frozenset(),
            range(3),
            object(),
            int,
            type(_evil()),
            _evil(),
            EvilList([1]),
        ),
        *(EvilStr("actions"), EvilFloat(-0.5), OrderedDict(a=1), iter([1]), (x for x in ()), len, odd_name),
        *([], [None], [[]], [_evil()], [_evil()] * 50, {}, {_evil(): 1}, {"0": _evil()}, {None: None}, {(): []}),
        *({EvilStr("actions"): 1}, {10**5000: "v1"}, {"9" * 5000: "v1"}, cyclic_list, cyclic_dict, deep),
    ]


@cache
def _strange():
    """Made once: while the deepest list grows, each full collection of garbage looks through all that is loaded."""
    np = pytest.importorskip("numpy")
    arrays = [np.zeros(4), np.zeros((2, 2)), np.array(["a"]), np.float64(-0.5), np.array(-0.5), np.bool_(True)]
    return _strange_values() + arrays


def _read_calmly(violations):
    """Readable: text that any terminal and file can take, few lines, each of one line and of bounded length."""
    assert type(violations) is list
    assert len(violations) <= MAX_VIOLATIONS + 1
    for line in violations:
        assert type(line) is str
        assert "\n" not in line
        assert len(line) < 400
        line.encode("utf-8")


def test_validation_never_raises_on_a_strange_record():
    for value in _strange():
        violations = validate_rollout_record(value)
        assert violations
        _read_calmly(violations)


@pytest.mark.parametrize("key", [*REQUIRED, "tokens", "unknown"])
def test_validation_never_raises_on_a_strange_field(key):
    for value in _strange():
        record = build()
        record[key] = value
        violations = validate_rollout_record(record)
        _read_calmly(violations)
        # The few strange values that are right somewhere: any text may be an identifier.
        assert violations or (key in ("task_id", "environment_version") and type(value) is str)


@pytest.mark.parametrize("key", TURN_FIELDS)
@pytest.mark.parametrize("turn", [1, 3])
def test_validation_never_raises_on_a_strange_entry(key, turn):
    for value in _strange():
        record = build()
        record[key][turn] = value
        _read_calmly(validate_rollout_record(record))
        if type(value) not in (bool, int, float, str, type(None)):
            assert f"turn {turn}: {key} is " in only(record)


def test_validation_never_raises_on_strange_parts():
    for value in _strange():
        for part in ("ids", "logprobs", "policy_mask"):
            record = build(play(1, behavior_logprob=-1.5), tokens=[HAVING])
            record["tokens"][0][part] = value
            _read_calmly(validate_rollout_record(record))
            record["tokens"][0][part] = [HAVING[part][0], value, HAVING[part][2]]
            _read_calmly(validate_rollout_record(record))
            if type(value) not in (bool, int, float):
                assert validate_rollout_record(record)
        for setting in ("greedy", "temperature", "top_p", "top_k"):
            record = build()
            record["sampling"][setting] = value
            _read_calmly(validate_rollout_record(record))
        record = build()
        record["policy_versions"]["1"] = value
        _read_calmly(validate_rollout_record(record))
    for twin in ("actions", "schema_version", "0", "greedy", "unrelated"):
        for where in ((), ("sampling",), ("policy_versions",)):
            record = build()
            inner = record[where[0]] if where else record
            fields = list(inner.items())
            inner.clear()
            inner[_evil(twin)] = 1  # first in: a look-up of its twin now meets it
            try:
                inner.update(fields)
            except RuntimeError:  # Python itself met the collision: the twin cannot be stored
                continue
            assert "object of type Evil" in only(record)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=3), children, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_nothing_that_the_check_passes_is_refused_by_the_schema(data):
    """One direction holds for every record, however it was edited; the other is the next test's."""
    record = data.draw(valid_records())
    key = data.draw(st.sampled_from([*REQUIRED, "tokens", "extra"]))
    value = data.draw(_json)
    if key in record and isinstance(record[key], list) and data.draw(st.booleans()):
        record[key][data.draw(st.integers(0, len(record[key]) - 1))] = value
    elif key == "sampling" and data.draw(st.booleans()):
        record[key][data.draw(st.sampled_from(sorted(record[key])))] = value
    else:
        record[key] = value
    violations = validate_rollout_record(record)
    _read_calmly(violations)
    assert violations or SCHEMA.is_valid(record)


# --- How much is said, and what it costs -----------------------------------------------------------------------------


def test_i4_messages_are_capped_with_a_count():
    record = build(play(5000))
    record["behavior_logprobs"] = [math.nan] * 5000
    violations = validate_rollout_record(record)
    assert len(violations) == MAX_VIOLATIONS + 1
    assert violations[-1] == f"… and {5000 - MAX_VIOLATIONS} more violations"
    record["behavior_logprobs"] = [math.nan] * (MAX_VIOLATIONS + 1) + [-1.0] * (4999 - MAX_VIOLATIONS)
    assert validate_rollout_record(record)[-1] == "… and 1 more violation"
    record["behavior_logprobs"] = [math.nan] * MAX_VIOLATIONS + [-1.0] * (5000 - MAX_VIOLATIONS)
    assert len(validate_rollout_record(record)) == MAX_VIOLATIONS


def _instructions(call, *arguments):
    """How many bytecode instructions a call executes: a measure of cost that no busy machine can change."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(*arguments)
    finally:
        sys.settrace(before)
    return count


def _quadratic_chain_check(record):
    """The foil: each turn is compared with all others."""
    saw, led_to = record["observations"], record["next_observations"]
    return [t for t in range(len(saw)) for u in range(len(saw)) if u == t + 1 and led_to[t] != saw[u]]


@pytest.mark.parametrize("broken", [False, True])
def test_i4_cost_is_linear_in_the_number_of_turns(broken):
    """I4: cost(n) = a + b·n, so cost(4n) - cost(2n) = 2·(cost(2n) - cost(n)); for a quadratic cost it is four times."""

    def record_of(turns):
        record = build(play(turns))
        if broken:
            record["behavior_logprobs"] = [math.nan] * turns
            record["next_observations"] = ["lost"] * turns
            record["terminated"] = [True] * turns
            record["policy_versions"] = {str(t): "v" for t in range(0, turns, 2)}
        return record

    def growth(call):
        one, two, four = (_instructions(call, record_of(turns)) for turns in (100, 200, 400))
        return (four - two) / (two - one)

    assert growth(validate_rollout_record) == pytest.approx(2.0, rel=0.02)
    assert growth(_quadratic_chain_check) > 3.5


def test_i4_a_hundred_thousand_turns():
    turns, record = 100_000, build(play(1))
    for key in TURN_FIELDS:
        record[key] *= turns
    record["observations"] = record["next_observations"]
    record["terminated"] = [False] * (turns - 1) + [True]
    record["policy_versions"] = {str(t): "v1" for t in range(turns)}
    assert validate_rollout_record(record) == []
    record["actions"][99_999] = ""
    assert only(record).startswith("turn 99999: actions is ''")


# --- The schema ------------------------------------------------------------------------------------------------------


@st.composite
def valid_records(draw):
    """Any true episode: texts of any script, forced turns, token data, several policy versions, either kind of end."""
    turns = draw(st.integers(1, 5))
    texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
    names = texts.filter(str.strip)
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    logprobs = st.floats(-1e6, 0.0)
    seen = draw(st.lists(texts, min_size=turns + 1, max_size=turns + 1))
    reason = draw(st.sampled_from(STOP_REASONS))
    greedy, with_tokens = draw(st.booleans()), draw(st.booleans())
    settings_ = {
        "greedy": greedy,
        "temperature": draw(st.floats(0.01, 10.0)) if not greedy else draw(st.floats(0.0, 10.0)),
        "top_p": draw(st.floats(0.0, 1.0, exclude_min=True)),
        "top_k": draw(st.none() | st.integers(1, 2**63 - 1)),
    }
    played, tokens = [], []
    for t in range(turns):
        end = t == turns - 1
        sampled = draw(st.booleans())
        own = draw(st.lists(st.just(0.0) if greedy else logprobs, min_size=1, max_size=3)) if sampled else []
        given_ = draw(st.integers(0, 2))
        ids = st.lists(st.integers(0, 2**63 - 1), min_size=len(own) + given_, max_size=len(own) + given_)
        mask = [True] * len(own) + [False] * given_
        tokens.append({"ids": draw(ids), "logprobs": own + [None] * given_, "policy_mask": mask})
        base = draw(numbers)
        if end and reason == "success":
            base = draw(st.floats(0.0, 1e9, exclude_min=True))
        elif end and reason in ("wrong_finish", "failed_open"):
            base = draw(st.floats(-1e9, 0.0))
        played.append(
            Transition(
                observation=seen[t],
                action=draw(texts),
                next_observation=seen[t + 1],
                behavior_logprob=math.fsum(own) if sampled else None,
                logprob=draw(st.none() | logprobs),
                base_reward=base,
                shaped_reward=draw(numbers),
                terminated=end and reason != CUT_REASON,
                truncated=end and reason == CUT_REASON,
                stop_reason=reason if end else None,
                sampled=sampled,
                invalid=draw(st.booleans()),
                **settings_,
            )
        )
    return rollout_contract_from_transitions(
        played,
        task_id=draw(names),
        environment_version=draw(names),
        policy_version=draw(names | st.lists(names, min_size=turns, max_size=turns)),
        tokens=tokens if with_tokens else None,
    )


@settings(max_examples=100, deadline=None)
@given(valid_records())
def test_a_true_episode_passes_the_check_and_the_schema(record):
    assert validate_rollout_record(record) == []
    SCHEMA.validate(record)


def test_schema_and_code_have_the_same_fields():
    schema = rollout_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    properties = schema["properties"]
    assert set(schema["required"]) == set(REQUIRED)
    assert set(properties) == {*REQUIRED, *_record_checks.OPTIONAL_FIELDS}
    assert properties["schema_version"]["const"] == SCHEMA_VERSION
    assert tuple(properties["stop_reason"]["enum"]) == STOP_REASONS
    assert CUT_REASON in STOP_REASONS
    settings_ = properties["sampling"]
    assert set(settings_["required"]) == set(settings_["properties"]) == set(_record_checks.SAMPLING_FIELDS)
    tokens = properties["tokens"]["items"]
    assert set(tokens["required"]) == set(tokens["properties"]) == set(_record_checks.TOKEN_FIELDS)
    assert schema["$defs"]["logprob"]["maximum"] == _record_checks.LOGPROB_TOLERANCE
    assert all("description" in entry for entry in properties.values())
    assert set(records.__all__) <= set(vars(records))


@pytest.mark.parametrize(
    ("edit", "whole"),
    [
        *[(_edit(**{key: wrong}), True) for key in REQUIRED for wrong in (None, [], 3, "")],
        *[
            (_edit(**{key: {1: wrong}}), True)
            for key in TURN_FIELDS
            for wrong in ([], {}, "", "1" * (key[-2:] == "ds"))
        ],
        *[(_edit(**{key: {1: None}}), True) for key in TURN_FIELDS if key != "logprobs"],
        (_edit(behavior_logprobs={0: 0.3}), True),
        (_edit(behavior_logprobs={0: True}), True),
        (_edit(logprobs={0: 0.3}), True),
        (_edit(terminated={1: True}), True),
        (_edit(truncated={3: True}), True),
        (_edit(terminated={3: False}), True),
        (_edit(stop_reason="collector_limit"), True),
        (_edit(stop_reason="completed"), True),
        (_edit(policy_versions={"02": "v1"}), True),
        (_edit(policy_versions={"1": ""}), True),
        (_edit(sampling={"greedy": 0}), True),
        (_edit(sampling={"temperature": 0.0}), True),
        (_edit(sampling={"top_p": 1.5}), True),
        (_edit(sampling={"top_k": 0}), True),
        (_edit(extra=1), True),
        # What a schema cannot say: relations between lists.
        (_edit(next_observations={1: "elsewhere"}), False),
        (_edit(policy_versions={"7": "v1"}), False),
        (_edit(base_rewards={3: 0.0}), False),
        (_edit(actions=["a"]), False),
    ],
)
def test_structural_breakages_fail_both(edit, whole):
    """``whole``: the schema sees it too. The relations between lists are the validator's alone."""
    record = build()
    edit(record)
    assert validate_rollout_record(record)
    assert SCHEMA.is_valid(record) is not whole


def test_token_breakages_fail_both():
    for key, wrong in (("ids", [-1]), ("ids", [1.5]), ("logprobs", [0.3]), ("policy_mask", [0]), ("ids", None)):
        record = build(play(1, behavior_logprob=-1.5), tokens=[HAVING])
        record["tokens"][0] = {**HAVING, key: wrong}
        assert validate_rollout_record(record)
        assert not SCHEMA.is_valid(record)


# --- Files -----------------------------------------------------------------------------------------------------------

STORED = (
    '{"schema_version":"1.0","task_id":"demo","environment_version":"1.0","policy_versions":{"0":"v1"},'
    '"observations":["комната"],"actions":["finish"],"next_observations":["success"],"policy_mask":[true],'
    '"behavior_logprobs":[-0.1],"logprobs":[null],"base_rewards":[1.0],"shaped_rewards":[5e-324],"invalid":[false],'
    '"terminated":[true],"truncated":[false],"stop_reason":"success",'
    '"sampling":{"greedy":false,"temperature":1.0,"top_p":1.0,"top_k":null}}\n'
)
"""A line as version 1.0 writes it. Files that people have must stay readable: change the version, not this text."""


def test_the_written_form_is_fixed(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(STORED.encode("utf-8"))
    (record,) = read_rollout_records(path)
    assert record["shaped_rewards"] == [5e-324]
    again = tmp_path / "again.jsonl"
    assert write_rollout_records(again, [record]) == 1
    assert again.read_bytes() == STORED.encode("utf-8")


@settings(max_examples=50, deadline=None)
@given(st.lists(valid_records(), max_size=3))
def test_i3_a_round_trip_changes_nothing(written):
    """I3: equal as Python objects, and the floats equal as 64 bits each, -0.0 and the smallest subnormal included."""

    def bits(record):
        columns = [record[key] for key in ("behavior_logprobs", "logprobs", "base_rewards", "shaped_rewards")]
        return [None if x is None else struct.pack("<d", x) for column in columns for x in column]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        assert write_rollout_records(path, iter(written)) == len(written)
        read = read_rollout_records(path)
        assert os.listdir(folder) == ["records.jsonl"]
        assert path.read_bytes().count(b"\n") == len(written), "one line each, whatever the texts hold"
    assert read == written
    assert [bits(record) for record in read] == [bits(record) for record in written]


def test_line_breaks_of_other_kinds_do_not_break_lines(tmp_path):
    text = "a\nb\r\nc\x0b\x0c\x1c\x85\u2028\u2029d"
    record = build(play(1, next_observation=text))
    write_rollout_records(tmp_path / "r", [record, record])
    assert read_rollout_records(tmp_path / "r") == [record, record]


def test_integer_keys_are_written_as_strings(tmp_path):
    record = build()
    record["policy_versions"] = dict.fromkeys(range(4), "v1")
    write_rollout_records(tmp_path / "r", [record])
    assert read_rollout_records(tmp_path / "r")[0]["policy_versions"] == build()["policy_versions"]


def _failing_source():
    yield build()
    raise RuntimeError("the collector died")


def _broken(value):
    record = build()
    record["behavior_logprobs"][2] = value
    return record


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (
            lambda: [build(), _broken(math.nan)],
            ValueError,
            r"records\[1\].*\n.*turn 2: behavior_logprobs is nan",
        ),
        (lambda: [_broken(-math.inf)], ValueError, r"records\[0\]"),
        (lambda: [None], ValueError, "record is None"),
        (_failing_source, RuntimeError, "the collector died"),
        (lambda: build(), ValueError, "records is a dict of 17; expected a sequence of records"),
        (lambda: 3, ValueError, "records is 3"),
    ],
)
def test_writing_is_all_or_nothing(tmp_path, source, error, message):
    """A failure in the middle leaves the old file as it was, and nothing beside it."""
    path = tmp_path / "records.jsonl"
    path.write_text(STORED, encoding="utf-8")
    with pytest.raises(error, match=message):
        write_rollout_records(path, source())
    assert path.read_text(encoding="utf-8") == STORED
    assert os.listdir(tmp_path) == ["records.jsonl"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, step):
    def fail(*_):
        raise OSError(28, "No space left on device")

    path = tmp_path / "records.jsonl"
    path.write_text(STORED, encoding="utf-8")
    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)
    with pytest.raises(OSError, match="No space left"):
        write_rollout_records(path, [build()])
    monkeypatch.undo()
    assert path.read_text(encoding="utf-8") == STORED
    assert os.listdir(tmp_path) == ["records.jsonl"]


def test_a_replaced_file_keeps_its_rights_and_a_link_stays_a_link(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text("", encoding="utf-8")
    path.chmod(0o640)
    link = tmp_path / "latest.jsonl"
    link.symlink_to(path)
    write_rollout_records(link, [build()])
    assert link.is_symlink()
    assert len(read_rollout_records(path)) == 1
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_rollout_records(tmp_path / "none" / "r", [build()])
    with pytest.raises(OSError, match="r"):
        write_rollout_records(tmp_path, [build()])
    assert os.listdir(tmp_path) == []


def test_no_records_are_an_empty_file(tmp_path):
    assert write_rollout_records(tmp_path / "r", []) == 0
    assert read_rollout_records(str(tmp_path / "r")) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (STORED.replace("-0.1", "NaN"), "NaN is not JSON"),
        (STORED.replace("-0.1", "Infinity"), "Infinity is not JSON"),
        (STORED.replace("-0.1", "-Infinity"), "-Infinity is not JSON"),
        (STORED.replace("-0.1", "-1e999"), "turn 0: behavior_logprobs is -inf"),
        (STORED.replace("-0.1", "null"), "turn 0: behavior_logprobs is None"),
        (STORED.replace('{"0":"v1"}', '{"0":"v1","0":"v2"}'), "the key '0' occurs twice"),
        (STORED.replace('"actions"', '"actions":["x"],"actions"'), "the key 'actions' occurs twice"),
        (STORED.replace('{"0":"v1"}', "{}"), "missing policy versions for turn 0"),
        (STORED.replace('"schema_version":"1.0"', '"schema_version":"3.1"'), "unknown schema_version '3.1'"),
        (STORED.replace("комната", "\\ud800"), r"turn 0: observations is '\\ud800'"),
        ("\n", "not a JSON record: blank"),
        ("   \n", "not a JSON record: blank"),
        (STORED[:60], "not a JSON record: "),
        (STORED.rstrip() + STORED, "Extra data"),
        ("\ufeff" + STORED, "BOM"),
        ("[" * 200_000 + "\n", "not a JSON record: "),
        (STORED.replace("-0.1", "-" + "1" * 5000), "not a JSON record: "),
        ("null\n", "record is None"),
        ("[]\n", "record is a list of 0"),
    ],
)
def test_i3_reading_refuses_and_names_file_and_line(tmp_path, line, message):
    """I3 (benchflow-ai/benchflow#409): Python's own reader takes NaN, and keeps the last of two equal keys."""
    path = tmp_path / "log.jsonl"
    path.write_bytes((STORED + line).encode("utf-8"))
    with pytest.raises(ValueError, match=message) as error:
        read_rollout_records(path)
    assert f"{path}, line 2: not a" in str(error.value)


def test_reading_refuses_other_encodings(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(STORED.encode("cp1251"))
    with pytest.raises(ValueError, match=r"line 1: not a JSON record: 'utf-8' codec"):
        read_rollout_records(path)


# --- what is no file, no list of ids, no number ----------------------------------------------------------------------


@pytest.mark.parametrize("path", [None, 5, True, b"a.jsonl", "", [], "a\0b"], ids=repr)
def test_what_is_no_path_is_refused(path, tmp_path, monkeypatch):
    """A number would be an open file, an empty text the folder."""
    monkeypatch.chdir(tmp_path)
    for call in (lambda: write_rollout_records(path, [build()]), lambda: read_rollout_records(path)):
        with pytest.raises(ValueError, match=r"^path is .*; expected the name of a file"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    """Where root writes, the rename would put a regular file in the place of ``/dev/null``."""
    pipe, folder, circle, link = (tmp_path / name for name in ("pipe", "folder", "circle", "link"))
    os.mkfifo(pipe)
    folder.mkdir()
    circle.symlink_to(circle)
    link.symlink_to(pipe)
    before = sorted(tmp_path.iterdir())
    for path in (pipe, folder, circle, link):
        with pytest.raises(OSError, match="not a regular file"):
            write_rollout_records(path, [build()])
    assert sorted(tmp_path.iterdir()) == before
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert circle.is_symlink()


def test_the_first_error_is_told_when_the_temporary_file_cannot_be_removed(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    def stuck(*_, **__):
        raise PermissionError("stuck")

    monkeypatch.setattr(os, "fsync", fail)
    monkeypatch.setattr(Path, "unlink", stuck)
    with pytest.raises(OSError, match="disk full"):
        write_rollout_records(tmp_path / "a.jsonl", [build()])


@pytest.mark.parametrize("bad", [[[1, 2]], [1, -1], [1.0], [True], ["1"], [None]], ids=repr)
def test_ids_are_integers_and_no_batch(bad):
    """Trainers keep ids as (1, n): comparing the rows would compare nothing, or raise about an ambiguous truth."""
    with pytest.raises(ValueError, match=r"^previous_ids\[\d\] is .*; expected an integer not below 0"):
        prefix_mismatch(bad, [1, 2])
    with pytest.raises(ValueError, match=r"^prompt_ids\[\d\] is .*; expected an integer not below 0"):
        prefix_mismatch([1, 2], bad)


def test_staleness_of_counts_beyond_all_trainers():
    for spans, version in (([(0, 1)], 10**400), ([(0, 10**400)], 1)):
        with pytest.raises(ValueError, match=r"below 2\*\*63"):
            staleness(spans, version)


def test_an_integer_that_a_float_would_round_is_kept(tmp_path):
    """2**53 + 1 lies between two floats."""
    reward = 2**53 + 1
    assert float(reward) != reward
    record = build(play(base_reward=reward, shaped_reward=3))
    assert validate_rollout_record(record) == []
    assert record["base_rewards"][-1] == reward
    assert type(record["shaped_rewards"][-1]) is float
    write_rollout_records(tmp_path / "a.jsonl", [record])
    assert read_rollout_records(tmp_path / "a.jsonl") == [record]
