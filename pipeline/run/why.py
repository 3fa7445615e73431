"""Tell how the stages of a run treated a class, a file or a row, and why a stage kept nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from kernelquarry.pipeline.dataset.rows import shards
from kernelquarry.pipeline.graph import ALL, STAGES, Stage
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.runtime.funnel import explain
from kernelquarry.pipeline.schema.arrow import read_columns
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import printable
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module, Rejection, Row, SourceFile
from kernelquarry.pipeline.schema.wording import counted

from .run import claimed, stage_directory

REMEDIES = {
    Reason.LICENCE_NOT_PERMISSIVE.value: "state the licence with --licence MIT, or build for yourself with --private",
    Reason.NO_MODULE.value: "give files with classes that derive from torch.nn.Module",
    Reason.UNRESOLVED_NAME.value: "give the folder that holds the definition as well",
    Reason.FORBIDDEN_IMPORT.value: "take the part of the class that needs the package out of it",
    Reason.NO_CONSTRUCTOR_ARGUMENTS.value: "give the constructor's parameters defaults or type annotations",
    Reason.NO_WORKLOAD.value: "check that forward runs on small tensors, and annotate parameters that are no tensors",
    Reason.CONTAMINATED.value: "docs/guides/decontamination.md says what counts as an overlap",
}
_REASONS, _EXAMPLES, _EVIDENCE, _SUBJECTS = 5, 3, 240, 10  # how many are shown; characters of evidence


@dataclass(frozen=True, slots=True)
class Loss:
    """A record that a stage dropped, or on which it errored."""

    id: str
    stage: str  # line of the funnel
    status: str
    reason: str
    evidence: str

    @property
    def short_evidence(self) -> str:
        text = printable(" ".join(self.evidence.split()))
        return text if len(text) <= _EVIDENCE else f"{text[:_EVIDENCE]}..."


@dataclass(slots=True)
class Subject:
    """A file or a class of the corpus, by its place: `package@revision/path`, with `:Class` for a class."""

    place: str
    ids: list[str] = field(default_factory=list)  # of its module and its rows
    kept_by: list[str] = field(default_factory=list)  # stages
    losses: list[Loss] = field(default_factory=list)
    rows: dict[str, str] = field(default_factory=dict)  # id of a row in the dataset -> its split or "rejected"

    @property
    def file(self) -> str:
        """The place of the class's file; "" for a file."""
        folder, slash, name = self.place.rpartition("/")
        path, colon, _ = name.rpartition(":")
        return f"{folder}{slash}{path}" if colon else ""

    @property
    def name(self) -> str:
        """The name of the class, or of the file."""
        name = self.place.rpartition("/")[2]
        return name.rpartition(":")[2].partition("@")[0] if self.file else name

    def matches(self, name: str) -> bool:
        """True for its name, the end of its place, or the start of one of its ids."""
        is_id = "_" in name and any(id.startswith(name) for id in self.ids)
        return is_id or name in (self.name, self.place) or self.place.endswith(f"/{name}")

    @property
    def end(self) -> str:
        """How it left the pipeline, in few words."""
        if self.rows:
            return f"row {', '.join(self.rows)}"
        if self.losses:
            last = self.losses[-1]
            return f"{last.status} by {last.stage}: {last.reason}"
        return f"kept by {self.kept_by[-1]}"


def why(root: Path, name: str) -> Iterator[str]:
    """Lines about each class and file of the run in `root` that `name` means. Raises: UserError: it means none."""
    claimed(root)
    subjects = _read_subjects(root)
    found = sorted((each for each in subjects.values() if each.matches(name)), key=lambda each: each.place)
    if not found:
        raise UserError(f"{root} has no class, file or row {name}: {_advice(name, subjects)}")
    owners = {id: each for each in subjects.values() for id in each.ids}
    for subject in found[:_SUBJECTS]:
        yield from _describe(subject, root, owners)
        if not subject.file:
            classes = [each for each in subjects.values() if each.file == subject.place]
            yield from (f"  class    {each.name}: {each.end}" for each in classes)
    if len(found) > _SUBJECTS:
        yield f"{len(found) - _SUBJECTS} more have that name: give one of them as package@revision/path:Class"


def without_pair(root: Path) -> Iterator[str]:
    """Lines about the classes of a finished run that gave no pair, if there are a few; else none."""
    subjects = _read_subjects(root).values()
    lost = sorted((each for each in subjects if each.file and not each.rows), key=lambda each: each.place)
    if 0 < len(lost) <= _SUBJECTS:
        yield f"{counted(len(lost), 'class')} gave no pair; kernelquarry why NAME --run {root} tells more:"
        yield from (f"  {printable(each.name)}: {each.end}" for each in lost)


def _advice(name: str, subjects: dict[str, Subject]) -> str:
    if close := difflib.get_close_matches(name, {each.name for each in subjects.values() if each.file}, 3):
        return f"similar are {', '.join(close)}"
    unread = [each for each in subjects.values() if not each.file and each.losses]
    dropped = f", and not those of {counted(len(unread), 'dropped file')} such as {unread[0].name}" if unread else ""
    return f"classes that derive from nn.Module are known{dropped}: give a class, a path, or the start of an id"


def explain_empty_stage(root: Path, stage: Stage, manifest: StageManifest) -> tuple[list[str], str]:
    """Why a stage kept nothing: lines with the most frequent reasons and examples, and a line for the error."""
    lost = _losses(root, stage)
    totals = [(line.stage, code, number) for line in manifest.counts for code, number in line.losses()]
    totals.sort(key=lambda total: -total[2])
    lines = []
    for name, code, number in totals[:_REASONS]:
        lines.append(f"{number:,} {code} in {name}: {explain(code)}")
        examples = [loss for loss in lost if (loss.stage, loss.reason) == (name, code)][:_EXAMPLES]
        lines += [f"    {': '.join(filter(None, (printable(loss.id), loss.short_evidence)))}" for loss in examples]
    line = next((each for each in reversed(manifest.counts) if each.entered), manifest.counts[0])
    cause = f"kept none of {counted(line.entered, line.unit)}" if line.entered else f"found no {line.unit}"
    remedy = next((REMEDIES[code] for _, code, _ in totals if code in REMEDIES), f"see `kernelquarry funnel {root}`")
    return lines, f"{stage.name} {cause}, so no pair was kept: {remedy}"


def _describe(subject: Subject, root: Path, owners: dict[str, Subject]) -> Iterator[str]:
    modules = [id for id in subject.ids if id.startswith("mod_")]
    yield printable("  ".join((subject.name, subject.file or subject.place, *modules)))
    if subject.kept_by:
        yield f"  kept     {', '.join(subject.kept_by)}"
    for loss in subject.losses:
        evidence = f": {loss.short_evidence}" if loss.evidence else ""
        yield f"  {loss.status:8} {loss.stage}: {loss.reason}, {explain(loss.reason)}{evidence}"
        if (other := owners.get(loss.evidence.partition(",")[0])) is not None and other is not subject:
            yield f"           that module is {printable(other.name)} of {printable(other.file)}"
        if loss.reason in REMEDIES:
            yield f"  remedy   {REMEDIES[loss.reason]}"
    for id, split in subject.rows.items():
        yield f"  row      {id} ({split}): kernelquarry show {id} --dataset {root / 'dataset'}"
    if subject.file and not (subject.losses or subject.rows):
        last = [stage.name for stage in STAGES].index(subject.kept_by[-1])
        yield f"  next     {STAGES[last + 1].name} has not run yet: kernelquarry {STAGES[last + 1].name} {root}"


def _read_subjects(root: Path) -> dict[str, Subject]:
    """The files and classes of a run, by their place."""
    subjects: dict[str, Subject] = {}
    owners: dict[str, Subject] = {}  # id -> its class
    for stage in ALL:
        for path in stage_directory(root, stage).kept:
            for place, id, split in _identities(path, stage.output_type):
                subject = subjects.setdefault(place, Subject(place))
                if stage.name not in subject.kept_by:
                    subject.kept_by.append(stage.name)
                if id and id not in subject.ids:
                    subject.ids.append(id)
                    owners[id] = subject
                if split and (stage is STAGES[-1] or stage not in STAGES):
                    subject.rows[id] = split
        for loss in _losses(root, stage):
            module = loss.id.partition("/")[0]  # of a model's candidate: `module/request`
            owner = owners.get(loss.id) or owners.get(module)
            (owner or subjects.setdefault(loss.id, Subject(loss.id))).losses.append(loss)
    for path in shards(root / "dataset", "rejected"):
        for place, id, _ in _identities(path, Rejection):
            if place in subjects:  # a dataset of an earlier build may hold others
                subjects[place].ids.append(id)
                subjects[place].rows[id] = "rejected"
    return subjects


def _losses(root: Path, stage: Stage) -> list[Loss]:
    path = stage_directory(root, stage).lost
    names = [each.name for each in fields(Loss)]
    return [Loss(**row) for row in read_columns(path, names)] if path.exists() else []


def _identities(path: Path, record: type) -> Iterator[tuple[str, str, str]]:
    """(place, id, split) of each record of a shard; "" where a record has none."""
    place = ("package", "revision", "path")
    if record is SourceFile:
        for row in read_columns(path, [f"source.{name}" for name in place]):
            yield _file(row["source"]), "", ""
    elif issubclass(record, Row):
        for row in read_columns(path, ["id", "module_name", "split", *(f"source.{name}" for name in place)]):
            yield f"{_file(row['source'])}:{row['module_name']}", row["id"], row["split"]
    else:
        outer = _path_to_module(record)
        columns = [".".join((*outer, name)) for name in ("id", "name", *(f"source.{name}" for name in place))]
        for row in read_columns(path, columns):
            for name in outer:
                row = row[name]
            yield f"{_file(row['source'])}:{row['name']}", row["id"], ""


def _file(source: dict[str, Any]) -> str:
    return f"{source['package']}@{source['revision']}/{source['path']}"


def _path_to_module(record: type) -> tuple[str, ...]:
    """The names of the fields that lead from a record to its module: ("candidate", "probed", "module")."""
    if record is Module:
        return ()
    hints = get_type_hints(record)
    first = fields(record)[0].name  # each stage wraps the record of the stage before, as its first field
    return (first, *_path_to_module(hints[first]))
