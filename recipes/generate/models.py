"""Loading models and tokenizers from the Hub, a folder, or a Python package that contains a GGUF file."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError

from .varlen_attention import register

CHAT = Path(__file__).parent / "chat"
PACKAGE = "package:"
_CACHE = Path("out/models")
_logger = logging.getLogger(__name__)


def resolve(name: str, cache: Path = _CACHE) -> str:
    """The name or folder that transformers accepts for `name`. A packaged model is unpacked to `cache` once.

    Raises:
        UserError: there is no such folder; the package is not installed, or contains no model.
    """
    if not name.startswith(PACKAGE):
        is_folder = name.startswith((".", "/")) or name.count("/") > 1  # an id on the Hub is `owner/name`
        if is_folder and not Path(name).is_dir():
            raise UserError(f"{name}: no such model: run `make train`, name another one, or give --endpoint")
        return name
    package = name.removeprefix(PACKAGE)
    folder = cache / package
    if not (folder / "config.json").is_file():
        _unpack(package, folder)
    return str(folder)


def packaged_chat(name: str) -> str:
    """The chat template for a packaged model, "" for others. A packaged model's own template does not mark the
    assistant's turns."""
    return "chatml.jinja" if name.startswith(PACKAGE) else ""


def _unpack(package: str, folder: Path) -> None:
    """Write the weights of a package's GGUF file to `folder` as a bfloat16 model; the folder appears complete."""
    spec = importlib.util.find_spec(package)  # not imported: only its files are needed
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if len(files) != 1:
        raise UserError(f"{PACKAGE}{package}: no package with a model: `make train` installs it, or give model.name")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _logger.info("unpacking %s", files[0].name)
    source = {"pretrained_model_name_or_path": str(files[0].parent), "gguf_file": files[0].name}
    packed = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)
    config = packed.config
    config.__dict__.pop("quantization_config", None)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.load_state_dict(packed.state_dict())
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    model.save_pretrained(partial)
    AutoTokenizer.from_pretrained(**source).save_pretrained(partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def load_tokenizer(path: str, chat: str = "") -> Any:
    """A tokenizer with a chat template that marks the assistant's turns, so that the loss covers them alone.

    Raises:
        UserError: there is no tokenizer, or no such template is known for it.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    tokenizer = chat_tokenizer(path, chat)
    if not has_generation_markers(tokenizer.chat_template):
        try:
            tokenizer.chat_template = get_training_chat_template(tokenizer)
        except ValueError:
            problem = "its chat template does not mark what the assistant says: name one that does with model.chat"
            raise UserError(f"{path}: {problem}") from None
    return tokenizer


def chat_tokenizer(path: str, chat: str = "") -> Any:
    """A tokenizer with its own chat template, or with the file `chat` of `recipes/generate/chat`.

    Raises:
        UserError: there is no tokenizer, or it has no template.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: no tokenizer: {_first_line(error)}") from None
    if chat:
        if not (CHAT / chat).is_file():
            names = ", ".join(sorted(file.name for file in CHAT.iterdir()))
            raise UserError(f"{chat}: no such template: there are {names}")
        tokenizer.chat_template = (CHAT / chat).read_text()
    if not tokenizer.chat_template:
        raise UserError(f"{path}: its tokenizer has no chat template: name one with model.chat, such as chatml.jinja")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(path: str, **options: Any) -> Any:
    """A causal language model; `options` are those of transformers' `from_pretrained`.

    Raises:
        UserError: there is no model, or its attention is not installed.
    """
    from transformers import AutoModelForCausalLM

    register()
    try:
        return AutoModelForCausalLM.from_pretrained(path, **options)
    except (OSError, ValueError, ImportError) as error:
        raise UserError(f"{path}: no model: {_first_line(error)}") from None


def end_tokens(config: Any) -> list[int]:
    """Ids of the tokens that end an answer, from a generation config."""
    return config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
