"""The command line. Thin: each command is a call or two into the modules that do the work.

Beam and torch take seconds to import, so a command imports what it needs when it runs.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelquarry.filters.balance import CAPS, Caps
from kernelquarry.pipeline.graph import ALL, named
from kernelquarry.pipeline.runtime.events import interrupt
from kernelquarry.pipeline.schema.files import parse_path

from .console import err, out, set_up_logging
from .failures import Commands
from .fleet import CACHE, GPUS, CacheOption, GpusOption, PartOption, RunArgument, RunnerOption, StoreOption
from .fleet import add_commands as add_fleet_commands
from .open_run import WORKERS, on_runner, open_run, sandbox_settings, with_teachers
from .releasing import DATASET, OptOutOption, add_release_commands
from .training import add_commands

if TYPE_CHECKING:
    from kernelquarry.pipeline.run.run import Run

app = typer.Typer(
    cls=Commands,
    help="Datasets of PyTorch modules paired with Triton kernels that are verified to compute the same function.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

CorpusArgument = Annotated[
    str, typer.Argument(help="tiny, default, full, a folder, a table, the-stack-dedup and more: see docs/sources.md.")
]
RowArgument = Annotated[str, typer.Argument(help="Id of a row, or the start of one.")]
DatasetOption = Annotated[Path, typer.Option(help="Dataset folder that holds the row.")]
StartOption = Annotated[str | None, typer.Option("--corpus", help="Start a new run directory, of this corpus.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", parser=parse_path, help="Run directory.", show_default="out/CORPUS")
]
SettingsOption = Annotated[Path | None, typer.Option(help="TOML file of thresholds and caps, see docs/settings.md.")]
WorkersOption = Annotated[int, typer.Option(min=1, help="Guests at once.")]
RequireOption = Annotated[list[str] | None, typer.Option(help="Sandbox layer that must be active; may be repeated.")]
BackwardOption = Annotated[bool, typer.Option("--backward", help="Also make the rows with gradients; takes longer.")]
VariantsOption = Annotated[bool, typer.Option("--variants", help="Also make half-precision and autotuned kernels.")]
DistillOption = Annotated[
    Path | None, typer.Option("--distill", help="Table of teachers: ask these models too, see docs/distillation.md.")
]
BatchOption = Annotated[
    Path | None,
    typer.Option("--batch", help="Ask no model: write the questions here, for batch endpoints."),
]
VerboseOption = Annotated[int, typer.Option("--verbose", "-v", count=True, help="-v: a line a decision; -vv: all.")]


@app.command()
def dataset(
    corpus: CorpusArgument = "tiny",
    directory: OutOption = None,
    cache: CacheOption = CACHE,
    opt_out: OptOutOption = None,
    settings: SettingsOption = None,
    backward: BackwardOption = False,
    variants: VariantsOption = False,
    distill: DistillOption = None,
    batch: BatchOption = None,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = GPUS,
    require: RequireOption = None,
    runner: RunnerOption = None,
    store: StoreOption = "",
    verbose: VerboseOption = 0,
) -> None:
    """Build and check a dataset: run every stage that is not done yet, then write the dataset and its report."""
    set_up_logging(verbose)
    run = open_run(directory, corpus, cache, sandbox_settings(workers, gpus, require), opt_out, settings)
    run = on_runner(with_teachers(run, distill, batch), runner, store, gpus)
    from kernelquarry.pipeline.graph import BACKWARD, VARIANTS
    from kernelquarry.pipeline.run.build import build

    from .progress_bar import Progress

    with Progress(err) as progress:
        built = build(run, progress.watch, [*[BACKWARD] * backward, *VARIANTS * variants])
    typer.echo(built.summary())


def add_stage_command(name: str) -> None:
    """One command a stage, so that a stage can run apart, on another machine, or again."""

    def command(
        run_directory: RunArgument,
        corpus: StartOption = None,
        cache: CacheOption = CACHE,
        opt_out: OptOutOption = None,
        workers: WorkersOption = WORKERS,
        gpus: GpusOption = GPUS,
        require: RequireOption = None,
        part: PartOption = "",
        runner: RunnerOption = None,
        store: StoreOption = "",
        verbose: VerboseOption = 0,
    ) -> None:
        set_up_logging(verbose)
        run = open_run(run_directory, corpus, cache, sandbox_settings(workers, gpus, require), opt_out)
        bring_up_to_date(name, on_runner(run, runner, store, gpus), part)

    app.command(name, help=_stage_help(name))(command)


def _stage_help(name: str) -> str:
    does = named(name).does
    return f"{does[0].upper()}{does[1:]}."


for _stage in ALL:
    if _stage.name != "distill":
        add_stage_command(_stage.name)


@app.command(help=_stage_help("distill"))
def distill(
    run_directory: RunArgument,
    teachers: DistillOption = None,
    batch: BatchOption = None,
    cache: CacheOption = CACHE,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = GPUS,
    require: RequireOption = None,
    part: PartOption = "",
    runner: RunnerOption = None,
    store: StoreOption = "",
    verbose: VerboseOption = 0,
) -> None:
    set_up_logging(verbose)
    run = open_run(run_directory, None, cache, sandbox_settings(workers, gpus, require))
    bring_up_to_date("distill", on_runner(with_teachers(run, teachers, batch), runner, store, gpus), part)


@app.command()
def import_batch(
    answers: Annotated[Path, typer.Argument(help="Output of a batch: JSON in lines.")],
    teachers: Annotated[Path, typer.Option("--distill", help="Table of teachers.")],
    cache: CacheOption = CACHE,
) -> None:
    """Put the answers of a finished batch where the next run finds them."""
    from kernelquarry.pipeline.run.run import ANSWERS
    from kernelquarry.transforms.distill import import_batch as take
    from kernelquarry.transforms.distill import load_distill_config

    found = take(answers, load_distill_config(teachers), cache / ANSWERS)
    typer.echo(f"{found.answers} answers, {found.refused} refused, {found.failed} to be asked again")


@app.command()
def funnel(run_directory: RunArgument) -> None:
    """What came in, what was dropped where, and why."""
    run = open_run(run_directory, None, CACHE, sandbox_settings())
    from kernelquarry.pipeline.runtime.funnel import render_text

    out.print(render_text(run.counts()))


@app.command()
def show(row: RowArgument, dataset: DatasetOption = DATASET) -> None:
    """A row side by side: a pair with its evidence, or a rejected candidate with what it fails on."""
    from kernelquarry.pipeline.dataset.rows import find_row
    from kernelquarry.pipeline.report.show import render_row

    out.print(render_row(find_row(dataset, row)))


@app.command()
def replay(
    row: RowArgument,
    dataset: DatasetOption = DATASET,
    gpus: GpusOption = GPUS,
    require: RequireOption = None,
) -> None:
    """Verify a row again, from the row alone, and compare with its evidence; of a rejected one, repeat the call that it
    fails on. Exit status 1 if what the row says does not hold."""
    from kernelquarry.pipeline.dataset.rows import find_row
    from kernelquarry.pipeline.sandbox import Sandbox
    from kernelquarry.pipeline.schema.outcome import printable
    from kernelquarry.pipeline.schema.records import Pair
    from kernelquarry.transforms.verify import replay_pair, replay_rejection

    found = find_row(dataset, row)
    with Sandbox(sandbox_settings(1, gpus, require)) as sandbox:
        replayed = replay_pair(found, sandbox) if isinstance(found, Pair) else replay_rejection(found, sandbox)
    typer.echo(printable(replayed.render()))
    if not replayed.agrees:
        raise typer.Exit(1)


@app.command()
def reverify(
    dataset: Annotated[Path, typer.Argument(help="Dataset folder.")] = DATASET,
    results: Annotated[
        Path | None, typer.Option(help="Lines of JSON, one a row; the command goes on from them.")
    ] = None,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = GPUS,
    require: RequireOption = None,
    verbose: VerboseOption = 0,
) -> None:
    """Verify every row of a dataset again on this machine, and say what changed. Exit status 1 if one does not hold."""
    set_up_logging(verbose)
    from kernelquarry.pipeline.dataset.rows import read_rows

    from .progress_bar import Progress
    from .reverify import render
    from .reverify import reverify as verify_again

    pairs = list(read_rows(dataset))
    with Progress(err) as progress:
        rows = verify_again(pairs, sandbox_settings(workers, gpus, require), results, progress)
    out.print(render(rows, len(pairs)))
    held = sum(row.held for row in rows)
    typer.echo(f"\n{held} of {len(pairs)} rows verified again")
    if held < len(pairs):
        raise typer.Exit(1)


@app.command()
def ablate(
    place: Annotated[Path, typer.Argument(help="Run directory, or dataset folder.")] = DATASET,
    cluster: Annotated[int, typer.Option(min=1, help="Most rows of one cluster.")] = CAPS.cluster,
    operators: Annotated[int, typer.Option(min=1, help="Most rows with the same operators.")] = CAPS.operators,
    repository: Annotated[int, typer.Option(min=1, help="Most rows of one package or repository.")] = CAPS.repository,
) -> None:
    """What each filter removes from a run's verified rows, or would from a dataset, and what it alone removes."""
    from kernelquarry.pipeline.dataset.rows import read_rows
    from kernelquarry.pipeline.report.ablate import render_ablation

    if (place / "stages").is_dir():
        from kernelquarry.pipeline.run.products import unscreened

        rows = list(unscreened(open_run(place, None, CACHE, sandbox_settings())))
    else:
        rows = list(read_rows(place))
    out.print(render_ablation(rows, Caps(cluster, operators, repository)))


@app.command(name="index-benchmarks")
def index_benchmarks(
    place: Annotated[str, typer.Argument(help="Folder, JSON, JSONL or parquet file, or owner/name on the Hub.")],
    name: Annotated[str, typer.Option(help="What the benchmark is called in hits and reports.")],
    to: Annotated[
        Path | None, typer.Option(help="Index to write.  [default: CACHE/benchmarks/NAME.index.jsonl]")
    ] = None,
    cache: CacheOption = CACHE,
    workers: WorkersOption = WORKERS,
    require: RequireOption = None,
    verbose: VerboseOption = 0,
) -> None:
    """Fingerprint a benchmark's problems, without their text. Runs compare rows with every index in the cache."""
    set_up_logging(verbose)
    from rich.progress import track

    from kernelquarry.pipeline.run.run import BENCHMARKS
    from kernelquarry.transforms.decontaminate.build_index import index_benchmark

    path = to or cache / BENCHMARKS / f"{name}.index.jsonl"
    about = index_benchmark(
        place,
        name,
        path,
        sandbox_settings(workers, "none", require),
        lambda found: track(found, "problems", console=err),
    )
    typer.echo(f"{path}: {about.problems} problems, {about.ran} of which run")


@app.command()
def doctor() -> None:
    """What this machine offers: versions, and which layers of the sandbox are active."""
    from .doctor import render_doctor

    out.print(render_doctor())


add_release_commands(app)
add_commands(app)
add_fleet_commands(app)


def bring_up_to_date(name: str, run: Run, part: str = "") -> None:
    """Run one stage, or a part of it, and say what became of what entered it."""
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


def main() -> None:
    signal.signal(signal.SIGINT, interrupt)
    set_up_logging()
    app()
