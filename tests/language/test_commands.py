"""The command line: JSON on stdout, exit codes, and messages that help."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from keydoor.language import weights
from keydoor.language.__main__ import main, parser
from keydoor.language.results import STORED

if importlib.util.find_spec("transformers"):
    from tests.language import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model on disk."""
    path = tmp_path_factory.mktemp("tiny")
    made = tiny.loaded()
    made.model.save_pretrained(path)
    made.tokenizer.save_pretrained(path)
    return str(path)


def test_importing_the_package_loads_no_library() -> None:
    program = (
        "import sys, keydoor.language as l\n"
        "[getattr(l, name) for name in ('stored', 'exact_success', 'TextKeyDoorEnv', 'messages')]\n"
        "print([n for n in ('torch', 'numpy', 'transformers', 'trl', 'peft') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_loads_and_others_are_refused() -> None:
    import keydoor.language as package

    assert {"stored", "train", "load"} <= {*package.__all__} <= {*dir(package)}
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)
    with pytest.raises(AttributeError, match="no attribute 'fly'"):
        package.fly  # noqa: B018


def test_without_the_packages_the_exit_code_is_one_and_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "transformers" else find(name))
    for command in (["train"], ["score"], ["transfer", "x"], ["record", "drift"], ["check"]):
        assert main(command) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert "transformers" in err
        assert 'not installed; this needs: pip install "keydoor[language]"' in err


@pytest.mark.parametrize("arguments", [[], ["fly"], ["score", "--language", "de"], ["record", "dreams"]])
def test_unknown_words_are_bad_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_every_stored_result_can_be_recorded_anew() -> None:
    for name in STORED:
        assert parser().parse_args(["record", name]).what == name


def test_accelerate_prints_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accelerate", "several_gpus"]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()


def test_real_model_says_what_stands_in_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["real-model", "--dry-run", "--model", "/no/such/folder"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["obstacles"]
    assert found["settings"]["num_generations"] == 4
    assert main(["real-model", "--num-generations", "1"]) == 2
    assert "num_generations is 1" in capsys.readouterr().err


@pytest.mark.language
def test_train_score_and_transfer_hand_the_adapter_on(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = str(tmp_path / "a.safetensors")
    small = ["--updates", "2", "--group-size", "16", "--layers", "1", "--rank", "2", "--learning-rate", "0.1"]
    common = ["--weights", folder, "--rules", "soft", "--horizon", "8"]
    assert main(["train", *common, *small, "--adapter", adapter, "--checkpoint", str(tmp_path / "c")]) == 0
    out, err = capsys.readouterr()
    trained = json.loads(out)
    assert err.count("\n") == 4, "a heading, and a line for each number of updates"
    assert main(["score", *common, "--adapter", adapter]) == 0
    scored = json.loads(capsys.readouterr().out)
    assert scored["rules"] == "soft"
    assert scored["reference"] != scored["logprobs"]
    from keydoor.language import transfer

    monkeypatch.setattr(transfer, "TESTS", transfer.TESTS[:1])
    assert main(["transfer", *common, adapter]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["before"] == pytest.approx(trained["curve"][0]["success"], rel=1e-4)
    assert row["after"] == pytest.approx(trained["success"], rel=1e-4)
    assert main(["train", *common, *small, "--seed", "2", "--checkpoint", str(tmp_path / "c")]) == 2
    assert "in the checkpoint" in capsys.readouterr().err


@pytest.mark.language
def test_bad_values_are_exit_code_two(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["train", "--clip", "-1"], "clip is -1"),
        (["train", "--adapter", "/no/such/folder/a"], "--adapter is"),
        (["score", "--colours", "pink"], "two names with a comma"),
        (["score", "--colours", "pink,red"], r"names['red'] is 'pink'"),
        (["score", "--adapter", "/no/such/file"], "a file of adapters"),
    ):
        assert main([*arguments, "--weights", folder]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.weights
def test_the_stored_scores_are_those_of_these_weights(capsys: pytest.CaptureFixture[str]) -> None:
    """The short form of the chapter: what `make book WITH_LM=1` compares."""
    assert main(["check"]) == 0
    assert json.loads(capsys.readouterr().out)["weights"]["sha256"] == weights.SHA256
    assert main(["check", "--tolerance", "0"]) in (0, 1)
