"""Embedded corpora, requirements files and folders, and the error messages when they are unavailable."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pip
import pytest

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.read import EMBEDDED, open_corpus, read_shard
from kernelquarry.transforms.read import download as downloading
from kernelquarry.transforms.read.folder import Folder, open_folder
from kernelquarry.transforms.read.pinned import PinnedPackages, StreamedPackages, parse_requirements
from tests.transforms.read.wheel import MIT, make_wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is pip's only source of wheels."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(downloading, "_pinned_pip", lambda scratch: Path(pip.__file__).parent.parent)
    return folder


def pinned(wheel: Path, cache: Path, sha256: str = "") -> PinnedPackages:
    text = f"# ours\ntiny-pkg==1.0 --hash=sha256:{sha256 or digest(wheel)}\n"
    return PinnedPackages("ours", parse_requirements(text, "ours"), cache)


# pinned wheels


def test_embedded_corpora_are_nested() -> None:
    tiny, default, full, wide = (set(open_corpus(name, Path("unused")).digests().items()) for name in EMBEDDED)
    assert (len(tiny), len(default), len(full)) == (4, 48, 60)
    assert tiny < default < full < wide


def test_wheels_are_downloaded_once(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(index, {"pkg/a.py": "x = 1\n"})
    corpus = pinned(wheel, tmp_path / "cache")
    (tree,) = corpus.shards()
    assert [outcome.record.text for outcome in read_shard(tree) if isinstance(outcome, Kept)] == ["x = 1\n"]
    assert [path.suffix for path in (tmp_path / "cache" / "wheels").iterdir()] == [".whl"]
    monkeypatch.setattr(subprocess, "run", None)
    assert corpus.shards() == [tree]


def test_a_changed_wheel_in_the_cache_is_refused(tmp_path: Path, index: Path) -> None:
    corpus = pinned(make_wheel(index, {"pkg/a.py": "x = 1\n"}), tmp_path / "cache")
    (tree,) = corpus.shards()
    tree.path.write_bytes(b"tampered")
    with pytest.raises(UserError, match=r"not the pinned file .* delete it"):
        corpus.shards()


def test_an_index_that_serves_another_file_is_refused(tmp_path: Path, index: Path) -> None:
    corpus = pinned(make_wheel(index, {"pkg/a.py": "x = 1\n"}), tmp_path / "cache", sha256="0" * 64)
    with pytest.raises(UserError, match="another file than the corpus pins"):
        corpus.shards()
    assert not list((tmp_path / "cache" / "wheels").iterdir())


def test_a_missing_wheel_fails_with_advice(tmp_path: Path, index: Path) -> None:
    corpus = pinned(index, tmp_path / "cache", sha256="0" * 64)
    with pytest.raises(UserError, match=r"could not download .*tiny-pkg==1.0.*: check the network") as raised:
        corpus.shards()
    assert "\n" not in str(raised.value)


def streamed(lines: dict[str, str], cache: Path) -> StreamedPackages:
    text = "".join(f"{pin} --hash=sha256:{sha256}  # 2026-11-25, 3 modules\n" for pin, sha256 in lines.items())
    return StreamedPackages("wide", parse_requirements(text, "wide"), cache)


def test_a_vanished_or_damaged_package_is_dropped_and_the_others_are_read(tmp_path: Path, index: Path) -> None:
    wheels = {name: make_wheel(index, {f"{name}/a.py": "x = 1\n"}, name) for name in ("ours", "other")}
    damaged = index / "damaged-1.0-py3-none-any.whl"
    damaged.write_bytes(wheels["ours"].read_bytes()[:-30])
    pins = {f"{name}==1.0": digest(path) for name, path in wheels.items()}
    pins |= {"damaged==1.0": digest(damaged), "gone==2.0": "0" * 64, "other==1.0": "1" * 64}
    (batch,) = streamed(pins, tmp_path / "cache").shards()
    outcomes = list(read_shard(batch))
    assert [outcome.record.source.package for outcome in outcomes if isinstance(outcome, Kept)] == ["ours"]
    dropped = {(outcome.id, outcome.reason) for outcome in outcomes if isinstance(outcome, Dropped)}
    assert dropped == {(f"{pin}", Reason.NO_PACKAGE) for pin in ("damaged@1.0", "gone@2.0", "other@1.0")}
    assert not list((tmp_path / "cache").iterdir())


def test_an_index_that_is_not_reached_stops_a_streamed_corpus(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "WARNING: Retrying (Retry(total=0))\nERROR: No matching distribution found for ours==1.0"
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", said))
    (batch,) = streamed({"ours==1.0": "0" * 64}, tmp_path / "cache").shards()
    with pytest.raises(UserError, match="check the network"):
        list(batch.files())


def test_packages_are_streamed_a_few_at_a_time(tmp_path: Path) -> None:
    batches = streamed({f"p{number:02}==1.0": "0" * 64 for number in range(40)}, tmp_path).shards()
    assert [len(batch.requirements) for batch in batches] == [16, 16, 8]


def test_no_pip(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloading, "_pinned_pip", lambda scratch: tmp_path)
    said = f"{sys.executable}: No module named pip"
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", said))
    with pytest.raises(UserError, match=r"no pip to download with: run .* -m ensurepip"):
        pinned(index, tmp_path / "cache", sha256="0" * 64).shards()


@pytest.mark.parametrize("line", ["torch", "torch==2.0", "torch==2.0 --hash=md5:0", "-r other.txt"])
def test_requirements_without_a_hash(tmp_path: Path, line: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(f"# a comment\n{line}\n")
    with pytest.raises(UserError, match="line 2: expected"):
        open_corpus(str(path), tmp_path)


def test_no_such_corpus(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such corpus: give tiny, default, full, wide, a folder"):
        open_corpus("huge", tmp_path)


# folders


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def paths(folder: Folder) -> list[str]:
    return [outcome.record.source.path for outcome in read_shard(folder) if isinstance(outcome, Kept)]


def test_a_folder_is_a_corpus(tmp_path: Path) -> None:
    files = {
        "LICENSE": MIT,
        "a.py": "x = 1\n",
        "sub/b.py": "",
        "sub/data.txt": "",
        ".venv/c.py": "",
        "__pycache__/d.py": "",
    }
    corpus = open_corpus(str(write(tmp_path / "code", files)), tmp_path)
    assert corpus.name == "code"
    (tree,) = corpus.shards()
    assert (tree.package, len(tree.revision)) == ("code", 16)
    assert paths(tree) == ["a.py", "sub/b.py"]


def test_a_package_keeps_its_name(tmp_path: Path) -> None:
    root = write(tmp_path / "pkg", {"LICENSE": MIT, "__init__.py": "", "a.py": ""})
    assert paths(open_folder(root)) == ["pkg/__init__.py", "pkg/a.py"]


def test_files_of_a_folder_without_a_licence_are_dropped(tmp_path: Path) -> None:
    (outcome,) = read_shard(open_folder(write(tmp_path / "code", {"a.py": "x = 1\n"})))
    assert isinstance(outcome, Dropped)
    assert outcome.evidence == "no licence was found"


def test_the_digest_depends_on_the_files_that_are_read(tmp_path: Path) -> None:
    root = write(tmp_path / "code", {"LICENSE": MIT, "a.py": "x = 1\n"})
    before = open_folder(root)
    write(root, {"notes.txt": "of no account"})
    assert open_folder(root) == before
    write(root, {"a.py": "x = 2\n"})
    assert open_folder(root).revision != before.revision
    assert before.digests() != {before.package: before.revision}


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.py": "x = 1\n"})
    root = write(tmp_path / "code", {"LICENSE": MIT, "a.py": ""})
    (root / "link.py").symlink_to(outside / "secret.py")
    (root / "folder").symlink_to(outside)
    (root / "circle").symlink_to(root)
    assert paths(open_folder(root)) == ["a.py"]


def test_an_unreadable_file_does_not_affect_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path / "code", {"LICENSE": MIT, "a.py": "", "b.py": ""})
    opened = Path.open

    def refuse(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == "a.py":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", refuse)
    first, second = read_shard(open_folder(root))
    assert isinstance(first, Errored) and first.error == "PermissionError" and first.id.endswith("/a.py")
    assert isinstance(second, Kept)


def test_an_unreadable_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch the system call: file modes do not restrict the administrator."""
    root = write(tmp_path / "code", {"LICENSE": MIT, "closed/a.py": ""})
    listed = os.scandir

    def refuse(path: str) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UserError, match="closed: Permission denied: make the folder readable, or move it out"):
        open_folder(root)


def test_a_vanished_file_is_an_error_outcome(tmp_path: Path) -> None:
    root = write(tmp_path / "code", {"LICENSE": MIT, "a.py": "", "b.py": ""})
    outcomes = read_shard(open_folder(root))
    assert isinstance(next(outcomes), Kept)
    (root / "b.py").unlink()
    assert isinstance(next(outcomes), Errored)


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "git",
    [
        {"HEAD": f"{COMMIT}\n"},
        {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{COMMIT}\n"},
        {"HEAD": "ref: refs/heads/main\n", "packed-refs": f"# pack-refs\n{COMMIT} refs/heads/main\n"},
    ],
    ids=["detached", "loose", "packed"],
)
def test_a_checkout_has_its_commit_and_remote(tmp_path: Path, git: dict[str, str]) -> None:
    config = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://user:secret@forge.example/owner/name.git\n'
    files = {f".git/{name}": text for name, text in {**git, "config": config}.items()}
    folder = open_folder(write(tmp_path / "code", {"LICENSE": MIT, "a.py": "", **files}))
    assert (folder.package, folder.revision) == ("owner/name", COMMIT)


@pytest.mark.parametrize("remote", ["git@forge.example:owner/name.git", "ssh://git@forge.example:22/owner/name/"])
def test_forms_of_remotes(tmp_path: Path, remote: str) -> None:
    files = {".git/HEAD": COMMIT, ".git/config": f'[remote "origin"]\n\turl = {remote}\n'}
    assert open_folder(write(tmp_path / "code", files)).package == "owner/name"


def test_a_worktree_has_the_remote_of_its_repository(tmp_path: Path) -> None:
    config = '[remote "origin"]\nurl = https://forge.example/owner/name\n'
    repository = {".git/config": config, ".git/refs/heads/side": COMMIT}
    repository |= {".git/worktrees/side/HEAD": "ref: refs/heads/side", ".git/worktrees/side/commondir": "../.."}
    write(tmp_path / "main", repository)
    root = write(tmp_path / "side", {".git": f"gitdir: {tmp_path}/main/.git/worktrees/side\n"})
    folder = open_folder(root)
    assert (folder.package, folder.revision) == ("owner/name", COMMIT)


def test_a_broken_repository_is_a_plain_folder(tmp_path: Path) -> None:
    root = write(tmp_path / "code", {".git/HEAD": "ref: refs/heads/gone\n", ".git/config": "[remote\n", "a.py": ""})
    assert open_folder(root).package == "code"
