"""Modules that misbehave while they are probed are dropped with a reason, and do not affect the next module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from factories import make_module
from probe_cases import HEADER

from kernelquarry.pipeline.sandbox import Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Probed
from kernelquarry.transforms.probe import probe

HONEST = make_module(
    "from torch import nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n        return x.exp()\n"
)

# name -> (body of the module, body of forward, reasons that may be given, a part of the evidence)
HOSTILE: dict[str, tuple[str, str, tuple[Reason, ...], str]] = {
    "exits when it is imported": ("import os; os._exit(0)", "", (Reason.CRASHED,), "without a complete message"),
    "exits when it is called": ("import os", "os._exit(0)", (Reason.CRASHED,), "without a complete message"),
    "asks to exit": ("", "raise SystemExit(2)", (Reason.NO_WORKLOAD,), "SystemExit: 2"),
    "interrupts": ("", "raise KeyboardInterrupt", (Reason.NO_WORKLOAD,), "KeyboardInterrupt"),
    "aborts": ("import os", "os.abort()", (Reason.CRASHED,), "SIGABRT"),
    "forks": ("import os; os.fork()", "", (Reason.IMPORT_FAILED, Reason.CRASHED), ""),
    "forks when it is called": ("import os", "os.fork()", (Reason.NO_WORKLOAD, Reason.CRASHED), ""),
    "starts threads": (
        "import threading, time; threading.Thread(target=time.sleep, args=(9,)).start()", "",
        (Reason.IMPORT_FAILED, Reason.CRASHED), "",
    ),
    "sleeps for ever": ("import time", "time.sleep(1e6)", (Reason.TIMED_OUT,), "no reply within 1 s"),
    "spins": ("while True: pass", "", (Reason.TIMED_OUT,), "1 s"),
    "recurses": ("def f(n): return f(n + 1) + 1", "f(0)", (Reason.NO_WORKLOAD,), "RecursionError"),
    "eats memory": ("x = bytearray(1 << 32)", "", (Reason.IMPORT_FAILED,), "MemoryError"),
    "eats memory bit by bit": (  # that it never touches: some machines take seconds to hand out what is touched
        "kept = []", "while True: kept.append(bytes(1 << 26))",
        (Reason.OUT_OF_MEMORY, Reason.NO_WORKLOAD), "emory",
    ),
    "makes a large tensor": ("", "return x.new_ones(1 << 30)", (Reason.NO_WORKLOAD,), "allocate"),
    "writes a large file": ("open('large', 'wb').write(bytes(8 << 20))", "", (Reason.IMPORT_FAILED,), "OSError"),
    "opens a socket": (
        "import socket; socket.create_connection(('127.0.0.1', 9), 1)", "", (Reason.IMPORT_FAILED,), "Error",
    ),
    "starts a program": ("import subprocess; subprocess.run(['true'])", "", (Reason.IMPORT_FAILED, Reason.CRASHED), ""),
    "raises what cannot be printed": (
        "class E(Exception):\n    def __str__(self): raise OSError", "raise E", (Reason.NO_WORKLOAD,), "E: OSError",
    ),
    "raises a long message": ("raise ValueError('x' * (1 << 24))", "", (Reason.IMPORT_FAILED,), "ValueError: xxx"),
    "nests deeply": (f"x = {'-' * 50_000}1", "", (Reason.IMPORT_FAILED, Reason.CRASHED), ""),
    "returns a list that holds itself": ("", "y = [x]; y.append(y); return y", (Reason.NO_TENSOR_OUTPUT,), "recursion"),
    "returns a key that cannot be printed": (
        "class Key:\n    def __str__(self): raise OSError('no name')", "return {Key(): x}",
        (Reason.NO_WORKLOAD,), "beside forward: OSError: no name",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox


def probe_code(code: str, sandbox: Sandbox, seconds: int = 20) -> Outcome[Probed]:
    limits = Limits(wall_s=seconds, cpu_s=seconds, memory_mb=256, file_mb=4, processes=1)
    return probe(make_module(HEADER + code), sandbox, guest=limits)


def with_forward(body: str, forward: str) -> str:
    return f"{body}\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n        {forward}\n        return x + 1\n"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_module_is_dropped(name: str, sandbox: Sandbox) -> None:
    body, forward, reasons, evidence = HOSTILE[name]
    outcome = probe_code(with_forward(body, forward), sandbox, 1 if Reason.TIMED_OUT in reasons else 20)
    assert isinstance(outcome, Dropped), outcome
    assert outcome.reason in reasons, outcome
    assert evidence in outcome.evidence and 0 < len(outcome.evidence) <= 500
    assert isinstance(probe(HONEST, sandbox), Kept)


@pytest.mark.parametrize(
    "method",
    [
        "def state_dict(self, *args, **kwargs): raise OSError('refused')",
        "def named_parameters(self, *args, **kwargs): raise OSError('refused')",
        "def modules(self): raise OSError('refused')",
        "def __getattribute__(self, name):\n"
        "        if name == 'forward': raise OSError('refused')\n"
        "        return super().__getattribute__(name)",
    ],
)
def test_methods_other_than_forward_that_raise(method: str, sandbox: Sandbox) -> None:
    outcome = probe_code(with_forward("", "").rstrip() + f"\n\n    {method}\n", sandbox)
    assert isinstance(outcome, Dropped), outcome
    assert "OSError: refused" in outcome.evidence


def test_a_module_that_cannot_switch_to_eval_mode_is_kept(sandbox: Sandbox) -> None:
    method = "    def train(self, mode):\n        raise RuntimeError\n"
    assert isinstance(probe_code(with_forward("", "") + method, sandbox), Kept)


def test_output_and_files_stay_in_the_guest(sandbox: Sandbox) -> None:
    quiet = probe(HONEST, sandbox)
    loud = probe_code(
        HONEST.code + 'print("x" * 10**6, flush=True)\nopen("note", "w").write("from a guest")\n',
        sandbox,
    )
    assert isinstance(quiet, Kept) and isinstance(loud, Kept)
    assert loud.record.workloads == quiet.record.workloads
    assert not Path("note").exists()


def test_files_of_the_host_are_out_of_reach(sandbox: Sandbox, tmp_path: Path) -> None:
    target = tmp_path / "file"
    tmp_path.chmod(0o777)
    outcome = probe_code(with_forward(f"open({str(target)!r}, 'w').write('x')", ""), sandbox)
    assert isinstance(outcome, Dropped) and outcome.reason is Reason.IMPORT_FAILED, outcome
    assert not target.exists()
