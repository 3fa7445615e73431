"""What a model is asked, and how its answer is read: one set of templates for the dataset, distillation, training and
evaluation, so that a model is scored on the prompt that it was trained on.

    system.md.j2    who the model is
    write.md.j2     a module, to be written anew: `python_code`
    sized.md.j2     the same, for the inputs that `sizes` says
    answer.md.j2    the answer: `triton_code`, and what was thought before it
    repair.md.j2    what was wrong with an answer: `reason`, `evidence`
    teacher.md.j2   who the model is when it is asked for new kernels: facts, and two examples from `examples/`
    refine.md.j2    a module and its lowered kernel, to be written better: `python_code`, `triton_code`
    explain.md.j2   a verified pair, to be put in words: `python_code`, `triton_code`
    plan.md.j2      what a row's columns tell before its kernel is written: `pair`
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kernelquarry.pipeline.schema.ids import sha256

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
    """One turn of a chat, as chat templates and endpoints take it."""

    role: str  # "system", "user" or "assistant"
    content: str


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_prompt(name: str, **values: Any) -> str:
    """The template `<name>.md.j2` with `values`; a value that is missing is an error."""
    return _environment().get_template(f"{name}.md.j2").render(**values)


@cache
def prompt_id(name: str) -> str:
    """`write@0123456789abcdef`: the name of a template and the digest of its text, for a row to say what made it."""
    text = (_FOLDER / f"{name}.md.j2").read_bytes()
    if b"examples/" in text:
        text += b"".join(path.read_bytes() for path in sorted((_FOLDER / "examples").glob("*.j2")))
    return f"{name}@{sha256(text)[:16]}"


def kernel_request(python_code: str, sizes: str = "") -> list[Message]:
    """The chat in which a model is asked for the kernel of a module: for inputs of any size, or those of `sizes`."""
    name, values = ("sized", {"sizes": sizes}) if sizes else ("write", {})
    return [
        {"role": "system", "content": render_prompt("system")},
        {"role": "user", "content": render_prompt(name, python_code=python_code, **values)},
    ]


def answer(triton_code: str, thinking: str = "") -> Message:
    """A model's turn that gives `triton_code`."""
    return {"role": "assistant", "content": render_prompt("answer", triton_code=triton_code, thinking=thinking)}


def repair_request(reason: str, evidence: str) -> Message:
    """The turn after an answer that was rejected, for the code and evidence of its reason."""
    return {"role": "user", "content": render_prompt("repair", reason=reason, evidence=evidence)}


def read_answer(text: str) -> str:
    """The source in a model's answer, what was thought before it left out; "" if there is none that is whole."""
    return parse_answer(text).code
