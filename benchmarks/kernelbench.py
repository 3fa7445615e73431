"""Check a dataset's rows as KernelBench checks a sample, and time them against `torch.compile`, on a GPU.

    python benchmarks/kernelbench.py accepted out/tiny/dataset --results accepted.jsonl
    python benchmarks/kernelbench.py accepted out/tiny/dataset --results ieee.jsonl --ieee  # the reference without TF32
    python benchmarks/kernelbench.py speed out/tiny/dataset --results speed.jsonl --number 200
    python benchmarks/kernelbench.py record --results accepted.jsonl    # the figures of a file of results

KernelBench (https://github.com/ScalingIntelligence/KernelBench) is in no package index, so `evaluate` reimplements its
`eval_kernel_against_ref` for a Triton sample in float32, as of commit 0d12226: the seeds and their order, casts and
moves of inputs, five trials, shapes, `torch.allclose` with 1e-4 for both tolerances, torch's default for TF32, no
`eval()`. KernelBench supports one output tensor and casts all inputs to float, so only rows count whose reference is
accepted as its own answer.

Results are JSON lines, one per row; a stopped run resumes. The rows' code runs in plain processes.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import torch
from figures import installed, machine, record
from torch import Tensor, nn

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.jsonl_append import add_line, read_lines
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT, ENTRY_POINT, Pair
from kernelquarry.transforms.time import time as time_pair

COMMAND = "python benchmarks/kernelbench.py"
SEED, TRIALS, TOLERANCE = 42, 5, 1e-4
_STUCK_S = 300.0  # without a result, after which processes are killed
_MESSAGE = 300  # characters


def evaluate(reference: str, candidate: str, device: torch.device, entry_point: str = CANDIDATE_ENTRY_POINT) -> str:
    """The reason why KernelBench rejects `candidate`, "" if it accepts it. Raises: exceptions of the reference."""
    namespace: dict[str, Any] = {}
    exec(compile(reference, "<string>", "exec"), namespace)
    _seed()
    given = [_move(value, device) for value in namespace["get_init_inputs"]()]
    with torch.no_grad():
        _seed()
        model = namespace[ENTRY_POINT](*given)
        try:
            made = getattr(_import(candidate), entry_point)
            _seed()
            model_new = made(*given)
            model = model.to(device=device, dtype=torch.float32)
            model_new = model_new.to(device=device, dtype=torch.float32)
        except Exception as error:  # noqa: BLE001  an exception of the sample is its verdict
            return _describe("does not load", error)
        return _compare(model, model_new, namespace["get_inputs"], device)


def _compare(model: nn.Module, model_new: nn.Module, get_inputs: Any, device: torch.device) -> str:
    torch.manual_seed(SEED)
    seeds = [int(torch.randint(0, 2**32 - 1, (1,)).item()) for _ in range(TRIALS)]
    for trial, seed in enumerate(seeds):
        _seed(seed)
        inputs = [_move(value, device) for value in get_inputs()]
        _seed(seed)
        output = model(*inputs)
        try:
            output_new = model_new(*inputs)
            if output.shape != output_new.shape:
                return f"trial {trial}: shape {tuple(output_new.shape)}, not {tuple(output.shape)}"
            if not torch.allclose(output, output_new, atol=TOLERANCE, rtol=TOLERANCE):
                return f"trial {trial}: off by {(output - output_new).abs().max().item():.3g}"
        except Exception as error:  # noqa: BLE001
            return _describe(f"trial {trial}", error)
    return ""


def _seed(seed: int = SEED) -> None:
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)


def _move(value: Any, device: torch.device) -> Any:
    return value.to(dtype=torch.float32).to(device=device) if isinstance(value, Tensor) else value


def _describe(what: str, error: Exception) -> str:
    return f"{what}: {type(error).__name__}: {error}"[:_MESSAGE]


def _import(code: str) -> ModuleType:
    """Import code from a temporary file, which is kept since Triton reads the source of kernels."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(code)
    spec = importlib.util.spec_from_file_location("temp_module", file.name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class Judged:
    """A line of the results of `accepted`."""

    id: str
    reference: str  # the reason why the reference is rejected as its own answer; "" if accepted
    candidate: str


def judge(row: Pair, device: torch.device) -> Judged:
    try:
        own = evaluate(row.python_code, row.python_code, device, ENTRY_POINT)
    except Exception as error:  # noqa: BLE001
        own = _describe("the reference", error)
    return Judged(row.id, own, own or evaluate(row.python_code, row.triton_code, device))


def work(rows: Sequence[Pair], results: Path, device: str, ieee: bool) -> None:
    """Judge one process's share of the rows. A line is written before each row too, so that a crash leaves a trace."""
    torch.backends.cudnn.allow_tf32 = not ieee
    for row in rows:
        add_line(results, {"id": row.id, "begun": time.time()})
        add_line(results, asdict(judge(row, torch.device(device))))


def lines(results: Path) -> dict[str, dict[str, Any]]:
    """The last line of each row."""
    return {line["id"]: line for line in read_lines(results) if "id" in line}


def begin(results: Path) -> None:
    """Append a line with this machine and its package versions, which recorded figures cite."""
    where = machine(torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU")
    add_line(results, {"machine": where, "versions": installed()})


def about(results: Path) -> dict[str, Any]:
    return [line for line in read_lines(results) if "machine" in line][-1]


def todo(dataset: Path, number: int, results: Path) -> list[Pair]:
    """Rows without a line. A row that crashed its process has one, and is not repeated."""
    rows, done = list(read_rows(dataset)), lines(results)
    chosen = rows[:: max(1, len(rows) // number)][:number] if number else rows
    return [row for row in chosen if row.id not in done]


def measure_accepted(args: argparse.Namespace) -> None:
    context = multiprocessing.get_context("spawn")
    begin(args.results)
    while left := todo(args.dataset, args.number, args.results):
        print(f"{len(left)} rows left", flush=True)
        shares = [left[n :: args.processes] for n in range(args.processes)]
        parts = [context.Process(target=work, args=(share, args.results, args.device, args.ieee)) for share in shares]
        for process in parts:
            process.start()
        _watch(parts, args.results)
    report(args.results)


def _watch(parts: list[Any], results: Path) -> None:
    """Wait for all processes, and kill them if none writes for `_STUCK_S` seconds."""
    changed, size = time.monotonic(), 0
    while any(process.is_alive() for process in parts):
        time.sleep(1)
        new = results.stat().st_size if results.exists() else 0
        if new != size:
            changed, size = time.monotonic(), new
        if time.monotonic() - changed > _STUCK_S:
            for process in parts:
                process.kill()
    for process in parts:
        process.join()


def report(results: Path) -> tuple[int, int, str]:
    """(accepted rows, rows that count, note)."""
    found = list(lines(results).values())
    counted = [line for line in found if not line.get("reference")]
    accepted = [line for line in counted if line.get("candidate") == ""]
    why = Counter(
        line.get("candidate", "the process died").partition(":")[0] for line in counted if line not in accepted
    )
    note = (
        f"{len(accepted)} of {len(counted)}; {len(found) - len(counted)} more have a reference that is not accepted as "
    )
    note += "its own answer" + "".join(f"; {number} {reason}" for reason, number in why.most_common())
    print(note, flush=True)
    return len(accepted), len(counted), note


def timed(row: Pair, sandbox: Sandbox) -> dict[str, Any]:
    """A line of the results of `speed`."""
    outcome = time_pair(row, sandbox)
    assert isinstance(outcome, Kept)
    (timing,) = outcome.record.timings
    medians = {contender.name: contender.median_us for contender in timing.contenders}
    line = {"id": row.id, "name": row.module_name, "over_compile": timing.over_compile, "over_eager": timing.over_eager}
    return line | medians | {"suspect": timing.suspect, "left_out": timing.left_out, "enlarged": timing.enlarged}


def measure_speed(args: argparse.Namespace) -> None:
    """Time rows. Guests of several rows share the GPU, one timing at a time (docs/reference/stages/time.md)."""
    gpus = choose_gpus("all")
    if not gpus:
        raise SystemExit("there is no GPU to time on")
    settings = SandboxSettings(workers=args.processes, gpus=gpus[:1])
    left = todo(args.dataset, args.number, args.results)
    begin(args.results)
    with Sandbox(settings) as sandbox, ThreadPoolExecutor(args.processes) as threads:
        for place, line in enumerate(threads.map(partial(timed, sandbox=sandbox), left)):
            add_line(args.results, line)
            print(f"{place + 1} of {len(left)}: {line}", flush=True)
    speed(args.results)


def speed(results: Path) -> tuple[float, str]:
    found = list(lines(results).values())
    sound = [line for line in found if line["over_compile"] and not line["suspect"]]
    if not sound:
        raise SystemExit(f"{results} has no row that could be timed against torch.compile")
    value = median(line["over_compile"] for line in sound)
    note = f"{len(sound)} of {len(found)} rows; over eager {median(line['over_eager'] for line in sound):.2f}"
    print(f"{value:.3f}, {note}", flush=True)
    return value, note


def write(results: Path, ieee: bool) -> None:
    """Record the figures of a results file."""
    of = about(results)
    if any("over_compile" in line for line in lines(results).values()):
        value, note = speed(results)
        record("lower.speed", value, f"{COMMAND} speed", note, of["machine"], of["versions"])
    else:
        accepted, counted, note = report(results)
        id = "lower.kernelbench.ieee" if ieee else "lower.kernelbench"
        record(id, 100 * accepted / max(1, counted), f"{COMMAND} accepted", note, of["machine"], of["versions"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("accepted", "speed", "record"))
    parser.add_argument("dataset", type=Path, nargs="?")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--number", type=int, default=0, help="of rows, spread over the dataset; 0 for all")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--ieee", action="store_true", help="convolutions of the reference without TF32")
    args = parser.parse_args()
    if args.what == "record":
        write(args.results, args.ieee)
    elif args.dataset is None:
        parser.error("which dataset?")
    elif args.what == "accepted":
        measure_accepted(args)
    else:
        measure_speed(args)


if __name__ == "__main__":
    main()
