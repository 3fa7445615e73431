"""Measure decontamination and deduplication: recall on planted rows, near-duplicates that remain, and cost at scale.

python benchmarks/cleaning.py recall                # planted rows, and clean rows as a control: minutes
python benchmarks/cleaning.py duplicates out/tiny   # remaining near-duplicates; needs: pip install datasketch
python benchmarks/cleaning.py scale                 # 10,000, 30,000 and 100,000 modules
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import apache_beam as beam
from figures import record
from main_job import run
from synthetic import HEAD, STEPS, Plan, composed, contains, draw, refactored, renamed, reshaped

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.run.beam_runner import open_pipeline, run_pipeline
from kernelquarry.pipeline.run.runner_options import DEFAULT
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.ids import canonical, module_id, sha256
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.provenance import Licence, SourceRef
from kernelquarry.pipeline.schema.records import Module, Probed
from kernelquarry.transforms.decontaminate import Ladder, Problem, fingerprint_of, read_index, write_index
from kernelquarry.transforms.decontaminate.benchmark_index import SUFFIX
from kernelquarry.transforms.decontaminate.build_index import index_benchmark
from kernelquarry.transforms.decontaminate.transform import DecontaminateModules
from kernelquarry.transforms.deduplicate.transform import DeduplicateModules
from kernelquarry.transforms.probe import probe

COMMAND = "python benchmarks/cleaning.py"
KINDS: dict[str, Callable[[Plan, random.Random], Plan]] = {
    "renamed": renamed, "reshaped": reshaped, "refactored": refactored, "composed": composed,
}  # fmt: skip
PROBLEMS, CLEAN = 50, 1000
SIZES = (10_000, 30_000, 100_000)
REWRITES = Path(__file__).parent / "rewrites"
IMPORTS = "import math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
CLEANLY = "clean by hand"
SIMILAR = 0.8
SHINGLE = 5


def module(code: str) -> Module:
    return Module(module_id(code), "Model", code, SourceRef("synthetic", "made", "1", "a.py", ""), Licence("MIT", ""))


# recall and false removals


def recall() -> None:
    random_ = random.Random(0)
    problems = [draw(random_) for _ in range(PROBLEMS)]
    plans: list[tuple[str, Plan]] = [(kind, change(p, random_)) for p in problems for kind, change in KINDS.items()]
    while len(plans) < CLEAN + PROBLEMS * len(KINDS):
        plan = draw(random_)
        if not any(contains(plan.steps, p.steps) for p in problems):
            plans.append(("clean", plan))
    with Sandbox(SandboxSettings(workers=2)) as sandbox, ThreadPoolExecutor(2) as threads:
        probed = list(threads.map(lambda plan: found(plan, sandbox), [*problems, *(plan for _, plan in plans)]))
    known = [Problem("made", str(i), fingerprint_of(*each)) for i, each in enumerate(probed[:PROBLEMS])]
    ladder = Ladder(known)
    tried, caught, by = Counter[str](), Counter[str](), Counter[str]()
    for kind, hits in rewritten():
        tried[kind] += 1
        caught[kind] += bool(hits)
    near = f"{caught[CLEANLY]} of {tried.pop(CLEANLY)} written by hand to be like problems"
    by_hand = ", ".join(f"{caught[kind]} of {n} {kind}" for kind, n in sorted(tried.items()))
    for (kind, _), row in zip(plans, probed[PROBLEMS:], strict=True):
        hits = ladder.climb(fingerprint_of(*row))
        tried[kind] += 1
        caught[kind] += bool(hits)
        by.update(f"{kind} {rung}" for rung in {hit.rung for hit in hits})
    ran = sum(graph != "[]" for _, graph, _ in probed)
    print(f"{ran} of {len(probed)} modules ran;", ", ".join(f"{name}: {n}" for name, n in sorted(by.items())))
    note = f"{PROBLEMS} problems made of 4 to 8 steps, and others written by hand ({by_hand}); rungs of the former: "
    for kind in KINDS:
        rungs = ", ".join(f"{name.split()[1]} {n}" for name, n in sorted(by.items()) if name.startswith(kind))
        share = 100 * caught[kind] / tried[kind]
        print(f"{kind}: {caught[kind]} of {tried[kind]}")
        record(f"clean.recall.{kind}", share, f"{COMMAND} recall", note + rungs)
    print(f"clean: {caught['clean']} of {tried['clean']} removed")
    share = 100 * caught["clean"] / tried["clean"]
    record("clean.false_removals", share, f"{COMMAND} recall", f"of {tried['clean']} made of the same steps; {near}")


def found(plan: Plan, sandbox: Sandbox) -> tuple[str, str, tuple[str, ...]]:
    """(source, graph, behaviours) of a plan's module: the inputs of its fingerprint."""
    outcome = probe(module(plan.render()), sandbox)
    if not isinstance(outcome, Kept):
        return plan.render(), "[]", ()
    return outcome.record.python_code, outcome.record.graph, outcome.record.behaviours


def rewritten() -> Iterator[tuple[str, bool]]:
    """(kind, True if found) for each rewrite of a problem in `rewrites/`, each problem inside another module, and each
    module that is no problem (kind CLEANLY).

    Sources that do not run are left out, since no dataset has them.
    """
    problems = read_rewrites()
    clean = problems.pop(CLEANLY)
    with tempfile.TemporaryDirectory() as folder:
        for name, spellings in problems.items():
            Path(folder, f"{name}.py").write_text(spellings[0])
        index = Path(folder, f"written{SUFFIX}")
        index_benchmark(folder, "written", index, SandboxSettings(workers=2), lambda found: found)
        ladder = Ladder(read_index(index)[1])
    rows = [(name, "refactored", code) for name, spellings in problems.items() for code in spellings[1:]]
    rows += [(name, "composed", inside(spellings[0])) for name, spellings in problems.items()]
    rows += [("", CLEANLY, code) for code in clean]
    with Sandbox(SandboxSettings(workers=2)) as sandbox, ThreadPoolExecutor(2) as threads:
        outcomes = threads.map(lambda row: probe(module(row[2]), sandbox), rows)
        for (name, kind, _), outcome in zip(rows, outcomes, strict=True):
            if isinstance(outcome, Kept):
                row = outcome.record
                hits = ladder.climb(fingerprint_of(row.python_code, row.graph, row.behaviours))
                yield kind, any(hit.problem == f"written/{name}" or kind == CLEANLY for hit in hits)


def read_rewrites() -> dict[str, list[str]]:
    """Problem -> its source and its rewrites; CLEANLY -> sources that resemble problems and are none."""
    found: dict[str, list[str]] = {}
    problem = ""
    for file in sorted(REWRITES.glob("*.txt")):
        for part in re.split(r"^# (?=problem: |rewrite: |clean: )", file.read_text(), flags=re.MULTILINE)[1:]:
            title, _, code = part.partition("\n")
            kind, _, name = title.partition(": ")
            problem = {"problem": name, "clean": CLEANLY}.get(kind, problem)
            found.setdefault(problem, []).append(f"{IMPORTS}{code.strip()}\n")
    return found


def inside(code: str) -> str:
    """A module that contains the problem's module, followed by operators."""
    (model,) = (node for node in ast.parse(code).body if isinstance(node, ast.ClassDef) and node.name == "Model")
    (forward,) = (n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "forward")
    takes = ", ".join(argument.arg for argument in forward.args.args[1:])
    part = code.replace("class Model(nn.Module)", "class Part(nn.Module)")
    lines = f"    def forward(self, {takes}):\n        return F.elu(super().forward({takes})) * 0.7\n"
    return f"{part}\n\nclass Model(Part):\n{lines}"


# what is left of duplicates


def duplicates(root: Path) -> None:
    """Find near-duplicates with another library and other code than the stage `deduplicate` uses."""
    from datasketch import MinHash, MinHashLSH

    rows = {row.id: shingles(row.python_code) for row in read_rows(root / "dataset")}
    index, left = MinHashLSH(threshold=SIMILAR - 0.1, num_perm=256), []
    for id, words in rows.items():
        sketch = MinHash(num_perm=256, seed=7)
        sketch.update_batch([word.encode() for word in words])
        left += [(id, other) for other in index.query(sketch) if jaccard(words, rows[other]) >= SIMILAR]
        index.insert(id, sketch)
    for id, other in left:
        print(id, other, f"{jaccard(rows[id], rows[other]):.3f}")
    command = f"{COMMAND} duplicates out/{root.name}"
    record("clean.left_duplicates", len(left), command, f"{len(rows)} rows, by datasketch")


def shingles(code: str) -> set[str]:
    """Token n-grams without comments, docstrings, annotations and lines that this project adds."""
    tree = ast.parse(code)
    tree.body = [n for n in tree.body if getattr(n, "name", "") not in ("get_inputs", "get_init_inputs")]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    words = re.findall(r"\w+|[^\w\s]", ast.unparse(tree))
    return {" ".join(words[i : i + SHINGLE]) for i in range(max(1, len(words) - SHINGLE + 1))}


def jaccard(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b)


# scale


def scale(sizes: Sequence[int]) -> None:
    """Measure each size in a process of its own. Memory includes all of its child processes."""
    rates = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "cost.json")
            code = f"import cleaning, pathlib; cleaning.one({size}, pathlib.Path({str(place)!r}))"
            ran = run([sys.executable, "-c", code], Path(__file__).parent)  # of a script, workers would import all
            measured = json.loads(place.read_text())
        rates[size] = measured["cpu_s"] / size
        print(f"{size:,}: {ran.seconds:.0f} s, {ran.peak_gb:.2f} GB, {measured}", flush=True)
        if size == max(SIZES):
            cost = ", ".join(f"{1e3 * rate:.2f} at {n:,}" for n, rate in rates.items())
            note = f"{measured['bytes']:.0f} bytes a module, {measured['kept']:,} kept; ms of CPU a module: {cost}"
            record("clean.scale.minutes", ran.seconds / 60, f"{COMMAND} scale", note)
            record("clean.scale.gb", ran.peak_gb, f"{COMMAND} scale", note)
            record("clean.scale.linear", rates[size] / rates[min(sizes)], f"{COMMAND} scale", note)


def one(size: int, place: Path) -> None:
    """Deduplicate and decontaminate `size` modules, and write the cost as JSON to `place`."""
    random_ = random.Random(size)
    index = place.with_suffix(SUFFIX)
    write_index(index, "made", "", [Problem("made", str(i), fingerprint_of(large(random_))) for i in range(300)])
    pipeline = open_pipeline(DEFAULT)
    kept = (
        pipeline
        | beam.Create([(size, start) for start in range(0, size, 1000)])
        | beam.FlatMapTuple(made)
        | DeduplicateModules()
        | "Kept" >> beam.FlatMap(lambda counted: [counted[1].record] if isinstance(counted[1], Kept) else [])
        | DecontaminateModules((index,), SandboxSettings(workers=1))
        | "Ends" >> beam.Map(lambda counted: type(counted[1]).__name__)
        | beam.combiners.Count.PerElement()
        | beam.combiners.ToDict()
    )
    path = place.with_suffix(".ends")
    _ = kept | beam.Map(partial(write_ends, path))
    run_pipeline(pipeline)
    ends = json.loads(path.read_text())
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu_s = round(sum(usage.ru_utime + usage.ru_stime for usage in used), 1)
    sample = [len(probed.python_code) for probed in made(size, 0)]
    place.write_text(json.dumps({"cpu_s": cpu_s, "kept": ends["Kept"], "bytes": sum(sample) / len(sample)}))


def write_ends(path: Path, ends: dict[str, int]) -> None:
    path.write_text(json.dumps(ends))


def made(size: int, start: int) -> Iterator[Probed]:
    """A thousand modules. One in ten is a copy of another with other names or a changed line."""
    random_, copies = random.Random(f"{size} {start}"), random.Random(start)
    code = large(random_)
    for i in range(start, min(size, start + 1000)):
        copied = i % 10 == 9
        code = re.sub(r"\bh(\d+)\b", rf"v{copies.randint(1, 9)}_\1", code) if copied else large(random_)
        graph = canonical(
            [["input"], *([f"aten.{random_.choice('sin cos exp tan erf'.split())}", [k]] for k in range(24))]
        )
        made_of = module(f"{code}# {i}\n")
        yield Probed(made_of, "[]", (), (), "{}", (), code, graph, "" if copied else sha256(str(i))[:16])


def large(random_: random.Random) -> str:
    """A module of about 2 KB."""
    spelt = [spelling for made, spellings in STEPS.values() if not made for spelling in spellings]
    lines, value = [], "x"
    for i in range(45):
        text = random_.choice(spelt).format(x=value, c=round(random_.random(), 3), n="")
        lines.append(f"        h{i} = {text} - {random_.randint(1, 99)}\n")
        value = f"h{random_.randint(max(0, i - 3), i)}"
    return f"{HEAD}    def forward(self, x):\n{''.join(lines)}        return {value}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("recall", "duplicates", "scale"))
    parser.add_argument("argument", nargs="*", help="run directory; or numbers of modules")
    given = parser.parse_args()
    match given.what:
        case "recall":
            recall()
        case "duplicates":
            duplicates(Path(*given.argument))
        case "scale":
            scale([int(n) for n in given.argument] or SIZES)


if __name__ == "__main__":
    main()
