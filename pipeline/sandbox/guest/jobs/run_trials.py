"""Guest job: the trials of a candidate, every launch and operator recorded.

Its kernels are interpreted on the CPU, or run on a GPU where no trace can describe the candidate. There the candidate's
Python meets the GPU, so the row says that it was verified so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
import triton
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.jobs.run_trials import TrialsReply, TrialsRequest

from ..candidate import fake_cuda, op_census
from ..candidate.candidate_call import CandidateCall, name_tensors, weight_sets
from ..candidate.launch_log import Order, session
from ..candidate.module_setup import construct, digests, fits
from ..candidate.op_census import Watch
from ..candidate.snapshot import take_snapshot
from ..compiler import gpu_driver
from ..interpreter import install
from ..lib.faults import OutOfBounds, describe
from . import compile as compiling


def warm() -> None:
    """Prepare the interpreter, or the compiler for a GPU. No CUDA context is made: no fork would survive it."""
    if triton.knobs.runtime.interpret:
        install.install()
    else:
        compiling.warm()
    op_census.warm()


@contextmanager
def device(gpu: int | None) -> Iterator[torch.device]:
    """The device of a candidate: the GPU of this ordinal, or a pretended one, for which kernels are interpreted."""
    torch.set_num_threads(1)
    if gpu is not None:
        yield gpu_driver.meet(gpu).memory
        return
    with fake_cuda.pretend():
        yield fake_cuda.DEVICE


def run(request: TrialsRequest, tensors: dict[str, Tensor]) -> tuple[TrialsReply, dict[str, Tensor]]:
    """Call the candidate on each trial, repeat the first one, and repeat it without launches (ghost replay).

    The repetition finds other values in fresh memory, and runs the programs of each grid in reverse where they are
    interpreted.
    """
    with device(request.gpu) as place:
        try:
            with Watch():
                module = construct(request.module, "candidate")
        except Exception as error:  # noqa: BLE001  whatever the candidate raises is the finding
            return TrialsReply(load_error=describe(error)), {}
        reply = TrialsReply(state=digests(module))
        if not all(fits(module, weights) for weights in weight_sets(tensors).values()):
            return reply, {}
        nn.Module.to(module, place)
        reply = replace(reply, snapshot=take_snapshot(module))
        calls = [CandidateCall.of_trial(request.trials, i, tensors, place) for i in range(len(request.trials))]
        return _run(module, calls, reply)


def _run(module: nn.Module, calls: list[CandidateCall], reply: TrialsReply) -> tuple[TrialsReply, dict[str, Tensor]]:
    results: dict[str, Tensor] = {}
    trials, launches, logs = [], [], []
    census = Watch()
    first_outputs: list[Tensor] = []
    refused: list[int] = []
    broken: dict[str, str] = {}
    for index, call in enumerate(calls):
        with census:
            call.load(module)
        session.launches.clear()
        session.trial = index
        try:
            result = call.run(module, census)
        except OutOfBounds:
            raise
        except Exception:
            if not call.trial.optional:
                raise
            refused.append(index)
            if session.failed:
                broken[str(index)] = session.failed[0]
            session.failed.clear()
            continue
        results |= result.tensors(str(index))
        trials.append(result.observed)
        first_outputs = first_outputs or result.outputs
        launches.append(tuple(session.launches))
        logs.append(tuple(session.log))
    logs = logs if triton.knobs.runtime.interpret else []
    reply = replace(reply, trials=tuple(trials), launches=tuple(launches), launch_logs=tuple(logs))
    if refused:
        return replace(reply, refused=tuple(refused), broken=broken), {}
    results |= name_tensors("later", first_outputs)
    again = Watch(nan=False)
    with again:
        calls[0].load(module)
    session.order = Order.REVERSE
    repeat = calls[0].run(module, again)
    session.order = Order.FORWARD
    results |= repeat.tensors("repeat")
    operators, failed = tuple(sorted(census.operators | again.operators)), tuple(session.failed[:8])
    reply = replace(reply, repeat=repeat.observed, operators=operators, failed=failed)
    session.skip = True
    try:
        ghost = calls[0].run(module, Watch())
    except Exception:  # noqa: BLE001  poisoned indices may well raise: the kernels mattered
        return reply, results
    return replace(reply, ghost=ghost.observed), results | ghost.tensors("ghost")
