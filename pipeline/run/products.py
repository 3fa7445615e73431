"""The products of a run: its pairs, annotated, then written as dataset and report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.dataset.configs import Published
from kernelquarry.pipeline.dataset.contaminated import contaminated, describe_benchmarks, removed
from kernelquarry.pipeline.dataset.rejected import Rejected, collect_rejected
from kernelquarry.pipeline.dataset.teacher_stats import TeacherStats, summarise_answers
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.graph import BACKWARD, ORDER, STAGES, VARIANTS, Stage, before, named
from kernelquarry.pipeline.report.example import choose_example
from kernelquarry.pipeline.report.report import render_report
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.files import write_text
from kernelquarry.pipeline.schema.flatten import flatten_verified
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import Candidate, Contamination, Pair, Probed, Rejection, Verified
from kernelquarry.pipeline.schema.wording import counted
from kernelquarry.transforms.decontaminate import read_index
from kernelquarry.transforms.distill import annotate_variants

from .run import Run


@dataclass(frozen=True, slots=True)
class Products:
    """Paths of the products, and their counts."""

    dataset: Path
    report: Path
    rows: dict[str, int]  # split -> number
    funnel: tuple[StageCounts, ...]
    benchmarks: tuple[str, ...]  # that modules were compared with
    example: Pair | None  # to show

    @property
    def mined(self) -> int:
        """The number of modules that were mined."""
        return next(line.kept for line in self.funnel if line.stage == "mine")

    def summary(self, did: str) -> str:
        """Four lines for the end of a build; `did` says which stages ran."""
        splits = ", ".join(f"{n:,} {split}" for split, n in self.rows.items())
        pairs = counted(sum(self.rows.values()), "verified pair")
        return (
            f"{pairs} ({splits}) of {counted(self.mined, 'module')} mined; {did}\n"
            f"  against  {'; '.join(self.benchmarks) or 'no benchmark: see kernelquarry index-benchmarks'}\n"
            f"  dataset  {self.dataset}    load_dataset({str(self.dataset)!r}, 'pairs')\n"
            f"  report   {self.report}"
        )


def write_products(run: Run) -> Products:
    """Annotate the pairs of the last stage, then write report and dataset. The same run gives the same bytes.

    Raises: UserError: there is no pair; ConservationError.
    """
    pairs = annotate(run)
    funnel, corpus = run.counts(), run.corpus
    dataset = run.root / "dataset"
    benchmarks = _benchmarks(run)
    candidates = rejected(run)
    report = write_report(run, pairs, candidates.rows)
    build = Build(corpus.name, corpus.digests(), run.opt_out.digest, benchmarks, asdict(run.settings))
    other_configs: dict[str, Sequence[Published]] = {
        "backward": rows_of(run, BACKWARD),
        "variants": [row for stage in VARIANTS for row in rows_of(run, stage)],
        "contaminated": contaminated_rows(run),
    }
    manifest = write_dataset(dataset, pairs, candidates, funnel, build, other_configs)
    described = tuple(describe_benchmarks(benchmarks))
    return Products(dataset, report, manifest.rows["pairs"], manifest.funnel, described, choose_example(pairs))


def write_report(run: Run, pairs: Sequence[Pair], rejections: Sequence[Rejection]) -> Path:
    """Write the report of the stages that have run, with their rows, if there are any."""
    report = run.root / "report.html"
    described = tuple(describe_benchmarks(_benchmarks(run)))
    modules = removed(*_decontaminated(run))
    text = render_report(
        run.corpus.name,
        pairs,
        run.counts(),
        losses(run),
        teacher_stats(run),
        described,
        modules,
        rejections,
        str(run.root / "dataset"),
    )
    write_text(report, text)
    return report


def _benchmarks(run: Run) -> tuple[dict[str, Any], ...]:
    return tuple(asdict(read_index(path)[0]) for path in run.indexes)


def annotate(run: Run) -> list[Pair]:
    """The pairs of the last stage, each marked with its place among the kernels of its module."""
    return annotate_variants(pair for path in run.directory(STAGES[-1]).kept for pair in read_records(path, Pair))


def rows_of(run: Run, stage: Stage) -> list[Published]:
    """The rows that a stage made."""
    kind: type[Published] = stage.output_type
    return [row for path in run.directory(stage).kept for row in read_records(path, kind)]


def losses(run: Run) -> Iterator[DropRecord]:
    """The records that were dropped or errored, stage by stage."""
    for stage in ORDER:
        path = run.directory(stage).lost
        if path.exists():
            yield from read_records(path, DropRecord)


def rejected(run: Run) -> Rejected:
    """The candidates that verify dropped, and those of models. Raises: ConservationError."""
    verify = named("verify")
    paths = [path for stage in (verify, named("distill")) if (path := run.directory(stage).lost).exists()]
    if not paths:
        return Rejected()
    candidates = (
        candidate for shard in run.directory(before(verify)).kept for candidate in read_records(shard, Candidate)
    )
    return collect_rejected(candidates, (loss for path in paths for loss in read_records(path, DropRecord)))


def unscreened(run: Run) -> Iterator[Pair]:
    """The rows that entered the stage `screen`."""
    for shard in run.directory(before(named("screen"))).kept:
        yield from (flatten_verified(verified) for verified in read_records(shard, Verified))


def teacher_stats(run: Run) -> TeacherStats | None:
    """Answers, verified answers and costs of each teacher; None if no model was asked."""
    directory = run.directory(named("distill"))
    kept = (verified for shard in directory.kept for verified in read_records(shard, Verified))
    lost = read_records(directory.lost, DropRecord) if directory.lost.exists() else iter(())
    return summarise_answers(kept, lost)


def contaminated_rows(run: Run) -> tuple[Contamination, ...]:
    """Rows, without text, of the modules that decontaminate removed."""
    return contaminated(*_decontaminated(run))


def _decontaminated(run: Run) -> tuple[Iterator[Probed], Iterator[DropRecord]]:
    """The modules that entered decontaminate, and those that it dropped."""
    stage = named("decontaminate")
    path = run.directory(stage).lost
    drops = read_records(path, DropRecord) if path.exists() else iter(())
    return (one for shard in run.directory(before(stage)).kept for one in read_records(shard, Probed)), drops
