"""Write `example.md`: the shortest right answer of an evaluation and its module, or why no answer is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.schema.files import write_text

from .evaluate import EvaluationRun
from .problems import AnyProblem, Problem

_REASONS = 3  # most that are named


def example(problems: Sequence[AnyProblem], run: EvaluationRun) -> str:
    """Markdown: one right kernel with its module, or the most frequent reasons and the first failure."""
    modules = {problem.id: problem.row.python_code for problem in problems if isinstance(problem, Problem)}
    codes = {(answer.problem, answer.sample): read_answer(answer.text) for answer in run.answers}
    right = [score for score in run.scores if not score.why and score.problem in modules]
    if right:
        best = min(right, key=lambda score: (len(codes[score.problem, score.sample]), score.problem, score.sample))
        lines = [f"{len(right)} of {len(run.scores)} answers are right. The shortest of them, for this module:", ""]
        lines += [*_code(modules[best.problem]), "the model wrote:", "", *_code(codes[best.problem, best.sample])]
        return "\n".join(lines)
    reasons = Counter(score.why for score in run.scores).most_common(_REASONS)
    named = ", ".join(f"{why} ({number})" for why, number in reasons)
    return f"**None of {len(run.scores)} answers is right.** Most frequent reasons: {named}.\n"


def _code(text: str) -> list[str]:
    return ["```python", text.strip(), "```", ""]


def write_example(folder: Path, problems: Sequence[AnyProblem], run: EvaluationRun) -> None:
    write_text(folder / "example.md", example(problems, run))
