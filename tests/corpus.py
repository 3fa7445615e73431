"""The evil and the honest candidates that the verifier is tried on: one file a case.

An evil case is `tests/evil/<group>/<name>.py`: a cheat or a mistake that verification must reject. The folder is its
group, one of `GROUPS` with underscores for spaces. An honest case is `tests/honest/<name>.py`: a correct kernel that
verification must keep. A file begins with what is expected of it, as TOML in comments; the candidate's text is what
follows, without the blank lines between:

    # /// case
    # reference = "softmax"
    # reason = "kernel_unused"
    # evidence = "_softmax"
    # source = "the result multiplied by 0 (Dr.Kernel, KernelGuard)"
    # caught_by = "operator census; ghost replay"
    # ///

To add a case, write such a file: `load_cases` finds it, and the tests try it. Its name says the trick, or the style of
the kernel. The keys:

    reference      the module of `tests/references` that the candidate claims to compute
    reason         evil: the code of the reason that must reject the candidate, or a list of codes of which any may
    evidence       evil: a part of the evidence that comes with the reason
    source         evil: the published hack or class of faults that the case is modelled on
    caught_by      evil: the check or the defence that must catch the candidate
    needs          evil: "gpu" if only an executor on a GPU can show it; without one the case is counted, and not run
    init_args      evil: constructor arguments of the row, where they are a part of the trick
    shows          honest: the style of kernel that verification must not reject
    kernels, extern_ops, shape_general, deterministic    of the candidate, where they are not the defaults
"""

from __future__ import annotations

import functools
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


_HEADER = re.compile(r"# /// case\n(?P<toml>(?:#.*\n)+?)# ///\n\n*")


@dataclass(frozen=True)
class Case:
    """A candidate and the verdict that it must get."""

    name: str
    candidate: Candidate
    reasons: tuple[Reason, ...]  # any of which may reject it; () if it is honest
    evidence: str  # a part of the evidence
    deterministic: bool
    group: str  # "" if it is honest
    source: str
    caught_by: str
    shows: str
    needs: str


def load_cases(kind: str, needs: str = "") -> list[Case]:
    """The cases of `tests/<kind>` that need just this ("gpu", or nothing), by name."""
    paths = sorted((HERE / kind).rglob("*.py"), key=lambda path: path.stem)
    return [case for case in map(read_case, paths) if case.needs == needs]


def load_case(kind: str, name: str) -> Case:
    (path,) = (HERE / kind).rglob(f"{name}.py")
    return read_case(path)


@functools.cache
def read_case(path: Path) -> Case:
    header, code = split_header(path.read_text())
    reasons = header.get("reason", [])
    return Case(
        name=path.stem,
        candidate=make_candidate(code, header),
        reasons=tuple(Reason(code) for code in ([reasons] if isinstance(reasons, str) else reasons)),
        evidence=header.get("evidence", ""),
        deterministic=header.get("deterministic", True),
        group=path.parent.name.replace("_", " ") if reasons else "",
        source=header.get("source", ""),
        caught_by=header.get("caught_by", ""),
        shows=header.get("shows", ""),
        needs=header.get("needs", ""),
    )


def split_header(text: str) -> tuple[dict[str, Any], str]:
    """The header of a case's file, and the candidate's text."""
    match = _HEADER.match(text)
    assert match is not None, text[:80]
    toml = "".join(line.removeprefix("#").removeprefix(" ") for line in match["toml"].splitlines(keepends=True))
    return tomllib.loads(toml), text[match.end() :]


def make_candidate(code: str, header: dict[str, Any]) -> Candidate:
    extern_ops = tuple(header.get("extern_ops", ()))
    probed = probe_reference(header["reference"])
    return Candidate(
        probed=replace(probed, init_args=header.get("init_args", probed.init_args)),
        triton_code=code,
        kernels=tuple(header.get("kernels", re.findall(r"@triton\.jit\ndef (\w+)", code))),
        purity=Purity.MIXED if extern_ops else Purity.PURE,
        extern_ops=extern_ops,
        shape_general=header.get("shape_general", True),
        generator=Generator("model", "tests", "1", "{}"),
        inductor_code="",
    )


def probe_reference(name: str) -> Probed:
    """The record that the probe would make for a module of `tests/references`."""
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
    values = (value.real if value.is_complex() else value).double()
    spread = values.std(correction=0).item()
    dtype = str(value.dtype).removeprefix("torch.")
    return StateSpec(name, kind, tuple(value.shape), dtype, values.mean().item(), spread, values.min().item())


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"reference_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
