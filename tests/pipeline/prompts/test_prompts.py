"""Prompts for models, and the parsing of answers."""

from __future__ import annotations

import jinja2
import pytest

from kernelquarry.pipeline.prompts import answer, kernel_request, read_answer, render_prompt, repair_request


def test_the_request_contains_the_module() -> None:
    system, user = kernel_request("class Model:\n    pass\n")
    assert (system["role"], user["role"]) == ("system", "user")
    assert "```python\nclass Model:\n    pass\n```" in user["content"]
    assert "ModelNew" in user["content"]


def test_a_sized_request_differs_only_in_the_sizes() -> None:
    code = "class Model:\n    pass\n"
    assert kernel_request(code, "inputs of any size that `Model` takes") == kernel_request(code)
    assert "kernels with `@triton.jit`, for small inputs." in kernel_request(code, "small inputs")[1]["content"]


@pytest.mark.parametrize("thinking", ["", "first ```python\nx = 0\n``` then\nmore"])
def test_an_answer_is_parsed_back(thinking: str) -> None:
    code = 'x = "{{ no }}"\n\n\ny = 2\n'
    turn = answer(code, thinking)
    assert turn["role"] == "assistant"
    assert turn["content"].startswith("<think>") is bool(thinking)
    assert read_answer(turn["content"]) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no code", ""),
        ("```python\ncut off", ""),
        ("```\na = 1\n```", "a = 1\n"),
        ("```triton\na = 1\n```\nor\n```Python\nb = 2\n```\ndone", "b = 2\n"),
        ("```python\na = 1\n```\n</think>\nnothing", ""),
        ("    ```python\nx\n    ```", "x\n"),
    ],
)
def test_the_last_complete_block_is_the_answer(text: str, code: str) -> None:
    assert read_answer(text) == code


def test_a_repair_request_has_reason_and_evidence() -> None:
    request = repair_request("wrong_values", "3e-2 off")["content"]
    assert "wrong_values" in request and "3e-2 off" in request


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render_prompt("write")


def test_a_request_ends_with_what_the_calls_give() -> None:
    text = kernel_request("class Model:\n    pass\n", shapes="With these sizes, `f` gives (n,).")[1]["content"]
    assert text.endswith("for inputs of any size that `Model` takes. With these sizes, `f` gives (n,).")
    assert kernel_request("class Model:\n    pass\n")[1]["content"].endswith("that `Model` takes.")
