"""Record the figures of a training and its evaluations from the folder of `kernelquarry train`.

    python benchmarks/training.py out/train/smollm2-135m --where "16 cores, x86_64, NVIDIA H100 80GB HBM3"

It prints the figures, and records them with `--record`. Figures that the folder lacks are left out. Models that
answered the same problems are compared problem by problem, since a paired difference has a narrower interval.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from figures import record

from kernelquarry.pipeline.schema.jsonl_append import read_lines
from kernelquarry.recipes.evaluate.held_out import UNSEEN_COMBINATION, UNSEEN_OPERATOR
from kernelquarry.recipes.evaluate.metrics import Estimate, estimate
from kernelquarry.recipes.evaluate.problems import FROZEN
from kernelquarry.recipes.evaluate.results import Results, read_results
from kernelquarry.recipes.train.curves import series

STAGES = ("base", "sft", "grpo")
H100_FLOPS = 989e12  # dense, bfloat16
_JUDGED = 2000  # answers, for which the goal of an evaluation's minutes holds


def figures(folder: Path, peak: float, weights: int = 0) -> dict[str, float]:
    """Figures of the folder, by id."""
    found: dict[str, float] = {}
    results = {stage: _results(folder / "evaluation" / stage) for stage in STAGES}
    for stage, each in results.items():
        if each is not None:
            found[f"train.pass1.{stage}"] = 100 * each.strict["pass@1"].value
            if each.naive_gap is not None:
                found[f"train.naive_gap.{stage}"] = 100 * each.naive_gap.value
    if (sft := results["sft"]) is not None and "train.pass1.grpo" in found:
        found["train.pass1.grpo"] /= max(1e-9, found["train.pass1.sft"])
    if sft is not None and sft.writing_s:
        found["train.rollout_rate"] = sft.tokens / sft.writing_s
        found["train.eval_minutes"] = sft.judging_s / 60 * _JUDGED / (sft.problems * sft.samples)
    found |= _of_sft(folder / "sft", peak, weights) | _of_grpo(folder / "grpo")
    return found | _of_suites(folder / "evaluation")


def _of_suites(folder: Path) -> dict[str, float]:
    """Figures of the frozen suites; for the 0.5B, see `--half`."""
    rates = {
        (path.name, each.level): {k: 100 * rate.value for k, rate in each.strict.items()}
        for path in sorted(folder.glob("*-*"))
        for each in (read_results(path) if (path / "results.json").is_file() else [])
    }
    wanted = {
        "train.coder.pass1": ("sft-modules", "", "pass@1"),
        "train.coder.pass10": ("sft-modules", "", "pass@10"),
        "train.coder.pass1.combinations": ("sft-modules", UNSEEN_COMBINATION, "pass@1"),
        "train.coder.pass1.operators": ("sft-modules", UNSEEN_OPERATOR, "pass@1"),
        "train.coder.pass1.slices": ("sft-slices", "", "pass@1"),
        "train.coder.kernelbench.l1": ("sft-kernelbench", "level 1", "pass@1"),
        "train.cpu.pass1": ("sft-easy", "", "pass@1"),
    }
    found = {id: rates[path, level][k] for id, (path, level, k) in wanted.items() if k in rates.get((path, level), {})}
    after = rates.get(("grpo-modules", ""))
    if after and found.get("train.coder.pass1"):
        found["train.coder.grpo"] = after["pass@1"] / found["train.coder.pass1"]
    return found


def gains(folder: Path) -> dict[str, Estimate]:
    """Gain of pass@1 of each stage over the one before, paired by problem, for problems that both answered."""
    found = {}
    for suite in ("", *(f"-{name}" for name in FROZEN)):
        right = {stage: _right(folder / "evaluation" / f"{stage}{suite}" / "scores.jsonl") for stage in STAGES}
        for before, after in pairwise(STAGES):
            if both := sorted(right[before].keys() & right[after].keys()):
                differences = [fmean(right[after][id]) - fmean(right[before][id]) for id in both]
                found[f"{after}{suite} - {before}{suite}"] = estimate(differences)
    return found


def _right(scores: Path) -> dict[str, list[bool]]:
    """Flags of right answers, by problem."""
    found = defaultdict[str, list[bool]](list)
    for line in read_lines(scores):
        found[line["problem"]].append(not line["why"])
    return found


def _results(folder: Path) -> Results | None:
    found = read_results(folder) if folder.is_dir() else []
    return found[0] if found else None


def _history(stage: Path) -> list[dict[str, float]]:
    return read_lines(stage / "curves.jsonl")


def _of_sft(stage: Path, peak: float, weights: int) -> dict[str, float]:
    """Model FLOPs utilisation: six operations per weight and token, over the GPU's peak in that time.

    With LoRA four are counted, since the weights have no gradients of their own. Only the last call counts if the
    training was resumed, and only from its first log entry on, without compilation.
    """
    tokens = [entry for entry in _history(stage) if "num_tokens" in entry and "seconds" in entry]
    begun = max((at for at, (old, new) in enumerate(pairwise(tokens), 1) if new["seconds"] < old["seconds"]), default=0)
    tokens = tokens[begun:]
    if len(tokens) < 2 or not (weights or (stage / "model" / "config.json").is_file()):
        return {}
    first, last = tokens[0], tokens[-1]
    if not weights:
        from transformers import AutoModelForCausalLM

        weights = AutoModelForCausalLM.from_pretrained(stage / "model").num_parameters()
    rate = (last["num_tokens"] - first["num_tokens"]) / max(1e-9, last["seconds"] - first["seconds"])
    with_lora = (stage / "adapter").is_dir()
    return {"train.mfu.coder" if with_lora else "train.mfu": 100 * (4 if with_lora else 6) * weights * rate / peak}


def _of_grpo(stage: Path) -> dict[str, float]:
    waits = [value for _, value in series(_history(stage), "reward_wait")]
    return {"train.reward_wait": 100 * fmean(waits)} if waits else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="with --half, one for each seed; else one")
    parser.add_argument("--where", default="", help="machine of the training; default: this one without a GPU")
    parser.add_argument("--peak", type=float, default=H100_FLOPS, help="operations per second of the GPU")
    parser.add_argument("--weights", type=int, default=0, help="number of weights, if the folder has no model")
    parser.add_argument("--half", action="store_true", help="of the 0.5B: record the mean as train.coder.half alone")
    parser.add_argument("--note", default="")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    folder, note = arguments.folders[0], arguments.note
    found = figures(folder, arguments.peak, arguments.weights)
    if arguments.half:
        seeds = [figures(each, arguments.peak, arguments.weights)["train.coder.pass1"] for each in arguments.folders]
        found = {"train.coder.half": fmean(seeds)}
        note = f"{note}; seeds: {', '.join(f'{seed:.1f}' for seed in seeds)}".removeprefix("; ")
    if not arguments.where:
        found.pop("train.mfu", None)  # a share of the GPU's peak
    for id, value in found.items():
        print(f"{id}: {value:.4g}")
        if arguments.record:
            command = f"python benchmarks/training.py {' '.join(map(str, arguments.folders))} --record"
            record(id, value, command, note=note, where=arguments.where)
    for stages, gain in gains(folder).items():
        print(f"pass@1, {stages}: {gain} points")


if __name__ == "__main__":
    main()
