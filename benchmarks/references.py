"""Score TritonBench's own reference solutions as answers to its problems, on a GPU.

    python benchmarks/references.py CHECKOUT --out out/references --workers 12     # CHECKOUT: of TritonBench
    python benchmarks/references.py CHECKOUT --out out/references --record         # also write the figure

A solution passes if its test returns the same results twice. References of TritonBench-T are PyTorch without a kernel
of their own, which an answer must have; all else of the score holds for them. Solutions whose test raises on this GPU
do not count. Prints the reason for each that does not pass. A stopped run resumes.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from figures import machine, record

from kernelquarry.filters.language import check
from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.sandbox.settings import choose_gpus
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.recipes.evaluate.evaluate import evaluate
from kernelquarry.recipes.evaluate.tritonbench import TritonbenchProblem, read_tritonbench
from kernelquarry.recipes.generate.samplers import Sampled

PARTS = ("G", "T")
_NOT_RUN = {Reason.DOES_NOT_RUN.value, Reason.NO_CODE.value, "errored"}
_NO_KERNEL = Reason.OUTPUT_NOT_FROM_KERNEL.value


class References:
    """A sampler that answers each problem with its reference."""

    def __init__(self, problems: Sequence[TritonbenchProblem]) -> None:
        self._by_prompt = {problem.chat[0]["content"]: problem.reference for problem in problems}

    def sample(self, chats: Sequence[Sequence[Message]], seed: int = 0) -> Iterator[Sampled]:
        for index, (message,) in enumerate(chats):
            reference = self._by_prompt[message["content"]]
            yield Sampled(index, f"```python\n{reference}```\n", 0, False)

    def stream(self, chat: Sequence[Message]) -> Iterator[str]:
        yield from (sampled.text for sampled in self.sample([chat]))

    def tokens(self, chat: Sequence[Message]) -> int:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--seconds", type=float, default=3600.0, help="after which no more is begun")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    settings = SandboxSettings(args.workers, gpus=choose_gpus(args.gpus))
    end = time.monotonic() + args.seconds
    passed = ran = 0
    notes = []
    for part in PARTS:
        problems = read_tritonbench(args.checkout, part)
        folder = args.out / part
        scores = evaluate(problems, References(problems), 1, folder, settings, weaker_checks=False, end=end).scores
        counts = Counter(score.why for score in scores)
        right = counts[""] + (counts[_NO_KERNEL] if part == "T" else 0)
        tried = len(scores) - sum(counts[why] for why in _NOT_RUN)
        outside = sum(check(problem.reference) is not None for problem in problems)
        notes.append(f"{part}: {right} of {tried} that run, of {len(problems)}; {outside} are outside of the language")
        print(notes[-1], dict(counts))
        for score in scores:
            if score.why and not (part == "T" and score.why == _NO_KERNEL):
                print(f"  {score.problem:40} {score.why:20} {score.evidence.strip().splitlines()[-1:]}")
        passed, ran = passed + right, ran + tried
    if args.record and ran:
        where = machine(torch.cuda.get_device_name() if settings.gpus else "no GPU")
        command = "python benchmarks/references.py CHECKOUT --out out/references --record"
        record("train.tritonbench.references", 100 * passed / ran, command, "; ".join(notes), where)


if __name__ == "__main__":
    main()
