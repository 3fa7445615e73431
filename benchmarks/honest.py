"""Verify the honest corpus, and record how many of its correct kernels were rejected.

    python benchmarks/honest.py                 # all of tests/honest, and the figure
    python benchmarks/honest.py softmax linear  # some, and no figure

Prints for each case the worst error over its tolerance, the time, and the reason if it was rejected.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from figures import ROOT, machine, record

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Engine
from kernelquarry.transforms.verify import VerifySettings, verify

sys.path.append(str(ROOT / "tests"))
from corpus import Case, load_case, load_cases

SETTINGS = VerifySettings()


def verify_case(case: Case, sandbox: Sandbox) -> Engine | None:
    """Verify a case and print a line. Returns the engine that ran it, or None if it was rejected."""
    started = time.monotonic()
    outcome = verify(case.candidate, sandbox, SETTINGS)
    seconds = time.monotonic() - started
    if isinstance(outcome, Kept):
        verdict = outcome.record.verdict
        print(f"{case.name:<32}{verdict.worst_ratio:>8.3f}{seconds:>8.1f} s  {verdict.engine}", flush=True)
        return verdict.engine
    print(f"{case.name:<32}{'-':>8}{seconds:>8.1f} s  {outcome}", flush=True)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--gpus", default="all")
    args = parser.parse_args()
    names, gpus = args.names, choose_gpus(args.gpus)
    cases = [load_case("honest", name) for name in names] or load_cases("honest")
    settings = SandboxSettings(workers=args.workers, gpus=gpus)
    with Sandbox(settings) as sandbox, ThreadPoolExecutor(args.workers) as threads:
        sandbox.start(("reference", "compile", "interpret", *(("trace", "execute") if gpus else ())))
        engines = list(threads.map(lambda case: verify_case(case, sandbox), cases))
        where = machine(sandbox.gpus.description.name if sandbox.gpus else "no GPU")
    rejected = [case.name for case, engine in zip(cases, engines, strict=True) if engine is None]
    print(f"{len(rejected)} of {len(cases)} wrongly rejected", *rejected, sep="\n")
    if not names:
        command, ran = "python benchmarks/honest.py", "executed" if gpus else "interpreted"
        note = f"of {len(cases)}, {ran} and compiled"
        record(f"verdict.false_rejects.honest{'.gpu' if gpus else ''}", len(rejected), command, note, where)
        if gpus:
            share = 100 * engines.count(Engine.TRACE) / len(cases)
            record("verdict.trace_share.honest", share, command, f"of {len(cases)}", where)


if __name__ == "__main__":
    main()
