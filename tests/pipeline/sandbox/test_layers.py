"""Each isolation layer forbids the acts that it claims to forbid, and missing layers are reported."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import forked
import pytest
from scripts import script

from kernelquarry.pipeline.sandbox import Sandbox, SandboxError, SandboxSettings, Status, isolation_check
from kernelquarry.pipeline.sandbox.layers import COVERS, NAMES, OFF, landlock, layer_probe, seccomp
from kernelquarry.pipeline.sandbox.layers.syscalls import ALLOWED, LAST, NUMBERS, PRETENDED


def test_every_layer_is_described(sandbox: Sandbox) -> None:
    layers = isolation_check.describe_layers(sandbox)
    assert tuple(layer.name for layer in layers) == NAMES == tuple(sandbox.layers) == tuple(COVERS)
    assert all(layer.state and layer.covers for layer in layers)
    assert [layer.name for layer in layers if not layer.active] == [
        name for name in NAMES if sandbox.layers[name].startswith(OFF)
    ]


def test_all_layers_that_the_machine_supports_are_active(sandbox: Sandbox) -> None:
    """Other programs detect the machine's features, so a layer that we disable by mistake is noticed."""
    active = {layer.name for layer in isolation_check.describe_layers(sandbox) if layer.active}
    assert {"privileges", "limits"} <= active
    namespaces = ["unshare", "--user", "--mount", "--net", "--ipc", "--pid", "--fork", "--mount-proc", "true"]
    if shutil.which("unshare") and subprocess.run(namespaces, capture_output=True).returncode == 0:
        assert "namespaces" in active
    if landlock.abi() >= landlock.LEAST_ABI:
        assert "landlock" in active
    if seccomp.supported() and "seccomp" in Path("/proc/self/status").read_text().lower():
        assert "seccomp" in active
    if Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
        assert "watch" in active


def test_no_escape_attempt_succeeds(sandbox: Sandbox) -> None:
    """On a machine without Landlock and namespaces this test fails, and lists the acts that are allowed."""
    outcomes = isolation_check.attempt_escapes(sandbox)
    assert [act for act, outcome in outcomes.items() if outcome == "allowed"] == []


def test_a_required_layer_that_is_missing_stops_the_sandbox(tmp_path: Path) -> None:
    settings = SandboxSettings(workers=1, scratch=str(tmp_path), require=tuple(NAMES))
    with Sandbox() as sandbox:
        missing = [name for name in NAMES if sandbox.layers[name].startswith(OFF)]
    if not missing:
        pytest.skip("this machine has every layer")
    with Sandbox(settings) as sandbox, pytest.raises(SandboxError, match=f"{missing[0]} is off"):
        sandbox.run(script("pass"))


def test_a_trial_says_why_it_failed() -> None:
    def dies() -> None:
        os._exit(3)

    def refused() -> None:
        raise PermissionError(1, "Operation not permitted", "unshare")

    def allowed() -> None:
        with layer_probe._forbidden("the act"):
            pass

    assert layer_probe.run(lambda: None) == ""
    assert layer_probe.run(dies) == "the process that tried it died"
    assert layer_probe.run(refused) == "[Errno 1] Operation not permitted: 'unshare'"
    assert layer_probe.run(allowed) == "did not forbid the act"


@pytest.mark.skipif(not seccomp.supported(), reason="the filter is for x86-64")
class TestFilter:
    """The seccomp program, interpreted as the kernel would."""

    ARCH, X32 = 0xC000003E, 0x40000000
    ALLOW, EPERM, ENOSYS, PRETEND, KILL = 0x7FFF0000, 0x50001, 0x50026, 0x50000, 0x80000000

    def answer(
        self, number: int, *arguments: int, arch: int = ARCH, own_pid: int | None = None, gpu: bool = False
    ) -> int:
        program = list(struct.iter_unpack("=HBBI", seccomp.build(own_pid, gpu=gpu)))
        data = struct.pack("=iIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
        at = accumulator = 0
        while True:
            code, if_true, if_false, k = program[at]
            at += 1
            if code == 0x20:
                (accumulator,) = struct.unpack_from("=I", data, k)
            elif code == 0x54:
                accumulator &= k
            elif code == 0x06:
                return k
            else:
                holds = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[code]
                at += if_true if holds else if_false

    def test_with_a_gpu_a_unix_socket_can_listen_and_none_can_connect(self) -> None:
        bind, listen, connect, accept = 49, 50, 42, 288
        assert [self.answer(41, family, gpu=True) for family in (1, 2, 10, 16)] == [self.ALLOW, *[self.EPERM] * 3]
        assert self.answer(bind, gpu=True) == self.answer(listen, gpu=True) == self.ALLOW
        assert self.answer(connect, gpu=True) == self.answer(accept, gpu=True) == self.EPERM
        assert {self.answer(number, 1) for number in (41, bind, listen, connect, accept)} == {self.EPERM}

    def test_every_call_is_answered_as_the_table_says(self) -> None:
        for name, number in NUMBERS.items():
            if name in ALLOWED:
                assert self.answer(number) == self.ALLOW, name
            if name in PRETENDED:
                assert self.answer(number) == self.PRETEND, name
        for number in set(range(LAST + 1)) - set(NUMBERS.values()):
            assert self.answer(number) == self.EPERM, number
        assert self.answer(LAST + 1) == self.answer(10_000) == self.ENOSYS

    def test_another_architecture_is_fatal(self) -> None:
        assert self.answer(0, arch=0x40000003) == self.answer(self.X32) == self.KILL

    @pytest.mark.parametrize(
        ("name", "arguments", "expected"),
        [
            ("clone", (0x01200011,), ALLOW),
            ("clone", (0x10000000,), EPERM),
            ("clone3", (), ENOSYS),
            ("ioctl", (1, 0x5413), ALLOW),
            ("ioctl", (1, 0x5412), EPERM),
            ("ioctl", (1, 0x5412 | 1 << 32), EPERM),
            ("prctl", (38,), ALLOW),
            ("prctl", (1,), EPERM),
            ("fcntl", (0, 3), ALLOW),
            ("fcntl", (0, 8), EPERM),
            ("prlimit64", (0,), ALLOW),
            ("prlimit64", (1,), EPERM),
            ("socketpair", (1, 1 | 0o2000000), ALLOW),
            ("socketpair", (1, 2), EPERM),
            ("open", (0, os.O_RDONLY), ALLOW),
            ("openat", (0, 0, os.O_RDWR | os.O_TRUNC), ALLOW),
            ("openat", (0, 0, os.O_RDONLY | os.O_TRUNC), EPERM),
            ("openat2", (), ENOSYS),
            ("kill", (1, 9), ALLOW),
        ],
    )
    def test_arguments_that_matter(self, name: str, arguments: tuple[int, ...], expected: int) -> None:
        assert self.answer(NUMBERS[name], *arguments) == expected

    def test_signals_can_be_kept_to_oneself(self) -> None:
        for name in ("kill", "tgkill", "tkill"):
            assert self.answer(NUMBERS[name], 77, 9, own_pid=77) == self.ALLOW
            assert self.answer(NUMBERS[name], 1, 9, own_pid=77) == self.EPERM
        assert self.answer(NUMBERS["kill"], 0xFFFFFFFF, 9, own_pid=77) == self.EPERM


# Machines without some layers: system calls that fail with EPERM in the host and so in all its descendants.
MISSING = {
    "container": ["unshare", "mount", "setns"],
    "container on an old kernel": ["unshare", "mount", "landlock_create_ruleset"],
    "nothing": ["unshare", "mount", "landlock_create_ruleset", "seccomp-mode"],
}
CALLS = {"unshare": 272, "mount": 165, "setns": 308, "landlock_create_ruleset": 444}

DEGRADED = """
import json, sys
from kernelquarry.pipeline.sandbox.layers import linux, seccomp
numbers, without_filters = json.loads(sys.argv[1]), json.loads(sys.argv[2])
import struct
refuse = (0x06, 0, 0, 0x50001)
program = [(0x20, 0, 0, 0)]
for number in numbers:
    program += [(0x15, 0, 1, number), refuse]
if without_filters:  # prctl(PR_SET_SECCOMP)
    program += [(0x15, 0, 3, 157), (0x20, 0, 0, 16), (0x15, 0, 1, 22), refuse]
program += [(0x06, 0, 0, 0x7FFF0000)]
linux.prctl(38, 1)
seccomp.restrict(b"".join(struct.pack("=HBBI", *one) for one in program))

from kernelquarry.pipeline.sandbox import Sandbox, isolation_check
from scripts import script
with Sandbox() as sandbox:
    daemon = "import os, time\\nif not os.fork():\\n    time.sleep(1000)\\nreturn {'left': 1}, {}"
    bomb = "import os, time\\nfor _ in range(6): os.fork()\\ntime.sleep(100)"
    print(json.dumps({
        "layers": dict(sandbox.layers),
        "attempts": isolation_check.attempt_escapes(sandbox),
        "fine": sandbox.run(script("import torch; return {'x': torch.ones(3).sum().item()}, {}")).reply,
        "daemon": sandbox.run(script(daemon)).wall_s,
        "memory": sandbox.run(script("x = bytearray(1 << 33)")).status,
        "bomb": sandbox.run(script(bomb, processes=16, wall_s=5)).status,
        "error": sandbox.run(script("1 / 0")).error,
    }))
"""


@pytest.mark.parametrize("machine", MISSING)
def test_a_machine_without_some_layers_is_reported_and_used(machine: str) -> None:
    numbers = [CALLS[name] for name in MISSING[machine] if name in CALLS]
    ended = forked.run_code(DEGRADED, json.dumps(numbers), json.dumps("seccomp-mode" in MISSING[machine]), timeout_s=60)
    assert ended.status == 0, ended.err
    seen = json.loads(ended.out)
    off = {name for name, state in seen["layers"].items() if state.startswith(OFF)} - {"user"}
    expected = {"namespaces"}
    if "landlock_create_ruleset" in MISSING[machine] or landlock.abi() < landlock.LEAST_ABI:
        expected.add("landlock")
    if "seccomp-mode" in MISSING[machine]:
        expected.add("seccomp")
    assert off == expected
    assert seen["fine"] == {"x": 3.0}
    assert seen["daemon"] < 5
    assert seen["memory"] == Status.OUT_OF_MEMORY
    assert seen["bomb"] in (Status.CRASHED, Status.RAISED)
    assert seen["error"] == "ZeroDivisionError: division by zero"
    allowed = {act for act, outcome in seen["attempts"].items() if outcome == "allowed"}
    if "landlock" not in off:
        assert allowed == set()
    if "seccomp" not in off:
        assert not [act for act in allowed if "socket" in act or "signal" in act]
