"""Every stage, in order. Read this first.

A stage takes the shards of the stage before it and leaves its own in the run directory (`run`). Most treat
records one by one: a function `(record, sandbox) -> Outcome` in `transforms/<stage>/`, applied by
`transforms.stage.ApplyStage`. Those that look at several records at once have a transform in
`transforms.wiring`.
"""

from __future__ import annotations

from dataclasses import dataclass

import apache_beam as beam

from kernelquarry.transforms import lower, probe, screen, split, tidy, verify
from kernelquarry.transforms.stage import Work
from kernelquarry.transforms.wiring import DeduplicatePairs, MineTrees, ReadCorpus

from .schema.records import Candidate, Lowered, Module, Pair, Probed, SourceFile, Verified

GUEST = "pipeline.sandbox.guest"


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a module's way, and what decides its results."""

    name: str
    takes: type | None  # record of the shards it reads; None for the first
    gives: type
    units: tuple[tuple[str, str], ...]  # (line of the funnel, its unit), the stage's own last
    code: tuple[str, ...]  # modules and packages whose source decides the result
    packages: tuple[str, ...] = ()  # installed packages whose version decides the result
    work: Work | None = None  # for stages that treat records one by one
    wiring: type[beam.PTransform] | None = None  # for the others


def _each(name: str, takes: type, gives: type, work: Work, *guests: str) -> Stage:
    """A stage that treats its records one by one, in guests of the given kinds."""
    code = (f"transforms.{name}", *(f"{GUEST}.{guest}" for guest in guests))
    packages = ("torch", "triton", "numpy") if guests else ()
    return Stage(name, takes, gives, ((name, "module"),), code, packages, work)


READ = Stage(
    name="read",
    takes=None,
    gives=SourceFile,
    units=(("read", "file"),),
    code=("transforms.read", "filters.licences"),
    packages=("licenseclassifier", "license-expression"),
    wiring=ReadCorpus,
)
MINE = Stage(
    name="mine",
    takes=SourceFile,
    gives=Module,
    units=(("scan", "file"), ("mine", "class")),
    code=("transforms.mine",),
    packages=("tree-sitter", "tree-sitter-python"),
    wiring=MineTrees,
)
DEDUPLICATE = Stage(
    name="deduplicate",
    takes=Pair,
    gives=Pair,
    units=(("deduplicate", "pair"),),
    code=("transforms.deduplicate",),
    packages=("rensa",),
    wiring=DeduplicatePairs,
)

STAGES: tuple[Stage, ...] = (
    READ,
    MINE,
    _each("probe", Module, Probed, probe.probe, "probe", "load"),
    _each("lower", Probed, Lowered, lower.lower, "lower", "inductor", "load"),
    _each("tidy", Lowered, Candidate, lambda lowered, _: tidy.tidy(lowered)),
    _each("verify", Candidate, Verified, verify.verify, "reference", "interpret", "compile", "load"),
    _each("screen", Verified, Pair, lambda verified, _: screen.screen(verified)),
    DEDUPLICATE,
    _each("split", Pair, Pair, lambda pair, _: split.split(pair)),
)
