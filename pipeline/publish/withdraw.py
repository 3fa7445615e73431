"""Withdraws the rows of authors who opted out after a release: a new revision without these rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from kernelquarry.pipeline.dataset.configs import Published
from kernelquarry.pipeline.dataset.origin import BuildSettings, Origin
from kernelquarry.pipeline.dataset.write_dataset import MANIFEST, Build, Release, write_release
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.chats import Chat
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.reasons import Reason

from . import gates
from .gates import Contents, opted_out, read_contents
from .hub import Published as PublishedRevision
from .hub import Target, publish, refusal
from .sign import SIGNATURE


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The rows to withdraw and the rows to keep."""

    ids: Mapping[str, tuple[str, ...]]  # config -> ids of the withdrawn rows, for configs that have some
    kept: Mapping[str, Sequence[Published]]  # config -> rows

    def summary(self) -> str:
        if not self.ids:
            return "nothing to withdraw: no author opted out"
        counts = ", ".join(f"{len(ids):,} of {name}" for name, ids in self.ids.items())
        return f"withdrawn: {counts}"


def choose(contents: Contents) -> Withdrawn:
    """Split the rows: rows of authors who opted out, and rows derived from such pairs, are withdrawn."""
    pairs = {row.id for row in contents.rows.get("pairs", ()) if opted_out(row, contents.opt_out)}

    def is_withdrawn(row: Published) -> bool:
        return opted_out(row, contents.opt_out) is not None or (isinstance(row, Chat) and row.pair in pairs)

    ids = {name: tuple(row.id for row in rows if is_withdrawn(row)) for name, rows in contents.rows.items()}
    kept = {name: tuple(row for row in rows if not is_withdrawn(row)) for name, rows in contents.rows.items()}
    return Withdrawn({name: withdrawn for name, withdrawn in ids.items() if withdrawn}, kept)


def withdraw_from_folder(folder: Path, opt_out: Path | None, dry_run: bool = False) -> Withdrawn:
    """Rewrite the folder without the withdrawn rows. Raises: UserError."""
    contents = read_contents(folder, opt_out)
    withdrawn = choose(contents)
    if withdrawn.ids and not dry_run:
        (folder / SIGNATURE).unlink(missing_ok=True)  # it signs the old manifest
        write_release(folder, _without(contents, withdrawn))
    return withdrawn


def withdraw_from_hub(
    target: Target, opt_out: Path | None, api: HfApi, dry_run: bool = False
) -> tuple[Withdrawn, PublishedRevision | None]:
    """Publish a new revision of the branch without the withdrawn rows, if it has any. Raises: UserError."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            _download(folder, target, api)
        except (HfHubHTTPError, httpx2.TransportError, OSError) as error:
            raise refusal(target, error) from None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{target.repo} holds no dataset of kernelquarry: its {MANIFEST} is invalid") from None
        withdrawn = withdraw_from_folder(folder, opt_out, dry_run)
        if dry_run or not withdrawn.ids:
            return withdrawn, None
        gates.demand(read_contents(folder, opt_out, uncompared=True))  # it is public already
        return withdrawn, publish(folder, target, api)


def _download(folder: Path, target: Target, api: HfApi) -> None:
    """Download the files that the manifest names; the branch may hold others."""
    head = api.dataset_info(target.repo, revision=target.branch).sha
    place: dict[str, Any] = dict(repo_id=target.repo, repo_type="dataset", revision=head, local_dir=folder)
    manifest = json.loads(Path(api.hf_hub_download(filename=MANIFEST, **place)).read_bytes())
    api.snapshot_download(allow_patterns=[MANIFEST, *manifest["files"]], **place)


def _without(contents: Contents, withdrawn: Withdrawn) -> Release:
    """The release without the withdrawn rows, with the counts adjusted. Raises: UserError."""
    manifest = contents.manifest
    try:
        build, fields = Build(**manifest["build"]), manifest["origin"]
        origin = Origin(**{**fields, "settings": BuildSettings(**fields["settings"])})
    except (TypeError, KeyError):
        raise UserError(f"{contents.folder}: the manifest is from another release: use that release") from None
    pairs, rejections = (len(withdrawn.ids.get(name, ())) for name in ("pairs", "rejected"))
    funnel = [StageCounts(**counts) for counts in manifest["funnel"]]
    kept = len(withdrawn.kept["pairs"])
    funnel.append(StageCounts("withdraw", "pair", kept + pairs, kept, {Reason.OPTED_OUT.value: pairs} if pairs else {}))
    return Release(
        rows=withdrawn.kept,
        rejected=_count_withdrawn(StageCounts(**manifest["rejected"]), rejections),
        funnel=funnel,
        build=replace(build, opt_out=contents.opt_out.digest),
        origin=origin,
    )


def _count_withdrawn(counts: StageCounts, number: int) -> StageCounts:
    code = Reason.OPTED_OUT.value
    dropped = {**counts.dropped, code: counts.dropped.get(code, 0) + number} if number else counts.dropped
    return replace(counts, kept=counts.kept - number, dropped=dict(sorted(dropped.items())))
