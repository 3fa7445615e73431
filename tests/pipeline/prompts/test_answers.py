"""Answers of all shapes are read, and none makes reading them fail or last."""

from __future__ import annotations

import ast
import random
import time

import answer_shapes as our
import pytest

from kernelquarry.pipeline.prompts import parse_answer

SHAPES = list(our.shapes())


def same(a: str, b: str) -> bool:
    """The same program, or the same text where it is none."""
    try:
        return bool(a.strip()) == bool(b.strip()) and ast.dump(ast.parse(a)) == ast.dump(ast.parse(b))
    except SyntaxError:
        return a.strip() == b.strip()


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


@pytest.mark.parametrize("text", ["<think>\nfirst", "```python\nimport torch\n"])
def test_an_answer_that_ends_too_early_says_so(text: str) -> None:
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
