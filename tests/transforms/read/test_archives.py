"""Source distributions and git commits are read, and none of their code runs."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import SourceFile
from kernelquarry.transforms.read import open_corpus, read_shard, sdist
from tests.transforms.read.wheel import MIT, make_wheel

FILES = {
    "PKG-INFO": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\nLicense: MIT\n",
    "LICENSE": MIT,
    "setup.py": "open('ran', 'w')\n",
    "src/tiny/net.py": "import torch\n",
    "src/tiny/data.bin": "0" * 100,
}


def make_sdist(folder: Path, files: dict[str, str] = FILES, name: str = "tiny-1.0.tar.gz") -> Path:
    path = folder / name
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            info = tarfile.TarInfo(f"tiny-1.0/{file}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("tiny-1.0/src/tiny/passwd.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path


def read(corpus: str | Path, cache: Path) -> dict[str, SourceFile]:
    (shard,) = open_corpus(str(corpus), cache).shards()
    records = [outcome.record for outcome in read_shard(shard) if isinstance(outcome, Kept)]
    return {record.source.path: record for record in records}


# source distributions


def test_a_source_distribution_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = read(make_sdist(tmp_path), tmp_path / "cache")
    assert sorted(files) == ["setup.py", "tiny/net.py"]
    net = files["tiny/net.py"]
    assert (net.source.package, net.source.revision, net.licence.spdx) == ("tiny", "1.0", "MIT")
    assert net.licence.evidence == "LICENSE: MIT; License: MIT"
    assert not (tmp_path / "ran").exists()


def test_a_zip_and_a_wheel_are_archives_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "tiny-1.0.zip", "w") as archive:
        for name, text in FILES.items():
            archive.writestr(f"tiny-1.0/{name}", text)
    assert sorted(read(tmp_path / "tiny-1.0.zip", tmp_path)) == ["setup.py", "tiny/net.py"]
    wheel = make_wheel(tmp_path, {"tiny_pkg/net.py": "import torch\n"})
    assert read(wheel, tmp_path)["tiny_pkg/net.py"].source.package == "tiny_pkg"


def test_a_pinned_url_is_downloaded_once(tmp_path: Path) -> None:
    path = make_sdist(tmp_path)
    pins = tmp_path / "pins.txt"
    pins.write_text(f"tiny @ {path.as_uri()} --hash=sha256:{digest(path)}\n")
    assert "tiny/net.py" in read(pins, tmp_path / "cache")
    path.unlink()
    assert "tiny/net.py" in read(pins, tmp_path / "cache")


def test_a_url_with_another_file_is_refused(tmp_path: Path) -> None:
    path = make_sdist(tmp_path)
    pins = tmp_path / "pins.txt"
    pins.write_text(f"tiny @ {path.as_uri()} --hash=sha256:{'0' * 64}\n")
    with pytest.raises(UserError, match=r"no file with the pinned hash was downloaded for tiny==1\.0"):
        read(pins, tmp_path / "cache")
    path.unlink()
    with pytest.raises(UserError, match=r"tiny-1.0.tar.gz: .*No such file.*: check the network"):
        read(pins, tmp_path / "cache")


@pytest.mark.parametrize("keep", [0.0, 0.5])
def test_a_truncated_archive_is_refused(keep: float, tmp_path: Path) -> None:
    path = make_sdist(tmp_path, {**FILES, "big.py": os.urandom(100_000).hex()})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(UserError, match="the archive is damaged: remove it from the corpus"):
        read(path, tmp_path)


def test_a_decompression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdist, "MAX_UNPACKED", 1000)
    with pytest.raises(UserError, match="unpacks to more than 1000 bytes"):
        read(make_sdist(tmp_path), tmp_path)


def test_a_large_file_of_an_archive_is_dropped_unread(tmp_path: Path) -> None:
    (shard,) = open_corpus(str(make_sdist(tmp_path, {**FILES, "big.py": "x" * 1_100_000})), tmp_path).shards()
    outcomes = [outcome for outcome in read_shard(shard) if isinstance(outcome, Dropped)]
    assert [(outcome.reason, outcome.evidence) for outcome in outcomes] == [(Reason.TOO_LARGE, "1100000 bytes")]


# git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "layers"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "remote", "add", "origin", "https://example.org/someone/layers.git")
    for name, text in {"LICENSE": MIT, "net.py": "import torch\n", "sub/ünï.py": "x = 1\n"}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    (root / "passwd.py").symlink_to("/etc/passwd")
    commit(root)
    git(root, "tag", "v1")
    return root


def git(root: Path, *arguments: str) -> str:
    identity = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", *arguments], cwd=root, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=all")


def test_a_commit_is_read_and_not_the_working_tree(repository: Path, tmp_path: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    (repository / "net.py").write_text("changed\n")
    (repository / "new.py").write_text("new\n")
    files = read(f"{repository}@v1", tmp_path)
    assert sorted(files) == ["net.py", "sub/ünï.py"]
    net = files["net.py"]
    assert (net.text, net.source.package, net.source.revision) == ("import torch\n", "someone/layers", head)
    assert net.licence.evidence == "LICENSE: MIT"
    commit(repository)
    assert read(f"{repository}@v1", tmp_path) == files
    assert read(f"{repository}@main", tmp_path)["new.py"].text == "new\n"


def test_a_bare_repository(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare.git")
    assert read(f"{tmp_path / 'bare.git'}@HEAD", tmp_path)["net.py"].text == "import torch\n"


def test_no_program_configured_in_a_repository_runs(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(0o755)
    for name in (
        "core.fsmonitor",
        "core.pager",
        "filter.f.clean",
        "filter.f.smudge",
        "core.sshCommand",
        "alias.ls-tree",
    ):
        git(repository, "config", name, f"{script}")
    (repository / ".gitattributes").write_text("*.py filter=f\n")
    hooks = repository / ".git" / "hooks"
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        (hooks / hook).write_text(script.read_text())
        (hooks / hook).chmod(0o755)
    assert "net.py" in read(f"{repository}@HEAD", tmp_path)
    assert not ran.exists()


@pytest.mark.parametrize("revision", ["none", "--help", "v1:net.py"])
def test_an_unknown_commit_is_refused(revision: str, repository: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"layers: (has no commit|error: )"):
        open_corpus(f"{repository}@{revision}", tmp_path)


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"not a git repository"):
        open_corpus(f"{tmp_path}@HEAD", tmp_path)
