"""TRL's own trainer on the text environment: a script in the place of a model, everything else the trainer's.

The versions are pinned; these tests say what the pinned version does, and fail where another one does otherwise.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

from keydoor.groups import group_advantages
from keydoor.language.environment import TextKeyDoorEnv
from keydoor.language.scripted import call_text, run_script
from keydoor.language.weights import WeightsError
from keydoor.masks import trajectory_mask_report
from tests.language.test_environment import SeedKeyDoorEnv

pytestmark = pytest.mark.language

if importlib.util.find_spec("trl"):
    from tests.language import tiny

EXPERT = ("inspect", "pickup_red", "open_red", "finish")
GOOD = [*map(call_text, EXPERT), "Done."]
BAD = [call_text("finish"), "Done."]


def text(ids: list[int]) -> str:
    return str(tiny.tokenizer().decode(ids))


@pytest.fixture(scope="module")
def group() -> Any:
    """Four episodes of one task: an expert, one that finishes at once, one that calls nothing, and a broken call."""
    broken = '<tool_call>\n{"name": "inspect", "arguments": {}\n</tool_call>'
    return run_script(tiny.tokenizer(), [GOOD, BAD, ["I do not know."], [broken, "never written"]])


def test_rewards_and_advantages_are_those_of_the_package(group: Any) -> None:
    assert group.rewards == [1.0, 0.0, 0.0, 0.0]
    expected = group_advantages(group.rewards, ddof=1, epsilon=1e-4)
    assert group.advantages == pytest.approx(expected, rel=1e-5)


def test_the_trainers_mask_is_the_provenance_token_by_token(group: Any) -> None:
    """What the script wrote is in the loss, and nothing else: tools, templates and empty thinking are not."""
    for sampled, mask, ids in zip(group.sampled, group.trl_mask, group.completion_ids, strict=True):
        assert mask == sampled
        assert len(mask) == len(ids)
    own = [token for token, keep in zip(group.completion_ids[0], group.sampled[0], strict=True) if keep]
    assert text(own) == "<|im_end|>".join(GOOD) + "<|im_end|>"
    report = trajectory_mask_report(
        [("assistant", sum(group.sampled[0]), True), ("tool", len(own) and group.sampled[0].count(0), False)]
    )
    assert report.policy_tokens == len(own)
    assert report.dilution_factor > 1.5


def test_a_mask_by_role_would_take_more(group: Any) -> None:
    """The foil: everything between the assistant's header and the end of its turn, as a template marks it."""
    ids = group.completion_ids[0]
    tokenizer = tiny.tokenizer()
    header = tokenizer("<|im_start|>assistant\n", add_special_tokens=False)["input_ids"]
    end, inside, by_role = tokenizer.eos_token_id, True, []
    for place, token in enumerate(ids):
        by_role.append(int(inside))
        if token == end:
            inside = False
        elif list(ids[max(0, place - len(header) + 1) : place + 1]) == header:
            inside = True
    assert sum(by_role) > sum(group.sampled[0])
    assert all(role >= own for role, own in zip(by_role, group.sampled[0], strict=True))


def test_answers_of_the_tools_and_the_first_observation_reach_the_model(group: Any) -> None:
    assert "Both are locked." in text(group.prompt_ids[0])
    assert "finish.\nYou are in a room" in text(group.prompt_ids[0]), "appended as it is: it brings its own line break"
    told = text(group.completion_ids[0])
    for seen in ("The target door is red.", "You are holding a key.", "The door is open.", "Success"):
        assert f"<tool_response>\n{seen}" in told


def test_a_broken_call_ends_the_episode_as_text(group: Any) -> None:
    assert "<tool_response>" not in text(group.completion_ids[3])
    assert "never written" not in text(group.completion_ids[3])
    assert group.environments[3]._turns == 0


def test_several_calls_in_one_turn_are_all_made_in_their_order() -> None:
    at_once = ["\n".join(map(call_text, EXPERT)), "Done."]
    found = run_script(tiny.tokenizer(), [at_once, BAD])
    assert found.rewards == [1.0, 0.0]
    assert found.trl_mask == found.sampled
    assert text(found.completion_ids[0]).count("<tool_response>") == 4


def test_calls_after_the_end_and_unknown_ones_come_back_as_errors() -> None:
    unknown = '<tool_call>\n{"name": "fly", "arguments": {}}\n</tool_call>'
    wrong = '<tool_call>\n{"name": "pickup", "arguments": {"color": "green"}}\n</tool_call>'
    empty = '<tool_call>\n{"name": "pickup", "arguments": {}}\n</tool_call>'
    greedy = [call_text("finish"), *map(call_text, EXPERT), "Done."]
    found = run_script(tiny.tokenizer(), [[unknown, wrong, empty, *GOOD], greedy])
    first, second = map(text, found.completion_ids)
    assert "{'error': 'Tool fly not found.'}" in first
    assert "expected one of red, blue" in first
    assert "missing 1 required positional argument" in first
    assert second.count("the episode is over (wrong_finish)") == 4
    assert found.rewards == [1.0, 0.0], "what is no action takes no turn; what comes after the end is not paid"


def test_an_answer_that_does_not_fit_is_dropped_although_the_world_has_moved() -> None:
    """`max_completion_length` is the budget of the whole episode, and the environment is not told of the end."""
    whole = run_script(tiny.tokenizer(), [GOOD, BAD])
    first = len(tiny.tokenizer()(GOOD[0], add_special_tokens=False)["input_ids"]) + 1
    cut = run_script(tiny.tokenizer(), [GOOD, BAD], longest=first + 3)
    assert len(whole.completion_ids[0]) > first + 3
    assert cut.completion_ids[0] == whole.completion_ids[0][:first]
    assert "<tool_response>" not in text(cut.completion_ids[0])
    assert cut.environments[0]._turns == 1, "inspect was carried out, and its answer was never read"
    assert cut.rewards == [0.0, 0.0]
    assert cut.trl_mask == cut.sampled


def test_the_last_turn_is_cut_where_the_budget_ends() -> None:
    whole = run_script(tiny.tokenizer(), [GOOD, BAD])
    length = len(whole.completion_ids[0]) - 1
    cut = run_script(tiny.tokenizer(), [GOOD, BAD], longest=length)
    assert cut.completion_ids[0] == whole.completion_ids[0][:length]
    assert cut.trl_mask == cut.sampled


class WithHelper(TextKeyDoorEnv):
    """A pitfall: a public method that was meant for tests."""

    def peek(self) -> str:
        """Say the target."""
        return "red"


class Inherited(WithHelper):
    """Nothing of its own."""


class NoDocstring(TextKeyDoorEnv):
    """A pitfall: a tool without a description."""

    def shout(self, word: str) -> str:
        return word


class NoArgument(TextKeyDoorEnv):
    """A pitfall: an argument that the docstring does not describe."""

    def shout(self, word: str) -> str:
        """Shout."""
        return word


class NoHint(TextKeyDoorEnv):
    """A pitfall: an argument without a type."""

    def shout(self, word) -> str:  # type: ignore[no-untyped-def]
        """Shout.

        Args:
            word: what to shout.
        """
        return str(word)


@pytest.mark.parametrize("factory", [WithHelper, Inherited])
def test_every_public_method_is_a_tool_inherited_ones_too(factory: type) -> None:
    peek = '<tool_call>\n{"name": "peek", "arguments": {}}\n</tool_call>'
    found = run_script(tiny.tokenizer(), [[peek, "Done."], BAD], factory=factory)
    assert '"name": "peek"' in text(found.prompt_ids[0]), "the model is offered it"
    assert "<tool_response>\nred" in text(found.completion_ids[0]), "and may call it"
    ours = run_script(tiny.tokenizer(), [[peek, "Done."], BAD])
    assert "Tool peek not found." in text(ours.completion_ids[0])


@pytest.mark.parametrize("factory", [NoDocstring, NoArgument, NoHint])
def test_a_tool_that_is_not_described_is_found_out_in_training_and_not_before(factory: type) -> None:
    with pytest.raises(Exception, match=r"shout|docstring|type hint") as error:
        run_script(tiny.tokenizer(), [GOOD, BAD], factory=factory)
    assert type(error.value).__name__ in ("DocstringParsingException", "TypeHintParsingException")
    assert "_generate_and_score_completions" in [entry.name for entry in error.traceback]


class Documented(SeedKeyDoorEnv):
    """The seed's class with what TRL wants of a tool."""


def _document() -> None:
    for name in ("inspect", "finish"):
        getattr(SeedKeyDoorEnv, name).__doc__ = f"{name.title()}."
    for name in ("pickup", "open_door"):
        getattr(SeedKeyDoorEnv, name).__doc__ = f"{name.title()}.\n\nArgs:\n    color: A colour."


@pytest.mark.parametrize("target", ["red", "blue"])
def test_the_trainer_pays_the_seeds_class_for_ignoring_the_clue(target: str) -> None:
    """The broken twin in the trainer itself: a policy that reads `failure` and goes on wins with either target."""
    _document()
    tries = [call_text("inspect"), call_text("pickup_red"), call_text("open_red"), call_text("finish")]
    again = [call_text("pickup_blue"), call_text("open_blue"), call_text("finish")]
    script = [*tries, *(again if target == "blue" else ()), "Done."]
    paid = {}
    for factory in (Documented, TextKeyDoorEnv):
        found = run_script(tiny.tokenizer(), [script, BAD], target=target, factory=factory)
        paid[factory] = found.rewards[0]
    assert paid[Documented] == 1.0
    assert paid[TextKeyDoorEnv] == float(target == "red")


def test_a_row_without_a_target_is_refused_by_the_environment() -> None:
    with pytest.raises(ValueError, match="target is 'green'"):
        run_script(tiny.tokenizer(), [GOOD, BAD], target="green")


def test_instances_are_made_once_and_reset_for_each_batch() -> None:
    made: list[TextKeyDoorEnv] = []

    def factory() -> TextKeyDoorEnv:
        made.append(TextKeyDoorEnv())
        return made[-1]

    found = run_script(tiny.tokenizer(), [GOOD, BAD, BAD], factory=factory)
    assert len(made) == 3
    assert all(any(env is one for one in made) for env in found.environments)


def test_a_template_without_tools_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """SmolLM2's own template drops calls: TRL refuses it, and so do we, with a way out."""
    from keydoor.language.real_model import RealModelSettings, make_trainer

    loaded = tiny.loaded()
    plain = "{% for m in messages %}{{ m['role'] + ': ' + (m['content'] or '') }}{% endfor %}"
    monkeypatch.setattr(loaded.tokenizer, "chat_template", plain)
    with pytest.raises(WeightsError, match=r"no place for tools.*python -m keydoor\.language train"):
        make_trainer(RealModelSettings(cpu=True), model=loaded.model, tokenizer=loaded.tokenizer)


def _raises(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_group_needs_two() -> None:
    _raises(lambda: run_script(tiny.tokenizer(), [GOOD]), "at least two episodes")
