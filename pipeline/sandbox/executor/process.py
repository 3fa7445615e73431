"""The executor process: runs one job at a time on one GPU until the host exits. `service` starts it."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from kernelquarry.pipeline.sandbox import protocol
from kernelquarry.pipeline.sandbox.cuda import Fault
from kernelquarry.pipeline.sandbox.observation import MalformedReply, require_tensor
from kernelquarry.pipeline.sandbox.protocol import Tensors

from .gpu_kernels import Gpu
from .guarded_buffers import Arena
from .program import Program
from .replay_program import Device, load, replay
from .slope import slope

_MESSAGE = 1 << 16
_POLL_S = 1.0  # between two checks that the host is alive


def execute(device: Device, request: Mapping[str, Any], tensors: Tensors) -> tuple[dict[str, Any], Tensors]:
    """Replay `request["programs"]`, which a guest traced, once for each entry of `request["runs"]`.

    A run names its `program`, its `trial`, whose tensors are `input.<trial>.<i>`, its `state`, whose tensors are
    `state.<key>.<name>`, the `poison` of unwritten memory, and whether it is `launching`. Binaries come as
    `binary.<sha256>`, constants as `constant.<program>.<storage>`.

    Returns the names that each run `changed`, and the tensors `<run>.output.<i>` and `<run>.changed.<name>`.

    Raises:
        Fault: a launch failed, or wrote outside of its buffers.
        MalformedReply: the programs do not have the tracer's form.
    """
    kernels, programs = load(device, request, tensors)
    arenas: dict[int, Arena] = {}
    results: Tensors = {}
    reply: dict[str, Any] = {"runs": []}
    for number, run in enumerate(request["runs"]):
        index = run["program"]
        program = programs[index]
        if index not in arenas:
            arenas = {index: Arena(program, device.memory)}  # keep one at a time: some are large
        outputs, changed = replay(
            program,
            kernels,
            device,
            arenas[index],
            _values(program, run, tensors),
            {storage: require_tensor(tensors, f"constant.{index}.{storage}") for storage in program.constants},
            run["poison"],
            run["launching"],
        )
        results |= {f"{number}.output.{i}": output for i, output in enumerate(outputs)}
        results |= {f"{number}.changed.{name}": value for name, value in changed.items()}
        reply["runs"].append({"changed": sorted(changed)})
    return reply, results


def _values(program: Program, run: Mapping[str, Any], tensors: Tensors) -> dict[str, Tensor]:
    """The run's tensors, by the names that the program uses."""
    prefixes = {"input": f"input.{run['trial']}", "state": f"state.{run['state']}"}
    values = {}
    for name in program.named:
        kind, _, rest = name.partition(".")
        if kind not in prefixes:
            raise MalformedReply(f"a program with {name}")
        values[name] = require_tensor(tensors, f"{prefixes[kind]}.{rest}")
    return values


def check(device: Device) -> None:
    """Run a computation with a known answer. Raises `Fault` if the device gets it wrong."""
    values = torch.arange(1 << 16, dtype=torch.float32, device=device.memory)
    if float((values * 2 - values).sum()) != float(values.sum()):
        raise Fault("the device gives wrong answers", poisoned=True)


def serve(control: socket.socket, device: Device) -> None:
    """Answer jobs until the host closes the socket, or the device is unusable; the last reply then says `ends`."""
    while True:
        message, fds, _, _ = socket.recv_fds(control, _MESSAGE, 2, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return
        job, (request, answer) = json.loads(message), fds
        nonce = bytes.fromhex(job["nonce"])
        outcome, results = _outcome(device, *protocol.read(request, nonce))
        protocol.write(answer, nonce, outcome, results, job["capacity"])
        for fd in fds:
            os.close(fd)
        control.send(b"done")
        if outcome["ends"]:
            return


def _outcome(device: Device, request: Mapping[str, Any], tensors: Tensors) -> tuple[dict[str, Any], Tensors]:
    """The reply to one job. After a failure the device must pass `check`, or this process ends."""
    try:
        reply, results = (slope if "drawn" in request else execute)(device, request, tensors)
        return {"status": "done", "reply": reply, "error": "", "ends": False}, results
    except Fault as fault:
        status, message, ends = "fault", str(fault), fault.poisoned
    except torch.AcceleratorError as error:
        status, message, ends = "fault", _fault_of(device, error), True
    except torch.OutOfMemoryError as error:
        status, message, ends = "memory", str(error).splitlines()[0], False
    except (MalformedReply, ValueError) as error:
        status, message, ends = "malformed", str(error), False
    try:
        if not ends:
            check(device)
    except (Fault, RuntimeError):
        ends = True
    return {"status": status, "reply": {}, "error": message, "ends": ends}, {}


def _fault_of(device: Device, error: torch.AcceleratorError) -> str:
    """The message of a kernel's asynchronous fault, which torch reported from a later call of its own.

    Raises:
        AcceleratorError: the device works, so `error` has another cause.
    """
    try:
        device.synchronize()
    except Fault as fault:
        return str(fault)
    raise error


def main() -> None:
    control, ordinal = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    threading.Thread(target=_exit_with_host, args=(os.getppid(),), daemon=True).start()
    gpu = Gpu(ordinal)
    check(gpu)
    control.send(json.dumps({"ready": gpu.describe()}).encode())
    serve(control, gpu)
    os._exit(0)  # skips destructors, which would touch a context that may be unusable


def _exit_with_host(host: int) -> None:
    """Exit when the host is gone: an endless kernel must not outlive a host that was killed."""
    while os.getppid() == host:
        time.sleep(_POLL_S)
    os._exit(1)


if __name__ == "__main__":
    main()
