"""The command line. Thin: each command is a call or two into the modules that do the work.

Beam and torch take seconds to import, so each command checks its input first, and imports what it needs when it runs.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelquarry.filters.balance import CAPS, Caps
from kernelquarry.filters.licence_policy import LicencePolicy
from kernelquarry.pipeline.graph import ALL, named
from kernelquarry.pipeline.runtime.events import interrupt
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import parse_path
from kernelquarry.pipeline.schema.wording import counted

from . import checking, options, releasing, training
from .console import err, out, set_up_logging
from .failures import Commands
from .open_run import on_runner, open_run, sandbox_settings, with_teachers

if TYPE_CHECKING:
    from kernelquarry.pipeline.run.run import Run
    from kernelquarry.pipeline.schema.records import Pair

DIGESTS = Path("build.digests")
STATISTICS = Path("out/statistics.html")
_FEW = 50  # mined modules: a smaller build names those that gave no pair

app = typer.Typer(
    cls=Commands,
    help="Build datasets of PyTorch modules paired with Triton kernels that are verified to compute the same function.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(importlib.metadata.version("kernelquarry"))
        raise typer.Exit


@app.callback()
def global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of `kernelquarry` itself."""


def dataset(
    corpus: Annotated[
        str,
        typer.Argument(
            help="tiny, default, full, wide, a folder, a table, the-stack-dedup, ...: docs/guides/sources.md."
        ),
    ] = "tiny",
    directory: Annotated[
        Path | None, typer.Option("--out", parser=parse_path, help="Run directory.", show_default="out/CORPUS")
    ] = None,
    cache: options.CacheOption = options.CACHE,
    opt_out: options.OptOutOption = None,
    settings: Annotated[Path | None, typer.Option(help="TOML file of settings: docs/guides/configuration.md.")] = None,
    licence: options.LicenceOption = "",
    private: options.PrivateOption = False,
    backward: Annotated[bool, typer.Option("--backward", help="Also make rows with gradients.")] = False,
    variants: Annotated[bool, typer.Option("--variants", help="Also make the rows of the config `variants`.")] = False,
    teachers: options.TeachersOption = None,
    batch: options.BatchOption = None,
    workers: options.WorkersOption = options.WORKERS,
    gpus: options.GpusOption = options.GPUS,
    require: options.RequireOption = None,
    runner: options.RunnerOption = None,
    store: options.StoreOption = "",
    verbose: options.VerboseOption = 0,
) -> None:
    """Build a dataset: run every stage that is not up to date, then write the dataset and its report."""
    set_up_logging(verbose)
    run = open_run(
        directory,
        corpus,
        cache,
        workers=workers,
        gpus=gpus,
        require=require,
        opt_out=opt_out,
        settings=settings,
        licence_policy=LicencePolicy(licence, private) if licence or private else None,
    )
    run = on_runner(with_teachers(run, teachers, batch), runner, store, gpus)
    from kernelquarry.pipeline.graph import BACKWARD, VARIANTS
    from kernelquarry.pipeline.run.build import build

    from .progress_bar import Progress

    with Progress(err) as progress:
        built = build(run, progress.watch, [*[BACKWARD] * backward, *VARIANTS * variants])
    typer.echo(built.summary())
    if built.ran and built.products.mined <= _FEW:
        from kernelquarry.pipeline.run.why import without_pair

        for line in without_pair(run.root):
            typer.echo(line)
    if built.ran and (pair := built.products.example) is not None:
        from kernelquarry.pipeline.report.show import render_example

        out.print("\none of the pairs:", render_example(pair), sep="\n")
        typer.echo(next_commands(pair, run.root))


def next_commands(pair: Pair, root: Path) -> str:
    """Three commands to try after a build."""
    program = "kernelquarry" if shutil.which("kernelquarry") else os.path.relpath(sys.argv[0])
    commands = {
        f"replay {pair.id} --dataset {root / 'dataset'}": "verify this row again, from the row alone",
        f"why {pair.module_name} --run {root}": "how each stage treated a class, a file or a row",
        "dataset my_module.py --licence MIT": "the same for your own modules; without a licence, use --private",
    }
    width = max(map(len, commands))
    lines = [f"  {program} {command:{width}}  # {purpose}" for command, purpose in commands.items()]
    return "\n".join(["\ntry next:", *lines])


def stage_command(name: str) -> Callable[..., None]:
    """The command that runs one stage alone, for example on another machine."""

    def command(
        run_directory: options.RunArgument,
        corpus: Annotated[str | None, typer.Option(help="Start a new run directory with this corpus.")] = None,
        cache: options.CacheOption = options.CACHE,
        opt_out: options.OptOutOption = None,
        workers: options.WorkersOption = options.WORKERS,
        gpus: options.GpusOption = options.GPUS,
        require: options.RequireOption = None,
        part: options.PartOption = "",
        runner: options.RunnerOption = None,
        store: options.StoreOption = "",
        verbose: options.VerboseOption = 0,
    ) -> None:
        set_up_logging(verbose)
        run = open_run(run_directory, corpus, cache, workers=workers, gpus=gpus, require=require, opt_out=opt_out)
        bring_up_to_date(name, on_runner(run, runner, store, gpus), part)

    return command


def distill(
    run_directory: options.RunArgument,
    teachers: options.TeachersOption = None,
    batch: options.BatchOption = None,
    cache: options.CacheOption = options.CACHE,
    workers: options.WorkersOption = options.WORKERS,
    gpus: options.GpusOption = options.GPUS,
    require: options.RequireOption = None,
    part: options.PartOption = "",
    runner: options.RunnerOption = None,
    store: options.StoreOption = "",
    verbose: options.VerboseOption = 0,
) -> None:
    set_up_logging(verbose)
    run = open_run(run_directory, None, cache, workers=workers, gpus=gpus, require=require)
    bring_up_to_date("distill", on_runner(with_teachers(run, teachers, batch), runner, store, gpus), part)


def import_batch(
    answers: Annotated[Path, typer.Argument(help="JSONL file with the output of a batch.")],
    teachers: Annotated[Path, typer.Option("--distill", help="Table of teachers.")],
    cache: options.CacheOption = options.CACHE,
) -> None:
    """Add the answers of a finished batch to the cache, for the next run."""
    from kernelquarry.pipeline.run.run import ANSWERS
    from kernelquarry.transforms.distill import import_batch as import_answers
    from kernelquarry.transforms.distill import load_distill_config

    imported = import_answers(answers, load_distill_config(teachers), cache / ANSWERS)
    typer.echo(f"{imported.answers} answers, {imported.refused} refused, {imported.failed} to be requested again")


def funnel(run_directory: options.RunArgument) -> None:
    """Show how many records each stage kept and dropped, and why."""
    from kernelquarry.pipeline.run.run import claimed, counts_of
    from kernelquarry.pipeline.runtime.funnel import render_text

    claimed(run_directory)
    out.print(render_text(counts_of(run_directory)))


def why(
    name: Annotated[
        str, typer.Argument(help="Class, path of a file, or id of a module or row; its end or start will do.")
    ],
    run_directory: Annotated[Path, typer.Option("--run", parser=parse_path, help="Run directory.")] = options.RUN,
) -> None:
    """Tell how each stage treated a class, a file or a row, and why it was dropped."""
    from kernelquarry.pipeline.run.why import why as explain_name

    for line in explain_name(run_directory, name):
        typer.echo(line)


def show(row: options.RowArgument, dataset: options.RowDatasetOption = options.DATASET) -> None:
    """Show a row: a pair with its evidence, or a rejected candidate with a call on which it fails."""
    from kernelquarry.pipeline.dataset.rows import find_row
    from kernelquarry.pipeline.report.show import render_row

    out.print(render_row(find_row(dataset, row)))


def digests(
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")] = options.DATASET,
    against: Annotated[
        Path | None, typer.Option(help="Digests of another build: list what differs, with exit status 1.")
    ] = None,
    file: Annotated[Path, typer.Option("--out", parser=parse_path, help="File to write.")] = DIGESTS,
) -> None:
    """Write digests of each row's module, kernel and verdict, or compare the rows with those of another build."""
    from kernelquarry.pipeline.dataset import digests as rows
    from kernelquarry.pipeline.schema.files import write_text

    known = None if against is None else rows.read_digests(against)
    found = rows.digests(dataset)
    if known is None:
        write_text(file, "".join(f"{line}\n" for line in found))
        typer.echo(file)
        return
    changed = list(rows.differences(known, found))
    for line in changed:
        typer.echo(line)
    typer.echo(f"{len(found):,} rows, {len(changed):,} differences", err=True)
    if changed:
        raise typer.Exit(1)


def stats(
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")] = options.DATASET,
    page: Annotated[Path, typer.Option("--out", parser=parse_path, help="HTML file to write.")] = STATISTICS,
    kernelbench: Annotated[
        str, typer.Option(help="Checkout of KernelBench, to measure how near each row is to its problems.")
    ] = "",
) -> None:
    """Write a page of statistics: size, difficulty, operators, sources, and a comparison with KernelBook."""
    from kernelquarry.pipeline.check.kernelbench import read_kernelbench
    from kernelquarry.pipeline.dataset.rows import read_config, read_rows
    from kernelquarry.pipeline.report.statistics import LEVELS, render_statistics
    from kernelquarry.pipeline.schema.files import write_text
    from kernelquarry.pipeline.schema.records import Contamination

    pairs = list(read_rows(dataset))
    problems = read_kernelbench(kernelbench, LEVELS) if kernelbench else []
    removed = list(read_config(dataset, "contaminated", Contamination))
    write_text(page, render_statistics(dataset.name, pairs, removed, problems))
    typer.echo(page)


def replay(
    row: options.RowArgument,
    dataset: options.RowDatasetOption = options.DATASET,
    gpus: options.GpusOption = options.GPUS,
    require: options.RequireOption = None,
) -> None:
    """Verify a row again and compare the result with its evidence; for a rejected row, repeat the failing call.

    Exit status 1 if the result differs.
    """
    from kernelquarry.pipeline.dataset.rows import find_row
    from kernelquarry.pipeline.schema.outcome import printable
    from kernelquarry.pipeline.schema.records import Pair

    found = find_row(dataset, row)
    from kernelquarry.pipeline.sandbox import Sandbox
    from kernelquarry.transforms.verify import replay_pair, replay_rejection

    trials = counted(len(found.verdict.trials), "trial") if isinstance(found, Pair) else "the failing call"
    work = f"{trials} and further checks" if isinstance(found, Pair) else trials
    err.print(f"verifying {found.id} again: {work}", style="dim", highlight=False)
    with err.status("starting guests, compiling, comparing"), Sandbox(sandbox_settings(1, gpus, require)) as sandbox:
        replayed = replay_pair(found, sandbox) if isinstance(found, Pair) else replay_rejection(found, sandbox)
    typer.echo(printable(replayed.render()))
    if not replayed.agrees:
        raise typer.Exit(1)


def reverify(
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")] = options.DATASET,
    results: Annotated[Path | None, typer.Option(help="JSONL file for the results; a restart skips its rows.")] = None,
    workers: options.WorkersOption = options.WORKERS,
    gpus: options.GpusOption = options.GPUS,
    require: options.RequireOption = None,
    verbose: options.VerboseOption = 0,
) -> None:
    """Verify every row of a dataset again on this machine. Exit status 1 if a row fails."""
    set_up_logging(verbose)
    from kernelquarry.pipeline.dataset.rows import read_rows

    pairs = list(read_rows(dataset))
    from .progress_bar import Progress
    from .reverify import render
    from .reverify import reverify as reverify_rows

    with Progress(err) as progress:
        rows = reverify_rows(pairs, sandbox_settings(workers, gpus, require), results, progress)
    out.print(render(rows, len(pairs)))
    held = sum(row.held for row in rows)
    typer.echo(f"\n{held} of {len(pairs)} rows verified again")
    if held < len(pairs):
        raise typer.Exit(1)


def ablate(
    folder: Annotated[Path, typer.Argument(help="Run directory, or dataset folder.")] = options.DATASET,
    cluster: Annotated[int, typer.Option(min=1, help="Maximum rows of one cluster.")] = CAPS.cluster,
    operators: Annotated[int, typer.Option(min=1, help="Maximum rows with the same operators.")] = CAPS.operators,
    repository: Annotated[int, typer.Option(min=1, help="Maximum rows of one package.")] = CAPS.repository,
) -> None:
    """Show how many rows each filter removes from a run or a dataset, and how many it alone removes."""
    from kernelquarry.pipeline.dataset.rows import read_rows
    from kernelquarry.pipeline.report.ablate import render_ablation

    if (folder / "stages").is_dir():
        from kernelquarry.pipeline.run.products import unscreened

        rows = list(unscreened(open_run(folder, None, options.CACHE)))
    else:
        rows = list(read_rows(folder))
    out.print(render_ablation(rows, Caps(cluster, operators, repository)))


def index_benchmarks(
    benchmark: Annotated[str, typer.Argument(help="Folder, JSON, JSONL or parquet file, or owner/name on the Hub.")],
    name: Annotated[str, typer.Option(help="Name of the benchmark in reports.")],
    to: Annotated[
        Path | None, typer.Option(help="Index file to write.", show_default="CACHE/benchmarks/NAME.index.jsonl")
    ] = None,
    cache: options.CacheOption = options.CACHE,
    workers: options.WorkersOption = options.WORKERS,
    require: options.RequireOption = None,
    verbose: options.VerboseOption = 0,
) -> None:
    """Index a benchmark for decontamination, as fingerprints without text.

    Runs use every index in the cache, and those of the package.
    """
    set_up_logging(verbose)
    from rich.progress import track

    from kernelquarry.pipeline.run.run import BENCHMARKS
    from kernelquarry.transforms.decontaminate import Origin
    from kernelquarry.transforms.decontaminate.build_index import index_benchmark

    path = to or cache / BENCHMARKS / f"{name}.index.jsonl"
    about = index_benchmark(
        Origin(name, Path(benchmark).name or benchmark),
        benchmark,
        path,
        sandbox_settings(workers, "none", require),
        lambda problems: track(problems, "problems", console=err),
    )
    typer.echo(f"{path}: {about.problems} problems, {about.ran} of which run")
    if about.warning:
        err.print(f"warning: {about.warning}", markup=False)


def doctor() -> None:
    """Show versions, resources and the active layers of the sandbox. Exit status 1 if a guest can escape it."""
    from .doctor import examine, render_doctor

    examined = examine()
    out.print(render_doctor(examined))
    out.print(examined.conclusion, soft_wrap=True, highlight=False)
    if examined.allowed:
        raise typer.Exit(1)


def merge(
    run_directory: options.RunArgument,
    others: Annotated[
        list[Path] | None, typer.Argument(parser=parse_path, metavar="OTHER", help="Other run directories.")
    ] = None,
    cache: options.CacheOption = options.CACHE,
    gpus: options.GpusOption = options.GPUS,
) -> None:
    """Merge finished stages and parts of stages from several machines into one run directory."""
    run = open_run(run_directory, None, cache, gpus=gpus)
    if missing := [other for other in others or () if not other.is_dir()]:
        raise UserError(f"{missing[0]}: no such run directory")
    runs = [open_run(other, run.source, cache, gpus=gpus) for other in others or ()]
    from kernelquarry.pipeline.run.merge import merge as merge_runs

    merged = merge_runs(run, runs)
    typer.echo(f"merged {', '.join(manifest.stage for manifest in merged)}")
    for manifest in merged:
        if manifest.made_by is not None and manifest.made_by.key != manifest.key:
            typer.echo(f"  {manifest.stage} was made by {manifest.made_by.where}")


def explain_cache(
    run_directory: options.RunArgument,
    store: options.StoreOption = "",
    cache: options.CacheOption = options.CACHE,
    gpus: options.GpusOption = options.GPUS,
) -> None:
    """Explain for each finished stage whether it would run again, and what has changed."""
    run = on_runner(open_run(run_directory, None, cache, gpus=gpus), None, store, gpus)
    from kernelquarry.pipeline.run.explain import explain_cache as explain

    for line in explain(run):
        typer.echo(line)


def bring_up_to_date(name: str, run: Run, part: str = "") -> None:
    """Run one stage, or a part of it, and print its counts."""
    from kernelquarry.pipeline.run.build import run_stage
    from kernelquarry.pipeline.schema.parts import Part

    from .progress_bar import Progress

    stage = named(name)
    with Progress(err) as progress:
        manifest, ran = run_stage(run, stage, progress.watch, Part.parse(part) if part else None)
    for count in manifest.counts:
        typer.echo(count.summary())
    if not ran:
        typer.echo(f"{name}: nothing to do")


def register(panel: str, *commands: Callable[..., Any]) -> None:
    """Add commands to a panel of `--help`."""
    for command in commands:
        app.command(rich_help_panel=panel)(command)


register("Check", checking.check)
register("Build", dataset, index_benchmarks, import_batch, merge)
for _stage in ALL:
    _command = distill if _stage.name == "distill" else stage_command(_stage.name)
    _help = f"{_stage.does[0].upper()}{_stage.does[1:]}."
    app.command(_stage.name, help=_help, rich_help_panel="Build: single stages")(_command)
register("Inspect", funnel, why, show, stats, digests, replay, reverify, ablate, explain_cache)
register("Publish", releasing.publish, releasing.withdraw)
register("Train", *training.COMMANDS)
register("Machine", doctor)


def main() -> None:
    signal.signal(signal.SIGINT, interrupt)
    set_up_logging()
    app()
