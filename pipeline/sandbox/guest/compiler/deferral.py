"""Deferred compilation: stop at Triton IR, and leave the binary to the job `codegen`.

A guest that ran a candidate's constructor can be made to send any binary. A deferred kernel is sent as text. A guest
that runs nothing but the compiler makes the binary, so the binary always belongs to the text, and may be cached.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial, wraps
from typing import Any

from triton.backends.amd.compiler import HIPBackend
from triton.backends.nvidia.compiler import CUDABackend

from kernelquarry.pipeline.sandbox.jobs.codegen import ENTRY, KernelSource

# Options of a launch that may differ from the defaults. Others name files, or need more than a grid and arguments.
_OPTIONS = frozenset({"num_warps", "num_stages", "maxnreg", "enable_fp_fusion", "waves_per_eu", "matrix_instr_nonkdim"})
# That a number is a multiple of 16, by which Triton compiles a kernel for each combination of sizes. Without it, one
# binary serves all sizes.
_DIVISIBLE = re.compile(r"(%\w+: i\d+) \{tt\.divisibility = 16 : i32\}")
_LOCATED = "tt.assert"  # its message names file and line, which the text lacks
_DESCRIBED = "tensordesc"  # the launch needs the layout that the compiler chose

Stage = Callable[[Any, MutableMapping[str, Any]], Any]


class Deferral:
    """Collects the sources of deferred kernels. A kernel that cannot be deferred is compiled at once."""

    def __init__(self) -> None:
        self.enabled = False
        self.sources: dict[str, KernelSource] = {}  # SHA-256 of the binary that stands for the source -> the source

    def install(self) -> None:
        for backend in (CUDABackend, HIPBackend):
            backend.add_stages = self._wrapped(backend.add_stages)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Compile at once: autotuners and occupancy calculations need the resources of a binary."""
        enabled, self.enabled = self.enabled, False
        try:
            yield
        finally:
            self.enabled = enabled

    def _wrapped(self, add_stages: Callable[..., None]) -> Callable[..., None]:
        @wraps(add_stages)
        def run(backend: Any, stages: dict[str, Stage], options: Any, *rest: Any) -> None:
            add_stages(backend, stages, options, *rest)
            if self.enabled and "ttir" in stages:
                _Stages(self, backend, stages, options)

        return run


class _Stages:
    """The stages of one kernel. After `ttir`, each passes on the bytes that stand for the deferred kernel."""

    def __init__(self, deferral: Deferral, backend: Any, stages: dict[str, Stage], options: Any) -> None:
        self._deferral, self._backend, self._options = deferral, backend, options
        self._make_ttir = stages["ttir"]
        self._binary = b""
        for name in list(stages)[1:]:
            stages[name] = partial(self._later, stages[name])
        stages["ttir"] = self._ttir

    def _ttir(self, module: Any, metadata: MutableMapping[str, Any]) -> Any:
        is_described = _DESCRIBED in module.str_nodebug()
        module = self._make_ttir(module, metadata)
        name = module.get_entry_func_name()
        source = None if is_described else self._source(module.str_nodebug(), name)
        if source is not None:
            self._binary = json.dumps(asdict(source), sort_keys=True).encode()
            self._deferral.sources[hashlib.sha256(self._binary).hexdigest()] = source
            metadata["name"], metadata["shared"] = name, 0
        return module

    def _later(self, stage: Stage, module: Any, metadata: MutableMapping[str, Any]) -> Any:
        return self._binary or stage(module, metadata)

    def _source(self, text: str, name: str) -> KernelSource | None:
        defaults = vars(self._backend.parse_options({}))
        options = {key: value for key, value in vars(self._options).items() if value != defaults[key]}
        if _LOCATED in text or not options.keys() <= _OPTIONS or f"@{ENTRY}" in text.replace(f"@{name}(", ""):
            return None
        text = _DIVISIBLE.sub(r"\1", text)
        renamed, count = re.subn(rf"(?<=tt\.func public )@{re.escape(name)}(?=\()", f"@{ENTRY}", text)
        target = self._backend.target
        name = f"sm_{target.arch}" if target.backend == "cuda" else str(target.arch)
        return KernelSource(name, renamed, options) if count == 1 else None


deferral = Deferral()
