"""Stages `float16`, `bfloat16`, `autotuned`, `operators`, `backward`: rows with other kernels, or gradients."""

from __future__ import annotations

from kernelquarry.pipeline.runtime.apply import ExecutionMode, Work
from kernelquarry.pipeline.schema.records import TrainingPair, Variant
from kernelquarry.transforms.stage_transform import ApplyToEach
from kernelquarry.transforms.verify.transform import JOBS

from .make_variant import autotuned, backward, bfloat16, float16, operators


class MakeFloat16Rows(ApplyToEach):
    work = Work("float16", float16, Variant, ExecutionMode.GUESTS, jobs=("lower", *JOBS))
    executes_kernels = True


class MakeBfloat16Rows(ApplyToEach):
    work = Work("bfloat16", bfloat16, Variant, ExecutionMode.GUESTS, jobs=("lower", *JOBS))
    executes_kernels = True


class MakeAutotunedRows(ApplyToEach):
    work = Work("autotuned", autotuned, Variant, ExecutionMode.GUESTS, jobs=JOBS)
    executes_kernels = True


class MakeOperatorRows(ApplyToEach):
    work = Work("operators", operators, Variant, ExecutionMode.GUESTS, jobs=("slice", *JOBS))
    executes_kernels = True


class MakeBackwardRows(ApplyToEach):
    work = Work("backward", backward, TrainingPair, ExecutionMode.GUESTS, jobs=("lower", *JOBS))
    executes_kernels = True
