"""One sandbox for all stage tests of a process, since starting a sandbox takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox
