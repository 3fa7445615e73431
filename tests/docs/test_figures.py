"""The page of figures explains each missed goal."""

from __future__ import annotations

import importlib.metadata

import pytest
from figures import goals, installed, measured
from pages import render_results


def test_a_figure_that_misses_its_goal_says_why() -> None:
    latest = {figure.id: figure for figure in measured()}
    missed = {id for id, goal in goals().items() if id in latest and not goal.met(latest[id].value)}
    assert missed
    page = render_results()
    explained = {id for id in missed if goals()[id].missed and f"- `{id}`: {goals()[id].missed}" in page}
    assert explained == missed


def test_what_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version

    def without_beam(package: str) -> str:
        if package == "apache-beam":
            raise importlib.metadata.PackageNotFoundError(package)
        return version(package)

    before = installed()
    monkeypatch.setattr(importlib.metadata, "version", without_beam)
    assert installed() == {name: value for name, value in before.items() if name != "apache-beam"} != before
