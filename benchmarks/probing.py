"""Measure probing: outcomes for the modules of a run, and CPU time per module.

    python benchmarks/probing.py out/default              # the figures of the run, and the rate on 300 of its modules
    python benchmarks/probing.py out/full --sample 0      # the number of modules
    python benchmarks/probing.py out/tiny --sample 50     # the same, printed only
    python benchmarks/probing.py out/unseen --sample 0    # the share of modules accepted, of packages never looked at

The run must be finished up to `deduplicate`. Recorded are the figures of the default corpus with the whole sample, the
number of modules of the full corpus, and the share of modules accepted of `unseen`: a run of
`benchmarks/unseen_packages.txt` that is finished up to `probe`.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from figures import record

from kernelquarry.pipeline.sandbox import Job, Report, Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.arrow import count_records, read_records
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.records import ENTRY_POINT, Module, Probed
from kernelquarry.transforms.probe import probe
from kernelquarry.transforms.workloads.resize import free_sizes

T = TypeVar("T")
SAMPLE = 300
CORES = 2
# Rightly dropped, whatever their arguments: see docs/reference/stages/probe.md.
NO_TASK = frozenset({"random", "constant_output", "returns_input", "changes_input", "no_tensor_output"})
_NUMERIC_ANNOTATION = re.compile(r"(int|float|bool)\b")
_NUMERIC_NAME = re.compile(
    r"dim|channel|size|hidden|embed|width|depth|height|length|len$|layer|block|plane|unit|feature|feat|head|rank|kernel"
    r"|stride|pad|dilation|group|scale|ratio|factor|rate|drop|eps|alpha|beta|gamma|sigma|tau|temp|margin|momentum"
    r"|num|count|class|vocab|level|order|step|expansion|reduction|^(n|d|c|k|p|r|s|h|w)$|^(n|d|in|out)_"
    r"|(^|_)(n|nf|nc|ch|cin|cout|inp|oup|c1|c2|k|p|inplanes)$"
)
_LAYER_NAME = re.compile(
    r"(encoder|decoder|norm|act|activation|attn|attention|conv|fn)_layers?$|^(layers|blocks|features)$"
)


def is_simple(code: str) -> bool:
    """True if a module should be easy to probe: its constructor needs numbers, and its `forward` tensors.

    Each argument of the constructor without a default is annotated as a number (`int`, `float`, `bool`), or is not
    annotated and has a name typical of numbers. `forward` has at least one argument without a default.
    """
    tree = ast.parse(code)
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    forward, make = _method(classes, ENTRY_POINT, "forward"), _method(classes, ENTRY_POINT, "__init__")
    if forward is None or not list(_required(forward)):
        return False
    return make is None or all(_is_number(argument) for argument in _required(make))


def _method(classes: dict[str, ast.ClassDef], name: str, wanted: str) -> ast.FunctionDef | None:
    """The method as the class, or a base of it in the same file, defines it."""
    node = classes.get(name)
    if node is None:
        return None
    own = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == wanted), None)
    others = {key: value for key, value in classes.items() if key != name}
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return own or next(filter(None, (_method(others, base, wanted) for base in bases)), None)


def _required(function: ast.FunctionDef) -> Iterator[ast.arg]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from positional[1 : len(positional) - len(arguments.defaults)]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    yield from (argument for argument, default in pairs if default is None)


def _is_number(argument: ast.arg) -> bool:
    if argument.annotation is not None:
        return _NUMERIC_ANNOTATION.match(ast.unparse(argument.annotation)) is not None
    name = argument.arg.lower()
    return _NUMERIC_NAME.search(name) is not None and _LAYER_NAME.search(name) is None


def has_three_workloads(probed: Probed) -> bool:
    """True if there are three calls of different shapes, one with an odd size, and varying sizes differ in each."""
    shapes = {str([tensor.shape for tensor in workload.tensors]) for workload in probed.workloads}
    free = free_sizes(probed.workloads)
    distinct = all(len(set(sizes)) == len(free) for sizes in zip(*free, strict=True))
    return len(shapes) >= 3 and distinct and any(size % 16 for sizes in free for size in sizes)


def shards(run: Path, stage: str, kind: type[T]) -> Iterator[T]:
    for path in sorted(run.glob(f"stages/*-{stage}/kept-*.parquet")):
        yield from read_records(path, kind)


def accepted(ends: Counter[str]) -> tuple[float, str]:
    """Percentage of modules that probe kept, and a note, from the number of modules per outcome."""
    tasks = ends.total() - sum(ends[reason] for reason in NO_TASK)
    reasons = ", ".join(f"{number} {reason}" for reason, number in ends.most_common())
    share = 100 * ends["kept"] / ends.total()
    return share, f"of {ends.total()}: {reasons}; {100 * ends['kept'] / tasks:.1f} % of the {tasks} that are a task"


class _Timed(Sandbox):
    """A sandbox that sums the CPU time of its guests."""

    cpu_s = 0.0

    def run(self, job: Job) -> Report:
        report = super().run(job)
        self.cpu_s += report.cpu_s
        return report


def seconds_each(modules: Sequence[Module]) -> float:
    """CPU seconds per module of guests and host, without the start of the guests' parent."""
    with _Timed(SandboxSettings(workers=1)) as sandbox:
        sandbox.start(("probe",))
        started = time.process_time()
        for module in modules:
            probe(module, sandbox)
        return (time.process_time() - started + sandbox.cpu_s) / len(modules)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--sample", type=int, default=SAMPLE)
    args = parser.parse_args()
    modules = list(shards(args.run, "mine", Module))
    three: dict[str, bool] = {probed.id: has_three_workloads(probed) for probed in shards(args.run, "probe", Probed)}
    lost = {loss.id: loss.reason for path in args.run.glob("stages/*-probe/lost.parquet") for loss in _losses(path)}
    ends = {module.id: "kept" if module.id in three else lost[module.id] for module in modules}
    alone = [module for module in modules if not module.imported_files]
    groups = {"": [module for module in alone if is_simple(module.code)], ".all": alone}
    figures: list[tuple[str, float, str]] = []
    for suffix, group in groups.items():
        counted = Counter(ends[module.id] for module in group)
        tasks = counted.total() - sum(counted[reason] for reason in NO_TASK)
        reasons = ", ".join(f"{number} {reason}" for reason, number in counted.most_common())
        figures.append((f"mine.probe_yield{suffix}", 100 * counted["kept"] / tasks, f"of {counted.total()}: {reasons}"))
        within = tasks - counted["too_big"]
        figures.append((f"mine.probe_yield{suffix}.within", 100 * counted["kept"] / within, f"of {within}"))
        figures.append((f"mine.probe_yield{suffix}.mined", 100 * counted["kept"] / counted.total(), ""))
    distinct = sum(count_records(path, Probed) for path in args.run.glob("stages/*-deduplicate/kept-*.parquet"))
    note = f"of {len(modules)} mined, {len(three)} accepted; without copies"
    name = args.run.name
    figures.append((f"mine.modules_{name}", distinct, note))
    figures.append((f"mine.modules_{name}.accepted", len(three), f"of {len(modules)} mined"))
    figures.append((f"supply.probe_{name}", *accepted(Counter(ends.values()))))
    figures.append(("mine.three_workloads", 100 * sum(three.values()) / len(three), f"of {len(three)} accepted"))
    modules.sort(key=lambda module: module.id)  # ids are digests: any stretch is a random sample
    if sample := random.Random(0).sample(modules, min(args.sample, len(modules))):
        cpu_s = seconds_each(sample)
        figures.append(("mine.probe_rate", CORES / cpu_s, f"{cpu_s:.3f} CPU s each, mean of {len(sample)}"))
    for id, value, note in figures:
        print(f"{id:<32}{value:>10.2f}  {note}")
        whole = name == "default" and args.sample >= SAMPLE and id.startswith("mine.")
        if whole or (name == "full" and id.startswith("mine.modules_")) or id == "supply.probe_unseen":
            record(id, value, f"python benchmarks/probing.py out/{name}" + (" --sample 0" if not whole else ""), note)


def _losses(path: Path) -> Iterator[DropRecord]:
    return read_records(path, DropRecord)


if __name__ == "__main__":
    main()
