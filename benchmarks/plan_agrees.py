"""Compare the plans of host code with what Python does, and record the share that agrees.

    python benchmarks/plan_agrees.py                                          # the honest corpus
    python benchmarks/plan_agrees.py softmax linear                           # some of its cases, and no figure
    python benchmarks/plan_agrees.py --dataset examples/sample                # also the rows of a dataset folder
    python benchmarks/plan_agrees.py --dataset out/tiny/dataset --record      # and write the figure

The host evaluates `forward` on metadata, see `transforms/verify/plan/`; a guest runs it with kernels interpreted. All
trials of a candidate are compared: launches with their grids, arguments, strides and options, outputs, what outputs
share memory with, refused calls, and operators of PyTorch. Each disagreement is printed with its reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from figures import ROOT, record

from kernelquarry.filters.language.parsed_source import Source
from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.sandbox import Job, Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.jobs.run_trials import INTERPRET, TrialsRequest
from kernelquarry.pipeline.sandbox.observation import MalformedReply
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.verify import VerifySettings
from kernelquarry.transforms.verify.evidence import InputRejected
from kernelquarry.transforms.verify.plan import Planner, Raised, Unsupported
from kernelquarry.transforms.verify.plan.agreement import disagreement
from kernelquarry.transforms.verify.reference_run import Reference
from kernelquarry.transforms.verify.task import PlannedTrial, Task, draw, plan, trial_calls, without

sys.path.append(str(ROOT / "tests"))
from corpus import load_case, load_cases

COMMAND = "python benchmarks/plan_agrees.py"
_LIMITS = Limits(wall_s=180.0, cpu_s=60, processes=1)
_ROUNDS = 4  # in which trials that the candidate refuses are left out


def compare(task: Task, sandbox: Sandbox) -> tuple[str, float]:
    """The first disagreement on a candidate, "" for none, and the seconds of evaluating all of its trials."""
    trials, spent = decided_trials(task, sandbox), 0.0
    for _ in range(_ROUNDS):
        request = TrialsRequest(task.candidate_source, trial_calls(task, trials))
        report = sandbox.run(Job(INTERPRET, request, draw(task, trials), _LIMITS))
        reply = report.reply
        if reply is None or reply.load_error or reply.snapshot is None:
            return f"the guest gives nothing to compare: {report.error or getattr(reply, 'load_error', '')}", spent
        started = time.thread_time()
        try:
            planner = Planner(Source(task.triton_code), reply.snapshot)
            found = disagreement(planner, task, trials, reply)
        except (MalformedReply, Raised, Unsupported) as error:
            found = f"no plan: {error}"
        spent += time.thread_time() - started
        if found or not reply.refused:
            return found, spent
        trials = tuple(trial for number, trial in enumerate(trials) if number not in reply.refused)
    return "the candidate refuses trials again and again", spent


def decided_trials(task: Task, sandbox: Sandbox) -> tuple[PlannedTrial, ...]:
    """The trials on which the reference does not raise."""
    trials = plan(task)
    while True:
        try:
            Reference(task, trials, draw(task, trials), sandbox, VerifySettings(limits=_LIMITS))
            return trials
        except InputRejected as rejected:
            trials = without(task, trials, rejected.trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dataset", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    try:
        found = [(row.id, Task.of_row(row)) for row in read_rows(args.dataset)] if args.dataset else []
    except UserError as error:
        sys.exit(f"plan_agrees: {error}")
    cases = [load_case("honest", name) for name in args.names] or load_cases("honest")
    tasks = [(case.name, Task.of_candidate(case.candidate)) for case in cases]
    with Sandbox(SandboxSettings(workers=args.workers)) as sandbox, ThreadPoolExecutor(args.workers) as threads:
        sandbox.start(("reference", "interpret"))
        results = list(threads.map(lambda each: compare(each[1], sandbox), (*tasks, *found)))
    for (name, _), (why, _) in zip((*tasks, *found), results, strict=True):
        if why:
            print(f"{name}: {why}")
    agree = sum(not why for why, _ in results)
    share, mean_ms = 100 * agree / len(results), 1e3 * sum(spent for _, spent in results) / len(results)
    note = f"of {len(tasks)} honest kernels and {len(found)} rows; all trials of a candidate take {mean_ms:.0f} ms"
    print(f"{agree} of {len(results)} plans agree with Python ({share:.1f} %), {note}")
    if args.record and not args.names:
        record("verdict.plan_agrees", share, f"{COMMAND} --dataset {args.dataset}" if args.dataset else COMMAND, note)


if __name__ == "__main__":
    main()
