"""Download of contents by id over real HTTP: compressed, refused, throttled and incomplete responses."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Errored
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.read import blobs, open_corpus, read_shard
from kernelquarry.transforms.read.blobs import Refused, Throttled, UrlOpener, fetch
from tests.transforms.read.tables import STACK_V2, STACK_V2_TRAIN, blob_row, v2_row, write_table
from tests.transforms.read.test_tables import NET, dropped, kept


class Archive:
    """A server that returns contents compressed, like Software Heritage's bucket, after any planned faults."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.faults: list[tuple[int, dict[str, str]]] = []
        self.requests = 0
        archive = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                archive.requests += 1
                status, headers = archive.faults.pop(0) if archive.faults else (200, {})
                data = archive.contents.get(self.path.rpartition("/")[2], b"")
                self.send_response(status if data or status != 200 else 404)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/content/{{blob}}"

    def put(self, data: bytes, packed: bytes | None = None) -> str:
        name = hashlib.sha1(data).hexdigest()
        self.contents[name] = gzip.compress(data) if packed is None else packed
        return name


@pytest.fixture
def archive() -> Iterator[Archive]:
    found = Archive()
    threading.Thread(target=found.server.serve_forever, args=(0.01,), daemon=True).start()
    yield found
    found.server.shutdown()
    found.server.server_close()


def describe(archive: Archive, tmp_path: Path, columns: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(f'files = "*.parquet"\n\n[columns]\n{columns}\n\n[blobs]\nurl = "{archive.url}"\n')
    return path


FLAT = 'blob = "blob_id"\npath = "path"\nrepository = "repo_name"\nrevision = "revision_id"\n'
FLAT += 'encoding = "src_encoding"\nlicences = ["detected_licenses", "gha_license_id"]'
NESTED = 'rows = "files"\nblob = "files.blob_id"\npath = "files.path"\nrepository = "repo_name"\n'
NESTED += 'revision = "revision_id"\nencoding = "files.src_encoding"\nlicences = ["files.detected_licenses"]'


def test_the_stack_v2(archive: Archive, tmp_path: Path) -> None:
    latin = "import torch\n# café\n".encode("latin-1")
    refused, lost = b"import torch, gone", b"import torch, lost"
    rows = [
        v2_row("net.py", NET.encode()),
        v2_row("latin.py", latin, "ISO-8859-1"),
        v2_row("odd.py", b"import torch\n", "no-such-encoding"),
        v2_row("refused.py", refused),
        v2_row("free.py", b"import torch, free", licences=[]),
        v2_row("other.py", b"x = 1\n"),
        {**v2_row("null.py", b""), "blob_id": None},
        v2_row("broken.py", lost),
    ]
    for row in rows:
        row["gha_license_id"] = None
    for data in (NET.encode(), latin, b"import torch\n", b"import torch, free", b"x = 1\n"):
        archive.put(data)
    archive.put(lost, packed=gzip.compress(b"import torch, another"))
    write_table(tmp_path / "a.parquet", STACK_V2, rows)
    (shard,) = open_corpus(str(describe(archive, tmp_path, FLAT)), tmp_path / "cache").shards()
    outcomes = list(read_shard(shard))
    assert [(file.source.path, file.text) for file in kept(outcomes)] == [
        ("net.py", NET),
        ("latin.py", "import torch\n# café\n"),
    ]
    assert [reason for reason, _ in dropped(outcomes)] == [
        Reason.UNDECODABLE,
        Reason.BLOB_REFUSED,
        Reason.LICENCE_NOT_PERMISSIVE,
        Reason.NO_CONTENT,
        Reason.NO_TORCH,
    ]
    (broken,) = [outcome for outcome in outcomes if isinstance(outcome, Errored)]
    assert "does not match its id" in broken.message


def test_rows_that_are_repositories(archive: Archive, tmp_path: Path) -> None:
    a, b = NET.encode(), b"from a import Net\nimport torch\n"
    archive.put(a), archive.put(b)
    files = [blob_row("a.py", a), blob_row("b.py", b), blob_row("README.md", b"torch")]
    write_table(tmp_path / "a.parquet", STACK_V2_TRAIN, [{"repo_name": "me/it", "revision_id": "1", "files": files}])
    (shard,) = open_corpus(str(describe(archive, tmp_path, NESTED)), tmp_path / "cache").shards()
    (piece,) = shard.pieces()
    assert [file.id for file in kept(list(read_shard(piece)))] == ["me/it@1/a.py", "me/it@1/b.py"]


def test_throttled_requests_are_retried(archive: Archive) -> None:
    blob = archive.put(b"import torch")
    archive.faults = [(429, {"Retry-After": "7"}), (503, {}), (500, {})]
    waits: list[float] = []
    assert fetch([blob], UrlOpener(archive.url), waits.append) == [b"import torch"]
    assert waits[0] == 7
    assert 1 <= waits[1] <= 2 <= waits[2] <= 4


def test_incomplete_responses_are_retried(archive: Archive) -> None:
    blob = archive.put(b"import torch")
    archive.faults = [(200, {"Content-Length": "1000"}), (200, {"Transfer-Encoding": "chunked"})]
    waits: list[float] = []
    assert fetch([blob], UrlOpener(archive.url), waits.append) == [b"import torch"]
    assert len(waits) == 2


def test_an_invalid_id_is_refused(archive: Archive) -> None:
    (found,) = fetch(["no id\n\udc80"], UrlOpener(archive.url), lambda _: None)
    assert isinstance(found, Refused)


def test_permanent_throttling_fails_with_advice(archive: Archive) -> None:
    archive.faults = [(429, {})] * 100
    waits: list[float] = []
    with pytest.raises(UserError, match=r"HTTP 429 in 8 attempts: run again later, finished pieces are not read again"):
        fetch(["a" * 40], UrlOpener(archive.url), waits.append)
    assert len(waits) == blobs.ATTEMPTS - 1
    assert archive.requests == blobs.ATTEMPTS


def test_an_unreachable_archive_fails_with_advice() -> None:
    with pytest.raises(UserError, match=r"blob a: .*refused.* in 8 attempts"):
        fetch(["a"], UrlOpener("http://127.0.0.1:9/{blob}"), lambda _: None)


def test_failed_downloads_are_returned_as_exceptions(archive: Archive) -> None:
    good, cut = archive.put(b"good"), archive.put(b"cut" * 1000, packed=gzip.compress(b"cut" * 1000)[:-9])
    first, second, third = fetch([good, "f" * 40, cut], UrlOpener(archive.url), lambda _: None)
    assert first == b"good"
    assert isinstance(second, Refused)
    assert isinstance(third, OSError)


def test_an_opener_is_any_function() -> None:
    held = iter([Throttled("later"), b"content"])

    def opener(blob: str) -> bytes:
        answer = next(held)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert fetch(["1"], opener, lambda _: None) == [b"content"]


def test_the_archive_of_a_known_form_is_found(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", STACK_V2, [v2_row("a.py", b"torch")])
    (shard,) = open_corpus(str(path), tmp_path).shards()
    assert shard.opener is not None
    assert shard.columns.blob == "blob_id"
