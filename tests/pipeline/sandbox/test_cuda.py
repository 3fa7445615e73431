"""The parts of `cuda` that need no GPU."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kernelquarry.pipeline.sandbox.cuda import exclusive_use


@pytest.mark.parametrize(("nodes", "second"), [(("nvidia0", "nvidia1", "nvidiactl"), 1), (("nvidia5", "nvidiactl"), 5)])
def test_one_measures_at_a_time_on_each_gpu(nodes: tuple[str, ...], second: int, tmp_path: Path) -> None:
    for name in nodes:
        (tmp_path / name).touch()
    order, waiting = list[str](), threading.Event()

    def other() -> None:
        waiting.set()
        with exclusive_use(0, tmp_path):
            order.append("the other")

    with exclusive_use(0, tmp_path), exclusive_use(second, tmp_path):
        thread = threading.Thread(target=other)
        thread.start()
        waiting.wait()
        thread.join(0.2)
        order.append("the first")
    thread.join()
    assert order == ["the first", "the other"]
