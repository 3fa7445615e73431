"""Guest job: calls of one candidate in perturbed environments, with its kernels interpreted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.jobs.perturbed import PerturbedReply, PerturbedRequest, PerturbedRun, RunSpec

from ..candidate import fake_cuda
from ..candidate.call_memory import CallMemory
from ..candidate.candidate_call import CallResult, CandidateCall
from ..candidate.launch_log import Order, session
from ..candidate.module_setup import construct
from ..candidate.perturbations import PERTURBATIONS, PerturbedUse
from ..lib.cpu_limit import SLOWNESS, TooSlow, cpu_limit
from ..lib.faults import OutOfBounds, describe
from .run_trials import warm as warm

_MESSAGE = 200  # characters
_LEAST_RUNS = 3  # that a budget is enough for


def run(request: PerturbedRequest, tensors: dict[str, Tensor]) -> tuple[PerturbedReply, dict[str, Tensor]]:
    """Make each run on a module of its own."""
    torch.set_num_threads(1)
    results: dict[str, Tensor] = {}
    runs, budget_s = [], request.budget_s * SLOWNESS
    numbers = {code: number for number, code in enumerate(dict.fromkeys(spec.code for spec in request.runs))}
    with fake_cuda.pretend():
        for number, spec in enumerate(request.runs):
            session.order, session.trial, session.failed = Order.FORWARD, spec.configuration, []
            session.zero_masked = False
            session.memory = None if request.writable is None else CallMemory(request.writable)
            fake_cuda.answer(fake_cuda.PROPERTIES)
            started = time.process_time()
            if spec.limit_s and budget_s <= 0.0:
                runs.append(PerturbedRun())
                continue
            try:
                # Of a small budget each run gets a part, so that two slow calls hide no other.
                limit_s = min(spec.limit_s * SLOWNESS, budget_s / _LEAST_RUNS) if spec.limit_s else 0.0
                with cpu_limit(limit_s):
                    name = f"perturbed{numbers[spec.code]}"
                    result = _run(spec, request, tensors, name)
                results |= result.tensors(str(number))
                launched = tuple(session.log)
                runs.append(PerturbedRun(result.observed, "", False, "", session.configurations, launched))
            except TooSlow:
                runs.append(PerturbedRun())
            except Exception as error:  # noqa: BLE001  whatever it raises is the finding
                broken = session.failed[0] if session.failed else ""
                outside = isinstance(error, OutOfBounds)
                runs.append(PerturbedRun(raised=describe(error, _MESSAGE), outside=outside, broken=broken))
            budget_s -= time.process_time() - started if spec.limit_s else 0.0
    return PerturbedReply(tuple(runs)), results


def _run(spec: RunSpec, request: PerturbedRequest, tensors: Mapping[str, Tensor], name: str) -> CallResult:
    """The call, of a module whose source is loaded under this name."""
    source = replace(request.module, code=spec.code)
    use = PerturbedUse(CandidateCall.of_trial(request.trials, spec.trial, tensors), spec.seed)
    for perturbation in spec.perturbations:
        PERTURBATIONS[perturbation](use)
    module = nn.Module.to(construct(source, name), fake_cuda.DEVICE)
    use.call.load(module)
    if spec.configuration:
        use.run(module)  # the first call may leave something for the second
    return use.run(module)
