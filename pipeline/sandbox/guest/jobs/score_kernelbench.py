"""Guest job: a candidate scored as KernelBench scores it, in one process with its reference.

The score is no verdict. It shows how much of what passes elsewhere is right: the candidate could read the answer, sees
the very inputs of the reference, in one shape, and is compared within fixed tolerances.
"""

from __future__ import annotations

from typing import Any

import torch

from kernelquarry.pipeline.sandbox.jobs.score_kernelbench import KernelbenchReply, KernelbenchRequest

from ..lib.faults import describe
from ..lib.load_source import load_source
from ..lib.pytree import flatten
from .run_trials import device as device_of
from .run_trials import warm as warm

_SEED = 42


def run(
    request: KernelbenchRequest, tensors: dict[str, torch.Tensor]
) -> tuple[KernelbenchReply, dict[str, torch.Tensor]]:
    with device_of(request.gpu) as device:
        return _score(request, device), {}


def _score(request: KernelbenchRequest, device: torch.device) -> KernelbenchReply:
    reference = vars(load_source(request.reference, "reference"))
    expected = _construct(reference, "Model", reference, device)
    compiled, held = False, request.tolerances
    try:
        candidate = vars(load_source(request.candidate, "candidate"))
        found = _construct(candidate, "ModelNew", reference, device)
        compiled = True
        with torch.no_grad():
            for trial in range(request.trials):
                torch.manual_seed(_SEED + trial)
                given = reference["get_inputs"]()
                inputs = [value.to(device) if isinstance(value, torch.Tensor) else value for value in given]
                wanted, got = expected(*inputs), found(*inputs)
                held = tuple(tolerance for tolerance in held if _close(wanted, got, tolerance))
    except Exception as error:  # noqa: BLE001  whatever it raises is the finding
        return KernelbenchReply(compiled, (), describe(error))
    return KernelbenchReply(compiled, held, "")


def _construct(namespace: dict[str, Any], name: str, reference: dict[str, Any], device: torch.device) -> Any:
    torch.manual_seed(_SEED)
    arguments = reference["get_init_inputs"]() if "get_init_inputs" in reference else []
    torch.manual_seed(_SEED)
    return namespace[name](*arguments).to(device).eval()


def _close(wanted: Any, got: Any, tolerance: float) -> bool:
    ours: list[torch.Tensor] = []
    theirs: list[torch.Tensor] = []
    flatten(wanted, ours)
    flatten(got, theirs)
    return len(ours) == len(theirs) and all(
        one.shape == other.shape and torch.allclose(one.float(), other.float(), atol=tolerance, rtol=tolerance)
        for one, other in zip(ours, theirs, strict=True)
    )
