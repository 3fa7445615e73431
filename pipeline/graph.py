"""Every stage, in order. Read this first.

A stage takes the shards of the stage before it and leaves its own in the run directory (`run`). Most treat
records one by one: a function `(record, sandbox) -> Outcome` in `transforms/<stage>/`, applied by
`transforms.stage.ApplyStage`. Those that look at several records at once have a transform in
`transforms.wiring`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from kernelquarry.transforms.backward import backward
from kernelquarry.transforms.distill import distill
from kernelquarry.transforms.lower import lower
from kernelquarry.transforms.probe import probe
from kernelquarry.transforms.screen import screen
from kernelquarry.transforms.split import split
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.time import time
from kernelquarry.transforms.variants import autotuned, bfloat16, float16
from kernelquarry.transforms.verify import verify
from kernelquarry.transforms.wiring import (
    BalancePairs,
    DecontaminateModules,
    DeduplicateModules,
    MineTrees,
    ReadCorpus,
    TeachKernels,
)

from .runtime.apply import Where, Work
from .schema.distill_result import DistillResult
from .schema.outcome import Outcome
from .schema.records import Candidate, Lowered, Module, Pair, Probed, SourceFile, TrainingPair, Variant, Verified


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a module's way, and what decides its results."""

    name: str
    takes: type | None  # record of the shards it reads; None for the first
    gives: type
    units: tuple[tuple[str, str], ...]  # (line of the funnel, its unit), the stage's own last
    root: str  # module whose imports decide the result
    packages: tuple[str, ...] = ()  # installed packages whose version decides the result
    executes: bool = False  # it runs kernels: on GPUs, where the run has some
    compares: bool = False  # with benchmarks, whose indexes its wiring is given, and settings for a sandbox
    settings: str = ""  # section of `settings.Settings` that its wiring is given
    work: Work | None = None  # for stages that treat records one by one
    wiring: type[beam.PTransform] | None = None  # for the others
    after: str = ""  # the stage whose shards it reads; "": the one before it
    divides_by: Callable[[Any], str] | None = lambda record: str(record.id)  # what a part has all of; None: no parts
    asks: bool = False  # its work asks models, in runs that name some; `wiring` passes records on in all
    beside: str = ""  # the stage whose modules models are asked about too


def _each(
    takes: type,
    gives: type,
    function: Callable[..., Outcome[Any]],
    where: Where,
    unit: str = "module",
    guests: tuple[str, ...] = (),
    executes: bool = False,
    after: str = "",
) -> Stage:
    """A stage that treats its records one by one; it is named after its function."""
    name = function.__name__
    root = function.__module__.removeprefix("kernelquarry.")
    packages = ("torch", "triton", "numpy") if where is Where.GUESTS else ()
    work = Work(name, function, gives, where, guests)
    return Stage(name, takes, gives, ((name, unit),), root, packages, executes, work=work, after=after)


READ = Stage(
    name="read",
    takes=None,
    gives=SourceFile,
    units=(("read", "file"),),
    root="transforms.read.read_files",
    packages=("licenseclassifier", "license-expression"),
    wiring=ReadCorpus,
)
MINE = Stage(
    name="mine",
    takes=SourceFile,
    gives=Module,
    units=(("scan", "file"), ("mine", "class")),
    root="transforms.mine.mine_tree",
    packages=("tree-sitter", "tree-sitter-python"),
    wiring=MineTrees,
    divides_by=lambda file: f"{file.source.package}@{file.source.revision}",  # a tree is mined as a whole
)
DEDUPLICATE = Stage(
    name="deduplicate",
    takes=Probed,
    gives=Probed,
    units=(("deduplicate", "module"),),
    root="transforms.deduplicate.compare_sources",
    packages=("rensa", "numpy"),
    wiring=DeduplicateModules,
    divides_by=None,
)
DECONTAMINATE = Stage(
    name="decontaminate",
    takes=Probed,
    gives=Probed,
    units=(("decontaminate", "module"),),
    root="transforms.decontaminate.ladder",
    packages=("rensa", "numpy", "torch"),
    compares=True,
    settings="decontaminate",
    wiring=DecontaminateModules,
)

DISTILL = Stage(
    name="distill",
    takes=Verified,
    gives=Verified,
    units=(("teach", "module"), ("distill", "candidate")),
    root="transforms.distill.distill_module",
    packages=("torch", "triton", "numpy"),
    executes=True,
    work=Work("teach", distill, DistillResult, Where.ENDPOINTS),
    wiring=TeachKernels,
    asks=True,
    beside="decontaminate",
)
BALANCE = Stage(
    name="balance",
    takes=Pair,
    gives=Pair,
    units=(("balance", "pair"),),
    root="filters.balance",
    settings="caps",
    divides_by=None,
    wiring=BalancePairs,
)

ASKED = ("reference", "interpret", "perturbed", "compile")  # to verify a candidate

STAGES: tuple[Stage, ...] = (
    READ,
    MINE,
    _each(Module, Probed, probe, Where.GUESTS),
    DEDUPLICATE,  # copies are known from their source alone, and no kernel is made for one
    DECONTAMINATE,  # nor for what a benchmark asks
    _each(Probed, Lowered, lower, Where.GUESTS),
    _each(Lowered, Candidate, tidy, Where.PROCESSES),
    _each(Candidate, Verified, verify, Where.GUESTS, guests=ASKED, executes=True),
    DISTILL,  # models add candidates, which are verified there
    _each(Verified, Pair, screen, Where.HERE),
    BALANCE,  # what is dropped needs no time on a GPU
    _each(Pair, Pair, split, Where.HERE, unit="pair"),
    _each(Pair, Pair, time, Where.GUESTS, unit="pair", executes=True),  # keeps all; needs a GPU to do anything
)

# Beside them, for runs that ask for it: stages whose steps are functions of the others.


def _beside(takes: type, gives: type, function: Callable[..., Outcome[Any]], after: str) -> Stage:
    guests = ("lower", *ASKED) if takes is Probed else ASKED
    return _each(takes, gives, function, Where.GUESTS, guests=guests, executes=True, after=after)


BACKWARD = _beside(Probed, TrainingPair, backward, after="decontaminate")
VARIANTS = (
    _beside(Probed, Variant, float16, after="decontaminate"),
    _beside(Probed, Variant, bfloat16, after="decontaminate"),
    _beside(Lowered, Variant, autotuned, after="lower"),
)
ALL = (*STAGES, BACKWARD, *VARIANTS)


def before(stage: Stage) -> Stage:
    """The one whose shards `stage` reads."""
    return named(stage.after) or ALL[ALL.index(stage) - 1]


def named(name: str) -> Stage | None:
    return next((stage for stage in ALL if stage.name == name), None)
