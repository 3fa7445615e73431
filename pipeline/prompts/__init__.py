"""Prompts for models, and the parser of their answers.

Dataset, distillation, training and evaluation share these templates, so a model is scored on the prompt that it was
trained on:

    system.md.j2    system message for students
    teacher.md.j2   system message for teachers, with facts and two examples from `examples/`
    write.md.j2     request for a kernel: `python_code`, the inputs in `sizes`, what calls give in `shapes`, and what
                    functions compute, from `definitions.toml`
    refine.md.j2    request for a better kernel than the lowered one: `python_code`, `triton_code`
    explain.md.j2   request to explain a verified pair: `python_code`, `triton_code`
    repair.md.j2    request to repair a rejected answer: `reason`, `evidence`
    answer.md.j2    an answer: `triton_code`, after its `thinking`
    language.md.j2  the language of answers, for both system messages, made from `filters/language` by `make docs`
    plan.md.j2      thinking rendered from the columns of a row: `pair`
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kernelquarry.pipeline.schema.ids import sha256

from .defined_calls import definitions
from .extract_code import Answer, parse_answer

__all__ = [
    "Answer",
    "Message",
    "answer",
    "kernel_request",
    "parse_answer",
    "prompt_id",
    "read_answer",
    "render_prompt",
    "repair_request",
]

_FOLDER = Path(__file__).parent


class Message(TypedDict):
    """One message of a chat, in the format of chat templates and endpoints."""

    role: str  # "system", "user" or "assistant"
    content: str


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["definitions"] = definitions
    return environment


def render_prompt(name: str, **values: Any) -> str:
    """The template `<name>.md.j2` with `values`. A missing value is an error."""
    return _environment().get_template(f"{name}.md.j2").render(**values)


@cache
def prompt_id(name: str) -> str:
    """`write@0123456789abcdef`: the name of a template and the digest of its text, for the provenance of a row."""
    text = (_FOLDER / f"{name}.md.j2").read_bytes()
    if b"language.md.j2" in text:
        text += (_FOLDER / "language.md.j2").read_bytes()
    if b"examples/" in text:
        text += b"".join(path.read_bytes() for path in sorted((_FOLDER / "examples").glob("*.j2")))
    if b"definitions" in text:
        text += (_FOLDER / "definitions.toml").read_bytes()
    return f"{name}@{sha256(text)[:16]}"


def kernel_request(python_code: str, sizes: str = "", shapes: str = "") -> list[Message]:
    """The chat that requests a kernel for a module, for inputs of any size or those in `sizes`."""
    request = render_prompt("write", python_code=python_code, sizes=sizes, shapes=shapes)
    return [{"role": "system", "content": render_prompt("system")}, {"role": "user", "content": request}]


def answer(triton_code: str, thinking: str = "") -> Message:
    """The message of a model that answers with `triton_code`."""
    return {"role": "assistant", "content": render_prompt("answer", triton_code=triton_code, thinking=thinking)}


def repair_request(reason: str, evidence: str) -> Message:
    """The message that requests the repair of an answer, with the reason and evidence of its rejection."""
    return {"role": "user", "content": render_prompt("repair", reason=reason, evidence=evidence)}


def read_answer(text: str) -> str:
    """The source code in a model's answer, without its thinking; "" if there is no complete file."""
    return parse_answer(text).code
