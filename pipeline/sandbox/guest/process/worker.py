"""The life of a guest: from the fork to its reply."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from kernelquarry.pipeline.sandbox import protocol
from kernelquarry.pipeline.sandbox.jobs.kind import GuestKind, to_json
from kernelquarry.pipeline.sandbox.layers import Layers
from kernelquarry.pipeline.sandbox.layers.limits import Limits
from kernelquarry.pipeline.sandbox.protocol import Tensors

Kind: TypeAlias = GuestKind[Any, Any]
Run: TypeAlias = Callable[[Any, Tensors], tuple[Any, Tensors]]

_MAX_ERROR = 4096  # characters
_MAX_TRACEBACK = 16384
_FOLDERS = ("HOME", "TMPDIR", "XDG_CACHE_HOME")
_CACHES = ("TRITON_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")


def main(
    kinds: Mapping[str, tuple[Kind, Run]],
    layers: Layers,
    data_kb: int,
    job: dict[str, Any],
    request: int,
    reply: int,
    output: int,
) -> NoReturn:
    """Become a guest, run the job, write the reply, exit. Called in the forked process.

    Args:
        kinds: kinds of jobs by name, each with the function that does the job.
    """
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        _take_descriptors(request, reply, output)
        faulthandler.enable()  # prints the stack when a signal ends the guest
        _take_environment(job["scratch"])
        layers.confine(job["scratch"], Limits(**job["limits"]), data_kb)
        _answer(*kinds[job["kind"]], job, request, reply)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(1)


def _take_descriptors(request: int, reply: int, output: int) -> None:
    """Keep no file descriptor but the guest's own."""
    null = os.open("/dev/null", os.O_RDONLY)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    first, second = sorted((request, reply))
    os.closerange(3, first)
    os.closerange(first + 1, second)
    os.closerange(second + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _take_environment(scratch: str) -> None:
    os.environ |= {name: scratch for name in _FOLDERS}
    os.environ |= {name: os.path.join(scratch, name.lower()) for name in _CACHES}
    tempfile.tempdir = None  # the warm process may have cached it


def _answer(kind: Kind, run: Run, job: dict[str, Any], request: int, reply: int) -> None:
    nonce = bytes.fromhex(job["nonce"])
    capacity = os.fstat(reply).st_size
    arguments, inputs = protocol.read(request, nonce)
    try:
        result, tensors = run(kind.read_request(arguments), inputs)
        body: dict[str, Any] = {"reply": to_json(result)}
    except BaseException as error:  # noqa: BLE001 (whatever mined code raises is the reply)
        body, tensors = _describe(error, "exit" if isinstance(error, SystemExit) else "raised"), {}
    try:
        protocol.write(reply, nonce, body, tensors, capacity)
    except protocol.ProtocolError as error:
        protocol.write(reply, nonce, _describe(error, "reply"), {}, capacity)


def _describe(error: BaseException, ended: str) -> dict[str, str]:
    """Type, message and traceback of an exception, whose `str` may raise, and may be of any length.

    An exception without a message gets the line that raises it.
    """
    summary = traceback.TracebackException.from_exception(error)
    raised = [f"line {frame.lineno}: {frame.line}" for frame in summary.stack[-1:] if frame.line]
    message = (str(summary) or "".join(raised))[:_MAX_ERROR]
    if isinstance(error, MemoryError) or "can't allocate memory" in message:
        ended = "memory"
    return {
        "ended": ended,
        "error": f"{type(error).__name__}: {message}" if message else type(error).__name__,
        "traceback": "".join(summary.format())[-_MAX_TRACEBACK:],
    }
