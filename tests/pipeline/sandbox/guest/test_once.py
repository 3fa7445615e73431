"""Stages of the compiler that are asked for the same twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kernelquarry.pipeline.sandbox.guest.verifying.once import Optimizer, once


def test_a_stage_runs_once_for_a_source_and_its_options() -> None:
    runs: list[str] = []

    def stage(backend: Any, source: str, metadata: Any, options: Any, capability: int) -> str:
        runs.append(source)
        metadata["name"] = f"kernel of {source}"
        return f"{source} for {capability}"

    remembering = once(stage)
    backend, first = SimpleNamespace(target="cuda"), SimpleNamespace(hash=lambda: "4 warps")
    second = SimpleNamespace(hash=lambda: "8 warps")
    for source, options, capability in [
        ("a", first, 90), ("a", first, 90), ("a", second, 90), ("a", first, 80), ("b", first, 90),
    ]:  # fmt: skip
        metadata = {"shared": 0, "name": None}
        assert remembering(backend, source, metadata, options, capability) == f"{source} for {capability}"
        assert metadata == {"shared": 0, "name": f"kernel of {source}"}
    assert runs == ["a", "a", "a", "b"]


class Module:
    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


class Llvm:
    """Writes into a module what was done to it."""

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
