"""The double answers the real client: what is published can be read, what is gated cannot, and faults are faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from huggingface_hub import CommitOperationAdd, HfApi, HfFileSystem, constants
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError

from tests.hub_double import TOKEN, HubDouble


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    with HubDouble() as double:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        yield double


def test_what_is_published_can_be_read(hub: HubDouble) -> None:
    api = HfApi(hub.url, token=TOKEN)
    api.create_repo("tester/data", repo_type="dataset")
    files = {"README.md": b"# Data\n", "data/a.parquet": b"\0" * 100}
    operations = [CommitOperationAdd(path, data) for path, data in files.items()]
    commit = api.create_commit("tester/data", operations, commit_message="all", repo_type="dataset")
    api.create_tag("tester/data", tag="v1", repo_type="dataset")
    assert hub.files("tester/data") == hub.files("tester/data", "v1") == files
    assert api.dataset_info("tester/data").sha == commit.oid
    system = HfFileSystem(endpoint=hub.url, token=TOKEN, skip_instance_cache=True)
    assert system.glob("datasets/tester/data/**/*.parquet") == ["datasets/tester/data/data/a.parquet"]
    assert system.cat("datasets/tester/data@v1/README.md") == files["README.md"]


def test_what_is_gated_cannot_be_read(hub: HubDouble) -> None:
    hub.add("someone/data", {"a.txt": b"a"}, gated=True)
    with pytest.raises(GatedRepoError):
        HfApi(hub.url, token="hf_other").hf_hub_download("someone/data", "a.txt", repo_type="dataset")


def test_a_fault_ends_after_its_times(hub: HubDouble) -> None:
    hub.add("someone/data", {})
    hub.fail(500, path="/api/datasets/someone/data", times=1)
    api = HfApi(hub.url, token=TOKEN)
    with pytest.raises(HfHubHTTPError):
        api.dataset_info("someone/data")
    assert api.dataset_info("someone/data").id == "someone/data"
    assert hub.requests.count("GET /api/datasets/someone/data") == 2
