"""Progress of a stage, as lines where there is no terminal."""

from io import StringIO

import pytest
from rich.console import Console

from kernelquarry.pipeline.cli import progress_bar
from kernelquarry.pipeline.cli.progress_bar import Progress
from kernelquarry.pipeline.runtime import events
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from tests.factories import make_module


def test_each_line_has_its_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: now[0])
    module, written = make_module(), StringIO()
    with Progress(Console(file=written, width=200)) as progress, progress.watch({"cut": 61, "slice": None}):
        for now[0] in range(40, 60):  # the first outcome comes after 40 s, then one a second
            events.advance("cut", module.id, Kept(module))
        events.advance("slice", module.id, Dropped(module.id, Reason.RANDOM, "random"))
        events.advance("mine", module.id, Kept(module))
    first, *last = written.getvalue().splitlines()
    assert first == "cut          1 of 61 in 40 s, 0.0/s: 1 kept"
    assert last == [
        "slice        1 in 59 s, 0.0/s: 1 dropped",
        "cut          20 of 61 in 59 s, 0.3/s, 0.7 min left: 20 kept",
        "slice        1 in 59 s, 0.0/s: 1 dropped",
    ]
