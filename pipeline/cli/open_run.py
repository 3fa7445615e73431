"""Opens run directories for the command line: what its options come to.

Beam and torch take seconds to import, so each function imports what it needs when it is called.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelquarry.pipeline.schema.files import parse_path

if TYPE_CHECKING:
    from kernelquarry.pipeline.run.run import Run
    from kernelquarry.pipeline.sandbox import SandboxSettings

WORKERS = (os.cpu_count() or 1) + 1  # while one guest is started, or its answer is read, the others keep all cores busy


def sandbox_settings(workers: int = WORKERS, gpus: str = "none", require: list[str] | None = None) -> SandboxSettings:
    from kernelquarry.pipeline.sandbox.settings import SandboxSettings, choose_gpus

    return SandboxSettings(workers=workers, gpus=choose_gpus(gpus), require=tuple(require or ()))


def on_runner(run: Run, runner: Path | None, store: str, gpus: str) -> Run:
    """The run, its stages on the runner that a file of Beam's options names, its results kept in `store`.

    Raises: UserError.
    """
    from kernelquarry.pipeline.run.beam_runner import accelerator, read_options
    from kernelquarry.pipeline.sandbox.settings import name_gpus

    options = read_options(runner)
    if accelerator(options):  # the GPUs are in other machines
        run = replace(run, sandbox=replace(run.sandbox, gpus=name_gpus(gpus)))
    if store:
        run = replace(run, store=parse_path(store))
    return replace(run, options=options)


def open_run(
    root: Path | None,
    corpus: str | None,
    cache: Path,
    sandbox: SandboxSettings,
    opt_out: Path | None = None,
    settings: Path | None = None,
) -> Run:
    """The run directory `root`, by default named after its corpus; `corpus` None is what it was started with, as are
    the list of those who are left out and the settings."""
    from kernelquarry.pipeline.run.run import Run, claim, save_opt_out
    from kernelquarry.pipeline.run.run_settings import read_settings, remember
    from kernelquarry.transforms.read import full_name, open_corpus

    if corpus is not None:  # before a directory is made for it
        name = open_corpus(corpus, cache).name
        root = root or Path("out") / name
        corpus = full_name(corpus)
    assert root is not None
    source = claim(root, corpus)
    if opt_out is not None:
        save_opt_out(root, opt_out)
    if settings is not None:
        remember(root, read_settings(settings))
    return Run(root, source, cache, root / "store", sandbox)


def with_teachers(run: Run, teachers: Path | None, batch: Path | None) -> Run:
    """The run, asking models if there is a table of them. Raises: UserError."""
    from kernelquarry.pipeline.schema.errors import UserError
    from kernelquarry.transforms.distill import load_distill_config

    if teachers is None:
        if batch is not None:
            raise UserError("--batch needs --distill, which names whom the questions are for")
        return run
    return replace(run, distill=load_distill_config(teachers), batch=batch)
