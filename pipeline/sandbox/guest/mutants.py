"""Guest: mutants of one candidate, or the candidate itself, each called once, their kernels interpreted.

Mutants are ours but for one mistake each, so they need no guest of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .interpret import warm as warm
from .verifying import gpu, subject
from .verifying.memory import OutOfBounds
from .verifying.session import session
from .verifying.watch import Watch

_MESSAGE = 200  # characters


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Call the entry point of each of `codes` on the first of `trials`; see `verifying/trials.run` for the rest.

    `reverse` says of each whether the programs of its grids run from the last to the first.

    Replies with `runs`: a description of the call, see `verifying/subject.call`, or what was `raised`, and whether a
    kernel was `outside` of its tensors. Tensors go as `<number>.output.<i>`.
    """
    torch.set_num_threads(1)
    with gpu.pretend():
        return _run(request, tensors)


def _run(request: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    results: dict[str, Tensor] = {}
    runs = []
    for number, (code, session.reverse) in enumerate(zip(request["codes"], request["reverse"], strict=True)):
        try:
            runs.append(_call(code, request, tensors, str(number), results))
        except Exception as error:  # noqa: BLE001  whatever it raises is the finding
            message = f"{type(error).__name__}: {error}"[:_MESSAGE]
            runs.append({"raised": message, "outside": isinstance(error, OutOfBounds)})
    return {"runs": runs}, results


def _call(
    code: str, request: Mapping[str, Any], tensors: Mapping[str, Tensor], number: str, results: dict[str, Tensor]
) -> dict[str, Any]:
    trial = request["trials"][0]
    module = nn.Module.to(subject.constructed(request, code, f"mutant{number}"), gpu.DEVICE)
    subject.load_state(module, subject.selected(tensors, f"state.{trial['state']}."))
    inputs = [tensors[f"input.0.{i}"] for i in range(trial["inputs"])]
    description, outputs, mutated = subject.call(module, trial, inputs, Watch(), tensors.get("gradient.0"))
    results.update(subject.pack(number, outputs, mutated))
    return description
