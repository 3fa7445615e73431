"""Opens run directories with the options of the command line.

Beam and torch take seconds to import, so each function imports what it needs when it is called.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelquarry.pipeline.graph import SLICES
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import parse_path

from .options import WORKERS

if TYPE_CHECKING:
    from kernelquarry.filters.licence_policy import LicencePolicy
    from kernelquarry.pipeline.run.run import Run
    from kernelquarry.pipeline.sandbox import SandboxSettings


def sandbox_settings(workers: int = WORKERS, gpus: str = "none", require: list[str] | None = None) -> SandboxSettings:
    from kernelquarry.pipeline.sandbox.settings import SandboxSettings, choose_gpus

    return SandboxSettings(workers=workers, gpus=choose_gpus(gpus), require=tuple(require or ()))


def on_runner(run: Run, runner: Path | None, store: str, gpus: str) -> Run:
    """The run, with the runner of a file of Beam options and with `store` for its results. Raises: UserError."""
    from kernelquarry.pipeline.run.runner_options import accelerator, read_options
    from kernelquarry.pipeline.runtime.store import Store

    options = read_options(runner)
    if accelerator(options):  # the GPUs are in other machines
        from kernelquarry.pipeline.sandbox.settings import name_gpus

        run = replace(run, sandbox=replace(run.sandbox, gpus=name_gpus(gpus)))
    if store:
        run = replace(run, store=parse_path(store))
        Store(run.store).claim()
    return replace(run, options=options)


def open_run(
    root: Path | None,
    corpus: str | None,
    cache: Path,
    *,
    workers: int = WORKERS,
    gpus: str = "none",
    require: list[str] | None = None,
    opt_out: Path | None = None,
    settings: Path | None = None,
    licence_policy: LicencePolicy | None = None,
) -> Run:
    """Open the run directory `root`, by default `out/CORPUS`. None stands for the run's saved corpus, opt-out list,
    settings or licence policy. Raises: UserError."""
    from kernelquarry.pipeline.run.run import KERNELS, Run, claim, claimed, save_opt_out
    from kernelquarry.pipeline.run.run_settings import check_licence, read_settings, remember, remembered

    if licence_policy is not None:
        check_licence(licence_policy, "--licence")

    if corpus is not None:  # checked before its directory is made
        from kernelquarry.transforms.read import full_name, open_corpus

        base = corpus.removesuffix(SLICES)
        suffix = SLICES if base != corpus else ""
        name = open_corpus(base, cache).name
        root = root or Path("out") / f"{name}{suffix}"
        corpus = f"{full_name(base)}{suffix}"
    assert root is not None
    source = claimed(root, corpus)
    sandbox = sandbox_settings(workers, gpus, require)  # imports torch, so the directory is checked before
    claim(root, corpus)
    if opt_out is not None:
        save_opt_out(root, opt_out)
    if settings is not None:
        remember(root, read_settings(settings))
    if licence_policy is not None:
        remember(root, replace(remembered(root), licence=licence_policy))
    return Run(root, source, cache, root / "store", replace(sandbox, kernels=str(cache / KERNELS)))


def with_teachers(run: Run, teachers: Path | None, batch: Path | None) -> Run:
    """The run, with the table of teachers and the folder for batch requests. Raises: UserError."""
    if teachers is None:
        if batch is not None:
            raise UserError("--batch needs --distill with the table of teachers that the requests are for")
        return run
    from kernelquarry.transforms.distill import load_distill_config

    return replace(run, distill=load_distill_config(teachers), batch=batch)
