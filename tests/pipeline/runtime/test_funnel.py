"""The funnel adds up, or says where it does not."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from rich.console import Console

from kernelquarry.pipeline.runtime.boundary import run_guarded
from kernelquarry.pipeline.runtime.funnel import ConservationError, StageCounts, explain, render_text
from kernelquarry.pipeline.schema.errors import NotYet
from kernelquarry.pipeline.schema.outcome import Errored
from kernelquarry.transforms.distill.batch import Postponed
from kernelquarry.transforms.distill.budget import BudgetSpent
from kernelquarry.transforms.distill.client import Unanswered

PROBE = StageCounts("probe", "module", 10, 6, {"no_workload": 2, "import_failed": 1}, {"OSError": 1})


def test_conserved_counts_pass() -> None:
    PROBE.check()
    StageCounts("probe", "module", 0, 0).check()


def test_a_lost_record_is_named() -> None:
    with pytest.raises(ConservationError, match=r"probe: 11 module entered, but 10 left \(6 kept, 3 dropped, 1 err"):
        StageCounts("probe", "module", 11, 6, PROBE.dropped, PROBE.errored).check()


def test_summary_is_one_line() -> None:
    assert PROBE.summary() == "probe: 10 module in, 6 kept, 3 dropped, 1 errored"


def test_losses_are_sorted_by_number_then_code() -> None:
    assert PROBE.losses() == [("no_workload", 2), ("OSError", 1), ("import_failed", 1)]


def test_codes_are_explained() -> None:
    assert explain("no_workload") == "no inputs were found on which forward runs"
    assert explain("OSError").startswith("a failure of the pipeline")


def test_rendering_shows_figures_and_reasons() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(render_text([PROBE, StageCounts("lower", "module", 0, 0)]))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert lines[1] == ["probe", "module", "10", "6", "3", "1", "60.0"]
    assert lines[2] == ["no_workload", "2"]
    assert lines[5] == ["lower", "module", "0", "0", "0", "0", "-"]
    assert lines[7][0] == "no_workload" and lines[7][-1] == "runs"


@pytest.mark.parametrize("kind", [BudgetSpent, Postponed, Unanswered])
def test_outcomes_without_a_result_name_the_next_step(kind: type[NotYet]) -> None:
    assert issubclass(kind, NotYet)
    assert "a failure of the pipeline" not in explain(kind.__name__)


def test_only_our_own_failures_name_a_place_in_the_code() -> None:
    def work(record: Any, error: Exception) -> NoReturn:
        raise error

    record = SimpleNamespace(id="mod_1")
    waiting, failed = (run_guarded(work, record, error) for error in (Unanswered("nobody"), ValueError("odd")))
    assert isinstance(waiting, Errored) and waiting.message == "nobody"
    assert isinstance(failed, Errored) and "test_funnel.py" in failed.message
