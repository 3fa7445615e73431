"""Publishing: a dataset folder becomes one commit of a repository on the Hub, with a tag.

Whatever happens, the repository holds the last release or this one, whole. Each attempt looks at what is there and does
what is missing, so an attempt after a failure, or after a success whose answer was lost, is the same as the first.
Files that were uploaded before a failure are known to the Hub by their digests and not sent again.
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
_LONGEST_WAIT = 60.0  # seconds between two attempts
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
T = TypeVar("T")
_TOKEN = re.compile(r"\bhf_\w+")


@dataclass(frozen=True, slots=True)
class Target:
    """Where to publish."""

    repo: str  # "owner/name"
    branch: str = "main"  # or, to look at something, a commit; made if it is not there
    private: bool = False  # of a repository that is made for it
    tag: str = ""  # "": named after the release and the manifest's digest

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", self.repo):
            raise UserError(f"{self.repo!r} names no repository: give owner/name")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a commit would do to the branch as it is."""

    parent: str  # commit, "" if there is no such repository or branch yet
    add: tuple[str, ...]
    delete: tuple[str, ...]  # shards of an earlier release
    same: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not (self.add or self.delete)

    def summary(self) -> str:
        return f"{len(self.add)} files to send, {len(self.same)} there already, {len(self.delete)} to delete"


@dataclass(frozen=True, slots=True)
class Published:
    commit: str
    tag: str
    changed: int  # files that the commit added, replaced or deleted; 0: there was nothing to do


def plan(folder: Path, target: Target, api: HfApi) -> Plan:
    """Compare the folder with what the branch holds. Changes nothing. Raises: UserError."""
    try:
        return compare(folder, target, api)
    except (HfHubHTTPError, httpx2.TransportError, HFValidationError) as error:
        raise refusal(target, error) from None


def publish(
    folder: Path, target: Target, api: HfApi, wait: Callable[[float], None] = time.sleep, attempts: int = ATTEMPTS
) -> Published:
    """Make the branch hold the folder, in one commit, and tag it. The gates are asked before, by the caller.

    Raises: UserError: the Hub refuses, somebody else published meanwhile, or it did not answer `attempts` times.
    """
    first: Plan | None = None  # only our own commit may follow what it found

    def attempt() -> Published:
        nonlocal first
        _make_place(target, api)
        planned = compare(folder, target, api)
        first = first or planned
        if not planned.empty and planned.parent != first.parent:
            raise UserError(
                f"{target.repo} was changed by somebody else meanwhile: look at it, then publish again if this "
                "release is to replace theirs"
            )
        tag = target.tag or default_tag(folder)
        _check_tag(tag, planned, target, api)
        commit = planned.parent if planned.empty else send(folder, planned, target, api).oid
        _tag(tag, commit, target, api)
        return Published(commit, tag, len(first.add) + len(first.delete))

    return persist(attempt, target, wait, attempts)


def persist(attempt: Callable[[], T], target: Target, wait: Callable[[float], None], attempts: int) -> T:
    """What `attempt` returns, tried again where the Hub does not answer. Raises: UserError."""
    hub_logging.set_verbosity_error()  # its warnings name addresses that are signed for us
    for number in range(1, attempts + 1):
        try:
            return attempt()
        except (HfHubHTTPError, httpx2.TransportError, HFValidationError, RuntimeError) as error:
            if not _is_transient(error):
                raise refusal(target, error) from None
            if number == attempts:
                break
            seconds = _pause(error, number)
            log.warning("%s: %s; attempt %d in %.0f s", target.repo, _say(error), number + 1, seconds)
            wait(seconds)
    raise UserError(f"{target.repo}: the Hub did not answer: run the same command again, it goes on from here")


def default_tag(folder: Path) -> str:
    """`v0.1.0-0123abcd`: the release that built it, and the start of the manifest's digest."""
    release = json.loads((folder / MANIFEST).read_bytes())["origin"]["release"]
    return f"v{release}-{digest(folder / MANIFEST)[:8]}"


def _make_place(target: Target, api: HfApi) -> None:
    api.create_repo(target.repo, repo_type="dataset", private=target.private, exist_ok=True)
    if target.private and not api.dataset_info(target.repo).private:
        raise UserError(f"{target.repo} is public: make it private on the Hub first, or publish without --private")
    if target.branch != "main":
        api.create_branch(target.repo, repo_type="dataset", branch=target.branch, exist_ok=True)


def compare(folder: Path, target: Target, api: HfApi) -> Plan:
    """As `plan`, with the client's own errors."""
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
    """By the digest that the Hub keeps: SHA-256 of large files, Git's of the others."""
    if remote.lfs is not None:
        return digest(path) == remote.lfs.sha256
    return path.stat().st_size == remote.size and git_hash(path.read_bytes()) == remote.blob_id


def send(folder: Path, planned: Plan, target: Target, api: HfApi, as_request: bool = False) -> CommitInfo:
    """One commit on what was looked at: of the branch, unless it has moved, or `as_request` a new pull request."""
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
        create_pr=as_request,
        parent_commit=planned.parent,
    )
    left = compare(folder, Target(target.repo, done.oid), api)
    if not left.empty:
        raise UserError(f"{target.repo}: the commit {done.oid} does not hold what was sent: {left.summary()}")
    return done


def title(folder: Path, target: Target) -> str:
    """Of the commit, and of the pull request where it is one."""
    return f"Release {target.tag or default_tag(folder)}"


def _check_tag(tag: str, planned: Plan, target: Target, api: HfApi) -> None:
    """A tag that was given to another release stays with it. One that names the manifest's digest is of these files."""
    tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(target.repo, repo_type="dataset").tags}
    if target.tag and tag in tags and not (planned.empty and tags[tag] == planned.parent):
        raise UserError(f"{target.repo} has the tag {tag} for another revision: give a new one with --tag")


def _tag(tag: str, commit: str, target: Target, api: HfApi) -> None:
    api.create_tag(target.repo, repo_type="dataset", tag=tag, revision=commit, exist_ok=True)


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, HfHubHTTPError):
        # 412: the branch moved under the commit; the next attempt sees by whom.
        return error.response.status_code in _TRANSIENT | {412}
    if isinstance(error, RuntimeError):  # an upload's: what it was is behind it, if it is known at all
        return error.__cause__ is None or (isinstance(error.__cause__, Exception) and _is_transient(error.__cause__))
    return isinstance(error, httpx2.TransportError)


def _pause(error: BaseException, attempt: int) -> float:
    """Seconds: what the Hub asks for, or twice as long each time."""
    asked = error.response.headers.get("Retry-After", "") if isinstance(error, HfHubHTTPError) else ""
    return min(_LONGEST_WAIT, float(asked) if asked.isdigit() else 2.0**attempt)


def refusal(target: Target, error: Exception) -> UserError:
    """What the user is told when the Hub cannot be used."""
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
    if status in (401, 403):
        remedy = "give a token that may write there, with `hf auth login` or in HF_TOKEN"
    elif status == 0 and not isinstance(error, HFValidationError):
        remedy = "see whether the Hub can be reached from here"
    else:
        remedy = "see what it says"
    return UserError(f"{target.repo}: {_say(error)}: {remedy}")


def _say(error: BaseException) -> str:
    """One line of what went wrong, without any token."""
    if isinstance(error, HfHubHTTPError):
        text = f"the Hub answered {error.response.status_code} {error.server_message or ''}".strip()
    else:
        text = f"{type(error).__name__}: {error}".splitlines()[0] if str(error) else type(error).__name__
    return redact(text)


def redact(text: str) -> str:
    token = get_token()
    return _TOKEN.sub("hf_***", text.replace(token, "hf_***") if token else text)
