"""Loading models and tokenizers from the Hub, a folder, or a GGUF file, which a Python package may contain."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.schema.errors import UserError

from .adapters import add_adapter, base_of, is_adapter
from .unpack_gguf import unpack_gguf
from .varlen_attention import register

CHAT = Path(__file__).parent / "chat"
PACKAGE = "package:"
_CACHE = Path("out/models")
_SAMPLE = [
    {"role": "system", "content": "You answer."},
    {"role": "user", "content": "1 + 1?"},
    {"role": "assistant", "content": "```\n2\n```\n"},
]


def resolve(name: str, cache: Path = _CACHE) -> str:
    """The name or folder that transformers accepts for `name`. A GGUF file is unpacked to `cache` once.

    Args:
        name: an id on the Hub, a folder, a GGUF file or a folder with one, or `package:NAME` of a package with one.

    Raises:
        UserError: there is no such folder; the package is not installed, or contains no model.
    """
    if name.startswith(PACKAGE):
        return str(unpack_gguf(_packaged_file(name.removeprefix(PACKAGE)), cache))
    path = Path(name)
    if path.suffix == ".gguf" and path.is_file():
        return str(unpack_gguf(path, cache))
    if path.is_dir():
        is_whole = (path / "config.json").is_file() or is_adapter(path)
        files = [] if is_whole else sorted(path.glob("*.gguf"))
        if len(files) > 1:
            raise UserError(f"{name} holds {len(files)} models: name one file, such as {files[0]}")
        return str(unpack_gguf(files[0], cache)) if files else name
    is_folder = name.startswith((".", "/")) or name.count("/") > 1  # an id on the Hub is `owner/name`
    if is_folder or path.suffix == ".gguf":
        raise UserError(f"{name}: no such model: run `make train`, name another one, or give --endpoint")
    return name


def _packaged_file(package: str) -> Path:
    spec = importlib.util.find_spec(package)  # not imported: only its files are needed
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if len(files) != 1:
        raise UserError(f"{PACKAGE}{package}: no package with a model: `make train` installs it, or give model.name")
    return files[0]


def load_tokenizer(path: str, chat: str = "") -> Any:
    """A tokenizer with a chat template that marks the assistant's turns, so that the loss covers them alone.

    A template without marks is replaced by one of TRL's or of `CHAT` that gives the same text.

    Raises:
        UserError: there is no tokenizer, or no such template is known for it.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    tokenizer = chat_tokenizer(path, chat)
    if not has_generation_markers(tokenizer.chat_template):
        try:
            tokenizer.chat_template = get_training_chat_template(tokenizer)
        except ValueError:
            tokenizer.chat_template = _equal_template(tokenizer)
    if not tokenizer.chat_template:
        problem = "its chat template does not mark what the assistant says: name one that does with model.chat"
        raise UserError(f"{path}: {problem}")
    return tokenizer


def _equal_template(tokenizer: Any) -> str | None:
    """The template of `CHAT` that renders a chat as the tokenizer's own does; None if there is none."""

    def texts(template: str | None) -> list[str]:
        pairs = (_SAMPLE[:2], True), (_SAMPLE, False)
        return [
            tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=prompt, chat_template=template)
            for chat, prompt in pairs
        ]

    own = texts(None)
    templates = (file.read_text() for file in sorted(CHAT.iterdir()))
    return next((template for template in templates if texts(template) == own), None)


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


def load_model(path: str, base: str = "", **options: Any) -> Any:
    """A causal language model; `options` are those of transformers' `from_pretrained`.

    Args:
        path: as `resolve` returns it. An adapter is merged into its model.
        base: the adapter's model, if it is not where the adapter says.

    Raises:
        UserError: there is no model, or its attention is not installed.
    """
    import torch
    from transformers import AutoModelForCausalLM

    register()
    torch.set_num_threads(len(os.sched_getaffinity(0)))  # importing the sandbox's judge sets one
    try:
        if is_adapter(path):
            return add_adapter(load_model(resolve(base or base_of(path)), **options), path)
        return AutoModelForCausalLM.from_pretrained(path, **options)
    except (OSError, ValueError, ImportError) as error:
        raise UserError(f"{path}: no model: {_first_line(error)}") from None


def fast_dtype() -> Any:
    """bfloat16 where the GPU, or without one the processor, has instructions for it; else float32."""
    import torch

    if torch.cuda.is_available():
        return torch.bfloat16
    has = torch.cpu.get_capabilities()
    return torch.bfloat16 if has.get("avx512_bf16") or has.get("amx_bf16") else torch.float32


def end_tokens(config: Any) -> list[int]:
    """Ids of the tokens that end an answer, from a generation config."""
    return config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
