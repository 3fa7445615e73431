"""The job `timing` without a GPU: kernels are Python functions, and the clock is a double."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from gpu_double import floats
from torch import Tensor
from traced_programs import SIZE, doubled_sum, kernel, view

from kernelquarry.pipeline.sandbox import Job, Sandbox, Status
from kernelquarry.pipeline.sandbox.guest.compiler.player import Player
from kernelquarry.pipeline.sandbox.guest.jobs import timing
from kernelquarry.pipeline.sandbox.jobs.calls import InputSpec, ModuleSource
from kernelquarry.pipeline.sandbox.jobs.timing import TIMING, TimingReply, TimingRequest
from kernelquarry.pipeline.sandbox.timing_inputs import draw_timing_inputs
from kernelquarry.transforms.time.check import contenders


class Card:
    """Stands where a `cuda.Cuda` would be."""

    memory = torch.device("cpu")

    def __init__(self, functions: Mapping[str, Callable[..., None]]) -> None:
        self._functions = functions

    def load_binary(self, binary: bytes, name: str, warps: int, shared: int, scratch: tuple[int, int]) -> Any:
        return self._functions[name]

    def pack(self, function: Any, grid: Any, arguments: Any) -> Any:
        return function, grid, [value for _, value in arguments]

    def launch(self, packed: Any) -> None:
        function, grid, values = packed
        function(grid, *values)


def add(grid: Any, x: int, weight: int, out: int, count: int) -> None:
    floats(out, count)[:] = floats(x, count) + floats(weight, count)


def scale(grid: Any, x: int, out: int, count: int, factor: float) -> None:
    floats(out, count)[:] = floats(x, count) * factor


X = torch.arange(SIZE, dtype=torch.float32)
WEIGHT = torch.full((SIZE,), 0.5)


def player(program: dict[str, Any], **tensors: Tensor) -> Player:
    kernels = [kernel("add"), kernel("scale")]
    binaries = {f"binary.hash of {name}": torch.zeros(1, dtype=torch.uint8) for name in ("add", "scale")}
    values = {"input.0": X, "state.weight": WEIGHT}
    return Player(program, kernels, binaries | tensors, values, Card({"add": add, "scale": scale}))  # type: ignore[arg-type]


def test_a_program_is_played_again_and_again() -> None:
    play = player(doubled_sum())
    for _ in range(3):
        (output,) = play()
        torch.testing.assert_close(output, 2 * (X + WEIGHT))


def test_fills_copies_and_constants() -> None:
    program = doubled_sum()
    program["storages"].append({"bytes": 4 * SIZE, "origin": "constant"})
    program["steps"] = [
        {"fill": view(2, [SIZE]), "value": "0x1.8p+1"},
        {"copy": view(2, [2], strides=[3]), "from": view(4, [2], offset=1)},
        {"copy": view(3, [SIZE]), "from": view(2, [SIZE])},
        {"launch": 0, "grid": [0, 1, 1], "arguments": [["*", 1, 0], ["*", 0, 0], ["*", 3, 0], ["i32", SIZE]]},
    ]
    (output,) = player(program, **{"constant.0.4": X.clone().view(torch.uint8)})()
    torch.testing.assert_close(output, torch.tensor([1.0, 3, 3, 2, 3, 3]))


def test_pointers_lead_into_their_storages() -> None:
    program = doubled_sum()
    program["steps"][1]["arguments"] = [["*", 2, 8], ["*", 3, 4], ["i32", 2], ["fp32", "-0x1p+0"]]
    (output,) = player(program)()
    torch.testing.assert_close(output[1:3], -(X + WEIGHT)[2:4])


NAN = torch.tensor([torch.nan, torch.inf, -1.0, 2.0])


@pytest.mark.parametrize(
    ("expected", "found", "share"),
    [
        ([X], [X], 0.0),
        ([X], [X + 0.01], 0.0),
        ([X], [X + torch.tensor([0, 0, 0, 0, 0, 0.2])], 1 / 6),
        ([X], [X[:3]], 1.0),
        ([X], [X, X], 1.0),
        ([NAN], [NAN], 0.0),
        ([NAN], [torch.full((4,), torch.nan)], 0.75),
        ([torch.arange(4)], [torch.zeros(4, dtype=torch.int64)], 0.0),
        ([torch.zeros(0)], [torch.zeros(0)], 0.0),
        ([], [], 0.0),
    ],
)
def test_share_of_wrong_values(expected: list[Tensor], found: list[Tensor], share: float) -> None:
    assert timing.wrong_share(expected, found) == pytest.approx(share)


def test_bytes_that_must_be_written() -> None:
    made = torch.zeros(4, 8)
    assert timing.written_bytes([made], [X]) == 128
    assert timing.written_bytes([made, made[:2]], [X]) == 128  # the same memory twice
    assert timing.written_bytes([made[:, :1].expand(4, 8)], [X]) == 128
    assert timing.written_bytes([torch.zeros(1).expand(99)], [X]) == 4
    assert timing.written_bytes([X.reshape(2, 3), made], [X]) == 128


REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(1, 2, size))

    def forward(self, x, factor):
        return factor * (x + self.weight)
"""
REQUEST = TimingRequest(
    gpu=0,
    reference=ModuleSource(REFERENCE, "Model", f"[{SIZE}]"),
    args='[{"tensor":0}]',
    kwargs='{"factor":2.0}',
    inputs=(InputSpec((SIZE,), "float32"),),
)
PROGRAM = replace(REQUEST, program=doubled_sum(), kernels=(kernel("add"), kernel("scale")))
BINARIES = {f"binary.hash of {name}": torch.zeros(1, dtype=torch.uint8) for name in ("add", "scale")}
Run = Callable[..., tuple[TimingReply, dict[str, Tensor]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Run]:
    """The guest's `run` on a double of a GPU; `compiled` is a double of `torch.compile`."""

    def run_here(request: TimingRequest, compiled: Any = lambda module, dynamic: module) -> Any:
        monkeypatch.setattr(torch, "compile", compiled)
        return timing.run(request, BINARIES)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(timing.gpu_driver, "meet", lambda ordinal: Card({"add": add, "scale": scale}))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(timing, "exclusive_use", lambda ordinal: contextlib.nullcontext())
    monkeypatch.setattr(timing, "_flush", lambda device: lambda: None)
    monkeypatch.setattr(timing, "_microseconds", lambda call, flush: float(call() is not None))
    threads = torch.get_num_threads()
    yield run_here
    torch.set_num_threads(threads)
    for name in ("reference", "candidate"):
        sys.modules.pop(name, None)


def test_three_contenders_are_timed(run: Run) -> None:
    reply, tensors = run(PROGRAM)
    assert {name: len(runs) for name, runs in reply.times.items()} == dict.fromkeys(
        ("eager", "candidate", "compile"), 100
    )
    assert (reply.left_out, reply.wrong, reply.written, reply.flops) == ({}, 0.0, 4 * SIZE, 0)
    assert len(contenders(reply)) == 3
    torch.testing.assert_close(tensors, {"state.weight": torch.linspace(1, 2, SIZE)})


def test_wrong_values_of_a_program_are_counted(run: Run) -> None:
    program = doubled_sum()
    program["steps"][1]["arguments"][3] = ["fp32", "0x1.8p+1"]
    assert run(replace(PROGRAM, program=program))[0].wrong == 1.0


def test_a_candidate_without_a_program_runs_from_its_source(run: Run) -> None:
    source = REFERENCE.replace("Model", "ModelNew").replace("linspace(1, 2, size)", "zeros(size)")
    reply, tensors = run(replace(REQUEST, candidate=ModuleSource(source, "ModelNew", f"[{SIZE}]")))
    assert reply.times.keys() == {"eager", "candidate", "compile"}
    assert (reply.wrong, tensors) == (0.0, {})  # it has the reference's state


def test_a_compiler_that_fails_is_left_out(run: Run) -> None:
    def compiled(module: Any, dynamic: bool) -> Any:
        raise RuntimeError("no compiler")

    reply, _ = run(PROGRAM, compiled)
    assert reply.times.keys() == {"eager", "candidate"}
    assert reply.left_out == {"compile": "RuntimeError: no compiler"}


def test_rounds_begin_with_another_call_each(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(timing, "_microseconds", lambda call, flush: float(call()))
    calls = {name: (lambda name=name: order.append(name) or len(order)) for name in ("a", "b", "c")}
    times = timing._rounds(calls, lambda: None)
    assert order[:9] == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]
    assert {len(runs) for runs in times.values()} == {100}
    assert times["a"][:3] == [1.0, 6.0, 8.0]


def test_long_calls_are_made_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 0.0

        def perf_counter(self) -> float:
            self.now += 2.0
            return self.now

    monkeypatch.setattr(timing, "time", Clock())
    monkeypatch.setattr(timing, "_microseconds", lambda call, flush: 1.0)
    assert len(timing._rounds({"a": lambda: None}, lambda: None)["a"]) == 10


def test_inputs_have_their_dtypes_and_are_the_same_each_time() -> None:
    specs = [
        InputSpec((500,), "float32"),
        InputSpec((500,), "int64", -2, 3),
        InputSpec((500,), "bool"),
        InputSpec((3, 0), "float16"),
    ]
    numbers, indices, truths, none = drawn = draw_timing_inputs(specs, torch.device("cpu"))
    assert abs(float(numbers.mean())) < 0.2 < float(numbers.std())
    assert set(indices.tolist()) == {-2, -1, 0, 1, 2} and set(truths.tolist()) == {True, False}
    assert (none.shape, none.dtype) == ((3, 0), torch.float16)
    again = draw_timing_inputs(specs, torch.device("cpu"))
    assert all(torch.equal(one, other) for one, other in zip(drawn, again, strict=True))


def test_it_gets_warm_and_needs_a_gpu(sandbox: Sandbox) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    report = sandbox.run(Job(TIMING, REQUEST))
    assert report.status == Status.RAISED and "torch finds no such GPU" in report.error
