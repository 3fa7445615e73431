"""Build a small corpus repeatedly under random faults, and compare the shards with those of an undisturbed build.

    python benchmarks/chaos.py                       # 50 rounds; records scale.chaos when all have ended
    python benchmarks/chaos.py --rounds 3 --until probe --dry

A round has up to three faults, drawn from its number, and then runs undisturbed to its end:

    kill            the command is killed at a random time (SIGKILL)
    kill at N       the command is killed when it writes its n-th file or folder
    kill guest      one of its child processes is killed
    stall           one of its child processes is stopped for seconds
    full            files cannot grow beyond a size, as on a full disk
    read only       the run directory cannot be written
    damage          files of the store and of finished stages are truncated, or a bit is flipped
    requests        the store is an object store that fails one request in three
    models          the endpoint of a model fails one request in two
    gpu             one of two GPUs is lost under a job and comes back; the other is lost for good
    clock           the clock is wrong by days, and files have times in the future

Results are recorded after each round: the command resumes, as long as the code produces the same shards.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType

import psutil
from chaos_build import FLUSHES, WORKERS, Attempt
from figures import ROOT, record

from kernelquarry.pipeline.graph import STAGES

COMMAND = "python benchmarks/chaos.py"
FAULTS = ("kill", "kill at", "kill guest", "stall", "full", "read only", "damage", "requests", "models", "gpu", "clock")
LOSES_RESULTS = ("damage", "gpu", "models")  # work is rightly done again after them
AT_ONCE = 2 * WORKERS  # records that a worker holds
FORK = multiprocessing.get_context("fork")  # each attempt finds all modules imported
LAYERS = Path(__file__).with_name("chaos_layers.py")


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a round: a line of the results file."""

    number: int
    expected: str  # digest of the undisturbed build's shards
    same: bool
    faults: tuple[str, ...]  # that it met
    redone: int  # most records that were begun again after a kill


def disturb(attempt: Attempt, fault: str, seed: random.Random, seconds: float) -> tuple[str, int]:
    """Run once. Returns the fault ("" if the run ended before it) and the exit status.

    `seconds`: duration of the undisturbed run.
    """
    if fault == "damage":
        damage(attempt.root, seed)
    process = FORK.Process(target=_alone, args=(attempt, fault, seed.randrange(1 << 30)))
    process.start()
    if fault in ("kill", "kill guest", "stall"):
        done = len(list(attempt.root.glob("stages/*/stage.json"))) / (len(STAGES) + 1)
        process.join(seed.uniform(0.0, (1 - done) * seconds))
        if process.exitcode is None:
            strike(process, fault, seed)
        else:
            fault = ""
    process.join(10 * seconds + 60)
    if process.exitcode is None:
        process.kill()
        raise SystemExit(f"{attempt.root.name}: {fault or 'the undisturbed end'} never ended")
    if fault.startswith("kill at") and process.exitcode != -signal.SIGKILL:
        fault = ""
    return fault, process.exitcode


def _alone(attempt: Attempt, fault: str, seed: int) -> None:
    os.setsid()
    sys.modules["__main__"] = ModuleType("__main__")  # processes that it starts import this file otherwise
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    with attempt.root.with_suffix(".log").open("a") as log:
        os.dup2(log.fileno(), 2)
    attempt.run(fault, seed)


def strike(process: BaseProcess, fault: str, seed: random.Random) -> None:
    assert process.pid is not None
    target = process.pid
    with suppress(ProcessLookupError, psutil.NoSuchProcess):  # it ended just now
        if fault != "kill":
            others = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
            if not others:
                return
            target = seed.choice(sorted(others))
        if fault == "stall":
            os.kill(target, signal.SIGSTOP)
            time.sleep(seed.uniform(1.0, 3.0))
        os.kill(target, signal.SIGCONT if fault == "stall" else signal.SIGKILL)


def damage(root: Path, seed: random.Random) -> None:
    files = sorted(path for path in root.rglob("*") if path.suffix in (".parquet", ".json") and path.stat().st_size)
    files = [path for path in files if path.name != "run.json"]  # says by itself that it is damaged, and the remedy
    for path in seed.sample(files, min(3, len(files))):
        data = path.read_bytes()
        at = seed.randrange(len(data))
        cut, flipped = data[:at], data[:at] + bytes([data[at] ^ 1 << seed.randrange(8)]) + data[at + 1 :]
        path.write_bytes(cut if seed.random() < 0.5 else flipped)


def shards(root: Path) -> dict[str, str]:
    paths = sorted(root.glob("stages/*/*.parquet"))
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def drawn(number: int, seed: random.Random) -> list[str]:
    """The faults of a round. Over all rounds, each kind comes first equally often."""
    kinds = [FAULTS[number % len(FAULTS)], *seed.choices(FAULTS, k=seed.choice((0, 0, 1, 2)))]
    return [f"{kind} {seed.randint(1, FLUSHES)}" if kind == "kill at" else kind for kind in kinds]


def play(attempt: Attempt, number: int, faults: list[str], seconds: float, expected: dict[str, str]) -> Round:
    seed = random.Random(number)
    met, ends = list[str](), list[int]()  # faults, and how many records had been begun at the end of each
    for fault in [*(faults or drawn(number, seed)), ""]:
        struck, status = disturb(attempt, fault, seed, seconds)
        met.append(struck)
        ends.append(len(attempt.lines()))
    if status:
        raise SystemExit(f"round {number}: the undisturbed end failed: {attempt.root.with_suffix('.log').read_text()}")
    found = shards(attempt.root)
    if found == expected:
        shutil.rmtree(attempt.root)
    came = tuple(fault for fault in met if fault)
    return Round(number, key(expected), found == expected, came, redone(met, ends, attempt.lines()))


def redone(met: list[str], ends: list[int], began: list[str]) -> int:
    """The largest number of records that were started before a kill and again after it, until a fault loses results."""
    worst = 0
    for index, fault in enumerate(met):
        if fault.startswith("kill") and fault != "kill guest":
            later = [other for other, name in enumerate(met) if other > index and name in LOSES_RESULTS]
            last = ends[later[0] - 1] if later else len(began)
            first = ends[index]
            worst = max(worst, len(set(began[:first]) & set(began[first:last])))
    return worst


def key(found: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]


def undisturbed(folder: Path, corpus: Path, until: str) -> tuple[dict[str, str], float]:
    """Shards and duration in seconds of an undisturbed build."""
    started, attempt = time.monotonic(), Attempt(folder / "undisturbed", corpus, until)
    _, status = disturb(attempt, "", random.Random(0), 600.0)
    found = shards(attempt.root)
    if status or not any(f"-{until}/kept-" in name for name in found):
        raise SystemExit(f"the undisturbed build failed: {attempt.root.with_suffix('.log').read_text()}")
    return found, time.monotonic() - started


def copy_corpus(folder: Path) -> Path:
    corpus = folder / "layers"
    corpus.mkdir()
    shutil.copy(ROOT / "LICENSE", corpus)
    shutil.copy(LAYERS, corpus / "layers.py")
    return corpus


def read_rounds(results: Path, expected: str) -> list[Round]:
    lines = results.read_text().splitlines() if results.exists() else []
    rounds = [Round(**json.loads(line)) for line in lines]
    return [each for each in rounds if each.expected == expected]


def report(rounds: list[Round], number: int, files: int) -> None:
    same, worst = sum(each.same for each in rounds), max(each.redone for each in rounds)
    met = Counter(fault.rstrip(" 0123456789") for each in rounds for fault in each.faults)
    note = f"{same} of {number} builds, {files} shards each; " + ", ".join(f"{n} x {f}" for f, n in sorted(met.items()))
    record("scale.chaos", 100 * same / number, COMMAND, note)
    record("scale.chaos.redone", worst / AT_ONCE, COMMAND, f"{worst} records of {AT_ONCE} that a worker may hold")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=2, help="rounds")
    parser.add_argument("--until", default=STAGES[-1].name, help="last stage of each build")
    parser.add_argument("--faults", nargs="*", default=[], help="of each round, in place of those that are drawn")
    parser.add_argument("--results", type=Path, default=Path("out/chaos.jsonl"))
    parser.add_argument("--dry", action="store_true", help="record no figure")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.chmod(0o755)
    corpus = copy_corpus(folder)
    expected, seconds = undisturbed(folder, corpus, given.until)
    print(f"undisturbed: {len(expected)} shards in {seconds:.0f} s", flush=True)
    given.results.parent.mkdir(parents=True, exist_ok=True)
    left = sorted(set(range(given.rounds)) - {each.number for each in read_rounds(given.results, key(expected))})

    def some(numbers: list[int]) -> None:
        for number in numbers:
            attempt = Attempt(folder / f"round{number}", corpus, given.until)
            ended = play(attempt, number, given.faults, seconds, expected)
            with given.results.open("a") as stream:
                stream.write(json.dumps(asdict(ended)) + "\n")
            print(f"round {number}: {', '.join(ended.faults)}; {ended.redone} begun again", flush=True)
            if not ended.same:
                print(f"round {number}: OTHER SHARDS, see {folder}", flush=True)

    workers = [FORK.Process(target=some, args=(left[n :: given.at_once],)) for n in range(given.at_once)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    rounds = read_rounds(given.results, key(expected))
    if len({each.number for each in rounds}) == given.rounds and not given.dry:
        report(rounds, given.rounds, len(expected))
    if len(rounds) < given.rounds or not all(each.same for each in rounds):
        raise SystemExit(f"{folder} has the rounds that failed")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
