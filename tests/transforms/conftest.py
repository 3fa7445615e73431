"""One sandbox for the stages' tests of a process: warming it up takes longer than most of what it is used for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox
