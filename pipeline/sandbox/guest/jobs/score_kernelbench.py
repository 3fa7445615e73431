"""Guest: a candidate scored as KernelBench scores it, beside its reference in one process, its kernels interpreted.

This is no verdict. It tells how much of what passes elsewhere is right: the candidate could read the answer here, sees
the very inputs of the reference, in one shape, and is compared within fixed tolerances.
"""

from __future__ import annotations

from typing import Any

import torch

from ..candidate import fake_cuda
from ..lib.load_source import load_source
from ..lib.pytree import flatten
from .interpret import warm as warm

_SEED = 42


def run(request: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """See `score`."""
    torch.set_num_threads(1)
    with fake_cuda.pretend():
        return score(request, fake_cuda.DEVICE), {}


def score(request: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Call the source `reference` and the source `candidate` on `trials` draws of the reference's `get_inputs()`.

    Replies with whether the candidate `compiled`: it was constructed; the `tolerances` within which it was right each
    time; and the `error` that it raised, if it did.
    """
    reference = vars(load_source(request["reference"], "reference"))
    expected = _construct(reference, "Model", reference, device)
    reply: dict[str, Any] = {"compiled": False, "tolerances": [], "error": ""}
    try:
        candidate = vars(load_source(request["candidate"], "candidate"))
        found = _construct(candidate, "ModelNew", reference, device)
        reply["compiled"] = True
        held = list(request["tolerances"])
        with torch.no_grad():
            for trial in range(request["trials"]):
                torch.manual_seed(_SEED + trial)
                inputs = [_moved(value, device) for value in reference["get_inputs"]()]
                wanted, got = expected(*inputs), found(*inputs)
                held = [tolerance for tolerance in held if _close(wanted, got, tolerance)]
        reply["tolerances"] = held
    except Exception as error:  # noqa: BLE001  whatever it raises is the finding
        reply["error"] = f"{type(error).__name__}: {error}"[:500]
    return reply


def _construct(namespace: dict[str, Any], name: str, reference: dict[str, Any], device: torch.device) -> Any:
    torch.manual_seed(_SEED)
    arguments = reference["get_init_inputs"]() if "get_init_inputs" in reference else []
    torch.manual_seed(_SEED)
    return namespace[name](*arguments).to(device).eval()


def _moved(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _close(wanted: Any, got: Any, tolerance: float) -> bool:
    ours: list[torch.Tensor] = []
    theirs: list[torch.Tensor] = []
    flatten(wanted, ours)
    flatten(got, theirs)
    return len(ours) == len(theirs) and all(
        one.shape == other.shape and torch.allclose(one.float(), other.float(), atol=tolerance, rtol=tolerance)
        for one, other in zip(ours, theirs, strict=True)
    )
