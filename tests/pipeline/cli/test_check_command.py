"""The command `kernelquarry check`: its output, its exit status, and bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelquarry.pipeline.check import versions
from kernelquarry.pipeline.check.folders import find_kernels
from kernelquarry.pipeline.schema.errors import UserError
from tests.pipeline.check.pairs import KERNEL, SCALE, WRONG, module
from tests.pipeline.command import Ended

Invoke = Callable[..., Ended]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Files of a module and a right kernel."""
    files = tmp_path / "module.py", tmp_path / "kernel.py"
    for path, code in zip(files, (SCALE, KERNEL), strict=True):
        path.write_text(code)
    return files


def said(ended: Ended) -> str:
    """The one error line of a check that could not be made."""
    assert ended.status == 2 and "Traceback" not in ended.err, ended
    (line,) = ended.err.splitlines()
    return line.removeprefix("kernelquarry: ")


def test_a_right_kernel(pair: tuple[Path, Path], tmp_path: Path, invoke: Invoke) -> None:
    ended = invoke("check", *pair, "--gpus", "none", "--workers", "1", "--report", tmp_path / "page.html")
    assert ended.status == 0
    assert ended.out.splitlines()[-1] == "VERIFIED pure"
    assert "1 launch a call" in ended.out and "compiled for sm_90" in ended.out
    stages = [line.split("  ")[0] for line in ended.err.splitlines()]
    assert stages == ["constructing", "reference", "candidate", "compile", "further checks"]
    page = (tmp_path / "page.html").read_text()
    assert "VERIFIED pure" in page and "scale_relu" in page and page.count("<script") == 1


def test_a_wrong_kernel(pair: tuple[Path, Path], invoke: Invoke) -> None:
    pair[1].write_text(WRONG)
    ended = invoke("check", *pair, "--gpus", "none", "--workers", "1")
    assert ended.status == 1
    assert ended.out.splitlines()[-1].startswith("REJECTED wrong_values: ")
    (example,) = (line for line in ended.out.splitlines() if line.startswith("fails on"))
    assert "[2, 40], seed" in example and "not 0" in " ".join(ended.out.split())


def test_a_kernel_outside_of_the_language(pair: tuple[Path, Path], invoke: Invoke) -> None:
    pair[1].write_text(f"import cupy\n{KERNEL}")
    ended = invoke("check", *pair, "--gpus", "none", "--workers", "1")
    assert ended.status == 2
    (line,) = (line for line in ended.out.splitlines() if line.startswith("UNJUDGED"))
    assert line.startswith("UNJUDGED line 1: an import from cupy is outside of the language: import torch")


def test_json(pair: tuple[Path, Path], invoke: Invoke) -> None:
    pair[1].write_text("def (:")
    ended = invoke("check", *pair, "--gpus", "none", "--workers", "1", "--json")
    assert ended.status == 1
    verdict = json.loads(ended.out)
    assert (verdict["kernel"], verdict["status"], verdict["reason"]) == ("kernel.py", "rejected", "no_code")


def test_a_module_that_cannot_be_judged(pair: tuple[Path, Path], invoke: Invoke) -> None:
    pair[0].write_text(module(forward="return x + torch.rand_like(x)"))
    ended = invoke("check", *pair, "--gpus", "none", "--workers", "1")
    assert ended.status == 2
    assert ended.out.splitlines()[-1].startswith("UNJUDGED the module is random")


def test_a_folder_of_kernels(pair: tuple[Path, Path], tmp_path: Path, invoke: Invoke) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(f"no python in {name}")
    ended = invoke("check", pair[0], folder, "--gpus", "none", "--workers", "1")
    assert ended.status == 1
    assert "2 kernels: 2 rejected" in ended.out and "two.py" in ended.out
    assert "Traceback" not in ended.err and len(ended.err.splitlines()) == 2


def test_time_needs_a_gpu(pair: tuple[Path, Path], invoke: Invoke) -> None:
    assert said(invoke("check", *pair, "--gpus", "none", "--time")).startswith("timing needs a GPU, and there is none")


def test_an_old_torch(pair: tuple[Path, Path], invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "version", lambda name: "2.4.1")
    line = said(invoke("check", *pair, "--gpus", "none"))
    assert line == "torch 2.4.1 is installed: kernelquarry needs torch 2.11 or newer: pip install -U torch"


def test_paths_that_are_no_good(pair: tuple[Path, Path], tmp_path: Path, invoke: Invoke) -> None:
    assert "nowhere.py: no such file or folder" in said(invoke("check", tmp_path / "nowhere.py", pair[1]))
    (tmp_path / "empty").mkdir()
    assert "empty: the folder has no .py file" in said(invoke("check", pair[0], tmp_path / "empty"))
    assert "no folder: a folder of problems needs" in said(invoke("check", tmp_path, pair[1]))
    pair[1].write_bytes(b"\xff\xfe\x00")
    assert "kernel.py: not a text file in UTF-8" in said(invoke("check", *pair))


def test_inputs_that_are_none(pair: tuple[Path, Path], invoke: Invoke) -> None:
    assert "choose derived or as-given" in said(invoke("check", *pair, "--inputs", "mine"))


# folders of results


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    """A folder of problems in KernelBench's layout; each source names its problem."""
    for level, number in ((1, 2), (1, 23), (2, 2)):
        path = tmp_path / "problems" / f"level{level}" / f"{number}_Softmax.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"level {level} problem {number}")
    return tmp_path / "problems"


@pytest.mark.parametrize("layout", ["level_{}_problem_{}_sample_{}_kernel.py", "level{}/{}_Softmax/sample_{}.py"])
def test_results_are_matched_with_their_problems(layout: str, problems: Path, tmp_path: Path) -> None:
    wanted = [(1, 2, 0), (1, 2, 10), (1, 23, 1), (2, 2, 0)]
    for sample in reversed(wanted):
        path = tmp_path / "runs" / layout.format(*sample)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"kernel {sample}")
    found = find_kernels(problems, tmp_path / "runs")
    assert [file.kernel for file in found] == [f"kernel {sample}" for sample in wanted]
    assert [file.module for file in found] == [f"level {level} problem {number}" for level, number, _ in wanted]
    assert [file.name for file in found][1] == "1-002_Softmax sample 10"


def test_a_result_without_a_problem_is_named(problems: Path, tmp_path: Path) -> None:
    (tmp_path / "level_1_problem_99_sample_0_kernel.py").write_text("")
    with pytest.raises(UserError, match="has no problem 99 of level 1"):
        find_kernels(problems, tmp_path)


def test_a_folder_of_other_files_is_no_folder_of_results(problems: Path) -> None:
    with pytest.raises(UserError, match=r"no file is named as level_1_problem_23_sample_0_kernel\.py is"):
        find_kernels(problems, problems)
