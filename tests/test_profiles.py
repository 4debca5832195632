"""Profiles of the lab: the values of both seed notebooks, and the variable that chooses one."""

from __future__ import annotations

import dataclasses

import pytest

from keydoor.profiles import PROFILES, Profile, current_profile


def test_values_are_those_of_the_first_lab() -> None:
    """The numbers stand at the head of the notebook (tests/data/seed_lab_ru.py): one branch is ``full``."""
    assert PROFILES["smoke"] == Profile("smoke", (1, 2, 3), 8, 16, 20)
    assert PROFILES["full"] == Profile("full", (1, 2, 3, 4, 5), 30, 48, 100)
    assert PROFILES["real-model"] == dataclasses.replace(PROFILES["smoke"], name="real-model")
    assert [name for name, profile in PROFILES.items() if profile.name == name] == ["smoke", "full", "real-model"]


@pytest.mark.parametrize(
    ("value", "name"),
    [("smoke", "smoke"), ("FULL", "full"), (" full\n", "full"), ("Real-Model", "real-model")],
)
def test_value_is_stripped_and_lowered(value: str, name: str) -> None:
    assert current_profile({"RL_LLM_PROFILE": value}) is PROFILES[name]


def test_default_and_the_process_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RL_LLM_PROFILE", raising=False)
    assert current_profile() is PROFILES["smoke"]
    monkeypatch.setenv("RL_LLM_PROFILE", "full")
    assert current_profile() is PROFILES["full"]
    assert current_profile({}) is PROFILES["smoke"], "a mapping that is given replaces the process environment"


@pytest.mark.parametrize("value", ["nonsense", "", " ", "real_model", "realmodel", "full smoke", "полный"])
def test_unknown_value_is_named(value: str) -> None:
    """Falling back to ``smoke`` would let a misspelt ``ful`` publish the curves of a profile that solves nothing."""
    with pytest.raises(ValueError, match=r"^RL_LLM_PROFILE must be smoke, full, or real-model") as caught:
        current_profile({"RL_LLM_PROFILE": value})
    assert repr(value) in str(caught.value)


def test_profiles_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PROFILES["smoke"].updates = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        PROFILES["mine"] = PROFILES["smoke"]  # type: ignore[index]


@pytest.mark.parametrize("value", [None, 1, b"full", ["full"]])
def test_a_value_that_is_no_text_is_named(value: object) -> None:
    with pytest.raises(ValueError, match=r"^RL_LLM_PROFILE must be .*; it is") as caught:
        current_profile({"RL_LLM_PROFILE": value})  # type: ignore[dict-item]
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("environ", ["full", 1, ["RL_LLM_PROFILE"]])
def test_an_environment_that_is_no_mapping(environ: object) -> None:
    with pytest.raises(ValueError, match=r"^environ is .*; expected a mapping"):
        current_profile(environ)  # type: ignore[arg-type]
