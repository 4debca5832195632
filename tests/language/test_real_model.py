"""The profile real-model: settings, what stands in the way, files for accelerate, and the path on random weights."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from keydoor.language import real_model as home
from keydoor.language.environment import TextKeyDoorEnv
from keydoor.language.real_model import LAUNCHES, RealModelSettings, dataset_rows, launch_file, memory_needed, obstacles
from keydoor.language.weights import WeightsError

if importlib.util.find_spec("trl"):
    from tests.language import tiny


def test_the_settings_are_those_of_the_seed() -> None:
    settings = RealModelSettings()
    assert settings.model == "Qwen/Qwen3-0.6B"
    assert (settings.num_generations, settings.max_steps, settings.max_completion_length) == (4, 20, 1024)


def test_every_row_resets_the_environment() -> None:
    for row in dataset_rows(RealModelSettings(language="ru", rules="soft", horizon=6)):
        env = TextKeyDoorEnv()
        assert env.reset(**row).startswith("\nВы")
        assert env._horizon == 6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rules": "hard"}, "rules is 'hard'"),
        ({"language": "de"}, "language is 'de'"),
        ({"num_generations": 1}, "num_generations is 1"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"vllm": "yes"}, "vllm is 'yes'"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RealModelSettings(**wrong)


def test_memory_grows_with_what_it_is_said_to_grow_with() -> None:
    base = memory_needed(RealModelSettings())
    assert memory_needed(RealModelSettings(num_generations=8)) > base
    assert memory_needed(RealModelSettings(), parameters=1.2e9) == pytest.approx(base + 16 * 0.6)
    with pytest.raises(ValueError, match="parameters is 0"):
        memory_needed(RealModelSettings(), parameters=0)


def test_missing_packages_are_named_with_the_command_that_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "_installed", lambda name: name not in ("trl", "datasets"))
    assert any(
        'trl, datasets not installed: pip install "keydoor[language]"' in line
        for line in obstacles(RealModelSettings())
    )


@pytest.mark.language
def test_without_gpu_or_weights_the_run_says_what_works_instead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    settings = RealModelSettings(model=str(tmp_path / "nowhere"), vllm=True)
    found = obstacles(settings)
    assert [any(word in line for line in found) for word in ("no GPU", "weights of", "vLLM")] == [True] * 3
    with pytest.raises(WeightsError, match=r"no GPU(.|\n)*python -m keydoor\.language train"):
        home.train_real_model(settings)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**9, 8 * 10**9))
    assert any("the GPU has 8 GB; this needs about 17 GB" in line for line in obstacles(settings))


@pytest.mark.language
@pytest.mark.parametrize("name", LAUNCHES)
def test_accelerate_reads_its_files(name: str) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(launch_file(name)))
    several = name != "one_gpu"
    assert (config.distributed_type == "MULTI_GPU") is several
    assert config.num_processes == {"one_gpu": 1, "several_gpus": 4, "several_machines": 8}[name]
    assert config.num_machines == (2 if name == "several_machines" else 1)
    assert config.mixed_precision == "bf16"


def test_an_unknown_file_of_accelerate_is_refused() -> None:
    with pytest.raises(ValueError, match="name is 'tpu'; expected one of one_gpu"):
        launch_file("tpu")


@pytest.mark.language
def test_the_path_runs_on_random_weights_writes_checkpoints_and_goes_on_from_them(tmp_path: Path) -> None:
    """The whole path without a script: TRL generates with a tiny Qwen3, steps, saves; a second call goes on."""
    folder = tmp_path / "model"
    loaded = tiny.loaded()
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    common = {"model": str(folder), "output": str(tmp_path / "out"), "cpu": True, "num_generations": 2}
    small = {"max_completion_length": 8, "save_steps": 1}
    first = home.train_real_model(RealModelSettings(max_steps=1, **common, **small))
    assert (tmp_path / "out" / "checkpoint-1").is_dir()
    rewards = [row["rewards/TextKeyDoorEnv/mean"] for row in first if "rewards/TextKeyDoorEnv/mean" in row]
    assert rewards == [0.0], "random weights call no tool"
    home.train_real_model(RealModelSettings(max_steps=2, **common, **small))
    state = json.loads((tmp_path / "out" / "checkpoint-2" / "trainer_state.json").read_text())
    assert state["global_step"] == 2
    assert [row["step"] for row in state["log_history"] if "reward" in row] == [1, 2], "the first step was not repeated"
