"""The Stack in its exact forms, and other tables: which rows are read, which are dropped, and the error messages."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import constants

from kernelquarry.filters.licence_policy import LicencePolicy
from kernelquarry.filters.optout import OptOut
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Dropped, Kept, Outcome
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import SourceFile
from kernelquarry.transforms.read import jsonl, open_corpus, read_once, read_shard
from kernelquarry.transforms.read import table as tabular
from kernelquarry.transforms.read.corpora import STACKS
from tests.hub_double import TOKEN, HubDouble
from tests.transforms.read.tables import STACK_V1, v1_row, write_table

NET = "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n"


def read(corpus: str | Path, tmp_path: Path) -> list[Outcome[SourceFile]]:
    """Read a corpus as a run does: split it into pieces, pickle them, read them."""
    shards = open_corpus(str(corpus), tmp_path / "cache").shards()
    pieces = [pickle.loads(pickle.dumps(piece)) for shard in shards for piece in shard.pieces()]  # noqa: S301
    return [outcome for piece in pieces for outcome in read_shard(piece)]


def kept(outcomes: list[Outcome[SourceFile]]) -> list[SourceFile]:
    return [outcome.record for outcome in outcomes if isinstance(outcome, Kept)]


def dropped(outcomes: list[Outcome[SourceFile]]) -> list[tuple[Reason, str]]:
    return [(outcome.reason, outcome.evidence) for outcome in outcomes if isinstance(outcome, Dropped)]


def write_lines(path: Path, rows: list[dict[str, Any]], end: str = "\n") -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows).removesuffix("\n") + end)
    return path


# The Stack v1


def test_the_stack(tmp_path: Path) -> None:
    rows = [
        v1_row("a/net.py", NET),
        v1_row("a/other.py", "x = 1\n"),
        v1_row("a/gpl.py", NET, licences=["GPL-3.0-only"]),
        v1_row("a/both.py", NET, licences=["MIT", "GPL-2.0-only"]),
        v1_row("a/none.py", NET, licences=[]),
        v1_row("a/null.py", None),
        v1_row("a/no_list.py", NET, licences=None),
        v1_row("../up.py", NET),
        v1_row("a/net.py", NET + "\n"),
        v1_row("a/net.ipynb", NET),
    ]
    outcomes = read(write_table(tmp_path / "data.parquet", STACK_V1, rows), tmp_path)
    (file,) = kept(outcomes)
    assert (file.text, file.licence.spdx) == (NET, "MIT")
    assert file.licence.evidence == "max_stars_repo_licenses: MIT"
    assert (file.source.package, file.source.revision, file.source.path) == ("someone/layers", "c" * 40, "a/net.py")
    assert dropped(outcomes) == [
        (Reason.LICENCE_NOT_PERMISSIVE, "max_stars_repo_licenses says GPL-3.0-only"),
        (Reason.LICENCE_NOT_PERMISSIVE, "max_stars_repo_licenses says GPL-2.0-only"),
        (Reason.LICENCE_NOT_PERMISSIVE, "no licence was found"),
        (Reason.NO_CONTENT, ""),
        (Reason.LICENCE_NOT_PERMISSIVE, "no licence was found"),
        (Reason.NOT_PYTHON, "unsafe path"),
        (Reason.NOT_PYTHON, "the source has this path twice"),
        (Reason.NO_TORCH, "1 of 9 files"),
    ]


def test_a_table_is_read_in_pieces_and_by_needed_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "ROWS_A_PIECE", 4)
    path = write_table(tmp_path / "a.parquet", STACK_V1, [v1_row(f"{i}.py", NET) for i in range(10)], group=2)
    (shard,) = open_corpus(str(path), tmp_path).shards()
    pieces = list(shard.pieces())
    assert len(pieces) == 3
    assert [len(list(read_shard(piece))) for piece in pieces] == [4, 4, 2]
    requested: list[Any] = []
    batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda self, *a, **k: requested.append(k["columns"]) or batches(self, *a, **k)
    )
    list(read_shard(pieces[0]))
    assert {tuple(columns) for columns in requested} == {
        (
            "content",
            "max_stars_repo_head_hexsha",
            "max_stars_repo_licenses",
            "max_stars_repo_name",
            "max_stars_repo_path",
        )
    }


def garbled(values: list[bytes], large: bool = False) -> pa.Array:
    """A text column with invalid UTF-8."""
    binary, text = (pa.large_binary(), pa.large_string()) if large else (pa.binary(), pa.string())
    return pa.array(values).cast(binary).view(text)


@pytest.mark.parametrize("large", [False, True])
def test_invalid_utf8_drops_only_its_own_row(large: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    content = garbled([b"\xff torch", NET.encode()], large)
    table = pa.table({"content": content, "path": ["a.py", "b.py"], "license": ["MIT", "MIT"]})
    pq.write_table(table, path)
    outcomes = read(path, tmp_path)
    assert [file.source.path for file in kept(outcomes)] == ["b.py"]
    assert [reason for reason, _ in dropped(outcomes)] == [Reason.UNDECODABLE]


def test_a_path_that_is_not_text_drops_only_its_own_row(tmp_path: Path) -> None:
    paths = garbled([b"\xff.py", b"b.py"])
    pq.write_table(pa.table({"content": [NET, NET], "path": paths, "license": ["MIT", "MIT"]}), tmp_path / "a.parquet")
    outcomes = read(tmp_path / "a.parquet", tmp_path)
    assert [file.source.path for file in kept(outcomes)] == ["b.py"]
    assert dropped(outcomes) == [(Reason.NOT_PYTHON, "unsafe path")]


def test_values_of_wrong_types_drop_only_their_own_rows(tmp_path: Path) -> None:
    fine = {"content": NET, "path": "a.py", "license": "MIT"}
    odd = [
        {"content": 5},
        {"content": [NET]},
        {"path": "\udc80.py"},
        {"path": "a\0.py"},
        {"path": "c.py", "license": {"id": "MIT"}},
    ]
    path = write_lines(tmp_path / "a.jsonl", [fine, *({**fine, **other} for other in odd)])
    outcomes = read(path, tmp_path)
    assert [file.source.path for file in kept(outcomes)] == ["a.py"]
    assert [reason for reason, _ in dropped(outcomes)] == [
        *(Reason.NO_CONTENT, Reason.NO_CONTENT, Reason.NOT_PYTHON, Reason.NOT_PYTHON),
        Reason.LICENCE_NOT_PERMISSIVE,
    ]
    assert all(outcome.id.isascii() for outcome in outcomes if isinstance(outcome, Dropped))  # it can be written down


def test_a_column_of_files_without_lists(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        'files = "a.jsonl"\nlicence = "MIT"\n[columns]\nrows = "files"\ncontent = "files.text"\npath = "files.path"\n'
    )
    lists = [[{"text": NET, "path": "a.py"}], 5, "ab", ["a.py"], None]
    write_lines(tmp_path / "a.jsonl", [{"files": files} for files in lists])
    assert [file.source.path for file in kept(read(tmp_path / "a.toml", tmp_path))] == ["a.py"]


def test_every_shipped_source_can_be_opened(tmp_path: Path) -> None:
    assert [open_corpus(name, tmp_path).name for name in STACKS] == [*STACKS]


# any table


def test_a_source_file_describes_the_columns(tmp_path: Path) -> None:
    rows = [{"body": NET, "where": "net.py", "who": "me/it"}, {"body": "x = 1\n", "where": "x.py", "who": "me/it"}]
    write_lines(tmp_path / "rows.jsonl", rows)
    (tmp_path / "mine.toml").write_text(
        'files = ["*.jsonl"]\nlicence = "BSD-3-Clause"\nonly_torch = false\n\n'
        '[columns]\ncontent = "body"\npath = "where"\nrepository = "who"\n'
    )
    first, second = kept(read(tmp_path / "mine.toml", tmp_path))
    assert (first.source.corpus, first.source.package, first.source.path) == ("mine", "me/it", "net.py")
    assert first.licence.evidence == "the source: BSD-3-Clause"
    assert first.source.revision != second.source.revision  # nothing tells that they belong together
    assert second.text == "x = 1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("files = 1 =", "Expected newline"),
        ("", "`files` is missing or wrong"),
        ('files = "a.jsonl"\ncolums = 1', "does not know colums: give blobs, columns"),
        ('files = "a.jsonl"\n[columns]\ntext = "a"', r"\[columns\] does not know text: give"),
        ('files = "a.jsonl"\n[columns]\npath = "a"', "give `content`, or `blob`"),
        ('files = "a.jsonl"\n[columns]\nblob = "a"', r"\[blobs\] is missing or wrong: give `url`"),
        ('files = "a.jsonl"\nlicence = "GPL-3.0-only"', "not a permissive SPDX licence"),
        ('files = "a.jsonl"\n[columns]\ncontent = "b"', "has no column b .it has code, path"),
        ('files = "a.jsonl"', "no column holds the licence"),
        ('files = "none.jsonl"', "none.jsonl: no such file"),
        ('files = "*.parquet"', "no such file"),
        ('files = "nowhere://a.parquet"', "nowhere"),
    ],
)
def test_wrong_source_files_are_rejected(text: str, message: str, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [{"code": NET, "path": "a.py"}])
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(UserError, match=message) as raised:
        read(tmp_path / "mine.toml", tmp_path)
    assert "\n" not in str(raised.value)


def test_lines_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": NET, "path": f"{i}.py", "licence": "MIT"} for i in range(50)]
    path = write_lines(tmp_path / "a.jsonl", rows)
    whole = kept(read(path, tmp_path))
    line = len(path.read_bytes().partition(b"\n")[0]) + 1
    for size in (301, line, line - 1, line + 1):  # pieces that start in, at and around the start of a line
        monkeypatch.setattr(jsonl, "BYTES_A_PIECE", size)
        (shard,) = open_corpus(str(path), tmp_path).shards()
        assert len(list(shard.pieces())) > 10
        assert kept(read(path, tmp_path)) == whole
    assert len(whole) == 50
    packed = tmp_path / "b.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [file.text for file in kept(read(packed, tmp_path))] == [NET] * 50


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b'{"text": "import torch", "licence": "MIT"}\n{"text": "impo',
            "byte 43: the file ends inside a row",
        ),
        (b'{"text": "import torch", "licence": "MIT"}\nnone\n{}\n', "byte 43: this line is not JSON"),
        (b"[1]\n", "a line holds list, not an object"),
        (b"", "holds no rows"),
        (
            b'{"a": "import torch", "licence": "MIT"}\n',
            r"no column is known to hold a file's text \(it has a, licence\)",
        ),
    ],
)
def test_malformed_lines_fail_with_advice(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(UserError, match=message):
        read(tmp_path / "a.jsonl", tmp_path)


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_truncated_parquet_fails_with_advice(keep: float, tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", STACK_V1, [v1_row("a.py", NET)])
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(UserError, match=r"a.parquet: cannot be read \(ArrowInvalid.*\): fetch it again"):
        read(path, tmp_path)


# the Hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubDouble]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with HubDouble() as double:
        serve(double.url, monkeypatch)
        yield double


def serve(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the endpoint of the Hub as HF_ENDPOINT would before the import of the client."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


def publish(hub: HubDouble, tmp_path: Path, gated: bool) -> str:
    path = write_table(tmp_path / "table.parquet", STACK_V1, [v1_row("net.py", NET)])
    hub.add("bigcode/the-stack-dedup", {"data/python/data-0.parquet": path.read_bytes()}, gated=gated)
    return "the-stack-dedup"


def test_the_hub(hub: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (file,) = kept(read(publish(hub, tmp_path, gated=True), tmp_path))
    assert (file.text, file.source.corpus) == (NET, "the-stack-dedup")


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("", "needs a token: accept its terms on its page, then set HF_TOKEN"),
        ("hf_other", "access was not granted to the account of HF_TOKEN"),
    ],
)
def test_a_gated_table(
    token: str, message: str, hub: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    name = publish(hub, tmp_path, gated=True)
    with pytest.raises(UserError, match=message) as raised:
        read(name, tmp_path)
    assert token not in str(raised.value) or not token


def test_a_missing_table_fails_with_advice(hub: HubDouble, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such repository, or it is private"):
        read("hf://datasets/nobody/nothing/a.parquet", tmp_path)


def test_an_unreachable_hub_fails_with_advice(hub: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(UserError, match=r"cannot be reached .*: check the network and run again"):
        read("the-stack-dedup", tmp_path)


def test_finished_pieces_are_not_downloaded_again(
    hub: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = publish(hub, tmp_path, gated=False)
    (shard,) = open_corpus(name, tmp_path / "cache").shards()
    (piece,) = shard.pieces()
    first = list(read_once(piece, OptOut(), LicencePolicy(), "code"))
    hub.fail(404, path="resolve", times=100)
    assert list(read_once(piece, OptOut(), LicencePolicy(), "code")) == first
    assert len(first) == 1
    with pytest.raises(UserError):  # other code may give something else
        list(read_once(piece, OptOut(), LicencePolicy(), "other code"))
