"""The policy that scores action strings: a language model as a table of log-probabilities, by situation and action.

The model is not asked to write. Each action's strings are put behind each prompt, the log-probabilities of their
tokens are added up (the token that ends the turn included, since it would have been sampled too), and the strings that
mean one action are summed. See :mod:`keydoor.language.tables` for what becomes of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from keydoor._checks import one_of, refuse
from keydoor.language.tables import SITUATIONS
from keydoor.language.texts import FORMS, messages, spelling
from keydoor.language.tree import TokenTree
from keydoor.rules import ACTIONS

Chat = list[dict[str, str]]
"""Messages with ``role`` and ``content``."""


def prompt_ids(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """A question as the model gets it: the messages in the chat template, up to where the answer begins.

    Args:
        tokenizer: a tokenizer with a chat template.
        messages: the question, at least one message.

    Returns:
        Token ids.

    Raises:
        ValueError: there is no message.

    Example:
        >>> prompt_ids(None, [])
        Traceback (most recent call last):
        ...
        ValueError: messages is []; expected at least one message
    """
    if not messages:
        refuse("messages", messages, "at least one message")
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, enable_thinking=False)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def answer_ids(tokenizer: Any, text: str) -> list[int]:
    """An answer as the model would write it: the string, and the token that ends the turn.

    Args:
        tokenizer: a tokenizer with an end token.
        text: the answer.

    Returns:
        Token ids.

    Raises:
        ValueError: the text is empty.

    Example:
        >>> answer_ids(None, "")
        Traceback (most recent call last):
        ...
        ValueError: text is ''; expected an answer
    """
    if not text:
        refuse("text", text, "an answer")
    return [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]


class ActionScorer:
    """Log-probabilities of the six actions after each of some prompts; the layers that stay frozen run once.

    Args:
        model: a causal language model of the Llama or Qwen family.
        tokenizer: its tokenizer.
        prompts: the questions, at least one.
        forms: which of :data:`keydoor.language.texts.FORMS` are scored for each action.
        names: other names for the colours in the action strings.
        frozen: how many of the first layers will not change, at least 0.

    Raises:
        ValueError: no prompt, no form, an unknown form or colour, or more frozen layers than there are.

    Example:
        >>> ActionScorer(None, None, [])
        Traceback (most recent call last):
        ...
        ValueError: prompts is []; expected at least one question
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        prompts: Sequence[Sequence[Mapping[str, str]]],
        *,
        forms: Sequence[str] = FORMS,
        names: Mapping[str, str] | None = None,
        frozen: int = 0,
    ) -> None:
        if not prompts:
            refuse("prompts", prompts, "at least one question")
        if not forms:
            refuse("forms", forms, f"at least one of {', '.join(FORMS)}")
        self.strings = [
            [spelling(action, form=one_of(form, "form", FORMS), names=names) for form in forms] for action in ACTIONS
        ]
        """The strings of each action, in the order of the forms."""
        answers = [answer_ids(tokenizer, string) for row in self.strings for string in row]
        questions = [prompt_ids(tokenizer, chat) for chat in prompts]
        self.model, self.frozen = model, frozen
        self.tree = TokenTree([(question, answer) for question in questions for answer in answers])
        """The prompts and strings as one tree."""
        self._shape = (len(prompts), len(ACTIONS), len(forms))
        self._trunk = self.tree.trunk(model, frozen)

    def string_logprobs(self) -> Tensor:
        """The log-probability of each string.

        Returns:
            A tensor of shape (prompts, actions, forms), with a gradient where gradients are on.
        """
        return self.tree.logprobs(self.model, self._trunk, self.frozen).view(self._shape)

    def logprobs(self) -> Tensor:
        """The log-probability of each action, summed over its strings.

        Returns:
            A tensor of shape (prompts, actions), with a gradient where gradients are on.
        """
        return torch.logsumexp(self.string_logprobs(), dim=-1)

    def table(self) -> list[list[float]]:
        """The same as plain numbers, for :mod:`keydoor.language.tables`.

        Returns:
            Rows of six log-probabilities.
        """
        with torch.no_grad():
            found: list[list[float]] = self.logprobs().double().tolist()
        return found


def situation_prompts(
    *, language: str = "en", wording: str = "plain", names: Mapping[str, str] | None = None
) -> list[list[dict[str, str]]]:
    """The fifteen prompts of :data:`keydoor.language.tables.SITUATIONS`, in their order.

    Args:
        language: one of :data:`keydoor.language.texts.LANGUAGES`.
        wording: one of :data:`keydoor.language.texts.WORDINGS`.
        names: other names for the colours.

    Returns:
        Fifteen lists of messages.

    Raises:
        ValueError: an unknown language, wording or colour.

    Example:
        >>> len(situation_prompts())
        15
    """
    return [messages(situation, language=language, wording=wording, names=names) for situation in SITUATIONS]
