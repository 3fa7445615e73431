"""Triton's semantics on the CPU, kernel by kernel. The kernels are in `interpreter_cases`."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "interpreter_cases.py"


def case_names() -> list[str]:
    """Read from the source: importing it would turn this process's Triton into the interpreter."""
    tree = ast.parse(SCRIPT.read_text())
    marked = [
        n.name for n in tree.body if isinstance(n, ast.FunctionDef) and "case" in map(ast.unparse, n.decorator_list)
    ]
    calls = [n.value for n in tree.body if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
    libdevice = [c.args[0].value for c in calls if ast.unparse(c.func) == "check_libdevice"]  # type: ignore[attr-defined]
    return marked + [f"libdevice_{name}" for name in libdevice]


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    run = subprocess.run([sys.executable, "-W", "ignore", str(SCRIPT)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout))


@pytest.mark.parametrize("name", case_names())
def test_kernel(name: str, results: dict[str, str]) -> None:
    assert results[name] == ""


def test_every_case_was_found(results: dict[str, str]) -> None:
    assert sorted(results) == sorted(case_names())
