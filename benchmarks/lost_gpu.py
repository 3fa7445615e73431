"""The executor of a simulated GPU that is lost during a run. `chaos.py` starts it.

With a seed, it dies during one of its first jobs; executors with another number than 0 never restart.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from figures import ROOT

from kernelquarry.pipeline.sandbox.executor import process

sys.path.append(str(ROOT / "tests"))

from gpu_double import Double, floats


def main(folder: str, seed: str, control_fd: int, ordinal: int) -> None:
    lost, jobs = Path(folder, f"gpu{ordinal}.{seed}.lost"), 0
    if seed and ordinal and lost.exists():
        sys.exit("the GPU has fallen off the bus")

    def add(grid: Any, x: int, weight: int, out: int, count: int) -> None:
        nonlocal jobs
        jobs += 1
        if seed and jobs > int(seed) % 2 and not lost.exists():
            lost.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        floats(out, count)[:] = floats(x, count) + floats(weight, count)

    def scale(grid: Any, x: int, out: int, count: int, factor: float) -> None:
        floats(out, count)[:] = floats(x, count) * factor

    control = socket.socket(fileno=control_fd)
    control.send(json.dumps({"ready": {"name": "a double", "target": "sm_90", "driver": "1"}}).encode())
    process.serve(control, Double({"add": add, "scale": scale}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
