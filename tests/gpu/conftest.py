"""Tests that need a GPU. `make test` skips this folder; `make test-gpu` runs it, and fails without a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.settings import choose_gpus


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    gpus = choose_gpus("all")
    if not gpus:
        pytest.fail("these tests need a GPU, and torch finds none")  # `pytest.exit` in a worker breaks pytest-xdist
    with Sandbox(SandboxSettings(workers=4, gpus=gpus[:1])) as sandbox:
        yield sandbox
