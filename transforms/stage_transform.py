"""Base classes of the stages' transforms (`transforms/<stage>/transform.py`), and the context they are made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import apache_beam as beam

from kernelquarry.pipeline.runtime import events
from kernelquarry.pipeline.runtime.apply import ApplyStage, Work
from kernelquarry.pipeline.runtime.fingerprint import Fingerprint
from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.outcome import Outcome
from kernelquarry.pipeline.schema.parts import Part

if TYPE_CHECKING:
    from kernelquarry.filters.optout import OptOut
    from kernelquarry.pipeline.run.run_settings import Settings

    from .distill import DistillConfig
    from .read import Corpus

Counted = tuple[str, Outcome[Any]]  # line of the funnel, and an outcome that it counts


@dataclass(frozen=True, slots=True)
class StageContext:
    """The parts of a run that its stages' transforms are made from."""

    fingerprint: Fingerprint  # code and versions that decide the stage's results
    store: Path  # results of expensive work, by content
    sandbox: SandboxSettings
    settings: Settings
    corpus: Corpus | None = None  # for the first stage alone
    opt_out: OptOut | None = None  # for the first stage alone
    indexes: tuple[Path, ...] = ()  # of benchmarks
    distill: DistillConfig | None = None  # None: no model is asked
    answers: Path = Path("out/cache/answers.sqlite")  # cache of models' answers, shared by runs
    batch: Path | None = None  # folder for the questions of a batch; no model is asked then
    part: Part | None = None  # of the corpus, where a machine reads a part of it
    accelerator: str = ""  # Beam's resource hint for transforms that execute kernels
    extra_records: beam.PTransform | None = None  # records of the stage's `extra_input`


class StageTransform(beam.PTransform):
    """Records of the stage before -> (line of the funnel, outcome) pairs."""

    executes_kernels: ClassVar[bool] = False  # on GPUs, where the run has some
    calls_models: ClassVar[bool] = False
    store_name: ClassVar[str] = ""  # folder of its results in the store; "": it stores none
    needs_all_records: ClassVar[bool] = False  # at once, so that it cannot be done in parts

    @classmethod
    def from_context(cls, context: StageContext) -> Self:
        """The transform for one run."""
        return cls()

    @staticmethod
    def partition_key(record: Any) -> str:
        """Records with equal keys must be in the same part."""
        return str(record.id)

    @classmethod
    def extra_digests(cls, context: StageContext) -> dict[str, str]:
        """Digests of inputs other than the records of the stage before."""
        return {}


class ApplyToEach(StageTransform):
    """A stage that treats its records one by one: `work` says how."""

    work: ClassVar[Work]

    def __init__(self, context: StageContext) -> None:
        super().__init__()
        self._context = context

    def __init_subclass__(cls) -> None:
        cls.store_name = cls.work.name

    @classmethod
    def from_context(cls, context: StageContext) -> Self:
        return cls(context)

    def expand(self, records: beam.PCollection) -> beam.PCollection:
        name = self.work.name
        return records | apply_work(self.work, self._context) | "Tag" >> beam.Map(lambda outcome: (name, outcome))


def apply_work(work: Work, context: StageContext) -> beam.PTransform:
    """The transform that applies `work`, on workers with the accelerator that the run names."""
    apply = ApplyStage(work, context.fingerprint, context.store, context.sandbox)
    return apply.with_resource_hints(accelerator=context.accelerator) if context.accelerator else apply


def report(stage: str, outcome: Outcome[Any]) -> Counted:
    """The outcome with its line of the funnel, logged and shown as progress."""
    events.advance(stage, outcome.id, outcome)
    return stage, outcome
