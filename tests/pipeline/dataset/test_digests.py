"""Digests of a dataset's rows, and their comparison with another build."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernelquarry.pipeline.cli.app import app
from kernelquarry.pipeline.dataset.digests import read_digests
from kernelquarry.pipeline.schema.errors import UserError

SAMPLE = Path(__file__).parents[3] / "examples" / "sample"


def digests(*arguments: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(app, ["digests", *arguments])
    return result.exit_code, result.stdout.splitlines()


def test_a_build_equals_itself(tmp_path: Path) -> None:
    file = tmp_path / "sample.digests"
    assert digests(str(SAMPLE), "--out", str(file)) == (0, [str(file)])
    assert len(read_digests(file)) >= 20
    assert digests(str(SAMPLE), "--against", str(file)) == (0, [])


def test_every_difference_is_a_line(tmp_path: Path) -> None:
    digests(str(SAMPLE), "--out", str(tmp_path / "sample.digests"))
    lines = read_digests(tmp_path / "sample.digests")
    id, module, kernel, *rest = lines[3].split("\t")
    before = [*lines[:3], "\t".join((id, module, kernel[::-1], *rest)), *lines[5:], "pair_zz\ta\tb\tpure\ttrain"]
    (tmp_path / "before").write_text("\n".join(before))
    status, found = digests(str(SAMPLE), "--against", str(tmp_path / "before"))
    added = lines[4].split("\t")[0]
    assert status == 1
    assert sorted(found) == sorted([f"{id} has another kernel", f"{added} is new", "pair_zz is missing"])


@pytest.mark.parametrize("content", [None, "no digests\n"])
def test_a_file_of_something_else_is_one_line(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "other").write_text(content)
    with pytest.raises(UserError, match="kernelquarry digests DATASET"):
        read_digests(tmp_path / "other")
