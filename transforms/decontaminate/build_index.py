"""Build the index of a benchmark: probe its problems and write their fingerprints."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.provenance import Licence, SourceRef
from kernelquarry.pipeline.schema.records import Module
from kernelquarry.transforms.probe import ProbeLimits, probe
from kernelquarry.transforms.probe.inference import for_inference
from kernelquarry.transforms.probe.positional import positional

from . import IndexFile, Problem, fingerprint_of, write_index
from .benchmark_problems import Source, read_problems

_LIMITS = ProbeLimits(contractions=64, layers=64)  # high, since problems get no kernels
Each = Callable[[Iterable[Problem]], Iterable[Problem]]


def index_benchmark(place: str, name: str, path: Path, settings: SandboxSettings, each: Each) -> IndexFile:
    """Read, probe and fingerprint the problems of `place`, and write the index to `path`.

    A problem that does not run within the limits of probing is compared by its text alone.

    Args:
        each: wraps the iterable of problems, as a progress bar does.

    Raises:
        UserError: there are no problems.
    """
    problems = read_problems(place)
    with Sandbox(settings) as sandbox, ThreadPoolExecutor(settings.workers) as threads:
        found = list(each(threads.map(lambda source: _problem(name, source, sandbox), problems)))
    return write_index(path, Path(place).name or place, importlib.metadata.version("torch"), found)


def _problem(benchmark: str, source: Source, sandbox: Sandbox) -> Problem:
    """The problem, with the behaviours of the module as constructed by probing and as constructed by its benchmark."""
    if not source.runs:
        return Problem(benchmark, source.name, fingerprint_of(source.code))
    place, found = SourceRef(benchmark, benchmark, "", source.name, ""), []
    for code in (source.code, *source.constructed):
        module = Module(module_id(code), source.name, code, place, Licence("NOASSERTION", ""))
        outcome = probe(module, sandbox, _LIMITS)
        found += [outcome.record] if isinstance(outcome, Kept) else []
    behaviours = sorted({digest for probed in found for digest in probed.behaviours})
    as_row = for_inference(positional(source.code))
    return Problem(benchmark, source.name, fingerprint_of(as_row, found[0].graph if found else "[]", behaviours))
