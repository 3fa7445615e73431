"""The functions that replace libdevice are accurate, and run on a CPU."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelquarry.transforms.tidy.kernel.mathematics import EXACT, MATHEMATICS
from kernelquarry.transforms.tidy.kernel.triton_functions import library_calls, parsed, translate

# function -> the largest error in units of the last place
BOUNDS = {
    "tanh": 3, "expm1": 6, "log1p": 6, "log10": 6, "cosh": 6, "atan": 4, "signbit": 0, "acos": 3, "atanh": 6,
    "nearbyint": 0, "trunc": 0, "atan2": 5, "power": 1,
}  # fmt: skip

NAMES = [*MATHEMATICS, "power of a number", "power by a number"]

# Runs each function on magnitudes from the smallest to the largest, on small ones densely, and on what is special.
SCRIPT = """
import json
import sys

import numpy as np
import torch
import triton
import triton.language as tl

{library}

@triton.jit
def apply(x_ptr, y_ptr, out_ptr, FUNCTION: tl.constexpr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at)
    if NAME == "power":
        out = power(x, y, tl.float32)
    elif NAME == "power of a number":
        out = power(1.5, x, tl.float32)
    elif NAME == "power by a number":
        out = power(x, 2.5, tl.float32)
    elif NAME == "atan2":
        out = atan2(y, x)
    else:
        out = FUNCTION(x)
    tl.store(out_ptr + at, out)


def expected(name, x, y):
    if name.startswith("power "):
        return torch.pow(1.5, x) if "of" in name else torch.pow(x, 2.5)
    if name in ("atan2", "power"):
        return torch.atan2(y, x) if name == "atan2" else torch.pow(x, y)
    if name == "signbit":
        return torch.signbit(x).double()
    return getattr(torch, {{"nearbyint": "round"}}.get(name, name))(x)


generator = np.random.default_rng(0)
special = [0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1.5, 2.5, -1.5, 88.8, 89, -89, 3e38, 1e-45, 8388607.5]
sizes = np.exp(generator.uniform(-100, 88, 20000)) * generator.choice([-1, 1], 20000)
drawn = [*sizes, *generator.uniform(-1.5, 1.5, 30000), *generator.uniform(-100, 100, 65536 - 50000 - len(special))]
x = torch.tensor([*special, *drawn], dtype=torch.float32)
y = x[torch.from_numpy(generator.permutation(len(x)))]
np.seterr(all="ignore")
errors = {{}}
for name in {names}:
    out = torch.empty_like(x)
    apply[(8,)](x, y, out, globals().get(name), name, 8192)
    exact = expected(name, x.double(), y.double())
    rounded = exact.float()
    finite = rounded.isfinite() & (rounded.abs() >= 1.2e-38)
    torch.testing.assert_close(out[~finite], rounded[~finite], rtol=0, atol=2e-38, equal_nan=True)
    unit = torch.from_numpy(np.spacing(rounded[finite].abs().numpy())).double()
    errors[name] = ((out[finite].double() - exact[finite]).abs() / unit).max().item()
print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Function -> its largest error under Triton's own interpreter."""
    script: Path = tmp_path_factory.mktemp("mathematics") / "script.py"
    library = "\n\n".join(MATHEMATICS.values())
    script.write_text(SCRIPT.format(library=library, names=NAMES))
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("function", NAMES)
def test_functions_are_accurate_to_a_few_units_in_the_last_place(errors: dict[str, float], function: str) -> None:
    assert errors[function] <= BOUNDS[function.split()[0]]


@pytest.mark.parametrize("function", [name for name in MATHEMATICS if name != "power"])
def test_float64_stays_with_libdevice(function: str) -> None:
    for dtype, is_plain in (("float32", True), ("", True), ("float64", function in EXACT)):
        new = translate(f"libdevice.{function}", [parsed("x")], {}, dtype)
        assert new is not None and ast.unparse(new) == f"{'' if is_plain else 'libdevice.'}{function}(x)"


def test_called_functions_come_before_their_callers() -> None:
    used = library_calls(ast.parse("atan2(a, b) + atanh(c)").body)
    assert used == ["log1p", "atan", "signbit", "atan2", "atanh"]
