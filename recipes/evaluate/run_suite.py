"""One evaluation from its settings to its files: suite, answers, scores, results and the copying check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelquarry.pipeline.check.kernelbench import LEVELS
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.recipes.config import EvaluationSection
from kernelquarry.recipes.generate.samplers import open_sampler
from kernelquarry.recipes.train.data import load_pairs, trainable

from .answers import write_answers
from .evaluate import EvaluationRun, evaluate
from .nearest import nearest_rows, write_nearest
from .problems import DATASET_SUITES, OWN_SUITES, AnyProblem, read_suite, with_short_prompts
from .results import Results, summarise, write_results
from .right_answer import write_example
from .training_data import check_unseen


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """The settings of one evaluation."""

    model: str  # as `resolve` takes it, or its name at `endpoint`
    name: str  # of the model in the results
    suite: str
    source: str  # see `read_suite`
    folder: Path
    section: EvaluationSection
    levels: Sequence[int] = ()
    endpoint: str = ""
    chat: str = ""
    base: str = ""  # model of an adapter, if it is not where the adapter says
    held_out: float = 0.0
    trained_on: str = ""  # datasets, for the copying check and the overlap with KernelBench; "": `source`, if it is one
    end: float = math.inf  # time of `time.monotonic()` at which to stop
    answers_only: bool = False  # write answers, and leave scoring to a later call


def run_suite(job: EvaluationJob, settings: SandboxSettings) -> tuple[list[Results], bool]:
    """Evaluate, and write results for all problems, each level and each label.

    Returns: the results so far, and True if the evaluation is done.
    Raises: UserError.
    """
    section = job.section
    if job.suite not in OWN_SUITES:
        check_unseen(job.model, job.suite, job.levels or LEVELS)
    with Sandbox(settings) as sandbox:
        limit = 0 if section.prompt_tokens else section.modules
        problems = read_suite(job.suite, job.source, job.levels or LEVELS, limit, sandbox, job.held_out)
        device = sandbox.gpus.description.name if sandbox.gpus else "CPU, interpreted"
    sampler = open_sampler(job.model, section, job.endpoint, job.chat, job.base)
    if section.prompt_tokens:
        problems = with_short_prompts(problems, sampler.tokens, section.prompt_tokens, section.modules)
    if job.answers_only:
        job.folder.mkdir(parents=True, exist_ok=True)
        written = write_answers(job.folder / "answers.jsonl", problems, section.samples, sampler, job.end)
        return [], sum(1 for _ in written) == len(problems) * section.samples
    timed = section.timed and bool(settings.gpus)
    run = evaluate(problems, sampler, section.samples, job.folder, settings, timed, section.weaker_checks, job.end)
    if not run.answers:
        return [], run.done
    trained = _training_rows(job)
    nearest = nearest_rows(run.answers, run.scores, trained)
    if trained:
        write_nearest(job.folder / "nearest.jsonl", nearest)
    if trained and job.suite == "kernelbench":
        from .overlap import check_overlap, write_overlap

        folders = [Path(name) for name in job.trained_on.split(",")]
        write_overlap(job.folder, check_overlap([problem.id for problem in problems], trained, folders))
    write_example(job.folder, problems, run)
    sampling = f"temperature {section.temperature:g}, top_p {section.top_p:g}"
    results = [
        summarise(job.name, job.suite, group, sampling, device, run, ids, section.weaker_checks, nearest)
        for group, ids in _groups(problems, run).items()
    ]
    write_results(job.folder, results)
    return results, run.done


def _training_rows(job: EvaluationJob) -> list[Pair]:
    dataset = job.trained_on or (job.source if job.suite in DATASET_SUITES else "")
    if not dataset:
        return []
    return [pair for pair in trainable(load_pairs(dataset, job.held_out)) if pair.split == "train"]


def _groups(problems: Sequence[AnyProblem], run: EvaluationRun) -> dict[str, list[str]]:
    """Ids of the problems with answers by group: each level, then each label."""
    answered = {answer.problem for answer in run.answers}
    groups: dict[str, list[str]] = {}
    for names in (lambda problem: (problem.level,), lambda problem: getattr(problem, "labels", ())):
        for problem in problems:
            if problem.id in answered:
                for name in names(problem):
                    groups.setdefault(name, []).append(problem.id)
    return groups
