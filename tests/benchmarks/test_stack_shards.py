"""Shards in the schemas of The Stack, made of a repository, are read back by the loaders of both versions."""

from __future__ import annotations

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import stack_shards

from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.read import open_corpus, read_shard

CODE = "from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x.tanh()\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "owner+name"
    root.mkdir()
    (root / "LICENSE").write_text((Path(__file__).parents[2] / "LICENSE").read_text())
    (root / "net.py").write_text(CODE)
    (root / "same.py").write_text(CODE)
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "all")):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "out" / "v2").mkdir(parents=True)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "out" / "v2"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("corpus", ["data/python/*.parquet", "v2/the-stack-v2.toml"])
def test_both_versions(
    corpus: str, checkout: Path, served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["stack_shards.py", str(tmp_path / "out"), str(checkout), "--url", served])
    stack_shards.main()
    shards = open_corpus(str(tmp_path / "out" / corpus), tmp_path / "cache").shards()
    outcomes = [outcome for shard in shards for outcome in read_shard(shard)]
    files = [outcome.record for outcome in outcomes if isinstance(outcome, Kept)]
    assert [(file.source.package, file.text, file.licence.spdx) for file in files] == [
        ("owner/name", CODE, "Apache-2.0")
    ]
    assert files[0].source.path in ("net.py", "same.py")
