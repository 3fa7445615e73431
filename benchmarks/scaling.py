"""Measure how the queue in front of the GPUs scales, with simulated executors that are busy as long as a GPU would be.

    python benchmarks/scaling.py

Everything on the host is real: leases, messages, a process for each executor. On a machine with GPUs, `executed.py`
measures the real executors (rounds "first" and "again").
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from figures import record

from kernelquarry.pipeline.sandbox import protocol
from kernelquarry.pipeline.sandbox.executor.service import Gpus

BUSY_S = 0.045  # of an H100 for one candidate, as `executed.py` finds it
BYTES = 1 << 18  # of tensors in a request, as a candidate's have
JOBS = 150  # for each GPU
GUESTS = 16  # that wait for an answer, for each GPU
GPUS = (1, 2, 4)


def executor() -> None:
    """A simulated executor: `executor/process.serve` with a sleep in place of the GPU."""
    control = socket.socket(fileno=int(sys.argv[2]))
    control.send(json.dumps({"ready": {"name": "a stand-in", "target": "sm_90", "driver": ""}}).encode())
    while True:
        message, fds, _, _ = socket.recv_fds(control, 1 << 16, 2, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return
        job = json.loads(message)
        nonce = bytes.fromhex(job["nonce"])
        _, tensors = protocol.read(fds[0], nonce)
        time.sleep(BUSY_S)
        protocol.write(fds[1], nonce, {"how": "done", "reply": {}, "why": "", "ends": False}, tensors, job["capacity"])
        for fd in fds:
            os.close(fd)
        control.send(b"done")


def rate(number: int) -> float:
    """Jobs per second on `number` simulated GPUs."""
    tensors = {"x": torch.zeros(BYTES, dtype=torch.uint8)}
    with (
        Gpus(range(number), (sys.executable, __file__, "--executor")) as gpus,
        ThreadPoolExecutor(GUESTS * number) as threads,
    ):
        list(threads.map(lambda _: gpus.run({}, tensors, 60.0), range(2 * number)))  # all executors are there
        started = time.monotonic()
        list(threads.map(lambda _: gpus.run({}, tensors, 60.0), range(JOBS * number)))
        return JOBS * number / (time.monotonic() - started)


def main() -> None:
    rates = {number: rate(number) for number in GPUS}
    for number, found in rates.items():
        print(f"{number} GPUs: {found:6.1f} a second, {100 * found / (number * rates[1]):.1f} % of linear")
    note = "simulated: " + ", ".join(f"{found:.1f} a second on {number} GPUs" for number, found in rates.items())
    record("verdict.gpu_scaling", 100 * rates[2] / (2 * rates[1]), "python benchmarks/scaling.py", note)


if __name__ == "__main__":
    executor() if sys.argv[1:2] == ["--executor"] else main()
