"""Taking out the rows of whoever opted out after a release: a new revision without them, and nothing else changed."""

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
from .hub import Published as Done
from .hub import Target, publish, refusal
from .sign import SIGNATURE


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What goes and what stays."""

    ids: Mapping[str, tuple[str, ...]]  # config -> ids of the rows that go; configs that lose none are left out
    kept: Mapping[str, Sequence[Published]]

    @property
    def nothing(self) -> bool:
        return not self.ids

    def summary(self) -> str:
        if self.nothing:
            return "no row is of anyone who opted out"
        counts = ", ".join(f"{len(ids):,} of {name}" for name, ids in self.ids.items())
        return f"withdrawn: {counts}"


def choose(contents: Contents) -> Withdrawn:
    """Rows of whoever opted out, and rows that were made of such pairs."""
    gone = {row.id for row in contents.rows.get("pairs", ()) if opted_out(row, contents.opt_out)}

    def goes(row: Published) -> bool:
        return opted_out(row, contents.opt_out) is not None or (isinstance(row, Chat) and row.pair in gone)

    ids = {name: tuple(row.id for row in rows if goes(row)) for name, rows in contents.rows.items()}
    kept = {name: tuple(row for row in rows if not goes(row)) for name, rows in contents.rows.items()}
    return Withdrawn({name: found for name, found in ids.items() if found}, kept)


def withdraw_from_folder(folder: Path, opt_out: Path | None, dry_run: bool = False) -> Withdrawn:
    """Write the folder anew without the rows. Raises: UserError."""
    contents = read_contents(folder, opt_out)
    withdrawn = choose(contents)
    if not (withdrawn.nothing or dry_run):
        (folder / SIGNATURE).unlink(missing_ok=True)  # it is of what was
        write_release(folder, _without(contents, withdrawn))
    return withdrawn


def withdraw_from_hub(
    target: Target, opt_out: Path | None, api: HfApi, dry_run: bool = False
) -> tuple[Withdrawn, Done | None]:
    """Give the branch a new revision without the rows; None if it has none of them. Raises: UserError."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            _download(folder, target, api)
        except (HfHubHTTPError, httpx2.TransportError, OSError) as error:
            raise refusal(target, error) from None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{target.repo} holds no dataset of kernelquarry: its {MANIFEST} is none") from None
        withdrawn = withdraw_from_folder(folder, opt_out, dry_run)
        if withdrawn.nothing or dry_run:
            return withdrawn, None
        gates.demand(read_contents(folder, opt_out, uncompared=True))  # it is public as it is
        return withdrawn, publish(folder, target, api)


def _download(folder: Path, target: Target, api: HfApi) -> None:
    """What we published of the branch; others may have put something beside it."""
    head = api.dataset_info(target.repo, revision=target.branch).sha
    place: dict[str, Any] = dict(repo_id=target.repo, repo_type="dataset", revision=head, local_dir=folder)
    manifest = json.loads(Path(api.hf_hub_download(filename=MANIFEST, **place)).read_bytes())
    api.snapshot_download(allow_patterns=[MANIFEST, *manifest["files"]], **place)


def _without(contents: Contents, withdrawn: Withdrawn) -> Release:
    """The release as it was, but for the rows, and what the manifest tells of them. Raises: UserError."""
    manifest = contents.manifest
    try:
        build, told = Build(**manifest["build"]), manifest["origin"]
        origin = Origin(**{**told, "settings": BuildSettings(**told["settings"])})
    except (TypeError, KeyError):
        raise UserError(f"{contents.folder}: its manifest is of another release: withdraw with that one") from None
    pairs, rejections = (len(withdrawn.ids.get(name, ())) for name in ("pairs", "rejected"))
    funnel = [StageCounts(**counts) for counts in manifest["funnel"]]
    kept = len(withdrawn.kept["pairs"])
    funnel.append(StageCounts("withdraw", "pair", kept + pairs, kept, {Reason.OPTED_OUT.value: pairs} if pairs else {}))
    return Release(
        rows=withdrawn.kept,
        rejected=_fewer(StageCounts(**manifest["rejected"]), rejections),
        funnel=funnel,
        build=replace(build, opt_out=contents.opt_out.digest),
        origin=origin,
    )


def _fewer(counts: StageCounts, number: int) -> StageCounts:
    code = Reason.OPTED_OUT.value
    dropped = {**counts.dropped, code: counts.dropped.get(code, 0) + number} if number else counts.dropped
    return replace(counts, kept=counts.kept - number, dropped=dict(sorted(dropped.items())))
