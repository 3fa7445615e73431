"""Read and mine every file of a corpus, each tree in a process of its own, and count errors.

python benchmarks/crashes.py [--corpus full] [--cache out/cache] [--record]

A process that dies or takes more than ten minutes counts once, and so does each file and each class that ends as an
error of ours. Takes three minutes for the full corpus on a quiet core, besides the downloads.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path

from figures import record

from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.transforms.mine import mine_tree
from kernelquarry.transforms.read import Shard, open_corpus, read_shard

HANGS_S = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="full")
    parser.add_argument("--cache", type=Path, default=Path("out/cache"))
    parser.add_argument("--record", action="store_true", help="write the figure")
    given = parser.parse_args()
    ends: Counter[str] = Counter()
    started = time.monotonic()
    shards = open_corpus(given.corpus, given.cache).shards()
    for number, shard in enumerate(shards, 1):
        found = _apart(shard)
        ends.update(found)
        print(f"{number} of {len(shards)}", *filter(_is_wrong, sorted(found)), sep="\n    ", flush=True)
    wrong = sum(number for end, number in ends.items() if _is_wrong(end))
    note = (
        f"{len(shards)} trees, {_all(ends, 'file')} files, {_all(ends, 'class')} classes, {ends['class kept']} mined; "
        f"{time.monotonic() - started:.0f} s"
    )
    print(f"mine.crashes {wrong}   {note}")
    if given.record:
        record("mine.crashes", wrong, f"python benchmarks/crashes.py --corpus {given.corpus} --record", note)


def _is_wrong(end: str) -> bool:
    return end.startswith(("crash:", "hang:", "errored:"))


def _all(ends: Counter[str], unit: str) -> int:
    return sum(number for end, number in ends.items() if end.startswith(f"{unit} "))


def _apart(shard: Shard) -> Counter[str]:
    """Outcomes of the files and classes of a tree, computed in another process."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_mine, args=(shard, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(HANGS_S) else Counter([f"hang: {shard}"])
    except EOFError:
        return Counter([f"crash: {shard}"])
    finally:
        process.kill()
        process.join()


def _mine(shard: Shard, sender: Connection) -> None:
    found = list(read_shard(shard))
    result = mine_tree([outcome.record for outcome in found if isinstance(outcome, Kept)])
    ends = Counter(_ends("file", [outcome for outcome in found if not isinstance(outcome, Kept)]))
    sender.send(ends + Counter(_ends("file", result.files)) + Counter(_ends("class", result.classes)))


def _ends(unit: str, outcomes: Iterable[Outcome[object]]) -> list[str]:
    """The name of each outcome: "class kept", "file no_module", "errored: ..."."""
    names = []
    for outcome in outcomes:
        match outcome:
            case Kept():
                names.append(f"{unit} kept")
            case Dropped(reason=reason):
                names.append(f"{unit} {reason.value}")
            case Errored(where, error, message):
                names.append(f"errored: {unit} {where}: {error}: {message}")
    return names


if __name__ == "__main__":
    main()
