"""A discrete-event simulation of a build: sequential stages whose bundles run on workers, and on GPUs with cores."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

SPREAD = 1.0  # sigma of the logarithm of a record's time: some take ten times as long as most
_SAMPLES = 600


@dataclass(frozen=True, slots=True)
class Task:
    """The work of a stage."""

    name: str
    records: float
    record_s: float  # core seconds, mean
    start_s: float = 0.0  # core seconds that each worker takes before its first record
    bundle: int = 0  # records that are given to a worker together; 0: as many as make work for a minute
    waits_s: float = 0.0  # beside, for something that is no core of ours
    at_once: int | None = None  # bundles, at most; None: as many as there are workers
    gpu_s: float = 0.0  # of a GPU; its cores do the rest
    bytes: float = 0.0  # written


@dataclass(frozen=True, slots=True)
class Fleet:
    workers: int  # of one core each
    gpus: int
    gpu_cores: int  # beside each


@dataclass
class Simulated:
    spans: dict[str, float] = field(default_factory=dict)  # task -> seconds
    busy_s: dict[str, float] = field(default_factory=lambda: {"workers": 0.0, "gpus": 0.0})
    times: list[float] = field(default_factory=list)  # of the samples below
    workers: list[float] = field(default_factory=list)  # share that is busy
    gpus: list[float] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # bundles
    waiting_gpu: list[int] = field(default_factory=list)
    busy_workers: float = 0.0  # share of the whole time
    busy_gpus: float = 0.0

    @property
    def seconds(self) -> float:
        return sum(self.spans.values())


class _Machines:
    def __init__(self, env: simpy.Environment, fleet: Fleet) -> None:
        self.env, self.fleet = env, fleet
        self.workers = simpy.Resource(env, fleet.workers)
        self.hosts = simpy.Resource(env, max(1, fleet.gpus * fleet.gpu_cores))
        self.gpus = simpy.Resource(env, max(1, fleet.gpus))
        self.busy_s = {"workers": 0.0, "gpus": 0.0}
        self.rng = np.random.default_rng(0)

    def bundle(self, task: Task, size: int, places: simpy.Resource, started: list[int]) -> Generator[Any, Any, None]:
        """Run a bundle on a worker, or on a core next to a GPU and then on the GPU."""
        with places.request() as place:
            yield place
            work_s = size * task.record_s
            if work_s:
                draws = self.rng.lognormal(-(SPREAD**2) / 2, SPREAD, min(size, 1000))
                work_s *= float(draws.mean())
            if started[0] < places.capacity:
                started[0] += 1
                work_s += task.start_s
            gpu_s = size * task.gpu_s
            self.busy_s["workers"] += 0.0 if gpu_s else work_s
            yield self.env.timeout(max(0.0, work_s - gpu_s) + size * task.waits_s)
            if gpu_s:
                with self.gpus.request() as gpu:
                    yield gpu
                    self.busy_s["gpus"] += gpu_s
                    yield self.env.timeout(gpu_s)


def simulate(tasks: list[Task], fleet: Fleet) -> Simulated:
    """Simulate tasks one after another, as the pipeline's stages run."""
    env, found = simpy.Environment(), Simulated()
    machines = _Machines(env, fleet)
    interval = max(0.01, _expected(tasks, fleet) / _SAMPLES)

    def build() -> Generator[Any, Any, None]:
        for task in tasks:
            began = env.now
            places = machines.hosts if task.gpu_s else machines.workers
            if task.at_once is not None:
                places = simpy.Resource(env, task.at_once)
            sampling = env.process(_sample(env, machines, places, task, interval, found))
            started = [0]
            yield env.all_of(
                [env.process(machines.bundle(task, size, places, started)) for size in _bundles(task, fleet)]
            )
            sampling.interrupt()
            found.spans[task.name] = env.now - began

    env.run(env.process(build()))
    found.busy_s = machines.busy_s
    found.busy_workers = machines.busy_s["workers"] / (found.seconds * fleet.workers)
    found.busy_gpus = machines.busy_s["gpus"] / (found.seconds * max(1, fleet.gpus))
    return found


def _sample(
    env: simpy.Environment, machines: _Machines, places: simpy.Resource, task: Task, interval: float, found: Simulated
) -> Generator[Any, Any, None]:
    while True:
        found.times.append(env.now)
        busy = 0.0 if task.gpu_s else places.count * _working(task) / machines.fleet.workers
        found.workers.append(min(1.0, busy))
        found.gpus.append(machines.gpus.count / max(1, machines.fleet.gpus))
        found.waiting.append(0 if task.gpu_s else len(places.queue))
        found.waiting_gpu.append(len(places.queue) if task.gpu_s else 0)
        try:
            yield env.timeout(interval)
        except simpy.Interrupt:
            return


def _working(task: Task) -> float:
    """Share of the time in which a place works."""
    return task.record_s / (task.record_s + task.waits_s) if task.waits_s else 1.0


def _bundles(task: Task, fleet: Fleet) -> list[int]:
    """Sizes of bundles: a minute's work each, but enough bundles to keep all workers busy to the end."""
    records = max(1, round(task.records))
    minute = round(60 / task.record_s) if task.record_s else records
    size = task.bundle or max(1, min(minute, records // (4 * fleet.workers)))
    return [size] * (records // size) + ([records % size] if records % size else [])


def _expected(tasks: list[Task], fleet: Fleet) -> float:
    return sum(t.records * (t.record_s + t.waits_s) / (t.at_once or fleet.workers) + t.start_s for t in tasks)
