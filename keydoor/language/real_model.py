"""The profile ``real-model``: Qwen3-0.6B in the text environment, trained by TRL's ``GRPOTrainer`` on a GPU.

The settings are those of the seed lab (four rollouts of a task, 20 steps, 1,024 tokens for a whole episode, no
thinking). The path was run with random weights and on a CPU; **the weights of Qwen3-0.6B were not run** by the authors
of this book, who had neither a hub nor a GPU. Where something is missing, :func:`obstacles` says what, and what works
instead.

Several GPUs and machines go through ``accelerate``, with the files in ``keydoor/language/accelerate``::

    accelerate launch --config_file $(python -m keydoor.language accelerate several_gpus) -m keydoor.language real-model
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from keydoor._checks import finite, flag, one_of, refuse, whole
from keydoor.language.environment import TextKeyDoorEnv
from keydoor.language.texts import LANGUAGES, task_text
from keydoor.language.weights import WeightsError, enough_memory, require
from keydoor.rules import COLOURS, RULE_SETS

MODEL = "Qwen/Qwen3-0.6B"
"""What is trained unless a folder is named."""

PARAMETERS = 0.6e9
"""Its number of weights, roughly; for the estimate of memory."""

INSTEAD = "the same world on a CPU, with SmolLM2-135M and action strings: python -m keydoor.language train"
"""What works without a GPU and without these weights."""

LAUNCHES = ("one_gpu", "several_gpus", "several_machines")
"""The configurations of accelerate that come with the package."""


@dataclass(frozen=True)
class RealModelSettings:
    """Settings of the profile.

    Raises:
        ValueError: a setting is outside of its range.

    Example:
        >>> RealModelSettings().num_generations, RealModelSettings().max_completion_length
        (4, 1024)
        >>> RealModelSettings(num_generations=1)
        Traceback (most recent call last):
        ...
        ValueError: num_generations is 1; expected an integer not below 2
    """

    model: str = MODEL
    """A folder with the weights, or a name that the cache of the hub holds."""
    output: str = "keydoor-real-model"
    """Folder for checkpoints and the log."""
    rules: str = "standard"
    """Rule set, one of :data:`keydoor.rules.RULE_SETS`."""
    horizon: int = 8
    """Turns that the task allows, at least 4."""
    language: str = "en"
    """Language of task and observations, one of :data:`keydoor.language.texts.LANGUAGES`."""
    num_generations: int = 4
    """Rollouts of a task, at least 2."""
    max_steps: int = 20
    """Steps of the trainer, at least 1."""
    max_completion_length: int = 1024
    """Tokens of a whole episode, answers of the tools included, at least 1."""
    learning_rate: float = 1e-6
    """Step size, positive."""
    save_steps: int = 5
    """A checkpoint after so many steps, at least 1."""
    seed: int = 0
    """Seed, at least 0."""
    vllm: bool = False
    """Whether vLLM generates, where it is installed."""
    cpu: bool = False
    """Whether to go on without a GPU: for models that are tiny."""

    def __post_init__(self) -> None:
        one_of(self.rules, "rules", RULE_SETS)
        one_of(self.language, "language", LANGUAGES)
        least = {
            "horizon": 4,
            "num_generations": 2,
            "max_steps": 1,
            "max_completion_length": 1,
            "save_steps": 1,
            "seed": 0,
        }
        for name, smallest in least.items():
            whole(getattr(self, name), name, least=smallest)
        if finite(self.learning_rate, "learning_rate", "a positive number") <= 0:
            refuse("learning_rate", self.learning_rate, "a positive number")
        flag(self.vllm, "vllm")
        flag(self.cpu, "cpu")


def memory_needed(settings: RealModelSettings, *, parameters: float = PARAMETERS, vocabulary: int = 151_936) -> float:
    r"""A rough estimate of the GPU memory that a step takes, in GB; it was computed and not measured.

    .. math:: 16\,n + 3\cdot 4\,G\,L\,V \quad\text{bytes}

    Weights, gradient and the two moments of AdamW take four numbers of four bytes for each of :math:`n` weights; the
    logits of :math:`G` rollouts with :math:`L` tokens over a vocabulary of :math:`V` are held about three times.

    Args:
        settings: of the run.
        parameters: :math:`n`, positive.
        vocabulary: :math:`V`, at least 1.

    Returns:
        Gigabytes.

    Raises:
        ValueError: a number is outside of its range.

    Source:
        Elementary.

    Example:
        >>> round(memory_needed(RealModelSettings()), 1)
        17.1
    """
    if finite(parameters, "parameters", "a positive number") <= 0:
        refuse("parameters", parameters, "a positive number")
    logits = settings.num_generations * settings.max_completion_length * whole(vocabulary, "vocabulary", least=1)
    return float(16 * parameters + 12 * logits) / 1e9


def obstacles(settings: RealModelSettings) -> list[str]:
    """What stands in the way of the run here, in words; nothing where it can begin.

    Args:
        settings: of the run.

    Returns:
        A line for each obstacle.

    Raises:
        ValueError: a setting is outside of its range.

    Example:
        >>> any("GPU" in line or "not installed" in line for line in obstacles(RealModelSettings()))  # doctest: +SKIP
        True
    """
    found = []
    missing = [name for name in ("torch", "transformers", "trl", "datasets", "accelerate") if not _installed(name)]
    if missing:
        found.append(f'{", ".join(missing)} not installed: pip install "keydoor[language]"')
    if settings.vllm and not _installed("vllm"):
        found.append('vLLM is not installed: pip install "trl[vllm]"')
    if "torch" not in missing and not settings.cpu:
        import torch

        needed = memory_needed(settings)
        if not torch.cuda.is_available():
            found.append(f"no GPU: this needs one with about {needed:.0f} GB (an estimate)")
        else:
            free = torch.cuda.mem_get_info()[1] / 1e9
            if free < needed:
                found.append(f"the GPU has {free:.0f} GB; this needs about {needed:.0f} GB (an estimate)")
    if not missing and not _weights(settings.model):
        found.append(
            f"the weights of {settings.model} are neither a folder nor in the cache of the hub: fetch them where there "
            f"is a network (hf download {settings.model}), or name a folder with --model"
        )
    return found


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _weights(model: str) -> bool:
    if (Path(model) / "config.json").is_file():
        return True
    from huggingface_hub import try_to_load_from_cache

    try:
        return isinstance(try_to_load_from_cache(model, "config.json"), str)
    except ValueError:  # no name that a hub could know
        return False


def dataset_rows(settings: RealModelSettings) -> list[dict[str, Any]]:
    """The tasks: both targets, asked for in two ways.

    Args:
        settings: of the run.

    Raises:
        ValueError: a setting is outside of its range.

    Returns:
        Rows with ``prompt`` and the columns that :meth:`keydoor.language.environment.TextKeyDoorEnv.reset` reads.

    Example:
        >>> [row["target"] for row in dataset_rows(RealModelSettings())]
        ['red', 'blue', 'red', 'blue']
    """
    common = {"rules": settings.rules, "horizon": settings.horizon, "language": settings.language}
    return [
        {"prompt": [{"role": "user", "content": task_text(settings.language, variant)}], "target": target, **common}
        for variant in (0, 1)
        for target in COLOURS
    ]


def make_trainer(settings: RealModelSettings, *, model: Any = None, tokenizer: Any = None) -> Any:
    """TRL's trainer, ready to train.

    Args:
        settings: of the run.
        model: a model that is loaded already; ``None`` loads ``settings.model``.
        tokenizer: its tokenizer; ``None`` loads it.

    Returns:
        A ``GRPOTrainer``.

    Raises:
        WeightsError: packages are missing, or the chat template has no place for tools.

    Example:
        >>> make_trainer(RealModelSettings())  # doctest: +SKIP
        <trl.trainer.grpo_trainer.GRPOTrainer object at ...>
    """
    require("torch", "transformers", "trl", "datasets", "accelerate")
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # the interface may change, which the pins are for
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import supports_tool_calling

    if tokenizer is None:
        tokenizer = AutoTokenizer.from_pretrained(settings.model, local_files_only=True)
    if not supports_tool_calling(tokenizer):
        raise WeightsError(
            f"the chat template of {settings.model} has no place for tools; take a model that was trained to call "
            f"them, such as {MODEL}, or {INSTEAD}"
        )
    precision = {"use_cpu": True, "bf16": False} if settings.cpu else {"bf16": True}
    config = GRPOConfig(
        output_dir=settings.output,
        num_generations=settings.num_generations,
        per_device_train_batch_size=settings.num_generations,
        max_steps=settings.max_steps,
        max_completion_length=settings.max_completion_length,
        learning_rate=settings.learning_rate,
        chat_template_kwargs={"enable_thinking": False},
        use_vllm=settings.vllm,
        save_steps=settings.save_steps,
        save_total_limit=2,
        logging_steps=1,
        report_to="none",
        seed=settings.seed,
        **precision,
    )
    return GRPOTrainer(
        model=model if model is not None else settings.model,
        args=config,
        train_dataset=Dataset.from_list(dataset_rows(settings)),
        processing_class=tokenizer,
        environment_factory=TextKeyDoorEnv,
    )


def train_real_model(settings: RealModelSettings, *, model: Any = None, tokenizer: Any = None) -> list[dict[str, Any]]:
    """Train, from the last checkpoint in the output folder if there is one.

    Args:
        settings: of the run.
        model: as for :func:`make_trainer`.
        tokenizer: as for :func:`make_trainer`.

    Returns:
        The trainer's log, a row for each step, with the mean reward.

    Raises:
        WeightsError: something stands in the way; the message says what, and what works instead.

    Example:
        >>> train_real_model(RealModelSettings())  # doctest: +SKIP
        [{'loss': ...
    """
    found = [] if model is not None else obstacles(settings)
    if found:
        raise WeightsError("\n".join(["the profile real-model cannot run here:", *(f"- {x}" for x in found), INSTEAD]))
    from transformers.trainer_utils import get_last_checkpoint

    trainer = make_trainer(settings, model=model, tokenizer=tokenizer)
    folder = Path(settings.output)
    last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    enough_memory(lambda: trainer.train(resume_from_checkpoint=last), "take a step (see --num-generations)")
    log: list[dict[str, Any]] = trainer.state.log_history
    return log


def launch_file(name: str) -> Path:
    """A configuration of accelerate that comes with the package.

    Args:
        name: one of :data:`LAUNCHES`.

    Returns:
        Its file.

    Raises:
        ValueError: an unknown name.

    Example:
        >>> launch_file("one_gpu").name
        'one_gpu.yaml'
    """
    one_of(name, "name", LAUNCHES)
    return Path(str(resources.files("keydoor.language").joinpath("accelerate", f"{name}.yaml")))


def settings_names() -> list[str]:
    """The names of the settings, for a command line.

    Returns:
        The fields of :class:`RealModelSettings`.

    Example:
        >>> settings_names()[:2]
        ['model', 'output']
    """
    return [field.name for field in dataclasses.fields(RealModelSettings)]
