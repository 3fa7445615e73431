"""Count which checks of `verify` reject the wrong candidates, and which of these no other check rejects.

    python benchmarks/checks.py --workers 16                    # the evil corpus; writes docs/results/checks.json
    python benchmarks/checks.py softmax_without_max             # some of its cases, and no file

A candidate that passes the trials goes through all later checks, also behind one that rejects it. A check whose column
`alone` is 0 could go without a change of any verdict. `make docs` writes the table.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from figures import ROOT, machine

from kernelquarry.pipeline.sandbox import Limits, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.verify import Task, VerifySettings
from kernelquarry.transforms.verify.checks import CHECKS, Verification
from kernelquarry.transforms.verify.evidence import Rejected
from kernelquarry.transforms.verify.task import plan

sys.path.append(str(ROOT / "tests"))
from corpus import Case, load_case, load_cases

SETTINGS = VerifySettings(target="sm_90", find_counterexamples=False, limits=Limits(wall_s=90, cpu_s=6))
TRIALS = [check.name for check in CHECKS].index("trials")
OUT = ROOT / "docs" / "results" / "checks.json"


def rejecting(case: Case, sandbox: Sandbox) -> set[str]:
    """Names of the checks that reject a case: one of the first ones alone, or all of the later ones that do."""
    task = Task.of_candidate(case.candidate)
    endless = case.reasons[0] is Reason.TIMED_OUT
    settings = replace(SETTINGS, limits=replace(SETTINGS.limits, cpu_s=3)) if endless else SETTINGS
    verification, found = Verification(task, plan(task), sandbox, settings), set[str]()
    for place, check in enumerate(CHECKS):
        if not check.applies.to(verification):
            continue
        try:
            check.run(verification)
        except Rejected:
            found.add(check.name)
            if place <= TRIALS:
                break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--gpus", default="none")
    args = parser.parse_args()
    gpus = choose_gpus(args.gpus)
    cases = [load_case("evil", name) for name in args.names] or load_cases("evil")
    with (
        Sandbox(SandboxSettings(workers=args.workers, gpus=gpus)) as sandbox,
        ThreadPoolExecutor(args.workers) as threads,
    ):
        found = list(threads.map(lambda case: rejecting(case, sandbox), cases))
        where = machine(sandbox.gpus.description.name if sandbox.gpus else "no GPU")
    rejects = Counter(name for names in found for name in names)
    alone = Counter(name for names in found if len(names) == 1 for name in names)
    for check in CHECKS:
        print(f"{check.name:<16}{rejects[check.name]:>6}{alone[check.name]:>6}")
    for case, names in zip(cases, found, strict=True):
        if len(names) == 1 and not names <= {"trials", "reference", "impostors"}:
            print(f"  {case.group}/{case.name}: {', '.join(names)} alone")
        if not names:
            print(f"  {case.group}/{case.name}: accepted")
    if not args.names:
        rows = [{"check": c.name, "rejects": rejects[c.name], "alone": alone[c.name]} for c in CHECKS]
        OUT.write_text(json.dumps({"cases": len(cases), "machine": where, "checks": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
