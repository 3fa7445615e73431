"""Publishing by a pull request: for who may not write to a repository, or wants a release to be looked at first.

A release has one open pull request, which is known by its title. As in `publish`, each attempt looks at what is there
and does what is missing, so neither a lost answer nor a second publisher makes another one.
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
    number: int  # of the pull request; 0: the main branch holds the release already
    changed: int  # files that it adds, replaces or deletes


def propose(
    folder: Path, target: Target, api: HfApi, wait: Callable[[float], None] = time.sleep, attempts: int = ATTEMPTS
) -> Proposed:
    """See to it that one open pull request makes the main branch hold the folder. The gates are asked before.

    Raises: UserError: as `publish`; there is no such repository, or the target is another branch.
    """
    if target.branch != "main":
        raise UserError(f"a pull request is for the main branch, not for {target.branch}: leave --revision out")
    return persist(lambda: _propose(folder, target, api), target, wait, attempts)


def _propose(folder: Path, target: Target, api: HfApi) -> Proposed:
    planned = compare(folder, target, api)
    changed = len(planned.add) + len(planned.delete)
    if not planned.parent:
        raise UserError(f"{target.repo} is not there, or hidden: publish without a pull request makes it")
    if planned.empty:
        return Proposed(planned.parent, 0, 0)
    if not (numbers := _open_requests(folder, target, api)):
        made = send(folder, planned, target, api, as_request=True)
        numbers = _open_requests(folder, target, api)
        assert made.pr_num is not None
        if made.pr_num != min(numbers, default=made.pr_num):  # somebody else's was a moment earlier
            api.change_discussion_status(target.repo, made.pr_num, "closed", repo_type="dataset")
    number = min(numbers, default=0)
    if not number:
        raise UserError(f"{target.repo}: the pull request was closed or merged meanwhile: look at it there")
    place = replace(target, branch=f"refs/pr/{number}")
    there = compare(folder, place, api)
    commit = there.parent if there.empty else send(folder, there, place, api).oid
    return Proposed(commit, number, changed)


def _open_requests(folder: Path, target: Target, api: HfApi) -> list[int]:
    """Numbers of those that are for this release."""
    found = api.get_repo_discussions(
        target.repo, repo_type="dataset", discussion_type="pull_request", discussion_status="open"
    )
    return [request.num for request in found if request.title == title(folder, target)]
