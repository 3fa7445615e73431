"""Commands for runs that are spread over several machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import parse_path

from .open_run import on_runner, open_run, sandbox_settings
from .options import CACHE, GPUS, CacheOption, GpusOption, RunArgument, StoreOption


def merge(
    run_directory: RunArgument,
    others: Annotated[
        list[Path] | None, typer.Argument(parser=parse_path, metavar="OTHER", help="Other run directories.")
    ] = None,
    cache: CacheOption = CACHE,
    gpus: GpusOption = GPUS,
) -> None:
    """Merge finished stages and parts of stages from several machines into one run directory."""
    from kernelquarry.pipeline.run.merge import merge as merge_runs

    settings = sandbox_settings(gpus=gpus)
    run = open_run(run_directory, None, cache, settings)
    if missing := [other for other in others or () if not other.is_dir()]:
        raise UserError(f"{missing[0]}: no such run directory")
    runs = [open_run(other, run.source, cache, settings) for other in others or ()]
    merged = merge_runs(run, runs)
    typer.echo(f"merged {', '.join(manifest.stage for manifest in merged)}")
    for manifest in merged:
        if manifest.made_by is not None and manifest.made_by.key != manifest.key:
            typer.echo(f"  {manifest.stage} was made by {manifest.made_by.where}")


def explain_cache(
    run_directory: RunArgument, store: StoreOption = "", cache: CacheOption = CACHE, gpus: GpusOption = GPUS
) -> None:
    """Explain for each finished stage whether it would run again, and what has changed."""
    from kernelquarry.pipeline.run.explain import explain_cache as explain

    run = on_runner(open_run(run_directory, None, cache, sandbox_settings(gpus=gpus)), None, store, gpus)
    for line in explain(run):
        typer.echo(line)
