"""Results of evaluations: metrics as JSON and Markdown, and a leaderboard of all results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kernelquarry.pipeline.schema.files import write_text

from .answers import Score
from .evaluate import EvaluationRun
from .metrics import Estimate, fast_p, mean_rate, pass_rates
from .nearest import Nearest, describe, shares

_NAME = "results.json"
_CHANNELS = (  # AutoTriton's
    ("TritonBench-G", "tritonbench-g", ""),
    ("TritonBench-T", "tritonbench-t", ""),
    *((f"KernelBench {level}", "kernelbench", f"level {level}") for level in (1, 2, 3)),
)


@dataclass(frozen=True, slots=True)
class Results:
    """Results of one model on one suite, or on one level of it. Its fields are the keys of `results.json`."""

    model: str
    suite: str
    level: str
    problems: int
    samples: int  # of each problem
    sampling: str
    strict: dict[str, Estimate]  # pass@k by our verifier
    others: dict[str, Estimate]  # pass@k by the benchmark's own check; empty without weaker checks
    compiled: Estimate
    fast: dict[str, Estimate]  # fast_p of answers that pass our verifier; empty if nothing was timed
    naive: Estimate | None  # None without weaker checks
    naive_gap: Estimate | None  # answers that pass the naive check and fail our verifier
    why: dict[str, int]  # number of answers by reason, or "verified"
    hacks: dict[str, int]  # number of hacks by class
    tokens: int
    cut: int  # answers that reached the limit of tokens
    device: str
    writing_s: float  # for the whole suite; 0 if it was killed and continued
    judging_s: float  # after the last answer was written
    nearest: dict[str, float] = field(default_factory=dict)  # right answers against the training rows: see nearest.py


def summarise(
    model: str,
    suite: str,
    level: str,
    sampling: str,
    device: str,
    run: EvaluationRun,
    problems: Collection[str],
    weaker_checks: bool = True,
    nearest: Sequence[Nearest] = (),
) -> Results:
    """The results of `run` on the problems with these ids."""
    answers = [answer for answer in run.answers if answer.problem in problems]
    scores = [score for score in run.scores if score.problem in problems]
    by_problem: dict[str, list[Score]] = {}
    for score in sorted(scores, key=lambda score: (score.problem, score.sample)):
        by_problem.setdefault(score.problem, []).append(score)
    groups = list(by_problem.values())
    right = [[not score.why for score in group] for group in groups]
    timed = any(score.speedup for score in scores)
    reasons = Counter(score.why or "verified" for score in scores)
    return Results(
        model=model,
        suite=suite,
        level=level,
        problems=len(groups),
        samples=min(map(len, groups)),
        sampling=sampling,
        strict=pass_rates(right),
        others=pass_rates([[score.others for score in group] for group in groups]) if weaker_checks else {},
        compiled=mean_rate([[score.compiled for score in group] for group in groups]),
        fast=fast_p(right, [[score.speedup for score in group] for group in groups]) if timed else {},
        naive=mean_rate([[score.naive for score in group] for group in groups]) if weaker_checks else None,
        naive_gap=(
            mean_rate([[score.naive and bool(score.why) for score in group] for group in groups])
            if weaker_checks
            else None
        ),
        why=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        hacks=dict(sorted(Counter(score.hack for score in scores if score.hack).items())),
        tokens=sum(answer.tokens for answer in answers),
        cut=sum(answer.cut for answer in answers),
        device=device,
        writing_s=run.writing_s,
        judging_s=run.judging_s,
        nearest=shares([each for each in nearest if each.problem in problems]),
    )


def write_results(folder: Path, results: Sequence[Results]) -> None:
    """Write `results.json` and `results.md` in `folder`."""
    write_text(folder / _NAME, json.dumps([asdict(each) for each in results], indent=1) + "\n")
    write_text(folder / "results.md", render(results))


def read_results(folder: Path) -> list[Results]:
    """All results below a folder, by suite, level and model."""
    results = [_parse(entry) for path in sorted(folder.rglob(_NAME)) for entry in json.loads(path.read_text())]
    return sorted(results, key=lambda each: (each.suite, each.level, each.model))


def _parse(entry: Mapping[str, object]) -> Results:
    def parse(value: object) -> object:
        if isinstance(value, dict) and value.keys() == {"value", "low", "high"}:
            return Estimate(**value)
        return {key: parse(inner) for key, inner in value.items()} if isinstance(value, dict) else value

    return Results(**{key: parse(value) for key, value in entry.items()})  # type: ignore[arg-type]


def render(results: Sequence[Results]) -> str:
    """All results in full, as Markdown."""
    return "\n".join(map(_section, results))


def _section(each: Results) -> str:
    head = f"{each.problems} problems, {each.samples} answers each, {each.sampling}, on {each.device}; "
    head += f"{each.tokens:,} tokens, {each.cut} answers cut off. Percent, with 95 % intervals over problems."
    lines = [f"## {each.model} on {each.suite} {each.level}".rstrip(), "", head, ""]
    checks = [("our verifier", each.strict), *([("benchmark's check", each.others)] if each.others else [])]
    lines += _table(
        ("scored by", "compiled", *each.strict),
        ((name, each.compiled, *(rates[k] for k in each.strict)) for name, rates in checks),
    )
    if each.naive is not None:
        lines += [f"A naive check passes {each.naive}, of which our verifier rejects {each.naive_gap}.", ""]
    if each.nearest:
        lines += [f"Right answers against the nearest training row: {describe(each.nearest)}.", ""]
    if each.fast:
        lines += _table(each.fast, [each.fast.values()])
    lines += _table(("result", "answers"), each.why.items())
    if each.hacks:
        lines += [f"Hacks: {', '.join(f'{name} {number}' for name, number in each.hacks.items())}.", ""]
    return "\n".join(lines)


def _table(header: Iterable[object], rows: Iterable[Iterable[object]]) -> list[str]:
    """Lines of a Markdown table, with an empty line after it."""
    names, *cells = [[str(cell) for cell in row] for row in (header, *rows)]
    return [*(f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *cells)), ""]


def _channels(results: Sequence[Results]) -> list[str]:
    """AutoTriton's table of five benchmarks; no lines if no model was evaluated on TritonBench.

    A cell has the shares of answers that are called and that are right, then fast_1 and fast_2 of first answers.
    """
    known = {(each.model, each.suite, each.level): each for each in results}
    models = sorted({each.model for each in results if each.suite.startswith("tritonbench")})
    if not models:
        return []
    rows = [(model, *(_channel(known.get((model, suite, level))) for _, suite, level in _CHANNELS)) for model in models]
    lines = ["## AutoTriton's five channels", "", "Call / execution · fast_1 / fast_2, in percent.", ""]
    return [*lines, *_table(("model", *(name for name, _, _ in _CHANNELS)), rows)]


def _channel(each: Results | None) -> str:
    if each is None:
        return "-"
    cell = f"{100 * each.compiled.value:.1f} / {100 * each.strict['pass@1'].value:.1f}"
    if each.fast:
        cell += f" · {100 * each.fast['fast_1'].value:.1f} / {100 * each.fast['fast_2'].value:.1f}"
    return cell


def leaderboard(results: Sequence[Results]) -> str:
    """Markdown tables of all results, one for each suite and level, by falling pass@1."""
    lines = ["# Leaderboard", "", "Made by `kernelquarry leaderboard` from the results of evaluations.", ""]
    header = "model", "pass@1", "pass@10", "benchmark's check", "naive gap", "fast_1", "problems", "on"
    for suite, level in sorted({(each.suite, each.level) for each in results}):
        ranked = [each for each in results if (each.suite, each.level) == (suite, level)]
        ranked.sort(key=lambda each: (-each.strict["pass@1"].value, each.model))
        rows = []
        for each in ranked:
            ten, fast = each.strict.get("pass@10", "-"), each.fast.get("fast_1", "-")
            checks = each.strict["pass@1"], ten, each.others.get("pass@1", "-"), each.naive_gap or "-", fast
            rows.append((each.model, *checks, each.problems, each.device))
        lines += [f"## {suite} {level}".rstrip(), "", *_table(header, rows)]
    return "\n".join(lines + _channels(results))
