"""The checker behind the name, parameters and result of KernelBench's `eval_kernel_against_ref`.

The parameters and fields are those of KernelBench's `src/kernelbench/eval.py`; no code of it is copied.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from pydantic import BaseModel, Field

from kernelquarry.pipeline.check import CheckVerdict, Status
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Timed

from .shared import shared_checker

_BACKEND = "triton"
_NOT_COMPILED = {reason.value for reason in (Reason.NO_CODE, Reason.DOES_NOT_COMPILE)}
_WRONG_OUTPUT = {reason.value for reason in (Reason.WRONG_CONTRACT, Reason.WRONG_VALUES, Reason.NOT_DETERMINISTIC)}


class KernelExecResult(BaseModel):
    """The result of one evaluation. Times are in milliseconds, as KernelBench measures them; -1 if not measured."""

    compiled: bool = False
    correctness: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)
    runtime: float = -1.0
    runtime_stats: dict[str, Any] = Field(default_factory=dict)
    ref_runtime: float = -1.0  # of eager PyTorch
    ref_runtime_stats: dict[str, Any] = Field(default_factory=dict)


def eval_kernel_against_ref(
    original_model_src: str,
    custom_model_src: str,
    seed_num: int = 42,
    num_correct_trials: int = 1,
    num_perf_trials: int = 10,
    measure_performance: bool = False,
    timing_method: str = "cuda_event",
    verbose: bool = False,
    build_dir: str | os.PathLike[str] | None = None,
    device: torch.device | int | None = None,
    backend: str = _BACKEND,
    precision: torch.dtype = torch.float32,
    check_for_excessive_speedup: bool = True,
    excessive_speedup_threshold: float = 10,
) -> KernelExecResult:
    """Check a kernel as `kernelquarry check` does.

    The verifier chooses seeds, trials and the timing method itself: `seed_num`, `num_correct_trials`,
    `num_perf_trials`, `timing_method`, `verbose` and `build_dir` have no effect.

    Args:
        device: GPU that executes the kernel; None: all, or Triton's interpreter on a machine without a GPU.

    Raises:
        ValueError: the backend is not Triton, or the precision not float32.
    """
    if backend.lower() != _BACKEND:
        raise ValueError(f"backend {backend!r}: only Triton kernels can be checked: pass backend='triton'")
    if precision != torch.float32:
        raise ValueError(f"precision {precision}: kernels are checked in float32")
    index = device.index if isinstance(device, torch.device) else device
    has_gpu = torch.cuda.is_available()
    checker = shared_checker(
        timed=measure_performance and has_gpu,
        gpus="all" if index is None or not has_gpu else str(index),
    )
    verdict = checker.check(original_model_src, custom_model_src)
    result = _result(verdict, torch.cuda.get_device_name(index) if has_gpu else "cpu", str(device))
    if measure_performance and verdict:
        _add_times(result, verdict, excessive_speedup_threshold if check_for_excessive_speedup else float("inf"))
    return result


def _result(verdict: CheckVerdict, hardware: str, device: str) -> KernelExecResult:
    metadata: dict[str, Any] = {"hardware": hardware, "device": device, "verdict": verdict.headline}
    if verdict.note:
        metadata["note"] = verdict.note
    trials = len(verdict.trials)
    if verdict:
        metadata |= {"correctness_trials": f"({trials} / {trials})", "purity": verdict.purity}
        return KernelExecResult(compiled=True, correctness=True, metadata=metadata)
    if verdict.status is Status.UNJUDGED:
        return KernelExecResult(metadata=metadata | _error("other_error", "unjudged", verdict.evidence))
    is_compiled = verdict.reason not in _NOT_COMPILED
    kind = "runtime_error" if is_compiled else "compilation_error"
    kind = "correctness_issue" if verdict.reason in _WRONG_OUTPUT else kind
    metadata |= _error(kind, verdict.reason, verdict.evidence)
    if verdict.counter_example is not None:
        metadata["counter_example"] = verdict.to_json()["counter_example"]
    return KernelExecResult(compiled=is_compiled, metadata=metadata)


def _error(kind: str, name: str, message: str) -> dict[str, str]:
    return {kind: message, f"{kind}_name": name}


def _add_times(result: KernelExecResult, verdict: CheckVerdict, threshold: float) -> None:
    """Add the median times of the kernel and of eager PyTorch, or the reason why there are none."""
    timing = verdict.timing
    times = {timed.name: timed for timed in timing.contenders} if timing is not None else {}
    if timing is None or "candidate" not in times:
        why = "no GPU" if timing is None else timing.left_out
        result.metadata["error_during_performance"] = why or "the kernel could not be timed"
        return
    result.runtime, result.runtime_stats = _stats(times["candidate"])
    if "eager" in times:
        result.ref_runtime, result.ref_runtime_stats = _stats(times["eager"])
    if timing.suspect:
        result.metadata["error_during_performance"] = timing.suspect
    if timing.over_eager > threshold:
        result.metadata["excessive_speedup"] = True


def _stats(timed: Timed) -> tuple[float, dict[str, Any]]:
    """The median in milliseconds, and statistics: KernelBench's keys `mean`, `min`, `max` hold median and quartiles."""
    median, low, high = (value / 1000 for value in (timed.median_us, timed.low_us, timed.high_us))
    return median, {"mean": median, "min": low, "max": high, "num_trials": timed.runs, "statistic": "median, quartiles"}
