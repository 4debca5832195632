"""Stored results: the files of the package are whole, say where they come from, and agree with each other."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from keydoor.language.record import episodes
from keydoor.language.results import STORED, check_stored, provenance, save, stored
from keydoor.language.tables import SITUATIONS, action_masses, calibrate, exact_success, probabilities
from keydoor.language.texts import LANGUAGES, observation_text, situation_text, spellings
from keydoor.language.weights import SHA256
from keydoor.masks import trajectory_mask_report
from keydoor.records import validate_rollout_record
from keydoor.rules import ACTIONS, get_rules


@pytest.mark.parametrize("name", STORED)
def test_every_file_is_there_small_and_says_where_it_comes_from(name: str) -> None:
    found = stored(name)
    about = found["provenance"]
    assert about["command"] == f"python -m keydoor.language record {name}"
    assert {"torch", "transformers"} <= about["versions"].keys()
    if name != "transcript":
        assert about["weights"]["sha256"] == SHA256
    path = Path(__file__).parents[2] / "keydoor" / "language" / "stored" / f"{name}.json"
    assert path.stat().st_size < 400_000


def test_all_files_together_are_below_a_megabyte() -> None:
    folder = Path(__file__).parents[2] / "keydoor" / "language" / "stored"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000


def test_tables_are_the_sums_over_the_spellings() -> None:
    found = stored("scores")
    for language in LANGUAGES:
        for situation, row in zip(SITUATIONS, found["tables"][language], strict=True):
            strings = found["strings"][language][situation.name]
            assert [*strings] == [string for action in ACTIONS for string in spellings(action)]
            masses = action_masses(strings)
            assert [masses[action] for action in ACTIONS] == pytest.approx(row, abs=2e-6)
    for string, pieces in found["pieces"].items():
        assert "".join(pieces) == string + "<|im_end|>"


def test_each_curve_ends_where_its_tables_say() -> None:
    """The exact success of every stored run, computed anew from the stored log-probabilities."""
    for run in stored("training")["runs"]:
        tables, base = run["logprobs"], run["logprobs"]["before"]
        fair = run["settings"].get("calibrated", True)
        success = {row["update"]: row["success"] for row in run["curve"]}
        assert sorted(success) == list(range(len(success)))
        for stage, update in run["updates"].items():
            scores = calibrate(tables[stage], base) if fair else tables[stage]
            found = exact_success(probabilities(scores), rules=run["rules"], horizon=run["horizon"])
            assert found.probability == pytest.approx(success[update], rel=1e-4), (run["label"], run["seed"], stage)


def test_the_demand_is_met_by_the_stored_runs() -> None:
    """From a few per cent to 95 on standard rules, with at least four of five fresh seeds, in three minutes each."""
    runs = [run for run in stored("training")["runs"] if run["label"] == "standard"]
    assert len(runs) == 5
    assert all(run["fresh"] and run["rules"] == "standard" for run in runs)
    assert all(run["curve"][0]["success"] < 0.05 for run in runs)
    assert sum(run["curve"][-1]["success"] >= 0.95 for run in runs) >= 4
    assert all(run["curve"][-1]["cpu_seconds"] <= 180 for run in runs)
    assert stored("training")["provenance"]["threads"] == 1


def test_episodes_are_what_the_stored_policy_played() -> None:
    found = stored("episodes")
    run = next(r for r in stored("training")["runs"] if r["label"] == "standard" and r["seed"] == found["run"])
    base = run["logprobs"]["before"]
    assert {(one["stage"], one["target"]) for one in found["episodes"]} == {
        (stage, target) for stage in found["stages"] for target in ("red", "blue")
    }
    for one in found["episodes"]:
        record = one["record"]
        assert validate_rollout_record(record) == []
        policy = probabilities(calibrate(run["logprobs"][one["stage"]], base))
        world = get_rules(found["rules"])
        state = world.start[one["target"]]
        for t, (row, action) in enumerate(zip(one["situations"], record["actions"], strict=True)):
            outcome = world.table[state][ACTIONS.index(action)]
            assert one["probabilities"][t] == pytest.approx(policy[row], abs=1e-8)
            assert record["next_observations"][t] == outcome.observation
            chosen = policy[row][ACTIONS.index(action)]
            assert math.exp(record["behavior_logprobs"][t]) == pytest.approx(chosen, abs=1e-8)
            for language in LANGUAGES:
                assert one["belief"][language][t] == situation_text(SITUATIONS[row], language=language)
                assert one["answers"][language][t] == observation_text(outcome.observation, language=language)
            state = outcome.state


def test_the_transcript_counts_itself() -> None:
    found = stored("transcript")
    tokens, counts = found["tokens"], found["counts"]
    assert "".join(token["text"] for token in tokens) == found["text"]
    for source in ("prompt", "template", "environment", "sampled"):
        assert counts[source] == sum(token["source"] == source for token in tokens)
    assert counts["completion"] == counts["template"] + counts["environment"] + counts["sampled"]
    assert counts["trl_mask"] == counts["sampled"]
    assert counts["trl_mask_wrongly_in"] == counts["trl_mask_wrongly_out"] == 0
    assert counts["assistant_mask"] > counts["sampled"], "the template marks what nobody sampled"
    report = trajectory_mask_report([("assistant", 1, token["source"] == "sampled") for token in tokens])
    assert report.policy_tokens == counts["sampled"]


def test_drift_is_counted_and_shown() -> None:
    found = stored("drift")
    changed = [row for row in found["samples"] if row["ids"] != row["again"]]
    assert len(changed) == found["changed"] <= found["sampled"]
    for row in found["samples"]:
        assert len(row["pieces"]) == len(row["ids"])
        assert len(row["pieces_again"]) == len(row["again"])
        same = row["ids"] == row["again"]
        assert (row["logprob"] == pytest.approx(row["logprob_again"], abs=1e-2)) or not same


def test_transfer_has_every_test_for_every_seed_and_agrees_with_the_training() -> None:
    rows = stored("transfer")["rows"]
    runs = {run["seed"]: run for run in stored("training")["runs"] if run["label"] == "standard"}
    tests = {(row["test"], row["language"], row["wording"], str(row["names"])) for row in rows}
    assert len(rows) == len(tests) * len(runs)
    assert {row["test"] for row in rows} >= {"trained", "wording", "colours", "russian", "history"}
    for row in rows:
        assert 0 <= row["before"] <= 1
        if row["test"] == "trained":
            assert row["after"] == pytest.approx(runs[row["seed"]]["curve"][-1]["success"], rel=1e-3)


def damaged(name: str, change: dict[str, Any]) -> dict[str, Any]:
    return {**stored(name), **change}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("training", {"format": 2}, "training.json: format is 2"),
        ("training", {"kind": "drift"}, "training.json: kind is 'drift'"),
        ("training", {"provenance": {"command": "x"}}, "training.json: provenance"),
        ("training", {"runs": []}, "training.json: runs is"),
        ("training", {"runs": [{"label": "x"}]}, "training.json: runs is"),
        ("scores", {"tables": {"en": [[0.5] * 6] * 15}}, "scores.json: tables is"),
        ("scores", {"actions": ["inspect"]}, "scores.json: actions is"),
        ("transcript", {"tokens": [{"id": 1}]}, "transcript.json: tokens is"),
        ("drift", {"changed": -1}, "drift.json: changed is -1"),
        ("episodes", {"stages": []}, "episodes.json: stages is"),
    ],
)
def test_another_form_is_refused_with_file_and_field(name: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_stored(damaged(name, change), name, f"{name}.json")


def test_a_broken_record_in_an_episode_is_found() -> None:
    found = stored("episodes")
    found["episodes"][0]["record"]["behavior_logprobs"][0] = 0.5
    with pytest.raises(ValueError, match=r"episodes\.json: episodes is"):
        check_stored(found, "episodes", "episodes.json")


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    content = {key: value for key, value in stored("drift").items() if key not in ("format", "kind")}
    path = save("drift", content, tmp_path)
    assert stored("drift", tmp_path) == stored("drift")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="samples"):
        save("drift", {**content, "samples": []}, tmp_path)
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        save("drift", {**content, "extra": float("nan")}, tmp_path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["drift.json"]
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"drift\.json: .*; expected JSON"):
        stored("drift", tmp_path)
    with pytest.raises(FileNotFoundError):
        stored("scores", tmp_path)
    json.dumps(provenance("x", {}, cpu_seconds=1.0))


def test_the_stored_episodes_are_those_of_the_stored_run() -> None:
    """Played anew from the run's own tables, they come out the same, to the last digit."""
    kept = stored("episodes")
    run = next(run for run in stored("training")["runs"] if (run["label"], run["seed"]) == ("standard", kept["run"]))
    made = episodes(run, kept["provenance"]["weights"]["model"])
    assert made == {name: kept[name] for name in made}
    other = next(one for one in stored("training")["runs"] if one["label"] == "soft")
    assert episodes(other, kept["provenance"]["weights"]["model"])["episodes"] != kept["episodes"]
