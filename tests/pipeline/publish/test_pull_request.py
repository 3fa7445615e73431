"""A release as a pull request, by the real client on a simulated Hub: one complete pull request despite any fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_hub import REPO, TARGET, api, bytes_of, clean_environment, command, folder, together, write

from kernelquarry.pipeline.publish.hub import Target, publish
from kernelquarry.pipeline.publish.pull_request import propose
from kernelquarry.pipeline.schema.errors import UserError
from tests.hub_double import CUT, GONE, TOKEN, HubDouble

__all__ = ["clean_environment", "folder"]  # fixtures


@pytest.fixture(autouse=True)
def empty(hub: HubDouble) -> None:
    hub.add(REPO, {"logo.png": b"\0", "data/old.parquet": b"\0"})


def requests(hub: HubDouble) -> list[tuple[int, str]]:
    return [(number, status) for number, (_, status) in hub.repos["datasets", REPO].requests.items()]


def test_it_holds_the_folder_and_the_branch_is_unchanged(hub: HubDouble, folder: Path) -> None:
    done = propose(folder, TARGET, api(hub))
    assert hub.files(REPO).keys() == {"logo.png", "data/old.parquet"}
    assert hub.files(REPO, f"refs/pr/{done.number}") == {**bytes_of(folder), "logo.png": b"\0"}
    assert done.changed == len(bytes_of(folder)) + 1 and not hub.repos["datasets", REPO].tags


def test_proposing_twice_opens_one_pull_request(hub: HubDouble, folder: Path) -> None:
    first = propose(folder, TARGET, api(hub))
    assert propose(folder, TARGET, api(hub)) == first
    assert requests(hub) == [(1, "open")]


def test_another_release_has_another_pull_request(hub: HubDouble, folder: Path, tmp_path: Path) -> None:
    numbers = [propose(each, TARGET, api(hub)).number for each in (folder, write(tmp_path / "larger", 15))]
    assert numbers == [1, 2] and requests(hub) == [(1, "open"), (2, "open")]


def test_an_open_pull_request_is_updated(hub: HubDouble, folder: Path, tmp_path: Path) -> None:
    named, larger = Target(REPO, tag="v1"), write(tmp_path / "larger", 15)
    assert [propose(each, named, api(hub)).number for each in (folder, larger)] == [1, 1]
    assert hub.files(REPO, "refs/pr/1") == {**bytes_of(larger), "logo.png": b"\0"}


def test_publishing_after_the_merge_makes_the_tag(hub: HubDouble, folder: Path) -> None:
    done = propose(folder, TARGET, api(hub))
    repo = hub.repos["datasets", REPO]
    repo.refs["main"], repo.requests[1][1] = repo.refs["refs/pr/1"], "merged"
    assert propose(folder, TARGET, api(hub)).number == 0
    published = publish(folder, TARGET, api(hub))
    assert (published.commit, published.changed) == (done.commit, 0)
    assert repo.refs[published.tag] == done.commit


@pytest.mark.parametrize("status", [429, 500, 503, CUT, GONE])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/datasets/[^/]+/[^/]+/revision"),
        ("GET", "/tree/"),
        ("GET", "/discussions"),
        ("POST", "/preupload/"),
        ("POST", "objects/batch"),
        ("PUT", "/_lfs/"),
        ("POST", "/commit/"),
    ],
)
def test_a_fault_of_any_request_opens_no_second_pull_request(
    hub: HubDouble, folder: Path, status: int, method: str, path: str
) -> None:
    hub.fail(status, path, method, headers={"Retry-After": "0"} if status == 429 else None)
    done = propose(folder, TARGET, api(hub), lambda _: None)
    assert requests(hub) == [(1, "open")] and done.number == 1
    assert hub.files(REPO, "refs/pr/1") == {**bytes_of(folder), "logo.png": b"\0"}
    assert all(fault.times == 0 for fault in hub.faults), "the fault did not happen"


def test_concurrent_publishers_leave_one_pull_request_open(hub: HubDouble, folder: Path) -> None:
    ended = together(*[lambda: propose(folder, TARGET, api(hub), lambda _: None)] * 4)
    assert {getattr(done, "number", done) for done in ended} == {1}
    assert [status for _, status in requests(hub)].count("open") == 1


def test_there_must_be_a_repository_and_the_main_branch(hub: HubDouble, folder: Path) -> None:
    with pytest.raises(UserError, match="does not exist or is hidden"):
        propose(folder, Target("tester/missing"), api(hub))
    assert ("datasets", "tester/missing") not in hub.repos
    with pytest.raises(UserError, match="go to the main branch, not to next"):
        propose(folder, Target(REPO, branch="next"), api(hub))


@pytest.mark.usefixtures("clean_environment")
def test_the_command(hub: HubDouble, folder: Path, tmp_path: Path) -> None:
    ended = command(hub, "publish", REPO, "--dataset", folder, "--pr", cwd=tmp_path)
    assert ended.status == 0, ended.err
    assert ended.out.startswith(f"pull request 1 of {REPO} at ") and TOKEN not in ended.out + ended.err
    assert hub.files(REPO, "refs/pr/1") == {**bytes_of(folder), "logo.png": b"\0"}
