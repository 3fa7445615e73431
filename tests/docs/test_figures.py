"""What is said of the figures."""

from __future__ import annotations

from kernelquarry.pipeline.figures import goals, measured
from kernelquarry.pipeline.pages import render_results


def test_a_figure_that_misses_its_goal_says_why() -> None:
    latest = {figure.id: figure for figure in measured()}
    missed = {id for id, goal in goals().items() if id in latest and not goal.met(latest[id].value)}
    assert missed
    page = render_results()
    told = {id for id in missed if goals()[id].missed and f"- `{id}`: {goals()[id].missed}" in page}
    assert told == missed
