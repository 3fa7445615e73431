"""How the chaos benchmark draws its faults, and what it counts."""

from __future__ import annotations

import random
import sys

from kernelquarry.pipeline.figures import ROOT

sys.path.append(str(ROOT / "benchmarks"))
from chaos import FAULTS, drawn, redone


def test_each_kind_of_fault_comes_first_as_often() -> None:
    first = [drawn(number, random.Random(number))[0] for number in range(2 * len(FAULTS))]
    assert sorted(fault.rstrip(" 0123456789") for fault in first) == sorted(2 * FAULTS)


def test_what_was_begun_again_after_a_kill_is_counted() -> None:
    began = ["a", "b", "c", "b", "c", "d"]  # killed after the third
    assert redone(["kill", ""], [3, 6], began) == 2
    assert redone(["stall", ""], [3, 6], began) == 0
    assert redone(["kill", "damage", ""], [3, 3, 6], began) == 0  # it lost what was done
