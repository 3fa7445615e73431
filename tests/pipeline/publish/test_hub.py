"""The real client on a simulated Hub, over HTTP: despite any fault, one complete commit or none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from factories import make_pairs, make_rejection
from huggingface_hub import HfApi

from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.publish.hub import Plan, Target, default_tag, plan, publish, redact
from kernelquarry.pipeline.schema.errors import UserError
from tests.hub_double import CUT, GONE, TOKEN, HubDouble
from tests.pipeline.command import Ended, run
from tests.ssh import make_key

REPO = "tester/kernels"
TARGET = Target(REPO)
BUILD = Build(corpus="tiny", sources={}, benchmarks=({"benchmark": "kernelbench", "problems": 250, "ran": 249},))
NAMES = ("README.md", "VERIFIER.md", "croissant.json", "manifest.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "dataset", 12)


def write(folder: Path, number: int) -> Path:
    """Write a dataset of so many pairs, in place of the old one."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in made(number).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@cache
def made(number: int) -> dict[str, bytes]:
    """A dataset that all tests share."""
    pairs = make_pairs(number, ("train", "validation", "test"))
    with TemporaryDirectory() as folder:
        write_dataset(Path(folder), pairs, Rejected((make_rejection(cluster=pairs[0].cluster),)), [], BUILD)
        return bytes_of(Path(folder))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def api(hub: HubDouble, token: str = TOKEN) -> HfApi:
    return HfApi(hub.url, token=token)


def commits(hub: HubDouble) -> int:
    """The number of commits, without the initial one."""
    return len(hub.repos["datasets", REPO].log) - 1


def uploads(hub: HubDouble) -> int:
    return sum(request.startswith("PUT /_lfs/") for request in hub.requests)


def test_one_commit_holds_the_folder_and_has_a_tag(hub: HubDouble, folder: Path) -> None:
    done = publish(folder, TARGET, api(hub))
    assert hub.files(REPO) == hub.files(REPO, done.tag) == bytes_of(folder)
    assert commits(hub) == 1 and done.changed == len(bytes_of(folder))
    assert done.tag == default_tag(folder) and done.tag.startswith("v0.2.0-")
    assert hub.repos["datasets", REPO].refs["main"] == done.commit


def test_publishing_twice_changes_nothing(hub: HubDouble, folder: Path) -> None:
    first, second = publish(folder, TARGET, api(hub)), publish(folder, TARGET, api(hub))
    assert (second.commit, second.tag, second.changed) == (first.commit, first.tag, 0)
    assert commits(hub) == 1


def test_a_new_release_sends_what_changed_and_deletes_old_shards(hub: HubDouble, folder: Path, tmp_path: Path) -> None:
    hub.add(REPO, {"data/pairs/train-00000-of-00002.parquet": b"\0old", ".gitattributes": b"*", "logo.png": b"\0"})
    first = publish(folder, TARGET, api(hub))
    hub.requests.clear()
    larger = write(tmp_path / "larger", 15)
    second = publish(larger, TARGET, api(hub))
    assert hub.files(REPO) == {**bytes_of(larger), ".gitattributes": b"*", "logo.png": b"\0"}
    assert hub.files(REPO, first.tag) == {**bytes_of(folder), ".gitattributes": b"*", "logo.png": b"\0"}
    unchanged = sum(data == bytes_of(folder).get(name) for name, data in bytes_of(larger).items())
    assert second.changed == len(bytes_of(larger)) - unchanged and unchanged
    assert second.tag != first.tag


TOO_MANY = {"Retry-After": "0"}


@pytest.mark.parametrize("status", [429, 500, 503, CUT, GONE])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "repos/create"),
        ("GET", "/api/datasets/"),
        ("GET", "/tree/"),
        ("GET", "/refs"),
        ("POST", "validate-yaml"),
        ("POST", "/preupload/"),
        ("POST", "objects/batch"),
        ("PUT", "/_lfs/"),
        ("POST", "/_verify"),
        ("POST", "/commit/"),
        ("POST", "/tag/"),
    ],
)
def test_a_fault_of_any_request_changes_nothing(
    hub: HubDouble, folder: Path, status: int, method: str, path: str
) -> None:
    """If the request succeeded and its reply was lost, the commit is not repeated."""
    headers = TOO_MANY if status == 429 else None
    hub.fail(status, path, method, headers=headers)
    waited: list[float] = []
    done = publish(folder, TARGET, api(hub), waited.append)
    assert hub.files(REPO) == hub.files(REPO, done.tag) == bytes_of(folder)
    assert commits(hub) == 1
    assert all(fault.times == 0 for fault in hub.faults), "the fault did not happen"


def test_an_outage_is_reported_and_the_next_run_resumes(hub: HubDouble, folder: Path) -> None:
    hub.fail(503, "/commit/", times=2)
    with pytest.raises(UserError, match="the Hub did not answer: run the same command again, it resumes here"):
        publish(folder, TARGET, api(hub), lambda _: None, attempts=2)
    sent = uploads(hub)
    assert hub.files(REPO) == {} and sent > 5
    publish(folder, TARGET, api(hub))
    assert hub.files(REPO) == bytes_of(folder)
    assert uploads(hub) == sent, "what was sent was sent again"


def test_killed_between_uploads_the_next_run_resumes(hub: HubDouble, folder: Path) -> None:
    hub.fail(503, "/_lfs/", method="PUT", times=1000)

    def kill(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(folder, TARGET, api(hub), kill)
    hub.faults.clear()
    done = publish(folder, TARGET, api(hub))
    assert hub.files(REPO, done.tag) == bytes_of(folder) and commits(hub) == 1


def together(*calls: Callable[[], object]) -> list[object]:
    """Run all calls concurrently, and return their results or exceptions."""
    ended: dict[int, object] = {}

    def call(index: int) -> None:
        try:
            ended[index] = calls[index]()
        except UserError as error:
            ended[index] = error

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [ended[index] for index in range(len(calls))]


def test_publishers_of_the_same_folder_make_one_commit(hub: HubDouble, folder: Path) -> None:
    ended = together(*[lambda: publish(folder, TARGET, api(hub), lambda _: None)] * 4)
    assert {getattr(done, "commit", done) for done in ended} == {hub.repos["datasets", REPO].refs["main"]}
    assert commits(hub) == 1 and hub.files(REPO) == bytes_of(folder)


def test_of_two_concurrent_releases_one_wins_and_the_other_fails(
    hub: HubDouble, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second publisher compares before the first commits, and commits after it."""
    larger = write(tmp_path / "larger", 15)
    publish(folder, Target(REPO, tag="v0"), api(hub))
    write(folder, 9)
    create = HfApi.create_commit

    def meanwhile(self: HfApi, *arguments: object, **options: object) -> object:
        monkeypatch.setattr(HfApi, "create_commit", create)
        publish(larger, TARGET, api(hub))
        return create(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(HfApi, "create_commit", meanwhile)
    with pytest.raises(UserError, match="was changed meanwhile by another commit"):
        publish(folder, TARGET, api(hub), lambda _: None)
    assert hub.files(REPO) == bytes_of(larger) and commits(hub) == 2


def test_a_tag_of_another_release_is_not_moved(hub: HubDouble, folder: Path, tmp_path: Path) -> None:
    publish(folder, Target(REPO, tag="v1"), api(hub))
    with pytest.raises(UserError, match="has the tag v1 for another revision: give a new one with --tag"):
        publish(write(tmp_path / "larger", 15), Target(REPO, tag="v1"), api(hub))
    assert hub.files(REPO) == hub.files(REPO, "v1") == bytes_of(folder)


def test_a_release_that_returns_keeps_its_tag(hub: HubDouble, folder: Path, tmp_path: Path) -> None:
    first = publish(folder, TARGET, api(hub))
    publish(write(tmp_path / "larger", 15), TARGET, api(hub))
    again = publish(folder, TARGET, api(hub))
    assert hub.files(REPO) == hub.files(REPO, first.tag) == bytes_of(folder)
    assert again.tag == first.tag and again.commit != first.commit


def test_a_branch_of_its_own(hub: HubDouble, folder: Path) -> None:
    done = publish(folder, Target(REPO, branch="next", private=True), api(hub))
    assert hub.files(REPO) == {} and hub.files(REPO, "next") == bytes_of(folder)
    assert hub.repos["datasets", REPO].private and hub.repos["datasets", REPO].refs["next"] == done.commit


def test_a_private_dataset_is_not_published_to_a_public_repository(hub: HubDouble, folder: Path) -> None:
    hub.add(REPO, {})
    with pytest.raises(UserError, match="is public: make it private on the Hub first"):
        publish(folder, Target(REPO, private=True), api(hub))
    assert hub.files(REPO) == {}


def test_a_plan_changes_nothing(hub: HubDouble, folder: Path) -> None:
    assert plan(folder, TARGET, api(hub)) == Plan("", tuple(sorted(bytes_of(folder))), (), ())
    assert hub.repos == {}
    hub.add(REPO, {"data/old.parquet": b"\0", "README.md": (folder / "README.md").read_bytes()})
    planned = plan(folder, TARGET, api(hub))
    assert planned.same == ("README.md",) and planned.delete == ("data/old.parquet",)
    assert planned.add == tuple(sorted(bytes_of(folder).keys() - {"README.md"}))


@pytest.mark.parametrize("repo", ["kernels", "a/b/c", "", "a b/c"])
def test_a_repository_has_an_owner_and_a_name(repo: str) -> None:
    with pytest.raises(UserError, match="is not the name of a repository: give owner/name"):
        Target(repo)


def command(hub: HubDouble, *arguments: str | Path, cwd: Path, token: str = TOKEN) -> Ended:
    """Run the command in its own process."""
    home = {"HF_HOME": str(cwd / "home"), "HF_ENDPOINT": hub.url, "HF_TOKEN": token}
    os.environ.update(home | {"HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"})
    return run(*arguments, cwd=cwd)


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HOME", "HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_XET"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


@pytest.mark.usefixtures("clean_environment")
def test_the_command_publishes_signs_and_every_config_loads(hub: HubDouble, folder: Path, tmp_path: Path) -> None:
    arguments = ("publish", REPO, "--dataset", folder, "--tag", "v1", "--sign", make_key(tmp_path))
    dry = command(hub, *arguments, "--dry-run", cwd=tmp_path)
    assert dry.status == 0 and "every gate passes" in dry.out and hub.repos == {}
    ended = command(hub, *arguments, cwd=tmp_path)
    assert ended.status == 0 and "tagged v1" in ended.out, ended.err
    assert TOKEN not in ended.out + ended.err
    assert hub.files(REPO)["manifest.json.sig"].startswith(b"-----BEGIN SSH SIGNATURE")
    again = command(hub, *arguments, cwd=tmp_path)
    assert again.out.endswith("nothing to do\n") and commits(hub) == 1
    script = (
        "import json, sys, datasets\n"
        f"repo = {REPO!r}\n"
        "names = datasets.get_dataset_config_names(repo, revision='v1')\n"
        "whole = {n: sorted(r['id'] for s in datasets.load_dataset(repo, n).values() for r in s) for n in names}\n"
        "stream = {n: sorted(r['id'] for s in datasets.load_dataset(repo, n, streaming=True).values() for r in s)"
        " for n in names}\n"
        "print(json.dumps([whole, stream]))\n"
    )
    loaded = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
    whole, stream = json.loads(loaded.stdout)
    counts = json.loads((folder / "manifest.json").read_text())["rows"]
    assert whole == stream and list(whole) == ["pairs", "sft", "rl", "rejected"]
    assert {name: len(ids) for name, ids in whole.items()} == {n: sum(s.values()) for n, s in counts.items()}


@pytest.mark.usefixtures("clean_environment")
def test_the_command_fails_if_a_gate_does(hub: HubDouble, folder: Path, tmp_path: Path) -> None:
    (folder / "data" / "pairs" / "more.parquet").write_bytes(
        (folder / "data" / "pairs" / "test-00000-of-00001.parquet").read_bytes()
    )
    ended = command(hub, "publish", REPO, "--dataset", folder, cwd=tmp_path)
    assert ended.status == 1 and hub.repos == {}
    assert "files: data/pairs/more.parquet is not in the manifest" in ended.err
    assert ended.err.splitlines()[-1] == f"kernelquarry: {folder} may not be published: see the problems above"


@pytest.mark.usefixtures("clean_environment")
def test_a_token_is_never_printed(hub: HubDouble, folder: Path, tmp_path: Path) -> None:
    """A token in the Hub's own reply is not printed either."""
    token = "hf_" + "secret" * 5
    hub.refusal = f"the token {token} may not write here"
    ended = command(hub, "publish", REPO, "--dataset", folder, cwd=tmp_path, token=token)
    assert ended.status == 1 and token not in ended.out + ended.err
    assert "the token hf_*** may not write here: log in with `hf auth login`" in ended.err


def test_tokens_of_any_kind_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "odd-token")
    assert redact("with odd-token and hf_abcDEF0 it says no") == "with hf_*** and hf_*** it says no"


@pytest.mark.parametrize("arguments", [(), ("--sign", "no-such-key"), ("--dry-run",)])
def test_no_dataset_is_one_line(tmp_path: Path, invoke: Callable[..., Ended], arguments: tuple[str, ...]) -> None:
    ended = invoke("publish", REPO, "--dataset", tmp_path, *arguments)
    assert ended.status == 1
    assert ended.err == f"kernelquarry: {tmp_path} holds no dataset: make one with `kernelquarry dataset`\n"


def test_a_key_that_cannot_sign_is_one_line(folder: Path, invoke: Callable[..., Ended]) -> None:
    ended = invoke("publish", REPO, "--dataset", folder, "--sign", folder / "no-such-key")
    assert ended.status == 1 and ended.err.startswith(f"kernelquarry: {folder}/no-such-key: cannot sign with it: ")
