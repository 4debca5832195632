"""Learning: the loss on cells is the loss over turns, runs repeat to the bit, and an interrupted one goes on."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import random
from pathlib import Path

import pytest
import torch

from keydoor.groups import group_advantages
from keydoor.language.adapters import adapt, adapter_state, forget, load_adapter, save_adapter, set_adapter_state
from keydoor.language.learning import LanguageSettings, stage_updates, train
from keydoor.language.record import told
from keydoor.language.rollouts import Rollout, cell_weights, clipped_loss, play_group, turn_advantages
from keydoor.language.scoring import ActionScorer, situation_prompts
from keydoor.language.tables import exact_success
from keydoor.records import validate_rollout_record
from keydoor.weights import clipped_surrogate

UNIFORM = [[1 / 6] * 6] * 15
SHORT = LanguageSettings(updates=3, group_size=64, layers=1, learning_rate=0.05)

if importlib.util.find_spec("transformers"):
    from tests.language import tiny


def logits(seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.log_softmax(torch.randn(15, 6, dtype=torch.float64), dim=-1)


@pytest.mark.parametrize("mode", ["sparse", "potential"])
def test_the_loss_on_cells_is_the_clipped_surrogate_of_every_turn(mode: str) -> None:
    """Turn by turn with the package's own functions, on ratios far outside of the clip."""
    now, then = logits(0), logits(1)
    group = play_group(then.exp().tolist(), "red", 300, random.Random(0), rules="soft", horizon=6)
    credit = turn_advantages(group, reward_mode=mode)
    ratio = (now - then).exp()
    expected = 0.0
    for one, numbers in zip(group, credit, strict=True):
        for row, action, advantage in zip(one.rows, one.actions, numbers, strict=True):
            w = ratio[row, action].item()
            expected += clipped_surrogate(w, advantage, epsilon_low=0.2, epsilon_high=0.2)
    found = clipped_loss(now, then, cell_weights(group, credit), 300, 0.2)
    assert found.item() == pytest.approx(-expected / 300)


def test_all_turns_of_a_rollout_get_the_groups_advantage() -> None:
    group = play_group(UNIFORM, "blue", 2000, random.Random(3), rules="soft", horizon=6)
    credit = turn_advantages(group)
    assert sum(one.reward for one in group) > 0
    expected = group_advantages([one.reward for one in group])
    assert [row[0] for row in credit] == expected
    assert all(len({*row}) == 1 for row in credit)
    bare = turn_advantages(group, scale=False)
    assert bare[0][0] == pytest.approx(group[0].reward - sum(one.reward for one in group) / 2000)


def test_a_group_without_variation_teaches_nothing() -> None:
    lost = [Rollout((0,), (5,), 0.0, (0.0,))] * 4
    assert not cell_weights(lost, turn_advantages(lost)).any()
    won = [Rollout((0,), (0,), 1.0, (1.0,))] * 4
    assert not cell_weights(won, turn_advantages(won)).any()


def test_rollouts_are_the_policys_and_the_worlds() -> None:
    """Success in samples of uniform play against the exact value, within five deviations; every record is valid."""
    size = 20000
    for target in ("red", "blue"):
        group = play_group(UNIFORM, target, size, random.Random(1), rules="soft", horizon=6)
        p = exact_success(UNIFORM, rules="soft", horizon=6).by_target[target]
        share = sum(one.reward for one in group) / size
        assert abs(share - p) < 5 * (p * (1 - p) / size) ** 0.5
        for one in group[:50]:
            found = told(one, target, UNIFORM, "soft", 6, "uniform")
            assert validate_rollout_record(found["record"]) == []
            assert sum(found["record"]["base_rewards"]) == one.reward


def test_shaped_rewards_telescope_to_the_reward() -> None:
    """At a discount of 1 the shaped return of an episode is its return: the potential at the start is 0."""
    for one in play_group(UNIFORM, "red", 500, random.Random(2), rules="standard", horizon=8):
        assert sum(one.shaped) == pytest.approx(one.reward)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rules": "hard"}, "rules is 'hard'"),
        ({"reward_mode": "dense"}, "reward_mode is 'dense'"),
        ({"horizon": 3}, "horizon is 3"),
        ({"group_size": 1}, "group_size is 1"),
        ({"updates": 0}, "updates is 0"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"clip": float("nan")}, "clip is nan"),
        ({"scale": 1}, "scale is 1"),
        ({"forms": ()}, "forms is"),
        ({"forms": ("xml",)}, "a form is 'xml'"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LanguageSettings(**wrong)  # type: ignore[arg-type]


@pytest.mark.language
def test_the_same_seed_gives_the_same_run_to_the_bit_and_another_one_another() -> None:
    runs = [train(tiny.loaded(), SHORT, seed=seed) for seed in (1, 1, 2)]
    one, again, other = ([{k: v for k, v in row.items() if k != "cpu_seconds"} for row in run.curve] for run in runs)
    assert one == again
    assert runs[0].logprobs == runs[1].logprobs
    assert one != other
    assert [row["update"] for row in one] == [0, 1, 2, 3]
    assert runs[0].updates == stage_updates(SHORT) == {"before": 0, "half": 1, "after": 3}


@pytest.mark.language
def test_training_raises_the_exact_success() -> None:
    """A model of random weights has nothing to copy from, and still learns which strings pay; soft rules, long task."""
    settings = LanguageSettings(
        rules="soft", horizon=10, updates=15, group_size=512, layers=2, rank=4, learning_rate=0.01
    )
    run = train(tiny.loaded(), settings, seed=0)
    assert run.curve[-1]["success"] > 1.3 * run.curve[0]["success"] > 0


@pytest.mark.language
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole = train(tiny.loaded(), SHORT, seed=4)
    file = tmp_path / "run.checkpoint"

    def stop(row: dict[str, object]) -> None:
        if row["update"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tiny.loaded(), SHORT, seed=4, checkpoint=file, progress=stop)
    model = tiny.loaded()
    resumed = train(model, SHORT, seed=4, checkpoint=file)
    assert resumed.logprobs == whole.logprobs
    assert [row["success"] for row in resumed.curve] == [row["success"] for row in whole.curve]
    assert list(tmp_path.iterdir()) == [file], "no temporary file is left"
    for settings, seed in ((SHORT, 5), (dataclasses.replace(SHORT, clip=0.3), 4)):
        with pytest.raises(ValueError, match=r"in the checkpoint .*run\.checkpoint"):
            train(tiny.loaded(), settings, seed=seed, checkpoint=file)
    file.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="expected a checkpoint of this program"):
        train(tiny.loaded(), SHORT, seed=4, checkpoint=file)


@pytest.mark.language
def test_fresh_adapters_change_nothing_and_taking_them_out_gives_the_model_back(tmp_path: Path) -> None:
    loaded = tiny.loaded()
    names = [name for name, _ in loaded.model.named_parameters()]
    base = ActionScorer(loaded.model, loaded.tokenizer, situation_prompts()).table()
    trained = adapt(loaded.model, rank=2, layers=1, seed=0)
    assert len(trained) == 2 * 3, "two matrices for each of three targets, in one layer"
    assert ActionScorer(loaded.model, loaded.tokenizer, situation_prompts()).table() == base
    with torch.no_grad():
        for weights in trained:
            weights += 0.5
    changed = ActionScorer(loaded.model, loaded.tokenizer, situation_prompts()).table()
    assert changed != base
    file = tmp_path / "adapter.safetensors"
    save_adapter(file, loaded.model, {"settings": {"rank": 2, "layers": 1}, "seed": 0})
    forget(loaded.model)
    assert ActionScorer(loaded.model, loaded.tokenizer, situation_prompts()).table() == base
    assert [name for name, _ in loaded.model.named_parameters()] == names
    assert adapter_state(loaded.model) == {}
    assert load_adapter(file, loaded.model)["seed"] == 0
    assert ActionScorer(loaded.model, loaded.tokenizer, situation_prompts()).table() == changed
    adapt(loaded.model, rank=3, layers=1, seed=0)
    with pytest.raises(ValueError, match="the adapters of the model, by name and shape"):
        set_adapter_state(loaded.model, {})
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"broken\.safetensors.*expected a file of adapters"):
        load_adapter(broken, loaded.model)
    with pytest.raises(ValueError, match="layers is 3; expected at most 2"):
        adapt(loaded.model, rank=1, layers=3, seed=0)


@pytest.mark.weights
def test_smollm2_learns_on_standard_rules() -> None:
    """The short form of the chapter's run: four of the book's forty updates already lift the exact success."""
    from keydoor.language.results import stored
    from keydoor.language.weights import load

    torch.set_num_threads(1)
    settings = LanguageSettings()
    rows = []

    class Enough(Exception):
        pass

    def stop(row: dict[str, object]) -> None:
        rows.append(row)
        if row["update"] == 4:
            raise Enough

    with pytest.raises(Enough):
        train(load(), settings, seed=1, progress=stop)
    kept = next(run for run in stored("training")["runs"] if run["label"] == "standard" and run["seed"] == 1)
    for found, old in itertools.islice(zip(rows, kept["curve"], strict=False), 3):
        assert found["success"] == pytest.approx(old["success"], rel=0.02), "other processors round otherwise"
    assert rows[-1]["success"] > 1.3 * rows[0]["success"]
