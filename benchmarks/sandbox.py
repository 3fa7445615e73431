"""Time empty guests in the sandbox against bare forks of an equally warm process, in alternation.

python benchmarks/sandbox.py
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

from figures import record

from kernelquarry.pipeline.sandbox import Job, Sandbox, SandboxSettings
from kernelquarry.pipeline.sandbox.jobs.script import SCRIPT, ScriptRequest

NOTHING = Job(SCRIPT, ScriptRequest("def main(request, tensors):\n    return {}, {}\n", {}))
FORKS = """
import os, sys, torch, triton
torch.zeros(1)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print(flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=200)
    number = parser.parse_args().number
    command, environment = [sys.executable, "-c", FORKS], {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    bare, boxed = [], []
    with subprocess.Popen(command, **pipes) as process, Sandbox(SandboxSettings(workers=1)) as sandbox:

        def fork() -> None:
            process.stdin.write("\n")
            process.stdin.flush()
            process.stdout.readline()

        for index in range(number + 10):
            times = []
            for act in (fork, lambda: sandbox.run(NOTHING)):
                started = time.perf_counter()
                act()
                times.append(1000 * (time.perf_counter() - started))
            if index >= 10:  # the first start the warm processes
                bare.append(times[0])
                boxed.append(times[1])
        layers = ", ".join(name for name, state in sandbox.layers.items() if not state.startswith("off"))
        process.stdin.close()
    for name, values in (("bare fork", bare), ("sandbox", boxed)):
        low, _, high = statistics.quantiles(values, n=4)
        print(f"{name:<10} {statistics.median(values):.1f} ms (middle half {low:.1f} to {high:.1f})")
    added = statistics.median(boxed) - statistics.median(bare)
    note = f"medians of {number}: {statistics.median(boxed):.1f} and {statistics.median(bare):.1f} ms; with {layers}"
    print(record("verdict.sandbox_ms", added, "python benchmarks/sandbox.py", note))


if __name__ == "__main__":
    main()
