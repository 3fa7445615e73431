"""What must hold of a dataset folder before it is published. Each gate looks at the files themselves: that the pipeline
made them is no reason to believe them, since they may have been changed, mixed or built by another release.
"""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelquarry.filters.objection import Objection
from kernelquarry.filters.optout import OptOut, read_opt_out
from kernelquarry.filters.secrets import Secrets
from kernelquarry.filters.spdx import is_permissive
from kernelquarry.pipeline.dataset.cardlint import lint_card
from kernelquarry.pipeline.dataset.configs import CONFIGS, Published
from kernelquarry.pipeline.dataset.contaminated import REPORT
from kernelquarry.pipeline.dataset.rows import read_config
from kernelquarry.pipeline.dataset.write_dataset import CARD, CROISSANT, MANIFEST, published_files
from kernelquarry.pipeline.schema.chats import Chat, Conversation, Example, Exercise
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest
from kernelquarry.pipeline.schema.ids import chat_id, pair_id, rejection_id, sha256
from kernelquarry.pipeline.schema.provenance import Distillation, TermsClass
from kernelquarry.pipeline.schema.records import Contamination, Pair, Purity, Rejection, Row, Tier

from .sign import SIGNATURE, is_signed

log = logging.getLogger(__name__)

_SHOWN = 5  # problems of one gate that are told; the rest are counted


@dataclass(frozen=True, slots=True)
class Contents:
    """A dataset folder, read."""

    folder: Path
    manifest: dict[str, Any]
    rows: dict[str, tuple[Published, ...]]  # by config
    opt_out: OptOut
    uncompared: bool = False  # it may be published though it was compared with no benchmark


def read_contents(folder: Path, opt_out: Path | None = None, uncompared: bool = False) -> Contents:
    """`opt_out` is a list beside the shipped one.

    Raises: UserError: there is no dataset, or its manifest or a shard is damaged.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise UserError(f"{folder} holds no dataset: make one with `kernelquarry dataset`") from None
    except ValueError:
        raise UserError(
            f"{folder / MANIFEST} is damaged: write the dataset again with `kernelquarry dataset`"
        ) from None
    if not isinstance(manifest, dict) or not {"files", "rows", "origin"} <= manifest.keys():
        raise UserError(f"{folder / MANIFEST} is of another release: write the dataset again with this one")
    rows: dict[str, tuple[Published, ...]] = {
        each.name: tuple(read_config(folder, each.name, each.record)) for each in CONFIGS
    }
    filled = {name: found for name, found in rows.items() if found}
    return Contents(folder, manifest, filled, read_opt_out(opt_out), uncompared)


def check(contents: Contents) -> list[str]:
    """Why the dataset may not be published, a line each; none: it may."""
    problems: list[str] = []
    for name, gate in GATES:
        found = list(gate(contents))
        problems += [f"{name}: {problem}" for problem in found[:_SHOWN]]
        if len(found) > _SHOWN:
            problems.append(f"{name}: and {len(found) - _SHOWN} more")
    return problems


def demand(contents: Contents) -> None:
    """Raises: UserError: a gate refuses; the problems are logged."""
    problems = check(contents)
    for problem in problems:
        log.error(problem)
    if problems:
        raise UserError(f"{contents.folder} may not be published: the lines above say why")


def _files(contents: Contents) -> Iterator[str]:
    """The files are those that the manifest names, to the bit."""
    folder, named = contents.folder, contents.manifest["files"]
    there = published_files(folder).keys()
    yield from (f"{name} is missing" for name in sorted(named.keys() - there))
    yield from (f"{name} is not in the manifest" for name in sorted(there - named.keys() - {MANIFEST, SIGNATURE}))
    for name in sorted(named.keys() & there):
        if digest(folder / name) != named[name]:
            yield f"{name} is not what the manifest says: it was changed after it was written"
    if SIGNATURE in there and not is_signed(folder / MANIFEST):
        yield f"{SIGNATURE} is not of this manifest: sign it again with --sign, or delete it"


def _counts(contents: Contents) -> Iterator[str]:
    """As many rows as the manifest says, and none twice."""
    found = {name: dict(Counter(row.split for row in rows)) for name, rows in contents.rows.items()}
    if found != contents.manifest["rows"]:
        yield f"the manifest counts {contents.manifest['rows']}, the shards hold {found}"
    if "pairs" not in found:
        yield "there is no pair"
    for name, rows in contents.rows.items():
        for id, times in Counter(row.id for row in rows).items():
            if times > 1:
                yield f"{id} is in {name} {times} times"


def _ids(contents: Contents) -> Iterator[str]:
    """Ids follow from what the rows hold."""
    for row in _every(contents):
        if (expected := _content_id(row)) not in ("", row.id):
            yield f"{row.id} holds what has the id {expected}"


def _content_id(row: Published) -> str:
    """ "" for records that have another rule."""
    if isinstance(row, Rejection):
        return rejection_id(row.python_code, row.triton_code)
    if type(row) is Pair:
        return pair_id(row.python_code, row.triton_code)
    if isinstance(row, Example | Exercise | Conversation):
        return chat_id(row.id.partition("_")[0], [(message.role, message.content) for message in row.messages])
    return ""


def _verified(contents: Contents) -> Iterator[str]:
    """Every pair has a verdict that holds, and what is made of pairs is made of these."""
    for row in _every(contents):
        if isinstance(row, Pair) and (problem := _verdict_problem(row)):
            yield f"{row.id}: {problem}"
    pairs = {row.id for row in contents.rows.get("pairs", ())}
    for row in _every(contents):
        if isinstance(row, Chat) and row.pair and row.pair not in pairs:
            yield f"{row.id} is made of {row.pair}, which is not in pairs"


def _verdict_problem(pair: Pair) -> str:
    verdict = pair.verdict
    if not {Tier.INTERPRETED, Tier.EXECUTED} & set(verdict.tiers):
        return "nothing ran its kernel"
    if not verdict.trials or any(not trial.error <= trial.tolerance for trial in verdict.trials):
        return "a trial is not within its tolerance, or there is none"
    if not verdict.launched_kernels or not verdict.impostors:
        return "no launch was seen, or no impostor tried"
    if pair.purity is Purity.PURE and verdict.written != 1:
        return f"it is called pure, and kernels wrote {verdict.written:.0%} of its outputs"
    return ""


def _licences(contents: Contents) -> Iterator[str]:
    """Sources may be given on, and what models wrote may be trained on."""
    for row in _every(contents):
        if not is_permissive(row.licence.spdx):
            yield f"{row.id} is under {row.licence.spdx}"
        for made in _distilled(row):
            if made.terms is TermsClass.FORBIDS:
                yield f"{row.id} is by {made.model}, whose terms forbid it ({made.terms_source})"


def _distilled(row: Published) -> Iterator[Distillation]:
    if isinstance(row, Row):
        yield from row.distillation
    if isinstance(row, Pair):
        yield from (explanation.distillation for explanation in row.explanations)


def _contamination(contents: Contents) -> Iterator[str]:
    """Rows were compared with benchmarks, and what overlaps one is in no config."""
    if REPORT not in contents.manifest["files"]:
        yield f"{REPORT} is not there: nothing tells what rows were compared with"
    if not (contents.uncompared or contents.manifest["build"].get("benchmarks")):
        yield (
            "rows were compared with no benchmark: make an index with `kernelquarry index-benchmarks` and build again, "
            "or publish with --uncompared"
        )
    taken_out = {row.code_sha256 for row in contents.rows.get("contaminated", ()) if isinstance(row, Contamination)}
    for row in _every(contents):
        if isinstance(row, Row | Exercise) and sha256(row.python_code) in taken_out:
            yield f"{row.id} overlaps a benchmark, and was taken out"


def _splits(contents: Contents) -> Iterator[str]:
    """A cluster is in one split, in all configs alike."""
    places: dict[str, set[str]] = defaultdict(set)
    for row in _every(contents):
        places[row.cluster].add(row.split)
    for cluster, splits in sorted(places.items()):
        if not cluster:
            yield "a row has no cluster"
        elif len(splits) > 1:
            yield f"{cluster} is in {' and '.join(sorted(splits))}"


def _wishes(contents: Contents) -> Iterator[str]:
    """No row of whoever opted out."""
    for row in _every(contents):
        if (objection := opted_out(row, contents.opt_out)) is not None:
            yield f"{row.id}: {objection.evidence}: take it out with `kernelquarry withdraw`"


def opted_out(row: Published, opt_out: OptOut) -> Objection | None:
    """Whether the row is of somebody who does not want it."""
    return opt_out(row.source, _words(row))


def _words(row: Published) -> str:
    if isinstance(row, Row):
        return f"{row.python_code}\n{row.triton_code}"
    if isinstance(row, Example | Exercise | Conversation):
        return "\n".join(message.content for message in row.messages)
    return ""


def _secrets(contents: Contents) -> Iterator[str]:
    check = Secrets()
    for row in _every(contents):
        if isinstance(row, Row) and (objection := check(row)) is not None:
            yield f"{row.id}: {objection.evidence}"


def _card(contents: Contents) -> Iterator[str]:
    path = contents.folder / CARD
    if path.exists():
        yield from lint_card(contents.folder, path.read_text(encoding="utf-8"))


def _metadata(contents: Contents) -> Iterator[str]:
    """Croissant names the same shards, with the same digests, and all configs."""
    path = contents.folder / CROISSANT
    if not path.exists():
        return
    document = json.loads(path.read_bytes())
    named = {file["contentUrl"]: file["sha256"] for file in document["distribution"] if "contentUrl" in file}
    if named != {name: found for name, found in contents.manifest["files"].items() if name.startswith("data/")}:
        yield "its files are not those of the manifest"
    if [found["name"] for found in document["recordSet"]] != list(contents.rows):
        yield "its record sets are not the configs"


def _every(contents: Contents) -> Iterator[Published]:
    for rows in contents.rows.values():
        yield from rows


Gate = Callable[[Contents], Iterator[str]]
GATES: tuple[tuple[str, Gate], ...] = (
    ("files", _files),
    ("rows", _counts),
    ("ids", _ids),
    ("verification", _verified),
    ("licences", _licences),
    ("contamination", _contamination),
    ("splits", _splits),
    ("opt-out", _wishes),
    ("secrets", _secrets),
    ("card", _card),
    ("croissant", _metadata),
)
