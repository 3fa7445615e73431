"""Make the environment in .venv: `make setup` runs this file with the Python that the environment is for.

It needs the standard library alone, since nothing else is installed yet. Each phase prints one line with its time.
"""

from __future__ import annotations

import argparse
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # PyTorch's own index of builds without CUDA
DEFAULT = "default"  # value of TORCH_INDEX: the index that pip is set up for
_REACH_S = 2.0
_TICK_S = 15.0  # between lines of progress where there is no terminal
_HASHED = ("--no-deps", "--only-binary=:all:", "--require-hashes", "-r")


class Failed(Exception):
    """A phase that failed; the message says what to do."""


@dataclass(frozen=True)
class Torch:
    """The index that torch is taken from, and the reason."""

    arguments: tuple[str, ...]  # of pip
    why: str


def choose_torch(setting: str, has_gpu: bool, reaches: Callable[[str], bool]) -> Torch:
    """The index for torch: a machine without an NVIDIA GPU takes the CPU build, where its index can be reached.

    `setting`: the variable TORCH_INDEX; "" chooses, `default` is pip's index, anything else is an index's URL.
    """
    if setting and setting != DEFAULT:
        return Torch(("--index-url", setting), f"from {setting}")
    if setting == DEFAULT:
        return Torch((), "from pip's index, as TORCH_INDEX says")
    if has_gpu:
        return Torch((), "from pip's index, with CUDA: an NVIDIA GPU was found")
    if sys.platform != "linux":
        return Torch((), "from pip's index, which has no CUDA build for this system")
    if reaches(f"{CPU_INDEX}/torch/"):
        return Torch(("--index-url", CPU_INDEX), f"from {CPU_INDEX}, without CUDA: no NVIDIA GPU was found")
    return Torch((), f"from pip's index, whose build may bring gigabytes of CUDA: {CPU_INDEX} cannot be reached")


def finds_nvidia_gpu() -> bool:
    if Path("/proc/driver/nvidia/version").exists():
        return True
    if shutil.which("nvidia-smi") is None:
        return False
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and b"GPU" in listed.stdout


def reaches(url: str) -> bool:
    """True if a server answers at `url` within two seconds. The time includes the look-up of its name."""
    answers: list[bool] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(url, timeout=_REACH_S):
                answers.append(True)
        except (OSError, ValueError):
            answers.append(False)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_REACH_S)
    return answers == [True]


@contextmanager
def phase(name: str) -> Iterator[list[str]]:
    """Print the phase's line when it ends: its name, what the block adds to the list, and its seconds."""
    started, words = time.monotonic(), list[str]()
    show(f"{name} ...")
    yield words
    show(f"{name:13} {' '.join(words)}, {time.monotonic() - started:.0f} s", end="\n")


def show(text: str, end: str = "") -> None:
    """Overwrite the line of a terminal. Without a terminal, only lines that end are printed."""
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns - 1
        sys.stdout.write(f"\r\033[K{text if end else text[:width]}{end}")
    elif end:
        sys.stdout.write(f"{text}{end}")
    sys.stdout.flush()


class Progress:
    """The state of `pip install`: the package that it downloads, read from its output, then how many are installed."""

    def __init__(self, total: int, installed: Callable[[], int]) -> None:
        self._total, self._collected, self._now = total, 0, ""
        self._installed, self._before = installed, installed()
        self._installs = False

    def read(self, line: str) -> None:
        if line.startswith("Ignoring "):  # a package of another system
            self._total -= 1
        elif found := re.match(r"(?:Collecting|Processing \S*/)\s*([A-Za-z][\w.]*)", line):
            self._collected += 1
            self._now = found[1]
        elif found := re.match(r"\s+Downloading \S+ \((.+)\)", line):
            self._now = f"{self._now.split()[0]} ({found[1]})"
        elif line.startswith("Installing collected packages: "):
            self._installs, self._total = True, line.count(",") + 1

    def __str__(self) -> str:
        if self._installs:
            return f"installing, {self._installed() - self._before} of {self._total} done"
        return f"downloading {self._now}, {self._collected} of {max(self._total, self._collected)}"


def count_pins(requirements: Iterable[str]) -> int:
    return sum(bool(re.match(r"[\w.\[\]-]+==", line)) for line in requirements)


def pip(name: str, venv: Path, arguments: Iterable[str], total: int = 1) -> None:
    """Run `pip install`, and show how far it is. Raises: Failed, with pip's own error."""

    def installed() -> int:
        return sum(1 for _ in venv.glob("lib/python*/site-packages/*.dist-info"))

    command = [str(venv / "bin" / "pip"), "install", "--disable-pip-version-check", "--progress-bar=off", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()
    stream = process.stdout

    def forward() -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=forward, daemon=True).start()
    progress, said, started = Progress(total, installed), list[str](), time.monotonic()
    printed = started
    try:
        while True:
            try:
                line = lines.get(timeout=1)
            except queue.Empty:
                line = ""
            if line is None:
                break
            progress.read(line)
            said.append(line.rstrip())
            now = time.monotonic()
            show(f"{name:13} {progress}, {now - started:.0f} s")
            if not sys.stdout.isatty() and now - printed > _TICK_S:
                show(f"{name:13} {progress}, {now - started:.0f} s ...", end="\n")
                printed = now
    finally:
        if process.poll() is None and sys.exc_info()[0] is not None:
            process.terminate()
        process.wait()
    if process.returncode:
        errors = [line for line in said if line.startswith("ERROR")] or [line for line in said if line][-1:]
        raise Failed("\n".join(errors[:5]) + f"\nmake: {name} could not be installed: check the network or pip's index")


def make_environment(venv: Path, torch: str, setting: str) -> None:
    """Make the environment, install every package, and import torch and triton once. Raises: Failed."""
    with phase("environment") as words:
        done = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"{(done.stdout + done.stderr).strip()}\nmake: {venv} could not be made")
        words.append(f"Python {sys.version.split()[0]} in {venv.name}")
    install_lock(venv, "requirements.lock", "packages")
    choice = choose_torch(setting, finds_nvidia_gpu(), reaches)
    show(f"{'torch':13} {torch} {choice.why}", end="\n")
    with phase("torch") as words:
        pip("torch", venv, [*choice.arguments, f"torch=={torch}"])
        words.append("installed")
    with phase("kernelquarry") as words:
        words.append("from this folder")
        pip("kernelquarry", venv, ["--no-deps", "--no-build-isolation", "-e", str(ROOT)])
    with phase("check") as words:
        words.append(import_versions(venv))


def install_lock(venv: Path, lock: str, name: str) -> None:
    with phase(name) as words:
        total = count_pins((ROOT / lock).read_text().splitlines())
        pip(name, venv, [*_HASHED, str(ROOT / lock)], total)
        words.append(f"of {lock}")


def import_versions(venv: Path) -> str:
    """`torch 2.13.0+cpu and triton 3.7.1 can be imported`. Raises: Failed: they cannot."""
    code = "import torch, triton; print(f'torch {torch.__version__} and triton {triton.__version__} can be imported')"
    done = subprocess.run([str(venv / "bin" / "python"), "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failed(
            f"{last}\nmake: torch or triton cannot be imported: delete {venv.name} and run again, "
            f"with TORCH_INDEX={DEFAULT} if the CPU build is at fault"
        )
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, default=Path(".venv"))
    parser.add_argument("--torch", default="", help="version of torch")
    parser.add_argument("--torch-index", default="", help="URL of an index, or `default`; empty chooses")
    parser.add_argument("--train", action="store_true", help="add what training needs to an environment")
    given = parser.parse_args()
    try:
        if given.train:
            install_lock(given.venv, "requirements-train.lock", "training")
        else:
            make_environment(given.venv, given.torch, given.torch_index)
    except Failed as failure:
        show("")
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        show("")
        print("make: interrupted: run again to start the environment anew", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
