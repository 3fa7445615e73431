"""Guest: mutants of one candidate, or the candidate itself, each called once, their kernels interpreted.

Mutants are ours but for one mistake each, so they need no guest of their own.
"""

from __future__ import annotations

import ctypes
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
    """Make each of `calls`, of the entry point of its `code` on the first of `trials`; see `verifying/trials.run`.

    `reverse` says whether the programs of its grids run from the last to the first, `configuration` which of an
    autotuned kernel's is taken, `again` whether it is called twice.

    Replies with `runs`: a description of the call, see `verifying/subject.call`, or what was `raised`, and whether a
    kernel was `outside` of its tensors. The description also has `configurations`, the most that a kernel has, and,
    of what is called twice, `changed_again`: whether the second call left other bytes than the first in memory that
    kernels were given in both, of which state is not asked. Tensors go as `<number>.output.<i>`.
    """
    torch.set_num_threads(1)
    with gpu.pretend():
        return _run(request, tensors)


def _run(request: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    results: dict[str, Tensor] = {}
    runs = []
    for number, call in enumerate(request["calls"]):
        session.reverse, session.trial = call["reverse"], call["configuration"]
        try:
            runs.append(_call(call, request, tensors, str(number), results))
        except Exception as error:  # noqa: BLE001  whatever it raises is the finding
            message = f"{type(error).__name__}: {error}"[:_MESSAGE]
            runs.append({"raised": message, "outside": isinstance(error, OutOfBounds)})
    return {"runs": runs}, results


def _call(
    call: Mapping[str, Any],
    request: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    number: str,
    results: dict[str, Tensor],
) -> dict[str, Any]:
    trial = request["trials"][0]
    module = nn.Module.to(subject.constructed(request, call["code"], f"mutant{number}"), gpu.DEVICE)
    subject.load_state(module, subject.selected(tensors, f"state.{trial['state']}."))
    inputs = [tensors[f"input.0.{i}"] for i in range(trial["inputs"])]
    description, outputs, mutated, _ = subject.call(module, trial, inputs, Watch(), tensors.get("gradient.0"))
    results.update(subject.pack(number, outputs, mutated))
    description["configurations"] = session.configurations
    if call["again"]:
        first = session.given()  # alive, so that nothing new is at their addresses
        before = {key: _bytes(storage) for key, storage in first.items()}
        subject.call(module, trial, inputs, Watch(), tensors.get("gradient.0"))
        kept = first.keys() & session.given().keys()
        description["changed_again"] = any(_bytes(first[key]) != before[key] for key in kept)
    return description


def _bytes(storage: torch.UntypedStorage) -> bytes:
    return ctypes.string_at(storage.data_ptr(), storage.nbytes())
