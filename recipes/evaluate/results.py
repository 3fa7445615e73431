"""What an evaluation says: numbers with their uncertainty, as JSON and as Markdown, and a page of all of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelquarry.pipeline.schema.files import replace_file

from .answers import Score
from .evaluate import Evaluated
from .metrics import Estimate, fast_p, mean_of, rates

_NAME = "results.json"


@dataclass(frozen=True, slots=True)
class Results:
    """Of one model on one suite, or on one level of it."""

    model: str
    suite: str
    level: str
    problems: int
    samples: int  # of each problem
    sampling: str
    strict: dict[str, Estimate]  # pass@k, by our verifier
    others: dict[str, Estimate]  # pass@k, as others score
    compiled: Estimate
    fast: dict[str, Estimate]  # fast_p by our verifier's verdict; empty if nothing was timed
    naive: Estimate
    naive_gap: Estimate  # answers that pass a naive check and not ours
    why: dict[str, int]  # answers, by how they ended
    hacks: dict[str, int]  # by class
    tokens: int
    cut: int  # answers without an end
    device: str
    writing_s: float  # of the whole suite; 0 of one that was killed and went on
    judging_s: float  # after the last answer was there


def summarise(
    model: str, suite: str, level: str, sampling: str, device: str, found: Evaluated, problems: Collection[str]
) -> Results:
    """The results of what was `found` of some problems, by id."""
    answers = [answer for answer in found.answers if answer.problem in problems]
    scores = [score for score in found.scores if score.problem in problems]
    by_problem: dict[str, list[Score]] = {}
    for score in sorted(scores, key=lambda score: (score.problem, score.sample)):
        by_problem.setdefault(score.problem, []).append(score)
    groups = list(by_problem.values())
    right = [[not score.why for score in group] for group in groups]
    timed = any(score.speedup for score in scores)
    ended = Counter(score.why or "verified" for score in scores)
    return Results(
        model=model,
        suite=suite,
        level=level,
        problems=len(groups),
        samples=min(map(len, groups)),
        sampling=sampling,
        strict=rates(right),
        others=rates([[score.others for score in group] for group in groups]),
        compiled=mean_of([[score.compiled for score in group] for group in groups]),
        fast=fast_p(right, [[score.speedup for score in group] for group in groups]) if timed else {},
        naive=mean_of([[score.naive for score in group] for group in groups]),
        naive_gap=mean_of([[score.naive and bool(score.why) for score in group] for group in groups]),
        why=dict(sorted(ended.items(), key=lambda item: (-item[1], item[0]))),
        hacks=dict(sorted(Counter(score.hack for score in scores if score.hack).items())),
        tokens=sum(answer.tokens for answer in answers),
        cut=sum(answer.cut for answer in answers),
        device=device,
        writing_s=found.writing_s,
        judging_s=found.judging_s,
    )


def write_results(folder: Path, results: Sequence[Results]) -> None:
    """`results.json` and `results.md` in `folder`."""
    with replace_file(folder / _NAME) as stream:
        stream.write((json.dumps([asdict(each) for each in results], indent=1) + "\n").encode())
    with replace_file(folder / "results.md") as stream:
        stream.write(render(results).encode())


def read_results(folder: Path) -> list[Results]:
    """All results below a folder, by suite, level and model."""
    found = [_read(entry) for path in sorted(folder.rglob(_NAME)) for entry in json.loads(path.read_text())]
    return sorted(found, key=lambda each: (each.suite, each.level, each.model))


def _read(entry: Mapping[str, object]) -> Results:
    def parse(value: object) -> object:
        if isinstance(value, dict) and value.keys() == {"value", "low", "high"}:
            return Estimate(**value)
        return {key: parse(inner) for key, inner in value.items()} if isinstance(value, dict) else value

    return Results(**{key: parse(value) for key, value in entry.items()})  # type: ignore[arg-type]


def render(results: Sequence[Results]) -> str:
    """Each of them in full, as Markdown."""
    return "\n".join(map(_section, results))


def _section(each: Results) -> str:
    ks = list(each.strict)
    head = f"{each.problems} problems, {each.samples} answers each, {each.sampling}, on {each.device}; "
    head += f"{each.tokens:,} tokens, {each.cut} answers without an end. Percent, with 95 % intervals over problems."
    lines = [f"## {each.model} on {each.suite} {each.level}".rstrip(), "", head, ""]
    lines += [f"| scored by | compiled | {' | '.join(ks)} |", f"|---|---|{'---|' * len(ks)}"]
    for name, found in (("our verifier", each.strict), ("others' way", each.others)):
        lines.append(f"| {name} | {each.compiled} | {' | '.join(str(found[k]) for k in ks)} |")
    lines += ["", f"A naive check passes {each.naive}, of which ours does not pass {each.naive_gap}.", ""]
    if each.fast:
        lines += [f"| {' | '.join(each.fast)} |", f"|{'---|' * len(each.fast)}"]
        lines += [f"| {' | '.join(map(str, each.fast.values()))} |", ""]
    lines += ["| how answers ended | number |", "|---|---|"]
    lines += [f"| {why} | {number} |" for why, number in each.why.items()]
    if each.hacks:
        lines += ["", f"Hacks: {', '.join(f'{name} {number}' for name, number in each.hacks.items())}."]
    return "\n".join(lines) + "\n"


CHANNELS = (
    ("TritonBench-G", "tritonbench-g", ""),
    ("TritonBench-T", "tritonbench-t", ""),
    *((f"KernelBench {level}", "kernelbench", f"level {level}") for level in (1, 2, 3)),
)


def channels(results: Sequence[Results]) -> list[str]:
    """AutoTriton's table: of each model the share of answers that are called and that are right, and of first answers
    more than once and twice as fast; "-" where it was not evaluated. No lines if no model was on TritonBench."""
    known = {(each.model, each.suite, each.level): each for each in results}
    models = sorted({each.model for each in results if each.suite.startswith("tritonbench")})
    if not models:
        return []
    lines = ["## AutoTriton's five channels", "", "Call / execution · fast_1 / fast_2, in percent.", ""]
    lines += [f"| model | {' | '.join(name for name, _, _ in CHANNELS)} |", f"|{'---|' * (len(CHANNELS) + 1)}"]
    for model in models:
        cells = (_channel(known.get((model, suite, level))) for _, suite, level in CHANNELS)
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return [*lines, ""]


def _channel(each: Results | None) -> str:
    if each is None:
        return "-"
    told = f"{100 * each.compiled.value:.1f} / {100 * each.strict['pass@1'].value:.1f}"
    if each.fast:
        told += f" · {100 * each.fast['fast_1'].value:.1f} / {100 * each.fast['fast_2'].value:.1f}"
    return told


def leaderboard(results: Sequence[Results]) -> str:
    """A table a suite and level, the best first, as Markdown."""
    parts = ["# Leaderboard", "", "Made by `kernelquarry leaderboard` from the results of evaluations.", ""]
    for suite, level in sorted({(each.suite, each.level) for each in results}):
        found = [each for each in results if (each.suite, each.level) == (suite, level)]
        found.sort(key=lambda each: (-each.strict["pass@1"].value, each.model))
        parts += [f"## {suite} {level}".rstrip(), ""]
        parts += ["| model | pass@1 | pass@10 | others' way | naive gap | fast_1 | problems | on |"]
        parts += ["|---|---|---|---|---|---|---|---|"]
        for each in found:
            ten, fast = each.strict.get("pass@10", "-"), each.fast.get("fast_1", "-")
            row = (each.model, each.strict["pass@1"], ten, each.others["pass@1"], each.naive_gap, fast)
            parts.append(f"| {' | '.join(map(str, row))} | {each.problems} | {each.device} |")
        parts.append("")
    parts += channels(results)
    return "\n".join(parts)
