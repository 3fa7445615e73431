"""Measure decontamination and deduplication: recall on planted rows, near-duplicates that remain, and cost at scale.

python benchmarks/cleaning.py recall                # planted rows, and clean rows as a control: minutes
python benchmarks/cleaning.py problems CHECKOUT     # all problems of a checkout of KernelBench, edited: 5 CPU minutes
python benchmarks/cleaning.py removed out/tiny      # modules of a run that overlap a shipped index, with their sources
python benchmarks/cleaning.py read                  # of those that were read: no copies of a problem
python benchmarks/cleaning.py inversion out/tiny    # tokens of problems that the indexes give away
python benchmarks/cleaning.py duplicates out/tiny   # remaining near-duplicates; needs: pip install datasketch
python benchmarks/cleaning.py scale                 # 10,000, 30,000 and 100,000 modules

`problems`, `removed`, `read` and `inversion` record their figures with --record. `docs/results/removed.toml` says of
each removed module that was read whether it is a copy of the problem that it matched.
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
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import apache_beam as beam
from figures import ROOT, record
from main_job import run
from problem_edits import EDITS
from synthetic import HEAD, STEPS, Plan, contains, draw, refactored, renamed, reshaped

from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.run.beam_runner import open_pipeline, run_pipeline
from kernelquarry.pipeline.run.runner_options import DEFAULT
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.arrow import read_records
from kernelquarry.pipeline.schema.ids import canonical, module_id, sha256
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.provenance import Licence, SourceRef
from kernelquarry.pipeline.schema.records import Module, Probed, SourceFile
from kernelquarry.transforms.decontaminate import DEFAULT as THRESHOLDS
from kernelquarry.transforms.decontaminate import (
    Fingerprint,
    Hit,
    Ladder,
    Origin,
    Rung,
    fingerprint_of,
    problems_of,
    read_index,
    render_hits,
    write_index,
)
from kernelquarry.transforms.decontaminate.benchmark_index import SHIPPED, SUFFIX, read_all
from kernelquarry.transforms.decontaminate.build_index import index_benchmark
from kernelquarry.transforms.decontaminate.module_fingerprint import RUN, packed
from kernelquarry.transforms.decontaminate.transform import DecontaminateModules
from kernelquarry.transforms.deduplicate.transform import DeduplicateModules
from kernelquarry.transforms.mine import mine_tree
from kernelquarry.transforms.probe import probe
from kernelquarry.transforms.similarity import normal_form
from kernelquarry.transforms.similarity.form import runs, tokens

COMMAND = "python benchmarks/cleaning.py"
KINDS: dict[str, Callable[[Plan, random.Random], Plan]] = {
    "renamed": renamed, "reshaped": reshaped, "refactored": refactored,
}  # fmt: skip
PROBLEMS, CLEAN = 50, 1000
SIZES = (10_000, 30_000, 100_000)
READ = ROOT / "docs" / "results" / "removed.toml"
REWRITES = Path(__file__).parent / "rewrites"
IMPORTS = "import math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
CLEANLY = "clean by hand"
SIMILAR = 0.8
Record = Callable[[str, float, str, str], object]  # id, value, command, note
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
    ladder = Ladder(problems_of("made", {str(i): fingerprint_of(*each) for i, each in enumerate(probed[:PROBLEMS])}))
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
    ran = sum(bool(graphs) for _, graphs, _ in probed)
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


def found(plan: Plan, sandbox: Sandbox) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """(source, graphs, behaviours) of a plan's module: the inputs of its fingerprint."""
    outcome = probe(module(plan.render()), sandbox)
    if not isinstance(outcome, Kept):
        return plan.render(), (), ()
    return outcome.record.python_code, (outcome.record.graph,), outcome.record.behaviours


def rewritten() -> Iterator[tuple[str, bool]]:
    """(kind, True if found) for each rewrite of a problem in `rewrites/`, and each module that is no problem (CLEANLY).

    Sources that do not run are left out, since no dataset has them.
    """
    problems = read_rewrites()
    clean = problems.pop(CLEANLY)
    with tempfile.TemporaryDirectory() as folder:
        for name, spellings in problems.items():
            Path(folder, f"{name}.py").write_text(spellings[0])
        index = Path(folder, f"written{SUFFIX}")
        index_benchmark(Origin("written", folder), folder, index, SandboxSettings(workers=2), lambda found: found)
        ladder = Ladder(read_index(index)[1])
    rows = [(name, "refactored", code) for name, spellings in problems.items() for code in spellings[1:]]
    rows += [("", CLEANLY, code) for code in clean]
    with Sandbox(SandboxSettings(workers=2)) as sandbox, ThreadPoolExecutor(2) as threads:
        outcomes = threads.map(lambda row: probe(module(row[2]), sandbox), rows)
        for (name, kind, _), outcome in zip(rows, outcomes, strict=True):
            if isinstance(outcome, Kept):
                row = outcome.record
                hits = ladder.climb(fingerprint_of(row.python_code, (row.graph,), row.behaviours))
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


# the problems of KernelBench, and what the shipped indexes find and give away


def problems(checkout: Path, save: Record) -> None:
    """Plant the problems of levels 1 to 3 with each edit, and count what the shipped index finds.

    Rows that mining or probing drops do not count. A problem of fewer operators than `graph_least` is not found with
    an operator added, and does not count there.
    """
    files = sorted(file for level in (1, 2, 3) for file in checkout.rglob(f"level{level}/*.py"))
    known = read_index(SHIPPED / f"kernelbench{SUFFIX}")[1]
    least = THRESHOLDS.graph_least
    small = {one.name for one in known if one.fingerprint.signatures and one.fingerprint.operators < least}
    ladder = Ladder(known)
    with Sandbox(SandboxSettings(workers=2)) as sandbox, ThreadPoolExecutor(2) as threads:
        for kind, edit in EDITS.items():
            plants = [(f"{file.parent.name}/{file.stem}", edit(file.read_text())) for file in files]
            plants = [(name, text) for name, text in plants if text and (kind != "added" or name not in small)]
            rows = list(threads.map(lambda plant: planted(plant[1], sandbox), plants))
            reached = [(name, row) for (name, _), row in zip(plants, rows, strict=True) if row is not None]
            rungs = [{hit.rung for hit in ladder.climb(fingerprint(row))} for _, row in reached]
            missed = [name for (name, _), by in zip(reached, rungs, strict=True) if not by]
            share = 100 * (1 - len(missed) / len(reached))
            by = ", ".join(f"{rung} {sum(rung in each for each in rungs)}" for rung in Rung)
            note = f"{len(reached) - len(missed)} of {len(reached)} that reach the stage, of {len(plants)}; rungs: {by}"
            print(f"{kind}: {share:.1f} %, {note}; missed: {', '.join(missed) or 'none'}", flush=True)
            save(f"front.contaminated_found.{kind}", share, f"{COMMAND} problems CHECKOUT", note)


def planted(text: str, sandbox: Sandbox) -> Probed | None:
    """The class `Model` of a file, mined and probed as every module is; None if it is dropped."""
    file = SourceFile(SourceRef("planted", "planted", "1", "a.py", ""), Licence("MIT", ""), text)
    for outcome in mine_tree([file]).classes:
        if isinstance(outcome, Kept) and outcome.record.name == "Model":
            probed = probe(outcome.record, sandbox)
            return probed.record if isinstance(probed, Kept) else None
    return None


def fingerprint(row: Probed) -> Fingerprint:
    return fingerprint_of(row.python_code, (row.graph,), row.behaviours)


def compared(root: Path) -> tuple[list[tuple[Probed, tuple[Hit, ...]]], list[Probed]]:
    """The modules of a run that overlap a shipped index, each with the ladder's hits, and those that do not."""
    ladder = Ladder(read_all(sorted(SHIPPED.glob(f"*{SUFFIX}")))[1])
    (folder,) = (root / "stages").glob("*-deduplicate")
    rows = [row for path in sorted(folder.glob("kept-*.parquet")) for row in read_records(path, Probed)]
    hits = [(row, ladder.climb(fingerprint(row))) for row in rows]
    return [(row, found) for row, found in hits if found], [row for row, found in hits if not found]


def removed(root: Path, save: Record) -> None:
    """Print each module of a run that overlaps a shipped index: what was found, and its source."""
    overlapping, clean = compared(root)
    for row, hits in overlapping:
        place = f"{row.module.source.package}/{row.module.source.path}"
        print(f"# {row.id} {row.module.name} of {place}: {render_hits(hits)}\n{row.module.code}\n")
    share = 100 * len(overlapping) / (len(overlapping) + len(clean))
    print(f"{len(overlapping)} of {len(overlapping) + len(clean)} modules: {share:.1f} %")
    save("front.removed", share, f"{COMMAND} removed out/{root.name}", f"of {len(overlapping) + len(clean)} modules")


def read(save: Record) -> None:
    """Count the removed modules that are no copies of a problem, by the judgements in `docs/results/removed.toml`."""
    judged = tomllib.loads(READ.read_text())["module"]
    clean = [f"{one['name']} ({one['problem']})" for one in judged if not one["copy"]]
    packages = len({one["package"] for one in judged})
    note = f"{len(clean)} of {len(judged)} modules of {packages} packages: {', '.join(clean) or 'none'}"
    print(note)
    save("front.clean_removed", 100 * len(clean) / len(judged), f"{COMMAND} read", note)


def inversion(root: Path, save: Record) -> None:
    """Try to rebuild problems from the shipped indexes, with the clean modules of a run as other code.

    The attack starts from the runs of the index that other code has. It continues each on both sides, a token at a
    time, with every word of the vocabulary of other code, as far as runs of the problem confirm a continuation.
    """
    texts = [tokens(ast.unparse(normal_form.exact(row.module.code))) for row in compared(root)[1]]
    vocabulary = sorted({word for text in texts for word in text})
    phrases = {
        run: tuple(text[place : place + RUN]) for text in texts for place, run in enumerate(runs(text, RUN).tolist())
    }
    rebuilt, looked_up, sampled, compared_problems = 0, 0, 0, 0
    for path in sorted(SHIPPED.glob(f"*{SUFFIX}")):
        for problem in read_index(path)[1]:
            wanted = set(packed(problem.fingerprint.runs).tolist())
            seeds = {run: phrases[run] for run in wanted if run in phrases}
            gained = chain(seeds, wanted, vocabulary)
            share = gained / (RUN * len(wanted)) if wanted else 0.0
            rebuilt += share > 0.1
            looked_up, sampled, compared_problems = looked_up + len(seeds), sampled + len(wanted), compared_problems + 1
    note = (
        f"{compared_problems} problems, {len(vocabulary):,} words of {len(texts)} modules; "
        f"{looked_up} of {sampled:,} sampled runs are phrases that other code has verbatim"
    )
    print(f"{rebuilt} problems with more than a tenth rebuilt; {note}")
    save("front.index_inverted", rebuilt, f"{COMMAND} inversion out/{root.name}", note)


def chain(seeds: Mapping[int, tuple[str, ...]], wanted: set[int], vocabulary: Sequence[str]) -> int:
    """Number of tokens that runs of a problem confirm next to the seeds."""
    known, pending, gained = set(seeds), list(seeds.values()), 0
    while pending:
        text = pending.pop()
        for around in ((text[1:], ()), ((), text[:-1])):
            for word in vocabulary:
                longer = (*around[0], word, *around[1])
                (run,) = runs(longer, RUN).tolist()
                if run in wanted - known:
                    known.add(run)
                    pending.append(longer)
                    gained += 1
    return gained


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
    fingerprints = {str(i): fingerprint_of(large(random_), is_row=False) for i in range(300)}
    write_index(index, Origin("made", "made"), "", problems_of("made", fingerprints))
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
    parser.add_argument("what", choices=("recall", "problems", "removed", "read", "inversion", "duplicates", "scale"))
    parser.add_argument("argument", nargs="*", help="checkout of KernelBench, run directory, or numbers of modules")
    parser.add_argument("--record", action="store_true", help="keep the figures")
    given = parser.parse_args()
    save: Record = record if given.record else print
    match given.what:
        case "recall":
            recall()
        case "problems":
            problems(Path(*given.argument), save)
        case "removed":
            removed(Path(*given.argument), save)
        case "read":
            read(save)
        case "inversion":
            inversion(Path(*given.argument), save)
        case "duplicates":
            duplicates(Path(*given.argument))
        case "scale":
            scale([int(n) for n in given.argument] or SIZES)


if __name__ == "__main__":
    main()
