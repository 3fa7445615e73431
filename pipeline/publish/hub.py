"""Publishes a dataset folder as one commit of a repository on the Hub, with a tag.

The repository always holds the last release or this one, complete. Each attempt compares the repository with the folder
and does what is missing, so a retry is safe after a failure and after a success whose reply was lost. The Hub knows
uploaded files by their digests, so retries do not upload them again.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx2
from huggingface_hub import CommitInfo, CommitOperationAdd, CommitOperationDelete, HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import logging as hub_logging
from huggingface_hub.utils.sha import git_hash

from kernelquarry.pipeline.dataset.write_dataset import MANIFEST, published_files
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest

from .sign import SIGNATURE

log = logging.getLogger(__name__)

ATTEMPTS = 6
_LONGEST_PAUSE_S = 60.0
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
T = TypeVar("T")
_TOKEN = re.compile(r"\bhf_\w+")


@dataclass(frozen=True, slots=True)
class Target:
    """A branch of a repository, and how to publish to it."""

    repo: str  # "owner/name"
    branch: str = "main"  # or a commit, for reading; created if missing
    private: bool = False  # visibility of a repository that is created
    tag: str = ""  # "": named after the release and the manifest's digest

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", self.repo):
            raise UserError(f"{self.repo!r} is not the name of a repository: give owner/name")


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that a commit would make to the branch."""

    parent: str  # commit that was compared, "" if the repository or branch is missing
    add: tuple[str, ...]
    delete: tuple[str, ...]  # shards of an earlier release
    same: tuple[str, ...]

    @property
    def changed(self) -> int:
        """The number of files to send or delete."""
        return len(self.add) + len(self.delete)

    def summary(self) -> str:
        return f"{len(self.add)} files to send, {len(self.same)} unchanged, {len(self.delete)} to delete"


@dataclass(frozen=True, slots=True)
class Published:
    commit: str
    tag: str
    changed: int  # files that the commit added, replaced or deleted


def plan(folder: Path, target: Target, api: HfApi) -> Plan:
    """Compare the folder with the branch, without changing anything. Raises: UserError."""
    try:
        return compare(folder, target, api)
    except (HfHubHTTPError, httpx2.TransportError, HFValidationError) as error:
        raise refusal(target, error) from None


def publish(
    folder: Path, target: Target, api: HfApi, wait: Callable[[float], None] = time.sleep, attempts: int = ATTEMPTS
) -> Published:
    """Make the branch equal to the folder in one commit, and tag it. The caller has checked the gates.

    Raises: UserError: the Hub refuses, another commit was pushed meanwhile, or all attempts failed.
    """
    first: Plan | None = None  # plan of the first attempt: the branch may move from its parent to our commit only

    def attempt() -> Published:
        nonlocal first
        _create_branch(target, api)
        planned = compare(folder, target, api)
        first = first or planned
        if planned.changed and planned.parent != first.parent:
            raise UserError(
                f"{target.repo} was changed meanwhile by another commit: look at that commit, then publish again if "
                "this release is to replace it"
            )
        tag = target.tag or default_tag(folder)
        _check_tag(tag, planned, target, api)
        commit = send(folder, planned, target, api).oid if planned.changed else planned.parent
        api.create_tag(target.repo, repo_type="dataset", tag=tag, revision=commit, exist_ok=True)
        return Published(commit, tag, first.changed)

    return persist(attempt, target, wait, attempts)


def persist(attempt: Callable[[], T], target: Target, wait: Callable[[float], None], attempts: int) -> T:
    """Call `attempt`, with retries while the Hub does not answer. Raises: UserError."""
    hub_logging.set_verbosity_error()  # its warnings contain pre-signed URLs
    for number in range(1, attempts + 1):
        try:
            return attempt()
        except (HfHubHTTPError, httpx2.TransportError, HFValidationError, RuntimeError) as error:
            if not _is_transient(error):
                raise refusal(target, error) from None
            if number == attempts:
                break
            pause_s = _pause_s(error, number)
            log.warning("%s: %s; attempt %d in %.0f s", target.repo, _summary(error), number + 1, pause_s)
            wait(pause_s)
    raise UserError(f"{target.repo}: the Hub did not answer: run the same command again, it resumes here")


def default_tag(folder: Path) -> str:
    """A name such as `v0.1.0-0123abcd`: the release of kernelquarry, and the start of the manifest's digest."""
    release = json.loads((folder / MANIFEST).read_bytes())["origin"]["release"]
    return f"v{release}-{digest(folder / MANIFEST)[:8]}"


def _create_branch(target: Target, api: HfApi) -> None:
    api.create_repo(target.repo, repo_type="dataset", private=target.private, exist_ok=True)
    if target.private and not api.dataset_info(target.repo).private:
        raise UserError(f"{target.repo} is public: make it private on the Hub first, or publish without --private")
    if target.branch != "main":
        api.create_branch(target.repo, repo_type="dataset", branch=target.branch, exist_ok=True)


def compare(folder: Path, target: Target, api: HfApi) -> Plan:
    """Compare the folder with the branch. Raises: the errors of the Hub's client."""
    local = sorted(published_files(folder))
    try:
        head = api.dataset_info(target.repo, revision=target.branch).sha or ""
    except (RepositoryNotFoundError, RevisionNotFoundError):
        return Plan("", tuple(local), (), ())
    tree = api.list_repo_tree(target.repo, repo_type="dataset", revision=head, recursive=True)
    remote = {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
    same = {name for name in local if name in remote and _is_same(folder / name, remote[name])}
    ours = {name for name in remote if name.startswith("data/") or name == SIGNATURE}
    return Plan(
        parent=head,
        add=tuple(name for name in local if name not in same),
        delete=tuple(sorted(ours - set(local))),
        same=tuple(sorted(same)),
    )


def _is_same(path: Path, remote: RepoFile) -> bool:
    """True if the digests agree: the Hub keeps SHA-256 of large files and Git's hash of others."""
    if remote.lfs is not None:
        return digest(path) == remote.lfs.sha256
    return path.stat().st_size == remote.size and git_hash(path.read_bytes()) == remote.blob_id


def send(folder: Path, planned: Plan, target: Target, api: HfApi, as_pull_request: bool = False) -> CommitInfo:
    """Commit the plan to the branch, if it has not moved, or to a new pull request."""
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        *(CommitOperationAdd(name, folder / name) for name in planned.add),
        *(CommitOperationDelete(name) for name in planned.delete),
    ]
    done = api.create_commit(
        target.repo,
        operations,
        commit_message=title(folder, target),
        commit_description=f"sha256 of {MANIFEST}: {digest(folder / MANIFEST)}",
        repo_type="dataset",
        revision=target.branch,
        create_pr=as_pull_request,
        parent_commit=planned.parent,
    )
    left = compare(folder, Target(target.repo, done.oid), api)
    if left.changed:
        raise UserError(f"{target.repo}: the commit {done.oid} differs from the folder: {left.summary()}")
    return done


def title(folder: Path, target: Target) -> str:
    """The title of the commit or pull request."""
    return f"Release {target.tag or default_tag(folder)}"


def _check_tag(tag: str, planned: Plan, target: Target, api: HfApi) -> None:
    """Raises: UserError: the user named a tag of another revision. Default tags hold the digest and always fit."""
    tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(target.repo, repo_type="dataset").tags}
    if target.tag and tag in tags and (planned.changed or tags[tag] != planned.parent):
        raise UserError(f"{target.repo} has the tag {tag} for another revision: give a new one with --tag")


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, HfHubHTTPError):
        # 412: the branch moved since the comparison; the next attempt compares again.
        return error.response.status_code in _TRANSIENT | {412}
    if isinstance(error, RuntimeError):  # of an upload, with the original error as its cause, if known
        return error.__cause__ is None or (isinstance(error.__cause__, Exception) and _is_transient(error.__cause__))
    return isinstance(error, httpx2.TransportError)


def _pause_s(error: BaseException, attempt: int) -> float:
    """Seconds until the next attempt: the Hub's `Retry-After`, or exponential backoff."""
    requested = error.response.headers.get("Retry-After", "") if isinstance(error, HfHubHTTPError) else ""
    return min(_LONGEST_PAUSE_S, float(requested) if requested.isdigit() else 2.0**attempt)


def refusal(target: Target, error: Exception) -> UserError:
    """The error message for a request that the Hub refused or did not answer."""
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
    if status in (401, 403):
        remedy = "log in with `hf auth login`, or set HF_TOKEN to a token with write access"
    elif status == 0 and not isinstance(error, HFValidationError):
        remedy = "check the network connection to the Hub"
    else:
        remedy = "see the message"
    return UserError(f"{target.repo}: {_summary(error)}: {remedy}")


def _summary(error: BaseException) -> str:
    """One line on an error, without tokens."""
    if isinstance(error, HfHubHTTPError):
        text = f"the Hub answered {error.response.status_code} {error.server_message or ''}".strip()
    else:
        text = f"{type(error).__name__}: {error}".splitlines()[0] if str(error) else type(error).__name__
    return redact(text)


def redact(text: str) -> str:
    token = get_token()
    return _TOKEN.sub("hf_***", text.replace(token, "hf_***") if token else text)
