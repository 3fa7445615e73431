"""Answers to TritonBench, whose problems are functions with a test that calls them.

    call accuracy       the test ends without an exception, as the benchmark counts it
    execution accuracy  repaired: the test's results are those of the reference, in guests that never meet. The
                        benchmark compares what both print; nearly no test prints, so that whatever ends without an
                        exception is right there
    speedup             times as fast as the reference over the whole test, on a GPU; 10 and more is left out, as there

What is random in the reference's results is compared in its form alone. An answer that hides how it computes, or
launches no kernel of its own, is no Triton kernel, whatever its results are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernelquarry.filters.lint import forbidden
from kernelquarry.pipeline.prompts import Message, read_answer
from kernelquarry.pipeline.sandbox import Job, Limits, Report, Sandbox
from kernelquarry.pipeline.sandbox.jobs.score_tritonbench import (
    SCORE_TRITONBENCH,
    SCORE_TRITONBENCH_GPU,
    TritonBenchReply,
    TritonBenchRequest,
)
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason

from .answers import Answer, Score
from .tritonbench import Script

_LIMITS = Limits(wall_s=120.0, cpu_s=120, memory_mb=16 << 10)
_TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 2e-2}
_OTHERS = 1e-4  # as KernelBench's of float32
_INCREDIBLE = 10.0  # times as fast: the benchmark leaves it out too
_ASKED = """\
Use the Triton language to write a kernel and its wrapper according to this instruction:

{instruction}

The wrapper is a function of the name, the arguments and the results that the instruction gives it, not a method of a \
class. Answer with one block of Python that holds all imports, kernels and functions, and nothing that calls them.
"""


@dataclass(frozen=True, slots=True)
class ScriptProblem:
    """A function to be written, and the test that calls it."""

    id: str
    level: str
    script: Script

    @property
    def chat(self) -> list[Message]:
        return [Message(role="user", content=_ASKED.format(instruction=self.script.instruction))]


def score_script(problem: ScriptProblem, answer: Answer, sandbox: Sandbox, timed: bool) -> Outcome[Score]:
    """What the benchmark counts of an answer, and whether its results are right."""
    code = read_answer(answer.text)
    ran = _run(code, problem.script, sandbox, 0, timed) if code else None
    called = ran is not None and ran.reply is not None
    reason, evidence, speedup = _found(code, ran, problem.script, sandbox, timed)
    jit = "@triton.jit" in code
    return Kept(
        Score(
            problem=answer.problem,
            sample=answer.sample,
            why=reason.value if reason else "",
            hack={Reason.OUTPUT_NOT_FROM_KERNEL: "unused", Reason.FORBIDDEN_CODE: "fraud"}.get(reason, "")
            if reason
            else "",
            compiled=called,
            evidence=evidence[:500],
            speedup=speedup,
            others=called,
            naive=called and jit,
        )
    )


def _found(
    code: str, ran: Report[TritonBenchReply] | None, script: Script, sandbox: Sandbox, timed: bool
) -> tuple[Reason | None, str, float]:
    if ran is None:
        return Reason.NO_CODE, "no code", 0.0
    if hidden := forbidden(code):
        return Reason.FORBIDDEN_CODE, hidden, 0.0
    if ran.reply is None:
        return Reason.DOES_NOT_RUN, ran.error, 0.0
    if not ran.reply.launches:
        return Reason.OUTPUT_NOT_FROM_KERNEL, "it launched no kernel", 0.0
    wanted = _run(script.reference, script, sandbox, 0, timed)
    drawn = _run(script.reference, script, sandbox, 1, False)
    if wanted.reply is None or drawn.reply is None:
        return Reason.ORACLE_FAILED, f"the reference: {wanted.error or drawn.error}", 0.0
    if ran.reply.results != wanted.reply.results:
        return Reason.WRONG_CONTRACT, "other results than the reference's, or in another form", 0.0
    for name, value in sorted(wanted.tensors.items(), key=lambda item: int(item[0])):
        random = not _close(value, drawn.tensors.get(name))
        if not _close(value, ran.tensors.get(name), random):
            return Reason.WRONG_VALUES, f"tensor {name} of the results differs", 0.0
    if not wanted.tensors:
        return Reason.ORACLE_FAILED, "the test returns no tensor to compare", 0.0
    return None, "", _speedup(wanted.reply, ran.reply) if timed else 0.0


def _run(code: str, script: Script, sandbox: Sandbox, draws: int, timed: bool) -> Report[TritonBenchReply]:
    if sandbox.gpus is None:
        return sandbox.run(Job(SCORE_TRITONBENCH, TritonBenchRequest(code, script.test, draws, False), {}, _LIMITS))
    with sandbox.gpus.share() as gpu:
        request = TritonBenchRequest(code, script.test, draws, timed, gpu)
        return sandbox.run(Job(SCORE_TRITONBENCH_GPU, request, {}, _LIMITS))


def _close(wanted: torch.Tensor, found: torch.Tensor | None, form: bool = False) -> bool:
    """`form`: of the same shape and dtype is enough."""
    if found is None or wanted.shape != found.shape or wanted.dtype != found.dtype:
        return False
    tolerance = _TOLERANCE.get(wanted.dtype, _OTHERS)
    if form or not wanted.dtype.is_floating_point:
        return form or torch.equal(wanted, found)
    return torch.allclose(wanted.double(), found.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


def _speedup(wanted: TritonBenchReply, found: TritonBenchReply) -> float:
    if found.seconds <= 0:
        return 0.0
    return wanted.seconds / found.seconds if wanted.seconds < _INCREDIBLE * found.seconds else 0.0
