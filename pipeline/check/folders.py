"""Find the kernels of a folder, each with the module that it is checked against."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

from .kernelbench import LEVELS, read_kernelbench

# `level_1_problem_23_sample_0_kernel.py` of KernelBench's runs, and folders such as `level1/23_softmax/sample_0.py`.
_SAMPLE = re.compile(r"level_?(?P<level>\d+)[_/](?:problem_?)?(?P<problem>\d+)(?:_[^/]*)?[_/]sample_?(?P<sample>\d+)")
_MOST = 1 << 23  # characters of a source, as of a task


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A kernel to check: its name in tables, and both sources."""

    name: str
    module: str
    kernel: str


def find_kernels(module: Path, kernel: Path) -> list[KernelFile]:
    """The kernels to check, by name.

    Args:
        module: source of a module; or, with a folder of results, a folder of problems in KernelBench's layout.
        kernel: source of a kernel, or a folder of sources.

    Raises:
        UserError: a path cannot be read, or there is nothing to check.
    """
    for path in (module, kernel):
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
    if module.is_dir():
        return list(_results(module, kernel))
    source = read_source(module)
    if not kernel.is_dir():
        return [KernelFile(kernel.name, source, read_source(kernel))]
    paths = sorted(path for path in kernel.rglob("*.py") if path.resolve() != module.resolve())
    if not paths:
        raise UserError(f"{kernel}: the folder has no .py file")
    return [KernelFile(str(path.relative_to(kernel)), source, read_source(path)) for path in paths]


def _results(problems: Path, folder: Path) -> Iterator[KernelFile]:
    """The kernels of a folder of results, with their problems. Raises: UserError."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no folder: a folder of problems needs a folder of results, such as runs/NAME")
    known = {(problem.level, problem.number): problem for problem in read_kernelbench(str(problems), LEVELS)}
    found = [(path, match) for path in sorted(folder.rglob("*.py")) if (match := _SAMPLE.search(path.as_posix()))]
    if not found:
        raise UserError(f"{folder}: no file is named as level_1_problem_23_sample_0_kernel.py is")
    for path, match in sorted(found, key=lambda pair: tuple(map(int, pair[1].groups()))):
        level, number, sample = map(int, match.groups())
        problem = known.get((level, number))
        if problem is None:
            raise UserError(f"{path}: {problems} has no problem {number} of level {level}")
        yield KernelFile(f"{problem.id} sample {sample}", problem.code, read_source(path))


def read_source(path: Path) -> str:
    """The text of a file. Raises: UserError: it cannot be read, is too large, or is not UTF-8."""
    try:
        if path.stat().st_size > _MOST:
            raise UserError(f"{path}: larger than {_MOST >> 20} MiB")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file in UTF-8") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
