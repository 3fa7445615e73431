"""Answers verified beside the generation of others, each once."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType

from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Errored, Kept, Outcome
from kernelquarry.pipeline.schema.records import Row

from .judge_answer import Judgement, judge_code
from .sandbox_pool import Benches
from .speedup import speedup

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """One answer to one module."""

    id: str
    row: Row
    code: str
    general: bool
    timed: bool


class Verifiers:
    """Thread-safe; a context manager. What hangs, crashes or meets an illegal address costs its own answer alone."""

    def __init__(self, rows: Mapping[str, Row], settings: SandboxSettings, general: bool = True, timed: bool = False):
        """`rows` by the ids that answers are asked about; `timed`: what passes is timed, if there is a GPU."""
        self._rows, self._general, self._timed = rows, general, timed
        self._benches = Benches(settings, alone=timed)
        self._threads = ThreadPoolExecutor(settings.workers, thread_name_prefix="verifier")
        self._known: dict[str, Future[Judgement]] = {}
        self.waited_s = 0.0  # by those who asked for judgements

    def submit(self, id: str, text: str) -> Future[Judgement]:
        """The judgement of an answer to the row `id`, to come."""
        code = read_answer(text)
        key = hashlib.sha256(f"{id}\0{code}".encode()).hexdigest()
        if key not in self._known:
            asked = Asked(key, self._rows[id], code, self._general, self._timed)
            self._known[key] = self._threads.submit(self._judge, asked)
        return self._known[key]

    def judge(self, ids: Sequence[str], texts: Sequence[str]) -> list[Judgement]:
        """The judgements of answers, in their order; waits for those that are not known yet."""
        started = time.monotonic()
        futures = [self.submit(id, text) for id, text in zip(ids, texts, strict=True)]
        judgements = [future.result() for future in futures]
        self.waited_s += time.monotonic() - started
        return judgements

    def _judge(self, asked: Asked) -> Judgement:
        outcome = self._benches.run(_judged, asked)
        if isinstance(outcome, Kept):
            judgement: Judgement = outcome.record
            return judgement
        assert isinstance(outcome, Errored)
        _logger.warning("an answer could not be judged: %s: %s", outcome.error, outcome.message)
        return Judgement(asked.code, evidence=f"{outcome.error}: {outcome.message}")

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._benches.close()

    def __enter__(self) -> Verifiers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _judged(asked: Asked, sandbox: Sandbox) -> Outcome[Judgement]:
    judgement = judge_code(asked.code, asked.row, sandbox, asked.general)
    if asked.timed and judgement.passes:
        judgement = replace(judgement, speedup=speedup(judgement, asked.row, sandbox, asked.general))
    return Kept(judgement)
