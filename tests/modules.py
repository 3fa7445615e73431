"""Small modules, each as the record that the probe would make."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from corpus import state_spec
from factories import make_module

from kernelquarry.pipeline.schema.records import Probed, TensorSpec, Workload

Shape = tuple[int, ...]

_SOURCE = """\
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
{helpers}

class Model({base}):
    def __init__(self{parameters}):
        super().__init__(){layers}

    def forward(self, {signature}):
{forward}


def get_inputs():
    return []


def get_init_inputs():
    return {init_args}
"""


@dataclass(frozen=True)
class Call:
    """One call of `forward`. `args` and `kwargs` are trees that refer to `tensors` (None: all tensors in order)."""

    tensors: Mapping[str, Shape | TensorSpec]
    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def workload(self) -> Workload:
        specs = [
            value if isinstance(value, TensorSpec) else TensorSpec(name, value, "float32")
            for name, value in self.tensors.items()
        ]
        args = [{"tensor": i} for i in range(len(specs))] if self.args is None else list(self.args)
        return Workload(tuple(specs), json.dumps(args), json.dumps(dict(self.kwargs)))


def whole(shape: Shape, high: int, dtype: str = "int64") -> TensorSpec:
    """A tensor of integers in [0, high)."""
    return TensorSpec("index", shape, dtype, 0, high)


def source(
    forward: str,
    layers: str = "",
    signature: str = "x",
    helpers: str = "",
    parameters: str = "",
    init_args: str = "[]",
    base: str = "nn.Module",
) -> str:
    """The text of a reference; a `forward` of one line is the expression that it returns."""
    body = textwrap.dedent(forward).strip("\n")
    if "\n" not in body:
        body = f"return {body}"
    return _SOURCE.format(
        helpers=f"\n\n{textwrap.dedent(helpers).strip()}\n" if helpers else "",
        parameters=f", {parameters}" if parameters else "",
        layers="\n" + textwrap.indent(textwrap.dedent(layers).strip("\n"), " " * 8) if layers else "",
        signature=signature,
        forward=textwrap.indent(body, " " * 8),
        init_args=init_args,
        base=base,
    )


def probed(code: str, *calls: Call) -> Probed:
    """The reference with its workloads and its state, which is made once to look at it."""
    namespace: dict[str, Any] = {"__name__": "reference"}
    exec(compile(code, "reference.py", "exec"), namespace)
    arguments = namespace["get_init_inputs"]()
    torch.manual_seed(0)
    model = namespace["Model"](*arguments)
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return Probed(
        module=make_module(code=code, name="Small"),
        init_args=repr(arguments),
        workloads=tuple(call.workload() for call in calls),
        state=tuple(
            state_spec(name, "parameter" if name in parameters else "buffer", value)
            for name, value in model.state_dict().items()
        ),
        outputs="{}",
        operators=(),
        python_code=code,
    )
