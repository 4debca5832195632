"""The command line: what it prints where, its exit codes, and what it does not load."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import keydoor.sweep as sweep_module
from keydoor import _commands
from keydoor.__main__ import main
from keydoor.profiles import PROFILES
from keydoor.sweep import full_settings, load_model, read_results, save_model, sweep
from keydoor.training import TrainingConfig, evaluate_policy, train_actor_critic

TINY = ["--updates", "1", "--episodes-per-update", "2", "--evaluation-episodes", "2", "--hidden-size", "4"]
SMALL: dict[str, Any] = {"updates": 1, "episodes_per_update": 2, "evaluation_episodes": 2, "hidden_size": 4}


# --- exact ------------------------------------------------------------------------------------------------------------


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In this process; what needs one of its own starts it."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(arguments))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def test_exact_prints_one_object() -> None:
    done = command("exact", "--rules", "standard", "--horizon", "6", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert found["optimal"] == "1"
    assert found["memoryless_deterministic"] == "1/2"
    assert found["memoryless_stochastic"] == "65/128"
    assert found["uniform"] == "5/1458"
    lower, upper = found["memoryless_stochastic_bounds"]
    assert lower <= 65 / 128 <= upper


def test_exact_prints_a_table() -> None:
    done = command("exact", "--horizon", "8")
    assert done.returncode == 0
    assert "389/69984" in done.stdout
    assert "0.530340661" in done.stdout
    assert "10,257" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["exact", "--rules", "hard"], "invalid choice: 'hard'"),
        (["exact", "--horizon", "0"], "horizon is 0; expected an integer not below 1"),
        (["exact", "--horizon", "six"], "invalid int value"),
        (["exact", "--horizon", "1000"], "horizon is 1000; expected at most 64"),
        (["exact", "--colours", "9"], "colours is 9; expected at most 8"),
        ([], "required: COMMAND"),
    ],
)
def test_exact_refuses(arguments: list[str], message: str) -> None:
    """Exit status 2, the reason on stderr, nothing on stdout and no traceback."""
    done = command(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_exact_help_names_the_options() -> None:
    done = command("exact", "--help")
    assert done.returncode == 0
    assert all(option in done.stdout for option in ("--rules", "--horizon", "--colours", "--delay", "--json"))


# --- all commands ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["exact", "--horizon", "3"], ["exact", "--help"], []])
def test_torch_is_not_loaded_where_it_is_not_needed(arguments: list[str]) -> None:
    """A second or more of waiting for words; and ``exact`` works where torch is not installed."""
    program = f"""if True:
        import sys
        sys.modules["torch"] = sys.modules["numpy"] = None
        from keydoor.__main__ import main
        sys.exit(main({arguments!r}))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if arguments else 2), done.stderr
    assert "Traceback" not in done.stderr


def test_torch_that_is_not_installed_is_named_with_its_extra() -> None:
    program = "import sys; sys.modules['torch'] = None; from keydoor.__main__ import main; sys.exit(main(['train']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert 'needs torch, which is not installed: pip install "keydoor[train]"' in done.stderr


@pytest.mark.parametrize("arguments", [["exact", "--horizon", "3"], ["exact", "--help"]])
def test_a_reader_that_has_gone(arguments: list[str]) -> None:
    """As behind ``| head``: exit code 1, and nothing on stderr. The interpreter, left alone, would say 120."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}
        program = [sys.executable, "-m", "keydoor", *arguments]
        done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, check=False, env=environment)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_output_that_cannot_be_written() -> None:
    with open("/dev/full", "wb") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}
        program = [sys.executable, "-m", "keydoor", "exact", "--horizon", "3"]
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert done.stderr.startswith("python -m keydoor: ")
    assert len(done.stderr.splitlines()) == 1


def test_output_without_the_letters_of_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in another script than that of the terminal is no bad input, and what is printed stays JSON."""
    (tmp_path / "settings.json").write_text('{"Задержка é": {"reward_mode": "sparse"}}', encoding="utf-8")
    command = ["sweep", "--results", str(tmp_path / "r"), "--seeds", "1,2", *TINY]
    for more in ([], ["--json"]):
        shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", shown)
        assert main([*command, "--settings", str(tmp_path / "settings.json"), *more]) == 0
        text = shown.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
        assert json.loads(text)["summary"][0]["setting"] == "Задержка é" if more else "runs" in text


def options_of(command: str) -> dict[str, argparse.Action]:
    """The options of a command by the name under which their values are kept."""
    parser = argparse.ArgumentParser()
    getattr(_commands, f"add_{command}")(parser)
    return {action.dest: action for action in parser._actions if action.dest != "help"}


@pytest.mark.parametrize("command", ["train", "evaluate", "sweep"])
def test_help_says_defaults_and_ranges(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each option that has a default says it, and each number its range."""
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "at least 1" in shown
    for name, action in options_of(command).items():
        said = " ".join((action.help or "").split())
        assert said in shown
        assert "(default: " in said or name in ("json", "exact", "path", "results", "settings"), name
        number = action.type in (int, float) or name == "seeds"
        assert not number or re.search(r"at least|above|below|in \[0, 1\]|\d to \d", said), name


def test_every_number_of_the_recipe_has_its_option() -> None:
    """What the foil would be: a field that someone adds to the recipe and forgets here, or a default that moves."""
    names = full_settings({"a": {"reward_mode": "sparse"}})["a"].keys() - {"reward_mode"}
    for command in ("train", "sweep"):
        options = options_of(command)
        assert names <= options.keys()
        for field in dataclasses.fields(TrainingConfig):
            words = {"None": "never", "True": "yes", "False": "no"}
            assert f"(default: {words.get(str(field.default), field.default)})" in (options[field.name].help or "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--seed", "-1"], "seed is -1; expected an integer not below 0"),
        (["train", "--seed", "one"], "invalid int value: 'one'"),
        (["train", "--reward-mode", "dense"], "invalid choice: 'dense'"),
        (["train", "--profile", "huge"], "invalid choice: 'huge'"),
        (["train", "--updates", "-1"], "updates is -1"),
        (["train", "--clip", "0"], "clip is 0.0; expected a number above 0"),
        (["train", "--gamma", "nan"], "gamma is nan"),
        (["train", "--rules", "hard"], "rules is 'hard'; expected one of standard, soft, quiet"),
        (["train", "--colours", "9"], "colours is 9"),
        (["train", "--horizon", "0"], "task_horizon is 0"),
        (["train", "--model", "nowhere/model.pt"], "--model is 'nowhere/model.pt'; expected the name of a file in a"),
        (["train", "--model", "."], "--model is '.'"),
        (["train", "--hidden-size", "1000000"], "hidden_size is 1000000; expected an integer not below 1"),
        (["evaluate"], "required: MODEL"),
        (["evaluate", "nowhere.pt"], "MODEL is 'nowhere.pt'; expected a file that"),
        (["evaluate", "text.pt"], "text.pt is no model of keydoor"),
        (["evaluate", "model.pt", "--episodes", "0"], "episodes is 0"),
        (["evaluate", "model.pt", "--horizon", "100000000000"], "task_horizon is 100000000000; expected an"),
        (["evaluate", "model.pt", "--exact", "--episodes", "3"], "not allowed with argument"),
        (["evaluate", "model.pt", "--exact", "--horizon", "1000"], "horizon is 1000"),
        (["sweep"], "required: --results"),
        (["sweep", "--results", "r", "--seeds", "3-1"], "'3-1' has 0 seeds; expected 1 to"),
        (["sweep", "--results", "r", "--seeds", "1-999999999"], "'1-999999999' has 999999999 seeds"),
        (["sweep", "--results", "r", "--seeds", "1,,2"], "'' is no seed and no range of seeds"),
        (["sweep", "--results", "r", "--seeds=-1"], "'-1' is no seed"),
        (["sweep", "--results", "r", "--seeds", "1,1"], "seeds[1] is 1; expected another seed"),
        (["sweep", "--results", "r", "--reward-mode", "sparse,dense"], "reward_mode is 'dense'; expected one of"),
        (["sweep", "--results", "r", "--reward-mode", "sparse,sparse"], "expected each mode once"),
        (["sweep", "--results", "r", "--settings", "nowhere.json"], "--settings nowhere.json: [Errno 2]"),
        (["sweep", "--results", "r", "--settings", "text.pt"], "--settings text.pt: Expecting value"),
        (["sweep", "--results", "r", "--settings", "list.json"], "--settings is [1]; expected an object of JSON"),
        (["sweep", "--results", "r", "--settings", "empty.json"], "settings is {}; expected a mapping with at least"),
        (["sweep", "--results", "r", "--settings", "twice.json"], "--settings twice.json: the name 'a' comes twice"),
        (["sweep", "--results", "r", "--settings", "deep.json"], "--settings deep.json: maximum recursion depth"),
        (["sweep", "--results", "r", "--engine", "dask"], "invalid choice: 'dask'"),
        (["sweep", "--results", "r", "--address", "auto"], "only the engine ray has one"),
        (["sweep", "--results", "r", "--workers", "0"], "workers is 0"),
        (["sweep", "--results", "r", "--threshold", "95"], "--threshold is 95.0; expected a number in [0, 1]"),
        (["sweep", "--results", "nowhere/r"], "results is 'nowhere/r'; expected the name of a file in a folder"),
        (["sweep", "--results", "text.pt"], "text.pt, line 1, is no run of a sweep"),
        (["trian"], "invalid choice: 'trian'"),
    ],
)
def test_bad_input(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trained: bytes,
) -> None:
    """Exit code 2, the reason on stderr, nothing on stdout; nothing is trained, and no results are begun."""
    monkeypatch.chdir(tmp_path)
    for name, data in (("text.pt", b"text\n"), ("model.pt", trained), ("list.json", b"[1]"), ("empty.json", b"{}")):
        Path(name).write_bytes(data)
    for name, data in (("twice.json", b'{"a": {"delay": 1}, "a": {"delay": 2}}'), ("deep.json", b"[" * 100_000)):
        Path(name).write_bytes(data)
    monkeypatch.setattr("keydoor.training.train_actor_critic", None)
    monkeypatch.setattr("keydoor._engines.train_many", None)
    try:
        code: Any = main(arguments)
    except SystemExit as ended:
        code = ended.code
    shown = capsys.readouterr()
    assert (code, shown.out) == (2, "")
    assert message in shown.err
    assert not Path("r").exists()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a network that was trained for a moment."""
    file = tmp_path_factory.mktemp("trained") / "model.pt"
    assert main(["train", "--seed", "3", "--model", str(file), *TINY]) == 0
    return file.read_bytes()


# --- train ----------------------------------------------------------------------------------------------------------


def test_train_prints_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Settings in full and the curve of :func:`train_actor_critic`; the file holds the network, to the bit."""
    file = tmp_path / "model.pt"
    options = ["--reward-mode", "sparse", "--rules", "soft", "--horizon", "5", "--no-previous-action"]
    code = main(["train", "--seed", "2", "--json", "--model", str(file), *options, *TINY])
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    found = json.loads(shown.out)
    recipe = {"hidden_size": 4, "rules": "soft", "task_horizon": 5, "previous_action": False}
    model, curve = train_actor_critic(
        seed=2,
        reward_mode="sparse",
        updates=1,
        episodes_per_update=2,
        evaluation_interval=1,
        evaluation_episodes=2,
        config=TrainingConfig(**recipe),
    )
    assert found["curve"] == json.loads(json.dumps(curve))
    assert found["settings"] == full_settings({"a": {"reward_mode": "sparse", **SMALL, **recipe}})["a"]
    assert (found["seed"], found["model"]) == (2, str(file))
    saved, about = load_model(file)
    assert about["seed"] == 2
    assert all(torch.equal(a, b) for a, b in zip(saved.parameters(), model.parameters(), strict=True))
    world = {"rules": "soft", "task_horizon": 5}
    assert found["success"] == evaluate_policy(model, episodes=10, seed=0, **world)["success_rate"]


def test_train_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *TINY]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["update", "-1", "0"]
    assert "One run says little" in lines[-1]


def test_sizes_are_those_of_the_profile() -> None:
    from keydoor.__main__ import parser

    for name, profile in PROFILES.items():
        given = _commands._given(parser().parse_args(["train", "--profile", name]))
        assert given == {n: getattr(profile, n) for n in ("updates", "episodes_per_update", "evaluation_episodes")}
    assert _commands._given(parser().parse_args(["train"]))["updates"] == PROFILES["full"].updates


def test_a_training_that_diverges_has_failed_at_run_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(**_: Any) -> None:
        raise ValueError("the critic's value is nan; expected a finite number: the network has diverged")

    monkeypatch.setattr("keydoor.training.train_actor_critic", diverge)
    assert main(["train", *TINY]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "the training has failed: the critic's value is nan" in shown.err


# --- evaluate -------------------------------------------------------------------------------------------------------


def test_evaluate_plays_and_computes(tmp_path: Path, capsys: pytest.CaptureFixture[str], trained: bytes) -> None:
    """The world is that of the training unless another is named; exact success comes from the tree of histories."""
    from keydoor.exact import evaluate_exactly
    from keydoor.gradients import policy_table

    file = tmp_path / "model.pt"
    file.write_bytes(trained)
    model, _ = load_model(file)
    capsys.readouterr()
    assert main(["evaluate", str(file), "--json", "--sample", "--episodes", "40", "--seed", "7"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = evaluate_policy(model, episodes=40, seed=7, greedy=False)
    assert {name: found[name] for name in expected} == expected
    assert (found["trained_with"]["seed"], found["task_horizon"], found["greedy"]) == (3, 8, False)
    assert main(["evaluate", str(file), "--json", "--exact", "--horizon", "5", "--rules", "soft"]) == 0
    found = json.loads(capsys.readouterr().out)
    exact = evaluate_exactly(policy_table(model, rules="soft", horizon=5), rules="soft", horizon=5)
    assert found["sampled_success"] == pytest.approx(float(exact.success_probability), rel=1e-6)
    assert found["greedy_success"] in (0, 0.5, 1)
    assert main(["evaluate", str(file)]) == 0
    assert "success rate" in capsys.readouterr().out


# --- sweep ----------------------------------------------------------------------------------------------------------


def test_sweep_prints_a_summary_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.jsonl"
    command = ["sweep", "--results", str(file), "--reward-mode", "sparse, potential", "--models", str(tmp_path), *TINY]
    assert main([*command, "--seeds", "1"]) == 0
    assert capsys.readouterr().out.count("one run says nothing of a setting; add seeds") == 2
    assert main([*command, "--seeds", "1-2,4", "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert shown.err == ""
    assert (found["runs"], found["threshold"], found["results"]) == (6, 0.95, str(file))
    assert [(one["setting"], one["runs"]) for one in found["summary"]] == [("sparse", 3), ("potential", 3)]
    assert [(pair["first"], pair["second"]) for pair in found["comparisons"]] == [("potential", "sparse")]
    assert len(read_results(file)) == len(list(tmp_path.glob("*.pt"))) == 6
    assert read_results(file)[0]["settings"] == full_settings({"a": {"reward_mode": "sparse", **SMALL}})["a"]
    assert main([*command, "--seeds", "1-2,4"]) == 0
    shown = capsys.readouterr()
    assert "A run of potential beats one of sparse with probability" in shown.out
    assert [line.split()[:2] for line in shown.out.splitlines()[2:4]] == [["sparse", "3"], ["potential", "3"]]


def test_sweep_over_a_file_of_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the file says goes before what the command line says of all."""
    settings = {"short": {"reward_mode": "sparse", "task_horizon": 4}, "long": {"reward_mode": "sparse"}}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    file = tmp_path / "results.jsonl"
    options = ["--settings", str(tmp_path / "settings.json"), "--horizon", "9", "--seeds", "5", *TINY]
    assert main(["sweep", "--results", str(file), *options]) == 0
    assert {row["setting"]: row["settings"]["task_horizon"] for row in read_results(file)} == {"short": 4, "long": 9}


def test_an_interrupted_sweep_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 130; the line that is printed does go on, though a name in it has a space."""
    file = tmp_path / "my results.jsonl"
    command = ["sweep", "--results", str(file), "--reward-mode", "sparse", "--seeds", "1-3", *TINY]
    sweep([1], {"sparse": {"reward_mode": "sparse", **SMALL}}, results=file)

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sweep_module, "sweep", interrupt)
        assert main(command) == 130
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "my results.jsonl has 1 of 3 runs; go on with:" in shown.err
    line = shown.err.rstrip().splitlines()[-1]
    assert line.startswith("python -m keydoor sweep --results '")
    assert main(shlex.split(line)[3:]) == 0
    assert len(read_results(file)) == 3


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ImportError("pip install"), sweep_module.SweepError("in use")]
)
def test_what_fails_at_run_time(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(sweep_module, "sweep", fail)
    assert main(["sweep", "--results", str(tmp_path / "r")]) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"python -m keydoor: {error}\n")


def test_a_torn_line_is_told_of_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(b'{"setting":"sparse","se')
    assert main(["sweep", "--results", str(file), "--reward-mode", "sparse", "--seeds", "1,2", "--json", *TINY]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["runs"] == 2
    assert "its last line was torn" in shown.err


def test_a_network_of_another_place_can_be_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that was never trained by a command, saved by hand."""
    from keydoor.policy import RecurrentActorCritic

    save_model(tmp_path / "m", RecurrentActorCritic(seed=0), seed=0, settings={"reward_mode": "sparse"})
    assert main(["evaluate", str(tmp_path / "m"), "--exact"]) == 0
    assert "sampled success" in capsys.readouterr().out
