"""Adapters of low rank in the last layers of a model: put in, taken out, kept in a file.

An adapter adds :math:`\\alpha B A / r` to a matrix, with :math:`B` zero at first, so that a fresh one changes nothing.
Everything else is frozen. They are those of the library peft.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from keydoor._checks import refuse, whole
from keydoor.language.weights import require

TARGETS = ("q_proj", "v_proj", "o_proj")
"""The matrices that get an adapter."""


def adapt(model: Any, *, rank: int, layers: int, seed: int) -> list[Tensor]:
    """Put fresh adapters into the last layers, in place of any that are there, and freeze everything else.

    Args:
        model: a causal language model of the Llama or Qwen family.
        rank: of the adapters, at least 1.
        layers: how many layers get them, at least 1, at most all.
        seed: of their first weights, at least 0.

    Returns:
        The parameters that can be trained.

    Raises:
        ValueError: an argument is outside of its range.

    Example:
        >>> adapt(None, rank=0, layers=1, seed=0)
        Traceback (most recent call last):
        ...
        ValueError: rank is 0; expected an integer not below 1
    """
    whole(rank, "rank", least=1)
    whole(seed, "seed", least=0, bits=63)
    count = len(model.model.layers)
    if whole(layers, "layers", least=1) > count:
        refuse("layers", layers, f"at most {count}, all that the model has")
    require("peft")
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        lora_dropout=0.0,
        target_modules=list(TARGETS),
        layers_to_transform=list(range(count - layers, count)),
    )
    forget(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(config, model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def forget(model: Any) -> None:
    """Take all adapters out: the model is what it was before them.

    Args:
        model: a model, with or without adapters.

    Example:
        >>> forget(torch.nn.Linear(2, 2))
    """
    for name, module in list(model.named_modules()):
        if hasattr(module, "lora_A") and hasattr(module, "get_base_layer"):
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, module.get_base_layer())
    if hasattr(model, "peft_config"):
        del model.peft_config


def adapter_state(model: Any) -> dict[str, Tensor]:
    """The weights of the adapters.

    Args:
        model: a model with adapters.

    Returns:
        Copies of the weights by the names of their parameters; empty without adapters.

    Example:
        >>> adapter_state(torch.nn.Linear(2, 2))
        {}
    """
    return {name: weights.detach().clone() for name, weights in model.named_parameters() if "lora_" in name}


def set_adapter_state(model: Any, state: Mapping[str, Tensor]) -> None:
    """Give the adapters in a model other weights.

    Args:
        model: a model with adapters.
        state: what :func:`adapter_state` returned for adapters of the same rank in the same layers, which have the
            same shape.

    Raises:
        ValueError: names or shapes differ.

    Example:
        >>> set_adapter_state(torch.nn.Linear(2, 2), {})
    """
    own = {name: weights for name, weights in model.named_parameters() if "lora_" in name}
    shapes, given = ({name: tuple(w.shape) for name, w in found.items()} for found in (own, state))
    if shapes != given:
        different = sorted(shapes.items() ^ given.items())[0]
        refuse("state", different, "the adapters of the model, by name and shape")
    with torch.no_grad():
        for name, weights in own.items():
            weights.copy_(state[name])


def save_adapter(path: str | os.PathLike[str], model: Any, about: Mapping[str, Any]) -> None:
    """Write the adapters of a model to a file, whole or not at all.

    Args:
        path: the file, in the form of safetensors.
        model: a model with adapters.
        about: what is to be known of them, such as settings and seed; what JSON can hold.

    Raises:
        ValueError: the model has no adapters.
        OSError: the file cannot be written.

    Example:
        >>> save_adapter("adapter.safetensors", torch.nn.Linear(2, 2), {})
        Traceback (most recent call last):
        ...
        ValueError: model is Linear(in_features=2, out_features=2, bias=True); expected a model with adapters
    """
    state = adapter_state(model)
    if not state:
        refuse("model", model, "a model with adapters")
    from safetensors.torch import save_file

    temporary = Path(path).with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        save_file(
            {name: weights.contiguous() for name, weights in state.items()}, temporary, {"about": json.dumps(about)}
        )
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load_adapter(path: str | os.PathLike[str], model: Any) -> dict[str, Any]:
    """Put the adapters of a file into a model.

    Args:
        path: what :func:`save_adapter` wrote.
        model: the model that they were trained in.

    Returns:
        What was said about them.

    Raises:
        ValueError: the file holds no adapters of this model.
        OSError: the file cannot be read.

    Example:
        >>> load_adapter("/no/such/file", torch.nn.Linear(2, 2))
        Traceback (most recent call last):
        ...
        ValueError: path is '/no/such/file'; expected a file of adapters
    """
    if not Path(path).is_file():
        refuse("path", str(path), "a file of adapters")
    require("safetensors", "peft")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            about: dict[str, Any] = json.loads((file.metadata() or {})["about"])
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        settings = about["settings"]
        adapt(model, rank=settings["rank"], layers=settings["layers"], seed=0)
        set_adapter_state(model, state)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"path is {str(path)!r}; expected a file of adapters of this model: {error}") from error
    return about
