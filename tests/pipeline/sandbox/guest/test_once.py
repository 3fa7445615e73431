"""Stages of the compiler that are asked for the same twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kernelquarry.pipeline.sandbox.guest.verifying.once import once


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
