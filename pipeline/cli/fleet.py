"""The commands and options for runs that are spread over processes, machines and object stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import parse_path

from .open_run import on_runner, open_run, sandbox_settings

RunArgument = Annotated[
    Path, typer.Argument(parser=parse_path, metavar="RUN", help="Run directory, as `kernelquarry dataset` makes it.")
]
RunsArgument = Annotated[
    list[Path] | None, typer.Argument(parser=parse_path, metavar="OTHER", help="Run directories of other machines.")
]
PartOption = Annotated[str, typer.Option(help="Do one part of the records only, such as 2/4; see docs/scale.md.")]
RunnerOption = Annotated[
    Path | None, typer.Option("--runner", help="File of Beam's options: where stages run, see docs/scale.md.")
]
StoreOption = Annotated[
    str, typer.Option(help="Where results are kept, also gs:// and the like.  [default: store in the run directory]")
]
CacheOption = Annotated[Path, typer.Option(help="Where downloads are kept, shared by runs.")]
GpusOption = Annotated[str, typer.Option(help="GPUs that kernels are executed on: all, none, or numbers such as 0,1.")]

CACHE = Path("out/cache")
GPUS = "all"


def merge(
    run_directory: RunArgument, others: RunsArgument = None, cache: CacheOption = CACHE, gpus: GpusOption = GPUS
) -> None:
    """Bring together what several machines made: finished stages, and parts of stages."""
    from kernelquarry.pipeline.run.merge import merge as bring_together

    settings = sandbox_settings(gpus=gpus)
    run = open_run(run_directory, None, cache, settings)
    if missing := [other for other in others or () if not other.is_dir()]:
        raise UserError(f"{missing[0]}: no such run directory")
    runs = [open_run(other, run.source, cache, settings) for other in others or ()]
    merged = bring_together(run, runs)
    typer.echo(f"merged {', '.join(manifest.stage for manifest in merged)}")
    for manifest in merged:
        if manifest.made_by is not None and manifest.made_by.key != manifest.key:
            typer.echo(f"  {manifest.stage} was made by {manifest.made_by.where}")


def explain_cache(
    run_directory: RunArgument, store: StoreOption = "", cache: CacheOption = CACHE, gpus: GpusOption = GPUS
) -> None:
    """Why each finished stage would run again, if it would: what changed since, and how many results are stored."""
    from kernelquarry.pipeline.run.explain import explain_cache as explain

    run = on_runner(open_run(run_directory, None, cache, sandbox_settings(gpus=gpus)), None, store, gpus)
    for line in explain(run):
        typer.echo(line)


def add_commands(app: typer.Typer) -> None:
    app.command()(merge)
    app.command(name="explain-cache")(explain_cache)
