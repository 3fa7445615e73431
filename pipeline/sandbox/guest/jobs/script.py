"""Guest job: the function `main(arguments, tensors)` of a source, for `kernelquarry doctor` and tests."""

from __future__ import annotations

from typing import Any

import torch

from kernelquarry.pipeline.sandbox.jobs.script import ScriptRequest

from ..lib.load_source import load_source


def run(request: ScriptRequest, tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The reply and the tensors that `main` of the source returns."""
    module = load_source(request.code, "script")
    result: tuple[dict[str, Any], dict[str, torch.Tensor]] = module.main(request.arguments, tensors)
    return result
