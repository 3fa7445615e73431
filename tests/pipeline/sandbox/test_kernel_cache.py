"""The cache of compiled kernels."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernelquarry.pipeline.sandbox.jobs.codegen import Compiled, KernelSource
from kernelquarry.pipeline.sandbox.kernel_cache import Binary, KernelCache

SOURCE = KernelSource("sm_90", "module {}", {"num_warps": 8})
KERNEL = Compiled("", 8, 1024, (0, 128))


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_an_entry_comes_back_from_another_cache_of_the_folder(tmp_path: Path) -> None:
    made = KernelCache(tmp_path).put(SOURCE, "3.7.1", KERNEL, b"binary\nof two lines")
    assert made == Binary(8, 1024, (0, 128), b"binary\nof two lines")
    assert KernelCache(tmp_path).get(SOURCE, "3.7.1") == made


@pytest.mark.parametrize(
    "other",
    [replace(SOURCE, target="sm_80"), replace(SOURCE, text="module { }"), replace(SOURCE, options={"num_warps": 4})],
)
def test_another_source_is_a_miss(tmp_path: Path, other: KernelSource) -> None:
    cache = KernelCache(tmp_path)
    cache.put(SOURCE, "3.7.1", KERNEL, b"binary")
    assert cache.get(other, "3.7.1") is None and cache.get(SOURCE, "3.7.2") is None


@pytest.mark.parametrize("content", [b"", b"no json\nbinary", b"[]\nbinary", None])
def test_a_damaged_entry_is_a_miss(tmp_path: Path, content: bytes | None) -> None:
    cache = KernelCache(tmp_path)
    cache.put(SOURCE, "3.7.1", KERNEL, b"binary")
    (path,) = entries(tmp_path)
    path.write_bytes(path.read_bytes()[:-1] if content is None else content)
    assert cache.get(SOURCE, "3.7.1") is None
    assert cache.put(SOURCE, "3.7.1", KERNEL, b"binary") == cache.get(SOURCE, "3.7.1")


def test_the_oldest_entries_are_removed(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path, max_bytes=5000)
    sources = [replace(SOURCE, text=f"module {number}") for number in range(6)]
    for age, source in enumerate(sources):
        before = set(entries(tmp_path))
        cache.put(source, "3.7.1", KERNEL, bytes(1000))
        (new,) = set(entries(tmp_path)) - before
        os.utime(new, (age, age))
    cache.shrink()
    assert [cache.get(source, "3.7.1") is not None for source in sources] == [False] * 3 + [True] * 3


def test_without_a_folder_nothing_is_kept() -> None:
    cache = KernelCache(None)
    assert cache.put(SOURCE, "3.7.1", KERNEL, b"binary").data == b"binary"
    assert cache.get(SOURCE, "3.7.1") is None
    cache.shrink()


def test_a_folder_that_cannot_be_written_loses_no_kernel(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    cache = KernelCache(tmp_path / "file")
    assert cache.put(SOURCE, "3.7.1", KERNEL, b"binary").data == b"binary"
    assert cache.get(SOURCE, "3.7.1") is None
    assert "compiled kernels are not kept" in caplog.text
