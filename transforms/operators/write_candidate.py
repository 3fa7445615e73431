"""Write a module by functions of `library`: one file with `ModelNew`, and the functions that its `forward` calls."""

from __future__ import annotations

import ast
import re
from importlib.metadata import version

from kernelquarry.filters.language import check
from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.provenance import Generator
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, Probed, Purity
from kernelquarry.transforms.slice.record_calls import Recorded, record_calls
from kernelquarry.transforms.tidy import NeedsImport, NotTidied, file_around, signature

from .calls import NotWritten
from .library_text import library_text
from .statements import statements
from .write_forward import write_forward

GENERATOR = Generator("library", "kernelquarry.operators", version("kernelquarry"), "{}")
_EVIDENCE = 500  # characters
_KERNEL = re.compile(r"^def (\w+_kernel)\(", re.MULTILINE)


def write_candidate(probed: Probed, sandbox: Sandbox) -> Outcome[Candidate]:
    """Record the module's calls in a guest, and write each as a call of the library."""
    if any(workload.kwargs != "{}" for workload in probed.workloads):
        return Dropped(probed.id, Reason.NOT_WRITTEN, "arguments by keyword")
    recorded = record_calls(probed, sandbox)
    if not isinstance(recorded, Kept):
        return recorded
    try:
        code = _write(probed, recorded.record)
    except NeedsImport as refusal:
        return Dropped(probed.id, Reason.CONSTRUCTOR_NEEDS_IMPORT, str(refusal)[:_EVIDENCE])
    except (NotTidied, NotWritten) as refusal:
        return Dropped(probed.id, Reason.NOT_WRITTEN, str(refusal)[:_EVIDENCE])
    if outside := check(code, module=probed.python_code):
        return Dropped(probed.id, Reason.OUTSIDE_LANGUAGE, str(outside)[:_EVIDENCE])
    kernels = tuple(_KERNEL.findall(code))
    return Kept(Candidate(probed, code, kernels, Purity.PURE, (), True, GENERATOR, ""))


def _write(probed: Probed, recorded: Recorded) -> str:
    arguments = signature(probed)
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    forward = write_forward(recorded.graph, recorded.result, names, statements(probed.python_code))
    lines = [f"    def forward({ast.unparse(arguments)}):", *(f"        {line}" for line in forward.lines)]
    return file_around(probed, "\n".join(lines), library_text(forward.functions))
