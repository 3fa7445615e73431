"""The Beam runner of a stage: this process, or the one that a run's options name (`runner_options`).

`tests/pipeline/run/test_beam_runner.py` tries what stages need of a runner.
"""

from __future__ import annotations

import ctypes
import shlex
import signal
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, PortableOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import ExternalEnvironment, SubprocessSDKEnvironment

from .runner_options import LOCAL, runner_name

# A runner's threads take turns: with an arena each, malloc keeps the memory that they freed.
_MALLOC_ENV = "MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=1000000 ARROW_DEFAULT_MEMORY_POOL=system"
_MALLOC_OPTIONS = {-8: 2, -3: 1_000_000}  # the same for this process, by the numbers of glibc's malloc.h
_CHANNEL_THREADS = ("run_worker", "beam_control_read", "read_grpc_client_inputs")  # that talk with workers

# The command by which Beam starts a worker, with its log of harmless messages switched off.
_WORKER = """
import logging
logging.disable(logging.WARNING)
from apache_beam.runners.worker import sdk_worker_main
sdk_worker_main.main(None)
"""


class ExtraOptions(PipelineOptions):
    """Options of this project, in the same file as Beam's."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--accelerator",
            default="",
            help="resource hint of stages that execute kernels: type:nvidia-l4;count:1;install-nvidia-driver",
        )


class WorkerDied(Exception):
    """A worker process of a local run ended before its work did."""


def is_local(options: tuple[str, ...]) -> bool:
    """True if the work is done in this process, where its progress can be shown."""
    parsed = PipelineOptions(list(options))
    return (
        runner_name(options) == LOCAL
        and parsed.view_as(DirectOptions).direct_running_mode != "multi_processing"
        and not parsed.view_as(PortableOptions).environment_type
    )


def open_pipeline(options: tuple[str, ...]) -> beam.Pipeline:
    """An empty pipeline on the runner that the options name."""
    parsed = PipelineOptions(list(options))
    portable, direct = parsed.view_as(PortableOptions), parsed.view_as(DirectOptions)
    if is_local(options):
        _limit_malloc()
        return beam.Pipeline(options=parsed)
    if runner_name(options) != LOCAL:
        return beam.Pipeline(options=parsed)
    if portable.environment_type == "EXTERNAL":
        environment = ExternalEnvironment.from_options(portable)
    else:
        command = f"{_MALLOC_ENV} exec {shlex.quote(sys.executable)} -c {shlex.quote(_WORKER)}"
        environment = SubprocessSDKEnvironment.from_command_string(command)
    direct.direct_running_mode = ""  # is the environment now
    return beam.Pipeline(FnApiRunner(default_environment=environment), parsed)


def _limit_malloc() -> None:
    if set_option := getattr(ctypes.CDLL(None), "mallopt", None):
        for option, value in _MALLOC_OPTIONS.items():
            set_option(option, value)


def run_pipeline(pipeline: beam.Pipeline) -> Any:
    """Run to the end. Raises: WorkerDied, and the runner's own exceptions."""
    with _watching_workers():
        result = pipeline.run()
        result.wait_until_finish()
    return result


@contextmanager
def _watching_workers() -> Iterator[None]:
    """Raise `WorkerDied` in the main thread when a worker process was killed; without effect in other threads.

    Beam's local runner would wait forever: the threads that talk with the worker raise, and their exceptions are lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    main, hook, signalled = threading.get_ident(), threading.excepthook, threading.Event()

    def raised(error: threading.ExceptHookArgs) -> None:
        if error.thread is None or error.thread.name not in _CHANNEL_THREADS:
            hook(error)
        elif not signalled.is_set():
            signalled.set()
            signal.pthread_kill(main, signal.SIGUSR1)

    def died(*_: Any) -> None:
        raise WorkerDied

    handler = signal.signal(signal.SIGUSR1, died)
    threading.excepthook = raised
    try:
        yield
    finally:
        threading.excepthook = hook
        signal.signal(signal.SIGUSR1, handler)
