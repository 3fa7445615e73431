"""Cast a module and its calls to another dtype."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from kernelquarry.pipeline.schema.records import Probed, StateSpec, TensorSpec, Workload
from kernelquarry.transforms.probe.inference import for_inference
from kernelquarry.transforms.probe.positional import positional
from kernelquarry.transforms.probe.render_module import render

_FLOATING = frozenset({"float64", "float32", "float16", "bfloat16"})
Spec = TypeVar("Spec", StateSpec, TensorSpec)


def cast(probed: Probed, dtype: str) -> Probed:
    """The module with floating-point state and inputs in `dtype`, as after `module.to(dtype)`.

    `get_inputs()` draws inputs in `dtype`; the user of the row casts the `Model`. Integers and booleans stay.
    """
    workloads = tuple(_workload(workload, dtype) for workload in probed.workloads)
    code = for_inference(positional(probed.module.code))  # as in the probe
    return replace(
        probed,
        workloads=workloads,
        state=tuple(_in(spec, dtype) for spec in probed.state),
        python_code=render(code, probed.init_args, workloads[0]),
    )


def _workload(workload: Workload, dtype: str) -> Workload:
    return replace(workload, tensors=tuple(_in(spec, dtype) for spec in workload.tensors))


def _in(spec: Spec, dtype: str) -> Spec:
    return replace(spec, dtype=dtype) if spec.dtype in _FLOATING else spec
