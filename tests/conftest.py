"""Shared by every test. `tests/` itself is importable, so that `from factories import make_pair` works."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

# A busy machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Before the first import of datasets: nothing that a test does may reach for the Hub.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
# The double of the Hub (`hub_double`) takes uploads the plain way; xet is another service.
os.environ["HF_HUB_DISABLE_XET"] = "1"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without garbage collections, which took half of the time, and have none look at them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def warm() -> Iterator[None]:
    """Sandboxes share their warm processes, and pipelines the signatures of functions."""
    from beam_signatures import cache_signatures  # takes Beam along, and so seconds
    from warm import Warm  # takes torch along

    with Warm() as warm, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warm.SHARED", warm)
        cache_signatures(patch)
        patch.setattr("kernelquarry.pipeline.sandbox.pool.WarmProcess", warm.lend)
        yield
