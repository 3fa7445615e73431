"""The choice of GPUs, also if the environment makes only a part of the machine's GPUs visible."""

from __future__ import annotations

import pytest
import torch

from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.errors import UserError


@pytest.mark.parametrize(
    ("visible", "number", "choice", "named"),
    [
        (None, 4, "all", (0, 1, 2, 3)),
        (None, 4, "2,0", (2, 0)),
        ("1", 1, "all", (1,)),
        ("3,1", 2, "all", (3, 1)),
        ("3,1", 2, "1", (1,)),
        ("2, 0,-1,1", 2, "all", (2, 0)),
        ("", 0, "all", ()),
        ("GPU-5a", 1, "none", ()),
    ],
)
def test_ordinals_are_those_of_the_driver(
    visible: str | None, number: int, choice: str, named: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    show(visible, number, monkeypatch)
    assert choose_gpus(choice) == named


def test_invisible_gpus_do_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    show("3", 1, monkeypatch)
    with pytest.raises(UserError, match=r"there is no GPU 3; torch .* finds 1 here"):
        choose_gpus("3")


def test_gpu_uuids_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    show("GPU-5a", 1, monkeypatch)
    with pytest.raises(UserError, match="CUDA_VISIBLE_DEVICES=GPU-5a: name GPUs by their numbers"):
        choose_gpus("all")


def show(visible: str | None, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: number)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
