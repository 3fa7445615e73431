"""Explain why a stage would run again, and how much of its work is in the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from kernelquarry.pipeline.graph import Stage
from kernelquarry.pipeline.runtime.fingerprint import StageManifest
from kernelquarry.pipeline.runtime.store import Store, result_key
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.errors import UserError

from .build import StagePlan, plan_stage
from .run import Run


def explain_cache(run: Run) -> Iterator[str]:
    """One line for each stage that has run, then lines that say what changed: code, versions, settings, input."""
    for stage in run.order:
        manifest = run.manifest(stage)
        if manifest is None:
            continue
        plan = _plan(run, stage)
        changes = list(_changes(run, stage, manifest, plan))
        stored = _stored(run, stage, plan) if changes and isinstance(plan, StagePlan) else ""
        yield f"{stage.name}: {'would run again' if changes else 'up to date'}{stored}"
        yield from (f"  {change}" for change in changes)


def _plan(run: Run, stage: Stage) -> StagePlan | UserError:
    """The plan of the stage as things are now, or why there is none."""
    try:
        return plan_stage(run, stage)
    except UserError as error:
        return error


def _changes(run: Run, stage: Stage, manifest: StageManifest, plan: StagePlan | UserError) -> Iterator[str]:
    now = run.fingerprint(stage)
    if stage.load().calls_models and run.distill is None and manifest.made_by is not None:
        now = replace(now, teachers=manifest.made_by.teachers)  # the command did not name the teachers
    if manifest.key != now.key:
        if manifest.made_by is None:
            yield "code, a version or a setting changed; its manifest does not say which"
        else:
            yield from manifest.made_by.differences(now)
    if isinstance(plan, UserError):
        yield f"input: {plan}"
        return
    inputs = plan.inputs
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


def _stored(run: Run, stage: Stage, plan: StagePlan) -> str:
    """The share of the stage's inputs that have a stored result under the present key, as text."""
    name = stage.load().store_name
    if not name or stage.input_type is None:
        return ", all of it"
    store = Store(run.store)
    records: Iterator[Any] = chain.from_iterable(read_records(path, stage.input_type) for path in plan.shards)
    keys = [result_key(plan.context.fingerprint.key, record) for record in records]
    return f", {sum(store.holds(name, key) for key in keys):,} of {len(keys):,} results are stored"
