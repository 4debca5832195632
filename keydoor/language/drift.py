"""Retokenisation drift, measured: the model's own free answers, decoded to text and encoded again.

Text has many tokenisations. What a model samples need not be the one that the tokenizer makes of the same text, and a
trainer that passes on text instead of ids scores other tokens than were sampled (:mod:`keydoor.turns`).
"""

from __future__ import annotations

from typing import Any

from keydoor._checks import whole
from keydoor.language.scoring import prompt_ids, situation_prompts
from keydoor.language.tree import TokenTree
from keydoor.language.weights import Loaded


def drift_samples(loaded: Loaded, *, each: int = 5, longest: int = 24, seed: int = 0) -> list[dict[str, Any]]:
    """Free answers in all situations at temperature 1, with what decoding and encoding makes of them.

    Args:
        loaded: the model.
        each: answers in each of the fifteen situations, at least 1.
        longest: tokens of an answer, at least 1.
        seed: of the sampling, at least 0.

    Returns:
        Rows, one for each answer, with ``situation``, ``text``, the sampled ``ids``, the ids ``again``, ``pieces`` and
        ``pieces_again`` of both, and their log-probabilities ``logprob`` and ``logprob_again`` under the model.

    Raises:
        ValueError: a number is below 1.

    Example:
        >>> drift_samples(None, each=0)
        Traceback (most recent call last):
        ...
        ValueError: each is 0; expected an integer not below 1
    """
    import torch

    whole(each, "each", least=1)
    whole(longest, "longest", least=1)
    model, tokenizer = loaded.model, loaded.tokenizer
    end = tokenizer.eos_token_id
    rows: list[dict[str, Any]] = []
    pairs: list[tuple[list[int], list[int]]] = []
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(whole(seed, "seed", least=0, bits=63))
        for situation, chat in enumerate(situation_prompts()):
            question = prompt_ids(tokenizer, chat)
            given = torch.tensor([question])
            written = model.generate(
                given,
                attention_mask=torch.ones_like(given),
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                num_return_sequences=each,
                max_new_tokens=longest,
                pad_token_id=end,
            )
            for line in written[:, len(question) :].tolist():
                ids = line[: line.index(end)] if end in line else line
                if not ids:
                    continue  # the model ended its turn at once: there is nothing to decode
                text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
                again = list(tokenizer(text, add_special_tokens=False)["input_ids"])
                rows.append({"situation": situation, "text": text, "ids": ids, "again": again})
                pairs += [(question, ids), (question, again)]
        scored = TokenTree(pairs).logprobs(model).double().tolist()
    for number, row in enumerate(rows):
        row["pieces"] = [tokenizer.decode([token]) for token in row["ids"]]
        row["pieces_again"] = [tokenizer.decode([token]) for token in row["again"]]
        row["logprob"], row["logprob_again"] = (round(x, 4) for x in scored[2 * number : 2 * number + 2])
    return rows
