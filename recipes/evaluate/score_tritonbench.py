"""Scores of answers to TritonBench, whose problems are functions with a test that calls them.

    call accuracy       the test ends without an exception, as in the benchmark
    execution accuracy  the test returns the reference's results, and functions without a result leave their arguments
                        as the reference does. The benchmark compares printed output instead; nearly no test prints, so
                        there every answer without an exception is right
    speedup             over the reference for the whole test, on a GPU; 10 and more is discarded, as in the benchmark

Reference and candidate run in separate guests, so nothing that a candidate does to its own changes what it is compared
with. Results that are random in the reference are compared by shape and dtype. An answer that launches no kernel of its
own fails whatever its results are. The language does not hold: answers are functions, and are not published.
"""

from __future__ import annotations

import torch

from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.sandbox import Job, Limits, Report, Sandbox
from kernelquarry.pipeline.sandbox.jobs.score_tritonbench import (
    SCORE_TRITONBENCH,
    SCORE_TRITONBENCH_GPU,
    TritonbenchReply,
    TritonbenchRequest,
)
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.verify.answer import HACKS

from .answers import Answer, Score
from .tritonbench import TritonbenchProblem

_LIMITS = Limits(wall_s=120.0, cpu_s=120, memory_mb=16 << 10, output_mb=2 << 10)
_TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 2e-2}
_TOLERANCE = 1e-4  # of other dtypes: KernelBench's for float32
_LARGEST_SPEEDUP = 10.0


def score_tritonbench(problem: TritonbenchProblem, answer: Answer, sandbox: Sandbox, timed: bool) -> Score:
    """The benchmark's scores of an answer, and the repaired execution accuracy as `why`."""
    code = read_answer(answer.text)
    ran = _run(code, problem, sandbox, 0, timed) if code else None
    called = ran is not None and ran.reply is not None
    reason, evidence, speedup = _judge(code, ran, problem, sandbox, timed)
    return Score(
        problem=answer.problem,
        sample=answer.sample,
        why=reason.value if reason else "",
        hack=HACKS.get(reason, "") if reason else "",
        compiled=called,
        evidence=evidence[:500],
        speedup=speedup,
        others=called,
        naive=called and "@triton.jit" in code,
    )


def _judge(
    code: str, ran: Report[TritonbenchReply] | None, problem: TritonbenchProblem, sandbox: Sandbox, timed: bool
) -> tuple[Reason | None, str, float]:
    """The reason for which the answer fails, if any, the evidence, and the speedup."""
    if ran is None:
        return Reason.NO_CODE, "no code", 0.0
    if ran.reply is None:
        return Reason.DOES_NOT_RUN, ran.error, 0.0
    wanted = _run(problem.reference, problem, sandbox, 0, timed)
    redrawn = _run(problem.reference, problem, sandbox, 1, False)
    if wanted.reply is None or redrawn.reply is None:
        return Reason.ORACLE_FAILED, f"the reference: {wanted.error or redrawn.error}", 0.0
    if ran.reply.results != wanted.reply.results:
        return Reason.WRONG_CONTRACT, "other results than the reference's, or in another form", 0.0
    for name, value in sorted(wanted.tensors.items(), key=lambda item: int(item[0])):
        is_random = not _is_close(value, redrawn.tensors.get(name))
        if not _is_close(value, ran.tensors.get(name), is_random):
            return Reason.WRONG_VALUES, f"tensor {name} of the results differs", 0.0
    if not wanted.tensors:
        return Reason.ORACLE_FAILED, "the test neither returns nor passes a tensor to compare", 0.0
    if not ran.reply.launches:
        return Reason.OUTPUT_NOT_FROM_KERNEL, "it launched no kernel", 0.0
    return None, "", _speedup(wanted.reply, ran.reply) if timed else 0.0


def _run(code: str, problem: TritonbenchProblem, sandbox: Sandbox, draws: int, timed: bool) -> Report[TritonbenchReply]:
    if sandbox.gpus is None:
        return sandbox.run(Job(SCORE_TRITONBENCH, TritonbenchRequest(code, problem.test, draws, False), {}, _LIMITS))
    with sandbox.gpus.share() as gpu:
        request = TritonbenchRequest(code, problem.test, draws, timed, gpu)
        return sandbox.run(Job(SCORE_TRITONBENCH_GPU, request, {}, _LIMITS))


def _is_close(wanted: torch.Tensor, actual: torch.Tensor | None, any_values: bool = False) -> bool:
    """True if shapes, dtypes and values agree; with `any_values`, values may differ."""
    if actual is None or wanted.shape != actual.shape or wanted.dtype != actual.dtype:
        return False
    if any_values or not wanted.dtype.is_floating_point:
        return any_values or torch.equal(wanted, actual)
    tolerance = _TOLERANCES.get(wanted.dtype, _TOLERANCE)
    return torch.allclose(wanted.double(), actual.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


def _speedup(wanted: TritonbenchReply, actual: TritonbenchReply) -> float:
    if actual.seconds <= 0:
        return 0.0
    return wanted.seconds / actual.seconds if wanted.seconds < _LARGEST_SPEEDUP * actual.seconds else 0.0
