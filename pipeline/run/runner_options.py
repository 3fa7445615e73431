"""Options of the Beam runner of a run, read from a file such as

    --runner=FnApiRunner
    --direct_running_mode=multi_processing
    --direct_num_workers=4

docs/guides/scale.md has the files for Flink, Spark and Dataflow. Importing this module loads no Beam.
"""

from __future__ import annotations

from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

LOCAL = "FnApiRunner"
DEFAULT = (f"--runner={LOCAL}", "--direct_running_mode=in_memory")
_REFUSED = {
    "DaskRunner": "it loses records without an error: of two sinks only the last gets any, tags are mixed up, and what "
    "a bundle gives at its end is dropped",
    "DirectRunner": f"it downloads another runner where it can: give --runner={LOCAL}",
    "SwitchingDirectRunner": f"it downloads another runner where it can: give --runner={LOCAL}",
}


def read_options(path: Path | None) -> tuple[str, ...]:
    """Read a file of options: one a line; empty lines and lines that begin with `#` are skipped. None: the default.

    Raises: UserError: it cannot be read, or names a runner that is refused.
    """
    if path is None:
        return DEFAULT
    try:
        lines = [line.strip() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a file of pipeline options ({error})") from None
    options = tuple(line for line in lines if line and not line.startswith("#"))
    if odd := [option for option in options if not option.startswith("--")]:
        raise UserError(f"{path}: {odd[0]!r} is not an option: write lines such as --runner=FlinkRunner")
    runner = runner_name(options)
    if runner in _REFUSED:
        raise UserError(f"{path}: {runner} is refused: {_REFUSED[runner]}")
    return options


def runner_name(options: tuple[str, ...]) -> str:
    """The runner's class name, without its package."""
    return (_value(options, "runner") or LOCAL).rpartition(".")[2]


def accelerator(options: tuple[str, ...]) -> str:
    """The resource hint for stages that execute kernels; "": they use the GPUs of this machine."""
    return _value(options, "accelerator")


def _value(options: tuple[str, ...], name: str) -> str:
    """The value of the last option with that name; "" if there is none."""
    given = [option.removeprefix(f"--{name}=") for option in options if option.startswith(f"--{name}=")]
    return given[-1] if given else ""
