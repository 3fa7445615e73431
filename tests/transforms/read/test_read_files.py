"""Every Python file of a tree is kept as a source file or has a reason to be dropped."""

import pickle
import warnings
import zipfile
from pathlib import Path

import pytest

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import SourceFile
from kernelquarry.transforms.read import read_shard
from kernelquarry.transforms.read.read_files import MAX_BYTES
from kernelquarry.transforms.read.wheels import Wheel
from tests.transforms.read.wheel import make_wheel


def read(path: Path) -> dict[str, Outcome[SourceFile]]:
    outcomes = list(read_shard(Wheel("corpus", "tiny-pkg", "1.0", path, digest(path))))
    named = {o.record.source.path if isinstance(o, Kept) else o.id.partition("/")[2]: o for o in outcomes}
    assert len(named) == len(outcomes)
    return named


def read_one(folder: Path, data: bytes | str, name: str = "file.py") -> Outcome[SourceFile]:
    return read(make_wheel(folder, {name: data}))[name]


def test_a_file_is_kept_with_its_source_and_licence(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, {"pkg/b.py": "b = 1\n", "pkg/a.py": "a = 1\n", "pkg/data.json": "{}", "pkg/c.pyi": ""})
    outcomes = read(path)
    assert list(outcomes) == ["pkg/a.py", "pkg/b.py"]
    kept = outcomes["pkg/a.py"]
    assert isinstance(kept, Kept)
    source = kept.record.source
    assert (source.corpus, source.package, source.revision, source.path) == ("corpus", "tiny-pkg", "1.0", "pkg/a.py")
    assert source.sha256 == sha256("a = 1\n")
    assert kept.record.licence.spdx == "MIT"
    assert kept.record.text == "a = 1\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfx = '\xc3\xa9'\n", "x = 'é'\n"),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        (
            b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'",
            "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'€'",
        ),
        (b"", ""),
    ],
    ids=["byte_order_mark", "latin_1", "second_line", "empty"],
)
def test_encodings_are_honoured(tmp_path: Path, data: bytes, text: str) -> None:
    outcome = read_one(tmp_path, data)
    assert isinstance(outcome, Kept)
    assert outcome.record.text == text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x = '\xe9'\n", Reason.UNDECODABLE),
        (b"# coding: no-such-encoding\n", Reason.UNDECODABLE),
        (b"# coding: punycode\n" + b"a" * 500_000, Reason.UNDECODABLE),
        (b"# coding: hex\n00", Reason.UNDECODABLE),
        (b"\x7fELF\0\0\0", Reason.NOT_PYTHON),
        (b"x" * (MAX_BYTES + 1), Reason.TOO_LARGE),
        (b"# Licensed under the GNU General Public License v3\nx = 1\n", Reason.LICENCE_NOT_PERMISSIVE),
    ],
    ids=["not_utf_8", "unknown_encoding", "slow_encoding", "no_text_encoding", "binary", "large", "licence"],
)
def test_unfit_files_are_dropped(tmp_path: Path, data: bytes, reason: Reason) -> None:
    outcome = read_one(tmp_path, data)
    assert isinstance(outcome, Dropped)
    assert outcome.reason is reason
    assert outcome.evidence


@pytest.mark.parametrize("name", ["../up.py", "/abs.py", "pkg/../../up.py", "C:/windows.py", "a\\b.py"])
def test_paths_outside_the_tree_are_dropped(tmp_path: Path, name: str) -> None:
    outcome = read_one(tmp_path, "x = 1\n", name)
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Reason.NOT_PYTHON
    assert [path.name for path in tmp_path.rglob("*")] == ["tiny_pkg-1.0-py3-none-any.whl"]


def test_a_repeated_path_is_read_once(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, {"a.py": "x = 1\n"})
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("a.py", "x = 2\n")
    outcomes = list(read_shard(Wheel("corpus", "tiny-pkg", "1.0", path, digest(path))))
    assert [type(outcome) for outcome in outcomes] == [Kept, Dropped]


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, {"bomb.py": b"\0" * 50_000_000})
    assert path.stat().st_size < 100_000
    outcome = read(path)["bomb.py"]
    assert isinstance(outcome, Dropped)
    assert outcome.reason is Reason.TOO_LARGE


def test_a_damaged_file_is_an_error_outcome_and_does_not_affect_others(tmp_path: Path) -> None:
    noise = "".join(f"x{i} = {i * 7919 % 1000}\n" for i in range(500))
    path = make_wheel(tmp_path, {"a.py": noise, "b.py": "y = 1\n"})
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("a.py").header_offset + 40
    data = bytearray(path.read_bytes())
    data[start + 100 : start + 120] = bytes(20)
    path.write_bytes(data)
    outcomes = read(path)
    assert isinstance(outcomes["a.py"], Errored)
    assert isinstance(outcomes["b.py"], Kept)


def test_an_unreadable_licence_text_permits_nothing(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, {"a.py": "x = 1\n", "tiny_pkg-1.0.dist-info/licenses/COPYING": "x" * 1000})
    with zipfile.ZipFile(path) as archive:
        offset = archive.getinfo("tiny_pkg-1.0.dist-info/licenses/COPYING").header_offset
    data = bytearray(path.read_bytes())
    data[offset + 70 : offset + 74] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    outcome = read(path)["a.py"]
    assert isinstance(outcome, Dropped)
    assert "not recognised" in outcome.evidence


def test_a_wheel_that_changed_is_refused(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, {"a.py": "x = 1\n"})
    tree = Wheel("corpus", "tiny-pkg", "1.0", path, digest(path))
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(UserError, match=r"not the pinned file .* delete it and run again"):
        list(read_shard(tree))


def test_a_pinned_file_that_is_not_a_wheel(tmp_path: Path) -> None:
    path = tmp_path / "no.whl"
    path.write_bytes(b"no archive")
    with pytest.raises(UserError, match="not a wheel"):
        list(read_shard(Wheel("corpus", "no", "1.0", path, digest(path))))


def test_trees_can_be_pickled(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, {"a.py": "x = 1\n"})
    tree = Wheel("corpus", "tiny-pkg", "1.0", path, digest(path))
    assert len(list(read_shard(pickle.loads(pickle.dumps(tree))))) == 1  # noqa: S301
