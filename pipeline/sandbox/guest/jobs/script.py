"""Guest: the function `main(request, tensors)` of a source. Used by the self-test of `kernelquarry doctor`."""

from __future__ import annotations

from typing import Any

import torch

from ..lib.load_source import load_source


def run(request: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Load `request["code"]` and call its `main` with `request["arguments"]`; it returns what a guest's `run` does."""
    module = load_source(request["code"], "script")
    result: tuple[dict[str, Any], dict[str, torch.Tensor]] = module.main(request["arguments"], tensors)
    return result
