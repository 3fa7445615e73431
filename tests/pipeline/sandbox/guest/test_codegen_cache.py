"""The cache of compiler stages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kernelquarry.pipeline.sandbox.guest.compiler.codegen_cache import Optimizer, once


def test_a_stage_runs_once_for_a_source_and_its_options() -> None:
    runs: list[str] = []

    def stage(backend: Any, source: str, metadata: Any, options: Any, capability: int) -> str:
        runs.append(f"{source} at {options.num_warps} for {capability}")
        metadata["name"] = f"kernel of {source}"
        return runs[-1]

    remembering = once(stage)
    for source, warps, capability, expected in [
        ("a", 4, 90, "a at 4 for 90"),
        ("a", 4, 90, "a at 4 for 90"),
        ("a", 4, 80, "a at 4 for 80"),
        ("a", 4, 90, "a at 4 for 90"),
        ("a", 8, 90, "a at 8 for 90"),
        ("b", 8, 90, "b at 8 for 90"),
    ]:
        metadata = {"shared": 0, "name": None}
        options = SimpleNamespace(num_warps=warps, arch=f"sm{capability}", supported_fp8_dtypes=("fp8e5",))
        assert remembering(None, source, metadata, options, capability) == expected
        assert metadata == {"shared": 0, "name": f"kernel of {source}"}
    assert runs == ["a at 4 for 90", "a at 4 for 80", "a at 8 for 90", "b at 8 for 90"]


def test_a_source_that_fails_for_one_gpu_is_compiled_for_the_next() -> None:
    def stage(backend: Any, source: str, metadata: Any, options: Any, capability: int) -> str:
        if capability < 90:
            raise ValueError("no such instruction")
        return source

    remembering = once(stage)
    with pytest.raises(ValueError, match="no such instruction"):
        remembering(None, "a", {}, SimpleNamespace(arch="sm80"), 80)
    assert remembering(None, "a", {}, SimpleNamespace(arch="sm90"), 90) == "a"


class Module:
    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


class Llvm:
    """A fake LLVM that appends the name of each operation to the module's text."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def link_extern_libs(self, module: Module, paths: list[str]) -> None:
        module.text += f" with {paths}"

    def optimize_module(self, module: Module, level: int) -> None:
        self.runs.append(module.text)
        module.text += f" at {level}"


def test_equal_modules_are_linked_and_optimised_once() -> None:
    llvm: Any = Llvm()
    optimizer = Optimizer(llvm)

    def stage(text: str, paths: list[str], level: int) -> str:
        module = Module(text)
        if paths:
            optimizer.link_extern_libs(module, paths)
        optimizer.optimize_module(module, level)
        return str(module)

    taken = optimizer.taken(stage)
    for text, paths, level, result in [
        ("a", [], 3, "a at 3"), ("a", ["m"], 3, "a with ['m'] at 3"), ("b", [], 3, "b at 3"), ("a", [], 2, "a at 2"),
    ]:  # fmt: skip
        assert [taken(text, paths, level) for _ in range(2)] == [result] * 2
    assert llvm.runs == ["a", "a with ['m']", "b", "a"]
