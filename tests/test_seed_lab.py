"""The code of the first lab (a Russian notebook) runs on the package and prints the lab's values.

Every literal here was computed by hand from the definitions or stands in the lecture of the course; the tests of the
single modules say how. What is tested here is the contract: names, argument names, result fields, printed text.
"""

from __future__ import annotations

import contextlib
import io
import random
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import IPython.display
import matplotlib
import numpy as np
import pytest
import torch
from matplotlib import pyplot

import keydoor

LAB = Path(__file__).parent / "data" / "seed_lab_ru.py"


@pytest.fixture(scope="module")
def lab() -> Iterator[tuple[dict[str, Any], str, list[Any]]]:
    """One run of the lab in the smoke profile: its variables, what it printed, what it displayed.

    The lab seeds the global generators and chooses torch's threads, as a notebook may; all that is put back.
    """
    matplotlib.use("Agg")
    states = random.getstate(), np.random.get_state(), torch.get_rng_state(), torch.get_num_threads()
    printed, shown = io.StringIO(), []
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.delenv("RL_LLM_PROFILE", raising=False)
        patch.setattr(IPython.display, "display", shown.append)
        patch.setattr(pyplot, "show", lambda: None)  # a window is the one thing that Agg cannot show
        variables = runpy.run_path(str(LAB))
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
    torch.set_num_threads(states[3])
    yield variables, printed.getvalue(), shown
    pyplot.close("all")


def displayed(frames: list[Any], column: str) -> Any:
    """The displayed table that has a column of this name."""
    (frame,) = [frame for frame in frames if column in frame.columns]
    return frame


def test_profile_and_world(lab: tuple[dict[str, Any], str, list[Any]]) -> None:
    """Potentials 0, ¼, ½, ¾, 0; with matched discounts the shaped return is the base return, γ³ = 0.970299."""
    variables, printed, frames = lab
    assert "Профиль: smoke; семена=(1, 2, 3); обновления=8; эпизодов на обновление=16" in printed
    trace = displayed(frames, "потенциал до")
    assert trace["потенциал до"].tolist() == [0.0, 0.25, 0.5, 0.75]
    assert trace["потенциал после"].tolist() == [0.25, 0.5, 0.75, 0.0]
    assert trace["следующее наблюдение"].tolist() == ["clue_red", "key_held", "door_open", "success"]
    assert trace["истинное завершение"].tolist() == [False, False, False, True]
    assert "Сумма базовых наград: 1.0" in printed
    value = float(printed.split("Дисконтированный возврат сформированных наград: ")[1].split()[0])
    assert value == pytest.approx(0.99**3, rel=1e-12)
    assert variables["info"]["stop_reason"] == "collector_limit"
    assert "'истинное завершение': False, 'внешнее усечение': True, 'причина остановки': 'collector_limit'" in printed


def test_masks_and_targets(lab: tuple[dict[str, Any], str, list[Any]]) -> None:
    """B1: 308 tokens, 39 of the policy: dilution 308/39. A1: targets 0 and 0.9 · 0.7 = 0.63."""
    variables, printed, frames = lab
    report = variables["report"]
    assert (report.policy_tokens, report.total_tokens) == (39, 308)
    assert report.dilution_factor == pytest.approx(308 / 39, rel=1e-12)
    assert "'коэффициент разбавления': 7.897" in printed
    assert "39 токенов политики уменьшится в 7.90 раза" in printed
    targets = displayed(frames, "целевая величина")["целевая величина"].tolist()
    assert targets == [0.0, pytest.approx(0.63, rel=1e-12)]


def test_turns(lab: tuple[dict[str, Any], str, list[Any]]) -> None:
    """C1: log-probability −1 and ratio exp 0.15; D1: P(inspect) = .25 + .15; E1: reward 1 after two units of time."""
    _, _, frames = lab
    values = displayed(frames, "величина")["значение"].tolist()
    assert values == pytest.approx([-1.0, 1.161834242728283, 0.40, 0.81], rel=1e-12)


def test_telescoping_shaping_and_groups(lab: tuple[dict[str, Any], str, list[Any]]) -> None:
    """A3 with V_T = 0 and F1 with Φ_T = 0; G1: 1 − p^G − (1−p)^G."""
    _, printed, frames = lab
    assert "Телескопическая проверка: 0.410000 = 0.410000" in printed
    assert "Исходный возврат=0.810000; сформированный возврат=0.810000; формула=0.810000" in printed
    table = displayed(frames, "delta_t")
    assert table["delta_t"].tolist() == pytest.approx([0.05, 0.04, 0.4], rel=1e-12)
    assert table["r_shaped"].tolist() == pytest.approx([0.225, 0.245, 0.45], rel=1e-12)
    groups = displayed(frames, "G=4")
    for _, row in groups.iterrows():
        for size in (4, 8, 16):
            assert row[f"G={size}"] == pytest.approx(1 - row["p"] ** size - (1 - row["p"]) ** size, abs=1e-12)


def test_training_and_the_curve(lab: tuple[dict[str, Any], str, list[Any]]) -> None:
    """8 updates, a row after each (8 // 5 = 1) and one before: −1, 0, …, 7 for either mode of reward."""
    variables, printed, frames = lab
    summary = displayed(frames, "медиана")
    for mode in ("редкая итоговая", "потенциальное формирование"):
        part = summary[summary["режим награды"] == mode]
        assert part["обновление"].tolist() == list(range(-1, 8))
        assert part[["минимум", "медиана", "максимум"]].isin([0.0, 0.5, 1.0]).all(axis=None)
    assert len(variables["models"]) == 6
    assert set(variables["best_metrics"]) >= {"success_rate", "mean_turns", "invalid_action_rate"}
    assert "Лучшая конфигурация для следующей диагностики:" in printed


def test_record(lab: tuple[dict[str, Any], str, list[Any]]) -> None:
    """I1: without versions every turn's is missing, and the message begins as both notebooks expect."""
    variables, printed, _ = lab
    assert "Нарушения корректного контракта: []" in printed
    assert (
        "Нарушения после удаления версии политики: ['отсутствует версия политики для одного или нескольких ходов']"
    ) in printed
    (message,) = variables["broken_violations"]
    assert message.startswith("missing policy versions")
    assert variables["contract"]["policy_versions"], "the copy was broken, not the record"
    report = variables["rollout_report"]
    assert report["target"] == "red"
    assert report["policy_version"] == "m11-notebook-policy"
    assert "Факультативная ветвь отключена." in printed


def test_calls_of_the_english_variant(lab: tuple[dict[str, Any], str, list[Any]]) -> None:
    """The English notebook makes the same calls and prints the objects themselves."""
    variables, _, _ = lab
    report = keydoor.trajectory_mask_report(
        [("system", 44), ("user", 63), ("assistant", 18), ("tool", 162), ("assistant", 21)]
    )
    assert "39" in str(report)
    assert "308" in str(report)
    assert f"{report.dilution_factor:.2f}" == "7.90"
    transitions, _, rollout_report = keydoor.collect_episode(
        variables["best_model"],
        keydoor.KeyDoorAgentEnv(seed=123),
        reward_mode="potential",
        greedy=True,
        target="red",
        policy_version="m11-notebook-policy",
    )
    assert str(rollout_report).startswith("{'target': 'red', 'success': ")
    contract = keydoor.rollout_contract_from_transitions(
        transitions, task_id="m11-keydoor-red", environment_version="1.0", policy_version="m11-notebook-policy"
    )
    assert keydoor.validate_rollout_record(contract) == []
    broken = dict(contract)
    broken["policy_versions"] = {}
    assert keydoor.validate_rollout_record(broken)[0].startswith("missing policy versions")


def test_unknown_profile_stops_the_lab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The variable is read before anything is computed: an unknown profile must not fall back to another."""
    monkeypatch.setenv("RL_LLM_PROFILE", "nonsense")
    with pytest.raises(ValueError, match="RL_LLM_PROFILE должен быть smoke, full или real-model"):
        runpy.run_path(str(LAB))
    assert "Профиль" not in capsys.readouterr().out
