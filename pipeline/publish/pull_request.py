"""Publishes a dataset as a pull request, for publishers without write access and for releases that need a review.

A release has one open pull request, found by its title. As in `hub.publish`, each attempt does only what is missing, so
neither a lost reply nor a second publisher opens another pull request.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from huggingface_hub import HfApi

from kernelquarry.pipeline.schema.errors import UserError

from .hub import ATTEMPTS, Target, compare, persist, send, title


@dataclass(frozen=True, slots=True)
class Proposed:
    commit: str
    number: int  # of the pull request; 0: the main branch already holds the release
    changed: int  # files that the pull request adds, replaces or deletes


def propose(
    folder: Path, target: Target, api: HfApi, wait: Callable[[float], None] = time.sleep, attempts: int = ATTEMPTS
) -> Proposed:
    """Open or update the pull request that makes the main branch equal to the folder. The caller has checked the gates.

    Raises: UserError: as `publish`; the repository is missing, or the target is another branch.
    """
    if target.branch != "main":
        raise UserError(f"pull requests go to the main branch, not to {target.branch}: leave --revision out")
    return persist(lambda: _propose(folder, target, api), target, wait, attempts)


def _propose(folder: Path, target: Target, api: HfApi) -> Proposed:
    planned = compare(folder, target, api)
    if not planned.parent:
        raise UserError(f"{target.repo} does not exist or is hidden: publish without --pr to create it")
    if not planned.changed:
        return Proposed(planned.parent, 0, 0)
    if not (numbers := _open_requests(folder, target, api)):
        made = send(folder, planned, target, api, as_pull_request=True)
        numbers = _open_requests(folder, target, api)
        assert made.pr_num is not None
        if made.pr_num != min(numbers, default=made.pr_num):  # another publisher was faster
            api.change_discussion_status(target.repo, made.pr_num, "closed", repo_type="dataset")
    number = min(numbers, default=0)
    if not number:
        raise UserError(f"{target.repo}: the pull request was closed or merged meanwhile: look at it on the Hub")
    request = replace(target, branch=f"refs/pr/{number}")
    update = compare(folder, request, api)
    commit = send(folder, update, request, api).oid if update.changed else update.parent
    return Proposed(commit, number, planned.changed)


def _open_requests(folder: Path, target: Target, api: HfApi) -> list[int]:
    """The numbers of the open pull requests of this release."""
    requests = api.get_repo_discussions(
        target.repo, repo_type="dataset", discussion_type="pull_request", discussion_status="open"
    )
    return [request.num for request in requests if request.title == title(folder, target)]
