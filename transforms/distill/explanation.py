"""Explanations of a pair, accepted only if they name nothing that the code lacks.

A model that is trained on unsupported explanations learns to invent. Every identifier in backticks, every dotted or
underscored name and every block size must occur in the code. A technique may be named only if the kernel uses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelquarry.pipeline.prompts import parse_answer

LEAST = 40  # characters that a section needs
_SECTION = re.compile(r"^#{1,6}[ \t]*(instruction|reasoning)\b[^\n]*\n(.*?)(?=^#{1,6}[ \t]|\Z)", re.M | re.S | re.I)
_SPAN = re.compile(r"`([^`\n]{1,200})`")
_WORD = re.compile(r"[A-Za-z_]\w*")
# Names that are code even without backticks.
_NAME = re.compile(r"\b(?:tl|triton|torch|nn|F)(?:\.[A-Za-z_]\w*)+|\b[A-Za-z]\w*_\w+")
_SIZE = re.compile(r"\bblocks? (?:sizes? )?of (\d+)|\b(\d+) (?:warps|stages)\b", re.IGNORECASE)
_ORDINARY = frozenset(  # names that an explanation may use although the code lacks them
    "True False None torch triton tl nn F float float16 float32 float64 bfloat16 int int32 int64 bool inf nan pytorch "
    "forward self Model ModelNew python cuda gpu jit constexpr".split()
)
# (pattern of a technique in the text, pattern of its use in the kernel)
_TECHNIQUES: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(mention, re.IGNORECASE), re.compile(use))
    for mention, use in (
        (r"\btensor cores?\b|\bmatrix (?:product|multipl)\w* (?:unit|instruction)s?\b", r"tl\.dot"),
        (r"\btl\.dot\b", r"tl\.dot"),
        (r"\bauto-?tun(?:ed?|es|ing)\b", r"triton\.autotune|@autotune"),
        (r"\batomics?\b|\batomically\b", r"tl\.atomic_"),
        (r"\bonline softmax\b", r"tl\.exp[\s\S]*tl\.maximum|tl\.maximum[\s\S]*tl\.exp"),
        (r"\bwelford\b", r"mean[\s\S]*(?:delta|m2|M2)|tl\.associative_scan|tl\.reduce"),
        (r"\bsplit[- ]k\b", r"tl\.atomic_add|(?i:split)"),
        (r"\bpersistent\b", r"tl\.num_programs|(?i:num_sms|multi_processor_count)"),
        (r"\bblock pointers?\b", r"tl\.make_block_ptr"),
        (r"\btensor descriptors?\b|\bTMA\b", r"(?i:tensor_?descriptor)"),
        (r"\bassociative scans?\b|\bprefix (?:sum|scan)s?\b", r"tl\.(?:associative_scan|cumsum|cumprod)"),
        (r"\bhalf[- ]precision\b|\bfp16\b|\bfloat16\b", r"float16|half"),
        (r"\bbf16\b|\bbfloat16\b", r"bfloat16"),
        (r"\bTF32\b", r"(?i:tf32|ieee)"),
        (r"\bsoftware pipelin\w+\b", r"num_stages"),
        (r"\bone (?:single )?kernel\b|\bsingle kernel\b", r"\A(?!(?:[\s\S]*@triton\.jit){3})"),
        (r"\bcuBLAS\b|\bcuDNN\b|\bshared memory\b(?= explicitly)", r"\A(?!)"),
    )
)


@dataclass(frozen=True, slots=True)
class ExplanationText:
    """The two sections of an explanation."""

    instruction: str
    reasoning: str


def parse_explanation(text: str, python_code: str, triton_code: str) -> tuple[ExplanationText | None, str]:
    """The explanation and ""; or None and the problem."""
    if parse_answer(text).truncated:
        return None, "it is cut off"
    text = text.rpartition("</think>")[2]
    sections = {name.lower(): body.strip() for name, body in _SECTION.findall(text)}
    parsed = ExplanationText(sections.get("instruction", ""), sections.get("reasoning", ""))
    if len(parsed.instruction) < LEAST or len(parsed.reasoning) < LEAST:
        return None, "it has no two sections"
    if wrong := unsupported_terms(parsed.instruction + "\n" + parsed.reasoning, python_code, triton_code):
        return None, f"it names what the code does not have: {', '.join(wrong[:5])}"
    return parsed, ""


def unsupported_terms(text: str, python_code: str, triton_code: str) -> list[str]:
    """Names, block sizes and techniques that `text` mentions and the code lacks, each kind sorted."""
    code = python_code + "\n" + triton_code
    known = set(_WORD.findall(code)) | _ORDINARY
    spans = (*_SPAN.findall(text), *_NAME.findall(text))
    named = {word for span in spans for word in _WORD.findall(span) if len(word) > 1}
    sizes = {number for groups in _SIZE.findall(text) for number in groups if number}
    unused = {
        match[0] for mention, use in _TECHNIQUES if (match := mention.search(text)) and not use.search(triton_code)
    }
    return sorted(named - known) + sorted(sizes - set(re.findall(r"\d+", code))) + sorted(unused)
