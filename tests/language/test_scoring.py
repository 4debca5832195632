"""Scores of strings: the tree of tokens against the plain model, sequence by sequence."""

from __future__ import annotations

import importlib.util
import math

import pytest
import torch

from keydoor.language.scoring import ActionScorer, answer_ids, prompt_ids, situation_prompts
from keydoor.language.tables import action_masses
from keydoor.language.texts import FORMS, history_messages
from keydoor.language.tree import TokenTree
from keydoor.rules import ACTIONS

pytestmark = pytest.mark.language

if importlib.util.find_spec("transformers"):
    from tests.language import tiny


def plain_logprob(model, prompt: list[int], answer: list[int]) -> float:  # type: ignore[no-untyped-def]
    """The definition: one sequence, the model's own forward pass, a sum over the answer's tokens."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + answer])).logits[0].double()
    logprobs = torch.log_softmax(logits, dim=-1)
    return math.fsum(logprobs[len(prompt) + i - 1, token].item() for i, token in enumerate(answer))


def test_a_tree_gives_what_each_sequence_alone_would_give() -> None:
    """Prompts and whole histories of different lengths, with actions in all spellings."""
    loaded = tiny.loaded()
    chats = [
        *situation_prompts()[:2],
        history_messages(("room",)),
        history_messages(("room", "inspect", "clue_red", "pickup_red", "key_held")),
    ]
    scorer = ActionScorer(loaded.model, loaded.tokenizer, chats, forms=FORMS)
    with torch.no_grad():
        found = scorer.string_logprobs()
    assert found.shape == (4, 6, 3)
    for p, chat in enumerate(chats):
        for a in (0, 2, 5):
            for f in range(3):
                expected = plain_logprob(
                    loaded.model,
                    prompt_ids(loaded.tokenizer, chat),
                    answer_ids(loaded.tokenizer, scorer.strings[a][f]),
                )
                assert found[p, a, f].item() == pytest.approx(expected, abs=2e-4)


def test_the_tree_holds_each_token_once() -> None:
    """Far fewer tokens than the sequences have together, and never two children with one token."""
    loaded = tiny.loaded()
    scorer = ActionScorer(loaded.model, loaded.tokenizer, situation_prompts(), forms=("name",))
    pairs = [
        (prompt_ids(loaded.tokenizer, chat), answer_ids(loaded.tokenizer, row[0]))
        for chat in situation_prompts()
        for row in scorer.strings
    ]
    assert len(scorer.tree.ids) * 10 < sum(len(a) + len(b) - 1 for a, b in pairs)
    prefixes = {tuple((a + b)[: k + 1]) for a, b in pairs for k in range(len(a) + len(b) - 1)}
    assert len(scorer.tree.ids) == len(prefixes)


def test_a_mask_of_a_plain_sequence_would_be_seen() -> None:
    """The foil: with the usual triangle as its mask the tree mixes branches, and the numbers are others."""
    loaded = tiny.loaded()
    tree = TokenTree([([1, 2, 3], [4, 5]), ([1, 2, 6], [4, 7]), ([1, 8], [9, 5])])
    with torch.no_grad():
        right = tree.logprobs(loaded.model)
        tree.mask = torch.ones_like(tree.mask).tril()
        wrong = tree.logprobs(loaded.model)
    assert (right - wrong).abs().max() > 1e-3


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_layers_that_run_once_change_nothing_and_gradients_flow_through_the_others(frozen: int) -> None:
    loaded = tiny.loaded()
    whole, cached = (
        ActionScorer(loaded.model, loaded.tokenizer, situation_prompts(), forms=("name",), frozen=n)
        for n in (0, frozen)
    )
    assert torch.allclose(whole.logprobs(), cached.logprobs(), atol=1e-5)
    cached.logprobs().sum().backward()
    touched = {
        name.split(".")[2]
        for name, p in loaded.model.named_parameters()
        if ".layers." in name and p.grad is not None and p.grad.abs().sum() > 0
    }
    assert touched == {str(layer) for layer in range(frozen, 2)}


def test_actions_are_sums_over_spellings_as_the_package_sums_them() -> None:
    loaded = tiny.loaded()
    scorer = ActionScorer(loaded.model, loaded.tokenizer, situation_prompts()[:2])
    with torch.no_grad():
        strings = scorer.string_logprobs().double().tolist()
    for row, table in zip(strings, scorer.table(), strict=True):
        flat = {s: x for texts, xs in zip(scorer.strings, row, strict=True) for s, x in zip(texts, xs, strict=True)}
        masses = action_masses(flat)
        assert [masses[action] for action in ACTIONS] == pytest.approx(table, abs=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, t: ActionScorer(m, t, []), "at least one question"),
        (lambda m, t: ActionScorer(m, t, situation_prompts(), forms=()), "at least one of name, json, tool"),
        (lambda m, t: ActionScorer(m, t, situation_prompts(), forms=("xml",)), "form is 'xml'"),
        (lambda m, t: ActionScorer(m, t, situation_prompts(), frozen=3), "frozen|layers is 3"),
        (lambda m, t: TokenTree([]), "at least one pair"),
        (lambda m, t: TokenTree([([], [1])]), r"sequences\[0\]"),
        (lambda m, t: TokenTree([([1], [])]), r"sequences\[0\]"),
        (lambda m, t: answer_ids(t, ""), "an answer"),
    ],
)
def test_bad_input_is_refused(call, message: str) -> None:  # type: ignore[no-untyped-def]
    loaded = tiny.loaded()
    with pytest.raises(ValueError, match=message):
        call(loaded.model, loaded.tokenizer)
