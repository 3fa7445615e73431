"""A pool of verifiers that judge answers while others are generated, each distinct answer once."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from kernelquarry.pipeline.prompts import read_answer
from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.closing import Closing
from kernelquarry.pipeline.schema.outcome import Kept, Outcome
from kernelquarry.pipeline.schema.records import Row

from .judge_answer import Judgement, errored_judgement, judge_code, speedup
from .sandbox_pool import SandboxPool

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """One answer to one module."""

    id: str
    row: Row
    code: str
    timed: bool


class VerifierPool(Closing):
    """A thread-safe context manager. An answer that hangs, crashes or breaks its GPU context affects no other."""

    def __init__(self, rows: Mapping[str, Row], settings: SandboxSettings, timed: bool = False):
        """`rows` by id; `timed`: time answers that pass."""
        self._rows, self._timed = rows, timed
        self._sandboxes = SandboxPool(settings, exclusive=timed)
        self._threads = ThreadPoolExecutor(settings.workers, thread_name_prefix="verifier")
        self._known: dict[str, Future[Judgement]] = {}
        self.waited_s = 0.0  # total time in `judge`

    def submit(self, id: str, text: str) -> Future[Judgement]:
        """Start to judge an answer to the row `id`, unless it was submitted before."""
        code = read_answer(text)
        key = hashlib.sha256(f"{id}\0{code}".encode()).hexdigest()
        if key not in self._known:
            task = AnswerTask(key, self._rows[id], code, self._timed)
            self._known[key] = self._threads.submit(self._judge, task)
        return self._known[key]

    def judge(self, ids: Sequence[str], texts: Sequence[str]) -> list[Judgement]:
        """Judgements of the answers `texts` to the rows `ids`, in order."""
        started = time.monotonic()
        futures = [self.submit(id, text) for id, text in zip(ids, texts, strict=True)]
        judgements = [future.result() for future in futures]
        self.waited_s += time.monotonic() - started
        return judgements

    def _judge(self, task: AnswerTask) -> Judgement:
        outcome: Outcome[Judgement] = self._sandboxes.run(_judge, task)
        if isinstance(outcome, Kept):
            return outcome.record
        judgement = errored_judgement(task.code, outcome)
        _logger.warning("an answer could not be judged: %s", judgement.evidence)
        return judgement

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._sandboxes.close()


def _judge(task: AnswerTask, sandbox: Sandbox) -> Outcome[Judgement]:
    judgement = judge_code(task.code, task.row, sandbox)
    if task.timed and judgement.passes:
        judgement = replace(judgement, speedup=speedup(judgement, task.row, sandbox))
    return Kept(judgement)
