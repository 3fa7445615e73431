"""Gates: the checks that a dataset folder must pass before it is published.

Each gate reads the files themselves, since a folder may have been changed, mixed or built by another release.
"""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
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
from kernelquarry.transforms.targets import TARGETS

from .sign import SIGNATURE, is_signed

log = logging.getLogger(__name__)

_SHOWN = 5  # problems of one gate that are listed; the rest are counted


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a dataset folder."""

    folder: Path
    manifest: dict[str, Any]
    rows: dict[str, tuple[Published, ...]]  # by config
    opt_out: OptOut
    uncompared: bool = False  # publish even if rows were compared with no benchmark

    @property
    def all_rows(self) -> Iterator[Published]:
        return chain.from_iterable(self.rows.values())


def read_contents(folder: Path, opt_out: Path | None = None, uncompared: bool = False) -> Contents:
    """Read a dataset folder. `opt_out`: a list of opt-outs in addition to the shipped one.

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
        raise UserError(f"{folder / MANIFEST} is from another release: write the dataset again with this release")
    rows = {config.name: tuple(read_config(folder, config.name, config.record)) for config in CONFIGS}
    rows = {name: config_rows for name, config_rows in rows.items() if config_rows}
    return Contents(folder, manifest, rows, read_opt_out(opt_out), uncompared)


def check(contents: Contents) -> list[str]:
    """One line for each reason why the dataset may not be published."""
    problems: list[str] = []
    for name, gate in GATES:
        found = list(gate(contents))
        problems += [f"{name}: {problem}" for problem in found[:_SHOWN]]
        if len(found) > _SHOWN:
            problems.append(f"{name}: and {len(found) - _SHOWN} more")
    return problems


def missing_targets(contents: Contents) -> list[str]:
    """One line for each GPU architecture of a release for which some pairs were not compiled."""
    pairs = [row for row in contents.rows.get("pairs", ()) if isinstance(row, Pair)]
    counts = {name: sum(name not in pair.verdict.targets for pair in pairs) for name in TARGETS}
    lines = {name: f"{lacking} of {len(pairs)} pairs were not compiled for {name}" for name, lacking in counts.items()}
    return [line for name, line in lines.items() if counts[name]]


def demand(contents: Contents) -> None:
    """Log the problems, and warn of missing targets. Raises: UserError: a gate has found a problem."""
    for missing in missing_targets(contents):
        log.warning("%s: name it under [targets] in the settings of the build", missing)
    problems = check(contents)
    for problem in problems:
        log.error(problem)
    if problems:
        raise UserError(f"{contents.folder} may not be published: see the problems above")


def _files(contents: Contents) -> Iterator[str]:
    """The folder holds exactly the files of `manifest.json`, with the same digests; a signature fits."""
    folder, digests = contents.folder, contents.manifest["files"]
    present = published_files(folder).keys()
    yield from (f"{name} is missing" for name in sorted(digests.keys() - present))
    yield from (f"{name} is not in the manifest" for name in sorted(present - digests.keys() - {MANIFEST, SIGNATURE}))
    for name in sorted(digests.keys() & present):
        if digest(folder / name) != digests[name]:
            yield f"{name} differs from the manifest: it was changed after it was written"
    if SIGNATURE in present and not is_signed(folder / MANIFEST):
        yield f"{SIGNATURE} does not match the manifest: sign it again with --sign, or delete it"


def _counts(contents: Contents) -> Iterator[str]:
    """The shards hold as many rows as the manifest says, and no row twice."""
    counts = {name: dict(Counter(row.split for row in rows)) for name, rows in contents.rows.items()}
    if counts != contents.manifest["rows"]:
        yield f"the manifest counts {contents.manifest['rows']}, the shards hold {counts}"
    if "pairs" not in counts:
        yield "there is no pair"
    for name, rows in contents.rows.items():
        for id, times in Counter(row.id for row in rows).items():
            if times > 1:
                yield f"{id} is in {name} {times} times"


def _ids(contents: Contents) -> Iterator[str]:
    """Ids match the content of the rows."""
    for row in contents.all_rows:
        if (expected := _content_id(row)) not in ("", row.id):
            yield f"{row.id}: its content has the id {expected}"


def _content_id(row: Published) -> str:
    """The id that follows from the content; "" for records whose id has another rule."""
    if isinstance(row, Rejection):
        return rejection_id(row.python_code, row.triton_code)
    if type(row) is Pair:
        return pair_id(row.python_code, row.triton_code)
    if isinstance(row, Example | Exercise | Conversation):
        return chat_id(row.id.partition("_")[0], [(message.role, message.content) for message in row.messages])
    return ""


def _verified(contents: Contents) -> Iterator[str]:
    """Every pair ran within its tolerances, with launches and impostors, and derived rows name one of these pairs."""
    for row in contents.all_rows:
        if isinstance(row, Pair) and (problem := _verdict_problem(row)):
            yield f"{row.id}: {problem}"
    pairs = {row.id for row in contents.rows.get("pairs", ())}
    for row in contents.all_rows:
        if isinstance(row, Chat) and row.pair and row.pair not in pairs:
            yield f"{row.id} is derived from {row.pair}, which is not in pairs"


def _verdict_problem(pair: Pair) -> str:
    verdict = pair.verdict
    if not {Tier.INTERPRETED, Tier.EXECUTED} & set(verdict.tiers):
        return "its kernel was never run"
    if not verdict.trials or any(not trial.error <= trial.tolerance for trial in verdict.trials):
        return "a trial exceeds its tolerance, or there is no trial"
    if not verdict.launched_kernels or not verdict.impostors:
        return "no launch was recorded, or no impostor was tried"
    if pair.purity is Purity.PURE and verdict.written != 1:
        return f"it is labelled pure, but kernels wrote only {verdict.written:.0%} of its outputs"
    return ""


def _licences(contents: Contents) -> Iterator[str]:
    """Licences are permissive, the build was not `--private`, and no model's terms forbid training."""
    if contents.manifest["build"].get("settings", {}).get("licence", {}).get("private"):
        yield "the build is private: its sources may be of any licence: build again with --licence in another --out"
    for row in contents.all_rows:
        if not is_permissive(row.licence.spdx):
            yield f"{row.id} has the licence {row.licence.spdx}, which is not permissive"
        for made in _distillations(row):
            if made.terms is TermsClass.FORBIDS:
                yield f"{row.id} was written by {made.model}, whose terms forbid training ({made.terms_source})"


def _distillations(row: Published) -> Iterator[Distillation]:
    if isinstance(row, Row):
        yield from row.distillation
    if isinstance(row, Pair):
        yield from (explanation.distillation for explanation in row.explanations)


def _contamination(contents: Contents) -> Iterator[str]:
    """Rows were compared with benchmarks, and no row overlaps one."""
    if REPORT not in contents.manifest["files"]:
        yield f"{REPORT} is missing: it lists the benchmarks that rows were compared with"
    if not (contents.uncompared or contents.manifest["build"].get("benchmarks")):
        yield (
            "rows were compared with no benchmark: make an index with `kernelquarry index-benchmarks` and build again, "
            "or publish with --uncompared"
        )
    removed = {row.code_sha256 for row in contents.rows.get("contaminated", ()) if isinstance(row, Contamination)}
    for row in contents.all_rows:
        if isinstance(row, Row | Exercise) and sha256(row.python_code) in removed:
            yield f"{row.id} overlaps a benchmark: decontaminate dropped its module"


def _splits(contents: Contents) -> Iterator[str]:
    """A cluster is in one split, across all configs."""
    splits_of: dict[str, set[str]] = defaultdict(set)
    for row in contents.all_rows:
        splits_of[row.cluster].add(row.split)
    for cluster, splits in sorted(splits_of.items()):
        if not cluster:
            yield "a row has no cluster"
        elif len(splits) > 1:
            yield f"{cluster} is in {' and '.join(sorted(splits))}"


def _opt_outs(contents: Contents) -> Iterator[str]:
    """No row comes from an author who opted out."""
    for row in contents.all_rows:
        if (objection := opted_out(row, contents.opt_out)) is not None:
            yield f"{row.id}: {objection.evidence}: remove it with `kernelquarry withdraw`"


def opted_out(row: Published, opt_out: OptOut) -> Objection | None:
    """The objection to a row whose source or text is on the opt-out list."""
    text = ""
    if isinstance(row, Row):
        text = f"{row.python_code}\n{row.triton_code}"
    elif isinstance(row, Example | Exercise | Conversation):
        text = "\n".join(message.content for message in row.messages)
    return opt_out(row.source, text)


def _secrets(contents: Contents) -> Iterator[str]:
    """Nothing looks like a credential."""
    check = Secrets()
    for row in contents.all_rows:
        if isinstance(row, Row) and (objection := check(row)) is not None:
            yield f"{row.id}: {objection.evidence}"


def _card(contents: Contents) -> Iterator[str]:
    """The Hub's client and `datasets` understand the card's header, and its links work."""
    path = contents.folder / CARD
    if path.exists():
        yield from lint_card(contents.folder, path.read_text(encoding="utf-8"))


def _metadata(contents: Contents) -> Iterator[str]:
    """The machine-readable metadata names the same shards, with the same digests, and the same configs."""
    path = contents.folder / CROISSANT
    if not path.exists():
        return
    document = json.loads(path.read_bytes())
    named = {file["contentUrl"]: file["sha256"] for file in document["distribution"] if "contentUrl" in file}
    if named != {name: sha for name, sha in contents.manifest["files"].items() if name.startswith("data/")}:
        yield "its files differ from those of the manifest"
    if [record_set["name"] for record_set in document["recordSet"]] != list(contents.rows):
        yield "its record sets differ from the configs"


Gate = Callable[[Contents], Iterator[str]]
GATES: tuple[tuple[str, Gate], ...] = (
    ("files", _files),
    ("rows", _counts),
    ("ids", _ids),
    ("verification", _verified),
    ("licences", _licences),
    ("contamination", _contamination),
    ("splits", _splits),
    ("opt-out", _opt_outs),
    ("secrets", _secrets),
    ("card", _card),
    ("croissant", _metadata),
)
