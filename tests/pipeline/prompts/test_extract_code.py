"""Answers of all shapes are parsed, without exceptions and in bounded time."""

from __future__ import annotations

import ast
import json
import random
import re
import time
from collections.abc import Callable

import answer_shapes as our
import pytest

from kernelquarry.pipeline.prompts import parse_answer

SHAPES = list(our.shapes())


def same(a: str, b: str) -> bool:
    """True if two sources have equal syntax trees, or equal text if one does not parse."""
    try:
        return bool(a.strip()) == bool(b.strip()) and ast.dump(ast.parse(a)) == ast.dump(ast.parse(b))
    except SyntaxError:
        return a.strip() == b.strip()


def in_two_blocks(code: str) -> str:
    at = code.index("class ")
    return our.block(code[:at]) + "and\n" + our.block(code[at:])


def test_there_are_hundreds_of_shapes() -> None:
    assert len(SHAPES) >= 700
    assert len({shape.text for shape in SHAPES}) == len(SHAPES)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_code_of_an_answer_is_found(shape: our.Shape) -> None:
    assert same(parse_answer(shape.text).code, shape.code)


def test_thoughts_and_prose_are_kept_apart() -> None:
    answer = parse_answer(f"<think>\nOne kernel.\n</think>\nHere:\n{our.block(our.CODE)}That is all.\n")
    assert answer.thinking == "One kernel."
    assert answer.prose == "Here:\nThat is all."
    assert not answer.truncated


SUPER = our.RENAMED.replace(
    "    def forward", "    def __init__(self):\n        super(Doubler, self).__init__()\n\n    def forward"
)
INNER = our.RENAMED + (
    "\n\nclass Twice(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.one = Doubler()\n\n    def forward(self, x):\n        return self.one(self.one(x))\n"
)
BY_FUNCTION = our.RENAMED.replace("class Doubler", "def run(x):\n    double[(1,)](x)\n\n\nclass Doubler").replace(
    "double[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)", "run(x)"
)
AS_MODULE = our.RENAMED.replace("Doubler", "Model")
SECOND_MODULE = our.IMPORTS + our.MODULE.removeprefix("import torch\n") + our.RENAMED.removeprefix(our.IMPORTS)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (our.RENAMED, "Doubler"),
        (SUPER, "Doubler"),
        (INNER, "Twice"),
        (BY_FUNCTION, "Doubler"),
        (AS_MODULE, "Model"),
        (SECOND_MODULE, "Doubler"),
    ],
)
@pytest.mark.parametrize(
    "wrap",
    [our.block, lambda code: "Here it is.\n\n" + code, lambda code: json.dumps({"code": code}), in_two_blocks],
)
def test_an_unambiguous_class_of_another_name_is_accepted(code: str, name: str, wrap: Callable[[str], str]) -> None:
    answer = parse_answer(wrap(code), rename=True)
    assert same(answer.code, re.sub(rf"\b{name}\b", "ModelNew", code)) and answer.renamed == name
    assert "class ModelNew" not in parse_answer(wrap(code)).code, "whoever is scored names it as told"


@pytest.mark.parametrize(
    "code",
    [
        our.RENAMED + our.MODEL.replace("ModelNew", "Other"),  # which?
        our.MODULE,  # launches nothing
        our.FIRST,  # no class
        our.FIRST + "\n\ndef run(x):\n    double[(1,)](x, x, 1, BLOCK=1)\n    return x\n",
        our.RENAMED.replace("torch.nn.Module", "object"),  # no module
        our.CODE.replace("return out", "return out)"),  # named as told, and broken
    ],
)
def test_an_ambiguous_class_is_not_accepted(code: str) -> None:
    answer = parse_answer(our.block(code), rename=True)
    assert same(answer.code, code) and answer.renamed == ""


@pytest.mark.parametrize("text", ["<think>\nfirst", "```python\nimport torch\n"])
def test_a_truncated_answer_is_marked(text: str) -> None:
    assert parse_answer(text).truncated


@pytest.mark.parametrize(
    "unit",
    [
        "<think>\n",
        "```\n",
        "</think>\n",
        "{",
        "(",
        "&lt;",
        "class ModelNew:\n",
        ">>> ",
        "\\n",
        "import x\n(\n",
        '"ModelNew',
    ],
)
def test_endless_answers_are_read_in_no_time(unit: str) -> None:
    started = time.process_time()
    parse_answer(unit * (3_000_000 // len(unit)))
    assert time.process_time() - started < 10


def test_mangled_answers_are_read_without_an_exception() -> None:
    source = random.Random(7)
    for shape in SHAPES:
        for _ in range(3):
            start, end = sorted(source.choices(range(len(shape.text) + 1), k=2))
            parse_answer(shape.text[:start] + source.choice(["", "```", "\x00", "</think>", "{'"]) + shape.text[end:])
