"""Commands that only read a run directory, and commands with bad input, do not wait for large imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.pipeline.command import Built

SCRIPT = """
import sys
from kernelquarry.pipeline.cli import failures
from kernelquarry.pipeline.cli.app import app
failures.os._exit = sys.exit
run = sys.argv[1]
commands = {
    "--help": 0, "lower --help": 0, f"funnel {run}": 0, "funnel nowhere": 1, "lower nowhere": 1,
    "explain-cache nowhere": 1, "merge nowhere": 1, "show x --dataset nowhere": 1, "replay x --dataset nowhere": 1,
    "reverify nowhere": 1, "ablate nowhere": 1, "dataset nosuch": 1, f"dataset default --out {run}": 1,
}
for command, status in commands.items():
    try:
        app(command.split())
    except SystemExit as ended:
        assert ended.code == status, (command, ended.code)
    large = {"apache_beam", "datasets", "pandas", "torch"} & sys.modules.keys()
    assert not large, f"{command} imports {large}"
"""


def test_large_packages_are_imported_where_they_are_needed(built: Built, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(built.root)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
