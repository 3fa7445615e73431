"""Make a variant of a row: other kernels, or gradients too. It is verified, screened and split like any other row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Lowered, Probed, StateSpec, TensorSpec, TrainingPair, Variant
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.operators import write_candidate
from kernelquarry.transforms.probe.inference import for_inference
from kernelquarry.transforms.probe.positional import positional
from kernelquarry.transforms.probe.render_module import render
from kernelquarry.transforms.screen import screen
from kernelquarry.transforms.split import split
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.verify import VerifySettings, verify

_SETTINGS = VerifySettings(find_counterexamples=False)
_FLOATING = frozenset({"float64", "float32", "float16", "bfloat16"})
Spec = TypeVar("Spec", StateSpec, TensorSpec)


def float16(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """A row of the module cast to float16, or the outcome of the stage that drops it."""
    return _lowered_anew(cast(probed, "float16"), sandbox, settings, dtype="float16")


def bfloat16(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """A row of the module cast to bfloat16, or the outcome of the stage that drops it."""
    return _lowered_anew(cast(probed, "bfloat16"), sandbox, settings, dtype="bfloat16")


def backward(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[TrainingPair]:
    """A row of the module lowered for training, or the outcome of the stage that drops it."""
    return _lowered_anew(probed, sandbox, settings, training=True)


def autotuned(lowered: Lowered, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """A row of the module with autotuned kernels, or the outcome of the stage that drops it."""
    return _row(lowered, sandbox, settings, partial(tidy, autotuned=True))


def operators(probed: Probed, sandbox: Sandbox, settings: VerifySettings = _SETTINGS) -> Outcome[Variant]:
    """A row of the module with a kernel for each operator, or the outcome of the stage that drops it."""
    return _row(probed, sandbox, settings, partial(write_candidate, sandbox=sandbox))


def _lowered_anew(probed: Probed, sandbox: Sandbox, settings: VerifySettings, **how: Any) -> Outcome[Any]:
    return _row(probed, sandbox, settings, partial(lower, sandbox=sandbox, **how), tidy)


def _row(
    record: Any, sandbox: Sandbox, settings: VerifySettings, *steps: Callable[[Any], Outcome[Any]]
) -> Outcome[Any]:
    """The row that the steps and the stages after them make of a record, or the outcome of the one that drops it."""
    outcome: Outcome[Any] = Kept(record)
    steps = (*steps, partial(verify, sandbox=sandbox, settings=settings), screen, split)
    for step in steps:
        if not isinstance(outcome, Kept):
            break
        outcome = step(outcome.record)
    return outcome


def cast(probed: Probed, dtype: str) -> Probed:
    """The module with floating-point state and inputs in `dtype`, as after `module.to(dtype)`.

    `get_inputs()` draws inputs in `dtype`; the user of the row casts the `Model`. Integers and booleans stay.
    """
    workloads = tuple(
        replace(workload, tensors=tuple(_in(spec, dtype) for spec in workload.tensors)) for workload in probed.workloads
    )
    code = for_inference(positional(probed.module.code))  # as in the probe
    return replace(
        probed,
        workloads=workloads,
        state=tuple(_in(spec, dtype) for spec in probed.state),
        python_code=render(code, probed.init_args, workloads[0]),
    )


def _in(spec: Spec, dtype: str) -> Spec:
    return replace(spec, dtype=dtype) if spec.dtype in _FLOATING else spec
