"""A small corpus of good and bad files, and a finished run on it that tests share."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelquarry.pipeline.cli.app import app
from tests.hub_double import TOKEN, HubDouble
from tests.pipeline.command import Built, Ended
from tests.transforms.read.wheel import MIT

LAYERS = '''import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return torch.relu(x * self.scale) + 1.0


class CopyOfScale(nn.Module):
    """The same module under other names."""

    def __init__(self, width: int):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(width))

    def forward(self, value):
        return torch.relu(value * self.factor) + 1.0


class Distance(nn.Module):
    def forward(self, a, b):
        print("a line that nobody asked for")
        return (a - b).abs().sum(-1).sqrt()


class Noise(nn.Module):
    """A module that is random in eval mode too."""

    def forward(self, x):
        return x + torch.randn_like(x)


class Exits(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        raise SystemExit(y)
'''
FILES: dict[str, bytes] = {
    "LICENSE": MIT.encode(),
    "layers.py": LAYERS.encode(),
    "python_2.py": b"import torch\nclass Old(torch.nn.Module):\n    def forward(self, x):\n        print 'old'\n",
    "deep.py": b"import torch\nclass Deep(torch.nn.Module):\n    def forward(self, x):\n        return "
    + b"(" * 3000
    + b"x"
    + b")" * 3000
    + b"\n",
    "binary.py": bytes(range(256)) * 8,
    "latin.py": b"x = '\xe9'\n",
    "large.py": b"# 10 MB\n" * 1_250_000,
    "readme.txt": b"not Python",
}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The finished run, built once by the first pytest-xdist worker, in its process: it has warm processes."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, said = shared / "built", shared / "built.json"
    with (shared / "built.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            (folder / "layers").mkdir(parents=True)
            for name, data in FILES.items():
                (folder / "layers" / name).write_bytes(data)
            with in_this_process(), contextlib.chdir(folder), io.StringIO() as out, io.StringIO() as err:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    status = call_command("dataset", "layers", "-v")
                said.write_text(json.dumps(asdict(Ended(status, out.getvalue(), err.getvalue()))))
    return Built(folder, Ended(**json.loads(said.read_text())))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    """The Hub double, and a client without pauses between retries."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.utils._http.time", SimpleNamespace(**{**vars(time), "sleep": lambda _: None}))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubDouble() as double:
        yield double


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ended]]:
    """`kernelquarry ARGUMENTS` in this process, which is faster."""

    def call(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        return Ended(call_command(*arguments), *capsys.readouterr())

    with in_this_process():
        yield call


@contextlib.contextmanager
def in_this_process() -> Iterator[None]:
    """Let commands run in this process. Restores the logging setup."""
    loggers = [logging.getLogger(name) for name in ("", "kernelquarry", "apache_beam")]
    before = [(logger.level, logger.handlers[:], logger.filters[:]) for logger in loggers]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelquarry.pipeline.cli.failures.os._exit", sys.exit)
        patch.setenv("COLUMNS", "80")
        yield
    for logger, (level, handlers, filters) in zip(loggers, before, strict=True):
        logger.level, logger.handlers, logger.filters = level, handlers, filters
        logger.manager._clear_cache()  # type: ignore[attr-defined]


def call_command(*arguments: str | Path) -> int:
    """Call the command line and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        app([str(argument) for argument in arguments])
    status = ended.value.code
    assert isinstance(status, int)
    return status
