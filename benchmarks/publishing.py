"""Publish a dataset to a test double of the Hub under random faults, and read it with all supported readers.

    python benchmarks/publishing.py                                # with generated rows
    python benchmarks/publishing.py --dataset out/default/dataset  # with rows of a build

Faults: each round publishes to a new repository twice, the second time by two publishers in parallel. A share of all
requests fails with an error, or with a connection cut before or after the request is done, and publishers are killed at
random. Each round must leave one commit, one tag, and the folder to the bit.

Validators: the Croissant validator in an environment of its own (its dependencies are source distributions, which `make
setup` does not allow), the card linter, and `load_dataset` of every config, whole and streamed, from folder and Hub.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from figures import ROOT, record
from huggingface_hub import HfApi, constants
from huggingface_hub.utils import _http

from kernelquarry.pipeline.dataset.cardlint import lint_card
from kernelquarry.pipeline.dataset.configs import CONFIGS
from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.rows import read_config, read_rejections, read_rows
from kernelquarry.pipeline.dataset.write_dataset import Build, published_files, write_dataset
from kernelquarry.pipeline.publish.gates import demand, read_contents
from kernelquarry.pipeline.publish.hub import Target, publish
from kernelquarry.pipeline.schema.errors import UserError

sys.path.insert(0, str(ROOT / "tests"))

from factories import make_pairs, make_rejection
from hub_double import CUT, GONE, TOKEN, Fault, HubDouble

CROISSANT = ("mlcroissant==1.1.1", "pyarrow==25.0.1")
PAIRS = 2_694  # of the default corpus
SHARE = 0.25  # of requests that fail
FAULTS = (429, 500, 502, 503, CUT, GONE)
KILLED = 0.2  # share of a publisher's pauses in which it is killed


class Killed(BaseException):
    """A simulated kill: no handler catches it, and nothing is cleaned up."""


class FaultyHub(HubDouble):
    """A double of the Hub whose requests fail at random, from a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.dice, self.counts, self.calm = random.Random(seed), Counter[str](), False

    def fault(self, method: str, path: str) -> Fault | None:
        with self.lock:
            if self.calm or self.dice.random() >= SHARE:
                return None
            status = self.dice.choice(FAULTS)
            self.counts[{CUT: "cut after", GONE: "cut before"}.get(status, str(status))] += 1
            return Fault(method, None, status, 1, {"Retry-After": "0"} if status == 429 else {})  # type: ignore[arg-type]


@contextmanager
def online(hub: HubDouble) -> Iterator[None]:
    """Direct the Hub client to the double, with LFS, and without waits between its retries."""
    constants.HF_HUB_OFFLINE, constants.HF_HUB_DISABLE_XET, before = False, True, _http.time
    _http.time = SimpleNamespace(**{**vars(time), "sleep": lambda _: None})  # type: ignore[assignment]
    os.environ["HF_TOKEN"] = TOKEN
    with hub:
        yield
    _http.time = before


def publish_until_done(folder: Path, target: Target, hub: FaultyHub, kills: list[int]) -> None:
    """Repeat the command until it succeeds."""

    def pause(_: float) -> None:
        with hub.lock:
            killed = hub.dice.random() < KILLED
        if killed:
            kills.append(1)
            raise Killed

    while True:
        try:
            publish(folder, target, HfApi(hub.url, token=TOKEN), pause)
            return
        except (Killed, UserError):
            continue


def round_of(number: int, folder: Path, hub: FaultyHub, kills: list[int]) -> int:
    """Publish three times. Returns the errors: lost, duplicated or changed files, superfluous commits and tags."""
    target = Target(f"tester/round-{number}")
    publish_until_done(folder, target, hub, kills)
    first = hub.repos["datasets", target.repo].refs["main"]
    both = [threading.Thread(target=publish_until_done, args=(folder, target, hub, kills)) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    repo, there = hub.repos["datasets", target.repo], hub.files(target.repo)
    expected = {name: path.read_bytes() for name, path in published_files(folder).items()}
    wrong = sum(there.get(name) != data for name, data in expected.items()) + len(there.keys() - expected.keys())
    wrong += (repo.refs["main"] != first) + abs(len(repo.log) - 2) + abs(len(repo.tags) - 1)
    return wrong + sum(repo.refs[tag] != first for tag in repo.tags)


def validate(folder: Path, environment: Path) -> dict[str, bool]:
    """Each reader, with True if it reads all rows."""
    passed = {"card": not list(lint_card(folder, (folder / "README.md").read_text()))}
    validator = croissant_validator(environment)
    done = subprocess.run(
        [validator, "validate", "--jsonld", folder / "croissant.json"], capture_output=True, text=True
    )
    passed["croissant"] = done.returncode == 0 and "Done." in done.stderr and "error(s)" not in done.stderr
    counts = {n: sum(s.values()) for n, s in json.loads((folder / "manifest.json").read_text())["rows"].items()}
    hub = HubDouble()
    with online(hub):
        publish(folder, Target("tester/valid"), HfApi(hub.url, token=TOKEN))
        for name in counts:
            for place, where in (("folder", str(folder)), ("hub", "tester/valid")):
                for streaming in (False, True):
                    rows = count_rows(where, name, streaming, hub.url)
                    passed[f"load_dataset {name}, {'streamed' if streaming else 'whole'}, {place}"] = (
                        rows == counts[name]
                    )
    return passed


_LOAD = """
import sys, datasets
where, name, streaming = sys.argv[1:]
loaded = datasets.load_dataset(where, name, streaming=streaming == "True")
print(len({row["id"] for split in loaded.values() for row in split}))
"""


def count_rows(where: str, config: str, streaming: bool, url: str) -> int:
    """Number of distinct rows, read in a process with an empty cache."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HF_ENDPOINT": url, "HF_HOME": home, "HF_HUB_DISABLE_XET": "1"}
        command = [sys.executable, "-c", _LOAD, where, config, str(streaming)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else -1


def croissant_validator(environment: Path) -> Path:
    """The Croissant validator's command, installed on first use."""
    program = environment / "bin" / "mlcroissant"
    if not program.exists():
        venv.create(environment, with_pip=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", *CROISSANT], check=True)
    return program


def write_folder(folder: Path, dataset: Path | None) -> int:
    """Write a dataset with rows of another, of any schema version, or with generated rows. Returns their number."""
    if dataset is None:
        pairs = make_pairs(PAIRS, ("train",) * 18 + ("validation", "test"))
        rejected = Rejected((make_rejection(cluster=pairs[0].cluster, split=pairs[0].split),))
        others = {}
    else:
        pairs, rejected = list(read_rows(dataset)), Rejected(tuple(read_rejections(dataset)))
        kinds = {each.name: each.record for each in CONFIGS if each.derive is None}
        others = {name: list(read_config(dataset, name, kind)) for name, kind in kinds.items()}
    write_dataset(folder, pairs, rejected, [], Build("default", {}), others)
    demand(read_contents(folder, uncompared=True))
    return len(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, help="folder with the rows to publish")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--validators", type=Path, default=ROOT / "out" / "validators", help="environment for Croissant"
    )
    parser.add_argument("--record", action="store_true", help="write the figures")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "dataset"
        pairs = write_folder(folder, arguments.dataset)
        hub, kills = FaultyHub(arguments.seed), list[int]()
        with online(hub):
            wrong = sum(round_of(number, folder, hub, kills) for number in range(arguments.rounds))
        passed = validate(folder, arguments.validators)
    faults = ", ".join(f"{number} {name}" for name, number in sorted(hub.counts.items()))
    note = (
        f"{arguments.rounds} repositories, each published to three times, {pairs:,} pairs; of {len(hub.requests):,} "
        f"requests {hub.counts.total():,} failed ({faults}), {len(kills)} kills"
    )
    share = 100 * sum(passed.values()) / len(passed)
    failed = ", ".join(name for name, well in passed.items() if not well)
    read = (
        f"{len(passed)} readings; failed: {failed}" if failed else f"{len(passed)} readings: Croissant, card, loaders"
    )
    sys.stdout.write(f"{wrong} lost, doubled or changed: {note}\n{share:.1f} %: {read}\n")
    if arguments.record:
        given = f" --dataset {arguments.dataset}" if arguments.dataset else ""
        command = f"python benchmarks/publishing.py{given}"
        record("clean.publish_faults", wrong, command, note)
        record("clean.publish_faults.faults", hub.counts.total(), command)
        record("clean.validators", share, command, read)


if __name__ == "__main__":
    main()
