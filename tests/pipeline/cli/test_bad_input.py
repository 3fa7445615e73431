"""Failures of the user or the system print one line with the remedy, and keep finished work.

Files of a corpus that are no good are in `test_end_to_end`; hostile modules in `sandbox/test_attacks`.
"""

from __future__ import annotations

import errno
import http.server
import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import apache_beam as beam
import pip
import pyarrow.parquet as pq
import pytest

from kernelquarry.pipeline.run.execute_stage import Counted, execute, tag_as
from kernelquarry.pipeline.run.stage_directory import StageDirectory
from kernelquarry.pipeline.runtime.apply import ApplyStage, ExecutionMode, Work
from kernelquarry.pipeline.runtime.store import Store
from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.arrow import read_records, write_shard
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Dropped, DropRecord
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module, Pair
from kernelquarry.transforms.read import download as downloading
from tests.factories import make_fingerprint, make_module, make_pair
from tests.pipeline.command import Built, Ended, dataset_bytes, run
from tests.pipeline.fragile import fragile
from tests.transforms.read.wheel import make_wheel

Invoke = Callable[..., Ended]


def said(ended: Ended, status: int = 1) -> str:
    """The single error line of a failed command."""
    assert ended.status == status, ended
    assert "Traceback" not in ended.err
    lines = ended.err.splitlines()
    assert lines and lines[-1].startswith("kernelquarry: "), lines
    bars = ("read ", "scan ", "mine ", "probe ")
    assert not [line for line in lines[:-1] if not line.startswith(bars)], "more than one line"
    return lines[-1].removeprefix("kernelquarry: ")


# what the user gives


def test_an_unknown_corpus_creates_no_files(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "huge: no such corpus: give tiny, default, full, wide, a folder" in said(invoke("dataset", "huge"))
    assert "an empty name: no such corpus" in said(invoke("dataset", ""))
    assert "huge: no such corpus" in said(invoke("read", "run", "--corpus", "huge"))
    assert not list(tmp_path.iterdir())


def test_a_folder_without_modules(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "empty").mkdir()
    assert "no pair was kept" in invoke("dataset", tmp_path / "empty", "--out", tmp_path / "out").err
    assert (tmp_path / "out" / "report.html").exists()  # which tells why


def test_a_run_of_another_corpus(built: Built, invoke: Invoke) -> None:
    ended = invoke("dataset", "default", "--out", built.root)
    assert f"{built.root} holds a run of the corpus {built.folder}/layers, not default: give another" in said(ended)


@pytest.mark.parametrize("command", ["lower", "funnel"])
def test_no_run(command: str, tmp_path: Path, invoke: Invoke) -> None:
    assert "holds no run: start one with `kernelquarry dataset CORPUS --out" in said(invoke(command, tmp_path))


def test_a_stage_whose_input_is_missing(built: Built, tmp_path: Path, invoke: Invoke) -> None:
    ended = invoke("lower", tmp_path, "--corpus", built.folder / "layers")
    assert f"balance has not run yet: run `kernelquarry balance {tmp_path}` first" in said(ended)


def test_a_damaged_run_file(built: Built, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "run.json").write_text("{")
    assert "run.json is damaged: delete it and give the corpus again" in said(invoke("funnel", tmp_path))


@pytest.mark.parametrize("command", ["show", "replay"])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("pair_none", "has no row pair_none: ids look like pair_"),
        ("pair_", "2 rows match pair_: give more of the id, such as one of pair_"),
    ],
)
def test_an_unknown_row(command: str, row: str, message: str, built: Built, invoke: Invoke) -> None:
    assert message in said(invoke(command, row, "--dataset", built.root / "dataset"))


def test_results_of_another_command(built: Built, invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "results").write_text('{"id": 1}\n')
    message = said(invoke("reverify", built.root / "dataset", "--results", tmp_path / "results"))
    assert message.startswith(f"{tmp_path / 'results'} holds no results of reverify")


@pytest.mark.parametrize(
    ("gpus", "message"),
    [("first", "give all, none, or numbers such as 0,1"), ("0,0", "give all, none"), ("99", "there is no GPU 99")],
)
def test_unknown_gpus(gpus: str, message: str, built: Built, invoke: Invoke) -> None:
    assert message in said(invoke("reverify", built.root / "dataset", "--gpus", gpus))


def test_no_dataset(tmp_path: Path, invoke: Invoke) -> None:
    assert "holds no dataset: make one with `kernelquarry dataset`" in said(invoke("show", "x", "--dataset", tmp_path))


def test_an_unknown_layer(built: Built, invoke: Invoke) -> None:
    message = said(invoke("probe", built.root, "--require", "moat"))
    assert message.startswith("no such layers: moat: choose from user, ")


@pytest.mark.parametrize("arguments", [["dataset", "--colour", "red"], ["lower"], ["excavate"], ["show", "a", "b"]])
def test_usage(arguments: list[str], invoke: Invoke) -> None:
    ended = invoke(*arguments)
    assert ended.status == 2
    assert "Usage: " in ended.err and "Error" in ended.err and "Traceback" not in ended.err


# where results go


def test_an_output_folder_that_is_a_file(built: Built, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "out"):
        message = said(invoke("dataset", built.folder / "layers", "--out", place))
        assert str(place) in message and "can be written with --out and --cache" in message


def test_an_output_folder_in_a_file_system_without_folders(built: Built, invoke: Invoke) -> None:
    message = said(invoke("dataset", built.folder / "layers", "--out", "/proc/none"))
    assert message == "No such file or directory (/proc/none): check the paths in the command"


def test_a_model_that_was_not_trained(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "module.py").write_text("")
    message = said(invoke("write", tmp_path / "module.py", "--model", tmp_path / "none"))
    assert message == f"{tmp_path}/none: no such model: run `make train`, name another one, or give --endpoint"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_an_output_folder_that_cannot_be_written(number: int, built: Built, tmp_path: Path) -> None:
    ended = run("dataset", built.folder / "layers", "--out", "out", cwd=tmp_path, fault=str(number), after=1)
    assert said(ended) == f"{os.strerror(number)}: give directories that can be written with --out and --cache"


def test_killed_interrupted_and_full_at_many_points(built: Built, tmp_path: Path) -> None:
    """Each fault strikes later. The last run gives the same bytes as an undisturbed run.

    Results of lower and verify are there from the start, which saves time; probe's are made here.
    """
    root = tmp_path / "out"
    for stage in ("lower", "verify"):
        shutil.copytree(built.root / "store" / stage, root / "store" / stage)
    command = partial(run, "dataset", built.folder / "layers", "--out", root, cwd=tmp_path)

    def stored() -> dict[Path, int]:
        return {path: path.stat().st_ino for path in (root / "store").rglob("[!.]*.parquet")}

    kept = stored()
    faults = [  # and how many results of probe are stored then
        ("SIGKILL", 3, 0),  # a shard of read is flushed and has no name
        (str(errno.ENOSPC), 9, 0),  # the same of mine
        ("SIGINT", 8, 1),  # a result of probe is stored
        ("SIGKILL", 5, 3),  # one more is flushed and has no name
        ("SIGKILL", 24, 5),  # tidy is at work, in processes of its own
    ]
    for fault, after, probed in faults:
        ended = command(fault=fault, after=after)
        if fault == "SIGKILL":
            assert (ended.status, "Traceback" in ended.err) == (-signal.SIGKILL, False)
        elif fault == "SIGINT":
            assert said(ended, 130) == "interrupted: finished work is kept, run the same command again to resume"
        else:
            assert said(ended).startswith("No space left on device")
            assert "free some space, then run the same command again: it resumes here" in ended.err
        assert kept.items() <= stored().items(), "finished work was done again"
        kept = stored()
        assert sum("probe" in path.parts for path in kept) == probed
    assert command().status == 0
    assert kept.items() <= stored().items()
    assert {path.relative_to(root) for path in stored()} == {
        path.relative_to(built.root) for path in (built.root / "store").rglob("*.parquet")
    }
    assert dataset_bytes(root) == dataset_bytes(built.root)


# what is damaged


def damage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def other_version(path: Path) -> None:
    table = pq.read_table(path)
    metadata = {**table.schema.metadata, b"kernelquarry.schema_version": b"0"}
    pq.write_table(table.replace_schema_metadata(metadata), path)


@pytest.mark.parametrize("harm", [damage, other_version])
def test_a_damaged_shard_of_a_stage(harm: Callable[[Path], None], built: Built, tmp_path: Path, invoke: Invoke) -> None:
    root = tmp_path / "run"
    shutil.copytree(built.root, root)
    (shard,) = (root / "stages").glob("*-tidy/kept-*.parquet")
    harm(shard)
    message = said(invoke("verify", root))
    assert f"{shard}: missing or changed since it was written: run `kernelquarry tidy {root}` first" in message
    ended = invoke("dataset", built.folder / "layers", "--out", root)
    assert ended.status == 0
    assert ended.err.startswith(f"{shard}: missing or changed since it was written: running the stage again\n")
    assert "; ran tidy\n" in ended.out
    assert dataset_bytes(root) == dataset_bytes(built.root)


@pytest.mark.parametrize(
    ("harm", "problem"),
    [(damage, "not a complete parquet file"), (other_version, "it has schema version 0, this release reads")],
)
def test_a_damaged_shard_of_a_dataset(
    harm: Callable[[Path], None], problem: str, tmp_path: Path, invoke: Invoke
) -> None:
    shard = tmp_path / "data" / "pairs" / "train-00000-of-00001.parquet"
    write_shard(shard, [make_pair()], Pair)
    harm(shard)
    message = said(invoke("show", "pair_", "--dataset", tmp_path))
    assert str(shard) in message and problem in message and "delete it and run" in message.lower()


@pytest.mark.parametrize("harm", [damage, other_version, lambda path: path.write_bytes(b"")])
def test_a_damaged_store_entry_is_recomputed(harm: Callable[[Path], None], tmp_path: Path) -> None:
    store, outcome = Store(tmp_path), Dropped("mod_1", Reason.RANDOM, "differs")
    store.put("probe", "aa", outcome)
    (entry,) = tmp_path.rglob("*.parquet")
    harm(entry)
    assert store.get("probe", "aa", Module) is None
    store.put("probe", "aa", outcome)
    assert store.get("probe", "aa", Module) == outcome


def test_a_damaged_manifest_reruns_the_stage(built: Built, tmp_path: Path) -> None:
    manifest = tmp_path / "stage.json"
    directory = StageDirectory(tmp_path)
    good = json.loads(next(built.root.rglob("stage.json")).read_text())
    for text in ("", "{}", json.dumps({**good, "colour": "red"}), json.dumps({**good, "counts": [{}]})):
        manifest.write_text(text)
        assert directory.finished(good["key"], good["inputs"]) is None


# the network


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[bytes | None], None]]:
    """A package index that serves `data` as its only wheel; None: it has no wheel."""
    monkeypatch.setattr(downloading, "_pinned_pip", lambda scratch: Path(pip.__file__).parent.parent)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    servers = []

    def start(data: bytes | None, length: int = 0) -> None:
        class Index(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = b'<a href="/tiny_pkg-1.0-py3-none-any.whl">tiny_pkg-1.0-py3-none-any.whl</a>'
                body = data if self.path.endswith(".whl") else page
                self.send_response(404 if body is None or data is None else 200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(length if body is data else len(page)))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Index)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def pinned(tmp_path: Path) -> tuple[Path, bytes]:
    """A corpus of one wheel, and the wheel."""
    wheel = make_wheel(tmp_path, {"pkg/a.py": "x = 1\n"})
    (tmp_path / "mine.txt").write_text(f"tiny-pkg==1.0 --hash=sha256:{digest(wheel)}\n")
    return tmp_path / "mine.txt", wheel.read_bytes()


def read(corpus: Path, tmp_path: Path, invoke: Invoke) -> Ended:
    return invoke("read", tmp_path / "out", "--corpus", corpus, "--cache", tmp_path / "cache")


def test_no_network(
    pinned: tuple[Path, bytes], tmp_path: Path, invoke: Invoke, serve: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
    message = said(read(pinned[0], tmp_path, invoke))
    assert "could not download" in message and "check the network or pip's index, and run again" in message


def test_a_package_that_the_index_does_not_have(
    pinned: tuple[Path, bytes], tmp_path: Path, invoke: Invoke, serve: Callable[..., None]
) -> None:
    serve(None)
    message = said(read(pinned[0], tmp_path, invoke))
    assert "tiny-pkg==1.0" in message and "check the network or pip's index" in message


def test_a_download_that_breaks_off_is_not_kept(
    pinned: tuple[Path, bytes], tmp_path: Path, invoke: Invoke, serve: Callable[..., None]
) -> None:
    corpus, wheel = pinned
    serve(wheel[: len(wheel) // 2], len(wheel))
    message = said(read(corpus, tmp_path, invoke))
    assert "run again" in message
    assert not list((tmp_path / "cache" / "wheels").iterdir())
    serve(wheel, len(wheel))
    assert read(corpus, tmp_path, invoke).out == "read: 1 file in, 1 kept, 0 dropped, 0 errored\n"


def test_a_tampered_wheel(
    pinned: tuple[Path, bytes], tmp_path: Path, invoke: Invoke, serve: Callable[..., None]
) -> None:
    corpus, wheel = pinned
    serve(wheel + b"more", len(wheel) + 4)
    message = said(read(corpus, tmp_path, invoke))
    assert "serves another file than the corpus pins" in message and "do not use the file" in message
    assert not list((tmp_path / "cache" / "wheels").iterdir())


# a worker that dies


def test_a_worker_that_dies_costs_one_record(tmp_path: Path) -> None:
    modules = [replace(make_module(), id=module_id(str(n)), code=str(n)) for n in range(6)]
    work, settings = Work("tidy", fragile, Module, ExecutionMode.PROCESSES), SandboxSettings(workers=1)
    apply = ApplyStage(work, make_fingerprint(), tmp_path / "store", settings)
    manifest = execute(
        lambda: beam.Create(modules) | apply | tag_as("tidy"),
        stage="tidy",
        kind=Module,
        made_by=make_fingerprint(),
        directory=StageDirectory(tmp_path / "stage"),
        inputs={},
        counted=(Counted("tidy", "module", len(modules)),),
        shards=1,
    )
    assert (manifest.counts[0].kept, manifest.counts[0].errored) == (5, {"BrokenProcessPool": 1})
    (loss,) = read_records(tmp_path / "stage" / "lost.parquet", DropRecord)
    assert loss.id == modules[3].id
