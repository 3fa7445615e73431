"""Every case in `cases/` has the outcomes written there, and the mined code can be imported."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from torch import nn

from tests.transforms.mine.golden import CASES, describe, kept, mine, read_case

PATHS = sorted(CASES.glob("*.txt"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_case_has_its_written_outcomes(path: Path) -> None:
    case = read_case(path)
    assert describe(mine(case.files)) == case.outcomes


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_mined_code_can_be_imported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in kept(mine(read_case(path).files)):
        loaded = ModuleType("mined")
        monkeypatch.setitem(sys.modules, "mined", loaded)
        exec(compile(module.code, "mined.py", "exec", dont_inherit=True), loaded.__dict__)
        assert issubclass(loaded.Model, nn.Module)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_order_of_the_files_does_not_matter(path: Path) -> None:
    files = read_case(path).files
    backwards = dict(reversed(files.items()))
    assert {m.id for m in kept(mine(files))} == {m.id for m in kept(mine(backwards))}


def test_there_is_a_case_for_every_drop_reason() -> None:
    written = " ".join(read_case(path).outcomes for path in PATHS)
    for reason in ("no_module", "unparsable", "unresolved_name", "forbidden_import", "no_forward", "abstract"):
        assert f"dropped: {reason}" in written
    for reason in ("name_conflict", "syntax_error"):
        assert f"dropped: {reason}" in written
