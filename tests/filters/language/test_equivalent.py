"""Statements outside of the language that do the same as others are rewritten, line by line."""

from __future__ import annotations

import pytest

from kernelquarry.filters.language import check
from kernelquarry.filters.language.equivalent import in_language
from kernelquarry.filters.language.unused import without_unused

_REST = """

@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
"""
_LAUNCH = "        double[(1,)](x, out, x.numel(), BLOCK=64)\n        return out\n"
_IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n"


def _file(head: str = "", body: str = "") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return _IMPORTS + head + _REST + lines + _LAUNCH


REWRITTEN = {
    "a flag for Triton": _file(
        "try:\n    import math\n    HAS_MATH = True\nexcept ImportError:\n    HAS_MATH = False\n"
    ),
    "a failure without Triton": _file("try:\n    import math\nexcept ImportError:\n    raise RuntimeError('none')\n"),
    "an import in a function": _file(body="import math\nassert math.pi > 3"),
    "an import that the file has, too": _file("import math\n", body="import math\nassert math.pi > 3"),
    "switches": _file("torch.backends.cudnn.benchmark = True\ntorch.set_float32_matmul_precision('high')\n"),
    "settings of logging": _file("import logging\nlogging.basicConfig(level=logging.INFO)\n"),
    "a seed in training mode": _file(body="seed = torch.randint(0, 9, (1,)).item() if self.training else 0"),
    "a named mode": _file(
        body="t = self.training and x.dim() > 1\nseed = torch.randint(0, 9, (1,)).item() if t else 0"
    ),
    "a statement in training mode": _file(body="if self.training:\n    x = x * torch.rand(1)\n    x = x.item()"),
    "a description of launches": _file("def describe(grid, kernel, args):\n    return {'name': f'{kernel}'}\n").replace(
        "@triton.jit", "@triton.jit(launch_metadata=describe)"
    ),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_a_rewritten_text_is_in_the_language_and_keeps_its_lines(name: str) -> None:
    code = REWRITTEN[name]
    assert check(code) is not None
    assert len(in_language(code).code.splitlines()) == len(code.splitlines())
    assert check(without_unused(code).code) is None


def test_a_flag_keeps_its_value() -> None:
    assert "\nHAS_MATH = True\n" in in_language(REWRITTEN["a flag for Triton"]).code


def test_what_is_left_out_is_named() -> None:
    found = in_language(REWRITTEN["switches"]).removed
    assert found == ("torch.backends.cudnn.benchmark", "torch.set_float32_matmul_precision")


KEPT = {
    "another text": _file(),
    "no Python": "def",
    "a module that may be missing": _file(
        "try:\n    import apex\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
    ),
    "a name that may be missing": _file("try:\n    from math import tau_\n    A = 1\nexcept ImportError:\n    A = 2\n"),
    "another statement": _file("try:\n    import math\n    X = math.f()\nexcept ImportError:\n    X = 0\n"),
    "another exception": _file("try:\n    import math\n    A = 1\nexcept ValueError:\n    A = 2\n"),
    "a name that the file binds": _file("math = 3\n", body="import math\nassert math.pi > 3"),
    "a module of the system": _file(body="import os\nos.getpid()"),
    "a computed switch": _file("torch.backends.cudnn.benchmark = bool(1)\n"),
    "a random number in eval mode": _file(body="seed = 0 if self.training else torch.randint(0, 9, (1,)).item()"),
    "either mode": _file(body="seed = torch.rand(1).item() if self.training or x.dim() else 0"),
    "a statement in the same line": _file("import math; torch.backends.cudnn.benchmark = True\n"),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_texts_stay_as_they_are(name: str) -> None:
    assert in_language(KEPT[name]).code == KEPT[name]
