"""The command `check`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from kernelquarry.pipeline.schema.errors import UserError

from . import options
from .console import err, out, set_up_logging

if TYPE_CHECKING:
    from kernelquarry.pipeline.check.checker import Checker
    from kernelquarry.pipeline.check.folders import KernelFile
    from kernelquarry.pipeline.check.verdict import CheckVerdict

_WIDTH = 160  # columns of a table that goes to no terminal


class CannotJudge(UserError):
    """A check that has no verdict, for a reason that the user can change."""

    status = 2


def check(
    module: Annotated[
        Path, typer.Argument(help="Python file with Model, get_inputs and get_init_inputs; or a folder of problems.")
    ],
    kernel: Annotated[Path, typer.Argument(help="Python file with ModelNew, or a folder of such files.")],
    inputs: Annotated[
        str, typer.Option(help="derived: the module's sizes if they can be afforded, and others; as-given: its own.")
    ] = "derived",
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Accept kernels that leave some of the module's operators to PyTorch.")
    ] = False,
    timed: Annotated[bool, typer.Option("--time", help="Time verified kernels; needs a GPU.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Most seconds for one kernel.", show_default="none")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and no table.")] = False,
    report: Annotated[Path | None, typer.Option(help="HTML file to write the verdicts and both sources to.")] = None,
    workers: options.WorkersOption = options.WORKERS,
    gpus: options.GpusOption = options.GPUS,
    require: options.RequireOption = None,
    verbose: options.VerboseOption = 0,
) -> None:
    """Check your kernel: does ModelNew of KERNEL compute the same as Model of MODULE, in KernelBench's format?

    Exit status 0: verified; 1: rejected; 2: could not be judged.
    """
    set_up_logging(verbose)
    try:
        from kernelquarry.pipeline.check.folders import find_kernels

        files = find_kernels(module, kernel)
        from kernelquarry.pipeline.check.checker import Checker

        checker = Checker(
            inputs=inputs,
            mixed=mixed,
            timed=timed,
            timeout_s=timeout,
            workers=workers,
            gpus=gpus,
            require=require or (),
        )
        with checker:
            single = len(files) == 1 and not kernel.is_dir()
            verdicts = [_check_one(checker, files[0])] if single else _check_all(checker, files)
    except CannotJudge:
        raise
    except UserError as error:
        raise CannotJudge(str(error)) from None
    _show(files, verdicts, single, as_json)
    if report is not None:
        from kernelquarry.pipeline.report.check_text import render_page

        rows = [(file.name, file.module, file.kernel, verdict) for file, verdict in zip(files, verdicts, strict=True)]
        try:
            report.write_text(render_page(rows), encoding="utf-8")
        except OSError as error:
            raise CannotJudge(f"{report}: cannot be written: {error.strerror}: give another file") from None
    statuses = {verdict.exit_status for verdict in verdicts}
    if status := 1 if 1 in statuses else max(statuses):
        raise typer.Exit(status)


def _check_one(checker: Checker, file: KernelFile) -> CheckVerdict:
    """Check a kernel, and print each stage that has ended."""
    stage, started = "", time.monotonic()

    def on_stage(name: str) -> None:
        nonlocal stage, started
        now = time.monotonic()
        if stage:
            err.print(f"{stage:16} {now - started:5.1f} s", style="dim", highlight=False)
        stage, started = name, now

    verdict = checker.check(file.module, file.kernel, on_stage)
    on_stage("")
    return verdict


def _check_all(checker: Checker, files: Sequence[KernelFile]) -> list[CheckVerdict]:
    """Check kernels in parallel, and print a line for each that has ended."""
    pending: dict[Future[CheckVerdict], str] = {checker.submit(file.module, file.kernel): file.name for file in files}
    for number, future in enumerate(as_completed(pending), 1):
        line = f"{number}/{len(files)}  {pending[future]}  {future.result().headline}"
        err.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
    return [future.result() for future in pending]


def _show(files: Sequence[KernelFile], verdicts: Sequence[CheckVerdict], single: bool, as_json: bool) -> None:
    if as_json:
        found = [{"kernel": file.name, **verdict.to_json()} for file, verdict in zip(files, verdicts, strict=True)]
        typer.echo(json.dumps(found[0] if single else found, indent=1))
        return
    from kernelquarry.pipeline.report.check_text import render_headline, render_summary, render_verdict

    console = out if out.is_terminal else Console(width=_WIDTH)
    if single:
        console.print(render_verdict(verdicts[0]))
        console.print(render_headline(verdicts[0]), soft_wrap=True)
    else:
        names = [file.name for file in files]
        console.print(render_summary(zip(names, verdicts, strict=True)))
