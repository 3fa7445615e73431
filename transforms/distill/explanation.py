"""What a model says of a pair: taken only as far as the code bears it out.

An explanation that names what the code does not do teaches to make things up. Whatever stands in backticks or is
plainly a name of code, must be in it, as must sizes of blocks; a technique is spoken of only where it is shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelquarry.pipeline.prompts import parse_answer

LEAST = 40  # characters of a section
_SECTION = re.compile(r"^#{1,6}[ \t]*(instruction|reasoning)\b[^\n]*\n(.*?)(?=^#{1,6}[ \t]|\Z)", re.M | re.S | re.I)
_SPAN = re.compile(r"`([^`\n]{1,200})`")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(
    r"\b(?:tl|triton|torch|nn|F)(?:\.[A-Za-z_]\w*)+|\b[A-Za-z]\w*_\w+"
)  # plainly of code, without backticks too
_SIZE = re.compile(r"\bblocks? (?:sizes? )?of (\d+)|\b(\d+) (?:warps|stages)\b", re.IGNORECASE)
_ORDINARY = frozenset(  # names that need not stand in the code to be spoken of
    "True False None torch triton tl nn F float float16 float32 float64 bfloat16 int int32 int64 bool inf nan pytorch "
    "forward self Model ModelNew python cuda gpu jit constexpr".split()
)
# What is spoken of -> what the kernel's source then has.
_TECHNIQUES: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(said, re.IGNORECASE), re.compile(shown))
    for said, shown in (
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
class Said:
    instruction: str
    reasoning: str


def read_explanation(text: str, python_code: str, triton_code: str) -> tuple[Said | None, str]:
    """The two sections; or None, and what is wrong with them."""
    if parse_answer(text).truncated:
        return None, "it is cut off"
    text = text.rpartition("</think>")[2]
    sections = {name.lower(): body.strip() for name, body in _SECTION.findall(text)}
    said = Said(sections.get("instruction", ""), sections.get("reasoning", ""))
    if len(said.instruction) < LEAST or len(said.reasoning) < LEAST:
        return None, "it has no two sections"
    if wrong := unsupported(said.instruction + "\n" + said.reasoning, python_code, triton_code):
        return None, f"it speaks of what the code does not have: {', '.join(wrong[:5])}"
    return said, ""


def unsupported(text: str, python_code: str, triton_code: str) -> list[str]:
    """What `text` names and the code does not show, sorted."""
    code = python_code + "\n" + triton_code
    there = set(_WORD.findall(code)) | _ORDINARY
    spans = (*_SPAN.findall(text), *_NAME.findall(text))
    named = {word for span in spans for word in _WORD.findall(span) if len(word) > 1}
    sizes = {number for found in _SIZE.findall(text) for number in found if number}
    spoken = {match[0] for said, shown in _TECHNIQUES if (match := said.search(text)) and not shown.search(triton_code)}
    return sorted(named - there) + sorted(sizes - set(re.findall(r"\d+", code))) + sorted(spoken)
