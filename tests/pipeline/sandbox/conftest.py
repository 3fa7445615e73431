"""One sandbox for all tests of a process: its warm process takes a second to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from scripts import script

from kernelquarry.pipeline.sandbox import Report, Sandbox, SandboxSettings


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=2)) as sandbox:
        yield sandbox


@pytest.fixture
def run(sandbox: Sandbox) -> Callable[..., Report]:
    """Run a script in a guest."""
    return lambda body, arguments=None, tensors=None, **limits: sandbox.run(script(body, arguments, tensors, **limits))
