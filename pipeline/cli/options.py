"""Arguments and options that several commands share, with their defaults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kernelquarry.pipeline.schema.files import parse_path

RUN = Path("out/tiny")
DATASET = RUN / "dataset"
CACHE = Path("out/cache")
GPUS = "all"
WORKERS = (os.cpu_count() or 1) + 1  # one more than cores: they stay busy while one guest starts or is read

RunArgument = Annotated[
    Path, typer.Argument(parser=parse_path, metavar="RUN", help="Run directory, made by `kernelquarry dataset`.")
]
RowArgument = Annotated[str, typer.Argument(help="Id of a row, or its first characters.")]
RowDatasetOption = Annotated[Path, typer.Option("--dataset", help="Dataset folder that holds the row.")]
TeachersOption = Annotated[
    Path | None,
    typer.Option("--distill", help="Table of teachers: docs/guides/distillation.md."),
]
BatchOption = Annotated[
    Path | None, typer.Option("--batch", help="Write requests for a batch endpoint to this folder; ask no model.")
]
OptOutOption = Annotated[Path | None, typer.Option(help="Authors who opted out: docs/guides/configuration.md.")]
LicenceOption = Annotated[
    str,
    typer.Option("--licence", metavar="SPDX", help="Licence of files for which the corpus states none, such as MIT."),
]
PrivateOption = Annotated[
    bool, typer.Option("--private", help="Use files of any licence; such a dataset cannot be published.")
]
CacheOption = Annotated[Path, typer.Option(help="Folder for downloads and compiled kernels, shared by runs.")]
StoreOption = Annotated[
    str, typer.Option(help="Folder for intermediate results; may be gs:// and the like.", show_default="RUN/store")
]
PartOption = Annotated[str, typer.Option(help="Treat one part of the records, such as 2/4: docs/guides/scale.md.")]
RunnerOption = Annotated[Path | None, typer.Option(help="File of Beam options for the runner: docs/guides/scale.md.")]
WorkersOption = Annotated[int, typer.Option(min=1, help="Number of sandboxed processes.")]
GpusOption = Annotated[str, typer.Option(help="GPUs that run kernels: all, none, or numbers such as 0,1.")]
RequireOption = Annotated[
    list[str] | None, typer.Option(help="Fail unless this sandbox layer is active; may be repeated.")
]
VerboseOption = Annotated[int, typer.Option("--verbose", "-v", count=True, help="-v: log decisions; -vv: log all.")]
