"""What an import costs: ``import keydoor`` and the modules from rules to records need the standard library alone."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import keydoor

HEAVY = ("torch", "gymnasium", "numpy", "pandas", "matplotlib")
LIGHT_MODULES = (
    *("rules", "returns", "shaping", "turns", "masks", "groups", "records", "profiles"),
    *("semimarkov", "telescopes", "weights", "exact", "optima", "summaries"),
)

WITHOUT = """
import importlib.abc, json, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ImportError(name + " is not installed here")
sys.meta_path.insert(0, Refuse())
"""


def loaded_after(statement: str) -> list[str]:
    """Which of the heavy libraries a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps([n for n in {HEAVY!r} if n in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_import_keydoor_is_light() -> None:
    """A chapter's kernel and a reader's browser start with this line."""
    assert loaded_after("import keydoor; dir(keydoor); keydoor.__version__") == []


def test_the_check_would_see_a_heavy_import() -> None:
    """The foil: the same check on a name that does need a heavy library reports it."""
    assert loaded_after("import keydoor; keydoor.KeyDoorAgentEnv") == ["gymnasium", "numpy"]
    assert "torch" in loaded_after("import keydoor; keydoor.RecurrentActorCritic")


def test_light_modules_import_nothing_heavy() -> None:
    modules = "; ".join(f"import keydoor.{name}" for name in LIGHT_MODULES)
    assert loaded_after(modules) == []


def test_light_modules_and_the_environment_work_where_nothing_is_installed() -> None:
    """As in a browser: numpy, gymnasium and torch cannot be imported, and the arithmetic and the world still run."""
    program = WITHOUT.format(blocked=set(HEAVY)) + (
        "from keydoor import KeyDoorAgentEnv, discounted_return, validate_rollout_record\n"
        "from keydoor.profiles import current_profile\n"
        "env = KeyDoorAgentEnv(seed=0)\n"
        "env.reset(target='red')\n"
        "rewards = [env.step(a)[1] for a in ('inspect', 'pickup_red', 'open_red', 'finish')]\n"
        "print(json.dumps([discounted_return(rewards, 0.5), len(validate_rollout_record(None)) > 0]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [0.125, True]  # reward 1 at turn 3: 0.5 ** 3


def test_missing_library_is_named_where_it_is_needed() -> None:
    program = WITHOUT.format(blocked={"torch"}) + "from keydoor import train_actor_critic\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "torch is not installed here" in done.stderr


@pytest.mark.parametrize("name", keydoor.__all__)
def test_every_public_name_loads(name: str) -> None:
    value = getattr(keydoor, name)
    assert value is getattr(keydoor, name)
    assert name in dir(keydoor)


def test_all_is_complete_and_unknown_names_are_refused() -> None:
    """The names of the lab, from the imports at the head of tests/data/seed_lab_ru.py, and the parser."""
    lab = {
        *("collector_target", "discounted_return", "discounted_td_sum", "informative_group_probability"),
        *("macro_action_logprob", "potential_shaping", "semantic_action_probability", "semi_markov_return"),
        *("shaped_return_identity", "td_residuals", "trajectory_mask_report", "turn_probability_ratio"),
        *("validate_rollout_record", "ACTIONS", "KeyDoorAgentEnv", "RecurrentActorCritic", "collect_episode"),
        *("evaluate_policy", "rollout_contract_from_transitions", "train_actor_critic", "parse_action"),
    }
    assert lab <= set(keydoor.__all__)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = keydoor.no_such_name
