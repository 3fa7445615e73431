"""Build the index of a benchmark: probe its problems and write their fingerprints."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.provenance import Licence, SourceRef
from kernelquarry.pipeline.schema.records import Module
from kernelquarry.transforms.probe import ProbeLimits, probe
from kernelquarry.transforms.probe.inference import for_inference
from kernelquarry.transforms.probe.positional import positional

from . import IndexFile, fingerprint_of, problems_of, write_index
from .benchmark_index import Origin
from .benchmark_problems import Source, read_problems
from .module_fingerprint import Fingerprint

_LIMITS = ProbeLimits(contractions=64, layers=64)  # high, since problems get no kernels
Each = Callable[[Iterable[tuple[str, Fingerprint]]], Iterable[tuple[str, Fingerprint]]]


def index_benchmark(origin: Origin, place: str, path: Path, settings: SandboxSettings, each: Each) -> IndexFile:
    """Read, probe and fingerprint the problems of `place`, and write the index to `path`.

    A problem that does not run within the limits of probing is compared by its text alone.

    Args:
        each: wraps the iterable of fingerprints, as a progress bar does.

    Raises:
        UserError: there are no problems.
    """
    sources = read_problems(place)
    with Sandbox(settings) as sandbox, ThreadPoolExecutor(settings.workers) as threads:
        found = dict(each(threads.map(lambda source: (source.name, fingerprint(source, sandbox)), sources)))
    torch = importlib.metadata.version("torch")
    return write_index(path, origin, torch, problems_of(origin.benchmark, found))


def fingerprint(source: Source, sandbox: Sandbox) -> Fingerprint:
    """The fingerprint of a problem that is called with guesses, as rows are, and with what its file makes.

    The file's constructor arguments are tried with its own and with guessed inputs.
    """
    if not source.runs:
        return fingerprint_of(source.code, is_row=False)
    place = SourceRef("", "", "", source.name, "")
    module = Module(module_id(source.code), source.name, source.code, place, Licence("NOASSERTION", ""))
    found = [probe(module, sandbox, _LIMITS)]
    if source.own_arguments:
        found.append(probe(module, sandbox, _LIMITS, own_inputs=source.own_arguments))
    for own_inputs in source.own_inputs:
        outcome = probe(module, sandbox, _LIMITS, own_inputs=own_inputs)
        if isinstance(outcome, Kept):
            found.append(outcome)
            break
    ran = [outcome.record for outcome in found if isinstance(outcome, Kept)]
    behaviours = {digest for probed in ran for digest in probed.behaviours}
    as_row = for_inference(positional(source.code))
    made = fingerprint_of(as_row, [probed.graph for probed in ran], behaviours, is_row=False)
    return replace(made, operators=1) if ran and source.is_single else made
