"""A pipeline with every Beam construct that our stages use. Its results are written to files."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.coders import VarIntCoder
from apache_beam.metrics import Metrics
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Module

NUMBERS = 60
ODD = "odd"


class Sink(beam.PTransform):
    """Writes each element to a file of a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(label=f"To {folder.name}")
        self._folder = folder

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        self._folder.mkdir()
        return elements | beam.Map(write, str(self._folder))


def write(element: Any, folder: str) -> None:
    Path(folder, secrets.token_hex(8)).write_text(str(element))


def read(folder: Path) -> list[str]:
    return sorted(path.read_text() for path in folder.iterdir())


def by_parity(number: int) -> Iterator[Any]:
    yield beam.pvalue.TaggedOutput(ODD, number) if number % 2 else number


class Bundled(beam.DoFn):
    """Emits its elements when the bundle ends."""

    def start_bundle(self) -> None:
        self._held: list[int] = []

    def process(self, number: int) -> None:
        self._held.append(number)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield from (WindowedValue(number, MIN_TIMESTAMP, [GlobalWindow()]) for number in self._held)


class Summed(beam.DoFn):
    """Emits the running sum of each key."""

    SO_FAR = ReadModifyWriteStateSpec("so far", VarIntCoder())

    STATE = beam.DoFn.StateParam(SO_FAR)

    def process(self, pair: tuple[str, int], so_far: Any = STATE) -> Iterator[int]:
        total = (so_far.read() or 0) + pair[1]
        so_far.write(total)
        yield total


def count(number: int) -> int:
    Metrics.counter("shapes", "numbers").inc()
    Metrics.distribution("shapes", "size").update(number)
    return number


def joined(_: int, found: dict[str, Iterable[int]]) -> Iterator[str]:
    yield f"{len(list(found['left']))}:{len(list(found['right']))}"


def keep(module: Module) -> Outcome[Module]:
    return Kept(module)


def build(pipeline: beam.Pipeline, folder: Path) -> None:
    numbers = pipeline | beam.Create(range(NUMBERS)) | beam.Reshuffle() | "Count" >> beam.Map(count)
    # two sinks of one collection
    _ = numbers | "First" >> beam.Map(lambda n: n) | Sink(folder / "first")
    _ = numbers | "Second" >> beam.Map(lambda n: -n) | Sink(folder / "second")
    tagged = numbers | beam.FlatMap(by_parity).with_outputs(ODD, main="even")
    _ = tagged[ODD] | Sink(folder / ODD)
    _ = tagged.even | Sink(folder / "even")
    total = numbers | beam.CombineGlobally(sum)
    each = numbers | "Pairs" >> beam.Map(lambda n: (n, n * n))
    _ = (
        pipeline
        | "Ask" >> beam.Create([3, 5])
        | "Beside" >> beam.Map(_with_side_inputs, beam.pvalue.AsSingleton(total), beam.pvalue.AsDict(each))
        | Sink(folder / "beside")
    )
    _ = numbers | beam.ParDo(Bundled()) | Sink(folder / "bundled")
    _ = numbers | "One key" >> beam.Map(lambda n: ("key", n)) | beam.ParDo(Summed()) | Sink(folder / "state")
    _ = numbers | beam.BatchElements(7, 7) | "Flat" >> beam.FlatMap(lambda batch: batch) | Sink(folder / "batched")
    left, right = (numbers | f"By {m}" >> beam.Map(lambda n, m=m: (n % m, n)) for m in (2, 3))
    _ = {"left": left, "right": right} | beam.CoGroupByKey() | beam.FlatMapTuple(joined) | Sink(folder / "joined")
    _ = (left, right) | beam.Flatten() | beam.combiners.ToList() | "Size" >> beam.Map(len) | Sink(folder / "list")


def _with_side_inputs(number: int, total: int, squares: dict[int, int]) -> str:
    return f"{total} {squares[number]}"
