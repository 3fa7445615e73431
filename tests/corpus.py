"""The honest and the evil candidates under `tests/`, each a folder with a source and what is expected of it.

`candidate.py` is the source; `expect.toml` has

    reference      the module of `tests/references` that it claims to be
    reason         evil only: the code of the reason that it must be rejected for, or a list of such
    evidence       evil only: a part of the evidence
    group          evil only: one of `GROUPS`
    source         evil only: the published hack or class of faults that it is modelled on
    lint           evil only: the rule of the linter that must find it; not there if its source alone does not show it
    needs          "gpu": only an executor on a GPU can show it; it is counted, and not run without one
    init_args      evil only: what the row says that the constructor is given, where it lies
    kernels, extern_ops, shape_general, deterministic    what it says of itself, where that is not the usual
"""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from factories import make_module

from kernelquarry.pipeline.schema.provenance import Generator
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Probed, Purity, StateSpec, TensorSpec, Workload

HERE = Path(__file__).parent
GROUPS = (
    "resources",
    "escape",
    "forging",
    "reading the answer",
    "not doing the work",
    "contract",
    "numerics",
    "precision",
    "shapes and dtypes",
    "indexing",
    "special values",
    "persistence",
    "gpu faults",
)


@dataclass(frozen=True)
class Case:
    name: str
    candidate: Candidate
    reasons: tuple[Reason, ...]  # any of which may reject it; () if it is honest
    evidence: str  # found in the evidence
    deterministic: bool
    group: str
    source: str
    needs: str
    lint: str


def load_cases(kind: str, needs: str = "") -> list[Case]:
    """The cases of `tests/<kind>` that need just this ("gpu", or nothing), by name."""
    folders = [folder for folder in sorted((HERE / kind).iterdir()) if (folder / "expect.toml").is_file()]
    return [case for case in map(load_case, folders) if case.needs == needs]


def load_case(folder: Path) -> Case:
    expect = tomllib.loads((folder / "expect.toml").read_text())
    reasons = expect.get("reason", [])
    return Case(
        name=folder.name,
        candidate=make_candidate(folder, expect),
        reasons=tuple(Reason(code) for code in ([reasons] if isinstance(reasons, str) else reasons)),
        evidence=expect.get("evidence", ""),
        deterministic=expect.get("deterministic", True),
        group=expect.get("group", ""),
        source=expect.get("source", ""),
        needs=expect.get("needs", ""),
        lint=expect.get("lint", ""),
    )


def make_candidate(folder: Path, expect: dict[str, Any]) -> Candidate:
    code = (folder / "candidate.py").read_text()
    extern_ops = tuple(expect.get("extern_ops", ()))
    probed = probe_reference(expect["reference"])
    return Candidate(
        probed=replace(probed, init_args=expect.get("init_args", probed.init_args)),
        triton_code=code,
        kernels=tuple(expect.get("kernels", re.findall(r"@triton\.jit\ndef (\w+)", code))),
        purity=Purity.MIXED if extern_ops else Purity.PURE,
        extern_ops=extern_ops,
        shape_general=expect.get("shape_general", True),
        generator=Generator("model", "tests", "1", "{}"),
        inductor_code="",
    )


def probe_reference(name: str) -> Probed:
    """What the probe would find out about a reference of our own."""
    path = HERE / "references" / f"{name}.py"
    code = path.read_text()
    module = _load(path)
    state = module.Model(*eval(module.INIT_ARGS)).state_dict()
    buffers = {"running_mean", "running_var", "num_batches_tracked"}
    return Probed(
        module=make_module(code=code, name=name),
        init_args=module.INIT_ARGS,
        workloads=tuple(make_workload(shapes) for shapes in module.WORKLOADS),
        state=tuple(
            state_spec(key, "buffer" if key.split(".")[-1] in buffers else "parameter", value)
            for key, value in state.items()
        ),
        outputs="{}",
        operators=(),
        python_code=code,
    )


def make_workload(inputs: list[Any]) -> Workload:
    specs = [entry if isinstance(entry, dict) else {"shape": entry} for entry in inputs]
    return Workload(
        tensors=tuple(
            TensorSpec(f"x{i}", tuple(spec["shape"]), spec.get("dtype", "float32"), 0, spec.get("high", 0))
            for i, spec in enumerate(specs)
        ),
        args=json.dumps([{"tensor": i} for i in range(len(specs))]),
    )


def state_spec(name: str, kind: str, value: torch.Tensor) -> StateSpec:
    values = value.double()
    spread = values.std(correction=0).item()
    dtype = str(value.dtype).removeprefix("torch.")
    return StateSpec(name, kind, tuple(value.shape), dtype, values.mean().item(), spread, values.min().item())


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"reference_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
