"""All complete lines are read, whatever was cut off between them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernelquarry.pipeline.schema.jsonl_append import add_line, read_lines


def test_lines_come_back_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    assert read_lines(path) == []
    for value in ({"a": "\u2028\n"}, [1, None], "x"):
        add_line(path, value)
    assert read_lines(path) == [{"a": "\u2028\n"}, [1, None], "x"]


def test_a_cut_off_line_loses_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    add_line(path, {"first": 1})
    with path.open("a") as stream:
        stream.write('{"cut of')
    assert read_lines(path) == [{"first": 1}]
    add_line(path, {"second": 2})
    assert read_lines(path) == [{"first": 1}, {"second": 2}]


def test_threads_append_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: add_line(path, {"number": number, "pad": "x" * 10_000}), range(50)))
    assert sorted(line["number"] for line in read_lines(path)) == list(range(50))
