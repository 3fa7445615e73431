"""Each command line in the docs runs, in a folder with the files that it names.

Builds, merges, trainings and models are doubles here, since they take minutes; tests of their own run them. The rest is
real: run directories, datasets, verdicts, indexes, signatures, and the requests to a double of the Hub.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from doc_commands import ROOT, commands, files, pages
from ssh import make_key

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.schema.files import parse_path
from kernelquarry.recipes.train.trainer import TrainingJob, TrainResult
from tests.hub_double import TOKEN, HubDouble
from tests.pipeline.check.pairs import KERNEL, SCALE
from tests.pipeline.command import Built, Ended, run

COVERED_BY = {  # start of a line -> the test that runs it
    "pip install ": "tests/test_packaging.py",
    "vf-eval ": "tests/pipeline/adapters/test_verifiers.py",
    "source .venv/bin/activate": "Makefile",
}
STATUSES = {"docs/tutorials/check-a-kernel.md": [1, 0]}  # the tutorial's first kernel is wrong
NAMES = {"CORPUS": "tiny", "DATASET": "out/tiny/dataset", "REPO": "owner/name", "LIST": "list.txt"}
NAMES |= {"TEACHERS.toml": "teachers.toml", "gs://bucket/run": "memory://bucket/run"}
NAMES |= {"MyModule": "Scale", "Conv2dSigmoidMul": "ROW", "gs://bucket/store": "memory://bucket/store"}
ONLINE = (("HF_HUB_OFFLINE", "0"), ("HF_DATASETS_OFFLINE", "0"), ("HF_TOKEN", TOKEN))
ON_THE_HUB = ("publish", "withdraw", "index-benchmarks")  # in a process of their own, which knows the double's address
PAGES = [page for page in pages() if commands(page)]


def block_of(page: str, start: str) -> str:
    """The block of a page of docs/ that begins with a line."""
    blocks: list[str] = re.findall(r"```\w*\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    return next(block for block in blocks if block.startswith(start))


@pytest.fixture
def folder(built: Built, hub: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with runs, datasets and input files under the names that the docs use."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    corpora = {"out/tiny": "tiny", "out/tiny+slices": "tiny+slices", "out/modules": str(tmp_path / "examples/modules")}
    corpora |= {"out/mine": str(tmp_path / "mine"), "out/my_module": str(tmp_path / "my_module.py")}
    for name in ("run", "run-on-gpu-host", "copy-of-run", "other-copy"):
        corpora[name] = str(built.folder / "layers")
    for name, corpus in corpora.items():
        shutil.copytree(built.folder / "out/layers", tmp_path / name)
        claim = tmp_path / name / "run.json"
        claim.write_text(json.dumps(json.loads(claim.read_text()) | {"corpus": corpus}))
    (parse_path("memory://bucket/run") / "run.json").write_bytes((tmp_path / "run/run.json").read_bytes())
    problem = "KernelBench/KernelBench/level1/23_Scale.py"
    texts = {
        "module.py": SCALE,
        "my_module.py": SCALE,
        "src/kernelbench/eval.py": "",
        "kernel.py": KERNEL,
        "kernels/a.py": KERNEL,
        problem: SCALE,
    }
    texts |= {"runs/my_run/level_1_problem_23_sample_0_kernel.py": KERNEL, "my-problems/scale.py": SCALE}
    texts |= {"teachers.toml": block_of("guides/distillation.md", "repairs"), "answers.jsonl": ""}
    texts |= {"settings.toml": block_of("guides/configuration.md", "[decontaminate]"), "list.txt": "package nobody\n"}
    texts |= {"flink.options": "--runner=FlinkRunner\n--flink_master=HOST:8081\n", "backendbench/empty.txt": ""}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    table = pa.table({"code": [SCALE], "name": ["1_Scale"]})
    pq.write_table(table, tmp_path / "backendbench/train.parquet")
    shutil.copy(tmp_path / "backendbench/train.parquet", tmp_path / "train.parquet")
    (tmp_path / ".ssh").mkdir()
    key = make_key(tmp_path / ".ssh")
    for suffix in ("", ".pub"):
        Path(f"{key}{suffix}").rename(tmp_path / ".ssh" / f"id_ed25519{suffix}")
    results = tmp_path / "out/train/smollm2-135m/evaluation"
    results.mkdir(parents=True)
    shutil.copy(ROOT / "docs/results/training/base.json", results / "results.json")
    hub.add("owner/name", {"data/train-00000-of-00001.parquet": (tmp_path / "train.parquet").read_bytes()})
    for name, value in (("HOME", tmp_path), ("HF_HOME", tmp_path / "home"), ("HF_ENDPOINT", hub.url), *ONLINE):
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def doubles(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Doubles of what takes minutes. Yields the names of those that were called."""
    called: list[str] = []

    def replace(place: str, result: Any) -> None:
        def double(*arguments: Any, **options: Any) -> Any:
            called.append(place)
            return result

        monkeypatch.setattr(f"kernelquarry.{place}", double)

    replace("pipeline.run.build.build", SimpleNamespace(summary=lambda: "built", ran=()))
    replace("pipeline.run.build.run_stage", (SimpleNamespace(counts=()), False))
    replace("pipeline.run.merge.merge", ())

    def train(job: TrainingJob, *_: Any) -> TrainResult:
        job.out.mkdir(parents=True, exist_ok=True)
        return TrainResult(job.out, done=True, steps=1, seconds=0.0)

    for stage in ("sft", "grpo"):
        monkeypatch.setattr(f"kernelquarry.recipes.train.{stage}.train", train)
    replace("recipes.evaluate.run_suite.run_suite", ([], True))
    replace("recipes.generate.serve.SlotModel", None)

    async def serve(*_: Any) -> None:
        called.append("serve")

    class Writer:
        def __init__(self, *_: Any) -> None:
            called.append("writer")

        def __enter__(self) -> Writer:
            return self

        def __exit__(self, *_: Any) -> None: ...

        def generate_triton(self, *_: Any) -> list[Any]:
            return [SimpleNamespace(code="# a kernel", text="", judgement=None)]

    monkeypatch.setattr("kernelquarry.recipes.generate.serve.serve", serve)
    monkeypatch.setattr("kernelquarry.recipes.generate.writer.KernelWriter", Writer)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    yield called


def words_of(line: str) -> list[str]:
    """Arguments of a `kernelquarry` line, with the names of the test folder in place of placeholders."""
    words = [NAMES.get(word, word) for word in shlex.split(line)]
    dataset = words[words.index("--dataset") + 1] if "--dataset" in words else "out/tiny/dataset"
    if "ROW" in words:
        words[words.index("ROW")] = next(read_rows(Path(dataset))).id[:12]
    return [os.path.expanduser(word) for word in words]


def expand(line: str) -> list[str]:
    """The `kernelquarry` lines that a `make` line runs, by make's own dry run."""
    done = subprocess.run([*shlex.split(line), "-n"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [f"kernelquarry {rest}" for rest in re.findall(r"\S*bin/kernelquarry (.*)$", done.stdout, re.MULTILINE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_run_in_their_order(
    page: Path, folder: Path, doubles: list[str], invoke: Callable[..., Ended]
) -> None:
    for name, text in files(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    statuses = []
    for line in commands(page):
        if line.startswith(tuple(COVERED_BY)):
            continue
        if line.startswith(("cp ", "sed ", "echo ", "printf ", "ssh-keygen ")):
            subprocess.run(["bash", "-ec", line], cwd=folder, check=True, capture_output=True)
            continue
        program, _, _ = line.partition(" ")
        inner = line[line.index("kernelquarry ") :] if program == "accelerate" else line
        for command in expand(line) if program == "make" else [inner]:
            _, *words = words_of(command)
            ended = run(*words, cwd=folder) if words[0] in ON_THE_HUB else invoke(*words)
            statuses.append(ended.status)
            assert ended.status == 0 or page.relative_to(ROOT).as_posix() in STATUSES, (line, ended.out, ended.err)
    assert statuses == STATUSES.get(page.relative_to(ROOT).as_posix(), [0] * len(statuses))


def test_no_command_is_overlooked() -> None:
    """Each block without a language holds commands of known programs, or none at all."""
    assert sum(len(commands(page)) for page in PAGES) >= 60
