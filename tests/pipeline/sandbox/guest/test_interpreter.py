"""Triton's semantics on the CPU, kernel by kernel, and the pretended GPU. The cases are in three scripts."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = [Path(__file__).parent / f"{name}_cases.py" for name in ("interpreter", "tape", "gpu")]


def names_in(script: Path) -> list[str]:
    """Names of the cases, read from the source: an import would patch this process's Triton."""
    tree = ast.parse(script.read_text())
    marked = [
        n.name for n in tree.body if isinstance(n, ast.FunctionDef) and "case" in map(ast.unparse, n.decorator_list)
    ]
    calls = [n.value for n in tree.body if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
    libdevice = [c.args[0].value for c in calls if ast.unparse(c.func) == "check_libdevice"]  # type: ignore[attr-defined]
    return marked + [f"libdevice_{name}" for name in libdevice]


def case_names() -> list[str]:
    return [name for script in SCRIPTS for name in names_in(script)]


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    found: dict[str, str] = {}
    for script in SCRIPTS:
        run = subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        found |= json.loads(run.stdout)
    return found


@pytest.mark.parametrize("name", case_names())
def test_kernel(name: str, results: dict[str, str]) -> None:
    assert results[name] == ""


def test_every_case_was_found(results: dict[str, str]) -> None:
    assert sorted(results) == sorted(case_names())
