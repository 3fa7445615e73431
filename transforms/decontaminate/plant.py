"""Probe the planted controls in the sandbox, like every row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.provenance import Licence, SourceRef
from kernelquarry.pipeline.schema.records import Module, Probed
from kernelquarry.transforms.probe import probe

from .controls import BENCHMARK, CONTROLS, PREFIX, PROBLEMS, Control, ControlError
from .module_fingerprint import Problem, fingerprint_of, problems_of


@dataclass(frozen=True, slots=True)
class Controls:
    """The planted problems and rows of one run."""

    problems: tuple[Problem, ...]
    rows: tuple[Probed, ...]


def plant(sandbox: Sandbox) -> Controls:
    """Probe the problems and rows of the controls. Raises: ControlError: one does not run."""
    problems = {name: _probed(name, code, sandbox) for name, code in PROBLEMS.items()}
    fingerprints = {
        name: fingerprint_of(probed.python_code, (probed.graph,), probed.behaviours, is_row=False)
        for name, probed in problems.items()
    }
    return Controls(
        problems_of(BENCHMARK, fingerprints),
        tuple(_planted(control, _probed(control.name, control.code, sandbox)) for control in CONTROLS),
    )


def _planted(control: Control, probed: Probed) -> Probed:
    return replace(probed, module=replace(probed.module, id=PREFIX + control.name))


def _probed(name: str, code: str, sandbox: Sandbox) -> Probed:
    source = SourceRef(BENCHMARK, BENCHMARK, "", f"{name}.py", "")
    outcome = probe(Module(module_id(code), name, code, source, Licence("Apache-2.0", "")), sandbox)
    if not isinstance(outcome, Kept):
        raise ControlError(f"decontaminate: the planted module {name} does not run in the sandbox: {outcome}")
    return outcome.record
