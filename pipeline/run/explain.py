"""Why a stage would run again, and how much of its work the store still has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from kernelquarry.pipeline.graph import ALL, Stage
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.runtime.store import Store, result_key
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.errors import UserError

from .build import Asked, Run, ask, fingerprint


def explain_cache(run: Run) -> Iterator[str]:
    """A line a stage that has run, and lines that say what changed since: code, versions, settings, input."""
    for stage in ALL:
        manifest = run.manifest(stage)
        if manifest is None:
            continue
        asked = _asked(run, stage)
        changes = list(_changes(run, stage, manifest, asked))
        stored = _stored(run, stage, asked) if changes and isinstance(asked, Asked) else ""
        yield f"{stage.name}: {'would run again' if changes else 'up to date'}{stored}"
        yield from (f"  {change}" for change in changes)


def _asked(run: Run, stage: Stage) -> Asked | UserError:
    """What the stage would be asked now, or why it cannot be."""
    try:
        return ask(run, stage)
    except UserError as error:
        return error


def _changes(run: Run, stage: Stage, manifest: StageManifest, asked: Asked | UserError) -> Iterator[str]:
    now = fingerprint(run, stage)
    if stage.asks and run.workplace.teaching is None and manifest.made_by is not None:
        now = replace(now, asks=manifest.made_by.asks)  # nobody said which teachers would be asked
    if manifest.key != now.key:
        if manifest.made_by is None:
            yield "code, a version or a setting changed; it was made before their digests were written down"
        else:
            yield from manifest.made_by.differences(now)
    if isinstance(asked, UserError):
        yield f"input: {asked}"
        return
    inputs = asked.inputs
    for name in sorted({*inputs, *manifest.inputs}):
        if name not in inputs:
            yield f"input {name} is gone"
        elif name not in manifest.inputs:
            yield f"input {name} is new"
        elif inputs[name] != manifest.inputs[name]:
            yield f"input {name} changed"
    if changed := run.directory(stage).changed(manifest):
        yield f"output {changed.name} is missing or changed since it was written"
    if errors := sum(count.total_errored for count in manifest.counts):
        yield f"{errors} records errored, and are tried again"


def _stored(run: Run, stage: Stage, asked: Asked) -> str:
    """How many of its inputs have a result under their present key."""
    if stage.work is None or stage.takes is None:
        return ", all of it"
    store, name = Store(run.workplace.store), stage.work.stage
    records: Iterator[Any] = chain.from_iterable(read_records(path, stage.takes) for path in asked.shards)
    keys = [result_key(asked.made_by.key, record) for record in records]
    return f", {sum(store.holds(name, key) for key in keys):,} of {len(keys):,} results are stored"
