"""Making the environment: the index of torch, progress, and failures in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.make_environment import CPU_INDEX, ROOT, Progress, choose_torch, count_pins, reaches

CPU = ("--index-url", CPU_INDEX)


@pytest.mark.parametrize(
    ("setting", "has_gpu", "is_reached", "arguments", "why"),
    [
        ("", False, True, CPU, "without CUDA: no NVIDIA GPU was found"),
        ("", False, False, (), "cannot be reached"),
        ("", True, True, (), "with CUDA: an NVIDIA GPU was found"),
        ("default", False, True, (), "as TORCH_INDEX says"),
        ("https://x.org/cu130", True, False, ("--index-url", "https://x.org/cu130"), "from https://x.org/cu130"),
    ],
)
def test_the_index_of_torch(
    setting: str, has_gpu: bool, is_reached: bool, arguments: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    choice = choose_torch(setting, has_gpu, lambda url: url.startswith(CPU_INDEX) and is_reached)
    assert choice.arguments == arguments and why in choice.why


def test_other_systems_take_their_own_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert choose_torch("", False, lambda _: True).arguments == ()


def test_an_index_that_refuses_is_not_reached(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("")
    assert reaches((tmp_path / "index").as_uri())
    assert not reaches((tmp_path / "none").as_uri())
    assert not reaches("http://127.0.0.1:1/")


def test_progress_follows_pip() -> None:
    installed = 3
    progress = Progress(3, lambda: installed)
    for line in (
        "Ignoring appnope: markers 'sys_platform == \"darwin\"' don't match your environment",
        "Collecting aiohttp==3.14.5 (from -r requirements.lock (line 5))",
        "  Downloading aiohttp-3.14.5-cp311-cp311-manylinux2014_x86_64.whl (1.9 MB)",
    ):
        progress.read(line)
    assert str(progress) == "downloading aiohttp (1.9 MB), 1 of 2"
    progress.read("Processing /opt/files/aiosignal-1.4.0-py3-none-any.whl (from -r requirements.lock (line 168))")
    assert str(progress) == "downloading aiosignal, 2 of 2"
    progress.read("Installing collected packages: aiosignal, aiohttp")
    installed = 4
    assert str(progress) == "installing, 1 of 2 done"


def test_every_pin_is_counted() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert count_pins(lock.splitlines()) == sum("==" in line.split(" ; ")[0] for line in lock.splitlines())


def test_a_failure_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pip").write_text("#!/bin/sh\necho ERROR: no such package\nexit 1\n")
    (tmp_path / "bin" / "pip").chmod(0o755)
    command = [sys.executable, ROOT / "tools" / "make_environment.py", "--venv", tmp_path, "--train"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "ERROR: no such package\nmake: training could not be installed: check the network or pip's index\n"
    )
