"""A small chaos test: a build that is killed three times, at fixed moments, gives the same shards as without kills."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from chaos import FAULTS, drawn, redone
from figures import ROOT


def test_three_kills(tmp_path: Path) -> None:
    results = tmp_path / "rounds.jsonl"
    command = [sys.executable, ROOT / "benchmarks" / "chaos.py", "--dry", "--rounds", "1", "--until", "mine"]
    command += ["--faults", "kill at 3", "kill at 3", "kill at 2", "--results", results]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "round 0: kill at 3, kill at 3, kill at 2; " in ended.stdout
    assert '"same": true' in results.read_text()


def test_each_kind_of_fault_comes_first_as_often() -> None:
    first = [drawn(number, random.Random(number))[0] for number in range(2 * len(FAULTS))]
    assert sorted(fault.rstrip(" 0123456789") for fault in first) == sorted(2 * FAULTS)


def test_what_was_begun_again_after_a_kill_is_counted() -> None:
    began = ["a", "b", "c", "b", "c", "d"]  # killed after the third
    assert redone(["kill", ""], [3, 6], began) == 2
    assert redone(["stall", ""], [3, 6], began) == 0
    assert redone(["kill", "damage", ""], [3, 3, 6], began) == 0  # it lost what was done
