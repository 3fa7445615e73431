"""Parsing others' code gives no warnings; our own code still does."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import ast, warnings
from kernelquarry.pipeline.schema.parse_python import parse, parse_expression
parse(r"x = '\\(' ; y = 1if x else 2")
parse_expression(r"'\\('")
{more}
"""


@pytest.mark.parametrize(("more", "status"), [("", 0), (r"""ast.parse(r"'\('")""", 1)])
def test_parsed_code_gives_no_warning(more: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT.format(more=more)], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
