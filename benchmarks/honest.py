"""Verifies the honest corpus, for all targets, and writes how many of its correct kernels were rejected.

    python benchmarks/honest.py                 # all of tests/honest, and the figure
    python benchmarks/honest.py softmax linear  # some, and no figure

Prints for each the worst error as a share of what is allowed, the time, and why it was rejected if it was.
"""

from __future__ import annotations

import argparse
import sys
import time

from kernelquarry.pipeline.figures import ROOT, record
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.verify import VerifySettings, verify

sys.path.append(str(ROOT / "tests"))
from corpus import HERE, Case, load_case, load_cases


def verify_case(case: Case, sandbox: Sandbox) -> str:
    """Prints a line; returns why a correct kernel was rejected, "" if it was not."""
    started = time.monotonic()
    outcome = verify(case.candidate, sandbox, VerifySettings())
    seconds = time.monotonic() - started
    if isinstance(outcome, Kept):
        print(f"{case.name:<32}{outcome.record.verdict.worst_ratio:>8.3f}{seconds:>8.1f} s", flush=True)
        return ""
    print(f"{case.name:<32}{'-':>8}{seconds:>8.1f} s  {outcome}", flush=True)
    return str(outcome)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names
    cases = [load_case(HERE / "honest" / name) for name in names] or load_cases("honest")
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        rejected = [case.name for case in cases if verify_case(case, sandbox)]
    print(f"{len(rejected)} of {len(cases)} wrongly rejected", *rejected, sep="\n")
    if not names:
        note = f"of {len(cases)}, interpreted and compiled for {len(VerifySettings().targets)} targets"
        record("verdict.false_rejects.honest", len(rejected), "python benchmarks/honest.py", note=note)


if __name__ == "__main__":
    main()
