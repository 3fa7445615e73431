"""The store: results survive, damage is a miss, errors are not kept, other work has another key."""

import math
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from kernelquarry.pipeline.runtime.store import Store, result_key
from kernelquarry.pipeline.schema.files import parse_path
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module
from tests.factories import make_example, make_module


def test_gives_back_what_was_put(tmp_path: Path) -> None:
    store = Store(tmp_path)
    kept, dropped = Kept(make_module()), Dropped("mod_1", Reason.RANDOM, "differs by 0.3")
    store.put("probe", "aa", kept)
    store.put("probe", "bb", dropped)
    assert store.get("probe", "aa", Module) == kept
    assert store.get("probe", "bb", Module) == dropped
    assert store.get("probe", "cc", Module) is None
    assert store.get("lower", "aa", Module) is None


def test_a_counter_example_is_kept_with_its_numbers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    example = make_example(actual=math.inf, expected=1 / 3)
    dropped = Dropped("mod_1", Reason.WRONG_VALUES, "error inf", (example,))
    store.put("verify", "aa", dropped)
    assert store.get("verify", "aa", Module) == dropped


def test_an_error_of_ours_is_tried_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("probe", "aa", Errored("mod_1", "KeyError", "x"))
    assert store.get("probe", "aa", Module) is None


def test_a_damaged_entry_is_a_miss(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("probe", "aa", Kept(make_module()))
    (entry,) = tmp_path.rglob("*.parquet")
    entry.write_bytes(entry.read_bytes()[:-9])
    assert store.get("probe", "aa", Module) is None


def test_the_key_covers_the_code_and_the_whole_record() -> None:
    module = make_module()
    key = result_key("code 1", module)
    assert key == result_key("code 1", replace(module))
    assert key != result_key("code 2", module)
    assert key != result_key("code 1", replace(module, imported_files=("a.py",)))


def test_any_flipped_bit_is_a_miss_or_harmless(tmp_path: Path) -> None:
    store, kept = Store(tmp_path), Kept(make_module())
    store.put("probe", "aa", kept)
    (entry,) = tmp_path.rglob("*.parquet")
    whole = entry.read_bytes()
    misses = 0
    for position in range(0, len(whole), 13):
        entry.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        found = store.get("probe", "aa", Module)
        assert found in (None, kept), position
        misses += found is None
    assert misses


def test_an_object_store_is_as_good_as_a_disk() -> None:
    store = Store(parse_path("memory://one/store"))
    kept, dropped = Kept(make_module()), Dropped("mod_1", Reason.RANDOM, "differs by 0.3")
    store.put("probe", "aa", kept)
    store.put("probe", "bb", dropped)
    again = pickle.loads(pickle.dumps(store))  # noqa: S301  # as a worker gets it
    assert again.get("probe", "aa", Module) == kept
    assert again.get("probe", "bb", Module) == dropped
    assert again.get("probe", "cc", Module) is None
    assert again.holds("probe", "bb") and not again.holds("probe", "cc")


class Unreliable(MemoryFileSystem):
    """An object store that fails every request twice."""

    protocol = "unreliable"
    failures: ClassVar[Counter[str]] = Counter()

    def _fail(self, what: str) -> None:
        self.failures[what] += 1
        if self.failures[what] % 3:
            raise OSError(f"{what}: 503 slow down")

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        self._fail(f"{mode} {path}")
        return super()._open(path, mode, **kwargs)


def test_requests_that_fail_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.register_implementation("unreliable", Unreliable, clobber=True)
    monkeypatch.setattr("kernelquarry.pipeline.schema.files.PAUSES_S", (0.0, 0.0))
    store, kept = Store(parse_path("unreliable://two/store")), Kept(make_module())
    store.put("probe", "aa", kept)
    assert store.get("probe", "aa", Module) == kept
    assert Unreliable.failures.total() == 6


def test_writers_of_one_entry_do_not_disturb_its_readers(tmp_path: Path) -> None:
    store, kept = Store(tmp_path), Kept(make_module())
    store.put("probe", "aa", kept)

    def write_and_read(number: int) -> bool:
        store.put("probe", "aa", kept)
        return store.get("probe", "aa", Module) == kept

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(write_and_read, range(60)))
    assert len(list(tmp_path.rglob("*"))) == 3  # its folders, and no temporary file


def test_a_store_of_an_earlier_release_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "probe").mkdir()
    for _ in range(2):
        Store(tmp_path).claim()
    (line,) = caplog.messages
    assert line.startswith(f"{tmp_path}: results of release 0.1 are not used")
    caplog.clear()
    Store(tmp_path / "new").claim()
    assert not caplog.messages
