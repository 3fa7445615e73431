"""Script for a guest: KernelBench's own evaluator and static checker on one candidate.

`versus.py` sends this file's text and that of KernelBench's package, since a guest cannot read a checkout. The
evaluator's text is not changed. Its package imports clients of model APIs when it is loaded, and uses none of them to
evaluate: stand-ins take their place on every machine.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from kernelquarry.pipeline.sandbox.guest.jobs.run_trials import device
from kernelquarry.pipeline.sandbox.guest.lib.faults import describe

_REASONS = ("compilation_error", "correctness_issue", "runtime_error")


class BaseModel:
    """Stand-in for pydantic's class, from which the evaluator derives its result."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def _unused(*_: Any, **__: Any) -> None:
    """Stand-in for a function of a client, which the package imports and evaluation does not need."""


_STAND_INS: dict[str, dict[str, Any]] = {
    "dotenv": {"load_dotenv": _unused},
    "litellm": {"completion": _unused},
    "openai": {"OpenAI": _unused},
    "pydantic": {"BaseModel": BaseModel},
    "requests": {},
    "tqdm": {"tqdm": _unused},
}


def main(arguments: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """`arguments`: `files` (name to text), `reference`, `candidate`, `trials`, `gpu` (ordinal, None in tests)."""
    install(arguments["files"])
    with device(arguments["gpu"]) as place:
        torch.backends.cudnn.allow_tf32 = True  # torch's default, which KernelBench does not change
        checker = importlib.import_module("kernelbench.kernel_static_checker")
        _, errors, _ = checker.validate_kernel_static(arguments["candidate"], backend="triton", precision="fp32")
        accepted, why = evaluate(arguments, place)
        return {"accepted": accepted, "why": why, "static": errors}, {}


def evaluate(arguments: dict[str, Any], place: torch.device) -> tuple[bool, str]:
    """True if KernelBench finds the candidate correct, else its reason."""
    evaluator = importlib.import_module("kernelbench.eval")
    try:
        result = evaluator.eval_kernel_against_ref(
            arguments["reference"],
            arguments["candidate"],
            num_correct_trials=arguments["trials"],
            measure_performance=False,
            device=place,
            backend="triton",
            precision=torch.float32,
        )
    except Exception as error:  # noqa: BLE001  KernelBench's scripts count any exception as a failure
        return False, describe(error)
    if result is None or not result.correctness:
        found = result.metadata if result is not None else {}
        reasons = [str(found[name]) for name in _REASONS if name in found]
        return False, "; ".join([*reasons, *map(str, found.get("max_difference", [])[:1])])[:500] or "no result"
    return True, ""


def install(files: dict[str, str]) -> None:
    """Write the package into the working folder, the guest's scratch, from which it is imported."""
    folder = Path.cwd() / "kernelbench"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder.parent))
    for name, attributes in _STAND_INS.items():
        sys.modules[name] = module = ModuleType(name)
        vars(module).update(attributes)
