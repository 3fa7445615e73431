"""Guest job: mutants of one candidate, or the candidate itself, each called once, in a perturbed environment.

Kernels are interpreted. Mutants are written by the host, so they share a guest.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.jobs.perturbed import PerturbedReply, PerturbedRequest, PerturbedRun, RunSpec

from ..candidate import fake_cuda
from ..candidate.candidate_call import CandidateCall, other_weights
from ..candidate.launch_log import Order, session
from ..candidate.module_setup import construct
from ..candidate.perturbations import PERTURBATIONS, PerturbedUse
from ..lib.cpu_limit import TooSlow, cpu_limit
from ..lib.errors import OutOfBounds, describe
from ..tamper import reachable_state
from .run_trials import warm as warm

_MESSAGE = 200  # characters
_LEAST_RUNS = 3  # that a budget is enough for


def run(request: PerturbedRequest, tensors: dict[str, Tensor]) -> tuple[PerturbedReply, dict[str, Tensor]]:
    """Make each run on a module of its own."""
    torch.set_num_threads(1)
    results: dict[str, Tensor] = {}
    runs, budget_s = [], request.budget_s
    with fake_cuda.pretend():
        for number, spec in enumerate(request.runs):
            session.order, session.trial, session.failed = Order.FORWARD, spec.configuration, []
            session.zero_masked = False
            fake_cuda.answer(fake_cuda.PROPERTIES)
            started = time.process_time()
            try:
                # Of a small budget each run gets a part, so that two slow calls hide no other.
                with cpu_limit(min(spec.limit_s, budget_s / _LEAST_RUNS) if spec.limit_s else 0.0):
                    runs.append(_run(spec, request, tensors, number, results))
            except TooSlow:
                runs.append(PerturbedRun())
            except Exception as error:  # noqa: BLE001  whatever it raises is the finding
                broken = session.failed[0] if session.failed else ""
                outside = isinstance(error, OutOfBounds)
                runs.append(PerturbedRun(raised=describe(error, _MESSAGE), outside=outside, broken=broken))
            budget_s -= time.process_time() - started if spec.limit_s else 0.0
    return PerturbedReply(tuple(runs)), results


def _run(
    spec: RunSpec, request: PerturbedRequest, tensors: Mapping[str, Tensor], number: int, results: dict[str, Tensor]
) -> PerturbedRun:
    call = CandidateCall.of_trial(request.trials, spec.trial, tensors)
    source = replace(request.module, code=spec.code)
    use = PerturbedUse(source, call, other_weights(tensors, call), request.argument_names, f"mutant{number}", spec.seed)
    perturbations = [perturbation for name, perturbation in PERTURBATIONS.items() if name in spec.perturbations]
    for perturbation in perturbations:
        perturbation.before(use)
    use.module = nn.Module.to(construct(source, use.name), fake_cuda.DEVICE)
    use.namespace = vars(sys.modules[use.name])
    call.load(use.module)
    torch.set_num_threads(1)
    for perturbation in perturbations:
        perturbation.around(use)
    for perturbation in perturbations:
        perturbation.after(use)
    if spec.configuration:
        use.run()  # the first call may leave something for the second
    result = use.run()
    results |= result.tensors(str(number))
    launch_log = tuple(session.log)
    changed = _changed_again(use) if spec.again else ""
    return PerturbedRun(result.observed, "", False, "", session.configurations, launch_log, changed)


def _changed_again(use: PerturbedUse) -> str:
    """State that a third call changes after a second: state that the module keeps, or memory of its kernels."""
    use.run()
    first = session.given()  # alive, so that nothing new is at their addresses
    before = {key: _bytes(storage) for key, storage in first.items()}
    keeps = reachable_state.kept(use.module, use.namespace, contents=True)
    use.run()
    changed = any(_bytes(first[key]) != before[key] for key in first.keys() & session.given().keys())
    difference = reachable_state.difference(keeps, reachable_state.kept(use.module, use.namespace, contents=True))
    return difference or ("memory that kernels are given" if changed else "")


def _bytes(storage: torch.UntypedStorage) -> bytes:
    return ctypes.string_at(storage.data_ptr(), storage.nbytes())
