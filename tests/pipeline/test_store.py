"""The store: results survive, damage is a miss, errors are not kept, other work has another key."""

import math
from dataclasses import replace
from pathlib import Path

from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module
from kernelquarry.pipeline.store import Store, result_key
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
