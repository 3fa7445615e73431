"""Measure the rate of mining the wheels of a corpus, by CPU time on one core.

python benchmarks/mining.py [--corpus default] [--cache out/cache] [--memory] [--record]

With `--memory`: the peak memory of a process that mines every tree of the corpus, and of one that does so ten times.

Without: files that mention torch are mined tree by tree, as in a run. Files that do not are copied into a large table
in the format of The Stack, which a process of its own reads as in a run; its peak memory is recorded. A second table
has eight times as many rows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from figures import record

from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import SourceFile
from kernelquarry.transforms.mine import mine_tree
from kernelquarry.transforms.read import open_corpus, read_shard

TABLE_BYTES = 100_000_000  # of text, in the smaller table
ROWS_PER_GROUP = 1000
TIMES = 8
MINED_TIMES = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="default")
    parser.add_argument("--cache", type=Path, default=Path("out/cache"))
    parser.add_argument("--record", action="store_true", help="write the figures")
    parser.add_argument("--memory", action="store_true", help="measure memory, not speed")
    given = parser.parse_args()
    notes = _memory(given.corpus, given.cache) if given.memory else _speed(given.corpus, given.cache)
    option = " --memory" if given.memory else ""
    for name, (value, note) in notes.items():
        print(f"{name:<20} {value:8.2f}   {note}")
        if given.record:
            record(name, value, f"python benchmarks/mining.py --corpus {given.corpus}{option} --record", note)


def _speed(corpus: str, cache: Path) -> dict[str, tuple[float, str]]:
    mined, seconds, classes, kept, others = 0, 0.0, 0, 0, list[str]()
    for files in _trees(corpus, cache):
        started = time.process_time()
        result = mine_tree(files)
        seconds += time.process_time() - started
        mined += sum(len(file.text.encode()) for file in files if "torch" in file.text)
        classes += len(result.classes)
        kept += sum(isinstance(outcome, Kept) for outcome in result.classes)
        others += [file.text for file in files if "torch" not in file.text]
    small, large = (_read_table(others, times) for times in (1, TIMES))
    return {
        "mine.speed": (
            mined / 1e6 / seconds,
            f"{mined / 1e6:.1f} MB, {seconds:.1f} CPU s, {classes} classes, {kept} mined: "
            f"{1000 * seconds / classes:.1f} ms a class",
        ),
        "mine.speed.others": (large[0] / 1e6 / large[1], f"{large[0] / 1e6:.0f} MB, {large[1]:.2f} CPU s"),
        "mine.speed.memory": (100 * large[2] / small[2], f"{small[2]:.0f} and {large[2]:.0f} MB"),
    }


def _memory(corpus: str, cache: Path) -> dict[str, tuple[float, str]]:
    peaks = []
    for times in (1, MINED_TIMES):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            peaks.append(pool.apply(_mine, (corpus, cache, times)))
    once, often = peaks
    return {"mine.memory": (100 * often / once, f"{once:.0f} and {often:.0f} MB, {MINED_TIMES} times the corpus")}


def _mine(corpus: str, cache: Path, times: int) -> float:
    """Peak MB of reading and mining every tree several times, each time as another revision."""
    for time_ in range(times):
        for files in _trees(corpus, cache):
            revision = f"{files[0].source.revision}.{time_}"
            mine_tree([replace(file, source=replace(file.source, revision=revision)) for file in files])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _trees(corpus: str, cache: Path) -> Iterator[list[SourceFile]]:
    for shard in open_corpus(corpus, cache).shards():
        yield [outcome.record for outcome in read_shard(shard) if isinstance(outcome, Kept)]


def _read_table(texts: list[str], times: int) -> tuple[int, float, float]:
    """(bytes of text, CPU seconds, peak MB) of reading a table with `times` copies of the texts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        size = _write_table(path, texts, TABLE_BYTES * times)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, peak = pool.apply(_read, (str(path),))
    return size, seconds, peak


def _write_table(path: Path, texts: list[str], size: int) -> int:
    """Write row groups with copies of the texts. Returns the bytes of text."""
    written, row, writer = 0, 0, None
    while written < size:
        group = [texts[(row + i) % len(texts)] for i in range(ROWS_PER_GROUP)]
        table = pa.table(
            {
                "content": group,
                "max_stars_repo_path": [f"{row + i}.py" for i in range(ROWS_PER_GROUP)],
                "max_stars_repo_name": ["someone/something"] * ROWS_PER_GROUP,
                "max_stars_repo_head_hexsha": ["c" * 40] * ROWS_PER_GROUP,
                "max_stars_repo_licenses": [["MIT"]] * ROWS_PER_GROUP,
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)  # no two files are equal there
        writer.write_table(table)
        row += ROWS_PER_GROUP
        written += sum(len(text.encode()) for text in group)
    assert writer is not None
    writer.close()
    return written


def _read(path: str) -> tuple[float, float]:
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    (shard,) = open_corpus(path, Path("unused")).shards()
    started = time.process_time()
    for piece in shard.pieces():
        for _ in read_shard(piece):
            pass
    return time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


if __name__ == "__main__":
    main()
