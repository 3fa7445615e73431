"""System calls that change the calling process: each test runs them in a child process."""

from __future__ import annotations

import subprocess
import sys

import pytest

HUGE = """
from pathlib import Path
from kernelquarry.pipeline.sandbox.layers import linux

def huge_kb():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages:"))

pattern = bytes(range(256))
pieces = [bytearray(pattern * 16384) for _ in range(16)]  # of 4 MiB
before = huge_kb()
linux.use_huge_pages()
assert all(piece == pattern * 16384 for piece in pieces)
print(huge_kb() - before)
"""


def test_memory_moves_to_huge_pages_and_stays_as_it_was() -> None:
    done = subprocess.run([sys.executable, "-c", HUGE], capture_output=True, text=True, check=True)
    if int(done.stdout) == 0:
        pytest.skip("this machine has no huge pages to give")
    assert int(done.stdout) >= 16 << 10
