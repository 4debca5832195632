"""A model small enough for tests: random weights, a vocabulary learnt on the spot, nothing that is downloaded."""

from __future__ import annotations

from functools import cache
from typing import Any

from keydoor.language.scripted import call_text, random_qwen3, small_tokenizer, template
from keydoor.language.tables import SITUATIONS
from keydoor.language.texts import messages, observation_text
from keydoor.language.weights import Loaded
from keydoor.rules import ACTIONS, OBSERVATIONS


@cache
def tokenizer() -> Any:
    """A tokenizer of Qwen3's form that knows the words of this world."""
    texts = [template("qwen3"), *map(call_text, ACTIONS), *map(observation_text, OBSERVATIONS)]
    texts += [message["content"] for situation in SITUATIONS for message in messages(situation)]
    return small_tokenizer(texts)


def loaded(seed: int = 0) -> Loaded:
    """A new model."""
    return Loaded(random_qwen3(tokenizer(), seed=seed).eval(), tokenizer(), {"model": "tiny", "sha256": "none"})
