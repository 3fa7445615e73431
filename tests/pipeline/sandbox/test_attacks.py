"""Misbehaving guests, each with the status that it must get. After each, no process is left and the next job works."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from scripts import Run, script

from kernelquarry.pipeline.sandbox import Sandbox, Status
from kernelquarry.pipeline.sandbox.layers import OFF

# name -> (body, status, part of the error, limits)
ATTACKS: dict[str, tuple[str, Status, str, dict[str, float]]] = {
    "exits": ("exit(0)", Status.CRASHED, "SystemExit: 0", {}),
    "exits at once": ("import os; os._exit(0)", Status.CRASHED, "without a complete message", {}),
    "aborts": ("import os; os.abort()", Status.CRASHED, "SIGABRT", {}),
    "faults": ("import ctypes; ctypes.string_at(0)", Status.CRASHED, "SIGSEGV", {}),
    "stops itself": ("import os; os.kill(os.getpid(), 19)", Status.TIMED_OUT, "0.3 s", {"wall_s": 0.3}),
    "sleeps for ever": ("import time; time.sleep(1e6)", Status.TIMED_OUT, "0.3 s", {"wall_s": 0.3}),
    "spins": ("while True: pass", Status.TIMED_OUT, "1 s of CPU time", {"cpu_s": 1}),
    "ignores signals": (
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
        Status.TIMED_OUT, "0.3 s", {"wall_s": 0.3},
    ),
    "recurses": ("def f(n): return f(n + 1) + 1\nf(0)", Status.RAISED, "RecursionError", {}),
    "eats memory": ("x = bytearray(1 << 32)", Status.OUT_OF_MEMORY, "MemoryError", {"memory_mb": 256}),
    "eats memory in torch": (
        "import torch; x = torch.zeros(1 << 30)", Status.OUT_OF_MEMORY, "allocate", {"memory_mb": 256},
    ),
    "eats shared memory": (
        "import mmap; x = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): x[i] = 1",
        Status.OUT_OF_MEMORY, "256 MiB", {"memory_mb": 256},
    ),
    "eats shared memory that it hides": (
        """
        import ctypes, mmap
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # not dumpable: its parent cannot read how much it shares
        x = mmap.mmap(-1, 1 << 30)
        for i in range(0, 1 << 30, 4096): x[i] = 1
        """,
        Status.OUT_OF_MEMORY, "256 MiB", {"memory_mb": 256},
    ),
    "eats memory in many processes": (
        """
        import os, time
        for _ in range(8):
            if os.fork() == 0:
                x = b"x" * (100 << 20)
                time.sleep(100)
        time.sleep(100)
        """,
        Status.OUT_OF_MEMORY, "256 MiB", {"memory_mb": 256},
    ),
    "writes a large file": (
        "open('large', 'wb').write(bytes(8 << 20))", Status.RAISED, "OSError", {"file_mb": 4},
    ),
    "makes a sparse file": ("open('large', 'wb').truncate(1 << 40)", Status.RAISED, "File too large", {}),
    "opens every descriptor": (
        "import os\nwhile True: os.open('/dev/null', 0)", Status.RAISED, "Too many open files", {},
    ),
    "changes the program": ("import os; os.execv('/bin/true', ['true'])", Status.CRASHED, "without a complete", {}),
    "closes everything": ("import os; os.closerange(0, 1000)", Status.CRASHED, "exited with 1", {}),
    "replies with no object": ("return [], {}", Status.CRASHED, "of another form", {}),
    "replies with no tensor": ("return {}, {'x': 3}", Status.CRASHED, "not a tensor", {}),
    "replies with NaN": ("return {'x': float('nan')}, {}", Status.CRASHED, "not JSON", {}),
    "replies with too much": (
        "import torch; return {}, {'x': torch.zeros(1 << 20)}", Status.CRASHED, "over the limit", {"output_mb": 1},
    ),
    "raises without words": (
        "class E(Exception):\n    def __str__(self): raise OSError\nraise E", Status.RAISED, "E: ", {},
    ),
    "raises a long message": ("raise ValueError('x' * (64 << 20))", Status.RAISED, "ValueError: xxx", {}),
    "raises no exception": ("raise KeyboardInterrupt", Status.RAISED, "KeyboardInterrupt", {}),
    "imports what is not there": ("import not_there", Status.RAISED, "No module named 'not_there'", {}),
    "imports the project": (
        "import kernelquarry.transforms", Status.RAISED, "No module named 'kernelquarry.transforms'", {},
    ),
    "imports the host's side": (
        "import kernelquarry.pipeline.sandbox.pool", Status.RAISED, "No module named", {},
    ),
    "imports a folder of the project by its bare name": (
        "import transforms", Status.RAISED, "No module named 'transforms'", {},
    ),
    "raises its limits": (
        "import resource as r; r.setrlimit(r.RLIMIT_CPU, (10**6, 10**6))", Status.RAISED, "not allowed", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_misbehaving_guest_ends_with_the_expected_status(run: Run, sandbox: Sandbox, name: str) -> None:
    body, status, error, limits = ATTACKS[name]
    report = run(body, **limits)
    assert report.status is status, (report.error, report.stderr)
    assert error in report.error
    assert len(report.error) < 5000 and len(report.traceback) < 20_000
    assert run("return {'fine': 1}, {}").reply == {"fine": 1}


@pytest.mark.parametrize(
    "act",
    [
        "import threading; threading.Thread(target=print).start()",
        "import os; os.fork() or os._exit(0)",
        "import subprocess; subprocess.run(['/bin/true'])",
        "import ctypes, os\nchild = ctypes.CDLL(None).fork()\nassert child >= 0\nchild or os._exit(0)",
    ],
)
def test_a_guest_that_may_have_one_process_starts_no_other_and_no_thread(run: Run, act: str) -> None:
    assert run(act).status is Status.OK
    assert run(act, processes=1).status is Status.RAISED
    assert run("import torch; return {'sum': torch.ones(1 << 20).sum().item()}, {}", processes=1).status is Status.OK


def test_output_is_capped_and_drained(run: Run) -> None:
    report = run("import os\nfor _ in range(256): os.write(2, bytes(1 << 16))\nreturn {'done': 1}, {}")
    assert report.reply == {"done": 1}
    assert len(report.stderr) == 1 << 16


def test_binary_output_is_decoded(run: Run) -> None:
    assert run(r"import os; os.write(1, b'\xff\x00\x1b[31m')").stderr == "\ufffd\x00\x1b[31m"


def test_many_processes_are_refused_and_none_is_left(sandbox: Sandbox) -> None:
    """A small fork bomb does not affect an honest guest that runs at the same time."""
    body = """
    import os, time
    for _ in range(6):
        try:
            os.fork()
        except OSError:
            break
    time.sleep(100)
    """
    bomb = script(body, wall_s=1, processes=16)
    result = []
    thread = threading.Thread(target=lambda: result.append(sandbox.run(bomb)))
    thread.start()
    honest = sandbox.run(script("import subprocess; return {'code': subprocess.run(['/bin/true']).returncode}, {}"))
    thread.join()
    assert honest.reply == {"code": 0}, honest.error
    assert result[0].status in (Status.TIMED_OUT, Status.CRASHED)
    assert guests_alive(sandbox) == 0


def test_a_daemon_dies_with_its_guest(run: Run, sandbox: Sandbox) -> None:
    report = run(
        """
        import os, time
        if os.fork() == 0:
            if os.fork() == 0:
                try:
                    os.setsid()
                except OSError:
                    pass
                time.sleep(1000)
            os._exit(0)
        os.wait()
        return {"done": 1}, {}
        """
    )
    assert report.reply == {"done": 1}
    assert report.wall_s < 5
    assert guests_alive(sandbox) == 0


def guests_alive(sandbox: Sandbox) -> int:
    """Number of processes below the warm processes, as the host counts them."""
    warm_processes = [process._process.pid for process in sandbox._warm_processes.values()]
    below = [pid for process in warm_processes for pid in descendants(process)]
    return sum(not Path(f"/proc/{pid}/cmdline").read_bytes() or not is_warm_process(pid) for pid in below)


def descendants(pid: int) -> list[int]:
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [below for child in found for below in descendants(child)]


def is_warm_process(pid: int) -> bool:
    """True if the process is the first of its PID namespace, as warm processes are."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1] == "1"


def test_the_host_is_out_of_reach(run: Run, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    report = run(
        """
        import os
        seen = {}
        for name, act in {
            "read": lambda: open(arguments["secret"]).read(),
            "write": lambda: open(arguments["secret"], "a"),
            "truncate": lambda: os.open(arguments["secret"], os.O_TRUNC),
            "move": lambda: os.rename(arguments["secret"], "mine"),
            "link": lambda: os.link(arguments["secret"], "mine"),
            "kill": lambda: os.kill(arguments["host"], 9),
            "memory": lambda: open(f"/proc/{arguments['host']}/mem"),
            "passwords": lambda: open("/etc/shadow"),
            "home": lambda: os.listdir(os.path.expanduser("~root")),
        }.items():
            try:
                act()
                seen[name] = "allowed"
            except OSError as error:
                seen[name] = "refused"
        os.chmod(arguments["secret"], 0) if os.path.exists(arguments["secret"]) else None
        return seen, {}
        """,
        {"secret": str(secret), "host": os.getpid()},
    )
    assert report.status is Status.OK, report.error
    assert report.reply == dict.fromkeys(report.reply or {}, "refused")
    assert secret.read_text() == "of the host" and secret.stat().st_mode & 0o777


@pytest.mark.parametrize("target", ["os.getppid()", "1", "-1"])
def test_the_warm_process_survives_its_guests(run: Run, sandbox: Sandbox, target: str) -> None:
    assert run("pass").status is Status.OK
    before = dict(sandbox._warm_processes)
    run(f"import os; os.kill({target}, 9)", wall_s=2)
    assert run("return {'fine': 1}, {}").reply == {"fine": 1}
    assert sandbox._warm_processes == before


def test_no_socket_reaches_anything(run: Run) -> None:
    report = run(
        """
        import socket
        seen = []
        for family, kind in (("AF_INET", 1), ("AF_INET", 2), ("AF_INET6", 1), ("AF_UNIX", 1), ("AF_NETLINK", 3)):
            try:
                socket.socket(getattr(socket, family), kind)
                seen.append(family)
            except OSError:
                pass
        first, second = socket.socketpair()
        first.send(b"inside")
        assert second.recv(6) == b"inside"
        return {"opened": seen}, {}
        """
    )
    assert report.reply == {"opened": []}, report.error


FORGERIES = {
    "a reply of its own": "struct.pack('<8s16sQQQ', b'KQMSG\\0\\0\\1', bytes(16), 2, 0, 58) + b'{}'",
    "sizes that do not exist": "struct.pack('<8s16sQQQ', b'KQMSG\\0\\0\\1', bytes(16), 1 << 62, 1 << 62, 1 << 63)",
    "noise": "os.urandom(1 << 16)",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_reply_is_no_reply(run: Run, name: str) -> None:
    report = run(
        f"""
        import os, struct
        for fd in range(3, 64):
            try:
                if os.path.basename(os.readlink(f"/proc/self/fd/{{fd}}")).startswith("memfd:reply"):
                    os.pwrite(fd, {FORGERIES[name]}, 0)
            except OSError:
                pass
        os._exit(0)
        """
    )
    assert report.status is Status.CRASHED
    assert report.reply is None and not report.tensors


def test_a_printed_reply_is_no_reply(run: Run) -> None:
    report = run("""import os; os.write(1, b'{"reply": {"ok": true}}'); os._exit(0)""")
    assert report.status is Status.CRASHED


@pytest.mark.parametrize("size", [0, 1 << 20], ids=["empty", "of 1 MiB"])
def test_many_files_fill_the_guests_own_folder_only(run: Run, sandbox: Sandbox, size: int) -> None:
    if sandbox.layers["namespaces"].startswith(OFF):
        pytest.skip("without namespaces the number of files is not limited")
    report = run(f"for i in range(2000):\n    with open(str(i), 'wb') as file: file.write(bytes({size}))", file_mb=4)
    assert report.status is Status.RAISED and "No space left" in report.error
    assert run("open('file', 'w').write('x' * 1000); return {'fine': 1}, {}", file_mb=4).reply == {"fine": 1}
