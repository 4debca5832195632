"""Sweeps: each run once and whole in the file, whatever stops them; the same rows from every engine."""

from __future__ import annotations

import errno
import json
import logging
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import keydoor.sweep as sweep_module
from keydoor import _engines, _models, _results
from keydoor._engines import Block, blocks, run_block
from keydoor._results import open_results
from keydoor.policy import RecurrentActorCritic
from keydoor.profiles import PROFILES
from keydoor.sweep import (
    ENGINES,
    SweepError,
    code_version,
    full_settings,
    load_model,
    read_results,
    save_model,
    sweep,
)
from keydoor.training import TrainingConfig, evaluate_policy, train_actor_critic

TINY: dict[str, Any] = {"updates": 1, "episodes_per_update": 2, "evaluation_episodes": 2, "hidden_size": 4}
BOTH = {mode: {"reward_mode": mode, **TINY} for mode in ("sparse", "potential")}
ONE = {"sparse": BOTH["sparse"]}


def untimed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the one thing that may differ."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def trained_seeds(
    monkeypatch: pytest.MonkeyPatch, stop: Callable[[list[int], Sequence[int]], object] = lambda done, seeds: None
) -> list[int]:
    """A list that grows with every seed that is trained; ``stop`` may raise before a training."""
    found: list[int] = []
    real = _engines.train_many

    def train(seeds: Sequence[int], **arguments: Any) -> Any:
        stop(found, seeds)
        found.extend(seeds)
        return real(seeds, **arguments)

    monkeypatch.setattr(_engines, "train_many", train)
    return found


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], bytes]:
    """The rows of two settings and three seeds from a sweep that nothing has disturbed, and its file."""
    file = tmp_path_factory.mktemp("reference") / "results.jsonl"
    rows = sweep([3, 1, 2], BOTH, results=file)
    return rows, file.read_bytes()


# --- what a row says ------------------------------------------------------------------------------------------------


def test_rows_are_those_of_the_training(reference: tuple[list[dict[str, Any]], bytes]) -> None:
    """Setting by setting in the order of the seeds; curve and exact success are those of each run trained alone."""
    rows, _ = reference
    assert [(row["setting"], row["seed"]) for row in rows] == [(m, s) for m in BOTH for s in (3, 1, 2)]
    sizes = {"updates": 1, "episodes_per_update": 2, "evaluation_interval": 1, "evaluation_episodes": 2}
    for row in rows:
        model, curve = train_actor_critic(
            seed=row["seed"], reward_mode=row["setting"], config=TrainingConfig(hidden_size=4), **sizes
        )
        assert row["curve"] == json.loads(json.dumps(curve))
        assert row["success"] == evaluate_policy(model, episodes=100, seed=0)["success_rate"]
        assert row["settings"] == full_settings(BOTH)[row["setting"]]
        assert row["code"] == code_version()
        assert row["seconds"] > 0


def test_file_holds_one_whole_line_for_each_run(reference: tuple[list[dict[str, Any]], bytes], tmp_path: Path) -> None:
    rows, data = reference
    assert data.endswith(b"\n")
    assert [json.loads(line) for line in data.splitlines()] == rows
    (tmp_path / "results.jsonl").write_bytes(data)
    assert read_results(tmp_path / "results.jsonl") == rows


def test_success_is_exact_where_an_evaluation_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that plays for red alone: ½. The curve's evaluation of one episode says 0 or 1."""
    from keydoor.rules import ACTIONS

    class Red(RecurrentActorCritic):
        def step(self, observations: Any, previous_actions: Any, state: Any) -> Any:
            turn = state.long()[0, :, 0]
            plan = torch.tensor([ACTIONS.index(x) for x in ("inspect", "pickup_red", "open_red", "finish")])
            logits = torch.nn.functional.one_hot(plan[turn.clamp(max=3)], len(ACTIONS)).float() * 50
            return logits, torch.zeros(len(turn)), state + 1

    monkeypatch.setattr(_engines, "train_many", lambda seeds, **_: [(Red(seed=0), []) for _ in seeds])
    assert [row["success"] for row in sweep([1, 2], ONE, results=tmp_path / "r")] == [0.5, 0.5]


def test_settings_are_filled_with_the_full_profile() -> None:
    full, profile = full_settings({"a": {"reward_mode": "sparse"}})["a"], PROFILES["full"]
    for name in ("updates", "episodes_per_update", "evaluation_episodes"):
        assert full[name] == getattr(profile, name)
    assert full["evaluation_interval"] == profile.updates // 5
    assert full_settings({"a": {"reward_mode": "sparse", "updates": 3}})["a"]["evaluation_interval"] == 1
    for name, value in vars(TrainingConfig()).items():
        assert full[name] == value
    given = full_settings({"Задержка 3": {"reward_mode": "sparse", "delay": np.int64(3), "gamma": 1}})["Задержка 3"]
    assert json.loads(json.dumps(given)) == given
    assert (given["delay"], repr(given["gamma"])) == (3, "1.0")


# --- going on -------------------------------------------------------------------------------------------------------


def test_only_what_is_missing_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More seeds and another setting later: the first lines stay as they were, to the byte."""
    file = tmp_path / "results.jsonl"
    trained = trained_seeds(monkeypatch)
    sweep([1, 2], ONE, results=file)
    first = file.read_bytes()
    rows = sweep([2, 3, 1], BOTH, results=str(file))
    assert trained == [1, 2, 3, 2, 3, 1]
    assert file.read_bytes().startswith(first)
    assert [(row["setting"], row["seed"]) for row in rows] == [(m, s) for m in BOTH for s in (2, 3, 1)]
    again = sweep([1, 2, 3], BOTH, results=file)
    assert len(trained) == 6
    assert untimed(again) == untimed(sorted(rows, key=lambda row: (row["setting"] != "sparse", row["seed"])))


@pytest.mark.parametrize("stopped_at", [0, 1, 4, 5])
def test_an_interrupted_sweep_goes_on(
    stopped_at: int, reference: tuple[list[dict[str, Any]], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "results.jsonl"

    def interrupt(done: list[int], seeds: Sequence[int]) -> None:
        if len(done) == stopped_at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        trained_seeds(patch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            sweep([3, 1, 2], BOTH, results=file, block=1)
    assert untimed(read_results(file)) == untimed(reference[0][:stopped_at])
    trained = trained_seeds(monkeypatch)
    assert untimed(sweep([3, 1, 2], BOTH, results=file)) == untimed(reference[0])
    assert len(trained) == 6 - stopped_at
    assert len(file.read_bytes().splitlines()) == 6


def test_a_line_torn_anywhere_is_cut_off(reference: tuple[list[dict[str, Any]], bytes], tmp_path: Path) -> None:
    """At its first and last bytes and some between; a crash of the system may leave zeros where bytes should be."""
    first, second, *_ = reference[1].splitlines(keepends=True)
    file = tmp_path / "results.jsonl"
    for length in (*range(20), *range(20, len(second), 97), len(second) - 2, len(second) - 1):
        for zeros in (b"", b"\0\0\0"):
            file.write_bytes(first + second[:length] + zeros)
            with_rest = read_results(file)
            with open_results(file) as results:
                assert list(results.rows.values()) == with_rest == reference[0][:1]
            assert file.read_bytes() == first


def test_a_torn_run_is_repeated_and_told_of(
    reference: tuple[list[dict[str, Any]], bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Told of by the logger at INFO: no warning, nothing on stderr of who did not ask."""
    file = tmp_path / "results.jsonl"
    file.write_bytes(reference[1][:-40])
    trained = trained_seeds(monkeypatch)
    with caplog.at_level(logging.INFO, "keydoor.sweep"):
        assert untimed(sweep([3, 1, 2], BOTH, results=file)) == untimed(reference[0])
    assert trained == [2]
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "its last line was torn" in caplog.text


def test_a_process_that_is_killed_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    """Ended without any cleaning up, in the middle of a line; its lock ends with it."""
    file = tmp_path / "results.jsonl"
    program = f"""
        import os
        from keydoor import _results
        from keydoor.sweep import sweep
        real, count = os.write, 0
        def write(descriptor, data):
            global count
            count += 1
            if count == 3:
                real(descriptor, data[:100])
                os._exit(9)
            return real(descriptor, data)
        _results.os.write = write
        sweep([3, 1, 2], {BOTH!r}, results={str(file)!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert done.returncode == 9
    assert not file.read_bytes().endswith(b"\n")
    assert [row["seed"] for row in read_results(file)] == [3, 1]
    assert len(sweep([3, 1, 2], BOTH, results=file)) == 6
    assert len(file.read_bytes().splitlines()) == 6


# --- files that are refused -----------------------------------------------------------------------------------------


def damaged(how: str, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    row = json.loads(lines[0])
    if how == "another file":
        return b"# Results\n\nThey are good.\n"
    if how == "another file without a line's end":
        return b"# Results"
    if how == "a blank line":
        return lines[0] + b"\n" + lines[1]
    if how == "a broken line":
        return lines[0][:50] + b"\n" + lines[1]
    if how == "a run twice":
        return data + lines[0]
    if how == "no object":
        return data + b"[1]\n"
    if how == "no seed":
        del row["seed"]
    if how == "a seed of the wrong type":
        row["seed"] = True
    if how == "a seed below 0":
        row["seed"] = -1
    if how == "no number":
        row["success"] = float("nan")
    if how == "no probability":
        row["success"] = 95
    return json.dumps(row).encode() + b"\n"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("another file", "line 1, is no run of a sweep: Expecting value"),
        ("another file without a line's end", "line 1, is no run of a sweep, nor the beginning of one"),
        ("a blank line", "line 2, is no run of a sweep: it is blank"),
        ("a broken line", "line 1, is no run of a sweep: "),
        ("a run twice", r"line 7: the run 'sparse', seed 3, stands in line 1 already"),
        ("no object", "line 7, is no run of a sweep: no object of JSON"),
        ("no seed", "line 1, is no run of a sweep: 'seed' is missing"),
        ("a seed of the wrong type", "line 1, is no run of a sweep: 'seed' is True"),
        ("a seed below 0", "line 1, is no run of a sweep: 'seed' is -1; expected an integer not below 0"),
        ("no number", r"line 1, is no run of a sweep: 'success' is nan; expected a number in \[0, 1\]"),
        ("no probability", r"line 1, is no run of a sweep: 'success' is 95; expected a number in \[0, 1\]"),
    ],
)
def test_a_file_that_holds_something_else_is_not_touched(
    how: str, message: str, reference: tuple[list[dict[str, Any]], bytes], tmp_path: Path
) -> None:
    """Cutting off what does not end in a line's end would destroy a file named by mistake."""
    file = tmp_path / "results.jsonl"
    file.write_bytes(damaged(how, reference[1]))
    for call in (lambda: sweep([7], BOTH, results=file), lambda: read_results(file)):
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert str(file) in str(caught.value)
    assert file.read_bytes() == damaged(how, reference[1])


def test_other_settings_under_the_same_name_are_refused(
    reference: tuple[list[dict[str, Any]], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(reference[1])
    trained = trained_seeds(monkeypatch)
    other = {"sparse": {**BOTH["sparse"], "delay": 2, "gamma": 0.5}}
    with pytest.raises(
        ValueError, match=r"'sparse' made with delay=0, gamma=0.99, and this sweep has delay=2, gamma=0.5"
    ):
        sweep([9], other, results=file)
    assert trained == []
    assert file.read_bytes() == reference[1]
    assert len(sweep([9], {"sparse, delay 2": other["sparse"]}, results=file)) == 1, (
        "under another name it may be there"
    )


def test_another_version_of_the_code_is_refused(
    reference: tuple[list[dict[str, Any]], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are named, also where the old runs are of a setting that is not asked for now."""
    file = tmp_path / "results.jsonl"
    old = reference[1].replace(code_version().encode(), b"0.9.0+0123456789ab")
    file.write_bytes(old)
    with pytest.raises(ValueError, match="made by keydoor") as caught:
        sweep([1], {"new": BOTH["sparse"]}, results=file)
    assert "0.9.0+0123456789ab" in str(caught.value)
    assert code_version() in str(caught.value)
    assert file.read_bytes() == old
    assert len(read_results(file)) == 6, "reading them is allowed"


def test_code_version_follows_the_sources_that_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the package, in which one source after the other is changed."""
    package = resources.files("keydoor")
    for source in package.iterdir():
        if source.name.endswith(".py"):
            (tmp_path / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr(_results.resources, "files", lambda _: tmp_path)
    assert code_version.__wrapped__() == code_version()
    matter = dict.fromkeys(("rules", "env", "policy", "training", "_checks"), True)
    for name, matters in {**matter, **dict.fromkeys(("summaries", "exact", "__main__"), False)}.items():
        file = tmp_path / f"{name}.py"
        before = file.read_bytes()
        file.write_bytes(before + b"\n# changed\n")
        assert (code_version.__wrapped__() != code_version()) == matters, name
        file.write_bytes(before)
    file = tmp_path / "rules.py"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert code_version.__wrapped__() == code_version(), "line ends do not matter"


def test_a_worker_with_another_version_is_refused() -> None:
    block = Block("sparse", full_settings(ONE)["sparse"], (1,))
    with pytest.raises(SweepError, match="started by keydoor 0.9.0.*, and a worker has " + code_version()[:5]):
        run_block(block, "0.9.0+0123456789ab", False)


def test_two_sweeps_on_one_file(tmp_path: Path) -> None:
    """Also by another path to it. The lock is free again afterwards, and after a failure."""
    file = tmp_path / "results.jsonl"
    (tmp_path / "link.jsonl").symlink_to(file)
    for other in (file, tmp_path / "link.jsonl"):
        with open_results(file), pytest.raises(SweepError, match=r"jsonl is in use by another sweep"):
            sweep([1], ONE, results=other)
    with pytest.raises(ZeroDivisionError), open_results(file):
        raise ZeroDivisionError
    assert len(sweep([1], ONE, results=file)) == 1


# --- a full disk ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_a_full_disk(
    failing: str, reference: tuple[list[dict[str, Any]], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third line does not fit: half of it is written, or it turns out only when it is to be on the disk."""
    file = tmp_path / "results.jsonl"
    real: Callable[..., Any] = getattr(os, failing)
    calls = []

    def full(descriptor: int, *data: bytes) -> Any:
        calls.append(data)
        if len(calls) == 3 and failing == "write":
            return real(descriptor, data[0][: len(data[0]) // 2])
        if len(calls) >= 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, *data)

    with monkeypatch.context() as patch:
        patch.setattr(_results.os, failing, full)
        with pytest.raises(OSError, match="No space left on device: the run 'sparse', seed 2, could not be") as caught:
            sweep([3, 1, 2], BOTH, results=file)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(file)
    assert "what was finished before is kept (runs: 2)" in str(caught.value)
    assert len(file.read_bytes().splitlines()) == len(read_results(file)) == 2
    assert file.read_bytes().endswith(b"\n")
    assert untimed(sweep([3, 1, 2], BOTH, results=file)) == untimed(reference[0])


def test_the_system_itself_refuses_half_a_line(tmp_path: Path) -> None:
    """A real limit on the size of files: the system writes what fits, which is no whole line, and then refuses."""
    resource = pytest.importorskip("resource", reason="this system has no limits of this kind")
    file = tmp_path / "results.jsonl"
    sweep([1], ONE, results=file)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 100, before[1]))
    try:
        with pytest.raises(OSError, match="Its half line was cut off, and what was finished before is kept") as caught:
            sweep([1, 2], ONE, results=file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert [row["seed"] for row in read_results(file)] == [1]
    assert file.read_bytes().endswith(b"\n")
    assert len(sweep([1, 2], ONE, results=file)) == 2


@pytest.mark.parametrize(("failing", "kept"), [("write", 2), ("fsync", 3)])
def test_an_interrupt_while_a_line_is_written(
    failing: str,
    kept: int,
    reference: tuple[list[dict[str, Any]], bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of the third line is cut off; a whole one, on its way to the disk, is kept."""
    file = tmp_path / "results.jsonl"
    real: Callable[..., Any] = getattr(os, failing)
    calls = []

    def interrupt(descriptor: int, *data: bytes) -> Any:
        calls.append(data)
        if len(calls) == 3:
            if data:
                real(descriptor, data[0][:50])
            raise KeyboardInterrupt
        return real(descriptor, *data)

    with monkeypatch.context() as patch:
        patch.setattr(_results.os, failing, interrupt)
        with pytest.raises(KeyboardInterrupt):
            sweep([3, 1, 2], BOTH, results=file)
    assert file.read_bytes().endswith(b"\n")
    assert untimed(read_results(file)) == untimed(reference[0][:kept])
    assert untimed(sweep([3, 1, 2], BOTH, results=file)) == untimed(reference[0])


# --- runs that fail -------------------------------------------------------------------------------------------------


def test_a_run_that_diverges_does_not_take_its_block_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of at the end. It is not in the file, so that it is tried again and never counts as finished."""
    file = tmp_path / "results.jsonl"

    def diverge(done: list[int], seeds: Sequence[int]) -> None:
        if 2 in seeds:
            raise ValueError("the network has diverged")

    trained_seeds(monkeypatch, diverge)
    with pytest.raises(SweepError, match="1 of 3 runs have failed, and the others are kept: 'sparse', seed 2: the net"):
        sweep([1, 2, 3], ONE, results=file)
    assert [row["seed"] for row in read_results(file)] == [1, 3]


def test_many_seeds_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the command line takes at a time; comparing each with all before it would take minutes."""

    class Counted(int):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    monkeypatch.setattr(sweep_module, "whole", lambda seed, *_, **__: Counted(seed))
    assert len(sweep_module._seeds(range(1000))) == 1000
    assert Counted.compared <= 10_000


# --- networks -------------------------------------------------------------------------------------------------------


def test_networks_are_kept_where_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is that of its run, to the bit; one that is missing is trained again, and its row stays alone."""
    file, folder = tmp_path / "results.jsonl", tmp_path / "new" / "models"
    trained = trained_seeds(monkeypatch)
    sweep([1], ONE, results=file)
    rows = sweep([1, 2], ONE, results=file, models=folder)
    assert trained == [1, 1, 2]
    assert sorted(path.name for path in folder.iterdir()) == ["sparse-seed1.pt", "sparse-seed2.pt"]
    assert len(file.read_bytes().splitlines()) == 2
    for row in rows:
        model, about = load_model(folder / f"sparse-seed{row['seed']}.pt")
        sizes = {"updates": 1, "episodes_per_update": 2, "evaluation_interval": 1, "evaluation_episodes": 2}
        expected, _ = train_actor_critic(
            seed=row["seed"], reward_mode="sparse", config=TrainingConfig(hidden_size=4), **sizes
        )
        assert all(
            torch.equal(a, b) for a, b in zip(model.state_dict().values(), expected.state_dict().values(), strict=True)
        )
        assert about == {"seed": row["seed"], "settings": row["settings"], "code": row["code"]}
    sweep([1, 2], ONE, results=file, models=folder)
    assert trained == [1, 1, 2]


def test_no_row_without_its_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full while the network is written: neither is there, and nothing is left of the attempt."""
    file, folder = tmp_path / "results.jsonl", tmp_path / "models"

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(_models.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            sweep([1], ONE, results=file, models=folder)
    assert read_results(file) == []
    assert list(folder.iterdir()) == []


def test_a_network_is_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    file.write_bytes(b"before")
    model = RecurrentActorCritic(seed=5, hidden_size=3, gamma=0.5, previous_action=False, colours=4)
    shape = {"hidden_size": 3, "gamma": 0.5, "previous_action": False, "colours": 4}
    save_model(str(file), model, seed=5, settings={"reward_mode": "sparse", **shape})
    found, about = load_model(file)
    assert about["settings"] == full_settings({"a": {"reward_mode": "sparse", **shape}})["a"]
    assert {name: getattr(found, name) for name in ("hidden_size", "gamma", "previous_action")} == {
        name: shape[name] for name in ("hidden_size", "gamma", "previous_action")
    }
    assert all(torch.equal(a, b) for a, b in zip(found.parameters(), model.parameters(), strict=True))
    assert torch.load(file, weights_only=True)["state_dict"].keys() == model.state_dict().keys()
    with pytest.raises(ValueError, match="settings: colours is 2; expected 4, as this network has"):
        save_model(file, model, seed=5, settings={"reward_mode": "sparse", **shape, "colours": 2})
    with pytest.raises(ValueError, match="model is 'model'; expected a RecurrentActorCritic"):
        save_model(file, "model", seed=5, settings={"reward_mode": "sparse"})  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


class Planted:
    """What a reader without ``weights_only`` would run."""

    def __reduce__(self) -> Any:
        return os.mkdir, (Planted.folder,)

    folder = ""


@pytest.mark.parametrize(
    "what", ["empty", "text", "half", "other", "planted", "no settings", "unknown setting", "no code", "no whole seed"]
)
def test_a_file_that_is_no_network(what: str, tmp_path: Path) -> None:
    file, Planted.folder = tmp_path / "model.pt", str(tmp_path / "executed")
    save_model(file, RecurrentActorCritic(seed=5), seed=5, settings={"reward_mode": "sparse"})
    whole = file.read_bytes()
    saved = torch.load(file, weights_only=True)
    if what == "other":
        torch.save({"state_dict": saved["state_dict"]}, file)
    elif what == "no settings":
        torch.save({**saved, "about": "{}"}, file)
    elif what == "unknown setting":
        about = {**json.loads(saved["about"]), "settings": {"reward_mode": "sparse", "depth": 3}}
        torch.save({**saved, "about": json.dumps(about)}, file)
    elif what == "no code":
        torch.save({**saved, "about": '{"seed": 5, "settings": {"reward_mode": "sparse"}}'}, file)
    elif what == "no whole seed":
        torch.save({**saved, "about": json.dumps({**json.loads(saved["about"]), "seed": 0.5})}, file)
    else:
        contents = {
            "empty": b"",
            "text": b"weights",
            "half": whole[: len(whole) // 2],
            "planted": pickle.dumps(Planted()),
        }
        file.write_bytes(contents[what])
    with pytest.raises(ValueError, match=r"model.pt is no model of keydoor, or not a whole one"):
        load_model(file)
    assert not (tmp_path / "executed").exists()


def test_a_network_that_has_diverged(tmp_path: Path) -> None:
    model = RecurrentActorCritic(seed=5)
    with torch.no_grad():
        model.value_head.bias.fill_(float("nan"))
    save_model(tmp_path / "model.pt", model, seed=5, settings={"reward_mode": "sparse"})
    with pytest.raises(ValueError, match=r"value_head.bias holds what is no finite number"):
        load_model(tmp_path / "model.pt")


# --- engines --------------------------------------------------------------------------------------------------------


def test_blocks() -> None:
    """Every run once and in order, no block of two settings, and work for all workers."""
    todo = [(name, {"name": name}, seed) for name in ("a", "b") for seed in range(10)]
    for size, workers, expected in (
        (None, 1, [8, 2, 8, 2]),
        (None, 4, [5] * 4),
        (None, 100, [1] * 20),
        (3, 1, [3, 3, 3, 1] * 2),
    ):
        found = blocks(todo, size, workers)
        assert [len(block.seeds) for block in found] == expected
        assert [(b.setting, b.settings, seed) for b in found for seed in b.seeds] == todo


def test_joblib_gives_the_same_rows(reference: tuple[list[dict[str, Any]], bytes], tmp_path: Path) -> None:
    rows = sweep([3, 1, 2], BOTH, results=tmp_path / "r.jsonl", engine="joblib", workers=2, models=tmp_path)
    assert untimed(rows) == untimed(reference[0])
    assert len(list(tmp_path.glob("*.pt"))) == 6


def die(*_: Any) -> None:
    os._exit(1)


def test_a_worker_of_joblib_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.jsonl"
    sweep([1], ONE, results=file)
    monkeypatch.setattr(_engines, "run_block", die)
    with pytest.raises(SweepError, match=r"a worker process of joblib has died.*finished runs are kept"):
        sweep([1, 2], ONE, results=file, engine="joblib", workers=2)
    assert [row["seed"] for row in read_results(file)] == [1]


@pytest.mark.parametrize(
    ("engine", "library", "extra"),
    [("joblib", "joblib", "sweep"), ("ray", "ray", "cluster"), ("stacked", "filelock", "sweep")],
)
def test_what_is_not_installed_is_named_with_its_extra(
    engine: str, library: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # an import of it now fails
    with pytest.raises(
        ImportError, match=rf'needs {library}, which is not installed.*pip install "keydoor\[{extra}\]"'
    ):
        sweep([1], ONE, results=tmp_path / "results.jsonl", engine=engine)
    assert list(tmp_path.iterdir()) == []


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": []}, r"seeds is \[\]; expected at least one seed"),
        ({"seeds": 3}, "seeds is 3; expected a sequence"),
        ({"seeds": [1, -1]}, r"seeds\[1\] is -1"),
        ({"seeds": [1, 2**63]}, r"seeds\[1\] is 9223372036854775808"),
        ({"seeds": [1, True]}, r"seeds\[1\] is True"),
        ({"seeds": [1, 2, 1]}, r"seeds\[2\] is 1; expected another seed than seeds\[0\]"),
        ({"settings": {}}, "settings is {}; expected a mapping with at least one name"),
        ({"settings": "sparse"}, "settings is 'sparse'"),
        ({"settings": {"a": "sparse"}}, r"settings\['a'\] is 'sparse'; expected a mapping"),
        ({"settings": {"a": {}}}, r"settings\['a'\] has no reward_mode; expected one of sparse, potential"),
        ({"settings": {"a": {"reward_mode": "dense"}}}, r"settings\['a'\]: reward_mode is 'dense'"),
        (
            {"settings": {"a": {**BOTH["sparse"], "rules": "hard"}}},
            r"settings\['a'\]: rules is 'hard'; expected one of",
        ),
        (
            {"settings": {"a": {**BOTH["sparse"], "horizon": 6}}},
            r"a key of settings\['a'\] is 'horizon'; expected one of",
        ),
        ({"settings": {"a": {**BOTH["sparse"], "updates": -1}}}, r"settings\['a'\]: updates is -1"),
        (
            {"settings": {"a": {**BOTH["sparse"], "evaluation_interval": 0}}},
            r"settings\['a'\]: evaluation_interval is 0",
        ),
        ({"settings": {"a": {**BOTH["sparse"], "clip": float("nan")}}}, r"settings\['a'\]: clip is nan"),
        ({"settings": {"a/b": BOTH["sparse"]}}, "a name in settings is 'a/b'; expected 1 to 100 letters"),
        ({"settings": {"": BOTH["sparse"]}}, "a name in settings is ''"),
        ({"settings": {"..": BOTH["sparse"]}}, r"a name in settings is '\.\.'"),
        ({"settings": {1: BOTH["sparse"]}}, "a name in settings is 1"),
        ({"results": ""}, "results is ''; expected the name of a file"),
        ({"results": 3}, "results is 3"),
        (
            {"results": "nowhere/results.jsonl"},
            "results is '.*; expected the name of a file in a folder that there is",
        ),
        ({"results": "."}, r"results is '.*'; expected the name of a regular file"),
        ({"engine": "dask"}, "engine is 'dask'; expected one of stacked, joblib, ray"),
        ({"block": 0}, "block is 0"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": 1.5}, "workers is 1.5"),
        ({"models": 3}, "models is 3"),
        ({"address": "auto"}, "address is 'auto'; expected None: only the engine ray has one"),
        ({"address": "auto", "engine": "joblib"}, "only the engine ray"),
    ],
)
def test_bad_input_is_found_before_anything_is_trained(
    arguments: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = trained_seeds(monkeypatch)
    given = {"seeds": [1], "settings": ONE, "results": tmp_path / "results.jsonl", **arguments}
    if given["results"] in (".", "nowhere/results.jsonl"):
        given["results"] = tmp_path / given["results"]
    with pytest.raises(ValueError, match=message):
        sweep(given.pop("seeds"), given.pop("settings"), **given)
    assert trained == []
    assert [path for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:99999", 6379, ""])
def test_an_address_that_cannot_be_understood(address: Any, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the engine ray is not installed")
    with pytest.raises(ValueError, match=r"address is .*; expected 'auto', or host:port"):
        sweep([1], ONE, results=tmp_path / "results.jsonl", engine="ray", address=address)


@pytest.mark.parametrize("path", ["", 3, None, "a\0b"])
def test_a_path_that_is_none(path: Any) -> None:
    for call in (read_results, load_model):
        with pytest.raises(ValueError, match=r"path is .*; expected the name of a file"):
            call(path)
    with pytest.raises(OSError, match="nowhere"):
        read_results("nowhere.jsonl")
    assert ENGINES == ("stacked", "joblib", "ray")
